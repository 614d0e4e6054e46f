# SPDX-License-Identifier: MIT OR Apache-2.0
# The only entry. `make help` lists the targets.
PREFIX ?= /usr/local
DESTDIR ?=
KDIR ?= /lib/modules/$(shell uname -r)/build
HOURS ?= 24
# PyO3's build looks for this Python. If it had to look for one, each change of PATH would compile PyO3 and the package anew.
PYO3_PYTHON = python3
export PREFIX DESTDIR KDIR PYO3_PYTHON

.PHONY: help setup build build-kernel build-host build-tests build-guest firmware run test check verify lab litmus bench sanitize soak install uninstall wheel docs clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

setup:           ## install what is missing, fetch kernels and crates; `run` and `test` do it for themselves
	@lab/setup

build: build-kernel build-host build-guest ## modules for the lab's kernels, the library and program, the guests' programs

build-kernel:
	@lab/kmod W=1

build-host:
	@cargo build --release --workspace --exclude strobe-cases

build-guest:
	@lab/guest-build

firmware:        ## the sending side of frames for this machine and for Cortex-M, and its size
	@$(MAKE) --no-print-directory -C firmware

# Programs, tests and examples at once, with one set of features, so that nothing is compiled twice.
build-tests:
	@cargo build --release --workspace --exclude strobe-cases --lib --bins --tests --examples

run:             ## a demonstration of both engines: on this machine, and in a guest; builds no more than that needs
	@lab/setup --run
	@lab/kmod --kernel amd64 --source kernel
	@cargo build --profile demo -p strobe-cli --bin strobe --no-default-features --features hdf5,plot
	@lab/demo

# The modules beside the programs, of which the last are compiled on one CPU.
test: setup      ## every test, on the host and in guests
	@$(MAKE) -s build-kernel & modules=$$!; $(MAKE) -s build-tests build-guest; programs=$$?; wait $$modules && exit $$programs
	@lab/suite

lab: build-kernel build-host build-guest ## only the tests in guests
	@lab/suite --guest

check:           ## formatting, lints, sparse, checkpatch, shellcheck, licences, documentation
	@lab/check

verify: build-kernel build-tests build-guest ## every measurement in full, and the newest kernel that Debian has: three hours; started again, it goes on where it was
	@lab/kmod --kernel newest W=1
	@lab/verify

litmus:          ## the memory barriers, judged by herd7
	@lab/litmus

bench: build     ## costs in instructions, and beside others on this machine
	@mkdir -p build/bench; status=0; bench/run || status=$$?; \
	target/release/strobe-bench --into docs/performance.md --save build/bench/strobe-bench.json || status=$$?; \
	target/release/strobe-bench serve --into docs/performance.md --save build/bench/strobe-bench-serve.json || status=$$?; \
	bench/python/run --into docs/performance.md || status=$$?; \
	bench/run --only overview || status=$$?; exit $$status

sanitize: build-guest ## every guest test on kernels with KASAN, lockdep, kmemleak ... and KCSAN; builds those once
	@lab/kmod --kernel debug --kernel kcsan W=1
	@lab/suite --guest --kernel debug --kernel kcsan

soak: build-kernel build-tests build-guest ## what repeats: HOURS (24) of acquisition in deterministic guests, also served; 100 kills of the daemon; 1000 hot-plugs on a debug kernel; 1e6 inputs of rubbish for each parser and for the check of row programs; started again, it goes on where it was
	@lab/kmod --kernel debug --kernel kcsan W=1
	@lab/verify --soak --hours $(HOURS)

# Under sudo nothing is compiled: root may have no cargo, and what it builds is not yours.
install: $(if $(SUDO_USER),,build-host) ## into PREFIX, and modules for the running kernel (KDIR=, DESTDIR=)
	@dist/install

uninstall:       ## remove exactly what was installed
	@dist/uninstall

wheel:           ## the Python package for x86_64 and aarch64, and its source, into target/wheels; and its tests
	@dist/wheel
	@tests/wheel/run

docs:            ## the library's reference
	@cargo doc --workspace --no-deps

clean:           ## remove what was built; the cache stays
	rm -rf build target
