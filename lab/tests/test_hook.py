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

    def beyond(self, scene: str, seconds: int = 2, **other: object) -> list[str]:
        """What is said of a scene whose every event has the figures of its targets, of which the first has another."""
        runs = []
        for event, (mean, most) in self.hook.LATENCY[scene, "rt"].items():
            latency = FIGURES | {"mean": 1000 * mean, "max": 1000 * most}
            reads = {key: FIGURES | {"mean": 1000 * self.hook.READ[f"{what}, mean us"]}
                     for what, key in (("register", "channel_ns"), ("clock.time", "clock_ns"))}
            delays = run()["delays"] | reads | {"interrupt_ns": None if event.startswith("timer:") else latency}
            rows = self.hook.SCENES[scene].rate * seconds
            runs.append(run(event=event, rows=rows, delays=delays, late_ns=latency if event.startswith("timer:") else None))
        for key, value in other.items():
            runs[0] |= {key: value(runs[0]) if callable(value) else value}
        return self.hook.beyond(scene, "rt", seconds, runs)

    def test_each_figure_has_a_target_that_can_fail(self) -> None:
        for scene in self.hook.SCENES:
            with self.subTest(scene):
                self.assertEqual(self.beyond(scene), [])
                (fault,) = self.beyond(scene, rows=self.hook.SCENES[scene].rate)
                self.assertRegex(fault, r"rows in 2 s, the target is at least 99% of \d+ Hz")
        for delay, key in (("interrupt_ns", "mean"), ("interrupt_ns", "max"), ("channel_ns", "mean"), ("clock_ns", "mean")):
            with self.subTest(delay=delay, key=key):
                (fault,) = self.beyond("board", delays=lambda of: of["delays"] | {
                    delay: of["delays"][delay] | {key: of["delays"][delay][key] + 10}})
                self.assertIn("the target is at most", fault)
        self.assertEqual(len(self.beyond("board", delays=lambda of: of["delays"] | {"interrupt_ns": None})), 2)
        self.assertEqual(len(self.beyond("timer", late_ns=None)), 2)

    def test_every_event_of_a_scene_has_targets_on_both_kernels(self) -> None:
        for name, scene in self.hook.SCENES.items():
            for kernel in ("amd64", "rt"):
                self.assertEqual(sorted(self.hook.LATENCY[name, kernel]), sorted(scene.events.split()), name)

    def test_a_board_triggers_two_slaves(self) -> None:
        master, *others = self.hook.SCENES["correlated"].cards
        self.assertEqual(master, "lab-counter,id=first")
        self.assertEqual(others.count("lab-counter,master=first"), 2)

    def test_there_is_a_line_for_each_delay_that_is_known(self) -> None:
        lines = [line.split() for line in self.hook.rows("rt", "real", run())]
        self.assertEqual([line[-6] for line in lines], ["latency", "clock"])
        self.assertEqual(lines[0], "rt real counter.eoc 10 0 0 0 latency 1.00 1.50 2.00 0.01 -".split())


if __name__ == "__main__":
    unittest.main()
