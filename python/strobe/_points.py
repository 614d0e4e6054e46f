# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a picture shows of rows: of each interval of time the least and the greatest value, and where rows are missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strobe._block import Block


class Points:
    """A point is an interval of time in which there are rows. It is as large, however many rows come."""

    def __init__(self, channels: Sequence[str], interval_ns: int, most: int) -> None:
        self.channels = tuple(channels)
        self.interval_ns = interval_ns
        self._span = most
        #: Which interval each point is, since 0 of the clock of the run: ascending.
        self.place: NDArray[np.int64] = np.empty(0, np.int64)
        #: A row of these for each point, a column for each channel; NaN where all that was read failed.
        self.least: NDArray[np.float64] = np.empty((0, len(channels)))
        self.greatest: NDArray[np.float64] = np.empty((0, len(channels)))
        #: In which points rows were lost or triggers missed, in it or right before.
        self.gap: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._lost = False
        self._trigger: int | None = None

    def add(self, block: Block) -> None:
        """These rows come after those that it has."""
        self._lost |= block.lost > 0
        if not len(block):
            return
        # A clock that is set back does not turn the picture round.
        place = np.maximum.accumulate(block.time.astype(np.int64) // self.interval_ns)
        if len(self.place):
            place = np.maximum(place, self.place[-1])
        begins = np.flatnonzero(np.diff(place, prepend=-1))
        values = np.column_stack([block[name] for name in self.channels])
        least, greatest = np.fmin.reduceat(values, begins), np.fmax.reduceat(values, begins)
        gap = np.logical_or.reduceat(self._gaps(block), begins)
        place = place[begins]
        if len(self.place) and place[0] == self.place[-1]:
            self.least[-1] = np.fmin(self.least[-1], least[0])
            self.greatest[-1] = np.fmax(self.greatest[-1], greatest[0])
            self.gap[-1] |= gap[0]
            place, least, greatest, gap = place[1:], least[1:], greatest[1:], gap[1:]
        place = np.concatenate([self.place, place])
        oldest = int(place[-1]) - self._span
        keep = int(np.searchsorted(place, oldest, "right"))
        self.place = place[keep:]
        self.least = np.concatenate([self.least, least])[keep:]
        self.greatest = np.concatenate([self.greatest, greatest])[keep:]
        self.gap = np.concatenate([self.gap, gap])[keep:]

    def bounds(self, channel: int) -> tuple[float, float] | None:
        """The least and the greatest value of a channel that is finite; none: there is no such value."""
        values = np.concatenate([self.least[:, channel], self.greatest[:, channel]])
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if len(values) else None

    def _gaps(self, block: Block) -> NDArray[np.bool_]:
        """Before which rows something is missing. Triggers that were skipped are not missing."""
        triggers = block.triggers.astype(np.int64)
        gaps: NDArray[np.bool_] = np.zeros(len(block), np.bool_)
        if block.missed:
            before = self._trigger if self._trigger is not None else -1 if block.first == 0 else int(triggers[0]) - 1
            # Between which rows of a block a trigger was missed and not skipped, nobody has said.
            gaps = np.diff(triggers, prepend=before) > 1
        gaps[0] |= self._lost
        self._lost, self._trigger = False, int(triggers[-1])
        return gaps
