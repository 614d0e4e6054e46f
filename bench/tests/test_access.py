# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of register accesses, without a guest."""

import unittest

from kit import access, figures, guest, profile, report
from labkit import LabError

RULER = guest.Measured({"rows": 0}, profile.Window(0, {
    figures.LOOP: profile.Span(1, 2001, 2001, 2001), figures.ACCESS: profile.Span(1, 20, 20, 20)}))
LEAST = {"nothing": 0, "plain": 1, "checked": 10, "ioctl": 600}


def results(**other: guest.Measured) -> guest.Results:
    """Every access takes what its way takes, and one in a thousand a hundred more."""
    given = {"ruler": RULER}
    for name, _ in access.job("rt").commands[1:]:
        least = LEAST[name.partition("-")[0]]
        span = profile.Span(access.ACCESSES, access.ACCESSES * least + 100, least, least + 100)
        given[name] = guest.Measured({"accesses": access.ACCESSES}, profile.Window(1, {access.SPAN: span}))
    return guest.Results(given | {name.replace("_", "-"): each for name, each in other.items()}, profile.Symbols(""))


def measured(said: int, count: int, least: int = 1) -> guest.Measured:
    return guest.Measured({"accesses": said}, profile.Window(1, {access.SPAN: profile.Span(count, count, least, least)}))


class Access(unittest.TestCase):
    def test_each_figure_has_a_row_for_each_kernel(self) -> None:
        rows = access.rows([access.make("amd64", results()), access.make("rt", results())])
        self.assertEqual([row[:2] for row in rows], [(words, kernel) for words in access.FIGURES.values()
                                                     for kernel in ("amd64", "rt")])

    def test_a_row_has_the_least_of_each_way_and_their_ratios(self) -> None:
        row, *_ = access.rows([access.make("rt", results())])
        self.assertEqual(row[2:], ("1", "10", "600", "600", "60"))
        self.assertEqual(len(row), len(access.HEADS))

    def test_an_access_that_was_not_counted_is_an_error(self) -> None:
        few = access.ACCESSES - 1
        for wrong in (measured(few, access.ACCESSES), measured(access.ACCESSES, few),
                      guest.Measured({"accesses": access.ACCESSES}, profile.Window(1, {}))):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(LabError, "ioctl-read: .* counted"):
                access.make("rt", results(ioctl_read=wrong))

    def test_marks_that_are_counted_themselves_are_an_error(self) -> None:
        with self.assertRaisesRegex(LabError, "marks"):
            access.make("rt", results(nothing=measured(access.ACCESSES, access.ACCESSES)))

    def test_a_plugin_that_counts_wrongly_is_noticed(self) -> None:
        wrong = guest.Measured({}, profile.Window(0, RULER.window.spans | {figures.LOOP: profile.Span(1, 1, 1, 1)}))
        with self.assertRaisesRegex(LabError, "counts wrongly"):
            access.make("rt", results(ruler=wrong))

    def test_both_tables_end_with_what_was_counted(self) -> None:
        made = [access.make("rt", results())]
        for form in (report.text, report.markdown):
            self.assertTrue(access.table(made, form).endswith(access.NOTE))


if __name__ == "__main__":
    unittest.main()
