# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Tango database as a test has it: a server of its own, which keeps everything in its memory."""

import re

import tango
from server import Server


class Database:
    """One with nothing in it; `host` is what TANGO_HOST says of it."""

    def __init__(self) -> None:
        # The port is of the system's choice.
        self.server = Server("databaseds.database", "--host", "127.0.0.1", "--port", "0", "--print-host-port", "2",
                             PYTANGO_DATABASE_NAME=":memory:")
        (port,) = re.findall(r"port=(\d+)", "".join(self.server.said))
        self.host = f"127.0.0.1:{port}"
        self.client = tango.Database("127.0.0.1", int(port))

    def add(self, server: str, kind: str, device: str, properties: dict[str, str | list[str]], alias: str = "") -> None:
        """A device of this server and class."""
        info = tango.DbDevInfo()
        info.server, info._class, info.name = server, kind, device
        self.client.add_device(info)
        self.client.put_device_property(device, properties)
        if alias:
            self.client.put_device_alias(device, alias)

    def url(self, device: str) -> str:
        return f"tango://{self.host}/{device}"

    def device(self, name: str) -> tango.DeviceProxy:
        return tango.DeviceProxy(self.url(name))

    def close(self) -> None:
        self.server.close()
