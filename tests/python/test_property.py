# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whatever the rows are, NumPy, Arrow and a table of text that Rust has written say the same of them; from any row on.

Hypothesis makes up rows of any width, type, scale, gap and failure. They come as an .arrows file that pyarrow has written.
"""

import csv
import math
import tempfile
import unittest
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import strobe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as any_of

TYPES = {"u64": (pyarrow.uint64(), any_of.integers(0, 2**64 - 1)), "s64": (pyarrow.int64(), any_of.integers(-2**63, 2**63 - 1)),
         "f64": (pyarrow.float64(), any_of.floats())}
#: The status of a row has room for 32 failures; those of more channels have words of their own.
WIDEST = 40


@dataclass
class Made:
    """Rows: of each channel its type, scale and offset; of each row its number, its trigger, and its values, None where it failed."""

    channels: list[tuple[str, float, float]]
    rows: list[tuple[int, int, list[Any]]]

    def columns(self) -> list[list[Any]]:
        return [[values[place] for _, _, values in self.rows] for place in range(len(self.channels))]


@any_of.composite
def made(draw: any_of.DrawFn) -> Made:
    scales = any_of.sampled_from([(1.0, 0.0), (0.25, 0.0), (1.0, -3.5), (-2.0, 1e-3)])
    kinds = draw(any_of.lists(any_of.tuples(any_of.sampled_from(sorted(TYPES)), scales), min_size=1, max_size=WIDEST))
    row = trigger = draw(any_of.integers(0, 3))
    rows = []
    for _ in range(draw(any_of.integers(1, 12))):
        values = [draw(any_of.one_of(any_of.none(), TYPES[kind][1])) for kind, _ in kinds]
        rows.append((row, trigger, values))
        lost, missed = draw(any_of.sampled_from([(0, 0), (0, 0), (0, 2), (3, 0), (1, 1)]))
        row += 1 + lost
        trigger += 1 + lost + missed
    return Made([(kind, *both) for kind, both in kinds], rows)


class Decoding(unittest.TestCase):
    template: pyarrow.Schema

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="strobe-python-")))
        path = cls.folder / "template.arrows"
        strobe.record(None, path, event="timer:1kHz", read=["sim.counter"], rows=1, engine="user")
        cls.template = pyarrow.ipc.open_stream(path).schema

    def write(self, rows: Made) -> Path:
        """As a recording that has come to its end."""
        path = self.folder / "made.arrows"
        number, trigger = rows.rows[-1][:2]
        given = {b"strobe.rows": number + 1, b"strobe.missed": trigger - number, b"strobe.triggers": trigger + 1,
                 b"strobe.missed.overrun": trigger - number, b"strobe.lost": number + 1 - len(rows.rows)}
        metadata = dict(self.template.metadata)
        for key, value in given.items():
            if key in metadata:
                metadata[key] = str(value).zfill(20).encode()
        like = self.template.field("sim.counter").metadata
        fields = [self.template.field(name) for name in ("row", "trigger", "time", "status")]
        for place, (kind, scale, offset) in enumerate(rows.channels):
            said = like | {b"channel": f"made.c{place}".encode(), b"type": kind.encode(), b"scale": repr(scale).encode(), b"offset": repr(offset).encode(), b"unit": b"V"}
            fields.append(pyarrow.field(f"made.c{place}", TYPES[kind][0], metadata=said))
        schema = pyarrow.schema(fields, metadata=metadata)
        heads = [[row for row, _, _ in rows.rows], [trigger for _, trigger, _ in rows.rows],
                 [1000 * trigger for _, trigger, _ in rows.rows], [0] * len(rows.rows)]
        columns = [*heads, *rows.columns()]
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, fields)]
        with pyarrow.ipc.new_stream(path, schema) as stream:
            stream.write_batch(pyarrow.record_batch(arrays, schema=schema))
        return path

    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(made(), any_of.integers(0, 30))
    def test_every_value_is_as_it_was_made(self, rows: Made, begin: int) -> None:
        recording = strobe.open(self.write(rows))
        names = [f"made.c{place}" for place in range(len(rows.channels))]
        self.assertEqual([channel.name for channel in recording.info.channels], names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", strobe.Lost)
            blocks, later, table = list(recording), list(recording.read(begin)), pyarrow.table(recording)
        self.compare(blocks, rows)
        self.compare(later, Made(rows.channels, [row for row in rows.rows if row[0] >= begin]))
        lost = sum(block.lost for block in blocks)
        self.assertEqual(len(rows.rows) + lost, rows.rows[-1][0] + 1)
        # Rust's columns.
        for name, column in zip(names, rows.columns()):
            self.assertTrue(same(table[name].to_pylist(), column), (name, column))
        # Rust's text.
        path = self.folder / "made.csv"
        recording.record(path, overwrite=True)
        with path.open() as text:
            lines = list(csv.DictReader(text))
        self.assertEqual([int(line["row"]) for line in lines], [row for row, _, _ in rows.rows])
        for name, (kind, scale, offset) in zip(names, rows.channels):
            (title,) = [title for title in lines[0] if title.split(" ")[0] == name]
            values = np.concatenate([block[name] for block in blocks]).tolist()
            raw = np.concatenate([block.raw[name] for block in blocks]).tolist()
            exact = (scale, offset) == (1.0, 0.0) and kind != "f64"
            for line, value, word in zip(lines, values, raw):
                if line[title] == "":
                    self.assertTrue(math.isnan(value))
                elif exact:
                    self.assertEqual(int(line[title]), word)
                else:
                    self.assertTrue(same([float(line[title])], [value]), (name, line[title], value))

    def compare(self, blocks: list[strobe.Block], rows: Made) -> None:
        """By NumPy: words, structured array, raw, failed, values in their units, slices of all of them."""
        array = np.concatenate([block.array for block in blocks]) if blocks else np.empty(0)
        self.assertEqual(len(array), len(rows.rows))
        for place, (kind, scale, offset) in enumerate(rows.channels) if len(array) else ():
            name, column = f"made.c{place}", rows.columns()[place]
            failed = [value is None for value in column]
            self.assertEqual(np.concatenate([block.failed[name] for block in blocks]).tolist(), failed)
            values = np.concatenate([block[name] for block in blocks])
            with np.errstate(all="ignore"):
                expected = [math.nan if value is None else float(np.float64(value) * scale + offset) for value in column]
            self.assertTrue(same(values.tolist(), expected), (name, values, expected))
            raw = np.concatenate([block.raw[name] for block in blocks])
            there = [value for value in column if value is not None]
            self.assertTrue(same(raw[~np.array(failed)].tolist(), there))
            self.assertTrue(same(array[name].tolist(), raw.tolist()))
        for block in blocks:
            for part in (slice(1, None), slice(None, None, 2), slice(-1, None)):
                np.testing.assert_array_equal(block.array[part]["row"], block.rows[part])
                self.assertTrue(np.shares_memory(block.array[part], block.words) or not len(block.rows[part]))


def same(left: list[Any], right: list[Any]) -> bool:
    """Also of what is no number."""
    return len(left) == len(right) and all(
        one == other or (isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other))
        for one, other in zip(left, right))


if __name__ == "__main__":
    unittest.main()
