# SPDX-License-Identifier: MIT OR Apache-2.0
"""How jobs are counted, and what is said of those that failed."""

import contextlib
import io
import shlex
import tempfile
import unittest
from pathlib import Path

from labkit.jobs import COMPLAINT, REASONS, REPORT, Job, Result, count, run_all


def result(output: str, status: int = 1) -> Result:
    return Result(Job("a job", ["true"], Path("/")), output, status, 1.0)


def job(name: str, script: str) -> Job:
    return Job(name, ["sh", "-ec", f"{script}; echo 'test result: ok. 1 passed; 0 failed'"], Path("/"))


class JobsTest(unittest.TestCase):
    def test_each_harness_is_counted_and_what_was_skipped_has_not_passed(self) -> None:
        self.assertEqual(count("3 passed, 1 failed\n"), (3, 1))
        self.assertEqual(count("test result: ok. 7 passed; 0 failed; 0 ignored; finished in 1 s\n"), (7, 0))
        self.assertEqual(count("\nskipped: no tracing\ntest a ... ok\n\ntest result: ok. 7 passed; 0 failed; 0 ignored\n"), (6, 0))
        self.assertEqual(count("Ran 5 tests in 0.1s\n\nFAILED (failures=1, skipped=2)\n"), (2, 1))

    def test_a_job_that_ends_badly_or_has_run_nothing_has_failed(self) -> None:
        self.assertEqual(result("4 passed, 0 failed\n").failed, 1)
        self.assertEqual(result("", status=0).failed, 1)

    def test_each_reason_of_what_was_skipped_is_said_once(self) -> None:
        said = "\nskipped: no tracing\n\nskipped: no compiler\n\nskipped: no tracing\ntest result: ok. 7 passed; 0 failed\n"
        self.assertEqual(result(said, status=0).skipped(), ["no compiler", "no tracing"])

    def test_jobs_of_each_queue_run_beside_those_of_others(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # The first of a queue ends when one of the other queue has begun.
            waits = job("waits", f"until [ -e {folder}/begun ]; do sleep 0.02; done")
            comes = job("comes", f"touch {folder}/begun")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                results = run_all(([waits, job("last", "true")], 1), ([comes], 2))
        self.assertEqual(sorted(result.job.title for result in results), ["comes", "last", "waits"])
        self.assertEqual(said.getvalue().count("\n--- ok "), 3)

    def test_who_has_no_more_jobs_goes_on_with_those_of_later_queues_and_not_of_earlier_ones(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # Each waits for the other, so that they must be at once: one of them is begun from the first queue.
            two = [job(name, f"touch {folder}/{name}; timeout 10 sh -c 'until [ -e {folder}/{other} ]; do sleep 0.02; done'")
                   for name, other in ("ab", "ba")]
            # Of the first queue never two at once, though the other has nothing.
            alone = job("alone", f"mkdir {folder}/alone; sleep 0.1; rmdir {folder}/alone")
            with contextlib.redirect_stdout(io.StringIO()):
                later = run_all(([job("short", "true")], 1), (two, 1))
                earlier = run_all(([alone] * 3, 1), ([job("short", "true")], 2))
        self.assertEqual([result.status for result in later + earlier], [0] * 7)

    def test_what_a_job_raises_is_raised(self) -> None:
        class Broken:
            def run(self) -> list[Result]:
                raise IndexError("broken")

        with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(IndexError, "broken"):
            run_all(([Broken()], 1), ([job("good", "true")], 1))

    def test_a_job_says_what_it_took_also_of_the_cpu(self) -> None:
        busy = "i=0; while [ $i != 100000 ]; do i=$((i + 1)); done; echo 'test result: ok. 1 passed; 0 failed'; exit 3"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            (result,) = run_all(([Job("busy", ["sh", "-c", f"sh -c {shlex.quote(busy)}"], Path("/"))], 1))
        self.assertEqual((result.passed, result.status), (1, 3))
        self.assertGreater(result.cpu or 0, 0.01)
        self.assertRegex(said.getvalue(), r"exit status 3, \d+\.\d s, CPU \d+\.\d s\n")

    def test_the_reasons_are_the_lines_that_tell_what_failed(self) -> None:
        noise = "".join(f"line {number}\n" for number in range(50))
        said = f"failed: it is below 15 MB\n{noise}test daemon::it_starts ... FAILED\n{noise}17 passed, 2 failed\n"
        self.assertEqual(result(said).reasons(), ["failed: it is below 15 MB", "test daemon::it_starts ... FAILED"])

    def test_of_a_kernel_that_complains_it_is_said_of_what(self) -> None:
        page = "".join(f"RAX: {number}\n" for number in range(60))
        said = f"test result: ok. 2 passed; 0 failed\n{COMPLAINT}\nWARNING: in strobe\nCall Trace:\n{page}"
        reasons = result(said).reasons()
        self.assertEqual(reasons[:3], [COMPLAINT, "WARNING: in strobe", "Call Trace:"])
        self.assertEqual(len(reasons), REPORT)

    def test_a_guest_of_its_own_says_what_its_kernel_complains_of_beside_its_tests(self) -> None:
        said = "test edu::it_raises ... FAILED\nlab: the guest's kernel complains: BUG: sleeping function\n"
        self.assertEqual(result(said).reasons(), said.splitlines())

    def test_who_tells_nothing_is_quoted_from_the_end(self) -> None:
        self.assertEqual(result("".join(f"line {number}\n" for number in range(50))).reasons(),
                         [f"line {number}" for number in range(50 - REASONS, 50)])


if __name__ == "__main__":
    unittest.main()
