# SPDX-License-Identifier: MIT OR Apache-2.0
"""The points of a picture have the least and the greatest value of their rows, and every gap."""

import unittest

import numpy as np
import strobe
from strobe._points import Points

READ = ["sim.counter", "sim.noise"]


def rows_and_points(interval_ns: int, most: int, **words):
    """The rows of a run, in one array, and the points of their blocks."""
    with strobe.run(event="timer:10kHz", read=READ, engine="user", **words) as run:
        points = Points(READ, interval_ns, most)
        blocks = []
        for block in run:
            points.add(block)
            blocks.append(block)
    made = sum(len(block) for block in blocks) + sum(block.lost for block in blocks)
    return np.concatenate([block.array for block in blocks]), values_of(blocks), points, made


def values_of(blocks: list[strobe.Block]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in READ}


class PointsOfRows(unittest.TestCase):
    def check(self, rows: np.ndarray, values: dict[str, np.ndarray], points: Points) -> None:
        """Each point has what a loop over its rows finds."""
        places = rows["time"].astype(np.int64) // points.interval_ns
        # Nothing is skipped in these runs.
        gaps = np.diff(rows["trigger"].astype(np.int64), prepend=-1) > 1
        self.assertEqual(points.place.tolist(), sorted(set(places.tolist()))[-len(points.place):])
        for number, place in enumerate(points.place):
            there = places == place
            self.assertEqual(points.gap[number], gaps[there].any(), place)
            for column, name in enumerate(READ):
                self.assertEqual(points.least[number, column], values[name][there].min(), place)
                self.assertEqual(points.greatest[number, column], values[name][there].max(), place)

    def test_each_point_has_the_least_and_the_greatest_value_of_its_rows(self) -> None:
        rows, values, points, made = rows_and_points(7_000_000, 10_000, rows=2000)
        self.assertEqual((len(rows), made), (2000, 2000))
        self.check(rows, values, points)

    def test_rows_that_are_lost_are_a_gap_where_they_were(self) -> None:
        points, blocks = Points(READ, 1, 10**12), []
        with strobe.run(event="soft", read=READ, engine="user", ring=16) as run:
            reader = run.read()
            # Some rows, then more than the ring holds, then some.
            for triggers in (5, 1000, 5):
                run.trigger(triggers)
                while triggers == 5 and (not blocks or blocks[-1].rows[-1] + 1 < run.account.triggers):
                    blocks.append(next(reader))
                    points.add(blocks[-1])
        rows, lost = np.concatenate([block.array for block in blocks]), sum(block.lost for block in blocks)
        self.assertEqual(len(rows) + lost, 1010)
        self.assertGreater(lost, 900)
        self.check(rows, values_of(blocks), points)
        self.assertEqual(points.gap.sum(), 1)

    def test_only_the_newest_points_are_kept(self) -> None:
        rows, values, points, _ = rows_and_points(1_000_000, 20, rows=2000)
        self.assertLessEqual(len(points.place), 20)
        self.assertEqual(points.place[-1], rows["time"][-1] // 1_000_000)
        self.check(rows, values, points)

    def test_a_channel_without_a_value_has_no_bounds(self) -> None:
        points = Points(READ, 1, 10)
        self.assertIsNone(points.bounds(0))
        _, values, points, _ = rows_and_points(1_000_000, 10_000, rows=200)
        self.assertEqual(points.bounds(1), (values["sim.noise"].min(), values["sim.noise"].max()))
        points.least[:, 0] = points.greatest[:, 0] = np.nan
        self.assertIsNone(points.bounds(0))


if __name__ == "__main__":
    unittest.main()
