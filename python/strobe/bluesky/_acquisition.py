# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs that a detector makes, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ophyd_async.core import PathInfo, PathProvider, soft_signal_r_and_setter

from strobe._error import Error
from strobe._machine import Machine
from strobe._rules import equations
from strobe._run import Run
from strobe.bluesky._recording import OnLoss, Recording
from strobe.bluesky._stream import Rows


class Acquisition:
    """One run at a time, each recorded into a file of its own."""

    def __init__(self, machine: Machine, paths: PathProvider, read: Sequence[str], on_loss: OnLoss, words: dict[str, Any]) -> None:
        self.machine = machine
        self.rows, self._set_rows = soft_signal_r_and_setter(int)
        self.event, self._set_event = soft_signal_r_and_setter(str)
        self.engine, self._set_engine = soft_signal_r_and_setter(str)
        self.gate, self._set_gate = soft_signal_r_and_setter(str)
        self.recording: Recording | None = None
        #: The run that comes next, or that is recorded.
        self.run: Run | None = None
        self._paths = paths
        self._read = list(read)
        self._on_loss: OnLoss = on_loss
        self._words = words
        self._detector = ""
        self._stream: Rows | None = None
        #: Event, rows and gate of the run that was prepared last; without rows it goes on until it is stopped.
        self._prepared: tuple[str, int | None, str | None] = ("", None, None)
        #: It makes a row when it is told to.
        self._by_call = False

    async def prepare(self, event: str, rows: int | None, by_call: bool = False, gate: str | None = None) -> None:
        """The next run. One that makes rows when it is told to is also the next one. With a gate, each gate is a row."""
        if by_call and self._by_call and self._going:
            return
        await self.stop()
        self._prepared, self._by_call = (event, rows, gate), by_call
        self.run = await self._made()

    def stream(self, detector: str) -> Rows:
        """Says of the rows from now on what documents say."""
        assert self.run is not None
        self._detector = detector
        self._set_rows(0)
        self._stream = Rows(detector, self.machine.name, self.run.info, self.rows)
        return self._stream

    async def start(self) -> None:
        """Begins the run that was prepared, or another like it; one that makes rows when it is told to is told to."""
        if not self._going:
            stream = self._stream
            assert stream is not None
            run = self.run or await self._made()
            info = self._paths(self._detector)
            recording = Recording(run, str(_file(info)), f"{info.directory_uri}{info.filename}.h5", self._prepared[1],
                                  self._on_loss, lambda rows: self._set_rows(stream.before + rows))
            stream.follow(recording)
            await recording.start()
            self.recording, self.run = recording, None
        if self._by_call and self.recording:
            await asyncio.to_thread(self.recording.run.trigger)

    async def idle(self) -> None:
        """Waits for the end of the run, which comes now if nobody has said after how many rows."""
        if self.recording and not self._by_call:
            await (self.recording.end() if self.recording.wanted else self.recording.stop())

    async def stop(self) -> None:
        """Nothing goes on any more."""
        if self.run:
            await asyncio.to_thread(self.run.stop)
            self.run = None
        if self.recording:
            await self.recording.stop()

    async def pause(self) -> bool:
        """Whether there was anything to pause: a run that makes rows when it is told to waits anyway."""
        return self.recording is not None and not self._by_call and await self.recording.pause()

    async def resume(self) -> None:
        if self.recording:
            await self.recording.resume()

    def give_up(self) -> None:
        if self._stream:
            self._stream.give_up()

    @property
    def _going(self) -> bool:
        return self.recording is not None and not self.recording.over.done()

    async def _made(self) -> Run:
        event, rows, gate = self._prepared
        words = _gated(self._words, gate) if gate else self._words
        run = await asyncio.to_thread(self.machine.run, event=event, read=self._read, rows=rows, **words)
        self._set_event(run.info.event)
        self._set_gate(gate or "")
        self._set_engine(run.info.engine)
        return run


def _gated(words: dict[str, Any], gate: str) -> dict[str, Any]:
    """A row program with a row for each time that the gate was open, made when it is closed; `gate` counts its triggers."""
    for name in ("keep", "every"):
        if words.get(name):
            raise Error(name, "the gate decides which rows are kept", f"give no {name} to the detector, or use EXTERNAL_EDGE")
    inside = f"count({gate} since emit)"
    derive = equations("derive", words.get("derive") or ())
    return words | {"derive": [*derive, f"gate = {inside}"], "keep": [f"!({gate}) && {inside} > 0"]}


def _file(info: PathInfo) -> Path:
    """Where the file goes; folders are made as far as the path provider says."""
    folder = Path(info.directory_path)
    names = folder.parts[1:]
    depth = info.create_dir_depth
    there = folder if depth == 0 else Path(folder.anchor, *names[:depth])
    if not there.is_dir():
        raise Error(f"folder {there}", "the folder does not exist", "create it, or set create_dir_depth in the path provider")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{info.filename}.h5"
