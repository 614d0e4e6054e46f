# SPDX-License-Identifier: MIT OR Apache-2.0
"""What bench/plugin/insncount.c has written, and the names of the functions it has counted in."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from labkit import LabError

KERNEL = 1 << 63  # addresses from here on are the kernel's
USER = "(programs)"


@dataclass
class Span:
    """How many instructions it took from one mark to another, all occurrences together."""

    count: int
    total: int
    least: int
    most: int

    @property
    def mean(self) -> float:
        return self.total / self.count


@dataclass
class Window:
    """What was executed between the two marks of a window."""

    instructions: int
    spans: dict[int, Span] = field(default_factory=dict)
    executions: dict[int, int] = field(default_factory=dict)  # by address
    inside: dict[int, int] = field(default_factory=dict)  # the same, in one span 0 or 1


def read(lines: Iterable[str]) -> list[Window]:
    """The windows in their order. A window without its end is an error: the guest died in it."""
    windows: list[Window] = []
    is_open = False
    for line in lines:
        kind, *rest = line.split()
        if kind == "window":
            windows.append(Window(int(rest[1])))
            is_open = True
        elif kind == "span":
            number, *values = map(int, rest)
            windows[-1].spans[number] = Span(*values)
        elif kind == "at":
            address = int(rest[0], 16)
            windows[-1].executions[address] = int(rest[1])
            if int(rest[2]):
                windows[-1].inside[address] = int(rest[2])
        elif kind == "end":
            is_open = False
    if is_open:
        raise LabError("the counts of the last window are incomplete")
    return windows


class Symbols:
    """The kernel's functions by address, as /proc/kallsyms has them."""

    def __init__(self, text: str):
        found = sorted((int(words[0], 16), " ".join(words[2:])) for words in map(str.split, text.splitlines())
                       if len(words) >= 3 and words[1] in "tTwW")
        self.addresses = [address for address, _ in found]
        self.names = [name for _, name in found]

    @classmethod
    def read(cls, file: Path) -> "Symbols":
        return cls(file.read_text())

    def function(self, address: int) -> str:
        if address < KERNEL:
            return USER
        index = bisect_right(self.addresses, address) - 1
        return self.names[index] if index >= 0 else hex(address)

    def by_function(self, executions: dict[int, int]) -> Counter[str]:
        """Instructions executed in each function itself, without those of what it calls."""
        total: Counter[str] = Counter()
        for address, count in executions.items():
            total[self.function(address)] += count
        return total

    def module(self, name: str) -> dict[str, int]:
        """The functions of a module and where they begin."""
        end = f" [{name}]"
        return {function.removesuffix(end): address
                for address, function in zip(self.addresses, self.names) if function.endswith(end)}
