# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the daemon answers is what its OpenAPI document says: schemathesis asks all of it, rightly and wrongly."""

import subprocess
import unittest

from daemon import Daemon
from recipes import SCAN, SOFT

CONFIG = '[limits]\nrequests = 100000\nruns = 8\n'
# 422 says that a name or a recipe is none of this machine, which a document cannot know.
CHECKS = """[checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "409", "422"]
"""


class OpenApi(unittest.TestCase):
    def test_the_server_does_what_its_document_says(self) -> None:
        daemon = Daemon({"scan": SCAN}, config=CONFIG)
        self.addCleanup(daemon.close)
        # A run that goes on would be followed to its end; one that was made by a request has the event soft or a limit.
        run = daemon.post("/runs", {"recipe": SOFT})["id"]
        daemon.post(f"/runs/{run}/trigger", {"count": 1000})
        daemon.post(f"/runs/{run}/stop")
        daemon.ended(run)
        (daemon.folder / "schemathesis.toml").write_text(CHECKS)
        # The run is removed last.
        for words in (("--exclude-method", "DELETE"), ("--include-method", "DELETE")):
            # What is random is the same each time.
            asked = ["schemathesis", "--config-file", str(daemon.folder / "schemathesis.toml"), "run",
                     f"{daemon.url}/api/openapi.json", "--checks", "all", "--seed", "7", "--max-examples", "20",
                     "--phases", "examples,coverage,fuzzing", "--request-timeout", "240", "--exclude-path-regex", "/live$",
                     "--no-color", "--generation-database", "none", "--suppress-health-check", "all", *words]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=900, cwd=daemon.folder)
            self.assertEqual(done.returncode, 0, done.stdout[-20000:] + done.stderr)
        self.assertIsNone(daemon.process.poll())
        self.assertEqual(daemon.get("")["role"], "control")
