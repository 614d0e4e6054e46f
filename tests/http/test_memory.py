# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a connection costs the daemon: rows wait on its disk, and not in its memory."""

import re
import socket
import time
import unittest
from pathlib import Path

from daemon import Daemon

# Some 54 MB: a client for whom the daemon kept them would cost many times what it may.
ROWS = 100000
CHANNELS = ", ".join(64 * ['"sim.sine"'])
LONG = f'event = "timer:50kHz"\nread = [{CHANNELS}]\nengine = "user"\nrows = {ROWS}\n'
CLIENTS = 32
# As docs/reference/serve.md says.
AT_MOST_KIB = 3 * 1024
WAYS = {
    "Arrow": "/api/runs/{run}/rows?from={row}",
    "CSV": "/api/runs/{run}/rows?from={row}&format=csv",
}


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.close)

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))

    def settled_kib(self) -> int:
        """When it no longer grows."""
        before, now = -1, self.resident_kib()
        while now > before:
            time.sleep(1)
            before, now = now, self.resident_kib()
        return now

    def stuck(self, way: str) -> socket.socket:
        """A client that has begun to read, and reads no more."""
        client = socket.create_connection(("127.0.0.1", self.daemon.port))
        self.addCleanup(client.close)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(f"GET {way} HTTP/1.1\r\nHost: 127.0.0.1:{self.daemon.port}\r\n\r\n".encode())
        self.assertTrue(client.recv(1024).startswith(b"HTTP/1.1 200"))
        return client

    def test_a_client_that_reads_no_more_costs_at_most_what_the_reference_says(self) -> None:
        run = self.daemon.post("/runs", {"recipe": LONG})["id"]
        self.daemon.ended(run)
        for name, way in WAYS.items():
            with self.subTest(name):
                # What it keeps for all of them is there.
                self.stuck(way.format(run=run, row=0)).close()
                before = self.settled_kib()
                # Each from another row on: what they are given is nobody else's.
                clients = [self.stuck(way.format(run=run, row=ROWS // CLIENTS * n)) for n in range(CLIENTS)]
                each = (self.settled_kib() - before) / CLIENTS
                print(f"{name}: {each:.0f} KiB a client")
                self.assertLess(each, AT_MOST_KIB)
                for client in clients:
                    client.close()
