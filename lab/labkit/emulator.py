# SPDX-License-Identifier: MIT OR Apache-2.0
"""What no kernel and no module can have caused: flags that a CPU in 64-bit mode never has. Then the emulator has mixed up the
state of its CPU, and what the guest does from there on says nothing of what was tested."""

import re

FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
# Bit 1 is always 1. VM (17) is 0 in 64-bit mode. Of 3, 5, 15, and from 22 on there are none.
ALWAYS = 1 << 1
POSSIBLE = 0x3F_FFFF & ~(1 << 3 | 1 << 5 | 1 << 15 | 1 << 17)


def impossible_flags(kernel_log: str) -> str | None:
    """The first flags of a report that no CPU can have had."""
    found = (text for text in FLAGS.findall(kernel_log) if not int(text, 16) & ALWAYS or int(text, 16) & ~POSSIBLE)
    return next(found, None)
