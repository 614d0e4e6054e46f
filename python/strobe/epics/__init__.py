# SPDX-License-Identifier: MIT OR Apache-2.0
"""`strobe-epics`: the runs of a recipe over PVAccess, as a client of `strobe serve`.

Clients that know HDFPanda, pvget or Phoebus need nothing else. Its PVs are those of docs/how-to/epics.md.
"""

from strobe._programs import missing

try:
    from strobe.epics._main import main
except ModuleNotFoundError as error:
    raise missing("epics", error) from None

__all__ = ["main"]
