"""Audit events as hosted control planes deliver them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from apflint.cli.app import run
from apflint.errors import UserError
from apflint.requests.audit_event import parse_event
from apflint.requests.json_lines import parse_record, read_json_values

if TYPE_CHECKING:
    from pathlib import Path

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
            GOOGLE,
            r"GKE.*lacks the groups of the user.*apflint explain list RESOURCE -n NAMESPACE --as alice@example\.com",
        ),
        ({"protoPayload": {"@type": "x/google.cloud.audit.AuditLog"}}, "apflint explain VERB RESOURCE"),
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
    with pytest.raises(UserError, match="GKE"):
        parse_record(GOOGLE)


@pytest.mark.parametrize(
    "name",
    [
        "aks-eventhub.jsonl",
        "aks-storage.jsonl",
        "eks-filter-log-events.json",
        "eks-s3-export.log",
        "webhook-batches.jsonl",
    ],
)
def test_recorded_log_records_have_the_same_requests(name: str, shared: Path) -> None:
    folder = shared / "oracle" / "envelopes"
    raw, wrapped = ((folder / file).read_text(encoding="utf-8") for file in ("raw.jsonl", name))
    requests = [parse_event(line.value) for line in read_json_values(raw)]
    assert [parse_event(line.value) for line in read_json_values(wrapped)] == requests
