"""Measures how the time of a command grows with its input: proportionally, or with the square."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarking import inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


STEP = 4
"""Factor between the three sizes of an input."""
MAX_EXPONENT = 1.4
"""Maximum exponent. n log n has at most 1.15; a time that is half quadratic at the largest size has 1.4."""


class Growing(NamedTuple):
    """A command with inputs of three sizes."""

    name: str
    smallest: int
    prepare: Callable[[Path, int], list[str]]
    """Creates the input of a size in a directory, and returns the arguments of apflint."""


def fit_exponent(seconds: Sequence[float]) -> float:
    """Return the exponent of the growth, from the times of the three sizes: 1 is proportional, 2 is quadratic.

    The constant cost of a run is in all three times, so only the two differences count: if the time is proportional, the second
    is `STEP` times the first. Other work on the machine only adds time, so pass the minimum of several runs of each size.
    """
    first, second = (max(after - before, 1e-6) for before, after in pairwise(seconds))
    return math.log(second / first, STEP)


def _documents(folder: Path, count: int) -> list[str]:
    inputs.write_one_file(folder / f"documents-{count}.yaml", count)
    return ["check", f"documents-{count}.yaml"]


def _files(folder: Path, count: int) -> list[str]:
    inputs.write_many_files(folder / f"files-{count}", count)
    return ["check", f"files-{count}"]


def _findings(folder: Path, count: int) -> list[str]:
    name = f"findings-{count}"
    (folder / name).mkdir()
    for number in range(count):
        (folder / name / f"{number}.yaml").write_text(_edited(number, "matchingPrecedence: ", "matchingPrecedence: 9"))
    return ["check", "--fail-on", "never", name]


def _crowd(folder: Path, count: int) -> list[str]:
    # The number of users grows with the FlowSchemas: among the same 40 users, 4 times the FlowSchemas have 20 times the findings.
    inputs.write_list(folder / f"crowd-{count}.json", inputs.crowd(count, 10, count // 8))
    return ["check", "--fail-on", "never", f"crowd-{count}.json"]


def _entries(folder: Path, count: int) -> list[str]:
    urls = ([f"/x{number}"] for number in range(count))
    return ["check", "--fail-on", "never", _write_list(folder / f"entries-{count}.json", [_with_urls(urls)])]


def _diff_values(folder: Path, count: int) -> list[str]:
    sides = (
        _write_list(folder / f"{side}-{count}.json", [_with_urls([[f"/{side}{number}" for number in range(count)]])])
        for side in ("these", "those")
    )
    return ["diff", *sides]


def _fix(folder: Path, count: int) -> list[str]:
    texts = (_edited(number, "verbs: [get, list", "verbs: [get, get, list") for number in range(count))
    return ["fix", "--diff", _write_text(folder / f"fix-{count}.yaml", "".join(texts))]


def _migrate(folder: Path, count: int) -> list[str]:
    texts = (_edited(number, "k8s.io/v1", "k8s.io/v1beta3") for number in range(count))
    return ["migrate", "--to", "v1", "--diff", _write_text(folder / f"migrate-{count}.yaml", "".join(texts))]


def _limits(folder: Path, count: int) -> list[str]:
    return ["limits", _pairs(folder / f"limits-{count}.json", count)]


def _graph(folder: Path, count: int) -> list[str]:
    return ["graph", _pairs(folder / f"graph-{count}.json", count)]


def _diff(folder: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    old = _write_list(folder / f"old-{count}.json", schemas)
    schemas[count // 2]["spec"]["rules"][0]["subjects"].pop()
    return ["diff", old, _write_list(folder / f"new-{count}.json", schemas)]


def _diff_levels(folder: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    for schema in schemas:  # a small configuration with more rules would be analyzed rule by rule
        del schema["spec"]["rules"][0]["nonResourceRules"]
    old = _write_list(folder / f"before-{count}.json", schemas)
    for schema in schemas:
        schema["spec"]["priorityLevelConfiguration"]["name"] = "global-default"
    return ["diff", old, _write_list(folder / f"after-{count}.json", schemas)]


def _requests(folder: Path, count: int) -> list[str]:
    inputs.write_list(folder / "apf.json", [inputs.flow_schema(number) for number in range(20)])
    inputs.write_requests(folder / f"requests-{count}.jsonl", count, count)
    return ["explain", "-f", "apf.json", "--requests", f"requests-{count}.jsonl"]


def _edited(number: int, old: str, new: str) -> str:
    return inputs.manifest(number).replace(old, new)


def _write_text(path: Path, text: str) -> str:
    path.write_text(text)
    return path.name


def _write_list(path: Path, items: list[dict[str, Any]]) -> str:
    inputs.write_list(path, items)
    return path.name


_FIRST = 2
"""The first matchingPrecedence that a FlowSchema may have: only `exempt` may have 1."""


def _schema(number: int) -> dict[str, Any]:
    schema = inputs.flow_schema(number)
    schema["spec"]["matchingPrecedence"] = _FIRST + number
    return schema


def _with_urls(lists: Iterable[list[str]]) -> dict[str, Any]:
    """Return a FlowSchema of one rule, with a non-resource rule for each list of URLs."""
    schema = _schema(0)
    rule = {"subjects": schema["spec"]["rules"][0]["subjects"]}
    entries = [{"verbs": ["get"], "nonResourceURLs": urls} for urls in lists]
    schema["spec"]["rules"] = [rule | {"nonResourceRules": entries}]
    return schema


def _pairs(path: Path, count: int) -> str:
    """Write FlowSchemas, each with its own priority level."""
    items: list[dict[str, Any]] = []
    for number in range(count):
        schema = _schema(number)
        schema["spec"]["priorityLevelConfiguration"]["name"] = f"level-{number}"
        items += (schema, inputs.priority_level(f"level-{number}"))
    return _write_list(path, items)


GROWING = (
    Growing("`check`, objects in one file", 300, _documents),
    Growing("`check`, files of one object", 250, _files),
    Growing("`check`, files with a finding", 125, _findings),
    Growing("`check`, FlowSchemas of 10 rules that overlap", 80, _crowd),
    Growing("`check`, resource rules of one rule", 1_000, _entries),
    Growing("`fix --diff`, findings in one file", 75, _fix),
    Growing("`migrate --diff`, objects in one file", 250, _migrate),
    Growing("`limits`, levels", 250, _limits),
    Growing("`graph`, FlowSchemas and levels", 125, _graph),
    Growing("`diff`, FlowSchemas of which one differs", 125, _diff),
    Growing("`diff`, FlowSchemas that all get another level", 100, _diff_levels),
    Growing("`diff`, distinct URLs of one non-resource rule", 500, _diff_values),
    Growing("`explain --requests`, requests", 10_000, _requests),
)
