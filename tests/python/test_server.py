# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs of a server in Python: the same class, the same numbers."""

import asyncio
import tempfile
import unittest

import numpy as np
import strobe
from daemon import Daemon, wait_for

SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine"]\nengine = "user"\nrows = 400\n'


class Server(unittest.TestCase):
    def daemon(self, **words) -> Daemon:
        daemon = Daemon({"scan": SCAN}, **words)
        self.addCleanup(daemon.close)
        return daemon

    def test_a_run_of_a_server_is_read_like_one_of_this_machine(self) -> None:
        server = strobe.connect(self.daemon().url)
        with server.run(event="timer:1kHz", read=["sim.counter", "sim.sine"], rows=400, engine="user") as run:
            rows = np.concatenate([block.array for block in run])
        self.assertEqual(rows["row"].tolist(), list(range(400)))
        self.assertEqual((run.account.rows, run.account.lost, run.account.end), (400, 0, "complete"))
        (past,) = server.runs.values()
        np.testing.assert_array_equal(np.concatenate([block.array for block in past]), rows)

        async def read() -> list[int]:
            return [row async for block in past for row in block.rows.tolist()]

        self.assertEqual(asyncio.run(read()), list(range(400)))
        part = [row for block in past.read(100) for row in block.rows.tolist()]
        self.assertEqual(part, list(range(100, 400)))

    def test_a_run_of_a_server_is_recorded_here_and_again_when_it_is_over(self) -> None:
        server = strobe.connect(self.daemon().url)
        with tempfile.TemporaryDirectory() as folder:
            with server.run(event="timer:1kHz", read=["sim.counter"], rows=200, engine="user") as run:
                summaries = [run.record(f"{folder}/live.arrows"), run.record(f"{folder}/past.arrows")]
            self.assertEqual([(one.rows, one.lost, one.end) for one in summaries], [(200, 0, "complete")] * 2)
            recorded = [np.concatenate([block.array for block in strobe.open(f"{folder}/{name}.arrows")]) for name in ("live", "past")]
            np.testing.assert_array_equal(*recorded)

    def test_values_of_a_server_are_read_and_written(self) -> None:
        server = strobe.connect(self.daemon().url)
        server.set({"sim.latch": 3})
        server.set("sim.latch", 4)
        with self.assertRaises(strobe.Error):
            server.set("sim.latc", 1)
        self.assertEqual(set(server.get("sim.counter")), {"sim.counter"})
        self.assertIn("user", server.catalogue())
        self.assertEqual(server.status(), [])

    def test_who_has_no_token_or_the_wrong_role_is_told_so(self) -> None:
        view, control = "view-0123456789abcdef0123", "control-0123456789abcdef0"
        daemon = self.daemon(tokens=f"view {view}\ncontrol {control}\n")
        with self.assertRaises(strobe.Error):
            strobe.connect(daemon.url)
        with self.assertRaises(strobe.Error):
            strobe.connect(daemon.url, token=view).run(event="timer:1kHz", read=["sim.counter"], engine="user")
        strobe.connect(daemon.url, token=control).set({"sim.latch": 1})

    def test_a_run_that_is_removed_is_gone_with_its_rows(self) -> None:
        machine = strobe.connect(self.daemon().url)
        with machine.run(event="soft", read=["sim.counter"], engine="user") as run:
            (number,) = machine.runs
            run.remove()
            self.assertEqual(machine.runs, {})
        with self.assertRaisesRegex(strobe.Error, "no such run"):
            machine.attach(number)

    def test_a_server_that_is_killed_is_an_error_and_not_an_end(self) -> None:
        daemon = self.daemon()
        run = strobe.connect(daemon.url).run(event="timer:1kHz", read=["sim.counter"], engine="user")
        rows = 0
        with self.assertRaises(strobe.Error):
            for block in run:
                rows += len(block)
                if rows > 100:
                    daemon.process.kill()
        self.assertGreater(rows, 100)

    def test_who_is_not_there_is_an_error_at_once(self) -> None:
        with self.assertRaises(strobe.Error) as raised:
            strobe.connect("http://127.0.0.1:1")
        self.assertIn("127.0.0.1:1", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
