# SPDX-License-Identifier: MIT OR Apache-2.0
"""The live view of a run in JupyterLab, and a recording by hvplot, as Chromium shows them."""

import re
import unittest

from daemon import wait_for
from lab import CHANNELS, Lab, live

#: Of each strip, pixels in the colour of the trace.
PIXELS = """
const canvas = document.querySelector("canvas.strobe-live");
const [strips, top, width] = [arguments[0], 8 * devicePixelRatio, canvas.width];
const high = 52 * devicePixelRatio;
const pen = canvas.getContext("2d");
return Array.from({length: strips}, (_, strip) => {
  const data = pen.getImageData(170 * devicePixelRatio, top + strip * high, width - 250 * devicePixelRatio, 44 * devicePixelRatio).data;
  let found = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 100 && Math.abs(data[at] - 0x4c) + Math.abs(data[at + 1] - 0x8d) + Math.abs(data[at + 2] - 0xd6) < 60) found++;
  return found;
});
"""
#: Whether something was drawn at the right edge, where a text that is too long would be cut off.
CUT = """
const canvas = document.querySelector("canvas.strobe-live");
return canvas.getContext("2d").getImageData(canvas.width - 2, 0, 2, canvas.height).data.some((part) => part > 0);
"""
HEAD = ".strobe-account"
#: Pixels in the colour of hvplot's line, in any canvas: those of bokeh are in shadow trees.
LINE = """
const canvases = (root) => [...root.querySelectorAll("*")].flatMap((element) =>
  element instanceof HTMLCanvasElement ? [element] : element.shadowRoot ? canvases(element.shadowRoot) : []);
let found = 0;
for (const canvas of canvases(document.querySelector(".jp-Notebook"))) {
  const pen = canvas.width && canvas.height && canvas.getContext("2d");
  if (!pen) continue;
  const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 100 && Math.abs(data[at] - 0x2c) + Math.abs(data[at + 1] - 0xa0) + Math.abs(data[at + 2] - 0x2c) < 60) found++;
}
return found;
"""


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.lab = Lab(live())
        cls.addClassCleanup(cls.lab.close)
        cls.lab.opened()
        cls.lab.run(0)

    def test_it_draws_one_picture_after_the_other_to_the_end_of_the_run(self) -> None:
        browser = self.lab.browser
        wait_for(lambda: self.lab.drawn() >= 50, "50 pictures")
        rows = self.rows()
        self.assertGreater(rows, 0)
        wait_for(lambda: self.rows() > rows, "more rows")
        wait_for(lambda: min(browser.do(PIXELS, len(CHANNELS))) > 50, "a trace in each strip")
        self.assertFalse(browser.do(CUT), "values are cut off")
        self.lab.run(1)
        wait_for(lambda: "stopped" in browser.text(HEAD), "the account of the run")
        said = browser.text(HEAD)
        found = re.search(r"(\d+) triggers = (\d+) rows \+ (\d+) missed.* \+ (\d+) skipped", said)
        self.assertIsNotNone(found, said)
        triggers, made, missed, skipped = map(int, found.groups())
        self.assertEqual(triggers, made + missed + skipped)
        self.assertEqual(self.rows(), made - 1)
        drawn = self.lab.drawn()
        # The picture of the end is the last one.
        browser.do("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.assertLessEqual(self.lab.drawn(), drawn + 1)
        errors = [line for line in browser.driver.get_log("browser") if "strobe" in line["message"]]
        self.assertEqual(errors, [])

    def test_hvplot_draws_a_recording_that_came_by_arrow(self) -> None:
        self.lab.run(2)
        wait_for(lambda: self.lab.browser.do(LINE) > 200, "a line in hvplot's picture")

    def rows(self) -> int:
        found = re.search(r"up to row (\d+)", self.lab.browser.text(HEAD))
        return int(found.group(1)) if found else 0


if __name__ == "__main__":
    unittest.main()
