# SPDX-License-Identifier: MIT OR Apache-2.0
"""The server of pymodbus, over TCP and over a serial line of socat."""

import unittest

from speak import TIMEOUT, Case, counters, free_port, length

# `timeout` of the transport is how long a line is quiet before it is used again: each question has one of its own.
PARTS = f"""
timeout = 0.5
retry = 0.05
[channel.temperature]
query = "holding 10"
binary = "f32"
unit = "degC"
[channel.position]
query = "holding 20"
binary = "i32"
words = "little"
[channel.field]
query = "holding 30"
bits = "11:4"
[channel.input]
query = "input 5"
at = 3
[channel.discrete]
query = "discrete 4"
[channel.coil]
query = "coil 9"
[channel.nowhere]
query = "holding 60000"
[channel.set]
query = "holding 40"
binary = "i16"
[output.level]
send = "holding 40 = {{}}"
binary = "i16"
[output.wide]
send = "holding 50 = {{}}"
binary = "f32"
scale = 0.5
[channel.wide]
query = "holding 50"
binary = "f32"
[output.lamp]
send = "coil 9 = {{}}"
""".replace("\nquery", f"\ntimeout = {TIMEOUT}\nquery").replace("\nsend", f"\ntimeout = {TIMEOUT}\nsend")
ALL = ["plc.temperature", "plc.position", "plc.field", "plc.input", "plc.discrete"]


class Tcp(Case):
    def plc(self, *faults: object) -> tuple:
        port = free_port()
        server = self.server("modbus.py", port, *faults)
        text = f'[transport]\nkind = "modbus-tcp"\naddress = "127.0.0.1:{port}"\nunit = 1{PARTS}'
        return server, self.board(text, "plc")

    def check_all(self, board: str) -> None:
        got = self.get(board, *ALL)
        self.assertEqual(list(got.values()), [21.5, -70000, 0xAB, 7, 1])
        self.strobe("set", "plc.level=-5,plc.wide=3,plc.lamp=1", "--board", board)
        self.assertEqual(list(self.get(board, "plc.set", "plc.wide", "plc.coil").values()), [-5, 1.5, 1])

    def test_registers_and_bits_are_read_and_written(self) -> None:
        _, board = self.plc()
        self.check_all(board)

    def test_what_the_server_refuses_is_a_fault_of_its_name(self) -> None:
        _, board = self.plc()
        got = self.get(board, "plc.nowhere", "plc.refused", "plc.input", "plc.answers", status=3)
        self.assertEqual(list(got.values()), [None, 1, 7, 1])

    def faults(self, server, board: str, many: int) -> tuple[dict[str, int], dict]:
        account, rows = self.recording(board, ["plc.temperature", *counters("plc")], "--event", "timer:100Hz", *length(many))
        did = server.stop()
        last = self.counts(rows[-1], "plc")
        values = [row["plc.temperature"] for row in rows]
        self.assertEqual({value for value in values if value}, {"21.5"})
        self.assertEqual(last["answers"], sum(bool(value) for value in values))
        self.assertEqual(account["errors"], len(rows) - last["answers"])
        for kind in ("wrong", "doubled", "cut", "late"):
            self.assertGreater(did[kind], 0, kind)
        self.assertEqual(last["wrong"], did["wrong"])
        self.assertEqual(last["late"], did["late"])
        self.assertEqual(last["cut"], did["cut"])
        print(f"\n{len(rows)} rows, missed {account['missed']}, {last}, the server: {did}")
        return last, did

    def test_each_fault_is_counted_by_its_name(self) -> None:
        last, did = self.faults(*self.plc(50), 100)
        # Answers over TCP have numbers: one that comes twice does no harm.
        self.assertEqual(last["answers"], did["right"] + did["doubled"])


class Line(Tcp):
    """The same over a line, whose ends socat makes."""

    def plc(self, *faults: object) -> tuple:
        near, far = self.line()
        server = self.server("modbus.py", far, *faults)
        text = f'[transport]\nkind = "modbus-rtu"\ndevice = "{near}"\nbaud = 115200\nunit = 1{PARTS}'
        return server, self.board(text, "plc")

    def test_each_fault_is_counted_by_its_name(self) -> None:
        # Most rows come while the line becomes quiet.
        last, did = self.faults(*self.plc(50), 500)
        self.assertEqual(last["extra"], did["doubled"])
        self.assertEqual(last["answers"], did["right"])
        self.assertGreater(last["absent"], 0)


if __name__ == "__main__":
    unittest.main()
