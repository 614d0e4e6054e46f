# SPDX-License-Identifier: MIT OR Apache-2.0
"""A device server as a test has it: a process of its own, on the loopback, until it is closed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from daemon import AT_MOST_S, wait_for


class Server:
    """A Python module with these arguments; `host` is the database that it asks, as TANGO_HOST says it. `ready` looks whether it
    serves, if it does not say so."""

    def __init__(self, module: str, *arguments: str, host: str = "", ready: Callable[[], bool] | None = None,
                 **environment: str) -> None:
        self.module = module
        self.ready = ready or (lambda: any("Ready to accept request" in line for line in self.said))
        said = {"TANGO_HOST": host} if host else {}
        self.said: list[str] = []
        self.process = subprocess.Popen([sys.executable, "-u", "-m", module, *arguments], env=os.environ | said | environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.hearing = threading.Thread(target=self.hear, daemon=True)
        self.hearing.start()
        wait_for(self.serves, f"{module} serves")

    def hear(self) -> None:
        self.said.extend(iter(self.process.stdout.readline, ""))

    def serves(self) -> bool:
        if self.process.poll() is not None:
            self.hearing.join(AT_MOST_S)
            raise AssertionError(f"{self.module} has ended: {''.join(self.said)}")
        return self.ready()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(AT_MOST_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(AT_MOST_S)
        self.hearing.join(AT_MOST_S)
        self.process.stdout.close()
