# SPDX-License-Identifier: MIT OR Apache-2.0
"""What there is, and what can be made: on this machine, or on that of a server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from strobe import _recipe, _strobe
from strobe._account import Summary
from strobe._error import Error
from strobe._rules import Actions
from strobe._run import Run


class Machine:
    """A machine with engines and runs: `strobe.connect` returns that of a daemon; the module's functions use this one.

    >>> strobe.connect("http://127.0.0.1:8000").get("sim.latch")
    {'sim.latch': 0}
    """

    def __init__(self, native: _strobe.Machine, name: str) -> None:
        self._native = native
        #: Its URL, or `here`.
        self.name = name

    def __repr__(self) -> str:
        return f"<strobe.Machine {self.name}>"

    def run(self, recipe: str | os.PathLike[str] | None = None, *, event: str | None = None, read: str | Sequence[str] | None = None,
            set: Mapping[str, int] | None = None, derive: Mapping[str, str | float] | str | Sequence[str] | None = None,
            keep: str | Sequence[str] | None = None, every: int | None = None,
            let: Mapping[str, str | float] | str | Sequence[str] | None = None,
            tune: Mapping[str, str | float] | str | Sequence[str] | None = None,
            when: Sequence[tuple[str, Actions]] | None = None, **words: Any) -> Run:
        """Makes a run from the file of a recipe, from keywords, or from both; keywords override the recipe.

        derive computes columns, keep and every choose rows, let and when are variables and rules, in the language of row
        programs; `Run.tune` changes variables that tune declares. rows=1000 ends it, or seconds=10 where the event has a
        period; engine="kernel" or "user", board=, wait=, cpu=, policy=, clock=, ring=, shared= are those of `strobe record`.
        It is started when its rows are read, or by `start`, and is stopped when its `with` ends; a run of this machine also
        ends when the last reference to it is gone.

        >>> with strobe.run(event="timer:1kHz", read=["sim.counter", "sim.sine"], rows=100) as run:
        ...     print(sum(len(block) for block in run), "rows")
        100 rows
        >>> with strobe.run(event="soft", read=["sim.ramp"], derive={"step": "diff(sim.ramp) in mV"}, every=3, rows=4) as run:
        ...     run.start()
        ...     run.trigger(12)
        ...     block, = run
        >>> block["sim.ramp"], block["step"]
        (array([0.002, 0.005, 0.008, 0.011]), array([1., 1., 1., 1.]))
        >>> print(run.account)
        12 triggers = 4 rows + 0 missed + 8 skipped; 0 lost, 0 with errors; complete
        """
        text = _recipe.text(recipe, event=event, read=read, set=set, derive=derive, keep=keep, every=every, let=let, tune=tune,
                            when=when, **words)
        return Run(self._native.create(text), own=True)

    def record(self, recipe: str | os.PathLike[str] | None, *sinks: str | os.PathLike[str], overwrite: bool = False,
               last: int | None = None, sync: bool = False, progress: Callable[[int, int, int], None] | None = None,
               event: str | None = None, read: str | Sequence[str] | None = None, set: Mapping[str, int] | None = None,
               derive: Mapping[str, str | float] | str | Sequence[str] | None = None, keep: str | Sequence[str] | None = None,
               every: int | None = None, let: Mapping[str, str | float] | str | Sequence[str] | None = None,
               tune: Mapping[str, str | float] | str | Sequence[str] | None = None,
               when: Sequence[tuple[str, Actions]] | None = None, **words: Any) -> Summary:
        """Makes a run as `run` does, and records it here to its end: see `Run.record`.

        >>> summary = strobe.record(None, "scan.h5", event="timer:1kHz", read=["sim.sine"], rows=50)
        >>> summary.rows
        50
        """
        with self.run(recipe, event=event, read=read, set=set, derive=derive, keep=keep, every=every, let=let, tune=tune,
                      when=when, **words) as one:
            return one.record(*sinks, overwrite=overwrite, sync=sync, last=last, progress=progress)

    def attach(self, name: str | int) -> Run:
        """A run that exists: of another program, as in "user:3", which is not disturbed by readers; or of a server, by its number.

        >>> with strobe.run(event="soft", read=["sim.counter"]) as run:
        ...     other = strobe.attach(f"{run.info.engine}:{run.info.run}")
        ...     other.info.event
        'soft'
        """
        return Run(self._native.run(str(name)))

    @property
    def runs(self) -> dict[int, Run]:
        """The runs of a server, by their numbers."""
        return {run["run"]: self.attach(run["run"]) for run in self.status()}

    def catalogue(self) -> dict[str, Any]:
        """Devices, channels, outputs and events of both engines, by the name of the engine.

        >>> "sim.sine" in [channel["name"] for channel in strobe.catalogue()["user"]["channels"]]
        True
        """
        return dict(json.loads(self._native.catalogue()))

    def status(self) -> list[dict[str, Any]]:
        """The runs of both engines, of all programs.

        >>> with strobe.run(event="soft", read=["sim.counter"]) as run:
        ...     run.info.run in [one["run"] for one in strobe.status()]
        True
        """
        return list(json.loads(self._native.runs())["runs"])

    def get(self, *channels: str) -> dict[str, float | int | None]:
        """Reads channels once, now; None where reading failed.

        >>> strobe.get("sim.counter", "sim.latch")
        {'sim.counter': 0, 'sim.latch': 0}
        """
        found: dict[str, float | int | str | None] = json.loads(self._native.get(list(channels)))
        # JSON has words for what is no number.
        return {name: float(value) if isinstance(value, str) else value for name, value in found.items()}

    @overload
    def set(self, output: str, value: int, /) -> None: ...

    @overload
    def set(self, outputs: Mapping[str, int], /) -> None: ...

    def set(self, outputs: str | Mapping[str, int], value: int | None = None, /) -> None:
        """Writes an output once, now; or several, in this order.

        >>> strobe.set("sim.latch", 1)
        >>> strobe.set({"sim.latch": 0})
        """
        if isinstance(outputs, str) and value is not None:
            outputs = {outputs: value}
        elif isinstance(outputs, str) or value is not None:
            raise TypeError('say set("device.output", value), or set({"device.output": value})')
        written = json.loads(self._native.set(list(outputs.items())))
        failed = [name for name, done in written.items() if not done]
        if failed:
            raise Error(f"output {', '.join(failed)}", "its driver refused to write it", "see the kernel's log (dmesg)")


def connect(url: str, *, token: str | None = None, ca: str | os.PathLike[str] | None = None) -> Machine:
    """The machine of the daemon at this URL. It is contacted at once, so that an error shows here and not later.

    >>> server = strobe.connect("http://127.0.0.1:8000")
    >>> with server.run(event="timer:1kHz", read=["sim.counter"], rows=100) as run:
    ...     print(sum(len(block) for block in run.read(on_loss="raise")), "rows")
    100 rows
    >>> [past.info.event for past in server.runs.values()]
    ['timer:1kHz']
    """
    return Machine(_strobe.connect(url, token, None if ca is None else os.fspath(ca)), url)


_here = Machine(_strobe.Machine.here(), "here")
run, record, attach = _here.run, _here.record, _here.attach
catalogue, status, get, set = _here.catalogue, _here.status, _here.get, _here.set
