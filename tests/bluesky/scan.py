# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests of plans share: a RunEngine, a folder, a plan, and its documents, each checked against event-model's schema."""

import faulthandler
import logging
import tempfile
import threading
import unittest
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import bluesky.plan_stubs as bps
import bluesky.preprocessors as bpp
import strobe
from bluesky import RunEngine
from bluesky.utils import FailedStatus
from daemon import AT_MOST_S
from event_model import DocumentNames, schema_validators
from ophyd_async.core import StaticPathProvider, TriggerInfo, UUIDFilenameProvider, init_devices
from strobe.bluesky import StrobeDetector

ENGINE = RunEngine({}, call_returns_result=True)
ENGINE.pause_msg = ""
# Plans that fail are what many tests are about.
logging.getLogger("bluesky").setLevel(logging.CRITICAL)
READ = ["sim.counter", "sim.sine", "sim.noise", "sim.ramp", "sim.latch", "clock.time", "clock.elapsed", "cpu.id", "cpu.cycles",
        "sim.counter"]


class Documents:
    """All documents of a plan, by kind; `first_rows` is called, in a thread, when the first rows are there."""

    def __init__(self, first_rows: Callable[[], object] | None = None) -> None:
        self.by_kind: dict[str, list[dict]] = defaultdict(list)
        self.first_rows = first_rows

    def __call__(self, kind: str, document: dict) -> None:
        schema_validators[DocumentNames[kind]].validate(document)
        if kind == "stream_datum" and not self.by_kind[kind] and self.first_rows:
            threading.Thread(target=self.first_rows).start()
        self.by_kind[kind].append(document)

    def ranges(self, what: str) -> dict[str, list[tuple[int, int]]]:
        """Of each data key, the ranges of its stream datums, in order."""
        keys = {resource["uid"]: resource["data_key"] for resource in self.by_kind["stream_resource"]}
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for datum in self.by_kind["stream_datum"]:
            found[keys[datum["stream_resource"]]].append((datum[what]["start"], datum[what]["stop"]))
        return found

    @property
    def exit_status(self) -> str:
        return self.by_kind["stop"][0]["exit_status"]


def fly(detector: StrobeDetector, *infos: TriggerInfo, then: Callable[[], object] = lambda: None, stock: bool = False):
    """A fly scan: a run of strobe for each trigger info; `then` is called when it has been kicked off."""
    @bpp.stage_decorator([detector])
    @bpp.run_decorator()
    def plan():
        for place, info in enumerate(infos):
            yield from bps.prepare(detector, info, wait=True)
            if place == 0:
                yield from bps.declare_stream(detector, name="main", collect=True)
            yield from bps.kickoff(detector, wait=True)
            then()
            if stock:
                yield from bps.collect_while_completing([detector], [detector], flush_period=0.2, stream_name="main")
            else:
                yield from collecting(detector)
    return plan()


def collecting(detector: StrobeDetector):
    """As docs/how-to/fly-scan.md says."""
    status = yield from bps.complete(detector)
    done = False
    while not done:
        done = status.done
        yield from bps.checkpoint()
        yield from bps.collect(detector, name="main")
        yield from bps.sleep(0.2)


class Scan(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="strobe-bluesky-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        # A plan that does not end ends the program, and says where it is.
        faulthandler.dump_traceback_later(AT_MOST_S, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def detector(self, read: list[str] = READ, **words) -> StrobeDetector:
        paths = words.pop("path_provider", StaticPathProvider(UUIDFilenameProvider(), self.folder))
        with init_devices():
            det = StrobeDetector(paths, read, engine="user", **words)
        return det

    def files(self) -> list[Path]:
        """Those of the recordings, the oldest one first."""
        return sorted(self.folder.glob("*.h5"), key=lambda path: path.stat().st_mtime_ns)

    def exact(self, summary: strobe.Summary) -> None:
        """triggers = rows + missed + skipped, and rows given + lost = rows of the run."""
        self.assertEqual(summary.triggers, summary.rows + summary.missed + summary.skipped)
        (sink,) = summary.sinks
        self.assertEqual(sink["rows"] + sink["lost"], summary.rows)

    def refused(self, plan, documents: Documents | None = None) -> strobe.Error:
        """The error of strobe that the plan fails with."""
        with self.assertRaises(FailedStatus) as raised:
            ENGINE(plan, documents or Documents())
        error = raised.exception.__cause__
        self.assertIsInstance(error, strobe.Error)
        self.assertTrue(error.object and error.reason and error.remedy, error)
        return error
