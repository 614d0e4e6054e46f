# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files while they are written, after a kill, and on a disk that becomes full: crates/strobe-files/examples/recorder.rs
makes 99 rows and misses one trigger for each line it is sent."""

import json
import os
import resource
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import h5py
import pyarrow
import pyarrow.parquet
import read_arrows
import read_hdf5

ROWS = 99  # of one line
PATIENCE = 60  # seconds; only reached when something is wrong


class Recorder:
    """The example, recording into files."""

    def __init__(self, *outputs: Path | str, file_limit: int | None = None, **how):
        def limit() -> None:
            if file_limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        self.process = subprocess.Popen([os.environ["RECORDER"], *map(str, outputs)], stdin=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=limit, **how)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def step(self, lines: int = 1) -> None:
        for _ in range(lines):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            answer = self.process.stderr.readline()
            assert answer == "stepped\n", answer

    def end(self) -> dict:
        """The account, when the run is done."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        return json.loads(errors.splitlines()[-1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


def wait_until(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.01)


def open_live(path: Path) -> h5py.File:
    """A file that is being written; it is locked until all its objects are made."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return h5py.File(path, "r", swmr=True)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


class LiveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def rows_grow_to(self, row: h5py.Dataset, rows: int) -> None:
        def there() -> bool:
            row.refresh()
            return len(row) >= rows

        wait_until(there)
        self.assertEqual(len(row), rows)

    def test_a_reader_sees_rows_and_the_account_grow_while_the_file_is_written(self):
        path = self.folder / "a.h5"
        with Recorder(path) as recorder:
            recorder.step()
            with open_live(path) as file:
                self.rows_grow_to(file["entry/data/row"], ROWS)
                self.assertEqual(read_hdf5.account(file)["complete"], 0)
                recorder.step(20)
                self.rows_grow_to(file["entry/data/row"], 21 * ROWS)
                for name in ("data/adc.real", "data/adc.volt", "data/time", "run/rows", "run/triggers"):
                    file["entry"][name].refresh()
                self.assertEqual(file["entry/data/adc.real"][-1], (21 * ROWS - 1) / 8)
                self.assertEqual(file["entry/data/adc.volt"][-1], 100 - (21 * ROWS - 1) % 200)
                # The last one missed is not known of before a row comes after it.
                triggers = file["entry/run/triggers"]
                wait_until(lambda: triggers.refresh() or triggers[()] == 21 * ROWS + 20)
            account = recorder.end()
            self.assertEqual((account["rows"], account["missed"], account["lost"]), (21 * ROWS, 21, 0))
            self.assertEqual(account["outputs"][0]["rows"], 21 * ROWS)
        with h5py.File(path, "r") as file:
            self.assertEqual(read_hdf5.check_rules(file), 21 * ROWS)
            self.assertEqual(len(file["entry/gaps/row"]), 20)
            self.assertEqual(read_hdf5.account(file)["complete"], 1)

    def test_a_killed_recorder_leaves_files_that_are_readable_up_to_the_last_flush(self):
        hdf5, arrows = self.folder / "a.h5", self.folder / "a.arrows"
        with Recorder(hdf5, arrows, self.folder / "a.parquet") as recorder:
            recorder.step(30)
            with open_live(hdf5) as file:
                self.rows_grow_to(file["entry/data/row"], 30 * ROWS)
            # These may be in the files, whole, or not.
            recorder.step(3)
            recorder.kill()
        with h5py.File(hdf5, "r", swmr=True) as file:
            rows = read_hdf5.check_rules(file)
            self.assertIn(rows, range(30 * ROWS, 33 * ROWS + 1))
            self.assertEqual(file["entry/data/sim.counter"][rows - 1], 2**64 - rows)
            self.assertEqual(read_hdf5.account(file)["complete"], 0)
        table, _ = read_arrows.read(arrows)
        read_arrows.check_rules(table)
        self.assertGreaterEqual(table.num_rows, 30 * ROWS)
        self.assertEqual(read_arrows.account(table)["strobe.complete"], "0")
        with self.assertRaises(pyarrow.ArrowInvalid):
            pyarrow.parquet.read_table(self.folder / "a.parquet")

    def test_a_full_disk_ends_its_files_only_and_the_rest_is_recorded(self):
        files = [self.folder / name for name in ("a.h5", "a.parquet", "a.arrows", "a.csv")]
        with tempfile.TemporaryFile("w+") as seen:
            # Standard output is a pipe: no limit holds for it.
            cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=seen)
            with Recorder(*files, "-", file_limit=300_000, stdout=cat.stdin) as recorder:
                cat.stdin.close()
                recorder.step(200)
                account = recorder.end()
                self.assertEqual(recorder.process.returncode, 3)
            cat.wait(PATIENCE)
            seen.seek(0)
            self.assertEqual(sum(1 for _ in seen), 1 + 200 * ROWS)
        self.assertEqual((account["end"], account["rows"], account["missed"]), ("complete", 200 * ROWS, 200))
        *full, good = account["outputs"]
        self.assertEqual((good["rows"], good["lost"], good["error"]), (200 * ROWS, 0, None))
        for output in full:
            if not output["path"].endswith(".parquet"):
                self.assertIn("File too large", output["error"] or "", output)
                self.assertLess(output["rows"], 200 * ROWS, output)
        table, _ = read_arrows.read(files[2])
        self.assertEqual(table.num_rows, full[2]["rows"])
        self.assertEqual(len(files[3].read_text().splitlines()), 1 + full[3]["rows"])


if __name__ == "__main__":
    unittest.main()
