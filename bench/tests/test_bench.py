# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parts of the bench that can be tested without a guest."""

import dataclasses
import tempfile
import unittest
from pathlib import Path

from kit import build, figures, guest, listing, profile, report
from labkit import LabError

COUNTS = """\
window 0 1000
span 0 10 230 20 50
span 1 10 5000 500 500
at 401000 30 0
at ffffffff81000000 10 0
at ffffffff81000010 10 1
at ffffffff81000014 20 2
end 0
window 1 7
end 1
"""
SYMBOLS = """\
ffffffff80000000 D some_data
ffffffff81000000 t handler\t[strobe]
ffffffff81000100 T schedule
"""
# What a contestant could say: each test spoils one thing of it.
FIGURES = figures.Figures(
    total=2000.0, totals=[2000.0], body=figures.Body(200, 280), edges=10,
    readers={0: figures.Body(200, 200), 1: figures.Body(200, 280), 8: figures.Body(200, 280)},
    raised=400.0, threaded=3000.0, missed={100: 0, 200: 0, 500: 9}, clean=200,
    kinds={"fields": 2050.0, "signed": 2050.0, "foreign": 2200.0},
    programs={"empty": figures.Body(220, 300), "gate": figures.Body(260, 340)})


def contest(**strobe: object) -> report.Contest:
    return report.Contest("amd64", FIGURES, FIGURES, dataclasses.replace(FIGURES, **strobe))


def measured(instructions: int, spans: dict[int, profile.Span] | None = None, **said: int) -> guest.Measured:
    return guest.Measured({"rows": 0, "missed": 0, "lost": 0} | said, profile.Window(instructions, spans or {}))


class Profiles(unittest.TestCase):
    def setUp(self) -> None:
        self.windows = profile.read(COUNTS.splitlines())
        self.symbols = profile.Symbols(SYMBOLS)

    def test_windows_are_read_in_their_order(self) -> None:
        self.assertEqual([window.instructions for window in self.windows], [1000, 7])
        self.assertEqual(self.windows[0].spans[0], profile.Span(10, 230, 20, 50))
        self.assertEqual(self.windows[0].spans[0].mean, 23)
        self.assertEqual(self.windows[0].inside, {0xffffffff81000010: 1, 0xffffffff81000014: 2})

    def test_a_window_without_its_end_is_an_error(self) -> None:
        with self.assertRaises(LabError):
            profile.read(COUNTS.splitlines()[:-1])

    def test_instructions_are_added_up_by_function(self) -> None:
        self.assertEqual(self.symbols.by_function(self.windows[0].executions),
                         {profile.USER: 30, "handler [strobe]": 40})

    def test_data_is_no_function(self) -> None:
        self.assertNotIn("some_data", self.symbols.names)

    def test_a_module_has_its_own_functions_only(self) -> None:
        self.assertEqual(self.symbols.module("strobe"), {"handler": 0xffffffff81000000})

    def test_edges_are_what_is_executed_once_a_row_outside_the_marks(self) -> None:
        results = guest.Results({}, self.symbols)
        self.assertEqual(figures.edges(results, self.windows[0]), 1)

    def test_a_ranking_is_per_row(self) -> None:
        ranking = listing.ranking(self.symbols.by_function(self.windows[0].executions), 10)
        self.assertEqual(ranking.splitlines()[0].split(), ["4.00", "handler", "[strobe]"])


