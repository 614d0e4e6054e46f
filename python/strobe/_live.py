# SPDX-License-Identifier: MIT OR Apache-2.0
# anywidget and traitlets bring no types.
# pyright: standard, reportMissingImports=false
"""The live view of a run in a notebook: a widget, and the task that sends it what came."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import numpy as np
import traitlets
from numpy.typing import NDArray

from strobe._account import Account
from strobe._block import Block
from strobe._error import Error
from strobe._points import Points
from strobe._wait import readable

if TYPE_CHECKING:
    from strobe import _strobe
    from strobe._run import Run

#: Pictures come no sooner than this after one another, in s: 25 a second.
PERIOD = 0.04
#: Rows are taken for so long at most before a picture, in s: at 1 kHz the next row is there when one has been taken.
TAKE = PERIOD / 4
#: So many pictures are on their way at most: on a busy machine one takes 70 ms to the browser and back.
AHEAD = 2
#: A browser that has not drawn a picture for so long, in s, gets the next one: it may have come just now.
PATIENCE = 1.0
#: Points across a picture.
ACROSS = 600


class Live(anywidget.AnyWidget):
    """The last seconds of a run. The notebook's event loop waits for the rows: while a cell is busy, the picture stands still.

    It has a reader of its own: rows that it is too slow for are missing only here. `close` or the end of the run ends it.
    """

    _esm = Path(__file__).with_name("live.js")
    #: Of each channel its name and its unit.
    channels: Any = traitlets.List().tag(sync=True)
    #: What is said of the points; see live.js.
    said: Any = traitlets.Dict().tag(sync=True)
    points: Any = traitlets.Bytes().tag(sync=True)
    #: Which picture a browser has drawn.
    drawn: Any = traitlets.Int(0).tag(sync=True)

    def __init__(self, run: Run, channels: Sequence[str] | None, seconds: float) -> None:
        if not 0.01 <= seconds <= 86400:
            raise ValueError(f"seconds is {seconds!r}: a picture can show 0.01 to 86400 seconds")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise Error(run.name, "a live view needs the event loop of a notebook",
                        "iterate over the run, or use `strobe watch` in a terminal") from None
        names = [channels] if isinstance(channels, str) else list(channels or (channel.name for channel in run.info.channels))
        units = {channel.name: channel.unit for channel in run.info.channels}
        for name in names:
            run.info.place(name)
        super().__init__(channels=[[name, units[name]] for name in names])
        self._seconds = seconds
        self._points = Points(names, max(1, int(seconds * 1e9 / ACROSS)), ACROSS)
        self._rows = self._missed = self._lost = self._number = 0
        #: There is more to be drawn.
        self._new = False
        self._was_drawn = asyncio.Event()
        self.observe(lambda _: self._was_drawn.set(), "drawn")
        self._say("")
        reader = run._reader(0 if run._own and not run._started else "now", "report", True)
        if reader.fileno() < 0:
            raise Error(run.name, "a recording has no live view", "show the run itself, or strobe.replay it")
        self._task = loop.create_task(self._follow(run, reader))

    def close(self) -> None:
        """The picture stands still from now on, and its reader ends."""
        self._task.cancel()
        super().close()

    async def _follow(self, run: Run, reader: _strobe.Reader) -> None:
        try:
            begun = time.monotonic()
            while not self._take(run, reader):
                if self._new:
                    self._new = False
                    self._say("")
                    while self._number - 1 - self.drawn > AHEAD:
                        self._was_drawn.clear()
                        try:
                            await asyncio.wait_for(self._was_drawn.wait(), PATIENCE)
                        except TimeoutError:
                            break
                    await asyncio.sleep(PERIOD - (time.monotonic() - begun))
                else:
                    # It was asked, and has said that there is nothing: its descriptor says when there is.
                    await readable(reader.fileno())
                begun = time.monotonic()
            text, torn = reader.end()
            account = Account.of(text) if text else None
            self._say(str(account or ("it ends in the middle of a row" if torn else "ended")), bad=torn or not account)
        except Exception as error:
            # Nobody awaits this task: the picture is where it is seen.
            self._say(str(error), bad=True)

    def _take(self, run: Run, reader: _strobe.Reader) -> bool:
        """Takes the rows that are there; whether these were the last ones."""
        until = time.monotonic() + TAKE
        while time.monotonic() < until:
            ready, native = reader.poll()
            if not ready:
                return False
            if native is None:
                return True
            self._new = True
            block = Block(native, run.info)
            self._missed += block.missed
            self._lost += block.lost
            self._points.add(block)
            if len(block):
                self._rows = int(block.rows[-1]) + 1
        return False

    def _say(self, end: str, bad: bool = False) -> None:
        points = self._points
        bounds = [points.bounds(number) for number in range(len(points.channels))]
        said: dict[str, Any] = {"number": self._number, "count": len(points.place), "seconds": self._seconds, "bounds": bounds,
                                "rows": self._rows, "missed": self._missed, "lost": self._lost, "end": end, "bad": bad}
        self._number += 1
        with self.hold_sync():
            self.points = self._parts(bounds).tobytes()
            self.said = said

    def _parts(self, bounds: list[tuple[float, float] | None]) -> NDArray[np.float32]:
        """The columns of live.js."""
        points = self._points
        newest = points.place[-1] if len(points.place) else 0
        columns = [(points.place - newest) * (points.interval_ns / 1e9), points.gap.astype(np.float64)]
        for number, both in enumerate(bounds):
            least, greatest = both or (0.0, 0.0)
            # What is always the same is in the middle.
            scale, middle = (1 / (greatest - least), 0.0) if greatest > least else (0.0, 0.5)
            for values in (points.least[:, number], points.greatest[:, number]):
                columns.append((np.where(np.isfinite(values), values, np.nan) - least) * scale + middle)
        return np.concatenate(columns).astype(np.float32)
