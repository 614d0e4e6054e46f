# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plan whose rows are not all there fails, or warns: it is never silent."""

import signal
import time
import warnings

import strobe
from daemon import Daemon, wait_for
from ophyd_async.core import DetectorTrigger, TriggerInfo
from scan import ENGINE, Documents, Scan, fly

LONG = TriggerInfo(number_of_events=1_000_000)


class Loss(Scan):
    def daemon(self) -> tuple[Daemon, strobe.Machine]:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        return daemon, strobe.connect(daemon.url)

    def warned(self, plan, documents: Documents) -> list[str]:
        """What is warned of."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ENGINE(plan, documents)
        self.assertEqual(documents.exit_status, "success")
        return [str(warning.message) for warning in said if issubclass(warning.category, strobe.Lost)]

    def stand_still(self, daemon: Daemon) -> None:
        """Triggers are missed meanwhile."""
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        daemon.process.send_signal(signal.SIGCONT)

    def miss(self, det, daemon: Daemon) -> None:
        """Some triggers of a run that has rows."""
        wait_for(lambda: det.run.account.rows, "rows")
        self.stand_still(daemon)
        wait_for(lambda: det.run.account.missed, "missed triggers")

    def test_missed_triggers_end_the_run_and_the_plan_fails(self) -> None:
        daemon, server = self.daemon()
        det = self.detector(machine=server, internal="timer:1kHz")
        documents = Documents(lambda: self.stand_still(daemon))
        error = self.refused(fly(det, LONG), documents)
        self.assertIn("triggers missed", error.reason)
        self.assertEqual(documents.exit_status, "fail")
        self.assertGreater(det.summary.missed, 0)
        self.exact(det.summary)
        (path,) = self.files()
        self.assertEqual(sum(len(block) for block in strobe.open(path)), det.summary.rows)

    def test_missed_triggers_are_warned_of_if_that_is_wanted(self) -> None:
        daemon, server = self.daemon()
        det = self.detector(machine=server, internal="timer:1kHz", on_loss="warn")
        documents = Documents()
        (said,) = self.warned(fly(det, TriggerInfo(number_of_events=0), then=lambda: self.miss(det, daemon)), documents)
        self.assertIn(f"{det.summary.missed} triggers missed", said)
        self.assertGreater(det.summary.missed, 0)
        self.exact(det.summary)
        self.assertEqual(documents.ranges("indices")["det-row"][-1][1], det.summary.rows)

    def test_rows_that_the_file_has_lost_make_a_plan_fail_or_warn(self) -> None:
        words = {"internal": "timer:50kHz", "ring": 16}
        asked = TriggerInfo(number_of_events=30_000)
        error = self.refused(fly(self.detector(**words), asked))
        self.assertRegex(error.reason, "missed and [0-9]+ rows lost")
        det = self.detector(**words, on_loss="warn")
        documents = Documents()
        (said,) = self.warned(fly(det, asked), documents)
        self.exact(det.summary)
        (sink,) = det.summary.sinks
        self.assertGreater(sink["lost"], 0)
        self.assertIn(f"{sink['lost']} rows lost", said)
        # What is not there is in no document.
        self.assertEqual(documents.ranges("indices")["det-row"][-1][1], sink["rows"])

    def test_a_daemon_that_is_killed_makes_the_plan_fail(self) -> None:
        daemon, server = self.daemon()
        det = self.detector(machine=server, internal="timer:1kHz", on_loss="warn")
        documents = Documents(daemon.process.kill)
        self.refused(fly(det, LONG), documents)
        self.assertEqual(documents.exit_status, "fail")
        # What was there is there.
        (path,) = self.files()
        rows = documents.ranges("indices")["det-row"][-1][1]
        self.assertGreater(rows, 0)
        blocks = strobe.open(path).read()
        self.assertGreaterEqual(len(next(blocks)), 1)

    def test_a_run_that_another_one_stops_makes_the_plan_fail(self) -> None:
        daemon, server = self.daemon()
        det = self.detector(machine=server, internal="timer:1kHz", on_loss="warn")
        documents = Documents(lambda: strobe.connect(daemon.url).runs[1].stop())
        error = self.refused(fly(det, LONG), documents)
        self.assertRegex(error.reason, "it has ended with [0-9]+ of 1000000 rows")
        self.exact(det.summary)

    def test_triggers_that_do_not_come_are_said_with_the_account(self) -> None:
        det = self.detector(edge="soft")
        armed = TriggerInfo(trigger=DetectorTrigger.EXTERNAL_EDGE, number_of_events=10, exposure_timeout=2)
        error = self.refused(fly(det, armed, then=lambda: det.run.trigger(4)))
        self.assertIn("no row has come for 2 s", error.reason)
        self.assertIn("4 triggers = 4 rows", error.reason)

    def test_a_run_that_nobody_completes_is_judged_when_it_is_unstaged(self) -> None:
        daemon, server = self.daemon()
        det = self.detector(machine=server, internal="timer:1kHz")

        def lose() -> None:
            self.miss(det, daemon)
            raise RuntimeError("the plan ends before it is complete")

        with self.assertRaises(Exception) as raised:
            ENGINE(fly(det, LONG, then=lose), Documents())
        self.assertIn("triggers missed", str(raised.exception.__cause__))
        self.exact(det.summary)
