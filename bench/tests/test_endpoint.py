# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of rpmsg endpoints, without a guest."""

import unittest

from kit import endpoint, guest, overview, profile, report
from labkit import LabError

from .test_access import RULER

LEAST = {"node": {"create": 50_000, "open": 6000, "destroy": 40_000, "close": 3000}, "file": {"create": 3000, "destroy": 1000, "close": 950}}


def spans(way: str, count: int = endpoint.COUNT) -> dict[int, profile.Span]:
    return {endpoint.STEPS[step]: profile.Span(count, least * count, least, 2 * least) for step, least in LEAST[way].items()}


def results(**other: dict[int, profile.Span]) -> guest.Results:
    ways = {way: guest.Measured({"endpoints": endpoint.COUNT}, profile.Window(1, other.get(way, spans(way)))) for way in LEAST}
    return guest.Results({"ruler": RULER} | ways, profile.Symbols(""))


class Endpoint(unittest.TestCase):
    def test_a_kernel_has_a_row_for_each_step_and_one_for_all(self) -> None:
        rows = endpoint.rows([endpoint.make("amd64", results())])
        self.assertEqual([row[0] for row in rows], [*endpoint.STEPS, "all"])
        self.assertEqual(rows[1], ("open", "amd64", "6000", "-", "-", "-", "-"))
        self.assertEqual(rows[-1], ("all", "amd64", "99000", "4950", "20.00", "<= 6600", "yes"))

    def test_only_a_kernel_with_a_target_can_miss_it(self) -> None:
        slow = {number: profile.Span(span.count, span.total, 3 * span.least, span.most) for number, span in spans("file").items()}
        made = [endpoint.make(kernel, results(file=slow)) for kernel in ("amd64", "rt")]
        self.assertEqual([line.met for line in overview.of_endpoints(made)], [False, None])
        self.assertEqual([row[-1] for row in endpoint.rows(made) if row[0] == "all"], ["NO", "-"])

    def test_a_step_that_was_not_counted_is_an_error(self) -> None:
        few = spans("node", endpoint.COUNT - 1)
        with self.assertRaisesRegex(LabError, "node: create: 999 were counted"):
            endpoint.make("rt", results(node=few))
        with self.assertRaisesRegex(LabError, "file: these steps were counted"):
            endpoint.make("rt", results(file=spans("node")))

    def test_both_tables_end_with_what_was_counted(self) -> None:
        made = [endpoint.make("rt", results())]
        for form in (report.text, report.markdown):
            self.assertTrue(endpoint.table(made, form).endswith(endpoint.NOTE))
