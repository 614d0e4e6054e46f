# SPDX-License-Identifier: MIT OR Apache-2.0
"""The account of a run: triggers = rows + missed + skipped."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Account:
    """What became of the triggers of a run, and of its rows on the way to one reader: triggers = rows + missed + skipped.

    >>> with strobe.run(event="soft", read=["sim.counter"], rows=3) as run:
    ...     run.start()
    ...     run.trigger(3)
    ...     rows = sum(len(block) for block in run)
    >>> print(run.account)
    3 triggers = 3 rows + 0 missed + 0 skipped; 0 lost, 0 with errors; complete
    >>> run.account.whole
    True
    """

    #: Occurrences of the event.
    triggers: int
    #: Rows that were made.
    rows: int
    #: Triggers that made no row.
    missed: int
    #: Triggers that a row program left out on purpose.
    skipped: int
    #: Rows that this reader was too late for.
    lost: int
    #: Rows in which a channel or an output failed.
    errors: int
    #: `complete`, `stopped` or `failed: WHY`; None: the run goes on, or was cut off.
    end: str | None
    #: Missed triggers by cause.
    missed_by: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Nothing is missing: every trigger that was not skipped made a row, each arrived, and all of it was read."""
        return self.end == "complete" and self.missed == self.lost == self.errors == 0

    @classmethod
    def of(cls, text: str) -> Account:
        """From JSON, as a run says it."""
        said = json.loads(text)
        return cls(**{name: said[name] for name in cls.__dataclass_fields__})

    def __str__(self) -> str:
        causes = ", ".join(f"{cause} {count}" for cause, count in self.missed_by.items() if count)
        return (f"{self.triggers} triggers = {self.rows} rows + {self.missed} missed{f' ({causes})' if causes else ''} "
                f"+ {self.skipped} skipped; {self.lost} lost, {self.errors} with errors; {self.end or 'not at its end'}")

    def _repr_html_(self) -> str:
        """How it looks in a notebook."""
        from strobe import _view

        return _view.of_account(self)


class Summary(Account):
    """The account of a recording, and what each of its files has got.

    >>> summary = strobe.record(None, "scan.csv", event="timer:1kHz", read=["sim.sine"], rows=20)
    >>> summary.rows, [sink["path"] for sink in summary.sinks]
    (20, ['scan.csv'])
    """

    #: All of it, as `strobe record --json` prints it.
    data: dict[str, Any]

    def __init__(self, text: str) -> None:
        data = json.loads(text)
        super().__init__(data["rows"] + data["missed"] + data["skipped"], data["rows"], data["missed"], data["skipped"], data["lost"],
                         data["errors"], data["end"], data["missed_by"])
        object.__setattr__(self, "data", data)

    @property
    def sinks(self) -> list[dict[str, Any]]:
        """Of each file: path, rows, bytes, lost, and the error that ended it early, if one did."""
        return list(self.data["outputs"])

    def _repr_html_(self) -> str:
        from strobe import _view

        return _view.of_summary(self)
