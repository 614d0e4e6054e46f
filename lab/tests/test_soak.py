# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/cases/soak makes of the words of its guest."""

import unittest

from .test_parts import program

DIGEST = "0123456789abcdef" * 4
ROWS = 3_600_000


class Soak(unittest.TestCase):
    def setUp(self) -> None:
        self.program = program("cases/soak")

    def heard(self, second: str = "", **other: int) -> list[str]:
        """The faults of an hour of two runs, of which the second has other figures, or says something else at its end."""
        soak = self.program.Soak(1)
        counts = {"rows": ROWS, "triggers": ROWS, "missed": 0, "read": ROWS, "lost": 0, "errors": 0}
        for run, its in (("sim.counter", counts), ("sim.ramp", counts | other)):
            self.assertEqual(soak.take(f"{run} piece 1 rows {ROWS} missed 0 lost 0 late 1243 sha256 {DIGEST}"), run)
            end = " ".join(f"{name} {count}" for name, count in its.items())
            soak.take(second if second and run == "sim.ramp" else f"{run} end {end}")
        self.assertEqual((soak.runs["sim.ramp"].digests, soak.runs["sim.ramp"].late_ns), ([DIGEST], 1243))
        return soak.faults()

    def test_two_runs_with_all_their_rows_are_well(self) -> None:
        self.assertEqual(self.heard(), [])

    def test_whatever_is_not_as_it_must_be_is_named(self) -> None:
        for name, wrong in (("rows", ROWS - 1), ("triggers", ROWS + 1), ("missed", 1), ("read", 7), ("lost", 2), ("errors", 1)):
            with self.subTest(name):
                (fault,) = self.heard(**{name: wrong})
                self.assertIn(f"sim.ramp: {name} is {wrong}, not ", fault)

    def test_what_a_card_has_counted_must_be_the_rows(self) -> None:
        def heard(raised: int, merged: int) -> list[str]:
            soak = self.program.Soak(1, boards=True)
            rows = soak.piece * soak.pieces
            for card in ("counter", "counter2"):
                for piece in range(6):
                    soak.take(f"{card}.eoc piece {piece} rows {soak.piece} missed 0 lost 0 late 9 sha256 {DIGEST}")
                soak.take(f"{card}.eoc end rows {rows} triggers {rows} missed 0 read {rows} lost 0 errors 0"
                          f" raised {rows + raised} merged {merged}")
            return soak.faults()
        self.assertEqual(heard(0, 0), [])
        self.assertEqual(len(heard(1, 0)), 2)
        self.assertEqual(len(heard(2, 2)), 4)

    def test_part_of_an_hour_is_one_piece(self) -> None:
        soak = self.program.Soak(0.05)
        self.assertEqual((soak.pieces, soak.piece), (1, 180_000))
        soak = self.program.Soak(24)
        self.assertEqual((soak.pieces, soak.piece), (24, ROWS))
        # Ten minutes at 500 Hz.
        soak = self.program.Soak(24, boards=True)
        self.assertEqual((soak.pieces, soak.piece), (144, 300_000))

    def test_a_run_that_never_ends_is_no_success(self) -> None:
        self.assertIn(f"sim.ramp: rows is None, not {ROWS}", self.heard("sim.ramp is still at it"))

    def test_an_hour_without_a_digest_and_a_run_without_a_word_are_faults(self) -> None:
        soak = self.program.Soak(2)
        soak.take(f"sim.counter piece 1 rows {ROWS} missed 0 lost 0 late 9 sha256 {DIGEST}")
        self.assertIn("sim.counter: 1 digests, not 2", soak.faults())
        self.assertIn("1 runs, not 2", soak.faults())

    def test_what_is_not_a_word_of_the_readers_is_passed_over(self) -> None:
        soak = self.program.Soak(1)
        for line in ("", "sim.ramp piece one", f"sim.ramp piece 1 rows 5 missed 0 lost 0 late 6 sha256 {DIGEST[1:]}"):
            self.assertEqual(soak.take(line), "")
        self.assertEqual(soak.runs, {})


if __name__ == "__main__":
    unittest.main()
