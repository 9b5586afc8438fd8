"""`apflint check`: exit codes, streams, formats, options."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from apflint.cli.app import run
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: nightly
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 870
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: night-watch}}]
    resourceRules:
    - {verbs: [get], apiGroups: [""], resources: [pods], namespaces: ["*"]}
"""
BAD = GOOD.replace("870", "0x10000")
QUOTED = GOOD.replace("870", '"870"')
WARNED = GOOD.replace("name: nightly", "name: nightly\n  namespace: nights")
LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: nights}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 34
    limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6}}
"""
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {about: FlowSchema}\n"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        directory.joinpath(f"{name}.yaml").write_text(text, encoding="utf-8")


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    run(["check", "--format", "json", *arguments])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize(
    ("text", "fail_on", "status"),
    [
        (GOOD, "info", 0),
        (BAD, "error", 1),
        (BAD, "never", 0),
        (WARNED, "error", 0),
        (WARNED, "warning", 1),
        (WARNED, "info", 1),
        (OTHER, "info", 0),
    ],
)
@pytest.mark.parametrize("output", ["text", "concise", "json"])
def test_exit_code_is_the_same_in_every_format(
    directory: Path, text: str, fail_on: str, status: int, output: str
) -> None:
    write(directory, a=text)
    assert run(["check", "--fail-on", fail_on, "--format", output]) == status


def test_unreadable_path_is_reported_and_other_files_are_checked(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(directory, bad=BAD)
    assert run(["check", "--format", "concise", "missing.yaml", "bad.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("apflint: missing.yaml: No such file or directory.\n")
    assert "bad.yaml:7:23: error[APF201]: matchingPrecedence 65536 " in printed.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["check", "--select", "APF2O3"],
            'No rule has the id, the prefix or the name "APF2O3". Did you mean "APF213" or "APF203"?',
        ),
        (["check", "--ignore", "unknown-fields"], 'Did you mean "unknown-field"'),
        (["check", "--kubernetes", "2.0"], '"2.0" is not a Kubernetes release'),
        (["check", "--kubernetes", "1.99"], f"apflint knows Kubernetes 1.18 to {NEWEST.name}"),
        (["check", "--fail-on", "fatal"], "fatal"),
        (["check", "--formt", "json"], 'check has no option --formt. Did you mean "--format"?'),
        (["chekc"], 'unknown command "chekc". Did you mean "check"?'),
        (["rule", "APF999"], 'Unknown rule "APF999"'),
        (["schema", "Flowscheme"], "is not one of 'FlowSchema', "),
        (["schema", "FlowSchema", "--api-version", "v2"], 'unknown API version "v2"'),
        (["defaults", "--kubernetes", "1.17"], '"1.17" is too old'),
    ],
)
def test_wrong_usage_is_reported_on_one_line(
    directory: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    write(directory, a=GOOD)
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("apflint: ")
    assert printed.err.count("\n") == 1
    assert sentence in printed.err


def test_files_without_objects_are_noted(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=OTHER)
    assert run(["check", "--format", "json"]) == 0
    assert "no FlowSchema and no PriorityLevelConfiguration in 1 file\n" in capsys.readouterr().err
    assert run(["check", "--require-objects"]) == 2


def test_standard_input(directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001  # the current directory
    pipe(monkeypatch, BAD)
    assert report(capsys, "-")["findings"][0]["file"] == "<stdin>"
    pipe(monkeypatch, BAD)
    assert report(capsys, "--stdin-filename", "apf/a.yaml", "-")["findings"][0]["file"] == "apf/a.yaml"


def test_summary_names_the_command_that_fixes(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory, a=QUOTED)
    run(["check", "a.yaml"])
    assert capsys.readouterr().err.endswith("It can be fixed: apflint fix\n")
    pipe(monkeypatch, QUOTED)
    run(["check", "-"])
    assert capsys.readouterr().err.endswith("It can be fixed: apflint fix -\n")
    pipe(monkeypatch, QUOTED)
    run(["fix", "-"])
    assert capsys.readouterr().out == GOOD


def test_findings_in_helm_output_name_the_templates(
    directory: Path,  # noqa: ARG001  # the current directory
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = "chart/templates"
    pipe(
        monkeypatch,
        f"---\n# Source: {source}/cm.yaml\n{OTHER}---\n# Source: {source}/fs.yaml\n{BAD}---\n# Source: {source}/fs.yaml\n{WARNED}",
    )
    found = report(capsys, "-")["findings"]
    assert [(f["rule"], f["file"], f["line"]) for f in found] == [
        ("APF201", f"{source}/fs.yaml", 7),
        ("APF402", f"{source}/fs.yaml", 17),
        ("APF104", f"{source}/fs.yaml", 18),
    ]


def test_json_fields(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=BAD, b=OTHER)
    answer = report(capsys, "--kubernetes", "1.36")
    assert answer["schema"] == 2
    assert answer["kubernetes"] == "1.36"
    assert answer["summary"] == {
        "files": 2,
        "objects": 1,
        "skipped": [{"file": "b.yaml", "reason": "ConfigMap objects", "count": 1}],
        "errors": 1,
        "warnings": 0,
        "infos": 0,
        "suppressed": 0,
        "baselined": 0,
        "leftOut": 0,
    }
    (finding,) = answer["findings"]
    message = finding.pop("message")
    assert message.startswith("matchingPrecedence 65536 ")
    assert {"notes", "help", "example"} <= finding.keys()
    for part in ("notes", "help", "example"):
        finding.pop(part)
    assert finding == {
        "rule": "APF201",
        "name": "precedence-out-of-range",
        "severity": "error",
        "file": "a.yaml",
        "line": 7,
        "column": 23,
        "endLine": 7,
        "endColumn": 30,
        "object": {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "name": "nightly"},
        "field": "spec.matchingPrecedence",
        "apiserver": {"reason": "FieldValueInvalid", "field": "spec.matchingPrecedence"},
        "related": [],
        "involves": None,
        "fix": None,
        "url": "https://github.com/apflint/apflint/blob/main/rules/APF201.md",
    }


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ([], ["APF104", "APF201"]),
        (["--select", "APF2"], ["APF201"]),
        (["--select", "namespace-on-cluster-scoped,apf2"], ["APF104", "APF201"]),
        (["--ignore", "APF1"], ["APF201"]),
        (["--ignore", "APF", "--extend-select", "APF104"], ["APF104"]),
        (["--select", "APF2", "--ignore", "APF201"], []),
    ],
)
def test_select_and_ignore(
    directory: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], rules: list[str]
) -> None:
    write(directory, a=WARNED.replace("870", "20000"))
    assert sorted(f["rule"] for f in report(capsys, *arguments)["findings"]) == rules


def test_exclude(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=BAD, b=BAD)
    assert {f["file"] for f in report(capsys, "--exclude", "a.*")["findings"]} == {"b.yaml"}
    assert {f["file"] for f in report(capsys, "--exclude", "a.*", "a.yaml")["findings"]} == {"a.yaml"}
    assert report(capsys, "--exclude", "a.*", "--force-exclude", "a.yaml")["findings"] == []


def test_findings_depend_on_the_release(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=GOOD.replace("/v1\n", "/v1beta2\n").replace("matchingPrecedence", "matchingPrecedance"))
    old = report(capsys, "--kubernetes", "1.24")["findings"]
    assert [(f["rule"], f["severity"], f["apiserver"]) for f in old] == [("APF101", "warning", None)]
    new = report(capsys, "--kubernetes", "1.28")["findings"]
    assert [(f["rule"], f["severity"], bool(f["apiserver"])) for f in new] == [
        ("APF702", "warning", False),
        ("APF101", "error", True),
    ]


def test_color_option_and_variables(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory, a=BAD)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for color, environment, coloured in [
        ("auto", None, False),
        ("always", None, True),
        ("auto", "FORCE_COLOR", True),
        ("never", "FORCE_COLOR", False),
        ("always", "NO_COLOR", True),
    ]:
        with monkeypatch.context() as patch:
            if environment:
                patch.setenv(environment, "1")
            run(["check", "--color", color])
            assert ("\x1b[" in capsys.readouterr().out) == coloured, (color, environment)


def test_context_files_have_no_findings(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=GOOD.replace("workload-low", "nights"))
    directory.joinpath("rest").mkdir()
    level = BAD + "---\n" + LEVEL
    directory.joinpath("rest", "level.yaml").write_text(level, encoding="utf-8")
    assert [f["rule"] for f in report(capsys, "a.yaml")["findings"]] == ["APF401"]
    assert report(capsys, "--context", "rest", "a.yaml")["findings"] == []


def test_complete_makes_missing_priority_levels_certain(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=GOOD.replace("workload-low", "nights"))
    (found,) = report(capsys, "a.yaml")["findings"]
    (certain,) = report(capsys, "--complete", "a.yaml")["findings"]
    assert [found["severity"], certain["severity"]] == ["error", "error"]
    assert found["message"] == 'unknown priority level "nights"'
    assert certain["message"] == 'priority level "nights" does not exist'
    assert run(["check", "a.yaml"]) == run(["check", "--complete", "a.yaml"]) == 1


def test_findings_depend_on_the_server_concurrency(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=LEVEL + "---\n" + GOOD.replace("workload-low", "nights"))
    assert "takes 74 of 600 seats" in report(capsys, "--select", "APF603")["findings"][0]["message"]
    few = report(capsys, "--select", "APF603", "--server-concurrency", "60")["findings"][0]["message"]
    assert "takes 8 of 60 seats" in few


@pytest.mark.parametrize(("kubernetes", "severities"), [("1.18", {"info"}), ("1.20", {"error"})])
def test_alpha_version_is_an_info_if_the_release_serves_no_other(
    directory: Path, capsys: pytest.CaptureFixture[str], kubernetes: str, severities: set[str]
) -> None:
    write(directory, a=GOOD.replace("/v1\n", "/v1alpha1\n"))
    found = report(capsys, "--select", "APF701", "--kubernetes", kubernetes)["findings"]
    assert {f["severity"] for f in found} == severities
