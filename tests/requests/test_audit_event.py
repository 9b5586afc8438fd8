"""Audit events are converted to requests by their user, verb and URI."""

from __future__ import annotations

from typing import Any

import pytest

from apflint.evaluate.match import UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.requests.audit_event import parse_event
from apflint.requests.request import VERBS
from apflint.user_error import UserError


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


def test_event_has_all_groups() -> None:
    assert parse_event(event(user={"username": "alice", "groups": ["dev"]})).user == UserInfo("alice", ("dev",))


def test_uri_takes_precedence_over_object_reference() -> None:
    request = parse_event(event())
    assert request.info == parse_request_info("POST", "/api/v1/namespaces/x/pods?fieldManager=kubectl")
    assert request.user == UserInfo("alice", ("dev", "system:authenticated"))
    assert request.notes == ()


def test_impersonated_user_takes_precedence() -> None:
    request = parse_event(event(impersonatedUser={"username": "bob", "groups": ["qa"]}))
    assert request.user == UserInfo("bob", ("qa",))
    assert request.notes == ('"alice" impersonates "bob", so the user of the request is "bob".',)


@pytest.mark.parametrize("verb", [*VERBS, "head", "post", "options", ""])
def test_verb_of_an_event_is_kept(verb: str) -> None:
    url = "/version" if verb in ("head", "post", "options") else "/api/v1/namespaces/x/pods/a"
    assert parse_event(event(verb=verb, requestURI=url)).info.verb == verb


def test_event_without_uri_is_read_from_its_object_reference() -> None:
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


def test_kind_of_an_event_is_optional() -> None:
    bare = event()
    del bare["kind"], bare["apiVersion"]
    assert parse_event(bare) == parse_event(event())


def test_verb_of_a_non_resource_event_is_its_method() -> None:
    # The verb of a non-resource request is the HTTP method in lower case.
    assert parse_event(event(verb="put", requestURI="/healthz", objectRef=None)).info == parse_request_info(
        "PUT", "/healthz"
    )
    assert parse_event(event(verb="list", requestURI="/healthz", objectRef=None)).info.verb == "list"


def test_impersonated_user_requires_a_name() -> None:
    with pytest.raises(UserError, match='"username" is missing'):
        parse_event(event(impersonatedUser={"groups": ["qa"]}))


def test_missing_namespace_is_not_a_contradiction() -> None:
    for url, namespace in (("/api/v1/namespaces/x/pods", ""), ("/api/v1/namespaces/x/pods", "x")):
        assert parse_event(event(requestURI=url, objectRef={"resource": "pods", "namespace": namespace})).notes == ()
    apps = {"resource": "deployments", "namespace": "x", "apiGroup": "apps"}
    assert parse_event(event(requestURI="/apis/apps/v1/namespaces/x/deployments", objectRef=apps)).notes == ()
    (note,) = parse_event(event(objectRef={"resource": "pods", "namespace": "other"})).notes
    assert note == 'The "requestURI" and the "objectRef" of the event differ: the "requestURI" is used.'


def test_contradictions_in_an_event_are_noted() -> None:
    assert "differ" in parse_event(event(objectRef={"resource": "jobs", "apiGroup": "batch"})).notes[0]
    assert '"get" is used' in parse_event(event(verb="get")).notes[0]
    status = event(verb="get", requestURI="/api/v1/namespaces/x/pods/a/status")
    there = {"resource": "pods", "namespace": "x", "subresource": "status"}
    assert parse_event(status | {"objectRef": there}).notes == ()
    assert "differ" in parse_event(status | {"objectRef": there | {"subresource": "log"}}).notes[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x", "must be a JSON object, not a string"),
        ({"kind": "Pod", "apiVersion": "v1"}, "v1 Pod, not an Event of audit.k8s.io/v1, v1beta1 or v1alpha1$"),
        ({"kind": "Pod"}, "^this is Pod, not an Event"),
        ({"kind": "Event", "apiVersion": "v1"}, "this is v1 Event"),
        ({"kind": "Policy", "apiVersion": "audit.k8s.io/v1"}, "this is audit.k8s.io/v1 Policy, not an"),
        (event(objectRef=[1]), '^"objectRef" must be'),
        (event(impersonatedUser="x"), '^"impersonatedUser" must be'),
        (event(user=None), '"username" is missing'),
        (event(requestURI=None, objectRef=None), 'neither a "requestURI" nor'),
        (event(user=[1]), '"user" must be'),
    ],
)
def test_other_values_are_rejected(value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_event(value)
