"""The cases of the benchmark: commands, commands to compare with, and targets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarking import inputs
from benchmarking.audit_log import WRAPPERS, wrap_audit_log, write_audit_log, write_rotated_audit_log
from benchmarking.growth import GROWING, MAX_EXPONENT, STEP, fit_exponent
from benchmarking.processes import environment, measure_in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarking.environments import Tools
    from benchmarking.processes import Cost


class Setting(NamedTuple):
    """Tools and options of a case.

    `runs` is the number of runs of a process that takes about 0.1 s. Slower processes run less often (`long_runs`).
    """

    tools: Tools
    directory: Path
    """An empty directory for the case."""
    runs: int
    divisor: int = 1
    """Divisor of the sizes of all inputs: 1, or 10 for a quick trial of the script."""
    log_bytes: int = 100_000_000
    """Size of the audit log in bytes. A second log has 10 times this size."""

    def scale(self, count: int) -> int:
        """Return the size of an input divided by `divisor`."""
        return max(1, count // self.divisor)

    @property
    def long_runs(self) -> int:
        """Number of runs of a long process."""
        return max(min(3, self.runs), self.runs // 5)


class Row(NamedTuple):
    """A row of the table. The target applies to CPU time, because other work on the machine disturbs CPU time least."""

    case: str
    measured: str
    wall_clock: str
    cpu_time: str
    target: str
    value: float
    """The measured value before rounding. The value is compared with the target."""
    limit: float
    is_minimum: bool = False
    """Whether the value must be at least the limit. If false, the value must be at most the limit."""

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.limit if self.is_minimum else self.value <= self.limit


def version(setting: Setting) -> Iterator[Row]:
    """Measure `apflint --version`, the cost of starting a process."""
    commands = {"apflint": [setting.tools.apflint, "--version"], "bare": [setting.tools.python, "-c", "pass"]}
    cost = measure_in_turn(commands, setting.directory, setting.runs)
    yield _ratio("`apflint --version`", cost, "apflint", "bare", 3.0, "`python -c pass`")


def small(setting: Setting) -> Iterator[Row]:
    """Compare a check of one small file with other tools that commit hooks run."""
    cost = measure_in_turn(_small_commands(setting), setting.directory, setting.runs)
    yield _ratio(
        "`check --force-exclude` of one file without APF objects, as a commit hook runs it",
        *(cost, "hook", "bare", 4.0, "`python -c pass`"),
    )
    yield _ratio("`check` of one small valid file", cost, "valid", "yamllint", 0.9, "yamllint")
    yield _ratio("the same", cost, "valid", "check-jsonschema", 0.5, "check-jsonschema")
    for name, words in _CHECK_OPTIONS.items():
        yield _ratio(f"the same, with `{' '.join(words)}`", cost, name, "yamllint", 0.9, "yamllint")
    yield _ratio("`check` of one small file with one finding", cost, "finding", "yamllint", 0.9, "yamllint")
    for name, words in _COMMANDS.items():
        yield _ratio(f"`{' '.join(words)}`", cost, name, "yamllint", 1.2, "yamllint")
    # `propose` has a higher limit: it also proves the change with a SAT solver, reads the written YAML back, and runs
    # the rules and the policy test.
    yield _ratio(f"`{' '.join(_PROPOSE)}`", cost, "propose", "yamllint", 2.5, "yamllint")


_CHECK_OPTIONS = {
    "isolated": ("--isolated",),
    "json": ("--format", "json"),
    "fail-on": ("--fail-on", "warning"),
    "select": ("--select", "APF3"),
}
_COMMANDS = {
    "explain": ("explain", "list", "pods", "-n", "a", "--as", "b"),
    "limits": ("limits",),
    "rule": ("rule", "APF501"),
    "help": ("--help",),
}
_PROPOSE = ("propose", "--isolate", "group:analytics", "--seats", "50")


def _small_commands(setting: Setting) -> dict[str, list[str]]:
    tools, directory = setting.tools, setting.directory
    (directory / "valid.yaml").write_text(inputs.SMALL)
    (directory / "finding.yaml").write_text(inputs.ONE_FINDING)
    (directory / "other.yaml").write_text(inputs.OTHER)
    schema = _write_schema(setting)
    return {
        "valid": [tools.apflint, "check", "valid.yaml"],
        "yamllint": [tools.yamllint, "valid.yaml"],
        "check-jsonschema": [tools.check_jsonschema, "--schemafile", schema, "valid.yaml"],
        "finding": [tools.apflint, "check", "finding.yaml"],
        "hook": [tools.apflint, "check", "--force-exclude", "other.yaml"],
        "bare": [tools.python, "-c", "pass"],
        **{name: [tools.apflint, "check", *words, "valid.yaml"] for name, words in _CHECK_OPTIONS.items()},
        **{name: [tools.apflint, *words] for name, words in {**_COMMANDS, "propose": _PROPOSE}.items()},
    }


_LOAD = "import sys, yaml; list(yaml.load_all(open(sys.argv[1], 'rb'), Loader=yaml.CSafeLoader))"


def large(setting: Setting) -> Iterator[Row]:
    """Measure checking one file with many objects."""
    path = setting.directory / "large.yaml"
    inputs.write_varied_file(path, setting.scale(5000))
    inputs.write_varied_file(setting.directory / "mistakes.yaml", setting.scale(5000), mistakes=True)
    commands = {
        "mistakes": [setting.tools.apflint, "check", "--fail-on", "never", "mistakes.yaml"],
        "apflint": [setting.tools.apflint, "check", "--fail-on", "never", path.name],
        "PyYAML": [setting.tools.peer_python, "-c", _LOAD, path.name],
    }
    cost = measure_in_turn(commands, setting.directory, setting.long_runs)
    size = path.stat().st_size
    what = f"`check` of one file of {setting.scale(5000) + inputs.VARIED_LEVELS:,} objects ({size / 1e6:.1f} MB)"
    yield _ratio(what, cost, "apflint", "PyYAML", 1.2, "PyYAML's C loader")
    megabytes = cost["apflint"].memory / 1e6
    measured = f"{megabytes:.0f} MB; PyYAML {cost['PyYAML'].memory / 1e6:.0f} MB"
    yield Row("the same: memory at its peak", measured, "", f"{megabytes:.0f} MB", "60 MB", megabytes, 60)
    what = "as many objects with misspelled names, unknown levels and ties: 1,350 findings"
    yield _ratio(what, cost, "mistakes", "PyYAML", 5, "PyYAML's C loader")


def thousand(setting: Setting) -> Iterator[Row]:
    """Measure `apflint check` of many files with one object each."""
    count = setting.scale(1000)
    inputs.write_many_files(setting.directory / "many", count)
    schema = _write_schema(setting)
    names = [f"many/{number:04}.yaml" for number in range(count)]
    commands = {
        "apflint": [setting.tools.apflint, "check", "many"],
        "yamllint": [setting.tools.yamllint, "many"],
        "check-jsonschema": [setting.tools.check_jsonschema, "--schemafile", schema, *names],
    }
    cost = measure_in_turn(commands, setting.directory, setting.long_runs)
    what = f"`check` of {count:,} files of one FlowSchema each"
    yield _ratio(what, cost, "apflint", "yamllint", 0.1, "yamllint")
    yield _ratio("the same", cost, "apflint", "check-jsonschema", 0.4, "check-jsonschema")


def repository(setting: Setting) -> Iterator[Row]:
    """Measure checking many files, a few of which contain APF objects."""
    files, ours = setting.scale(10_000), setting.scale(100)
    inputs.write_repository(setting.directory / "repository", files, ours)
    inputs.write_many_files(setting.directory / "ours", ours)
    apflint = setting.tools.apflint
    commands = {"all": [apflint, "check", "repository"], "ours": [apflint, "check", "ours"]}
    cost = measure_in_turn(commands, setting.directory, setting.long_runs)
    clock = 1e6 * (cost["all"].seconds - cost["ours"].seconds) / (files - ours)
    processor = 1e6 * (cost["all"].cpu - cost["ours"].cpu) / (files - ours)
    yield Row(
        f"a repository of {files:,} YAML files, {ours} of them with APF objects: each file without APF objects",
        f"{_format_cost(cost['all'])}; {_format_cost(cost['ours'])} for the {ours} alone",
        f"{clock:.0f} µs",
        f"{processor:.0f} µs",
        "40 µs",
        processor,
        40,
    )


def requests(setting: Setting) -> Iterator[Row]:
    """Measure the time to explain repeated and distinct requests."""
    inputs.write_list(setting.directory / "apf.json", [inputs.flow_schema(number) for number in range(20)])
    for lines, different, target in (
        (setting.scale(1_000_000), setting.scale(20_000), 300_000),
        (setting.scale(100_000), setting.scale(100_000), 30_000),
    ):
        inputs.write_requests(setting.directory / "requests.jsonl", lines, different)
        command = [setting.tools.apflint, "explain", "-f", "apf.json", "--requests", "requests.jsonl"]
        cost = measure_in_turn({"explain": command}, setting.directory, setting.long_runs)["explain"]
        yield Row(
            f"`explain --requests`, {lines:,} lines, {different:,} distinct; defaults and 20 FlowSchemas",
            _format_cost(cost),
            f"{lines / cost.seconds:,.0f} a second",
            f"{lines / cost.cpu:,.0f} a second",
            f"{target:,} a second",
            lines / cost.cpu,
            target,
            is_minimum=True,
        )


def metrics(setting: Setting) -> Iterator[Row]:
    """Measure `apflint doctor` on the metrics of a large cluster.

    For comparison, the parser of prometheus_client takes 2.9 s for the same number of lines.
    """
    lines = setting.scale(60_000)
    inputs.write_metrics(setting.directory / "metrics.txt", lines)
    command = [setting.tools.apflint, "doctor", "--metrics", "metrics.txt", "--fail-on", "never"]
    cost = measure_in_turn({"doctor": command}, setting.directory, setting.long_runs)["doctor"]
    yield Row(
        f"`doctor` of {lines:,} lines of metrics",
        _format_cost(cost),
        f"{cost.seconds:.1f} s",
        f"{cost.cpu:.1f} s",
        "1 s",
        cost.cpu,
        1,
    )


def crowd(setting: Setting) -> Iterator[Row]:
    """Measure the rules that prove facts about all FlowSchemas together, on FlowSchemas that overlap."""
    count = setting.scale(300)
    inputs.write_list(setting.directory / "crowd.json", inputs.crowd(count, 10))
    command = [setting.tools.apflint, "check", "--fail-on", "never", "crowd.json"]
    cost = measure_in_turn({"check": command}, setting.directory, setting.long_runs)["check"]
    yield Row(
        f"`check` of {count} FlowSchemas of 10 rules, all rules",
        _format_cost(cost),
        f"{cost.seconds:.1f} s",
        f"{cost.cpu:.1f} s",
        "5 s",
        cost.cpu,
        5,
    )


def clusters(setting: Setting) -> Iterator[Row]:
    """Compare checks of many clusters that share manifests with a check of one cluster."""
    count = setting.scale(200)
    commands = {}
    for name, number in (("many", count), ("one", 1)):
        directory = setting.directory / name
        inputs.write_clusters(directory, number)
        config = str(directory / "apflint.toml")
        commands[name] = [setting.tools.apflint, "check", "--fail-on", "never", "--config", config, name]
    cost = measure_in_turn(commands, setting.directory, setting.long_runs)
    what = f"`check` of {count} clusters that share 30 objects, with 5 more in each"
    yield _ratio(what, cost, "many", "one", 50, "one of them")


def simulation(setting: Setting) -> Iterator[Row]:
    """Compare the simulation of a server with a general library for discrete-event simulation."""
    count = setting.scale(150_000)
    script = str(Path(__file__).with_name("simulation.py"))
    commands = {
        "apflint": [setting.tools.python, script, "apflint", str(count)],
        "simpy": [setting.tools.peer_python, script, "simpy", str(count)],
    }
    cost = measure_in_turn(commands, setting.directory, setting.long_runs)
    what = f"simulation of {count:,} requests at 150% load: fair queuing with 128 queues; simpy: a FIFO resource"
    yield _ratio(what, cost, "apflint", "simpy", 0.5, "simpy")


def growth(setting: Setting) -> Iterator[Row]:
    """Measure each command on inputs of three sizes."""
    for command in GROWING:
        sizes = [setting.scale(command.smallest) * STEP**power for power in range(3)]
        commands = {str(size): [setting.tools.apflint, *command.prepare(setting.directory, size)] for size in sizes}
        cost = measure_in_turn(commands, setting.directory, setting.long_runs, of=min)
        power = fit_exponent([item.cpu for item in cost.values()])
        yield Row(
            f"{command.name}: {', '.join(f'{size:,}' for size in sizes)}",
            "; ".join(map(_format_cost, cost.values())),
            "",
            f"n^{power:.2f}",
            f"n^{MAX_EXPONENT}",
            power,
            MAX_EXPONENT,
        )


_COUNT = """
import duckdb, sys
columns = "{'verb': 'VARCHAR'}"
query = f"SELECT verb, count(*) FROM read_json(?, columns = {columns}, format = 'newline_delimited') GROUP BY verb"
duckdb.execute(query, [sys.argv[1]]).fetchall()
"""
_LOADS = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        json.loads(line)
"""
_COMPRESS = """
import sys, zstandard
with open(sys.argv[1], "rb") as file, open(f"{sys.argv[1]}.zst", "wb") as compressed:
    zstandard.ZstdCompressor().copy_stream(file, compressed)
"""
MAX_REPLAY_BYTES = 400_000_000


