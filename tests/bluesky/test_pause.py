# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plan that is paused pauses the run, and goes on where it was."""

import threading

import bluesky.plan_stubs as bps
import bluesky.preprocessors as bpp
import numpy as np
import strobe
from bluesky.utils import FailedStatus, RunEngineInterrupted
from daemon import Daemon, wait_for
from ophyd_async.core import DetectorTrigger, TriggerInfo
from scan import ENGINE, Documents, Scan, collecting, fly

FIRST_AFTER_A_PAUSE = 1


class Pause(Scan):
    def tearDown(self) -> None:
        # A test that failed is no reason for the next one to fail.
        if ENGINE.state == "paused":
            ENGINE.abort()

    def paused(self, det, *, info: TriggerInfo, **words) -> Documents:
        """The documents so far of a plan that was paused after its first rows."""
        documents = Documents(lambda: ENGINE.request_pause(defer=True))
        with self.assertRaises(RunEngineInterrupted):
            ENGINE(fly(det, info, **words), documents)
        self.assertEqual((ENGINE.state, det.run.state), ("paused", "paused"))
        return documents

    def test_no_trigger_counts_during_a_pause_and_the_plan_then_gets_the_rest(self) -> None:
        det = self.detector(edge="soft")
        armed = TriggerInfo(trigger=DetectorTrigger.EXTERNAL_EDGE, number_of_events=50)
        documents = self.paused(det, info=armed, then=lambda: det.run.trigger(20))
        with self.assertRaises(strobe.Error):
            det.run.trigger(5)
        # Who waits with a time-out hears of it again and again.
        heard = []
        det.rows.subscribe_reading(heard.append)
        wait_for(lambda: len(heard) > 5, "rows are told again")
        det.rows.clear_sub(heard.append)
        self.assertEqual({next(iter(said.values()))["value"] for said in heard}, {20})
        rest = threading.Thread(target=self.trigger_again, args=(det, 30))
        rest.start()
        ENGINE.resume()
        rest.join()
        self.whole(det, documents, 50)

    def test_a_free_run_of_a_daemon_pauses_too(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        server = strobe.connect(daemon.url)
        det = self.detector(machine=server, internal="timer:1kHz", on_loss="warn")
        documents = Documents()

        @bpp.stage_decorator([det])
        @bpp.run_decorator()
        def plan():
            yield from bps.prepare(det, TriggerInfo(number_of_events=0), wait=True)
            yield from bps.declare_stream(det, name="main", collect=True)
            yield from bps.kickoff(det, wait=True)
            yield from rows(100)
            yield from bps.deferred_pause()
            yield from bps.checkpoint()
            yield from rows(det.run.account.rows + 100)
            yield from collecting(det)

        def rows(count: int):
            while det.run.account.rows < count:
                yield from bps.sleep(0.05)

        with self.assertRaises(RunEngineInterrupted):
            ENGINE(plan(), documents)
        self.assertEqual((ENGINE.state, det.run.state), ("paused", "paused"))
        before = det.run.account
        self.assertEqual(det.run.account, before)
        ENGINE.resume()
        self.assertGreaterEqual(det.summary.rows, before.rows + 100)
        self.whole(det, documents, det.summary.rows)

    def trigger_again(self, det, count: int) -> None:
        wait_for(lambda: det.run.state == "running", "the run goes on")
        det.run.trigger(count)

    def whole(self, det, documents: Documents, rows: int) -> None:
        self.assertEqual(documents.exit_status, "success")
        self.exact(det.summary)
        (path,) = self.files()
        recorded = np.concatenate([block.array for block in strobe.open(path)])
        self.assertEqual(recorded["row"].tolist(), list(range(rows)))
        self.assertEqual((recorded["status"][1:] & FIRST_AFTER_A_PAUSE).sum(), 1)
        ranges = documents.ranges("indices")
        self.assertEqual(ranges["det-row"][-1][1], rows)
        self.assertTrue(all(found == ranges["det-row"] for found in ranges.values()))

    def test_a_plan_that_takes_its_interrupted_wait_for_done_fails(self) -> None:
        det = self.detector(edge="soft")
        armed = TriggerInfo(trigger=DetectorTrigger.EXTERNAL_EDGE, number_of_events=50)

        def pause_in_wait() -> None:
            det.run.trigger(20)
            ENGINE.waiting_hook = lambda statuses: statuses and threading.Thread(target=ENGINE.request_pause).start()

        self.addCleanup(setattr, ENGINE, "waiting_hook", None)
        with self.assertRaises(RunEngineInterrupted):
            ENGINE(fly(det, armed, then=pause_in_wait, stock=True), Documents())
        ENGINE.waiting_hook = None
        with self.assertRaises(FailedStatus) as raised:
            ENGINE.resume()
        self.assertIn("after a pause its plan has ended with 20 of 50 rows", str(raised.exception.__cause__))

    def test_a_plan_that_is_aborted_in_its_pause_leaves_a_whole_file(self) -> None:
        det = self.detector(internal="timer:1kHz", on_loss="warn")
        documents = self.paused(det, info=TriggerInfo(number_of_events=100_000))
        ENGINE.abort()
        self.assertEqual(documents.exit_status, "abort")
        self.exact(det.summary)
        (path,) = self.files()
        recorded = strobe.open(path)
        self.assertEqual(sum(len(block) for block in recorded), det.summary.sinks[0]["rows"])
