"""Requests as people name them: words, HTTP, audit events, lines of a requests file; and the groups that are added."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate.authentication import effective_groups, service_account
from apflint.evaluate.match import UserInfo
from apflint.evaluate.records import from_event, from_record, json_values
from apflint.evaluate.request import VERBS, Request, from_http, from_words
from apflint.evaluate.requestinfo import request_info
from apflint.evaluate.resources import REMOVED, RESOURCES, lookup, named


def words(text: str, **options: Any) -> Request:
    return from_words(text.split(), user="alice", **options)


@pytest.mark.parametrize(
    ("text", "namespace", "method", "url"),
    [
        ("list pods", "team-a", "GET", "/api/v1/namespaces/team-a/pods"),
        ("list po", "team-a", "GET", "/api/v1/namespaces/team-a/pods"),
        ("list Pod", None, "GET", "/api/v1/pods"),
        ("watch deploy", "x", "GET", "/apis/apps/v1/namespaces/x/deployments?watch=1"),
        ("create svc", "x", "POST", "/api/v1/namespaces/x/services"),
        ("update deployments/scale web", "x", "PUT", "/apis/apps/v1/namespaces/x/deployments/web/scale"),
        ("get pods/log web-0", "x", "GET", "/api/v1/namespaces/x/pods/web-0/log"),
        ("get pod/web-0", None, "GET", "/api/v1/namespaces/default/pods/web-0"),
        ("get pod/web-0/log", "x", "GET", "/api/v1/namespaces/x/pods/web-0/log"),
        ("patch no n1", "ignored", "PATCH", "/api/v1/nodes/n1"),
        ("get ns foo", None, "GET", "/api/v1/namespaces/foo"),
        ("update namespaces/finalize foo", None, "PUT", "/api/v1/namespaces/foo/finalize"),
        ("list ns", None, "GET", "/api/v1/namespaces"),
        ("create ns", None, "POST", "/api/v1/namespaces"),
        ("deletecollection cm", "x", "DELETE", "/api/v1/namespaces/x/configmaps"),
        ("list leases.coordination.k8s.io", "x", "GET", "/apis/coordination.k8s.io/v1/namespaces/x/leases"),
        ("list deploy.v1.apps", "x", "GET", "/apis/apps/v1/namespaces/x/deployments"),
        ("list events", "x", "GET", "/api/v1/namespaces/x/events"),
        ("list ev.events.k8s.io", "x", "GET", "/apis/events.k8s.io/v1/namespaces/x/events"),
        ("list hpa", "x", "GET", "/apis/autoscaling/v2/namespaces/x/horizontalpodautoscalers"),
        ("list crds", None, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        ("list pods.", "x", "GET", "/api/v1/namespaces/x/pods"),
        ("LIST pods", "x", "GET", "/api/v1/namespaces/x/pods"),
        ("get widgets.v1.example.com w", "x", "GET", "/apis/example.com/v1/namespaces/x/widgets/w"),
    ],
)
def test_words_are_the_request_that_kubectl_would_send(text: str, namespace: str | None, method: str, url: str) -> None:
    assert words(text, namespace=namespace).info == request_info(method, url)


def test_a_custom_resource_has_no_version_that_anybody_could_know() -> None:
    assert words("get widgets.example.com a").info.namespace == ""
    info = words("list widgets.example.com", namespace="x").info
    assert (info.api_group, info.api_version, info.resource, info.namespace, info.path) == (
        "example.com",
        "",
        "widgets",
        "x",
        "",
    )


def test_what_was_inferred_is_said() -> None:
    assert words("watch deploy").notes[0] == '"deploy" is read as "deployments" in the API group "apps".'
    assert words("watch deploy").info.namespace == ""
    both = '"events" is in the core API group ""; write "events.events.k8s.io" for the other of that name.'
    assert words("list events", namespace="x").notes[0] == both
    assert "core API group" not in words("list pods", namespace="x").notes[0]
    assert words("get po a").notes[1] == 'No namespace was given: the request is for the namespace "default".'
    assert words("list deployments", all_namespaces=True).notes[0] == '"deployments" is in the API group "apps".'
    assert '"n" is not used' in words("list nodes", namespace="n").notes[0]
    assert '"events.events.k8s.io"' in words("list ev").notes[0]
    assert '"web-0" is no subresource of "pods"' in words("get pods/web-0", namespace="x").notes[0]
    assert words("get pods", namespace="x").notes[0] == (
        'A GET without a name is a "list" to the server: ask for "list" if that is meant.'
    )
    assert words("delete pods", namespace="x").notes[0] == (
        'A DELETE without a name is a "deletecollection" to the server: ask for "deletecollection" if that is meant.'
    )
    assert not any("without a name" in note for note in words("delete pods a", namespace="x").notes)
    assert '"foo" itself' in words("get ns foo").notes[1]
    assert not any('"foo" itself' in note for note in words("list ns foo").notes)
    assert 'in the API group "apps", not in the group "extensions"' in words("list deployments.extensions").notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Name a verb"),
        ("list", '"list" what'),
        ("describe pods", '"describe" sends "get"'),
        ("exec pods", '"create pods/exec"'),
        ("bake pods", "no verb of a request"),
        ("list pdos", 'Did you mean "pods"'),
        ("list widgets", '"widgets.example.com"'),
        ("list qqqqqq", '^"qqqqqq" is not a resource of Kubernetes itself. For a custom resource'),
        ("get pods/foo web-0", "It has: attach, binding"),
        ("get pods/a/b/c", "not understood"),
        ("get pods/ a", "not understood"),
        ("get pods a b", '"b" is one word too many'),
        ("get /healthz x", '"x" is one word too many'),
        ("get /api/v1/watch", "cannot tell which resource"),
    ],
)
def test_words_that_are_no_request(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        words(text)


@pytest.mark.parametrize(
    ("verb", "sent"),
    [
        ("POST", "create"),
        ("put", "update"),
        ("head", "get"),
        ("describe", "get"),
        ("edit", "patch"),
        ("apply", "patch"),
        ("label", "patch"),
        ("annotate", "patch"),
        ("replace", "update"),
        ("logs", "get pods/log"),
        ("log", "get pods/log"),
        ("exec", "create pods/exec"),
        ("attach", "create pods/attach"),
        ("port-forward", "create pods/portforward"),
        ("scale", "update deployments/scale"),
        ("evict", "create pods/eviction"),
    ],
)
def test_what_is_no_verb_is_told_by_the_one_that_it_sends(verb: str, sent: str) -> None:
    verbs = "Verbs are get, list, watch, create, update, patch, delete, deletecollection"
    with pytest.raises(ValueError, match=f'^"{verb}" is no verb of .*{verbs}. "{verb}" sends "{sent}".$'):
        words(f"{verb} pods")


def test_methods_of_http() -> None:
    for method in ("get", "HEAD", "post", "put", "patch", "delete", "options", "trace", "connect"):
        assert "HTTP has no method" not in words(f"{method} /healthz").notes[0]
    assert words("list /healthz").notes[0].startswith("HTTP has no method LIST: ")


def test_the_name_of_what_is_created_is_in_its_body() -> None:
    request = from_words(("create", "configmaps", "x"), user="a", namespace="dev")
    assert request.info == request_info("POST", "/api/v1/namespaces/dev/configmaps")
    assert 'The name "x" is in the body of such a request, where the server does not look for it.' in request.notes
    binding = from_words(("create", "pods/binding", "x"), user="a", namespace="dev")
    assert binding.info.name == "x"
    assert not [note for note in binding.notes if "body" in note]


def test_a_single_object_is_in_one_namespace() -> None:
    with pytest.raises(ValueError, match="for one namespace"):
        words("get pods a", all_namespaces=True)


@pytest.mark.parametrize(
    ("text", "verb", "resource"),
    [
        ("get /healthz", "get", ""),
        ("HEAD /healthz", "head", ""),
        ("list /healthz", "list", ""),
        ("get /api/v1/pods", "list", "pods"),
        ("watch /api/v1/pods", "watch", "pods"),
        ("watch /api/v1/pods?limit=5", "watch", "pods"),
        ("create /api/v1/namespaces/x/pods", "create", "pods"),
        ("post /api/v1/namespaces/x/pods", "create", "pods"),
        ("deletecollection /api/v1/namespaces/x/pods", "deletecollection", "pods"),
    ],
)
def test_words_with_a_path(text: str, verb: str, resource: str) -> None:
    request = words(text)
    assert (request.info.verb, request.info.resource) == (verb, resource)


def test_a_path_tells_the_namespace_itself() -> None:
    assert "The namespace is not used" in words("get /api/v1/pods", namespace="x").notes[1]
    assert "HTTP has no method LIST" in words("list /healthz").notes[0]


@pytest.mark.parametrize(
    ("user", "groups", "effective"),
    [
        ("alice", (), ("system:authenticated",)),
        ("alice", ("dev",), ("dev", "system:authenticated")),
        ("alice", ("system:authenticated", "dev"), ("system:authenticated", "dev")),
        ("alice", ("system:unauthenticated",), ("system:unauthenticated",)),
        ("system:anonymous", (), ("system:unauthenticated",)),
        ("system:node:n1", (), ("system:nodes", "system:authenticated")),
        ("system:node:n1", ("x",), ("x", "system:authenticated")),
        (
            "system:serviceaccount:ci:runner",
            (),
            ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"),
        ),
        (
            "system:serviceaccount:ci:runner",
            ("x",),
            ("x", "system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"),
        ),
        ("system:serviceaccount:ci:", (), ("system:authenticated",)),
        ("system:serviceaccount:ci:a:b", (), ("system:authenticated",)),
        ("system:serviceaccount:ci:UPPER", (), ("system:authenticated",)),
    ],
)
def test_groups(user: str, groups: tuple[str, ...], effective: tuple[str, ...]) -> None:
    found, notes = effective_groups(user, groups)
    assert found == effective
    assert bool(notes) is (len(effective) > len(groups))
    for name in effective[len(groups) :]:
        assert any(f'"{name}"' in note for note in notes)


def test_what_is_said_of_groups() -> None:
    runner = "system:serviceaccount:ci:runner"
    assert effective_groups("system:anonymous", ("system:unauthenticated",)) == (("system:unauthenticated",), ())
    assert effective_groups(runner, ("x",))[1] == (
        'Authentication adds the groups "system:serviceaccounts", "system:serviceaccounts:ci" and "system:authenticated".',
        "(With kubectl --as and --as-group a service account does not get its own two.)",
    )
    assert effective_groups(runner, ())[1] == (
        'Authentication adds the groups "system:serviceaccounts", "system:serviceaccounts:ci" and "system:authenticated".',
    )
    assert effective_groups("system:serviceaccount:ci:UPPER", ())[1] == (
        'Authentication adds the group "system:authenticated".',
        '"system:serviceaccount:ci:UPPER" is no valid name of a service account, so it gets no groups of service accounts.',
    )


def test_service_account_names() -> None:
    assert service_account("system:serviceaccount:kube-system:a.b-c") == ("kube-system", "a.b-c")
    for bad in (
        "alice",
        "system:serviceaccount:a.b:c",
        f"system:serviceaccount:{'a' * 64}:b",
        f"system:serviceaccount:a:{'b' * 254}",
    ):
        assert service_account(bad) is None


def test_http() -> None:
    request = from_http("GET", "/version", user="bob", groups=["ops"])
    assert request.user == UserInfo("bob", ("ops", "system:authenticated"))
    assert request.info == request_info("GET", "/version")
    assert request.digest.user == request.user


@pytest.mark.parametrize(
    ("record", "method", "url"),
    [
        ({"method": "GET", "path": "/api/v1/pods?watch=1"}, "GET", "/api/v1/pods?watch=1"),
        ({"path": "/healthz"}, "GET", "/healthz"),
        ({"verb": "post", "path": "/healthz"}, "POST", "/healthz"),
        ({"verb": "list", "resource": "pods", "namespace": "x"}, "GET", "/api/v1/namespaces/x/pods"),
        (
            {"verb": "list", "resource": "deployments", "namespace": "x"},
            "GET",
            "/apis/apps/v1/namespaces/x/deployments",
        ),
        ({"verb": "list", "resource": "deploy", "namespace": "x"}, "GET", "/apis/apps/v1/namespaces/x/deployments"),
        (
            {"verb": "get", "group": "", "resource": "pods/log", "name": "a", "namespace": "x"},
            "GET",
            "/api/v1/namespaces/x/pods/a/log",
        ),
        (
            {
                "verb": "get",
                "apiGroup": "apps",
                "resource": "deployments",
                "subresource": "scale",
                "name": "a",
                "namespace": "x",
            },
            "GET",
            "/apis/apps/v1/namespaces/x/deployments/a/scale",
        ),
        ({"verb": "get", "resource": "namespaces", "name": "foo"}, "GET", "/api/v1/namespaces/foo"),
        ({"verb": "list", "apiGroup": "", "resource": "pods", "namespace": "x"}, "GET", "/api/v1/namespaces/x/pods"),
        (
            {"verb": "list", "group": "apps", "apiGroup": "", "resource": "deployments"},
            "GET",
            "/apis/apps/v1/deployments",
        ),
        (
            {"verb": "get", "group": "x.io", "version": "v1", "resource": "things", "name": "t"},
            "GET",
            "/apis/x.io/v1/things/t",
        ),
    ],
)
def test_records(record: dict[str, Any], method: str, url: str) -> None:
    groups = ["dev", "system:authenticated"]
    request = from_record({"user": "alice", "groups": groups, **record})
    assert request.info == request_info(method, url)
    assert request.user == UserInfo("alice", tuple(groups))


@pytest.mark.parametrize(
    ("user", "groups", "added"),
    [
        ("alice", ["dev"], ["system:authenticated"]),
        ("system:anonymous", [], ["system:unauthenticated"]),
        ("system:node:n1", [], ["system:nodes", "system:authenticated"]),
        (
            "system:serviceaccount:ci:runner",
            [],
            ["system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"],
        ),
    ],
)
def test_a_record_gets_the_groups_that_authentication_adds(user: str, groups: list[str], added: list[str]) -> None:
    request = from_record({"user": user, "groups": groups, "path": "/version"})
    assert request.user.groups == (*groups, *added)
    assert all(f'"{group}"' in request.notes[0] for group in added)


@pytest.mark.parametrize("group", ["system:authenticated", "system:unauthenticated"])
def test_a_record_with_a_group_of_authentication_is_used_unchanged(group: str) -> None:
    request = from_record({"user": "system:serviceaccount:ci:runner", "groups": [group], "path": "/version"})
    assert request.user.groups == (group,)
    assert request.notes == ()


def test_a_record_can_say_that_its_groups_are_complete() -> None:
    request = from_record({"user": "alice", "groups": ["dev"], "path": "/version", "exactGroups": True})
    assert (request.user.groups, request.notes) == (("dev",), ())


def test_an_event_is_used_unchanged() -> None:
    assert from_event(event(user={"username": "alice", "groups": ["dev"]})).user == UserInfo("alice", ("dev",))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "has to be a JSON object, not a list"),
        ({}, '"user" is missing'),
        ({"user": 1}, '"user" is a number'),
        ({"user": "a", "groups": "dev", "path": "/"}, '"groups" has to be a list of texts'),
        ({"user": "a", "groups": [1], "path": "/"}, '"groups" has to be a list of texts'),
        ({"user": "a"}, '"method" and "path", or "verb" and "resource"'),
        ({"user": "a", "resource": "pods"}, '"verb" is missing'),
        ({"user": "a", "verb": "get", "resource": "pods", "group": 3}, '"group" is a number'),
        ({"user": "a", "path": "healthz"}, 'has to start with "/"'),
        ({"kind": "Event", "apiVersion": "audit.k8s.io/v1"}, "audit event: read it with --event"),
        ({"user": {"username": "a"}, "verb": "get"}, "audit event: read it with --event"),
        (
            {"category": "kube-audit", "properties": {"log": '{"kind": "Event"}'}},
            "audit event in a log record: read it with --event",
        ),
    ],
)
def test_records_that_are_no_request(record: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_record(record)


def test_a_record_that_names_its_group_needs_no_note() -> None:
    one = {"user": "a", "groups": ["system:authenticated"], "verb": "get", "resource": "deployments"}
    assert from_record(one | {"group": "apps"}).notes == ()
    assert from_record(one | {"apiGroup": ""}).notes == ()
    assert from_record(one).notes == ('"deployments" is read as "deployments" in the API group "apps".',)


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


def test_an_event_is_its_uri_and_verb_not_what_the_body_completed() -> None:
    request = from_event(event())
    assert request.info == request_info("POST", "/api/v1/namespaces/x/pods?fieldManager=kubectl")
    assert request.user == UserInfo("alice", ("dev", "system:authenticated"))
    assert request.notes == ()


def test_the_impersonated_user_goes_first() -> None:
    request = from_event(event(impersonatedUser={"username": "bob", "groups": ["qa"]}))
    assert request.user == UserInfo("bob", ("qa",))
    assert request.notes == ('"alice" impersonates "bob", whose request it is for the server.',)


@pytest.mark.parametrize("verb", [*VERBS, "head", "post", "options", ""])
def test_every_verb_of_an_event_is_kept(verb: str) -> None:
    url = "/version" if verb in ("head", "post", "options") else "/api/v1/namespaces/x/pods/a"
    assert from_event(event(verb=verb, requestURI=url)).info.verb == verb


def test_an_event_without_a_uri_is_read_from_its_object() -> None:
    reference = {
        "resource": "deployments",
        "apiGroup": "apps",
        "apiVersion": "v1",
        "namespace": "x",
        "name": "d",
        "subresource": "scale",
    }
    request = from_event(event(requestURI=None, verb="get", objectRef=reference))
    assert request.info == request_info("GET", "/apis/apps/v1/namespaces/x/deployments/d/scale")
    assert request.user == UserInfo("alice", ("dev", "system:authenticated"))
    assert len(request.notes) == 1


def test_an_event_of_no_kind_is_one() -> None:
    bare = event()
    del bare["kind"], bare["apiVersion"]
    assert from_event(bare) == from_event(event())


def test_an_event_of_a_path_keeps_a_verb_that_is_a_method() -> None:
    # For a path that is no resource the verb of the event is the method, in small letters.
    assert from_event(event(verb="put", requestURI="/healthz", objectRef=None)).info == request_info("PUT", "/healthz")
    assert from_event(event(verb="list", requestURI="/healthz", objectRef=None)).info.verb == "list"


def test_an_impersonated_user_has_a_name() -> None:
    with pytest.raises(ValueError, match='"username" is missing'):
        from_event(event(impersonatedUser={"groups": ["qa"]}))


def test_a_namespace_that_only_one_side_knows_is_no_contradiction() -> None:
    for url, namespace in (("/api/v1/namespaces/x/pods", ""), ("/api/v1/namespaces/x/pods", "x")):
        assert from_event(event(requestURI=url, objectRef={"resource": "pods", "namespace": namespace})).notes == ()
    apps = {"resource": "deployments", "namespace": "x", "apiGroup": "apps"}
    assert from_event(event(requestURI="/apis/apps/v1/namespaces/x/deployments", objectRef=apps)).notes == ()
    (note,) = from_event(event(objectRef={"resource": "pods", "namespace": "other"})).notes
    assert note == 'The "requestURI" and the "objectRef" of the event differ: the URI is believed.'


def test_a_plural_of_a_group_is_said_to_be_inferred() -> None:
    record = {"user": "alice", "groups": ["system:authenticated"], "verb": "list"}
    assert from_record({**record, "resource": "pods"}).notes == ()
    assert from_record({**record, "resource": "deploy"}).notes == (
        '"deploy" is read as "deployments" in the API group "apps".',
    )
    assert from_record({**record, "resource": "po"}).notes == ('"po" is read as "pods" in the core API group "".',)
    unknown = from_record({**record, "resource": "widgets"})
    assert (unknown.info.resource, unknown.info.api_group, unknown.info.api_version, unknown.notes) == (
        "widgets",
        "",
        "",
        (),
    )


def test_contradictions_in_an_event_are_told() -> None:
    assert "differ" in from_event(event(objectRef={"resource": "jobs", "apiGroup": "batch"})).notes[0]
    assert "the event is believed" in from_event(event(verb="get")).notes[0]
    status = event(verb="get", requestURI="/api/v1/namespaces/x/pods/a/status")
    there = {"resource": "pods", "namespace": "x", "subresource": "status"}
    assert from_event(status | {"objectRef": there}).notes == ()
    assert "differ" in from_event(status | {"objectRef": there | {"subresource": "log"}}).notes[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x", "has to be a JSON object, not a text"),
        ({"kind": "Pod", "apiVersion": "v1"}, "not an audit.k8s.io/v1 Event"),
        ({"kind": "Event", "apiVersion": "v1"}, "This is v1 Event"),
        ({"kind": "Policy", "apiVersion": "audit.k8s.io/v1"}, "This is audit.k8s.io/v1 Policy, not an"),
        (event(objectRef=[1]), '^"objectRef" has to be'),
        (event(impersonatedUser="x"), '^"impersonatedUser" has to be'),
        (event(user=None), '"username" is missing'),
        (event(requestURI=None, objectRef=None), 'neither a "requestURI" nor'),
        (event(user=[1]), '"User" has to be|"user" has to be'),
    ],
)
def test_what_is_no_event(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_event(value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', [(1, {"a": 1})]),
        ('{"a": 1}\n\n{"a": 2}\n', [(1, {"a": 1}), (3, {"a": 2})]),
        ('\ufeff{\n "a": 1\n}\n', [(1, {"a": 1})]),
        ('\n\n{"a": 1}\n{"a": 2}', [(3, {"a": 1}), (4, {"a": 2})]),
        ('\ufeff\n{"a": 1}\n{"a": 2}', [(2, {"a": 1}), (3, {"a": 2})]),
        ('\ufeff \r\n\t{\n"a": 1}', [(2, {"a": 1})]),
        ('{"kind": "EventList", "items": [{"a": 1}, {"a": 2}]}', [(1, {"a": 1}), (1, {"a": 2})]),
        ('[\n {"a": 1}\n]', [(1, {"a": 1})]),
        ('{"a": 1}\nnonsense\n{"a": 2}', [(1, {"a": 1}), (2, None), (3, {"a": 2})]),
        ("", []),
    ],
)
def test_json_and_json_lines(text: str, found: list[tuple[int, Any]]) -> None:
    lines = list(json_values(text))
    assert [(line.number, line.value) for line in lines] == found
    assert [line.value is None for line in lines] == [line.error is not None for line in lines]


def test_json_that_is_nested_too_deeply_is_an_error_of_its_line() -> None:
    lines = list(json_values("[" * 100_000 + "\n{}"))
    assert lines[0].error is not None
    assert lines[-1].value == {}


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ("user", "groups", "path", "verb", "resource", "requestURI", "objectRef", "username", "kind")
                ),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_any_json_is_a_request_or_a_clear_error(value: Any) -> None:
    assert list(json_values(json.dumps(value))) or value == [] or value == {"items": []}
    for read in (from_record, from_event):
        try:
            request = read(value)
        except ValueError as error:
            message = str(error)
            assert message.endswith((".", "text", "missing"))
        else:
            assert isinstance(request, Request)


def test_the_table_of_resources_is_consistent() -> None:
    assert len({(each.name, each.group) for each in RESOURCES}) == len(RESOURCES)
    for each in (*RESOURCES, *REMOVED):
        assert each.name == each.name.lower()
        assert each.singular == each.kind.lower()
        assert not {"deletecollection", "watch"} & set(each.subresources)
    assert lookup("pods", "") is not None
    assert lookup("pods", "apps") is None
    # Only events are in two groups; every other name that kubectl takes means one resource.
    shared = {word for each in RESOURCES for word in (each.name, *each.short_names) if len(named(word)) > 1}
    assert shared == {"events", "ev"}
