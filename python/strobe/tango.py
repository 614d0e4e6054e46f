# SPDX-License-Identifier: MIT OR Apache-2.0
# PyTango brings no types.
# pyright: standard, reportMissingImports=false
"""`strobe-tango`: a Tango device for the runs of a recipe, as a client of `strobe serve`; see docs/how-to/tango.md."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strobe._detector import Detector, Look
from strobe._error import Error
from strobe._machine import connect
from strobe._programs import missing

try:
    from tango import AttrQuality, DevFailed, DevState, EnsureOmniThread, Except
    from tango.server import Device, attribute, command, device_property, run
except ModuleNotFoundError as error:
    raise missing("tango", error) from None

#: How often it is looked what is new, in s.
PERIOD = 0.1
#: Numbers that one command may answer.
MOST = 1_000_000
#: The longest spectrum.
LONGEST = 65536
#: How long who aborts waits for rows that were made already, in s.
DRAIN = 30.0
#: How long is waited for the thread that tells what is new, in s. Whoever calls Init waits for its answer no longer than 3 s.
STOP = 1.0
#: How long is waited for each thread when the program ends, in s.
END = 5.0
FIGURES = ("Triggers", "Rows", "Missed", "Skipped", "Lost", "Errors", "Given", "Late")
#: What is not as it should be if it is not 0.
ALARMING = ("Missed", "Lost", "Errors", "Late")
TEXTS = ("RunId", "RunState", "RunEnd")
STATES = {"ready": DevState.ON, "paused": DevState.ON}


def _figure(name: str) -> Any:
    return attribute(name=name, dtype="DevLong64", fget=lambda device: device.figure(name))


def _text(name: str) -> Any:
    return attribute(name=name, dtype=str, fget=lambda device: device.text(name))


class Strobe(Device):
    """A detector. OFF: there is no recipe; STANDBY: nothing is armed; ON: armed, and the gate is closed; RUNNING; FAULT."""

    Url = device_property(dtype=str, doc="URL of strobe serve", default_value="http://127.0.0.1:8000")
    Recipe = device_property(dtype=str, doc="the recipe that is loaded when the device begins", default_value="")
    Token = device_property(dtype=str, doc="a file with the server's token", default_value="")
    Keep = device_property(dtype=int, doc="rows in the spectrum of a channel", default_value=1000)

    Enable = attribute(dtype=bool, fget="enabled", fset="enable",
                       doc="the gate: while it is closed, an armed run does not begin, or pauses")
    Limit = attribute(dtype="DevLong64", min_value=0, fget="limit", fset="set_limit",
                      doc="rows of the next run; 0: as the recipe says")
    Triggers, Rows, Missed, Skipped, Lost, Errors, Given, Late = (_figure(name) for name in FIGURES)
    RunId, RunState, RunEnd = (_text(name) for name in TEXTS)

    def init_device(self) -> None:
        super().init_device()
        self._detector: Detector | None = None
        self._look = Look()
        self._channels: list[str] = []
        self._gate, self._limit = True, 0
        self._said: dict[str, object] = {}
        self._fault = ""
        for name in (*FIGURES, *TEXTS, "State"):
            self.set_change_event(name, True, False)
        if self.Recipe:
            try:
                self._load(self.Recipe)
            except Error as error:
                self._fault = str(error)
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, args=(self._ended,), name="strobe events", daemon=True)
        self._teller.start()

    def delete_device(self) -> None:
        """Nobody is there any more who could end its run."""
        self._ended.set()
        # Or it would tell a server that ends. It may itself wait for the device, which is held here: then not for long.
        self._teller.join(STOP)
        if self._detector:
            # Its server may be gone, and its run with it.
            with suppress(Error):
                self._detector.abort()
        self._forget()

    def dev_state(self) -> DevState:
        if self._fault or self._look.failed:
            return DevState.FAULT
        if not self._detector:
            return DevState.OFF
        return STATES.get(self._look.state, DevState.RUNNING) if self._look.active else DevState.STANDBY

    def dev_status(self) -> str:
        return self._fault or self._look.failed or f"{self._look.run or 'no run yet'}: {self._look.account}"

    @attribute(dtype=(str,), max_dim_x=1024, doc="channels of the recipe; ReadRows has them in this order")
    def Channels(self) -> list[str]:
        return [channel.name for channel in self._detector.info.channels] if self._detector else []

    @command(dtype_in=str, doc_in="a file, where this program runs")
    def LoadRecipe(self, path: str) -> None:
        self._do(lambda: self._load(path))

    @command
    def Arm(self) -> None:
        self._do(lambda: self._loaded().arm(self._limit or None, begin=self._gate))

    @command
    def Abort(self) -> None:
        """Ends the run. It is back when all its rows have come."""
        def abort() -> None:
            detector = self._loaded()
            detector.abort()
            detector.wait(DRAIN)
        self._do(abort)

    @command(dtype_in="DevULong", doc_in="triggers of the event soft")
    def Trigger(self, count: int) -> None:
        self._do(lambda: self._loaded().trigger(count))

    @command(dtype_in="DevVarULong64Array", doc_in="the first row, and how many", dtype_out="DevVarDoubleArray",
             doc_out="of each row its number, its trigger, its time in ns, and its channels in their units")
    def ReadRows(self, part: NDArray[np.uint64]) -> NDArray[np.float64]:
        found: list[NDArray[np.float64]] = []

        def read() -> None:
            detector = self._loaded()
            if len(part) != 2 or not 0 < int(part[1]) * (3 + len(detector.info.channels)) <= MOST:
                raise Error("ReadRows", f"{list(map(int, part))} is not a first row and a number of rows",
                            f"give the first row, and how many: at most {MOST // (3 + len(detector.info.channels))}")
            heads, values = detector.rows(int(part[0]), int(part[1]))
            found.append(np.column_stack([heads.astype(np.float64), values]).ravel())

        self._do(read)
        return found[0]

    def enabled(self) -> bool:
        return self._gate

    def enable(self, on: bool) -> None:
        def steer() -> None:
            if self._detector and self._detector.active and on != self._gate:
                (self._detector.begin if on else self._detector.hold)()

        self._do(steer)
        self._gate = on

    def limit(self) -> int:
        return self._limit

    def set_limit(self, rows: int) -> None:
        self._limit = rows

    def _load(self, path: str) -> None:
        if self._detector and self._detector.active:
            raise Error("LoadRecipe", "a run has not ended", "abort it, or wait for its end")
        try:
            token = Path(self.Token).read_text().strip() if self.Token else None
        except OSError as error:
            raise Error("property Token", str(error), "give a file that can be read") from None
        keep = min(max(1, self.Keep), LONGEST)
        detector = Detector(connect(self.Url, token=token), path, keep)
        self._forget()
        self._detector, self._look, self._fault = detector, Look(), ""
        for place, channel in enumerate(detector.info.channels):
            name = channel.name.replace(".", "_").replace("#", "_")
            words: dict[str, Any] = {"unit": channel.unit, "doc": channel.description}
            self._channel(name, partial(self._last, place), dtype=float, **words)
            self._channel(f"{name}_last", partial(self._spectrum, place), dtype=(float,), max_dim_x=keep, **words)

    def _forget(self) -> None:
        """Takes the channels' attributes away. What a database has of them is for when their recipe comes back."""
        for name in self._channels:
            self.remove_attribute(name, clean_db=False)
        self._channels = []

    def _channel(self, name: str, read: Callable[[], Any], **words: Any) -> None:
        self.add_attribute(attribute(name=name, fget=lambda *_: read(), **words))
        self.set_change_event(name, True, False)
        self._channels.append(name)

    def _last(self, place: int) -> tuple[float, float, AttrQuality]:
        value = float(self._look.values[-1, place]) if len(self._look.values) else math.nan
        return value, time.time(), AttrQuality.ATTR_INVALID if math.isnan(value) else AttrQuality.ATTR_VALID

    def _spectrum(self, place: int) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._look.values[:, place]) if len(self._look.values) else np.empty(0)

    def figure(self, name: str) -> tuple[int, float, AttrQuality]:
        value = getattr(self._look, name.lower(), None)
        if value is None:
            value = getattr(self._look.account, name.lower())
        quality = AttrQuality.ATTR_ALARM if name in ALARMING and value else AttrQuality.ATTR_VALID
        return value, time.time(), quality

    def text(self, name: str) -> str:
        return {"RunId": self._look.run, "RunState": self._look.state, "RunEnd": self._look.account.end or ""}[name]

    def _loaded(self) -> Detector:
        if not self._detector:
            raise Error(self.get_name(), "no recipe is loaded", "LoadRecipe loads one")
        return self._detector

    def _do(self, what: Callable[[], None]) -> None:
        """What a client asks for; `Error` is one of Tango then."""
        try:
            what()
        except Error as error:
            Except.throw_exception("strobe.Error", str(error), error.object)
        self._see()

    def _see(self) -> None:
        if self._detector:
            self._look = self._detector.look()

    def _tell(self, ended: threading.Event) -> None:
        """Change events. Who pushes them needs a thread that omniORB knows."""
        with EnsureOmniThread():
            while not ended.wait(PERIOD):
                self._see()
                if ended.is_set():
                    break
                try:
                    self._say()
                except DevFailed:
                    # A recipe was loaded meanwhile, and took attributes away: all is said again.
                    self._said.clear()

    def _say(self) -> None:
        for name in FIGURES:
            self._push(name, *self.figure(name))
        for name in TEXTS:
            self._push(name, self.text(name))
        self._push_state(self.dev_state())
        newest = (self._look.run, self._look.given)
        if self._said.get("row") != newest:
            for place, name in enumerate(self._channels):
                if place % 2:
                    self.push_change_event(name, self._spectrum(place // 2))
                else:
                    self.push_change_event(name, *self._last(place // 2))
            self._said["row"] = newest

    def _push_state(self, state: DevState) -> None:
        if self._said.get("State") != state:
            self._said["State"] = state
            # Tango sends the one that it was told before.
            self.set_state(state)
            self.push_change_event("State")

    def _push(self, name: str, value: object, *more: object) -> None:
        if self._said.get(name) != value:
            self._said[name] = value
            self.push_change_event(name, value, *more)


def main() -> None:
    """It serves on this machine only, unless -ORBendPoint says an address."""
    here = [] if "-ORBendPoint" in sys.argv else ["-ORBendPoint", "giop:tcp:127.0.0.1:"]
    run((Strobe,), args=["strobe-tango", *sys.argv[1:], *here])
    # Python ends threads that are left over, and one that is not in Python then takes the process with it: SIGABRT.
    for thread in threading.enumerate():
        if thread.name.startswith("strobe "):
            thread.join(END)


if __name__ == "__main__":
    main()
