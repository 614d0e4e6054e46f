# SPDX-License-Identifier: MIT OR Apache-2.0
"""strobe-tango as a test has it: a process of its own beside a daemon, with a database or without one."""

import socket

import tango
from daemon import AT_MOST_S, Daemon, wait_for
from database import Database
from server import Server

NAME = "test/strobe/1"
HEAD = f"""#--- SERVER strobe-tango/test, Strobe device declaration
strobe-tango/test/DEVICE/Strobe: "{NAME}"

# --- {NAME} properties
"""


class Served:
    """Serves the runs of this recipe; `device` is a client's, which knows nothing but Tango."""

    def __init__(self, recipe: str, database: Database | None = None, **words) -> None:
        self.daemon = Daemon(**words)
        self.recipe = self.daemon.folder / "scan.toml"
        self.recipe.write_text(recipe)
        properties = {"Url": self.daemon.url, "Recipe": str(self.recipe), "Keep": "100"}
        if database:
            database.add("strobe-tango/test", "Strobe", NAME, properties)
            self.arguments, self.host, self.url = [], database.host, database.url(NAME)
        else:
            file = self.daemon.folder / "properties"
            file.write_text(HEAD + "".join(f'{NAME}->{name}: "{value}"\n' for name, value in properties.items()))
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            self.arguments, self.host = [f"-file={file}", "-ORBendPoint", f"giop:tcp:127.0.0.1:{port}"], ""
            self.url = f"tango://127.0.0.1:{port}/{NAME}#dbase=no"
        self.begin()

    def begin(self) -> None:
        self.server = Server("strobe.tango", "test", *self.arguments, host=self.host)
        self.device = tango.DeviceProxy(self.url)
        self.device.set_timeout_millis(1000 * AT_MOST_S)

    def again(self) -> None:
        """Ends the device server, and begins it again."""
        assert self.server.end() == 0, self.server.said
        self.server.close()
        self.begin()

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

    def close(self) -> None:
        self.server.close()
        self.daemon.close()
