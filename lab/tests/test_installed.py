# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/cases/restarts, clocksteps and served make of what a daemon and its clients say."""

import unittest

from labkit import installed

from .test_parts import program

ROWS = [[row, row + 1, 10 * row, 0, float(row)] for row in range(5)]
RUN = {"name": "scan", "state": "stopped", "triggers": 6, "rows": 5, "missed": 1, "skipped": 0, "next": 5, "lost": 0,
       "spool": {"unwritten": 0}}


class Accounts(unittest.TestCase):
    def faults(self, there: installed.Rows = ROWS, is_whole: bool = True, **other: object) -> list[str]:
        return installed.account(RUN | other, there, lambda row: row, is_whole)

    def test_a_run_with_all_its_rows_is_well(self) -> None:
        self.assertEqual(self.faults(), [])

    def test_a_row_that_is_missing_is_said_or_a_fault(self) -> None:
        without = ROWS[:2] + ROWS[3:]
        self.assertEqual(self.faults(without, is_whole=False, lost=1), [])
        self.assertEqual(len(self.faults(without, is_whole=False)), 1)
        self.assertEqual(len(self.faults(without, lost=1)), 1)

    def test_whatever_is_not_as_it_must_be_is_named(self) -> None:
        for text, faults in (("twice", self.faults(ROWS[:3] + ROWS[2:4])), ("triggers are not", self.faults(triggers=7)),
                             ("not stopped", self.faults(state="failed")), ("are known", self.faults(rows=4, missed=2)),
                             ("another one", self.faults([*ROWS[:4], [4, 5, 40, 0, 3.0]])),
                             ("go back", self.faults([*ROWS[:4], [4, 5, 20, 0, 4.0]]))):
            with self.subTest(text):
                self.assertTrue(any(text in fault for fault in faults), faults)


class Restarts(unittest.TestCase):
    def setUp(self) -> None:
        self.program = program("cases/restarts")

    def faults(self, **words: str) -> list[str]:
        guest = self.program.Guest()
        for name, rest in ({"security": "1.5", "watchdog": "1"} | words).items():
            guest.take(f"{name} {rest}")
        for line in ("round 1 kill 100 200", "round 2 restart 300 400", *["{\"runs\": []}"] * 3, "anything else"):
            guest.take(line)
        return guest.faults(2)

    def test_a_guest_that_has_said_all_is_well(self) -> None:
        self.assertEqual(self.faults(), [])

    def test_a_unit_that_is_too_open_and_a_watchdog_that_sleeps_are_faults(self) -> None:
        for words in ({"security": "2.0"}, {"security": ""}, {"watchdog": "0"}):
            with self.subTest(words):
                self.assertEqual(len(self.faults(**words)), 1)

    def test_a_run_whose_daemon_was_killed_has_all_rows_that_are_known(self) -> None:
        run = RUN | {"state": "failed", "end": "failed: the daemon ended before the run; more is not known"}
        self.assertEqual(self.program.alone(run, ROWS), [])
        self.assertEqual(len(self.program.alone(run, ROWS[1:])), 1)
        self.assertEqual(len(self.program.alone(RUN | {"end": None}, ROWS)), 1)


class Served(unittest.TestCase):
    ACCOUNT = '{"rows": 9, "missed": 0, "skipped": 0, "lost": 0, "errors": 0, "end": "complete"}'

    def faults(self, *lines: str) -> list[str]:
        return program("cases/served").judge(list(lines), 9)

    def test_all_rows_and_an_account_are_wanted(self) -> None:
        self.assertEqual(self.faults("read 5", "read 9", self.ACCOUNT), [])
        for lines in (("read 8", self.ACCOUNT), ("read 9",), ("wrong: 7,8", "read 9", self.ACCOUNT),
                      ("read 9", self.ACCOUNT.replace('"missed": 0', '"missed": 1')), (self.ACCOUNT,)):
            with self.subTest(lines):
                self.assertEqual(len(self.faults(*lines)), 1)


if __name__ == "__main__":
    unittest.main()
