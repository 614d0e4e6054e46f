# SPDX-License-Identifier: MIT OR Apache-2.0
"""What an access to a register costs: by a mapping, as a checked register of the library, and by ioctl."""

from dataclasses import dataclass

from labkit import LabError

from . import report
from .figures import RULER, check_ruler
from .guest import Job, Results
from .profile import Span

ACCESSES = 1000
SPAN = 2
WAYS = ("plain", "checked", "ioctl")
FIGURES = {"read": "read a register", "write": "write a register", "ten": "read ten, and add them up"}
HEADS = ("figure", "kernel", "mapped", "strobe::map::Register", "ioctl", "ioctl/mapped", "ioctl/Register")
NAME = "access"  # of the lines of the document between which the table goes
NOTE = f"""\
Instructions of program and kernel together: the least of {ACCESSES}, for a tick of the kernel may come in between. The
registers are words of memory (`lab/modules/lab_ioctl.c`), so that the way to them is all that counts.
mapped: one load or store of the compiled program. Register: bounds and width were checked when it was made; an access
finds its width out. ioctl: the least that a driver can do, from the call of the C library to its return: copy the
request, check it, make the access, copy the answer. Ten are read by one call.
"""


@dataclass
class Figures:
    """Of one kernel: the accesses by "WAY-FIGURE"."""

    kernel: str
    spans: dict[str, Span]

    def least(self, way: str, figure: str) -> int:
        return self.spans[f"{way}-{figure}"].least


def job(flavour: str) -> Job:
    commands = [RULER, ("nothing", f"access nothing {ACCESSES}")]
    commands += [(f"{way}-{figure}", f"access {way}-{figure} {ACCESSES}") for figure in FIGURES for way in WAYS]
    return Job("access", flavour, ["lab_ioctl"], ["ruler", "access"], commands)


def make(flavour: str, results: Results) -> Figures:
    check_ruler(results.figures["ruler"])
    spans = {}
    for name, each in results.figures.items():
        if name == "ruler":
            continue
        span = each.window.spans.get(SPAN)
        if not span or span.count != ACCESSES or each.said["accesses"] != ACCESSES:
            raise LabError(f"{name}: {span.count if span else 0} accesses were counted, not {ACCESSES}")
        spans[name] = span
    if spans.pop("nothing").least:
        raise LabError("the marks around an access count as a part of it")
    return Figures(flavour, spans)


def rows(figures: list[Figures]) -> list[tuple[str, ...]]:
    made = []
    for figure, words in FIGURES.items():
        for each in figures:
            plain, checked, ioctl = (each.least(way, figure) for way in WAYS)
            made.append((words, each.kernel, str(plain), str(checked), str(ioctl),
                         f"{ioctl / plain:.0f}", f"{ioctl / checked:.0f}"))
    return made


def table(figures: list[Figures], form=report.text) -> str:
    return f"{form(HEADS, rows(figures))}\n{NOTE}"

