# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases that need the same guest, one after the other in one; each has a result of its own.

If the guest ends before they do, the case that ran then has failed, and those after it run in another guest.
"""

import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import TREE, foreign, log
from .cases import TIMEOUT, Case, guest
from .emulator import is_mixed_up
from .jobs import COMPLAINT, Job, Result, run
from .kernel import slowness

# What the guest's script says, on stdout and in the kernel's log.
BEGIN = re.compile(r"^--- lab: (\S+) begins at ([\d.]+)\n", re.MULTILINE)
END = re.compile(r"^--- lab: (\S+) ends at ([\d.]+) with (\d+)\n", re.MULTILINE)
IN_LOG = re.compile(r"lab: case (\S*)$", re.MULTILINE)
# For all cases of a guest: they take some ten seconds each. The script ends one that takes more than TIMEOUT.
PATIENCE = 2 * TIMEOUT


@dataclass
class Shared:
    """A job of several cases."""

    kernel: str
    cases: list[Case]

    def run(self) -> list[Result]:
        results: list[Result] = []
        rest = list(self.cases)
        while rest:
            done = self.boot(rest)
            results += done
            ran = {result.job.title for result in done}
            rest = [case for case in rest if self.title(case) not in ran]
        return results

    def title(self, case: Case) -> str:
        return case.job(self.kernel).title

    def boot(self, cases: list[Case], again: bool = False) -> list[Result]:
        """Runs cases in a guest, until the guest ends. The results of at least one. A guest whose emulator has mixed up its CPU
        is started again, once, and that is said."""
        with tempfile.TemporaryDirectory(prefix="strobe-cases.") as directory:
            script, record = Path(directory) / "cases", Path(directory) / "log"
            script.write_text(script_of(cases, TIMEOUT * slowness(self.kernel)))
            words = [*guest(self.kernel, cases[0]), "--timeout", str(PATIENCE), "--file", str(script), "--log", str(record), "--", "sh", "cases"]
            ended = run(words, TREE)
            kernel_log = record.read_text(errors="replace") if record.exists() else ""
            if not again and is_mixed_up(kernel_log, f"{cases[0].name} ({self.kernel})"):
                return self.boot(cases, again=True)
            print(f"--- guest of {len(cases)} cases ({self.kernel}), {cases[0].name} the first: {ended.seconds:.1f} s, CPU {ended.cpu:.1f} s\n", flush=True)
            return self.results(cases, ended.output, ended.status, kernel_log, ended.seconds)

    def results(self, cases: list[Case], said: str, status: int, kernel_log: str, seconds: float) -> list[Result]:
        """What a guest has said, case by case; and of itself, if it has failed without a case to blame."""
        results, blamed = [], complaints(kernel_log)
        pieces = {name: text for name, text in split(said)}
        tail = said[last.end():] if (last := last_mark(said)) else said
        for case in cases:
            if case.name not in pieces:
                continue
            text, ended, took = pieces[case.name]
            complaint = blamed.pop(case.name, "")
            job = case.job(self.kernel)
            if ended is None:
                results.append(Result(job, f"{text}{complaint}\nthe guest has ended while this case ran", status or 1, seconds))
            else:
                results.append(Result(job, text + complaint, ended or (70 if complaint else 0), took))
        if not results:
            # It did not come to the first: another guest would not, either.
            results = [Result(case.job(self.kernel), tail, status or 1, seconds) for case in cases]
        elif blamed or status and not any(result.failed for result in results):
            results.append(Result(Job(f"guest of {len(results)} cases ({self.kernel})", [], TREE), tail, status or 1, seconds))
        return results


def script_of(cases: list[Case], seconds: int) -> str:
    """A shell script that runs the cases, each no longer than that, and says which it runs."""
    lines = ["now() { read -r up _ </proc/uptime; echo \"$up\"; }"]
    for case in cases:
        lines += [f"echo 'lab: case {case.name}' >/dev/kmsg",
                  f'printf "\\n--- lab: {case.name} begins at %s\\n" "$(now)"',
                  f"timeout {seconds} {shlex.join(case.command)} 2>&1",
                  f'printf "\\n--- lab: {case.name} ends at %s with %s\\n" "$(now)" $?']
    return "\n".join([*lines, "echo 'lab: case ' >/dev/kmsg", ""])


def split(said: str) -> list[tuple[str, tuple[str, int | None, float]]]:
    """What each case that has begun has said, its exit status, and how long it took; None if it has not ended."""
    marks = list(BEGIN.finditer(said))
    found = []
    for mark, following in zip(marks, [*marks[1:], None]):
        text = said[mark.end():following.start() if following else len(said)]
        end = END.search(text)
        status, took = (int(end[3]), float(end[2]) - float(mark[2])) if end else (None, 0.0)
        found.append((mark[1], (text[:end.start()] if end else text, status, took)))
    return found


def last_mark(said: str) -> re.Match[str] | None:
    return ([*BEGIN.finditer(said), *END.finditer(said)] or [None])[-1]


def complaints(kernel_log: str) -> dict[str, str]:
    """What the kernel has complained of, by the case that ran then; '' are its beginning and its end."""
    found: dict[str, str] = {}
    name = ""
    for at, piece in enumerate(IN_LOG.split(foreign.set_aside(kernel_log)[0])):
        if at % 2:
            name = piece
        elif complaint := log.fault(piece):
            found[name] = found.get(name, "") + f"\n{COMPLAINT}\n{complaint[1]}\n"
    return found
