# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases that share a guest, in real guests."""

import shlex
import unittest

from labkit.cases import Case
from labkit.shared import Shared

GOOD = "echo 'test result: ok. 1 passed; 0 failed'"


class Script(Case):
    """A case whose only test is a shell script."""

    @property
    def command(self) -> list[str]:
        return ["sh", "-c", *self.tests]


def script(name: str, text: str) -> Case:
    return Script(name, (text,), ("amd64",), ("--no-strobe",))


class Guests(unittest.TestCase):
    def test_a_crash_is_blamed_on_the_case_that_ran_and_those_after_it_run_in_another_guest(self) -> None:
        boot = "cat /proc/sys/kernel/random/boot_id; "
        cases = [script("first", boot + GOOD), script("noisy", f"echo {shlex.quote('BUG: not really')} >/dev/kmsg; {GOOD}"),
                 script("crash", "echo begun; echo c >/proc/sysrq-trigger; sleep 1000"), script("after", boot + GOOD),
                 script("failing", "echo 'test result: FAILED. 0 passed; 1 failed'; exit 101")]
        results = Shared("amd64", cases).run()
        verdicts = [(result.job.title, result.passed, result.failed, result.status) for result in results]
        self.assertEqual(verdicts, [("first (amd64)", 1, 0, 0), ("noisy (amd64)", 1, 1, 70), ("crash (amd64)", 0, 1, 70),
                                    ("after (amd64)", 1, 0, 0), ("failing (amd64)", 0, 1, 101)])
        self.assertIn("Kernel panic", results[2].output)
        first, after = (results[at].output.split()[0] for at in (0, 3))
        self.assertNotEqual(first, after)


if __name__ == "__main__":
    unittest.main()
