"""Runs the command line as a user does, in a process that may take 2 seconds of processor and 500 MB of memory."""

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
"""Of the processor that the figures in docs/contributing/benchmark.md are from, idle. Where it is slower, as long as it is slower."""
HANGING = 20
"""Seconds of processor after which a run is ended, however slow the machine is."""
WALL = 120
"""Seconds on the clock, against what waits for ever: the machine may be busy, so the time of the processor is what counts."""
YARDSTICK = 0.019
"""Seconds that `_yardstick` takes on that processor: the least of 200 runs."""
BYTES = 500 * 1024 * 1024

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n  name: x\nspec:\n  priorityLevelConfiguration:\n    name: exempt\n"
"""The start of a FlowSchema without a finding. What follows is indented by two blanks, or by none."""

HEAD_JSON = b"""{"apiVersion": "flowcontrol.apiserver.k8s.io/v1",
"kind": "FlowSchema", "metadata": {"name": "x"},
"spec": {}}
"""

NEIGHBOUR = HEAD.replace("name: x", "name: neighbour") + "  matchingPrecedence: 20000\n"
"""A file beside the hostile one, with one finding of its own (APF201), which must be there whatever the other holds."""

# ECMA-48 control characters that a terminal acts on; line feeds are ours.
_CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Run(NamedTuple):
    """What a run gave."""

    status: int
    out: str
    err: str


def apflint(folder: Path, *arguments: str, stdin: bytes | None = None, first: Callable[[], None] | None = None) -> Run:
    """`apflint ARGUMENTS` in `folder`. Fails where it takes too long or too much, or shows a traceback.

    `first` is called in the new process before it becomes apflint.
    """
    begun = _spent()
    done = subprocess.run(
        [sys.executable, "-m", "apflint", *arguments],
        cwd=folder,
        env=UNMEASURED,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=WALL,
        preexec_fn=lambda: _limit(first),  # there are no threads here
        check=False,
    )
    spent = _spent() - begun
    run = Run(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
    assert run.status in (0, 1, 2), f"killed by signal {-run.status}: {run.err[-500:]}"
    pace = max(_slowness() for _ in range(20)) if spent > SECONDS else 1
    assert spent <= SECONDS * pace, f"{spent:.1f} s of a processor that is {pace:.1f} times as slow as it could be"
    assert "Traceback" not in run.err, run.err
    assert "internal error" not in run.err, run.err
    assert not _CONTROL.search(run.err), ascii(run.err)
    return run


def _spent() -> float:
    """Seconds of processor of the processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _slowness() -> float:
    """How many times as long as on an idle machine a run takes now, by a fixed piece of work of the same sort; 1 at least."""
    return max(1.0, _yardstick() / YARDSTICK)


def _yardstick() -> float:
    """Makes, prints and takes apart some ten thousand objects: how many seconds of processor that took."""
    begin = time.process_time()
    made = [str({"name": f"x{number}", "values": [number]}) for number in range(30_000)]
    assert len("".join(made).split("x")) == 30_001
    return time.process_time() - begin


def _limit(first: Callable[[], None] | None) -> None:
    if first is not None:
        first()
    resource.setrlimit(resource.RLIMIT_CPU, (HANGING, HANGING))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def ordinary() -> None:
    """Gives up what lets root read and write everything. PermissionError where not even that is allowed."""
    if os.geteuid() == 0:
        library = ctypes.CDLL(None)
        for capability in (1, 2, 3):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
            if library.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                raise PermissionError


def can_be_ordinary() -> bool:
    """Whether there can be a process for which permissions count."""
    try:
        subprocess.run([sys.executable, "-c", ""], preexec_fn=ordinary, check=True)
    except (subprocess.SubprocessError, AttributeError):
        return False
    return True


def checked(folder: Path, *arguments: str, printed: bool = False) -> tuple[Run, list[dict[str, Any]]]:
    """Checks a folder beside a good neighbour: the run, and the findings but for the neighbour's.

    With `printed` it is checked as text too: the status is the same, and nothing printed works upon a terminal.
    """
    (folder / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(folder, "check", "--format", "json", *arguments, ".")
    if printed:
        text = apflint(folder, "check", "--verbose", *arguments, ".")
        assert text.status == run.status
        assert not _CONTROL.search(text.out)
    findings = json.loads(run.out)["findings"]
    theirs = [found for found in findings if found["file"] == "neighbour.yaml"]
    assert [found["rule"] for found in theirs] == ["APF201"]
    return run, [found for found in findings if found["file"] != "neighbour.yaml"]
