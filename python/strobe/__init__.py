# SPDX-License-Identifier: MIT OR Apache-2.0
"""On every event, read a set of channels from any devices into one row, and lose nothing silently.

    >>> import strobe
    >>> with strobe.run(event="timer:1kHz", read=["sim.counter", "sim.sine"], rows=1000) as run:
    ...     print(sum(len(block["sim.sine"]) for block in run), "values")
    1000 values
    >>> run.account.rows
    1000

One class of run, whatever its rows come from: `run` makes one on this machine, `attach` reads another program's, `open` a
recording, and `connect` has those of a server. What was missed or lost is in each block and in the account.
"""

from strobe._account import Account, Summary
from strobe._block import Block, Lost
from strobe._error import Error
from strobe._machine import Machine, attach, catalogue, connect, get, record, run, set, status
from strobe._measure import doctor, jitter
from strobe._reader import Reader
from strobe._rules import Actions
from strobe._run import Channel, Info, Run, open, replay

__all__ = ["Account", "Actions", "Block", "Channel", "Error", "Info", "Lost", "Machine", "Reader", "Run", "Summary",
           "attach", "catalogue", "connect", "doctor", "get", "jitter", "open", "record", "replay", "run", "set", "status"]
