# SPDX-License-Identifier: MIT OR Apache-2.0
"""A process that forks: its child is refused what is not its own, harms nothing, and never hangs."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from daemon import Daemon

#: A child that hangs does so for ever.
AT_MOST_S = 120

#: What each program begins with. `refused` says what of a run its child was not refused.
BEGIN = """
import asyncio, multiprocessing, os, sys
import strobe

ROWS = 600

def made(**words):
    return strobe.run(**{"event": "timer:1kHz", "read": ["sim.counter"], "rows": ROWS, "engine": "user", **words})

def refused(run):
    async def by_asyncio():
        async for _ in run:
            pass

    asks = {
        "start": run.start, "stop": run.stop, "remove": run.remove, "pause": run.pause, "resume": run.resume, "trigger": run.trigger,
        "state": lambda: run.state, "account": lambda: run.account, "missed": lambda: run.missed, "read": run.read,
        "for": lambda: list(run), "async for": lambda: asyncio.run(by_asyncio()), "record": lambda: run.record("fork.arrows"),
        "table": run.__arrow_c_stream__,
    }
    granted = []
    for name, ask in asks.items():
        try:
            ask()
        except strobe.Error as error:
            if error.object != run.name or "forked" not in error.reason or "in the process that uses them" not in error.remedy:
                granted.append(f"{name}: {error}")
        else:
            granted.append(name)
    return granted

def ended_well(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child has failed"
"""


class Fork(unittest.TestCase):
    def passes(self, program: str, *words: str) -> None:
        """It ends, with its children, and nothing it has said is wrong."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="strobe-python-"))
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + program, *words]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        hangs = threading.Timer(AT_MOST_S, os.killpg, (process.pid, signal.SIGKILL))
        hangs.start()
        said, _ = process.communicate()
        hangs.cancel()
        self.assertEqual(process.returncode, 0, said or f"not within {AT_MOST_S} s")

    def test_every_method_of_a_run_is_refused_and_the_parent_loses_nothing(self) -> None:
        self.passes("""
with made() as run:
    rows = run.read()
    first = next(rows)
    child = os.fork()
    if child == 0:
        granted = refused(run)
        assert not granted, granted
        # It leaves the `with`, and everything is dropped.
        sys.exit(0)
    ended_well(child)
    assert run.state in ("running", "done"), run.state
    assert len(first) + sum(len(block) for block in rows) + run.lost == ROWS
    assert run.account.end == "complete", run.account
""")

    def test_a_run_that_is_ready_and_one_of_another_process_and_a_recording_are_refused_too(self) -> None:
        self.passes("""
ready = made()
with made() as run:
    run.record("scan.arrows")
    runs = [ready, strobe.attach(f"user:{run.info.run}"), strobe.open("scan.arrows"), strobe.replay("scan.arrows", speed=None)]
    child = os.fork()
    if child == 0:
        granted = [refused(run) for run in runs]
        assert granted == [[]] * 4, granted
        del runs, ready
        sys.exit(0)
    ended_well(child)
    assert ready.state == "ready"
    ready.stop()
""")

    def test_a_server_and_its_run_are_refused_and_the_connection_stays_the_parents(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        self.passes("""
machine = strobe.connect(sys.argv[1])
with machine.run(event="timer:1kHz", read=["sim.counter"], rows=ROWS, engine="user") as run:
    rows = iter(run)
    first = next(rows)
    child = os.fork()
    if child == 0:
        granted = refused(run)
        assert not granted, granted
        try:
            machine.status()
        except strobe.Error as error:
            assert "forked" in error.reason, error
        else:
            raise AssertionError("status was granted")
        assert strobe.connect(sys.argv[1]).status()
        sys.exit(0)
    ended_well(child)
    assert len(first) + sum(len(block) for block in rows) == ROWS
    assert machine.status()
""", daemon.url)

    def test_a_child_of_multiprocessing_is_refused_and_makes_runs_of_its_own(self) -> None:
        self.passes("""
def work(run):
    granted = refused(run)
    assert not granted, granted
    with made(rows=50) as own:
        assert sum(len(block) for block in own) + own.lost == 50
    assert strobe.get("sim.counter")

with made() as run:
    run.start()
    child = multiprocessing.get_context("fork").Process(target=work, args=(run,))
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode
    assert sum(len(block) for block in run) + run.lost == ROWS
""")


if __name__ == "__main__":
    unittest.main()
