"""Tests that all replay engines give the same answers for any log.

The engines classify each attribute tuple once. The tests also check that this gives the same result
as classifying each event.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import FIXTURES, event, needs_duckdb
from support.reading import read_effective

from apflint.evaluate.classify import classify
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import is_seen_by_apf, parse_request_info
from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import ReplayReport, RequestAnswer, compute_report, stream_requests
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from apflint.effective_configuration import Effective

USERS = ("alice", "system:anonymous", "system:serviceaccount:dev:builder", "é", 'a"b\\', "x\x00y")
GROUPS = ("dev", "ops", "ci", "guests", "system:masters", "system:authenticated", 'q"\\')
REQUESTS = (
    ("GET", "/api/v1/namespaces/team-a/pods", {"resource": "pods", "namespace": "team-a"}),
    ("GET", "/api/v1/namespaces/other/configmaps/x?y=z", {"resource": "configmaps", "namespace": "other", "name": "x"}),
    ("POST", "/api/v1/namespaces/slow/configmaps", {"resource": "configmaps", "namespace": "slow"}),
    ("POST", "/api/v1/namespaces/ci/configmaps", {"resource": "configmaps", "namespace": "ci"}),
    ("GET", "/api/v1/pods?watch=1", {"resource": "pods"}),
    ("GET", "/api/v1/namespaces/dev/pods/p/log", {"resource": "pods", "subresource": "log", "namespace": "dev"}),
    ("PATCH", "/api/v1/nodes/n/status", {"resource": "nodes", "subresource": "status", "name": "n"}),
    ("GET", "/apis/apps/v1/deployments", {"resource": "deployments", "apiGroup": "apps"}),
    # The request body has another namespace than the URI. The server writes the namespace of the body into `objectRef`.
    (
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {"resource": "clusterroles", "apiGroup": "rbac.authorization.k8s.io", "namespace": "team-a"},
    ),
    ("POST", "/api/v1/namespaces?x=/namespaces/team-a", {"resource": "namespaces", "namespace": "team-a"}),
    ("POST", "/api/v1/namespaces/%74eam-a/pods", {"resource": "pods", "namespace": "team-a"}),
    ("GET", "/api/v1/watch/namespaces/slow/configmaps", {"resource": "configmaps", "namespace": "slow"}),
    ("GET", "/healthz", None),
    ("GET", "/a%20b/é?x", None),
    ("GET", "/debug/pprof/heap", None),
)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the audit event of a request, with fields as kube-apiserver writes them."""
    method, url, reference = draw(st.sampled_from(REQUESTS))
    user = {"username": draw(st.sampled_from(USERS)), "groups": draw(st.lists(st.sampled_from(GROUPS), max_size=3))}
    second, length = draw(st.integers(0, 59)), draw(st.sampled_from([0, 1, 999_999, 1_500_000]))
    end = second * 1_000_000 + length
    is_decided = draw(st.booleans())
    annotations = {"authorization.k8s.io/decision": "allow"} if is_decided else {}
    wait = draw(
        st.sampled_from(
            [None, "42.093µs", "1.234567891s", "1m2.5s", "1h0m0.25s", "15ns", "0s", "x", "1s2s", ".s", "-5s"]
        )
    )
    if wait is not None:
        annotations["apiserver.latency.k8s.io/apf-queue-wait"] = wait
    return event(
        auditID=draw(st.sampled_from([None, *(f"{number:036}" for number in range(8))])),
        stage=draw(st.sampled_from(["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"])),
        requestURI=url,
        verb=parse_request_info(method, url).verb,
        user=draw(st.sampled_from([user, {}])),
        impersonatedUser=draw(st.sampled_from([None, None, {"username": "bob", "groups": ["guests"]}])),
        objectRef=reference and {**reference, "apiVersion": "v1"},
        responseStatus={
            "metadata": {},
            **draw(st.sampled_from([{}, {}, {"reason": "TooManyRequests"}])),
            "code": draw(st.sampled_from([200, 401, 403, 429])),
        },
        requestReceivedTimestamp=f"2026-11-22T05:49:{second:02}.000000Z",
        stageTimestamp=f"2026-11-22T05:{49 + end // 60_000_000}:{end // 1_000_000 % 60:02}.{end % 1_000_000:06}Z",
        annotations=annotations or None,
    )


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Draw a line of a log, which is an event in most cases."""
    value = draw(events())
    kind = draw(st.sampled_from(["event"] * 8 + ["field", "cut", "junk", "list", "envelope"]))
    if kind == "field":
        key = draw(st.sampled_from(sorted(value)))
        value[key] = draw(st.sampled_from([None, 1, "", "x", [], ["x"], [1], {}, {"username": 1}, {"resource": []}]))
    elif kind == "list":
        return json.dumps({"kind": "EventList", "items": [value, draw(events())]})
    elif kind == "envelope":
        return json.dumps({"category": "kube-audit", "properties": {"log": json.dumps(value), "pod": "server-1"}})
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if kind == "cut":
        return text[: draw(st.integers(0, len(text)))]
    if kind == "junk":
        return draw(
            st.sampled_from(["", "  ", "null", "[]", "{}", "1", '"x"', "\x00", "a,b", "'", '{"a": "\\ud800"}', "nul"])
        )
    return text


@cache
def known() -> Effective:
    return read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)


def run_engine(path: Path, engine: Any, cluster: Effective) -> tuple[ReplayReport, list[RequestAnswer]]:
    by = ("user", "group", "namespace", "userAgent", "verb", "resource", "flow", "status", "server", "priorityLevel")
    result = replay(find_audit_logs([str(path)]), cluster, ReplayOptions(engine, by=by, each=True))
    try:
        return compute_report(result, by, 3, 1000), sorted(stream_requests(result.log), key=repr)
    finally:
        result.log.database.close()


@needs_duckdb
@settings(max_examples=25)
@given(st.lists(lines(), max_size=12), st.sampled_from(["", "\n"]))
def test_engines_agree(tmp_path_factory: pytest.TempPathFactory, texts: list[str], end: str) -> None:
    path = tmp_path_factory.mktemp("logs") / "audit.log"
    path.write_text("\n".join(texts) + end, encoding="utf-8")
    cluster = known()
    report, answers = run_engine(path, "python", cluster)
    other, other_answers = run_engine(path, "duckdb", cluster)
    assert other._replace(engine="") == report._replace(engine="")
    assert other_answers == answers


@settings(max_examples=50)
@given(st.lists(events(), max_size=20))
def test_reduction_equals_classifying_each_event(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, Any]]
) -> None:
    for number, value in enumerate(values):
        value["auditID"] = f"{number:036}"  # so that each event is a separate request
    path = tmp_path_factory.mktemp("logs") / "audit.log"
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
    cluster = known()
    _, answers = run_engine(path, "python", cluster)
    expected: Counter[Any] = Counter()
    for value in values:
        if value["stage"] != "RequestReceived":
            expected[value["auditID"], *classify_event(value, cluster)] += 1
    assert (
        Counter((answer.audit_id, answer.outcome, answer.flow_schema, answer.rejected) for answer in answers)
        == expected
    )


def classify_event(value: dict[str, Any], cluster: Effective) -> tuple[str, str | None, bool]:
    """Return (outcome, FlowSchema or None, whether APF rejected the request) for a single audit event.

    This test code classifies the event itself, and does not group the events of the log by their
    attributes as apflint does.
    """
    user = value.get("impersonatedUser") or value["user"]
    code, is_decided = value["responseStatus"]["code"], "authorization.k8s.io/decision" in value.get("annotations", {})
    is_decided |= code == 429 and "reason" in value["responseStatus"]
    method = {"create": "POST", "patch": "PATCH"}.get(value["verb"], "GET")
    info = parse_request_info(method, value["requestURI"])
    if not user or (code == 401 and not is_decided):
        return "no user", None, False
    if not is_seen_by_apf(info):
        return "long-running", None, False
    if code == 403 and not is_decided:
        return "no impersonation", None, False
    digest = RequestDigest(info, UserInfo(user["username"], tuple(user["groups"])))
    schema = classify(cluster.configuration, digest).flow_schema.name
    return "classified", schema, code == 429 and not is_decided
