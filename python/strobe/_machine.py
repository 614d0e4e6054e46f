# SPDX-License-Identifier: MIT OR Apache-2.0
"""What there is: on this machine, or on that of a server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from strobe import _recipe, _strobe
from strobe._error import Error
from strobe._run import Run


class Server:
    """A daemon (`strobe serve`) and its runs."""

    def __init__(self, native: _strobe.Machine, url: str) -> None:
        self._native = native
        self.url = url

    def __repr__(self) -> str:
        return f"<strobe.Server {self.url}>"

    @property
    def runs(self) -> dict[int, Run]:
        """Its runs, by their numbers."""
        numbers = [run["run"] for run in json.loads(self._native.runs())["runs"]]
        return {number: Run(self._native.run(number)) for number in numbers}

    def run(self, recipe: str | os.PathLike[str] | None = None, *, event: str | None = None, read: Sequence[str] | None = None,
            set: Mapping[str, int] | None = None, **words: Any) -> Run:
        """A new run there, as `strobe.run` makes one here. The server stops it when its `with` ends."""
        text = _recipe.text(recipe, event=event, read=read, set=set, **words)
        return Run(self._native.create(text), own=True)

    def catalogue(self) -> dict[str, Any]:
        return dict(json.loads(self._native.catalogue()))

    def status(self) -> list[dict[str, Any]]:
        return list(json.loads(self._native.runs())["runs"])

    def get(self, *channels: str) -> dict[str, float | int | None]:
        return dict(json.loads(self._native.get(list(channels))))

    def set(self, outputs: Mapping[str, int]) -> None:
        _written(self._native.set(list(outputs.items())))


def connect(url: str, *, token: str | None = None, ca: str | os.PathLike[str] | None = None) -> Server:
    """The daemon at this URL. It is asked at once, so that who cannot be reached is known."""
    return Server(_strobe.connect(url, token, None if ca is None else os.fspath(ca)), url)


def catalogue() -> dict[str, Any]:
    """Devices, channels, outputs and events of both engines."""
    return dict(json.loads(_strobe.Machine.here().catalogue()))


def status() -> list[dict[str, Any]]:
    """The runs of both engines, whoever makes them."""
    return list(json.loads(_strobe.Machine.here().runs())["runs"])


def get(*channels: str) -> dict[str, float | int | None]:
    """Channels, read once, now; None where that failed."""
    return dict(json.loads(_strobe.Machine.here().get(list(channels))))


def set(outputs: Mapping[str, int]) -> None:
    """Writes outputs once, now, in this order: strobe.set({"edu.raise": 1})."""
    _written(_strobe.Machine.here().set(list(outputs.items())))


def _written(text: str) -> None:
    failed = [name for name, done in json.loads(text).items() if not done]
    if failed:
        raise Error(f"output {', '.join(failed)}", "its driver has refused to write it", "strobe doctor says how the machine is")
