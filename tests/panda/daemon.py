# SPDX-License-Identifier: MIT OR Apache-2.0
"""A daemon for the clients, and what it has to say itself."""

import csv
import io
import json
import random
import re
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import numpy as np

TREE = Path(__file__).resolve().parent.parent.parent
PROGRAM = TREE / "target/release/strobe-serve"
# How long anything may take. What is asked for takes a few seconds; the machine may have other things to do.
LIMIT = 120


def wait_for(what, condition):
    """Waits until the condition is true, and answers it."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"{what} did not happen in {LIMIT} s")


def free_address():
    """An address on this machine where nobody listens on the two ports."""
    while True:
        address = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        try:
            for port in (8888, 8889):
                with socket.create_server((address, port)):
                    pass
            return address
        except OSError:
            continue


class Daemon:
    """The daemon, with the simulator."""

    def __init__(self, folder: Path):
        self.address = free_address()
        config = folder / "serve.toml"
        config.write_text(f'data = "{folder}/rows"\n[http]\nlisten = ["127.0.0.1:0"]\n'
                          f'[panda]\nlisten = "{self.address}"\nengine = "user"\n')
        self.log = folder / "serve.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([PROGRAM, str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.url = wait_for("the daemon", self.where)

    def where(self):
        """Where it listens for HTTP; it says so last."""
        said = self.log.read_text()
        if self.process.poll() is not None:
            raise RuntimeError(f"{PROGRAM} ended at once: {said}")
        found = re.search(r"(http://\S+?)/?\n", said)
        return found and found[1]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(LIMIT)
        finally:
            self.process.kill()

    def ask(self, *lines):
        """Answers of the control port, one for each line."""
        with socket.create_connection((self.address, 8888), LIMIT) as connection:
            stream = connection.makefile("rw", newline="\n")
            answers = []
            for line in lines:
                stream.write(line + "\n")
                stream.flush()
                answer = [stream.readline().rstrip("\n")]
                while answer[-1].startswith("!"):
                    answer.append(stream.readline().rstrip("\n"))
                answers.append(answer if len(answer) > 1 else answer[0])
            return answers

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=LIMIT) as answer:
            return answer.read().decode()

    def run(self):
        """The last run, as the daemon says over HTTP."""
        return json.loads(self.get("/api/runs"))["runs"][-1]

    def rows(self):
        """All rows of the last run, by column, over HTTP: nothing of the PandA ports has a part in it."""
        run = self.run()
        text = self.get(f"/api/runs/{run['id']}/rows?from=0&format=csv")
        table = list(csv.reader(io.StringIO(text)))
        types = {"row": np.uint64, "trigger": np.uint64, "time": np.uint64}
        for channel in run["info"]["channels"]:
            scaled = channel.get("scale", 1) != 1 or channel.get("offset", 0) != 0
            types[channel["name"]] = float if scaled else {"u64": np.uint64, "s64": np.int64, "f64": float}[channel["type"]]
        columns = zip(*table[1:])
        named = {name: column for name, column in zip(table[0], columns) if name in types}
        return run, {name: np.array(column, dtype=str).astype(types[name]) for name, column in named.items()}
