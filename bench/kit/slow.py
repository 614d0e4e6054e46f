# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a row costs of which a channel is not ready at once: fetched before the next row, delivered later, or by a thread."""

from dataclasses import dataclass

from labkit import LabError

from . import build, report
from .figures import CHANNELS, PERIOD, ROWS, RULER, WINDOWS, check_ruler
from .guest import Job, Results

# The last of the ten channels, by the way it takes.
WAYS = {"hard": "bench.r9", "next": "sim.next", "async": "sim.async", "sleep": "sim.slow"}
HEADS = ("figure", "kernel", "hard", "next", "async", "sleep", "next/hard", "async/hard", "sleep/hard")
NAME = "slow"  # of the lines of the document between which the table goes
NOTE = f"""\
Instructions of the whole guest, as in the first table; {ROWS} rows at {1_000_000 // PERIOD} kHz, the median of {WINDOWS} windows.
Nine channels are registers; the tenth is one too (hard), or the simulator's: fetched before the next row (sim.next),
delivered by an interrupt of its own 20 us later (sim.async; the timer of the simulator and its interrupt are in the
figure), or read by a real-time thread of the run that is woken for it (sim.slow, which does not sleep here).
"""


@dataclass
class Figures:
    """Of one kernel: instructions a row, by way."""

    kernel: str
    total: dict[str, float]


def job(flavour: str, modules: build.Modules, blob) -> Job:
    nine = " ".join(CHANNELS.split()[:-1])
    commands = [RULER, ("", "echo 0 >/sys/module/strobe/parameters/sim_sleep_us")]
    commands += [(f"{way}.{i}", f"strobe {PERIOD} {ROWS} 1 {nine} {channel}")
                 for way, channel in WAYS.items() for i in range(WINDOWS)]
    return Job(NAME, flavour, [modules.strobe / f"{name}.ko" for name in ("strobe", "strobe_blob", "strobe_board")], ["ruler", "strobe"],
               commands, [f"{blob}:/lib/firmware/strobe/{blob.name}"])


def make(flavour: str, results: Results) -> Figures:
    check_ruler(results.figures["ruler"])
    total: dict[str, list[float]] = {way: [] for way in WAYS}
    for name, each in results.figures.items():
        way = name.partition(".")[0]
        if way not in total:
            continue
        if each.said["missed"] or each.said["lost"]:
            raise LabError(f"{name}: {each.said['missed']} rows missed, {each.said['lost']} lost")
        total[way].append(each.window.instructions / ROWS)
    return Figures(flavour, {way: sorted(windows)[len(windows) // 2] for way, windows in total.items()})


def rows(figures: list[Figures]) -> list[tuple[str, ...]]:
    made = []
    for each in figures:
        hard, *others = each.total.values()
        made.append(("a row, all in all", each.kernel, *(f"{total:.0f}" for total in each.total.values()),
                     *(f"{other / hard:.2f}" for other in others)))
    return made


def table(figures: list[Figures], form=report.text) -> str:
    return f"{form(HEADS, rows(figures))}\n{NOTE}"
