"""A pytest plugin that runs the tests for each mutant.

The plugin collects the tests once. For each mutant, a fork of this process runs the tests.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import select
import signal
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import coverage

from mutating.exchange import clear, find_caches, find_functions, replace_code, runs_alone
from mutating.mutations import ROOT, find_mutants, make_controls
from mutating.records import EQUAL, KILLED, identify, read_records

if TYPE_CHECKING:
    import argparse
    from types import FunctionType

    import libcst as cst
    import pytest

    from mutating.mutations import Mutant

MAX_EXAMPLES = 20
"""Maximum number of examples of a property test for each mutant."""
SETTINGS = "_hypothesis_internal_use_settings"
"""Attribute in which hypothesis stores the settings of a test."""


class Baseline(NamedTuple):
    """The result of a run without mutants. Tests are identified by number."""

    tests: list[str]
    seconds: list[float]
    lines: dict[str, dict[int, list[int]]]
    """For each file and line: the numbers of the tests that execute the line."""

    def find_tests(self, mutant: Mutant) -> set[int]:
        """Return the numbers of the tests that execute a line of the mutated statement."""
        by_line = self.lines.get(mutant.file, {})
        return {test for line in range(mutant.lines[0], mutant.lines[1] + 1) for test in by_line.get(line, ())}


class Run:
    """A pytest plugin that runs the tests for each mutant instead of once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.failed = ""
        self.seconds: Counter[str] = Counter()
        self.killers: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def pytest_collection(self) -> None:
        """Disable shrinking and the database of hypothesis, before the test modules are imported."""
        from hypothesis import Phase, settings  # only after pytest has imported its plugins

        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the time and the failure of a test in this process."""
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]  # a Counter of floats
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of all mutants, instead of pytest's own loop."""
        from hypothesis import settings

        gc.unfreeze()  # so that `gc.get_objects` also returns the objects that tests/conftest.py has frozen
        self.items = list(session.items)
        for item in self.items:
            function = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
            known = getattr(function, SETTINGS, None)
            if known is not None:
                reduced = settings(known, max_examples=min(MAX_EXAMPLES, known.max_examples))
                setattr(function, SETTINGS, reduced)
        clear(find_caches())
        measured = Path(self.options.measured or f"{self.options.out}.tests")
        if not self.options.measured:
            pid = os.fork()  # measure in another process, so that the caches of this process stay empty
            if pid == 0:
                self.measure(measured)
            if os.waitpid(pid, 0)[1]:
                raise RuntimeError("the run without mutants failed")
        tests, seconds, lines = json.loads(measured.read_text())
        if tests != [item.nodeid for item in self.items]:
            raise RuntimeError(f"{measured} was measured for other tests")
        by_line = {file: {int(line): on for line, on in found.items()} for file, found in lines.items()}
        self.run_all(Baseline(tests, seconds, by_line))
        return True

    def measure(self, measured: Path) -> None:
        """Write the time of each test, and the lines that it executes, to the file `measured`. Then end the process.

        Tests that fail without a mutant are left out.
        """
        recorder = coverage.Coverage(data_file=None, include=[f"{ROOT}/apflint/*"], config_file=False)
        recorder.start()
        number = {item.nodeid: at for at, item in enumerate(self.items)}
        caches, modules = find_caches(), len(sys.modules)
        for item, following in zip(self.items, [*self.items[1:], None], strict=True):
            if (
                len(sys.modules) != modules
            ):  # search again only after imports, because a search takes as long as a quick test
                caches, modules = find_caches(), len(sys.modules)
            clear(caches)
            recorder.switch_context(item.nodeid)
            self.failed = ""
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                print(f"fails without a mutant: {item.nodeid}", file=sys.__stderr__, flush=True)
                del number[item.nodeid]
        recorder.stop()
        data = recorder.get_data()
        lines = {
            os.path.relpath(file, ROOT): {
                line: [number[test] for test in tests if test in number]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        names = [item.nodeid for item in self.items]
        measured.write_text(json.dumps([names, [self.seconds[name] for name in names], lines]))
        os._exit(0)

    def run_all(self, baseline: Baseline) -> None:
        """Run the tests of all mutants, and append the records."""
        out, retry = Path(self.options.out), self.options.retry and Path(self.options.retry)
        done = {record["id"] for record in read_records(out)} if out.exists() else set()
        survived = {identify(r) for r in read_records(retry) if r["verdict"] not in (*KILLED, EQUAL)} if retry else None
        every = [(mutant, module) for module, mutants in map(find_mutants, self.options.files) for mutant in mutants]
        print(f"{len(every)} mutants in {len(self.options.files)} files", file=sys.__stderr__, flush=True)
        if survived is not None:
            every = [pair for pair in every if identify(pair[0]._asdict()) in survived]
        if self.options.sample:
            every = random.Random(self.options.seed).sample(every, min(len(every), self.options.sample))
        functions = {file: find_functions(file) for file in self.options.files}
        self.check_controls(every, functions, baseline)
        number = {test: at for at, test in enumerate(baseline.tests)}
        for record in (record for path in self.options.killers for record in read_records(Path(path))):
            if record["by"] in number:
                self.killers[record["file"], record["function"]][number[record["by"]]] += 1
        with out.open("a") as stream:
            for mutant, module in every:
                if mutant.id not in done:
                    verdict, by = self.run_one(mutant, module, functions[mutant.file][mutant.function], baseline)
                    record = {name: getattr(mutant, name) for name in ("id", "file", "function", "line", "old", "new")}
                    stream.write(json.dumps(record | {"verdict": verdict, "by": by}) + "\n")
                    stream.flush()

    def check_controls(
        self,
        every: list[tuple[Mutant, cst.Module]],
        functions: dict[str, dict[str, list[FunctionType]]],
        baseline: Baseline,
    ) -> None:
        """Run the tests for a mutant that must fail a test, and for an equivalent mutant that must pass all tests.

        Raises RuntimeError if the verdict of one of these mutants is wrong.
        """
        for mutant, module in every:
            found = functions[mutant.file].get(mutant.function, [])
            if baseline.find_tests(mutant) and found and runs_alone(found[0]):
                self.check_control(make_controls(mutant), module, found, baseline)
                return
        raise RuntimeError("no test executes a function of these files")

    def check_control(
        self, controls: tuple[Mutant, Mutant], module: cst.Module, functions: list[FunctionType], baseline: Baseline
    ) -> None:
        """Run the tests for both control mutants of a function. Raises RuntimeError if a verdict is wrong."""
        for expected, control in zip(("killed", "survived"), controls, strict=True):
            verdict, _ = self.run_one(control, module, functions, baseline)
            if verdict != expected:
                raise RuntimeError(f"the control {control.id} of {control.function} is {verdict}, not {expected}")

    def run_one(
        self, mutant: Mutant, module: cst.Module, functions: list[FunctionType], baseline: Baseline
    ) -> tuple[str, str]:
        """Run the tests of a mutant. Returns (verdict, name of the test that killed the mutant or "")."""
        tests = baseline.find_tests(mutant)
        killers = self.killers[mutant.file, mutant.function]
        chosen, seconds = [], 0.0
        for test in sorted(tests, key=lambda test: (-killers[test], baseline.seconds[test])):
            if seconds + baseline.seconds[test] <= self.options.seconds:
                chosen.append(test)
                seconds += baseline.seconds[test]
        if not chosen:
            if not tests:
                return "uncovered", ""
            chosen = [min(tests, key=lambda test: baseline.seconds[test])]
            seconds = baseline.seconds[chosen[0]]
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            items = [self.items[test] for test in chosen]
            self.run_child(mutant, module, functions, items, writer, max(seconds, self.options.seconds))
        os.close(writer)
        if not select.select([reader], [], [], 60 + 20 * seconds)[0]:
            # A sleeping mutant does not use CPU time, so it never reaches the limit of CPU time.
            os.killpg(pid, signal.SIGKILL)
        killer = os.read(reader, 4096).decode()
        os.close(reader)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            return ("timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crash"), ""
        if killer in baseline.tests:
            killers[baseline.tests.index(killer)] += 1
        verdicts = {0: "survived", 1: "killed", 3: EQUAL}
        return verdicts.get(os.WEXITSTATUS(status), "crash"), killer

    def run_child(
        self,
        mutant: Mutant,
        module: cst.Module,
        functions: list[FunctionType],
        items: list[pytest.Item],
        writer: int,
        seconds: float,
    ) -> None:
        """Run the tests in the fork, and exit: 0 if all pass, 1 if one fails, 3 if the code is equal, 4 if an error occurs."""
        status = 4
        try:
            os.setpgid(0, 0)
            limit = int(5 + 2 * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            if not replace_code(mutant, module, functions):
                os._exit(3)
            self.failed = ""
            status = 0
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    os.write(writer, self.failed.encode())
                    status = 1
                    break
        except BaseException as error:  # noqa: BLE001  # report every error to the parent
            print(f"{mutant.id}: {error!r}", file=sys.__stderr__, flush=True)
        finally:
            os._exit(status)
