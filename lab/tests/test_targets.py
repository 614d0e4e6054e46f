# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is above its target is named, with the target."""

import unittest

from labkit.targets import over


class Targets(unittest.TestCase):
    def test_a_figure_may_be_its_target_and_no_more(self) -> None:
        self.assertEqual(over({"mean us": 2.5, "most us": 9}, {"mean us": 2.5, "most us": 10}), [])
        self.assertEqual(over({"mean us": 2.51, "most us": 9}, {"mean us": 2.5, "most us": 10}), ["mean us: 2.51, the target is at most 2.5"])

    def test_a_figure_that_is_not_known_does_not_meet_its_target(self) -> None:
        for figures in ({}, {"mean us": None}):
            with self.subTest(figures):
                self.assertEqual(over(figures, {"mean us": 2.5}), ["mean us: not known, the target is at most 2.5"])

    def test_a_figure_without_a_target_is_only_shown(self) -> None:
        self.assertEqual(over({"mean us": 2.5}, {}), [])


if __name__ == "__main__":
    unittest.main()
