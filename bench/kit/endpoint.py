# SPDX-License-Identifier: MIT OR Apache-2.0
"""What it costs to make and to end an rpmsg endpoint: as a node of the stock driver, and as a file of strobe_rpmsg."""

from dataclasses import dataclass

from labkit import LabError

from . import report
from .figures import RULER, check_ruler
from .guest import Job, Results

COUNT = 1000
WAYS = ("node", "file")
STEPS = {"create": 2, "open": 3, "destroy": 4, "close": 5}  # and their spans
MODULES = ["rpmsg_ctrl", "rpmsg_char", "strobe_rpmsg", "lab_rpmsg"]
MOST = {"amd64": 6600}  # the target, all in all
HEADS = ("figure", "kernel", "node", "file", "node/file", "target of a file", "met")
NAME = "endpoint"  # of the lines of the document between which the table goes
NOTE = f"""\
Instructions of program and kernel together: the least of {COUNT}, for a tick of the kernel may come in between. One CPU,
so that what the kernel's thread for device nodes does is in it; nobody listens to the uevents. On top of the lab's
transport, whose part is the same for both. A file is not opened.
"""


@dataclass
class Figures:
    """Of one kernel: the least by way and step."""

    kernel: str
    least: dict[str, dict[str, int]]

    def total(self, way: str) -> int:
        return sum(self.least[way].values())

    @property
    def target(self) -> str:
        return f"<= {MOST[self.kernel]}" if self.kernel in MOST else "-"

    @property
    def met(self) -> bool | None:
        return self.total("file") <= MOST[self.kernel] if self.kernel in MOST else None


def job(flavour: str) -> Job:
    return Job(NAME, flavour, MODULES, ["ruler", "endpoint"], [RULER, *((way, f"endpoint {way} {COUNT}") for way in WAYS)])


def make(flavour: str, results: Results) -> Figures:
    check_ruler(results.figures["ruler"])
    least = {}
    for way in WAYS:
        spans = results.figures[way].window.spans
        steps = {step: spans[number] for step, number in STEPS.items() if number in spans}
        if set(STEPS) - set(steps) != ({"open"} if way == "file" else set()):
            raise LabError(f"{way}: these steps were counted: {', '.join(steps)}")
        for step, span in steps.items():
            if span.count != COUNT:
                raise LabError(f"{way}: {step}: {span.count} were counted, not {COUNT}")
        least[way] = {step: span.least for step, span in steps.items()}
    return Figures(flavour, least)


def rows(figures: list[Figures]) -> list[tuple[str, ...]]:
    made = []
    for each in figures:
        for step in STEPS:
            node, file = (each.least[way].get(step) for way in WAYS)
            made.append((step, each.kernel, str(node), str(file or "-"), report.ratio(node, file), "-", "-"))
        node, file = map(each.total, WAYS)
        made.append(("all", each.kernel, str(node), str(file), report.ratio(node, file), each.target, report.VERDICT[each.met]))
    return made


def table(figures: list[Figures], form=report.text) -> str:
    return f"{form(HEADS, rows(figures))}\n{NOTE}"
