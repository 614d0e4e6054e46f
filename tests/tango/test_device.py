# SPDX-License-Identifier: MIT OR Apache-2.0
"""The device of strobe-tango, as a stock client in another process has it."""

import math
import re
import unittest
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import strobe
import tango
from daemon import wait_for
from served import Served

SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine", "sim.counter"]\nengine = "user"\nrows = 500\n'
SOFT = 'event = "soft"\nread = ["sim.counter", "sim.ramp"]\nengine = "user"\n'
# Who reads late loses no row of it.
FOREVER = 'event = "timer:1kHz"\nread = ["sim.counter"]\nengine = "user"\nring = 65536\n'


class Device(unittest.TestCase):
    def served(self, recipe: str, **words) -> Served:
        served = Served(recipe, **words)
        self.addCleanup(served.close)
        return served

    def test_the_account_of_a_run_comes_whole_and_is_the_server_s(self) -> None:
        served = self.served(SCAN)
        device = served.device
        self.assertEqual(str(device.state()), "STANDBY")
        device.Arm()
        account = served.account()
        self.assertEqual((account["Rows"], account["Lost"], account["Errors"]), (500, 0, 0))
        self.assertEqual((device.RunState, device.RunEnd), ("done", "complete"))
        run = served.daemon.ended(int(device.RunId.rsplit(" ", 1)[1]))
        for name in ("Triggers", "Rows", "Missed", "Skipped", "Errors"):
            self.assertEqual(account[name], run[name.lower()])

    def test_a_channel_has_its_last_value_and_those_before_it(self) -> None:
        served = self.served(SOFT)
        device = served.device
        self.assertEqual(device.read_attribute("sim_ramp").quality, tango.AttrQuality.ATTR_INVALID)
        device.Arm()
        device.Trigger(250)
        wait_for(lambda: device.Given == 250, "rows")
        self.assertEqual(device.sim_counter, 249)
        self.assertEqual(device.sim_counter_last.tolist(), list(range(150, 250)))
        self.assertTrue(math.isclose(device.sim_ramp, 0.249))
        self.assertEqual(device.get_attribute_config("sim_ramp").unit, "V")
        device.Abort()
        self.assertEqual(served.account()["Rows"], 250)

    def test_rows_come_in_bulk_and_are_the_server_s(self) -> None:
        served = self.served(SCAN)
        device = served.device
        device.Arm()
        served.account()
        self.assertEqual(list(device.Channels), ["sim.counter", "sim.sine", "sim.counter#2"])
        parts = [device.ReadRows([first, 200]).reshape(-1, 6) for first in (0, 200, 400)]
        self.assertEqual([len(part) for part in parts], [200, 200, 100])
        rows = np.concatenate(parts)
        (blocks,) = (list(run) for run in strobe.connect(served.daemon.url).runs.values())
        np.testing.assert_array_equal(rows[:, :3], np.concatenate([block.words[:, :3] for block in blocks]))
        for place, channel in enumerate(device.Channels):
            np.testing.assert_array_equal(rows[:, 3 + place], np.concatenate([block[channel] for block in blocks]))
        # Who reads rows has no part in the account.
        self.assertEqual(served.account()["Given"], 500)

    def test_rows_of_a_run_that_goes_on_are_those_that_are_there(self) -> None:
        served = self.served(SOFT)
        device = served.device
        device.Arm()
        device.Trigger(7)
        wait_for(lambda: device.Given == 7, "rows")
        self.assertEqual(device.ReadRows([2, 100]).reshape(-1, 5)[:, 3].tolist(), [2, 3, 4, 5, 6])
        device.Trigger(3)
        device.Abort()
        self.assertEqual(served.account()["Given"], 10)

    def test_changes_are_events(self) -> None:
        served = self.served(FOREVER)
        device = served.device
        said: dict[str, Any] = dict.fromkeys(("State", "Given", "sim_counter", "sim_counter_last"))

        def hear(name: str, event: tango.EventData) -> None:
            said[name] = event.attr_value and event.attr_value.value

        def hear_state(name: str) -> None:
            wait_for(lambda: str(said["State"]) == name, f"an event says {name}")

        for name in said:
            device.subscribe_event(name, tango.EventType.CHANGE_EVENT, partial(hear, name))
        device.Arm()
        # The last that was subscribed to comes: so do the others from now on, whichever were pushed too early.
        wait_for(lambda: said["sim_counter_last"] is not None and len(said["sim_counter_last"]) == 100, "the last values")
        # Each state lasts until it has been said: they are looked for ten times a second.
        device.Enable = False
        hear_state("ON")
        device.Enable = True
        hear_state("RUNNING")
        device.Abort()
        hear_state("STANDBY")
        given = served.account()["Given"]
        wait_for(lambda: (said["Given"], said["sim_counter"]) == (given, given - 1), "the last row")
        self.assertEqual(said["sim_counter_last"].tolist(), list(range(given - 100, given)))

    def test_the_gate_holds_the_first_row_back_and_is_a_pause_later(self) -> None:
        served = self.served(SOFT)
        device = served.device
        device.Enable = False
        device.Limit = 400
        device.Arm()
        served.state("ON")
        self.assertEqual(device.Triggers, 0)
        device.Enable = True
        served.state("RUNNING")
        device.Trigger(100)
        device.Enable = False
        served.state("ON")
        device.Enable = True
        served.state("RUNNING")
        device.Trigger(300)
        self.assertEqual(served.account()["Given"], 400)

    def test_another_recipe_brings_its_channels(self) -> None:
        served = self.served(SOFT)
        other = served.daemon.folder / "other.toml"
        other.write_text(SCAN)
        served.device.LoadRecipe(str(other))
        self.assertIn("sim_sine", served.device.get_attribute_list())
        self.assertNotIn("sim_ramp", served.device.get_attribute_list())
        served.device.Arm()
        self.assertEqual(served.account()["Given"], 500)

    def test_what_is_refused_says_why_and_changes_nothing(self) -> None:
        served = self.served(FOREVER)
        device = served.device
        with self.assertRaisesRegex(tango.DevFailed, "no run has been armed"):
            device.ReadRows([0, 1])
        with self.assertRaisesRegex(tango.DevFailed, "none is armed"):
            device.Trigger(1)
        device.Arm()
        for command, words, why in (("Arm", None, "not ended"), ("LoadRecipe", "x.toml", "not ended"),
                                    ("ReadRows", [0, 10**9], "at most 250000"), ("ReadRows", [1], "the first row, and how many")):
            with self.subTest(command), self.assertRaisesRegex(tango.DevFailed, why):
                device.command_inout(command, words)
        self.assertEqual(str(device.state()), "RUNNING")
        device.Abort()
        with self.assertRaisesRegex(tango.DevFailed, "nothing.toml"):
            device.LoadRecipe("/nothing.toml")
        self.assertEqual(served.account()["Lost"], 0)
        self.assertEqual(device.RunEnd, "stopped")

    def test_triggers_that_were_missed_and_rows_that_were_late_are_alarms(self) -> None:
        # A row takes longer than a period.
        read = ["clock.time", *["sim.noise"] * 400]
        served = self.served(f'event = "timer:100kHz"\nengine = "user"\nread = {read}\nrows = 2000\n')
        served.device.Arm()
        self.assertGreater(served.account()["Missed"], 0)
        for name in ("Missed", "Late"):
            self.assertEqual(served.device.read_attribute(name).quality, tango.AttrQuality.ATTR_ALARM)
        self.assertEqual(served.device.read_attribute("Rows").quality, tango.AttrQuality.ATTR_VALID)

    def test_a_server_that_is_gone_is_a_fault(self) -> None:
        served = self.served(FOREVER)
        served.device.Arm()
        wait_for(lambda: served.device.Given > 0, "rows")
        served.daemon.process.kill()
        served.state("FAULT")
        self.assertIn("127.0.0.1", served.device.status())

    def test_a_recipe_that_is_no_good_is_a_fault_until_another_is_loaded(self) -> None:
        served = self.served('event = "timer:1kHz"\nread = ["sim.countr"]\n')
        self.assertEqual(str(served.device.state()), "FAULT")
        self.assertIn("sim.countr", served.device.status())
        with self.assertRaisesRegex(tango.DevFailed, "no recipe is loaded"):
            served.device.Arm()
        served.recipe.write_text(SCAN)
        served.device.LoadRecipe(str(served.recipe))
        self.assertEqual(str(served.device.state()), "STANDBY")

    def test_init_ends_its_run_and_begins_again(self) -> None:
        served = self.served(SCAN)
        served.device.Arm()
        served.device.Init()
        self.assertEqual(str(served.device.state()), "STANDBY")
        served.device.Arm()
        self.assertEqual(served.account()["Given"], 500)

    def test_it_listens_on_this_machine_only(self) -> None:
        served = self.served(SCAN)
        served.device.subscribe_event("State", tango.EventType.CHANGE_EVENT, lambda event: None)
        ours = {match[1] for fd in Path(f"/proc/{served.server.process.pid}/fd").iterdir()
                if (match := re.match(r"socket:\[(\d+)\]", str(fd.readlink())))}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        self.assertEqual({row[1].split(":")[0] for row in rows if row[9] in ours and row[3] == "0A"}, {"0100007F"})

    def test_who_ends_it_ends_its_run(self) -> None:
        served = self.served(FOREVER)
        served.device.Arm()
        wait_for(lambda: served.device.Given > 0, "rows")
        self.assertEqual(served.server.end(), 0, served.server.said)
        self.assertEqual(served.daemon.get("/runs")["runs"][-1]["state"], "stopped")


if __name__ == "__main__":
    unittest.main()
