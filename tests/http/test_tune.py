# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs that are tuned by HTTP, and what is refused: whose fault it is, and what helps."""

import json
import unittest

from daemon import Daemon
from recipes import SOFT


class Tune(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)
        self.run_id = self.daemon.post("/runs", {"recipe": SOFT + 'tune = ["limit = 3"]\n'})["id"]

    def tune(self, **asked: object) -> tuple[int, dict]:
        status, body = self.daemon.ask("POST", f"/api/runs/{self.run_id}/tune", asked)
        return status, json.loads(body)

    def test_a_value_is_taken_as_a_number_or_a_text(self) -> None:
        for value in (4, "5"):
            self.assertEqual(self.tune(name="limit", value=value)[0], 200)

    def test_what_is_wrong_in_the_request_is_said_with_what_helps(self) -> None:
        status, said = self.tune(name="limits", value=4)
        self.assertEqual((status, said["remedy"]), (400, "this run has limit"))
        self.assertIn("limits", said["object"])
        status, said = self.tune(name="limit", value="4 V")
        self.assertEqual(status, 400)
        self.assertTrue(said["reason"] and said["remedy"], said)

    def test_a_run_that_has_ended_is_a_conflict(self) -> None:
        self.daemon.ask("POST", f"/api/runs/{self.run_id}/stop")
        status, said = self.tune(name="limit", value=4)
        self.assertEqual((status, said["remedy"]), (409, "make a new run"))


if __name__ == "__main__":
    unittest.main()
