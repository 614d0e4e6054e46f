# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows by Arrow's C interface: who takes Arrow takes a run or a block as it is, and nothing is lost silently."""

import gc
import os
import signal
import tempfile
import threading
import time
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import strobe
from daemon import Daemon, wait_for
from interrupt import ctrl_c

READ = ["sim.counter", "sim.sine", "sim.noise"]
ACCOUNT = {"complete", "end", "end_time_ns", "rows", "triggers", "missed", "skipped", "lost", "errors"}


def with_duckdb(rows: object) -> pa.Table:
    # It finds `rows` by its name, as it finds a run in a notebook.
    return duckdb.sql("select * from rows").to_arrow_table()


TAKERS: dict[str, Callable[[object], pa.Table]] = {
    "pyarrow": pa.table,
    "polars": lambda rows: pl.DataFrame(rows).to_arrow(),
    "polars.from_arrow": lambda rows: pl.from_arrow(rows).struct.unnest().to_arrow(),
    "pandas": lambda rows: pa.Table.from_pandas(pd.DataFrame.from_arrow(rows)),
    "duckdb": with_duckdb,
}


def made(rows: int = 500, **words) -> strobe.Run:
    return strobe.run(event="timer:1kHz", read=READ, rows=rows, engine="user", **words)


def soft(**words) -> strobe.Run:
    return strobe.run(event="soft", read=["sim.counter"], engine="user", **words)


def overwritten() -> strobe.Run:
    """A run that has overwritten most of its rows."""
    run = made(400, ring=16)
    run.start()
    while run.state == "running":
        time.sleep(0.01)
    return run


