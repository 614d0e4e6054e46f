# SPDX-License-Identifier: MIT OR Apache-2.0
"""Says how many pictures a second the page draws of 16 channels at 10 kHz, and how much CPU that takes: of the daemon, and of the
browser."""

import json
import os
import sys
import time
from pathlib import Path

import recipes
from browser import Browser
from daemon import Daemon

# Each end of the rows that is new in a frame is a picture.
PICTURES = """
const [seconds, done] = arguments, begin = performance.now();
let pictures = 0, longest = 0, end = strobe.view.drawn.end, last = begin;
const look = (now) => {
    if (strobe.view.drawn.end !== end) {
        longest = Math.max(longest, now - last);
        pictures += 1; end = strobe.view.drawn.end; last = now;
    }
    const passed = performance.now() - begin;
    if (passed < 1000 * seconds) requestAnimationFrame(look);
    else done([pictures / passed * 1000, longest]);
};
requestAnimationFrame(look);"""
SECONDS = 20


def cpu(pid: int) -> float:
    """Seconds that a process has used, with all that it has started."""
    own = sum(int(word) for word in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    children = (task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children"))
    return own / os.sysconf("SC_CLK_TCK") + sum(cpu(int(child)) for each in children for child in each)


def main() -> None:
    daemon = Daemon({"sixteen": recipes.SIXTEEN})
    browser = Browser()
    try:
        run = daemon.post("/runs", {"name": "sixteen"})["id"]
        browser.driver.set_script_timeout(SECONDS + 60)
        with browser.opened(daemon.url, run) as page:
            page.wait("strobe.view.drawn.end >= 30000", what="thirty thousand rows are drawn")
            pids = {"daemon": daemon.process.pid, "browser": browser.driver.service.process.pid}
            before = {name: cpu(pid) for name, pid in pids.items()}
            rate, longest = page.driver.execute_async_script(PICTURES, SECONDS)
            busy = {name: (cpu(pid) - before[name]) / SECONDS for name, pid in pids.items()}
            lost = page.do("return strobe.view.lost")
        account = daemon.run(run)
        said = {"pictures_per_second": rate, "longest_pause_ms": longest, "lost": lost, "missed": account["missed"],
                **{f"{name}_cpus": each for name, each in busy.items()}}
        if "--json" in sys.argv[1:]:
            print(json.dumps(said))
        else:
            print(f"{rate:.1f} pictures a second of 16 channels at 10 kHz, for {SECONDS} s; the longest pause was {longest:.0f} ms. "
                  f"Busy CPUs: daemon {busy['daemon']:.2f}, browser {busy['browser']:.2f}. "
                  f"Rows lost to the page: {lost}; triggers missed: {account['missed']}")
    finally:
        browser.close()
        daemon.close()


if __name__ == "__main__":
    main()
