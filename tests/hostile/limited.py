"""Runs the command line as a user does, in a process that is limited to 2 seconds of CPU time and 500 MB of memory."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from conftest import UNMEASURED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 2
"""CPU time limit on the processor of docs/contributing/benchmark.md. The limit is scaled by `_slowness` on slower
machines."""
HANGING = 20
"""Seconds of CPU time after which a run is killed, even on a slow machine."""
WALL = 120
"""Seconds of wall-clock time after which a run counts as hanging. CPU time is the actual limit, because the machine may
be busy."""
YARDSTICK = 0.019
"""Seconds that `_yardstick` takes on the processor of the benchmark: the minimum of 200 runs."""
BYTES = 500 * 1024 * 1024

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n  name: x\nspec:\n  priorityLevelConfiguration:\n    name: exempt\n"
"""The start of a FlowSchema without findings. Tests append text, indented by two spaces or not at all."""

HEAD_JSON = b"""{"apiVersion": "flowcontrol.apiserver.k8s.io/v1",
"kind": "FlowSchema", "metadata": {"name": "x"},
"spec": {}}
"""

NEIGHBOUR = HEAD.replace("name: x", "name: neighbour") + "  matchingPrecedence: 20000\n"
"""A file next to the hostile file. Its only finding (APF201) must be reported for every content of the hostile file."""

# ECMA-48 control characters that a terminal interprets, except line feeds, which apflint prints itself.
_CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Run(NamedTuple):
    """The result of a run: exit code, output, CPU time and memory."""

    status: int
    out: str
    err: str


def apflint(
    directory: Path,
    *arguments: str,
    stdin: bytes | None = None,
    first: Callable[[], None] | None = None,
    seconds: float = SECONDS,
) -> Run:
    """Run `apflint ARGUMENTS` in `directory`. Fails if the run exceeds a limit or prints a traceback.

    `first` is called in the child process before apflint starts. `seconds` is the limit for this command in
    docs/security.md.
    """
    begun = _spent()
    done = subprocess.run(
        [sys.executable, "-m", "apflint", *arguments],
        cwd=directory,
        env=UNMEASURED,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=WALL,
        preexec_fn=lambda: _limit(first),  # preexec_fn is safe, because this process has no threads
        check=False,
    )
    spent = _spent() - begun
    run = Run(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
    assert run.status in (0, 1, 2), f"killed by signal {-run.status}: {run.err[-500:]}"
    pace = max(_slowness() for _ in range(20)) if spent > seconds else 1
    assert spent <= seconds * pace, f"{spent:.1f} s of a processor that is {pace:.1f} times as slow as it could be"
    assert "Traceback" not in run.err, run.err
    assert "internal error" not in run.err, run.err
    assert not _CONTROL.search(run.err), ascii(run.err)
    return run


def _spent() -> float:
    """Return the CPU time of ended child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _slowness() -> float:
    """Return the factor by which this machine is slower than the machine of the benchmark, and at least 1."""
    return max(1.0, _yardstick() / YARDSTICK)


def _yardstick() -> float:
    """Create, format and delete some ten thousand objects, and return the CPU time in seconds."""
    begin = time.process_time()
    texts = [str({"name": f"x{number}", "values": [number]}) for number in range(30_000)]
    assert len("".join(texts).split("x")) == 30_001
    return time.process_time() - begin


def _limit(first: Callable[[], None] | None) -> None:
    if first is not None:
        first()
    resource.setrlimit(resource.RLIMIT_CPU, (HANGING, HANGING))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def ordinary() -> None:
    """Drop the capabilities with which root reads and writes all files. Raises PermissionError if this is not allowed."""
    if os.geteuid() == 0:
        library = ctypes.CDLL(None)
        for capability in (1, 2, 3):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
            if library.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                raise PermissionError


def can_be_ordinary() -> bool:
    """Return whether tests can run a process that file permissions restrict, even as root."""
    try:
        subprocess.run([sys.executable, "-c", ""], preexec_fn=ordinary, check=True)
    except (subprocess.SubprocessError, AttributeError):
        return False
    return True


def checked(directory: Path, *arguments: str, printed: bool = False) -> tuple[Run, list[dict[str, Any]]]:
    """Check a directory with a valid neighbour file, and return the run and the findings except those of the neighbour.

    With `printed`, also check the text output: the exit code is the same, and the output has no control characters.
    """
    (directory / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(directory, "check", "--format", "json", *arguments, ".")
    if printed:
        text = apflint(directory, "check", "--verbose", *arguments, ".")
        assert text.status == run.status
        assert not _CONTROL.search(text.out)
    findings = json.loads(run.out)["findings"]
    theirs = [finding for finding in findings if finding["file"] == "neighbour.yaml"]
    assert [their["rule"] for their in theirs] == ["APF201"]
    return run, [finding for finding in findings if finding["file"] != "neighbour.yaml"]
