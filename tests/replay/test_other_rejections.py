"""Which 429 responses count as rejections by API Priority and Fairness, with and without annotations, and in logs of GKE."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, FIXTURES, event, read_lines, replay_each, replay_json, write_log

from apflint.cli.app import run
from apflint.replay.events import MAX_YEAR, MIN_YEAR, parse_time

if TYPE_CHECKING:
    from pathlib import Path

REJECTED = {"metadata": {}, "code": 429}
EVICTION = {
    "metadata": {},
    "status": "Failure",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "reason": "TooManyRequests",
    "details": {
        "causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods"}]
    },
    "code": 429,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("indented", [False, True])
def test_eviction_that_a_budget_forbids(
    engine: str, indented: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = {"resource": "pods", "subresource": "eviction", "namespace": "a", "name": "p", "apiVersion": "v1"}
    uri = "/api/v1/namespaces/a/pods/p/eviction"
    cases: list[tuple[dict[str, object], object]] = [(REJECTED, None), (EVICTION, None), (EVICTION, {"decision": "x"})]
    events = [
        event(
            auditID=f"{number:08}-0000-0000-0000-000000000000",
            verb="create",
            requestURI=uri,
            objectRef=reference,
            responseStatus=status,
            annotations=annotations,
        )
        for number, (status, annotations) in enumerate(cases)
    ]
    log = write_log(tmp_path / "audit.log", events)
    if indented:
        log.write_text("".join(f"{json.dumps(value)}\n" for value in events), encoding="utf-8")
    answers = replay_each(capsys, log, "--isolated", "--engine", engine)
    assert [answer["rejected"] for answer in sorted(answers, key=lambda answer: str(answer["auditID"]))] == [
        True,
        False,
        False,
    ]
    report = replay_json(capsys, log, "--isolated", "--engine", engine)
    assert sum(level["rejected"] for level in report["levels"]) == 1


def google_records() -> list[Any]:
    return read_lines(FIXTURES / "envelopes" / "gke-sink.jsonl")


@pytest.mark.parametrize("kept", ["serviceName", "methodName"])
def test_google_records_without_a_type(kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = google_records()
    expected = replay_each(capsys, FIXTURES / "envelopes" / "gke-sink.jsonl", "--isolated")
    for record in records:
        payload = record["protoPayload"]
        del payload["@type"]
        if kept == "methodName":
            payload.pop("serviceName", None)
        else:
            payload["serviceName"] = "k8s.io"
    log = write_log(tmp_path / "gke.jsonl", records)
    assert expected
    assert replay_each(capsys, log, "--isolated") == expected
    assert run(["explain", "--event", str(log), "--isolated", "--format", "json"]) == 0
    assert capsys.readouterr().out.count('"flowSchema"') >= len(records)


def test_record_of_another_google_service_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = google_records()[0]
    record["protoPayload"] = {"serviceName": "k8s.io", "methodName": "google.container.v1.ClusterManager.GetCluster"}
    log = write_log(tmp_path / "gke.jsonl", [record])
    assert run(["explain", "--event", str(log), "--isolated"]) == 2
    assert "this Cloud Audit Logs record is not a request to a Kubernetes API server" in capsys.readouterr().err


@pytest.mark.parametrize("decisions", [None, [], [{"granted": True}]])
def test_google_eviction_that_a_budget_forbids(
    decisions: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = google_records()[0]
    payload = record["protoPayload"]
    payload |= {
        "methodName": "io.k8s.core.v1.pods.eviction.create",
        "status": {"code": 8},
        "authorizationInfo": decisions,
    }
    payload["resourceName"] = "core/v1/namespaces/a/pods/p/eviction"
    log = write_log(tmp_path / "gke.jsonl", [record])
    assert [answer["rejected"] for answer in replay_each(capsys, log, "--isolated")] == [False]
    payload |= {"methodName": "io.k8s.core.v1.pods.create", "resourceName": "core/v1/namespaces/a/pods/p"}
    log = write_log(tmp_path / "gke.jsonl", [record])
    assert [answer["rejected"] for answer in replay_each(capsys, log, "--isolated")] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-22 05:49:20.098765Z",
        "2026-11-22 05:49:20.098765 UTC",
        "2026-11-22 05:49:20.098765",
        "2026-11-22 06:49:20.098765+01",
        "2026-11-22 05:49:20.098765+00:00",
    ],
)
def test_time_with_a_space(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_time(text) == parse_time("2026-11-22T05:49:20.098765Z") is not None
    log = write_log(tmp_path / "audit.log", [event(requestReceivedTimestamp=text, stageTimestamp=text)])
    assert replay_json(capsys, log, "--isolated")["start"] == "2026-11-22T05:49:20.098765Z"
    log.write_text(f"{text} {json.dumps(event())}\n", encoding="utf-8")
    assert replay_json(capsys, log, "--isolated")["unreadable"] == 0


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00Z", f"{MIN_YEAR - 1}-12-31T23:59:59Z", f"{MAX_YEAR + 1}-01-01T00:00:00Z"]
)
def test_time_in_another_century_is_unknown(text: str) -> None:
    assert parse_time(text) is None


def test_time_without_a_zone_is_unknown() -> None:
    assert parse_time("2026-11-22T05:49:20") is parse_time(" UTC") is parse_time(5) is None
