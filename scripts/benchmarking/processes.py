"""Whole processes, taken in turn, and what each costs."""

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

_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes: getrusage(2)


class Cost(NamedTuple):
    """What one process took. Other work on the machine disturbs `processor` (user and system) least."""

    seconds: float
    processor: float
    memory: int
    """Bytes at the peak, those of whoever started the process at the least."""


def in_turn(
    commands: Mapping[str, Sequence[str]],
    folder: Path,
    runs: int,
    of: Callable[[Sequence[float]], float] = statistics.median,
) -> dict[str, Cost]:
    """What whole processes cost: each command once without being measured, then all of them in turn, `runs` times.

    Of the runs the median is told, or what `of` makes of them. Output goes nowhere. SystemExit for an exit status that is not 0 or 1, the one for findings.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            cost = _once(command, folder)
            if turn:  # the first one reads the disk
                costs[name].append(cost)
    return {name: _cost(found, of) for name, found in costs.items()}


def _cost(found: Sequence[Cost], of: Callable[[Sequence[float]], float]) -> Cost:
    seconds, processor, memory = zip(*found, strict=True)
    return Cost(of(seconds), of(processor), round(of(memory)))


def _once(command: Sequence[str], folder: Path) -> Cost:
    back = os.getcwd()
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.chdir(folder)  # posix_spawn has no folder of its own
    try:
        begin = time.perf_counter()
        redirected = [(os.POSIX_SPAWN_DUP2, nowhere, descriptor) for descriptor in (0, 1, 2)]
        process = os.posix_spawnp(command[0], list(command), environment(), file_actions=redirected)
        _, status, used = os.wait4(process, 0)
        taken = time.perf_counter() - begin
    finally:
        os.chdir(back)
        os.close(nowhere)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{shlex.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(taken, used.ru_utime + used.ru_stime, used.ru_maxrss * _UNIT)


def environment() -> dict[str, str]:
    """The environment of what is measured: bytecode is kept, and modules come from where they are installed."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
