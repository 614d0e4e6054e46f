# SPDX-License-Identifier: MIT OR Apache-2.0
"""A power supply of sinstruments, over TCP and over a terminal."""

import json
import signal
import subprocess
import time
import unittest
from functools import partial

from speak import PULLS, STROBE, TIMEOUT, Case, counters, free_port, length

PARTS = f"""
timeout = {TIMEOUT}
retry = 0.05
[identity]
expect = "ACME,PS{{*}}"
[errors]
[channel.voltage]
query = "MEAS:VOLT?"
unit = "V"
[channel.first]
query = "MEAS:ALL?"
answer = "{{}},{{*}}"
[channel.second]
query = "MEAS:ALL?"
answer = "{{*}},{{}},CC"
[channel.curve]
query = "CURV?"
block = true
binary = "f32"
endian = "big"
at = 4
[channel.set]
query = "VOLT?"
answer = "{{}} V"
[channel.unknown]
query = "NO:SUCH?"
[channel.slow]
query = "MEAS:VOLT?"
mode = "latest"
every = 0.01
[output.level]
send = "VOLT {{}}"
scale = 0.001
unit = "V"
"""


class Scpi(Case):
    def supply(self, *faults: object) -> tuple:
        port = free_port()
        server = self.server("scpi.py", port, *faults)
        return server, port, self.board(f'[transport]\nkind = "tcp"\naddress = "127.0.0.1:{port}"{PARTS}')

    def test_what_it_answers_is_in_the_row_and_one_answer_serves_several_channels(self) -> None:
        _, _, board = self.supply()
        got = self.get(board, "psu.voltage", "psu.first", "psu.second", "psu.curve", "psu.questions", "psu.answers")
        self.assertEqual(got["psu.voltage"], 0.5)
        self.assertEqual((got["psu.first"], got["psu.second"]), (1.5, 2.5))
        self.assertEqual(got["psu.curve"], -2.0)
        self.assertEqual((got["psu.questions"], got["psu.answers"]), (3, 3))

    def test_an_output_is_written_before_what_follows_it_is_asked(self) -> None:
        _, _, board = self.supply()
        self.strobe("set", "psu.level=1500", "--board", board)
        self.assertEqual(self.get(board, "psu.set")["psu.set"], 1.5)
        account, rows = self.recording(board, ["psu.set"], "--set", "psu.level=2500", "--event", "timer:20Hz", "--rows", "3")
        self.assertEqual(account["errors"], 0)
        self.assertEqual({float(row["psu.set"]) for row in rows[1:]}, {2.5})

    def test_what_the_instrument_refuses_is_a_fault_of_the_output(self) -> None:
        _, _, board = self.supply()
        done = self.strobe("set", "psu.level=31000", "--board", board, status=3)
        self.assertIn("output psu.level: it cannot be written now", done.stderr)
        self.strobe("set", "psu.level=3000", "--board", board)

    def test_a_question_that_it_does_not_know_is_late_and_the_next_is_answered(self) -> None:
        _, _, board = self.supply()
        got = self.get(board, "psu.unknown", status=3)
        self.assertIsNone(got["psu.unknown"])
        self.assertEqual(self.get(board, "psu.first")["psu.first"], 1.5)

    def test_another_instrument_is_refused(self) -> None:
        port = free_port()
        self.server("scpi.py", port)
        text = f'[transport]\nkind = "tcp"\naddress = "127.0.0.1:{port}"{PARTS}'.replace("ACME,PS", "ACME,DMM")
        done = self.strobe("get", "psu.voltage", "--board", self.board(text), status=1)
        self.assertIn("is it the right instrument?", done.stderr)

    def test_each_fault_is_counted_by_its_name_and_no_value_is_an_old_one(self) -> None:
        server, _, board = self.supply(50)
        account, rows = self.recording(
            board, ["psu.voltage", *counters()], "--event", "timer:100Hz", *length(150))
        did = server.stop()
        last = self.counts(rows[-1])
        values = [row["psu.voltage"] for row in rows]
        # Each value is the number of its question and a half, so it is there once, and none of before comes later.
        numbers = [float(value) - 0.5 for value in values if value]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertFalse([n for n in numbers if n % 50 in (10, 20, 30, 40)])
        # Each row asks once. The last one may have no counter of its own end yet.
        self.assertEqual(last["questions"], len(rows))
        self.assertEqual(last["answers"], len(numbers))
        self.assertEqual(last["answers"], did["right"])
        self.assertEqual(last["wrong"], did["wrong"])
        self.assertEqual(last["cut"], did["cut"])
        self.assertEqual(last["extra"], did["doubled"])
        self.assertEqual(last["late"], did["late"])
        self.assertEqual(last["refused"] + last["long"], 0)
        self.assertEqual(account["errors"], len(rows) - len(numbers))
        self.assertGreater(last["reconnects"], 0)
        for kind in ("wrong", "doubled", "cut", "late"):
            self.assertGreater(did[kind], 0, kind)
        print(f"\n{len(rows)} rows, missed {account['missed']}, {last}")

    def test_a_peer_that_goes_and_comes_back_is_reached_again(self) -> None:
        server, port, board = self.supply()

        def beside() -> None:
            self.wait_for_row("it answers", lambda row: row["psu.voltage"])
            server.kill()
            self.wait_for_row("it is away", lambda row: row["psu.absent"] != "0")
            self.server("scpi.py", port)
            self.wait_for_row("it is back", lambda row: row["psu.voltage"])
            self.recorder.send_signal(signal.SIGINT)

        account, rows = self.recording(board, ["psu.voltage", *counters()], "--event", "timer:50Hz", beside=beside)
        last = self.counts(rows[-1])
        self.assertGreaterEqual(last["reconnects"], 1)
        self.assertGreater(last["absent"], 0)
        self.assertEqual(last["late"] + last["wrong"] + last["extra"] + last["long"], 0)
        values = [row["psu.voltage"] for row in rows]
        self.assertTrue(values[0] and values[-1])
        self.assertEqual(sum(not value for value in values), account["errors"])

    def test_what_is_sent_at_the_opening_is_sent_again_when_it_comes_back(self) -> None:
        port = free_port()
        server = self.server("scpi.py", port)
        text = f'[transport]\nkind = "tcp"\naddress = "127.0.0.1:{port}"{PARTS}[open]\nsend = ["VOLT 3", "VOLT 4"]\n'

        def beside() -> None:
            self.wait_for_row("it answers", lambda row: row["psu.set"])
            server.kill()
            self.wait_for_row("it is away", lambda row: not row["psu.set"])
            self.server("scpi.py", port)
            self.wait_for_row("it is back", lambda row: row["psu.set"])
            self.recorder.send_signal(signal.SIGINT)

        _, rows = self.recording(self.board(text), ["psu.set", *counters()], "--event", "timer:50Hz", beside=beside)
        self.assertGreaterEqual(self.counts(rows[-1])["reconnects"], 1)
        values = [row["psu.set"] for row in rows]
        self.assertTrue(values[-1] and not all(values), "it was away, and is back")
        self.assertEqual({float(value) for value in values if value}, {4.0}, "each new one was told again, in order")

    def test_the_latest_answer_has_an_age_and_hides_when_there_is_none(self) -> None:
        server, port, board = self.supply()

        def beside() -> None:
            self.wait_for_row("it answers", lambda row: row["psu.slow"])
            server.kill()
            self.wait_for_row("it is away for a second", lambda row: not row["psu.slow"] and int(row["psu.slow.age"]) > 1e9)
            self.server("scpi.py", port)
            self.wait_for_row("it is back", lambda row: row["psu.slow"])
            self.recorder.send_signal(signal.SIGINT)

        account, rows = self.recording(board, ["psu.slow", "psu.slow.age", *counters()], "--event", "timer:1kHz", beside=beside)
        self.counts(rows[-1])
        values = [row["psu.slow"] for row in rows]
        ages = [int(row["psu.slow.age"]) for row in rows]
        self.assertTrue(values[0] and values[-1])
        self.assertGreater(values.count(""), 0)
        # While there is no answer, its age grows.
        gone = [age for value, age in zip(values, ages) if not value]
        self.assertGreater(max(gone), max(age for value, age in zip(values, ages) if value) / 10)
        # No row waits for it: the thread sleeps once a row, until its timer. What is missed is the machine's.
        self.assertLessEqual(account["usage"]["voluntary_switches"], len(rows) + 10)
        print(f"\n{len(rows)} rows at 1 kHz, missed {account['missed']}, slept {account['usage']['voluntary_switches']} times")

    def test_a_run_beside_it_has_an_account_of_its_own(self) -> None:
        _, _, board = self.supply(50)
        file = self.folder / "beside.csv"
        command = [STROBE, "record", "--event", "timer:1kHz", "--read", "sim.counter", "--rows", "5000", "--ring", "8192",
                   "--json", "--engine", "user", "-o", str(file)]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        _, rows = self.recording(board, ["psu.voltage"], "--event", "timer:100Hz", "--for", "5s")
        self.assertTrue(any(row["psu.voltage"] for row in rows))
        out, _ = other.communicate(timeout=120)
        beside = json.loads(out)
        self.account(beside, self.read(file), True)
        self.assertEqual((beside["errors"], beside["rows"]), (0, 5000))
        # It waits for its timer only.
        self.assertLessEqual(beside["usage"]["voluntary_switches"], 5010)
        print(f"\nbeside it at 1 kHz: {beside['rows']} rows, missed {beside['missed']}")


