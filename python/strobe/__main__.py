# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the package can do on this machine, in a second: `python -m strobe demo`."""

from __future__ import annotations

import argparse
import sys

from strobe import Error, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m strobe", description=__doc__)
    parser.add_argument("command", choices=["demo"], help="demo: make a run of the simulator and print its account")
    parser.add_argument("--rows", type=int, default=1000, help="rows, one a millisecond (default: 1000)")
    options = parser.parse_args()
    try:
        return demo(options.rows)
    except Error as error:
        print(f"strobe: {error}", file=sys.stderr)
        return 1


def demo(rows: int) -> int:
    """A run of the user engine, which needs no kernel module. 3: something is missing, as of the program strobe."""
    channels = ["sim.counter", "sim.ramp", "sim.sine"]
    with run(event="timer:1kHz", read=channels, rows=rows, engine="user") as one:
        print(f"{'row':>8} {'time/s':>9}", *(f"{name:>12}" for name in channels))
        begin, due = 0, 0
        for block in one:
            if len(block) and block.rows[-1] >= due:
                begin, due = begin or int(block.time[0]), int(block.rows[-1]) + 100
                seconds = (int(block.time[-1]) - begin) / 1e9
                print(f"{block.rows[-1]:8} {seconds:9.4f}", *(f"{block[name][-1]:12.4g}" for name in channels))
            if block.lost or block.missed:
                print(f"{block.lost} rows lost and {block.missed} triggers missed")
    print(one.account)
    return 0 if one.account.whole else 3


if __name__ == "__main__":
    sys.exit(main())
