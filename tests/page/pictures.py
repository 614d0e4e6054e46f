# SPDX-License-Identifier: MIT OR Apache-2.0
"""Takes the pictures of docs/: the page with a run, in both themes."""

import sys
from pathlib import Path

from browser import Browser
from daemon import Daemon, wait_for

RECIPE = """\
event = "timer:1kHz"
read = ["sim.sine", "sim.ramp", "clock.late"]
engine = "user"
"""


def main(folder: Path) -> None:
    daemon = Daemon({"demo": RECIPE})
    try:
        run = daemon.post("/runs", {"name": "demo"})["id"]
        for theme in ("light", "dark"):
            page = Browser(theme == "dark", 1180, 1240)
            try:
                with page.opened(daemon.url, run):
                    page.size(1060, 1060)
                    page.choose("#window", "1 s")
                    rows = daemon.run(run)["rows"]
                    wait_for(lambda: page.do("return strobe.view.drawn.end ?? 0") > rows + 5000, "five seconds of rows")
                    page.wait("document.querySelector('#late svg')")
                    page.do("document.activeElement.blur()")
                    page.settle()
                    page.driver.save_screenshot(str(folder / f"serve-{theme}.png"))
            finally:
                page.close()
    finally:
        daemon.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
