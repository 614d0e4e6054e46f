# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C for a call that waits."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from daemon import AT_MOST_S


@contextmanager
def ctrl_c(otherwise: Callable[[], object], when: Callable[[], object] = lambda: True) -> Iterator[threading.Event]:
    """Ctrl-C a little after what this gives is set, and not before `when` holds. Set it in the block that expects
    KeyboardInterrupt: a thread that is started says nothing of where the main one is. `otherwise` ends a call that does not
    hear it."""
    begun, over = threading.Event(), threading.Event()

    def interrupt() -> None:
        begun.wait()
        while not over.wait(0.2):
            if when():
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread, timer = threading.Thread(target=interrupt), threading.Timer(AT_MOST_S, otherwise)
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
