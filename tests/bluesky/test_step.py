# SPDX-License-Identifier: MIT OR Apache-2.0
"""Step scans: a row for each point."""

import bluesky.plan_stubs as bps
import bluesky.plans as bp
import strobe
from bluesky.utils import RunEngineInterrupted
from ophyd_async.core import TriggerInfo, init_devices
from ophyd_async.sim import SimMotor
from scan import ENGINE, Documents, Scan


class Step(Scan):
    def rows(self) -> list[int]:
        """Of each file."""
        return [sum(len(block) for block in strobe.open(path)) for path in self.files()]

    def test_a_scan_has_a_row_at_each_point_all_in_one_file(self) -> None:
        with init_devices():
            motor = SimMotor(instant=True)
        det = self.detector()
        documents = Documents()
        ENGINE(bp.scan([det], motor, 1, 5, 5), documents)
        self.assertEqual([event["data"]["motor"] for event in documents.by_kind["event"]], [1, 2, 3, 4, 5])
        for found in documents.ranges("indices").values():
            self.assertEqual(found, [(place, place + 1) for place in range(5)])
        self.assertEqual(documents.ranges("seq_nums")["det-row"], [(place, place + 1) for place in range(1, 6)])
        self.assertEqual((self.rows(), det.summary.triggers, det.summary.missed), ([5], 5, 0))
        self.exact(det.summary)

    def test_a_point_may_have_several_rows(self) -> None:
        det = self.detector(internal="timer:1kHz", on_loss="warn")
        documents = Documents()

        def plan():
            yield from bps.prepare(det, TriggerInfo(collections_per_event=20), wait=True)
            yield from bps.open_run()
            for _ in range(3):
                yield from bps.trigger_and_read([det])
            yield from bps.close_run()
            yield from bps.unstage(det, wait=True)

        ENGINE(plan(), documents)
        self.assertEqual(self.rows(), [20] * 3)
        self.assertEqual(documents.ranges("seq_nums")["det-row"], [(1, 2), (2, 3), (3, 4)])

    def test_a_point_that_is_taken_again_has_the_row_that_was_made_last(self) -> None:
        det = self.detector()
        documents = Documents()
        again = []

        def per_shot(detectors):
            yield from bps.checkpoint()
            yield from bps.trigger(det, wait=True)
            if not again:
                # The row of this trigger is not read any more: the plan begins again at the checkpoint.
                again.append(True)
                yield from bps.pause()
            yield from bps.create("primary")
            yield from bps.read(det)
            yield from bps.save()

        with self.assertRaises(RunEngineInterrupted):
            ENGINE(bp.count([det], num=3, per_shot=per_shot), documents)
        ENGINE.resume()
        self.assertEqual(documents.exit_status, "success")
        self.assertEqual(documents.ranges("indices")["det-row"], [(1, 2), (2, 3), (3, 4)])
        self.assertEqual(documents.ranges("seq_nums")["det-row"], [(1, 2), (2, 3), (3, 4)])
        self.assertEqual(self.rows(), [4])
