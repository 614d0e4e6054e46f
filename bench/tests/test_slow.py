# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of rows that are not ready at once, without a guest."""

import unittest
from pathlib import Path

from kit import build, figures, guest, profile, report, slow
from labkit import LabError

from .test_access import RULER

MODULES = build.Modules(Path("strobe"), Path("floor"), Path("iio"))
COST = {"hard": 2000, "next": 3000, "async": 4000, "sleep": 5000}


def results(missed: int = 0) -> guest.Results:
    """Each window is a little longer than the one before; the median is what its way costs."""
    given = {"ruler": RULER}
    for name, _ in slow.job("rt", MODULES, Path("b.board")).commands:
        way, _, window = name.partition(".")
        if way in COST:
            total = (COST[way] + int(window) - figures.WINDOWS // 2) * figures.ROWS
            given[name] = guest.Measured({"rows": figures.ROWS, "missed": missed, "lost": 0}, profile.Window(total, {}))
    return guest.Results(given, profile.Symbols(""))


class Slow(unittest.TestCase):
    def test_a_row_has_the_median_of_each_way_and_its_ratio(self) -> None:
        (row,) = slow.rows([slow.make("rt", results())])
        self.assertEqual(row[1:], ("rt", "2000", "3000", "4000", "5000", "1.50", "2.00", "2.50"))
        self.assertEqual(len(row), len(slow.HEADS))

    def test_figures_of_a_run_that_missed_something_are_refused(self) -> None:
        with self.assertRaisesRegex(LabError, "hard.0: 1 rows missed"):
            slow.make("rt", results(missed=1))

    def test_both_tables_end_with_what_was_counted(self) -> None:
        made = [slow.make("rt", results())]
        for form in (report.text, report.markdown):
            self.assertTrue(slow.table(made, form).endswith(slow.NOTE))
