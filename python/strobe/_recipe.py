# SPDX-License-Identifier: MIT OR Apache-2.0
"""The text of a recipe, from a file and from what was said beside it."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from strobe import _strobe

#: Keys with a list, where one text says what a list of it says.
LISTS = ("read", "derive", "keep")


def text(recipe: str | os.PathLike[str] | None, *, seconds: float | None = None, set: Mapping[str, int] | None = None,
         **words: Any) -> str:
    """TOML. What is None was not said."""
    said: dict[str, Any] = tomllib.loads(_strobe.recipe(os.fspath(recipe))) if recipe is not None else {}
    given = {name.replace("_", "-"): value for name, value in words.items() if value is not None}
    # Who reads one channel may say so.
    given |= {name: [given[name]] for name in LISTS if isinstance(given.get(name), str)}
    if set is not None:
        given["set"] = [f"{output}={int(value)}" for output, value in set.items()]
    if seconds is not None:
        given["for"] = f"{seconds * 1e9:.0f}ns"
    if "rows" in given or "for" in given:
        said.pop("rows", None)
        said.pop("for", None)
    said |= given
    return "".join(f"{name} = {_value(value)}\n" for name, value in said.items())


def _value(value: Any) -> str:
    match value:
        case bool() | int() | float():
            return json.dumps(value)
        case str() | os.PathLike():
            return json.dumps(os.fspath(value), ensure_ascii=True)
        case _:
            return "[" + ", ".join(_value(item) for item in value) + "]"
