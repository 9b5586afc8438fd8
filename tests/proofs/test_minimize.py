"""The order in which ordinary values replace those of the solver."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support import builders, configurations
from support.configurations import BUILT_IN, Objects

from apflint.evaluate.configuration import build_configuration
from apflint.proofs.minimize import _in_scope, _other_resources, _other_users, minimize
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.request_space import (
    Point,
    World,
    usual_groups,
)

if TYPE_CHECKING:
    from apflint.proofs.request_space import World

AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"


RUNNER = "system:serviceaccount:ci:runner"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exempt", "list pods -n default --as alice --as-group system:masters"),
        ("probes", "get /healthz --as alice"),
        ("system-leader-election", "get leases example -n default --as system:kube-controller-manager"),
        ("system-node-high", "list nodes --as system:node:node-1"),
        ("system-nodes", "list pods -n default --as system:node:node-1"),
        ("kube-scheduler", "list pods -n default --as system:kube-scheduler"),
        ("kube-system-service-accounts", "list pods -n default --as system:serviceaccount:kube-system:default"),
        ("service-accounts", "list pods -n default --as system:serviceaccount:default:default"),
        ("global-default", "list pods -n default --as alice"),
    ],
)
def test_witnesses_are_ordinary_requests(name: str, words: str) -> None:
    config = build_configuration(Objects(), BUILT_IN)
    schema = next(each for each in config.order if each.name == name)
    found = Analysis(config).find_request(schema)
    assert found is not None
    assert found.words is not None
    assert shlex.join(found.words) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"apiGroups": [""], "resources": ["pods"], "namespaces": []}, "list pods --as alice"),
        ({"apiGroups": ["x.io"], "resources": ["widgets"], "namespaces": []}, "list widgets.x.io --as alice"),
        (
            {"apiGroups": [""], "resources": ["nodes"], "namespaces": ["dev"], "clusterScope": False},
            "--method GET --path /api/v1/namespaces/dev/nodes --as alice",
        ),
    ],
)
def test_ordinary_verb_is_preferred_in_an_unusual_scope(changes: dict[str, Any], words: str) -> None:
    mine = configurations.schema(builders.user("alice"), verbs=["watch", "list"], **changes)
    found = Analysis(build_configuration(Objects((mine,)), BUILT_IN)).find_request(mine)
    assert found is not None
    assert found.words is not None
    assert shlex.join(found.words) == words


@pytest.mark.parametrize(
    ("groups", "users"),
    [
        ((AUTHENTICATED,), ["alice"]),
        # Only nodes are in the group of nodes, so alice is tried outside of it first.
        (("system:nodes", AUTHENTICATED), ["alice", "system:node:node-1"]),
    ],
)
def test_ordinary_users_are_tried_first(groups: tuple[str, ...], users: list[str]) -> None:
    point = Point("zz", groups, True, "get", "", "pods", "dev")
    tried = list(_other_users(point, "authenticated"))
    assert list(dict.fromkeys(found.user for found in tried))[: len(users)] == users
    for name in users:
        found = next(found for found in tried if found.user == name)
        assert found.groups == usual_groups(name)
        assert found._replace(user="zz", groups=groups) == point


def test_order_of_users() -> None:
    usual, account = (AUTHENTICATED,), (ACCOUNTS, f"{ACCOUNTS}:default", AUTHENTICATED)
    own, nobody = (ACCOUNTS, f"{ACCOUNTS}:ci", AUTHENTICATED), ("system:unauthenticated",)
    users = (
        ("alice", usual),
        ("system:serviceaccount:default:default", account),
        (RUNNER, own),
        ("system:anonymous", nobody),
    )
    more: tuple[tuple[str, ...], ...] = ((), (), ("dev",), ("x",))
    point = Point(RUNNER, ("dev", "x", *own), True, "get", "", "pods", "dev")
    worlds: tuple[tuple[World, tuple[tuple[str, ...], ...]], ...] = (
        ("any", more),
        ("authenticated", (*more, ("dev", "x"))),
    )
    for world, all_of_them in worlds:
        found = [(each.user, each.groups) for each in _other_users(point, world)]
        assert found == [(user, (*extra, *groups)) for user, groups in users for extra in all_of_them]


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace", "scope"),
    [
        ("get", "", "pods", "", "default"),
        ("get", "", "pods", "dev", "dev"),
        ("get", "", "nodes", "dev", ""),
        ("get", "", "namespaces", "", "default"),
        ("get", "", "namespaces/status", "dev", "dev"),
        ("list", "", "namespaces", "dev", ""),
        ("create", "", "namespaces", "dev", ""),
        ("get", "x.io", "namespaces", "", "default"),
        ("get", "x.io", "widgets", "", "default"),
    ],
)
def test_scope_of_resources(verb: str, group: str, resource: str, namespace: str, scope: str) -> None:
    found = _in_scope(Point("alice", (AUTHENTICATED,), True, verb, group, resource, namespace))
    assert found.namespace == scope


def test_unneeded_groups_are_dropped() -> None:
    groups = ("a", "b", "c", "d", AUTHENTICATED)
    for needed in ({"a", "c"}, {"b"}, {"a", "b", "d"}, {"c", "d"}, set()):

        def holds(point: Point, needed: set[str] = needed) -> bool:
            return needed <= {*point.groups}

        found = minimize(Point("zz", groups, True, "get", "", "pods", "dev"), holds, "authenticated")
        assert {*found.groups} == {*needed, AUTHENTICATED}
        assert found.user == "alice"


def test_known_resources_are_tried_first() -> None:
    found = list(_other_resources(Point("alice", (AUTHENTICATED,), True, "get", "x.io", "deployments/scale", "dev")))
    things = [(each.api_group, each.resource) for each in found]
    assert things.index(("apps", "deployments/scale")) < things.index(("x.io", "deployments/scale"))
    assert things[-1] == ("x.io", "deployments/scale")
    kin = {
        (each.api_group, each.resource)
        for each in _other_resources(Point("a", (), True, "get", "batch", "widgets", "dev"))
    }
    assert {("batch", "jobs"), ("batch", "cronjobs"), ("batch", "widgets"), ("example.com", "widgets")} <= kin
    assert ("autoscaling", "horizontalpodautoscalers") not in kin
    starred = list(_other_resources(Point("alice", (AUTHENTICATED,), True, "get", "*", "x*y", "dev")))
    assert [each for each in starred if "*" in f"{each.api_group}{each.resource}"] == [
        each for each in starred if (each.api_group, each.resource) == ("*", "x*y")
    ]
