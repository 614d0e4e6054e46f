# SPDX-License-Identifier: MIT OR Apache-2.0
"""The package with runs of the kernel engine; lab/cases/python puts it into a guest, which has a card of QEMU, edu."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import numpy as np
import strobe

READ = ["edu.id", "sim.counter", "sim.ramp"]
ID = 0x010000ED
AT_MOST_S = 120


def made(rows: int = 500, event: str = "timer:200Hz", **words) -> strobe.Run:
    return strobe.run(event=event, read=READ, rows=rows, engine="kernel", **words)


class Kernel(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(warnings.catch_warnings())
        # A guest of a busy machine misses triggers, and these tests are not about that.
        warnings.simplefilter("ignore", strobe.Lost)

    def whole(self, account: strobe.Account, rows: int) -> None:
        self.assertEqual(account.triggers, account.rows + account.missed + account.skipped)
        self.assertEqual(rows + account.lost, account.rows)

    def test_each_block_has_the_rows_of_the_card_and_is_the_memory_of_them(self) -> None:
        rows, triggers = [], []
        with made() as run:
            for block in run:
                rows += block.rows.tolist()
                triggers += block.triggers.tolist()
                self.assertTrue((block["edu.id"] == ID).all())
                self.assertTrue(np.shares_memory(block.array, block.words))
        self.assertEqual(rows, list(range(500)))
        self.whole(run.account, len(rows))
        self.assertEqual((run.account.end, run.state, run.info.engine), ("complete", "done", "kernel"))

    def test_asyncio_waits_for_the_descriptor_and_starts_no_thread(self) -> None:
        async def read() -> tuple[int, int]:
            rows, before = 0, threading.active_count()
            with made() as run:
                async for block in run:
                    rows += len(block)
                    most = threading.active_count()
            self.whole(run.account, rows)
            return rows, most - before

        self.assertEqual(asyncio.run(read()), (500, 0))

    def test_each_trigger_of_a_program_is_a_row_and_who_is_too_slow_is_told(self) -> None:
        with strobe.run(event="soft", read=["sim.counter"], ring=16, engine="kernel") as run:
            run.start()
            run.trigger(100)
            with self.assertRaises(strobe.Error) as lost:
                list(run.read(0, follow=False, on_loss="raise"))
            self.assertTrue(lost.exception.remedy)
            blocks = list(run.read(0, follow=False))
        rows = np.concatenate([block.rows for block in blocks])
        self.assertEqual(rows.tolist(), list(range(100 - len(rows), 100)))
        self.assertGreater(len(rows), 8)
        self.assertEqual((run.account.triggers, sum(block.lost for block in blocks) + len(rows)), (100, 100))

    def test_what_the_hard_handler_computes_and_is_tuned_to_is_in_the_rows(self) -> None:
        with strobe.run(event="soft", read=["sim.counter"], derive={"above": "clamp(sim.counter, 0, 100) - low"},
                        keep="clamp(sim.counter, 0, 100) >= low", tune={"low": 5}, engine="kernel") as run:
            run.start()
            run.trigger(10)
            run.tune(low=12)
            run.trigger(10)
            blocks = list(run.read(follow=False))
        values = np.concatenate([block["sim.counter"] for block in blocks])
        above = np.concatenate([block["above"] for block in blocks])
        self.assertEqual(values.tolist(), [*range(5, 10), *range(12, 20)])
        self.assertEqual(above.tolist(), [*range(5), *range(8)])
        self.assertEqual((run.account.triggers, run.account.skipped), (20, 7))

    def test_a_recording_has_every_row_and_is_read_again(self) -> None:
        run = made(event="timer:1kHz", rows=1000)
        summary = run.record("scan.h5", "scan.arrows")
        self.whole(run.account, 1000)
        self.assertEqual(summary.rows, 1000)
        for name in ("scan.h5", "scan.arrows"):
            recorded = strobe.open(name)
            rows = np.concatenate([block.rows for block in recorded])
            self.assertEqual(rows.tolist(), list(range(1000)))
            self.assertEqual(recorded.account.triggers, run.account.triggers)

    def test_another_process_reads_the_run_and_ends_nothing(self) -> None:
        with made(rows=2000, event="timer:1kHz") as run:
            run.start()
            code = (f"import strobe; run = strobe.attach('kernel:{run.info.run}'); rows = sum(len(block) for block in run.read(0)); "
                    "print(rows + run.lost, run.account.rows)")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=AT_MOST_S)
            self.assertEqual(done.stdout.split(), ["2000", "2000"], done.stderr)
            self.assertEqual(sum(len(block) for block in run) + run.lost, 2000)

    def test_ctrl_c_ends_a_wait_for_rows_that_do_not_come(self) -> None:
        with strobe.run(event="soft", read=["sim.counter"], engine="kernel") as run:
            run.start()
            begun = threading.Event()

            def interrupt() -> None:
                begun.wait()
                time.sleep(0.5)
                signal.raise_signal(signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                # It takes time to start a thread: none before is what it interrupts.
                begun.set()
                next(iter(run))
            thread.join()

    def test_values_are_read_and_outputs_written_once(self) -> None:
        self.assertEqual(strobe.get("edu.id")["edu.id"], ID)
        strobe.set("edu.liveness", 0x0F0F0F0F)
        self.assertEqual(strobe.get("edu.liveness")["edu.liveness"], 0xF0F0F0F0)

    def test_a_channel_that_is_not_there_is_named_with_what_helps(self) -> None:
        with self.assertRaises(strobe.Error) as refused:
            strobe.run(event="soft", read=["edu.nothing"], engine="kernel")
        self.assertIn("edu.nothing", refused.exception.object)
        self.assertTrue(refused.exception.reason and refused.exception.remedy)

    def test_nothing_is_left_of_runs_that_were_closed(self) -> None:
        for _ in range(50):
            with strobe.run(event="soft", read=["sim.counter"], ring=16, engine="kernel") as run:
                run.start()
                run.trigger()
        del run
        self.assertEqual(strobe.status(), [])


if __name__ == "__main__":
    unittest.main()
