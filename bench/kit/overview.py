# SPDX-License-Identifier: MIT OR Apache-2.0
"""One table of all that is measured: the least that could do it, others, strobe, and the command that measures it again.

Each measurement leaves its lines in build/bench; the table has what is there, so that one part can be measured alone.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from . import BUILD, access, endpoint, report, slow

PLACE = BUILD
PARTS = ("rows", "access", "endpoint", "slow", "host", "serve")  # in the order of the table
NAME = "overview"  # of the lines of the document between which the table goes
INTO = {"arrows": 100, "h5": 125}  # ns a row: 10 and 8 million rows a second
SEEN = 50  # us until a reader that asked to be woken has a row, half of the time
HEADS = ("figure", "on", "floor or limit", "others", "strobe", "strobe/floor", "others/strobe", "target", "met", "measured by")


@dataclass
class Line:
    """One figure, each value with a word for whose it is. None: there is nobody to compare it with."""

    figure: str
    on: str
    strobe: float
    unit: str
    command: str
    floor: tuple[float, str] | None = None
    others: tuple[float, str] | None = None
    target: str = "-"
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        floor, others = (of and of[0] for of in (self.floor, self.others))
        return (self.figure, self.on, self.named(self.floor), self.named(self.others), self.number(self.strobe),
                report.ratio(self.strobe, floor), report.ratio(others, self.strobe), self.target,
                report.VERDICT[self.met], f"`{self.command}`")

    def named(self, of: tuple[float, str] | None) -> str:
        return "-" if of is None else f"{self.number(of[0])} ({of[1]})"

    def number(self, value: float) -> str:
        digits = 0 if self.unit in ("", "kHz") else 1
        return f"{value:.{digits}f} {self.unit}".strip()


def of_rows(contests: list[report.Contest]) -> list[Line]:
    return [Line(line.figure, line.kernel, line.strobe, line.unit.strip(), "bench/run --only row", named(line.floor, "bare module"),
                 named(line.iio, "IIO"), line.target, line.met) for line in report.lines(contests)]


def of_access(figures: list[access.Figures]) -> list[Line]:
    return [Line(words, each.kernel, each.least("checked", figure), "", "bench/run --only access",
                 named(each.least("plain", figure), "bare mapping"), named(each.least("ioctl", figure), "ioctl"))
            for figure, words in access.FIGURES.items() for each in figures]


def of_endpoints(figures: list[endpoint.Figures]) -> list[Line]:
    return [Line("an rpmsg endpoint, made and ended", each.kernel, each.total("file"), "", "bench/run --only endpoint",
                 others=named(each.total("node"), "stock driver's node"), target=each.target, met=each.met) for each in figures]


def of_slow(figures: list[slow.Figures]) -> list[Line]:
    return [Line(f"a row with a channel of class {way}", each.kernel, total, "", "bench/run --only slow",
                 named(each.total["hard"], "all hard"))
            for each in figures for way, total in each.total.items() if way != "hard"]


def of_host(said: dict) -> list[Line]:
    """Of this machine: what `strobe-bench --save` has written."""
    machine = f"{said['machine']['cpus']} CPUs, {said['machine']['busy']:.1f} busy"
    moving = {figure["way"]: median(figure["ns"]) for figure in said["moving"]}
    files = {figure["output"]: median(figure["ns"]) for figure in said["files"]}
    short, long = "strobe-bench --seconds 0", "strobe-bench"
    narrow, wide = (moving[f"ring, 8192 rows of {size} bytes"] for size in (80, 112))
    copy, row = named(moving["memcpy of as much memory"], "memcpy"), median(said["engine"]["ns"])
    turns = named(moving["80 bytes written, then read by another CPU"], "written, then read")
    lines = [Line("a row of 80 bytes to another process", machine, narrow, "ns", short, turns, target="<= 10 ns", met=narrow <= 10)]
    lines += [Line("a row of 112 bytes to another process", machine, wide, "ns", short, copy, named(moving[way], way))
              for way in moving if way.startswith(("pipe", "unix socket"))]
    lines += [Line("made, stamped, ten words read, and read", machine, row, "ns", short, target="<= 50 ns", met=row <= 50)]
    for output, ns in files.items():
        if output != "write":
            target, met = (f"<= {INTO[output]} ns", ns <= INTO[output]) if output in INTO else ("-", None)
            lines.append(Line(f"a row into .{output}", machine, ns, "ns", short, named(files["write"], "bare write"), target=target, met=met))
    late = {(each["rate"], each["way"]): each["late"]["p50"] / 1000 for each in said["periods"]}
    lines += [Line(f"median lateness at {rate} Hz, {way}", machine, us, "us", long, named(late[rate, "bare"], "clock_nanosleep"))
              for (rate, way), us in late.items() if way != "bare"]
    seen = {(each["rate"], each["way"]): each["after"]["p50"] / 1000 for each in said["visible"]}
    lines += [Line(f"from a row's stamp until its reader has it, {rate} Hz, woken", machine, us, "us", long,
                   others=named(seen[rate, "looks"], "who looks"), target=f"<= {SEEN} us", met=us <= SEEN)
              for (rate, way), us in seen.items() if way == "woken"]
    return lines


def of_serve(said: dict) -> list[Line]:
    """Of this machine: what `strobe-bench serve --save` has written."""
    machine = f"{said['machine']['cpus']} CPUs, {said['machine']['busy']:.1f} busy"
    speed = {(each["place"], each["clients"], each["way"]): median(each["rows_per_s"]) / 1e6 for each in said["figures"]}
    lines = []
    for each in said["figures"]:
        if (target := each["target"]) is None:
            continue
        place, clients, way = each["place"], each["clients"], each["way"]
        lines.append(Line(f"rows of 80 bytes from {place} by {way}, {clients} {'client' if clients == 1 else 'clients'}", machine,
                          speed[place, clients, way], "M/s", "strobe-bench serve", named(speed[place, clients, "raw TCP"], "raw TCP"),
                          target=f">= {target} x floor", met=median(each["of_raw"]) >= target))
    return lines


def named(value: float | None, whose: str) -> tuple[float, str] | None:
    return None if value is None else (value, whose)


def save(part: str, lines: Iterable[Line], place: Path = PLACE) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{part}.json").write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


def load(place: Path = PLACE) -> list[Line]:
    saved = [place / f"{part}.json" for part in PARTS]
    return [Line(**line) for file in saved if file.exists() for line in json.loads(file.read_text())]


def table(lines: list[Line], form: Callable = report.text) -> str:
    return f"{form(HEADS, [line.cells() for line in lines])}\nWithout a unit: instructions. Each command has a table of its own, below.\n"
