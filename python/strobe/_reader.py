# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rows of a run from some place on, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from strobe import _strobe
from strobe._block import Block, warn

if TYPE_CHECKING:
    from strobe._run import Info


class Reader:
    """The blocks of a run in a `for`, or its rows as one table for who takes Arrow. Each row comes once.

    >>> import pyarrow
    >>> with strobe.run(event="timer:1kHz", read=["sim.counter"], rows=100) as run:
    ...     table = pyarrow.table(run.read(90))
    >>> table["row"].to_pylist()
    [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]
    """

    def __init__(self, native: _strobe.Reader, info: Info, end: Callable[[], None]) -> None:
        self._native = native
        self._info = info
        self._end = end

    def __iter__(self) -> Reader:
        return self

    def __next__(self) -> Block:
        native = self._native.next()
        if native is None:
            self._end()
            raise StopIteration
        return Block(native, self._info)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows that were not read yet, with the columns of an .arrows file. Rows lost and triggers missed are warned of."""
        return _strobe.reader_stream(self._native, warn, self._end)
