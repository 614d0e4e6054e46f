# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a run computes, which rows it keeps, and what it does where: from what Python says to what a recipe says."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeGuard

from strobe._error import Error

#: How each keyword is said.
SAID = {
    "read": 'write ["DEVICE.CHANNEL"], or one name',
    "derive": 'write {"NAME": "EXPRESSION"}, or texts, as in "NAME = EXPRESSION"',
    "let": 'write {"NAME": NUMBER}, {"NAME": "NUMBER like CHANNEL"}, or texts, as in "NAME = NUMBER"',
    "tune": 'write {"NAME": NUMBER}, {"NAME": "NUMBER like CHANNEL"}, or texts, as in "NAME = NUMBER"',
    "every": "write a whole number from 1 on",
    "keep": 'write "CONDITION", or a list of conditions',
    "set": 'write {"OUTPUT": NUMBER}, with whole numbers',
    "when": 'write [("CONDITION", {"set": {"OUTPUT": NUMBER}, "then": {"NAME": "EXPRESSION"}})]',
    "then": 'write {"NAME": "EXPRESSION"}, or texts, as in "NAME += EXPRESSION"',
}


class Actions(TypedDict, total=False):
    """What a rule does in rows that meet its condition: the second part of each pair of `when`.

    >>> fire: strobe.Actions = {"set": {"sim.latch": 1}, "then": {"next": "next + 4"}}
    >>> with strobe.run(event="soft", read=["sim.counter"], let={"next": "2 like sim.counter"}, derive={"wanted": "next"},
    ...                 when=[("sim.counter >= next", fire)], rows=8) as run:
    ...     run.start()
    ...     run.trigger(8)
    ...     print([int(wanted) for block in run for wanted in block["wanted"]])
    [2, 2, 2, 6, 6, 6, 6, 10]
    """

    #: Outputs, and what is written to each.
    set: Mapping[str, int]
    #: Variables, and the new value of each; or texts, as in "next += 4".
    then: Mapping[str, str | float] | str | Sequence[str]


def texts(keyword: str, said: object, at: str = "") -> list[str]:
    """One text, or several."""
    if isinstance(said, str):
        return [said]
    if not is_several(said):
        raise _wrong(keyword, said, at)
    several = list(said)
    for place, one in enumerate(several):
        if not isinstance(one, str):
            raise _wrong(keyword, one, f"{at or keyword}[{place}]")
    return several


def equations(keyword: str, said: object, at: str = "") -> list[str]:
    """Names, and what each of them is; or texts that say both."""
    if not is_mapping(said):
        return texts(keyword, said, at)
    return [f"{_name(keyword, name, at)} = {_term(keyword, value, f'{at or keyword}[{name!r}]')}" for name, value in said.items()]


def tuned(values: Mapping[str, str | float]) -> list[tuple[str, str]]:
    """Variables, and the new value of each."""
    return [(_name("tune", name, "tune"), _term("tune", value, f"tune[{name!r}]")) for name, value in values.items()]


def settings(said: object, at: str = "set") -> list[str]:
    """Outputs, and what is written to each."""
    if not is_mapping(said):
        raise _wrong("set", said, at)
    return [f"{_name('set', output, at)}={_whole(value, f'{at}[{output!r}]')}" for output, value in said.items()]


def every(said: Any) -> int:
    """A whole number from 1 on."""
    if isinstance(said, bool) or not isinstance(said, numbers.Integral):
        raise _wrong("every", said)
    if int(said) < 1:
        raise Error("every", f"it is {int(said)}", SAID["every"])
    return int(said)


def rules(said: object) -> list[dict[str, Any]]:
    """Conditions, and what is done where each is met."""
    if not is_several(said):
        raise _wrong("when", said)
    return [_rule(one, f"when[{place}]") for place, one in enumerate(said)]


def _rule(said: object, at: str) -> dict[str, Any]:
    pair = list(said) if is_several(said) else []
    if len(pair) != 2 or not isinstance(pair[0], str) or not is_mapping(pair[1]):
        raise Error(at, "it is no pair of a condition and what is done there", SAID["when"])
    condition, actions = pair
    for key in actions:
        if key not in ("set", "then"):
            raise Error(at, f"a rule has no {key!r}", 'use "set" and "then"')
    rule: dict[str, Any] = {"when": condition}
    if "set" in actions:
        rule["set"] = settings(actions["set"], f"{at}['set']")
    if "then" in actions:
        rule["then"] = equations("then", actions["then"], f"{at}['then']")
    return rule


def is_mapping(said: object) -> TypeGuard[Mapping[Any, Any]]:
    """Names, and something for each."""
    return isinstance(said, Mapping)


def is_several(said: object) -> TypeGuard[Iterable[Any]]:
    """A list, a tuple, an array ..."""
    return isinstance(said, Iterable) and not isinstance(said, Mapping | str | bytes)


def _name(keyword: str, said: object, at: str) -> str:
    if not isinstance(said, str):
        raise Error(at or keyword, f"{said!r} is no name", SAID[keyword])
    return said


def _term(keyword: str, said: Any, at: str) -> str:
    """An expression, which may be a number."""
    match said:
        case str():
            return said
        case bool():
            raise _wrong(keyword, said, at)
        case numbers.Integral():
            return str(operator.index(said))
        case numbers.Real():
            return repr(float(said))
        case _:
            raise _wrong(keyword, said, at)


def _whole(said: Any, at: str) -> int:
    try:
        return operator.index(said)
    except TypeError:
        raise _wrong("set", said, at) from None


def _wrong(keyword: str, said: object, at: str = "") -> Error:
    return Error(at or keyword, f"it is of type {type(said).__name__}", SAID[keyword])
