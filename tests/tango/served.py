# SPDX-License-Identifier: MIT OR Apache-2.0
"""strobe-tango as a test has it: a process of its own, without a database, beside a daemon."""

import signal
import socket
import subprocess
import sys
import threading

import tango
from daemon import AT_MOST_S, Daemon, wait_for

NAME = "test/strobe/1"
PROPERTIES = """#--- SERVER strobe-tango/test, Strobe device declaration
strobe-tango/test/DEVICE/Strobe: "{name}"

# --- {name} properties
{name}->Url: "{url}"
{name}->Recipe: "{recipe}"
{name}->Keep: "100"
"""


class Served:
    """Serves the runs of this recipe; `device` is a client's, which knows nothing but Tango."""

    def __init__(self, recipe: str, **words) -> None:
        self.daemon = Daemon(**words)
        self.recipe = self.daemon.folder / "scan.toml"
        self.recipe.write_text(recipe)
        properties = self.daemon.folder / "properties"
        properties.write_text(PROPERTIES.format(name=NAME, url=self.daemon.url, recipe=self.recipe))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.said: list[str] = []
        self.process = subprocess.Popen([sys.executable, "-m", "strobe.tango", "test", f"-file={properties}", "-ORBendPoint",
                                         f"giop:tcp:127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.hearing = threading.Thread(target=self.hear, daemon=True)
        self.hearing.start()
        wait_for(self.serves, "strobe-tango serves")
        self.url = f"tango://127.0.0.1:{port}/{NAME}#dbase=no"
        self.device = tango.DeviceProxy(self.url)
        self.device.set_timeout_millis(1000 * AT_MOST_S)

    def hear(self) -> None:
        self.said.extend(iter(self.process.stdout.readline, ""))

    def serves(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"strobe-tango has ended: {''.join(self.said)}")
        return any("Ready" in line for line in self.said)

    def state(self, name: str) -> None:
        wait_for(lambda: str(self.device.state()) == name, f"the state becomes {name}")

    def account(self) -> dict[str, int]:
        """What the attributes say of a run that is over; that nothing is left out."""
        self.state("STANDBY")
        account = {name: getattr(self.device, name)
                   for name in ("Triggers", "Rows", "Missed", "Skipped", "Lost", "Errors", "Given", "Late")}
        assert account["Triggers"] == account["Rows"] + account["Missed"] + account["Skipped"], account
        assert account["Given"] + account["Lost"] == account["Rows"], account
        return account

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(AT_MOST_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(AT_MOST_S)
        self.hearing.join(AT_MOST_S)
        self.process.stdout.close()
        self.daemon.close()
