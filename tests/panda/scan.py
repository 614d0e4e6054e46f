# SPDX-License-Identifier: MIT OR Apache-2.0
"""A fly scan with the stock HDFPanda of ophyd-async under the RunEngine of bluesky, through an IOC that is up already.

Prints, as JSON, what the documents say: the data keys, the last index of each stream, and how the run ended.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import bluesky.plan_stubs as bps
from bluesky import RunEngine
from ophyd_async.core import DetectorTrigger, StaticFilenameProvider, StaticPathProvider, TriggerInfo
from ophyd_async.fastcs.panda import HDFPanda, SeqTable, SeqTableInfo, StaticSeqTableFlyableLogic
from ophyd_async.plan_stubs import ensure_connected

prefix, folder, name, rows = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
columns = dict(word.split("=") for word in sys.argv[5:])

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


def fly(panda):
    yield from ensure_connected(panda)
    yield from names(panda)
    yield from table(panda)
    flyer = StaticSeqTableFlyableLogic(panda.seq[1]).with_device("flyer")
    # A trigger each millisecond: the output A is high for half of it.
    triggers = SeqTable.row(repeats=rows, time1=500, outa1=True, time2=500)
    yield from bps.stage_all(panda, flyer)
    yield from bps.open_run()
    yield from bps.prepare(flyer, SeqTableInfo(sequence_table=triggers, repeats=1, prescale_as_us=1), wait=True)
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
