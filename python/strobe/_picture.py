# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small pictures of rows, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from strobe._points import Points

WIDTH, HEIGHT, SPACE = 560, 44, 8
#: Where the values are said, and where the names.
LEFT, RIGHT = 170, 80
BARS = 56
BLUE, RED = "#4c8dd6", "#d62728"


def traces(points: Points, units: Sequence[str], title: str) -> str:
    """A strip for each channel; a red line where rows were lost or triggers missed."""
    x = (points.place - points.place[0]) / max(1, points.place[-1] - points.place[0]) * WIDTH + LEFT
    strips = "".join(_strip(points, channel, unit, x, number * (HEIGHT + SPACE) + SPACE)
                     for number, (channel, unit) in enumerate(zip(points.channels, units)))
    gaps = int(points.gap.sum())
    missing = f"; red: rows are missing at {gaps} places" if gaps else ""
    return _svg(len(points.channels) * (HEIGHT + SPACE) + SPACE, strips, title + missing)


def histogram(between: NDArray[np.int64]) -> str:
    """How long after each row the next one came; the height is the logarithm of how often. Nothing, if that was never."""
    if not len(between):
        return ""
    least, greatest = int(between.min()), int(between.max())
    counts = np.histogram(between, BARS, (least, greatest) if greatest > least else (least - 1, greatest + 1))[0]
    heights = np.log1p(counts) / np.log1p(counts.max()) * HEIGHT
    width = WIDTH / BARS
    bars = "".join(f'<rect class="bar" x="{LEFT + place * width:.1f}" y="{SPACE + HEIGHT - height:.1f}" width="{width - 1:.1f}" '
                   f'height="{height:.1f}" fill="{BLUE}"><title>{count}</title></rect>'
                   for place, (count, height) in enumerate(zip(counts, heights)) if count)
    names = _text(LEFT - 6, SPACE + HEIGHT, duration(least), "end") + _text(LEFT + WIDTH + 6, SPACE + HEIGHT, duration(greatest))
    return _svg(HEIGHT + 2 * SPACE, bars + names, f"time from a row to the next: median {duration(int(np.median(between)))}; "
                                                  "heights are logarithmic")


def duration(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


def _strip(points: Points, channel: str, unit: str, x: NDArray[np.float64], top: int) -> str:
    number = points.channels.index(channel)
    bounds = points.bounds(number)
    missing = "".join(f'<line class="gap" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{top + HEIGHT}" stroke="{RED}"/>'
                      for at in x[points.gap])
    name = _text(LEFT - 6, top + HEIGHT / 2 + 4, f"{channel} / {unit}" if unit else channel, "end")
    if bounds is None:
        return missing + name + _text(LEFT + WIDTH / 2, top + HEIGHT / 2 + 4, "no value", "middle")
    least, greatest = bounds
    scale = HEIGHT / (greatest - least) if greatest > least else 0.0
    middle = HEIGHT / 2 if greatest == least else 0.0
    low, high = (top + HEIGHT - middle - (values[:, number] - least) * scale for values in (points.least, points.greatest))
    lines, line = list[list[str]](), list[str]()
    for place, (at, bottom, peak) in enumerate(zip(x, low, high)):
        there = np.isfinite(bottom) and np.isfinite(peak)
        if line and (points.gap[place] or not there):
            lines.append(line)
            line = []
        if there:
            line.append(f"{at:.1f},{bottom:.1f}" + (f" {at:.1f},{peak:.1f}" if peak != bottom else ""))
    # A point alone is a line too: its ends are round.
    drawn = "".join(f'<polyline class="trace" points="{" ".join(line)}{f" {line[0]}" if len(line) == 1 else ""}" fill="none" '
                    f'stroke="{BLUE}" stroke-linecap="round" stroke-linejoin="round"/>' for line in [*lines, line] if line)
    said = _text(LEFT + WIDTH + 6, top + 9, f"{greatest:.4g}") + (_text(LEFT + WIDTH + 6, top + HEIGHT, f"{least:.4g}") if scale else "")
    return missing + drawn + name + said


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="currentColor">{escape(text)}</text>'


def _svg(height: int, inside: str, title: str) -> str:
    width = LEFT + WIDTH + RIGHT
    return (f'<svg role="img" aria-label="{escape(title)}" width="{width}" height="{height + 16}" viewBox="0 0 {width} {height + 16}" '
            f'font-family="sans-serif" font-size="11" style="max-width:100%">{inside}{_text(LEFT, height + 10, title)}</svg>')
