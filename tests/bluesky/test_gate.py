# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each gate is a point: EXTERNAL_LEVEL of a trigger info."""

import os
import warnings

import h5py
import numpy as np
import strobe
from daemon import wait_for
from ophyd_async.core import DetectorTrigger, TriggerInfo
from scan import ENGINE, Documents, Scan, fly

#: Of the simulator: it is above 0 V in 31 rows of 64.
GATE = "sim.sine > 0 V"


def gates(number: int, **words) -> TriggerInfo:
    return TriggerInfo(trigger=DetectorTrigger.EXTERNAL_LEVEL, number_of_events=number, **words)


class Gate(Scan):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext(warnings.catch_warnings())
        # A busy machine misses triggers, and these tests are not about that.
        warnings.simplefilter("ignore", strobe.Lost)

    def columns(self) -> dict[str, np.ndarray]:
        (path,) = self.files()
        with h5py.File(path) as file:
            return {name: data[:] for name, data in file["entry/data"].items() if isinstance(data, h5py.Dataset)}

    def test_each_gate_is_a_point_that_says_how_many_samples_it_has(self) -> None:
        samples = f"samples = sum((sim.counter & 0xffff) * ({GATE}) since emit)"
        det = self.detector(["sim.sine", "sim.counter"], internal="timer:1kHz", gate=GATE, derive=[samples], on_loss="warn")
        documents = Documents()
        ENGINE(fly(det, gates(10)), documents)
        self.assertEqual(documents.exit_status, "success")
        ranges = documents.ranges("indices")
        self.assertEqual({key: found[-1][1] for key, found in ranges.items()}, dict.fromkeys(ranges, 10))
        (descriptor,) = documents.by_kind["descriptor"]
        self.assertLessEqual({"det-gate", "det-samples"}, set(descriptor["data_keys"]))
        self.assertEqual(descriptor["configuration"]["det"]["data"]["det-gate_condition"], GATE)
        data = self.columns()
        # A point is made by the first sample that finds the gate closed.
        opened = [64 * number + 1 for number in range(10)]
        self.assertEqual(data["sim.counter"].tolist(), [begin + 31 for begin in opened])
        self.assertEqual(data["gate"].tolist(), [31] * 10)
        self.assertEqual(data["samples"].tolist(), [sum(range(begin, begin + 31)) for begin in opened])
        self.exact(det.summary)
        self.assertEqual((det.summary.rows, det.summary.skipped), (10, 10 * 64 - 31 - 10))

    def test_gates_from_outside_are_points_however_long_they_are(self) -> None:
        place = os.open(self.folder / "word", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, place)
        os.pwrite(place, b"0\n", 0)
        (self.folder / "board.toml").write_text(f'[board]\nname = "b"\n[channel.word]\nfile = "{self.folder}/word"\n')
        det = self.detector(["b.word"], internal="timer:1kHz", gate="b.word", board=self.folder / "board.toml", on_loss="warn")
        lengths = [3, 20, 7]

        def after(triggers: int) -> None:
            end = det.run.account.triggers + triggers
            wait_for(lambda: det.run.account.triggers >= end, "triggers")

        def open_and_close() -> None:
            for number, length in enumerate(lengths):
                os.pwrite(place, b"1\n", 0)
                after(length)
                os.pwrite(place, b"0\n", 0)
                wait_for(lambda: det.run.account.rows == number + 1, "the row of a gate")

        ENGINE(fly(det, gates(3), then=open_and_close), Documents())
        found = self.columns()["gate"]
        self.assertEqual(len(found), 3)
        # One more at most is the one that triggered while it was written.
        for length, samples in zip(lengths, found):
            self.assertGreaterEqual(samples + det.summary.missed, length - 1)

    def test_an_event_may_have_several_gates(self) -> None:
        det = self.detector(["sim.sine"], internal="timer:1kHz", gate=GATE, on_loss="warn")
        documents = Documents()
        ENGINE(fly(det, gates(2, collections_per_event=3)), documents)
        self.assertEqual(documents.ranges("indices")["det-gate"][-1][1], 2)
        self.assertEqual(self.columns()["gate"].tolist(), [31] * 6)

    def test_a_detector_with_a_gate_runs_freely_too(self) -> None:
        det = self.detector(["sim.sine"], internal="timer:1kHz", gate=GATE, on_loss="warn")
        ENGINE(fly(det, TriggerInfo(number_of_events=70)), Documents())
        self.assertEqual((det.summary.rows, det.summary.skipped), (70, 0))

    def test_what_is_no_gate_is_refused(self) -> None:
        for words, object, reason in (({}, "trigger EXTERNAL_LEVEL", "the gate is not given"),
                                      ({"gate": GATE, "internal": None}, "trigger EXTERNAL_LEVEL", "how often the gate is looked at"),
                                      ({"gate": GATE, "keep": ["sim.sine > 0.5 V"]}, "keep", "the gate decides"),
                                      ({"gate": GATE, "every": 2}, "every", "the gate decides")):
            with self.subTest(words):
                words = {"internal": "timer:1kHz", **words}
                error = self.refused(fly(self.detector(["sim.sine"], **words), gates(2)))
                self.assertEqual(error.object, object)
                self.assertIn(reason, error.reason)
        error = self.refused(fly(self.detector(["sim.counter"], internal="timer:1kHz", gate=GATE), gates(2)))
        self.assertIn("sim.sine", str(error))
        self.assertEqual(self.files(), [])
