"""Proofs about one configuration, compared with enumerations of a small world."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import builders, configurations
from support.builders import group, service_account, user
from support.configurations import BUILT_IN, FIXTURES, Objects, lines, objects, recorded
from support.configurations import schema as schema_for

from apflint import builtin
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.match import (
    RequestDigest,
    matches_flow_schema,
    matches_policy_rule,
)
from apflint.proofs.one_configuration import Analysis, Claim, FlowSchemaPart
from apflint.proofs.request_space import ANYBODY, PREFERRED, Point, usual_groups
from apflint.proofs.two_configurations import ConfigurationComparison
from apflint.releases import RELEASES, parse_release

from .enumeration import (
    SWAPPED,
    WORLDS,
    by_rank,
    decides,
    deciding,
    names,
    outermost,
    overlap,
    parts,
    place,
    rank_of,
    replays,
    requests,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.model import FlowSchema
    from apflint.proofs.request_space import World


def _earlier(config: Configuration, other: FlowSchemaPart, part: FlowSchemaPart) -> bool:
    if other.schema is part.schema:
        return other.path < part.path and other.rule is not None
    return config.order.index(other.schema) < config.order.index(part.schema)


def _without(schema: FlowSchema, dead: list[FlowSchemaPart]) -> FlowSchema:
    gone = {part.path for part in dead}
    rules = []
    for at, rule in enumerate(schema.spec.rules):
        if ("spec", "rules", at) not in gone:
            kept = [
                tuple(entry for index, entry in enumerate(entries) if ("spec", "rules", at, member, index) not in gone)
                for member, entries in zip(("subjects", "resourceRules", "nonResourceRules"), rule, strict=True)
            ]
            rules.append(type(rule)(*kept))  # type: ignore[arg-type]  # in the order of the fields
    return schema._replace(spec=schema.spec._replace(rules=tuple(rules)))


REQUESTS = lines(FIXTURES / "requests.jsonl")


EVERYBODY, ANYONE = user("*"), group("*")


AUTHENTICATED, UNAUTHENTICATED = group("system:authenticated"), group("system:unauthenticated")


ACCOUNTS, ACCOUNTS_OF_DEV = group("system:serviceaccounts"), group("system:serviceaccounts:dev")


BUILDER = service_account("dev", "builder")


def is_taken(first: FlowSchema, second: FlowSchema, world: World) -> bool:
    """Return whether the first FlowSchema shadows the second if only `exempt` comes before both."""
    flow_schemas = [
        each._replace(metadata=each.metadata._replace(name=name), spec=each.spec._replace(matching_precedence=1))
        for each, name in ((first, "first"), (second, "second"))
    ]
    config = build_configuration(Objects(tuple(flow_schemas)), BUILT_IN)
    assert [each.name for each in config.order[:3]] == ["exempt", "first", "second"]
    return Analysis(config, world).find_request(config.order[2]) is None


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_reachable_parts_are_those_of_an_enumeration(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    reached = {key for request in requests(config, world) for key in deciding(classify(config, request))}
    dead = [part for part in parts(config) if (id(part.schema), part.path) not in reached]
    analysis = Analysis(config, world)
    assert names(analysis.find_unreachable()[0]) == names(outermost(dead))
    for part in parts(config):
        found = analysis.find_request(part)
        assert (found is not None) == ((id(part.schema), part.path) in reached), part.path
        if found is not None:
            replays(config, found, world)
            assert decides(config, found.digest, part)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SWAPPED, SWAPPED, st.sampled_from(WORLDS))
def test_requests_in_sets_are_those_of_an_enumeration(
    values: list[dict[str, Any]], others: list[dict[str, Any]], world: World
) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    conditions = [rule for schema in objects(others).flow_schemas for rule in schema.spec.rules][:2]
    answers = Analysis(config, world, conditions)
    for condition in conditions:
        asked = [request for request in requests(config, world, condition) if matches_policy_rule(request, condition)]
        goes = {classify(config, item).flow_schema.name for item in asked}
        for schema in config.order:
            found = answers.find_request_in(condition, (schema,))
            assert (found is not None) == (schema.name in goes)
            if found is not None:
                assert replays(config, found, world).flow_schema is schema
                assert matches_policy_rule(found.digest, condition)
        assert (answers.find_request_in(condition, config.order) is not None) == bool(asked)
        rest = [item for item in conditions if item is not condition]
        kept = [item for item in asked if not any(matches_policy_rule(item, other) for other in rest)]
        left = answers.find_request_in(condition, config.order, rest)
        assert (left is not None) == bool(kept)
        assert left is None or not any(matches_policy_rule(left.digest, other) for other in rest)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SWAPPED, SWAPPED, st.sampled_from(WORLDS))
def test_proven_claims_are_those_of_an_enumeration(
    values: list[dict[str, Any]], others: list[dict[str, Any]], world: World
) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    conditions = [rule for schema in objects(others).flow_schemas for rule in schema.spec.rules][:2]
    answers = Analysis(config, world, conditions)
    for condition in conditions:
        rest = tuple(item for item in conditions if item is not condition)
        asked = [
            request
            for request in requests(config, world, *conditions)
            if matches_policy_rule(request, condition)
            and not any(matches_policy_rule(request, other) for other in rest)
        ]
        goes = {classify(config, item).flow_schema.name for item in asked}
        proven = answers.prove([Claim(schema, condition, rest, (ANYBODY,)) for schema in config.order])
        assert {config.order[index].name for index in proven} == goes
        for index, found in proven.items():
            assert replays(config, found, world).flow_schema is config.order[index]
            assert matches_policy_rule(found.digest, condition)
            assert not any(matches_policy_rule(found.digest, other) for other in rest)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_blockers_capture_everything_and_all_are_needed(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    asked = requests(config, world)
    analysis = Analysis(config, world)
    for part in analysis.find_unreachable()[0]:
        if part.rule is not None:
            assert all(_earlier(config, other, part) for other in analysis.find_shadows(part))
            continue
        matched = [digest for digest in asked if matches_flow_schema(digest, part.schema.spec)]
        found = analysis.find_blockers(part.schema)

        def taken(blockers: Iterable[FlowSchema], matched: list[RequestDigest] = matched) -> bool:
            return all(any(matches_flow_schema(digest, other.spec) for other in blockers) for digest in matched)

        assert taken(found)
        assert not any(taken([other for other in found if other is not spared]) for spared in found)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_all_unreachable_parts_can_be_removed_at_once(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    dead = list(Analysis(config, world).find_unreachable()[0])
    order = tuple(
        _without(schema, [part for part in dead if part.schema is schema])
        for schema in config.order
        if FlowSchemaPart(schema) not in dead or schema.name == "catch-all"
    )
    fewer = config._replace(order=order)
    for request in requests(config, world):
        assert place(classify(fewer, request)) == place(classify(config, request))


@pytest.mark.parametrize("number", sorted(recorded()))
def test_unreachable_parts_captured_no_recorded_request(number: str) -> None:
    config = recorded()[number][1]
    dead = {part.schema.name for part in Analysis(config).find_unreachable()[0] if part.rule is None}
    dead |= {part.schema.name for part in Analysis(config, "any").find_unreachable()[0] if part.rule is None}
    answers = {row[7] for row in REQUESTS if row[0].startswith(f"{number}-") and row[6]}
    assert answers
    assert not answers & dead


@pytest.mark.parametrize("number", sorted(recorded())[::7])
def test_witnesses_of_recorded_configurations_replay(number: str) -> None:
    config = recorded()[number][1]
    for world in WORLDS:
        analysis = Analysis(config, world)
        for part in parts(config):
            found = analysis.find_request(part)
            if found is not None:
                replays(config, found, world)
                assert decides(config, found.digest, part)


def test_reachable_flow_schemas_have_no_shadows() -> None:
    config = build_configuration(Objects(), BUILT_IN)
    service_accounts = next(schema for schema in config.order if schema.name == "service-accounts")
    with pytest.raises(ValueError, match=r'^"service-accounts" is reachable$'):
        Analysis(config).find_shadows(FlowSchemaPart(service_accounts))


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": []},
        {"subjects": []},
        {"resourceRules": []},
        {"verbs": []},
        {"apiGroups": []},
        {"resources": []},
        {"namespaces": []},
        {"verbs": ["no such verb"]},
    ],
)
def test_empty_flow_schema_matches_nothing(changes: dict[str, Any]) -> None:
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    rule = {"subjects": [{"kind": "User", "user": {"name": "alice"}}], "resourceRules": [part | changes]} | changes
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 50, "rules": [rule]} | changes
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    schema = next(flow_schema for flow_schema in config.order if flow_schema.name == "x")
    assert Analysis(config).find_request(schema) is None
    assert [*Analysis(config).find_unreachable([schema])[0]] == [FlowSchemaPart(schema)]
    everybody = next(flow_schema for flow_schema in config.order if flow_schema.name == "global-default")
    assert overlap(config, schema, everybody, "authenticated") is None
    assert Analysis(config).find_shadows(FlowSchemaPart(schema)) == ()


@pytest.mark.parametrize(
    ("verbs", "resources", "asked"),
    [
        (["get", "watch", "list"], ["pods/log"], "watch"),  # `get` of a log is long-running and not classified
        (["get", "list"], ["pods/log"], None),
        (["list", "get", "deletecollection"], [""], "get"),
        (["list", "deletecollection"], [""], None),
    ],
)
def test_verb_that_goes_with_the_resource_is_found(verbs: list[str], resources: list[str], asked: str | None) -> None:
    mine = configurations.schema(builders.user("alice"), verbs=verbs, resources=resources)
    found = Analysis(build_configuration(Objects((mine,)), BUILT_IN)).find_request(mine)
    assert (found and found.digest.request_info.verb) == asked


def test_no_witness_is_a_watch_if_the_server_does_not_classify_watches() -> None:
    verbs = {**builders.READ_PODS, "verbs": ["watch", "deletecollection"]}
    mine, watches = (
        builders.flow_schema(name, resources=[entry], subjects=[user("alice")], version="v1beta1")
        for name, entry in (("mine", verbs), ("watches", {**verbs, "verbs": ["watch"]}))
    )
    configuration = builders.effective(mine, watches, kubernetes="1.21").configuration
    schema, unreachable = (item for item in configuration.order if item.name in ("mine", "watches"))
    (rule,) = schema.spec.rules
    watch = Point("alice", usual_groups("alice"), True, "watch", "", "pods", "dev")
    analysis = Analysis(configuration)
    witnesses = (
        analysis.find_request(schema),
        analysis.find_request_in(rule, [schema]),
        analysis.prove([Claim(schema, rule, (), PREFERRED, (watch,))])[0],
    )
    assert [witness and witness.point.verb for witness in witnesses] == ["deletecollection"] * 3
    assert analysis.find_request(unreachable) is None


def test_resource_status_is_in_no_namespace() -> None:
    # `/api/v1/namespaces/x/status` is about the namespace x itself.
    for outside in (True, False):
        mine = configurations.schema(builders.user("alice"), resources=["status"], clusterScope=outside)
        found = Analysis(build_configuration(Objects((mine,)), BUILT_IN)).find_request(mine)
        assert (found and found.digest.request_info.namespace) == ("" if outside else None)


@pytest.mark.parametrize("name", ["system:serviceaccount:builder", "system:serviceaccount:"])
def test_users_that_authentication_never_gives_reach_nothing(name: str) -> None:
    mine = configurations.schema(builders.user(name))
    before = build_configuration(Objects(), BUILT_IN)
    after = build_configuration(Objects((mine,)), BUILT_IN)
    assert [*Analysis(after).find_unreachable([mine])[0]] == [FlowSchemaPart(mine)]
    assert [*ConfigurationComparison(before, after).find_moves()] == []
    assert [*Analysis(after, "any").find_unreachable([mine])[0]] == []
    assert {move.to_schema.name for move in ConfigurationComparison(before, after, "any").find_moves()} == {"x"}


def test_shadows_are_in_matching_order() -> None:
    def rule(*verbs: str) -> dict[str, Any]:
        return {"verbs": verbs, "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}

    alice = {"kind": "User", "user": {"name": "alice"}}
    joined = [{"subjects": [alice], "resourceRules": [rule("get"), rule("list"), rule("watch"), rule("list", "get")]}]
    several = [{"subjects": [alice], "resourceRules": [each]} for each in joined[0]["resourceRules"]]
    for rules, target, parts_of_it in (
        (joined, (0, "resourceRules", 3), [(0, "resourceRules", 0), (0, "resourceRules", 1)]),
        (several, (3, None, None), [(0, None, None), (1, None, None)]),
    ):
        spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 50, "rules": rules}
        config = build_configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
        schema = next(each for each in config.order if each.name == "x")
        found = Analysis(config).find_shadows(FlowSchemaPart(schema, *target))
        assert [(part.rule, part.member, part.entry) for part in found] == parts_of_it


@pytest.mark.parametrize("name", [release.name for release in RELEASES])
def test_unreachable_parts_of_the_built_in_objects(name: str) -> None:
    config = build_configuration(Objects(), builtin.load_objects(parse_release(name)))
    dead: list[Any] = [("global-default" if name == "1.18" else "catch-all", ("metadata", "name"))]
    if int(name[2:]) < 34:
        # The resource rule 1 matches service accounts of kube-system. The FlowSchema system-leader-election captures
        # their requests.
        dead.insert(0, ("workload-leader-election", ("spec", "rules", 0, "resourceRules", 1)))
    assert names(Analysis(config).find_unreachable()[0]) == dead


def test_catch_all_captures_users_in_no_group() -> None:
    config = build_configuration(Objects(), BUILT_IN)
    (catch_all,) = (schema for schema in config.order if schema.name == "catch-all")
    assert [*Analysis(config).find_unreachable([catch_all])[0]] == [FlowSchemaPart(catch_all)]
    # global-default captures all requests that the rules of catch-all match, but the server uses catch-all if no
    # FlowSchema matches.
    assert [*Analysis(config, "any").find_unreachable([catch_all])[0]] == [FlowSchemaPart(catch_all, 0)]


def test_solver_is_not_loaded_if_candidates_prove_everything() -> None:
    code = (
        "import sys; from apflint import builtin; from apflint.proofs.one_configuration import Analysis; from apflint.proofs.precedence_ties import Budget, find_ties;"
        "from apflint.proofs.two_configurations import ConfigurationComparison;"
        "from apflint.evaluate.configuration import build_configuration; from apflint.releases import NEWEST;"
        "from tests.support.configurations import Objects;"
        "config = build_configuration(Objects(), builtin.load_objects(NEWEST));"
        "analysis = Analysis(config);"
        "assert not list(analysis.find_unreachable(config.order[:-1])[0]);"
        "assert find_ties(analysis, config.order[5:7], lambda *_: True, Budget(1, 1)).example is None;"
        "assert list(ConfigurationComparison(config, config).find_moves()) == [];"
        "assert 'pysat' not in sys.modules;"
        "assert list(analysis.find_unreachable()[0]);"
        "assert 'pysat' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FIXTURES.parents[1])


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(SWAPPED, SWAPPED)
def test_requests_in_sets_prefer_ordinary_users(values: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    for condition in [rule for schema in objects(others).flow_schemas for rule in schema.spec.rules][:1]:
        best: dict[str, int] = {}
        for at, asked in by_rank(config, condition):
            if matches_policy_rule(asked, condition):
                best.setdefault(classify(config, asked).flow_schema.name, at)
        answers = Analysis(config, "authenticated", (condition,))
        for schema in config.order:
            assert rank_of(answers.find_request_in(condition, (schema,))) == best.get(schema.name)


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
        (user("bob"), user("system:serviceaccount:no"), True, False),  # no authenticated user has such a name
        (user("bob"), service_account("N_", "*"), True, False),
        (user("bob"), group("system:serviceaccounts:N_"), True, False),
    ],
)
def test_shadowing_subjects(
    first: dict[str, Any], second: dict[str, Any], *, authenticated: bool, any_world: bool
) -> None:
    for path in (False, True):
        first_schema, other = schema_for(first, path=path), schema_for(second, path=path)
        assert [is_taken(first_schema, other, world) for world in WORLDS] == [authenticated, any_world]


def test_authenticated_and_unauthenticated_are_everybody() -> None:
    both = schema_for(AUTHENTICATED)
    rules = (*both.spec.rules, *schema_for(UNAUTHENTICATED).spec.rules)
    both = both._replace(spec=both.spec._replace(rules=rules))
    assert is_taken(both, schema_for(EVERYBODY), "authenticated")
    assert not is_taken(both, schema_for(EVERYBODY), "any")


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
def test_shadowing_resource_rules(first: dict[str, Any], second: dict[str, Any], *, covers: bool) -> None:
    for world in WORLDS:
        assert is_taken(schema_for(group("dev"), **first), schema_for(group("dev"), **second), world) == covers


@pytest.mark.parametrize(
    ("first", "second", "covers"),
    [
        (["*"], ["*"], True),
        (["*"], ["/healthz", "/livez/*"], True),
        (["/healthz"], ["*"], False),
        (["/"], ["/healthz"], True),
        (["/healthz"], ["/healthz/etcd"], True),
        (["/healthz"], ["/healthz/*"], True),
        (["/healthz/*"], ["/healthz"], False),  # the pattern does not match /healthz itself
        (["/healthz*"], ["/healthz"], False),
        (["/healthz/", "/healthz"], ["/healthz"], True),
        (["/heal"], ["/healthz"], False),
        (["/healthz"], ["/healthz", "/livez"], False),
        (["/livez", "/healthz"], ["/healthz", "/livez"], True),
    ],
)
def test_shadowing_paths(first: list[str], second: list[str], *, covers: bool) -> None:
    first_schema, other = (schema_for(group("dev"), path=True, nonResourceURLs=urls) for urls in (first, second))
    assert is_taken(first_schema, other, "any") == covers


def test_shadowing_paths_with_other_verbs() -> None:
    first, two = (schema_for(group("dev"), path=True, verbs=verbs) for verbs in (["get"], ["get", "post"]))
    assert not is_taken(first, two, "any")
    assert is_taken(two, first, "any")


def test_subject_that_captures_one_request_of_a_group_is_not_its_shadow() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    rules = [{"subjects": [EVERYBODY, user("system:node:node-1"), group("system:nodes")], "resourceRules": [rule]}]
    spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 50, "rules": rules}
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    (mine,) = (schema for schema in config.order if schema.name == "x")
    (found,) = Analysis(config, "any").find_shadows(FlowSchemaPart(mine, 0, "subjects", 2))
    assert found.entry == 0


def _shadowed(rules: int) -> tuple[Configuration, FlowSchema]:
    """Return a configuration, and its last FlowSchema. The first FlowSchema shadows the last FlowSchema.

    The last FlowSchema has `rules` rules. Each rule has 2 users.
    """
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    everybody = [
        {"kind": "Group", "group": {"name": name}} for name in ("system:authenticated", "system:unauthenticated")
    ]
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": "exempt"}}
    own = [
        {"subjects": [user(f"a{number}"), user(f"b{number}")], "resourceRules": [everything]} for number in range(rules)
    ]
    first = {**spec, "matchingPrecedence": 1, "rules": [{"subjects": everybody, "resourceRules": [everything]}]}
    values = [
        {"kind": "FlowSchema", "name": "first", "spec": first},
        {"kind": "FlowSchema", "name": "last", "spec": {**spec, "matchingPrecedence": 2, "rules": own}},
    ]
    config = build_configuration(objects(values), BUILT_IN)
    return config, next(schema for schema in config.order if schema.name == "last")


def test_estimated_work_of_a_part() -> None:
    """Each FlowSchema costs 1, and each rule before the part and each sibling in its list costs 8."""
    config, last = _shadowed(3)
    analysis, own = Analysis(config), len(config.order)
    assert analysis.estimate_work(FlowSchemaPart(last)) == own
    assert [analysis.estimate_work(FlowSchemaPart(last, rule)) for rule in range(3)] == [own, own + 8, own + 16]
    assert analysis.estimate_work(FlowSchemaPart(last, 0, "subjects", 1)) == own + 8 * 2
    assert analysis.estimate_work(FlowSchemaPart(last, 2, "resourceRules", 0)) == own + 8 * (2 + 1)


@pytest.mark.parametrize(("bound", "is_analyzed"), [(0, True), (-1, False)])
def test_flow_schemas_beyond_the_bound_of_work_are_named(
    bound: int, is_analyzed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, last = _shadowed(1)
    work = sum(Analysis(config).estimate_work(part) for part in (FlowSchemaPart(last),))
    monkeypatch.setattr("apflint.proofs.one_configuration.MAX_REACHABILITY_WORK", work + bound)
    parts, not_analyzed = Analysis(config).find_unreachable([last])
    assert (parts, not_analyzed) == (((FlowSchemaPart(last),), (last,)[1:]) if is_analyzed else ((), (last,)))


@pytest.mark.parametrize(("url", "verb", "is_reachable"), [
    ("/version", "get", True),
    ("/api/v1/proxy", "get", False),  # a path of resources
    ("/apis/x/proxy/*", "*", True),
    ("/debug/pprof/profile", "get", False),  # long-running, except for watches
    ("/debug/pprof/profile", "watch", True),
    ("/debug/pprof/profile", "*", True),
])  # fmt: skip
def test_paths_of_requests(url: str, verb: str, is_reachable: bool) -> None:
    mine = schema_for(user("alice"), path=True, verbs=[verb], nonResourceURLs=[url])
    found = Analysis(build_configuration(Objects((mine,)), BUILT_IN)).find_request(mine)
    assert (found is not None) is is_reachable
