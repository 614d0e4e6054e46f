# SPDX-License-Identifier: MIT OR Apache-2.0
"""The controller of strobe.sardana, which notes what it answers to the Pool: a Pool hands values of a count by hardware on as
events, and keeps the last one only."""

import json
import os
from typing import Any

from strobe.sardana.strobe_controller import StrobeCounterTimerController


class NotingController(StrobeCounterTimerController):
    """Appends a line for each answer to the file STROBE_NOTES."""

    def ReadOne(self, axis: int) -> Any:
        answer = super().ReadOne(axis)
        with open(os.environ["STROBE_NOTES"], "a") as notes:
            print(json.dumps([axis, answer]), file=notes)
        return answer
