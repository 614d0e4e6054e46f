# SPDX-License-Identifier: MIT OR Apache-2.0
"""Strobe as dist/install puts it on a machine, with the daemon and its units, to be put into a guest with Debian's root."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from . import BUILD, TREE, LabError
from .kernel import Kernel
from .programs import linked

PROGRAMS = ("strobe", "strobe-serve")
Rows = list[list[float | None]]


def files(kernel: Kernel) -> list[str]:
    """Words for lab/run --file. Modules are not among them: a guest has its own."""
    root = BUILD / "installed"
    environment = os.environ | {"DESTDIR": str(root), "PREFIX": "/usr", "KDIR": str(kernel.headers)}
    done = subprocess.run([TREE / "dist/install"], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"dist/install failed: {done.stderr.strip()}")
    found = [f"{root}/usr:/usr"]
    for program in PROGRAMS:
        path = root / "usr/bin" / program
        found += [word for word in linked(path) if not word.startswith(f"{path}:")]
    return list(dict.fromkeys(found))


def rows(recording: Path) -> Rows:
    """All rows of an .arrows file, as the program reads them: number, trigger, time, status, and the channels."""
    table = recording.with_suffix(".csv")
    words = [TREE / "target/release/strobe", "convert", "--overwrite", recording, table]
    done = subprocess.run(words, capture_output=True, text=True)
    # 3: rows are missing, and that is in the file.
    if done.returncode not in (0, 3):
        raise LabError(f"{recording}: {done.stderr.strip()}")
    lines = (line for line in table.read_text().splitlines() if not line.startswith("#"))
    next(lines)
    words = (line.split(",") for line in lines)
    return [[*map(int, row[:4]), *(float(value) if value else None for value in row[4:])] for row in words]


def account(run: dict, rows: Rows, value: Callable[[int], float] | None = None, is_whole: bool = True) -> list[str]:
    """What is wrong with a run that has stopped, as the daemon says it, and of which these are the rows."""
    numbers = [row[0] for row in rows]
    missing = run["next"] - len(rows)
    other = next((row for row in rows if value and abs(row[4] - value(row[0])) > 1e-6), None)
    faults = []
    for wrong, text in (
        (run["state"] != "stopped", f"it is {run['state']}, not stopped"),
        (run["triggers"] != run["rows"] + run["missed"] + run["skipped"], "triggers are not rows + missed + skipped"),
        (run["rows"] != run["next"], f"{run['rows']} rows were made, {run['next']} are known"),
        (any(b <= a for a, b in zip(numbers, numbers[1:])), "a row is there twice, or in the wrong order"),
        (missing != run["lost"] + run["spool"]["unwritten"], f"{missing} rows are missing, {run['lost']} are said to be lost"),
        (is_whole and missing != 0, f"{missing} rows are missing"),
        (any(b[1] <= a[1] or b[2] < a[2] for a, b in zip(rows, rows[1:])), "triggers or times go back"),
        (other, f"this row has the value of another one: {other}"),
    ):
        faults += [f"{run['name']}: {text}"] if wrong else []
    return faults
