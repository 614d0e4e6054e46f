# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run that is recorded into an HDF5 file, while asyncio goes on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import warnings
from collections.abc import Callable
from typing import Any, Literal

import h5py

from strobe._account import Summary
from strobe._block import Lost
from strobe._error import Error
from strobe._run import Run

#: The recorder flushes the file five times a second.
LOOK_S = 0.1
START_S = 0.01
OnLoss = Literal["raise", "warn"]


class GrowingFile:
    """The file of a recording, while it is written and after."""

    def __init__(self, path: str) -> None:
        # The writer has it locked until it can be read.
        self._file: Any = h5py.File(path, "r", swmr=True, locking=False)
        data = self._file["entry/data"]
        #: The dataset of each column and its chunks, by the name of the column.
        self.columns: dict[str, tuple[str, tuple[int, ...]]] = {
            dataset.attrs.get("column", name): (dataset.name, dataset.chunks) for name, dataset in data.items()}

    def look(self) -> tuple[int, bool]:
        """Rows that all columns have, and whether any is missing before the last one."""
        row = self._file["entry/data/row"]
        row.refresh()
        return len(row), any(self._account(name) for name in ("missed", "lost"))

    def _account(self, name: str) -> int:
        counter = self._file[f"entry/run/{name}"]
        counter.refresh()
        return int(counter[()])

    def close(self) -> None:
        self._file.close()


class Recording:
    """A thread of its own records the run; a task looks how many rows are in the file."""

    def __init__(self, run: Run, path: str, uri: str, wanted: int | None, on_loss: OnLoss, note: Callable[[int], None]) -> None:
        self.run = run
        self.path = path
        self.uri = uri
        #: Rows after which the run ends; None: when it is stopped.
        self.wanted = wanted
        #: Rows in the file.
        self.rows = 0
        #: The dataset of each column and its chunks, once the file has rows.
        self.columns: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.summary: Summary | None = None
        self.paused = False
        self._on_loss = on_loss
        self._note = note
        self._stopped = False
        self._resumed = False
        self._told = False

    async def start(self) -> None:
        """Returns when triggers make rows, or raises why they do not."""
        done: concurrent.futures.Future[Summary] = concurrent.futures.Future()
        # Not one of the executor's: a program that ends does not wait for the end of a run.
        threading.Thread(target=self._record, args=(done,), name=f"strobe records {self.path}", daemon=True).start()
        self._done = asyncio.wrap_future(done)
        while not self._done.done() and await asyncio.to_thread(lambda: self.run.state) == "ready":
            await asyncio.wait({self._done}, timeout=START_S)
        if self._done.done():
            # Whoever could not begin says so here; a short run may be over.
            self._done.result()
        #: Done when the run has ended and the file is whole.
        self.over = asyncio.create_task(self._follow())

    @property
    def short(self) -> bool:
        """It is over, and not all rows that were wanted are in the file."""
        return self.over.done() and self.wanted is not None and self.rows < self.wanted

    async def pause(self) -> bool:
        """Whether there was anything to pause."""
        if await asyncio.to_thread(lambda: self.run.state) != "running":
            return False
        await asyncio.to_thread(self.run.pause)
        self.paused = True
        return True

    async def resume(self) -> None:
        if self.paused:
            await asyncio.to_thread(self.run.resume)
            self.paused = False
            self._resumed = True

    async def stop(self) -> None:
        """Ends the run early, if need be, and waits for the end."""
        if not self.over.done():
            self._stopped = True
            await asyncio.to_thread(self.run.stop)
        await self.end()

    async def end(self) -> None:
        """Waits for the end, and raises what was wrong with it, to the first who asks."""
        await asyncio.wait({self.over})
        error = self.over.exception()
        if error and not self._told:
            self._told = True
            raise error

    def _record(self, done: concurrent.futures.Future[Summary]) -> None:
        try:
            done.set_result(self.run.record(self.path.replace("{", "{{").replace("}", "}}")))
        except BaseException as error:
            done.set_exception(error)

    async def _follow(self) -> None:
        file: GrowingFile | None = None
        try:
            while not self._done.done():
                await asyncio.wait({self._done}, timeout=LOOK_S)
                file = file or await asyncio.to_thread(_opened, self.path)
                if file:
                    await self._look(file)
            self.summary = self._done.result()
            file = file or GrowingFile(self.path)
            await self._look(file)
        finally:
            if file:
                await asyncio.to_thread(file.close)
        self._judge(self.summary)

    async def _look(self, file: GrowingFile) -> None:
        rows, missing = await asyncio.to_thread(file.look)
        self.columns = file.columns
        # Who waits for rows with a time-out is told again during a pause.
        if rows != self.rows or self.paused:
            self.rows = rows
            self._note(rows)
        if missing and self._on_loss == "raise" and not self._done.done():
            await asyncio.to_thread(self.run.stop)

    def _judge(self, summary: Summary) -> None:
        """Raises, or warns, if not all is as it was asked for."""
        (sink,) = summary.sinks
        if sink["error"]:
            raise Error(self.path, str(sink["error"]), f"{sink['rows']} rows are in it")
        if summary.missed or sink["lost"]:
            what = f"{summary.missed} triggers missed and {sink['lost']} rows lost: {summary}"
            if self._on_loss == "raise":
                raise Error(self.run.name, what, 'the file has the rest; take that with on_loss="warn", or trigger more slowly')
            warnings.warn(f"{self.run.name}: {what}", Lost, stacklevel=2)
        if self.wanted is None or summary.rows >= self.wanted:
            return
        if not self._stopped:
            raise Error(self.run.name, f"it has ended with {summary.rows} of {self.wanted} rows: {summary.end}",
                        "the file has them; another client may have stopped the run")
        if self._resumed:
            # The RunEngine ends the wait for a group that it is paused in, and takes it for done.
            raise Error(self.run.name, f"after a pause its plan has ended with {summary.rows} of {self.wanted} rows",
                        "the file has them; let the plan check the status of `complete` instead of waiting for its group")


def _opened(path: str) -> GrowingFile | None:
    try:
        return GrowingFile(path)
    except OSError:
        # It cannot be read yet.
        return None
