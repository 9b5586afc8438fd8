"""APF201, APF503: rejected precedences, reported ties, and the example requests of ties."""

from __future__ import annotations

import itertools
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import (
    ALL,
    PATHS,
    effective,
    findings,
    flow_schema,
    full_text,
    group,
    priority_level,
    rule_ids,
    service_account,
    user,
)
from support.explanations import explain

from apflint.checks import precedence

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Finding

SECRETS = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "namespaces": ["shop"]}
HEALTH = {"verbs": ["*"], "nonResourceURLs": ["*"]}
VERSION = {"verbs": ["get"], "nonResourceURLs": ["/version"]}
OTHER = flow_schema("unrelated", precedence=4321, subjects=[user("system:node:worker")])


def ties(*objects: dict[str, Any]) -> list[Finding]:
    return findings(*objects, only="APF503")


@pytest.mark.parametrize("number", [3, 50, 99, 101, 300, 450, 501, 950])
def test_ties_between_groups_are_reported_at_every_precedence(number: int) -> None:
    teams = [
        flow_schema(f"team-{name}", f"workload-{level}", number, subjects=[group(name)], resources=[SECRETS])
        for name, level in (("red", "low"), ("blue", "high"))
    ]
    for objects in itertools.chain(itertools.permutations(teams), itertools.permutations((*teams, OTHER))):
        (found,) = ties(*objects)
        assert "--as alice --as-group" in full_text(found)
        assert "system:" not in full_text(found)


def test_ties_with_the_built_in_probes_are_reported() -> None:
    (found,) = ties(flow_schema("staff", precedence=2, subjects=[group("staff")], paths=[HEALTH]))
    assert '"probes"' in found.message
    assert "--as alice --as-group staff" in full_text(found)


def test_tie_with_a_system_user_among_subjects_is_reported() -> None:
    mixed = flow_schema("first", precedence=1000, subjects=[user("system:apiserver"), group("red")], paths=[VERSION])
    team = flow_schema("second", "workload-high", 1000, subjects=[group("blue")], paths=[VERSION])
    (found,) = ties(mixed, team)
    assert "--as alice --as-group blue --as-group red" in full_text(found)


def crowd(count: int, *, apart: bool = False, level: str = "") -> list[dict[str, Any]]:
    """Return FlowSchemas of equal precedence, each for a different group and, if `apart` is true, for a different resource."""
    return [
        flow_schema(
            f"crowd-{at:04}",
            level or ("workload-low", "workload-high")[at % 2],
            subjects=[group(f"group-{at}")],
            resources=[{**SECRETS, "resources": [f"kind-{at}"]} if apart else SECRETS],
        )
        for at in range(count)
    ]


@pytest.mark.parametrize("count", [2, 4, 5, 30, 400])
def test_ties_of_one_precedence_are_one_finding(count: int) -> None:
    (found,) = ties(*crowd(count))
    assert found.object is not None
    assert (found.object.name, found.severity) == ("crowd-0000", "warning")
    named = [
        name for name in (f"crowd-{at:04}" for at in range(count)) if f'"{name}"' in found.message.split(" overlap ")[0]
    ]
    assert len(named) == (count if count <= 4 else 1)
    assert (f"and {count - 1} others overlap" in found.message) == (count > 4)
    assert len(found.related) == min(count - 1, 12)
    assert "not compared" not in full_text(found)


def test_each_precedence_has_a_finding() -> None:
    others = [{**other, "metadata": {"name": f"other-{at}"}} for at, other in enumerate(crowd(3))]
    for other in others:
        other["spec"]["matchingPrecedence"] = 3000
        other["spec"]["rules"][0]["resourceRules"] = [{**SECRETS, "namespaces": ["stock"]}]
    assert [re.findall(r"matchingPrecedence (\d+)", tie.message) for tie in ties(*crowd(3), *others)] == [
        ["2000"],
        ["3000"],
    ]


def test_only_tied_flow_schemas_are_in_a_finding() -> None:
    apart = flow_schema("apart", subjects=[group("group-0")], resources=[{**SECRETS, "resources": ["kind"]}])
    (found,) = ties(apart, *crowd(2))
    assert found.message.startswith('FlowSchemas "crowd-0000" and "crowd-0001" overlap')
    assert len(found.related) == 1


def test_all_flow_schemas_tied_with_one_are_in_the_finding() -> None:
    """The FlowSchemas for one user do not overlap with each other, only with `wide`, which comes last."""
    narrow = [flow_schema(f"a-{name}", subjects=[user(name)], resources=[SECRETS]) for name in ("bob", "carol", "eve")]
    wide = flow_schema(
        "wide", "workload-high", subjects=[user(user_name) for user_name in ("bob", "carol", "eve", "alice")]
    )
    wide["spec"]["rules"][0]["resourceRules"] = [SECRETS]
    (found,) = ties(*narrow, wide)
    assert found.message.startswith('FlowSchemas "a-bob", "a-carol", "a-eve" and "wide" overlap')


