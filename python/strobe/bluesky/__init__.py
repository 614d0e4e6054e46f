# SPDX-License-Identifier: MIT OR Apache-2.0
"""A detector for bluesky: `pip install 'strobe-daq[bluesky]'`.

    from ophyd_async.core import StaticPathProvider, UUIDFilenameProvider
    from strobe.bluesky import StrobeDetector

    paths = StaticPathProvider(UUIDFilenameProvider(), "/data")
    det = StrobeDetector(paths, ["sim.counter", "sim.sine"], internal="timer:1kHz", name="det")

docs/how-to/fly-scan.md has plans for it.
"""

from strobe._programs import missing

try:
    from strobe.bluesky._detector import StrobeDetector
except ModuleNotFoundError as error:
    raise missing("bluesky", error) from None

__all__ = ["StrobeDetector"]
