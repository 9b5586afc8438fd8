"""Mutation testing: mistakes are put into the code, and each should make a test fail.

    pip install -e '.[test]' mutmut
    python scripts/mutants.py apflint/model.py apflint/evaluate apflint/checks --sample 2000 --seed 7
    python scripts/mutants.py apflint/checks/flows.py --tests tests/test_rules_whole_set.py tests/test_rules_objects.py

A line of JSON for each mutant goes to `--out`; a second run leaves out those that are there. With `--retry FILE` only those
that survived in an earlier run are tried. A sample is tried in random order: what there is when it is stopped is one, too.

The mistakes are those of mutmut 3. They are made otherwise: the tests are collected once, and each mutant is a fork of that
process in which the code of one function is exchanged. It runs the tests that execute the line, quick ones and those that
killed its neighbours first, up to `--seconds` of them, so a mutant costs 0.1 seconds. Laws are tried on 20 examples. Mutated
as well are functions behind decorators (properties, caches). Not mutated are what runs at import, annotations, `cast`, `len`,
`isinstance`, the `strict` of zip, and prose: texts with a blank in them, and what is put into them.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import resource
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import coverage
import libcst as cst
import pytest
from mutmut.mutation import file_mutation
from mutmut.mutation.mutators import operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = 20
LAW = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps the settings of a test."""
SAME = "same"
"""The verdict where the compiler makes the same code of it: that is no mutant, and does not count."""
DEAD = ("killed", "timeout")
"""Verdicts that are as they should be."""


class Mutant(NamedTuple):
    """One mistake."""

    id: str
    file: str
    function: str
    """Qualified name of the function at the top of the module, or of the method, that it is in."""
    line: int
    lines: tuple[int, int]
    """Those whose execution makes a test relevant."""
    was: str
    now: str
    mutation: Any
    node: Any


class Found(NamedTuple):
    """What the run without mutants shows; tests by number."""

    tests: list[str]
    seconds: list[float]
    lines: dict[str, dict[int, list[int]]]
    """File → line → tests."""


# --- which mutants there are ------------------------------------------------------------------------------------------


def prose(node: cst.CSTNode) -> bool:
    """Whether this is a text that people read."""
    if isinstance(node, cst.FormattedString):
        return any(" " in part.value.strip() for part in node.parts if isinstance(part, cst.FormattedStringText))
    if isinstance(node, cst.ConcatenatedString):
        return prose(node.left) or prose(node.right)
    return isinstance(node, cst.SimpleString) and " " in str(node.raw_value)


def strict(node: cst.CSTNode) -> str:
    """The argument `strict` of a call: without that assertion a right program does the same."""
    given = [arg for arg in getattr(node, "args", ()) if arg.keyword and arg.keyword.value == "strict"]
    return cst.Module([]).code_for_node(given[0].value) if given else ""


class Visitor(file_mutation.MutationVisitor):
    """mutmut's visitor, with a choice of its own of what to leave out; `places` tells where each mutation is."""

    def __init__(self) -> None:
        operators = [pair for pair in file_mutation.mutation_operators if pair[1] is not operator_string]
        operators.append((cst.SimpleString, lambda node: list(operator_string(node))[:1]))
        super().__init__(operators, IgnoredCode(set(), set(), set()))
        self.stack: list[cst.CSTNode] = []
        self.places: list[tuple[Any, ...] | None] = []

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator):
            return True
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString | cst.ConcatenatedString):
            return True
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            return node.func.value in ("cast", "len", "isinstance")
        if isinstance(node, cst.Param) and node.default is not None:
            return not isinstance(node.default, cst.Name | cst.BaseNumber | cst.BaseString)
        return prose(node) or (
            isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "strict"
        )

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Called by libcst; the children are looked at where it says True."""
        before = len(self.mutations)
        deeper: bool = super().on_visit(node)
        self.mutations[before:] = [
            each for each in self.mutations[before:] if strict(each.mutated_node) == strict(node)
        ]
        self.places += [self._place(node)] * (len(self.mutations) - before)
        self.stack.append(node)
        return deeper

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Called by libcst."""
        super().on_leave(original_node)
        self.stack.pop()

    def _place(self, node: cst.CSTNode) -> tuple[Any, ...] | None:
        """Function, its name, line, and the lines of the statement; a default counts wherever its function runs."""
        scopes = [each for each in self.stack if isinstance(each, cst.FunctionDef | cst.ClassDef)]
        outer = next((at for at, each in enumerate(scopes) if isinstance(each, cst.FunctionDef)), None)
        if outer is None:
            return None
        function = scopes[outer]
        inside = self.stack[self.stack.index(scopes[-1]) :]
        within = next((each for each in reversed(inside) if isinstance(each, cst.SimpleStatementLine)), node)
        if any(isinstance(each, cst.Parameters) for each in inside):
            within = function
        position, own = (self.get_metadata(file_mutation.PositionProvider, each, None) for each in (within, node))
        if position is None:
            return None
        name = ".".join(each.name.value for each in scopes[: outer + 1])
        return function, name, (own or position).start.line, (position.start.line, position.end.line)


