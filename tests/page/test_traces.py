# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is drawn is what was sent: values, spikes, marks."""

import math
import signal
import time
import unittest

import recipes
from browser import Browser
from daemon import Daemon, wait_for
from selenium.webdriver.common.action_chains import ActionChains

SPIKE_ROW = 654_321
ROWS = 1_000_000
# Of one call.
TRIGGERS = 100_000


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon({"spike": recipes.SPIKE, "waves": recipes.WAVES, "sixteen": recipes.SIXTEEN})
        cls.addClassCleanup(cls.daemon.close)
        folder = cls.daemon.folder
        (folder / "value").write_text("0\n")
        (folder / "spike.toml").write_text(recipes.SPIKE_BOARD.format(folder=folder))
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def start(self, name: str) -> int:
        return self.daemon.post("/runs", {"name": name})["id"]

    def check_points(self, run: int, name: str, points: dict) -> None:
        """Each point has the least and the greatest value of exactly its rows."""
        first, end = points["row"][0], points["end"]
        rows = self.daemon.rows(run, from_=first, to=end)
        self.assertEqual([int(row["row"]) for row in rows], list(range(first, end)))
        ends = [*points["row"][1:], end]
        for point, (begin, stop) in enumerate(zip(points["row"], ends)):
            values = [float(row[name]) for row in rows[begin - first:stop - first]]
            self.assertTrue(math.isclose(min(values), points["min"][point], rel_tol=1e-12, abs_tol=1e-15), (name, point))
            self.assertTrue(math.isclose(max(values), points["max"][point], rel_tol=1e-12, abs_tol=1e-15), (name, point))

    def trigger(self, run: int, count: int) -> None:
        while count:
            now = min(count, TRIGGERS)
            made = self.daemon.run(run)["next"] + now
            self.daemon.post(f"/runs/{run}/trigger", {"count": now})
            # The ring has room for the rows of one call.
            wait_for(lambda: self.daemon.run(run)["next"] >= made, f"{made} rows")
            count -= now

    def test_a_spike_of_one_row_in_a_million_is_drawn(self) -> None:
        run = self.start("spike")
        value = self.daemon.folder / "value"
        self.trigger(run, SPIKE_ROW)
        value.write_text("9\n")
        self.trigger(run, 1)
        value.write_text("0\n")
        self.trigger(run, ROWS - SPIKE_ROW - 1)
        account = self.daemon.ended(run)
        self.assertEqual((account["rows"], account["missed"], account["lost"], account["oldest"]), (ROWS, 0, 0, 0))
        with self.browser.opened(self.daemon.url, run) as page:
            page.settle()
            self.assertEqual(page.do("return strobe.view.window === Infinity"), True)
            points = page.points("spike.value")
            self.assertEqual((points["row"][0], points["end"]), (0, ROWS))
            high = [point for point, value in enumerate(points["max"]) if value == 9]
            self.assertEqual(len(high), 1)
            at = high[0]
            self.assertTrue(points["row"][at] <= SPIKE_ROW < points["row"][at + 1])
            self.assertEqual(set(points["max"]), {0, 9})
            self.assertEqual(set(points["min"]), {0})
            when = points["time"][at]
            self.assertGreater(page.pixels("spike.value", when, 8.5), 0, "the spike is on the canvas")
            away = points["time"][at // 2]
            self.assertEqual(page.pixels("spike.value", away, 8.5), 0, "where there is no spike, none is drawn")
            self.assertGreater(page.pixels("spike.value", away, 0), 0)
            # The shorter the part, the fewer rows in a point, until it is one.
            # Few points may still be of several rows each: rows stand closer where the machine was quicker.
            for _ in range(30):
                if [*points["row"], points["end"]][at:at + 2] == [SPIKE_ROW, SPIKE_ROW + 1]:
                    break
                page.do("return strobe.view.zoom(...arguments)", when - (points["time"][-1] - points["time"][0]) / 200,
                        when + (points["time"][-1] - points["time"][0]) / 200)
                page.settle()
                points = page.points("spike.value")
                at = points["max"].index(9)
                when = points["time"][at]
            self.assertEqual(points["row"][at], SPIKE_ROW)
            self.assertEqual(points["max"].count(9), 1)
            self.assertEqual(points["min"][at], 9)
            self.assertEqual([*points["row"], points["end"]][at + 1], SPIKE_ROW + 1)

    def test_live_traces_are_the_rows(self) -> None:
        run = self.start("waves")
        with self.browser.opened(self.daemon.url, run) as page:
            page.wait("(strobe.view.drawn.end ?? 0) >= 3000", what="three thousand rows are drawn")
            page.press(" ")
            page.wait("document.querySelector('#hold').getAttribute('aria-pressed') === 'true'")
            page.settle()
            for name in ("sim.sine", "sim.ramp", "sim.noise"):
                points = page.points(name)
                self.assertGreater(len(points["row"]), 100)
                self.check_points(run, name, points)
            at = len(points["row"]) // 2
            for name in ("sim.sine", "sim.ramp"):
                points = page.points(name)
                self.assertGreater(page.pixels(name, points["time"][at], points["max"][at]), 0)
            held = page.points("sim.sine")["end"]
            wait_for(lambda: self.daemon.run(run)["rows"] > held + 1000, "the run goes on")
            page.settle()
            self.assertEqual(page.points("sim.sine")["end"], held, "a picture that is held does not move")
            page.press(" ")
            page.wait("strobe.view.drawn.end > arguments[0] + 1000", held, what="it goes on when it is let go")
        self.daemon.post(f"/runs/{run}/stop")
        self.daemon.ended(run)

    def test_what_came_by_websocket_is_the_rows_too(self) -> None:
        run = self.start("waves")
        with self.browser.opened(self.daemon.url, run) as page:
            page.settle()
            before = page.do("return strobe.view.drawn.end ?? 0")
            page.wait("strobe.view.drawn.end >= arguments[0] + 2000", before, what="more rows have come")
            self.daemon.post(f"/runs/{run}/stop")
            account = self.daemon.ended(run)
            page.wait("strobe.view.drawn.end === arguments[0]", account["next"], what="the last row is drawn")
            page.do("strobe.strips.soon()")
            page.settle()
            self.assertIsNone(page.do("return strobe.view.still ?? null"))
            for name in ("sim.sine", "sim.noise"):
                self.check_points(run, name, page.points(name))

    def test_a_part_that_is_dragged_over_is_shown(self) -> None:
        run = self.start("waves")
        wait_for(lambda: self.daemon.run(run)["rows"] >= 4000, "four thousand rows")
        self.daemon.post(f"/runs/{run}/stop")
        self.daemon.ended(run)
        with self.browser.opened(self.daemon.url, run) as page:
            page.settle()
            whole = page.points("sim.ramp")
            self.assertLess(len(whole["row"]), whole["end"] - whole["row"][0], "a point has some rows")
            over = page.all("#strips .u-over")[1]
            width = over.size["width"]
            chain = ActionChains(page.driver)
            chain.move_to_element_with_offset(over, -width // 4, 0).click_and_hold().move_by_offset(40, 0).move_by_offset(40, 0)
            chain.release().perform()
            page.wait("strobe.view.still !== undefined", what="a part is shown")
            page.settle()
            begin, end = page.do("return strobe.view.range")
            span = whole["time"][-1] - whole["time"][0]
            self.assertAlmostEqual((end - begin) / span, 80 / width, delta=8 / width)
            self.assertAlmostEqual((begin - whole["time"][0]) / span, 0.25, delta=8 / width)
            part = page.points("sim.ramp")
            self.assertLessEqual(part["time"][0], begin)
            self.assertGreaterEqual(part["time"][-1], end - span / 1000)
            self.assertEqual(part["row"], list(range(part["row"][0], part["end"])), "each row is a point now")
            self.check_points(run, "sim.ramp", part)
            page.click("#newest")
            page.wait("strobe.view.still === undefined")

    def test_marks_stand_where_triggers_were_missed(self) -> None:
        run = self.start("waves")
        wait_for(lambda: self.daemon.run(run)["rows"] >= 1000, "a thousand rows")
        with self.browser.opened(self.daemon.url, run) as page:
            # A mark goes with its time out of what is shown: all of it is.
            page.do("strobe.view.last(Infinity)")
            page.wait("(strobe.view.drawn.end ?? 0) >= 1500")
            # While it stands still, it makes no rows.
            self.daemon.process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            self.daemon.process.send_signal(signal.SIGCONT)
            rows = wait_for(lambda: (now := self.daemon.run(run))["missed"] > 0 and now["rows"], "triggers are missed")
            page.wait("strobe.view.traces.end > arguments[0]", rows)
            page.wait("strobe.view.drawn.marks.some((mark) => mark.missed > 0)", what="a mark comes with the rows")
            wait_for(lambda: self.daemon.run(run)["rows"] > rows + 500, "the run goes on")
            self.daemon.post(f"/runs/{run}/stop")
            account = self.daemon.ended(run)
        self.assertEqual(account["triggers"], account["rows"] + account["missed"] + account["skipped"])
        rows = [{name: int(row[name]) for name in ("row", "trigger", "time")} for row in self.daemon.rows(run)]
        pairs = [(before, row) for before, row in zip(rows, rows[1:]) if row["trigger"] - before["trigger"] > 1]
        gaps = [(before["time"], row["time"], row["trigger"] - before["trigger"] - 1) for before, row in pairs]
        self.assertTrue(gaps)
        with self.browser.opened(self.daemon.url, run) as page:
            page.settle()
            marks = page.do("return strobe.view.drawn.marks")
            points = page.points("sim.ramp")
            first = rows[0]["trigger"]
            self.assertEqual(sum(mark["missed"] for mark in marks), sum(missed for _, _, missed in gaps) + first)
            begin, end, missed = max(gaps, key=lambda gap: gap[2])
            # The page's time of the rows around the gap. A row that was stopped in its middle may have the time after it.
            start = rows[points["row"][0]]["time"] / 1e9 - points["time"][0]
            step = (points["time"][-1] - points["time"][0]) / 500
            begin, end = begin / 1e9 - start - step, end / 1e9 - start + step
            there = [mark for mark in marks if mark["from"] <= end and mark["to"] >= begin]
            self.assertTrue(there, (marks, begin, end))
            # One with fewer may be close to it.
            mark = max(there, key=lambda mark: mark["missed"])
            self.assertGreaterEqual(mark["missed"], missed)
            middle = (mark["from"] + mark["to"]) / 2
            top = page.do("return strobe.strips.strips[1].plot.scales.y.max")
            self.assertGreater(page.pixels("sim.ramp", middle, top, "missed", 6), 0, "the mark is on the canvas")
            page.wait_text("#marks", "missed")
            before = page.do("return strobe.view.range")
            page.click("#marks button")
            page.wait("strobe.view.still !== undefined", what="a click on a mark shows its place")
            page.settle()
            self.assertLess(page.do("return strobe.view.range[1] - strobe.view.range[0]"), before[1] - before[0])

    def test_lost_rows_have_a_mark_of_another_kind(self) -> None:
        run = self.start("waves")
        wait_for(lambda: self.daemon.run(run)["rows"] >= 500, "rows")
        self.daemon.post(f"/runs/{run}/stop")
        self.daemon.ended(run)
        with self.browser.opened(self.daemon.url, run) as page:
            page.settle()
            begin, end = page.do("return strobe.view.range")
            middle = (begin + end) / 2
            low = page.do("return strobe.strips.strips[0].plot.scales.y.min")
            self.assertEqual(page.pixels("sim.sine", middle, low, "lost", 6), 0)
            page.do("strobe.view.drawn.marks = [{ from: arguments[0], to: arguments[0], missed: 0, lost: 7 }]; strobe.strips.soon()", middle)
            page.settle()
            self.assertGreater(page.pixels("sim.sine", middle, low, "lost", 6), 0)
            page.wait_text("#marks", "7 lost")

    def test_sixteen_channels_at_10_khz_are_drawn_whole(self) -> None:
        run = self.start("sixteen")
        with self.browser.opened(self.daemon.url, run) as page:
            self.assertEqual(page.do("return strobe.strips.strips.length"), 16)
            page.wait("strobe.view.drawn.end >= 30000", what="thirty thousand rows are drawn")
            page.press(" ")
            page.settle()
            self.assertEqual(page.do("return strobe.view.lost"), 0)
            for name in ("sim.sine", "sim.noise#3", "clock.late"):
                points = page.points(name)
                self.check_points(run, name, points)
        self.daemon.post(f"/runs/{run}/stop")
        self.daemon.ended(run)

    def test_chosen_channels_alone_are_drawn(self) -> None:
        run = self.start("waves")
        with self.browser.opened(self.daemon.url, run) as page:
            page.click(".chooser summary")
            page.click("#channels input[value='sim.sine']")
            page.wait("strobe.strips.strips.map((strip) => strip.look.name).join() === 'sim.ramp,sim.noise'")
            page.wait("(strobe.view.drawn.end ?? 0) > 0 && strobe.view.drawn.columns === 2")
            page.press(" ")
            page.press(" ")
            page.do("strobe.view.hold()")
            page.settle()
            self.check_points(run, "sim.noise", page.points("sim.noise"))
        self.daemon.post(f"/runs/{run}/stop")


if __name__ == "__main__":
    unittest.main()