class Terminal(Case):
    def test_a_serial_line_has_the_same_faults_and_no_old_value(self) -> None:
        line = str(self.folder / "line")
        server = self.server("scpi.py", line, 50)
        board = self.board(f'[transport]\nkind = "serial"\ndevice = "{line}"\nbaud = 115200{PARTS}')
        _, rows = self.recording(board, ["psu.voltage", *counters()], "--event", "timer:20Hz", "--rows", "28")
        last = self.counts(rows[-1])
        numbers = [float(row["psu.voltage"]) - 0.5 for row in rows if row["psu.voltage"]]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertFalse([n for n in numbers if n % 50 in (10, 20, 30, 40)])
        did = server.stop()
        for counter, kind in (("wrong", "wrong"), ("extra", "doubled"), ("answers", "right")):
            self.assertEqual(last[counter], did[kind], counter)
        self.assertGreater(did["doubled"], 0)

    def test_a_line_that_is_pulled_again_and_again_leaves_nothing_behind(self) -> None:
        """$STROBE_INSTRUMENT_PULLS says how often."""
        line = str(self.folder / "line")
        servers = [self.server("scpi.py", line)]
        board = self.board(f'[transport]\nkind = "serial"\ndevice = "{line}"\nbaud = 115200{PARTS}')
        held = []

        def beside() -> None:
            for number in range(PULLS):
                absent = int(answers(number)["psu.absent"])
                # At another moment of its question each time.
                time.sleep(0.007 * (number % 10))
                held.append(self.held())
                servers.pop().kill()
                self.wait_for_row("it is away", partial(is_away, absent))
                servers.append(self.server("scpi.py", line))
            answers(PULLS)
            self.recorder.send_signal(signal.SIGINT)

        def is_away(before: int, row: dict[str, str]) -> bool:
            return int(row["psu.absent"]) > before

        def answers(pulls: int) -> dict[str, str]:
            return self.wait_for_row(f"an answer after {pulls} pulls",
                                     lambda row: row["psu.voltage"] and int(row["psu.reconnects"]) >= pulls)

        account, rows = self.recording(board, ["psu.voltage", *counters()], "--event", "timer:50Hz", beside=beside)
        last = self.counts(rows[-1])
        self.assertGreaterEqual(last["reconnects"], PULLS)
        self.assertGreater(last["absent"], 0)
        self.assertEqual(last["wrong"] + last["extra"] + last["long"] + last["refused"], 0)
        values = [float(row["psu.voltage"]) for row in rows if row["psu.voltage"]]
        self.assertTrue(rows[-1]["psu.voltage"], "it was away, and is back")
        self.assertEqual(len(rows) - len(values), account["errors"])
        # Each server counts its questions from 0 on. What comes again is the first answer of another one.
        again = [value for before, value in zip(values, values[1:]) if value <= before]
        self.assertLessEqual(len(again), PULLS)
        self.assertEqual({value for value in again if value > 2}, set())
        self.assertEqual(held, [held[0]] * PULLS, "files and threads of the recorder")
        print(f"\npulled {PULLS} times: {len(rows)} rows, {account['errors']} without an answer, {last}")


if __name__ == "__main__":
    unittest.main()
