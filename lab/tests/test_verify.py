# SPDX-License-Identifier: MIT OR Apache-2.0
"""lab/verify: what has passed does not run again, what has failed does, and one failure is the failure of all."""

import contextlib
import io
import os
import re
import shlex
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from tests.test_parts import program


class Steps(unittest.TestCase):
    def setUp(self) -> None:
        self.verify = program("verify")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)
        for name, other in {"PLACE": self.path / "verify", "BUILD": self.path, "TREE": self.path,
                            "kernel": lambda flavour: mock.Mock(built=self.path / "kernel" / flavour)}.items():
            patch = mock.patch.object(self.verify, name, other)
            patch.start()
            self.addCleanup(patch.stop)
        for place in (self.path / "verify", self.path / "guest/bin", self.path / "lab"):
            place.mkdir(parents=True)
        self.write("guest/bin/strobe", "1")

    def write(self, file: str, text: str) -> None:
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def step(self, command: str = "lab/program", **more: object) -> Any:
        return self.verify.Step("a step: x (rt)", command, 1, **more)

    def do(self, text: str, again: bool = False, **more: object) -> str:
        """Runs a step whose program is this line of shell."""
        program = self.path / "lab/program"
        if not program.exists() or program.read_text() != f"#!/bin/sh\n{text}\n":
            self.write("lab/program", f"#!/bin/sh\n{text}\n")
        with contextlib.redirect_stdout(io.StringIO()):
            return self.verify.do(self.step(**more), again, sorted(os.sched_getaffinity(0)))[0]

    def test_a_step_that_has_passed_is_not_run_again_until_it_is_asked_for(self) -> None:
        count = f"echo >>{self.path}/ran"
        self.assertEqual([self.do(count), self.do(count), self.do(count, again=True)], ["passed", "passed before", "passed"])
        self.assertEqual((self.path / "ran").read_text(), "\n\n")

    def test_it_runs_again_when_what_it_runs_is_another_and_only_then(self) -> None:
        its = {"kernels": ("rt",), "programs": ("strobe", "target/release/strobe")}
        self.assertEqual(self.do("true", **its), "passed")
        for file in ("guest/bin/strobe", "kernel/rt/sub/strobe.ko", "target/release/strobe"):
            self.write(file, "another")
            self.assertEqual([self.do("true", **its), self.do("true", **its)], ["passed", "passed before"], file)
        self.assertEqual(self.do("true # its own program", **its), "passed")
        for file in ("guest/bin/cases", "kernel/amd64/strobe.ko", "target/release/strobe-serve"):
            self.write(file, "of another step")
            self.assertEqual(self.do("true # its own program", **its), "passed before", file)

    def test_all_programs_of_guests_may_be_meant(self) -> None:
        self.assertEqual(self.do("true", programs=("*",)), "passed")
        self.write("guest/bin/cases", "new")
        self.assertEqual(self.do("true", programs=("*",)), "passed")

    def test_a_step_that_has_failed_or_was_interrupted_runs_again(self) -> None:
        self.assertEqual([self.do("false"), self.do("false")], ["FAILED with 1"] * 2)
        with self.assertRaises(KeyboardInterrupt):
            self.verify.do(self.step(), False, [0], mock.Mock(side_effect=KeyboardInterrupt))
        self.assertEqual(self.do("true"), "passed")

    def test_what_a_step_has_said_is_kept(self) -> None:
        self.do("echo a figure")
        (record,) = (self.path / "verify").iterdir()
        self.assertEqual(record.read_text().splitlines()[1:], ["a figure"])

    def test_what_is_alone_runs_before_all_and_the_others_have_a_cpu_each(self) -> None:
        begun: list[tuple[str, list[int]]] = []

        def do(step: Any, again: bool, cpus: list[int]) -> tuple[str, float]:
            begun.append((step.name, cpus))
            return "passed", 1.0

        chosen = [self.verify.Step(name, "true", minutes, alone=name == "alone")
                  for name, minutes in (("short", 1), ("long", 9), ("alone", 5))]
        with mock.patch.object(self.verify, "do", do):
            done = self.verify.run_all(chosen, False, [3, 7])
        self.assertEqual([step.name for step, *_ in done], ["alone", "long", "short"])
        self.assertEqual(begun[0], ("alone", [3, 7]))
        self.assertTrue(all(cpus in ([3], [7]) for _, cpus in begun[1:]), begun)
        self.assertEqual(self.verify.hours(chosen, 2) * 60, 5 + 9)

    def test_it_is_done_in_three_hours_and_a_half_on_two_cpus_and_what_repeats_in_seven(self) -> None:
        self.assertLess(self.verify.hours(self.verify.measurements(), 2), 3.5)
        self.assertLess(self.verify.hours(self.verify.soak(), 2), 7)

    def test_the_hours_of_a_soak_can_be_said(self) -> None:
        of = {step.command: step.minutes for step in self.verify.soak(1)}
        self.assertLess(of["lab/cases/soak --hours 1"], 3)
        self.assertIn("lab/cases/served --minutes 60", of)

    def test_the_summary_names_each_step_and_fails_if_one_has(self) -> None:
        steps = self.verify.measurements()[:2]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(self.verify.summary([(steps[0], "passed", 60.0), (steps[1], "FAILED with 70", 6.0)]), 1)
        self.assertRegex(said.getvalue(), rf"{steps[1].name} +FAILED with 70 +0\.1\n1 passed, 1 failed\n$")

    def test_names_of_records_differ(self) -> None:
        steps = [*self.verify.measurements(), *self.verify.soak()]
        self.assertEqual(len({step.record for step in steps}), len(steps))

    def test_every_program_of_a_step_is_there(self) -> None:
        tree = Path(__file__).resolve().parents[2]
        for step in [*self.verify.measurements(), *self.verify.soak()]:
            found = (tree / step.command.split()[0]).exists() or step.command.startswith("env ")
            self.assertTrue(found, step.command)

    def test_cargo_takes_what_a_step_says_to_it(self) -> None:
        verify = program("verify")
        steps = [step for step in verify.measurements() + verify.soak() if "cargo test" in step.command]
        self.assertTrue(steps)
        for step in steps:
            own, _, _ = step.command.partition(" -- ")
            words = own.partition("cargo test ")[2].split()
            names = [word for before, word in zip(["", *words], words)
                     if not word.startswith("-") and before not in ("--exclude", "--test", "-p", "--package")]
            self.assertLess(len(names), 2, "cargo takes one name of tests; those after -- are the test program's")

    def test_the_program_of_a_step_is_known_behind_its_environment(self) -> None:
        self.write("tests/x/run", "1")
        of = {command: list(self.verify.runs(self.step(command, programs=()))) for command in ("env A=1 B=2 tests/x/run --y", "env A=1 cargo test")}
        self.assertEqual(list(of.values()), [[self.path / "tests/x/run"], []])


