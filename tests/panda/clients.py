# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the stock clients do with a daemon of this tree."""

import json
import os
import re
import socket
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import points
from pandablocks.blocking import BlockingClient
from pandablocks.commands import (Arm, ChangeGroup, CommandError, Disarm, Get, GetBlockInfo, GetChanges, GetFieldInfo, GetState,
                                  Put, Raw, SetState)
from pandablocks.responses import EndData, EndReason, FrameData, ReadyData, StartData

from daemon import LIMIT, Daemon, wait_for

HERE = Path(__file__).resolve().parent
IOC, BLUESKY = Path(os.environ["PANDA_IOC"]), Path(os.environ["PANDA_BLUESKY"])
ROWS = points.ROWS
# How often a client may give up because the machine has not run it.
TRIES = 5
# What fastcs-pandablocks says of itself.
ITS_OWN = (r"(In \[\d+\]: )?Exception ignored in: <function HDF5Buffer\.__del__ .*\nTraceback .*\n(  .*\n)*"
           r"RuntimeError: cannot join current thread\n")
# What is captured, and the name of its dataset where a client wants one.
COLUMNS = {"SIM.COUNTER": "counter", "SIM.RAMP": "ramp", "SIM.SINE": "sine", "SIM.NOISE": "noise", "CLOCK.TIME": "time",
           "CLOCK.ELAPSED": "elapsed", "CLOCK.LATE": "late", "CPU.ID": "cpu", "PCAP.INDEX": "index", "PCAP.TS_TRIG": "stamp"}


def capture(daemon, *more):
    daemon.ask("*PCAP.DISARM=", "*CAPTURE=", *(f"{name}.CAPTURE=Value" for name in COLUMNS), *more)


