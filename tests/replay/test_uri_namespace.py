"""The namespace of a request follows from its URI, even if the body of the request has another namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audit_logs import ENGINES, event, needs_duckdb, replay_each, replay_json, write_log

from apflint.evaluate.requestinfo import parse_request_info
from apflint.replay.events import find_problem, read_attributes
from apflint.replay.uri_namespace import UNCERTAIN, find_namespace, find_version, make_sql, match_sql
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

ORDINARY = {
    "/api/v1/namespaces/a/pods?watch=1": "a",
    "/api/v1/namespaces/a/pods/p/log": "a",
    "/api/v1/namespaces/a": "a",
    "/api/v1/namespaces/a/status": "a",
    "/api/v1/namespaces?labelSelector=x%3Dy": "",
    "/api/v1/nodes/namespaces/a": "",
    "/api/v1/nodes?fieldManager=/api/v1/namespaces/a/": "",
    "/api/v1/watch/namespaces/a/pods": "a",
    "//api/v1/namespaces/a/pods": "a",
    "/apis/apps/v1/namespaces/a/deployments/d%2fe": "a",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab": "",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldValidation=Strict": "",
}
SEGMENTS = st.sampled_from(
    ["api", "apis", "v1", "g", "namespaces", "watch", "proxy", "a", "%61", "%2F", "", "é", "a'b"]
)
URIS = st.builds(
    lambda segments, end: "/" + "/".join(segments) + end,
    st.lists(SEGMENTS, max_size=8),
    st.sampled_from(["", "/", "?", "?x=/namespaces/b", "?y=%61"]),
)
TENANT = """
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: tenant}
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 500
  distinguisherMethod: {type: ByNamespace}
  rules:
  - subjects: [{kind: Group, group: {name: "system:authenticated"}}]
    resourceRules:
    - {verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: [team-a]}
