# SPDX-License-Identifier: MIT OR Apache-2.0
"""The text of a recipe, from a file and from what was said beside it."""

from __future__ import annotations

import json
import numbers
import os
import tomllib
from collections.abc import Callable
from typing import Any

from strobe import _rules, _strobe
from strobe._error import Error

#: Keys that have another form in Python.
FORMS: dict[str, Callable[[Any], list[str] | int]] = {
    "read": lambda said: _rules.texts("read", said),
    "derive": lambda said: _rules.equations("derive", said),
    "let": lambda said: _rules.equations("let", said),
    "tune": lambda said: _rules.equations("tune", said),
    "keep": lambda said: _rules.texts("keep", said),
    "every": _rules.every,
    "set": _rules.settings,
}


def text(recipe: str | os.PathLike[str] | None, *, seconds: float | None = None, when: object = None, **words: Any) -> str:
    """TOML. What is None was not said."""
    said: dict[str, Any] = tomllib.loads(_strobe.recipe(os.fspath(recipe))) if recipe is not None else {}
    given = {name.replace("_", "-"): value for name, value in words.items() if value is not None}
    given |= {name: form(given[name]) for name, form in FORMS.items() if name in given}
    if when is not None and "rule" in given:
        raise Error("when", "rule says the same", "leave one of them out")
    if when is not None:
        given["rule"] = _rules.rules(when)
    if seconds is not None:
        given["for"] = f"{seconds * 1e9:.0f}ns"
    if "rows" in given or "for" in given:
        said.pop("rows", None)
        said.pop("for", None)
    said |= given
    return "".join(f"{name} = {_value(name, value)}\n" for name, value in said.items())


def _value(name: str, value: Any) -> str:
    if _rules.is_mapping(value):
        return "{" + ", ".join(f"{_value(name, key)} = {_value(name, item)}" for key, item in value.items()) + "}"
    if _rules.is_several(value):
        return "[" + ", ".join(_value(name, item) for item in value) + "]"
    match value:
        case bool() | float():
            return json.dumps(value)
        case numbers.Integral():
            return str(int(value))
        case str() | os.PathLike():
            return json.dumps(os.fspath(value), ensure_ascii=True)
        case _:
            raise Error(name, f"it is of type {type(value).__name__}", "write a text, a number, True or False, or several of them")
