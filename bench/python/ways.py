# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ways to get the same rows into Python. Each reads all of them once, and returns how many there were, and in how many parts.

The rows are there before a way begins: what is measured is reading, and not making rows.
"""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import strobe
from daemon import AT_MOST_S, Daemon, wait_for
from pandablocks.connections import DataConnection
from pandablocks.responses import FrameData
from served import Served

#: Of the simulator, the clocks and the CPU: 8 of them, twice.
CHANNELS = 2 * ["sim.counter", "sim.sine", "sim.noise", "sim.ramp", "sim.latch", "clock.time", "clock.elapsed", "cpu.id"]
#: Triggers at once: what a daemon takes, and what a ring of the PandA port has room for.
AT_ONCE, AT_ONCE_BY_PANDA = 100_000, 4000
#: What a way returns: rows, and parts they came in.
Read = tuple[int, int]


def run_of(make: Callable[..., strobe.Run], rows: int) -> strobe.Run:
    """A run that has made so many rows, all of which are in its ring."""
    run = make(event="soft", read=CHANNELS, ring=1 << rows.bit_length(), engine="user")
    run.start()
    trigger(run, rows, AT_ONCE)
    return run


def trigger(run: strobe.Run, rows: int, at_once: int) -> None:
    for made in range(0, rows, at_once):
        run.trigger(min(at_once, rows - made))
        wait_for(lambda: run.account.triggers >= min(rows, made + at_once), "triggers")
    if run.account.rows != rows:
        raise SystemExit(f"bench/python: of {rows} triggers there is {run.account}")


def blocks(run: strobe.Run, rows: int) -> Read:
    """Looks at the first and the last row of each block, as the Rust reader does."""
    count = parts = ends = 0
    for block in run.read(0, on_loss="raise"):
        words = block.words
        ends += int(words[0, 0]) + int(words[-1, 0])
        count += len(block)
        parts += 1
        if count >= rows:
            break
    return count, parts


def by_asyncio(run: strobe.Run, rows: int) -> Read:
    async def read() -> Read:
        count = parts = ends = 0
        async for block in run.aread(0, on_loss="raise", follow=False):
            words = block.words
            ends += int(words[0, 0]) + int(words[-1, 0])
            count += len(block)
            parts += 1
        return count, parts

    return asyncio.run(read())


def by_h5py(path: Path) -> Read:
    """All columns, in parts of 4096 rows."""
    count = parts = 0
    with h5py.File(path) as file:
        columns = [data for data in file["entry/data"].values() if isinstance(data, h5py.Dataset)]
        for begin in range(0, len(columns[0]), 4096):
            count += len([column[begin:begin + 4096] for column in columns][0])
            parts += 1
    return count, parts


class Rust:
    """The library's reader, in a process of its own: it reads once for each line that it gets, and has its own clock."""

    def __init__(self, run: strobe.Run) -> None:
        name = f"{run.info.engine}:{run.info.run}"
        self.process = subprocess.Popen([os.environ["STROBE_BENCH"], "reads", name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def read(self) -> tuple[float, Read]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        return said["seconds"], (said["rows"], said["blocks"])

    def close(self) -> None:
        self.process.communicate()


@contextlib.contextmanager
def panda(rows: int) -> Iterator[Callable[[], Read]]:
    """A run of the PandA port, of the 8 channels, and pandablocks' decoder of its data. The stock client begins with the rows
    that come then; this one asks for the first one."""
    ports = [free_port(), free_port()]
    daemon = Daemon(config=f'[panda]\nlisten = "127.0.0.1"\ncontrol = {ports[0]}\ndata = {ports[1]}\nengine = "user"\n')
    try:
        with socket.create_connection(("127.0.0.1", ports[0])) as control, control.makefile("rw", newline="\n") as stream:
            names = [name.upper() for name in dict.fromkeys(CHANNELS)]
            for line in ["EVENT1.SOURCE=soft", "PCAP.TRIG=EVENT1.OUT", *(f"{name}.CAPTURE=Value" for name in names), "*PCAP.ARM="]:
                stream.write(line + "\n")
                stream.flush()
                if (answer := stream.readline().strip()) != "OK":
                    raise SystemExit(f"bench/python: the PandA port answers {line} with {answer}")
            run = strobe.connect(daemon.url).runs[1]
            for made in range(0, rows, AT_ONCE_BY_PANDA):
                run.trigger(min(AT_ONCE_BY_PANDA, rows - made))
                # In the spool, and not only in the ring, which has room for no more.
                wait_for(lambda: (said := daemon.run(1))["next"] + said["lost"] + said["missed"] >= min(rows, made + AT_ONCE_BY_PANDA),
                         "rows in the spool")
            if daemon.run(1)["next"] != rows or daemon.run(1)["lost"]:
                raise SystemExit(f"bench/python: of {rows} triggers there is {daemon.run(1)}")

            def read() -> Read:
                got = parts = 0
                connection = DataConnection()
                with socket.create_connection(("127.0.0.1", ports[1]), AT_MOST_S) as data:
                    data.sendall(connection.connect(scaled=False).replace(b"\n", b" FROM=0\n"))
                    while got < rows:
                        received = data.recv(1 << 16)
                        if not received:
                            raise SystemExit(f"bench/python: the PandA port ended after {got} of {rows} rows")
                        for found in connection.receive_bytes(received):
                            if isinstance(found, FrameData):
                                got += len(found.data)
                                parts += 1
                return got, parts

            yield read
    finally:
        daemon.close()


@contextlib.contextmanager
def epics(rows: int) -> Iterator[Callable[[], Read]]:
    """strobe-epics: from the put of the triggers until its PV says that all rows are in its HDF5 file."""
    channels = ", ".join(f'"{name}"' for name in dict.fromkeys(CHANNELS))
    served = Served(f'event = "soft"\nread = [{channels}]\nring = {1 << rows.bit_length()}\nengine = "user"\n')
    number = 0

    def read() -> Read:
        nonlocal number
        number += 1
        served.put("DATA:HDF_DIRECTORY", str(served.daemon.folder))
        served.put("DATA:HDF_FILE_NAME", f"rows{number}")
        served.put("DATA:CAPTURE", True)
        served.put("PCAP:ROWS", rows)
        served.put("PCAP:ARM", True)
        for made in range(0, rows, AT_ONCE):
            served.put("PCAP:TRIGGER", min(AT_ONCE, rows - made))
        served.wait("DATA:NUM_CAPTURED", rows)
        served.account()
        served.put("DATA:CAPTURE", False)
        return rows, 1

    try:
        yield read
    finally:
        served.end()
        served.close()
        served.daemon.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
