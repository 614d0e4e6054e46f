# SPDX-License-Identifier: MIT OR Apache-2.0
"""Nothing is left of what was closed: no descriptor, no thread, no memory; whoever comes and goes at the same time."""

import asyncio
import ctypes
import gc
import os
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path

import pyarrow
import strobe
from daemon import Daemon, wait_for

TIMES = 1000
#: Memory that an allocator may keep, in KiB.
SLACK = 8 << 10
#: What the C library keeps of the stacks of threads that have ended, in KiB. Those of runs are locked, and so all there.
STACKS = 40 << 10


def memory() -> int:
    """KiB that belong to this process alone, without what its allocator has for later."""
    ctypes.CDLL(None).malloc_trim(0)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0])


def left() -> tuple[int, int]:
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


class Left(unittest.TestCase):
    def check(self, once: Callable[[], object], times: int = TIMES, slack: int = SLACK) -> None:
        # What is made once, and what an allocator takes at first, is there.
        for _ in range(times // 10):
            once()
        before, had = left(), memory()
        for _ in range(times):
            once()
        # Each: fewer descriptors make up for no thread.
        wait_for(lambda: all(now <= then for now, then in zip(left(), before)), f"no more than {before} descriptors and threads are left")
        self.assertLess(memory() - had, slack)

    def test_of_a_thousand_runs_that_were_read(self) -> None:
        def once() -> None:
            with strobe.run(event="soft", read=["sim.counter"], rows=2, ring=16, engine="user") as run:
                run.start()
                run.trigger(2)
                self.assertEqual(sum(len(block) for block in run), 2)

        self.check(once)

    def test_of_a_thousand_runs_that_were_dropped_or_left(self) -> None:
        def once() -> None:
            run = strobe.run(event="timer:1kHz", read=["sim.counter"], ring=16, engine="user")
            for block in run:
                _ = block.lost, block.missed
                break

        self.check(once)

    def test_of_a_thousand_runs_by_asyncio_that_were_cancelled(self) -> None:
        async def cancelled() -> None:
            async def read() -> None:
                with strobe.run(event="soft", read=["sim.counter"], ring=16, engine="user") as run:
                    async for _ in run:
                        pass

            task = asyncio.create_task(read())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        async def many() -> None:
            for _ in range(10):
                await cancelled()

        self.check(lambda: asyncio.run(many()), TIMES // 10)

    def test_of_a_thousand_readers_of_a_recording_and_tables(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            strobe.record(None, f"{folder}/a.arrows", event="timer:10kHz", read=["sim.counter"], rows=50, engine="user")
            recording = strobe.open(f"{folder}/a.arrows")
            self.check(lambda: (sum(len(block) for block in recording), pyarrow.table(recording)))

    def test_of_runs_of_a_server(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        machine = strobe.connect(daemon.url)

        def once() -> None:
            run = machine.run(event="soft", read=["sim.counter"], rows=2, ring=16, engine="user")
            run.start()
            run.trigger(2)
            self.assertEqual(sum(len(block) for block in run), 2)
            run.remove()

        self.check(once, TIMES // 5)
        self.assertEqual(machine.status(), [])

    def test_threads_that_make_read_and_share_runs_at_once(self) -> None:
        """Two threads with runs of their own, and two with readers of one run: each gets every row of its own."""
        failed: list[BaseException] = []

        def thread(work: Callable[[], None]) -> threading.Thread:
            def guarded() -> None:
                try:
                    work()
                except BaseException as error:
                    failed.append(error)

            started = threading.Thread(target=guarded)
            started.start()
            return started

        def together(work: Callable[[], None]) -> None:
            for one in [thread(work), thread(work)]:
                one.join()
            if failed:
                raise failed[0]

        def own() -> None:
            for _ in range(10):
                with strobe.run(event="timer:10kHz", read=["sim.counter"], rows=20, engine="user") as run:
                    rows = sum(len(block) for block in run)
                self.assertEqual(rows + run.lost, 20)

        def both() -> None:
            together(own)
            with strobe.run(event="timer:10kHz", read=["sim.counter"], rows=200, engine="user") as run:
                run.start()

                def reads() -> None:
                    reader = run.read(0)
                    blocks = list(reader)
                    self.assertEqual(sum(len(block) + block.lost for block in blocks), 200)

                together(reads)

        self.check(both, 60, SLACK + STACKS)


if __name__ == "__main__":
    unittest.main()
