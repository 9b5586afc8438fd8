"""APF503: which ties are reported, and whose request shows them."""

from __future__ import annotations

import itertools
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from test_rules_whole_set import account, findings, flow_schema, group, known, user

from apflint.checks import precedence

if TYPE_CHECKING:
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
        assert "--as alice --as-group" in found.message
        assert "system:" not in found.message


def test_ties_with_the_built_in_probes_are_reported() -> None:
    (found,) = ties(flow_schema("staff", precedence=2, subjects=[group("staff")], paths=[HEALTH]))
    assert '"probes"' in found.message
    assert "--as alice --as-group staff" in found.message


def test_a_tie_of_ordinary_users_is_reported_although_one_flow_schema_names_a_system_user() -> None:
    mixed = flow_schema("first", precedence=1000, subjects=[user("system:apiserver"), group("red")], paths=[VERSION])
    team = flow_schema("second", "workload-high", 1000, subjects=[group("blue")], paths=[VERSION])
    (found,) = ties(mixed, team)
    assert "--as alice --as-group blue --as-group red" in found.message


# Groups: one finding for each precedence.


def crowd(count: int, *, apart: bool = False, level: str = "") -> list[dict[str, Any]]:
    """FlowSchemas of one precedence, each for a group of its own; `apart` if each is also for a resource of its own."""
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
def test_one_finding_for_all_ties_of_a_precedence(count: int) -> None:
    (found,) = ties(*crowd(count))
    assert found.object is not None
    assert (found.object.name, found.severity) == ("crowd-0000", "warning")
    named = [
        name for name in (f"crowd-{at:04}" for at in range(count)) if f'"{name}"' in found.message.split(" share ")[0]
    ]
    assert len(named) == (count if count <= 4 else 1)
    assert (f"and {count - 1} others share matchingPrecedence 2000 and match" in found.message) == (count > 4)
    assert len(found.related) == min(count - 1, 12)
    assert "not compared" not in found.message


def test_a_finding_for_each_precedence() -> None:
    others = [{**each, "metadata": {"name": f"other-{at}"}} for at, each in enumerate(crowd(3))]
    for each in others:
        each["spec"]["matchingPrecedence"] = 3000
        each["spec"]["rules"][0]["resourceRules"] = [{**SECRETS, "namespaces": ["stock"]}]
    assert [re.findall(r"matchingPrecedence (\d+)", found.message) for found in ties(*crowd(3), *others)] == [
        ["2000"],
        ["3000"],
    ]


def test_only_tied_flow_schemas_are_in_a_finding() -> None:
    apart = flow_schema("apart", subjects=[group("group-0")], resources=[{**SECRETS, "resources": ["kind"]}])
    (found,) = ties(apart, *crowd(2))
    assert found.message.startswith('FlowSchemas "crowd-0000" and "crowd-0001" share')
    assert len(found.related) == 1


def test_flow_schemas_that_are_tied_with_the_same_one_only_are_all_in_the_finding() -> None:
    """No request matches two of the narrow ones; the wide one comes after them."""
    narrow = [flow_schema(f"a-{name}", subjects=[user(name)], resources=[SECRETS]) for name in ("bob", "carol", "eve")]
    wide = flow_schema("wide", "workload-high", subjects=[user(each) for each in ("bob", "carol", "eve", "alice")])
    wide["spec"]["rules"][0]["resourceRules"] = [SECRETS]
    (found,) = ties(*narrow, wide)
    assert found.message.startswith('FlowSchemas "a-bob", "a-carol", "a-eve" and "wide" share')


def test_flow_schemas_far_apart_in_a_precedence_are_compared() -> None:
    between = [flow_schema(f"b-{at:03}", subjects=[user(f"user-{at}")]) for at in range(200)]
    ends = [
        flow_schema(name, level, subjects=[group(name)], resources=[SECRETS])
        for name, level in (("a", "workload-low"), ("c", "workload-high"))
    ]
    (found,) = ties(*between, *ends)
    assert found.message.startswith('FlowSchemas "a" and "c" share')


def test_pairs_that_are_not_compared_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "MAX_COMPARED_PAIRS", 10)
    (found,) = ties(*crowd(10, apart=True))
    assert found.severity == "info"
    assert "28 of 45 pairs were not compared" in found.message
    (found,) = ties(
        *crowd(3), *({**each, "metadata": {"name": f"z-{each['metadata']['name']}"}} for each in crowd(9, apart=True))
    )
    assert found.severity == "warning"
    assert "of 66 pairs were not compared. Give each" in found.message


def test_thousands_of_flow_schemas_of_one_precedence_are_bounded() -> None:
    for apart in (True, False):
        started = time.process_time()
        assert len(ties(*crowd(1500, apart=apart))) == 1
        assert time.process_time() - started < 15  # about 2 seconds


# Ties that make no difference.


@pytest.mark.parametrize("count", [2, 10])
def test_ties_within_a_level_are_information(count: int) -> None:
    (found,) = ties(*crowd(count, level="workload-low"))
    assert found.severity == "info"
    assert "so it hardly matters which of them captures a request" in found.message


def test_another_distinguisher_is_another_treatment() -> None:
    first, second = crowd(2, level="workload-low")
    second["spec"]["distinguisherMethod"] = {"type": "ByNamespace"}
    (found,) = ties(first, second)
    assert found.severity == "warning"


def test_harmless_members_are_no_part_of_a_harmful_tie() -> None:
    alike = crowd(3, level="workload-low")
    for at, each in enumerate(alike):
        each["spec"]["rules"][0]["subjects"] = [group("all"), user(f"u{at}")]
    other = flow_schema("other", "workload-high", subjects=[user("u1")], resources=[{**SECRETS, "verbs": ["*"]}])
    (found,) = ties(*alike, other)
    assert (found.severity, found.message.partition(" share ")[0]) == (
        "warning",
        'FlowSchemas "crowd-0000", "crowd-0001" and "other"',
    )


def test_a_copy_of_a_built_in_flow_schema_is_no_tie() -> None:
    spec = next(each for each in known().configuration.order if each.name == "probes").document.value["spec"]
    copy = {**flow_schema("a-copy"), "spec": spec}
    assert not ties(copy)


def test_a_copy_with_its_lists_in_another_order_is_no_tie() -> None:
    def probes(*urls: str) -> dict[str, Any]:
        everybody = [group("system:authenticated"), group("system:unauthenticated")]
        paths = [{"verbs": ["get"], "nonResourceURLs": [*urls]}]
        return flow_schema("a-copy", "exempt", 2, subjects=everybody, paths=paths)

    assert not ties(probes("/readyz", "/livez", "/healthz"))
    assert not ties(probes("/healthz", "/livez", "/readyz"))
    (tie,) = ties(probes("/healthz", "/version"))
    assert tie.severity == "info"


def test_a_finding_about_a_built_in_flow_schema_is_at_the_object_of_the_user() -> None:
    mine = [flow_schema(name, "exempt", 9000, subjects=[account("ci", name)]) for name in ("a", "b")]
    (found,) = ties(*mine)
    assert found.object is not None
    assert found.object.name == "a"
    assert found.message.startswith('FlowSchemas "a", the built-in "service-accounts" and "b" share')
    assert "Use another matchingPrecedence" in found.message
