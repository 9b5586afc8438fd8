"""Run apflint on hostile input. Required: no traceback, no hang, an exit code of 0, 1 or 2, and output that can be parsed.

    python scripts/fuzz.py --seconds 60 --seed 1
    python scripts/fuzz.py --only 1:4711        run one input again, and print the input and the output

The seed and the number of an input determine its files and its command line. Inputs are made from the manifests in
fixtures/, random bytes, and the mutations of `fuzz_inputs`. The inputs run in a separate process, hundreds per second,
so that the script also detects inputs that hang or kill this process.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import xml.etree.ElementTree as ET
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fuzz_inputs import Input, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_SECONDS = 20.0
"""Seconds after which an input counts as hanging. The machine may be busy with other work."""
MAX_MEMORY_BYTES = 2 * 1024**3
"""Maximum address space of the process that runs the inputs."""


class Failure(NamedTuple):
    """The number of an input with a wrong result, and the problem."""

    number: int
    problem: str


class _Output(io.TextIOWrapper):
    """Standard output or error in memory, for both bytes and text."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", errors="strict", write_through=True)


def run(fuzz_input: Input) -> tuple[int | str, str, str]:
    """Run apflint on an input in the current directory. Returns exit code or traceback, standard output and standard error."""
    from apflint.cli import main

    for name, data in fuzz_input.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
    out, err = _Output(), _Output()
    old = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(fuzz_input.stdin), encoding="utf-8")
    status: int | str
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = main.run(list(fuzz_input.arguments))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else f"SystemExit({error.code!r})"
    except BaseException:  # noqa: BLE001  # every exception is a finding
        status = traceback.format_exc()
    finally:
        sys.stdin = old
    return status, out.bytes.getvalue().decode("utf-8", "replace"), err.bytes.getvalue().decode("utf-8", "replace")


def find_problem(fuzz_input: Input, status: int | str, output: str, errors: str) -> str | None:
    """Return the problem with the result of a run, or None if the result is correct."""
    if status not in (0, 1, 2):
        return f"exit status {status}"
    for sign in ("Traceback (most recent call last)", "internal error"):
        if sign in errors or (sign in output and fuzz_input.arguments[0] != "fix"):
            return f"{sign}: {errors[-500:]}"
    # The output of these commands contains lines of the input file, which may have control characters.
    edits = fuzz_input.arguments[0] in ("fix", "migrate") or "--diff" in fuzz_input.arguments
    control = [char for char in (errors if edits else output + errors) if ord(char) < 32 and char not in "\n\r\t"]
    if control:
        return f"a raw control character {control[0]!r} in the output"
    if status == 2 and not errors:
        return "exit status 2 without a message"
    if fuzz_input.format and output and (problem := _unreadable(fuzz_input.format, output)):
        return f"invalid {fuzz_input.format}: {problem}"
    return None


def _unreadable(form: str, output: str) -> str | None:
    try:
        if form in ("json", "sarif", "gitlab"):
            json.loads(output)
        elif form == "junit":
            ET.fromstring(output)  # apflint wrote this XML, so it is not hostile
        elif form == "github" and not all(line.startswith("::") for line in output.splitlines() if line):
            return "a line that is not a command"
    except (ValueError, ET.ParseError) as error:
        return str(error)
    return None


def run_inputs(seed: int, start: int) -> None:
    """Run inputs one after the other, and print the number and the problem of each. Never returns."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    maker, stdout, number = Maker(seed), sys.stdout, start
    with tempfile.TemporaryDirectory(prefix="apflint-fuzz-") as directory:
        while True:
            place = Path(directory) / "input"
            place.mkdir()
            os.chdir(place)
            print(json.dumps(["at", number]), file=stdout, flush=True)
            fuzz_input = maker.make(number)
            begin = time.process_time()
            problem = find_problem(fuzz_input, *run(fuzz_input))
            spent = time.process_time() - begin
            if problem is None and spent > TIMEOUT_SECONDS / 4:
                problem = f"{spent:.1f} s of CPU time"
            if problem is not None:
                print(json.dumps(["wrong", number, problem]), file=stdout, flush=True)
            os.chdir(directory)
            shutil.rmtree(place, ignore_errors=True)
            number += 1


def worker_command(seed: int, start: int) -> list[str]:
    """Return the command line of the process that runs the inputs."""
    return [sys.executable, __file__, "--work", f"{seed}:{start}"]


class _Worker:
    """The process that runs the inputs."""

    def __init__(self, seed: int, start: int) -> None:
        self.process = subprocess.Popen(
            worker_command(seed, start), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read_lines(self, until: float) -> Iterator[list[object] | None]:
        """Yield the parsed value of each line of JSON that the process prints, and finally None.

        The iteration ends at the time `until`, or earlier if the process ends or prints nothing
        for `TIMEOUT_SECONDS`.
        """
        assert self.process.stdout is not None
        rest = ""
        last_output = time.monotonic()
        while (now := time.monotonic()) < until and now - last_output < TIMEOUT_SECONDS:
            if not self.selector.select(min(until - now, 1.0)):
                continue
            new = self.process.stdout.read()
            if not new:
                break
            last_output = time.monotonic()
            *lines, rest = (rest + new).split("\n")
            yield from map(json.loads, lines)
        yield None

    def stop(self) -> str:
        """Kill the process. Returns the end of its standard error."""
        self.process.kill()
        _, errors = self.process.communicate()
        return errors[-500:]


def fuzz(seconds: float, seed: int) -> tuple[int, list[Failure]]:
    """Run inputs for `seconds`. Return the number of inputs and the failures."""
    until = time.monotonic() + seconds
    failures: list[Failure] = []
    number = -1
    while time.monotonic() < until:
        worker = _Worker(seed, number + 1)
        for line in worker.read_lines(until):
            if line is None:
                break
            if line[0] == "at":
                number = int(str(line[1]))
            else:
                failures.append(Failure(int(str(line[1])), str(line[2])))
                print(f"{seed}:{number}: {line[2]}", flush=True)
        errors = worker.stop()
        if time.monotonic() < until:
            failures.append(Failure(number, f"hangs or kills its process: {errors}"))
            print(f"{seed}:{number}: {failures[-1].problem}", flush=True)
    return number + 1, failures


def show_input(seed: int, number: int) -> int:
    """Run one input again. Print the input and the result. Returns the exit code."""
    fuzz_input = Maker(seed).make(number)
    with tempfile.TemporaryDirectory(prefix="apflint-fuzz-") as directory:
        os.chdir(directory)
        result = run(fuzz_input)
        os.chdir("/")
    for name, data in fuzz_input.files.items():
        print(f"--- {name}: {data!r}")
    print(f"--- standard input: {fuzz_input.stdin!r}\n--- apflint {' '.join(map(repr, fuzz_input.arguments))}")
    print(f"--- exit code: {result[0]}\n--- output:\n{result[1]}\n--- errors:\n{result[2]}")
    problem = find_problem(fuzz_input, *result)
    print(f"--- {problem or 'nothing wrong'}")
    return int(problem is not None)


def main() -> int:
    """Run the inputs that the command line selects. Return 1 if an input failed, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="SEED:NUMBER", help="run one input again and show it")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        seed, start = map(int, options.work.split(":"))
        run_inputs(seed, start)
    if options.only:
        seed, number = map(int, options.only.split(":"))
        return show_input(seed, number)
    count, failures = fuzz(options.seconds, options.seed)
    print(f"{count:,} inputs in {options.seconds:g} s, seed {options.seed}: {len(failures)} went wrong")
    return int(bool(failures) or not count)


if __name__ == "__main__":
    sys.exit(main())
