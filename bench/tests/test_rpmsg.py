# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of bench/rpmsg, without a guest."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

from kit import report
from labkit import LabError

PROGRAM = Path(__file__).resolve().parents[1] / "rpmsg"


def load():
    loader = importlib.machinery.SourceFileLoader("bench_rpmsg", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_rpmsg", loader))
    sys.modules["bench_rpmsg"] = module
    loader.exec_module(module)
    return module


rpmsg = load()


def said(**other) -> dict:
    """What `strobe rpmsg bench --json` prints."""
    def steps(scale: int, opens: bool) -> list:
        return [[step, {"p50": scale * 1000} if opens or step != "open" else None] for step in rpmsg.STEPS]
    ways = [{"way": "file", "steps": steps(2, False), "each_ns": [1.0]}, {"way": "node", "steps": steps(40, True), "each_ns": [20.0]}]
    return {"count": 1000, "ways": ways, "ratio": 20.0, "round_ratios": [19.0, 21.5]} | other


class Table(unittest.TestCase):
    def test_a_line_has_a_cell_for_each_head_and_no_step_that_a_way_does_not_have(self) -> None:
        for setting in rpmsg.SETTINGS:
            cells = rpmsg.read(setting, said()).cells()
            self.assertEqual(len(cells), len(rpmsg.HEADS))
            self.assertEqual(cells[3:], ("1000 x 2", *["40.00"] * 5, *["2.00"] * 4, "20.0", "19.0 .. 21.5"))

    def test_a_guest_that_measured_one_way_only_is_an_error(self) -> None:
        with self.assertRaisesRegex(LabError, "only these ways were measured: file"):
            rpmsg.read(rpmsg.SETTINGS[0], said(ways=said()["ways"][:1]))

    def test_flags_that_no_cpu_has_are_known(self) -> None:
        self.assertTrue(rpmsg.NO_FLAGS.search("RSP: 0018:ffa0000000117ca0 EFLAGS: 3feedbe2"))
        for flags in ("00010202", "003fffff", "00000046"):
            self.assertFalse(rpmsg.NO_FLAGS.search(f"RSP: 0018:ffa0000000117ca0 EFLAGS: {flags}"), flags)

    def test_both_tables_say_the_load_and_what_a_column_is(self) -> None:
        made = [rpmsg.read(rpmsg.SETTINGS[0], said())]
        loops = [{"time": "real", "cpus": 2, "node": 700.0, "file": 17.0, "ratio": 41.2, "ratios": [40.0, 45.0]}]
        more = {("real", 2): {"bytes": 32800, "live": 9.3, "threads": 10.5, "each": 23.6}}
        for form in (report.text, report.markdown):
            table = rpmsg.table(made, loops, more, [0.4, 1.5], form)
            for words in (rpmsg.NOTE, "Load of the host 0.4 to 1.5.", "In real time, 2 CPUs: with 1000 others"):
                self.assertIn(words, table)
