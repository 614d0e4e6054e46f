# SPDX-License-Identifier: MIT OR Apache-2.0
# p4p brings no types.
# pyright: standard, reportMissingImports=false
"""A tree of PVs, and the PVI structures by which clients find them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from p4p import Type, Value
from p4p.nt import NTEnum, NTScalar, NTTable
from p4p.server import ServerOperation, StaticProvider
from p4p.server.thread import SharedPV

from strobe._error import Error

#: Severities of an alarm.
NO_ALARM, MINOR, MAJOR, INVALID = range(4)


class Pvs:
    """PVs below a prefix. What PVI calls `pcap.arm` is the PV `PREFIX` + `PCAP:ARM`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.provider = StaticProvider("strobe")
        self._pvs: dict[str, SharedPV] = {}
        self._types: dict[str, NTScalar | NTEnum] = {}
        self._said: dict[str, object] = {}
        self._tree: dict[str, dict[str, dict[str, str]]] = {"": {}}

    def folder(self, name: str) -> None:
        """A part of the tree."""
        self._tree[""][name] = {"d": self.name(f"{name}.PVI")}
        self._tree[name] = {}

    def scalar(self, path: str, code: str, value: object, put: Callable[[Any], None] | None = None, unit: str = "",
               description: str = "") -> None:
        """One value of p4p's type `code`. `put` does what a client asks for, or raises `Error`."""
        display = {"display": {"units": unit, "description": description}} if code != "?" else {}
        nt = NTScalar(code, display=bool(display))
        self._add(path, nt, {"value": value, **display}, put and _Put("value", put))
        self._said[path] = (value, NO_ALARM, "")

    def choice(self, path: str, choices: list[str], put: Callable[[Any], None]) -> None:
        """One of these; the first of them at the beginning."""
        self._add(path, NTEnum(), {"value": {"index": 0, "choices": choices}}, _Put("value.index", put))

    def table(self, path: str, columns: dict[str, list[str]]) -> None:
        """Texts by column; they stay as they are."""
        nt = NTTable([(name, "s") for name in columns])
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
        self._serve(path, nt.wrap(rows), None)

    def post(self, path: str, value: object, severity: int = NO_ALARM, message: str = "") -> None:
        """What is so now. Clients are told what is new to them."""
        said = (value, severity, message)
        if self._said.get(path) != said:
            self._said[path] = said
            # Status 3 and 7 of the standard's alarms: of the record, and undefined.
            alarm = {"severity": severity, "status": {NO_ALARM: 0, INVALID: 7}.get(severity, 3), "message": message}
            nt = self._types[path]
            self._pvs[path].post(nt.wrap({"value": value, "alarm": alarm}, timestamp=time.time()))

    def complete(self) -> None:
        """Serves the structures that say what there is: to be called when all is there."""
        for folder, entries in self._tree.items():
            fields = [(name, ("S", None, [(kind, "s") for kind in entry])) for name, entry in entries.items()]
            kind = Type([("value", ("S", None, fields))], id="epics:nt/NTPVI:1.0")
            self.provider.add(self.name(f"{folder}.PVI" if folder else "PVI"),
                              self._keep(folder, SharedPV(initial=Value(kind, {"value": entries}))))

    def name(self, path: str) -> str:
        """What PVAccess calls it."""
        return self.prefix + path.upper().replace(".", ":")

    def _add(self, path: str, nt: NTScalar | NTEnum, value: dict[str, object], put: _Put | None) -> None:
        self._types[path] = nt
        self._serve(path, nt.wrap(value, timestamp=time.time()), put)

    def _serve(self, path: str, value: Value, put: _Put | None) -> None:
        folder, name = path.split(".")
        self._tree[folder][name] = {"rw" if put else "r": self.name(path)}
        self.provider.add(self.name(path), self._keep(path, SharedPV(initial=value, handler=put or _Refused())))

    def _keep(self, path: str, pv: SharedPV) -> SharedPV:
        self._pvs[path] = pv
        return pv


class _Put:
    """What becomes of a client's put."""

    def __init__(self, field: str, do: Callable[[Any], None]) -> None:
        self._field = field
        self._do = do

    def put(self, pv: SharedPV, op: ServerOperation) -> None:
        value = op.value()
        # A put without a value asks for processing. There is nothing to do then, and nothing may change.
        if self._field not in value.changedSet(expand=True):
            op.done()
            return
        try:
            self._do(value[self._field])
        except Error as error:
            op.done(error=str(error))
        except Exception as error:
            logging.exception("%s", op.name())
            op.done(error=f"{op.name()}: {error}")
        else:
            op.done()


class _Refused:
    """A PV that says something, and cannot be told anything."""

    def put(self, pv: SharedPV, op: ServerOperation) -> None:
        op.done(error=f"{op.name()}: it can only be read")
