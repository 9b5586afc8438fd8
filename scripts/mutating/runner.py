"""A plugin of pytest that runs the tests for each mutant, in a fork of the process that has collected them."""

from __future__ import annotations

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

from mutating.exchange import caches, exchange, forget, living
from mutating.mistakes import ROOT, mutants
from mutating.records import DEAD, SAME, key, records

if TYPE_CHECKING:
    import argparse
    from types import FunctionType

    import libcst as cst
    import pytest

    from mutating.mistakes import Mutant

EXAMPLES = 20
"""Of each law, for each mutant."""
LAW = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps the settings of a test."""


class Found(NamedTuple):
    """What the run without mutants shows; tests by number."""

    tests: list[str]
    seconds: list[float]
    lines: dict[str, dict[int, list[int]]]
    """File → line → tests."""


class Run:
    """A plugin of pytest: where the tests would run once, they run for each mutant."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.failed = ""
        self.seconds: Counter[str] = Counter()
        self.killers: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def pytest_collection(self) -> None:
        """Before the test modules are imported: laws do not shrink what they find, and remember nothing."""
        from hypothesis import Phase, settings  # pytest wants to import plugins itself

        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of the tests of this process."""
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]  # a Counter of floats
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own."""
        from hypothesis import settings

        self.items = list(session.items)
        for item in self.items:
            function = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
            law = getattr(function, LAW, None)
            if law is not None:
                few = settings(law, max_examples=min(EXAMPLES, law.max_examples))
                setattr(function, LAW, few)
        forget(caches())
        measured = Path(self.options.measured or f"{self.options.out}.tests")
        if not self.options.measured:
            pid = os.fork()  # what the tests leave behind in caches must not be there when the mutants run
            if pid == 0:
                self.measure(measured)
            if os.waitpid(pid, 0)[1]:
                raise RuntimeError("the run without mutants failed")
        tests, seconds, lines = json.loads(measured.read_text())
        if tests != [item.nodeid for item in self.items]:
            raise RuntimeError(f"{measured} is of other tests")
        found = Found(tests, seconds, {file: {int(at): each for at, each in on.items()} for file, on in lines.items()})
        self.all(found)
        return True

    def measure(self, measured: Path) -> None:
        """Which test executes which lines, and how long it takes; those that fail without a mutant tell nothing."""
        counted = coverage.Coverage(data_file=None, include=[f"{ROOT}/apflint/*"], config_file=False)
        counted.start()
        number = {item.nodeid: at for at, item in enumerate(self.items)}
        remembering, modules = caches(), len(sys.modules)
        for item, following in zip(self.items, [*self.items[1:], None], strict=True):
            if len(sys.modules) != modules:  # to look for caches takes as long as a quick test
                remembering, modules = caches(), len(sys.modules)
            forget(remembering)
            counted.switch_context(item.nodeid)
            self.failed = ""
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                print(f"fails without a mutant: {item.nodeid}", file=sys.__stderr__, flush=True)
                del number[item.nodeid]
        counted.stop()
        data = counted.get_data()
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

    def all(self, found: Found) -> None:
        """Run them, and write down what became of each."""
        out, retry = Path(self.options.out), self.options.retry and Path(self.options.retry)
        done = {each["id"] for each in records(out)} if out.exists() else set()
        survived = {key(each) for each in records(retry) if each["verdict"] not in (*DEAD, SAME)} if retry else None
        every = [(mutant, module) for module, made in map(mutants, self.options.files) for mutant in made]
        print(f"{len(every)} mutants in {len(self.options.files)} files", file=sys.__stderr__, flush=True)
        if survived is not None:
            every = [each for each in every if key(each[0]._asdict()) in survived]
        if self.options.sample:
            every = random.Random(self.options.seed).sample(every, min(len(every), self.options.sample))
        functions = {file: living(file) for file in self.options.files}
        number = {test: at for at, test in enumerate(found.tests)}
        for record in (each for path in self.options.killers for each in records(Path(path))):
            if record["by"] in number:
                self.killers[record["file"], record["function"]][number[record["by"]]] += 1
        with out.open("a") as stream:
            for mutant, module in every:
                if mutant.id not in done:
                    verdict, by = self.one(mutant, module, functions[mutant.file][mutant.function], found)
                    record = {name: getattr(mutant, name) for name in ("id", "file", "function", "line", "was", "now")}
                    stream.write(json.dumps(record | {"verdict": verdict, "by": by}) + "\n")
                    stream.flush()

    def one(self, mutant: Mutant, module: cst.Module, functions: list[FunctionType], found: Found) -> tuple[str, str]:
        """What becomes of a mutant, and the test that killed it."""
        on = found.lines.get(mutant.file, {})
        tests = {test for line in range(mutant.lines[0], mutant.lines[1] + 1) for test in on.get(line, ())}
        killers = self.killers[mutant.file, mutant.function]
        chosen, seconds = [], 0.0
        for test in sorted(tests, key=lambda test: (-killers[test], found.seconds[test])):
            if seconds + found.seconds[test] <= self.options.seconds:
                chosen.append(test)
                seconds += found.seconds[test]
        if not chosen:
            if not tests:
                return "uncovered", ""
            chosen = [min(tests, key=lambda test: found.seconds[test])]
            seconds = found.seconds[chosen[0]]
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            items = [self.items[test] for test in chosen]
            self.child(mutant, module, functions, items, writer, max(seconds, self.options.seconds))
        os.close(writer)
        if not select.select([reader], [], [], 60 + 20 * seconds)[0]:
            # It sleeps: it has used up no time of the processor.
            os.killpg(pid, signal.SIGKILL)
        killer = os.read(reader, 4096).decode()
        os.close(reader)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            return ("timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crash"), ""
        if killer in found.tests:
            killers[found.tests.index(killer)] += 1
        verdicts = {0: "survived", 1: "killed", 3: SAME}
        return verdicts.get(os.WEXITSTATUS(status), "crash"), killer

    def child(
        self,
        mutant: Mutant,
        module: cst.Module,
        functions: list[FunctionType],
        items: list[pytest.Item],
        writer: int,
        seconds: float,
    ) -> None:
        """In a process of its own, which ends here: with 0 where it survives, 1 where a test fails, 3 where it is no mutant."""
        status = 4
        try:
            os.setpgid(0, 0)
            limit = int(5 + 2 * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            if not exchange(mutant, module, functions):
                os._exit(3)
            self.failed = ""
            status = 0
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    os.write(writer, self.failed.encode())
                    status = 1
                    break
        except BaseException as error:  # noqa: BLE001  # whatever it is, the parent must hear of it
            print(f"{mutant.id}: {error!r}", file=sys.__stderr__, flush=True)
        finally:
            os._exit(status)
