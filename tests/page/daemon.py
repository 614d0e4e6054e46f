# SPDX-License-Identifier: MIT OR Apache-2.0
"""The daemon, on a port of the system's choice, with a folder of recipes."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

# No test depends on how quick the machine is.
AT_MOST_S = 240


def wait_for(look, what: str):
    """What `look` answers, as soon as that is something."""
    end = time.monotonic() + AT_MOST_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {AT_MOST_S} s")


class Daemon:
    def __init__(self, recipes: dict[str, str] | None = None, tokens: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="strobe-page-"))
        (self.folder / "recipes").mkdir()
        for name, text in (recipes or {}).items():
            (self.folder / "recipes" / f"{name}.toml").write_text(text.replace("FOLDER", str(self.folder)))
        config = f'data = "{self.folder}/data"\nrecipes = "{self.folder}/recipes"\n[http]\nlisten = ["127.0.0.1:0"]\n'
        if tokens is not None:
            (self.folder / "tokens").write_text(tokens)
            (self.folder / "tokens").chmod(0o600)
            config += f'[tokens]\nfile = "{self.folder}/tokens"\n'
        (self.folder / "serve.toml").write_text(config)
        self.said: list[str] = []
        self.process = subprocess.Popen([os.environ["STROBE_SERVE"], str(self.folder / "serve.toml")], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self.hear, daemon=True).start()
        self.url = wait_for(self.address, "the daemon says where it listens")

    def hear(self) -> None:
        self.said.extend(iter(self.process.stderr.readline, ""))

    def address(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon has ended: {''.join(self.said)}")
        found = re.search(r"http://127\.0\.0\.1:\d+", "".join(self.said))
        return found and found.group()

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(AT_MOST_S)
        self.process.stderr.close()
        shutil.rmtree(self.folder)

    def ask(self, path: str, method: str = "GET", said: object = None) -> bytes:
        body = None if said is None else json.dumps(said).encode()
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=AT_MOST_S) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def get(self, path: str):
        return json.loads(self.ask(f"/api{path}"))

    def post(self, path: str, said: object = None):
        return json.loads(self.ask(f"/api{path}", "POST", {} if said is None else said))

    def run(self, number: int) -> dict:
        return self.get(f"/runs/{number}")

    def ended(self, number: int) -> dict:
        """A run, when it has ended and all its rows are there."""
        def look():
            run = self.run(number)
            return run if run["end"] else None
        return wait_for(look, f"run {number} ends")

    def rows(self, number: int, **query) -> list[dict[str, str]]:
        """Rows that are there, as CSV has them."""
        words = "&".join(f"{key.rstrip('_')}={value}" for key, value in {"format": "csv", "follow": "false", **query}.items())
        text = self.ask(f"/api/runs/{number}/rows?{words}").decode()
        return list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))
