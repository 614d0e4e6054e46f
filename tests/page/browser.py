# SPDX-License-Identifier: MIT OR Apache-2.0
"""A browser with the page: what somebody does with it, and what it has drawn."""

import os
from contextlib import contextmanager

from daemon import AT_MOST_S, wait_for
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.chrome.service import Service

# Points of a strip, as they were handed to the canvas, and the rows they begin with.
POINTS = """
const name = arguments[0];
const strip = strobe.strips.strips.find((strip) => strip.look.name === name);
const [time, max, min] = strip.plot.data;
const drawn = strobe.view.drawn;
return { time: [...time], min: [...min], max: [...max], row: drawn.time.length === time.length ? [...drawn.row] : null, end: drawn.end };
"""
# Whether there are pixels of about a colour at a time and a value, so many pixels around.
PIXELS = """
const [name, time, value, color, around] = arguments;
const { plot, look, colors } = strobe.strips.strips.find((strip) => strip.look.name === name);
const [left, top] = [plot.valToPos(time, "x", true), plot.valToPos(value, "y", true)].map(Math.round);
const canvas = new OffscreenCanvas(1, 1).getContext("2d");
canvas.fillStyle = { trace: look.color, ...colors }[color];
canvas.fillRect(0, 0, 1, 1);
const wanted = canvas.getImageData(0, 0, 1, 1).data;
const pixels = plot.ctx.getImageData(left - around, top - around, 2 * around + 1, 2 * around + 1).data;
let found = 0;
for (let at = 0; at < pixels.length; at += 4) {
  const near = [0, 1, 2].every((part) => Math.abs(pixels[at + part] - wanted[part]) < 48);
  if (near && pixels[at + 3] > 100) found++;
}
return found;
"""
# Notes what the page tells: it shows it for some seconds only.
NOTE = """
window.told = [];
addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("told");
  const note = (changes) => changes.forEach((change) => change.addedNodes.forEach((node) => told.push(node.textContent)));
  if (place) new MutationObserver(note).observe(place, { childList: true });
});
"""
# Roles of what somebody operates.
OPERATED = {"button", "checkbox", "combobox", "DisclosureTriangle", "link", "listbox", "radio", "slider", "spinbutton", "switch", "textbox"}


class Browser:
    def __init__(self, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--hide-scrollbars",
                     f"--window-size={width},{height}"):
            options.add_argument(word)
        if os.getuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
        self.driver.set_script_timeout(AT_MOST_S)
        self.driver.set_page_load_timeout(AT_MOST_S)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NOTE})
        self.scheme("dark" if dark else "light")

    def scheme(self, name: str) -> None:
        """What the system prefers: dark or light."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})

    def close(self) -> None:
        self.driver.quit()

    def open(self, url: str) -> None:
        # A change after the # alone would not load it anew.
        self.driver.get("about:blank")
        self.driver.get(url)

    def do(self, script: str, *words):
        return self.driver.execute_script(script, *words)

    def one(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """What an element says; it may be replaced at any moment."""
        return self.do("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def wait(self, script: str, *words, what: str = ""):
        return wait_for(lambda: self.do(f"return {script}", *words), what or script)

    def wait_text(self, selector: str, text: str) -> None:
        wait_for(lambda: text in self.text(selector), f"{selector} says {text}")

    def wait_told(self, text: str) -> None:
        """The page has told this since it was opened."""
        wait_for(lambda: any(text in told for told in self.do("return told")), f"the page tells {text}")

    def click(self, selector: str) -> None:
        def click():
            try:
                shown = [element for element in self.all(selector) if element.is_displayed() and element.is_enabled()]
                if shown:
                    shown[0].click()
                return bool(shown)
            except StaleElementReferenceException:
                return False
        wait_for(click, f"{selector} can be clicked")

    def nameless(self) -> list[str]:
        """The roles of what is shown, can be operated, and has no name; and sections without one. All looked at in one
        moment, for the page replaces what has changed."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        shown = [(node["role"]["value"], node["name"]["value"]) for node in nodes if not node["ignored"] and "name" in node]
        sections = self.do("return [...document.querySelectorAll('section')].filter((section) => section.checkVisibility()).length")
        without = sections - sum(role == "region" for role, _ in shown)  # without a name it is no region
        return [role for role, name in shown if role in OPERATED and not name.strip()] + without * ["section"]

    def press(self, *keys: str) -> None:
        # To whatever has the focus, as a keyboard does it; an element that has just lost it takes none.
        ActionChains(self.driver).send_keys(*keys).perform()

    def type(self, selector: str, text: str) -> None:
        element = self.one(selector)
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(text)

    def choose(self, selector: str, label: str) -> None:
        """Chooses from a list, by its label."""
        self.one(f"{selector}").find_element(By.XPATH, f"./option[normalize-space()='{label}']").click()

    def points(self, name: str) -> dict:
        """What is drawn of a channel."""
        return wait_for(lambda: (found := self.do(POINTS, name))["row"] is not None and found, f"{name} is drawn")

    def pixels(self, name: str, time: float, value: float, color: str = "trace", around: int = 3) -> int:
        return self.do(PIXELS, name, time, value, color, around)

    def settle(self) -> None:
        """Everything that was asked for has come, and is drawn; the picture must stand still."""
        self.driver.execute_async_script("""
            const done = arguments[0];
            const later = () => requestAnimationFrame(() => requestAnimationFrame(() => done()));
            strobe.view.settled().then(later, later);""")

    @contextmanager
    def opened(self, url: str, run: int):
        """The page of a run."""
        self.open(f"{url}/#run={run}")
        self.wait("strobe.current()?.id === arguments[0] && strobe.strips.strips.length > 0", run, what=f"run {run} is shown")
        yield self
