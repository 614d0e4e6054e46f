# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether this machine is good for regular rows, and how regular they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from strobe import _strobe


def doctor(*, cpu: int | None = None, priority: int | None = None, wait: str = "block") -> list[dict[str, Any]]:
    """Checks for machine settings that disturb regular rows, each with a fix, for a run whose thread has this CPU and
    SCHED_FIFO priority and waits so (block, hybrid, spin): `checks` of `strobe doctor --json`, each with check, subject, state
    (ok, advice, unknown), evidence and remedy. It takes a second, and changes nothing.

    >>> {check["state"] for check in strobe.doctor()} <= {"ok", "advice", "unknown"}
    True
    """
    return list(json.loads(_strobe.doctor(cpu, priority, wait)))


def jitter(rate: str = "1kHz", *, seconds: float = 10, wait: str | Sequence[str] = "block", rounds: int = 1, policy: str | None = None,
           cpu: int | None = None, band: str = "3%") -> dict[str, Any]:
    """How regular rows of this rate are: the result of `strobe jitter --json`. Several ways to wait, such as
    ["block", "hybrid"], take turns of so many seconds. `band` is how far a period may be from the one asked for.

    >>> found = strobe.jitter("1kHz", seconds=0.2)
    >>> [way["way"] for way in found["ways"]]
    ['block']
    """
    ways = [wait] if isinstance(wait, str) else list(wait)
    return dict(json.loads(_strobe.jitter(rate, seconds, ways, rounds, policy, cpu, band)))
