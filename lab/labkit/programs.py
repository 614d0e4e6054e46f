# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs with the libraries they are linked with, to be put into a guest: of Debian, or built for this machine."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import LabError, cache, say

LOADER = "ld-linux-x86-64.so.2"
LIBRARIES = "/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Program:
    """A program of a package; `packages` matches the names of those that its libraries and theirs are in."""

    package: str
    path: str
    packages: str

    def root(self) -> Path:
        """A directory with the program and its libraries as their packages have them."""
        return cache.unpacked(self.package, self.closure, lambda root: None)

    def closure(self) -> list[str]:
        if not cache.package(self.package):
            raise LabError(f"apt does not know the package {self.package}: run `apt-get update` as root")
        say(f"fetching {self.package} into {cache.cache_dir()}")
        return cache.closure([self.package], self.packages)

    def files(self) -> list[str]:
        """Words for lab/run --file: the program in /usr/local/bin, and all that it needs to start."""
        root = self.root()
        # Without links that lead out of the tree: the loader has one.
        there = {path.name: path for path in root.rglob("*.so.*") if path.resolve().is_relative_to(root)}
        wanted, found = needs(root / self.path), {}
        while wanted:
            name = wanted.pop()
            if name in found:
                continue
            if name not in there:
                raise LabError(f"{self.package} needs {name}, which is in none of the packages in {root}: see lab/labkit")
            found[name] = there[name].resolve()
            wanted += needs(found[name])
        return words(root / self.path, found)


def linked(program: Path) -> list[str]:
    """Words for lab/run --file: a program of this machine, and the libraries with which it starts here."""
    return words(program, libraries(program))


def libraries(program: Path) -> dict[str, Path]:
    """The libraries with which a program of this machine starts here, its loader among them, by name."""
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^\t(?:(\S+) => )?(/\S+) \(", said, re.MULTILINE)
    return {Path(name or path).name: Path(path).resolve() for name, path in found}


def words(program: Path, its: dict[str, Path]) -> list[str]:
    """The program in /usr/local/bin, and its libraries, by their names, where the loader of a Debian looks for them."""
    return [f"{program}:/usr/local/bin/{program.name}",
            *(f"{path}:{place(name)}" for name, path in sorted(its.items()))]


def place(library: str) -> str:
    """Where a Debian has a library of this name."""
    return f"{'/lib64' if library == LOADER else LIBRARIES}/{library}"


def needs(binary: Path) -> list[str]:
    """The libraries that a program or library names."""
    said = subprocess.run(["readelf", "-d", binary], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said)


CYCLICTEST = Program("rt-tests", "usr/bin/cyclictest", r"lib(c6|numa1)$")
