# SPDX-License-Identifier: MIT OR Apache-2.0
"""How accounts, summaries and runs look in a notebook: HTML and SVG, nothing that is loaded, nothing that runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from strobe._account import Account
from strobe._block import Block
from strobe._error import Error
from strobe._picture import histogram, traces
from strobe._points import Points

if TYPE_CHECKING:
    from strobe._account import Summary
    from strobe._run import Run

#: Rows that a view looks at, at most: it comes at once, however long the run is.
MOST = 100_000
#: Points across a picture.
ACROSS = 280
LOSS = "#d62728"
CELL = "padding:2px 10px;text-align:right;white-space:nowrap"


def of_account(account: Account) -> str:
    """triggers = rows + missed + skipped, and what was lost; what is missing stands out, in words too."""
    return _figures(account) + (_missing(account) or ("<div>Nothing is missing.</div>" if account.whole else ""))


def of_summary(summary: Summary) -> str:
    """The account of a recording, its files, how its rows came, and pictures of them, if a file has them still."""
    files = "".join(_file(sink) for sink in summary.sinks)
    parts = [f"<b>recording</b> of {escape(str(summary.data['event']))}", of_account(summary)]
    if files:
        parts.append(f'<table style="border-collapse:collapse;margin:2px 0"><tbody>{files}</tbody></table>')
    return _framed([*parts, *_pictures_of_files(summary)])


def of_run(run: Run) -> str:
    """What a run is, its account, and pictures of the rows that are there. It starts nothing and takes rows from nobody."""
    head = f"<b>{escape(run.name)}</b>: {escape(run.info.event)}, engine {escape(run.info.engine)}"
    try:
        state = run.state
        seen = _look(run)
        account = run._account or seen.account or (run.account if state != "recorded" else None)
    except Error as error:
        return _framed([head, _loud(str(error))])
    parts = [f"{head}, {escape(state)}"]
    if seen.torn:
        parts.append(_loud("It breaks off in the middle of a row, so what is missing is not known."))
    elif account is not None:
        # Rows that nobody has read, and nobody can, are no row of anybody's account.
        unread = seen.overwritten and not run._account
        parts.append(_figures(account) + _missing(account) if unread else of_account(account))
    else:
        parts.append(f"The account of a recording is known only after all rows are read; these are its first {seen.rows} rows.")
    if seen.overwritten:
        parts.append(f"The rows before row {seen.overwritten} were overwritten.")
    return _framed([*parts, *_pictures(run, seen)])


@dataclass
class _Seen:
    """What was read for a view."""

    blocks: list[Block] = field(default_factory=list)
    account: Account | None = None
    torn: bool = False
    #: So many rows are not there any more.
    overwritten: int = 0

    @property
    def rows(self) -> int:
        return sum(len(block) for block in self.blocks)


def _look(run: Run) -> _Seen:
    """The newest rows of a run, the first ones of a recording: those that are there. It waits for none."""
    seen = _Seen()
    look = run._native.look()
    made: int | None = json.loads(look)["rows"] if look else None
    if made == 0:
        return seen
    begin = max(0, (made or 0) - MOST)
    reader = run._native.reader(str(begin or "oldest"), False, False)

    def there() -> Iterator[Block]:
        while (native := reader.next()) is not None:
            block = Block(native, run.info)
            # A view shows what is missing.
            block._asked = True
            yield block

    for block in there():
        seen.blocks.append(block)
        if seen.rows >= MOST:
            break
    else:
        text, seen.torn = reader.end()
        seen.account = Account.of(text) if text else None
    if made and seen.rows and seen.blocks[0].first > begin:
        seen.overwritten = seen.blocks[0].first
    return seen


def _pictures(run: Run, seen: _Seen) -> list[str]:
    blocks = [block for block in seen.blocks if len(block)]
    if not blocks:
        return ["No rows yet: " + escape(", ".join(channel.name for channel in run.info.channels))] if not seen.torn else []
    begin, end = int(blocks[0].time[0]), max(int(block.time.max()) for block in blocks)
    points = Points([channel.name for channel in run.info.channels], max(1, -(-(end - begin + 1) // ACROSS)), ACROSS + 1)
    for block in seen.blocks:
        points.add(block)
    time = np.concatenate([block.time for block in blocks]).astype(np.int64)
    triggers = np.concatenate([block.triggers for block in blocks]).astype(np.int64)
    between = np.diff(time)[np.diff(triggers) == 1]
    title = f"rows {blocks[0].first} to {blocks[-1].rows[-1]}, {(end - begin) / 1e9:.4g} s"
    return [traces(points, [channel.unit for channel in run.info.channels], title), histogram(between)]


def _pictures_of_files(summary: Summary) -> list[str]:
    """Of the first file with the rows of this recording: what is called so may be another one by now."""
    from strobe._run import open as opened

    begin = summary.data["start_time_ns"]
    for sink in summary.sinks:
        path = str(sink["path"])
        if not path.endswith((".arrows", ".h5")) or not os.path.exists(path):
            continue
        try:
            run = opened(path)
            seen = _look(run)
        except Error:
            continue
        first = next((int(block.time[0]) for block in seen.blocks if len(block)), None)
        if first is not None and begin <= first <= begin + summary.data["elapsed_s"] * 1e9:
            return _pictures(run, seen)
    return []


def _figures(account: Account) -> str:
    figures = {"triggers": account.triggers, "= rows": account.rows, "+ missed": account.missed, "+ skipped": account.skipped,
               "lost": account.lost, "with errors": account.errors}
    bad = {"+ missed", "lost", "with errors"}
    heads = "".join(f'<th style="{CELL}">{name}</th>' for name in [*figures, "end"])
    cells = "".join(_cell(str(count), loud=name in bad and count > 0) for name, count in figures.items())
    end = account.end or "not at its end"
    return (f'<table style="border-collapse:collapse;margin:2px 0"><thead><tr>{heads}</tr></thead>'
            f'<tbody><tr>{cells}{_cell(end, loud=end.startswith("failed"))}</tr></tbody></table>')


def _missing(account: Account) -> str:
    causes = ", ".join(f"{cause} {count}" for cause, count in account.missed_by.items() if count)
    said = [f"{account.missed} triggers made no row" + (f" ({causes})" if causes else "")] if account.missed else []
    said += [f"{account.lost} rows were overwritten before they were read"] if account.lost else []
    said += [f"a channel or an output failed in {account.errors} rows"] if account.errors else []
    return _loud("Missing: " + "; ".join(said) + ".") if said else ""


def _file(sink: dict[str, Any]) -> str:
    path = f'<td style="{CELL};text-align:left">{escape(str(sink["path"]))}</td>'
    counts = "".join(_cell(f"{sink[what]} {what}", loud=what == "lost" and sink[what] > 0) for what in ("rows", "bytes", "lost"))
    return f'<tr>{path}{counts}<td style="color:{LOSS}">{escape(str(sink["error"] or ""))}</td></tr>'


def _cell(text: str, loud: bool = False) -> str:
    more = f";background:{LOSS};color:white;font-weight:bold" if loud else ""
    return f'<td style="{CELL}{more}">{escape(text)}</td>'


def _loud(text: str) -> str:
    return f'<div style="color:{LOSS};font-weight:bold">{escape(text)}</div>'


def _framed(parts: list[str]) -> str:
    return '<div class="strobe">' + "".join(f"<div>{part}</div>" for part in parts if part) + "</div>"
