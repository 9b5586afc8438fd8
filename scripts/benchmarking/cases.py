"""The cases: what is measured beside what, and what is aimed at."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

from benchmarking import inputs
from benchmarking.growth import GROWING, STEEP, STEP, exponent
from benchmarking.processes import environment, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarking.environments import Tools
    from benchmarking.processes import Cost


class Setting(NamedTuple):
    """What a case has to work with. `runs` is for processes of a tenth of a second; long ones run a fifth as often."""

    tools: Tools
    folder: Path
    """An empty folder of the case's own."""
    runs: int
    part: int = 1
    """Inputs are this part of what they should be: a tenth, to try the script out."""

    def sized(self, count: int) -> int:
        """A number of things in the input."""
        return max(1, count // self.part)

    @property
    def few(self) -> int:
        """How often a long process runs."""
        return max(min(3, self.runs), self.runs // 5)


class Row(NamedTuple):
    """A line of the table. `by_processor` decides, for other work on the machine disturbs it least."""

    case: str
    measured: str
    by_clock: str
    by_processor: str
    target: str
    met: bool


def version(setting: Setting) -> Iterator[Row]:
    """The least that a start costs."""
    commands = {"apflint": [setting.tools.apflint, "--version"], "bare": [setting.tools.python, "-c", "pass"]}
    cost = in_turn(commands, setting.folder, setting.runs)
    yield _ratio("`apflint --version`", cost, "apflint", "bare", 3.0, "`python -c pass`")


def small(setting: Setting) -> Iterator[Row]:
    """One small valid file, beside the tools that a hook would run."""
    cost = in_turn(_small_commands(setting), setting.folder, setting.runs)
    yield _ratio("`check` of one small valid file", cost, "valid", "yamllint", 1.1, "yamllint")
    yield _ratio("the same", cost, "valid", "check-jsonschema", 0.5, "check-jsonschema")
    yield _ratio("the same", cost, "valid", "bare", 5.0, "`python -c pass`")
    yield _ratio("`check` of one small file with one finding", cost, "finding", "valid", 1.4, "the valid one")
    yield _ratio("`explain list pods -n x --as y` on the defaults", cost, "explain", "valid", 1.3, "the valid one")


def _small_commands(setting: Setting) -> dict[str, list[str]]:
    tools, folder = setting.tools, setting.folder
    (folder / "valid.yaml").write_text(inputs.SMALL)
    (folder / "finding.yaml").write_text(inputs.ONE_FINDING)
    (folder / "empty").mkdir()
    schema = _schema(setting)
    return {
        "valid": [tools.apflint, "check", "valid.yaml"],
        "yamllint": [tools.yamllint, "valid.yaml"],
        "check-jsonschema": [tools.check_jsonschema, "--schemafile", schema, "valid.yaml"],
        "finding": [tools.apflint, "check", "finding.yaml"],
        "explain": [tools.apflint, "explain", "list", "pods", "-n", "x", "--as", "y", "-f", "empty"],
        "bare": [tools.python, "-c", "pass"],
    }


_LOAD = "import sys, yaml; list(yaml.load_all(open(sys.argv[1], 'rb'), Loader=yaml.CSafeLoader))"


def large(setting: Setting) -> Iterator[Row]:
    """One file of many objects."""
    path = setting.folder / "large.yaml"
    inputs.one_file(path, setting.sized(5000))
    commands = {
        "apflint": [setting.tools.apflint, "check", path.name],
        "PyYAML": [setting.tools.peer_python, "-c", _LOAD, path.name],
    }
    cost = in_turn(commands, setting.folder, setting.few)
    size = path.stat().st_size
    what = f"`check` of one file of {setting.sized(5000):,} objects ({size / 1e6:.1f} MB)"
    yield _ratio(what, cost, "apflint", "PyYAML", 1.5, "PyYAML's C loader")
    times = cost["apflint"].memory / size
    measured = f"{cost['apflint'].memory / 1e6:.0f} MB; PyYAML {cost['PyYAML'].memory / 1e6:.0f} MB"
    yield Row("the same: memory at its peak", measured, "", f"{times:.1f} times the file", "10 times", times <= 10)


def thousand(setting: Setting) -> Iterator[Row]:
    """Many files of one object each."""
    count = setting.sized(1000)
    inputs.many_files(setting.folder / "many", count)
    schema = _schema(setting)
    names = [f"many/{number:04}.yaml" for number in range(count)]
    commands = {
        "apflint": [setting.tools.apflint, "check", "many"],
        "yamllint": [setting.tools.yamllint, "many"],
        "check-jsonschema": [setting.tools.check_jsonschema, "--schemafile", schema, *names],
    }
    cost = in_turn(commands, setting.folder, setting.few)
    what = f"`check` of {count:,} files of one FlowSchema each"
    yield _ratio(what, cost, "apflint", "yamllint", 0.3, "yamllint")
    yield _ratio("the same", cost, "apflint", "check-jsonschema", 0.4, "check-jsonschema")


def repository(setting: Setting) -> Iterator[Row]:
    """Many files, of which few are ours."""
    files, ours = setting.sized(10_000), setting.sized(100)
    inputs.repository(setting.folder / "repository", files, ours)
    inputs.many_files(setting.folder / "ours", ours)
    apflint = setting.tools.apflint
    commands = {"all": [apflint, "check", "repository"], "ours": [apflint, "check", "ours"]}
    cost = in_turn(commands, setting.folder, setting.few)
    clock = 1e6 * (cost["all"].seconds - cost["ours"].seconds) / (files - ours)
    processor = 1e6 * (cost["all"].processor - cost["ours"].processor) / (files - ours)
    yield Row(
        f"a repository of {files:,} YAML files, {ours} of them with APF objects: each file without APF objects",
        f"{_took(cost['all'])}; {_took(cost['ours'])} for the {ours} alone",
        f"{clock:.0f} µs",
        f"{processor:.0f} µs",
        "40 µs",
        processor <= 40,
    )


def requests(setting: Setting) -> Iterator[Row]:
    """Answers to requests that come again and again, and to requests that do not."""
    inputs.as_list(setting.folder / "apf.json", [inputs.flow_schema(number) for number in range(20)])
    for lines, different, target in (
        (setting.sized(1_000_000), setting.sized(20_000), 300_000),
        (setting.sized(100_000), setting.sized(100_000), 30_000),
    ):
        inputs.request_lines(setting.folder / "requests.jsonl", lines, different)
        command = [setting.tools.apflint, "explain", "-f", "apf.json", "--requests", "requests.jsonl"]
        cost = in_turn({"explain": command}, setting.folder, setting.few)["explain"]
        yield Row(
            f"`explain --requests`, {lines:,} lines, {different:,} distinct; defaults and 20 FlowSchemas",
            _took(cost),
            f"{lines / cost.seconds:,.0f} a second",
            f"{lines / cost.processor:,.0f} a second",
            f"{target:,} a second",
            lines / cost.processor >= target,
        )


def crowd(setting: Setting) -> Iterator[Row]:
    """The whole-set rules where they have most to do."""
    count = setting.sized(300)
    inputs.as_list(setting.folder / "crowd.json", inputs.crowd(count, 10))
    command = [setting.tools.apflint, "check", "--fail-on", "never", "crowd.json"]
    cost = in_turn({"check": command}, setting.folder, setting.few)["check"]
    yield Row(
        f"`check` of {count} FlowSchemas of 10 rules, all rules",
        _took(cost),
        f"{cost.seconds:.1f} s",
        f"{cost.processor:.1f} s",
        "5 s",
        cost.processor <= 5,
    )


def growth(setting: Setting) -> Iterator[Row]:
    """Each command on an input of three sizes."""
    for one in GROWING:
        sizes = [setting.sized(one.smallest) * STEP**power for power in range(3)]
        commands = {str(size): [setting.tools.apflint, *one.prepare(setting.folder, size)] for size in sizes}
        cost = in_turn(commands, setting.folder, setting.few, of=min)
        power = exponent([each.processor for each in cost.values()])
        yield Row(
            f"{one.what}: {', '.join(f'{size:,}' for size in sizes)}",
            "; ".join(map(_took, cost.values())),
            "",
            f"n^{power:.2f}",
            f"n^{STEEP}",
            power <= STEEP,
        )


CASES: dict[str, Callable[[Setting], Iterator[Row]]] = {
    case.__name__: case for case in (version, small, large, thousand, repository, requests, crowd, growth)
}


def _schema(setting: Setting) -> str:
    """The JSON Schema of FlowSchemas, for check-jsonschema."""
    path = setting.folder / "flow-schema.json"
    command = [setting.tools.apflint, "schema", "FlowSchema"]
    path.write_bytes(subprocess.run(command, env=environment(), capture_output=True, check=True).stdout)
    return str(path)


def _ratio(case: str, cost: dict[str, Cost], ours: str, other: str, target: float, name: str) -> Row:
    mine, theirs = cost[ours], cost[other]
    processor = mine.processor / theirs.processor
    return Row(
        case,
        f"{_took(mine)}; {name} {_took(theirs)}",
        f"{mine.seconds / theirs.seconds:.2f}",
        f"{processor:.2f}",
        f"{target:g} times {name}",
        processor <= target,
    )


def _took(cost: Cost) -> str:
    """Return wall clock and CPU time: `52 ms (50)`."""
    if cost.seconds < 1:
        return f"{1000 * cost.seconds:.0f} ms ({1000 * cost.processor:.0f})"
    return f"{cost.seconds:.2f} s ({cost.processor:.2f})"
