# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a connection costs the daemon: rows wait on its disk, and not in its memory."""

import re
import socket
import time
import unittest
from pathlib import Path

from daemon import Daemon, wait_for

# Some 54 MB: a client for whom the daemon kept them would cost many times what it may.
ROWS = 100000
CHANNELS = ", ".join(64 * ['"sim.sine"'])
LONG = f'event = "timer:50kHz"\nread = [{CHANNELS}]\nengine = "user"\nrows = {ROWS}\n'
# The same by the PandA port, which has few fields: these are rows of 80 bytes.
FIELDS = ("PCAP.INDEX", "PCAP.TRIG_INDEX", "PCAP.TS_TRIG", "PCAP.GATE_DURATION", "SIM.COUNTER", "SIM.RAMP", "SIM.SINE", "SIM.NOISE",
          "CLOCK.ELAPSED", "SIM.LATCH")
PANDA_ROWS = 400000
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
        cls.daemon = Daemon(config='[panda]\nlisten = "127.0.0.1"\ncontrol = 0\ndata = 0\nengine = "user"\n')
        cls.addClassCleanup(cls.daemon.close)
        said = re.search(r"PandA: 127\.0\.0\.1:(\d+), (\d+)", "".join(cls.daemon.said))
        cls.control, cls.data = map(int, said.groups())

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

    def asked(self, port: int, asks: str, answer: bytes) -> socket.socket:
        """A client that has begun to read, and reads no more."""
        client = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(client.close)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(asks.encode())
        self.assertTrue(client.recv(1024).startswith(answer))
        return client

    def stuck(self, way: str) -> socket.socket:
        port = self.daemon.port
        return self.asked(port, f"GET {way} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", b"HTTP/1.1 200")

    def stuck_panda(self, row: int) -> socket.socket:
        return self.asked(self.data, f"FROM={row} ONE_SHOT FRAMED RAW\n", b"OK\n")

    def bound(self, name: str, stuck, rows: int) -> None:
        # What it keeps for all of them is there.
        stuck(0).close()
        before = self.settled_kib()
        # Each from another row on: what they are given is nobody else's.
        clients = [stuck(rows // CLIENTS * n) for n in range(CLIENTS)]
        each = (self.settled_kib() - before) / CLIENTS
        print(f"{name}: {each:.0f} KiB a client")
        self.assertLess(each, AT_MOST_KIB)
        for client in clients:
            client.close()

    def test_a_client_that_reads_no_more_costs_at_most_what_the_reference_says(self) -> None:
        run = self.daemon.post("/runs", {"recipe": LONG})["id"]
        self.daemon.ended(run)
        for name, way in WAYS.items():
            with self.subTest(name):
                self.bound(name, lambda row: self.stuck(way.format(run=run, row=row)), ROWS)

    def test_a_client_of_the_panda_port_costs_no_more(self) -> None:
        with socket.create_connection(("127.0.0.1", self.control)) as control, control.makefile("rw") as lines:
            for word in [*(f"{field}.CAPTURE=Value" for field in FIELDS), "PCAP.TRIG=EVENT1.OUT", "EVENT1.PERIOD=0.00002", "*PCAP.ARM="]:
                lines.write(word + "\n")
                lines.flush()
                self.assertEqual(lines.readline(), "OK\n", word)
            run = max(run["id"] for run in self.daemon.get("/runs")["runs"])
            wait_for(lambda: self.daemon.run(run)["rows"] > PANDA_ROWS, "rows")
            lines.write("*PCAP.DISARM=\n")
            lines.flush()
            self.assertEqual(lines.readline(), "OK\n")
        self.daemon.ended(run)
        self.bound("PandA", self.stuck_panda, PANDA_ROWS)
