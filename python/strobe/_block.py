# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows, as NumPy sees them: without a copy where the words are the values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strobe import _strobe

if TYPE_CHECKING:
    from strobe._run import Info
    from strobe._strobe import Block as Native

#: Words of a row before its values: number, trigger, time, status.
HEADER = 4
STATUS_FAULTS = 32


class Lost(UserWarning):
    """The warning that rows were lost or triggers missed, and that the program has not looked at the counts."""


def warn(first: int, lost: int, missed: int) -> None:
    """Of what is missing before this row and in its block."""
    warnings.warn(f"from row {first} on: {lost} rows lost and {missed} triggers missed; see lost and missed of the "
                  "block, or of the run", Lost, stacklevel=3)


class Block:
    """Some rows of a run, and what is missing before and between them.

    `block["sim.sine"]` are the values of a channel in its unit (float64, NaN where it failed), `block.raw[...]` the values as
    read (in their own type), `block.failed[...]` where it failed. A block stays valid for as long as you keep it, and its
    arrays are read-only views of the memory of its rows.

    >>> with strobe.run(event="soft", read=["sim.counter", "sim.sine"], rows=4) as run:
    ...     run.start()
    ...     run.trigger(4)
    ...     block = next(iter(run))
    >>> block
    <strobe.Block: 4 rows from 0>
    >>> block.rows
    array([0, 1, 2, 3], dtype=uint64)
    >>> block["sim.counter"]
    array([0., 1., 2., 3.])
    >>> block.raw["sim.counter"]
    array([0, 1, 2, 3], dtype=uint64)
    >>> block.failed["sim.counter"]
    array([False, False, False, False])
    >>> block.lost, block.missed
    (0, 0)
    """

    def __init__(self, native: Native, info: Info) -> None:
        self._native = native
        self._asked = native.lost == 0 and native.missed == 0
        #: The run's description.
        self.info = info
        #: All words, a row each, as they lie in memory: read only.
        self.words: NDArray[np.uint64] = np.asarray(native)

    def __del__(self) -> None:
        if not getattr(self, "_asked", True):
            warn(self.first, self._native.lost, self._native.missed)

    @property
    def lost(self) -> int:
        """Rows that were overwritten before they were read, right before the first one."""
        self._asked = True
        return self._native.lost

    @property
    def missed(self) -> int:
        """Triggers without a row, from the row before this block to its last one."""
        self._asked = True
        return self._native.missed

    @property
    def first(self) -> int:
        """Number of the first row; without rows, of the next one."""
        return self._native.first

    def __len__(self) -> int:
        return len(self._native)

    @property
    def rows(self) -> NDArray[np.uint64]:
        """Number of each row."""
        return self.words[:, 0]

    @property
    def triggers(self) -> NDArray[np.uint64]:
        """Number of each row's trigger."""
        return self.words[:, 1]

    @property
    def time(self) -> NDArray[np.uint64]:
        """When each row was made, ns on the clock of the run."""
        return self.words[:, 2]

    @property
    def array(self) -> NDArray[np.void]:
        """The rows as a structured array over the same memory: row, trigger, time, status, and each channel as it was read.

        >>> with strobe.run(event="soft", read=["sim.counter"], rows=2) as run:
        ...     run.start()
        ...     run.trigger(2)
        ...     block = next(iter(run))
        >>> block.array[["row", "sim.counter"]].tolist()
        [(0, 0), (1, 1)]
        """
        names = ["row", "trigger", "time", "status", *(channel.name for channel in self.info.channels)]
        types = ["<u8"] * HEADER + [channel.dtype for channel in self.info.channels]
        fields = np.dtype({"names": names, "formats": types, "offsets": [8 * place for place in range(len(names))],
                           "itemsize": 8 * self.words.shape[1]})
        return np.ndarray(len(self), fields, self.words) if len(self) else np.empty(0, fields)

    @property
    def raw(self) -> Columns:
        """What was read of each channel, in its own type."""
        return Columns(self, "raw")

    @property
    def failed(self) -> Columns:
        """In which rows each channel failed."""
        return Columns(self, "failed")

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        place = self.info.place(name)
        channel = self.info.channels[place]
        values = self._raw(place).astype(np.float64)
        if (channel.scale, channel.offset) != (1.0, 0.0):
            values *= channel.scale
            values += channel.offset
        if self._fault_words().any():
            values[self._failed(place)] = np.nan
        return values

    def __iter__(self) -> Iterator[NDArray[np.void]]:
        return iter(self.array)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows with the columns of an .arrows file: what failed is null."""
        return _strobe.block_stream(self._native)

    def __repr__(self) -> str:
        return f"<strobe.Block: {len(self)} rows from {self.first}>"

    def _raw(self, place: int) -> NDArray[Any]:
        return self.words[:, HEADER + place].view(self.info.channels[place].dtype)

    def _fault_words(self) -> NDArray[np.uint64]:
        """The words that name what failed: that of the status, and those behind the values."""
        begin = HEADER + len(self.info.channels)
        more = max(0, len(self.info.channels) + len(self.info.outputs) - STATUS_FAULTS)
        behind = self.words[:, begin:begin + -(-more // 64)]
        return np.column_stack([self.words[:, 3] >> np.uint64(32), behind])

    def _failed(self, place: int) -> NDArray[np.bool_]:
        words = self._fault_words()
        word, bit = (0, place) if place < STATUS_FAULTS else (1 + (place - STATUS_FAULTS) // 64, (place - STATUS_FAULTS) % 64)
        failed: NDArray[np.bool_] = (words[:, word] >> np.uint64(bit)) & np.uint64(1) != 0
        return failed


class Columns:
    """One view of the channels of a block, by their names."""

    def __init__(self, block: Block, what: str) -> None:
        self._block = block
        self._what = what

    def __getitem__(self, name: str) -> NDArray[Any]:
        place = self._block.info.place(name)
        return self._block._raw(place) if self._what == "raw" else self._block._failed(place)
