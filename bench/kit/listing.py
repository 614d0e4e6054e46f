# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the instructions of a row go: by function, and one handler instruction by instruction."""

import re
import subprocess
from collections import Counter
from pathlib import Path

from .figures import BODY, edges, median
from .guest import Results

FUNCTIONS = 40


def listing(results: Results, module: Path) -> str:
    """The timer with one reader at 10 kHz, and the interrupt. The module is the .ko file that was loaded."""
    window = median(results).window
    rows = window.spans[BODY].count
    inside = results.symbols.by_function(window.inside)
    raised = results.symbols.by_function(results.figures["raise"].window.inside)
    parts = [f"one handler: {sum(inside.values())} instructions, and {edges(results, window)} around its marks",
             ranking(inside, 1),
             f"from the interrupt to the row: {sum(raised.values())} instructions", ranking(raised, 1),
             f"all, a row: {window.instructions / rows:.1f} instructions, the first {FUNCTIONS} functions",
             ranking(results.symbols.by_function(window.executions), rows),
             "one handler, instruction by instruction",
             "\n".join(code(module, results.symbols.module(module.stem), window.inside))]
    return "\n\n".join(parts) + "\n"


def ranking(by_function: Counter[str], rows: int) -> str:
    return "\n".join(f"{count / rows:10.2f}  {function}" for function, count in by_function.most_common(FUNCTIONS))


def code(module: Path, begins: dict[str, int], executions: dict[int, int]) -> list[str]:
    """The instructions that were executed, of the module's own functions, as objdump shows them."""
    # Calls, returns and tracepoints are shown as in the file: the kernel patches them when it loads the module.
    disassembly = subprocess.run(["objdump", "-d", "--no-show-raw-insn", module],
                                 check=True, capture_output=True, text=True)
    lines, function, origin = [], "", 0
    for line in disassembly.stdout.splitlines():
        if head := re.match(r"([0-9a-f]+) <([\w.]+)>:", line):
            origin, function = int(head[1], 16), head[2]
        elif (found := re.match(r"\s+([0-9a-f]+):\t(.+)", line)) and function in begins:
            if count := executions.get(begins[function] + int(found[1], 16) - origin):
                lines.append(f"{count:6} {function:24} {found[2]}")
    return lines
