"""APF402 for directories that define the same objects."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest
from support.builders import flow_schema, priority_level

from apflint.budgets import MAX_DIRECTORY_PAIRS
from apflint.effective_configuration import Assumptions
from apflint.engine import Options, check
from apflint.load.source_text import STDIN
from apflint.output.console import Style
from apflint.output.findings import FORMATS, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Finding, Report

TWO = (flow_schema("a"), priority_level("b"))


def report(files: Mapping[str, tuple[object, ...]], assumptions: Assumptions = Assumptions()) -> Report:  # noqa: B008
    """Return the report of APF402 about files of objects."""
    inputs = [(name, "\n---\n".join(map(json.dumps, objects)).encode()) for name, objects in files.items()]
    return check(inputs, Options(rules=("APF402",), assumptions=assumptions))


def list_findings(*names: str) -> list[Finding]:
    """Return the findings for files that all define the same two objects."""
    return [*report(dict.fromkeys(names, TWO)).findings]


def test_two_directories_are_one_finding() -> None:
    (finding,) = list_findings("clusters/prod/apf/x.yaml", "clusters/staging/apf/x.yaml")
    assert finding.message == ('clusters/prod and clusters/staging define the same 2 objects, such as FlowSchema "a"')
    assert (finding.file, finding.object and finding.object.name) == ("clusters/staging/apf/x.yaml", "a")
    assert [place.file for place in finding.related] == ["clusters/prod/apf/x.yaml"]
    assert finding.help is not None
    assert tomllib.loads(finding.help.partition("\n")[2]) == {
        "cluster": [
            {"name": "prod", "paths": ["clusters/prod"]},
            {"name": "staging", "paths": ["clusters/staging"]},
        ]
    }


def test_tables_have_unique_names() -> None:
    findings = list_findings("eu/overlays/prod/x.yaml", "ap/overlays/prod/x.yaml", "us/overlays/prod/x.yaml")
    tables = [
        table for finding in findings for table in tomllib.loads((finding.help or "").partition("\n")[2])["cluster"]
    ]
    assert len(tables) == 4
    assert {table["name"]: table["paths"] for table in tables} == {
        f"{region}/overlays/prod": [f"{region}/overlays/prod"] for region in ("eu", "ap", "us")
    }


def test_nested_directories_have_no_tables() -> None:
    """The help suggests no settings tables: a table for `clusters/eu` and a table for `clusters/eu/dev` would overlap."""
    findings = list_findings(
        *(f"clusters/{region}/{name}/x.yaml" for region in ("eu", "us") for name in ("dev", "prod"))
    )
    assert len(findings) == 2
    for finding in findings:
        assert finding.help is not None
        assert finding.help.endswith("add the output of `apflint config --suggest-clusters` to apflint.toml")


def test_one_object_is_named() -> None:
    both = {"x/a.yaml": (flow_schema("a"),), "y/a.yaml": (flow_schema("a"), flow_schema("other"))}
    (finding,) = report(both).findings
    assert finding.message == 'x and y both define FlowSchema "a"'


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (("a/x.yaml", "b/x.yaml", "c/x.yaml"), ["a and b", "a and c"]),
        (("eu/clusters/prod/x.yaml", "us/clusters/prod/x.yaml"), ["eu/clusters/prod and us/clusters/prod"]),
        (("base/x.yaml", "overlays/prod/x.yaml"), ["base and overlays/prod"]),
        (("apps/x/overlays/prod/a/x.yaml", "apps/y/b/x.yaml"), ["apps/x/overlays/prod and apps/y"]),
        (("/w/a/x.yaml", "/w/b/x.yaml"), ["/w/a and /w/b"]),
        (("../a/x.yaml", "b/x.yaml"), ["../a and b"]),
        ((" a/x.yaml", "::b/x.yaml"), ['" a" and "::b"']),
        (("a and b/x.yaml", "é/x.yaml"), ['"a and b" and é']),
    ],
)
def test_pairs_of_directories(names: tuple[str, ...], pairs: list[str]) -> None:
    assert [finding.message.partition(" define")[0] for finding in list_findings(*names)] == pairs


@pytest.mark.parametrize(
    "names",
    [
        ("x.yaml", "y.yaml"),
        ("a/x.yaml", "a/y.yaml"),
        ("x.yaml", "a/x.yaml"),
        ("a/b/c/x.yaml", "a/x.yaml"),
        (STDIN, "a/x.yaml"),
    ],
)
def test_one_configuration_has_a_finding_for_each_object(names: tuple[str, str]) -> None:
    for order in (names, names[::-1]):
        assert [(finding.message, finding.file) for finding in list_findings(*order)] == [
            ('FlowSchema "a" is already defined', order[1]),
            ('PriorityLevelConfiguration "b" is already defined', order[1]),
        ]


def test_duplicates_within_the_second_directory_are_reported_there() -> None:
    findings = list_findings("a/x.yaml", "b/x.yaml", "b/deep/y.yaml")
    assert [(finding.file, [place.file for place in finding.related]) for finding in findings] == [
        ("b/deep/y.yaml", ["b/x.yaml"]),
        ("b/deep/y.yaml", ["b/x.yaml"]),
        ("b/x.yaml", ["a/x.yaml"]),
    ]


@pytest.mark.parametrize("assumptions", [Assumptions(one_cluster=True), Assumptions(complete=True)])
def test_one_cluster_has_a_finding_for_each_object(assumptions: Assumptions) -> None:
    assert len(report(dict.fromkeys(("a/x.yaml", "b/x.yaml"), TWO), assumptions).findings) == 2


def test_output_of_helm_is_one_configuration() -> None:
    text = "".join(
        f"---\n# Source: chart/charts/{name}/templates/x.yaml\n{json.dumps(flow_schema('a'))}\n" for name in "ab"
    )
    (finding,) = check([(STDIN, text.encode())], Options(rules=("APF402",))).findings
    assert finding.message == 'FlowSchema "a" is already defined'


def test_many_directories_have_few_findings() -> None:
    names = [f"clusters/c{number:03}/x.yaml" for number in range(200)]
    findings = list_findings(*names)
    assert len(findings) == MAX_DIRECTORY_PAIRS
    assert findings[-1].notes[-1] == "189 more pairs of directories define the same objects."
    for finding in findings:
        assert finding.help == (
            "do they configure different clusters?"
            " Then add the output of `apflint config --suggest-clusters` to apflint.toml"
        )
    all_help = [finding.help or "" for finding in list_findings(*names[: MAX_DIRECTORY_PAIRS + 1])]
    assert [len(tomllib.loads(text.partition("\n")[2])["cluster"]) for text in all_help] == [2] * MAX_DIRECTORY_PAIRS


@pytest.mark.parametrize("name", ["text", "junit"])
def test_tables_are_lines_of_their_own(name: str) -> None:
    lines = render(report(dict.fromkeys(("a/x.yaml", "b/x.yaml"), TWO)), name, Style()).splitlines()
    assert [line.strip() for line in lines].count("[[cluster]]") == 2


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"text", "junit", "json", "concise"}))
def test_other_formats_show_no_tables(name: str) -> None:
    text = render(report(dict.fromkeys(("a/x.yaml", "b/x.yaml"), TWO)), name, Style())
    assert "suggest-clusters" in text
    assert "[[cluster]]" not in text


def test_names_of_directories_cannot_add_lines() -> None:
    (finding,) = list_findings("a\n::add-mask::x/x.yaml", "b/x.yaml")
    text = render(report(dict.fromkeys(("a\n::add-mask::x/x.yaml", "b/x.yaml"), TWO)), "text", Style())
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert tomllib.loads((finding.help or "").partition("\n")[2])["cluster"][0] == {
        "name": "a---add-mask--x",
        "paths": ["a\n::add-mask::x"],
    }
