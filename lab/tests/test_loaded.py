# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/cases/loaded makes of a guest's files, and which libraries it takes along."""

import dataclasses
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from labkit import programs

from .test_parts import program

FIGURES = "events 4 recorder_ns 400000 load_ns 3000000 took_ns 4000000 idle_ns 200000\n"
# Of the third row another interrupt came before its time was read; one was missed.
ROWS = "# about\nrow,trigger,time,status,event.count,source.time\n0,0,1300,0,2,1000\n1,1,2100,0,3,2000\n2,3,4100,0,5,5000\n"


class Loaded(unittest.TestCase):
    def setUp(self) -> None:
        self.loaded = program("cases/loaded")
        with tempfile.TemporaryDirectory() as place:
            Path(place, "figures").write_text(FIGURES)
            Path(place, "rows.csv").write_text(ROWS)
            Path(place, "account.json").write_text(json.dumps({"rows": 3, "missed": 1}))
            self.measured = self.loaded.read(Path(place))

    def faults(self, **other: object) -> list[str]:
        measured = dataclasses.replace(self.measured, **({"rows": 4, "missed": 0} | other))
        return self.loaded.check(4, measured)

    def over(self, kernel: str, **other: object) -> list[str]:
        measured = dataclasses.replace(self.measured, **({"rows": 4, "missed": 0} | other))
        return self.loaded.over(self.loaded.judged(measured), self.loaded.TARGETS[kernel])

    def test_lateness_is_known_of_rows_whose_own_interrupt_was_the_last(self) -> None:
        self.assertEqual((self.measured.late, self.measured.overtaken), ([100, 300], 1))
        self.assertEqual([self.measured.at(share) for share in (0, 0.99, 1)], [100, 300, 300])

    def test_shares_are_of_the_time_that_it_took(self) -> None:
        self.assertEqual((self.measured.load, self.measured.recorder, self.measured.idle), (0.75, 0.1, 0.05))

    def test_a_row_has_a_cell_for_each_column(self) -> None:
        self.assertEqual(len(self.loaded.row("rt", "real", self.measured).replace(" %", "%").split()),
                         len(self.loaded.COLUMNS))

    def test_what_must_be_can_fail(self) -> None:
        self.assertEqual(self.faults(), [])
        for other in ({"events": 5}, {"rows": 3}, {"rows": 3, "missed": 0}, {"lost": 1}, {"late": []}):
            with self.subTest(**other):
                self.assertTrue(self.faults(**other))

    def test_a_loss_that_is_counted_is_no_fault_of_the_account(self) -> None:
        self.assertEqual(self.faults(rows=3, missed=1), [])
        self.assertTrue(self.faults(rows=3, missed=0))

    def test_each_figure_has_a_target_that_can_fail(self) -> None:
        for kernel, (median, worst) in {"amd64": (34_000, 1_001_000), "rt": (73_000, 99_000)}.items():
            self.assertEqual(self.over(kernel), [])
            for what, other in {"median us": {"late": [100, median, median]}, "worst us": {"late": [100] * 999 + [worst]},
                                "p99 us": {"late": [100] * 90 + [80_000] * 10}, "missed %": {"rows": 3, "missed": 1},
                                "CPU without the load %": {"load": 0.5}}.items():
                with self.subTest(kernel, what=what):
                    self.assertTrue(any(fault.startswith(what) for fault in self.over(kernel, **other)))
            self.assertTrue(self.over(kernel, late=[]))


class Libraries(unittest.TestCase):
    def test_a_program_says_what_it_needs(self) -> None:
        self.assertIn("libc.so.6", programs.needs(Path(shutil.which("readelf"))))

    def test_a_file_that_is_no_program_is_an_error(self) -> None:
        with tempfile.NamedTemporaryFile() as file, self.assertRaises(subprocess.CalledProcessError):
            programs.needs(Path(file.name))


if __name__ == "__main__":
    unittest.main()
