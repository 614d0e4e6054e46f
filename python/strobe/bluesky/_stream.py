# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the documents of bluesky say of the rows: data keys, the files, and how far they are."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Literal, cast

from bluesky.protocols import StreamAsset
from event_model import ComposeStreamResource, ComposeStreamResourceBundle, DataKey
from ophyd_async.core import SignalR, StreamableDataProvider

from strobe._error import Error
from strobe._run import Info
from strobe.bluesky._recording import Recording

#: What every row has beside its channels, with its unit. Where a channel failed, `failed` has a 1.
HEADER = {"row": "", "trigger": "", "time": "ns", "status": ""}
FAILED = "failed"


def data_keys(detector: str, channels: Sequence[str]) -> dict[str, str]:
    """The data key of each channel: names in documents have no dots."""
    keys = {channel: f"{detector}-{re.sub('[^A-Za-z0-9_]', '_', channel)}" for channel in channels}
    for channel, key in keys.items():
        if other := [name for name in keys if keys[name] == key and name != channel]:
            raise Error(f"channel {channel}", f"its data key {key} is also that of {other[0]}", "read only one of the two")
    return keys


class Rows(StreamableDataProvider):
    """The rows of the runs of one stage: each run has a file of its own, which is a stream resource for each column."""

    def __init__(self, detector: str, machine: str, info: Info, written: SignalR[int]) -> None:
        self.collections_written_signal = written
        #: Rows of the files before this one.
        self.before = 0
        self._detector = detector
        self._machine = machine
        self._info = info
        self._keys = data_keys(detector, [channel.name for channel in info.channels])
        self._keys |= {name: f"{detector}-{name}" for name in (*HEADER, FAILED)}
        self._recording: Recording | None = None
        self._bundles: list[ComposeStreamResourceBundle] = []
        self._emitted = 0

    async def make_datakeys(self, collections_per_event: int) -> dict[str, DataKey]:
        more: list[int | None] = [collections_per_event] if collections_per_event > 1 else []
        dtype: Literal["array", "number"] = "array" if more else "number"
        keys = {name: DataKey(source=self._source(name), dtype=dtype, dtype_numpy="<u8", shape=more, units=unit, external="STREAM:")
                for name, unit in HEADER.items()}
        for channel in self._info.channels:
            key = DataKey(source=self._source(channel.name), dtype=dtype, dtype_numpy=channel.dtype, shape=more, units=channel.unit,
                          external="STREAM:")
            if (channel.scale, channel.offset) != (1.0, 0.0):
                # The file has what was read. A number that is no volt yet is not said to be one.
                key |= cast(DataKey, {"units": "", "scale": channel.scale, "offset": channel.offset, "scaled_units": channel.unit})
            keys[channel.name] = key
        steps = len(self._info.channels) + len(self._info.outputs)
        keys[FAILED] = DataKey(source=self._source(FAILED), dtype="array", dtype_numpy="|u1", shape=[*more, steps], external="STREAM:")
        return {self._keys[name]: key for name, key in keys.items()}

    async def make_stream_docs(self, collections_written: int, collections_per_event: int) -> AsyncIterator[StreamAsset]:
        events = (collections_written - self.before) // collections_per_event
        if self._recording is None or events * collections_per_event <= self._emitted:
            return
        if not self._bundles:
            compose = ComposeStreamResource()
            for name, key in self._keys.items():
                dataset, chunks = self._recording.columns[name]
                parameters = {"dataset": dataset, "chunk_shape": chunks}
                self._bundles.append(compose(mimetype="application/x-hdf5", uri=self._recording.uri, data_key=key,
                                             parameters=parameters, uid=None, validate=True))
            for bundle in self._bundles:
                yield "stream_resource", bundle.stream_resource_doc
        first, self._emitted = self._emitted, events * collections_per_event
        for bundle in self._bundles:
            yield "stream_datum", bundle.compose_stream_datum({"start": first // collections_per_event, "stop": events})

    def follow(self, recording: Recording) -> None:
        """The next file. All documents of the one before were made: an event has rows of one file."""
        if self._recording:
            if self._recording.rows > self._emitted:
                raise Error(f"detector {self._detector}", f"{self._recording.rows - self._emitted} rows of {self._recording.path} "
                            "were not collected", "collect them before the next run")
            self.before += self._recording.rows
        self._recording, self._bundles, self._emitted = recording, [], 0

    def give_up(self) -> None:
        """Rows that were not collected are in the file, and in no event: those of a point that is taken again."""
        if self._recording:
            self._emitted = self._recording.rows

    def _source(self, name: str) -> str:
        return f"strobe:{self._machine}/{name}"
