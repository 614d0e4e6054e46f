# SPDX-License-Identifier: MIT OR Apache-2.0
"""The example of docs/how-to/tango.md does what the page says."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

from daemon import AT_MOST_S
from served import Served

PAGE = Path(__file__).parents[2] / "docs/how-to/tango.md"
SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine"]\nengine = "user"\n'


class Page(unittest.TestCase):
    def test_the_example_runs(self) -> None:
        (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        served = Served(SCAN)
        self.addCleanup(served.close)
        example = example.replace("tango://127.0.0.1:10000/test/strobe/1#dbase=no", served.url)
        done = subprocess.run([sys.executable, "-c", example], timeout=AT_MOST_S, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[4.995", done.stdout)
        self.assertEqual(served.account()["Given"], 1000)


if __name__ == "__main__":
    unittest.main()
