# SPDX-License-Identifier: MIT OR Apache-2.0
"""Targets of what is measured: the most that each figure may be."""


def over(figures: dict[str, float | None], most: dict[str, float]) -> list[str]:
    """What is above its target. A figure that is not known does not meet its target either."""
    return [f"{name}: {'not known' if value is None else f'{value:g}'}, the target is at most {target:g}"
            for name, target in most.items() if (value := figures.get(name)) is None or value > target]
