# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs of this machine in Python: their rows, their account, and what becomes of who waits for them."""

import asyncio
import gc
import os
import signal
import tempfile
import threading
import unittest
import warnings

import numpy as np
import strobe
from daemon import wait_for
from interrupt import ctrl_c

READ = ["sim.counter", "sim.sine", "sim.ramp"]


def made(rows: int = 1000, **words):
    return strobe.run(event="timer:1kHz", read=READ, rows=rows, engine="user", **words)


class Rows(unittest.TestCase):
    def whole(self, account: strobe.Account, rows: int) -> None:
        self.assertEqual(account.triggers, account.rows + account.missed + account.skipped)
        self.assertEqual(account.missed, sum(account.missed_by.values()))
        self.assertEqual(rows + account.lost, account.rows)

    def test_all_rows_come_and_the_account_is_exact(self) -> None:
        rows, triggers, missed = [], [], 0
        with made() as run:
            for block in run:
                rows += block.rows.tolist()
                triggers += block.triggers.tolist()
                missed += block.missed
        self.assertEqual(rows, list(range(1000)))
        self.whole(run.account, len(rows))
        self.assertEqual(run.account.end, "complete")
        self.assertEqual(run.state, "done")
        # The last rows of a run may have been missed: that is behind the last row.
        self.assertLessEqual(missed, run.missed)
        self.assertEqual(triggers[-1] + 1 - len(rows), missed)

    def test_a_block_is_the_memory_of_the_rows_and_stays_as_it_is(self) -> None:
        with made(rows=50) as run:
            blocks = [(block, block.words.copy()) for block in run]
        for block, words in blocks:
            there = block._native.__array_interface__["data"][0]
            self.assertEqual(block.words.ctypes.data, there, "no copy")
            self.assertTrue(np.shares_memory(block.array, block.words))
            self.assertTrue(np.shares_memory(block.raw["sim.sine"], block.words))
            np.testing.assert_array_equal(block.words, words)
            with self.assertRaises(ValueError):
                block.words[0, 0] = 1

    def test_columns_are_the_fields_of_the_array_in_their_units(self) -> None:
        with made(rows=100) as run:
            for block in run:
                np.testing.assert_array_equal(block.array["row"], block.rows)
                np.testing.assert_array_equal(block.array["time"], block.time)
                for channel in run.info.channels:
                    raw = block.raw[channel.name]
                    self.assertEqual(raw.dtype, np.dtype(channel.dtype))
                    np.testing.assert_array_equal(block.array[channel.name], raw)
                    np.testing.assert_allclose(block[channel.name], raw * channel.scale + channel.offset, rtol=1e-15)
                    self.assertFalse(block.failed[channel.name].any())

    def test_asyncio_waits_for_the_descriptor_and_starts_no_thread(self) -> None:
        async def read() -> tuple[int, int]:
            rows = 0
            before = threading.active_count()
            with made(rows=500) as run:
                async for block in run:
                    rows += len(block)
                    most = threading.active_count()
            self.whole(run.account, rows)
            return rows, most - before

        self.assertEqual(asyncio.run(read()), (500, 0))

    def test_two_readers_have_places_of_their_own(self) -> None:
        with made(rows=200) as run:
            first = [row for block in run for row in block.rows.tolist()]
            second = [row for block in run for row in block.rows.tolist()]
            last = [row for block in run.read(150) for row in block.rows.tolist()]
        self.assertEqual((first, second, last), (list(range(200)), list(range(200)), list(range(150, 200))))

    def test_a_run_of_the_event_soft_makes_a_row_for_each_trigger(self) -> None:
        with strobe.run(event="soft", read=["sim.counter"], rows=5, engine="user") as run:
            run.start()
            run.trigger(5)
            rows = sum(len(block) for block in run)
        self.assertEqual(rows, 5)

    def test_a_pause_is_no_loss(self) -> None:
        with made(rows=100) as run:
            run.start()
            run.pause()
            self.assertEqual(run.state, "paused")
            run.resume()
            rows = sum(len(block) for block in run)
        self.whole(run.account, rows)


