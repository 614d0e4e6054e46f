# SPDX-License-Identifier: MIT OR Apache-2.0
"""The laboratory: stock Debian kernels in QEMU guests, built and run without root."""

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
