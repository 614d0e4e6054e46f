# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fly scans: their documents, and their data as Tiled reads them."""

import tempfile
import warnings
from pathlib import Path

import h5py
import numpy as np
import points
import strobe
from bluesky_tiled_plugins import TiledWriter
from daemon import Daemon, wait_for
from ophyd_async.core import DetectorTrigger, StaticFilenameProvider, StaticPathProvider, TriggerInfo
from scan import ENGINE, READ, Documents, Scan, fly
from tiled.catalog import in_memory
from tiled.client import Context, from_context
from tiled.server.app import build_app

# For Tiled each channel is an array of its own, which takes longer than to record it.
FEW = READ[:2]
KEYS = ["sim_counter", "sim_sine", "sim_noise", "sim_ramp", "sim_latch", "clock_time", "clock_elapsed", "cpu_id", "cpu_cycles",
        "sim_counter_2"]


def rows_of(run: strobe.Run) -> np.ndarray:
    return np.concatenate([block.array for block in run])


class Fly(Scan):
    @classmethod
    def setUpClass(cls) -> None:
        # One Tiled for all: it takes longer to start than a scan.
        cls.place = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="strobe-tiled-")))
        catalogue = in_memory(readable_storage=[str(cls.place)], writable_storage=str(cls.place / "own"))
        cls.tiled = from_context(cls.enterClassContext(Context.from_app(build_app(catalogue))))

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(tempfile.mkdtemp(dir=self.place))
        self.enterContext(warnings.catch_warnings())
        # A busy machine misses triggers, and these tests are not about that.
        warnings.simplefilter("ignore", strobe.Lost)

    def flown(self, detector, *infos: TriggerInfo, **words):
        """The documents, and the stream as Tiled has it."""
        documents = Documents()
        token = ENGINE.subscribe(TiledWriter(self.tiled))
        try:
            ENGINE(fly(detector, *infos, **words), documents)
        finally:
            ENGINE.unsubscribe(token)
        self.assertEqual(documents.exit_status, "success")
        return documents, self.tiled.values().last()["main"]

    def same(self, stream, rows: np.ndarray) -> None:
        """Value by value."""
        names = [name for name in rows.dtype.names if name in ("row", "trigger", "time", "status") or "." in name]
        for name, key in zip(names, ["row", "trigger", "time", "status", *KEYS[:len(names) - 4]], strict=True):
            found = stream[f"det-{key}"].read()
            self.assertEqual(found.dtype, rows.dtype[name], key)
            np.testing.assert_array_equal(found.ravel(), rows[name], key)

    def test_3000_points_of_10_channels_are_the_rows_that_the_daemon_has(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        server = strobe.connect(daemon.url)
        # A file that is made slowly loses no row.
        det = self.detector(machine=server, internal="timer:1kHz", on_loss="warn", ring=4096)
        documents, stream = self.flown(det, TriggerInfo(number_of_events=3000), stock=True)
        (run,) = server.runs.values()
        rows = rows_of(run)
        self.assertEqual(rows["row"].tolist(), list(range(3000)))
        self.same(stream, rows)
        self.exact(det.summary)
        self.assertEqual((det.summary.rows, det.summary.lost, det.summary.missed), (3000, 0, run.account.missed))
        # All data keys grow together, without a gap.
        ranges = documents.ranges("seq_nums")
        self.assertEqual(len(ranges), len(READ) + 5)
        for found in ranges.values():
            self.assertEqual(found, ranges["det-row"])
        ends = [stop for _, stop in found]
        self.assertEqual([start for start, _ in found], [1, *ends[:-1]])
        self.assertEqual(ends[-1], 3001)

    def test_the_points_are_those_that_hdfpanda_brings(self) -> None:
        det = self.detector(list(points.CHANNELS), internal="timer:1kHz", on_loss="warn", ring=4096)
        self.flown(det, TriggerInfo(number_of_events=points.ROWS))
        (path,) = self.files()
        blocks = list(strobe.open(path))
        values = {channel: np.concatenate([block[channel] for block in blocks]) for channel in points.CHANNELS}
        self.assertEqual(points.digest(values), points.DIGEST)

    def test_documents_say_what_the_numbers_are(self) -> None:
        det = self.detector(internal="timer:1kHz", on_loss="warn")
        self.assertEqual(det.hints, {"fields": [f"det-{key}" for key in KEYS[:-1]]})
        documents, stream = self.flown(det, TriggerInfo(number_of_events=50))
        (descriptor,) = documents.by_kind["descriptor"]
        keys = descriptor["data_keys"]
        time, sine, failed = keys["det-clock_time"], keys["det-sim_sine"], keys["det-failed"]
        self.assertEqual((time["dtype"], time["dtype_numpy"], time["shape"], time["units"]), ("number", "<u8", [], "ns"))
        self.assertEqual((failed["dtype"], failed["dtype_numpy"], failed["shape"]), ("array", "|u1", [len(READ)]))
        # What was read is no volt yet.
        self.assertEqual((sine["dtype_numpy"], sine["units"], sine["scaled_units"]), ("<i8", "", "V"))
        (path,) = self.files()
        volts = np.concatenate([block["sim.sine"] for block in strobe.open(path)])
        np.testing.assert_array_equal(stream["det-sim_sine"].read() * sine["scale"] + sine["offset"], volts)
        self.assertEqual(descriptor["configuration"]["det"]["data"], {"det-event": "timer:1kHz", "det-engine": "user",
                                                                        "det-gate_condition": ""})
        self.assertEqual({resource["mimetype"] for resource in documents.by_kind["stream_resource"]}, {"application/x-hdf5"})
        datasets = {resource["data_key"]: resource["parameters"]["dataset"] for resource in documents.by_kind["stream_resource"]}
        names = [*READ[:-1], "sim.counter_2", "row", "trigger", "time", "status", "failed"]
        self.assertEqual(datasets, {f"det-{name.replace('.', '_')}": f"/entry/data/{name}" for name in names})
        with h5py.File(path) as file:
            for resource in documents.by_kind["stream_resource"]:
                dataset = file[resource["parameters"]["dataset"]]
                self.assertEqual(resource["uri"], f"file://localhost{path}")
                self.assertEqual(tuple(resource["parameters"]["chunk_shape"]), dataset.chunks)
                self.assertEqual(dataset.dtype, np.dtype(keys[resource["data_key"]]["dtype_numpy"]))

    def test_each_trigger_of_an_event_is_a_point(self) -> None:
        det = self.detector(edge="soft")
        # The first points are told while the run goes on: the others come because of that.
        documents = Documents(lambda: det.run.trigger(200))
        armed = TriggerInfo(trigger=DetectorTrigger.EXTERNAL_EDGE, number_of_events=300)
        ENGINE(fly(det, armed, then=lambda: det.run.trigger(100)), documents)
        ranges = documents.ranges("indices")["det-trigger"]
        self.assertLessEqual(ranges[0][1], 100)
        self.assertEqual(ranges[-1][1], 300)
        self.exact(det.summary)
        self.assertEqual((det.summary.triggers, det.summary.rows), (300, 300))

    def test_a_stage_has_several_runs_each_in_a_file(self) -> None:
        det = self.detector(FEW, internal="timer:1kHz", on_loss="warn")
        documents, stream = self.flown(det, TriggerInfo(number_of_events=200), TriggerInfo(number_of_events=100, deadtime=0.002))
        files = [strobe.open(path) for path in self.files()]
        self.assertEqual([file.info.period_ns for file in files], [1_000_000, 2_000_000])
        self.same(stream, np.concatenate([rows_of(file) for file in files]))
        self.assertEqual(documents.ranges("seq_nums")["det-row"][-1][1], 301)

    def test_an_event_may_have_several_rows(self) -> None:
        det = self.detector(FEW, internal="timer:1kHz", on_loss="warn")
        documents, stream = self.flown(det, TriggerInfo(number_of_events=40, collections_per_event=5))
        (path,) = self.files()
        self.assertEqual(stream["det-sim_sine"].shape, (40, 5))
        self.assertEqual(stream["det-failed"].shape, (40, 5, len(FEW)))
        self.same(stream, rows_of(strobe.open(path)))

    def test_without_a_number_of_points_it_goes_on_until_it_is_completed(self) -> None:
        det = self.detector(FEW, internal="timer:1kHz", on_loss="warn")
        documents, stream = self.flown(det, TriggerInfo(number_of_events=0))
        (path,) = self.files()
        rows = rows_of(strobe.open(path))
        self.same(stream, rows)
        self.exact(det.summary)
        self.assertEqual(det.summary.rows, len(rows))

    def test_a_value_that_failed_is_marked(self) -> None:
        (self.folder / "word").write_text("7\n")
        (self.folder / "board.toml").write_text(f'[board]\nname = "b"\n[channel.word]\nfile = "{self.folder}/word"\n')
        det = self.detector(["b.word", "sim.counter"], edge="soft", board=self.folder / "board.toml")

        def trigger() -> None:
            det.run.trigger()
            wait_for(lambda: det.run.account.rows, "the first row")
            (self.folder / "word").write_text("no number\n")
            det.run.trigger()

        token = ENGINE.subscribe(TiledWriter(self.tiled))
        self.addCleanup(ENGINE.unsubscribe, token)
        armed = TriggerInfo(trigger=DetectorTrigger.EXTERNAL_EDGE, number_of_events=2)
        ENGINE(fly(det, armed, then=trigger), Documents())
        stream = self.tiled.values().last()["main"]
        np.testing.assert_array_equal(stream["det-failed"].read(), [[0, 0], [1, 0]])
        self.assertEqual(stream["det-b_word"].read()[0], 7)
        self.assertEqual(det.summary.errors, 1)

    def test_folders_are_made_as_far_as_the_path_provider_says(self) -> None:
        def paths(depth: int) -> StaticPathProvider:
            return StaticPathProvider(StaticFilenameProvider("{scan} 1"), self.folder / "day" / "one", create_dir_depth=depth)

        armed = TriggerInfo(number_of_events=3)
        for depth in (0, -1):
            self.assertIn("does not exist", self.refused(fly(self.detector(internal="timer:1kHz", path_provider=paths(depth)),
                                                             armed)).reason)
        det = self.detector(FEW, internal="timer:1kHz", path_provider=paths(-2), on_loss="warn")
        documents, stream = self.flown(det, armed)
        self.assertEqual([path.name for path in (self.folder / "day/one").iterdir()], ["{scan} 1.h5"])
        self.assertEqual(stream["det-row"].read().tolist(), [0, 1, 2])
        # The name is in use now.
        error = self.refused(fly(det, armed))
        self.assertEqual((Path(error.object.removeprefix("sink ")).suffix, error.reason), (".h5", "the file exists"))
