# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is measured, and the figures made of it."""

from dataclasses import dataclass, replace
from pathlib import Path

from labkit import LabError

from . import build
from .guest import Job, Measured, Results
from .profile import Window

PERIOD = 100_000  # ns
ROWS = 2048
# A row costs a few per cent more or less depending on where between the kernel's ticks it lies, and on what else the
# kernel does in that fifth of a second: the median of some windows is the figure.
WINDOWS = 9
CHANNELS = " ".join(f"bench.r{i}" for i in range(10))
# Rows of other kinds of channels, ten of them too.
KINDS = {"fields": " ".join(f"bench.f{i}" for i in range(10)), "signed": " ".join(f"bench.s{i}" for i in range(10)),
         "foreign": " ".join(["sim.counter"] * 10)}
KIND_WINDOWS = 5
# Those of bench/readers/programs.h, on rows of CHANNELS.
PROGRAMS = ("empty", "gate")
READERS = (0, 1, 8, 64)
RATES = (10, 20, 50, 100, 200, 250, 333, 500)  # kHz, at one instruction a nanosecond
RATE_ROWS = 4096
# Whether a row is missed at the edge depends on where the run lies between the kernel's ticks.
RATE_GUESTS = 5
RATE_STEP = 730  # us by which each guest starts later
# Beyond 100 kHz, IIO's thread leaves its reader no time: the guest would take minutes.
IIO_RATES = tuple(rate for rate in RATES if rate <= 100)
IIO_RATE_ROWS = 2048
RAISES = 1000
BODY, RAISE, ACCESS, LOOP = 0, 1, 6, 7  # spans
IIO_STOCK = ["iio-trig-hrtimer", "industrialio-triggered-buffer"]
RULER = ("ruler", "ruler")


def jobs(kernel: str, modules: build.Modules, blob: Path) -> list[Job]:
    return [strobe(kernel, modules, blob), floor(kernel, modules), iio(kernel, modules),
            *(rates(kernel, modules, blob, n) for n in range(1, RATE_GUESTS))]


def rates(kernel: str, modules: build.Modules, blob: Path, n: int) -> Job:
    """The rates of strobe once more, at other times."""
    commands = [RULER, ("", f"usleep {n * RATE_STEP}"), *rate_commands()]
    return Job(f"rates.{n}", kernel, own(modules), ["ruler", "strobe"], commands, [f"{blob}:/lib/firmware/strobe/{blob.name}"])


def rate_commands() -> list[tuple[str, str]]:
    return [(f"rate.{rate}", f"strobe {1_000_000 // rate} {RATE_ROWS} 1 {CHANNELS}") for rate in RATES]


def own(modules: build.Modules) -> list[Path]:
    return [modules.strobe / f"{name}.ko" for name in ("strobe", "strobe_blob", "strobe_board")]


def strobe(kernel: str, modules: build.Modules, blob: Path) -> Job:
    commands = [RULER, *totals(f"strobe {PERIOD} {ROWS} 1 {CHANNELS}")]
    commands += [(f"readers.{n}", f"strobe {PERIOD} {ROWS} {n} {CHANNELS}") for n in READERS]
    commands += [("raise", f"raise {RAISES} {CHANNELS}")]
    commands += [(f"kind.{kind}.{i}", f"strobe {PERIOD} {ROWS} 1 {channels}")
                 for kind, channels in KINDS.items() for i in range(KIND_WINDOWS)]
    commands += [(f"program.{name}", f"strobe {PERIOD} {ROWS} 1 {CHANNELS} ={name}") for name in PROGRAMS]
    commands += rate_commands()
    return Job("strobe", kernel, own(modules),
               ["ruler", "strobe", "raise"], commands, [f"{blob}:/lib/firmware/strobe/{blob.name}"])


def floor(kernel: str, modules: build.Modules) -> Job:
    commands = [RULER, *totals(f"floor {PERIOD} {ROWS}"), ("raise", f"raise {RAISES}")]
    commands += [("", "rmmod floor_irq"), ("", "modprobe floor_irq threaded=1"), ("threaded", f"raise {RAISES}")]
    commands += [(f"rate.{rate}", f"floor {1_000_000 // rate} {RATE_ROWS}") for rate in RATES]
    return Job("floor", kernel, [modules.floor / "floor.ko", modules.floor / "floor_irq.ko"],
               ["ruler", "floor", "raise"], commands)


def iio(kernel: str, modules: build.Modules) -> Job:
    commands = [RULER]
    commands += [("", f"mkdir -p /sys/kernel/config/iio/{kind}") for kind in ("triggers/hrtimer/bench",
                                                                           "devices/dummy/bench")]
    commands += totals(f"iio {PERIOD} {ROWS}")
    commands += [(f"rate.{rate}", f"iio {1_000_000 // rate} {IIO_RATE_ROWS}") for rate in IIO_RATES]
    return Job("iio", kernel, [*IIO_STOCK, modules.iio / "industrialio-sw-device.ko", modules.iio / "iio_dummy.ko"],
               ["ruler", "iio"], commands)


