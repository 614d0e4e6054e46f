# SPDX-License-Identifier: MIT OR Apache-2.0
# Sardana brings no types.
# pyright: standard, reportMissingImports=false
"""A controller of Sardana's counters and timers: each channel of a recipe is one; see docs/how-to/tango.md."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tango
from numpy.typing import NDArray
from sardana import State
from sardana.pool import AcqSynch
from sardana.pool.controller import CounterTimerController, DefaultValue, Description, Type

#: Sardana says when to begin and to end; else each trigger is one of its own.
BY_SOFTWARE = (AcqSynch.SoftwareTrigger, AcqSynch.SoftwareGate, AcqSynch.SoftwareStart)
#: Numbers that one command of the device answers at most.
MOST = 1_000_000
#: What a count of many rows is.
REDUCTIONS = {"mean": lambda rows: float(np.nanmean(rows)), "last": lambda rows: float(rows[-1]),
              "difference": lambda rows: float(rows[-1] - rows[0])}


class StrobeCounterTimerController(CounterTimerController):
    """Axis n is the n-th channel of the device. By software, a count is a run as long as its integration time, and what is left
    of its rows is `Reduction`; by hardware, it is a run of as many rows as there are repetitions, and each row is one value.
    A count with rows that are missing has the state Alarm, and says how many."""

    MaxDevice = 1024
    gender = "Counter/Timer"
    organization = "strobe"
    ctrl_properties = {"Device": {Type: str, Description: "the strobe-tango device, such as test/strobe/1"}}
    axis_attributes = {"Reduction": {Type: str, DefaultValue: "mean",
                                     Description: f"how a software count reduces its rows: {', '.join(REDUCTIONS)}"}}
    default_latency_time = 0.0

    def __init__(self, inst: str, props: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(inst, props, *args, **kwargs)
        self._device = tango.DeviceProxy(self.Device)
        self._synchronization = AcqSynch.SoftwareTrigger
        self._reductions: dict[int, str] = {}
        self._seconds, self._repetitions = 0.0, 1
        #: When the count by software that goes on is to end.
        self._until: float | None = None
        self._width = 0
        self._rows: NDArray[np.float64] = np.empty((0, 0))
        #: How many rows of each axis were given, by hardware.
        self._given: dict[int, int] = {}
        self._state: tuple[Any, str] = (State.On, "no count yet")

    def AddDevice(self, axis: int) -> None:
        channels = self._device.Channels or []
        if axis > len(channels):
            raise ValueError(f"axis {axis}: the recipe of {self.Device} has {len(channels)} channels; load another one there")
        self._reductions[axis] = "mean"

    def DeleteDevice(self, axis: int) -> None:
        del self._reductions[axis]

    def getReduction(self, axis: int) -> str:
        return self._reductions[axis]

    def setReduction(self, axis: int, name: str) -> None:
        if name not in REDUCTIONS:
            raise ValueError(f"Reduction is {name!r}: use one of {', '.join(REDUCTIONS)}")
        self._reductions[axis] = name

    def GetCtrlPar(self, name: str) -> Any:
        return {"synchronization": self._synchronization, "latency_time": self.default_latency_time}.get(name)

    def SetCtrlPar(self, name: str, value: Any) -> None:
        if name == "synchronization":
            self._synchronization = value

    def LoadOne(self, axis: int, value: float, repetitions: int, latency_time: float) -> None:
        if value <= 0:
            raise ValueError("counting to a monitor is not possible: use an integration time")
        self._seconds, self._repetitions = value, repetitions

    def StartOne(self, axis: int, value: float) -> None:
        self._given[axis] = 0

    def StartAll(self) -> None:
        self._width = 3 + len(self._device.Channels)
        self._rows = np.empty((0, self._width))
        by_software = self._synchronization in BY_SOFTWARE
        self._device.Limit = 0 if by_software else self._repetitions
        self._device.Arm()
        self._until = time.monotonic() + self._seconds if by_software else None
        self._state = (State.Moving, "counting")

    def StateAll(self) -> None:
        if self._state[0] != State.Moving:
            return
        if self._until is not None and time.monotonic() >= self._until:
            # It is back when all rows have come.
            self._device.Abort()
            self._until = None
        if self._until is None:
            self._look()

    def StateOne(self, axis: int) -> tuple[Any, str]:
        return self._state

    def _look(self) -> None:
        """What became of the run, if it is over."""
        state = self._device.state()
        if state in (tango.DevState.RUNNING, tango.DevState.ON):
            return
        said = self._device.Status()
        if state == tango.DevState.FAULT:
            self._state = (State.Fault, said)
        elif self._device.Missed or self._device.Lost or self._device.Errors:
            self._state = (State.Alarm, said)
        else:
            self._state = (State.On, said)

    def ReadAll(self) -> None:
        """Rows that came since the last time."""
        if not self._width:
            return
        given = self._device.Given
        while len(self._rows) < given:
            first = int(self._rows[-1, 0]) + 1 if len(self._rows) else 0
            part = self._device.ReadRows([first, min(given - len(self._rows), MOST // self._width)])
            if not len(part):
                return
            self._rows = np.concatenate([self._rows, np.reshape(part, (-1, self._width))])

    def ReadOne(self, axis: int) -> float | list[float]:
        values = self._rows[:, 2 + axis] if self._width else np.empty(0)
        if self._synchronization in BY_SOFTWARE:
            return REDUCTIONS[self._reductions[axis]](values) if len(values) else float("nan")
        new = values[self._given.get(axis, 0):]
        self._given[axis] = len(values)
        return [float(value) for value in new]

    def AbortOne(self, axis: int) -> None:
        if self._state[0] == State.Moving:
            self._device.Abort()
            self._until = None
            self._look()
