# SPDX-License-Identifier: MIT OR Apache-2.0
"""The one table, of figures made up."""

import tempfile
import unittest
from pathlib import Path

from kit import access, overview, report, slow
from kit.overview import Line

LINE = Line("a row", "rt", 110, "", "bench/run", (100, "bare module"), (550, "IIO"), "<= 1.10 x floor", True)
HOST = {
    "machine": {"cpus": 2, "busy": 0.25},
    "moving": [{"way": way, "ns": ns} for way, ns in (
        ("ring, 8192 rows of 80 bytes", [11, 9, 12]), ("ring, 8192 rows of 112 bytes", [12, 10, 14]),
        ("pipe, 50 rows a write", [60]), ("unix socket, 50 rows a write", [72]), ("memcpy of as much memory", [3]),
        ("80 bytes written, then read by another CPU", [8, 10, 9]))],
    "engine": {"ns": [49, 51, 50]},
    "files": [{"output": output, "ns": [ns]} for output, ns in (("write", 100), ("csv", 250), ("arrows", 99), ("h5", 126))],
    "periods": [{"rate": 1000, "way": way, "late": {"p50": ns}} for way, ns in (("bare", 50_000), ("hybrid", 500))],
    "visible": [{"rate": 100, "way": way, "after": {"p50": ns}} for way, ns in (("looks", 8_000_000), ("woken", 40_000))],
}
SERVE = {
    "machine": {"cpus": 2, "busy": 2.0},
    "figures": [{"place": "memory", "way": way, "clients": 10, "rows_per_s": [speed * 1e6], "of_raw": of_raw, "target": target}
                for way, speed, of_raw, target in (("raw TCP", 20, [1], None), ("PandA port", 10, [0.4, 0.5, 0.9], 0.5),
                                                   ("HTTP, Arrow", 8, [0.4], 0.7))],
}


class Overview(unittest.TestCase):
    def test_a_line_has_ratios_to_the_floor_and_of_others(self) -> None:
        self.assertEqual(LINE.cells(), ("a row", "rt", "100 (bare module)", "550 (IIO)", "110", "1.10", "5.00",
                                        "<= 1.10 x floor", "yes", "`bench/run`"))

    def test_whom_nothing_is_compared_with_has_no_ratio(self) -> None:
        cells = Line("a row", "rt", 11.04, "ns", "x", met=False).cells()
        self.assertEqual(cells[2:9], ("-", "-", "11.0 ns", "-", "-", "-", "NO"))

    def test_the_host_is_judged_by_medians(self) -> None:
        lines = {(line.figure, line.others and line.others[1]): line for line in overview.of_host(HOST)}
        narrow = lines["a row of 80 bytes to another process", None]
        self.assertEqual((narrow.cells()[2], narrow.cells()[5], narrow.met), ("9.0 ns (written, then read)", "1.22", False))
        self.assertEqual(lines["made, stamped, ten words read, and read", None].met, True)
        socket = lines["a row of 112 bytes to another process", "unix socket, 50 rows a write"]
        self.assertEqual(socket.cells()[5:7], ("4.00", "6.00"))
        self.assertEqual(lines["a row into .csv", None].cells()[5], "2.50")
        self.assertEqual([lines[f"a row into .{output}", None].met for output in ("csv", "arrows", "h5")], [None, True, False])
        self.assertEqual(lines["median lateness at 1000 Hz, hybrid", None].cells()[5], "0.01")
        woken = lines["from a row's stamp until its reader has it, 100 Hz, woken", "who looks"]
        self.assertEqual((woken.cells()[6], woken.met), ("200.00", True))

    def test_clients_are_beside_raw_tcp_and_judged_by_the_median_of_the_rounds(self) -> None:
        panda, arrow = overview.of_serve(SERVE)
        self.assertEqual((panda.cells()[2], panda.cells()[4:6], panda.met), ("20.0 M/s (raw TCP)", ("10.0 M/s", "0.50"), True))
        self.assertEqual((arrow.target, arrow.met), (">= 0.7 x floor", False))

    def test_what_was_measured_alone_joins_what_is_there(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            self.assertEqual(overview.load(Path(place)), [])
            overview.save("host", [LINE], Path(place))
            overview.save("rows", [LINE, LINE], Path(place))
            loaded = overview.load(Path(place))
        self.assertEqual(len(loaded), 3)
        self.assertEqual(loaded[0].cells(), LINE.cells())

    def test_each_way_of_a_slow_channel_is_beside_the_hard_one(self) -> None:
        lines = overview.of_slow([slow.Figures("rt", {"hard": 2000, "next": 3000, "sleep": 5000})])
        self.assertEqual([line.cells()[5] for line in lines], ["1.50", "2.50"])

    def test_an_access_is_between_the_bare_one_and_the_ioctl(self) -> None:
        class Spans(access.Figures):
            def least(self, way: str, figure: str) -> int:
                return {"plain": 1, "checked": 10, "ioctl": 600}[way]
        (line, *_) = overview.of_access([Spans("rt", {})])
        self.assertEqual(line.cells()[5:7], ("10.00", "60.00"))

    def test_both_forms_have_a_line_each(self) -> None:
        for form in (report.text, report.markdown):
            self.assertIn("bare module", overview.table([LINE], form))


if __name__ == "__main__":
    unittest.main()
