# SPDX-License-Identifier: MIT OR Apache-2.0
"""What no kernel and no module can have caused: flags that a CPU in 64-bit mode never has. Then the emulator has mixed up the
state of its CPU, and what the guest does from there on says nothing of what was tested."""

import re

from .jobs import Job, Result

FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
# Bit 1 is always 1. VM (17) is 0 in 64-bit mode. Of 3, 5, 15, and from 22 on there are none.
ALWAYS = 1 << 1
POSSIBLE = 0x3F_FFFF & ~(1 << 3 | 1 << 5 | 1 << 15 | 1 << 17)


def impossible_flags(kernel_log: str) -> str | None:
    """The first flags of a report that no CPU can have had."""
    found = (text for text in FLAGS.findall(kernel_log) if not int(text, 16) & ALWAYS or int(text, 16) & ~POSSIBLE)
    return next(found, None)


def is_mixed_up(kernel_log: str, what: str) -> bool:
    """Whether there are such flags in it; then that is said of the guest of `what`, which is to be started again."""
    flags = impossible_flags(kernel_log)
    if flags:
        print(f"lab: the emulator has mixed up the state of its CPU (EFLAGS {flags}), and its guest says nothing of {what}; "
              f"another guest is started. Its log:\n{kernel_log[-6000:]}\n", flush=True)
    return flags is not None


class GuestJob(Job):
    """A job with guests. It is run again, once, if it has failed and an emulator has mixed up its CPU."""

    def run(self) -> list[Result]:
        results = super().run()
        if any(result.failed and is_mixed_up(result.output, self.title) for result in results):
            return super().run()
        return results
