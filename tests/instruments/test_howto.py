# SPDX-License-Identifier: MIT OR Apache-2.0
"""The boards and commands of docs/how-to/instruments.md, in their order, against the servers of these tests."""

import re
import shlex
import unittest

from speak import TIMEOUT, TREE, Case, free_port

PAGE = (TREE / "docs/how-to/instruments.md").read_text()


class HowTo(Case):
    def test_what_the_page_says_is_so(self) -> None:
        supply, plc = free_port(), free_port()
        self.server("scpi.py", supply)
        self.server("modbus.py", plc)
        blocks = re.findall(r"```(toml|sh)\n(.*?)```", PAGE, re.S)
        self.assertGreater(len(blocks), 10)
        said = []
        for kind, text in blocks:
            if kind == "toml":
                # On a busy machine an answer may take long.
                for told, port in ((5025, supply), (5020, plc)):
                    text = text.replace(f'"127.0.0.1:{told}"', f'"127.0.0.1:{port}"\ntimeout = {TIMEOUT}')
                name = re.search(r'name = "(\w+)"', text)
                assert name
                (self.folder / f"{name[1]}.toml").write_text(text)
                self.strobe("board", "check", f"{name[1]}.toml")
                self.strobe("board", "show", f"{name[1]}.toml")
                continue
            for line in text.splitlines():
                program, *words = shlex.split(line)
                self.assertEqual(program, "strobe")
                # What a loaded machine misses is not what the page is about.
                said.append(self.strobe(*words, status=(0, 3) if words[0] == "record" else 0).stdout)
        self.assertIn("ok: 1 channel, 0 outputs, 0 events; only the user engine can use it", said[0])
        self.assertRegex(said[1], r"psu\.voltage +0\.5 +V")
        self.assertRegex(said[-1], r"psu\.set +1\.5 +V\npsu\.voltage +1\.5 +V\npsu\.current +2\.5 +A")
        for file in ("psu.csv", "fast.csv"):
            rows = self.read(self.folder / file)
            self.assertTrue(rows and all(row["psu.voltage"] for row in rows), file)
        got = self.get(str(self.folder / "plc.toml"), "plc.temperature")
        self.assertEqual(got, {"plc.temperature": 21.5})
        self.strobe("set", "plc.lamp=1", "--board", "plc.toml")


if __name__ == "__main__":
    unittest.main()
