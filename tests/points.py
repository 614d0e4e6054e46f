# SPDX-License-Identifier: MIT OR Apache-2.0
"""3000 points of the simulator, which each way of flying them has to bring: StrobeDetector, HDFPanda with strobe-epics, HDFPanda
with an IOC on the PandA port."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Channels whose values depend on nothing but the number of the row.
CHANNELS = ("sim.counter", "sim.ramp", "sim.sine", "sim.noise")
ROWS = 3000
DIGEST = "2cf7caa03c179bdebc85c131237d95e1c8edecc70be8fa76832347653f8e99c7"


def digest(columns: Mapping[str, Any]) -> str:
    """Of the values of these channels, in their units."""
    values = np.column_stack([np.asarray(columns[channel], np.float64) for channel in CHANNELS])
    assert values.shape == (ROWS, len(CHANNELS)), values.shape
    return hashlib.sha256(values.tobytes()).hexdigest()
