# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads the files of crates/strobe-files/examples/sample_files.rs as a stranger would, without code of strobe.

read_arrows.py DIR          checks the files with known content
read_arrows.py FILE.arrows  checks what holds for every file, and prints its account
"""

import sys
from pathlib import Path

import polars
import pyarrow
from pyarrow import csv, ipc, parquet

ROWS, MISSED, MISSED_BEFORE, LOST = 10_000, 3, 5_000, range(8_000, 8_010)


def read(path: Path) -> tuple[pyarrow.Table, bool]:
    """All batches that are whole, and whether the end of the file was torn."""
    batches, torn = [], False
    with open(path, "rb") as file:
        stream = ipc.open_stream(file)
        try:
            for batch in stream:
                batches.append(batch)
        except (pyarrow.ArrowInvalid, OSError):
            torn = True
        return pyarrow.Table.from_batches(batches, stream.schema), torn


def account(table: pyarrow.Table) -> dict[str, str]:
    """What the file says of its run; numbers have leading zeros, which int() understands."""
    metadata = table.schema.metadata or {}
    return {key.decode(): value.decode().strip() for key, value in metadata.items() if key.startswith(b"strobe.")}


def loss(table: pyarrow.Table) -> tuple[int, int]:
    """Rows lost and triggers missed, from the columns alone, up to the last row."""
    if table.num_rows == 0:
        return 0, 0
    row, trigger = table["row"][-1].as_py(), table["trigger"][-1].as_py()
    return row + 1 - table.num_rows, trigger - row - skipped(table)


def skipped(table: pyarrow.Table) -> int:
    """Triggers that were left out on purpose, up to the last row."""
    return table["skipped"][-1].as_py() if "skipped" in table.column_names and table.num_rows else 0


def failed(table: pyarrow.Table) -> dict[str, list[int]]:
    """What failed, and the numbers of the rows in which it did: a null is all there is of it."""
    nulls = {name: table.filter(table[name].is_null())["row"].to_pylist() for name in table.column_names}
    return {name: rows for name, rows in nulls.items() if rows}


def check_rules(table: pyarrow.Table) -> None:
    """What holds for every file."""
    assert table.column_names[:4] == ["row", "trigger", "time", "status"], table.column_names
    frame = polars.from_arrow(table)
    for name in ("row", "trigger", "time"):
        assert frame[name].is_sorted(), f"{name} goes back"
    assert (frame["trigger"] >= frame["row"]).all(), "more rows than triggers"
    assert (frame["status"] < 2**32).all(), "status has flags only"
    header = ["row", "trigger", "time", "status"] + ["skipped"] * ("skipped" in table.column_names)
    assert not set(failed(table)) & set(header), "nothing of the row itself can fail"
    assert len(set(table.column_names)) == table.num_columns, "columns of the same name"
    facts = account(table)
    if facts["strobe.complete"] == "1":
        lost, missed = loss(table)
        assert int(facts["strobe.rows"]) == table.num_rows + int(facts["strobe.lost"]), facts
        parts = [int(facts[f"strobe.{part}"]) for part in ("rows", "missed", "skipped")]
        assert int(facts["strobe.triggers"]) == sum(parts), facts
        assert skipped(table) <= parts[2], facts
        assert lost <= int(facts["strobe.lost"]) and missed <= int(facts["strobe.missed"]), facts


def check_known(table: pyarrow.Table, rows: int) -> None:
    """The content that sample_files has written."""
    expected = [row for row in range(ROWS) if row not in LOST][:rows]
    assert table["row"].to_pylist() == expected
    assert table["trigger"].to_pylist() == [row + (MISSED if row >= MISSED_BEFORE else 0) for row in expected]
    assert table["sim.counter"].to_pylist() == [2**64 - 1 - row for row in expected]
    assert table["adc.volt"].to_pylist() == [100 - row % 200 for row in expected]
    assert table["adc.real"].to_pylist() == [row / 8 for row in expected]
    assert table["sim.counter#2"].to_pylist() == expected
    field = table.schema.field("adc.volt")
    assert field.type == pyarrow.int64() and field.metadata[b"unit"] == b"V", field.metadata
    assert (float(field.metadata[b"scale"]), float(field.metadata[b"offset"])) == (0.001, -1.0)


def check_samples(directory: Path) -> None:
    whole, torn = read(directory / "whole.arrows")
    assert not torn
    check_rules(whole)
    check_known(whole, ROWS)
    facts = account(whole)
    assert facts["strobe.complete"] == "1" and facts["strobe.end"] == "complete", facts
    assert loss(whole) == (len(LOST), MISSED)
    assert int(facts["strobe.missed.overrun"]) == MISSED and int(facts["strobe.lost"]) == len(LOST), facts

    killed, torn = read(directory / "killed.arrows")
    assert torn
    check_rules(killed)
    # The last flush held 90 rows, and the one before it is whole.
    check_known(killed, ROWS - len(LOST) - 90)
    assert account(killed)["strobe.complete"] == "0"
    assert loss(killed) == (len(LOST), MISSED)

    # The same table, with the same fields, metadata and account.
    table = parquet.read_table(directory / "whole.parquet")
    check_rules(table)
    assert table.equals(whole) and table.schema.equals(whole.schema, check_metadata=True), table.schema
    frame = polars.read_parquet(directory / "whole.parquet")
    assert frame["adc.volt"].to_list() == whole["adc.volt"].to_pylist()

    table, torn = read(directory / "faults.arrows")
    assert not torn
    check_rules(table)
    wrong = list(range(7, 200, 10))
    assert failed(table) == {"adc.3": wrong, "adc.35": wrong, "output dac.x": wrong}, failed(table)
    assert loss(table) == (0, 0) and skipped(table) == 800 and account(table)["strobe.errors"].endswith("020")
    assert table["adc.3"].to_pylist() == [None if row in wrong else row + 4 for row in range(200)]
    assert table.schema.field("output dac.x").metadata[b"output"] == b"dac.x"
    assert parquet.read_table(directory / "faults.parquet").equals(table)
    frame = polars.read_csv(directory / "faults.csv")
    assert {name: frame[name].null_count() for name in frame.columns if frame[name].null_count()} == {
        "adc.3": 20, "adc.35": 20, "output dac.x": 20}
    assert frame["adc.35"].to_list() == table["adc.35"].to_pylist()

    frame = polars.read_ipc_stream(directory / "whole.arrows")
    assert frame.height == whole.num_rows and frame["sim.counter"][0] == 2**64 - 1
    assert frame["adc.volt"].dtype == polars.Int64 and frame["adc.real"].dtype == polars.Float64

    frame = polars.read_csv(directory / "whole.csv", schema_overrides={"sim.counter": polars.UInt64})
    assert frame["row"].to_list() == whole["row"].to_pylist()
    assert frame["sim.counter"].to_list() == whole["sim.counter"].to_pylist()
    scaled = [word * 0.001 - 1.0 for word in whole["adc.volt"].to_pylist()]
    assert frame["adc.volt"].to_list() == scaled
    types = csv.ConvertOptions(column_types={"sim.counter": pyarrow.uint64()})
    table = csv.read_csv(directory / "whole.csv", convert_options=types)
    assert table["adc.real"].to_pylist() == whole["adc.real"].to_pylist()
    print(f"pyarrow {pyarrow.__version__} and polars {polars.__version__} read all files")


def main() -> None:
    path = Path(sys.argv[1])
    if path.is_dir():
        check_samples(path)
        return
    table, torn = read(path)
    check_rules(table)
    lost, missed = loss(table)
    print(f"{path.name}: {table.num_rows} rows, {lost} lost, {missed} missed, torn end: {torn}")
    for key, value in account(table).items():
        print(f"  {key} = {value}")


if __name__ == "__main__":
    main()
