# SPDX-License-Identifier: MIT OR Apache-2.0
"""The PVs of strobe-epics, as Phoebus has them: its client of PVAccess is in Java, and has no code of p4p's."""

import hashlib
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from daemon import AT_MOST_S
from served import Served, Test

SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine"]\nengine = "user"\nrows = 500\n'
SOFT = 'event = "soft"\nread = ["sim.ramp"]\nengine = "user"\n'
#: The newest one, of Maven Central, and what its file has to be.
CLIENT = "core-pva-5.0.2.jar"
SHA256 = "cb60c39c2532f4e8772750ace3b3f953c78ebfb13633b76ef87321b85d1c8c2a"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
FOLDER = Path(__file__).resolve().parents[2] / "build/phoebus"


def client() -> Path:
    """Phoebus' client, which Maven brings once."""
    jar = FOLDER / CLIENT
    if not jar.exists():
        if not shutil.which("mvn"):
            raise AssertionError("mvn is missing: run lab/setup")
        name, _, version = CLIENT.removesuffix(".jar").rpartition("-")
        subprocess.run(["mvn", "-q", "-B", COPY, f"-Dartifact=org.phoebus:{name}:{version}", f"-DoutputDirectory={FOLDER}"],
                       check=True, stdin=subprocess.DEVNULL)
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != SHA256:
        raise AssertionError(f"{jar} is another file than this test knows: {found}; remove it")
    return jar


class Phoebus(Test):
    @classmethod
    def setUpClass(cls) -> None:
        cls.command = ["java", "-cp", str(client()), "org.epics.pva.client.PVAClientMain"]

    def said(self, served: Served, verb: str, *words: str) -> str:
        command = [*self.command, verb, "-w", str(AT_MOST_S), *words]
        done = subprocess.run(command, env=os.environ | served.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=2 * AT_MOST_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def fields(self, served: Served, pv: str) -> dict[str, str]:
        """Those of a PV: `long value 500`, `string units V`."""
        return dict(re.findall(r"^ +\w+(?:\[\])? (\w+) (.*)$", self.said(served, "get", f"STROBE:{pv}"), re.MULTILINE))

    def test_it_arms_a_run_and_reads_the_account(self) -> None:
        served = self.shared(SCAN)
        self.said(served, "put", "STROBE:PCAP:ARM", "1")
        account = served.account()
        self.assertEqual(account["given"], 500)
        for name, value in account.items():
            self.assertEqual(self.fields(served, f"ACCOUNT:{name.upper()}")["value"], str(value), name)
        self.assertEqual(self.fields(served, "RUN:STATE")["value"], "done")

    def test_a_channel_has_its_unit_and_is_invalid_before_the_first_row(self) -> None:
        served = self.served(SOFT)
        before = self.fields(served, "CHANNELS:SIM_RAMP")
        self.assertEqual((before["value"], before["severity"], before["units"]), ("NaN", "3", "V"))
        self.said(served, "put", "STROBE:PCAP:ARM", "1")
        self.said(served, "put", "STROBE:PCAP:TRIGGER", "7")
        served.wait("ACCOUNT:GIVEN", 7)
        after = self.fields(served, "CHANNELS:SIM_RAMP")
        self.assertAlmostEqual(float(after["value"]), 0.006)
        self.assertEqual(after["severity"], "0")
        served.put("PCAP:ARM", False)
        self.assertEqual(served.account()["rows"], 7)

    def test_it_finds_every_pv_by_the_tree(self) -> None:
        served = self.shared(SCAN)
        folders = re.findall(r"string d (\S+)", self.said(served, "get", "STROBE:PVI"))
        self.assertIn("STROBE:CHANNELS:PVI", folders)
        self.assertIn("STROBE:CHANNELS:SIM_SINE", self.said(served, "get", "STROBE:CHANNELS:PVI"))

    def test_it_is_told_of_each_change_until_the_last_row(self) -> None:
        # One that has had no run, whose last number would be the last of this one.
        served = self.served(SCAN)
        monitor = subprocess.Popen([*self.command, "monitor", "STROBE:ACCOUNT:GIVEN"], env=os.environ | served.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(monitor.stdout.close)
        self.addCleanup(monitor.wait, AT_MOST_S)
        self.addCleanup(monitor.kill)
        told = (int(found[1]) for line in monitor.stdout if (found := re.search(r"\bvalue (\d+)$", line)))
        seen = [next(told)]
        self.assertEqual(seen, [0])
        served.put("PCAP:ARM", True)
        while seen[-1] != 500:
            seen.append(next(told))
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(served.account()["given"], 500)


if __name__ == "__main__":
    unittest.main()
