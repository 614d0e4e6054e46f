# SPDX-License-Identifier: MIT OR Apache-2.0
"""One guest, booted with the plugin: does a list of commands and answers what was counted in each."""

import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from labkit import LabError

from . import BUILD, TREE, build, profile

TIMEOUT = 300  # seconds; a guest takes a tenth of it on an idle machine


@dataclass
class Job:
    """What to do in a guest."""

    name: str
    kernel: str
    modules: list[Path | str]
    programs: list[str]
    commands: list[tuple[str, str]]  # a figure's name and what makes exactly one window; no name: no window
    files: list[str] = field(default_factory=list)


@dataclass
class Measured:
    """What a command has printed ("rows 4 missed 0 lost 0"), and its window."""

    said: dict[str, int]
    window: profile.Window


@dataclass
class Results:
    figures: dict[str, Measured]
    symbols: profile.Symbols


def run(job: Job) -> Results:
    place = BUILD / "results"
    place.mkdir(parents=True, exist_ok=True)
    counts, symbols, script = (place / f"{job.name}.{job.kernel}.{part}" for part in ("counts", "symbols", "sh"))
    counts.unlink(missing_ok=True)
    script.write_text(commands(job))
    words = [TREE / "lab/run", "--kernel", job.kernel, "--icount", "--no-strobe", "--device", "edu",
             "--timeout", str(TIMEOUT), "--plugin", f"{build.PLUGIN},out={counts}", "--symbols", symbols,
             "--file", f"{script}:/root/commands",
             # A program raises the interrupts of a card that has a driver.
             "--append", "iomem=relaxed"]
    for module in job.modules:
        words += ["--module", module]
    for file in [*(str(build.PROGRAMS / name) for name in job.programs), *job.files]:
        words += ["--file", file]
    done = subprocess.run([*map(str, words), "--", "sh", "commands"], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"the {job.name} guest with the {job.kernel} kernel failed with status {done.returncode}:\n"
                       f"{done.stdout}{done.stderr}".rstrip())
    with open(counts) as lines:
        windows = profile.read(lines)
    return Results(match(job, done.stdout, windows), profile.Symbols.read(symbols))


def commands(job: Job) -> str:
    lines = ["set -e"]
    for name, command in job.commands:
        if name:
            lines += [f"said=$(./{command})", f'echo {shlex.quote(name)} "$said"']
        else:
            lines.append(command)
    return "\n".join(lines) + "\n"


def match(job: Job, printed: str, windows: list[profile.Window]) -> dict[str, Measured]:
    """Brings together the figures' names, what was printed, and the windows: all in the order of the commands."""
    names = [name for name, _ in job.commands if name]
    lines = [line.split() for line in printed.splitlines()]
    if [line[0] for line in lines] != names or len(windows) != len(names):
        raise LabError(f"the {job.name} guest has printed {len(lines)} lines and made {len(windows)} windows, "
                       f"but had {len(names)} commands:\n{printed}")
    return {name: Measured({key: int(value) for key, value in zip(line[1::2], line[2::2])}, window)
            for name, line, window in zip(names, lines, windows)}
