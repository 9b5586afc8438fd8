"""APF210, APF211, APF213, APF214: lists of a rule."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import ALL, findings, flow_schema

from apflint.checks.requests import VERBS
from apflint.wording import join_words


def with_resource_rule(**fields: Any) -> dict[str, Any]:
    """Return a FlowSchema with one resource rule."""
    return flow_schema("x", resources=[{**ALL, **fields}])


def with_paths(*urls: str) -> dict[str, Any]:
    """Return a FlowSchema with one non-resource rule."""
    return flow_schema("x", paths=[{"verbs": ["get"], "nonResourceURLs": [*urls]}])


def test_wildcard_with_other_items_keeps_the_wildcard() -> None:
    (finding,) = findings(with_resource_rule(verbs=["get", "*", "list"]), only="APF210")
    assert finding.help == 'remove the other items, or "*"'
    assert finding.field == "spec.rules[0].resourceRules[0].verbs[1]"
    assert finding.fix is not None
    assert finding.fix.title == 'remove "get" and "list" beside "*"'


def test_wildcard_that_is_listed_twice_has_its_own_help() -> None:
    (finding,) = findings(with_resource_rule(verbs=["*", "*"]), only="APF210")
    assert finding.message == 'verbs contains "*" more than once'
    assert finding.help == 'list "*" once'


@pytest.mark.parametrize(
    ("verb", "notes", "help_text"),
    [
        ("all", (), 'for all verbs use ["*"]'),
        ("head", ('The verb of HEAD requests for resources is "get".',), 'did you mean "get"?'),
        ("options", (), f"use {join_words(VERBS)}"),
        ("post", ('The verb of POST requests for resources is "create".',), 'did you mean "create"?'),
        ("impersonate", ('"impersonate" is a verb of RBAC only.',), f"use {join_words(VERBS)}"),
        ("get,list", (), "write each verb as a separate item"),
    ],
)
def test_help_for_an_unknown_verb_depends_on_the_verb(verb: str, notes: tuple[str, ...], help_text: str) -> None:
    (finding,) = findings(with_resource_rule(verbs=[verb]), only="APF211")
    assert finding.message == f'unknown verb "{verb}"'
    assert finding.notes == notes
    assert finding.help == help_text


@pytest.mark.parametrize(
    ("count", "named"),
    [(5, '"x0", "x1", "x2", "x3" and "x4"'), (400, '"x0", "x1", "x2", "x3" and 396 more')],
)
def test_message_names_at_most_five_unknown_verbs(count: int, named: str) -> None:
    (finding,) = findings(with_resource_rule(verbs=[f"x{index}" for index in range(count)]), only="APF211")
    assert finding.message == f"unknown verbs {named}"


def test_upper_case_namespace_that_is_also_listed_in_lower_case_is_removed() -> None:
    first, second = findings(with_resource_rule(namespaces=["Team-A", "team-a", "TEAM-B"]), only="APF213")
    assert first.fix is not None
    assert first.fix.title == 'remove "Team-A" beside "team-a"'
    assert second.fix is not None
    assert second.fix.title == 'change "TEAM-B" to "team-b"'


@pytest.mark.parametrize(
    ("url", "is_accepted"),
    [("/a/*", True), ("/*", True), ("*", True), ("/a*", False), ("/*/a", False), ("/*/*", False), ("/a*/*", False)],
)
def test_wildcard_of_a_path_is_its_last_segment(url: str, is_accepted: bool) -> None:
    found = findings(with_paths(url), only="APF214")
    assert ['"*" is allowed only as the last segment' in finding.message for finding in found] == [True] * (
        not is_accepted
    )


@pytest.mark.parametrize(
    ("url", "help_text", "has_fix"),
    [
        ("version", 'did you mean "/version"?', True),
        ("https://x/version", "write the path without the host", False),
        ("", "remove the item", False),
        ("/a b", None, False),
    ],
)
def test_help_for_an_invalid_path(url: str, help_text: str | None, has_fix: bool) -> None:
    (finding,) = findings(with_paths(url), only="APF214")
    assert finding.help == help_text
    assert (finding.fix is not None) is has_fix
