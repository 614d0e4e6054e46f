# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs: made here, another's, recorded, or of a server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from strobe import _rules, _strobe, _view
from strobe._account import Account, Summary
from strobe._block import Block
from strobe._error import Error
from strobe._progress import shown
from strobe._reader import Reader
from strobe._wait import readable

if TYPE_CHECKING:
    from strobe._live import Live

DTYPES = {"u64": "<u8", "s64": "<i8", "f64": "<f8"}


@dataclass(frozen=True)
class Channel:
    """A channel of a run, and what is known about it: value = raw * `scale` + `offset`, in its `unit`."""

    #: Its name, as device.channel.
    name: str
    #: Of its values; empty: none.
    unit: str
    #: What it is, in words.
    description: str
    #: Of what was read: <u8, <i8 or <f8.
    dtype: str
    #: One unit of what was read, in the unit.
    scale: float
    #: What is added.
    offset: float


@dataclass(frozen=True)
class Info:
    """A run's description, as known before its first row."""

    #: Who makes the rows: kernel or user.
    engine: str
    #: What triggers it.
    event: str
    #: Its number.
    run: int
    #: The clock of its times.
    clock: str
    #: From trigger to trigger, if the event has a period.
    period_ns: int | None
    #: After how many rows it ends; None: it is stopped.
    limit: int | None
    #: Rows in its ring.
    capacity: int
    #: What each row reads, in this order.
    channels: tuple[Channel, ...]
    #: What each row writes.
    outputs: tuple[str, ...]
    #: How the event accounts for what its source drops by itself: "exact", "by time" or "none".
    accounting: str

    @classmethod
    def of(cls, text: str) -> Info:
        """From JSON, as a run says it."""
        said = json.loads(text)
        names = said["fault_names"]
        channels = tuple(Channel(name, channel["unit"], channel["description"], DTYPES[channel["type"]], float(channel["scale"]),
                                 float(channel["offset"])) for name, channel in zip(names, said["channels"]))
        outputs = tuple(name.removeprefix("output ") for name in names[len(channels):])
        return cls(said["engine"], said["event"], said["run"], said["clock"], said["period_ns"], said["limit"], said["capacity"],
                   channels, outputs, said["accounting"])

    def place(self, name: str) -> int:
        """The place of the channel with this name in a row."""
        for place, channel in enumerate(self.channels):
            if channel.name == name:
                return place
        raise KeyError(f"{name}: the run has no such channel; it has {', '.join(channel.name for channel in self.channels)}")


