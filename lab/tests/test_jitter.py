# SPDX-License-Identifier: MIT OR Apache-2.0
"""lab/cases/jitter: what it demands of a loop, and of the counter that judges it."""

import json
import unittest

from .test_parts import program

ROWS = 3000


def said(way: str = "kernel:loop", missed: int = 0, lost: int = 0, period: int = 10_000_000, **judged: int) -> tuple[str, ...]:
    """Of one way whose counter is as wrong as this."""
    counter = {"edges": ROWS, "in_range": ROWS - 1, "over": 0, "under": 0, "longest_ns": 10_000_900, "shortest_ns": 9_999_100}
    return (json.dumps({"ways": [{"way": way, "all": {"missed": missed, "period_ns": {"max": period, "min": 9_999_999}},
                                  "rounds": [{"lost": lost, "rows": ROWS, "end": "complete", "judged": counter | judged}]}]}),)


class Check(unittest.TestCase):
    def faults(self, *guests: tuple[str, ...], kernel: str = "rt", time: str = "icount") -> list[str]:
        return program("cases/jitter").check(kernel, time, list(guests))

    def test_a_loop_that_is_regular_by_both_counts_is_well(self) -> None:
        self.assertEqual(self.faults(said(), said()), [])

    def test_guests_that_differ_and_a_guest_without_a_word_are_faults(self) -> None:
        self.assertEqual(self.faults(said(), said(missed=1)), ["two guests differ"])
        self.assertEqual(self.faults(said(), ()), ["nothing was measured"])

    def test_every_row_is_an_edge_of_the_counter_and_every_period_has_its_class(self) -> None:
        for wrong in ({"edges": ROWS - 1}, {"in_range": ROWS}, {"over": 1}):
            (fault,) = self.faults(said(**wrong))
            self.assertIn("the counter saw", fault)

    def test_on_rt_neither_the_counter_nor_the_stamps_may_see_a_period_that_is_wrong_by_more_than_one_percent(self) -> None:
        for wrong in ({"longest_ns": 10_100_001}, {"shortest_ns": 9_899_999}, {"period": 10_100_001}, {"missed": 1}):
            self.assertEqual(len(self.faults(said(**wrong))), 1, wrong)
            self.assertEqual(self.faults(said("kernel:workqueue", **wrong)), [])
            self.assertEqual(self.faults(said(**wrong), kernel="amd64"), [])
            self.assertEqual(self.faults(said(**wrong), time="real"), [])

    def test_a_row_that_is_lost_is_a_fault_everywhere(self) -> None:
        (fault,) = self.faults(said("kernel:workqueue", lost=1), kernel="amd64", time="real")
        self.assertIn("1 lost", fault)


if __name__ == "__main__":
    unittest.main()
