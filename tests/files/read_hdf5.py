# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads HDF5 files of strobe as a stranger would: by h5py and the rules of NeXus, without code of strobe.

read_hdf5.py DIR      checks whole.h5 of sample_files, against whole.arrows
read_hdf5.py FILE.h5  checks what holds for every file, and prints its account
"""

import sys
from pathlib import Path

import h5py
import numpy
from pyarrow import ipc

HEADER = ("row", "trigger", "time", "status")


def default_plot(file: h5py.File) -> tuple[h5py.Dataset, list[h5py.Dataset]]:
    """Signal and axes of the default plot, found from the root by attributes alone."""
    group = file
    while "default" in group.attrs:
        group = group[group.attrs["default"]]
    assert group.attrs["NX_class"] == "NXdata", group.name
    axes = [group[name] for name in group.attrs["axes"]]
    return group[group.attrs["signal"]], axes


def account(file: h5py.File) -> dict[str, int]:
    run = file["entry/run"]
    return {name: int(run[name][()]) for name in ("rows", "triggers", "missed", "skipped", "lost", "errors", "complete")}


def failed(file: h5py.File) -> dict[str, list[int]]:
    """What failed, and the numbers of the rows in which it did."""
    data = file["entry/data"]
    marks, rows = data["failed"][:], data["row"][:]
    names = data["failed"].attrs["columns"]
    assert marks.shape == (len(rows), len(names)), marks.shape
    return {name: rows[marks[:, n] != 0].tolist() for n, name in enumerate(names) if marks[:, n].any()}


def no_value(dataset: h5py.Dataset) -> object:
    """What stands where a value failed, of a type that has no NaN."""
    return {"u": numpy.iinfo("u8").max, "i": numpy.iinfo("i8").min}[dataset.dtype.kind]


def check_rules(file: h5py.File) -> int:
    """What holds for every file at any time; answers its rows. `row` is read first: it is the last to grow."""
    data = file["entry/data"]
    rows = len(data["row"])
    columns = {name: dataset[:rows] for name, dataset in data.items()}
    assert all(len(column) == rows for column in columns.values()), {n: len(c) for n, c in columns.items()}
    row, trigger = columns["row"], columns["trigger"]
    assert (numpy.diff(row.astype("i8")) > 0).all() and (numpy.diff(trigger.astype("i8")) > 0).all()
    signal, axes = default_plot(file)
    assert signal.name.rpartition("/")[2] not in (*HEADER, "skipped", "failed")
    assert (columns["status"] < 2**32).all(), "status has flags only"
    # Where a value failed there is no number that could be one, and the mark says so.
    for name, at in failed(file).items():
        if not name.startswith("output "):
            dataset = next(d for d in data.values() if d.attrs.get("column") == name)
            values = dataset[:rows][numpy.isin(row, at)]
            wrong = numpy.isnan(values) if dataset.dtype.kind == "f" else values == no_value(dataset)
            assert wrong.all(), (name, values)
    assert [axis.name for axis in axes] == ["/entry/data/time"] and axes[0].attrs["units"] == "ns"
    # Every gap is in the table, and nothing else is.
    gaps = file["entry/gaps"]
    before = gaps["row"][:]
    known = before[before <= (row[-1] if rows else 0)]
    steps = numpy.diff(numpy.concatenate([[-1], row.astype("i8")]))
    more = numpy.diff(numpy.concatenate([[-1], trigger.astype("i8")])) - steps
    if "skipped" in columns:
        more -= numpy.diff(numpy.concatenate([[0], columns["skipped"].astype("i8")]))
    at = (steps > 1) | (more > 0)
    assert (row[at] == known).all(), (row[at], known)
    assert (gaps["lost"][: len(known)] == steps[at] - 1).all() and (gaps["missed"][: len(known)] == more[at]).all()
    facts = account(file)
    if facts["complete"]:
        assert facts["rows"] == rows + facts["lost"], facts
        assert facts["triggers"] == facts["rows"] + facts["missed"] + facts["skipped"], facts
    return rows


def check_samples(directory: Path) -> None:
    with open(directory / "whole.arrows", "rb") as stream:
        table = ipc.open_stream(stream).read_all()
    with h5py.File(directory / "whole.h5", "r") as file:
        assert check_rules(file) == table.num_rows
        data = file["entry/data"]
        by_column = {d.attrs.get("column", name): d for name, d in data.items() if name != "failed"}
        assert sorted(by_column) == sorted(table.column_names)
        for name, dataset in by_column.items():
            column = table[name].to_numpy()
            assert dataset.dtype == column.dtype and (dataset[:] == column).all(), name
        volt = data["adc.volt"].attrs
        assert (volt["units"], volt["scale"], volt["offset"]) == ("V", 0.001, -1.0), dict(volt)
        assert volt["description"] == "adc.volt, made up" and volt["type"] == "s64"
        signal, _ = default_plot(file)
        assert signal == data["sim.counter"]
        assert file["entry"].attrs["NX_class"] == "NXentry" and file["entry/title"].asstr()[()] == "timer:1kHz"
        assert file["entry/start_time"].asstr()[()] == "2026-01-01T00:00:00.000000000Z"
        run = file["entry/run"]
        assert (run.attrs["engine"], run.attrs["kernel"], run.attrs["period_ns"]) == ("kernel", "6.12.0", 1_000_000)
        assert account(file) == {"rows": 10_000, "triggers": 10_003, "missed": 3, "skipped": 0, "lost": 10, "errors": 0, "complete": 1}
        assert run["missed_by/overrun"][()] == 3 and run["end"][()] == b"complete"
        assert file["entry/gaps/row"][:].tolist() == [5_000, 8_010]
        assert file["entry/gaps/missed"][:].tolist() == [3, 0] and file["entry/gaps/lost"][:].tolist() == [0, 10]
    with h5py.File(directory / "faults.h5", "r") as file:
        assert check_rules(file) == 200
        wrong = list(range(7, 200, 10))
        assert failed(file) == {"adc.3": wrong, "adc.35": wrong, "output dac.x": wrong}, failed(file)
        assert file["entry/run"].attrs["outputs"].tolist() == ["dac.x"]
        assert file["entry/data/adc.35"][6:9].tolist() == [42, -(2**63), 44]
    print(f"h5py {h5py.__version__} (HDF5 {h5py.version.hdf5_version}) reads the file, and finds its default plot")


def main() -> None:
    path = Path(sys.argv[1])
    if path.is_dir():
        check_samples(path)
        return
    with h5py.File(path, "r", swmr=True) as file:
        rows = check_rules(file)
        signal, axes = default_plot(file)
        print(f"{path.name}: {rows} rows, plots {signal.name} over {axes[0].name}, {account(file)}")


if __name__ == "__main__":
    main()
