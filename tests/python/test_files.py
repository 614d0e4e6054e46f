# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings in Python: made, read, replayed, and the same numbers as other programs find in them."""

import contextlib
import csv
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import strobe
from daemon import AT_MOST_S

WORDS = {"event": "timer:1kHz", "read": ["sim.counter", "sim.sine", "sim.noise"], "engine": "user"}


def rows_of(run: strobe.Run) -> np.ndarray:
    return np.concatenate([block.array for block in run])


class Files(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="strobe-python-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)

    def record(self, *names: str, **words) -> strobe.Summary:
        return strobe.record(None, *(self.folder / name for name in names), **{**WORDS, "rows": 300, **words})

    def test_each_format_has_the_same_rows(self) -> None:
        summary = self.record("scan.arrows", "scan.h5", "scan.csv")
        self.assertEqual((summary.rows, summary.end, len(summary.sinks)), (300, "complete", 3))
        arrows, hdf5 = strobe.open(self.folder / "scan.arrows"), strobe.open(self.folder / "scan.h5")
        found = rows_of(arrows)
        np.testing.assert_array_equal(found, rows_of(hdf5))
        self.assertEqual(found["row"].tolist(), list(range(300)))
        self.assertEqual((arrows.account, hdf5.account), (arrows.account, arrows.account))
        self.assertEqual(arrows.account.missed, summary.missed)
        with (self.folder / "scan.csv").open() as text:
            table = list(csv.DictReader(text))
        for name in WORDS["read"]:
            (column,) = [column for column in table[0] if column.split(" ")[0] == name]
            values = np.concatenate([block[name] for block in arrows])
            np.testing.assert_array_equal(values, [float(row[column]) for row in table])

    def test_a_recipe_says_what_words_do_not(self) -> None:
        recipe = self.folder / "scan.toml"
        recipe.write_text('event = "timer:1kHz"\nread = ["sim.ramp"]\nengine = "user"\nrows = 1000000\n')
        summary = strobe.record(recipe, self.folder / "{event}-{n:03}.arrows", rows=20)
        self.assertEqual(summary.rows, 20)
        (name,) = [path.name for path in self.folder.glob("*.arrows")]
        self.assertTrue(name.endswith("-001.arrows"), name)
        self.assertEqual([channel.name for channel in strobe.open(self.folder / name).info.channels], ["sim.ramp"])

    def test_nothing_that_is_there_is_overwritten_without_a_word(self) -> None:
        self.record("scan.arrows", rows=10)
        before = (self.folder / "scan.arrows").read_bytes()
        with self.assertRaisesRegex(strobe.Error, "exists"):
            self.record("scan.arrows", rows=20)
        self.assertEqual((self.folder / "scan.arrows").read_bytes(), before)
        self.assertEqual(self.record("scan.arrows", rows=20, overwrite=True).rows, 20)

    def test_a_file_that_was_cut_off_gives_its_rows_and_then_an_error(self) -> None:
        self.record("scan.arrows")
        whole = (self.folder / "scan.arrows").read_bytes()
        (self.folder / "cut.arrows").write_bytes(whole[:len(whole) * 2 // 3])
        rows = 0
        with self.assertRaises(strobe.Error) as raised:
            for block in strobe.open(self.folder / "cut.arrows"):
                rows += len(block)
        self.assertLess(rows, 300)
        self.assertIn("not known", raised.exception.reason)

    def test_a_replay_has_the_rows_and_the_account_of_the_recording(self) -> None:
        self.record("scan.arrows")
        recorded = strobe.open(self.folder / "scan.arrows")
        with strobe.replay(self.folder / "scan.arrows", speed=None) as replayed:
            np.testing.assert_array_equal(rows_of(replayed), rows_of(recorded))
        self.assertEqual(replayed.account, recorded.account)

    def test_who_looks_on_hears_how_far_it_is_and_can_end_it(self) -> None:
        made: list[int] = []

        def hear(rows: int, missed: int, lost: int) -> None:
            made.append(rows)
            # Twice: the second time it says more.
            if len(set(made) - {0}) == 2:
                run.stop()

        with strobe.run(**WORDS, rows=10**9) as run:
            summary = run.record(self.folder / "scan.arrows", progress=hear)
        self.assertEqual(made, sorted(made))
        self.assertTrue(0 < made[-1] <= summary.rows, made)

        def refuse(rows: int, missed: int, lost: int) -> None:
            if rows > 0:
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            self.record("more.arrows", rows=10**9, progress=refuse)
        self.assertTrue(len(rows_of(strobe.open(self.folder / "more.arrows"))) > 0)

    def test_a_terminal_shows_how_far_it_is_and_is_left_clean(self) -> None:
        # It goes on until it has said how far it is.
        script = ("import signal, strobe; run = strobe.run(event='timer:1kHz', read=['sim.counter'], rows=10**9, engine='user'); "
                  "signal.signal(signal.SIGUSR1, lambda *_: run.stop()); run.record('scan.csv')")
        shown = re.compile(rb"\r\d+ of 1000000000 rows, \d+ missed, \d+ lost, \d+ s, \d+ s left *\r")
        master, slave = pty.openpty()
        with open(master, "rb", buffering=0) as terminal:
            process = subprocess.Popen([sys.executable, "-c", script], cwd=self.folder, stdin=slave, stdout=slave, stderr=slave)
            os.close(slave)
            timer = threading.Timer(AT_MOST_S, process.kill)
            timer.start()
            said, is_told = b"", False
            # The end of a terminal is an error.
            with contextlib.suppress(OSError):
                while part := terminal.read(4096):
                    said += part
                    if not is_told and shown.search(said):
                        process.send_signal(signal.SIGUSR1)
                        is_told = True
            self.assertEqual(process.wait(), 0, said)
            timer.cancel()
        lines = said.decode().split("\r")
        self.assertTrue(is_told, lines)
        self.assertEqual((lines[-2].strip(), lines[-1]), ("", ""))

    def test_what_is_no_recording_is_refused(self) -> None:
        (self.folder / "text.arrows").write_text("rows")
        for name in ("text.arrows", "none.arrows"):
            with self.assertRaises(strobe.Error):
                strobe.open(self.folder / name)


if __name__ == "__main__":
    unittest.main()
