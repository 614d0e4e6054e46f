# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/cases/hook makes of what a guest has measured."""

import unittest

from .test_parts import program

FIGURES = {"min": 1000, "mean": 1500.5, "max": 2000, "sd": 10.25, "p50": 1500, "p99": None, "p999": None}


def run(**other: object) -> dict:
    delays = {"interrupt_ns": FIGURES, "channel_ns": None, "clock_ns": FIGURES, "board": {"events": 9, "triggers": 9}}
    return {"event": "counter.eoc", "engine": "kernel", "rows": 10, "missed": 0, "missed_by": {"overrun": 0, "source": 0}, "lost": 0, "errors": 0,
            "end": "complete", "late_ns": None, "delays": delays} | other


class Hook(unittest.TestCase):
    def setUp(self) -> None:
        self.hook = program("cases/hook")

    def faults(self, way: str = "icount", **other: object) -> list[str]:
        return self.hook.check(way, [run(**other)])

    def test_what_must_be_can_fail(self) -> None:
        self.assertEqual(self.faults(), [])
        self.assertTrue(self.hook.check("real", []))
        unknown = run()["delays"] | {"board": None}
        for other in ({"missed": 1}, {"errors": 1}, {"end": "stopped"}, {"lost": 1}, {"delays": unknown},
                      {"missed": 1, "missed_by": {"overrun": 1}},
                      {"delays": unknown | {"board": {"events": 10, "triggers": 9}}}):
            with self.subTest(**other):
                self.assertTrue(self.faults(**other))

    def test_in_real_time_what_is_counted_with_its_cause_is_no_fault(self) -> None:
        self.assertEqual(self.faults("real", missed=3, missed_by={"overrun": 2, "source": 1}), [])
        self.assertTrue(self.faults("real", missed=3, missed_by={"overrun": 2}))

    def test_only_the_event_at_which_the_user_engine_was_told_to_end_may_be_missed(self) -> None:
        once = {"engine": "user", "missed": 1, "missed_by": {"overrun": 0, "source": 1}}
        self.assertEqual(self.faults(**once), [])
        between = run()["delays"] | {"board": {"events": 10, "triggers": 10}}
        for other in ({"engine": "kernel"}, {"missed": 2, "missed_by": {"source": 2}}, {"delays": between},
                      {"missed_by": {"overrun": 1, "source": 0}}):
            with self.subTest(**other):
                self.assertTrue(self.faults(**once | other))

    def test_a_timer_has_no_board_that_counts(self) -> None:
        self.assertEqual(self.faults(event="timer:5kHz", delays=run()["delays"] | {"board": None}), [])

    def test_there_is_a_line_for_each_delay_that_is_known(self) -> None:
        lines = [line.split() for line in self.hook.rows("rt", "real", run())]
        self.assertEqual([line[-6] for line in lines], ["latency", "clock"])
        self.assertEqual(lines[0], "rt real counter.eoc 10 0 0 0 latency 1.00 1.50 2.00 0.01 -".split())


if __name__ == "__main__":
    unittest.main()
