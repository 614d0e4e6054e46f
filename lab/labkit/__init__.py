# SPDX-License-Identifier: MIT OR Apache-2.0
"""The laboratory: stock Debian kernels in QEMU guests, built and run without root."""

import os
import shutil
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
BUILD = TREE / "build"


class LabError(Exception):
    """Something the user can put right; `status` is the exit status of the program."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status


def say(message: str) -> None:
    """A word of the lab itself; stdout belongs to the guest."""
    print(f"lab: {message}", file=sys.stderr, flush=True)


def tool(name: str) -> str:
    """A program that Debian keeps out of the PATH of ordinary users."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise LabError(f"{name} is not installed: run `make setup`")
    return path
