# SPDX-License-Identifier: MIT OR Apache-2.0
"""The PVs of strobe-epics, as a p4p client in another process has them."""

import math
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from daemon import AT_MOST_S, wait_for
from p4p.client.thread import Context, RemoteError
from served import Test

SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.sine", "sim.counter"]\nengine = "user"\nrows = 500\n'
SOFT = 'event = "soft"\nread = ["sim.counter", "sim.ramp"]\nengine = "user"\n'
# Who reads late loses no row of it.
FOREVER = 'event = "timer:1kHz"\nread = ["sim.counter"]\nengine = "user"\nring = 65536\n'
WIDE = f'event = "soft"\nread = {["sim.noise"] * 64}\nengine = "user"\n'
NO_ALARM, MINOR, MAJOR, INVALID = range(4)


class Pvs(Test):
    def test_the_tree_names_every_pv_and_each_is_there(self) -> None:
        served = self.shared(SCAN)
        found = {}
        for folder, entry in served.get("PVI").todict().items():
            for name, where in served.client.get(entry["d"]).value.todict().items():
                (pv,) = where.values()
                self.assertEqual(pv, f"STROBE:{folder}:{name}".upper())
                found[f"{folder}.{name}"] = served.client.get(pv, timeout=AT_MOST_S)
        self.assertLessEqual({"pcap.arm", "data.datasets", "run.state", "account.missed", "channels.sim_sine"}, set(found))
        self.assertEqual([name for name in found if name.startswith("channels")],
                         ["channels.sim_counter", "channels.sim_sine", "channels.sim_counter_2"])
        self.assertEqual(found["channels.sim_sine"]["display.units"], "V")

    def test_to_begin_leaves_no_run_at_the_server(self) -> None:
        self.assertEqual(self.served(SCAN).daemon.get("/runs")["runs"], [])

    def test_who_searches_at_another_address_gets_no_answer(self) -> None:
        served = self.shared(SCAN)
        self.assertFalse(served.get("PCAP:ACTIVE"))
        # It is this machine, too, but not where it serves; nobody says when no answer is on its way any more.
        elsewhere = Context("pva", conf=served.environment | {"EPICS_PVA_ADDR_LIST": "127.0.0.2"}, useenv=False, nt=False)
        self.addCleanup(elsewhere.close)
        with self.assertRaises(TimeoutError):
            elsewhere.get("STROBE:RUN:STATE", timeout=3)

    def test_the_account_of_a_run_comes_whole_and_is_the_server_s(self) -> None:
        served = self.shared(SCAN)
        served.put("PCAP:ARM", True)
        account = served.account()
        self.assertEqual((account["rows"], account["lost"], account["errors"]), (500, 0, 0))
        self.assertEqual((served.get("RUN:STATE"), served.get("RUN:END"), served.get("PCAP:ARM")), ("done", "complete", False))
        run = served.daemon.ended(int(served.get("RUN:ID").rsplit(" ", 1)[1]))
        self.assertEqual({name: account[name] for name in ("triggers", "rows", "missed", "skipped", "errors")},
                         {name: run[name] for name in ("triggers", "rows", "missed", "skipped", "errors")})

    def test_a_channel_is_the_last_row_s_and_is_no_value_before_the_first(self) -> None:
        served = self.served(SOFT)
        self.assertEqual(served.severity("CHANNELS:SIM_RAMP"), INVALID)
        self.assertTrue(math.isnan(served.get("CHANNELS:SIM_RAMP")))
        served.put("PCAP:ARM", True)
        served.put("PCAP:TRIGGER", 7)
        served.wait("CHANNELS:SIM_COUNTER", 6.0)
        self.assertAlmostEqual(served.get("CHANNELS:SIM_RAMP"), 0.006)
        self.assertEqual(served.severity("CHANNELS:SIM_RAMP"), NO_ALARM)
        served.put("PCAP:ARM", False)
        self.assertEqual(served.account()["rows"], 7)

    def test_rows_are_as_many_as_were_asked_for(self) -> None:
        served = self.shared(SCAN)
        served.put("PCAP:ROWS", 30)
        served.put("PCAP:ARM", True)
        self.assertEqual(served.account()["given"], 30)
        served.put("PCAP:ROWS", 0)
        served.put("PCAP:ARM", True)
        self.assertEqual(served.account()["given"], 500)

    def test_who_disarms_has_all_rows_at_once(self) -> None:
        served = self.shared(FOREVER)
        served.put("PCAP:ARM", True)
        wait_for(lambda: served.get("ACCOUNT:GIVEN") > 200, "rows")
        served.put("PCAP:ARM", False)
        self.assertFalse(served.get("PCAP:ACTIVE"))
        self.assertEqual(served.get("RUN:END"), "stopped")
        self.assertGreater(served.account()["given"], 200)

    def test_the_gate_holds_the_first_row_back_and_lets_it_go(self) -> None:
        served = self.shared(SCAN)
        served.put("PCAP:ENABLE", False)
        served.put("PCAP:ARM", True)
        self.assertTrue(served.get("PCAP:ACTIVE"))
        served.wait("RUN:STATE", "ready")
        self.assertEqual(served.get("ACCOUNT:TRIGGERS"), 0)
        served.put("PCAP:ENABLE", True)
        self.assertEqual(served.account()["given"], 500)

    def test_a_gate_that_closes_is_a_pause_and_no_loss(self) -> None:
        served = self.shared(FOREVER)
        served.put("PCAP:ARM", True)
        wait_for(lambda: served.get("ACCOUNT:GIVEN") > 20, "rows")
        served.put("PCAP:ENABLE", False)
        served.wait("RUN:STATE", "paused")
        served.put("PCAP:ENABLE", True)
        served.wait("RUN:STATE", "running")
        served.put("PCAP:ARM", False)
        self.assertEqual(served.account()["lost"], 0)

    def test_a_run_that_never_began_is_disarmed(self) -> None:
        served = self.shared(SCAN)
        served.put("PCAP:ENABLE", False)
        served.put("PCAP:ARM", True)
        served.put("PCAP:ARM", False)
        self.assertFalse(served.get("PCAP:ACTIVE"))
        self.assertEqual(served.account()["triggers"], 0)

    def test_a_put_without_a_value_changes_nothing(self) -> None:
        served = self.shared(FOREVER)
        served.put("PCAP:ARM", True)
        served.wait("RUN:STATE", "running")
        name = served.get("RUN:ID")
        for pv in ("PCAP:ARM", "PCAP:ENABLE", "PCAP:ROWS", "DATA:HDF_DIRECTORY", "DATA:CAPTURE_MODE"):
            served.client.put(f"STROBE:{pv}", {}, timeout=AT_MOST_S)
        self.assertEqual((served.get("RUN:STATE"), served.get("RUN:ID")), ("running", name))
        served.put("PCAP:ARM", False)
        self.assertEqual(served.account()["lost"], 0)

    def test_what_is_refused_says_why_and_what_to_do(self) -> None:
        served = self.shared(FOREVER)
        served.put("PCAP:ARM", True)
        refused = {"PCAP:ARM": (True, "not ended"), "PCAP:ROWS": (-1, "less than 0"), "PCAP:TRIGGER": (0, "1 to 100000"),
                   "PCAP:ACTIVE": (False, "only be read"), "DATA:NUM_CAPTURE": (5, "PCAP:ROWS"), "DATA:CAPTURE_MODE": (1, "FOREVER"),
                   "DATA:HDF_FILE_NAME": ("../x.h5", "not the name of a file"), "DATA:HDF_DIRECTORY": ("x", "absolute"),
                   "DATA:FLUSH_PERIOD": (math.nan, "0 is"), "DATA:CAPTURE": (True, "before you arm")}
        for pv, (value, why) in refused.items():
            with self.subTest(pv), self.assertRaisesRegex(RemoteError, why):
                served.client.put(f"STROBE:{pv}", {"value": {"index": value} if pv.endswith("MODE") else value}, timeout=AT_MOST_S)
        self.assertEqual(served.get("RUN:STATE"), "running")
        self.assertNotIn("Traceback", "".join(served.said))
        served.put("PCAP:ARM", False)

    def test_a_server_that_is_gone_is_an_alarm(self) -> None:
        served = self.served(FOREVER)
        served.put("PCAP:ARM", True)
        wait_for(lambda: served.get("ACCOUNT:GIVEN") > 0, "rows")
        served.daemon.process.kill()
        wait_for(lambda: served.severity("RUN:STATE") == MAJOR, "an alarm")
        served.wait("PCAP:ACTIVE", False)
        self.assertEqual((served.get("RUN:STATE"), served.severity("ACCOUNT:ROWS")), ("unknown", INVALID))
        self.assertRegex(served.value("RUN:STATE")["alarm.message"], "127.0.0.1")

    def test_triggers_that_were_missed_and_rows_that_were_late_are_alarms(self) -> None:
        # A row takes longer than a period.
        served = self.served('event = "timer:100kHz"\nengine = "user"\nread = ["clock.time"' + ', "sim.noise"' * 400 + "]\nrows = 2000\n")
        served.put("PCAP:ARM", True)
        account = served.account()
        self.assertGreater(account["missed"], 0)
        self.assertEqual(served.severity("ACCOUNT:MISSED"), MAJOR)
        self.assertIn("triggers without a row", served.value("ACCOUNT:MISSED")["alarm.message"])
        self.assertGreater(account["late"], 0)
        self.assertEqual(served.severity("ACCOUNT:LATE"), MINOR)

    def test_rows_that_the_server_had_no_room_for_are_lost_and_an_alarm(self) -> None:
        served = self.served(WIDE, config="[spool]\nbytes = 4194304\nrecent = 1048576\n")
        served.put("PCAP:ARM", True)
        served.put("PCAP:TRIGGER", 1)
        wait_for(lambda: served.get("ACCOUNT:GIVEN") == 1, "a row")
        # It stands still while the server makes more rows than there is room for, also on the way.
        served.process.send_signal(signal.SIGSTOP)
        (run,) = (run["id"] for run in served.daemon.get("/runs")["runs"] if run["state"] == "running")
        for _ in range(2):
            served.daemon.post(f"/runs/{run}/trigger", {"count": 100_000})
        wait_for(lambda: served.daemon.run(run)["oldest"] > 40_000, "rows that are gone")
        served.process.send_signal(signal.SIGCONT)
        wait_for(lambda: served.get("ACCOUNT:LOST") > 0, "a loss")
        self.assertEqual(served.severity("ACCOUNT:LOST"), MAJOR)
        served.put("PCAP:ARM", False)
        account = served.account()
        self.assertEqual(account["triggers"], 200_001)
        self.assertGreater(account["lost"], 0)

    def test_it_listens_on_this_machine_only(self) -> None:
        served = self.shared(SCAN)
        ours = {match[1] for fd in Path(f"/proc/{served.process.pid}/fd").iterdir()
                if (match := re.match(r"socket:\[(\d+)\]", str(fd.readlink())))}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        self.assertEqual({row[1].split(":")[0] for row in rows if row[9] in ours and row[3] == "0A"}, {"0100007F"})

    def test_who_ends_it_ends_its_run(self) -> None:
        served = self.served(FOREVER)
        served.put("PCAP:ARM", True)
        served.wait("RUN:STATE", "running")
        self.assertEqual(served.end(), 0)
        self.assertEqual(served.daemon.get("/runs")["runs"][-1]["state"], "stopped")

    def test_what_cannot_begin_says_why(self) -> None:
        served = self.shared(SCAN)
        wrong = served.daemon.folder / "wrong.toml"
        wrong.write_text('event = "timer:1kHz"\nread = ["sim.countr"]\n')
        twice = served.daemon.folder / "twice.toml"
        for words, why in (((served.daemon.url, wrong), "channel sim.countr: no such channel"),
                           ((served.daemon.url, twice), "twice.toml"), (("http://127.0.0.1:1", served.recipe), "127.0.0.1:1")):
            done = subprocess.run([sys.executable, "-m", "strobe.epics._main", *map(str, words)], capture_output=True, text=True,
                                  timeout=AT_MOST_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