def test_flow_schemas_far_apart_in_a_precedence_are_compared() -> None:
    between = [flow_schema(f"b-{at:03}", subjects=[user(f"user-{at}")]) for at in range(200)]
    ends = [
        flow_schema(name, level, subjects=[group(name)], resources=[SECRETS])
        for name, level in (("a", "workload-low"), ("c", "workload-high"))
    ]
    (found,) = ties(*between, *ends)
    assert found.message.startswith('FlowSchemas "a" and "c" overlap')


def test_pairs_that_are_not_compared_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "MAX_COMPARED_PAIRS", 10)
    (found,) = ties(*crowd(10, apart=True))
    assert found.severity == "info"
    assert "28 of 45 pairs were not compared" in full_text(found)
    (found,) = ties(
        *crowd(3),
        *({**schema, "metadata": {"name": f"z-{schema['metadata']['name']}"}} for schema in crowd(9, apart=True)),
    )
    assert found.severity == "warning"
    assert "of 66 pairs were not compared" in full_text(found)


@pytest.mark.slow
def test_thousands_of_flow_schemas_of_one_precedence_are_bounded() -> None:
    for apart in (True, False):
        started = time.process_time()
        assert len(ties(*crowd(1500, apart=apart))) == 1
        assert time.process_time() - started < 15  # the analysis takes about 2 seconds


@pytest.mark.parametrize("count", [2, 10])
def test_ties_within_a_level_are_info(count: int) -> None:
    (found,) = ties(*crowd(count, level="workload-low"))
    assert found.severity == "info"
    assert "so the order hardly matters" in full_text(found)


def test_tie_with_another_distinguisher_is_a_warning() -> None:
    first, second = crowd(2, level="workload-low")
    second["spec"]["distinguisherMethod"] = {"type": "ByNamespace"}
    (found,) = ties(first, second)
    assert found.severity == "warning"


def test_harmless_ties_are_not_part_of_a_harmful_tie() -> None:
    alike = crowd(3, level="workload-low")
    for at, schema in enumerate(alike):
        schema["spec"]["rules"][0]["subjects"] = [group("all"), user(f"u{at}")]
    other = flow_schema("other", "workload-high", subjects=[user("u1")], resources=[{**SECRETS, "verbs": ["*"]}])
    (found,) = ties(*alike, other)
    assert (found.severity, found.message.partition(" overlap ")[0]) == (
        "warning",
        'FlowSchemas "crowd-0000", "crowd-0001" and "other"',
    )


def test_copy_of_a_built_in_flow_schema_is_not_tied() -> None:
    spec = next(schema for schema in effective().configuration.order if schema.name == "probes").document.value["spec"]
    copy = {**flow_schema("a-copy"), "spec": spec}
    assert not ties(copy)


def test_copy_with_reordered_lists_is_not_tied() -> None:
    def probes(*urls: str) -> dict[str, Any]:
        everybody = [group("system:authenticated"), group("system:unauthenticated")]
        paths = [{"verbs": ["get"], "nonResourceURLs": [*urls]}]
        return flow_schema("a-copy", "exempt", 2, subjects=everybody, paths=paths)

    assert not ties(probes("/readyz", "/livez", "/healthz"))
    assert not ties(probes("/healthz", "/livez", "/readyz"))
    (tie,) = ties(probes("/healthz", "/version"))
    assert tie.severity == "info"


def test_tie_with_a_built_in_flow_schema_points_at_the_users() -> None:
    mine = [flow_schema(name, "exempt", 9000, subjects=[service_account("ci", name)]) for name in ("a", "b")]
    (found,) = ties(*mine)
    assert found.object is not None
    assert found.object.name == "a"
    assert found.message.startswith('FlowSchemas "a", the built-in "service-accounts" and "b" overlap')
    assert found.help == "use another matchingPrecedence"


GET_ALL = {**ALL, "verbs": ["get"]}


def test_tie_with_the_context_is_reported() -> None:
    (found,) = findings(
        flow_schema("zebra"), context=(flow_schema("ape", "workload-high", resources=[GET_ALL]),), only="APF503"
    )
    assert '"ape" captures requests that "zebra" also matches' in full_text(found)


@pytest.mark.parametrize(("first", "second"), [("ape", "zebra"), ("a10", "a2"), ("a-2", "a10"), ("a.b", "ab")])
def test_first_name_by_bytes_captures_the_requests(first: str, second: str) -> None:
    (found,) = findings(flow_schema(second), flow_schema(first, "workload-high", resources=[GET_ALL]), only="APF503")
    assert f'"{first}" captures requests that "{second}" also matches' in full_text(found)
    order = [schema.name for schema in effective(flow_schema(second), flow_schema(first)).configuration.order]
    assert order.index(first) < order.index(second)


