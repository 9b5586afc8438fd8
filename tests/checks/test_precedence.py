"""APF503: which ties are reported, and whose request shows them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from test_rules_whole_set import findings, flow_schema, group, user

if TYPE_CHECKING:
    from apflint.finding import Finding

SECRETS = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "namespaces": ["shop"]}
HEALTH = {"verbs": ["*"], "nonResourceURLs": ["*"]}
VERSION = {"verbs": ["get"], "nonResourceURLs": ["/version"]}
OTHER = flow_schema("unrelated", precedence=4321, subjects=[user("system:node:worker")])


def ties(*objects: dict[str, Any]) -> list[Finding]:
    return findings(*objects, only="APF503")


@pytest.mark.parametrize("precedence", [3, 50, 99, 101, 300, 450, 501, 950])
def test_ties_between_groups_are_reported_at_every_precedence(precedence: int) -> None:
    teams = [
        flow_schema(f"team-{name}", f"workload-{level}", precedence, subjects=[group(name)], resources=[SECRETS])
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
