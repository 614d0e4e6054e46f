# SPDX-License-Identifier: MIT OR Apache-2.0
"""What there is on this machine, and what the package can do with it. The program `strobe` does more."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from strobe import Error, catalogue, doctor, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m strobe", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    show = commands.add_parser("demo", help="make a run of the simulator and print its account, in a second")
    show.add_argument("--rows", type=int, default=1000, help="rows, one a millisecond (default: 1000)")
    commands.add_parser("list", help="list channels, outputs and events")
    commands.add_parser("doctor", help="say what makes the rows of this machine late, and what helps")
    options = parser.parse_args()
    try:
        match options.command:
            case "demo":
                return demo(options.rows)
            case "list":
                return listed()
            case "doctor":
                return examined()
            case _:
                parser.print_help()
                return 0
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


def listed() -> int:
    """The catalogue, a line each, of each engine."""
    engines: dict[str, Any] = catalogue()
    for engine in ("user", "kernel"):
        found: dict[str, Any] = engines[engine]
        if "error" in found:
            print(f"engine {engine}: {found['error']}")
            continue
        for kind in ("channels", "outputs", "events"):
            print(f"engine {engine}, {kind}:")
            for one in found[kind]:
                unit = f" [{one['unit']}]" if one.get("unit") else ""
                print(f"  {one['name']:<20} {one['description']}{unit}")
    return 0


def examined() -> int:
    """The checks of the doctor, those with advice first."""
    checks = sorted(doctor(), key=lambda check: ("advice", "unknown", "ok").index(check["state"]))
    for check in checks:
        print(f"{check['state']:<8} {check['check']}: {check['evidence']}")
        if check["state"] == "advice":
            print(f"{'':<8} {check['remedy']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
