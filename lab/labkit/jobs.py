# SPDX-License-Identifier: MIT OR Apache-2.0
"""Test jobs: programs that run side by side, print one after the other, and are counted together."""

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

REASONS = 12
REPORT = 40  # lines of a kernel's complaint: its calls, and whose handlers a line has, come after a page of registers
SKIPPED = re.compile(r"^skipped: (.*)$", re.MULTILINE)
COMPLAINT = "the guest's kernel complains:"
REASON = re.compile(r"^failed:|^  (is|wanted):|panicked at|^(FAIL|ERROR|FAILED)\b|^test .* FAILED$|\w+Error: |^error\b|kernel complains: ")


@dataclass
class Job:
    """One program that tests something."""

    title: str
    command: list[str]
    directory: Path
    environment: dict[str, str] | None = None

    def run(self) -> "list[Result]":
        ended = run(self.command, self.directory, self.environment)
        return [Result(self, ended.output, ended.status, ended.seconds, ended.cpu)]


@dataclass
class Ended:
    """A program that has ended."""

    output: str  # stdout and stderr
    status: int
    seconds: float
    cpu: float  # seconds: its own, and of all programs that it has waited for


def run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> Ended:
    """Runs a program to its end."""
    start = time.monotonic()
    # It ends when this program does, whatever ends it.
    with subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *command], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as program:
        output = program.stdout.read() if program.stdout else ""
        _, status, used = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
    return Ended(output, program.returncode, time.monotonic() - start, used.ru_utime + used.ru_stime)


@dataclass
class Result:
    """What a job has said."""

    job: Job
    output: str
    status: int
    seconds: float
    cpu: float | None = None  # seconds, of all its processes; unknown for one of several that share a guest
    passed: int = field(init=False)
    failed: int = field(init=False)

    def __post_init__(self) -> None:
        self.passed, self.failed = count(self.output)
        # A job that failed as a whole, without a test to name, is one failure: it must not go uncounted.
        if self.status and not self.failed:
            self.failed = 1
        if not self.status and not self.passed:
            self.output += f"\n{self.job.title}: no test was run\n"
            self.failed = self.failed or 1

    def skipped(self) -> list[str]:
        """Why tests of cargo were not done here; `tests/skip.rs` says it."""
        return sorted(set(SKIPPED.findall(self.output)))

    def reasons(self) -> list[str]:
        """The lines that tell what failed; without any, the last ones."""
        lines = self.output.splitlines()
        telling = [line for line in lines if REASON.search(line)][:REASONS]
        report = next((number for number, line in enumerate(lines) if line.endswith(COMPLAINT)), len(lines))
        return telling + lines[report:report + REPORT] or lines[-REASONS:]


def count(output: str) -> tuple[int, int]:
    """Passed and failed tests, as the harnesses of cargo and of Python report them, or a plain line."""
    passed = failed = 0
    for good, bad in re.findall(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE):
        passed, failed = passed + int(good), failed + int(bad)
    for good, bad in re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed", output, re.MULTILINE):
        passed, failed = passed + int(good), failed + int(bad)
    for ran, verdict in re.findall(r"^Ran (\d+) tests? in .*\n\n(.*)$", output, re.MULTILINE):
        bad = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", verdict))
        skipped = sum(int(number) for number in re.findall(r"skipped=(\d+)", verdict))
        passed, failed = passed + int(ran) - bad - skipped, failed + bad
    return passed - len(SKIPPED.findall(output)), failed


class Runs(Protocol):
    """What has one result or more: a job, or several that share a guest."""

    def run(self) -> list[Result]: ...


def first(jobs: deque[Runs]) -> Runs | None:
    """Takes the first job, if there is one. Another lane may have taken the last one at this moment."""
    try:
        return jobs.popleft()
    except IndexError:
        return None


def run_all(*queues: tuple[Iterable[Runs], int]) -> list[Result]:
    """Runs the jobs of all queues, of each so many at once. Each one's output is printed in one piece, when it has ended.

    Who finds a queue empty goes on with those after it, but never with those before: these may not have more at once.
    """
    left = [deque(jobs) for jobs, _ in queues]
    ended: SimpleQueue[list[Result] | None] = SimpleQueue()

    def lane(queue: int) -> None:
        try:
            for jobs in left[queue:]:
                while job := first(jobs):
                    ended.put(job.run())
        finally:
            ended.put(None)

    results = []
    parallel = [queue for queue, (_, parallel) in enumerate(queues) for _ in range(parallel)]
    with ThreadPoolExecutor(len(parallel)) as pool:
        lanes = [pool.submit(lane, queue) for queue in parallel]
        for result in (result for _ in lanes for some in iter(ended.get, None) for result in some):
            state = "FAILED" if result.failed else "ok"
            cpu = "" if result.cpu is None else f", CPU {result.cpu:.1f} s"
            print(f"--- {result.job.title}\n{result.output.rstrip()}\n"
                  f"--- {state} {result.job.title}: {result.passed} passed, {result.failed} failed, "
                  f"exit status {result.status}, {result.seconds:.1f} s{cpu}\n")
            sys.stdout.flush()
            results.append(result)
    for done in lanes:
        done.result()
    return results
