"""Witnesses: ordinary values replace the solver's values in a fixed order. Words and URLs describe the same request."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import builders, configurations
from support.configurations import BUILT_IN, Objects

from apflint.evaluate.authentication import EXACT_GROUPS, complete_groups
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import (
    RequestDigest,
    rs_join,
)
from apflint.evaluate.requestinfo import parse_request_info
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.request_space import (
    ORDINARY,
    PREFERRED,
    VERBS,
    Point,
    Requesters,
    World,
    is_possible,
    is_resource_path,
    usual_groups,
)
from apflint.proofs.request_space import make_digest as digest_of
from apflint.proofs.witness import (
    _COMMON_RESOURCES,
    NotReplayedError,
    _http,
    _in_scope,
    _other_resources,
    _other_users,
    find_earliest,
    find_witness,
    make_witness,
    minimize,
)
from apflint.requests.json_lines import parse_record

from .enumeration import API_GROUPS, HTTP_VERBS, NAMESPACES, RESOURCES, spoken

if TYPE_CHECKING:
    from apflint.proofs.witness import Find

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
    schema = next(flow_schema for flow_schema in config.order if flow_schema.name == name)
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
        # Only nodes are in the group of nodes, so alice is first tried without this group.
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
        found = [(other_user.user, other_user.groups) for other_user in _other_users(point, world)]
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


@pytest.mark.parametrize(("path", "verb", "needed", "expected"), [
    ("/logs/*", "put", "", ("/logs/", "get")),
    ("/logs/*", "put", "/logs/*", ("/logs/*", "get")),
    ("/logs/", "put", "", ("/logs/", "get")),
])  # fmt: skip
def test_path_and_method_are_plain(path: str, verb: str, needed: str, expected: tuple[str, str]) -> None:
    """A witness has `*` in its path, or a method other than GET, only if the claim requires this."""

    def holds(point: Point) -> bool:
        return not point.is_resource and point.path.startswith(needed)

    def holds_for_method(point: Point) -> bool:
        return holds(point) and point.verb == verb

    start = Point("alice", (AUTHENTICATED,), False, verb, "", "", "", path)
    found = minimize(start, holds, "authenticated")
    assert (found.path, found.verb) == expected
    found = minimize(start, holds_for_method, "authenticated")
    assert (found.path, found.verb) == (expected[0], verb)


PLAIN = Point("alice", (AUTHENTICATED,), True, "list", "", "pods", "default")
CONTROLLER = PLAIN._replace(user="system:kube-scheduler")
ODD = PLAIN._replace(groups=("system:nodes", AUTHENTICATED))


def find_among(*points: Point) -> tuple[list[str], Find]:
    """Return a list and a function. The function appends the kind of the requesters to the list.

    The function returns the last of `points` that one of the requesters sends.
    """
    kinds: list[str] = []

    def find(requesters: Requesters) -> Point | None:
        kinds.append(requesters.kind)
        return next((point for point in reversed(points) if requesters.send(point)), None)

    return kinds, find


def test_witness_is_by_the_first_requesters_that_send_one() -> None:
    claims = (
        ((), None, ["anybody"]),
        ((PLAIN,), PLAIN, ["anybody"]),
        ((CONTROLLER,), CONTROLLER, ["anybody", "ordinary", "system"]),
        ((PLAIN, CONTROLLER), PLAIN, ["anybody", "ordinary"]),
        ((PLAIN, CONTROLLER, ODD), PLAIN, ["anybody", "ordinary"]),
        ((CONTROLLER, ODD), CONTROLLER, ["anybody", "ordinary", "system"]),
    )
    for points, first, searched in claims:
        kinds, find = find_among(*points)
        assert find_earliest(find, PREFERRED) == first
        assert kinds == searched
    assert find_earliest(find_among(ODD)[1], (ORDINARY,)) is None


def test_witness_prefers_requesters_over_a_known_point() -> None:
    """The user of the known point cannot be replaced, but a different request by a preferred requester also proves the claim."""
    points = PLAIN, CONTROLLER
    witness = find_witness(find_among(*points)[1], lambda point: point in points, "authenticated", point=CONTROLLER)
    assert witness is not None
    assert witness.point == PLAIN
    witness = find_witness(find_among(CONTROLLER)[1], lambda point: point == CONTROLLER, "authenticated")
    assert witness is not None
    assert witness.point == CONTROLLER
    assert find_witness(find_among()[1], lambda _: True, "authenticated") is None


@pytest.mark.parametrize(
    ("point", "is_confirmed", "among"), [(PLAIN, False, PREFERRED), (CONTROLLER, True, (ORDINARY,))]
)
def test_request_that_the_classifier_does_not_confirm_is_an_error(
    point: Point, is_confirmed: bool, among: tuple[Requesters, ...]
) -> None:
    with pytest.raises(NotReplayedError):
        find_witness(find_among()[1], lambda _: is_confirmed, "authenticated", among, point=point)


def test_known_resources_are_tried_first() -> None:
    found = list(_other_resources(Point("alice", (AUTHENTICATED,), True, "get", "x.io", "deployments/scale", "dev")))
    things = [(point.api_group, point.resource) for point in found]
    assert things.index(("apps", "deployments/scale")) < things.index(("x.io", "deployments/scale"))
    assert things[-1] == ("x.io", "deployments/scale")
    assert [*dict.fromkeys(things)][: len(_COMMON_RESOURCES)] == [*_COMMON_RESOURCES]
    kin = {
        (other_resource.api_group, other_resource.resource)
        for other_resource in _other_resources(Point("a", (), True, "get", "batch", "widgets", "dev"))
    }
    assert {("batch", "jobs"), ("batch", "cronjobs"), ("batch", "widgets"), ("example.com", "widgets")} <= kin
    assert ("autoscaling", "horizontalpodautoscalers") not in kin
    starred = list(_other_resources(Point("alice", (AUTHENTICATED,), True, "get", "*", "x*y", "dev")))
    assert [point for point in starred if "*" in f"{point.api_group}{point.resource}"] == [
        point for point in starred if (point.api_group, point.resource) == ("*", "x*y")
    ]


def _bare(asked: RequestDigest) -> RequestDigest:
    """Return the request without the attributes that FlowSchemas do not test."""
    info = asked.request_info
    qualified = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    return digest_of(
        Point(*asked.user, info.is_resource_request, info.verb, info.api_group, qualified, info.namespace)
        if info.is_resource_request
        else Point(*asked.user, False, info.verb, path=info.path)
    )


def seen_as(method: str, url: str) -> tuple[str, str, str, str]:
    info = parse_request_info(method, url)
    return info.verb, info.api_group, rs_join(info.resource, info.subresource), info.namespace


@pytest.mark.parametrize("resource", ["-x", "a.b", "x"])
def test_values_like_options_or_with_dots_are_written_as_urls(resource: str) -> None:
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
def test_every_resource_request_has_words(verb: str, group: str, resource: str, namespace: str, user: str) -> None:
    point = Point(user, complete_groups(user, ())[0], True, verb, group, resource, namespace)
    assume(is_possible(point, "any"))
    found = make_witness(point)
    assert digest_of(point)._replace(user=found.digest.user) == _bare(found.digest)
    assert set(found.digest.user.groups) == set(point.groups)
    assert found.words is not None
    assert spoken(found.words) == found.digest
    assert _bare(parse_record(found.record).digest) == _bare(found.digest)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(HTTP_VERBS), st.text("/apis v1*%?#é.-", max_size=12).map("/{}".format))
def test_every_path_has_words(verb: str, path: str) -> None:
    point = Point("alice", ("system:authenticated",), False, verb, path=path)
    assert is_resource_path(path) is parse_request_info("GET", quote(path)).is_resource_request
    if is_possible(point, "authenticated"):
        found = make_witness(point)
        assert digest_of(point) == _bare(found.digest) == _bare(parse_record(found.record).digest)
        assert found.words is not None
        assert spoken(found.words) == found.digest


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace", "method", "url"),
    [
        ("create", "", "namespaces", "dev", "POST", "/api/v1/namespaces/dev/namespaces"),
        ("update", "", "namespaces", "dev", "PUT", "/api/v1/namespaces/dev"),
        ("update", "", "namespaces/finalize", "dev", "PUT", "/api/v1/namespaces/dev/finalize"),
        ("get", "", "namespaces/x", "dev", "GET", "/api/v1/namespaces/dev/namespaces/example/x"),
        ("list", "", "namespaces", "dev", "GET", "/api/v1/namespaces/dev/namespaces"),
        ("list", "x.io", "proxy", "", "GET", "/apis/x.io/v1/namespaces//proxy"),
        ("list", "x.io", "watch", "", "GET", "/apis/x.io/v1/namespaces//watch"),
        ("list", "x.io", "proxy", "dev", "GET", "/apis/x.io/v1/namespaces/dev/proxy"),
        ("watch", "", "pods", "dev", "GET", "/api/v1/namespaces/dev/pods?watch=true"),
        ("watch", "", "pods/log", "dev", "GET", "/api/v1/watch/namespaces/dev/pods/example/log"),
        ("deletecollection", "", "pods/x", "", "DELETE", "/api/v1/pods//x"),
        ("create", "apps", "deployments", "dev", "POST", "/apis/apps/v1/namespaces/dev/deployments"),
        ("get", "", "nodes", "", "GET", "/api/v1/nodes/example"),
        ("", "", "nodes", "", "OPTIONS", "/api/v1/nodes/example"),
        (
            "list",
            "autoscaling",
            "horizontalpodautoscalers",
            "dev",
            "GET",
            "/apis/autoscaling/v2/namespaces/dev/horizontalpodautoscalers",
        ),
        ("get", "x.io", "horizontalpodautoscalers", "", "GET", "/apis/x.io/v1/horizontalpodautoscalers/example"),
    ],
)
def test_method_and_url(verb: str, group: str, resource: str, namespace: str, method: str, url: str) -> None:
    point = Point("alice", (AUTHENTICATED,), True, verb, group, resource, namespace)
    assert _http(point) == (method, url)
    assert seen_as(method, url) == (verb, group, resource, namespace)


@pytest.mark.parametrize(
    ("name", "groups", "exact"),
    [
        ("alice", (AUTHENTICATED,), False),
        ("alice", ("dev", AUTHENTICATED), False),
        ("system:anonymous", ("system:unauthenticated",), False),
        ("alice", ("dev",), True),
        ("alice", (), True),
    ],
)
def test_record_marks_groups_that_authentication_would_complete(
    name: str, groups: tuple[str, ...], exact: bool
) -> None:
    record = make_witness(Point(name, groups, True, "get", "", "pods", "dev")).record
    assert record["groups"] == list(groups)
    assert (EXACT_GROUPS in record) is exact
    assert parse_record(record).digest.user.groups == groups
