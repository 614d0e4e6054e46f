# SPDX-License-Identifier: MIT OR Apache-2.0
"""Why something was not done: the object, the reason, and the remedy."""


class Error(Exception):
    """The object, the reason and the remedy. As a text: `object: reason; remedy`."""

    def __init__(self, object: str, reason: str, remedy: str | None = None) -> None:
        super().__init__(object, reason, remedy)
        self.object = object
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.object}: {self.reason}" + (f"; {self.remedy}" if self.remedy else "")