class Run:
    """A run. Iterating over it gives its blocks. A run that was made here starts then, and ends with its `with`.

    Each `for` and each `async for` reads for itself. For a run that was made here it begins with row 0, and rows that have been
    overwritten by then count as lost; for other runs it begins with the oldest row. `read` begins elsewhere.

    >>> with strobe.run(event="timer:1kHz", read=["sim.counter"], rows=30) as run:
    ...     first = [int(row) for block in run for row in block.rows]
    ...     again = [int(row) for block in run for row in block.rows]
    >>> first == again == list(range(30))
    True
    """

    def __init__(self, native: _strobe.Run, own: bool = False) -> None:
        self._native = native
        self._own = own
        self._started = False
        self._account: Account | None = None
        self._lost = _strobe.LostRows()
        #: What is known before its first row.
        self.info = Info.of(native.info)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._native.name

    def __repr__(self) -> str:
        return f"<strobe.Run {self.name}: {self.info.event}, {len(self.info.channels)} channels>"

    def _repr_html_(self) -> str:
        """How it looks in a notebook: what it is, its account, and pictures of the rows that are there."""
        return _view.of_run(self)

    def start(self) -> None:
        """Triggers make rows from now on."""
        self._native.start()
        self._started = True

    def stop(self) -> None:
        """Ends the run; does nothing if it has ended. Its rows can still be read."""
        self._native.stop()

    def remove(self) -> None:
        """Ends the run, and lets a server delete its rows. Rows of a run of this machine go when the last reader closes."""
        self._native.remove()
        self._own = False

    def pause(self) -> None:
        """Triggers are not counted from now on."""
        self._native.pause()

    def resume(self) -> None:
        """A paused run goes on."""
        self._native.resume()

    def trigger(self, count: int = 1) -> None:
        """Triggers of the event `soft`.

        >>> with strobe.run(event="soft", read=["sim.counter"], rows=2) as run:
        ...     run.start()
        ...     run.trigger(2)
        ...     sum(len(block) for block in run)
        2
        """
        self._native.trigger(count)

    def tune(self, values: Mapping[str, str | float] | None = None, /, **named: str | float) -> None:
        """Gives variables that were made with tune= new values, one after the other; the next row is computed with them.

        A number is in the unit of the variable's column, which shows from which row on it was so; a text may have another
        unit, as in "2.5 mV".

        >>> with strobe.run(event="soft", read=["sim.counter"], tune={"limit": "3 like sim.counter"}, derive={"far": "sim.counter >= limit"},
        ...                 rows=8) as run:
        ...     run.start()
        ...     run.trigger(4)
        ...     run.tune(limit=6)
        ...     run.trigger(4)
        ...     block, = run
        >>> block["limit"], block["far"]
        (array([3., 3., 3., 3., 6., 6., 6., 6.]), array([0., 0., 0., 1., 0., 0., 1., 1.]))
        """
        for name, value in _rules.tuned({**(values or {}), **named}):
            self._native.tune(name, value)

    @property
    def state(self) -> str:
        """Its state: ready, running, paused, done, stopped or failed; for a file: recorded."""
        text = self._native.look()
        return str(json.loads(text)["state"]) if text else "recorded"

    @property
    def account(self) -> Account:
        """What became of its triggers: up to the end of what was read, or else until now. `lost` is that of the latest reader."""
        if self._account:
            return replace(self._account, lost=self.lost)
        text = self._native.look()
        if text is None:
            raise Error(self.name, "its account is known only after its rows are read", "read it first")
        return Account.of(json.dumps({"lost": self.lost, "end": None, "missed_by": {}, **json.loads(text)}))

    @property
    def missed(self) -> int:
        """Triggers without a row, so far."""
        return self.account.missed

    @property
    def skipped(self) -> int:
        """Triggers that were left out on purpose, by keep or every, so far."""
        return self.account.skipped

    @property
    def lost(self) -> int:
        """Rows that the latest reader was too slow for, so far."""
        return self._lost.rows

    def read(self, begin: int | Literal["oldest", "now"] | None = None, *, on_loss: Literal["report", "raise"] = "report",
             follow: bool = True) -> Reader:
        """Blocks from this row on; follow=False: only those that exist now. on_loss="raise": lost rows raise an error, whether
        they were lost in a ring, in a recording or at a server.

        >>> with strobe.run(event="soft", read=["sim.counter"]) as run:
        ...     run.start()
        ...     run.trigger(10)
        ...     [len(block) for block in run.read(4, follow=False)]
        [6]
        """
        reader = self._reader(begin, on_loss, follow)
        return Reader(reader, self.info, lambda: self._end(reader))

    def __iter__(self) -> Iterator[Block]:
        return self.read()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows to the end of the run, as `read` gives them: what polars, pyarrow, pandas and DuckDB take."""
        return self.read().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns of the rows, which are those of an .arrows file."""
        return self._native.schema()

    async def aread(self, begin: int | Literal["oldest", "now"] | None = None, *, on_loss: Literal["report", "raise"] = "report",
                    follow: bool = True) -> AsyncIterator[Block]:
        """The same as `read` with asyncio: it waits for a descriptor; for the disk, with a recording, in a thread.

        >>> import asyncio
        >>> async def count(run):
        ...     return sum([len(block) async for block in run.aread(5)])
        >>> with strobe.run(event="timer:1kHz", read=["sim.counter"], rows=20) as run:
        ...     asyncio.run(count(run))
        15
        """
        reader = self._reader(begin, on_loss, follow)
        while True:
            if reader.fileno() < 0:
                native = await asyncio.to_thread(reader.next)
            else:
                ready, native = reader.poll()
                if not ready:
                    await readable(reader.fileno())
                    continue
            if native is None:
                break
            yield Block(native, self.info)
        self._end(reader)

    def __aiter__(self) -> AsyncIterator[Block]:
        return self.aread()

    def live(self, channels: Sequence[str] | None = None, seconds: float = 10.0) -> Live:
        """Draws its rows as they come, in a notebook: all channels or these, and so many seconds. A run made here is started."""
        try:
            from strobe._live import Live
        except ImportError as error:
            raise Error("live view", str(error), "pip install 'strobe-daq[notebook]'") from None
        return Live(self, channels, seconds)

    def record(self, *sinks: str | os.PathLike[str], overwrite: bool = False, sync: bool = False, last: int | None = None,
               progress: Callable[[int, int, int], None] | None = None) -> Summary:
        """Records the run into files to its end: .arrows, .h5, .parquet, .csv; {n}, {date} and {event} in names are filled in.

        `progress` is called ten times a second with the rows made, missed and lost; without it, a terminal and a notebook show
        them. Ctrl-C ends it in an orderly way: the files are whole then, and KeyboardInterrupt is raised.

        >>> with strobe.run(event="timer:1kHz", read=["sim.sine"], rows=50) as run:
        ...     summary = run.record("scan.arrows", "scan.csv")
        >>> [sink["rows"] for sink in summary.sinks]
        [50, 50]
        """
        self._started = True
        look, end = (progress, lambda: None) if progress else shown(self.info.limit)
        try:
            text = self._native.record([os.fspath(sink) for sink in sinks], overwrite, sync, last, look)
        finally:
            end()
        return Summary(text)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # A child that leaves it ends nothing of its parent's.
        if self._own and self._native.is_ours:
            self.stop()

    def _reader(self, begin: int | str | None, on_loss: str, follow: bool) -> _strobe.Reader:
        if on_loss not in ("report", "raise"):
            raise ValueError(f'on_loss is {on_loss!r}: say "report" or "raise"')
        if begin is None:
            begin = 0 if self._own else "oldest"
        reader = self._native.reader(str(begin), on_loss == "raise", follow, self._lost)
        if self._own and not self._started:
            self.start()
        return reader

    def _end(self, reader: _strobe.Reader) -> None:
        text, torn = reader.end()
        if text:
            self._account = Account.of(text)
        elif torn:
            raise Error(self.name, "it breaks off in the middle of a row, so what is missing is not known",
                        "its writer was killed: use the rows that are there")


