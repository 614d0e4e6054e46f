# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sardana's own Pool counts with the controller of strobe.sardana, on a device of strobe-tango."""

import json
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

import strobe.sardana
import tango
from daemon import wait_for
from database import Database
from sardana.pool import AcqSynchType
from sardana.pool.pooldefs import SynchDomain, SynchParam
from served import NAME, Served
from server import Server
from taurus.core.util.codecs import CodecFactory

SCAN = 'event = "timer:200Hz"\nread = ["sim.counter", "sim.sine", "sim.ramp"]\nengine = "user"\n'
FOLDERS = [list(strobe.sardana.__path__)[0], str(Path(__file__).parent / "controllers")]
POINTS = 300
OVER = (tango.DevState.ON, tango.DevState.ALARM)


class Counts(unittest.TestCase):
    def setUp(self) -> None:
        self.database = Database()
        self.addCleanup(self.database.close)

    def pool(self, recipe: str, controller: tuple[str, str] = ("strobe_controller.py", "StrobeCounterTimerController"),
             **environment: str) -> tango.DeviceProxy:
        """A measurement group of the recipe's channels, in a Pool of its own."""
        self.served = Served(recipe, self.database)
        self.addCleanup(self.served.close)
        self.database.add("Pool/test", "Pool", "pool/test/1", {"PoolPath": FOLDERS}, alias="Pool_test")
        server = Server("sardana.tango.pool", "test", "-ORBendPoint", "giop:tcp:127.0.0.1:", host=self.database.host,
                        ready=lambda: self.database.client.get_device_info("pool/test/1").exported == 1,
                        **environment)
        self.addCleanup(server.close)
        self.pooled = self.database.device("pool/test/1")
        self.pooled.set_timeout_millis(240_000)
        self.pooled.CreateController(["CTExpChannel", *controller, "rows", "Device", self.database.url(NAME)])
        self.names = ["count", "sine", "ramp"]
        for axis, name in enumerate(self.names, 1):
            self.pooled.CreateElement(["CTExpChannel", "rows", str(axis), name])
        self.pooled.CreateMeasurementGroup(["group", *self.names])
        return self.element("group")

    def element(self, name: str) -> tango.DeviceProxy:
        return self.database.device(name)

    def over(self, group: tango.DeviceProxy) -> None:
        wait_for(lambda: group.state() in OVER, "the count ends")
        account = self.served.account()
        self.assertEqual(group.state() == tango.DevState.ALARM, account["Missed"] + account["Lost"] > 0)

    def test_a_count_by_software_is_a_run_and_a_value_of_each_channel(self) -> None:
        group = self.pool(SCAN)
        self.element("count").Reduction = "difference"
        self.element("ramp").Reduction = "last"
        group.IntegrationTime = 0.5
        group.Prepare()
        group.Start()
        self.over(group)
        rows = self.served.device.ReadRows([0, 10_000]).reshape(-1, 6)
        self.assertGreater(len(rows), 1)
        self.assertEqual(self.element("count").Value, rows[-1, 3] - rows[0, 3])
        self.assertAlmostEqual(self.element("sine").Value, rows[:, 4].mean(), places=12)
        self.assertEqual(self.element("ramp").Value, rows[-1, 5])

    def by_hardware(self, group: tango.DeviceProxy) -> None:
        """Each of so many points begins with a pulse of Sardana's own trigger, which nobody is wired to."""
        self.pooled.CreateController(["TriggerGate", "DummyTriggerGateController.py", "DummyTriggerGateController", "wire"])
        self.pooled.CreateElement(["TriggerGate", "wire", "1", "pulses"])
        configuration = json.loads(group.Configuration)
        for controller in configuration["controllers"].values():
            controller["synchronizer"] = self.database.url(self.element("pulses").dev_name())
            controller["synchronization"] = AcqSynchType.Trigger
        group.Configuration = json.dumps(configuration)
        times = {SynchParam.Delay: 0.1, SynchParam.Active: 0.002, SynchParam.Total: 0.005}
        pulses = {name: {SynchDomain.Time: time} for name, time in times.items()} | {SynchParam.Repeats: POINTS}
        group.SynchDescription = CodecFactory().getCodec("json").encode(("", [pulses]))[1]

    def test_a_count_by_hardware_is_a_row_for_each_repetition_and_each_value_is_given_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            notes = Path(folder) / "notes"
            group = self.pool(SCAN, ("noting.py", "NotingController"), STROBE_NOTES=str(notes))
            self.by_hardware(group)
            group.Prepare()
            group.Start()
            self.over(group)
            given = defaultdict(list)
            for axis, values in map(json.loads, notes.read_text().splitlines()):
                given[axis] += values
        rows = self.served.device.ReadRows([0, 10_000]).reshape(-1, 6)
        self.assertEqual(self.served.account()["Rows"], POINTS)
        for axis, name in enumerate(self.names, 1):
            self.assertEqual(given[axis], rows[:, 2 + axis].tolist())
            self.assertEqual(self.element(name).Value, rows[-1, 2 + axis])


if __name__ == "__main__":
    unittest.main()
