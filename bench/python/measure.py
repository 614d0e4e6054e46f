# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures how fast Python gets rows, beside the Rust library and beside other clients, by turns."""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import strobe
import ways
from daemon import Daemon

#: Of Rust's rows a second, what Python is to have.
TARGET = 0.8
BEGIN, END = "<!-- python: begin -->", "<!-- python: end -->"
PACKAGES = ("numpy", "h5py", "p4p", "pandablocks")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/python/run", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="rows that each way reads (default: 500000)")
    parser.add_argument("--rounds", type=int, default=9, help="how often (default: 9)")
    parser.add_argument("--memory", type=int, default=100_000_000, help="rows that are read to see whether memory grows; 0: none")
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    parser.add_argument("--into", metavar="FILE", help="puts the tables into this document, between its marks")
    options = parser.parse_args()
    figures = {"machine": machine(), "rows": options.rows, "rounds": options.rounds, "ways": measure(options.rows, options.rounds)}
    if options.memory:
        figures["memory"] = memory(options.memory)
    figures["load_after"] = os.getloadavg()[0]
    text = json.dumps(figures, indent=2) if options.json else table(figures)
    print(text)
    if options.into:
        put(Path(options.into), table(figures))
    return 0 if figures["ways"]["Python, blocks"]["of_rust"] >= TARGET else 3


def machine() -> dict[str, object]:
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown")
    return {"cpus": os.cpu_count(), "model": model, "linux": platform.release(), "load": os.getloadavg()[0],
            "versions": {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}}


def measure(rows: int, rounds: int) -> dict[str, dict[str, object]]:
    with ExitStack() as stack:
        run = stack.enter_context(ways.run_of(strobe.run, rows))
        rust = ways.Rust(run)
        stack.callback(rust.close)
        daemon = Daemon(config=f"[spool]\nrecent = {2 * rows * 8 * (4 + len(ways.CHANNELS))}\n")
        stack.callback(daemon.close)
        remote = stack.enter_context(ways.run_of(strobe.connect(daemon.url).run, rows))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strobe-bench-")))
        recorded = stack.enter_context(ways.run_of(strobe.run, rows))
        recorded.stop()
        recorded.record(folder / "rows.h5")
        panda, epics = stack.enter_context(ways.panda(rows)), stack.enter_context(ways.epics(rows))
        all_ways: dict[str, Callable[[], tuple[float, ways.Read]]] = {
            "Rust, blocks": rust.read,
            "Python, blocks": timed(lambda: ways.blocks(run, rows)),
            "Python, asyncio": timed(lambda: ways.by_asyncio(run, rows)),
            "Python, a server's by HTTP": timed(lambda: ways.blocks(remote, rows)),
            "Python, strobe.open of the .h5": timed(lambda: ways.blocks(strobe.open(folder / "rows.h5"), rows)),
            "h5py, the same .h5": timed(lambda: ways.by_h5py(folder / "rows.h5")),
            "pandablocks, 8 channels": timed(panda),
            "strobe-epics into its .h5, 8 channels": timed(epics),
        }
        rates: dict[str, list[float]] = {name: [] for name in all_ways}
        parts = {}
        for number in range(rounds + 1):
            for name, way in all_ways.items():
                seconds, (count, parts[name]) = way()
                if count != rows:
                    raise SystemExit(f"bench/python: {name}: {count} of {rows} rows")
                # The first time, memory is mapped and files are read into memory.
                if number:
                    rates[name].append(rows / seconds)
    ratios = {name: [one / base for one, base in zip(found, rates["Rust, blocks"])] for name, found in rates.items()}
    return {name: {"rows_a_second": found, "of_rust": statistics.median(ratios[name]), "rows_a_part": rows / parts[name]}
            for name, found in rates.items()}


def timed(way: Callable[[], ways.Read]) -> Callable[[], tuple[float, ways.Read]]:
    def measured() -> tuple[float, ways.Read]:
        begin = time.perf_counter()
        found = way()
        return time.perf_counter() - begin, found

    return measured


def memory(rows: int) -> dict[str, float]:
    """Resident memory while one reader reads so many rows, as they are made: at a tenth, and the most after that."""
    at_once = 60_000
    with strobe.run(event="soft", read=["sim.counter"], ring=1 << at_once.bit_length(), engine="user") as run:
        run.start()
        begin, most, count, made = 0, 0, 0, 0
        began = time.perf_counter()
        reader = run.read(0, on_loss="raise")
        while count < rows:
            run.trigger(at_once)
            made += at_once
            while count < made:
                count += len(next(reader))
            if not begin and count >= rows // 10:
                begin = resident()
            if begin:
                most = max(most, resident())
        seconds = time.perf_counter() - began
        account = run.account
        if (account.rows, account.missed, account.lost) != (count, 0, 0):
            raise SystemExit(f"bench/python: {account}")
    return {"rows": count, "seconds": seconds, "kib_at_a_tenth": begin, "kib_most": most}


def resident() -> int:
    """KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def table(figures: dict) -> str:
    of = figures["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in of["versions"].items())
    lines = [f"Linux {of['linux']}, {of['cpus']} CPUs ({of['model']}), load {of['load']:.1f} before and {figures['load_after']:.1f} "
             f"after; {versions}.", "",
             "| way | million rows a second, least | median | most | of Rust | target | met | rows a part |",
             "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    for name, found in figures["ways"].items():
        rates = [rate / 1e6 for rate in found["rows_a_second"]]
        target, met = (f">= {TARGET}", "yes" if found["of_rust"] >= TARGET else "no") if name == "Python, blocks" else ("-", "-")
        part = f"{found['rows_a_part']:.0f}" if "epics" not in name else "-"
        lines.append(f"| {name} | {min(rates):.2f} | {statistics.median(rates):.2f} | {max(rates):.2f} | {found['of_rust']:.2f} "
                     f"| {target} | {met} | {part} |")
    lines += ["", f"{figures['rows']} rows of {len(ways.CHANNELS)} channels ({8 * (4 + len(ways.CHANNELS))} bytes); "
              f"{figures['rounds']} rounds."]
    if memory := figures.get("memory"):
        lines.append(f"Memory: {memory['rows']:.0f} rows read as they were made, in {memory['seconds']:.0f} s; resident "
                     f"{memory['kib_at_a_tenth']:.0f} KiB after a tenth, at most {memory['kib_most']:.0f} KiB after that.")
    return "\n".join(lines)


def put(document: Path, tables: str) -> None:
    text = document.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"bench/python: {document} has no marks {BEGIN} and {END}: add them where the table goes")
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    document.write_text(f"{head}{BEGIN}\n\n{tables}\n\n{END}{tail}")


if __name__ == "__main__":
    sys.exit(main())
