# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether this machine is good for regular rows, and how regular they are, asked in Python: as the program says it."""

import signal
import unittest

import strobe
from daemon import AT_MOST_S
from interrupt import ctrl_c


class Measure(unittest.TestCase):
    def test_the_doctor_says_of_each_check_what_it_saw_and_what_mends_it(self) -> None:
        checks = strobe.doctor(cpu=0, priority=70, wait="spin")
        self.assertIn("fifo", [check["check"] for check in checks])
        for check in checks:
            self.assertIn(check["state"], ("ok", "advice", "unknown"))
            self.assertTrue(check["subject"] and check["about"] and check["evidence"])
            self.assertTrue(check["state"] != "advice" or check["remedy"], check)

    def test_each_way_to_wait_has_rows_and_an_account(self) -> None:
        found = strobe.jitter("1kHz", seconds=0.3, wait=["block", "hybrid"], rounds=2)
        self.assertEqual(found["target"]["period_ns"], 1_000_000)
        self.assertEqual([way["way"] for way in found["ways"]], ["block", "hybrid"])
        for way in found["ways"]:
            for each in way["rounds"]:
                self.assertGreater(each["rows"], 0)
                self.assertEqual((each["lost"], each["skipped"], each["end"]), (0, 0, "complete"))
                # A row is a period's end, but for the first one; a missed trigger makes one long period.
                self.assertEqual(each["in_range"] + each["over"] + each["under"], each["rows"] - 1)
            self.assertEqual(way["all"]["missed"], sum(each["missed"] for each in way["rounds"]))

    def test_what_makes_no_sense_is_refused_with_a_remedy(self) -> None:
        for ask, why in [
            (lambda: strobe.jitter("1 banana"), "rate"),
            (lambda: strobe.jitter(wait="doze"), "wait"),
            (lambda: strobe.jitter(wait=[]), "at least one way"),
            (lambda: strobe.jitter(seconds=float("nan")), "seconds"),
            (lambda: strobe.jitter(rounds=0), "rounds"),
            (lambda: strobe.jitter(policy="fifo:100"), "policy"),
            (lambda: strobe.jitter(band="-1%"), "band"),
            (lambda: strobe.jitter(cpu=4096), "CPU 4096"),
            (lambda: strobe.doctor(cpu=4096), "CPU 4096"),
            (lambda: strobe.doctor(priority=100), "priority"),
            (lambda: strobe.doctor(wait="doze"), "wait"),
        ]:
            with self.subTest(why), self.assertRaisesRegex(strobe.Error, why):
                ask()

    def test_ctrl_c_ends_a_measurement(self) -> None:
        # Who is started in the background has it ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        # The doctor looks for a second only: it is asked again.
        for measure in (lambda: strobe.jitter("1kHz", seconds=AT_MOST_S), lambda: [strobe.doctor() for _ in range(AT_MOST_S)]):
            with ctrl_c(lambda: None) as begun, self.assertRaises(KeyboardInterrupt):
                begun.set()
                measure()


if __name__ == "__main__":
    unittest.main()
