"""What the solver says about all requests, held against enumerations of small worlds and against a real server."""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import builders, configurations
from support.configurations import BUILT_IN, FIXTURES, FLOW_SCHEMAS, RELEASE, Objects, lines, objects, recorded

from apflint import builtin
from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.match import (
    RequestDigest,
    UserInfo,
    matches_flow_schema,
    matches_non_resource_policy_rule,
    matches_policy_rule,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.requestinfo import is_seen_by_apf, parse_request_info
from apflint.proofs.one_configuration import Analysis, Part, members
from apflint.proofs.request_space import (
    PREFERRED,
    VERBS,
    Point,
    World,
    has_authentic_groups,
    is_possible,
    is_resource_path,
)
from apflint.proofs.request_space import make_digest as digest_of
from apflint.proofs.ties import Budget, find_ties
from apflint.proofs.two_configurations import Comparison
from apflint.proofs.witness import make_witness
from apflint.releases import RELEASES, parse_release
from apflint.requests.http import parse_http
from apflint.requests.json_lines import parse_record
from apflint.requests.words import parse_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.evaluate.classify import Resolution
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import Requesters
    from apflint.proofs.witness import Witness

WORLDS: tuple[World, ...] = ("authenticated", "any")

# --- a small world, written down without looking at the configuration -------------------------------------------------

SWAPS: tuple[dict[str, str], ...] = (
    {},
    {'"dev"}': '"system:serviceaccounts"}', '"bob"': '"system:anonymous"', '"nodes"': '"pods/exec"'},
    {'"system:masters"': '"system:serviceaccounts:dev"', '"bob"': '"system:node:n1"', '"/version/"': '"/api/v1/"'},
    {'"/version/"': '"/debug/pprof/heap"', '"nodes"': '"status"', '"system:masters"': '"system:serviceaccounts:N_"'},
    {'"/hea"': '"/api/v1/pods"', '"//healthz"': '"/api/"', '"nodes"': '""', '"kube-system"': '"a/b"'},
)
"""Other values in place of those of the strategies: for the groups that authentication rules, and what it excludes."""
SWAPPED = st.tuples(FLOW_SCHEMAS, st.sampled_from(SWAPS)).map(lambda drawn: _swapped(*drawn))

USERS = (
    "alice",
    "bob",
    "someone",
    "eve*",
    "system:anonymous",
    "system:node:n1",
    "system:serviceaccount:dev:builder",
    "system:serviceaccount:dev:a",
    "system:serviceaccount:dev:other",
    "system:serviceaccount:ops:builder",
    "system:serviceaccount:ops:a",
    "system:serviceaccount:ops:a:b",
    "system:serviceaccount:ops:other",
    "system:serviceaccount:kube-system:builder",
    "system:serviceaccount:kube-system:a",
    "system:serviceaccount:kube-system:other",
    "system:serviceaccount:a/b:builder",
    "system:serviceaccount:a/b:a",
    "system:serviceaccount:a/b:other",
    "system:serviceaccount:*:builder",
    "system:serviceaccount:*:a",
    "system:serviceaccount:*:other",
    "system:serviceaccount:elsewhere:other",
    "system:kube-scheduler",
    "system:kube-controller-manager",
)
FREE_GROUPS = ("dev", "system:masters", "system:nodes")
ALL_GROUPS = (
    *FREE_GROUPS,
    "system:authenticated",
    "system:unauthenticated",
    "system:serviceaccounts",
    "system:serviceaccounts:dev",
    "system:serviceaccounts:N_",
)
HTTP_VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "head",
    "post",
    "put",
    "*",
)
PATHS = (
    *(
        "/",
        "/x",
        "/healthz",
        "/healthz/",
        "/healthz/etcd",
        "/healthz/etcd/x",
        "/healthz/x",
        "/healthz/*",
        "/healthz/*/x",
    ),
    *("/hea", "/hea/x", "/version", "/version/", "/version/x", "//healthz", "//healthz/x", "//x", "*", "/*", "/*/x"),
    *("/debug/pprof/heap", "/debug/pprof/heap/x", "/debug", "/api", "/api/", "/api/v1", "/api/v1/", "/api/v1//"),
    *("/api/v1/pods", "/api/x", "/livez", "/readyz", "/livez/x", "/readyz/x"),
)
RESOURCES = (
    "pods",
    "pods/log",
    "deployments",
    "nodes",
    "nodes/status",
    "namespaces",
    "namespaces/status",
    "leases",
    "other",
    "pods/exec",
    "status",
    "",
    "*",
)
API_GROUPS = ("", "apps", "other", "coordination.k8s.io", "*")
NAMESPACES = ("", "dev", "ops", "kube-system", "elsewhere", "*")


