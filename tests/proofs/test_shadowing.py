"""Which subjects, resources and paths of one FlowSchema shadow those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders import group, service_account, user
from support.configurations import BUILT_IN, Objects, objects, schema

from apflint.evaluate.configuration import build_configuration
from apflint.proofs.one_configuration import Analysis, Part

from .test_one_configuration import WORLDS

if TYPE_CHECKING:
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import World

EVERYBODY, ANYONE = user("*"), group("*")
AUTHENTICATED, UNAUTHENTICATED = group("system:authenticated"), group("system:unauthenticated")
ACCOUNTS, ACCOUNTS_OF_DEV = group("system:serviceaccounts"), group("system:serviceaccounts:dev")
BUILDER = service_account("dev", "builder")


def is_taken(first: FlowSchema, second: FlowSchema, world: World) -> bool:
    """Whether the first shadows the second if only `exempt` comes before both."""
    made = [
        each._replace(metadata=each.metadata._replace(name=name), spec=each.spec._replace(matching_precedence=1))
        for each, name in ((first, "first"), (second, "second"))
    ]
    config = build_configuration(Objects(tuple(made)), BUILT_IN)
    assert [each.name for each in config.order[:3]] == ["exempt", "first", "second"]
    return Analysis(config, world).find_request(config.order[2]) is None


@pytest.mark.parametrize(
    ("first", "second", "authenticated", "any_world"),
    [
        (EVERYBODY, user("alice"), True, True),
        (ANYONE, group("dev"), True, True),
        (EVERYBODY, ANYONE, True, True),
        (ANYONE, service_account("dev", "*"), True, True),
        (user("alice"), EVERYBODY, False, False),
        (user("alice"), user("alice"), True, True),
        (user("alice"), user("bob"), False, False),
        (user("alice"), group("alice"), False, False),
        (group("dev"), group("dev"), True, True),
        (group("dev"), group("ops"), False, False),
        (group("dev"), user("dev"), False, False),
        (AUTHENTICATED, user("alice"), True, False),
        (AUTHENTICATED, group("dev"), True, False),
        (AUTHENTICATED, BUILDER, True, False),
        (AUTHENTICATED, ACCOUNTS, True, False),
        (AUTHENTICATED, ACCOUNTS_OF_DEV, True, False),
        (AUTHENTICATED, EVERYBODY, False, False),
        (AUTHENTICATED, UNAUTHENTICATED, False, False),
        (AUTHENTICATED, user("system:anonymous"), False, False),
        (AUTHENTICATED, user("system:node:n"), True, False),
        (UNAUTHENTICATED, user("system:anonymous"), True, False),
        (UNAUTHENTICATED, user("alice"), False, False),
        (user("system:anonymous"), UNAUTHENTICATED, True, False),
        (group("system:nodes"), user("system:node:n"), False, False),
        (ACCOUNTS, ACCOUNTS_OF_DEV, True, False),
        (ACCOUNTS, service_account("dev", "*"), True, False),
        (ACCOUNTS, BUILDER, True, False),
        (ACCOUNTS, user("system:serviceaccount:dev:builder"), True, False),
        (ACCOUNTS, AUTHENTICATED, False, False),
        (ACCOUNTS_OF_DEV, service_account("dev", "*"), True, False),
        (ACCOUNTS_OF_DEV, service_account("ops", "*"), False, False),
        (ACCOUNTS_OF_DEV, ACCOUNTS, False, False),
        (service_account("dev", "*"), BUILDER, True, True),
        (service_account("dev", "*"), ACCOUNTS_OF_DEV, True, False),
        (service_account("dev", "*"), user("system:serviceaccount:dev:other"), True, True),
        (service_account("dev", "*"), user("system:serviceaccount:develop:other"), False, False),
        (BUILDER, service_account("dev", "*"), False, False),
        (BUILDER, user("system:serviceaccount:dev:builder"), True, True),
        (user("system:serviceaccount:dev:"), service_account("dev", "*"), False, False),
        (user("bob"), user("system:serviceaccount:no"), True, False),  # authentication gives no such user
        (user("bob"), service_account("N_", "*"), True, False),
        (user("bob"), group("system:serviceaccounts:N_"), True, False),
    ],
)
def test_whose_requests_another_takes(
    first: dict[str, Any], second: dict[str, Any], *, authenticated: bool, any_world: bool
) -> None:
    for path in (False, True):
        one, other = schema(first, path=path), schema(second, path=path)
        assert [is_taken(one, other, world) for world in WORLDS] == [authenticated, any_world]


def test_everybody_is_whoever_authentication_lets_in_and_whoever_it_does_not() -> None:
    both = schema(AUTHENTICATED)
    rules = (*both.spec.rules, *schema(UNAUTHENTICATED).spec.rules)
    both = both._replace(spec=both.spec._replace(rules=rules))
    assert is_taken(both, schema(EVERYBODY), "authenticated")
    assert not is_taken(both, schema(EVERYBODY), "any")


@pytest.mark.parametrize(
    ("first", "second", "covers"),
    [
        ({"verbs": ["get", "list"]}, {"verbs": ["list"]}, True),
        ({"verbs": ["get"]}, {"verbs": ["get", "list"]}, False),
        ({"verbs": ["get"]}, {}, False),
        ({"apiGroups": ["", "apps"]}, {"apiGroups": ["apps", ""]}, True),
        ({"apiGroups": ["apps"]}, {"apiGroups": ["apps", ""]}, False),
        ({"resources": ["pods"]}, {"resources": ["pods"]}, True),
        ({"resources": ["pods"]}, {"resources": ["pods/status"]}, False),
        ({"resources": ["*", "pods"]}, {"resources": ["secrets"]}, False),
        ({"namespaces": ["dev"]}, {"namespaces": ["dev"], "clusterScope": False}, True),
        ({"namespaces": ["dev"], "clusterScope": False}, {"namespaces": ["dev"]}, False),
        ({"namespaces": [], "clusterScope": True}, {"namespaces": [], "clusterScope": True}, True),
        ({"namespaces": ["dev"]}, {"namespaces": [], "clusterScope": True}, True),
        ({"namespaces": ["dev"]}, {"namespaces": ["dev", "ops"]}, False),
        ({"clusterScope": False}, {}, False),
        ({"verbs": ["get"]}, {"verbs": []}, True),
        ({"resources": [f"r{at}" for at in range(20)]}, {"resources": ["r7", "r19"]}, True),
        ({"resources": [f"r{at}" for at in range(20)]}, {"resources": [f"r{at}" for at in range(21)]}, False),
    ],
)
def test_which_resources_another_covers(first: dict[str, Any], second: dict[str, Any], *, covers: bool) -> None:
    for world in WORLDS:
        assert is_taken(schema(group("dev"), **first), schema(group("dev"), **second), world) == covers


@pytest.mark.parametrize(
    ("first", "second", "covers"),
    [
        (["*"], ["*"], True),
        (["*"], ["/healthz", "/livez/*"], True),
        (["/healthz"], ["*"], False),
        (["/"], ["/healthz"], True),
        (["/healthz"], ["/healthz/etcd"], True),
        (["/healthz"], ["/healthz/*"], True),
        (["/healthz/*"], ["/healthz"], False),  # not /healthz itself
        (["/healthz*"], ["/healthz"], False),
        (["/healthz/", "/healthz"], ["/healthz"], True),
        (["/heal"], ["/healthz"], False),
        (["/healthz"], ["/healthz", "/livez"], False),
        (["/livez", "/healthz"], ["/healthz", "/livez"], True),
    ],
)
def test_which_paths_another_covers(first: list[str], second: list[str], *, covers: bool) -> None:
    one, other = (schema(group("dev"), path=True, nonResourceURLs=urls) for urls in (first, second))
    assert is_taken(one, other, "any") == covers


def test_verbs_of_paths_count() -> None:
    one, two = (schema(group("dev"), path=True, verbs=verbs) for verbs in (["get"], ["get", "post"]))
    assert not is_taken(one, two, "any")
    assert is_taken(two, one, "any")


def test_a_subject_that_captures_one_request_of_a_group_is_not_its_shadow() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    rules = [{"subjects": [EVERYBODY, user("system:node:node-1"), group("system:nodes")], "resourceRules": [rule]}]
    spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 50, "rules": rules}
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    (mine,) = (each for each in config.order if each.name == "x")
    (found,) = Analysis(config, "any").find_shadows(Part(mine, 0, "subjects", 2))
    assert found.entry == 0
