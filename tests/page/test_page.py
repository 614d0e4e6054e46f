# SPDX-License-Identifier: MIT OR Apache-2.0
"""What somebody can do with the page: by pointer, by keys, in both themes, on a small screen, with either role."""

import unittest

import recipes
from browser import Browser
from daemon import Daemon, wait_for
from selenium.webdriver.common.keys import Keys

VIEW, CONTROL = "view-0123456789abcdef0123456789abcdef", "control-0123456789abcdef0123456789abc"


def number(text: str) -> int:
    return int("".join(digit for digit in text if digit.isdigit()) or 0)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon({"waves": recipes.WAVES, "waves-tuned": recipes.TUNED})
        cls.addClassCleanup(cls.daemon.close)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def tearDown(self) -> None:
        self.browser.do("sessionStorage.clear(); localStorage.clear()")
        said = [line["message"] for line in self.browser.driver.get_log("browser")]
        # Each test begins without runs.
        self.browser.driver.get("about:blank")
        for run in self.daemon.get("/runs")["runs"]:
            self.daemon.delete(f"/runs/{run['id']}")
        # What the daemon has refused is in the log too, and no fault of the page.
        self.assertEqual([line for line in said if "Uncaught" in line or "Content Security Policy" in line], [])

    def start(self, recipe: str = "waves") -> int:
        return self.daemon.post("/runs", {"name": recipe})["id"]

    def test_a_run_is_started_paused_and_stopped_by_clicks(self) -> None:
        page = self.browser
        page.open(self.daemon.url)
        page.click("#new-open")
        page.wait("document.querySelector('#recipe').value === 'waves'", what="the recipe is offered")
        page.click("#new-form .main")
        page.wait_text("#run-state", "running")
        run = self.daemon.get("/runs")["runs"][0]
        self.assertEqual((run["name"], run["state"]), ("waves", "running"))
        page.click("[data-verb=pause]")
        page.wait_text("#run-state", "paused")
        wait_for(lambda: self.daemon.run(run["id"])["state"] == "paused", "the run is paused")
        page.click("[data-verb=resume]")
        page.wait_text("#run-state", "running")
        page.click("[data-verb=stop]")
        page.wait("document.querySelector('#ask').open", what="it asks first")
        page.press(Keys.ESCAPE)
        page.wait("!document.querySelector('#ask').open")
        self.assertEqual(self.daemon.run(run["id"])["state"], "running")
        page.click("[data-verb=stop]")
        page.click("#ask-yes")
        account = self.daemon.ended(run["id"])
        page.wait_text("[data-account=end]", account["end"])
        page.click("[data-verb=remove]")
        page.click("#ask-yes")
        wait_for(lambda: not self.daemon.get("/runs")["runs"], "the run is gone")
        page.wait("!document.querySelector('#nothing').hidden", what="the page says that there is none")

    def test_a_run_is_started_from_a_text_that_is_typed(self) -> None:
        page = self.browser
        page.open(self.daemon.url)
        page.click("#new-open")
        page.wait("document.querySelector('#recipe').value === 'waves'")
        page.type("#recipe-text", 'event = "soft"\nread = ["sim.nothing"]\nengine = "user"\n')
        page.click("#new-form .main")
        page.wait_told("sim.nothing")
        self.assertEqual(self.daemon.get("/runs")["runs"], [])
        page.type("#recipe-text", 'event = "soft"\nread = ["sim.counter"]\nengine = "user"\n')
        page.click("#new-form .main")
        page.wait_text("#run-about", "soft")
        for rows in (1, 2):
            page.click("[data-verb=trigger]")
            page.wait("document.querySelector('[data-account=rows]')?.textContent === String(arguments[0])", rows)

    def test_the_account_is_that_of_the_run(self) -> None:
        run = self.start()
        with self.browser.opened(self.daemon.url, run) as page:
            wait_for(lambda: self.daemon.run(run)["rows"] > 500, "rows")
            self.daemon.post(f"/runs/{run}/stop")
            account = self.daemon.ended(run)
            page.wait_text("[data-account=end]", account["end"])
            page.wait("Number(document.querySelector('[data-account=rows]').textContent.replace(/\\D/g, '')) === arguments[0]", account["rows"])
            said = {name: number(page.text(f"[data-account='{name}']")) for name in
                    ("triggers", "rows", "missed", "skipped", "errors", "lost", "lost here", *account["missed_by"])}
        self.assertEqual(said["triggers"], said["rows"] + said["missed"] + said["skipped"])
        self.assertEqual(said["missed"], sum(account["missed_by"].values()))
        self.assertEqual(said["lost here"], 0)
        for name in ("triggers", "rows", "missed", "skipped", "errors", "lost"):
            self.assertEqual(said[name], account[name], name)
        for cause, count in account["missed_by"].items():
            self.assertEqual(said[cause], count, cause)

    def test_lateness_and_health_are_shown(self) -> None:
        run = self.start()
        wait_for(lambda: self.daemon.run(run)["rows"] > 500, "rows")
        self.daemon.post(f"/runs/{run}/stop")
        rows = self.daemon.ended(run)["rows"]
        with self.browser.opened(self.daemon.url, run) as page:
            wait_for(lambda: number(page.text("#late .about").split("rows")[0] or "0") == rows, "each row is in the histogram")
            bins = [number(bar.split(": ")[1]) for bar in page.do("return [...document.querySelectorAll('#late title')].map((t) => t.textContent)")]
            self.assertEqual(sum(bins), rows)
            notes = self.daemon.get("/health")
            notes = notes if isinstance(notes, list) else notes["notes"]
            page.wait("document.querySelectorAll('#health li').length > 0")
            shown = set(page.do("return [...document.querySelectorAll('#health strong')].map((e) => e.textContent)"))
            self.assertEqual(shown, {note["check"] for note in notes})

    def test_an_output_is_set(self) -> None:
        run = self.start()
        with self.browser.opened(self.daemon.url, run) as page:
            page.wait("document.querySelector('#output').options.length > 0")
            page.choose("#output", "sim.latch")
            page.type("#output-value", "42")
            page.click("#set-form button")
            page.wait_told("sim.latch is set to 42")

    def test_a_run_is_tuned(self) -> None:
        run, other = self.start("waves-tuned"), self.start()
        with self.browser.opened(self.daemon.url, run) as page:
            page.wait("[...document.querySelector('#tunable').options].map((option) => option.value).join() === 'limit'")
            page.type("#tuned", "much")
            page.click("#tune-form button")
            page.wait_told("tune 'much'")
            page.type("#tuned", "1000000")
            page.click("#tune-form button")
            page.wait_told(f"Run {run}: limit is 1000000 from the next row on")
            wait_for(lambda: self.last(run, "limit") == 1_000_000, "rows have the new value")
            self.assertEqual(self.last(run, "double"), 2_000_000, "and the program computes with it")
            page.press("j")
            page.wait("strobe.current().id === arguments[0]", other)
            self.assertFalse(page.one("#tunables").is_displayed(), "a run without tunables offers none")
            page.press("k")
            page.wait("strobe.current().id === arguments[0]", run)
            self.daemon.post(f"/runs/{run}/stop")
            self.daemon.ended(run)
            page.wait("document.querySelector('#tunables').hidden", what="a run that has ended is not tuned")

    def last(self, run: int, column: str) -> float:
        """The newest value of a column."""
        end = self.daemon.run(run)["next"]
        return float(self.daemon.rows(run, from_=end - 1, to=end)[0][column]) if end else 0

    def test_everything_goes_by_keys(self) -> None:
        first, second = self.start(), self.start()
        with self.browser.opened(self.daemon.url, first) as page:
            page.wait("(strobe.view.drawn.end ?? 0) > 100")
            page.press("j")
            page.wait("strobe.current().id === arguments[0]", second)
            page.press("k")
            page.wait("strobe.current().id === arguments[0]", first)
            page.wait("(strobe.view.drawn.end ?? 0) > 100")
            page.press(" ")
            page.wait("strobe.view.still !== undefined")
            page.settle()
            begin, end = page.do("return strobe.view.range")
            for key, factor in (("+", 0.5), ("-", 1)):
                page.press(key)
                page.settle()
                now = page.do("return strobe.view.range[1] - strobe.view.range[0]")
                self.assertAlmostEqual(now / (end - begin), factor, 3)
            page.press(Keys.ARROW_LEFT)
            page.settle()
            self.assertAlmostEqual(page.do("return strobe.view.range[0]"), begin - (end - begin) / 2, 3)
            page.press("l")
            page.wait("strobe.view.still === undefined")
            page.press("?")
            page.wait("document.querySelector('#help').open")
            page.press(Keys.ESCAPE)
            page.wait("!document.querySelector('#help').open")
            page.press("n")
            page.wait("document.querySelector('#new').open")
            page.press(Keys.ESCAPE)
            page.wait("!document.querySelector('#new').open")
            page.press("s")
            page.wait("document.querySelector('#ask').open")
            self.assertNotEqual(page.do("return document.activeElement.id"), "ask-yes", "a key too many stops nothing")
            page.press(Keys.TAB)
            page.wait("document.activeElement.id === 'ask-yes'")
            page.press(" ")
            self.daemon.ended(first)

    def test_a_key_right_after_a_dialog_has_closed_is_taken(self) -> None:
        run = self.start()
        with self.browser.opened(self.daemon.url, run) as page:
            page.press("n")
            page.wait("document.activeElement.id === 'recipe'")
            # An element that is gone has the focus until the next frame, and a busy machine draws that late.
            where = page.do("""
                document.querySelector('#new').close();
                const where = document.activeElement;
                where.dispatchEvent(new KeyboardEvent('keydown', { key: 's', bubbles: true, cancelable: true }));
                return where.id;""")
            self.assertEqual(where, "recipe")
            page.wait("document.querySelector('#ask').open")
            page.press(Keys.ESCAPE)

    def test_the_theme_is_that_of_the_system_unless_it_is_said(self) -> None:
        page = self.browser
        run = self.start()
        back = "return getComputedStyle(document.body).backgroundColor"
        page.scheme("dark")
        with page.opened(self.daemon.url, run):
            dark = page.do(back)
            color = page.do("return strobe.strips.strips[0].look.color")
            page.scheme("light")
            page.wait("getComputedStyle(document.body).backgroundColor !== arguments[0]", dark)
            page.wait("strobe.strips.strips[0].look.color !== arguments[0]", color, what="traces have the colours of the theme")
            page.press("t")
            page.wait("getComputedStyle(document.body).backgroundColor === arguments[0]", dark)
        with page.opened(self.daemon.url, run):
            self.assertEqual(page.do(back), dark, "what was said stays")
            page.click("#theme")
            page.wait("getComputedStyle(document.body).backgroundColor !== arguments[0]", dark)

    def test_a_small_screen_has_room_for_all(self) -> None:
        run = self.start()
        page = self.browser
        page.size(360, 740, mobile=True)
        self.addCleanup(lambda: page.size(1280, 900))
        with page.opened(self.daemon.url, run):
            page.wait("(strobe.view.drawn.end ?? 0) > 100")
            self.assertLessEqual(page.do("return document.documentElement.scrollWidth"), 360)
            page.wait("strobe.strips.strips.every((strip) => strip.plot.width <= 340)")
            self.assertGreater(page.do("return strobe.strips.strips[0].plot.width"), 250)
            page.click("#new-open")
            box = page.one("#new").rect
            self.assertTrue(box["x"] >= 0 and box["x"] + box["width"] <= 360)
            page.press(Keys.ESCAPE)

    def test_everything_has_a_name_that_can_be_read_out(self) -> None:
        run = self.start()
        with self.browser.opened(self.daemon.url, run) as page:
            page.wait("document.querySelectorAll('#health li').length > 0 && document.querySelector('[data-verb]')")
            page.click(".chooser summary")
            self.assertEqual(page.nameless(), [])
            page.do("document.querySelector('#examine').replaceChildren(); document.querySelector('#traces').ariaLabel = ''")
            self.assertEqual(page.nameless(), ["button", "section"], "it would be seen")
            self.assertEqual(page.do("return document.documentElement.lang"), "en")

    def test_nobody_else_is_asked(self) -> None:
        run = self.start()
        with self.browser.opened(self.daemon.url, run) as page:
            page.wait("(strobe.view.drawn.end ?? 0) > 100")
            asked = page.do("return performance.getEntriesByType('resource').map((entry) => entry.name)")
            self.assertTrue(asked)
            self.assertEqual([name for name in asked if not name.startswith((self.daemon.url, self.daemon.url.replace("http", "ws")))], [])


