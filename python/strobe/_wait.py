# SPDX-License-Identifier: MIT OR Apache-2.0
"""How asyncio waits for rows: for a descriptor, in no thread."""

from __future__ import annotations

import asyncio


async def readable(fd: int) -> None:
    """Back when there is something to read."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def set() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, set)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
