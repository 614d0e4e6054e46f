# SPDX-License-Identifier: MIT OR Apache-2.0
import socket
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from labkit import waker

WAKE = b'{"execute": "system_wakeup"}\n'
PATIENCE = 60  # seconds, for what has to happen
A_WHILE = 0.1  # for what must not


class WakerTest(unittest.TestCase):
    """The other end of the socket speaks as QEMU does."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.waker = waker.Waker(Path(directory.name))
        self.addCleanup(self.waker.close)
        self.enterContext(mock.patch.object(waker, "ASLEEP", 0.05))

    def listen(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(str(self.waker.path))
        server.listen()
        self.waker.look()
        qemu, _ = server.accept()
        self.addCleanup(qemu.close)
        qemu.setblocking(False)
        return qemu

    def heard(self, qemu: socket.socket, wanted: bytes = b"") -> bytes:
        """What QEMU is told: until that is among it, or for a while."""
        told = b""
        end = time.monotonic() + (PATIENCE if wanted else A_WHILE)
        while time.monotonic() < end and not (wanted and wanted in told):
            self.waker.look()
            try:
                told += qemu.recv(4096)
            except BlockingIOError:
                time.sleep(0.005)
        return told

    def test_a_qemu_that_does_not_listen_yet_is_asked_again(self) -> None:
        self.waker.look()
        self.assertIn(b"qmp_capabilities", self.heard(self.listen(), b"\n"))

    def test_a_guest_is_woken_once_for_each_time_that_it_sleeps(self) -> None:
        qemu = self.listen()
        qemu.sendall(b'{"QMP": {}}\n{"return": {}}\n')
        self.assertNotIn(WAKE, self.heard(qemu))
        for _ in range(2):
            qemu.sendall(b'{"event": "SUS')
            self.assertEqual(self.heard(qemu), b"")
            qemu.sendall(b'PEND"}\n')
            self.assertEqual(self.heard(qemu, WAKE), WAKE)
            self.assertEqual(self.heard(qemu), b"")

    def test_a_qemu_that_has_gone_is_no_fault_of_the_waker(self) -> None:
        qemu = self.listen()
        qemu.sendall(b'{"event": "SUSPEND"}\n')
        self.waker.look()
        qemu.close()  # with a command that it has not read: the connection is reset
        time.sleep(2 * waker.ASLEEP)
        self.waker.look()
        self.waker.look()

    def test_it_asks_for_a_monitor_of_its_own(self) -> None:
        self.assertIn("mode=control", " ".join(self.waker.words()))
