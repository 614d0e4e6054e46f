# SPDX-License-Identifier: MIT OR Apache-2.0
"""Saves what the notebook of examples/ and a live view look like, and says how many pictures a second the browser drew:
run pictures.py FOLDER"""

import base64
import sys
import time
from pathlib import Path

import hvplot.polars
import nbformat
import polars as pl
import strobe
from bokeh.resources import INLINE
from browser import Browser
from daemon import wait_for
from executed import EXAMPLE, executed, shown
from lab import CHANNELS, Lab, live
from nbconvert import HTMLExporter

SECONDS = 10


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lab = Lab(live())
    try:
        lab.opened()
        lab.run(0)
        wait_for(lambda: lab.drawn() > 20, "pictures")
        drawn, begin = lab.drawn(), time.monotonic()
        time.sleep(SECONDS)
        rate = (lab.drawn() - drawn) / (time.monotonic() - begin)
        print(f"{rate:.1f} pictures a second of {len(CHANNELS)} channels at 1 kHz, for {SECONDS} s")
        lab.browser.driver.save_screenshot(str(folder / "live.png"))
        lab.run(1)
    finally:
        lab.close()
    notebook = executed(folder, nbformat.read(EXAMPLE, as_version=4))
    for number, cell in enumerate(notebook.cells):
        for picture in shown(cell, "image/png") if cell.cell_type == "code" else ():
            (folder / f"cell-{number}.png").write_bytes(base64.b64decode(picture))
    (folder / "notebook.html").write_text(HTMLExporter().from_notebook_node(notebook)[0])
    # In a page that is exported, hvplot would load its program from the network.
    rows = pl.DataFrame(strobe.open(next(folder.glob("scan-*.arrows"))))
    hvplot.save(rows.hvplot.line(x="time", y=["sim.sine", "sim.noise"]), folder / "hvplot.html", resources=INLINE)
    browser = Browser(height=3000)
    try:
        for name in ("notebook", "hvplot"):
            browser.open((folder / f"{name}.html").as_uri())
            time.sleep(3)
            browser.driver.save_screenshot(str(folder / f"{name}.png"))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
