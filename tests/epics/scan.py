# SPDX-License-Identifier: MIT OR Apache-2.0
"""A fly scan with the stock HDFPanda of ophyd-async under the RunEngine of bluesky.

Prints, as JSON, what the documents say: the data keys, the last index of each stream, and how the run ended.
"""

import json
import sys

import bluesky.plan_stubs as bps
from bluesky import RunEngine
from ophyd_async.core import DetectorTrigger, StaticFilenameProvider, StaticPathProvider, TriggerInfo
from ophyd_async.fastcs.panda import HDFPanda
from ophyd_async.plan_stubs import ensure_connected

folder, name, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
documents = {"keys": [], "last": {}, "exit": None, "resources": []}


def note(kind, document):
    if kind == "descriptor":
        documents["keys"] = sorted(document["data_keys"])
    elif kind == "stream_resource":
        documents["resources"].append([document["data_key"], document["uri"], document["parameters"]["dataset"]])
    elif kind == "stream_datum":
        stream = document["stream_resource"]
        documents["last"][stream] = max(documents["last"].get(stream, 0), document["indices"]["stop"])
    elif kind == "stop":
        documents["exit"] = document["exit_status"]


def fly(panda):
    yield from ensure_connected(panda)
    yield from bps.stage_all(panda)
    yield from bps.open_run()
    # No row is made before all is ready.
    yield from bps.mv(panda.pcap.enable, False, panda.pcap.rows, rows)
    yield from bps.prepare(panda, TriggerInfo(trigger=DetectorTrigger.EXTERNAL_LEVEL, number_of_events=rows,
                                              exposure_timeout=120), wait=True)
    yield from bps.declare_stream(panda, name="main", collect=True)
    yield from bps.kickoff(panda, wait=True)
    yield from bps.complete(panda, wait=False, group="complete")
    yield from bps.mv(panda.pcap.enable, True)
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
    yield from bps.unstage_all(panda)


engine = RunEngine(call_returns_result=True)
panda = HDFPanda("STROBE:", StaticPathProvider(StaticFilenameProvider(name), folder), name="panda")
engine(fly(panda), note)
print(json.dumps(documents))
