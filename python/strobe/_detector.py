# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recipe as control systems have it: armed and aborted, with every row read as it comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from strobe._account import Account
from strobe._block import Block
from strobe._error import Error
from strobe._machine import Machine
from strobe._run import Run

#: The bit of a row's status that says it was late by a period or more.
LATE = 2
NOTHING = Account(0, 0, 0, 0, 0, 0, None)


@dataclass(frozen=True)
class Look:
    """What there is to say of the run that was armed last."""

    #: What the server calls it; empty before the first one.
    run: str = ""
    #: idle before the first one; ready, running, paused, done, stopped, failed; unknown if the server does not answer.
    state: str = "idle"
    #: Its rows are still being made, or read.
    active: bool = False
    #: `lost` are rows that did not come here.
    account: Account = NOTHING
    #: Rows that came here.
    given: int = 0
    #: How many of these were late by a period or more.
    late: int = 0
    #: Why not all is known.
    error: str = ""
    #: What was read last of each channel, in its unit: a line for each row, a column for each channel.
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def failed(self) -> str:
        """Why it is no good; empty if it is."""
        end = self.account.end or ""
        return self.error or (end if end.startswith("failed") else "") or ("failed" if self.state == "failed" else "")


class Detector:
    """One run at a time of one recipe. Each row is read once: `given` + `lost` of the account are its rows."""

    def __init__(self, machine: Machine, recipe: str | os.PathLike[str], keep: int = 1) -> None:
        self.machine = machine
        self.recipe = recipe
        #: Who else gets the rows, in the thread that reads them.
        self.sink: Callable[[Block], None] | None = None
        self._keep = keep
        self._lock = threading.RLock()
        self._run: Run | None = None
        self._reader: threading.Thread | None = None
        self._look = Look()
        # Whether the recipe is any good, and what its channels are, is known from a run that ends before its first row.
        run = machine.run(recipe)
        run.remove()
        self.info = run.info

    @property
    def active(self) -> bool:
        """There is a run that has not ended, or whose rows are still being read."""
        with self._lock:
            return self._look.active

    def arm(self, rows: int | None = None, begin: bool = True) -> None:
        """Makes a run, of so many rows if that is said; begin=False: its triggers are not counted before `begin`."""
        with self._lock:
            if self.active and self._run:
                raise Error(self._run.name, "it has not ended", "abort it, or wait for its end")
            run = self.machine.run(self.recipe, rows=rows)
            if run.info.channels != self.info.channels:
                run.stop()
                raise Error(f"recipe {os.fspath(self.recipe)}", "its channels have changed since it was read", "load it again")
            self._run, self._reader = run, None
            self._look = Look(run.name, active=True, values=np.empty((0, len(self.info.channels))))
            if begin:
                self.begin()

    def begin(self) -> None:
        """Triggers make rows from now on; after `hold`, again."""
        with self._lock:
            run = self._steered()
            if self._reader:
                run.resume()
                return
            run.start()
            self._reader = threading.Thread(target=self._read, args=(run,), name="strobe rows", daemon=True)
            self._reader.start()

    def hold(self) -> None:
        """Triggers are not counted from now on."""
        with self._lock:
            run = self._steered()
            if self._reader:
                run.pause()

    def trigger(self, count: int) -> None:
        """Triggers of the event `soft`."""
        with self._lock:
            self._steered().trigger(count)

    def abort(self) -> None:
        """Ends the run; rows that were made still come. Nothing if there is none."""
        with self._lock:
            run, begun = self._run, self._reader is not None
            if not run or not self.active:
                return
            try:
                run.stop()
            finally:
                if not begun:
                    self._end(run)

    def wait(self, seconds: float) -> bool:
        """Whether all rows were read within this time."""
        reader = self._reader
        if reader:
            reader.join(seconds)
        return not self.active

    def look(self) -> Look:
        """As it is now. What the server makes is never behind what came here."""
        with self._lock:
            run, before = self._run, self._look
        if not run or not before.active:
            return before
        try:
            state, account = run.state, run.account
        except Error as error:
            # Whether it goes on is for the reader to find out.
            state, account = "unknown", before.account
            before = replace(before, error=str(error))
        with self._lock:
            if run is not self._run or not self._look.active:
                return self._look
            self._look = replace(self._look, state=state, account=replace(account, lost=self._look.account.lost))
            return replace(self._look, error=before.error)

    def rows(self, first: int, count: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Rows of the server's spool, from this one on: row, trigger and time of each; and its channels, in their units."""
        with self._lock:
            run = self._run
        if not run:
            raise Error("rows", "no run has been armed", "arm one")
        heads, values, found = [np.empty((0, 3), np.uint64)], [np.empty((0, len(self.info.channels)))], 0
        # A reader of its own, which has no part in the account.
        for block in Run(run._native).read(first, follow=False) if self._reader else ():
            heads.append(block.words[:, :3])
            values.append(self._columns(block))
            found += len(block)
            # What is missing shows in the numbers of the rows.
            _ = block.lost
            if found >= count:
                break
        return np.concatenate(heads)[:count], np.concatenate(values)[:count]

    def _steered(self) -> Run:
        if not self._run or not self.active:
            raise Error("run", "none is armed", "arm one")
        return self._run

    def _columns(self, block: Block) -> NDArray[np.float64]:
        return np.column_stack([block[channel.name] for channel in self.info.channels])

    def _read(self, run: Run) -> None:
        why = ""
        try:
            for block in run:
                self._take(block)
        except Exception as error:
            # Also one of memory, or of a bug: whoever looks has to be told.
            why = str(error)
        self._end(run, why)

    def _take(self, block: Block) -> None:
        values = self._columns(block)
        late = int(np.count_nonzero(block.words[:, 3] & np.uint64(LATE)))
        # The account has them.
        lost, _ = block.lost, block.missed
        if self.sink:
            self.sink(block)
        with self._lock:
            was = self._look
            self._look = replace(was, given=was.given + len(block), late=was.late + late,
                                 account=replace(was.account, lost=was.account.lost + lost),
                                 values=np.concatenate([was.values, values])[-self._keep:])

    def _end(self, run: Run, why: str = "") -> None:
        try:
            state, account = run.state, run.account
        except Error as error:
            state, account, why = "unknown", self._look.account, why or str(error)
        with self._lock:
            if why:
                account = replace(account, lost=self._look.account.lost)
            self._look = replace(self._look, active=False, state=state, account=account, error=why)
