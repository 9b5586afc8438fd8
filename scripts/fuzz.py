"""Throw hostile input at apflint: no traceback, no hang, no exit status but 0, 1 and 2, and output that parses.

    python scripts/fuzz.py --seconds 60 --seed 1
    python scripts/fuzz.py --only 1:4711        one input again, with what it is and what it says

An input is known by the seed and its number: the same two give the same files and the same command line. Inputs are made
of the manifests in fixtures/, of random bytes, and of what `fuzz_inputs` puts in their place. A process of its own runs
them, hundreds a second, so that one that hangs or kills its process is seen as well.
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

PATIENCE = 20.0
"""Seconds after which an input counts as one that hangs. The machine may be busy with other work."""
MEMORY = 2 * 1024**3
"""Bytes of address space that the process of the inputs may have."""


class Failure(NamedTuple):
    """An input that went wrong: by its number, and how."""

    number: int
    what: str


class _Output(io.TextIOWrapper):
    """Standard output or error in memory, bytes and text, as the real ones take them."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", errors="strict", write_through=True)


def run(given: Input) -> tuple[int | str, str, str]:
    """Runs apflint on an input in the current folder: exit status or traceback, standard output, standard error."""
    from apflint import cli

    for name, data in given.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
    out, err = _Output(), _Output()
    old = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.stdin), encoding="utf-8")
    status: int | str
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = cli.run(list(given.arguments))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else f"SystemExit({error.code!r})"
    except BaseException:  # noqa: BLE001  # whatever comes is what is looked for
        status = traceback.format_exc()
    finally:
        sys.stdin = old
    return status, out.bytes.getvalue().decode("utf-8", "replace"), err.bytes.getvalue().decode("utf-8", "replace")


def wrong(given: Input, status: int | str, output: str, errors: str) -> str | None:
    """What is wrong with how a run ended, if anything."""
    if status not in (0, 1, 2):
        return f"exit status {status}"
    for sign in ("Traceback (most recent call last)", "internal error"):
        if sign in errors or (sign in output and given.arguments[0] != "fix"):
            return f"{sign}: {errors[-500:]}"
    edits = given.arguments[0] in ("fix", "migrate") or "--diff" in given.arguments  # they print the text itself
    control = [char for char in (errors if edits else output + errors) if ord(char) < 32 and char not in "\n\r\t"]
    if control:
        return f"a raw control character {control[0]!r} in the output"
    if status == 2 and not errors:
        return "exit status 2 without a word"
    if given.format and output and (problem := _unreadable(given.format, output)):
        return f"{given.format} that is none: {problem}"
    return None


def _unreadable(form: str, output: str) -> str | None:
    try:
        if form in ("json", "sarif", "gitlab"):
            json.loads(output)
        elif form == "junit":
            ET.fromstring(output)  # our own output
        elif form == "github" and not all(line.startswith("::") for line in output.splitlines() if line):
            return "a line that is no command"
    except (ValueError, ET.ParseError) as error:
        return str(error)
    return None


def work(seed: int, start: int) -> None:
    """The process of the inputs: runs one after the other, and says which one it is at, and what went wrong."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    maker, said, number = Maker(seed), sys.stdout, start
    with tempfile.TemporaryDirectory(prefix="apflint-fuzz-") as folder:
        while True:
            place = Path(folder) / "input"
            place.mkdir()
            os.chdir(place)
            print(json.dumps(["at", number]), file=said, flush=True)
            given = maker.make(number)
            begin = time.process_time()
            what = wrong(given, *run(given))
            spent = time.process_time() - begin
            if what is None and spent > PATIENCE / 4:
                what = f"{spent:.1f} s of work"
            if what is not None:
                print(json.dumps(["wrong", number, what]), file=said, flush=True)
            os.chdir(folder)
            shutil.rmtree(place, ignore_errors=True)
            number += 1


def command(seed: int, start: int) -> list[str]:
    """The command line of the process of the inputs."""
    return [sys.executable, __file__, "--work", f"{seed}:{start}"]


class _Process:
    """The process of the inputs, as it is seen from outside."""

    def __init__(self, seed: int, start: int) -> None:
        self.process = subprocess.Popen(command(seed, start), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def lines(self, until: float) -> Iterator[list[object] | None]:
        """What it says; None at the end of the time, and when it ends or says nothing for too long."""
        assert self.process.stdout is not None
        left = ""
        heard = time.monotonic()
        while (now := time.monotonic()) < until and now - heard < PATIENCE:
            if not self.selector.select(min(until - now, 1.0)):
                continue
            new = self.process.stdout.read()
            if not new:
                break
            heard = time.monotonic()
            *whole, left = (left + new).split("\n")
            yield from (json.loads(line) for line in whole)
        yield None

    def end(self) -> str:
        """Stops it; the last words of its standard error."""
        self.process.kill()
        _, errors = self.process.communicate()
        return errors[-500:]


def fuzz(seconds: float, seed: int) -> tuple[int, list[Failure]]:
    """Runs inputs for so long; how many, and what went wrong."""
    until = time.monotonic() + seconds
    failures: list[Failure] = []
    number = -1
    while time.monotonic() < until:
        process = _Process(seed, number + 1)
        for line in process.lines(until):
            if line is None:
                break
            if line[0] == "at":
                number = int(str(line[1]))
            else:
                failures.append(Failure(int(str(line[1])), str(line[2])))
                print(f"{seed}:{number}: {line[2]}", flush=True)
        errors = process.end()
        if time.monotonic() < until:
            failures.append(Failure(number, f"hung, or killed its process: {errors}"))
            print(f"{seed}:{number}: {failures[-1].what}", flush=True)
    return number + 1, failures


def show(seed: int, number: int) -> int:
    """Runs one input again and tells all about it."""
    given = Maker(seed).make(number)
    with tempfile.TemporaryDirectory(prefix="apflint-fuzz-") as folder:
        os.chdir(folder)
        result = run(given)
        os.chdir("/")
    for name, data in given.files.items():
        print(f"--- {name}: {data!r}")
    print(f"--- standard input: {given.stdin!r}\n--- apflint {' '.join(map(repr, given.arguments))}")
    print(f"--- exit status: {result[0]}\n--- output:\n{result[1]}\n--- errors:\n{result[2]}")
    problem = wrong(given, *result)
    print(f"--- {problem or 'nothing wrong'}")
    return int(problem is not None)


def main() -> int:
    """The exit status: 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="SEED:NUMBER", help="run one input again and show it")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        seed, start = map(int, options.work.split(":"))
        work(seed, start)
    if options.only:
        seed, number = map(int, options.only.split(":"))
        return show(seed, number)
    count, failures = fuzz(options.seconds, options.seed)
    print(f"{count:,} inputs in {options.seconds:g} s, seed {options.seed}: {len(failures)} went wrong")
    return int(bool(failures) or not count)


if __name__ == "__main__":
    sys.exit(main())
