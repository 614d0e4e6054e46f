# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows of the daemon in programs that know nothing of it, compared with what its own files on disk hold."""

import csv
import io
import unittest
from urllib.request import urlopen

import polars
import pyarrow
import pyarrow.ipc
from daemon import Daemon, wait_for
from recipes import SCAN

COLUMNS = ["row", "trigger", "time", "status", "sim.counter", "sim.ramp", "sim.sine"]


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.close)

    def journal(self, rows: int) -> pyarrow.Table:
        """What is on the disk of the newest run, read without the daemon."""
        def look():
            files = sorted((self.daemon.folder / "data").rglob("*.arrows"), key=lambda file: (file.parent.name, file.name))
            newest = [file for file in files if file.parent == files[-1].parent] if files else []
            tables = [table for file in newest if (table := whole(file)) is not None]
            table = pyarrow.concat_tables(tables) if tables else None
            return table if table is not None and table.num_rows >= rows else None
        return wait_for(look, f"{rows} rows are on the disk")

    def test_pyarrow_and_polars_open_a_run_with_one_line_each(self) -> None:
        run = self.daemon.post("/runs", {"recipe": SCAN})["id"]
        url = f"{self.daemon.url}/api/runs/{run}/rows"
        # Follows the run to its end.
        live = pyarrow.ipc.open_stream(urlopen(url)).read_all()
        account = self.daemon.ended(run)
        self.assertEqual(live.column_names, COLUMNS)
        self.assertEqual(live.num_rows + account["lost"], account["rows"])
        self.assertTrue(live.equals(pyarrow.ipc.open_stream(urlopen(f"{url}?from=0")).read_all()))
        frame = polars.read_ipc_stream(urlopen(url).read())
        self.assertTrue(frame.equals(polars.from_arrow(live)))
        disk = self.journal(live.num_rows)
        for name in COLUMNS:
            self.assertEqual(disk[name].to_pylist(), live[name].to_pylist(), name)

    def test_a_part_is_the_part_of_the_whole_in_each_form(self) -> None:
        run = self.daemon.post("/runs", {"recipe": SCAN})["id"]
        channels = {channel["name"]: channel for channel in self.daemon.ended(run)["info"]["channels"]}

        def value(name: str, word: int) -> float:
            """Lines have values in their unit, and streams the words as they were read."""
            channel = channels.get(name, {"scale": 1, "offset": 0})
            return word * channel["scale"] + channel["offset"]

        url = f"{self.daemon.url}/api/runs/{run}/rows"
        whole = polars.read_ipc_stream(urlopen(url).read())
        part = polars.read_ipc_stream(urlopen(f"{url}?from=100&to=250&columns=sim.sine,sim.counter").read())
        names = [*COLUMNS[:4], "sim.sine", "sim.counter"]
        expected = whole.filter(polars.col("row").is_between(100, 249)).select(names)
        self.assertTrue(part.equals(expected))
        text = urlopen(f"{url}?from=100&to=250&columns=sim.sine,sim.counter&format=csv").read().decode()
        lines = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(list(lines[0]), names)
        for line, row in zip(lines, expected.iter_rows(named=True), strict=True):
            self.assertEqual({name: float(field) for name, field in line.items()}, {name: value(name, row[name]) for name in names})


def whole(file) -> pyarrow.Table | None:
    """All batches of a file that may still be written to."""
    batches = []
    try:
        with pyarrow.ipc.open_stream(file) as stream:
            while True:
                batches.append(stream.read_next_batch())
    except (StopIteration, pyarrow.ArrowInvalid, OSError):
        pass
    return pyarrow.Table.from_batches(batches) if batches else None
