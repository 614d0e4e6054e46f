# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of docs/how-to/python.md do what the page says."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

from daemon import Daemon

PAGE = Path(__file__).parents[2] / "docs/how-to/python.md"


class Page(unittest.TestCase):
    def test_each_example_runs(self) -> None:
        examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        self.assertEqual(len(examples), 9)
        daemon = Daemon()
        self.addCleanup(daemon.close)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        for example in examples:
            with self.subTest(example), tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
                os.chdir(folder)
                exec(compile(example.replace("http://127.0.0.1:8000", daemon.url), PAGE.name, "exec"), {"__name__": "example"})
                os.chdir(before)
            self.assertNotEqual(said.getvalue(), "", example)


if __name__ == "__main__":
    unittest.main()
