# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest tests: a case is a file of lab/cases/tests, a module of one program, in a guest that the file's head asks for."""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import TREE, LabError
from .emulator import GuestJob
from .initramfs import CASES as PROGRAM
from .initramfs import PROGRAMS
from .kernel import KERNELS

SOURCES = TREE / "lab/cases/tests"
ROOT = "main"
TIMEOUT = 600  # seconds for a case; of a kernel with a sanitizer times its slowness


@dataclass(frozen=True)
class Case:
    """A file of tests."""

    name: str
    tests: tuple[str, ...]  # by their names in the program
    kernels: tuple[str, ...]  # those that can show what it is about
    options: tuple[str, ...]  # more of lab/run

    @property
    def deterministic(self) -> bool:
        return self.name.startswith("icount_")

    @property
    def needs(self) -> tuple[bool, tuple[str, ...]]:
        """What it needs of a guest: cases of one kernel that need the same share one."""
        return self.deterministic, self.options

    @property
    def command(self) -> list[str]:
        """With all names: a filter of the harness would find `uio_board::` when asked for `board::`."""
        # What repeats does it so often in the guest, too: lab/cases/src/rounds.rs.
        often = os.environ.get("STROBE_ROUNDS")
        return [*(["env", f"STROBE_ROUNDS={often}"] if often else []), PROGRAM, "--test-threads=1", "--exact", *self.tests]

    def job(self, kernel: str) -> GuestJob:
        """The case in a guest of its own."""
        return GuestJob(f"{self.name} ({kernel})", [*guest(kernel, self), "--timeout", str(TIMEOUT), "--", *self.command], TREE)


def guest(kernel: str, case: Case) -> list[str]:
    """The words of lab/run for the guest of a case."""
    machine = ["--icount"] if case.deterministic else ["--cpus", "2"]
    return [str(TREE / "lab/run"), "--kernel", kernel, *machine, "--device", "edu", "--device", "edu", *case.options]


def cases(names: list[str]) -> list[Case]:
    """The cases of these names, or all."""
    files = sorted(path for path in SOURCES.glob("*.rs") if path.stem != ROOT)
    if unknown := set(names) - {path.stem for path in files}:
        raise LabError(f"no guest test {' or '.join(sorted(unknown))} in {SOURCES.relative_to(TREE)}")
    known = tests(PROGRAMS / PROGRAM)
    if without := [path.stem for path in files if path.stem not in known]:
        raise LabError(f"no test of {', '.join(without)} is built: name it in {SOURCES.relative_to(TREE)}/{ROOT}.rs, and run `make build`")
    return [case(path.stem, path.read_text(), known[path.stem]) for path in files if not names or path.stem in names]


def case(name: str, text: str, names: list[str]) -> Case:
    """What the head of a file says: lines `// lab: OPTIONS` and `// kernels: NAME ...`."""
    only = re.search(r"^// kernels: (.*)$", text, re.MULTILINE)
    options = [word for line in re.findall(r"^// lab: (.*)$", text, re.MULTILINE) for word in shlex.split(line)]
    return Case(name, tuple(names), tuple(only[1].split()) if only else KERNELS, tuple(options))


def tests(program: Path) -> dict[str, list[str]]:
    """The tests of the program by their files. They are listed here, not run."""
    if not program.exists():
        raise LabError(f"{program.relative_to(TREE)} is not built: run `make build`")
    said = subprocess.run([program, "--list", "--format", "terse"], check=True, capture_output=True, text=True).stdout
    found: dict[str, list[str]] = {}
    for name in re.findall(r"^(\S+): test$", said, re.MULTILINE):
        found.setdefault(name.partition("::")[0], []).append(name)
    return found
