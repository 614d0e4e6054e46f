# SPDX-License-Identifier: MIT OR Apache-2.0
"""strobe-tango with a database: clients know nothing but its name."""

import unittest
from typing import ClassVar

import numpy as np
import strobe
import tango
from daemon import wait_for
from database import Database
from served import NAME, Served

SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine"]\nengine = "user"\nrows = 500\n'
SOFT = 'event = "soft"\nread = ["sim.counter", "sim.ramp"]\nengine = "user"\n'
# Who reads late loses no row of it.
FOREVER = 'event = "timer:1kHz"\nread = ["sim.counter"]\nengine = "user"\nring = 65536\n'


class InDatabase(unittest.TestCase):
    database: ClassVar[Database]

    @classmethod
    def setUpClass(cls) -> None:
        cls.database = Database()
        cls.addClassCleanup(cls.database.close)

    def served(self, recipe: str) -> Served:
        served = Served(recipe, self.database)
        self.addCleanup(self.database.client.delete_server, "strobe-tango/test")
        self.addCleanup(served.close)
        return served

    def test_a_client_arms_by_name_and_has_every_row_of_the_server(self) -> None:
        served = self.served(SCAN)
        info = self.database.client.get_device_info(NAME)
        self.assertEqual((info.exported, info.pid, info.class_name), (1, served.server.process.pid, "Strobe"))
        device = self.database.device(NAME)
        self.assertEqual(list(device.Channels), ["sim.counter", "sim.sine"])
        device.Arm()
        account = served.account()
        self.assertEqual((account["Rows"], account["Given"], account["Lost"]), (500, 500, 0))
        rows = device.ReadRows([0, 500]).reshape(-1, 5)
        (blocks,) = (list(run) for run in strobe.connect(served.daemon.url).runs.values())
        np.testing.assert_array_equal(rows[:, :3], np.concatenate([block.words[:, :3] for block in blocks]))
        for place, channel in enumerate(device.Channels):
            np.testing.assert_array_equal(rows[:, 3 + place], np.concatenate([block[channel] for block in blocks]))

    def test_a_client_aborts_and_each_row_that_was_made_has_come(self) -> None:
        served = self.served(FOREVER)
        device = self.database.device(NAME)
        device.Arm()
        wait_for(lambda: device.Given > 100, "rows")
        device.Abort()
        account = served.account()
        self.assertEqual(device.RunEnd, "stopped")
        rows = device.ReadRows([0, account["Rows"] + 100]).reshape(-1, 4)
        self.assertEqual(rows[:, 0].tolist(), list(range(account["Given"])))

    def test_changes_are_events(self) -> None:
        served = self.served(FOREVER)
        device = served.device
        said: list[str] = []
        device.subscribe_event("State", tango.EventType.CHANGE_EVENT,
                               lambda event: said.append(str(event.attr_value and event.attr_value.value)))
        device.Enable = False
        device.Arm()
        # Each state lasts until it has been said: they are looked for ten times a second.
        wait_for(lambda: said and said[-1] == "ON", "the gate is closed")
        device.Enable = True
        wait_for(lambda: said[-1] == "RUNNING", "it runs")
        device.Abort()
        served.account()
        wait_for(lambda: said[-1] == "STANDBY", "it is over")

    def test_a_restart_keeps_what_the_database_has(self) -> None:
        served = self.served(SOFT)
        self.database.client.put_device_property(NAME, {"Keep": "7"})
        # Of an attribute of ours, and of one that its recipe brings.
        for name, alarm in (("Given", "400"), ("sim_ramp", "2.5")):
            config = served.device.get_attribute_config(name)
            config.alarms.max_alarm, config.label = alarm, f"{name} here"
            served.device.set_attribute_config(config)
        served.again()
        for name, alarm in (("Given", "400"), ("sim_ramp", "2.5")):
            config = served.device.get_attribute_config(name)
            self.assertEqual((config.alarms.max_alarm, config.label), (alarm, f"{name} here"))
        served.device.Arm()
        served.device.Trigger(20)
        wait_for(lambda: served.device.Given == 20, "rows")
        self.assertEqual(served.device.sim_counter_last.tolist(), list(range(13, 20)))
        served.device.Abort()
        self.assertEqual(served.account()["Given"], 20)

    def test_init_takes_what_the_database_has_now(self) -> None:
        served = self.served(SOFT)
        other = served.daemon.folder / "other.toml"
        other.write_text(SCAN)
        self.database.client.put_device_property(NAME, {"Recipe": str(other)})
        served.device.Init()
        names = served.device.get_attribute_list()
        self.assertIn("sim_sine", names)
        self.assertNotIn("sim_ramp", names)
        served.device.Arm()
        self.assertEqual(served.account()["Given"], 500)

    def test_a_recipe_that_comes_back_has_its_attributes_as_they_were_configured(self) -> None:
        served = self.served(SOFT)
        config = served.device.get_attribute_config("sim_ramp")
        config.alarms.max_alarm = "2.5"
        served.device.set_attribute_config(config)
        other = served.daemon.folder / "other.toml"
        other.write_text(SCAN)
        served.device.LoadRecipe(str(other))
        served.device.LoadRecipe(str(served.recipe))
        self.assertEqual(served.device.get_attribute_config("sim_ramp").alarms.max_alarm, "2.5")

    def test_a_property_that_is_no_good_is_a_fault_until_it_is_mended(self) -> None:
        served = self.served(SCAN)
        self.database.client.put_device_property(NAME, {"Url": "http://127.0.0.1:1"})
        served.again()
        self.assertEqual(str(served.device.state()), "FAULT")
        self.assertIn("127.0.0.1:1", served.device.status())
        self.database.client.put_device_property(NAME, {"Url": served.daemon.url})
        served.device.Init()
        self.assertEqual(str(served.device.state()), "STANDBY")
        served.device.Arm()
        self.assertEqual(served.account()["Given"], 500)


if __name__ == "__main__":
    unittest.main()