class Guests(unittest.TestCase):
    job = guest.Job("floor", "rt", [], [], [("one", "program 1"), ("", "rmmod x"), ("two", "program 2")])

    def test_a_command_without_a_name_makes_no_figure(self) -> None:
        self.assertEqual(guest.commands(self.job).splitlines(), [
            "set -e", "said=$(./program 1)", 'echo one "$said"', "rmmod x", "said=$(./program 2)", 'echo two "$said"'])

    def test_windows_go_to_the_commands_that_made_them(self) -> None:
        windows = profile.read(COUNTS.splitlines())
        answer = guest.match(self.job, "one rows 4 missed 0 lost 1\ntwo rows 5 missed 0 lost 0\n", windows)
        self.assertEqual(answer["one"].said, {"rows": 4, "missed": 0, "lost": 1})
        self.assertEqual(answer["two"].window.instructions, 7)

    def test_a_missing_line_or_window_is_an_error(self) -> None:
        windows = profile.read(COUNTS.splitlines())
        both = "one rows 4\ntwo rows 5\n"
        for printed, made in (("one rows 4\n", windows), (both, windows[:1]), ("two rows 5\none rows 4\n", windows)):
            with self.subTest(printed=printed, windows=len(made)), self.assertRaises(LabError):
                guest.match(self.job, printed, made)


class Measuring(unittest.TestCase):
    def results(self, **more: guest.Measured) -> guest.Results:
        row = {figures.BODY: profile.Span(10, 2000, 200, 200)}
        given = {"ruler": measured(0, {figures.LOOP: profile.Span(1, 2001, 2001, 2001),
                                       figures.ACCESS: profile.Span(1, 20, 20, 20)}),
                 "total.0": measured(30_000, row), "total.1": measured(10_000, row), "total.2": measured(20_000, row)}
        return guest.Results(given | {name.replace("_", "."): each for name, each in more.items()},
                             profile.Symbols(SYMBOLS))

    def make(self, results: guest.Results, marked: bool = True) -> figures.Figures:
        for each in results.figures.values():
            each.window.inside = {0xffffffff81000010: 200}
        return figures.make(results, marked)

    def test_the_total_is_the_median_of_the_windows(self) -> None:
        made = self.make(self.results())
        self.assertEqual(made.total, 2000)
        self.assertEqual(made.totals, [3000, 1000, 2000])

    def test_without_marks_rows_are_those_that_the_reader_got(self) -> None:
        plain = {name: measured(each.window.instructions, rows=5) for name, each in self.results().figures.items()
                 if name.startswith("total")}
        made = figures.make(guest.Results(self.results().figures | plain, profile.Symbols("")), marked=False)
        self.assertEqual((made.total, made.body), (4000, None))

    def test_a_plugin_that_counts_wrongly_is_noticed(self) -> None:
        wrong = measured(0, {figures.LOOP: profile.Span(1, 2001, 2001, 2001),
                             figures.ACCESS: profile.Span(1, 30, 30, 30)})
        with self.assertRaisesRegex(LabError, "30 instead of 20"):
            self.make(self.results(ruler=wrong))

    def test_a_loss_at_the_measured_rate_is_an_error(self) -> None:
        lossy = measured(10_000, {figures.BODY: profile.Span(10, 2000, 200, 200)}, lost=1)
        with self.assertRaisesRegex(LabError, "total.1"):
            self.make(self.results(total_1=lossy))

    def test_a_loss_at_another_rate_is_a_figure(self) -> None:
        made = self.make(self.results(rate_10=measured(1), rate_500=measured(1, missed=2, lost=1)))
        self.assertEqual((made.missed, made.clean), ({10: 0, 500: 3}, 10))

    def test_a_module_without_marks_is_an_error(self) -> None:
        with self.assertRaisesRegex(LabError, "STROBE_MARKS"):
            figures.make(guest.Results(self.results().figures | {f"total.{i}": measured(1, rows=1) for i in range(3)},
                                       profile.Symbols("")), marked=True)

    def test_an_interrupt_that_made_no_row_is_an_error(self) -> None:
        for spans in ({}, {figures.RAISE: profile.Span(figures.RAISES - 1, 1, 1, 1)}):
            with self.subTest(spans=spans), self.assertRaisesRegex(LabError, "interrupts were raised"):
                figures.raised(measured(1, spans))

    def test_the_clean_rate_ends_at_the_first_loss(self) -> None:
        self.assertEqual(figures.highest_clean({10: 0, 20: 1, 50: 0}), 10)
        self.assertEqual(figures.highest_clean({10: 1}), 0)


