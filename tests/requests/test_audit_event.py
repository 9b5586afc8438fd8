"""Audit events are requests by their user, verb and URI."""

from __future__ import annotations

from typing import Any

import pytest

from apflint.evaluate.match import UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.requests.audit_event import parse_event
from apflint.requests.request import VERBS


def event(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "create",
        "requestURI": "/api/v1/namespaces/x/pods?fieldManager=kubectl",
        "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
        "objectRef": {"resource": "pods", "namespace": "x", "name": "from-the-body", "apiVersion": "v1"},
        **changes,
    }


def test_an_event_is_used_unchanged() -> None:
    assert parse_event(event(user={"username": "alice", "groups": ["dev"]})).user == UserInfo("alice", ("dev",))


def test_an_event_is_its_uri_and_verb_not_what_the_body_completed() -> None:
    request = parse_event(event())
    assert request.info == parse_request_info("POST", "/api/v1/namespaces/x/pods?fieldManager=kubectl")
    assert request.user == UserInfo("alice", ("dev", "system:authenticated"))
    assert request.notes == ()


def test_the_impersonated_user_goes_first() -> None:
    request = parse_event(event(impersonatedUser={"username": "bob", "groups": ["qa"]}))
    assert request.user == UserInfo("bob", ("qa",))
    assert request.notes == ('"alice" impersonates "bob", whose request this is.',)


@pytest.mark.parametrize("verb", [*VERBS, "head", "post", "options", ""])
def test_every_verb_of_an_event_is_kept(verb: str) -> None:
    url = "/version" if verb in ("head", "post", "options") else "/api/v1/namespaces/x/pods/a"
    assert parse_event(event(verb=verb, requestURI=url)).info.verb == verb


def test_an_event_without_a_uri_is_read_from_its_object() -> None:
    reference = {
        "resource": "deployments",
        "apiGroup": "apps",
        "apiVersion": "v1",
        "namespace": "x",
        "name": "d",
        "subresource": "scale",
    }
    request = parse_event(event(requestURI=None, verb="get", objectRef=reference))
    assert request.info == parse_request_info("GET", "/apis/apps/v1/namespaces/x/deployments/d/scale")
    assert request.user == UserInfo("alice", ("dev", "system:authenticated"))
    assert len(request.notes) == 1


def test_an_event_of_no_kind_is_one() -> None:
    bare = event()
    del bare["kind"], bare["apiVersion"]
    assert parse_event(bare) == parse_event(event())


def test_an_event_of_a_path_keeps_a_verb_that_is_a_method() -> None:
    # For a path that is no resource the verb of the event is the method, in small letters.
    assert parse_event(event(verb="put", requestURI="/healthz", objectRef=None)).info == parse_request_info(
        "PUT", "/healthz"
    )
    assert parse_event(event(verb="list", requestURI="/healthz", objectRef=None)).info.verb == "list"


def test_an_impersonated_user_has_a_name() -> None:
    with pytest.raises(ValueError, match='"username" is missing'):
        parse_event(event(impersonatedUser={"groups": ["qa"]}))


def test_a_namespace_that_only_one_side_knows_is_no_contradiction() -> None:
    for url, namespace in (("/api/v1/namespaces/x/pods", ""), ("/api/v1/namespaces/x/pods", "x")):
        assert parse_event(event(requestURI=url, objectRef={"resource": "pods", "namespace": namespace})).notes == ()
    apps = {"resource": "deployments", "namespace": "x", "apiGroup": "apps"}
    assert parse_event(event(requestURI="/apis/apps/v1/namespaces/x/deployments", objectRef=apps)).notes == ()
    (note,) = parse_event(event(objectRef={"resource": "pods", "namespace": "other"})).notes
    assert note == 'The "requestURI" and the "objectRef" of the event differ: the URI is used.'


def test_contradictions_in_an_event_are_told() -> None:
    assert "differ" in parse_event(event(objectRef={"resource": "jobs", "apiGroup": "batch"})).notes[0]
    assert "the event is used" in parse_event(event(verb="get")).notes[0]
    status = event(verb="get", requestURI="/api/v1/namespaces/x/pods/a/status")
    there = {"resource": "pods", "namespace": "x", "subresource": "status"}
    assert parse_event(status | {"objectRef": there}).notes == ()
    assert "differ" in parse_event(status | {"objectRef": there | {"subresource": "log"}}).notes[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x", "must be a JSON object, not a string"),
        ({"kind": "Pod", "apiVersion": "v1"}, "not an audit.k8s.io/v1 Event"),
        ({"kind": "Event", "apiVersion": "v1"}, "this is v1 Event"),
        ({"kind": "Policy", "apiVersion": "audit.k8s.io/v1"}, "this is audit.k8s.io/v1 Policy, not an"),
        (event(objectRef=[1]), '^"objectRef" must be'),
        (event(impersonatedUser="x"), '^"impersonatedUser" must be'),
        (event(user=None), '"username" is missing'),
        (event(requestURI=None, objectRef=None), 'neither a "requestURI" nor'),
        (event(user=[1]), '"user" must be'),
    ],
)
def test_what_is_no_event(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_event(value)
