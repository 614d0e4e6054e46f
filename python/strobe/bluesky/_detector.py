# SPDX-License-Identifier: MIT OR Apache-2.0
"""The detector as ophyd-async has detectors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from bluesky.utils import NoReplayAllowed
from ophyd_async.core import (AsyncStatus, DetectorAcquireLogic, DetectorDataLogic, DetectorTrigger, DetectorTriggerLogic,
                              PathProvider, StandardDetector, StreamableDataProvider, TriggerInfo, WatchableAsyncStatus,
                              WatcherUpdate)

from strobe import _machine
from strobe._account import Summary
from strobe._error import Error
from strobe._machine import Machine
from strobe._run import Run
from strobe.bluesky._acquisition import Acquisition
from strobe.bluesky._recording import OnLoss
from strobe.bluesky._stream import data_keys

Updates = AsyncIterator[WatcherUpdate[int]]


class Trigger(DetectorTriggerLogic):
    """Which event makes the rows."""

    def __init__(self, acquisition: Acquisition, internal: str | None, edge: str | None, gate: str | None) -> None:
        self._acquisition = acquisition
        self._internal = internal
        self._edge = edge
        self._gate = gate

    async def prepare_internal(self, num: int, livetime: float, deadtime: float) -> None:
        if num == 1:
            await self._acquisition.prepare("soft", None, by_call=True)
            return
        event = f"timer:{deadtime * 1e9:.0f}ns" if deadtime else self._internal
        if event is None:
            raise Error("trigger INTERNAL", "the rate of the rows is not given",
                        'give internal="timer:1kHz" to the detector, or deadtime=0.001 in the trigger info')
        await self._acquisition.prepare(event, num or None)

    async def prepare_edge(self, num: int, livetime: float) -> None:
        if self._edge is None:
            raise Error("trigger EXTERNAL_EDGE", "the event of the rows is not given",
                        'give edge="DEVICE.EVENT" to the detector; strobe.catalogue() lists the events')
        await self._acquisition.prepare(self._edge, num or None)

    async def prepare_level(self, num: int) -> None:
        if self._gate is None:
            raise Error("trigger EXTERNAL_LEVEL", "the gate is not given",
                        'give gate="CONDITION" to the detector, as in gate="io.in & 1", and read its channel; or use EXTERNAL_EDGE')
        if self._internal is None:
            raise Error("trigger EXTERNAL_LEVEL", "how often the gate is looked at is not given",
                        'give internal="timer:10kHz" to the detector')
        await self._acquisition.prepare(self._internal, num or None, gate=self._gate)

    async def default_trigger_info(self) -> TriggerInfo:
        return TriggerInfo()


class Acquire(DetectorAcquireLogic):
    """When rows are made."""

    def __init__(self, acquisition: Acquisition) -> None:
        self._acquisition = acquisition

    async def start_acquiring(self) -> None:
        await self._acquisition.start()

    async def wait_for_idle(self) -> None:
        await self._acquisition.idle()

    async def ensure_stopped(self) -> None:
        await self._acquisition.stop()


class Data(DetectorDataLogic):
    """Where the rows go."""

    def __init__(self, acquisition: Acquisition, read: Sequence[str]) -> None:
        self._acquisition = acquisition
        self._read = list(dict.fromkeys(read))

    async def prepare_unbounded(self, datakey_name: str) -> StreamableDataProvider:
        return self._acquisition.stream(datakey_name)

    def get_hinted_fields(self, datakey_name: str) -> Sequence[str]:
        return list(data_keys(datakey_name, self._read).values())


class StrobeDetector(StandardDetector):
    """Rows of strobe as a detector of step scans and fly scans. The data are in HDF5 files of strobe's own.

    `internal` is the event of a free run, such as timer:1kHz; a trigger info with a deadtime comes before it. `edge` is the
    event of a device, for EXTERNAL_EDGE: one row for each of its triggers. `gate` is a condition of a row program, for
    EXTERNAL_LEVEL: each time that it was true is one row, made by the first trigger of `internal` after that; the column `gate`
    has the number of triggers in which it was true. A step scan needs none of these. `machine` is `strobe.connect(url)`, or this
    machine; more words are those of `strobe.run`. on_loss="raise": a plan that triggers were missed in, or rows lost, fails;
    on_loss="warn": it goes on, and `strobe.Lost` is warned of.
    """

    def __init__(self, path_provider: PathProvider, read: Sequence[str], *, internal: str | None = None, edge: str | None = None,
                 gate: str | None = None, machine: Machine | None = None, on_loss: OnLoss = "raise", name: str = "", **words: Any) -> None:
        if on_loss not in ("raise", "warn"):
            raise Error(f"detector {name}", f"on_loss is {on_loss!r}", 'use "raise" or "warn"')
        if isinstance(read, str) or not read:
            raise Error(f"detector {name}", f"read={read!r} names no channels", 'name some, as in read=["sim.counter", "sim.sine"]')
        data_keys(name, read)
        self._acquisition = Acquisition(machine or _machine._here, path_provider, read, on_loss, words)
        self.rows = self._acquisition.rows
        self.event = self._acquisition.event
        self.engine = self._acquisition.engine
        self.gate_condition = self._acquisition.gate
        self._asked = TriggerInfo()
        self.add_detector_logics(Trigger(self._acquisition, internal, edge, gate), Acquire(self._acquisition),
                                 Data(self._acquisition, read))
        # ophyd-async does not say of what type these signals are.
        self.add_config_signals(self.event, self.engine, self.gate_condition)  # pyright: ignore[reportUnknownMemberType]
        super().__init__(name=name)

    @property
    def run(self) -> Run | None:
        """The run that was prepared, or that was recorded last."""
        recording = self._acquisition.recording
        return self._acquisition.run or (recording.run if recording else None)

    @property
    def summary(self) -> Summary | None:
        """The account of what was recorded last, when it has ended."""
        return self._acquisition.recording.summary if self._acquisition.recording else None

    @AsyncStatus.wrap
    async def prepare(self, value: TriggerInfo) -> None:
        refuse(self.name, value)
        self._asked = value
        await super().prepare(value)

    @AsyncStatus.wrap
    async def kickoff(self) -> None:
        events = await self.events_to_kickoff.get_value()
        if self._asked.trigger is DetectorTrigger.INTERNAL and events != self._asked.number_of_events:
            raise Error(f"detector {self.name}", f"{events} of {self._asked.number_of_events} events would be kicked off, and "
                        "a free run cannot hold back the others", "prepare as many as are kicked off")
        await super().kickoff()

    @WatchableAsyncStatus.wrap
    async def trigger(self) -> Updates:
        self._acquisition.give_up()
        async for update in self._while_recorded(StandardDetector.trigger):
            yield update

    @WatchableAsyncStatus.wrap
    async def complete(self) -> Updates:
        async for update in self._while_recorded(StandardDetector.complete):
            yield update

    async def pause(self) -> None:
        """Triggers are not counted until `resume`. What a free or armed run has begun cannot be replayed: the plan goes on."""
        if await self._acquisition.pause():
            raise NoReplayAllowed

    async def resume(self) -> None:
        await self._acquisition.resume()

    async def _while_recorded(self, wait: Any) -> Updates:
        """Waits as ophyd-async does, but no longer than rows can come, and says why none comes."""
        updates: Updates = wait.__wrapped__(self)
        # The recording may begin in here.
        update = await _next(updates)
        while update is not None:
            yield update
            recording = self._acquisition.recording
            assert recording is not None
            step = asyncio.ensure_future(_next(updates))
            try:
                await asyncio.wait({step, recording.over}, return_when=asyncio.FIRST_COMPLETED)
                if recording.over.done():
                    await recording.end()
                    last = await self.rows.get_value() // self._asked.collections_per_event
                    if recording.short and update.current == last:
                        return
                update = await step
            except TimeoutError:
                raise Error(recording.run.name, f"no row has come for {self._asked.exposure_timeout:g} s: {recording.rows} are in "
                            f"{recording.path}; {recording.run.account}",
                            "check that the event comes; exposure_timeout of the trigger info sets how long to wait") from None
            finally:
                step.cancel()


async def _next(updates: Updates) -> WatcherUpdate[int] | None:
    return await anext(updates, None)


def refuse(detector: str, asked: TriggerInfo) -> None:
    """What strobe does not do."""
    if asked.livetime:
        raise Error(f"detector {detector}", f"a row is read at one instant, so it has no livetime of {asked.livetime:g} s",
                    "deadtime is the time from row to row of a free run")
    if asked.exposures_per_collection != 1:
        raise Error(f"detector {detector}", f"it does not make one value of {asked.exposures_per_collection} rows",
                    "collections_per_event puts all of them into an event")