class Parts(unittest.TestCase):
    """What lab/README.md says of how much of each measurement is in `make test`."""

    def setUp(self) -> None:
        self.tree = Path(__file__).resolve().parents[2]
        text = (self.tree / "lab/README.md").read_text()
        lines = re.findall(r"^\| .* \|$", text.partition("\n### How much of it is in `make test`\n")[2].partition("\n## ")[0], re.MULTILINE)
        self.whole, self.part = ({word for line in lines[1:] for word in re.findall(r"`([^`]+)`", line.split("|")[column])} for column in (2, 3))

    def without_kernels(self, words: list[str]) -> str:
        return re.sub(r" --kernel \w+", "", " ".join(words)).rpartition("lab/cases/")[2]

    def test_it_names_every_case_that_verify_runs(self) -> None:
        verify = program("verify")
        steps = [step for step in [*verify.measurements(), *verify.soak()] if step.command.startswith(("lab/cases/", "lab/suite --icount", "lab/suite --alike", "env STROBE_ROUNDS="))]
        self.assertEqual(self.whole, {self.without_kernels(shlex.split(step.command)) for step in steps})

    def test_it_names_what_the_tests_run_of_them(self) -> None:
        suite = program("suite")
        cases = {word.split()[0] for word in self.whole}
        run = {self.without_kernels(job.command) for job in suite.more(["amd64", "rt"])}
        run = {command for command in run if command.split()[0] in cases}
        own = {word for word in self.part if (self.tree / f"lab/cases/tests/{word}.rs").exists()}
        self.assertEqual(self.part - own, run)
        self.assertEqual(own, set("""board cards frames gpio hotplug icount_attribution icount_iio icount_lab_counter icount_sources iio
            lines polling rpmsg_removal sequence uio""".split()))


if __name__ == "__main__":
    unittest.main()
