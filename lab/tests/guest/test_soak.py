# SPDX-License-Identifier: MIT OR Apache-2.0
"""The readers of lab/cases/soak: what they let pass, and what they do not."""

import re
import subprocess
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parents[2]
MS = 1_000_000


def soak(prelude: str = "", period_ns: int = MS, piece: int = 1000, pieces: int = 3) -> tuple[int, str]:
    words = [LAB / "run", "--icount", "2", "--", "sh", "-c", f"{prelude} soak {period_ns} {piece} {pieces}"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class Readers(unittest.TestCase):
    def test_two_guests_print_the_same_digests_and_each_piece_has_its_own(self) -> None:
        status, said = soak()
        self.assertEqual(status, 0, said)
        self.assertEqual(soak(), (status, said))
        self.assertEqual(len(set(re.findall(r" sha256 ([0-9a-f]{64})$", said, re.MULTILINE))), 6)
        ends = re.findall(r"^sim\.\w+ end (.*)$", said, re.MULTILINE)
        self.assertEqual(ends, ["rows 3000 triggers 3000 missed 0 read 3000 lost 0 errors 0"] * 2)

    def test_what_is_missed_is_counted_and_a_value_that_is_not_what_it_must_be_ends_it(self) -> None:
        # One guest: each takes some ten seconds before it does anything.
        slow = "echo 3500000 >/sys/module/strobe/parameters/sim_slow_ns;"
        other = "strobe record --event timer:100ms --read sim.counter --rows 20 -o x.csv >/dev/null &"
        status, said = soak(f"{slow} soak {MS} 1000 3 || exit 3; {other}")
        self.assertEqual(status, 1, said)
        ends = re.findall(r"^sim\.\w+ end rows 3000 triggers (\d+) missed (\d+) read 3000 lost 0", said, re.MULTILINE)
        self.assertEqual(len(ends), 2, said)
        for triggers, missed in ends:
            self.assertEqual(int(triggers), 3000 + int(missed))
            self.assertGreater(int(missed), 0)
        self.assertRegex(said, r"soak: sim\.counter: row \d+, due at \d+, is Row")


if __name__ == "__main__":
    unittest.main()
