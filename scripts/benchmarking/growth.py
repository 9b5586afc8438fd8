"""How the time of a command grows with its input: twice as much may take twice as long, not four times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarking import inputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Growing(NamedTuple):
    """A command whose input comes in three sizes: the smallest, twice, and four times as much."""

    what: str
    smallest: int
    prepare: Callable[[Path, int], list[str]]
    """Makes the input in a folder; the arguments of apflint."""


def _documents(folder: Path, count: int) -> list[str]:
    inputs.one_file(folder / f"documents-{count}.yaml", count)
    return ["check", f"documents-{count}.yaml"]


def _files(folder: Path, count: int) -> list[str]:
    inputs.many_files(folder / f"files-{count}", count)
    return ["check", f"files-{count}"]


def _findings(folder: Path, count: int) -> list[str]:
    name = f"findings-{count}"
    (folder / name).mkdir()
    for number in range(count):
        (folder / name / f"{number}.yaml").write_text(_edited(number, "matchingPrecedence: ", "matchingPrecedence: 9"))
    return ["check", "--fail-on", "never", name]


def _crowd(folder: Path, count: int) -> list[str]:
    inputs.as_list(folder / f"crowd-{count}.json", inputs.crowd(count, 10))
    return ["check", "--fail-on", "never", f"crowd-{count}.json"]


def _fix(folder: Path, count: int) -> list[str]:
    texts = (_edited(number, "verbs: [get, list", "verbs: [get, get, list") for number in range(count))
    return ["fix", "--diff", _joined(folder / f"fix-{count}.yaml", "".join(texts))]


def _migrate(folder: Path, count: int) -> list[str]:
    texts = (_edited(number, "k8s.io/v1", "k8s.io/v1beta3") for number in range(count))
    return ["migrate", "--to", "v1", "--diff", _joined(folder / f"migrate-{count}.yaml", "".join(texts))]


def _limits(folder: Path, count: int) -> list[str]:
    return ["limits", _pairs(folder / f"limits-{count}.json", count)]


def _graph(folder: Path, count: int) -> list[str]:
    return ["graph", _pairs(folder / f"graph-{count}.json", count)]


def _diff(folder: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    inputs.as_list(folder / f"old-{count}.json", schemas)
    schemas[count // 2]["spec"]["rules"][0]["subjects"].pop()
    inputs.as_list(folder / f"new-{count}.json", schemas)
    return ["diff", f"old-{count}.json", f"new-{count}.json"]


def _requests(folder: Path, count: int) -> list[str]:
    inputs.as_list(folder / "apf.json", [inputs.flow_schema(number) for number in range(20)])
    inputs.request_lines(folder / f"requests-{count}.jsonl", count, count)
    return ["explain", "-f", "apf.json", "--requests", f"requests-{count}.jsonl"]


def _edited(number: int, old: str, new: str) -> str:
    return inputs.manifest(number).replace(old, new)


def _joined(path: Path, text: str) -> str:
    path.write_text(text)
    return path.name


def _schema(number: int) -> dict[str, Any]:
    found = inputs.flow_schema(number)
    found["spec"]["matchingPrecedence"] = 1 + number
    return found


def _pairs(path: Path, count: int) -> str:
    """FlowSchemas, each with a level of its own."""
    items: list[dict[str, Any]] = []
    for number in range(count):
        schema = _schema(number)
        schema["spec"]["priorityLevelConfiguration"]["name"] = f"level-{number}"
        items += (schema, inputs.priority_level(f"level-{number}"))
    inputs.as_list(path, items)
    return path.name


GROWING = (
    Growing("`check`, objects in one file", 1250, _documents),
    Growing("`check`, files of one object", 500, _files),
    Growing("`check`, files with a finding", 250, _findings),
    Growing("`check`, FlowSchemas of 10 rules that overlap", 150, _crowd),
    Growing("`fix --diff`, findings in one file", 150, _fix),
    Growing("`migrate --diff`, objects in one file", 250, _migrate),
    Growing("`limits`, levels", 500, _limits),
    Growing("`graph`, FlowSchemas and levels", 500, _graph),
    Growing("`diff`, FlowSchemas of which one differs", 250, _diff),
    Growing("`explain --requests`, requests", 20_000, _requests),
)
