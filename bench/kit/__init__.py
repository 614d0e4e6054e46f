# SPDX-License-Identifier: MIT OR Apache-2.0
"""The bench: counts the instructions that a row costs, in guests of the lab."""

import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
BENCH = TREE / "bench"
BUILD = TREE / "build/bench"

sys.path.insert(0, str(TREE / "lab"))
