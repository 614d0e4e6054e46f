# SPDX-License-Identifier: MIT OR Apache-2.0
"""A load as a kernel build is one, to be put into a guest: the compiler and the assembler of this machine, and a source.

The source is one of strobe's own, with all the headers of the kernel in it: some 100000 lines.
"""

import subprocess
from pathlib import Path

from . import LabError, tool
from .kernel import Kernel
from .programs import linked

UNIT = "core/create"
# As the kernel's own Makefile has them, as far as code depends on them.
FLAGS = ("-std=gnu11 -O2 -fno-strict-aliasing -ffreestanding -mcmodel=kernel -mno-red-zone -mno-sse -mno-mmx -mno-80387 "
         "-fno-PIE -fno-asynchronous-unwind-tables -w")
# One after the other without end, each into a file system; so many side by side as there are CPUs.
SCRIPT = f"""
compile() {{
	while :; do
		cc1 -quiet {FLAGS} /unit.i -o /tmp/unit$1.s && as -o /tmp/unit$1.o /tmp/unit$1.s || echo "the compiler failed" >&2
	done
}}
for cpu in $(seq $(nproc)); do compile $cpu & done
"""


def files(kernel: Kernel) -> list[str]:
    """Words for lab/run --file: all that SCRIPT needs."""
    place = kernel.built / "kernel"
    make = ["make", "-s", "-C", str(kernel.headers.resolve()), f"M={place}", f"{UNIT}.i"]
    done = subprocess.run(make, env=kernel.environment, capture_output=True, text=True)
    unit = place / f"{UNIT}.i"
    if done.returncode or not unit.exists():
        raise LabError(f"{UNIT}.c cannot be preprocessed for {kernel.release}: run lab/kmod first ({done.stderr.strip()})")
    # Both need the C library.
    return list(dict.fromkeys([f"{unit}:/unit.i", *(word for name in ("cc1", "as") for word in linked(program(name)))]))


def program(name: str) -> Path:
    """Where the compiler has a program: one of its own, or one that everybody has."""
    said = subprocess.run(["gcc", f"-print-prog-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
    return Path(tool(said))
