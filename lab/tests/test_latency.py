# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which latencies lab/cases/latency lets pass."""

import copy
import unittest

from .test_parts import program

FIGURES = {"min": 1000, "p50": 2000, "p99": 3000, "max": 4000, "mean": 2100, "sd": 100}


def step(begin: str, end: str) -> dict:
    return {"from": begin, "to": end, "ns": dict(FIGURES)}


SAID = {
    "untraced": {"own": {"steps": [step("raised", "stamp")]}},
    "traced": {"own": {"steps": [step("raised", "stamp")]},
               "traced": {"steps": [step("interrupt", "handler")], "paper": {"steps": [step("woken", "wait returns")]}}},
    "cyclictest": {"min_us": 3, "max_us": 10**6, "avg_us": 4},
}


class Targets(unittest.TestCase):
    def setUp(self) -> None:
        self.latency = program("cases/latency")

    def test_each_latency_has_a_target_that_can_fail(self) -> None:
        self.assertEqual(self.latency.beyond("amd64", SAID), [])
        for where, name in ((("untraced", "own"), "untraced: raised -> stamp"), (("traced", "own"), "traced: raised -> stamp"),
                            (("traced", "traced", "paper"), "paper: woken -> wait returns")):
            for key, what in (("p50", "p50"), ("max", "most")):
                with self.subTest(name, key=key):
                    said = copy.deepcopy(SAID)
                    place = said
                    for word in where:
                        place = place[word]
                    place["steps"][0]["ns"][key] = 50_000
                    (fault,) = self.latency.beyond("rt", said)
                    self.assertTrue(fault.startswith(f"{name}, {what} us: 50, the target is at most "), fault)

    def test_a_latency_that_is_not_known_does_not_meet_its_target(self) -> None:
        said = copy.deepcopy(SAID)
        said["untraced"]["own"]["steps"][0]["ns"] = None
        self.assertEqual(len(self.latency.beyond("amd64", said)), 2)

    def test_kernels_with_sanitizers_have_no_targets(self) -> None:
        said = copy.deepcopy(SAID)
        said["untraced"]["own"]["steps"][0]["ns"]["max"] = 10**9
        self.assertEqual(self.latency.beyond("debug", said), [])


if __name__ == "__main__":
    unittest.main()
