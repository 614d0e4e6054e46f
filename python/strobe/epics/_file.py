# SPDX-License-Identifier: MIT OR Apache-2.0
# h5py brings no types.
# pyright: standard, reportMissingImports=false
"""The HDF5 file that HDFPanda asks for: a dataset for each channel, which bluesky finds by its name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from strobe._account import Account
from strobe._block import Block
from strobe._error import Error

#: Rows in a chunk, as HDFPanda tells bluesky.
CHUNK = 1024
#: What else is in it, so that each gap shows.
NUMBERS = ("row", "trigger", "time")
ACCOUNT = ("triggers", "rows", "missed", "skipped", "lost", "errors")


class File:
    """Float64 values in the channels' units, NaN where a channel failed; and what is missing. It can be read while it grows."""

    def __init__(self, path: Path, datasets: dict[str, str]) -> None:
        """`datasets` has the name of each channel's."""
        self._datasets = datasets
        # Rows come in one thread; another looks, and closes it.
        self._lock = threading.Lock()
        self._written = 0
        self._flushed = 0
        self._flush_at = 0.0
        self.path = path
        #: Why it gets no more rows; empty: it does.
        self.error = ""
        try:
            self._file = h5py.File(path, "x", libver="latest")
        except FileExistsError:
            raise Error(str(path), "the file exists, and files are never overwritten", "use another name") from None
        except OSError as error:
            raise Error(str(path), str(error), "give a folder that can be written to") from None
        for name, kind in [*((name, "<u8") for name in NUMBERS), *((name, "<f8") for name in datasets.values())]:
            self._file.create_dataset(name, (0,), kind, maxshape=(None,), chunks=(CHUNK,))
        for name in ACCOUNT:
            self._file.create_dataset(f"account/{name}", (), "<u8")
        self._file.swmr_mode = True

    def take(self, block: Block) -> None:
        """Rows, in the thread that reads them."""
        begin, end = self._written, self._written + len(block)
        columns: dict[str, NDArray[Any]] = {name: block.words[:, place] for place, name in enumerate(NUMBERS)}
        columns |= {dataset: block[channel] for channel, dataset in self._datasets.items()}

        def write() -> None:
            for name, values in columns.items():
                self._file[name].resize((end,))
                self._file[name][begin:end] = values
            self._written = end

        self._do(write)

    def add(self, account: Account) -> None:
        """The account of a run whose rows are all here."""
        def write() -> None:
            for name in ACCOUNT:
                self._file[f"account/{name}"][()] += np.uint64(getattr(account, name))

        self._do(write)

    def flush(self, period: float = 0.0) -> int:
        """How many rows whoever opens it now finds. It is brought up to date at most once in each period, in s."""
        def flush() -> None:
            self._file.flush()
            self._flushed = self._written
            self._flush_at = time.monotonic() + period

        if self._written != self._flushed and time.monotonic() >= self._flush_at:
            self._do(flush)
        return self._flushed

    def close(self) -> None:
        """Nothing more comes into it."""
        self._do(self._file.flush)
        with self._lock:
            self._file.close()

    def _do(self, what: Callable[[], None]) -> None:
        """A full disk ends the file; the run, and who else reads it, go on."""
        with self._lock:
            if self.error:
                return
            try:
                what()
            except (OSError, RuntimeError) as error:
                self.error = f"{self.path}: {error}"


def make_folders(folder: Path, depth: int) -> bool:
    """Whether it is there, after what of its end may be made was made.

    0: nothing. -2: its last two parts. 2: all below its first two parts, as area detectors have it.
    """
    missing = [part for part in [folder, *folder.parents] if not part.is_dir()]
    parts = len(folder.parts) - 1
    most = -depth if depth < 0 else max(0, parts - depth + 1) if depth else 0
    if missing and len(missing) <= most:
        folder.mkdir(parents=True, exist_ok=True)
    return folder.is_dir()
