# SPDX-License-Identifier: MIT OR Apache-2.0
"""`strobe serve --demo`, as somebody tries it who has nothing but the program: page, HTTP, and a stock PandA client."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from pandablocks.blocking import BlockingClient
from pandablocks.commands import Arm, Disarm
from pandablocks.responses import EndData, EndReason, FrameData, ReadyData

from daemon import LIMIT, TREE, wait_for

STROBE = TREE / "target/release/strobe"
INSIDE = "STROBE_DEMO_INSIDE"
URL = "http://127.0.0.1:8000"
SAMPLES = 3000


def get(path):
    with urllib.request.urlopen(URL + path, timeout=LIMIT) as answer:
        return answer.read().decode()


def page():
    try:
        return get("/")
    except OSError:
        return None


class Demo(unittest.TestCase):
    def test_one_command_serves_a_page_and_a_thousand_rows_a_second_to_a_stock_client(self):
        if INSIDE in os.environ:
            return self.demonstration()
        # The usual ports are free in a network of its own.
        inside = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        done = subprocess.run([*inside, sys.executable, "-m", "unittest", "demo"], env=os.environ | {INSIDE: "1"},
                              capture_output=True, text=True, timeout=3 * LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def demonstration(self):
        home = self.enterContext(tempfile.TemporaryDirectory())
        clean = {name: word for name, word in os.environ.items() if not name.startswith(("XDG_", "STROBE"))} | {"HOME": home}
        daemon = subprocess.Popen([STROBE, "serve", "--demo"], cwd=home, env=clean, stdin=subprocess.DEVNULL)
        self.addCleanup(daemon.wait, LIMIT)
        self.addCleanup(daemon.terminate)
        self.assertIn("<title>strobe", wait_for("the page", page))
        self.assertEqual(self.runs(), [])
        samples = 0
        with BlockingClient("127.0.0.1") as client:
            for data in client.data(scaled=False, frame_timeout=LIMIT):
                if isinstance(data, ReadyData):
                    client.send(Arm(), timeout=LIMIT)
                elif isinstance(data, FrameData):
                    samples += len(data.data)
                    if samples >= SAMPLES:
                        client.send(Disarm(), timeout=LIMIT)
                elif isinstance(data, EndData):
                    break
        self.assertEqual((data.reason, data.samples), (EndReason.DISARMED, samples))
        (run,) = self.runs()
        self.assertEqual(run["rows"], samples)
        self.assertEqual(run["triggers"], run["rows"] + run["missed"] + run["skipped"])
        rows = list(csv.DictReader(line for line in get(f"/api/runs/{run['id']}/rows?from=0&format=csv").splitlines() if line[0] != "#"))
        self.assertEqual([int(row["row"]) for row in rows], list(range(samples)))
        # How many triggers there were, the clock says.
        self.assertEqual((run["info"]["period_ns"], run["info"]["accounting"]), (1_000_000, "exact"))

    def runs(self):
        return json.loads(get("/api/runs"))["runs"]


if __name__ == "__main__":
    unittest.main()
