# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a file of tests asks for, and what is made of the words of a guest that several of them share."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from labkit import LabError, cases
from labkit.cases import SOURCES, case
from labkit.jobs import Result
from labkit.shared import Shared, script_of
from tests.test_parts import program

GOOD = "test result: ok. 2 passed; 0 failed; 0 ignored\n"
BAD = "test result: FAILED. 1 passed; 1 failed; 0 ignored\n"
WARNING = "[ 9.1] WARNING: CPU: 0 PID: 1 at somewhere\n"


class Heads(unittest.TestCase):
    def test_a_case_is_for_every_kernel_unless_it_says_which(self) -> None:
        self.assertEqual(case("any", "//! Text about kernels: debug.\n", []).kernels, ("amd64", "rt", "newest", "debug", "kcsan"))
        self.assertEqual(case("one", "//! Text.\n// kernels: debug kcsan\n// lab: --module x\n", []).kernels, ("debug", "kcsan"))

    def test_cases_share_a_guest_if_their_options_and_their_time_are_the_same(self) -> None:
        plain = case("plain", "//! Text.\n// kernels: debug\n", [])
        self.assertEqual(plain.needs, case("another", "", []).needs)
        self.assertNotEqual(plain.needs, case("options", "// lab: --module 'x y=1'\n", []).needs)
        self.assertNotEqual(plain.needs, case("icount_plain", "//! Text.\n", []).needs)
        self.assertEqual(case("icount_a", "// lab: --memory 9\n", []).needs, case("icount_b", "// lab: --memory 9\n", []).needs)
        command = case("options", "// lab: --module 'x y=1'\n", ["options::a"]).job("rt").command
        self.assertIn("x y=1", command)
        self.assertEqual(command[-4:], ["cases", "--test-threads=1", "--exact", "options::a"])

    def test_every_file_is_a_module_of_the_program(self) -> None:
        text = (SOURCES / "main.rs").read_text()
        self.assertEqual([path.stem for path in sorted(SOURCES.glob("*.rs")) if path.stem != "main" and f"\nmod {path.stem};\n" not in text], [])

    def test_a_case_that_does_not_exist_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(LabError, "no guest test nonsense in lab/cases/tests"):
            cases.cases(["nonsense"])

    def test_tests_are_listed_by_their_files(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "program"
            program.write_text("#!/bin/sh\nprintf 'a::x: test\\nb_a::y::z: test\\na::w: test\\n'\n")
            program.chmod(0o755)
            self.assertEqual(cases.tests(program), {"a": ["a::x", "a::w"], "b_a": ["b_a::y::z"]})


class Kernels(unittest.TestCase):
    """Which kernels are asked for what."""

    def asked(self, kernels: list[str], names: list[str], part: str | None = None) -> list[str]:
        suite = program("suite")
        chosen = [case(name, text, [f"{name}::x"]) for name, text in (("cards", ""), ("plain", ""), ("icount_a", ""), ("icount_b", "// kernels: amd64\n"))]
        others = {"of_the_lab": lambda kernels: [], "more": lambda kernels: []}
        with mock.patch.multiple(suite, cases=lambda names: chosen, Shared=lambda kernel, cases: [case.job(kernel) for case in cases], **others):
            jobs = suite.guest_jobs(kernels, names, part)
        return sorted(job.title for some in jobs for job in (some if isinstance(some, list) else [some]))

    def test_of_debian_s_two_kernels_one_is_asked_for_what_a_deterministic_guest_shows(self) -> None:
        amd64 = ["icount_a (amd64)", "icount_b (amd64)", "plain (amd64)"]
        self.assertEqual(self.asked(["amd64", "rt"], []), ["cards (amd64)", *amd64, "plain (rt)"])
        self.assertEqual(self.asked(["amd64", "debug"], []), sorted(["cards (amd64)", "cards (debug)", *amd64, "icount_a (debug)", "plain (debug)"]))

    def test_who_asks_for_a_kernel_or_a_case_has_it(self) -> None:
        self.assertEqual(self.asked(["rt"], []), ["cards (rt)", "icount_a (rt)", "plain (rt)"])
        self.assertLessEqual({"cards (rt)", "icount_a (rt)"}, set(self.asked(["amd64", "rt"], ["icount_a", "cards"])))

    def test_what_is_not_asked_of_rt_can_be_asked_for_alone(self) -> None:
        self.assertEqual(self.asked(["rt"], [], "icount"), ["icount_a (rt)"])
        self.assertEqual(self.asked(["amd64", "rt"], [], "alike"), ["cards (amd64)", "cards (rt)"])

    def test_each_file_of_which_both_kernels_show_the_same_is_there_and_for_both(self) -> None:
        for name in program("suite").ALIKE:
            self.assertLessEqual({"amd64", "rt"}, set(case(name, (SOURCES / f"{name}.rs").read_text(), []).kernels), name)
            self.assertFalse(name.startswith("icount_"), name)

    def test_a_kernel_for_which_no_module_is_built_is_refused_before_all_fails(self) -> None:
        suite = program("suite")
        with mock.patch.object(suite, "kernel"), mock.patch.object(suite.modules, "own", return_value={}), \
                mock.patch("sys.argv", ["suite", "--guest", "--kernel", "rt"]), \
                self.assertRaisesRegex(LabError, "no module is built for the kernel rt: run lab/kmod --kernel rt W=1"):
            suite.main()


class Sharing(unittest.TestCase):
    def results(self, said: str, status: int = 0, log: str = "") -> list[Result]:
        shared = Shared("rt", [case(name, "", [f"{name}::x"]) for name in ("one", "two", "three")])
        return shared.results(shared.cases, said, status, log, 100.0)

    def said(self, name: str, at: float, text: str, status: int | None = 0) -> str:
        end = "" if status is None else f"\n--- lab: {name} ends at {at + 1.5} with {status}\n"
        return f"\n--- lab: {name} begins at {at}\n{text}{end}"

    def verdicts(self, results: list[Result]) -> list[tuple[str, int, int]]:
        return [(result.job.title, result.passed, result.failed) for result in results]

    def test_each_case_has_its_own_words_its_time_and_its_verdict(self) -> None:
        results = self.results(self.said("one", 3, GOOD) + self.said("two", 5, BAD, 101) + self.said("three", 9, GOOD))
        self.assertEqual(self.verdicts(results), [("one (rt)", 2, 0), ("two (rt)", 1, 1), ("three (rt)", 2, 0)])
        self.assertEqual((results[1].output.strip(), results[1].status, results[1].seconds), (BAD.strip(), 101, 1.5))

    def test_a_warning_of_the_kernel_is_the_failure_of_the_case_that_ran(self) -> None:
        said = "".join(self.said(name, 1, GOOD) for name in ("one", "two", "three")) + "lab: complains\n"
        log = f"[ 1.0] boot\n[ 2.0] lab: case one\n[ 3.0] x\n[ 4.0] lab: case two\n{WARNING}[ 9.5] lab: case three\n[ 9.6] lab: case \n"
        results = self.results(said, 70, log)
        self.assertEqual(self.verdicts(results), [("one (rt)", 2, 0), ("two (rt)", 2, 1), ("three (rt)", 2, 0)])
        self.assertIn("WARNING: CPU: 0", results[1].output)

    def test_a_warning_when_no_case_ran_is_the_failure_of_the_guest(self) -> None:
        said = "".join(self.said(name, 1, GOOD) for name in ("one", "two", "three")) + "lab: complains\n"
        log = f"[ 2.0] lab: case one\n[ 4.0] lab: case two\n[ 9.5] lab: case three\n[ 9.6] lab: case \n{WARNING}"
        results = self.results(said, 70, log)
        self.assertEqual(self.verdicts(results)[3], ("guest of 3 cases (rt)", 0, 1))
        self.assertEqual(results[3].output.strip(), "lab: complains")

    def test_the_case_in_which_a_guest_ends_has_failed_and_those_after_it_have_not_run(self) -> None:
        results = self.results(self.said("one", 1, GOOD) + self.said("two", 5, "test two::x ... ", None) + "lab: went off", 71)
        self.assertEqual(self.verdicts(results), [("one (rt)", 2, 0), ("two (rt)", 0, 1)])
        self.assertIn("lab: went off", results[1].output)

    def test_of_a_guest_that_does_not_begin_every_case_has_failed(self) -> None:
        results = self.results("lab: modprobe strobe failed\n", 71)
        self.assertEqual(self.verdicts(results), [("one (rt)", 0, 1), ("two (rt)", 0, 1), ("three (rt)", 0, 1)])

    def test_the_script_ends_a_case_that_takes_too_long(self) -> None:
        self.assertIn("timeout 600 cases --test-threads=1 --exact a::x", script_of([case("a", "", ["a::x"])], 600))


if __name__ == "__main__":
    unittest.main()
