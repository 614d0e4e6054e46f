# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds what the bench needs into build/bench/: never mixed with the modules that are used otherwise."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from labkit import LabError
from labkit.kernel import kernel
from labkit.source import source

from . import BENCH, BUILD, TREE

PLUGIN = BUILD / "insncount.so"
PROGRAMS = BUILD / "programs"
COMPILER = ("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra")
TARGET = "x86_64-unknown-linux-gnu"
IIO_PARTS = ("industrialio-sw-device.c", "dummy/iio_simple_dummy.c", "dummy/iio_simple_dummy.h",
             "dummy/iio_simple_dummy_buffer.c")


@dataclass(frozen=True)
class Modules:
    """The directories that hold the .ko files for one kernel."""

    strobe: Path
    floor: Path
    iio: Path


def plugin() -> None:
    compile_c(PLUGIN, BENCH / "plugin/insncount.c", "-shared", "-fPIC")


def programs() -> None:
    """The programs of bench/readers, static: the guest has no libraries."""
    for file in sorted((BENCH / "readers").glob("*.c")):
        compile_c(PROGRAMS / file.stem, file, "-static", f"-I{TREE}/include/compat", f"-I{TREE}/include/uapi")


def access() -> None:
    """bench/readers/access.rs, static, and the module that it accesses."""
    call(["cargo", "build", "-q", "--release", "--target", TARGET, "--manifest-path", TREE / "Cargo.toml",
          "-p", "strobe-cases", "--example", "access"], RUSTFLAGS="-C target-feature=+crt-static")
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    call(["strip", "-o", PROGRAMS / "access", TREE / "target" / TARGET / "release/examples/access"])
    call([TREE / "lab/kmod"])


def board(strobe: Path) -> Path:
    """The board file of the measured card, compiled as the driver wants it."""
    if not strobe.exists():
        raise LabError(f"{strobe}, which compiles the board of the measured card, does not exist: run `make build`")
    place = BUILD / "firmware"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    call([strobe, "board", "install", "--no-bind", "--firmware-dir", place, BENCH / "readers/edu.toml"])
    (blob,) = place.glob("*.board")
    return blob


def modules(flavour: str) -> Modules:
    """strobe.ko with marks, the floor, and IIO's dummy device, for one kernel."""
    release = kernel(flavour).release
    kmod(flavour, TREE / "kernel", BUILD / "strobe", "STROBE_CFLAGS=-DSTROBE_MARKS")
    kmod(flavour, BENCH / "floor", BUILD / "floor", f"TREE={TREE}")
    kmod(flavour, iio_sources(flavour), BUILD / "iio")
    return Modules(*(BUILD / part / release / "kernel" for part in ("strobe", "floor", "iio")))


def iio_sources(flavour: str) -> Path:
    """The sources of IIO's dummy device, out of the source package of the very kernel, and our Kbuild."""
    origin, image = version(source()), version(kernel(flavour).root)
    if origin != image:
        raise LabError(f"the kernel is {image}, its source package in the cache is {origin}: delete {source()}")
    place = BUILD / "iio-source"
    place.mkdir(parents=True, exist_ok=True)
    for part in IIO_PARTS:
        copy(source() / "drivers/iio" / part, place)
    copy(BENCH / "iio/Kbuild", place)
    return place


def version(unpacked: Path) -> str:
    """The one version of the packages that a directory of the lab's cache was made of."""
    (answer,) = {line.partition("=")[2] for line in (unpacked / "packages").read_text().split()}
    return answer


def kmod(flavour: str, directory: Path, out: Path, *words: str) -> None:
    call([TREE / "lab/kmod", "--kernel", flavour, "--source", directory, "--out", out, *words])


def copy(file: Path, place: Path) -> None:
    """Keeps the time of the file, so that make builds only what has changed."""
    target = place / file.name
    if not target.exists() or target.stat().st_mtime_ns != file.stat().st_mtime_ns:
        shutil.copy2(file, target)


def compile_c(product: Path, file: Path, *words: str) -> None:
    product.parent.mkdir(parents=True, exist_ok=True)
    call([*COMPILER, *words, "-o", product, file])


def call(words: list[str | Path], **environment: str) -> None:
    done = subprocess.run(words, env=os.environ | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise LabError(f"{' '.join(map(str, words))} failed:\n{done.stdout.strip()}")
