# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows that are lost: an error for who wants one, wherever the rows come from, and a number for everybody, at any time."""

import asyncio
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import strobe
from daemon import Daemon, wait_for

ROWS = 400


def overwritten() -> strobe.Run:
    """A run of this machine that has overwritten most of its rows."""
    run = strobe.run(event="timer:1kHz", read=["sim.counter"], rows=ROWS, ring=16, engine="user")
    run.start()
    while run.state == "running":
        time.sleep(0.01)
    return run


async def by_asyncio(run: strobe.Run) -> None:
    async for block in run.aread(0, on_loss="raise"):
        assert block.lost == 0, "rows were lost"


#: Who wants an error where rows are lost, and takes all rows.
BY_BLOCKS: dict[str, Callable[[strobe.Run], object]] = {
    "for": lambda run: list(run.read(0, on_loss="raise")),
    "async for": lambda run: asyncio.run(by_asyncio(run)),
}
BY_ARROW: dict[str, Callable[[strobe.Run], object]] = {
    "pyarrow": lambda run: pa.table(run.read(0, on_loss="raise")),
    "polars": lambda run: pl.DataFrame(run.read(0, on_loss="raise")),
}


class Loss(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="strobe-python-")))

    def recorded(self, name: str) -> strobe.Run:
        """A recording with a gap: who recorded came too late."""
        path = self.folder / name
        self.assertGreater(overwritten().record(path).lost, 300)
        return strobe.open(path)

    def served(self) -> strobe.Run:
        """A run of a server that has come too late for its first rows."""
        self.late = overwritten()
        daemon = Daemon(config=f'[[export]]\nrun = "user:{self.late.info.run}"\n')
        self.addCleanup(daemon.close)
        machine = strobe.connect(daemon.url)
        wait_for(lambda: any(run["rows"] == ROWS for run in machine.status()), "it has the rows there are")
        (run,) = machine.runs.values()
        return run

    def raised(self, run: strobe.Run, remedy: str) -> None:
        """Each way to read it ends with an error, which says why and what to do."""
        reason = "rows were overwritten before they were read"
        for name, take in BY_BLOCKS.items():
            with self.subTest(name):
                with self.assertRaisesRegex(strobe.Error, reason) as error:
                    take(run)
                self.assertEqual(error.exception.object, run.name)
                self.assertIn(remedy, error.exception.remedy)
                self.assertEqual(error.exception.reason, f"{run.lost} {reason}")
        for name, take in BY_ARROW.items():
            with self.subTest(name), self.assertRaisesRegex(Exception, f"{reason}; .*{remedy}"):
                take(run)
        with self.subTest("who asks again"):
            rows = run.read(0, on_loss="raise")
            for _ in range(3):
                with self.assertRaisesRegex(strobe.Error, reason):
                    next(rows)

    def test_who_wants_an_error_gets_one_of_a_run_of_this_machine(self) -> None:
        run = overwritten()
        self.raised(run, "make its ring longer")
        self.raised(strobe.attach(f"user:{run.info.run}"), "make its ring longer")

    def test_who_wants_an_error_gets_one_of_a_recording(self) -> None:
        for name in ("gap.arrows", "gap.h5"):
            with self.subTest(name):
                recording = self.recorded(name)
                self.raised(recording, "lost when it was recorded")
                # Who begins behind the gap misses nothing.
                self.assertEqual(sum(len(block) for block in recording.read(ROWS - 10, on_loss="raise")), 10)

    def test_who_wants_an_error_gets_one_of_a_run_of_a_server(self) -> None:
        run = self.served()
        self.raised(run, "spool")
        self.assertEqual(sum(len(block) for block in run.read(ROWS - 10, on_loss="raise")), 10)

    def test_who_stops_early_has_lost_what_was_lost_so_far(self) -> None:
        live, served = overwritten(), self.served()
        for run in (live, strobe.attach(f"user:{live.info.run}"), self.recorded("gap.arrows"), served):
            with self.subTest(run.name):
                self.assertEqual(run.lost, 0)
                for block in run.read(0):
                    lost = block.lost
                    break
                self.assertGreater(lost, 300)
                self.assertEqual(run.lost, lost)
                if run.state != "recorded":
                    self.assertEqual(run.account.lost, lost)
                rows = sum(len(block) + 0 * block.lost for block in run.read(0))
                self.assertEqual((run.lost, run.account.lost), (lost, run.account.rows - rows))
                next(run.read(run.account.rows - 1))
                self.assertEqual((run.lost, run.account.lost), (0, 0), "that of who read last")

    def test_a_table_and_asyncio_count_what_is_lost_so_far(self) -> None:
        run = overwritten()

        async def first() -> int:
            async for block in run.aread(0):
                return block.lost
            return 0

        lost = asyncio.run(first())
        self.assertGreater(lost, 300)
        self.assertEqual(run.lost, lost)
        other = strobe.attach(f"user:{run.info.run}")
        with self.assertWarns(strobe.Lost):
            pa.RecordBatchReader.from_stream(other.read(0)).read_next_batch()
        self.assertEqual(other.lost, lost)

    def test_to_look_at_a_run_is_not_to_read_it(self) -> None:
        run = overwritten()
        for block in run:
            lost = block.lost
            break
        run._repr_html_()
        self.assertEqual(run.lost, lost)


if __name__ == "__main__":
    unittest.main()
