# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of docs/how-to/tango.md do what the page says."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from daemon import AT_MOST_S, Daemon
from database import Database
from server import Server
from served import NAME, Served

PAGE = Path(__file__).parents[2] / "docs/how-to/tango.md"
PLACES = {"device": "tango://127.0.0.1:10000/test/strobe/1#dbase=no", "server": "http://127.0.0.1:8000",
          "recipe": "/etc/strobe/scan.toml"}
SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine"]\nengine = "user"\n'


class Page(unittest.TestCase):
    def run_example(self, number: int, host: str = "", **instead: str) -> str:
        """What an example prints, with these texts instead of those."""
        example = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[number]
        for name, text in instead.items():
            self.assertIn(PLACES[name], example)
            example = example.replace(PLACES[name], text)
        environment = os.environ | ({"TANGO_HOST": host} if host else {})
        done = subprocess.run([sys.executable, "-c", example], timeout=AT_MOST_S, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_client_arms_a_run_and_has_its_rows(self) -> None:
        served = Served(SCAN)
        self.addCleanup(served.close)
        self.assertIn("[4.995", self.run_example(0, device=served.url))
        self.assertEqual(served.account()["Given"], 1000)

    def test_the_device_is_registered_in_the_database_and_begins(self) -> None:
        database = Database()
        self.addCleanup(database.close)
        daemon = Daemon({"scan": SCAN})
        self.addCleanup(daemon.close)
        self.run_example(1, database.host, server=daemon.url, recipe=str(daemon.folder / "recipes/scan.toml"))
        server = Server("strobe.tango", "test", host=database.host)
        self.addCleanup(server.close)
        self.assertEqual(list(database.device(NAME).Channels), ["sim.counter", "sim.sine"])


if __name__ == "__main__":
    unittest.main()