def mutants(file: str) -> tuple[cst.Module, list[Mutant]]:
    """All mutants of one file."""
    visitor = Visitor()
    module = cst.MetadataWrapper(cst.parse_module((ROOT / file).read_text())).visit(visitor)
    made = []
    for number, (mutation, place) in enumerate(zip(visitor.mutations, visitor.places, strict=True)):
        if place is not None:
            node, name, line, lines = place
            was, now = (module.code_for_node(each) for each in (mutation.original_node, mutation.mutated_node))
            made.append(Mutant(f"{file}:{number}", file, name, line, lines, was, now, mutation, node))
    return module, made


# --- how a function becomes a mutant ----------------------------------------------------------------------------------


def living(file: str) -> dict[str, list[FunctionType]]:
    """The functions of a file in this process by qualified name, wherever they are kept."""
    path, found = str(ROOT / file), defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == path:
            found[each.__code__.co_qualname].append(each)
    return found


def exchange(mutant: Mutant, module: cst.Module, functions: list[FunctionType]) -> bool:
    """Make the function of this process the mutated one. False where it comes out the same."""
    changed = mutant.node.deep_replace(mutant.mutation.original_node, mutant.mutation.mutated_node)
    texts = [module.code_for_node(node.with_changes(decorators=())) for node in (mutant.node, changed)]
    old, new = (_code(text, mutant) for text in texts)
    if old == new:
        return _exchange_defaults(texts[1], functions)
    for function in functions:
        function.__code__ = new
    return True


def _code(text: str, mutant: Mutant) -> CodeType:
    whole = compile(f"from __future__ import annotations\n{text}", mutant.file, "exec", dont_inherit=True)
    (code,) = (
        each
        for each in whole.co_consts
        if isinstance(each, CodeType) and each.co_name == mutant.function.rpartition(".")[2]
    )
    return code


def _exchange_defaults(text: str, functions: list[FunctionType]) -> bool:
    (node,) = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
    plain = tuple(each.value for each in node.args.defaults if isinstance(each, ast.Constant))
    named = {
        arg.arg: value.value
        for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if isinstance(value, ast.Constant)
    }
    done = False
    for function in functions:
        if function.__defaults__ and len(plain) == len(function.__defaults__) and plain != function.__defaults__:
            function.__defaults__, done = plain, True
        if function.__kwdefaults__ and any(function.__kwdefaults__[each] != named[each] for each in named):
            function.__kwdefaults__, done = function.__kwdefaults__ | named, True
    return done


# --- running the tests ------------------------------------------------------------------------------------------------


def forget() -> None:
    """What was worked out while test modules were imported: otherwise no test would do it again."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and str(each.__module__).startswith("apflint"):
            each.cache_clear()


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
        forget()
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
        for item, following in zip(self.items, [*self.items[1:], None], strict=True):
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
            self.child(
                mutant,
                module,
                functions,
                [self.items[test] for test in chosen],
                writer,
                max(seconds, self.options.seconds),
            )
        os.close(writer)
        if not select.select([reader], [], [], 60 + 20 * seconds)[
            0
        ]:  # it sleeps: it has used up no time of the processor
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


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of an earlier run."""
    return map(json.loads, path.read_text().splitlines())


def key(record: dict[str, Any]) -> tuple[str, ...]:
    """What a mutant is known by after other lines have changed."""
    return tuple(record[name] for name in ("file", "function", "was", "now"))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", help="files and folders to mutate")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="what to give to pytest")
    parser.add_argument("--seconds", type=float, default=8.0, help="of tests for each mutant")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn from those of all files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="mutants.jsonl")
    parser.add_argument("--killers", nargs="+", default=[], help="the --out of earlier runs: their tests go first")
    parser.add_argument(
        "--measured", help="the --out of an earlier run with .tests behind it: the tests are those still"
    )
    parser.add_argument("--retry", help="the --out of an earlier run: only what survived there")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    paths = [ROOT / path for path in options.paths]
    files = [each for path in paths for each in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    options.files = [os.path.relpath(each, ROOT) for each in files]
    for file in options.files:
        __import__(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    begun = time.monotonic()
    plugins = [f"no:{name}" for name in ("cacheprovider", "randomly", "cov", "timeout", "xdist", "logging")]
    arguments = [argument for name in plugins for argument in ("-p", name)]
    pytest.main(["-q", *arguments, *options.tests], plugins=[Run(options)])
    verdicts = Counter(each["verdict"] for each in records(Path(options.out)))
    dead, real = sum(verdicts[each] for each in DEAD), verdicts.total() - verdicts[SAME]
    print(f"\n{dead} of {real} dead ({dead / max(real, 1):.1%}): {dict(verdicts)}, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
