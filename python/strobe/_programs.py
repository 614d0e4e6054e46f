# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs of the package, and what is said where the libraries of a part are not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def missing(part: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """What to install for this part of the package, instead of the name of a module that the user has never heard of."""
    if error.name is None or error.name.partition(".")[0] == "strobe":
        return error
    return ModuleNotFoundError(f"strobe.{part} needs {error.name}, which is not installed; pip install 'strobe-daq[{part}]'",
                               name=error.name)


def epics() -> int | None:
    """strobe-epics"""
    return _started("epics")


def tango() -> int | None:
    """strobe-tango"""
    return _started("tango")


def _started(part: str) -> int | None:
    try:
        main: Callable[[], int | None] = import_module(f"strobe.{part}").main
    except ModuleNotFoundError as error:
        print(f"strobe-{part}: {error}", file=sys.stderr)
        return 1
    return main()
