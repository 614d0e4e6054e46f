# SPDX-License-Identifier: MIT OR Apache-2.0
"""Wakes a guest that has suspended itself.

Its own clock could ring before it sleeps, if the host is busy and suspending takes longer than expected; then nothing
would wake it. QEMU says when it sleeps.
"""

import contextlib
import json
import socket
import time
from pathlib import Path

# Seconds. The clock by which the kernel knows how long it slept has whole ones, at both ends: of a sleep shorter than two
# of them the kernel may believe that there was none.
ASLEEP = 2.1


class Waker:
    """QEMU's monitor, asked without waiting: look() is called again and again."""

    def __init__(self, work: Path) -> None:
        self.path = work / "waker"
        self.monitor: socket.socket | None = None
        self.said = b""
        self.due: float | None = None

    def words(self) -> list[str]:
        """For QEMU's command line."""
        return ["-chardev", f"socket,id=waker,path={self.path},server=on,wait=off", "-mon", "chardev=waker,mode=control"]

    def look(self) -> None:
        """Takes what QEMU has said, and wakes the guest when it has slept long enough."""
        if not self.monitor:
            self.connect()
            return
        with contextlib.suppress(OSError):  # it has said nothing, or is gone, which run() notices
            self.said += self.monitor.recv(1 << 16)
        *lines, self.said = self.said.split(b"\n")
        if any(json.loads(line).get("event") == "SUSPEND" for line in lines):
            self.due = time.monotonic() + ASLEEP
        if self.due and time.monotonic() > self.due:
            self.due = None
            with contextlib.suppress(OSError):
                self.monitor.sendall(b'{"execute": "system_wakeup"}\n')

    def connect(self) -> None:
        """QEMU may not listen yet."""
        monitor = socket.socket(socket.AF_UNIX)
        try:
            monitor.connect(str(self.path))
        except OSError:
            monitor.close()
            return
        monitor.sendall(b'{"execute": "qmp_capabilities"}\n')
        monitor.setblocking(False)
        self.monitor = monitor

    def close(self) -> None:
        if self.monitor:
            self.monitor.close()
