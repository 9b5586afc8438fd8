"""How the time of a command grows with its input: four times as much may take four times as long, not sixteen times."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarking import inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


STEP = 4
"""Each of the three sizes of an input is so many times the one before."""
STEEP = 1.4
"""The most. What grows as n log n does comes to 1.15 at most, and a time half of which is the square at the largest size to 1.4."""


class Growing(NamedTuple):
    """A command whose input comes in three sizes."""

    what: str
    smallest: int
    prepare: Callable[[Path, int], list[str]]
    """Makes the input in a folder; the arguments of apflint."""


def exponent(seconds: Sequence[float]) -> float:
    """The power of the size with which a time grows: 1, as the size; 2, with its square. From the times of the three sizes.

    What every run takes, whatever its input, is in all three, so it has no part in the steps from one to the next: it is
    the second step as a power of what it is for a time that grows as the size, `STEP` times the first. Other work on
    the machine only adds to a time, so take the least of several runs of each size, not their mean.
    """
    first, second = (max(after - before, 1e-6) for before, after in pairwise(seconds))
    return math.log(second / first, STEP)


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
    # As many users for each FlowSchema in all sizes: among the same forty, four times as many have twenty times the findings.
    inputs.as_list(folder / f"crowd-{count}.json", inputs.crowd(count, 10, count // 8))
    return ["check", "--fail-on", "never", f"crowd-{count}.json"]


def _entries(folder: Path, count: int) -> list[str]:
    urls = ([f"/x{number}"] for number in range(count))
    return ["check", "--fail-on", "never", _listed(folder / f"entries-{count}.json", [_with_urls(urls)])]


def _diff_values(folder: Path, count: int) -> list[str]:
    sides = (
        _listed(folder / f"{side}-{count}.json", [_with_urls([[f"/{side}{number}" for number in range(count)]])])
        for side in ("these", "those")
    )
    return ["diff", *sides]


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
    old = _listed(folder / f"old-{count}.json", schemas)
    schemas[count // 2]["spec"]["rules"][0]["subjects"].pop()
    return ["diff", old, _listed(folder / f"new-{count}.json", schemas)]


def _diff_levels(folder: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    for schema in schemas:  # of more rules each would be looked at by itself, but only where there are few
        del schema["spec"]["rules"][0]["nonResourceRules"]
    old = _listed(folder / f"before-{count}.json", schemas)
    for schema in schemas:
        schema["spec"]["priorityLevelConfiguration"]["name"] = "global-default"
    return ["diff", old, _listed(folder / f"after-{count}.json", schemas)]


def _diff_order(folder: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    old = _listed(folder / f"forth-{count}.json", schemas)
    for number, schema in enumerate(reversed(schemas)):
        schema["spec"]["matchingPrecedence"] = _FIRST + number
    return ["diff", old, _listed(folder / f"back-{count}.json", schemas)]


def _requests(folder: Path, count: int) -> list[str]:
    inputs.as_list(folder / "apf.json", [inputs.flow_schema(number) for number in range(20)])
    inputs.request_lines(folder / f"requests-{count}.jsonl", count, count)
    return ["explain", "-f", "apf.json", "--requests", f"requests-{count}.jsonl"]


def _edited(number: int, old: str, new: str) -> str:
    return inputs.manifest(number).replace(old, new)


def _joined(path: Path, text: str) -> str:
    path.write_text(text)
    return path.name


def _listed(path: Path, items: list[dict[str, Any]]) -> str:
    inputs.as_list(path, items)
    return path.name


_FIRST = 2
"""The first precedence that a FlowSchema may have: 1 is for `exempt` alone."""


def _schema(number: int) -> dict[str, Any]:
    found = inputs.flow_schema(number)
    found["spec"]["matchingPrecedence"] = _FIRST + number
    return found


def _with_urls(lists: Iterable[list[str]]) -> dict[str, Any]:
    """A FlowSchema of one rule that has a non-resource rule for each list of URLs."""
    schema = _schema(0)
    rule = {"subjects": schema["spec"]["rules"][0]["subjects"]}
    entries = [{"verbs": ["get"], "nonResourceURLs": urls} for urls in lists]
    schema["spec"]["rules"] = [rule | {"nonResourceRules": entries}]
    return schema


def _pairs(path: Path, count: int) -> str:
    """FlowSchemas, each with a level of its own."""
    items: list[dict[str, Any]] = []
    for number in range(count):
        schema = _schema(number)
        schema["spec"]["priorityLevelConfiguration"]["name"] = f"level-{number}"
        items += (schema, inputs.priority_level(f"level-{number}"))
    return _listed(path, items)


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
    Growing("`diff`, FlowSchemas in reversed order", 200, _diff_order),
    Growing("`diff`, distinct URLs of one non-resource rule", 500, _diff_values),
    Growing("`explain --requests`, requests", 10_000, _requests),
)