def replay(setting: Setting) -> Iterator[Row]:
    """Measure `apflint replay` with the engines DuckDB and Python on a synthetic audit log.

    The CPU time of a command is the sum over all of its threads.
    """
    tools, size = setting.tools, setting.scale(setting.log_bytes)
    write_audit_log(setting.directory / "audit.log", size, inputs.SEED)
    subprocess.run([tools.python, "-c", _COMPRESS, str(setting.directory / "audit.log")], check=True)
    report = [tools.apflint, "replay", "--isolated", "--engine"]
    commands = {
        "report": [*report, "duckdb", "audit.log"],
        "count": [tools.python, "-c", _COUNT, "audit.log"],
        "zst": [*report, "duckdb", "audit.log.zst"],
        "Python": [*report, "python", "audit.log"],
        "json.loads": [tools.python, "-c", _LOADS, "audit.log"],
    }
    if has_jq := shutil.which("jq") is not None:
        commands["jq"] = ["jq", "-r", ".verb", "audit.log"]
    cost = measure_in_turn(commands, setting.directory, setting.long_runs, of=min)
    what = f"`replay` of a synthetic audit log of {size / 1e6:,.0f} MB"
    yield _ratio(f"{what}, DuckDB", cost, "report", "count", 3, "DuckDB counting one field")
    if has_jq:
        yield _ratio("the same", cost, "report", "jq", 0.5, "`jq -r .verb`")
    yield _ratio("the same, compressed with Zstandard", cost, "zst", "report", 1.3, "not compressed")
    yield _ratio(f"{what}, `--engine python`", cost, "Python", "json.loads", 1.5, "`json.loads` of the lines")
    yield from _replay_wrapped(setting, commands["report"])
    write_rotated_audit_log(setting.directory / "large", 10 * size, inputs.SEED)
    # The speed of a machine changes within minutes, so the smaller log is measured again together with the larger log.
    both = {"report": commands["report"], "large": [*report, "duckdb", "large"]}
    cost = measure_in_turn(both, setting.directory, setting.long_runs, of=min)
    yield _ratio(
        f"`replay` of {size / 1e5:,.0f} MB in files of 100 MB, DuckDB", cost, "large", "report", 11, "a tenth of it"
    )
    for name, used in (("a tenth of it", cost["report"].memory), ("the same", cost["large"].memory)):
        measured = f"{used / 1e6:,.0f} MB"
        yield Row(f"{name}: memory at its peak", measured, "", measured, "400 MB", used, MAX_REPLAY_BYTES)


