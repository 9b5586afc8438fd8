"""Inputs whose size could exhaust time or memory: huge files, huge values, many documents and many findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from limited import HEAD, NEIGHBOUR, apflint, checked
from test_hostile_text import ALIASES, NESTED

from apflint.output.findings import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

MILLION = 1_000_000
OTHER = "kind: ConfigMap\n---\n"
NAMELESS = "kind: FlowSchema\n---\n"
BROKEN = "a: b: FlowSchema\n---\n"


def blown(directory: Path, name: str, head: str, filler: str, size: int) -> None:
    """Write a file of `size` bytes: the head, and the filler as often as needed."""
    with (directory / name).open("w") as file:
        file.write(head)
        piece = filler * (MILLION // len(filler))
        while file.tell() < size:
            file.write(piece)


@pytest.mark.parametrize(
    ("name", "head", "filler"),
    [
        ("bad.yaml", HEAD + "  x: ", "x"),
        ("bad.yaml", HEAD, "# comment\n"),
        ("bad.json", '{"kind": "FlowSchema", "x": "', "x"),
    ],
)
def test_a_file_of_100_megabytes_is_refused(name: str, head: str, filler: str, tmp_path: Path) -> None:
    blown(tmp_path, name, head, filler, 100 * MILLION)
    run, findings = checked(tmp_path)
    assert findings == []
    assert f"{name}: The file has 10" in run.err
    assert "MB, but apflint reads at most 32 MiB. Split the file, or use --exclude." in run.err
    assert run.status == 2


@pytest.mark.parametrize("name", ["bad.yaml", "bad.json"])
def test_a_file_of_100_megabytes_without_the_group_is_searched(name: str, tmp_path: Path) -> None:
    blown(tmp_path, name, "{", '"a": "b",\n', 100 * MILLION)
    run, findings = checked(tmp_path)
    assert findings == []
    assert "bad" not in run.err
    assert run.status == 1


@pytest.mark.parametrize(
    ("name", "head", "filler", "rule"),
    [
        ("bad.yaml", HEAD + "  x: ", "x", "APF004"),
        ("bad.yaml", HEAD + "  x: |\n", "    \U0001f600 line\n", "APF004"),
        ("bad.json", '{"kind": "FlowSchema", "x": "', "x", "APF001"),
        ("bad.json", '{"kind": "FlowSchema", "x": [', "1,", "APF004"),
    ],
)
def test_the_largest_file_that_is_read(name: str, head: str, filler: str, rule: str, tmp_path: Path) -> None:
    blown(tmp_path, name, head, filler, 32 * MILLION)
    run, findings = checked(tmp_path)
    assert [finding["rule"] for finding in findings] == [rule]
    assert run.status == 1


# Functions create the large texts, because constants would be in the memory of each test process and slow down forks.
@pytest.mark.parametrize(
    "text", [lambda: HEAD + "  x: '" + "x" * 15 * MILLION + "'\n", lambda: HEAD.replace(" x", " " + "x" * 15 * MILLION)]
)
def test_a_value_of_15_megabytes(text: Callable[[], str], tmp_path: Path) -> None:
    """The value is read, but not repeated in each finding."""
    (tmp_path / "bad.yaml").write_text(text())
    run, findings = checked(tmp_path, "--select", "APF1,APF2")
    assert len(findings) > 0
    assert len(run.out) < 20_000
    assert run.status == 1


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("bad.yaml", lambda: OTHER * MILLION + "# FlowSchema\n", set()),
        ("bad.json", lambda: '{"kind": "ConfigMap"}\n' * MILLION + '{"a": "FlowSchema"}', set()),
        ("bad.yaml", lambda: NAMELESS * MILLION, {"APF004", "APF005"}),
        ("bad.json", lambda: '{"kind": "FlowSchema"}\n' * MILLION, {"APF004", "APF005"}),
        ("bad.yaml", lambda: BROKEN * MILLION, {"APF001", "APF004"}),
        ("bad.json", lambda: '{"kind": FlowSchema}\n' * MILLION, {"APF001", "APF004"}),
        ("bad.yaml", lambda: "".join(f"kind: K{i}\n---\n" for i in range(MILLION)) + "# FlowSchema\n", set()),
    ],
    ids=["others", "others in JSON", "ours", "ours in JSON", "broken", "broken in JSON", "kinds"],
)
def test_a_million_documents(name: str, text: Callable[[], str], rules: set[str], tmp_path: Path) -> None:
    """APF documents are read up to a bound, and the first document beyond the bound is reported."""
    (tmp_path / name).write_text(text())
    run, findings = checked(tmp_path)
    assert {finding["rule"] for finding in findings} == rules
    assert len(json.loads(run.out)["summary"]["skipped"]) <= 202
    assert run.status == 1
    for finding in findings:
        if finding["rule"] == "APF004":
            assert "this file is too large: apflint checks only its first" in finding["message"]
            assert finding["apiserver"] is None


FLOW_SCHEMA = '{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"}'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.json", lambda: "1 " * 15 * MILLION + FLOW_SCHEMA, "more than 16,777,216 characters"),
        ("bad.json", lambda: FLOW_SCHEMA * 300_000, "more than 16,777,216 characters"),
        ("bad.json", lambda: "1 " * 2 * MILLION + FLOW_SCHEMA, "more than 1,100,000 documents in one file"),
        ("bad.yaml", lambda: "---\n" * 2 * MILLION + "# FlowSchema\n", "more than 1,100,000 documents in one file"),
        ("bad.yaml", lambda: HEAD + "\n" * 31 * MILLION, "more than 3,000,000 lines in one file"),
        ("bad.yaml", lambda: HEAD + "\r" * 31 * MILLION, "more than 3,000,000 lines in one file"),
        ("bad.json", lambda: "}\n{" * 10 * MILLION + FLOW_SCHEMA, "more than 3,000,000 lines in one file"),
        (
            "bad.yaml",
            lambda: "apiVersion: v1\nkind: List\nitems:\n" + f"- {FLOW_SCHEMA}\n" * 80_000,
            "this file is too large: apflint checks only its first",
        ),
        ("bad.yaml", lambda: f"{HEAD}---\n" * 25_000, "this file is too large: apflint checks only its first"),
    ],
    ids=["numbers", "a line", "values", "markers", "empty lines", "old lines", "braces", "items", "documents"],
)
def test_bounds_that_were_exceeded_are_reported(
    name: str, text: Callable[[], str], message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text())
    run, findings = checked(tmp_path, "--select", "APF0", "--extend-select", "APF201")
    assert [finding["rule"] for finding in findings] == ["APF004"]
    assert message in findings[0]["message"]
    assert run.status == 1


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        # Python's decoder counts the lines before each error, which takes quadratic time for a million errors.
        ("bad.json", lambda: '{"kind": "FlowSchema" x}\n' * MILLION, "APF001"),
        ("bad.json", lambda: '{"kind": "FlowSchema", "a": "\1"}\n' * MILLION, "APF001"),
        ("bad.yaml", lambda: "apiVersion: v1\nkind: List\nitems:\n" + f"- {FLOW_SCHEMA[:-2]}e'}}\n" * 60_000, "APF001"),
        (
            "bad.yaml",
            lambda: "apiVersion: v1\nkind: List\nitems:\n" + f"- {FLOW_SCHEMA.replace('Schema', 'Shema')}\n" * 30_000,
            "APF005",
        ),
        ("bad.yaml", lambda: HEAD + "  # apflint: ignore[APF201] x\n" * 50_000 + "  a: 1\n", "APF901"),
        ("bad.yaml", lambda: HEAD + "  # apflint: ignore[APF201] x\n" * 200_000 + "  a: 1\n", "APF902"),
        ("bad.yaml", lambda: HEAD + "  # apflint: ignore[APF999] x\n" * 200_000 + "  a: 1\n", "APF902"),
        ("bad.yaml", lambda: HEAD + "  # apflint: ignor[APF201] x\n" * 200_000 + "  a: 1\n", "APF902"),
    ],
    ids=[
        "mistakes",
        "strings",
        "a list",
        "near misses",
        "suppressions",
        "more suppressions",
        "suppressions of no rule",
        "misspelt suppressions",
    ],
)
def test_many_mistakes(name: str, text: Callable[[], str], rule: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text())
    run, findings = checked(tmp_path, "--select", "APF0,APF9", "--extend-select", "APF201")
    assert rule in {finding["rule"] for finding in findings}
    assert len(findings) <= 1_001
    assert run.status == 1


MANY = 16_000
WORDS = [f"x{number}" for number in range(MANY)]


def entry(**part: object) -> dict[str, object]:
    """Return an entry of resourceRules that matches everything, except for the given fields."""
    return {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"], **part}


def getting(urls: list[str], verbs: tuple[str, ...] = ("get",)) -> dict[str, object]:
    return {"verbs": [*verbs], "nonResourceURLs": urls}


def flow_schema(name: str, entries: list[dict[str, object]], users: tuple[str, ...] = ("alice",)) -> str:
    kind = "nonResourceRules" if "nonResourceURLs" in entries[0] else "resourceRules"
    rule = {"subjects": [{"kind": "User", "user": {"name": user}} for user in users], kind: entries}
    spec = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "workload-low"}, "rules": [rule]}
    return json.dumps(json.loads(FLOW_SCHEMA) | {"metadata": {"name": name}, "spec": spec}) + "\n"


LONG = {
    "groups": ("APF504", [entry(apiGroups=[f"apps/v{number}" for number in range(MANY)])]),
    "one resource": ("APF504", [entry(apiGroups=[""], resources=["Pods"] * MANY)]),
    "groups and resources": ("APF504", [entry(apiGroups=[*WORDS, ""], resources=["Pods", *WORDS])]),
    "namespaced": ("APF505", [entry(apiGroups=[*WORDS, ""], resources=["pods"] * MANY, clusterScope=False)]),
    "of no namespace": ("APF506", [entry(apiGroups=[""] * MANY, resources=["nodes"] * MANY, clusterScope=False)]),
    "verbs": ("APF504", [getting(["/x"], (*["list"] * MANY, "get"))]),
    "namespaces": ("APF213", [entry(namespaces=[word.upper() for word in WORDS])]),
    "paths": ("APF214", [getting(WORDS)]),
    "entries with paths": ("", [getting([f"/{word}"]) for word in WORDS[:10_000]]),
    "entries with resources": ("", [entry(resources=[word]) for word in WORDS[:10_000]]),
}


@pytest.mark.parametrize("name", LONG)
def test_long_lists(name: str, tmp_path: Path) -> None:
    """Items must not be compared pairwise."""
    rule, entries = LONG[name]
    (tmp_path / "bad.json").write_text(flow_schema("x", entries))
    run, findings = checked(tmp_path, "--select", f"{rule or 'APF504'},APF501,APF502,APF201", "--fail-on", "never")
    assert rule in {finding["rule"] for finding in findings} if rule else findings == []
    assert run.status == 0


SUBJECTS = {
    "groups": lambda number: {"kind": "Group", "group": {"name": f"g{number}"}},
    "users": lambda number: {"kind": "User", "user": {"name": f"u{number}"}},
    "service accounts": lambda number: {
        "kind": "ServiceAccount",
        "serviceAccount": {"name": "a", "namespace": f"n{number}"},
    },
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_as_many_subjects_as_a_document_may_have(name: str, tmp_path: Path) -> None:
    """One proof covers many subjects, because all subjects of the document match in the same way."""
    subjects = [SUBJECTS[name](number) for number in range(50_000)]
    value = json.loads(flow_schema("x", [entry()]))
    value["spec"]["rules"][0]["subjects"] = subjects
    (tmp_path / "bad.json").write_text(json.dumps(value))
    _, findings = checked(tmp_path, "--select", "APF501,APF502,APF512,APF201")
    assert findings == []


def test_as_many_misspelled_verbs_as_a_document_may_have(tmp_path: Path) -> None:
    verbs = [f"gt{number}" for number in range(450_000)]
    (tmp_path / "bad.json").write_text(flow_schema("x", [entry(verbs=verbs)]))
    _, findings = checked(tmp_path)
    assert [found["rule"] for found in findings] == ["APF211"]
    assert 'unknown verbs "gt0", "gt1", "gt2", "gt3" and 449996 more' in findings[0]["message"]


TIED = {
    "resources": [[entry(resources=[f"{side}{word}"]) for word in WORDS[:2_000]] for side in "ab"],
    "pairs": [
        [
            entry(resources=[word], namespaces=[f"n{at + side}"], clusterScope=False)
            for at, word in enumerate(WORDS[:2_000])
        ]
        for side in (0, 1)
    ],
}


@pytest.mark.parametrize("name", TIED)
def test_long_rules_of_one_precedence_that_never_meet(name: str, tmp_path: Path) -> None:
    first, other = TIED[name]
    (tmp_path / "bad.json").write_text(flow_schema("a", first) + flow_schema("b", other))
    _, findings = checked(tmp_path, "--select", "APF503,APF201")
    assert findings == []


def test_thousands_of_users_of_one_precedence_that_never_meet(tmp_path: Path) -> None:
    users = [tuple(f"{side}{word}" for word in WORDS[:2_000]) for side in "ab"]
    (tmp_path / "bad.json").write_text(flow_schema("a", [entry()], users[0]) + flow_schema("b", [entry()], users[1]))
    _, findings = checked(tmp_path, "--select", "APF503,APF201")
    assert findings == []


@pytest.mark.parametrize(
    "line",
    ["explain list pods -n x --as y", "limits", "graph", "diff defaults:1.30 .", "fix --diff .", "migrate --diff ."],
)
def test_other_commands_end_as_well(line: str, tmp_path: Path) -> None:
    for number, (name, text) in enumerate({**ALIASES, **NESTED}.items()):
        if name != "a million values":
            (tmp_path / f"{number}.yaml").write_text(text[:200_000])
    (tmp_path / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(tmp_path, *line.split())
    assert run.status in (0, 1, 2)
    assert run.out + run.err


@pytest.mark.parametrize("form", FORMATS)
def test_hundreds_of_thousands_of_findings(form: str, tmp_path: Path) -> None:
    """Every format reports a thousand findings, and states that there are more."""
    # Reading takes most of the time and does not depend on the format, so only one format gets the largest file.
    many = 200_000 if form == "json" else 20_000
    (tmp_path / "bad.yaml").write_text(HEAD + "".join(f"  k{i}: 1\n" for i in range(many)))
    (tmp_path / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(tmp_path, "check", "--select", "APF101,APF201", "--format", form, "bad.yaml", "neighbour.yaml")
    assert "neighbour.yaml" in run.out
    assert len(run.out) < 2 * MILLION
    assert "At least 1,000 more findings of APF101 in this file are not reported" in run.out
    assert run.status == 1


def test_findings_of_a_huge_name(tmp_path: Path) -> None:
    name = "x" * 5 * MILLION
    keys = "".join(f"  k{i}: 1\n  k{i}: 2\n" for i in range(1_000))
    (tmp_path / "bad.yaml").write_text(HEAD.replace("name: x", f"name: {name}") + keys)
    run, findings = checked(tmp_path, "--select", "APF0,APF101,APF201")
    assert len(findings) == 2_000
    assert len(run.out) < 3 * MILLION
    assert run.status == 1


def test_a_chart_of_a_million_templates(tmp_path: Path) -> None:
    run = apflint(tmp_path, "check", "-", stdin=b"---\n# Source: a\nkind: FlowSchema\n" * 300_000)
    assert "APF004" in run.out
    assert run.status == 1


@pytest.mark.parametrize("command", [["check", "-q"], ["graph"]])
@pytest.mark.parametrize("precedence", [1000, 2000])
def test_two_flow_schemas_that_share_thousands_of_urls(command: list[str], precedence: int, tmp_path: Path) -> None:
    urls = ", ".join(f"/p{number}" for number in range(16_000))
    rule = f"  rules:\n  - subjects: [{{kind: User, user: {{name: u}}}}]\n    nonResourceRules: [{{verbs: [get], nonResourceURLs: [{urls}]}}]\n"
    text = HEAD.replace("exempt", "workload-low") + "  matchingPrecedence: 1000\n" + rule
    other = text.replace("name: x", "name: other").replace("1000", str(precedence), 1)
    (tmp_path / "two.yaml").write_text(f"{text}---\n{other}")
    run = apflint(tmp_path, *command, "two.yaml")
    assert run.status == (command[0] == "check")  # the second FlowSchema is unreachable


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("verbs: [get]", "verbs: [BIG]"),
        ("verbs: [get]", "BIG: [get]"),
        ("name: exempt", "name: BIG"),
        ("kind: User", "kind: BIG"),
        ("kind: FlowSchema", "kind: BIG"),
        ("k8s.io/v1", "k8s.io.BIG/v1"),
        ("kind: FlowSchema", "kind: FlowSchema  # apflint: BIG"),
        ("kind: FlowSchema", "kind: FlowSchema  # apflint: ignore[BIG] x"),
    ],
)
def test_nothing_is_similar_to_a_word_of_15_megabytes(old: str, new: str, tmp_path: Path) -> None:
    rule = "  rules:\n  - subjects: [{kind: User, user: {name: u}}]\n    nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]\n"
    text = f"{HEAD}{rule}"
    assert old in text
    (tmp_path / "a.yaml").write_text(text.replace(old, new.replace("BIG", "g" + "et" * 7_500_000), 1))
    run = apflint(tmp_path, "check", "--format", "json", "a.yaml")
    assert json.loads(run.out)["findings"]
    assert "Did you mean" not in run.out
    assert len(run.out) < 20_000
