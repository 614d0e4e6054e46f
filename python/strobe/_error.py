# SPDX-License-Identifier: MIT OR Apache-2.0
"""Why something was not done: the object, the reason, and the remedy."""


class Error(Exception):
    """Why something was not done: the object, the reason and the remedy. As a text: `object: reason; remedy`.

    >>> try:
    ...     strobe.run(event="timer:1kHz", read=["sim.sin"])
    ... except strobe.Error as error:
    ...     print(error.object, error.reason, sep=": ")
    channel sim.sin: no such channel
    """

    def __init__(self, object: str, reason: str, remedy: str | None = None) -> None:
        super().__init__(object, reason, remedy)
        #: What it is about, as in `channel sim.sin`.
        self.object = object
        #: What is wrong with that.
        self.reason = reason
        #: What helps; None: nothing is known to.
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.object}: {self.reason}" + (f"; {self.remedy}" if self.remedy else "")
