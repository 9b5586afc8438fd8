"""APF207, APF208: subjects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.builders import findings, findings_in_text, flow_schema, service_account, user


@pytest.mark.parametrize(
    ("subject", "help_text"),
    [
        ({"kind": "User"}, "add user: {name: ...}"),
        ({"kind": "User", "group": {"name": "dev"}}, "add user: {name: ...}, or change kind to Group"),
        (
            {"kind": "ServiceAccount", "user": {"name": "alice"}},
            "add serviceAccount: {namespace: ..., name: ...}, or change kind to User",
        ),
        (
            {"kind": "ServiceAccount", "user": {"name": "system:serviceaccount:ci:runner"}},
            "add serviceAccount: {namespace: ci, name: runner}, or change kind to User",
        ),
        (
            {"kind": "User", "group": {"name": "dev"}, "serviceAccount": {"namespace": "a", "name": "b"}},
            "add user: {name: ...}",
        ),
    ],
)
def test_help_for_a_missing_member_depends_on_the_others(subject: dict[str, Any], help_text: str) -> None:
    missing, *others = findings(flow_schema("x", subjects=[subject]), only="APF207")
    member = missing.field.rpartition(".")[2]
    assert missing.message == f'subject of kind {subject["kind"]} has no field "{member}"'
    assert missing.help == help_text
    assert len(others) == len(subject) - 1


def test_member_of_another_kind_is_reported_at_its_key() -> None:
    text = json.dumps(flow_schema("x", subjects=[{**user("alice"), "group": {"name": "dev"}}]))
    (finding,) = findings_in_text(text, only="APF207")
    assert text[finding.span.column - 1 : finding.span.end_column - 1] == '"group"'
    assert finding.fix is None


def test_kind_is_changed_to_that_of_the_only_member_by_an_unsafe_fix() -> None:
    found = findings(flow_schema("x", subjects=[{"kind": "User", "group": {"name": "dev"}}]), only="APF207")
    fixes = [finding.fix for finding in found if finding.fix]
    assert {(fix.title, fix.safe) for fix in fixes} == {('change "User" to "Group"', False)}


@pytest.mark.parametrize(("kind", "has_fix"), [("Gro", False), ("oup", False), ("Grou", True), ("group", True)])
def test_part_of_a_kind_is_completed_from_four_letters_on(kind: str, has_fix: bool) -> None:
    (finding,) = findings(flow_schema("x", subjects=[{"kind": kind, "group": {"name": "dev"}}]), only="APF207")
    assert (finding.fix is not None) is has_fix


@pytest.mark.parametrize(("namespace", "values"), [("", ["runner", "ci"]), ("ci", ["runner"])])
def test_user_name_of_a_service_account_is_split_by_an_unsafe_fix(namespace: str, values: list[str]) -> None:
    subject = service_account(namespace, "system:serviceaccount:ci:runner")
    found = findings(flow_schema("x", subjects=[subject]), only="APF208")
    (fix,) = (finding.fix for finding in found if finding.fix)
    assert fix.safe is False
    assert [getattr(operation, "value", None) for operation in fix.operations] == values
