"""JSON values and lines of JSON are converted to requests, or to errors with a line number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.cli.app import run
from apflint.evaluate.match import UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.requests.audit_event import parse_event
from apflint.requests.json_lines import parse_record, read_json_values
from apflint.requests.request import Request
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path


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
def test_record_is_a_request(record: dict[str, Any], method: str, url: str) -> None:
    groups = ["dev", "system:authenticated"]
    request = parse_record({"user": "alice", "groups": groups, **record})
    assert request.info == parse_request_info(method, url)
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
def test_record_gets_the_groups_of_authentication(user: str, groups: list[str], added: list[str]) -> None:
    request = parse_record({"user": user, "groups": groups, "path": "/version"})
    assert request.user.groups == (*groups, *added)
    assert all(f'"{group}"' in request.notes[0] for group in added)


@pytest.mark.parametrize("group", ["system:authenticated", "system:unauthenticated"])
def test_record_with_a_group_of_authentication_is_unchanged(group: str) -> None:
    request = parse_record({"user": "system:serviceaccount:ci:runner", "groups": [group], "path": "/version"})
    assert request.user.groups == (group,)
    assert request.notes == ()


def test_groups_of_a_record_may_be_exact() -> None:
    request = parse_record({"user": "alice", "groups": ["dev"], "path": "/version", "exactGroups": True})
    assert (request.user.groups, request.notes) == (("dev",), ())


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "must be a JSON object, not a list"),
        ({}, '"user" is missing'),
        ({"user": 1}, '"user" must be a string, not a number'),
        ({"user": "a", "groups": "dev", "path": "/"}, '"groups" must be a list of strings'),
        ({"user": "a", "groups": [1], "path": "/"}, '"groups" must be a list of strings'),
        ({"user": "a"}, '"method" and "path", or "verb" and "resource"'),
        ({"user": "a", "resource": "pods"}, '"verb" is missing'),
        ({"user": "a", "verb": "get", "resource": "pods", "group": 3}, '"group" must be a string, not a number'),
        ({"user": "a", "path": "healthz"}, 'must start with "/"'),
        ({"kind": "Event", "apiVersion": "audit.k8s.io/v1"}, "audit event: read it with --event"),
        ({"user": {"username": "a"}, "verb": "get"}, "audit event: read it with --event"),
        (
            {"category": "kube-audit", "properties": {"log": '{"kind": "Event"}'}},
            "audit event in a log record: read it with --event",
        ),
    ],
)
def test_invalid_records_are_rejected(record: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_record(record)


def test_record_with_a_group_has_no_note() -> None:
    record = {"user": "a", "groups": ["system:authenticated"], "verb": "get", "resource": "deployments"}
    assert parse_record(record | {"group": "apps"}).notes == ()
    assert parse_record(record | {"apiGroup": ""}).notes == ()
    assert parse_record(record).notes == ('"deployments" is read as "deployments" in the API group "apps".',)


def test_inferred_group_is_noted() -> None:
    record = {"user": "alice", "groups": ["system:authenticated"], "verb": "list"}
    assert parse_record({**record, "resource": "pods"}).notes == ()
    assert parse_record({**record, "resource": "deploy"}).notes == (
        '"deploy" is read as "deployments" in the API group "apps".',
    )
    assert parse_record({**record, "resource": "po"}).notes == ('"po" is read as "pods" in the core API group "".',)
    unknown = parse_record({**record, "resource": "widgets"})
    assert (unknown.info.resource, unknown.info.api_group, unknown.info.api_version, unknown.notes) == (
        "widgets",
        "",
        "",
        (),
    )


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
def test_values_of_json_and_json_lines(text: str, found: list[tuple[int, Any]]) -> None:
    lines = list(read_json_values(text))
    assert [(line.line, line.value) for line in lines] == found
    assert [line.value is None for line in lines] == [line.error is not None for line in lines]


def test_deeply_nested_json_is_an_error_of_its_line() -> None:
    lines = list(read_json_values("[" * 100_000 + "\n{}"))
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
def test_any_json_is_a_request_or_rejected(value: Any) -> None:
    assert list(read_json_values(json.dumps(value))) or value == [] or value == {"items": []}
    for read in (parse_record, parse_event):
        try:
            request = read(value)
        except UserError as error:
            message = str(error)
            assert message
            assert not message.endswith(".")
        else:
            assert isinstance(request, Request)


EVENT = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "verb": "list",
    "requestURI": "/api/v1/namespaces/team-a/pods",
    "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
}
TEXT = json.dumps(EVENT)
AZURE = {"category": "kube-audit", "properties": {"log": TEXT, "pod": "kube-apiserver-0"}}
OTHER = {"category": "kube-scheduler", "properties": {"log": "I1122 05:49:20 leaderelection.go:250] attempting"}}
GOOGLE = {
    "protoPayload": {
        "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
        "authenticationInfo": {"principalEmail": "alice@example.com"},
        "methodName": "io.k8s.core.v1.pods.list",
        "resourceName": "core/v1/namespaces/team-a/pods",
    }
}
ENVELOPES = {
    "Azure storage account": json.dumps(AZURE),
    "Azure event hub": json.dumps({"records": [OTHER, AZURE, OTHER]}),
    "Azure event hub, log as an object": json.dumps(
        {"records": [{"category": "kube-audit-admin", "properties": {"log": EVENT}}]}
    ),
    "CloudWatch filter-log-events": json.dumps({"events": [{"logStreamName": "kube-apiserver-audit", "message": TEXT}]}, indent=1),
    "CloudWatch export": f"2026-11-22T05:49:20.098Z {TEXT}\n",
    "CloudWatch Logs Insights": json.dumps([[{"field": "@timestamp", "value": "x"}, {"field": "@message", "value": TEXT}]]),
    "get-query-results": json.dumps({"results": [[{"field": "@message", "value": TEXT}]], "status": "Complete"}),
    "webhook batch": json.dumps({"kind": "EventList", "items": [EVENT]}),
}  # fmt: skip


@pytest.mark.parametrize("text", ENVELOPES.values(), ids=ENVELOPES)
def test_event_is_unwrapped(text: str) -> None:
    (line,) = read_json_values(text)
    assert line.error is None
    assert parse_event(line.value) == parse_event(EVENT)


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("text", ENVELOPES.values(), ids=ENVELOPES)
def test_explain_reads_log_records(
    text: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text(text, encoding="utf-8")
    assert run(["explain", "--event", "log", "--format", output]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "alice" in printed.out
    assert "global-default" in printed.out


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"protoPayload": {"@type": "x/google.cloud.audit.AuditLog", "methodName": "google.container.v1.Get"}},
            "not a request to a Kubernetes API server: google.container.v1.Get",
        ),
        (OTHER, 'category "kube-scheduler", which is not an audit log'),
        ({"properties": {"log": "I1122"}}, '"properties.log" of this log record is not an audit event'),
        ({"message": "I1122"}, '"message" of this log record is not an audit event'),
        ([{"field": "@message", "value": "I1122"}], '"@message" of this log record is not an audit event'),
        ([{"field": "@timestamp", "value": "x"}], "an audit event must be a JSON object, not a list"),
    ],
)
def test_log_record_without_event_is_rejected(value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_event(value)


def test_google_record_is_rejected_as_a_request() -> None:
    with pytest.raises(UserError, match="audit event in a log record: read it with --event"):
        parse_record(GOOGLE)


@pytest.mark.parametrize(
    ("method", "path", "attributes"),
    [
        ("io.k8s.core.v1.pods.list", "core/v1/namespaces/team-a/pods", ("list", "", "pods", "", "team-a", "")),
        ("io.k8s.core.v1.nodes.get", "core/v1/nodes/n", ("get", "", "nodes", "", "", "n")),
        ("io.k8s.core.v1.namespaces.get", "core/v1/namespaces/a", ("get", "", "namespaces", "", "a", "a")),
        ("io.k8s.core.v1.namespaces.finalize.update", "core/v1/namespaces/a/finalize", ("update", "", "namespaces", "finalize", "a", "a")),
        ("io.k8s.apps.v1.deployments.scale.patch", "apps/v1/namespaces/a/deployments/d/scale", ("patch", "apps", "deployments", "scale", "a", "d")),
        ("io.k8s.io.example.v1.things.deletecollection", "example.io/v1/things", ("deletecollection", "example.io", "things", "", "", "")),
    ],
)  # fmt: skip
def test_google_record_is_read_without_groups(method: str, path: str, attributes: tuple[str, ...]) -> None:
    record = {"protoPayload": {**GOOGLE["protoPayload"], "methodName": method, "resourceName": path}}
    request = parse_event(record)
    info = request.info
    assert (info.verb, info.api_group, info.resource, info.subresource, info.namespace, info.name) == attributes
    assert request.user.groups == ("system:authenticated",)
    assert request.notes[0].startswith('The event has no groups of "alice@example.com": only the groups')


@pytest.mark.parametrize(
    "name",
    [
        "aks-eventhub.jsonl",
        "aks-storage.jsonl",
        "bare.jsonl",
        "eks-filter-log-events.json",
        "eks-s3-export.log",
        "eventlist.json",
        "webhook-batches.jsonl",
    ],
)
def test_recorded_log_records_have_the_same_requests(name: str, shared: Path) -> None:
    directory = shared / "oracle" / "envelopes"
    raw, wrapped = ((directory / file).read_text(encoding="utf-8") for file in ("raw.jsonl", name))
    requests = [parse_event(line.value) for line in read_json_values(raw)]
    assert [parse_event(line.value) for line in read_json_values(wrapped)] == requests
