# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/cases/undisturbed takes for a disturbed run."""

import unittest

from .test_parts import program

LATE = [500, 1800, 2900, 3800]


def figures(**other: int) -> list[dict]:
    """Of a run that nobody disturbs; with this of the one that has clients."""
    alone = {"rate": 10_000, "clients": 0, "triggers": 100, "rows": 100, "missed": 0, "lost": 0, "late_ns": LATE}
    return [alone, alone | {"clients": 20} | other]


class Undisturbed(unittest.TestCase):
    def setUp(self) -> None:
        self.case = program("cases/undisturbed")

    def test_a_row_has_a_cell_for_each_column(self) -> None:
        self.assertEqual(len(self.case.row("rt", "icount", figures()[1]).split()), len(self.case.COLUMNS))

    def test_what_must_be_can_fail(self) -> None:
        self.assertEqual(self.case.check("rt", "icount", figures()), [])
        for other in ({"triggers": 101}, {"triggers": 101, "missed": 1}, {"lost": 1}, {"clients": 19}):
            with self.subTest(**other):
                self.assertTrue(self.case.check("rt", "icount", figures(**other)))
        self.assertTrue(self.case.check("rt", "real", figures()[:1]))

    def test_in_real_time_and_on_a_stock_kernel_a_miss_that_is_counted_is_no_fault(self) -> None:
        for where in (("rt", "real"), ("amd64", "icount")):
            self.assertEqual(self.case.check(*where, figures(triggers=101, missed=1)), [])
            self.assertTrue(self.case.check(*where, figures(triggers=101)))


if __name__ == "__main__":
    unittest.main()
