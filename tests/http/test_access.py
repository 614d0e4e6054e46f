# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the role view may not do, and what another network can reach: nothing."""

import json
import shutil
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from daemon import Daemon
from recipes import SCAN

VIEW, CONTROL = "view-0123456789abcdef", "control-0123456789abcdef"
TOKENS = f"view {VIEW}\ncontrol {CONTROL}\n"

# In a network namespace of its own, which a pair of interfaces joins to that of the daemon.
REACH = """
import socket, sys
for address in sys.argv[2:]:
    try:
        socket.create_connection((address, int(sys.argv[1])), 5).close()
        print("reached", address)
    except OSError as error:
        print("not", address, error)
"""


class Roles(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = Daemon(tokens=TOKENS)
        self.addCleanup(self.daemon.close)

    def test_a_token_of_the_role_view_cannot_start_stop_or_set(self) -> None:
        asked = [("POST", "/api/runs", {"recipe": SCAN}), ("POST", "/api/set", {"outputs": {"sim.latch": 1}}),
                 ("PUT", "/api/recipes/other", {"text": SCAN})]
        asked += [("POST", f"/api/runs/1/{verb}", {}) for verb in ("start", "stop", "pause", "resume")]
        asked += [("POST", "/api/runs/1/trigger", {"count": 1}), ("DELETE", "/api/runs/1", None)]
        status, body = self.daemon.ask("POST", "/api/runs", {"recipe": SCAN, "start": False}, CONTROL)
        self.assertEqual(status, 201, body)
        for method, path, said in asked:
            for token, expected in (("", 401), ("nobody-0123456789abcdef", 401), (VIEW, 403)):
                status, body = self.daemon.ask(method, path, said, token)
                self.assertEqual(status, expected, (method, path, body))
                self.assertEqual({"object", "reason", "remedy"}, set(json.loads(body)))
        status, body = self.daemon.ask("GET", "/api/runs/1", token=VIEW)
        self.assertEqual((status, json.loads(body)["state"]), (200, "ready"))
        status, body = self.daemon.ask("POST", "/api/runs/1/start", token=CONTROL)
        self.assertEqual(status, 200, body)

    def test_without_tokens_and_encryption_it_does_not_listen_to_other_machines(self) -> None:
        folder = self.daemon.folder
        config = folder / "open.toml"
        config.write_text('[http]\nlisten = ["0.0.0.0:0"]\n')
        ended = subprocess.run([self.daemon.process.args[0], str(config)], capture_output=True, text=True, timeout=240, cwd=folder)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertRegex(ended.stderr, "other machines can reach.*listen on 127.0.0.1, or set `tls`")


class OtherNetwork(unittest.TestCase):
    """Needs root, as the whole suite does."""

    def ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def test_from_another_network_nothing_is_open(self) -> None:
        self.assertIsNotNone(shutil.which("ip"), "ip is missing: run lab/setup")
        daemon = Daemon()
        self.addCleanup(daemon.close)
        name = f"sh{daemon.process.pid}"
        self.ip("netns", "add", name)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", name])
        self.ip("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        self.addCleanup(subprocess.run, ["ip", "link", "del", f"{name}a"], capture_output=True)
        # Of addresses that are kept for examples.
        here, there = "198.51.100.1", "198.51.100.2"
        self.ip("addr", "add", f"{here}/30", "dev", f"{name}a")
        self.ip("link", "set", f"{name}a", "up")
        self.ip("-n", name, "addr", "add", f"{there}/30", "dev", f"{name}b")
        self.ip("-n", name, "link", "set", f"{name}b", "up")
        self.ip("-n", name, "link", "set", "lo", "up")
        # That the way is open is shown by who does listen.
        with socket.create_server((here, 0)) as other:
            self.assertIn("reached", self.reach(name, other.getsockname()[1], here))
        said = self.reach(name, daemon.port, here, "127.0.0.1")
        self.assertNotIn("reached", said)
        self.assertEqual(len(said.splitlines()), 2, said)
        listening = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True).stdout
        ours = [line for line in listening.splitlines() if f"pid={daemon.process.pid}," in line]
        self.assertTrue(ours)
        self.assertTrue(all("127.0.0.1:" in line.split()[3] for line in ours), listening)
        self.assertEqual(Path(daemon.folder / "http").stat().st_mode & 0o777, 0o660)

    def reach(self, name: str, port: int, *addresses: str) -> str:
        words = ["ip", "netns", "exec", name, sys.executable, "-c", REACH, str(port), *addresses]
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=240).stdout
