# SPDX-License-Identifier: MIT OR Apache-2.0
"""How far a recording is: a line in a terminal, a bar in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any, TextIO

Progress = Callable[[int, int, int], None]


def shown(limit: int | None) -> tuple[Progress | None, Callable[[], None]]:
    """What shows it to whoever sees it, and what ends that; `limit`: the rows that there will be, if that is known."""
    display = _notebook()
    if display:
        bar = _Bar(limit, display)
        return bar, bar.end
    if sys.stderr is not None and sys.stderr.isatty():
        line = _Line(limit, sys.stderr)
        return line, line.end
    return None, lambda: None


def words(limit: int | None, rows: int, missed: int, lost: int, seconds: float) -> str:
    """So many rows, what is missing, and how long it will take."""
    said = f"{rows}{f' of {limit}' if limit else ''} rows, {missed} missed, {lost} lost, {seconds:.0f} s"
    return said + (f", {seconds / rows * (limit - rows):.0f} s left" if limit and 0 < rows < limit else "")


class _Line:
    def __init__(self, limit: int | None, to: TextIO) -> None:
        self._limit, self._to, self._begun, self._width = limit, to, time.monotonic(), 0

    def __call__(self, rows: int, missed: int, lost: int) -> None:
        self._write(words(self._limit, rows, missed, lost, time.monotonic() - self._begun))

    def end(self) -> None:
        """The line is free again: who called has the summary."""
        self._write("")
        self._to.write("\r")

    def _write(self, text: str) -> None:
        self._to.write(f"\r{text.ljust(self._width)}")
        self._to.flush()
        self._width = len(text)


class _Bar:
    def __init__(self, limit: int | None, display: Callable[..., Any]) -> None:
        self._limit, self._begun = limit, time.monotonic()
        self._handle = display({"text/plain": "", "text/html": ""}, raw=True, display_id=True)

    def __call__(self, rows: int, missed: int, lost: int) -> None:
        text = words(self._limit, rows, missed, lost, time.monotonic() - self._begun)
        bar = f'<progress max="{self._limit}" value="{rows}"></progress> ' if self._limit else ""
        self._handle.update({"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}, raw=True)

    def end(self) -> None:
        self._handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _notebook() -> Callable[..., Any] | None:
    """What shows things in the notebook that this is, if it is one."""
    shell = sys.modules.get("IPython")
    if shell is None or getattr(shell.get_ipython(), "kernel", None) is None:
        return None
    found: Callable[..., Any] = import_module("IPython.display").display
    return found
