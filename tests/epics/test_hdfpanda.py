# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stock HDFPanda flies with strobe-epics; its file has every row, and the server's values."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np
import points
import strobe
from daemon import AT_MOST_S, wait_for
from p4p.client.thread import RemoteError
from served import Served, Test

ROWS = points.ROWS
CHANNELS = [*points.CHANNELS, "clock.late"]
# Who reads late loses no row of it.
SCAN = f'event = "timer:1kHz"\nread = {json.dumps(CHANNELS)}\nengine = "user"\nring = 4096\n'
SOFT = 'event = "soft"\nread = ["sim.counter"]\nengine = "user"\n'


class HdfPanda(Test):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def name(self, served: Served, name: str, folder: Path | None = None) -> None:
        served.put("DATA:HDF_DIRECTORY", str(folder or self.folder))
        served.put("DATA:HDF_FILE_NAME", name)

    def test_hdfpanda_flies_3000_points(self) -> None:
        served = self.served(SCAN)
        # It knows nothing of strobe: PVAccess is all there is between the two.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | served.environment
        done = subprocess.run([sys.executable, Path(__file__).with_name("scan.py"), self.folder, "fly", str(ROWS)], env=environment,
                              cwd=self.folder, timeout=AT_MOST_S, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        documents = json.loads(done.stdout.splitlines()[-1])
        names = [channel.replace(".", "_") for channel in CHANNELS]
        self.assertEqual((documents["exit"], documents["keys"]), ("success", sorted(names)))
        self.assertEqual(list(documents["last"].values()), [ROWS] * len(names))
        path = self.folder / "fly.h5"
        self.assertEqual(documents["resources"], [[name, f"file://localhost{path}", f"/{name}"] for name in names])
        account = served.account()
        self.assertEqual((account["given"], account["lost"], account["errors"]), (ROWS, 0, 0))
        served.wait("DATA:CAPTURE", False)
        (whole,) = (list(run) for run in strobe.connect(served.daemon.url).runs.values())
        with h5py.File(path, "r", swmr=True) as file:
            for name, channel in zip(names, CHANNELS):
                self.assertEqual((file[name].shape, file[name].dtype), ((ROWS,), np.float64))
                np.testing.assert_array_equal(file[name][:], np.concatenate([block[channel] for block in whole]))
            self.assertEqual(points.digest({channel: file[name][:] for name, channel in zip(names, CHANNELS)}), points.DIGEST)
            for place, name in enumerate(("row", "trigger", "time")):
                np.testing.assert_array_equal(file[name][:], np.concatenate([block.words[:, place] for block in whole]))
            self.assertEqual({name: int(value[()]) for name, value in file["account"].items()},
                             {name: account[name] for name in ("triggers", "rows", "missed", "skipped", "lost", "errors")})

    def test_two_runs_go_into_one_file_and_their_accounts_are_added(self) -> None:
        served = self.shared(SOFT)
        self.name(served, "two.h5")
        served.put("PCAP:ROWS", 5)
        served.put("DATA:CAPTURE", True)
        for captured in (5, 10):
            served.put("PCAP:ARM", True)
            served.put("PCAP:TRIGGER", 5)
            served.wait("DATA:NUM_CAPTURED", captured)
            served.account()
        served.put("DATA:CAPTURE", False)
        with h5py.File(self.folder / "two.h5") as file:
            self.assertEqual(file["sim_counter"][:].tolist(), [0, 1, 2, 3, 4] * 2)
            self.assertEqual(file["row"][:].tolist(), [0, 1, 2, 3, 4] * 2)
            self.assertEqual((file["account/rows"][()], file["account/triggers"][()]), (10, 10))

    def test_a_capture_that_ends_before_its_run_has_all_its_rows(self) -> None:
        served = self.shared(SOFT)
        self.name(served, "early.h5")
        served.put("DATA:CAPTURE", True)
        served.put("PCAP:ARM", True)
        served.put("PCAP:TRIGGER", 3)
        served.put("DATA:CAPTURE", False)
        served.put("PCAP:TRIGGER", 4)
        served.put("PCAP:ARM", False)
        self.assertEqual(served.account()["rows"], 7)
        with h5py.File(self.folder / "early.h5") as file:
            self.assertEqual(file["row"][:].tolist(), list(range(7)))

    def test_a_file_that_exists_is_not_overwritten(self) -> None:
        served = self.shared(SOFT)
        (self.folder / "there.h5").write_text("mine")
        self.name(served, "there.h5")
        with self.assertRaisesRegex(RemoteError, "never overwritten"):
            served.put("DATA:CAPTURE", True)
        self.assertFalse(served.get("DATA:CAPTURE"))
        self.assertEqual((self.folder / "there.h5").read_text(), "mine")

    def test_folders_are_made_as_deep_as_was_said_and_no_deeper(self) -> None:
        served = self.shared(SOFT)
        deep = self.folder / "a/b"
        for depth, there in ((0, False), (-1, False), (-2, True)):
            served.put("DATA:CREATE_DIRECTORY", depth)
            served.put("DATA:HDF_DIRECTORY", str(deep))
            self.assertEqual((served.get("DATA:DIRECTORY_EXISTS"), deep.is_dir()), (there, there))

    def test_a_file_that_may_not_grow_is_an_alarm_and_the_run_goes_on(self) -> None:
        served = self.served(SOFT)
        self.name(served, "full.h5")
        served.put("DATA:CAPTURE", True)
        # What a full disk is to it.
        size = (self.folder / "full.h5").stat().st_size
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (size, size))
        served.put("PCAP:ARM", True)
        served.put("PCAP:TRIGGER", 50_000)
        wait_for(lambda: served.severity("DATA:NUM_CAPTURED") == 2, "an alarm")
        served.put("PCAP:ARM", False)
        self.assertEqual(served.account()["rows"], 50_000)
        self.assertIn("full.h5", served.value("DATA:NUM_CAPTURED")["alarm.message"])


if __name__ == "__main__":
    unittest.main()
