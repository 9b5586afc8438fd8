"""The universe contains every possible kind of user and request, and no impossible kind."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from . import server
from .configurations import Configuration, built_in, configuration
from .server import Manifest, Request, User
from .universe import (
    ANONYMOUS,
    METHODS,
    SYSTEM_USERS,
    VERBS,
    http,
    is_possible,
    is_system,
    is_usual,
    mentioned_groups,
    own_groups,
    universe,
)

SEEDS = range(0, 4000, 200)
SEGMENTS = (
    *(
        "",
        "api",
        "apis",
        "apps",
        "v1",
        "coordination.k8s.io",
        "example.com",
        "namespaces",
        "watch",
        "proxy",
        "prod",
        "ci",
    ),
    *(
        "kube-system",
        "pods",
        "nodes",
        "leases",
        "deployments",
        "widgets",
        "status",
        "log",
        "x",
        "*",
        "healthz",
        "livez",
    ),
    *("metrics", "slis", "openapi", "v2", "debug", "pprof", "heap", "version"),
)


def rules_of(config: Configuration) -> list[Manifest]:
    objects = (*built_in(config.kubernetes), *config.objects)
    return [rule for value in objects if value["kind"] == "FlowSchema" for rule in server.rules_of(value)]


def random_user(random: Random, rules: list[Manifest]) -> User:
    """Generate a user that authentication can report."""
    subjects = [subject for rule in rules for subject in rule["subjects"]]
    accounts = [
        f"system:serviceaccount:{space}:{name}" for space in ("ci", "kube-system", "other") for name in ("a", "runner")
    ]
    name = random.choice(
        ("alice", "zoe", "system:kube-proxy", "system:node:node-7", "system:apiserver", *SYSTEM_USERS, *accounts)
    )
    if name == ANONYMOUS or name in accounts or name.startswith("system:serviceaccount:"):
        return User(name, own_groups(name))
    free = [
        group
        for group in (*mentioned_groups(subjects), "unmentioned", "system:nodes")
        if group not in ("*", "system:unauthenticated") and not group.startswith("system:serviceaccounts")
    ]
    return User(name, frozenset((*random.sample(free, random.randint(0, min(3, len(free)))), "system:authenticated")))


def random_request(random: Random) -> Request | None:
    segments = random.choices(SEGMENTS, k=random.randint(1, 4))
    root = random.choice(
        ("", "/api/v1", "/apis/apps/v1", "/api/v1/namespaces/prod", "/apis/example.com/v1/namespaces/ci")
    )
    method = random.choice((*METHODS.values(), "HEAD", "LIST", "FROB"))
    return server.parse_request(method, f"{root}/{'/'.join(segments)}{random.choice(('', '?watch=1'))}")


def subjects_of(rules: list[Manifest], user: User) -> tuple[int, ...]:
    return tuple(-1 if index is None else index for index in (server.first_subject(rule, user) for rule in rules))


def entries_of(rules: list[Manifest], request: Request) -> tuple[int, ...]:
    return tuple(-1 if index is None else index for index in (server.first_entry(rule, request) for rule in rules))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_examples_are_what_the_server_matches(seed: int) -> None:
    rules = rules_of(configuration(seed))
    space = universe(rules)
    assert space.users
    assert space.requests
    for user in space.users:
        assert subjects_of(rules, user.user) == user.subjects
        assert (is_usual(user.user), is_system(user.user)) == (user.is_usual, user.is_system)
        assert user.rules == sum(1 << at for at, subject in enumerate(user.subjects) if subject >= 0)
    for request in space.requests:
        assert entries_of(rules, request.request) == request.entries
        assert request.rules == sum(1 << at for at, entry in enumerate(request.entries) if entry >= 0)
        assert server.parse_request(*http(request.request)) == request.request
        assert request.request.is_classified


@pytest.mark.parametrize("seed", SEEDS)
def test_no_user_and_no_request_is_missing(seed: int) -> None:
    random = Random(f"universe {seed}")
    rules = rules_of(configuration(seed))
    space = universe(rules)
    users = {(user.subjects, user.is_usual, user.is_system) for user in space.users}
    requests = {(request.entries, request.request.is_resource) for request in space.requests}
    for _ in range(300):
        user, request = random_user(random, rules), random_request(random)
        # The universe may replace an unusual user by a usual user whom the same subjects match: `kind` may become True.
        more = itertools.product({True, is_usual(user)}, {True, is_system(user)})
        assert any((subjects_of(rules, user), *kind) in users for kind in more), user
        if request is not None and request.is_classified:
            assert (entries_of(rules, request), request.is_resource) in requests, request


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("resource", ["pods", "pods/status", "namespaces", "namespaces/status"])
@pytest.mark.parametrize("namespace", ["", "prod"])
def test_all_attributes_of_resources_go_together(verb: str, resource: str, namespace: str) -> None:
    assert is_possible(Request(True, verb, "", resource, namespace))


@pytest.mark.parametrize(
    ("request_", "possible"),
    [
        (Request(True, "get", "apps/v1", "deployments", "prod"), False),
        (Request(True, "get", "", "a/b/c", "prod"), False),
        (Request(True, "get", "", "pods/log", "prod"), False),
        (Request(True, "watch", "", "pods/log", "prod"), True),
        (Request(True, "get", "", "status", "prod"), False),
        (Request(True, "get", "", "status", ""), True),
        (Request(False, "get", path="/metrics"), True),
        (Request(False, "get", path="/api/v1/pods"), False),
        (Request(False, "get", path="/debug/pprof/heap"), False),
        (Request(False, "watch", path="/debug/pprof/heap"), True),
        (Request(False, "proxy", path="/metrics"), False),
    ],
)
def test_requests_that_no_server_classifies_are_left_out(request_: Request, possible: bool) -> None:
    assert is_possible(request_) is possible


@pytest.mark.parametrize(
    ("name", "groups", "usual"),
    [
        ("alice", {"dev"}, True),
        ("alice", {"system:nodes"}, False),
        ("system:node:node-1", {"system:nodes"}, True),
        ("system:node:node-1", set(), False),
        ("system:kube-scheduler", set(), True),
        ("system:kube-scheduler", {"dev"}, False),
    ],
)
def test_usual_users(name: str, groups: set[str], usual: bool) -> None:
    assert is_usual(User(name, frozenset({*groups, "system:authenticated"}))) is usual


def test_only_some_servers_classify_watches() -> None:
    rules = [
        {
            "subjects": [{"kind": "Group", "group": {"name": "*"}}],
            "resourceRules": [
                {"verbs": [verb], "apiGroups": ["*"], "resources": ["pods"], "namespaces": ["*"]}
                for verb in ("watch", "list")
            ],
            "nonResourceRules": [{"verbs": ["watch", "get"], "nonResourceURLs": ["/x"]}],
        }
    ]
    verbs = {
        watches: {request.request.verb for request in universe(rules, watches=watches).requests}
        for watches in (True, False)
    }
    assert "watch" in verbs[True]
    assert "watch" not in verbs[False]
    assert {configuration(seed).watches for seed in range(20)} == {True, False}
