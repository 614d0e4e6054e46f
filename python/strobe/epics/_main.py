# SPDX-License-Identifier: MIT OR Apache-2.0
# p4p brings no types.
# pyright: standard, reportMissingImports=false
"""The program `strobe-epics`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from strobe._detector import Detector
from strobe._error import Error
from strobe._machine import connect
from strobe.epics._server import PERIOD, Scan


def main() -> int:
    parser = argparse.ArgumentParser(prog="strobe-epics", description="Serves the runs of a recipe over PVAccess (EPICS).")
    parser.add_argument("url", help="URL of strobe serve, such as http://127.0.0.1:8000")
    parser.add_argument("recipe", type=Path, help="the recipe of its runs: a TOML file, as strobe record --save writes it")
    parser.add_argument("--prefix", default="STROBE:", help="prefix of all PVs (default: %(default)s)")
    parser.add_argument("--interface", action="append", metavar="ADDRESS",
                        help="serve at this address of this machine; may be repeated (default: 127.0.0.1)")
    parser.add_argument("--token", type=Path, metavar="FILE", help="a file with the server's token for the role control "
                        "(default: the token in the variable STROBE_TOKEN)")
    options = parser.parse_args()
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    try:
        token = options.token.read_text().strip() if options.token else os.environ.get("STROBE_TOKEN") or None
        scan = Scan(Detector(connect(options.url, token=token), options.recipe), options.prefix)
        with scan.serve(options.interface or ["127.0.0.1"]) as server:
            print(f"strobe-epics: serves {options.prefix}PVI at {server.conf()['EPICS_PVAS_INTF_ADDR_LIST']}", file=sys.stderr,
                  flush=True)
            while not end.wait(PERIOD):
                scan.look()
            scan.close()
    except (Error, OSError, RuntimeError) as error:
        print(f"strobe-epics: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
