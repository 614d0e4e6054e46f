# SPDX-License-Identifier: MIT OR Apache-2.0
import unittest
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from labkit.cases import case
from labkit.emulator import GuestJob, impossible_flags
from labkit.jobs import Ended
from labkit.shared import Shared

BROKEN = "lab: case fuzz\nOops: double fault: 0000\nRSP: 0018:ffa0 EFLAGS: 3ff33e12\n"


class Emulator(unittest.TestCase):
    def test_flags_of_a_report_that_a_cpu_can_have_are_the_kernels(self) -> None:
        for flags in ("00000246", "00010046", "00000002", "00200a97", "00050ed7"):
            self.assertIsNone(impossible_flags(f"Oops: 0000\nRSP: 0018:ffa0 EFLAGS: {flags}\n"), flags)
        self.assertIsNone(impossible_flags("nothing of flags"))

    def test_flags_that_no_cpu_has_are_the_emulators(self) -> None:
        # As a kernel reported them once; without bit 1; virtual 8086 mode in 64-bit mode; bits that do not exist.
        for flags in ("3ff33e12", "00000244", "00020246", "00400246", "0000024a", "00000266", "00008246"):
            log = f"RSP: 0018:ffa0 EFLAGS: 00000246\nOops: double fault: 0000\nRSP: 0018:ffa0 EFLAGS: {flags}\n"
            self.assertEqual(impossible_flags(log), flags)


class Guests:
    """Answers for guests: the kernel's log of each, in turn."""

    def __init__(self, *logs: str) -> None:
        self.logs = list(logs)

    def run(self, words: list[str], _: Path) -> Ended:
        log = self.logs.pop(0)
        Path(words[words.index("--log") + 1]).write_text(log)
        said = "--- lab: fuzz begins at 1.0\ntest result: ok. 2 passed; 0 failed\n--- lab: fuzz ends at 2.0 with 0\n"
        return Ended(said, 70 if log else 0, 3.0, 2.0)


class Again(unittest.TestCase):
    def of(self, *logs: str) -> tuple[list[tuple[int, int]], str, list[str]]:
        """Passed and failed, what was said, and the guests that were not started."""
        fuzz = case("fuzz", "", ["fuzz::x"])
        guests, said = Guests(*logs), StringIO()
        with patch("labkit.shared.run", guests.run), redirect_stdout(said):
            results = Shared("amd64", [fuzz]).run()
        return [(result.passed, result.failed) for result in results], said.getvalue(), guests.logs

    def test_a_guest_whose_emulator_has_mixed_up_its_cpu_is_started_again_and_it_is_said(self) -> None:
        results, said, left = self.of(BROKEN, "")
        self.assertEqual((results, left), ([(2, 0)], []))
        self.assertIn("EFLAGS 3ff33e12", said)

    def test_it_is_started_again_once(self) -> None:
        results, _, left = self.of(BROKEN, BROKEN, "")
        self.assertEqual((results, left), ([(2, 1)], [""]))

    def test_so_is_the_guest_of_a_program_that_starts_its_own(self) -> None:
        def runs(flags: str, fails: int) -> tuple[int, int, str]:
            """How often it was run, how it ended, and what was said, if it fails so often."""
            with TemporaryDirectory() as folder, redirect_stdout(StringIO()) as said:
                script = (f"echo >>{folder}/runs; echo 1 passed, 0 failed; [ $(wc -l <{folder}/runs) -gt {fails} ] && exit;"
                          f"echo 'RSP: 0018:ffa0 EFLAGS: {flags}'; exit 70")
                (result,) = GuestJob("x (rt)", ["sh", "-c", script], Path("/")).run()
                return len((Path(folder) / "runs").read_text()), result.status, said.getvalue()

        self.assertEqual(runs("3ff33e12", 0), (1, 0, ""))
        self.assertEqual(runs("3ff33e12", 1)[:2], (2, 0))
        self.assertIn("says nothing of x (rt)", runs("3ff33e12", 1)[2])
        self.assertEqual(runs("3ff33e12", 2)[:2], (2, 70))
        self.assertEqual(runs("00000246", 1), (1, 70, ""))

    def test_a_kernel_that_complains_fails_at_once(self) -> None:
        results, said, left = self.of("lab: case fuzz\nOops: 0000\nRSP: 0018:ffa0 EFLAGS: 00010246\n", "")
        self.assertEqual((results, left), ([(2, 1)], [""]))
        self.assertEqual(said, "--- guest of 1 cases (amd64), fuzz the first: 3.0 s, CPU 2.0 s\n\n")


if __name__ == "__main__":
    unittest.main()