class Reports(unittest.TestCase):
    def verdicts(self, **strobe: object) -> dict[str, bool]:
        return {line.figure: line.met for line in report.lines([contest(**strobe)])}

    def test_all_targets_can_be_met(self) -> None:
        self.assertTrue(all(self.verdicts().values()))

    def test_each_target_can_be_missed(self) -> None:
        other = {0: figures.Body(200, 200), 1: figures.Body(200, 280)}
        for figure, spoilt in (("a row, all in all", {"total": 2201.0}),
                               ("hard handler", {"body": figures.Body(231, 300)}),
                               ("hard handler with 0 or 1 readers", {"readers": other | {1: figures.Body(201, 280)}}),
                               ("hard handler with 0 or 1 readers", {"readers": other | {0: figures.Body(200, 280)}}),
                               ("hard handler with 0, 1 or 8 readers",
                                {"readers": other | {8: figures.Body(200, 281)}}),
                               ("interrupt raised to row stored", {"raised": 521.0}),
                               ("highest rate without a loss", {"clean": 100})):
            with self.subTest(figure=figure, **spoilt):
                self.assertEqual([name for name, met in self.verdicts(**spoilt).items() if not met], [figure])

    def test_a_target_that_is_missed_stands_out(self) -> None:
        self.assertRegex(report.table([contest(clean=100)]), r"highest rate .* NO\n")

    def test_both_forms_have_the_same_cells(self) -> None:
        heads, rows = ("a", "b", "c"), [("x", "y", "1")]
        self.assertEqual(report.text(heads, rows).split(), ["a", "b", "c", "x", "y", "1"])
        self.assertEqual(report.markdown(heads, rows), "| a | b | c |\n| --- | --- | --: |\n| x | y | 1 |\n")

    def test_a_figure_without_a_rival_has_no_ratio(self) -> None:
        self.assertEqual([report.ratio(1, None), report.ratio(1, 0), report.ratio(3, 2)], ["-", "-", "1.50"])

    def test_losses_beyond_what_was_tried_are_left_open(self) -> None:
        (row,) = (row for row in report.rate_rows([contest()]) if row[0] == "rows lost at 10 kHz")
        self.assertEqual(row[2:], ("-", "-", "-"))

    def test_json_has_all_figures_and_the_verdict(self) -> None:
        made = report.as_json([contest(clean=100)], {"amd64": "Linux 6.12"})
        self.assertFalse(made["met"])
        self.assertEqual(made["contestants"]["amd64"]["strobe"]["clean"], 100)

    def test_a_document_keeps_what_is_around_the_table(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            document = Path(directory) / "d.md"
            begin, end = report.borders(report.BENCH)
            document.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
            self.assertTrue(report.write_into(document, "new\n"))
            self.assertEqual(document.read_text(), f"before\n{begin}\n\nnew\n\n{end}\nafter\n")
            self.assertFalse(report.write_into(document, "new\n"))
            document.write_text("no marks\n")
            with self.assertRaisesRegex(LabError, "no lines"):
                report.write_into(document, "new\n")


class Building(unittest.TestCase):
    def test_a_missing_compiler_of_boards_names_the_remedy(self) -> None:
        with self.assertRaisesRegex(LabError, "make build"):
            build.board(Path("/nowhere/strobe"))

    def test_a_command_that_fails_shows_what_it_said(self) -> None:
        with self.assertRaisesRegex(LabError, "(?s)failed:.*hello"):
            build.call(["sh", "-c", "echo hello; false"])

    def test_of_several_packages_one_version_is_read(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "packages").write_text("linux-image-6.12=6.12.1-1\nlinux-headers-6.12=6.12.1-1\n")
            self.assertEqual(build.version(Path(directory)), "6.12.1-1")


if __name__ == "__main__":
    unittest.main()
