"""Measures whether the time of a command grows linearly or quadratically with the size of its input."""

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
"""Maximum exponent of the growth. A time proportional to n log n has an exponent of at most 1.15. A time whose
quadratic part is half of the total at the largest size has the exponent 1.4."""


class Growing(NamedTuple):
    """A command to measure with inputs of three sizes."""

    name: str
    smallest: int
    prepare: Callable[[Path, int], list[str]]
    """Function that creates the input of a size in a directory, and returns the arguments of apflint."""


def fit_exponent(seconds: Sequence[float]) -> float:
    """Return the exponent of the growth, from the times of the three sizes: 1 is proportional, 2 is quadratic.

    All three times include the constant cost of a run, so only the differences between consecutive times matter. For
    linear growth, the second difference is `STEP` times the first. Other work on the machine only adds time, so pass
    the minimum of several runs of each size.
    """
    first, second = (max(after - before, 1e-6) for before, after in pairwise(seconds))
    return math.log(second / first, STEP)


def _documents(directory: Path, count: int) -> list[str]:
    inputs.write_one_file(directory / f"documents-{count}.yaml", count)
    return ["check", f"documents-{count}.yaml"]


def _files(directory: Path, count: int) -> list[str]:
    inputs.write_many_files(directory / f"files-{count}", count)
    return ["check", f"files-{count}"]


def _findings(directory: Path, count: int) -> list[str]:
    name = f"findings-{count}"
    (directory / name).mkdir()
    for number in range(count):
        (directory / name / f"{number}.yaml").write_text(
            _edited(number, "matchingPrecedence: ", "matchingPrecedence: 9")
        )
    return ["check", "--fail-on", "never", name]


def _crowd(directory: Path, count: int) -> list[str]:
    # With a constant number of 40 users, 4 times as many FlowSchemas would have 20 times as many findings. So the
    # number of users grows with the number of FlowSchemas.
    inputs.write_list(directory / f"crowd-{count}.json", inputs.crowd(count, 10, count // 8))
    return ["check", "--fail-on", "never", f"crowd-{count}.json"]


def _entries(directory: Path, count: int) -> list[str]:
    urls = ([f"/x{number}"] for number in range(count))
    return ["check", "--fail-on", "never", _write_list(directory / f"entries-{count}.json", [_with_urls(urls)])]


def _misspelled_verbs(directory: Path, count: int) -> list[str]:
    schema = _schema(0)
    schema["spec"]["rules"][0]["resourceRules"][0]["verbs"] = [f"delete{number:x}" for number in range(count)]
    return ["check", "--fail-on", "never", _write_list(directory / f"verbs-{count}.json", [schema])]


def _misspelled_groups(directory: Path, count: int) -> list[str]:
    schemas = [_schema(number % 4_000) for number in range(count)]
    for number, schema in enumerate(schemas):
        schema["metadata"]["name"] = f"schema-{number}"
        name = f"system:monitor{number % 36:x}{chr(97 + number % 26)}"
        schema["spec"]["rules"][0]["subjects"] = [{"kind": "Group", "group": {"name": f"{name}{number // 936}"}}]
    return ["check", "--fail-on", "never", _write_list(directory / f"groups-{count}.json", schemas)]


def _diff_values(directory: Path, count: int) -> list[str]:
    sides = (
        _write_list(directory / f"{side}-{count}.json", [_with_urls([[f"/{side}{number}" for number in range(count)]])])
        for side in ("these", "those")
    )
    return ["diff", *sides]


def _fix(directory: Path, count: int) -> list[str]:
    texts = (_edited(number, "verbs: [get, list", "verbs: [get, get, list") for number in range(count))
    return ["fix", "--diff", _write_text(directory / f"fix-{count}.yaml", "".join(texts))]


def _migrate(directory: Path, count: int) -> list[str]:
    texts = (_edited(number, "k8s.io/v1", "k8s.io/v1beta3") for number in range(count))
    return ["migrate", "--to", "v1", "--diff", _write_text(directory / f"migrate-{count}.yaml", "".join(texts))]


def _limits(directory: Path, count: int) -> list[str]:
    return ["limits", _pairs(directory / f"limits-{count}.json", count)]


def _graph(directory: Path, count: int) -> list[str]:
    return ["graph", _pairs(directory / f"graph-{count}.json", count)]


def _diff(directory: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    old = _write_list(directory / f"old-{count}.json", schemas)
    schemas[count // 2]["spec"]["rules"][0]["subjects"].pop()
    return ["diff", old, _write_list(directory / f"new-{count}.json", schemas)]


def _diff_levels(directory: Path, count: int) -> list[str]:
    schemas = [_schema(number) for number in range(count)]
    for schema in schemas:  # with a single policy rule per FlowSchema, `diff` does not analyze each rule separately
        del schema["spec"]["rules"][0]["nonResourceRules"]
    old = _write_list(directory / f"before-{count}.json", schemas)
    for schema in schemas:
        schema["spec"]["priorityLevelConfiguration"]["name"] = "global-default"
    return ["diff", old, _write_list(directory / f"after-{count}.json", schemas)]


def _requests(directory: Path, count: int) -> list[str]:
    inputs.write_list(directory / "apf.json", [inputs.flow_schema(number) for number in range(20)])
    inputs.write_requests(directory / f"requests-{count}.jsonl", count, count)
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
"""Lowest matchingPrecedence of FlowSchemas other than `exempt`."""


def _schema(number: int) -> dict[str, Any]:
    schema = inputs.flow_schema(number)
    schema["spec"]["matchingPrecedence"] = _FIRST + number
    return schema


def _with_urls(lists: Iterable[list[str]]) -> dict[str, Any]:
    """Return a FlowSchema with one rule that has a non-resource rule for each list of URLs."""
    schema = _schema(0)
    rule = {"subjects": schema["spec"]["rules"][0]["subjects"]}
    entries = [{"verbs": ["get"], "nonResourceURLs": urls} for urls in lists]
    schema["spec"]["rules"] = [rule | {"nonResourceRules": entries}]
    return schema


def _pairs(path: Path, count: int) -> str:
    """Write FlowSchemas and a separate priority level for each. Return the path as an argument."""
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
    Growing("`check`, misspelled verbs of one rule", 1_000, _misspelled_verbs),
    Growing("`check`, FlowSchemas with misspelled groups", 250, _misspelled_groups),
    Growing("`fix --diff`, findings in one file", 75, _fix),
    Growing("`migrate --diff`, objects in one file", 250, _migrate),
    Growing("`limits`, levels", 250, _limits),
    Growing("`graph`, FlowSchemas and levels", 125, _graph),
    Growing("`diff`, FlowSchemas of which one differs", 125, _diff),
    Growing("`diff`, FlowSchemas that all get another level", 100, _diff_levels),
    Growing("`diff`, distinct URLs of one non-resource rule", 500, _diff_values),
    Growing("`explain --requests`, requests", 10_000, _requests),
)
