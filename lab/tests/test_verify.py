# SPDX-License-Identifier: MIT OR Apache-2.0
"""lab/verify: what has passed does not run again, what has failed does, and one failure is the failure of all."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.test_parts import program


class Steps(unittest.TestCase):
    def setUp(self) -> None:
        self.verify = program("verify")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)
        for name, place in {"PLACE": self.path / "verify", "BUILD": self.path}.items():
            patch = mock.patch.object(self.verify, name, place)
            patch.start()
            self.addCleanup(patch.stop)
        (self.path / "verify").mkdir()
        (self.path / "guest/bin").mkdir(parents=True)
        (self.path / "guest/bin/strobe").write_text("1")

    def do(self, command: str, again: bool = False) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            return self.verify.do(self.verify.Step("a step: x (rt)", command), again)[0]

    def test_a_step_that_has_passed_is_not_run_again_until_it_is_asked_for(self) -> None:
        count = f"sh -c 'echo >>{self.path}/ran'"
        self.assertEqual([self.do(count), self.do(count), self.do(count, again=True)], ["passed", "passed before", "passed"])
        self.assertEqual((self.path / "ran").read_text(), "\n\n")

    def test_it_runs_again_when_a_program_of_the_guests_or_its_own_command_is_another(self) -> None:
        self.assertEqual(self.do("true"), "passed")
        self.assertEqual(self.do("true -x"), "passed")
        (self.path / "guest/bin/strobe").write_text("2")
        self.assertEqual(self.do("true -x"), "passed")
        self.assertEqual(self.do("true -x"), "passed before")

    def test_a_step_that_has_failed_or_was_interrupted_runs_again(self) -> None:
        self.assertEqual([self.do("false"), self.do("false")], ["FAILED with 1"] * 2)
        with self.assertRaises(KeyboardInterrupt):
            self.verify.do(self.verify.Step("a step: x (rt)", "true"), False, mock.Mock(side_effect=KeyboardInterrupt))
        self.assertEqual(self.do("true"), "passed")

    def test_what_a_step_has_said_is_kept(self) -> None:
        self.do("echo a figure")
        (record,) = (self.path / "verify").iterdir()
        self.assertEqual(record.read_text().splitlines()[1:], ["a figure"])

    def test_the_summary_names_each_step_and_fails_if_one_has(self) -> None:
        steps = self.verify.steps()[:2]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(self.verify.summary([(steps[0], "passed", 60.0), (steps[1], "FAILED with 70", 6.0)]), 1)
        self.assertRegex(said.getvalue(), rf"{steps[1].name} +FAILED with 70 +0\.1\n1 passed, 1 failed\n$")

    def test_names_of_records_differ(self) -> None:
        steps = self.verify.steps()
        self.assertEqual(len({step.record for step in steps}), len(steps))

    def test_every_program_of_a_step_is_there(self) -> None:
        tree = Path(__file__).resolve().parents[2]
        for step in self.verify.steps():
            self.assertTrue((tree / step.command.split()[0]).exists(), step.command)


if __name__ == "__main__":
    unittest.main()
