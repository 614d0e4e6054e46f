# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table: figures of all contestants beside each other, as ratios, against the targets."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from labkit import LabError

from .figures import RATE_GUESTS, RATES, ROWS, WINDOWS, Figures

TOTAL_RATIO = 1.10
BODY_MOST = 230
RAISE_MOST = 480
# Rows of other kinds, by that of ten plain registers.
KINDS = {"fields": ("ten fields of two registers", 1.05), "signed": ("ten signed registers", 1.03),
         "foreign": ("ten channels of another provider", 1.15)}
# Instructions that the hard handler may take more with a program.
PROGRAMS = {"empty": ("an empty program", 25), "gate": ("a program of a gate and a difference", 60)}
CLEAN_LEAST = 200  # kHz
VERDICT = {True: "yes", False: "NO", None: "-"}
BENCH = "bench"  # the lines of the document between which the table goes: see `borders`
HEADS = ("figure", "kernel", "floor", "IIO", "strobe", "strobe/floor", "IIO/strobe", "target", "met")
LEFT = 2  # columns of words come first, then those of numbers


@dataclass
class Contest:
    """All contestants on one kernel."""

    kernel: str
    floor: Figures
    iio: Figures
    strobe: Figures


@dataclass
class Line:
    """One figure. None: the contestant has no such thing."""

    figure: str
    kernel: str
    floor: float | None
    iio: float | None
    strobe: float
    target: str
    met: bool
    unit: str = ""

    def cells(self) -> tuple[str, ...]:
        return (self.figure, self.kernel, self.number(self.floor), self.number(self.iio), self.number(self.strobe),
                ratio(self.strobe, self.floor), ratio(self.iio, self.strobe), self.target, VERDICT[self.met])

    def number(self, value: float | None) -> str:
        return "-" if value is None else f"{value:.0f}{self.unit}"


def ratio(of: float | None, to: float | None) -> str:
    return f"{of / to:.2f}" if of and to else "-"


def lines(contests: list[Contest]) -> list[Line]:
    return [*(make(contest) for make in (total, body, readers, raised, clean) for contest in contests),
            *(kind(contest, name) for name in KINDS for contest in contests),
            *(program(contest, name) for name in PROGRAMS for contest in contests)]


def kind(contest: Contest, name: str) -> Line:
    words, most = KINDS[name]
    plain, strobe = contest.strobe.total, contest.strobe.kinds[name]
    return Line(f"a row of {words}", contest.kernel, None, None, strobe, f"<= {most:.2f} x {plain:.0f}", strobe <= most * plain)


def program(contest: Contest, name: str) -> Line:
    words, more = PROGRAMS[name]
    plain, strobe = contest.strobe.body.least, contest.strobe.programs[name].least
    return Line(f"hard handler with {words}", contest.kernel, None, None, strobe, f"<= {plain} + {more}", strobe <= plain + more)


def total(contest: Contest) -> Line:
    floor, iio, strobe = contest.floor.total, contest.iio.total, contest.strobe.total
    return Line("a row, all in all", contest.kernel, floor, iio, strobe,
                f"<= {TOTAL_RATIO:.2f} x floor", strobe <= TOTAL_RATIO * floor)


def body(contest: Contest) -> Line:
    floor, strobe = contest.floor.body.least, contest.strobe.body.least
    return Line("hard handler", contest.kernel, floor, None, strobe, f"<= {BODY_MOST}", strobe <= BODY_MOST)


def readers(contest: Contest) -> Line:
    """Rows that wake somebody cost more than others: both kinds must cost the same whoever looks on."""
    bodies = contest.strobe.readers
    least = {each.least for each in bodies.values()}
    most = {each.most for count, each in bodies.items() if count}
    # Nobody is woken where nobody reads.
    same = len(least) == 1 and len(most) == 1 and bodies[0].most == bodies[0].least
    *few, many = map(str, bodies)
    return Line(f"hard handler with {', '.join(few)} or {many} readers", contest.kernel, None, None,
                max(each.least for each in bodies.values()), "all the same", same)


def raised(contest: Contest) -> Line:
    strobe = contest.strobe.raised
    return Line("interrupt raised to row stored", contest.kernel, contest.floor.raised, contest.floor.threaded, strobe,
                f"<= {RAISE_MOST}", strobe <= RAISE_MOST)


def clean(contest: Contest) -> Line:
    floor, iio, strobe = contest.floor.clean, contest.iio.clean, contest.strobe.clean
    return Line("highest rate without a loss", contest.kernel, floor, iio, strobe,
                f">= {CLEAN_LEAST} kHz", strobe >= CLEAN_LEAST, " kHz")


def notes(contests: list[Contest]) -> str:
    edges = {f"{each.floor.edges} in the floor, {each.strobe.edges} in strobe" for each in contests}
    return f"""\
Instructions of the whole guest: one CPU, a timer at 10 kHz, ten channels, one reader that maps the ring and sleeps
until 64 more rows are there; the median of {WINDOWS} windows of {ROWS} rows.
floor: a module that does nothing but this. IIO: its dummy device on its hrtimer trigger, 16 bytes a row, read(64) at
a watermark of 64; for the interrupt, which the dummy lacks, a bare module with a threaded handler, as its drivers have.
hard handler: from its first to its last statement; the compiler's work around them is {"; ".join(sorted(edges))}.
The rate is at one instruction a nanosecond, strobe's the least of {RATE_GUESTS} guests that differ in when the run starts; the steps are {", ".join(map(str, RATES))} kHz.
"""


def rate_rows(contests: list[Contest]) -> list[tuple[str, ...]]:
    """Losses by rate."""
    rows = []
    for contest in contests:
        for rate in RATES:
            given = [each.missed.get(rate) for each in (contest.floor, contest.iio, contest.strobe)]
            rows.append((f"rows lost at {rate} kHz", contest.kernel,
                         *("-" if lost is None else str(lost) for lost in given)))
    return rows


def text(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """For people, in a terminal."""
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    return "\n".join("  ".join(cell.ljust(width) if index < LEFT else cell.rjust(width)
                               for index, (cell, width) in enumerate(zip(row, widths))).rstrip()
                     for row in (heads, *rows)) + "\n"


def markdown(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    rule = tuple("---" if index < LEFT else "--:" for index in range(len(heads)))
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, rule, *rows))


def table(contests: list[Contest], form: Callable = text) -> str:
    return f"{form(HEADS, [line.cells() for line in lines(contests)])}\n{notes(contests)}"


def losses(contests: list[Contest]) -> str:
    """Beyond its limit a guest may lose a row more or less from run to run: not for a document."""
    return text(HEADS[:LEFT + 3], rate_rows(contests))


def borders(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def write_into(document: Path, new: str, name: str = BENCH) -> bool:
    """Replaces what is between the borders in a document; answers whether that was something else."""
    begins, ends = borders(name)
    before = document.read_text()
    head, begin, rest = before.partition(begins)
    _, end, tail = rest.partition(ends)
    if not (begin and end):
        raise LabError(f"{document} has no lines {begins} and {ends}, between which the table would go")
    after = f"{head}{begins}\n\n{new}\n{ends}{tail}"
    document.write_text(after)
    return after != before


def as_json(contests: list[Contest], versions: dict[str, str]) -> dict:
    return {"versions": versions,
            "met": all(line.met for line in lines(contests)),
            "figures": [asdict(line) for line in lines(contests)],
            "contestants": {each.kernel: {"floor": asdict(each.floor), "iio": asdict(each.iio),
                                          "strobe": asdict(each.strobe)} for each in contests}}
