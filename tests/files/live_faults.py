# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values that fail, and triggers that are skipped, as all readers see them: the ring, by the contract alone; pyarrow,
polars and pandas; h5py; csv; and the account. The user engine makes the rows."""

import array
import csv
import json
import mmap
import os
import socket
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import h5py
import pandas
import polars
import read_arrows
import read_hdf5
from pyarrow import parquet

PATIENCE = 60  # seconds; only reached when something is wrong
NUMBERS = [10, 11, 12, 3.5, 4.5, 15, 16, 17, 18, 19]
BAD = [2, 3, 7]  # channels that fail, two of them whole numbers
BAD_ROWS = [2, 3]
KINDS = ("arrows", "h5", "parquet", "csv")


class Ring:
    """A run of the user engine, as include/uapi/strobe.h says how it is found and read."""

    def __init__(self, directory: Path):
        paths = []
        end = time.monotonic() + PATIENCE
        while not paths:
            assert time.monotonic() < end, "there is no run"
            paths = list(directory.glob("*.sock"))
            time.sleep(0.01)
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # It is there a moment before it listens.
        while self.line.connect_ex(str(paths[0])):
            assert time.monotonic() < end, "the run does not listen"
            time.sleep(0.01)
        said, ancillary, _, _ = self.line.recvmsg(1 << 16, socket.CMSG_SPACE(4))
        while not said.endswith(b"\n"):
            said += self.line.recv(1 << 16)
        self.message = json.loads(said)
        fd = array.array("i", ancillary[0][2][:4])[0]
        self.memory = mmap.mmap(fd, os.fstat(fd).st_size, prot=mmap.PROT_READ)
        os.close(fd)
        self.line.send(b"r")

    def close(self) -> None:
        self.memory.close()
        self.line.close()

    def word(self, offset: int, kind: str = "Q") -> int:
        return struct.unpack_from(kind, self.memory, offset)[0]

    def head(self) -> int:
        return self.word(128)

    def failed(self, row: int) -> list[str]:
        """The names of what failed in a row, of at most 32 channels and outputs."""
        stride, capacity, data = self.word(16, "I"), self.word(24), self.word(40)
        channels, outputs = self.word(20, "I"), self.word(72, "I")
        assert channels + outputs <= 32
        status = self.word(data + row % capacity * stride + 24)
        names = [step["name"] for step in self.message["channels"] + self.message["outputs"]]
        assert len(names) == channels + outputs, self.message
        return [name for bit, name in enumerate(names) if status >> (32 + bit) & 1]


class FaultsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.runs = self.folder / "runs"
        self.files = [self.folder / f"{kind}.{kind}" for kind in KINDS]

    def strobe(self, *arguments: str | Path, **how) -> subprocess.Popen:
        environment = {**os.environ, "STROBE_RUNTIME_DIR": str(self.runs)}
        program = subprocess.Popen([os.environ["STROBE"], *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment, **how)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def record(self, event: str, channels: list[str], *more: str) -> subprocess.Popen:
        outputs = [word for file in self.files for word in ("-o", file)]
        return self.strobe("record", "--engine", "user", "--event", event, "--read", ",".join(channels), "--json",
                           *more, *outputs, stdin=subprocess.PIPE)

    def read_all(self, files: list[Path]) -> None:
        """Every reader names what failed, and sees no value there; `arrows` comes first."""
        arrows, hdf5, packed, text = files
        table, torn = read_arrows.read(arrows)
        self.assertFalse(torn)
        read_arrows.check_rules(table)
        expected = {self.names[n]: BAD_ROWS for n in BAD}
        self.assertEqual(read_arrows.failed(table), expected)
        frame = polars.read_ipc_stream(arrows)
        self.assertEqual({name: frame[name].null_count() for name in self.names}, {
            name: len(expected.get(name, [])) for name in self.names})

        other = parquet.read_table(packed)
        read_arrows.check_rules(other)
        self.assertTrue(other.equals(table))
        frames = [pandas.read_parquet(packed), pandas.read_csv(text)]
        for frame in frames:
            for number, name in zip(NUMBERS, self.names):
                rows = frame.index[frame[name].isna()].tolist()
                self.assertEqual(rows, expected.get(name, []), name)
                self.assertTrue((frame[name].dropna() == number).all(), name)
        with open(text, newline="") as lines:
            for row in csv.DictReader(lines):
                empty = [name for name in self.names if row[name] == ""]
                self.assertEqual(empty, sorted(expected) if int(row["row"]) in BAD_ROWS else [])
                self.assertEqual(int(row["status"]) >> 32, 0)
        with h5py.File(hdf5, "r") as file:
            read_hdf5.check_rules(file)
            self.assertEqual(read_hdf5.failed(file), expected)
            self.assertEqual(read_hdf5.account(file)["errors"], len(BAD_ROWS))
            for dataset in file["entry/data"].values():
                if "column" in dataset.attrs:
                    self.assertFalse((dataset[:] == 0).any(), dataset.name)

    def test_three_failed_channels_of_ten_are_named_by_all_readers_and_none_reads_as_0(self):
        places = [self.folder / f"value{n}" for n in range(10)]
        self.names = [f"file:{place}" for place in places]

        def write(numbers: list[object]) -> None:
            for place, number in zip(places, numbers):
                place.write_text(f"{number}\n")

        broken = ["gone" if n in BAD else number for n, number in enumerate(NUMBERS)]
        write(NUMBERS)
        recorder = self.record("soft", self.names)
        ring = Ring(self.runs)
        self.addCleanup(ring.close)
        for row in range(6):
            write(broken if row in BAD_ROWS else NUMBERS)
            recorder.stdin.write("\n")
            recorder.stdin.flush()
            end = time.monotonic() + PATIENCE
            while ring.head() <= row:
                self.assertLess(time.monotonic(), end, "the row does not come")
                time.sleep(0.001)
        bad = [self.names[n] for n in BAD]
        self.assertEqual([ring.failed(row) for row in range(6)], [bad if row in BAD_ROWS else [] for row in range(6)])
        said, errors = recorder.communicate(timeout=PATIENCE)
        self.assertEqual(recorder.returncode, 3, errors)
        account = json.loads(said)
        self.assertEqual(account["faults"], {name: len(BAD_ROWS) for name in bad})
        figures = {"rows": 6, "missed": 0, "skipped": 0, "lost": 0, "errors": 2}
        self.assertEqual({name: account[name] for name in figures}, figures)
        self.read_all(self.files)
        # The journal gives all of it to every other kind.
        again = [self.folder / f"again.{kind}" for kind in KINDS]
        for file in again:
            program = self.strobe("convert", self.files[0], file)
            _, errors = program.communicate(timeout=PATIENCE)
            self.assertEqual((program.returncode, errors), (0, ""))
        self.read_all(again)

    def test_triggers_are_rows_missed_and_skipped_in_every_file(self):
        recorder = self.record("sim.decimated", ["sim.counter"], "--rows", "40")
        said, errors = recorder.communicate(timeout=PATIENCE)
        account = json.loads(said)
        # What a busy machine has missed is a loss, what was skipped is none.
        self.assertEqual(recorder.returncode, 3 if account["missed"] else 0, errors)
        self.assertEqual((account["rows"], account["lost"], account["errors"]), (40, 0, 0))
        self.assertEqual(sum(account["missed_by"].values()), account["missed"])
        self.assertGreaterEqual(account["skipped"], 9 * 40)
        arrows, hdf5, packed, text = self.files
        table, _ = read_arrows.read(arrows)
        read_arrows.check_rules(table)
        self.assertTrue(parquet.read_table(packed).equals(table))
        facts = read_arrows.account(table)
        for name in ("rows", "missed", "skipped", "lost"):
            self.assertEqual(int(facts[f"strobe.{name}"]), account[name], name)
        triggers = account["rows"] + account["missed"] + account["skipped"]
        self.assertEqual(int(facts["strobe.triggers"]), triggers)
        with h5py.File(hdf5, "r") as file:
            read_hdf5.check_rules(file)
            for name in ("rows", "missed", "skipped", "lost"):
                self.assertEqual(read_hdf5.account(file)[name], account[name], name)
            self.assertEqual(read_hdf5.account(file)["triggers"], triggers)
            self.assertEqual(file["entry/data/skipped"][:].tolist(), table["skipped"].to_pylist())
        frame = pandas.read_csv(text)
        self.assertEqual(frame["skipped"].tolist(), table["skipped"].to_pylist())
        missed = frame["trigger"] - frame["row"] - frame["skipped"]
        self.assertTrue((missed.diff().dropna() >= 0).all() and missed.iloc[-1] <= account["missed"])


if __name__ == "__main__":
    unittest.main()