def _swapped(values: list[dict[str, Any]], swap: dict[str, str]) -> list[dict[str, Any]]:
    text = json.dumps(values)
    for old, new in swap.items():
        text = text.replace(old, new)
    swapped: list[dict[str, Any]] = json.loads(text)
    return swapped


def _subsets(groups: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for count in range(len(groups) + 1):
        yield from itertools.combinations(groups, count)


@cache
def who(world: World) -> tuple[UserInfo, ...]:
    if world == "any":
        return tuple(UserInfo(user, groups) for user in USERS for groups in _subsets(ALL_GROUPS))
    found = []
    for user in USERS:
        added = complete_groups(user, ())[0]
        if user.startswith("system:serviceaccount:") or user == "system:anonymous":
            # Tokens of service accounts name their groups; a malformed name has none, and nobody has such a name.
            found += [UserInfo(user, added)] if len(added) != 1 or user == "system:anonymous" else []
            continue
        # With a group that is named, nothing but what authentication adds is added to a node.
        subsets = (("system:authenticated", *groups) for groups in _subsets(FREE_GROUPS))
        found += [UserInfo(user, complete_groups(user, groups)[0]) for groups in subsets]
    return tuple(found)


@cache
def what() -> tuple[RequestDigest, ...]:
    """Requests by nobody that a server can be sent and classifies."""
    found = []
    for verb, group, resource, namespace in itertools.product(VERBS, API_GROUPS, RESOURCES, NAMESPACES):
        if resource == "status" and namespace:
            continue
        if resource == "" and verb in ("list", "deletecollection"):
            continue
        found.append(digest_of(Point("", (), True, verb, group, resource, namespace)))
    for verb, path in itertools.product(HTTP_VERBS, PATHS):
        if path.startswith("/") and not parse_request_info("GET", path).is_resource_request:
            found.append(digest_of(Point("", (), False, verb, path=path)))
    return tuple(each for each in found if is_seen_by_apf(each.request_info))


def requests(
    config: Configuration, world: World, *more: Any, users: Iterable[UserInfo] | None = None
) -> list[RequestDigest]:
    """One request for each way in which users and requests match these rules: together they say all there is to say."""
    rules = [rule for schema in config.order for rule in schema.spec.rules] + list(more)
    subjects = dict.fromkeys(subject for rule in rules for subject in rule.subjects)
    resource = dict.fromkeys(each for rule in rules for each in rule.resource_rules)
    other = dict.fromkeys(each for rule in rules for each in rule.non_resource_rules)
    candidates = who(world) if users is None else users
    different = {tuple(matches_subject(user, each) for each in subjects): user for user in candidates}
    asked = {}
    for each in what():
        info = each.request_info
        if info.is_resource_request:
            key = tuple(matches_resource_policy_rule(info, rule) for rule in resource)
        else:
            key = tuple(matches_non_resource_policy_rule(info, rule) for rule in other)
        asked[info.is_resource_request, key] = info
    return [RequestDigest(info, user) for user in different.values() for info in asked.values()]


def parts(config: Configuration) -> Iterator[Part]:
    for schema in config.order:
        yield Part(schema)
        for at, rule in enumerate(schema.spec.rules):
            yield Part(schema, at)
            for member, entries in members(rule):
                yield from (Part(schema, at, member, index) for index in range(len(entries)))


def deciding(resolution: Resolution) -> list[tuple[int, Any]]:
    """The parts that decide, as `explain` reports them."""
    schema, found = resolution.flow_schema, resolution.matched_by
    paths: list[Any] = [("metadata", "name")]
    if found is not None:
        rule = ("spec", "rules", found.rule)
        paths += [rule, (*rule, "subjects", found.subject)]
        entries = {"resourceRules": found.resource_rule, "nonResourceRules": found.non_resource_rule}
        paths += [(*rule, member, entry) for member, entry in entries.items() if entry is not None]
    return [(id(schema), path) for path in paths]


def decides(config: Configuration, asked: RequestDigest, part: Part) -> bool:
    return (id(part.schema), part.path) in deciding(classify(config, asked))


def names(parts: Iterable[Part]) -> list[Any]:
    return [(part.schema.name, part.path) for part in parts]


def outermost(dead: list[Part]) -> list[Part]:
    gone = {(id(part.schema), part.path) for part in dead}
    return [
        part
        for part in dead
        if not any(
            (id(part.schema), outer) in gone
            for outer in (("metadata", "name"), ("spec", "rules", part.rule))
            if outer != part.path
        )
    ]


def replays(config: Configuration, found: Witness, world: World) -> Resolution:
    """Where the make_witness goes; its words and its record must mean the very same request."""
    resolution = classify(config, found.digest)
    assert is_seen_by_apf(found.digest.request_info)
    assert world == "any" or has_authentic_groups(found.digest.user.name, found.digest.user.groups)
    assert classify(config, parse_record(found.record).digest) == resolution
    assert found.words is not None or world == "any"
    if found.words is not None:
        assert spoken(found.words) == found.digest
    return resolution


def spoken(words: tuple[str, ...]) -> RequestDigest:
    """The request that `apflint explain` makes of these arguments, read as a command line is."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--as", dest="user")
    parser.add_argument("--as-group", dest="groups", action="append", default=[])
    parser.add_argument("-n", dest="namespace")
    parser.add_argument("--method")
    parser.add_argument("--path")
    read = parser.parse_args(shlex.split(shlex.join(words)))
    if read.path is not None:
        return parse_http(read.method, read.path, user=read.user, groups=read.groups).digest
    return parse_words(read.words, user=read.user, groups=read.groups, namespace=read.namespace).digest


# --- enumerations agree with the solver -------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_what_is_reachable_is_what_an_enumeration_reaches(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    reached = {key for each in requests(config, world) for key in deciding(classify(config, each))}
    dead = [part for part in parts(config) if (id(part.schema), part.path) not in reached]
    analysis = Analysis(config, world)
    assert names(analysis.find_unreachable()) == names(outermost(dead))
    for part in parts(config):
        found = analysis.find_request(part)
        assert (found is not None) == ((id(part.schema), part.path) in reached), part.path
        if found is not None:
            replays(config, found, world)
            assert decides(config, found.digest, part)


@settings(max_examples=60, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_overlaps_are_those_of_an_enumeration(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    own = {value["name"] for value in values}
    asked = requests(config, world)
    matching = [
        (classify(config, each).flow_schema.name, [s.name for s in config.order if matches_flow_schema(each, s.spec)])
        for each in asked
    ]
    for a, b in itertools.combinations([schema for schema in config.order if schema.name in own], 2):
        found = overlap(config, b, a, world)
        expected = any(goes == a.name and a.name in all_ and b.name in all_ for goes, all_ in matching)
        assert (found is not None) == expected
        if found is not None:
            assert replays(config, found, world).flow_schema is a
            assert matches_flow_schema(found.digest, a.spec)
            assert matches_flow_schema(found.digest, b.spec)


@settings(max_examples=60, deadline=None)
@given(SWAPPED, SWAPPED, st.sampled_from(WORLDS))
def test_moves_are_those_of_an_enumeration(
    old_values: list[dict[str, Any]], new_values: list[dict[str, Any]], world: World
) -> None:
    old = build_configuration(objects(old_values), BUILT_IN)
    new = build_configuration(objects(old_values[:1] + new_values), BUILT_IN)
    both = [rule for schema in new.order for rule in schema.spec.rules]
    expected = set()
    for each in requests(old, world, *both):
        before, after = classify(old, each), classify(new, each)
        if place(before) != place(after):
            expected.add((place(before), place(after)))
    moves = list(Comparison(old, new, world).find_moves())
    found = [((move.from_schema.name, move.from_level), (move.to_schema.name, move.to_level)) for move in moves]
    assert len(found) == len(set(found))
    assert set(found) == expected
    some = old.order[::2]
    fewer = [
        (move.from_schema.name, move.to_schema.name) for move in Comparison(old, new, world).find_moves(leaving=some)
    ]
    kept = [(move.from_schema.name, move.to_schema.name) for move in moves if move.from_schema in some]
    assert sorted(fewer) == sorted(kept)
    for move in moves:
        assert replays(old, move.witness, world).flow_schema is move.from_schema
        assert replays(new, move.witness, world).flow_schema is move.to_schema
        assert Comparison(new, old, world).find_passage(move.to_schema, move.from_schema) is not None


def overlap(
    config: Configuration, a: FlowSchema, b: FlowSchema, world: World, among: Sequence[Requesters] = PREFERRED
) -> Witness | None:
    """A request that both match and that goes to the earlier of the two."""
    group = sorted((a, b), key=config.order.index)
    example = find_ties(Analysis(config, world), group, lambda *_: True, Budget(1, 9), among=among).example
    assert example is None or [*example[:2]] == group
    return None if example is None else example[2]


def place(resolution: Resolution) -> tuple[str, str]:
    return resolution.flow_schema.name, resolution.priority_level.name


@settings(max_examples=60, deadline=None)
@given(SWAPPED, SWAPPED, st.sampled_from(WORLDS))
def test_conditions_are_found_as_by_an_enumeration(
    values: list[dict[str, Any]], others: list[dict[str, Any]], world: World
) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    conditions = [rule for schema in objects(others).flow_schemas for rule in schema.spec.rules][:2]
    answers = Analysis(config, world, conditions)
    for condition in conditions:
        asked = [each for each in requests(config, world, condition) if matches_policy_rule(each, condition)]
        goes = {classify(config, each).flow_schema.name for each in asked}
        for schema in config.order:
            found = answers.find_request_in(condition, (schema,))
            assert (found is not None) == (schema.name in goes)
            if found is not None:
                assert replays(config, found, world).flow_schema is schema
                assert matches_policy_rule(found.digest, condition)
        assert (answers.find_request_in(condition, config.order) is not None) == bool(asked)
        rest = [each for each in conditions if each is not condition]
        kept = [each for each in asked if not any(matches_policy_rule(each, other) for other in rest)]
        left = answers.find_request_in(condition, config.order, rest)
        assert (left is not None) == bool(kept)
        assert left is None or not any(matches_policy_rule(left.digest, other) for other in rest)


@settings(max_examples=60, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_blockers_take_everything_and_none_could_be_spared(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    asked = requests(config, world)
    analysis = Analysis(config, world)
    for part in analysis.find_unreachable():
        if part.rule is not None:
            assert all(_earlier(config, other, part) for other in analysis.find_shadows(part))
            continue
        matched = [each for each in asked if matches_flow_schema(each, part.schema.spec)]
        found = analysis.find_blockers(part.schema)

        def taken(blockers: Iterable[FlowSchema], matched: list[RequestDigest] = matched) -> bool:
            return all(any(matches_flow_schema(each, other.spec) for other in blockers) for each in matched)

        assert taken(found)
        assert not any(taken([other for other in found if other is not spared]) for spared in found)


def _earlier(config: Configuration, other: Part, part: Part) -> bool:
    if other.schema is part.schema:
        return other.path < part.path and other.rule is not None
    return config.order.index(other.schema) < config.order.index(part.schema)


@settings(max_examples=40, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_all_that_never_decides_can_be_removed_at_once(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    dead = list(Analysis(config, world).find_unreachable())
    order = tuple(
        _without(schema, [part for part in dead if part.schema is schema])
        for schema in config.order
        if Part(schema) not in dead or schema.name == "catch-all"
    )
    fewer = config._replace(order=order)
    for each in requests(config, world):
        assert place(classify(fewer, each)) == place(classify(config, each))


def _without(schema: FlowSchema, dead: list[Part]) -> FlowSchema:
    gone = {part.path for part in dead}
    rules = []
    for at, rule in enumerate(schema.spec.rules):
        if ("spec", "rules", at) not in gone:
            kept = [
                tuple(entry for index, entry in enumerate(entries) if ("spec", "rules", at, member, index) not in gone)
                for member, entries in members(rule)
            ]
            rules.append(type(rule)(*kept))  # type: ignore[arg-type]  # the members in their order
    return schema._replace(spec=schema.spec._replace(rules=tuple(rules)))


# --- the real server --------------------------------------------------------------------------------------------------

REQUESTS = lines(FIXTURES / "requests.jsonl")


@pytest.mark.parametrize("number", sorted(recorded()))
def test_nothing_called_unreachable_ever_answered_a_recorded_request(number: str) -> None:
    config = recorded()[number][1]
    dead = {part.schema.name for part in Analysis(config).find_unreachable() if part.rule is None}
    dead |= {part.schema.name for part in Analysis(config, "any").find_unreachable() if part.rule is None}
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


def test_questions_that_make_no_sense_are_errors() -> None:
    spec = {"priorityLevelConfiguration": {"name": "nowhere"}}
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "lost", "spec": spec}]), BUILT_IN)
    (lost,) = config.dangling
    with pytest.raises(ValueError, match=r'^the FlowSchema "lost" is not effective in this configuration$'):
        Analysis(config).find_request(lost)
    service_accounts = next(schema for schema in config.order if schema.name == "service-accounts")
    with pytest.raises(ValueError, match=r'^"service-accounts" is reachable$'):
        Analysis(config).find_shadows(Part(service_accounts))
    # One that is equal is as good as one that is the same: it may come from another reading of the files.
    again = build_configuration(Objects(), builtin.load_objects.__wrapped__(RELEASE))
    assert again.order[0].document is not config.order[0].document
    assert Analysis(again).find_request(service_accounts) == Analysis(config).find_request(service_accounts)


@pytest.mark.parametrize("resource", ["-x", "a.b", "x"])
def test_what_looks_like_an_option_or_has_a_dot_is_said_as_a_url(resource: str) -> None:
    found = make_witness(Point("alice", ("system:authenticated",), True, "list", "a.io", resource, "dev"))
    assert found.words is not None
    assert (found.words[0] == "--method") is (resource != "x")
    assert spoken(found.words).request_info.resource == resource
    for verb, resource_, namespace in (("", "pods", "dev"), ("list", "pods", "-dev"), ("create", "", "dev")):
        found = make_witness(Point("alice", ("system:authenticated",), True, verb, "", resource_, namespace))
        assert found.words is not None
        assert found.words[0] == "--method"
    own = make_witness(Point("alice", ("system:authenticated",), True, "get", "", "namespaces", "dev"))
    assert own.words == ("get", "namespaces", "dev", "--as", "alice")


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
def test_what_is_empty_takes_nothing(changes: dict[str, Any]) -> None:
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    rule = {"subjects": [{"kind": "User", "user": {"name": "alice"}}], "resourceRules": [part | changes]} | changes
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 50, "rules": [rule]} | changes
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    schema = next(each for each in config.order if each.name == "x")
    assert Analysis(config).find_request(schema) is None
    assert [*Analysis(config).find_unreachable([schema])] == [Part(schema)]
    everybody = next(each for each in config.order if each.name == "global-default")
    assert overlap(config, schema, everybody, "authenticated") is None
    assert Analysis(config).find_shadows(Part(schema)) == ()


@pytest.mark.parametrize(
    ("verbs", "resources", "asked"),
    [
        (["get", "watch", "list"], ["pods/log"], "watch"),  # a log that is not watched is long-running, and not seen
        (["get", "list"], ["pods/log"], None),
        (["list", "get", "deletecollection"], [""], "get"),
        (["list", "deletecollection"], [""], None),
    ],
)
def test_a_verb_that_goes_with_the_resource_is_found(verbs: list[str], resources: list[str], asked: str | None) -> None:
    mine = configurations.schema(builders.user("alice"), verbs=verbs, resources=resources)
    found = Analysis(build_configuration(Objects((mine,)), BUILT_IN)).find_request(mine)
    assert (found and found.digest.request_info.verb) == asked


def test_status_as_a_resource_is_in_no_namespace() -> None:
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
    assert [*Analysis(after).find_unreachable([mine])] == [Part(mine)]
    assert [*Comparison(before, after).find_moves()] == []
    assert [*Analysis(after, "any").find_unreachable([mine])] == []
    assert {move.to_schema.name for move in Comparison(before, after, "any").find_moves()} == {"x"}


def test_what_takes_everything_together_is_told_in_its_order() -> None:
    def rule(*verbs: str) -> dict[str, Any]:
        return {"verbs": verbs, "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}

    alice = {"kind": "User", "user": {"name": "alice"}}
    one = [{"subjects": [alice], "resourceRules": [rule("get"), rule("list"), rule("watch"), rule("list", "get")]}]
    several = [{"subjects": [alice], "resourceRules": [each]} for each in one[0]["resourceRules"]]
    for rules, target, parts_of_it in (
        (one, (0, "resourceRules", 3), [(0, "resourceRules", 0), (0, "resourceRules", 1)]),
        (several, (3, None, None), [(0, None, None), (1, None, None)]),
    ):
        spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 50, "rules": rules}
        config = build_configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
        schema = next(each for each in config.order if each.name == "x")
        found = Analysis(config).find_shadows(Part(schema, *target))
        assert [(part.rule, part.member, part.entry) for part in found] == parts_of_it


@pytest.mark.parametrize("name", [each.name for each in RELEASES])
def test_what_is_unreachable_among_the_defaults(name: str) -> None:
    config = build_configuration(Objects(), builtin.load_objects(parse_release(name)))
    dead: list[Any] = [("global-default" if name == "1.18" else "catch-all", ("metadata", "name"))]
    if int(name[2:]) < 34:
        # Rule 1 for the leases of controllers takes service accounts of kube-system, which system-leader-election has taken.
        dead.insert(0, ("workload-leader-election", ("spec", "rules", 0, "resourceRules", 1)))
    assert names(Analysis(config).find_unreachable()) == dead


def test_catch_all_takes_whoever_is_in_no_group() -> None:
    config = build_configuration(Objects(), BUILT_IN)
    (catch_all,) = (each for each in config.order if each.name == "catch-all")
    assert [*Analysis(config).find_unreachable([catch_all])] == [Part(catch_all)]
    # Its rules match nobody whom global-default leaves, but a server takes it where nothing matches.
    assert [*Analysis(config, "any").find_unreachable([catch_all])] == [Part(catch_all, 0)]


# --- witnesses --------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(VERBS),
    st.sampled_from((*API_GROUPS, "v1", "a.b", "%", "batch")),
    st.sampled_from(
        (*RESOURCES, "watch", "proxy", "finalize", "a.b", "-x", "watch/x", "/x", "namespaces/finalize", "jobs")
    ),
    st.sampled_from((*NAMESPACES, "..", "-n", "a b", "status")),
    st.sampled_from(("alice", "-x", "system:node:n1", "system:serviceaccount:dev:a", "")),
)
def test_every_resource_request_can_be_said(verb: str, group: str, resource: str, namespace: str, user: str) -> None:
    point = Point(user, complete_groups(user, ())[0], True, verb, group, resource, namespace)
    if not is_possible(point, "any"):
        return
    found = make_witness(point)
    assert digest_of(point)._replace(user=found.digest.user) == _bare(found.digest)
    assert set(found.digest.user.groups) == set(point.groups)
    assert found.words is not None
    assert spoken(found.words) == found.digest
    assert _bare(parse_record(found.record).digest) == _bare(found.digest)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(HTTP_VERBS), st.text("/apis v1*%?#é.-", max_size=12).map("/{}".format))
def test_every_path_can_be_said(verb: str, path: str) -> None:
    point = Point("alice", ("system:authenticated",), False, verb, path=path)
    assert is_resource_path(path) is parse_request_info("GET", quote(path)).is_resource_request
    if is_possible(point, "authenticated"):
        found = make_witness(point)
        assert digest_of(point) == _bare(found.digest) == _bare(parse_record(found.record).digest)
        assert found.words is not None
        assert spoken(found.words) == found.digest


def _bare(asked: RequestDigest) -> RequestDigest:
    """Without what FlowSchemas do not look at."""
    info = asked.request_info
    whole = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    return digest_of(
        Point(*asked.user, info.is_resource_request, info.verb, info.api_group, whole, info.namespace)
        if info.is_resource_request
        else Point(*asked.user, False, info.verb, path=info.path)
    )


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
def test_witnesses_are_requests_that_people_recognise(name: str, words: str) -> None:
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
def test_the_ordinary_verb_comes_first_in_an_odd_scope_too(changes: dict[str, Any], words: str) -> None:
    mine = configurations.schema(builders.user("alice"), verbs=["watch", "list"], **changes)
    found = Analysis(build_configuration(Objects((mine,)), BUILT_IN)).find_request(mine)
    assert found is not None
    assert found.words is not None
    assert shlex.join(found.words) == words


def test_the_solver_is_not_loaded_for_what_a_guess_proves() -> None:
    code = (
        "import sys; from apflint import builtin; from apflint.proofs.one_configuration import Analysis; from apflint.proofs.ties import Budget, find_ties;"
        "from apflint.proofs.two_configurations import Comparison;"
        "from apflint.evaluate.configuration import build_configuration; from apflint.releases import NEWEST;"
        "from tests.support.configurations import Objects;"
        "config = build_configuration(Objects(), builtin.load_objects(NEWEST));"
        "analysis = Analysis(config);"
        "assert not list(analysis.find_unreachable(config.order[:-1]));"
        "assert find_ties(analysis, config.order[5:7], lambda *_: True, Budget(1, 1)).example is None;"
        "assert list(Comparison(config, config).find_moves()) == [];"
        "assert 'pysat' not in sys.modules;"
        "assert list(analysis.find_unreachable());"
        "assert 'pysat' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FIXTURES.parents[1])
