# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is made of cyclictest's histogram, and when two tools agree."""

import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

PLACE = Path(__file__).resolve().parents[1] / "cyclictest"
loader = SourceFileLoader("cyclictest", str(PLACE))
cyclictest = module_from_spec(spec_from_loader("cyclictest", loader))
loader.exec_module(cyclictest)


class Cyclictest(unittest.TestCase):
    def test_percentiles_are_of_nearest_rank(self) -> None:
        figures = cyclictest.percentiles({1: 50, 2: 49, 900: 1}, 900)
        self.assertEqual(figures, {"p50": 1, "p99": 2, "p999": 900, "max": 900})

    def test_the_greatest_is_known_also_beyond_the_histogram(self) -> None:
        self.assertEqual(cyclictest.percentiles({5: 10}, 200_000)["max"], 200_000)

    def test_ranges_agree_if_they_overlap_or_lie_in_one_bin(self) -> None:
        self.assertTrue(cyclictest.overlap([10, 14], [13, 20]))
        self.assertTrue(cyclictest.overlap([13.9, 14], [12, 13]), "13 is all from 13 to 14")
        self.assertFalse(cyclictest.overlap([10, 14], [15, 20]))
        self.assertFalse(cyclictest.overlap([22, 30], [15, 20]))


if __name__ == "__main__":
    unittest.main()
