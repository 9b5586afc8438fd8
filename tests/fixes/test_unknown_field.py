"""APF101: unknown fields whose names are synonyms of known fields, or whose mappings have a wrong name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders import findings

from apflint.edit.fix_batch import edits_of

if TYPE_CHECKING:
    from apflint.finding import Finding

QUEUES = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}


def unknown(spec: dict[str, Any], version: str = "v1", kubernetes: str = "1.36") -> Finding:
    """Return the only finding of APF101 about a priority level with this spec."""
    manifest = {
        "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "x"},
        "spec": spec,
    }
    (finding,) = findings(manifest, only="APF101", kubernetes=kubernetes)
    return finding


def limited(**limited: Any) -> dict[str, Any]:
    return {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}, **limited}}


@pytest.mark.parametrize(
    ("spec", "help_text"),
    [
        (limited(limitResponse={"type": "Queue", "queue": QUEUES}), 'did you mean "queuing"?'),
        (
            limited(limitResponse={"type": "Queue", "queue": 64}),
            'did you mean "queues" in spec.limited.limitResponse.queuing?',
        ),
        (limited(guaranteed=30), 'did you mean "nominalConcurrencyShares"?'),
        ({**limited(), "guaranteed": 30}, 'did you mean "nominalConcurrencyShares" in spec.limited?'),
        (
            {"type": "Exempt", "guaranteed": 30},
            'did you mean "nominalConcurrencyShares" in spec.exempt?',
        ),
        ({**limited(), "guaranteed": {"nominalConcurrencyShares": 30}}, "do its fields belong in spec.limited?"),
        (
            {"type": "Limited", "guaranteed": {"shares": 30, "limitResponse": {"type": "Reject"}}},
            'did you mean "limited"?',
        ),
        (limited(limitResponse={"type": "Queue", "waiting": QUEUES}), 'did you mean "queuing"?'),
        (limited(backlog=QUEUES), "do its fields belong in spec.limited.limitResponse.queuing?"),
        ({**limited(), "guaranteed": True}, None),
        ({**limited(), "x": {"queues": 1, "nothing": 2}}, None),
        ({**limited(), "x": {}}, None),
    ],
)
def test_help_says_where_a_field_belongs(spec: dict[str, Any], help_text: str | None) -> None:
    finding = unknown(spec)
    assert finding.help == help_text
    assert ("Known fields are exempt, limited and type." in finding.notes) is (help_text is None)


def test_shares_are_named_as_in_the_version() -> None:
    finding = unknown(limited(guaranteed=30), "v1beta2", "1.28")
    assert finding.help == 'did you mean "assuredConcurrencyShares"?'


@pytest.mark.parametrize(
    ("queue", "fixed"), [(QUEUES, True), (64, False)], ids=["a mapping is renamed", "a number is not"]
)
def test_fix_of_queue(queue: Any, fixed: bool) -> None:
    finding = unknown(limited(limitResponse={"type": "Queue", "queue": queue}))
    assert (finding.fix is not None) == fixed
    if fixed:
        assert [edit.new for edit in edits_of(finding)] == ["queuing"]


@pytest.mark.parametrize(("number", "has_fix"), [(100, True), (1_000, False)])
def test_fields_with_a_rival_are_not_renamed(number: int, has_fix: bool) -> None:
    """`lendablePercent0` and `lendablePercent1` cannot both become `lendablePercent`. Thousands of fields are not compared."""
    rivals = dict.fromkeys([f"lendablePercent{index}" for index in range(number)], 1)
    manifest = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "x"},
        "spec": limited(**rivals, borrowingLimitPercnt=1),
    }
    titles = [finding.fix.title for finding in findings(manifest, only="APF101") if finding.fix]
    assert titles == (['rename "borrowingLimitPercnt" to "borrowingLimitPercent"'] if has_fix else [])
