# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C ends every call that waits within 100 ms, also for a device that is slow, and for a server that has nothing to say or
stands still."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow
import strobe
from daemon import AT_MOST_S, Daemon
from interrupt import ctrl_c

#: How long it waits before it is interrupted, in s.
BEFORE = 0.1
#: How soon Ctrl-C ends a wait, in s, beside what it takes to end a sleep on this machine.
SOON = 0.1
TRIES = 5

#: An instrument that may take its time, and is asked by each row.
BOARD = """
[board]
name = "slow"
description = "it never answers"
[transport]
kind = "tcp"
address = "127.0.0.1:{port}"
timeout = 60
[channel.value]
query = "MEAS?"
"""

#: Another program with a run.
OTHER = """
import strobe, time
run = strobe.run(event="soft", read=["sim.counter"], engine="user")
print(run.info.run, flush=True)
time.sleep(1000)
"""


def stand_still(process: subprocess.Popen) -> None:
    """Stops it, and comes back when all its threads have stopped: until then one might answer."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


class Waiting(unittest.TestCase):
    def setUp(self) -> None:
        # Who is started in the background has it ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def interrupted(self, wait: Callable[[], object], otherwise: Callable[[], object], what: str = "it", soon: float = SOON) -> None:
        """Ctrl-C ends it soon: most times, and beside a sleep by turns. `otherwise` ends the wait of a call that does not hear it."""
        took, bare = [], []
        for number in range(TRIES):
            # At different places between two looks for signals.
            before = BEFORE + number / 50
            took.append(self.once(before, wait, otherwise))
            bare.append(self.once(before, lambda: time.sleep(AT_MOST_S), lambda: None))
        print(f"{self.id().split('.')[-1]}: {what} {median(took) * 1000:.0f} ms, a sleep {median(bare) * 1000:.0f} ms", flush=True)
        self.assertLess(median(took), median(bare) + soon, f"{what}: {took}, a sleep {bare}")

    def once(self, before: float, wait: Callable[[], object], otherwise: Callable[[], object]) -> float:
        """How long after Ctrl-C it is back, in s."""
        with ctrl_c(otherwise, before=before, at_most=AT_MOST_S / 4) as begun:
            with self.assertRaises(KeyboardInterrupt):
                begun.set()
                wait()
            after = time.monotonic() - begun.sent_at
            # Its own time has not come: it was Ctrl-C that has ended it.
            self.assertFalse(begun.is_over)
        return after

    def quiet(self) -> strobe.Run:
        """A run without a trigger."""
        run = strobe.run(event="soft", read=["sim.counter"], engine="user")
        self.addCleanup(run.stop)
        run.start()
        return run

    def served(self) -> tuple[Daemon, strobe.Machine, strobe.Run]:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        machine = strobe.connect(daemon.url)
        run = machine.run(event="soft", read=["sim.counter"], engine="user")
        run.start()
        return daemon, machine, run

    def silent(self) -> strobe.Run:
        """A run with a channel of an instrument that never answers."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        instrument = socket.create_server(("127.0.0.1", 0))
        (folder / "board.toml").write_text(BOARD.format(port=instrument.getsockname()[1]))
        run = strobe.run(board=str(folder / "board.toml"), event="soft", read=["slow.value"], engine="user")
        # It can end when the instrument has gone.
        self.addCleanup(run.stop)
        self.connection, _ = instrument.accept()
        # Who is gone is waited for no more.
        self.addCleanup(self.connection.close)
        self.addCleanup(instrument.close)
        run.start()
        return run

    def test_a_wait_for_rows(self) -> None:
        async def read(run: strobe.Run) -> None:
            async for _ in run:
                pass

        def table() -> None:
            # As soon as Python goes on, the interrupt comes.
            with contextlib.suppress(OSError):
                pyarrow.table(run)
            time.sleep(AT_MOST_S)

        run = self.quiet()
        waits = {"for": lambda: list(run), "async for": lambda: asyncio.run(read(run)), "table": table}
        for name, wait in waits.items():
            with self.subTest(name):
                self.interrupted(wait, run.stop, name)

    def test_every_call_that_opens_what_keeps_it_waiting(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory())
        # Who opens it waits for somebody who writes into it.
        pipe = f"{folder}/pipe"
        os.mkfifo(pipe)
        words = {"event": "soft", "read": [f"file:{pipe}"], "engine": "user"}
        asks = {
            "get": lambda: strobe.get(f"file:{pipe}"), "run": lambda: strobe.run(**words),
            "record": lambda: strobe.record(None, f"{folder}/x.arrows", **words),
            "open": lambda: strobe.open(pipe), "replay": lambda: strobe.replay(pipe),
        }

        def write() -> None:
            # Who does not wait is no reader.
            with contextlib.suppress(OSError):
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

        self.addCleanup(write)
        for name, ask in asks.items():
            with self.subTest(name):
                self.interrupted(ask, write, name)

    def test_every_call_to_a_run_whose_row_waits_for_an_instrument(self) -> None:
        run = self.silent()
        asks = {"trigger": run.trigger, "pause": run.pause, "resume": run.resume, "start": run.start, "stop": run.stop}
        for name, ask in asks.items():
            with self.subTest(name):
                self.interrupted(ask, self.connection.close, name)

    def test_every_call_for_a_run_of_a_program_that_stands_still(self) -> None:
        program = subprocess.Popen([sys.executable, "-c", OTHER], stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        number = int(program.stdout.readline())
        stand_still(program)
        for name, ask in {"attach": lambda: strobe.attach(f"user:{number}"), "status": strobe.status}.items():
            with self.subTest(name):
                self.interrupted(ask, program.kill, name)

    def test_doctor_and_jitter(self) -> None:
        self.interrupted(lambda: [strobe.doctor() for _ in range(1000)], lambda: None, "doctor")
        self.interrupted(lambda: strobe.jitter("1kHz", seconds=60), lambda: None, "jitter")

    def test_a_recording_of_a_quiet_run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = self.quiet()
            other = strobe.attach(f"user:{run.info.run}")
            # A recording looks every 100 ms whether it is to end, and then ends its files.
            self.interrupted(lambda: other.record(f"{folder}/quiet.arrows", overwrite=True), run.stop, soon=2 * SOON)
            self.assertEqual(len(list(strobe.open(f"{folder}/quiet.arrows"))), 0)

    def test_a_wait_for_rows_of_a_server(self) -> None:
        _, _, run = self.served()

        async def read() -> None:
            async for _ in run:
                pass

        self.interrupted(lambda: list(run), run.stop, "for")
        threads = threading.active_count()
        self.interrupted(lambda: asyncio.run(read()), run.stop, "async for")
        self.assertEqual(threading.active_count(), threads, "no thread of Python waits for rows")

    def test_every_question_to_a_server_that_stands_still(self) -> None:
        daemon, machine, run = self.served()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        asks = {
            "connect": lambda: strobe.connect(daemon.url), "status": machine.status, "catalogue": machine.catalogue,
            "get": lambda: machine.get("sim.counter"), "set": lambda: machine.set({"sim.latch": 1}),
            "run": lambda: machine.run(event="soft", read=["sim.counter"], engine="user"),
            "attach": lambda: machine.attach(run.name.rsplit(" ", 1)[-1]), "runs": lambda: machine.runs,
            "state": lambda: run.state, "account": lambda: run.account, "pause": run.pause, "resume": run.resume,
            "trigger": run.trigger, "stop": run.stop, "remove": run.remove, "record": lambda: run.record(f"{folder}/x.arrows"),
            "view": run._repr_html_, "rows": lambda: list(run),
        }
        stand_still(daemon.process)
        self.addCleanup(daemon.process.send_signal, signal.SIGCONT)
        for name, ask in asks.items():
            with self.subTest(name):
                self.interrupted(ask, lambda: daemon.process.send_signal(signal.SIGCONT), name)
        daemon.process.send_signal(signal.SIGCONT)
        # It does what it was asked for, and answers again.
        self.assertIsInstance(machine.status(), list)

    def test_rows_of_a_server_come_by_asyncio_and_one_that_is_killed_is_an_error(self) -> None:
        daemon, machine, _ = self.served()

        async def read(run: strobe.Run) -> int:
            rows = 0
            async for block in run:
                rows += len(block)
                if rows >= 2000:
                    daemon.process.kill()
            return rows

        with machine.run(event="timer:10kHz", read=["sim.counter"], rows=1000, engine="user") as run:
            self.assertEqual(asyncio.run(read(run)) + run.account.lost, 1000)
        self.assertEqual(run.account.end, "complete")
        self.assertEqual(run.account.triggers, run.account.rows + run.account.missed + run.account.skipped)
        endless = machine.run(event="timer:10kHz", read=["sim.counter"], engine="user")
        with self.assertRaises(strobe.Error) as raised:
            asyncio.run(read(endless))
        self.assertIn("cut off before row", raised.exception.reason)
        self.assertIn("spool", raised.exception.remedy)


class AsFarAsThereAreRows(unittest.TestCase):
    def test_who_does_not_follow_waits_for_no_row(self) -> None:
        with strobe.run(event="soft", read=["sim.counter"], engine="user") as run:
            run.start()
            run.trigger(10)
            while json.loads(run._native.look())["rows"] < 10:
                time.sleep(0.001)
            self.assertEqual([row for block in run.read(follow=False) for row in block.rows.tolist()], list(range(10)))
            self.assertEqual(pyarrow.table(run.read(3, follow=False)).num_rows, 7)


if __name__ == "__main__":
    unittest.main()
