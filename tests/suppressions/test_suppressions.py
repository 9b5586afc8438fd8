"""Suppressions: the effect of each form, and findings about unused and invalid suppressions."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from apflint.budgets import MAX_FINDINGS_PER_RULE
from apflint.checks import CHECKS
from apflint.cli.app import run
from apflint.engine import Options, check
from apflint.suppressions import parser

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Report

MANIFEST = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: nightly
spec:
  matchingPrecedence: 870
  priorityLevelConfiguration:
    name: workload-low
  distinguisherMethod:
    type: ByFoo
  rules:
    - subjects:
        - kind: Somebody
        - kind: Nobody
      resourceRules:
        - verbs: [fly,
                  list]
          apiGroups: [""]
          resources: [pods]
          namespaces: ["*"]
"""
ALL = ["APF203", "APF207", "APF207", "APF211"]
FLAWLESS = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: daily
spec:
  matchingPrecedence: 871
  priorityLevelConfiguration:
    name: workload-low
  rules:
    - subjects:
        - kind: User
          user: {name: alice}
      resourceRules:
        - verbs: [create]
          apiGroups: [""]
          resources: [configmaps]
          namespaces: [batch]
"""


def list_rules(text: str, name: str = "a.yaml", **options: object) -> list[str]:
    return sorted(finding.rule for finding in report(text, name, **options).findings)


def without(*rules: str) -> tuple[str, ...]:
    return tuple(rule for rule in Options().rules if rule not in rules)


def report(text: str, name: str = "a.yaml", **options: object) -> Report:
    return check([(name, text.encode())], Options(**options))  # type: ignore[arg-type]  # `options` are fields of Options


def put(line: str, comment: str, text: str = MANIFEST) -> str:
    """Return the manifest with a comment at the end of a line."""
    assert text.count(line) == 1
    return text.replace(line, f"{line}  {comment}")


def before(line: str, comment: str, text: str = MANIFEST) -> str:
    """Return the manifest with a comment on a separate line before a line, with the same indentation."""
    at = text.index(line)
    start = text.rfind("\n", 0, at) + 1
    indent = text[start:at] if not text[start:at].strip() else ""
    return f"{text[:start]}{indent}{comment}\n{text[start:]}"


def test_manifest_has_the_findings_to_suppress() -> None:
    assert list_rules(MANIFEST) == ALL


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (put("type: ByFoo", "# apflint: ignore[APF203]"), ["APF207", "APF207", "APF211"]),
        (put("type: ByFoo", "#apflint:ignore[ apf203 ]: our own"), ["APF207", "APF207", "APF211"]),
        (put("type: ByFoo", "# why # apflint: ignore[unknown-distinguisher] x"), ["APF207", "APF207", "APF211"]),
        (put("- kind: Somebody", "# apflint: ignore[APF207]"), ["APF203", "APF207", "APF211"]),
        (before("- kind: Nobody", "# apflint: ignore[APF207]"), ["APF203", "APF207", "APF211"]),
        (before("- kind: Somebody", "# apflint: ignore[APF207] first only"), ["APF203", "APF207", "APF211"]),
        (before("- subjects:", "# apflint: ignore[APF207, APF211] both"), ["APF203"]),
        (before("rules:", "# apflint: ignore[APF207,APF211]"), ["APF203"]),
        (
            before("distinguisherMethod", "# apflint: ignore[APF203]\n  # and another comment"),
            ["APF207", "APF207", "APF211"],
        ),
        (before("apiVersion", "# apflint: ignore[APF203,APF207,APF211] the object"), []),
        ("# apflint: ignore[APF203,APF207,APF211]\n---\n" + MANIFEST, []),
        ("--- # apflint: ignore[APF203,APF207,APF211]\n" + MANIFEST, []),
        ("# nothing here\n---\n# apflint: ignore[APF203,APF207,APF211]\n---\n" + MANIFEST, []),
        (
            MANIFEST.replace(
                "- kind: Somebody", "- # apflint: ignore[APF207] behind the dash\n          kind: Somebody"
            ),
            ["APF203", "APF207", "APF211"],
        ),
        (MANIFEST.replace("- subjects:", "-   # apflint: ignore[APF207,APF211] both\n      subjects:"), ["APF203"]),
        (put("list]", "# apflint: ignore[APF211] the list starts above"), ["APF203", "APF207", "APF207"]),
        (MANIFEST + "# apflint: file-ignore[APF207] last\n", ["APF203", "APF211"]),
        ("# apflint: file-ignore[APF207,APF203,APF211]\n---\n" + MANIFEST, []),
        (put("type: ByFoo", "# apflint: ignore[APF203]").replace("\n", "\r\n"), ["APF207", "APF207", "APF211"]),
        (put("name: nightly", "\n  annotations: {apflint/ignore.APF207: known}"), ["APF203", "APF211"]),
        (put("name: nightly", "\n  annotations: {apflint/ignore.unknown-verb: known}"), ["APF203", "APF207", "APF207"]),
    ],
)
def test_suppressed_findings(text: str, left: list[str]) -> None:
    assert list_rules(text) == left
    assert report(text).suppressed == len(ALL) - len(left)
    assert list_rules(text, suppressions=False) == ALL


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (put("name: workload-low", "# apflint: ignore[APF203] one line too high"), ["APF901"]),
        (before("- kind: Nobody", "# apflint: ignore[APF203]"), ["APF901"]),
        (MANIFEST + "# apflint: ignore[APF203] nothing follows\n", ["APF901"]),
        (MANIFEST + "    # apflint: ignore[APF203] it was about a rule below\n---\n" + FLAWLESS, ["APF901"]),
        (FLAWLESS + "# apflint: ignore[APF203] the end of another object\n---\n" + MANIFEST, ["APF901"]),
        (FLAWLESS + "# apflint: ignore[APF203] the end of another object\n...\n---\n" + MANIFEST, ["APF901"]),
        (put("type: ByFoo", "# apflint: ignore"), ["APF902"]),
        (put("type: ByFoo", "# apflint: ignore[]"), ["APF902"]),
        (put("type: ByFoo", "# apflint: ignore[APF2]"), ["APF902"]),
        (put("type: ByFoo", "# apflint: ignor[APF203]"), ["APF902"]),
        (put("name: nightly", "\n  annotations: {apflint/ignore: all}"), ["APF902"]),
        (put("name: nightly", "\n  annotations: {apflint/ignore.APF999: all}"), ["APF902"]),
        (put("type: ByFoo", "# apflint: ignore[APF902] no rule of that kind"), ["APF901"]),
        # The text resembles a comment, but is not a comment.
        (put("name: nightly", '\n  annotations: {a: "x # apflint: ignore[APF203]"}'), []),
        (
            before("apiVersion", "# nothing").replace(
                "metadata:", "metadata:\n  annotations:\n    a: |\n      # apflint: file-ignore[APF203]\n      x"
            ),
            [],
        ),
        (before("apiVersion", "x: 'a\n  # apflint: file-ignore[APF203]\n  b'"), ["APF101"]),
        (put("type: ByFoo", "# see apflint: ignore[APF203]"), []),
    ],
)
def test_comments_without_effect(text: str, more: list[str]) -> None:
    assert list_rules(text) == sorted([*ALL, *more])
    assert report(text).suppressed == 0


def test_comment_after_the_bar_of_a_block_scalar() -> None:
    text = put("name: nightly", "\n  annotations:\n    a: |  # apflint: file-ignore[APF203] here\n      words")
    assert list_rules(text) == ["APF207", "APF207", "APF211"]


def test_unknown_rule_has_a_suggestion_and_place() -> None:
    text = put("type: ByFoo", "# apflint: ignore[APF203, unknown-distinguishers]")
    (finding,) = [finding for finding in report(text).findings if finding.rule == "APF902"]
    assert finding.message == 'unknown rule "unknown-distinguishers"'
    assert finding.notes == ("The suppression has no effect.",)
    assert finding.help == 'did you mean "unknown-distinguisher" or "idle-distinguisher"?'
    line = text.split("\n")[finding.span.line - 1]
    assert line[finding.span.column - 1 : finding.span.end_column - 1] == "unknown-distinguishers"


def test_suppression_of_a_rule_that_did_not_run_is_not_unused() -> None:
    text = put("name: workload-low", "# apflint: ignore[APF203]")
    assert "APF901" in list_rules(text)
    assert "APF901" not in list_rules(text, rules=without("APF203"))
    assert list_rules(text, rules=("APF901",)) == []


def test_missing_reason_is_reported_if_selected() -> None:
    bare = put("type: ByFoo", "# apflint: ignore[APF203] --")
    explained = put("type: ByFoo", "# apflint: ignore[APF203] -- our own")
    assert "APF903" in list_rules(bare, rules=tuple(CHECKS))
    assert "APF903" not in list_rules(explained, rules=tuple(CHECKS))
    assert "APF903" not in list_rules(bare)
    empty = put("name: nightly", '\n  annotations: {apflint/ignore.APF203: ""}')
    assert "APF903" in list_rules(empty, rules=tuple(CHECKS))


def test_annotation_applies_to_its_object() -> None:
    other = MANIFEST.replace("nightly", "daily")
    text = put("name: nightly", "\n  annotations: {apflint/ignore.APF203: x}") + "---\n" + other
    assert [
        finding.object.name for finding in report(text).findings if finding.rule == "APF203" and finding.object
    ] == ["daily"]


def test_json_has_annotations_but_no_comments() -> None:
    value = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "a", "annotations": {"apflint/ignore.APF203": "x", "b": "# apflint: file-ignore[APF206]"}},
        "spec": {
            "matchingPrecedence": 870,
            "priorityLevelConfiguration": {"name": "workload-low"},
            "distinguisherMethod": {"type": "ByFoo"},
            "rules": [{"subjects": [{"kind": "Group", "group": {"name": "a"}}]}],
        },
    }
    assert list_rules(json.dumps(value), "a.json") == ["APF206"]


def test_comments_of_an_unreadable_document() -> None:
    broken = MANIFEST.replace("matchingPrecedence: 870", "matchingPrecedence: : :")
    assert list_rules(broken) == ["APF001"]
    assert list_rules("# apflint: file-ignore[APF001] later\n" + broken) == []
    assert list_rules("# apflint: ignore[APF001] later\n" + broken) == []
    assert list_rules(broken + "# apflint: file-ignore[APF001]\n") == ["APF001"]


def test_command_line_counts_suppressions_and_ignores_them_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("# apflint: ignore[APF203, APF207, APF211] all\n" + MANIFEST, encoding="utf-8")
    assert run(["check", "--format", "json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["suppressed"] == 4
    assert run(["check", "--format", "json", "--no-ignores", str(path)]) == 1
    assert json.loads(capsys.readouterr().out)["summary"]["suppressed"] == 0


def test_thousands_of_comments_take_linear_time() -> None:
    subjects = "\n".join(f"        - kind: Nobody{number}" for number in range(3000))
    comments = "# apflint: file-ignore[APF207] x\n" * 3000
    start = time.process_time()
    assert "APF207" not in list_rules(comments + MANIFEST.replace("        - kind: Nobody", subjects))
    assert time.process_time() - start < 10


def test_maximum_number_of_suppressions(monkeypatch: pytest.MonkeyPatch) -> None:
    first = put("Somebody", "# apflint: ignore[APF207] x")
    text = put("Nobody", "# apflint: ignore[APF207] x", first)
    monkeypatch.setattr(parser, "MAX_SUPPRESSIONS", 2)
    assert list_rules(text) == ["APF203", "APF211"]
    monkeypatch.setattr(parser, "MAX_SUPPRESSIONS", 1)
    assert list_rules(text) == ["APF203", "APF207", "APF211", "APF902"]
    finding = next(finding for finding in report(text).findings if finding.rule == "APF902")
    assert finding.span.line == 14
    assert finding.message == "more than 1 suppressions in one file"


def test_no_suppression_is_unused_if_findings_are_incomplete() -> None:
    spec = "spec:\n" + "".join(f"  k{number}: 1  # apflint: ignore[APF101] x\n" for number in range(1_005))
    assert list_rules(MANIFEST[: MANIFEST.index("spec:")] + spec, rules=("APF101", "APF901")) == []


def rendered(*documents: tuple[str, str], head: str = "") -> str:
    """Return the output of `helm template`. `documents` are (template file, text) pairs."""
    return head + "".join(f"---\n# Source: chart/templates/{name}.yaml\n{text}" for name, text in documents)


IGNORED = "# apflint: file-ignore[APF203] our own\n" + MANIFEST
OTHER = MANIFEST.replace("nightly", "daily").replace("870", "871")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (rendered(("a", MANIFEST), ("b", IGNORED)), 1),
        (rendered(("a", IGNORED), ("b", OTHER)), 1),
        (rendered(("a", OTHER), ("b", MANIFEST)), 2),
        (rendered(("a", OTHER), ("a", IGNORED)), 0),
        (rendered(("a", OTHER), ("b", FLAWLESS), ("a", IGNORED)), 0),
        (rendered(("a", FLAWLESS), ("b", OTHER + "# apflint: file-ignore[APF203] at the end\n")), 0),
        (rendered(("a", OTHER), ("b", OTHER)).replace("# Source", "# source") + "---\n" + IGNORED, 0),
    ],
)
def test_file_ignore_applies_to_a_template_of_a_chart(text: str, count: int) -> None:
    for name in ("<stdin>", "<standard input>", "rendered.yaml"):
        rules = list_rules(text, name)
        assert rules.count("APF203") == count, name
        assert "APF901" not in rules


def test_file_ignore_above_the_first_template_applies_to_all() -> None:
    text = rendered(("a", MANIFEST), ("b", OTHER), head="# apflint: file-ignore[APF203] our own\n")
    assert "APF203" not in list_rules(text, "rendered.yaml")


def test_unused_file_ignore_in_a_template() -> None:
    text = rendered(("a", MANIFEST), ("b", "# apflint: file-ignore[APF203] our own\n" + FLAWLESS))
    for name in ("<stdin>", "<standard input>"):
        assert [rule for rule in list_rules(text, name) if rule in ("APF203", "APF901")] == ["APF203", "APF901"]


@pytest.mark.slow
def test_unsuppressed_finding_beyond_the_maximum_is_reported() -> None:
    """Suppressed findings do not count towards the maximum number of reported findings."""
    wrong = "\n---\n".join(
        FLAWLESS.replace("871", f"20000{comment}")
        for comment in [" # apflint: ignore[APF201] x"] * MAX_FINDINGS_PER_RULE + [""]
    )
    report = check([("a.yaml", wrong.encode())], Options(rules=("APF201", "APF901", "APF902")))
    assert [(finding.rule, finding.more) for finding in report.findings] == [("APF201", 0)]
    assert report.findings[0].document is not None
    assert report.findings[0].span.line == wrong.count("\n", 0, wrong.rindex("20000")) + 1
    assert report.suppressed == MAX_FINDINGS_PER_RULE


@pytest.mark.slow
def test_more_findings_than_the_maximum_are_suppressed() -> None:
    wrong = "\n---\n".join([FLAWLESS.replace("871", "20000")] * (MAX_FINDINGS_PER_RULE + 500))
    report = check(
        [("a.yaml", f"# apflint: file-ignore[APF201] x\n{wrong}".encode())],
        Options(rules=("APF201", "APF901", "APF902")),
    )
    assert (report.findings, report.suppressed) == ((), MAX_FINDINGS_PER_RULE + 500)


@pytest.mark.slow
def test_unsuppressed_findings_beyond_the_maximum_are_counted() -> None:
    lines = [" # apflint: ignore[APF201] x"] * (MAX_FINDINGS_PER_RULE + 1) + [""] * (MAX_FINDINGS_PER_RULE + 5)
    wrong = "\n---\n".join(FLAWLESS.replace("871", f"20000{comment}") for comment in lines)
    report = check([("a.yaml", wrong.encode())], Options(rules=("APF201", "APF901", "APF902")))
    assert (len(report.findings), report.suppressed) == (MAX_FINDINGS_PER_RULE, MAX_FINDINGS_PER_RULE + 1)
    assert [finding.more for finding in report.findings if finding.more] == [5]


def test_list_of_commas_names_no_rule() -> None:
    for comment in ("ignore[ , ]", "ignor[,]"):
        answer = report(put("type: ByFoo", f"# apflint: {comment} why"))
        assert sorted(finding.rule for finding in answer.findings) == [*ALL, "APF902"]
        assert [finding.fix for finding in answer.findings if finding.rule == "APF902"] == [None]
