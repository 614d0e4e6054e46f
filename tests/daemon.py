# SPDX-License-Identifier: MIT OR Apache-2.0
"""The daemon as a test has it: on a port of the system's choice, with a folder of its own."""

import csv
import io
import json
import os
import re
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
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {AT_MOST_S} s")


class Daemon:
    """One with these recipes, by name, and this added to its configuration; FOLDER is its folder."""

    def __init__(self, recipes: dict[str, str] | None = None, tokens: str = "", config: str = "") -> None:
        self.place = tempfile.TemporaryDirectory(prefix="strobe-daemon-")
        self.folder = Path(self.place.name)
        (self.folder / "recipes").mkdir()
        text = 'data = "FOLDER/data"\nrecipes = "FOLDER/recipes"\n[http]\nlisten = ["127.0.0.1:0"]\nunix = "FOLDER/http"\n' + config
        if tokens:
            (self.folder / "tokens").write_text(tokens)
            (self.folder / "tokens").chmod(0o600)
            text += '[tokens]\nfile = "FOLDER/tokens"\n'
        texts = {f"recipes/{name}.toml": recipe for name, recipe in (recipes or {}).items()} | {"serve.toml": text}
        for name, text in texts.items():
            (self.folder / name).write_text(text.replace("FOLDER", str(self.folder)))
        self.said: list[str] = []
        self.process = subprocess.Popen([os.environ["STROBE_SERVE"], str(self.folder / "serve.toml")], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self.hear, daemon=True).start()
        self.url = wait_for(self.address, "the daemon says where it listens")
        self.port = int(self.url.rsplit(":", 1)[1])

    def hear(self) -> None:
        self.said.extend(iter(self.process.stderr.readline, ""))

    def address(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon has ended: {''.join(self.said)}")
        found = re.search(r"http://127\.0\.0\.1:\d+", "".join(self.said))
        return found and found.group()

    def close(self) -> None:
        # It may stand still.
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(AT_MOST_S)
        self.process.stderr.close()
        self.place.cleanup()

    def ask(self, method: str, path: str, said: object = None, token: str = "") -> tuple[int, bytes]:
        """Status and body."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        body = None if said is None else json.dumps(said).encode()
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=AT_MOST_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def granted(self, method: str, path: str, said: object = None) -> bytes:
        """The body of an answer that is no refusal."""
        status, body = self.ask(method, f"/api{path}", said)
        assert 200 <= status < 300, (method, path, status, body)
        return body

    def get(self, path: str):
        return json.loads(self.granted("GET", path))

    def post(self, path: str, said: object = None):
        return json.loads(self.granted("POST", path, {} if said is None else said))

    def delete(self, path: str) -> None:
        self.granted("DELETE", path)

    def run(self, number: int) -> dict:
        return self.get(f"/runs/{number}")

    def ended(self, number: int) -> dict:
        """A run, when it has ended and all its rows are there; its account is that of its triggers."""
        def look():
            run = self.run(number)
            return run if run["end"] else None
        run = wait_for(look, f"run {number} ends")
        assert run["triggers"] == run["rows"] + run["missed"] + run["skipped"], run
        return run

    def rows(self, number: int, **query) -> list[dict[str, str]]:
        """Rows that are there, as CSV has them."""
        words = "&".join(f"{key.rstrip('_')}={value}" for key, value in {"format": "csv", "follow": "false", **query}.items())
        text = self.granted("GET", f"/runs/{number}/rows?{words}").decode()
        return list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))
