# SPDX-License-Identifier: MIT OR Apache-2.0
"""strobe-epics as a test has it: a process of its own, on ports that nobody else has, beside a daemon."""

import os
import signal
import socket
import subprocess
import sys
import threading
import unittest
from typing import ClassVar

from daemon import AT_MOST_S, Daemon, wait_for
from p4p.client.thread import Context

#: Nobody has asked for these; all of PVAccess stays on this machine.
LOOPBACK = {"EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}


def free_ports() -> tuple[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        return str(tcp.getsockname()[1]), str(udp.getsockname()[1])


class Served:
    """Serves the runs of this recipe; `get` and `put` are those of a client that knows nothing but PVAccess."""

    def __init__(self, recipe: str, **words) -> None:
        self.daemon = Daemon(**words)
        self.recipe = self.daemon.folder / "scan.toml"
        self.recipe.write_text(recipe)
        tcp, udp = free_ports()
        self.environment = LOOPBACK | {"EPICS_PVA_SERVER_PORT": tcp, "EPICS_PVA_BROADCAST_PORT": udp}
        served = {"EPICS_PVAS_SERVER_PORT": tcp, "EPICS_PVAS_BROADCAST_PORT": udp}
        self.said: list[str] = []
        self.process = subprocess.Popen([sys.executable, "-m", "strobe.epics._main", self.daemon.url, str(self.recipe)],
                                        env=os.environ | served, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.hearing = threading.Thread(target=self.hear, daemon=True)
        self.hearing.start()
        wait_for(self.serves, "strobe-epics serves")
        self.client = Context("pva", conf=self.environment, useenv=False, nt=False)

    def hear(self) -> None:
        self.said.extend(iter(self.process.stderr.readline, ""))

    def serves(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"strobe-epics has ended: {''.join(self.said)}")
        return any("serves" in line for line in self.said)

    def value(self, path: str):
        return self.client.get(f"STROBE:{path}", timeout=AT_MOST_S)

    def get(self, path: str):
        return self.value(path).value

    def put(self, path: str, value: object) -> None:
        self.client.put(f"STROBE:{path}", {"value": value}, timeout=AT_MOST_S)

    def severity(self, path: str) -> int:
        return self.value(path)["alarm.severity"]

    def wait(self, path: str, value: object) -> None:
        wait_for(lambda: self.get(path) == value, f"{path} becomes {value}")

    def account(self) -> dict[str, int]:
        """What the PVs say of a run that is over; that nothing is left out."""
        self.wait("PCAP:ACTIVE", False)
        names = ("TRIGGERS", "ROWS", "MISSED", "SKIPPED", "LOST", "ERRORS", "GIVEN", "LATE")
        account = {name.lower(): self.get(f"ACCOUNT:{name}") for name in names}
        assert account["triggers"] == account["rows"] + account["missed"] + account["skipped"], account
        assert account["given"] + account["lost"] == account["rows"], account
        return account

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(AT_MOST_S)

    def close(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait(AT_MOST_S)
        self.hearing.join(AT_MOST_S)
        self.process.stderr.close()
        self.daemon.close()


class Test(unittest.TestCase):
    """A test with servers. To start one takes seconds of a CPU."""

    servers: ClassVar[dict[tuple[type, str], Served]] = {}

    def served(self, recipe: str, **words) -> Served:
        """One of its own."""
        served = Served(recipe, **words)
        self.addCleanup(served.close)
        return served

    def shared(self, recipe: str) -> Served:
        """One that tests of this class have one after the other, with what each may have changed as it was."""
        served = self.servers.get((type(self), recipe))
        if not served:
            served = self.servers[type(self), recipe] = Served(recipe)
            self.addClassCleanup(served.close)
        self.assertFalse(served.get("PCAP:ACTIVE"), "a test before this one has left a run")
        served.put("PCAP:ENABLE", True)
        served.put("PCAP:ROWS", 0)
        return served
