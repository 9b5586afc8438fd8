"""What is told without the solver, that nothing reaches a part and who takes it, is what the solver tells."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.evaluate.reach import analysis
from apflint.evaluate.reach.alone import alone
from apflint.evaluate.reach.analysis import Analysis, _keys, _keys_of
from apflint.evaluate.reach.cover import taken
from apflint.evaluate.reach.parts import Part
from apflint.evaluate.reach.tally import Tally
from apflint.evaluate.resolve import classify, configuration

from .configurations import BUILT_IN, FLOW_SCHEMAS, Objects, account, group, objects, schema, user
from .test_reach import SWAPPED, WORLDS, requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.reach.parts import Key, World
    from apflint.evaluate.resolve import Configuration
    from apflint.model import FlowSchema


def keys(config: Configuration) -> Iterator[Key]:
    return (key for position, each in enumerate(config.order) for key in _keys_of(each, position))


def part_of(config: Configuration, key: Key) -> Part:
    return Part(config.order[key[0]], *key[1:])


# --- laws -------------------------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_what_is_covered_the_solver_finds_no_request_for(values: list[dict[str, Any]], world: World) -> None:
    config = configuration(objects(values), BUILT_IN)
    asked = Analysis(config, world)
    for key in keys(config):
        if taken(asked.resolve.index, config.order[key[0]], key, world):
            wanted, siblings = asked._claim(key, asked.encoding)
            before = (-asked.goes.taken[key[0]], *(-literal for literal in siblings))
            assert not asked.encoding.formula.solve((*wanted, *before)), key


@settings(max_examples=120, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_who_takes_all_alone_is_whom_the_solver_names(values: list[dict[str, Any]], world: World) -> None:
    config = configuration(objects(values), BUILT_IN)
    asked = Analysis(config, world)
    for key in keys(config):
        only = alone(asked.resolve, asked.fresh, world, key)
        if only is not None:
            with patch.object(analysis, "alone", return_value=None):
                (named,) = Analysis(config, world).shadows(part_of(config, key))
            assert (named.schema.name, named.path) == (only.schema.name, only.path)


@settings(max_examples=60, deadline=None)
@given(FLOW_SCHEMAS, st.sampled_from(WORLDS))
def test_a_tally_knows_what_decided(values: list[dict[str, Any]], world: World) -> None:
    config = configuration(objects(values), BUILT_IN)
    known = Tally(config, Analysis(config, world).resolve.index)
    decided: set[Key] = set()
    for each in requests(config, world)[::97]:
        found = classify(config, each)
        known.note(found)
        decided.update(_keys(found))
    assert [key for key in keys(config) if key in known] == [key for key in keys(config) if key in decided]
    for position, each_schema in enumerate(config.order):
        assert known.complete(position) == decided.issuperset(_keys_of(each_schema, position))


# --- who is covered by whom -------------------------------------------------------------------------------------------

EVERYBODY, ANYONE = user("*"), group("*")
AUTHENTICATED, UNAUTHENTICATED = group("system:authenticated"), group("system:unauthenticated")
ACCOUNTS, ACCOUNTS_OF_DEV = group("system:serviceaccounts"), group("system:serviceaccounts:dev")
BUILDER = account("dev", "builder")


def is_taken(first: FlowSchema, second: FlowSchema, world: World) -> bool:
    """Whether the second surely never decides after the first; before them there is just `exempt`."""
    made = [
        each._replace(metadata=each.metadata._replace(name=name), spec=each.spec._replace(matching_precedence=1))
        for each, name in ((first, "first"), (second, "second"))
    ]
    config = configuration(Objects(tuple(made)), BUILT_IN)
    assert [each.name for each in config.order[:3]] == ["exempt", "first", "second"]
    return taken(Analysis(config, world).resolve.index, config.order[2], (2, None, None, None), world)


@pytest.mark.parametrize(
    ("first", "second", "authenticated", "any_world"),
    [
        (EVERYBODY, user("alice"), True, True),
        (ANYONE, group("dev"), True, True),
        (EVERYBODY, ANYONE, True, True),
        (ANYONE, account("dev", "*"), True, True),
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
        (ACCOUNTS, account("dev", "*"), True, False),
        (ACCOUNTS, BUILDER, True, False),
        (ACCOUNTS, user("system:serviceaccount:dev:builder"), True, False),
        (ACCOUNTS, AUTHENTICATED, False, False),
        (ACCOUNTS_OF_DEV, account("dev", "*"), True, False),
        (ACCOUNTS_OF_DEV, account("ops", "*"), False, False),
        (ACCOUNTS_OF_DEV, ACCOUNTS, False, False),
        (account("dev", "*"), BUILDER, True, True),
        (account("dev", "*"), ACCOUNTS_OF_DEV, True, False),
        (account("dev", "*"), user("system:serviceaccount:dev:other"), True, True),
        (account("dev", "*"), user("system:serviceaccount:develop:other"), False, False),
        (BUILDER, account("dev", "*"), False, False),
        (BUILDER, user("system:serviceaccount:dev:builder"), True, True),
        (user("system:serviceaccount:dev:"), account("dev", "*"), False, False),
        (user("bob"), user("system:serviceaccount:no"), True, False),  # authentication gives no such user
        (user("bob"), account("N_", "*"), True, False),
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


# --- and many of them -------------------------------------------------------------------------------------------------

_RUN = """
import json, sys
from apflint.engine import Options, check
found = check([("many.json", sys.stdin.buffer.read())], Options(select=("APF501", "APF502"))).findings
print(len(found), sum("captured by the FlowSchema" in m or "already matches all" in m for m in [each.message for each in found]))
print(*(name for name in sys.modules if name.startswith("pysat")))
"""


def test_thousands_that_others_take_alone_need_no_solver() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}

    def manifest(number: int) -> dict[str, Any]:
        # Each of the second half asks for a part of what one of the first half does.
        who = number % 1000
        what = rule | ({"verbs": ["get", "list"]} if number < 1000 else {})
        return {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": f"fs-{number:04}"},
            "spec": {
                "priorityLevelConfiguration": {"name": "workload-low"},
                "matchingPrecedence": 1000 + number,
                "rules": [{"subjects": [user(f"u{who}")], "resourceRules": [what]}],
            },
        }

    assert checked([manifest(number) for number in range(2000)]) == ["1000 100", ""]


def checked(manifests: list[dict[str, Any]]) -> list[str]:
    """How many shadowed ones, and of how many it is told by whom; what was loaded of the solver."""
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    ran = subprocess.run([sys.executable, "-c", _RUN], input=data, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_who_asks_for_one_thing_in_vain_is_seen_to_ask_for_another() -> None:
    paths = [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]
    resources = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True}]
    rules = (
        {"subjects": [account("dev", "*")], "resourceRules": resources, "nonResourceRules": paths},
        # The path is asked for by alice alone: all of the service accounts is taken.
        {"subjects": [user("alice"), account("dev", "*")], "resourceRules": resources, "nonResourceRules": paths},
    )
    manifests = [
        {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": f"fs-{number}"},
            "spec": {
                "priorityLevelConfiguration": {"name": "workload-low"},
                "matchingPrecedence": 1000 + number,
                "rules": [rule],
            },
        }
        for number, rule in enumerate(rules)
    ]
    assert checked(manifests) == ["1 1", ""]


def test_who_takes_one_request_of_a_group_is_not_who_takes_all() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    rules = [{"subjects": [EVERYBODY, user("system:node:node-1"), group("system:nodes")], "resourceRules": [rule]}]
    spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 50, "rules": rules}
    config = configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    (mine,) = (each for each in config.order if each.name == "x")
    (found,) = Analysis(config, "any").shadows(Part(mine, 0, "subjects", 2))
    assert found.entry == 0