"""


@pytest.mark.parametrize(("uri", "namespace"), ORDINARY.items())
def test_namespace_of_a_uri(uri: str, namespace: str) -> None:
    assert find_namespace(uri, "body") == namespace
    assert parse_request_info("GET", uri).namespace == namespace


@given(URIS, st.sampled_from([None, "", "a", "b"]))
def test_namespace_is_that_of_the_server(uri: str, reference: str | None) -> None:
    try:
        expected = parse_request_info("GET", uri).namespace
    except UserError:  # the server answers 500
        assert find_namespace(uri, reference) in (reference or "", "")
    else:
        assert find_namespace(uri, reference) == expected


@pytest.mark.parametrize(("uri", "version"), [
    ("/api/v1/namespaces/a/pods", "/api/v1"),
    ("/apis/apps/v1/namespaces/a/deployments/b", "/apis/apps/v1"),
    ("/api/v1/namespaces/a", None),
    ("/api/v1/pods", None),
    ("/api/v1/pods?x=/namespaces/a/", None),
])  # fmt: skip
def test_part_before_a_namespace(uri: str, version: str | None) -> None:
    assert find_version(uri) == version


@given(URIS, st.sampled_from(["a", "b", "team-a"]), st.sampled_from(["", "/pods", "?x=/namespaces/c/"]))
def test_namespace_after_a_version(uri: str, namespace: str, end: str) -> None:
    """`fast_lines` relies on this property: in URIs with the same beginning, the namespace is at the same place."""
    for known in (uri, *ORDINARY):
        version = find_version(known)
        if version is not None:
            assert known.startswith(f"{version}/namespaces/{find_namespace(known, None)}/")
            assert find_namespace(f"{version}/namespaces/{namespace}/{end}", None) == namespace


def test_namespace_without_a_uri() -> None:
    assert find_namespace(None, "a") == find_namespace("", "a") == "a"
    assert find_namespace(None, None) == ""


@needs_duckdb
@given(st.lists(URIS, min_size=1, max_size=30))
def test_sql_agrees(uris: list[str]) -> None:
    import duckdb

    values: list[list[Any]] = [[uri, "body"] for uri in (*uris, *ORDINARY, "")] + [
        [None, "body"],
        ["/api/v1/nodes", None],
    ]
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO regexp_like(text, pattern) AS regexp_matches(text, pattern)")
        connection.execute("CREATE TABLE event (uri TEXT, namespace TEXT)")
        connection.executemany("INSERT INTO event VALUES (?, ?)", values)
        rows = connection.execute(
            f"SELECT uri, namespace, {make_sql('uri', 'namespace', 'matched')}"
            f" FROM (SELECT *, {match_sql('uri')} AS matched FROM event)"
        ).fetchall()
    assert len(rows) == len(values)
    for uri, reference, namespace in rows:
        assert namespace in (find_namespace(uri, reference), UNCERTAIN)
        assert namespace != UNCERTAIN or uri not in ORDINARY, "Python would read the whole file"


@pytest.mark.parametrize("engine", ENGINES)
def test_namespace_of_a_body_is_ignored(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "apf.yaml").write_text(TENANT, encoding="utf-8")
    role = {"resource": "clusterroles", "apiGroup": "rbac.authorization.k8s.io", "apiVersion": "v1", "name": "r"}
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    cases = [
        (roles, {**role, "namespace": "team-a"}, "global-default", "alice"),
        (f"{roles}/r?fieldManager=/namespaces/team-a", {**role, "namespace": "team-a"}, "global-default", "alice"),
        (
            "/api/v1/namespaces",
            {"resource": "namespaces", "namespace": "team-a", "name": "n"},
            "global-default",
            "alice",
        ),
        ("/api/v1/namespaces/team-a/pods", {"resource": "pods", "namespace": "team-a"}, "tenant", "team-a"),
        ("/api/v1/namespaces/%74eam-a/pods", {"resource": "pods", "namespace": "team-a"}, "tenant", "team-a"),
        ("/api/v1/namespaces/team-a/pods", {"resource": "pods", "namespace": "other"}, "tenant", "team-a"),
        ("/api/v1/namespaces/other/pods", {"resource": "pods", "namespace": "team-a"}, "global-default", "alice"),
        (None, {"resource": "pods", "namespace": "team-a"}, "tenant", "team-a"),
    ]
    user = {"username": "alice", "groups": ["system:authenticated"]}
    log = write_log(
        tmp_path / "audit.log",
        [
            event(auditID=f"{number:036}", verb="create", user=user, requestURI=uri, objectRef=reference)
            for number, (uri, reference, _, _) in enumerate(cases)
        ],
    )
    answers = replay_each(capsys, log, "-f", tmp_path / "apf.yaml", "--isolated", "--engine", engine)
    found = {answer["auditID"]: (answer["flowSchema"], answer["distinguisher"]) for answer in answers}
    assert found == {f"{number:036}": (schema, flow) for number, (*_, schema, flow) in enumerate(cases)}


@pytest.mark.parametrize("engine", ENGINES)
def test_escaped_namespace_among_plain_events(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = {"resource": "pods", "namespace": "dev"}
    uris = ("/api/v1/namespaces/dev%2Fpods", "/api/v1/namespaces/%64ev/pods", "/api/v1/namespaces/dev/pods")
    log = write_log(
        tmp_path / "audit.log",
        [event(auditID=f"{number:036}", requestURI=uri, objectRef=reference) for number, uri in enumerate(uris)],
    )
    report = replay_json(capsys, log, "--by", "namespace", "--engine", engine)
    assert [group["namespace"] for group in report["by"]["groups"]] == ["dev"]


@pytest.mark.parametrize(("key", "value"), [("namespace", 1), ("namespace", ["a"])])
def test_namespace_of_another_type_is_no_event(key: str, value: object) -> None:
    """The type must be checked before attributes are compared.

    Otherwise, the attributes of an invalid event could equal the attributes of a valid event.
    """
    wrong = event(objectRef={"resource": "pods", key: value})
    with pytest.raises(TypeError):
        read_attributes(wrong, (), has_options=False)
    assert find_problem(wrong) == '"namespace" must be a string, not ' + ("a number" if value == 1 else "a list")
    with pytest.raises(TypeError):
        read_attributes(event(requestURI=["/api"]), (), has_options=False)
