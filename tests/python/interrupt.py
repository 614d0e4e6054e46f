# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C for a call that waits."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from daemon import AT_MOST_S


class Begun(threading.Event):
    """Set in the block that expects KeyboardInterrupt: a thread that is started says nothing of where the main one is."""

    sent_at = 0.0
    """When Ctrl-C came, by time.monotonic()."""
    is_over = False
    """Whether the call had to be ended otherwise."""


@contextmanager
def ctrl_c(otherwise: Callable[[], object], when: Callable[[], object] = lambda: True, before: float = 0.2,
           at_most: float = AT_MOST_S) -> Iterator[Begun]:
    """Ctrl-C so long after what this gives is set, in s, and not before `when` holds. `otherwise` ends a call that does not hear
    it."""
    begun, over = Begun(), threading.Event()

    def interrupt() -> None:
        begun.wait()
        while not over.wait(before):
            if when():
                begun.sent_at = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
                return

    def end() -> None:
        begun.is_over = True
        otherwise()

    thread, timer = threading.Thread(target=interrupt), threading.Timer(at_most, end)
    thread.start()
    timer.start()
    try:
        yield begun
    finally:
        over.set()
        begun.set()
        timer.cancel()
        thread.join()
        timer.join()