class Rows(unittest.TestCase):
    def whole(self, account: strobe.Account, rows: int) -> None:
        self.assertEqual(account.triggers, account.rows + account.missed + account.skipped)
        self.assertEqual(rows + account.lost, account.rows)

    def test_each_taker_has_all_rows_of_a_live_run_and_the_run_has_its_account(self) -> None:
        for name, take in TAKERS.items():
            with self.subTest(name), made() as run:
                table = take(run)
                self.whole(run.account, table.num_rows)
                self.assertEqual(run.account.end, "complete")
                self.assertEqual(table["row"].to_pylist(), list(range(500)))
                again = np.concatenate([block.array for block in run])
                for column in ("trigger", "time", *READ):
                    np.testing.assert_array_equal(table[column].to_numpy(), again[column], column)

    def test_each_taker_has_the_rows_of_a_block(self) -> None:
        with made(50) as run:
            for block in run:
                for name, take in TAKERS.items():
                    with self.subTest(name):
                        table = take(block)
                        self.assertEqual(table["row"].to_pylist(), block.rows.tolist())
                        np.testing.assert_array_equal(table["sim.sine"].to_numpy(), block.raw["sim.sine"])

    def test_columns_and_metadata_are_those_of_the_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scan.arrows"
            strobe.record(None, path, event="timer:1kHz", read=READ, rows=300, engine="user")
            with pa.ipc.open_stream(path) as file:
                recorded = file.read_all()
            run = strobe.open(path)
            table = pa.table(run)
        self.assertTrue(table.schema.equals(pa.schema(run), check_metadata=True))
        self.assertTrue(table.equals(recorded))
        for ours, theirs in zip(table.schema, recorded.schema, strict=True):
            self.assertTrue(ours.equals(theirs, check_metadata=True), ours)
        ours, theirs = table.schema.metadata, recorded.schema.metadata
        # What is only known at the end is not in a stream: the run has it then.
        known_later = {key for key in ours if ours[key] != theirs[key]}
        self.assertEqual(set(ours), set(theirs))
        self.assertLessEqual({key.decode().split(".")[1] for key in known_later}, ACCOUNT)
        self.assertEqual(run.account.rows, 300)

    def test_what_failed_is_null(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            number, board = Path(folder) / "number", Path(folder) / "board.toml"
            number.write_text("7\n")
            board.write_text(f'[board]\nname = "test"\ndescription = "a file"\n[channel.number]\nfile = "{number}"\n')
            with strobe.run(board=str(board), event="soft", read=["test.number"], rows=2, engine="user") as run:
                run.start()
                run.trigger()
                while run.account.rows < 1:
                    time.sleep(0.01)
                number.write_text("none\n")
                run.trigger()
                table, frame = pa.table(run), pl.DataFrame(run)
        self.assertEqual(table["test.number"].to_pylist(), [7, None])
        self.assertEqual(frame["test.number"].to_list(), [7, None])
        self.assertEqual(run.account.errors, 1)

    def test_a_query_takes_what_it_wants(self) -> None:
        with made(300) as run:
            found = duckdb.sql('select count(*), min("row"), max("sim.counter") from run where trigger >= 0').fetchall()
        self.whole(run.account, 300)
        self.assertEqual(found, [(300, 0, pa.table(run)["sim.counter"].to_pylist()[-1])])

    def test_batches_come_while_the_run_goes_on(self) -> None:
        with soft() as run:
            batches = pa.RecordBatchReader.from_stream(run)
            rows = []
            for count in (1, 2, 3):
                run.trigger(count)
                while len(rows) < sum(range(count + 1)):
                    rows += batches.read_next_batch()["row"].to_pylist()
            run.stop()
            self.assertEqual(batches.read_all().num_rows, 0)
        self.assertEqual(rows, list(range(6)))
        self.whole(run.account, len(rows))

    def test_the_rest_of_a_reader_is_a_table(self) -> None:
        with made(300) as run:
            list(run)
            rows = run.read(100)
            first = next(rows)
            self.assertEqual(pa.table(rows)["row"].to_pylist(), list(range(100 + len(first), 300)))
            # It is asked for its columns first.
            self.assertEqual(len(with_duckdb(run.read(120))), 180)

    def test_a_run_of_a_server_is_a_table(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        server = strobe.connect(daemon.url)
        with server.run(event="timer:1kHz", read=READ, rows=300, engine="user") as run:
            table = pa.table(run)
        self.whole(run.account, table.num_rows)
        (past,) = server.runs.values()
        self.assertTrue(pa.table(past).equals(table))


class Loss(unittest.TestCase):
    def test_rows_that_were_lost_are_warned_of_and_counted(self) -> None:
        for name, take in TAKERS.items():
            with self.subTest(name):
                run = overwritten()
                with self.assertWarnsRegex(strobe.Lost, "rows lost"):
                    table = take(run)
                self.assertGreater(run.lost, 300)
                self.assertEqual(table.num_rows + run.account.lost, 400)

    def test_who_wants_an_error_gets_one_that_says_why(self) -> None:
        for name, take in TAKERS.items():
            run = overwritten()
            with self.subTest(name), self.assertRaisesRegex(Exception, "overwritten"):
                take(run.read(on_loss="raise"))

    def test_a_warning_that_is_made_an_error_is_one(self) -> None:
        run = overwritten()
        with warnings.catch_warnings(), self.assertRaisesRegex(OSError, "rows lost"):
            warnings.simplefilter("error", strobe.Lost)
            pa.table(run)

    def test_a_file_that_was_cut_off_gives_its_rows_and_then_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scan.arrows"
            strobe.record(None, path, event="timer:1kHz", read=READ, rows=300, engine="user")
            whole = path.read_bytes()
            path.write_bytes(whole[:len(whole) * 2 // 3])
            batches = pa.RecordBatchReader.from_stream(strobe.open(path))
            rows = 0
            with self.assertRaisesRegex(OSError, "not known"):
                for batch in batches:
                    rows += batch.num_rows
            there = strobe.open(path).read()
            with self.assertRaises(strobe.Error):
                for block in there:
                    rows -= len(block)
            self.assertEqual(rows, 0)


class Waiting(unittest.TestCase):
    def setUp(self) -> None:
        # Who is started in the background has it ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_ctrl_c_ends_a_wait_for_rows_that_never_come(self) -> None:
        for name, take in TAKERS.items():
            # If another thread than its main one waits for rows, DuckDB ends with the next ones.
            if name != "duckdb":
                with self.subTest(name), soft() as run:
                    self.ends(take, run)

    def test_ctrl_c_ends_the_reading_of_a_run_that_goes_on(self) -> None:
        for name, take in TAKERS.items():
            with self.subTest(name), made(10**9) as run, warnings.catch_warnings():
                warnings.simplefilter("ignore", strobe.Lost)
                # DuckDB takes the signal itself, or we do.
                self.ends(take, run, (KeyboardInterrupt, RuntimeError) if name == "duckdb" else KeyboardInterrupt)

    def ends(self, take: Callable[[object], pa.Table], run: strobe.Run, with_=KeyboardInterrupt) -> None:
        run.start()
        with ctrl_c(run.stop) as begun:
            with self.assertRaises(with_):
                begun.set()
                self.interrupted(take, run)
            self.assertEqual(run.state, "running")

    def interrupted(self, take: Callable[[object], pa.Table], run: strobe.Run) -> None:
        try:
            take(run)
        except (OSError, pl.exceptions.PolarsError) as error:
            # As soon as Python goes on, the interrupt comes.
            self.fail(error)

    def test_other_threads_run_while_rows_are_waited_for(self) -> None:
        for name, take in TAKERS.items():
            with self.subTest(name), soft(rows=3) as run:
                run.start()
                thread = threading.Timer(0.1, run.trigger, (3,))
                thread.start()
                self.assertEqual(take(run).num_rows, 3)
                thread.join()

    def test_nothing_is_left_of_streams_that_were_read_or_not(self) -> None:
        def left() -> tuple[int, int]:
            gc.collect()
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        def once() -> None:
            with made(2) as run:
                pa.table(run)
                run.__arrow_c_stream__()
                run.__arrow_c_schema__()
                pa.RecordBatchReader.from_stream(run)
                for block in run:
                    block.__arrow_c_stream__()

        once()
        before = left()
        for _ in range(50):
            once()
        # A thread is joined a moment before it has left /proc. Each: fewer descriptors make up for no thread.
        wait_for(lambda: all(now <= then for now, then in zip(left(), before)), f"no more than {before} are left")


if __name__ == "__main__":
    unittest.main()
