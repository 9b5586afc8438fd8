"""Measures the time and memory of processes."""

from __future__ import annotations

import os
import shlex
import statistics
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss, see getrusage(2)


class Cost(NamedTuple):
    """The cost of a process.

    `cpu` is user and system time in seconds, on which other work on the machine has little effect.
    """

    seconds: float
    cpu: float
    memory: int
    """Peak memory in bytes. The value is at least the memory of the parent process."""


def measure_in_turn(
    commands: Mapping[str, Sequence[str]],
    directory: Path,
    runs: int,
    of: Callable[[Sequence[float]], float] = statistics.median,
) -> dict[str, Cost]:
    """Return the cost of each command: the median of its runs, or the value that `of` computes from its runs.

    The memory is the maximum of all runs.

    Runs each command once without measuring, and then all commands in turn, `runs` times. Discards their output. Raises
    SystemExit for an exit code other than 0 and 1 (findings).
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            cost = _measure(command, directory)
            if turn:  # the first run does not count, because it reads files from disk
                costs[name].append(cost)
    return {name: _combine(runs_of_command, of) for name, runs_of_command in costs.items()}


def _combine(costs: Sequence[Cost], of: Callable[[Sequence[float]], float]) -> Cost:
    seconds, cpu, memory = zip(*costs, strict=True)
    return Cost(of(seconds), of(cpu), max(memory))


def _measure(command: Sequence[str], directory: Path) -> Cost:
    old_directory = os.getcwd()
    null = os.open(os.devnull, os.O_RDWR)
    os.chdir(directory)  # posix_spawn has no option for the directory
    try:
        begin = time.perf_counter()
        redirected = [(os.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in (0, 1, 2)]
        process = os.posix_spawnp(command[0], list(command), environment(), file_actions=redirected)
        _, status, used = os.wait4(process, 0)
        seconds = time.perf_counter() - begin
    finally:
        os.chdir(old_directory)
        os.close(null)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{shlex.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * _UNIT)


def environment() -> dict[str, str]:
    """Return the environment variables for a measured process.

    Variables of Python are omitted, because they may disable the bytecode cache, which makes imports slower.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