def _replay_wrapped(setting: Setting, command: list[str]) -> Iterator[Row]:
    """Measure the same log in wrappers of log collectors. `command` replays the plain log."""
    commands = {"plain": command}
    for number, (name, wrap) in enumerate(WRAPPERS.items()):
        file = f"wrapped-{number}.log"
        wrap_audit_log(setting.directory / "audit.log", setting.directory / file, wrap)
        commands[name] = [*command[:-1], file]
    cost = measure_in_turn(commands, setting.directory, setting.long_runs, of=min)
    for name in WRAPPERS:
        yield _ratio(f"the same with DuckDB, as {name}", cost, name, "plain", 1.5, "the plain log")


CASES: dict[str, Callable[[Setting], Iterator[Row]]] = {
    case.__name__: case
    for case in (
        version,
        small,
        large,
        thousand,
        repository,
        requests,
        metrics,
        crowd,
        clusters,
        replay,
        simulation,
        growth,
    )
}


def _write_schema(setting: Setting) -> str:
    """Write the JSON Schema of FlowSchemas for check-jsonschema, and return its path."""
    path = setting.directory / "flow-schema.json"
    command = [setting.tools.apflint, "schema", "FlowSchema"]
    path.write_bytes(subprocess.run(command, env=environment(), capture_output=True, check=True).stdout)
    return str(path)


def _ratio(case: str, cost: dict[str, Cost], ours: str, other: str, target: float, name: str) -> Row:
    mine, theirs = cost[ours], cost[other]
    processor = mine.cpu / theirs.cpu
    return Row(
        case,
        f"{_format_cost(mine)}; {name} {_format_cost(theirs)}",
        f"{mine.seconds / theirs.seconds:.2f}",
        f"{processor:.2f}",
        f"{target:g} times {name}",
        processor,
        target,
    )


def _format_cost(cost: Cost) -> str:
    """Return wall clock and CPU time: `52 ms (50)`."""
    if cost.seconds < 1:
        return f"{1000 * cost.seconds:.0f} ms ({1000 * cost.cpu:.0f})"
    return f"{cost.seconds:.2f} s ({cost.cpu:.2f})"
