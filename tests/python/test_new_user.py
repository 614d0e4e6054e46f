# SPDX-License-Identifier: MIT OR Apache-2.0
"""What somebody meets who has the package, and neither its extras nor its documentation: docs/how-to/beamline.md has the list."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import strobe


class Commands(unittest.TestCase):
    def said(self, *words: str) -> str:
        done = subprocess.run([sys.executable, "-m", "strobe", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_without_a_command_it_says_which_there_are(self) -> None:
        said = self.said()
        for command in ("demo", "list", "doctor"):
            self.assertRegex(said, rf"\n +{command} ")

    def test_list_has_every_channel_output_and_event_with_its_unit(self) -> None:
        said = self.said("list")
        user = strobe.catalogue()["user"]
        for kind in ("channels", "outputs", "events"):
            for one in user[kind]:
                self.assertIn(f"  {one['name']} ", said)
        self.assertRegex(said, r"  sim\.sine .* \[V\]\n")

    def test_an_engine_that_is_not_there_says_why(self) -> None:
        kernel = strobe.catalogue()["kernel"]
        if "error" in kernel:
            self.assertIn(f"engine kernel: {kernel['error']}\n", self.said("list"))

    def test_doctor_says_of_each_check_what_it_found_and_what_helps(self) -> None:
        # Another look at the machine may find something else, but makes the same checks.
        lines = self.said("doctor").splitlines()
        found = [re.match(r"(advice|unknown|ok) +([a-z-]+): .+", line) for line in lines]
        self.assertCountEqual([one[2] for one in found if one], [check["check"] for check in strobe.doctor()])
        for one, line, before in zip(found[1:], lines[1:], found, strict=False):
            helps = before is not None and before[1] == "advice"
            self.assertEqual(one is None, helps, line)
            self.assertEqual(bool(re.match(r" {9}\S", line)), helps, line)


def ran(program: str) -> subprocess.CompletedProcess[str]:
    """With nothing on the path but the package: the tests have folders of the same names."""
    words = os.environ | {"PYTHONPATH": str(Path(strobe.__file__).parents[1])}
    return subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, env=words)


class Extras(unittest.TestCase):
    def test_a_part_without_its_libraries_says_what_to_install(self) -> None:
        for part in ("bluesky", "epics", "tango"):
            said = ran(f"import strobe.{part}").stderr.splitlines()[-1]
            self.assertRegex(said, rf"\AModuleNotFoundError: strobe\.{part} needs .*; pip install 'strobe-daq\[{part}\]'\Z")

    def test_a_program_without_its_libraries_says_so_without_a_traceback(self) -> None:
        for part in ("epics", "tango"):
            done = ran(f"import sys, strobe._programs as programs; sys.exit(programs.{part}())")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"\Astrobe-{part}: .* pip install 'strobe-daq\[{part}\]'\n\Z")


class Words(unittest.TestCase):
    def test_one_channel_needs_no_list(self) -> None:
        with strobe.run(event="soft", read="sim.sine", derive="twice = sim.sine * 2", keep="sim.sine > 0.5 V", engine="user") as run:
            self.assertEqual([channel.name for channel in run.info.channels], ["sim.sine", "twice"])
            run.start()
            run.trigger(64)
            values = [float(value) for block in run.read(follow=False) for value in block["twice"]]
        self.assertGreater(len(values), 5)
        self.assertGreater(min(values), 1.0)


if __name__ == "__main__":
    unittest.main()
