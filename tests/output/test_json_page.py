"""docs/reference/json-output.md describes exactly the fields that the commands print."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.pages import read_page
from support.shell import bash, prepare

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = dict(
    re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", read_page("reference/json-output"), re.MULTILINE | re.DOTALL)
)

IN_CLUSTERS = {"clusters"}
"""Fields in the output only for a project with clusters. Other tests compare these fields with the schemas."""


def list_fields(section: str) -> set[str]:
    """Return the names in the first column of the tables of a section, without the path to the field."""
    cells = re.findall(r"^\| (`.*?`) \|", SECTIONS[section], re.MULTILINE)
    return {name.rpartition(".")[2] for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.fixture
def printed(tmp_path: Path) -> Any:
    """Return a function that runs `apflint` and returns the JSON that it prints."""
    variables = prepare(tmp_path)

    def call(line: str) -> Any:
        return json.loads(bash(f"apflint {line} --format json", tmp_path, variables).stdout)

    return call


def test_fields_of_check(printed: Any) -> None:
    report = printed("check manifests")
    assert list_fields("check") == {*report, *report["findings"][0], "skipped", *IN_CLUSTERS}
    for name in report["summary"]:
        assert f"`{name}`" in SECTIONS["check"] or name == "skipped"


def test_fields_of_explain(printed: Any) -> None:
    answer = printed("explain list pods -n batch --as alice -f manifests")
    # `observed` requires metrics, dumps or a running cluster.
    assert list_fields("explain") == {*answer, *IN_CLUSTERS, "observed"}
    for name in (*answer["request"], *answer["flow"], *answer["matchedBy"], *answer["basedOn"], *answer["outcomes"][0]):
        assert f"`{name}`" in SECTIONS["explain"], name
    for name in answer["limits"]:
        assert name == "serverConcurrency" or name in list_fields("limits")


def test_fields_of_limits(printed: Any) -> None:
    answer = printed("limits manifests")
    assert list_fields("limits") == {*answer, *answer["levels"][0]} - {"levels"}


def test_fields_of_shards(printed: Any) -> None:
    rows = printed("shards --recommend 0.01")
    hand = printed("shards --flow-schema batch -f manifests")
    assert list_fields("shards") == {*rows, *rows["rows"][0], *hand} - {"rows", "flowSchema", "distinguisher"}


def test_fields_of_diff(printed: Any) -> None:
    answer = printed("diff main branch")
    assert list_fields("diff") == {*answer, "requests"}
    for item in (answer["levels"][0], answer["objects"][0], answer["old"], answer["changes"][0]["requests"][0]):
        for name in item:
            assert f"`{name}`" in SECTIONS["diff"], name


def test_fields_of_test(printed: Any) -> None:
    answer = printed("test apf-test.yaml")
    assert list_fields("test") == {*answer, *answer["files"][0]["tests"][0]}
    for name in (*answer["files"][0], *answer["summary"]):
        assert f"`{name}`" in SECTIONS["test"], name
