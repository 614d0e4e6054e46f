# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of docs/how-to/epics.md do what the page says."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from daemon import AT_MOST_S
from served import Served

PAGE = Path(__file__).parents[2] / "docs/how-to/epics.md"
SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine"]\nengine = "user"\n'


class Page(unittest.TestCase):
    def test_each_example_runs(self) -> None:
        examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        self.assertEqual(len(examples), 2)
        served = Served(SCAN)
        self.addCleanup(served.close)
        for example in examples:
            with self.subTest(example), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-c", example.replace('"/data"', repr(folder))], cwd=folder, text=True,
                                      env=os.environ | served.environment, timeout=AT_MOST_S, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotEqual(done.stdout, "")
            self.assertEqual(served.account()["given"], 1000)


if __name__ == "__main__":
    unittest.main()