def totals(command: str) -> list[tuple[str, str]]:
    return [(f"total.{i}", command) for i in range(WINDOWS)]


@dataclass
class Body:
    """Instructions of the hard handler between its first and its last statement."""

    least: int
    most: int


@dataclass
class Figures:
    """Of one kernel and one contestant. None: it has no such thing."""

    total: float
    totals: list[float]  # of all windows, in their order
    body: Body | None
    edges: int | None  # what the compiler puts before the first and after the last statement of the handler
    readers: dict[int, Body]
    raised: float | None
    threaded: float | None
    missed: dict[int, int]  # by rate in kHz
    clean: int  # the highest rate up to which no row was missed
    kinds: dict[str, float]  # a row of ten channels of another kind
    programs: dict[str, Body]  # of a row with a program


def make(results: Results, marked: bool) -> Figures:
    """`marked`: the contestant has marks around its handler, which a module from elsewhere has not."""
    measured = results.figures
    check_ruler(measured["ruler"])
    for name, each in measured.items():
        if not name.startswith("rate.") and (each.said["missed"] or each.said["lost"]):
            raise LabError(f"{name}: {each.said['missed']} rows missed, {each.said['lost']} lost")
    windows = [each for name, each in measured.items() if name.startswith("total.")]
    middle = median(results)
    missed = {int(name.removeprefix("rate.")): each.said["missed"] + each.said["lost"]
              for name, each in measured.items() if name.startswith("rate.")}
    if marked and BODY not in middle.window.spans:
        raise LabError("the module has no marks around its handler: kernel/events/timer.c and bench/floor/floor.c have them, "
                       "and STROBE_MARKS must be defined")
    return Figures(
        total=per_row(middle),
        totals=[per_row(each) for each in windows],
        body=body(middle) if marked else None,
        edges=edges(results, middle.window) if marked else None,
        readers={int(name.removeprefix("readers.")): body(each)
                 for name, each in measured.items() if name.startswith("readers.")},
        raised=raised(measured.get("raise")),
        threaded=raised(measured.get("threaded")),
        missed=missed,
        clean=highest_clean(missed),
        kinds=kinds(results),
        programs={name: body(results.figures[f"program.{name}"]) for name in PROGRAMS if f"program.{name}" in results.figures})


def kinds(results: Results) -> dict[str, float]:
    """The median of each kind's windows."""
    windows: dict[str, list[float]] = {}
    for name, each in results.figures.items():
        if name.startswith("kind."):
            windows.setdefault(name.split(".")[1], []).append(per_row(each))
    return {kind: sorted(found)[len(found) // 2] for kind, found in windows.items()}


def with_rates(figures: Figures, guests: list[Results]) -> Figures:
    """The worst of several guests at each rate."""
    missed = dict(figures.missed)
    for results in guests:
        check_ruler(results.figures["ruler"])
        for rate in missed:
            said = results.figures[f"rate.{rate}"].said
            missed[rate] = max(missed[rate], said["missed"] + said["lost"])
    return replace(figures, missed=missed, clean=highest_clean(missed))


def median(results: Results) -> Measured:
    """The window in the middle of those for the total, by their instructions a row."""
    windows = [each for name, each in results.figures.items() if name.startswith("total.")]
    return sorted(windows, key=per_row)[len(windows) // 2]


def per_row(each: Measured) -> float:
    """Without marks, as in IIO, what the reader got is what there was."""
    span = each.window.spans.get(BODY)
    return each.window.instructions / (span.count if span else each.said["rows"])


def body(each: Measured) -> Body:
    span = each.window.spans[BODY]
    return Body(span.least, span.most)


def edges(results: Results, window: Window) -> int:
    """Instructions of the handler's function that are executed once a row, but not between the marks."""
    of_modules = [(count, function) for function, count in results.symbols.by_function(window.inside).items()
                  if function.endswith("]")]
    _, handler = max(of_modules)
    return sum(1 for address, count in window.executions.items()
               if count == window.spans[BODY].count and address not in window.inside
               and results.symbols.function(address) == handler)


def raised(each: Measured | None) -> float | None:
    if not each:
        return None
    span = each.window.spans.get(RAISE)
    if not span or span.count != RAISES:
        raise LabError(f"{RAISES} interrupts were raised, {span.count if span else 0} made a row")
    return span.mean


def highest_clean(missed: dict[int, int]) -> int:
    """The last rate before the first one with a loss; 0 if there is none."""
    clean = 0
    for rate in sorted(missed):
        if missed[rate]:
            break
        clean = rate
    return clean


def check_ruler(each: Measured) -> None:
    """Known numbers of instructions must be found; bench/readers/ruler.c has them."""
    spans = each.window.spans
    if spans[LOOP].least != 2001 or spans[ACCESS].least != 20:
        raise LabError(f"the plugin counts wrongly: {spans[LOOP].least} instead of 2001 instructions in a loop, "
                       f"{spans[ACCESS].least} instead of 20 with accesses to a device")