def open(path: str | os.PathLike[str], *, derive: Mapping[str, str | float] | str | Sequence[str] | None = None,
         keep: str | Sequence[str] | None = None, every: int | None = None) -> Run:
    """A recording: .arrows, or .h5. With derive, keep or every: the rows that a run with these would have had of it.

    >>> summary = strobe.record(None, "scan.h5", event="timer:1kHz", read=["sim.counter"], rows=40)
    >>> recording = strobe.open("scan.h5")
    >>> sum(len(block) for block in recording), recording.account.rows
    (40, 40)
    >>> tried = strobe.open("scan.h5", derive={"least": "min(sim.counter since emit)"}, every=20)
    >>> [int(value) for block in tried for value in block["least"]]
    [0, 20]
    """
    program = (_rules.equations("derive", [] if derive is None else derive), _rules.texts("keep", [] if keep is None else keep),
               None if every is None else _rules.every(every))
    return Run(_strobe.open(os.fspath(path), *program))


def replay(path: str | os.PathLike[str], speed: float | None = 1.0) -> Run:
    """Plays a recording as a run of this machine, with its gaps, times and account; speed=None: as fast as possible.

    >>> summary = strobe.record(None, "scan.arrows", event="timer:1kHz", read=["sim.counter"], rows=40)
    >>> with strobe.replay("scan.arrows", speed=None) as run:
    ...     sum(len(block) for block in run)
    40
    """
    return Run(_strobe.replay(os.fspath(path), speed), own=True)
