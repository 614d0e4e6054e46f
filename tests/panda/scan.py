# SPDX-License-Identifier: MIT OR Apache-2.0
"""A fly scan with the stock HDFPanda of ophyd-async under the RunEngine of bluesky, through an IOC that is up already.

The triggers are those of a sequencer's table ("table"), of a position compare ("compare"), or of the table that ophyd-async makes of
a scanspec ("spec"). Prints, as JSON, what the documents say: the data keys, the last index of each stream, and how the run ended.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import bluesky.plan_stubs as bps
from bluesky import RunEngine
from ophyd_async.core import DetectorTrigger, StaticFilenameProvider, StaticPathProvider, TriggerInfo, soft_signal_rw
from ophyd_async.epics.motor import Motor
from ophyd_async.fastcs.panda import (HDFPanda, PandaPcompDirection, PcompInfo, PosOutScaleOffset, ScanSpecInfo,
                                      ScanSpecSeqTableFlyableLogic, SeqTable, SeqTableInfo, StaticPcompFlyableLogic,
                                      StaticSeqTableFlyableLogic)
from ophyd_async.plan_stubs import ensure_connected
from scanspec.specs import ConstantDuration, Fly, Line

prefix, folder, name, kind, rows = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
columns = dict(word.split("=") for word in sys.argv[6:])

documents = {"keys": [], "last": {}, "exit": None}


def note(kind, document):
    if kind == "descriptor":
        documents["keys"] = sorted(document["data_keys"])
    elif kind == "stream_datum":
        stream = document["stream_resource"]
        documents["last"][stream] = max(documents["last"].get(stream, 0), document["indices"]["stop"])
    elif kind == "stop":
        documents["exit"] = document["exit_status"]


def names(panda):
    """The names of the datasets; without them the IOC tells bluesky of none."""
    for signal, dataset in columns.items():
        block, field = signal.split(".")
        yield from bps.abs_set(getattr(getattr(panda, block), f"{field}_dataset"), dataset, wait=True)


def table(panda):
    """Has the IOC fill its table of datasets: it does so column by column, some time after it was told to capture, and HDFPanda
    reads the table at once. What it captures here is a run without rows: it has a file for it once it was connected to the data
    while the run went on."""
    async def whole():
        data, pcap = panda.data, panda.pcap
        await data.hdf_directory.set(folder)
        await data.hdf_file_name.set("table.h5")
        await data.capture.set(True)
        while True:
            with contextlib.suppress(ValueError):
                if len((await data.datasets.get_value()).name) == len(columns):
                    break
            await asyncio.sleep(0.05)
        while not Path(folder, "table.h5").exists():
            for word in (True, False):
                await pcap.arm.set(word)
                while await pcap.active.get_value() != word:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
        await data.capture.set(False)

    yield from bps.wait_for([whole], timeout=60)


def triggers(panda):
    """What triggers the panda, and what it is told."""
    if kind == "table":
        # A trigger each millisecond: the output A is high for half of it.
        table = SeqTable.row(repeats=rows, time1=500, outa1=True, time2=500)
        return (StaticSeqTableFlyableLogic(panda.seq[1]),
                SeqTableInfo(sequence_table=table, repeats=1, prescale_as_us=1))
    if kind == "compare":
        return (StaticPcompFlyableLogic(panda.pcomp[1]),
                PcompInfo(start_position=100, pulse_width=1, rising_edge_step=2, number_of_pulses=rows,
                          direction=PandaPcompDirection.POSITIVE))
    motor = Motor("STROBE:MOTOR", name="motor")
    # The ramp goes from 0 V to 0.999 V.
    position = PosOutScaleOffset("SIM.RAMP", soft_signal_rw(float, 0.001), soft_signal_rw(float, 0.0))
    return (ScanSpecSeqTableFlyableLogic(panda.seq[1], {motor: position}),
            ScanSpecInfo(spec=Fly(ConstantDuration(0.001, Line(motor, 0.9, 0.95, rows))), deadtime=0.0005))


def fly(panda):
    yield from ensure_connected(panda)
    yield from names(panda)
    yield from table(panda)
    logic, info = triggers(panda)
    flyer = logic.with_device("flyer")
    yield from bps.stage_all(panda, flyer)
    yield from bps.open_run()
    yield from bps.prepare(flyer, info, wait=True)
    yield from bps.prepare(panda, TriggerInfo(trigger=DetectorTrigger.EXTERNAL_LEVEL, number_of_events=rows,
                                              exposure_timeout=120), wait=True)
    yield from bps.declare_stream(panda, name="main", collect=True)
    yield from bps.kickoff_all(flyer, panda, wait=True)
    yield from bps.complete_all(flyer, panda, wait=False, group="complete")
    done = False
    while not done:
        try:
            yield from bps.wait("complete", timeout=0.5)
        except TimeoutError:
            pass
        else:
            done = True
        yield from bps.collect(panda, return_payload=False, name="main")
    yield from bps.close_run()
    yield from bps.unstage_all(flyer, panda)


engine = RunEngine(call_returns_result=True)
panda = HDFPanda(prefix, StaticPathProvider(StaticFilenameProvider(name), folder), name="panda")
engine(fly(panda), note)
print(json.dumps(documents))