class Loss(unittest.TestCase):
    def slow(self) -> strobe.Run:
        """A run that has overwritten most of its rows."""
        run = made(rows=400, ring=16)
        run.start()
        while run.state == "running":
            signal.sigtimedwait([], 0.01)
        return run

    def test_who_comes_late_is_told_what_he_has_lost(self) -> None:
        run = self.slow()
        blocks = list(run)
        rows, lost = sum(len(block) for block in blocks), sum(block.lost for block in blocks)
        self.assertEqual(rows + lost, 400)
        self.assertGreater(lost, 300)
        self.assertEqual(run.lost, lost)
        self.assertFalse(run.account.whole)

    def test_who_wants_an_error_gets_one(self) -> None:
        run = self.slow()
        with self.assertRaises(strobe.Error) as raised:
            list(run.read(on_loss="raise"))
        self.assertIn("overwritten", raised.exception.reason)

    def test_a_loss_that_nobody_has_asked_about_is_warned_of(self) -> None:
        run = self.slow()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for block in run:
                len(block)
            del block
            gc.collect()
        self.assertTrue(any(isinstance(warning.message, strobe.Lost) for warning in said))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for block in run:
                self.assertIsNotNone((block.lost, block.missed))
            del block
            gc.collect()
        self.assertEqual(said, [])


class Waiting(unittest.TestCase):
    def setUp(self) -> None:
        # Who is started in the background has it ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_ctrl_c_ends_a_wait_for_rows(self) -> None:
        with strobe.run(event="soft", read=["sim.counter"], engine="user") as run:
            with ctrl_c(run.stop) as begun, self.assertRaises(KeyboardInterrupt):
                begun.set()
                list(run)

    def test_ctrl_c_ends_a_recording_and_its_file_is_whole(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/cut.arrows"
            with made(rows=10**9) as run:
                # The recorder starts the run: where there are rows, it is there, and makes its file.
                with ctrl_c(run.stop, lambda: run.account.rows) as begun, self.assertRaises(KeyboardInterrupt):
                    begun.set()
                    run.record(path)
            recorded = strobe.open(path)
            rows = sum(len(block) for block in recorded)
        self.assertEqual(recorded.account.end, "stopped")
        self.assertEqual(rows, recorded.account.rows)

    def test_nothing_is_left_of_runs_that_were_closed(self) -> None:
        def left() -> tuple[int, int]:
            gc.collect()
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        def once() -> None:
            with made(rows=2) as run:
                list(run)

        once()
        before = left()
        for _ in range(100):
            once()
        # A thread is joined a moment before it has left /proc. Each: fewer descriptors make up for no thread.
        wait_for(lambda: all(now <= then for now, then in zip(left(), before)), f"no more than {before} are left")


class Refused(unittest.TestCase):
    def test_an_error_says_object_reason_and_remedy(self) -> None:
        with self.assertRaises(strobe.Error) as raised:
            strobe.run(event="timer:1kHz", read=["sim.countr"], engine="user")
        error = raised.exception
        self.assertEqual((error.object, error.reason), ("channel sim.countr", "no such channel"))
        self.assertIn("counter", error.remedy)
        self.assertEqual(str(error), f"{error.object}: {error.reason}; {error.remedy}")

    def test_a_word_that_there_is_not_is_refused(self) -> None:
        with self.assertRaisesRegex(strobe.Error, "sinkz"):
            strobe.run(event="timer:1kHz", read=READ, sinkz="x")

    def test_a_time_that_is_no_number_of_rows_is_refused_and_does_not_last_for_ever(self) -> None:
        with self.assertRaisesRegex(strobe.Error, "seconds: they give no number of rows here.*rows="):
            strobe.record(None, event="soft", read=READ, seconds=0.01, engine="user")

    def test_a_channel_that_a_run_does_not_have_is_a_key_error_with_those_that_it_has(self) -> None:
        with made(rows=1) as run:
            for block in run:
                with self.assertRaisesRegex(KeyError, "sim.counter, sim.sine, sim.ramp"):
                    block["sim.nothing"]

    def test_another_run_is_not_steered(self) -> None:
        with made(rows=10**6) as run:
            run.start()
            other = strobe.attach(f"user:{run.info.run}")
            with self.assertRaisesRegex(strobe.Error, "can stop it"):
                other.stop()
            first = next(iter(other))
            self.assertGreater(len(first), 0)
            self.assertIn(run.info.run, [one["run"] for one in strobe.status()])
        with self.assertRaises(strobe.Error):
            strobe.attach("user:4000000000")

    def test_values_are_read_and_outputs_written_once(self) -> None:
        strobe.set({"sim.latch": 1})
        strobe.set("sim.latch", 0)
        with self.assertRaisesRegex(strobe.Error, "sim.latc: no such output"):
            strobe.set("sim.latc", 1)
        for words in (("sim.latch",), ({"sim.latch": 1}, 1)):
            with self.assertRaisesRegex(TypeError, "say set"):
                strobe.set(*words)
        self.assertEqual(set(strobe.get("sim.counter", "sim.sine")), {"sim.counter", "sim.sine"})
        self.assertIn("sim.counter", [channel["name"] for channel in strobe.catalogue()["user"]["channels"]])


if __name__ == "__main__":
    unittest.main()
