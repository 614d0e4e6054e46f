# SPDX-License-Identifier: MIT OR Apache-2.0
"""What strobe cannot do is refused, and not faked."""

import bluesky.plan_stubs as bps
import bluesky.preprocessors as bpp
import strobe
from ophyd_async.core import DetectorTrigger, TriggerInfo
from scan import Scan, fly


class Refused(Scan):
    def reason(self, info: TriggerInfo, **words) -> str:
        error = self.refused(fly(self.detector(**words), info))
        self.assertEqual(self.files(), [])
        return error.reason

    def test_livetimes_and_means_are_not_what_a_row_is(self) -> None:
        for words, reason in (({"livetime": 0.1}, "livetime of 0.1 s"), ({"exposures_per_collection": 4}, "one value of 4 rows")):
            with self.subTest(words):
                self.assertIn(reason, self.reason(TriggerInfo(number_of_events=2, **words), internal="timer:1kHz", edge="soft"))

    def test_an_event_must_have_been_named(self) -> None:
        self.assertIn("the rate of the rows", self.reason(TriggerInfo(number_of_events=2)))
        self.assertIn("the event of the rows", self.reason(TriggerInfo(number_of_events=2, trigger=DetectorTrigger.EXTERNAL_EDGE)))

    def test_what_the_machine_does_not_have_is_said_when_it_is_prepared(self) -> None:
        ten = TriggerInfo(number_of_events=10)
        self.assertIn("no such channel", self.reason(ten, read=["sim.none"], internal="timer:1kHz"))
        self.assertIn("no such event", self.reason(TriggerInfo(number_of_events=2, trigger=DetectorTrigger.EXTERNAL_EDGE),
                                                   edge="no.such"))
        self.assertNotEqual(self.reason(ten, internal="timer:fast"), "")

    def test_a_part_of_a_free_run_cannot_be_kicked_off(self) -> None:
        det = self.detector(internal="timer:1kHz")

        @bpp.stage_decorator([det])
        @bpp.run_decorator()
        def plan():
            yield from bps.prepare(det, TriggerInfo(number_of_events=10), wait=True)
            yield from bps.abs_set(det.events_to_kickoff, 5, wait=True)
            yield from bps.kickoff(det, wait=True)

        self.assertIn("5 of 10 events", self.refused(plan()).reason)

    def test_words_are_looked_at_when_the_detector_is_made(self) -> None:
        with self.assertRaisesRegex(strobe.Error, "on_loss is 'ignore'"):
            self.detector(on_loss="ignore")
        with self.assertRaisesRegex(strobe.Error, "no channels"):
            self.detector([])
        with self.assertRaisesRegex(strobe.Error, "no channels"):
            self.detector("sim.counter")
        with self.assertRaisesRegex(strobe.Error, "data key"):
            self.detector(["a.b_c", "a_b.c"])