class Clients(unittest.TestCase):
    def setUp(self):
        # Its name stays in the way of nothing: programs find modules of theirs beside where they are started.
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.daemon = Daemon(self.folder)
        self.addCleanup(self.daemon.stop)

    def compare(self, path, names):
        """Every row is in the file, and every value is the daemon's own; its account is whole. Answers the daemon's rows."""
        run, rows = self.daemon.rows()
        self.assertEqual((run["end"], run["rows"], run["lost"], run["errors"]), ("complete", ROWS, 0, 0))
        self.assertEqual(run["triggers"], run["rows"] + run["missed"] + run["skipped"])
        start = np.uint64(run["info"]["start_time_ns"])
        own = {"PCAP.INDEX": rows["row"], "PCAP.TS_TRIG": (rows["time"] - start).astype(float) * 1e-9}
        for channel in run["info"]["channels"]:
            # A mean is one of words; the client has it in the unit of the channel.
            if (mean := rows.get(channel["name"] + ".mean")) is not None:
                own[channel["name"].upper()] = mean * channel["scale"]
        with h5py.File(path) as file:
            self.assertEqual(sorted(file), sorted(names.values()))
            for column, dataset in names.items():
                with self.subTest(column=column):
                    values = own[column] if column in own else rows[column.lower()]
                    self.assertEqual(file[dataset].shape, (ROWS,))
                    self.assertEqual(file[dataset].dtype, values.dtype)
                    # Of a mean, the order of two factors may make a difference in the last bit.
                    ulp = 2 if column.lower() + ".mean" in rows else 0
                    if values.dtype.kind == "f":
                        np.testing.assert_array_max_ulp(file[dataset][:], values, ulp)
                    else:
                        np.testing.assert_array_equal(file[dataset][:], values)
        np.testing.assert_array_equal(rows["row"], np.arange(ROWS))
        return rows

    def points(self, path, names):
        """The points that every way of flying brings."""
        # A trigger that was missed makes no row, and reads nothing.
        np.testing.assert_array_equal(self.compare(path, names)["sim.counter"], np.arange(ROWS))
        with h5py.File(path) as file:
            values = {channel: file[names[channel.upper()]][:] for channel in points.CHANNELS}
        self.assertEqual(points.digest(values), points.DIGEST)

    def test_the_library_finds_every_block_and_field_and_no_error(self):
        with BlockingClient(self.daemon.address) as client:
            blocks = client.send(GetBlockInfo(), timeout=LIMIT)
            self.assertGreaterEqual(set(blocks), {"PCAP", "SEQ", "PULSE", "PCOMP", "SIM", "CLOCK"})
            fields = client.send([GetFieldInfo(block) for block in blocks], timeout=LIMIT)
            self.assertTrue(all(fields))
            self.assertEqual(fields[list(blocks).index("SIM")]["COUNTER"].capture_labels, ["No", "Value", "Diff", "Sum", "Mean", "Min", "Max", "Min Max", "Min Max Mean"])
            changes = client.send(GetChanges(ChangeGroup.ALL, True), timeout=LIMIT)
            self.assertEqual(changes.in_error, [])
            self.assertEqual(changes.multiline_values, {"SEQ1.TABLE": [], "SEQ2.TABLE": []})
            self.assertEqual(client.send(GetChanges(ChangeGroup.ALL, True), timeout=LIMIT).values, {})
            client.send(Put("PCAP.NUM_TRIG", 7), timeout=LIMIT)
            self.assertEqual(client.send(Get("PCAP.NUM_TRIG"), timeout=LIMIT), "7")
            with self.assertRaises(CommandError):
                client.send(Put("PCAP.TRIG", "NOTHING"), timeout=LIMIT)

    def test_what_the_library_saves_it_can_load(self):
        table = ["131073", "0", "5", "6"]
        self.daemon.ask("PCAP.NUM_TRIG=12", "SIM.SINE.CAPTURE=Diff", "EVENT1.PERIOD.UNITS=us",
                        "\n".join(["SEQ1.TABLE<", *table, ""]), "*METADATA.LABEL_SIM1=the simulator")
        with BlockingClient(self.daemon.address) as client:
            state = client.send(GetState(), timeout=LIMIT)
        self.assertIn("PCAP.NUM_TRIG=12", state)
        other = Daemon(Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.addCleanup(other.stop)
        with BlockingClient(other.address) as client, self.assertNoLogs(level="WARNING"):
            client.send(SetState(state), timeout=LIMIT)
        with BlockingClient(other.address) as client:
            self.assertEqual(client.send(GetState(), timeout=LIMIT), state)
            self.assertEqual(client.send(Get("SEQ1.TABLE"), timeout=LIMIT), table)

    def test_the_library_gets_every_row_twice_in_a_row(self):
        capture(self.daemon, f"PCAP.NUM_TRIG={ROWS}")
        with BlockingClient(self.daemon.address) as client:
            starts, ends, rows = [], [], []
            for data in client.data(scaled=False, frame_timeout=LIMIT):
                if isinstance(data, (ReadyData, EndData)) and len(ends) < 1 + (not isinstance(data, EndData)):
                    client.send(Arm(), timeout=LIMIT)
                if isinstance(data, StartData):
                    starts.append(data)
                elif isinstance(data, FrameData):
                    rows.extend(data.data["SIM.COUNTER.Value"].tolist())
                elif isinstance(data, EndData):
                    ends.append(data)
                    if len(ends) == 2:
                        break
            # What differs between runs is not in the header, so that both go into one file of an IOC.
            self.assertEqual(starts[0], starts[1])
            self.assertEqual([(end.samples, end.reason) for end in ends], [(ROWS, EndReason.OK)] * 2)
            self.assertEqual(rows, [*range(ROWS)] * 2)

    def test_the_library_is_told_why_a_run_ends(self):
        capture(self.daemon, "PCAP.NUM_TRIG=0")
        for end, reason in ((lambda client: client.send(Disarm(), timeout=LIMIT), EndReason.DISARMED),
                            (lambda client: client.send(Put("PCAP.ENABLE", "ZERO"), timeout=LIMIT), EndReason.OK)):
            self.daemon.ask("PCAP.ENABLE=ONE")
            with BlockingClient(self.daemon.address) as client:
                rows = 0
                for data in client.data(scaled=True, frame_timeout=LIMIT):
                    if isinstance(data, ReadyData):
                        client.send(Arm(), timeout=LIMIT)
                        with self.assertRaises(CommandError):
                            client.send(Arm(), timeout=LIMIT)
                    elif isinstance(data, FrameData):
                        if not rows:
                            end(client)
                        rows += len(data.data)
                    elif isinstance(data, EndData):
                        self.assertEqual((data.samples, data.reason), (rows, reason))
                        break

    def test_the_program_writes_every_row_into_a_file(self):
        capture(self.daemon, f"PCAP.NUM_TRIG={ROWS}")
        words = ["hdf", self.daemon.address, self.folder / "%d.h5", "--arm", "--num", "1"]
        done = subprocess.run([BLUESKY / "bin/pandablocks", *words], cwd=self.folder, timeout=LIMIT, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("End reason is 'Ok'", done.stderr)
        self.points(self.folder / "1.h5", {column: f"{column}.Value" for column in COLUMNS})

    def test_the_program_controls(self):
        done = subprocess.run([BLUESKY / "bin/pandablocks", "control", self.daemon.address, "--no-readline"], cwd=self.folder,
                              input="PCAP.NUM_TRIG=5\nPCAP.NUM_TRIG?\n*WHO?\n", timeout=LIMIT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)OK\n.*OK =5\n.*!127\.")

    @contextmanager
    def ioc(self, command):
        """An IOC, on ports that nobody else has; answers the environment in which it is found."""
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
        tcp, udp, ca, repeater = (str(one.getsockname()[1]) for one in held)
        for one in held:
            one.close()
        environment = os.environ | {
            "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVAS_SERVER_PORT": tcp, "EPICS_PVA_SERVER_PORT": tcp, "EPICS_PVAS_BROADCAST_PORT": udp,
            "EPICS_PVA_BROADCAST_PORT": udp, "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_CA_SERVER_PORT": ca,
            "EPICS_CAS_SERVER_PORT": ca, "EPICS_CA_REPEATER_PORT": repeater}
        with open(self.folder / "ioc.log", "w") as out:
            # It ends when its standard input does.
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=out)
            try:
                yield environment
            finally:
                process.kill()
                process.wait()
                process.stdin.close()

    def scan(self, command, kind="table", more=(), meanwhile=lambda: None):
        """A fly scan through this IOC; the file and the documents are whole, and the IOC finds nothing wrong. Answers the file.

        The clients have limits of one second built in. Where the machine does not run them for so long they give up, and the
        scan is tried again. Whatever else goes wrong is a failure.
        """
        words = [f"{column.lower()}={name}" for column, name in COLUMNS.items()]
        for number in range(TRIES):
            capture(self.daemon, "PCAP.NUM_TRIG=0", "PCAP.TRIG=SEQ1.OUTA", "PCAP.ENABLE=SEQ1.ACTIVE", "SEQ1.ENABLE=ZERO",
                    "PCOMP1.ENABLE=ZERO", *more)
            with self.ioc(command) as environment, ThreadPoolExecutor() as pool:
                plan = [BLUESKY / "bin/python", HERE / "scan.py", "STROBE:", self.folder, f"fly{number}", kind, str(ROWS), *words]
                other = pool.submit(meanwhile)
                done = subprocess.run(plan, cwd=self.folder, env=environment, timeout=LIMIT, capture_output=True, text=True)
                self.daemon.ask("SEQ1.ENABLE=ZERO")
                other.result(LIMIT)
            log = (self.folder / "ioc.log").read_text()
            given_up = "TimeoutError|NotConnected|did not respond to GetChanges"
            if not re.search(given_up, done.stderr + log):
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        # What an IOC finds wrong with a server it says in its log. That it lets go of its buffer in a thread of that buffer, and cannot
        # wait there for the thread's end, depends on when Python collects what nobody has any more.
        log = re.sub(ITS_OWN, "", log)
        self.assertEqual([line for line in log.splitlines() if re.search(r"ERROR|Traceback|Exception", line)], [], log)
        documents = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(documents["exit"], "success")
        self.assertEqual(documents["keys"], sorted(COLUMNS.values()))
        self.assertEqual(set(documents["last"].values()), {ROWS})
        self.assertEqual(len(documents["last"]), len(COLUMNS))
        wait_for("the end", lambda: self.daemon.ask("PCAP.ACTIVE?") == ["OK =0"])
        return self.folder / f"fly{number}.h5"

    def pandablocks_ioc(self):
        return [IOC / "bin/python", "-m", "pandablocks_ioc", "softioc", self.daemon.address, "STROBE"]

    def fastcs_pandablocks(self):
        config = self.folder / "fastcs.yaml"
        config.write_text("controllers:\n  - id: STROBE\n    type: fastcs_pandablocks.PandaController\n"
                          f"    address: {self.daemon.address}\ntransport:\n  - epicspva: {{}}\n")
        return [BLUESKY / "bin/python", "-m", "fastcs_pandablocks", "run", config]

    def test_hdfpanda_flies_through_pandablocks_ioc(self):
        self.points(self.scan(self.pandablocks_ioc()), COLUMNS)

    def test_hdfpanda_flies_through_fastcs_pandablocks(self):
        self.points(self.scan(self.fastcs_pandablocks()), COLUMNS)

    def test_hdfpanda_flies_by_position_compare(self):
        more = ["PCAP.SAMPLE=EVENT2.OUT", "EVENT2.PERIOD=0.0005", "PCAP.TRIG=PCOMP1.OUT", "PCAP.ENABLE=PCOMP1.ACTIVE",
                "PCOMP1.INP=SIM.COUNTER", "SIM.SINE.CAPTURE=Mean"]
        rows = self.compare(self.scan(self.fastcs_pandablocks(), "compare", more), COLUMNS)
        np.testing.assert_array_equal(rows["sim.counter"], 100 + 2 * np.arange(ROWS))
        self.assertIn("sim.sine.mean", rows)

    def test_hdfpanda_flies_by_the_table_of_a_scanspec(self):
        def gpio():
            """The motor's controller: its bit is low, and rises when the sequence has seen that: it makes a step a sample."""
            wait_for("the sequence", lambda: self.daemon.ask("SEQ1.ACTIVE?") == ["OK =1"])
            wait_for("a sample", lambda: self.daemon.run()["triggers"])
            self.daemon.ask("BITS.A=1")

        more = ["PCAP.SAMPLE=EVENT2.OUT", "EVENT2.PERIOD=0.0005", "BITS.A=0", "SEQ1.BITA=BITS.OUTA"]
        rows = self.compare(self.scan(self.fastcs_pandablocks(), "spec", more, gpio), COLUMNS)
        # Half of a point before the first one; later, if the bit rose or the sample came later.
        self.assertGreaterEqual(rows["sim.ramp"][0], 0.899)
        # Each ms, which is two samples. The sequence makes one step a sample, so that it is late by as many as were missed, at
        # most. The first and the last row are up to two samples late by themselves.
        elapsed = rows["clock.elapsed"].astype(float) / 1e6
        late = 0.5 * self.daemon.run()["missed"] + 1
        self.assertLessEqual(abs(elapsed[-1] - elapsed[0] - (ROWS - 1)), late)

    def test_raw_lines_are_answered_in_their_order(self):
        with BlockingClient(self.daemon.address) as client:
            lines = [Raw([f"*ECHO {number}?"]) for number in range(500)]
            self.assertEqual(client.send(lines, timeout=LIMIT), [[f"OK ={number}"] for number in range(500)])
