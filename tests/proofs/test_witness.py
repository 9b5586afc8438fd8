"""Witnesses as words and URLs that stand for the same request."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.match import (
    RequestDigest,
    rs_join,
)
from apflint.evaluate.requestinfo import parse_request_info
from apflint.proofs.request_space import (
    VERBS,
    Point,
    is_possible,
    is_resource_path,
)
from apflint.proofs.request_space import make_digest as digest_of
from apflint.proofs.witness import _http, make_witness
from apflint.requests.json_lines import parse_record

from .enumeration import API_GROUPS, HTTP_VERBS, NAMESPACES, RESOURCES, spoken


def _bare(asked: RequestDigest) -> RequestDigest:
    """Without what FlowSchemas do not look at."""
    info = asked.request_info
    whole = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    return digest_of(
        Point(*asked.user, info.is_resource_request, info.verb, info.api_group, whole, info.namespace)
        if info.is_resource_request
        else Point(*asked.user, False, info.verb, path=info.path)
    )


AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"


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
