# SPDX-License-Identifier: MIT OR Apache-2.0
# p4p brings no types.
# pyright: standard, reportMissingImports=false
"""What is served: a detector's runs, its channels and its account, and what HDFPanda expects of a PandA."""

from __future__ import annotations

import math
import re
import threading
from pathlib import Path

from p4p.server import Server

from strobe._detector import Detector, Look
from strobe._error import Error
from strobe.epics._file import File, make_folders
from strobe.epics._pvs import INVALID, MAJOR, MINOR, NO_ALARM, Pvs

#: How often it is looked what is new, in s.
PERIOD = 0.1
#: How long who disarms waits for rows that were made already, in s.
DRAIN = 30.0
ACCOUNT = {"triggers": "triggers of the event", "rows": "rows that were made", "missed": "triggers without a row",
           "skipped": "triggers that were left out on purpose", "lost": "rows that did not come here",
           "errors": "rows in which a channel or an output failed", "given": "rows that came here",
           "late": "rows that were late by a period or more"}
#: What a figure that is not 0 is worth.
SEVERITY = {"missed": MAJOR, "lost": MAJOR, "errors": MINOR, "late": MINOR}


class Scan:
    """The PVs of a detector. `look` says what is new; puts come in threads of p4p."""

    def __init__(self, detector: Detector, prefix: str) -> None:
        self._detector = detector
        self._pvs = Pvs(prefix)
        self._datasets = _datasets([channel.name for channel in detector.info.channels])
        self._lock = threading.RLock()
        self._gate = True
        self._rows = 0
        self._folder, self._name, self._depth, self._period = "", "", 0, 0.0
        self._file: File | None = None
        # The account of a run belongs in the file that got its rows, once.
        self._owing = False
        self._closing = False
        self._pcap()
        self._data()
        self._figures()
        for name in ("pulse", "seq", "pcomp"):
            self._pvs.folder(name)
        self._pvs.complete()

    def serve(self, interfaces: list[str]) -> Server:
        """Serves at these addresses; nothing is sent to any other."""
        words = {"EPICS_PVAS_INTF_ADDR_LIST": " ".join(interfaces), "EPICS_PVAS_BEACON_ADDR_LIST": "",
                 "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO"}
        return Server([self._pvs.provider], conf=words)

    def look(self) -> None:
        """Tells clients what is new."""
        with self._lock:
            # First who is asked about rows, so that a run that is over has all of them in its file.
            look = self._detector.look()
            self._say_run(look)
            self._say_file(look)
            self._pvs.post("pcap.arm", look.active)
            self._pvs.post("pcap.active", look.active)

    def close(self) -> None:
        """Ends the run: nobody is there any more who could."""
        self._detector.abort()
        self._detector.wait(DRAIN)
        with self._lock:
            self._closing = self._file is not None
        self.look()

    def _pcap(self) -> None:
        self._pvs.folder("pcap")
        self._pvs.scalar("pcap.arm", "?", False, self._arm)
        self._pvs.scalar("pcap.active", "?", False)
        self._pvs.scalar("pcap.enable", "?", True, self._enable)
        self._pvs.scalar("pcap.rows", "l", 0, self._limit, description="rows of the next run; 0: as the recipe says")
        self._pvs.scalar("pcap.trigger", "l", 0, self._trigger, description="triggers of the event soft")

    def _data(self) -> None:
        self._pvs.folder("data")
        self._pvs.scalar("data.hdf_directory", "s", "", self._set_folder)
        self._pvs.scalar("data.hdf_file_name", "s", "", self._set_name)
        self._pvs.scalar("data.create_directory", "i", 0, self._set_depth)
        self._pvs.scalar("data.directory_exists", "?", False)
        self._pvs.scalar("data.num_capture", "i", 0, self._set_most)
        self._pvs.scalar("data.num_captured", "l", 0, description="rows in the file")
        self._pvs.choice("data.capture_mode", ["FOREVER", "FIRST_N", "LAST_N"], self._set_mode)
        self._pvs.scalar("data.capture", "?", False, self._capture)
        self._pvs.scalar("data.flush_period", "d", 0.0, self._set_period, "s")
        self._pvs.table("data.datasets", {"name": list(self._datasets.values()), "dtype": ["float64"] * len(self._datasets)})

    def _figures(self) -> None:
        self._pvs.folder("run")
        for name, value in (("id", ""), ("state", "idle"), ("event", self._detector.info.event), ("end", "")):
            self._pvs.scalar(f"run.{name}", "s", value)
        self._pvs.folder("account")
        for name, description in ACCOUNT.items():
            self._pvs.scalar(f"account.{name}", "l", 0, description=description)
        self._pvs.folder("channels")
        for channel in self._detector.info.channels:
            path = f"channels.{self._datasets[channel.name]}"
            self._pvs.scalar(path, "d", math.nan, unit=channel.unit, description=channel.description)
            self._pvs.post(path, math.nan, INVALID, "no row has been read")

    def _say_run(self, look: Look) -> None:
        alarm = MAJOR if look.failed else NO_ALARM
        self._pvs.post("run.id", look.run)
        self._pvs.post("run.state", look.state, alarm, look.failed)
        self._pvs.post("run.end", look.account.end or "", alarm, look.failed)
        for name, description in ACCOUNT.items():
            value = getattr(look, name) if hasattr(look, name) else getattr(look.account, name)
            severity = SEVERITY.get(name, NO_ALARM) if value else NO_ALARM
            message = f"{value} {description}" if severity else ""
            if look.error:
                severity, message = INVALID, look.error
            self._pvs.post(f"account.{name}", value, severity, message)
        last = look.values[-1] if len(look.values) else []
        for channel, value in zip(self._datasets.values(), last):
            failed = bool(math.isnan(value))
            self._pvs.post(f"channels.{channel}", float(value), INVALID if failed else NO_ALARM, "it failed" if failed else "")

    def _say_file(self, look: Look) -> None:
        if not self._file:
            return
        if self._owing and not look.active:
            self._file.add(look.account)
            self._owing = False
        ended = not look.active
        written = self._file.flush(0.0 if ended else self._period)
        if self._closing and ended:
            self._detector.sink = None
            self._file.close()
        self._pvs.post("data.num_captured", written, MAJOR if self._file.error else NO_ALARM, self._file.error)
        if self._closing and ended:
            self._file, self._closing = None, False

    def _arm(self, on: bool) -> None:
        if on:
            with self._lock:
                # What the run before leaves has to be in its place.
                self.look()
                self._detector.arm(self._rows or None, begin=self._gate)
                self._owing = self._file is not None
                # Also of a run that is over before anybody looks.
                self._pvs.post("pcap.active", True)
        else:
            self._detector.abort()
            self._detector.wait(DRAIN)
        self.look()

    def _enable(self, on: bool) -> None:
        with self._lock:
            if self._detector.active and on != self._gate:
                if on:
                    self._detector.begin()
                else:
                    self._detector.hold()
            self._gate = bool(on)
            self._pvs.post("pcap.enable", self._gate)

    def _limit(self, rows: int) -> None:
        self._rows = _not_negative("PCAP:ROWS", rows)
        self._pvs.post("pcap.rows", rows)

    def _trigger(self, count: int) -> None:
        if not 0 < count <= 100_000:
            raise Error("PCAP:TRIGGER", f"{count} triggers at once", "use a number from 1 to 100000")
        self._detector.trigger(count)
        self._pvs.post("pcap.trigger", count)

    def _set_folder(self, folder: str) -> None:
        place = Path(folder)
        if not place.is_absolute():
            raise Error("DATA:HDF_DIRECTORY", f"{folder!r} is not an absolute path", "give a path that begins with /")
        try:
            there = make_folders(place, self._depth)
        except (OSError, ValueError) as error:
            raise Error("DATA:HDF_DIRECTORY", str(error), "give a folder that can be written to") from None
        self._folder = folder
        self._pvs.post("data.hdf_directory", folder)
        self._pvs.post("data.directory_exists", there)

    def _set_name(self, name: str) -> None:
        if name != Path(name).name or name in ("", "..") or "\0" in name:
            raise Error("DATA:HDF_FILE_NAME", f"{name!r} is not the name of a file", "set the folder in DATA:HDF_DIRECTORY")
        self._name = name
        self._pvs.post("data.hdf_file_name", name)

    def _set_depth(self, depth: int) -> None:
        self._depth = depth
        self._pvs.post("data.create_directory", depth)

    def _set_period(self, period: float) -> None:
        if not 0 <= period < math.inf:
            raise Error("DATA:FLUSH_PERIOD", f"{period} s", "give the time that rows may stay in memory; 0 is the shortest")
        self._period = period
        self._pvs.post("data.flush_period", period)

    def _set_most(self, most: int) -> None:
        if most:
            raise Error("DATA:NUM_CAPTURE", "the file gets all rows", "set the number of rows in PCAP:ROWS")

    def _set_mode(self, mode: int) -> None:
        if mode:
            raise Error("DATA:CAPTURE_MODE", "the file gets all rows", "use FOREVER, and set the number of rows in PCAP:ROWS")

    def _capture(self, on: bool) -> None:
        with self._lock:
            if on and not self._file:
                if self._detector.active:
                    raise Error("DATA:CAPTURE", "a run has begun, and its first rows would be missing", "capture before you arm")
                if not self._folder or not self._name:
                    raise Error("DATA:CAPTURE", "the file has no name", "set it in DATA:HDF_DIRECTORY and DATA:HDF_FILE_NAME")
                self._file = File(Path(self._folder, self._name), self._datasets)
                self._detector.sink = self._file.take
                self._pvs.post("data.num_captured", 0)
            # A run that goes on brings its rows into the file first.
            self._closing = not on and self._file is not None
            self._pvs.post("data.capture", bool(on))
            self.look()


def _not_negative(name: str, value: int) -> int:
    if value < 0:
        raise Error(name, f"{value} is less than 0", "use 0 or a positive number")
    return value


def _datasets(channels: list[str]) -> dict[str, str]:
    """What clients call each channel: bluesky has no names with dots, and PVI those of Python only."""
    names = {channel: re.sub(r"\W", "_", channel, flags=re.ASCII).lower() for channel in channels}
    for channel, name in names.items():
        others = [other for other, its in names.items() if its == name and other != channel]
        if others:
            raise Error(f"channel {channel}", f"clients would call both it and {others[0]} {name}", "read only one of the two")
    return names