def test_flow_schemas_without_common_requests_are_not_tied() -> None:
    assert not findings(flow_schema("a"), flow_schema("b", subjects=[service_account("ci", "deployer")]), only="APF503")
    assert not findings(flow_schema("a"), flow_schema("b", paths=[PATHS]), only="APF503")


def test_tie_with_system_traffic_is_reported_for_every_witness() -> None:
    """The tie is reported whichever request the solver finds: a typical system request, or a node's request for an unknown
    path."""
    node = flow_schema("ops", precedence=500, subjects=[user("system:node:n")], resources=[ALL])
    (found,) = findings(node, only="APF503")
    assert '"system-nodes"' in found.message
    both = flow_schema(
        "fs-1", precedence=500, subjects=[user("bob")], paths=[{"verbs": ["get"], "nonResourceURLs": ["*"]}]
    )
    watch = {**ALL, "verbs": ["watch", "get"]}
    both["spec"]["rules"].append({"subjects": [group("system:authenticated")], "resourceRules": [watch]})
    last = flow_schema(
        "fs-6", precedence=9900, subjects=[group("*")], resources=[{**ALL, "namespaces": ["ops", "dev"]}]
    )
    actual = [full_text(finding) for finding in findings(both, last, only="APF503")]
    assert any('"system-nodes"' in message and "--as system:node:node-1" in message for message in actual)
    assert any('"system-nodes"' in finding.message for finding in findings(both, only="APF503"))


def test_example_of_a_tie_goes_to_the_first_flow_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = (flow_schema("zebra"), flow_schema("ape", "workload-high", resources=[GET_ALL]))
    (found,) = findings(*objects, only="APF503")
    assert explain(found.example, tmp_path, capsys, *objects)["flowSchema"] == "ape"


@pytest.mark.parametrize(
    ("name", "first"), [("queue-visibility", "queue-visibility"), ("visibility", "service-accounts")]
)
def test_precedence_of_service_accounts_is_tied(name: str, first: str) -> None:
    mine = flow_schema(
        name,
        "global-default",
        9000,
        subjects=[group("system:authenticated")],
        resources=[{**ALL, "apiGroups": ["visibility.example.com"]}],
        by="ByUser",
    )
    mine["metadata"]["namespace"] = "queueing-system"
    actual = findings(mine)
    assert sorted(rule_ids(actual)) == ["APF104", "APF503"]
    tie = next(found for found in actual if found.rule == "APF503")
    assert '"service-accounts"' in tie.message
    assert f'"{first}" captures requests' in full_text(tie)


@pytest.mark.parametrize("order", [1, -1])
def test_system_user_in_another_group_is_not_tied(order: int) -> None:
    for own in (group("system:nodes"), user("system:kube-scheduler"), service_account("kube-system", "x")):
        first, second = (own, group("dev"))[::order]
        objects = (
            flow_schema("a", precedence=100, subjects=[first]),
            flow_schema("b", precedence=100, subjects=[second]),
        )
        assert not findings(*objects, only="APF503")


@pytest.mark.parametrize(("precedence", "state"), [(0, "0 counts as absent"), (None, "is absent")])
def test_absent_precedence_is_reported_as_1000(precedence: int | None, state: str) -> None:
    (found,) = findings(flow_schema("x", precedence=precedence), only="APF509")
    assert found.message == f"matchingPrecedence {state}, so the API server sets it to 1000"
    assert "catch-all (10000)" in full_text(found)
    assert found.fix is not None
    assert [operation[-1] for operation in found.fix.operations] == [1000]
    assert not findings(flow_schema("x", precedence=1000), only="APF509")


@pytest.mark.parametrize(
    ("precedence", "is_rejected"),
    [(0, False), (1, False), (10000, False), (10001, True), (-1, True), (2**31 - 1, True)],
)
def test_precedence_is_between_1_and_10000(precedence: int, is_rejected: bool) -> None:
    found = findings(flow_schema("x", precedence=precedence), only="APF201")
    help_text = 'set matchingPrecedence to a value from 2 to 10000 (1 is reserved for the FlowSchema "exempt")'
    assert [finding.help for finding in found] == [help_text] * is_rejected


def test_flow_schema_that_the_server_skips_is_not_tied() -> None:
    """APF503 does not report a tie between a FlowSchema that the server skips and another FlowSchema.

    The server skips a FlowSchema whose priority level does not exist (APF401). If the level exists,
    APF503 reports the tie of the equal precedences.
    """
    skipped = flow_schema("a", "nowhere", 700, resources=[{**ALL, "verbs": ["list"]}])
    other = flow_schema("b", "workload-high", 700)
    level = priority_level("nowhere", 5)
    assert [finding.rule for finding in findings(skipped, other) if finding.rule in ("APF401", "APF503")] == ["APF401"]
    assert len(ties(skipped, other, level)) == 1
