# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests have in common: servers, lines, and recordings."""

import contextlib
import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
TREE = HERE.parent.parent
STROBE = os.environ["STROBE"]
# How long a recording with faults takes; 0: as long as its rows.
SECONDS = float(os.environ.get("STROBE_INSTRUMENT_SECONDS", "0"))
# How often a serial line is pulled.
PULLS = int(os.environ.get("STROBE_INSTRUMENT_PULLS", "5"))
# How long an answer may take, in seconds. Only one that is meant to be late, or cut, takes as long: on a busy machine, too.
TIMEOUT = 2.0
# How long a test waits for what must come.
AT_MOST_S = 240
ENDS = ("answers", "late", "wrong", "cut", "long", "extra", "refused", "absent")
COUNTERS = ("questions", *ENDS, "reconnects")


def length(rows: int) -> tuple[str, str]:
    """How long a recording with faults is: so many rows, unless $STROBE_INSTRUMENT_SECONDS says how many seconds."""
    return ("--for", f"{SECONDS:g}s") if SECONDS else ("--rows", str(rows))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A program beside this that is spoken to; it says "ready", and at its end what it did."""

    def __init__(self, *words: object) -> None:
        name, *rest = words
        command = [sys.executable, str(HERE / str(name)), *map(str, rest)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line == "ready\n", f"{name} says {line!r}"

    def stop(self) -> dict:
        self.process.terminate()
        out, _ = self.process.communicate(timeout=30)
        return json.loads(out.splitlines()[-1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Case(unittest.TestCase):
    """A folder of its own for boards and recordings, and what ends with the test."""

    recorder: subprocess.Popen
    """Of the last recording."""
    looked: int
    """How much of its file wait_for_row has seen, in bytes."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def server(self, *words: object) -> Server:
        server = Server(*words)
        self.addCleanup(server.kill)
        return server

    def line(self) -> tuple[str, str]:
        """The two ends of a serial line, made by socat."""
        ends = [str(self.folder / name) for name in ("near", "far")]
        command = ["socat", *(f"pty,raw,echo=0,link={end}" for end in ends)]
        process = subprocess.Popen(command)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not all(os.path.exists(end) for end in ends):
            assert process.poll() is None, "socat has ended"
        return ends[0], ends[1]

    def board(self, text: str, name: str = "psu") -> str:
        path = self.folder / f"{name}.toml"
        path.write_text(f'[board]\nname = "{name}"\n{text}')
        return str(path)

    def strobe(self, *words: object, status: int | tuple[int, ...] = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([STROBE, *map(str, words)], capture_output=True, text=True, timeout=SECONDS + AT_MOST_S,
                              cwd=self.folder)
        statuses = status if isinstance(status, tuple) else (status,)
        self.assertIn(done.returncode, statuses, f"strobe {words}: {done.stdout}\n{done.stderr}")
        return done

    def get(self, board: str, *channels: str, status: int | tuple[int, ...] = 0) -> dict:
        done = self.strobe("get", ",".join(channels), "--board", board, "--json", status=status)
        return {found["channel"]: found["value"] for found in json.loads(done.stdout)["channels"]}

    def recording(self, board: str, channels: list[str], *words: object, beside=None) -> tuple[dict, list[dict]]:
        """The account of a recording, and its rows; `beside` is called while it runs."""
        file = self.folder / "rows.csv"
        # A recorder that is late for many seconds loses no row.
        command = [STROBE, "record", "--board", board, "--read", ",".join(channels), "-o", str(file), "--json", "--ring", "16384",
                   *map(str, words)]
        # What another recording left is not taken for rows of this one.
        file.unlink(missing_ok=True)
        self.looked = 0
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.recorder = process
        try:
            if beside:
                beside()
            out, err = process.communicate(timeout=SECONDS + AT_MOST_S)
        finally:
            if process.poll() is None:
                process.kill()
        self.assertIn(process.returncode, (0, 3, 130), f"{out}\n{err}")
        account = json.loads(out)
        rows = self.read(file)
        self.account(account, rows, "--rows" in words)
        return account, rows

    def wait_for_row(self, what: str, holds: Callable[[dict[str, str]], object]) -> dict[str, str]:
        """The first row of which this holds that the recording writes, behind those that were looked at before."""
        file, end = self.folder / "rows.csv", time.monotonic() + AT_MOST_S
        while time.monotonic() < end:
            self.assertIsNone(self.recorder.poll(), f"the recording has ended before {what}")
            with contextlib.suppress(FileNotFoundError), open(file, "rb") as rows:
                names = rows.readline()
                self.looked = max(self.looked, len(names))
                rows.seek(self.looked)
                # The last row may be there in part.
                lines = [line for line in rows if line.endswith(b"\n")]
                self.looked += sum(map(len, lines))
                for row in csv.DictReader(line.decode() for line in (names, *lines)):
                    if holds(row):
                        return row
            time.sleep(0.02)
        raise AssertionError(f"{what}: not within {AT_MOST_S} s")

    def held(self) -> tuple[int, int]:
        """How many files and threads the recorder has."""
        place = Path("/proc") / str(self.recorder.pid)
        return len(os.listdir(place / "fd")), len(os.listdir(place / "task"))

    def account(self, account: dict, rows: list[dict], is_counted: bool) -> None:
        """Triggers are rows, missed and skipped. What is missed after the last row is in the account only, but nothing is if
        the rows are counted."""
        self.assertEqual((len(rows), account["lost"]), (account["rows"], 0))
        self.assertEqual(account["missed"], sum(account["missed_by"].values()))
        triggers = int(rows[-1]["trigger"]) + 1
        self.assertLessEqual(triggers, account["rows"] + account["missed"] + account["skipped"])
        if is_counted:
            self.assertEqual(triggers, account["rows"] + account["missed"] + account["skipped"])

    def read(self, file: Path) -> list[dict]:
        with open(file, newline="") as lines:
            return list(csv.DictReader(lines))

    def counts(self, row: dict, device: str = "psu") -> dict[str, int]:
        """The counts of a row; each question has one end."""
        counts = {name: int(row[f"{device}.{name}"]) for name in COUNTERS}
        self.assertEqual(counts["questions"], sum(counts[end] for end in ENDS))
        return counts


def counters(device: str = "psu") -> list[str]:
    return [f"{device}.{name}" for name in COUNTERS]