class Roles(unittest.TestCase):
    def test_who_may_only_view_is_offered_nothing_else(self) -> None:
        daemon = Daemon({"waves": recipes.WAVES}, f"view {VIEW}\ncontrol {CONTROL}\n")
        self.addCleanup(daemon.close)
        page = Browser()
        self.addCleanup(page.close)
        page.open(daemon.url)
        page.wait("document.querySelector('#enter').open", what="the page asks for a token")
        page.type("#token", "wrong")
        page.click("#enter button")
        page.wait("document.querySelector('#enter').open", what="it asks again")
        page.type("#token", VIEW)
        page.click("#enter button")
        page.wait_text("#role", "view")
        page.press("n")
        self.assertFalse(page.do("return document.querySelector('#new').open"))
        self.assertFalse(any(element.is_displayed() for element in page.all(".only-control")))
        page.do("sessionStorage.clear()")
        page.open(daemon.url)
        page.wait("document.querySelector('#enter').open")
        page.type("#token", CONTROL)
        page.click("#enter button")
        page.wait_text("#role", "control")
        page.click("#new-open")
        page.wait("document.querySelector('#recipe').value === 'waves'")
        page.click("#new-form .main")
        page.wait_text("#run-state", "running")
        page.wait("(strobe.view.drawn.end ?? 0) > 100", what="rows come by WebSocket, with a token")


if __name__ == "__main__":
    unittest.main()
