"""Sentences of the report about requests and events that the log does not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, FIXTURES, event, replay_json, write_log

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

NODE = {"username": "system:node:a", "groups": ["system:nodes", "system:authenticated"]}
LEASE = {"resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "x"}
EVERYTHING = [
    *(
        event(auditID=f"{number}", verb=verb, stage=stage, user=NODE, objectRef=LEASE)
        for number, verb in enumerate(("get", "list", "watch", "create", "update", "patch", "delete"))
        for stage in ("RequestReceived", "ResponseStarted", "ResponseComplete")
    ),
    event(auditID="x", objectRef=None, requestURI="/healthz"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kept", "omissions", "sentence"),
    [
        (lambda _: True, {}, "Requests that the audit policy omits (level None, omitStages) are not counted."),
        (
            lambda event: event["stage"] != "RequestReceived",
            {"stages": ["RequestReceived"]},
            "The log has no RequestReceived events: the audit policy omits this stage.",
        ),
        (
            lambda event: event["stage"] not in {"RequestReceived", "ResponseStarted"},
            {"stages": ["RequestReceived", "ResponseStarted"]},
            "the audit policy omits these stages.\nWatches that are still open are missing.",
        ),
        (
            lambda event: event["stage"] != "ResponseComplete",
            {"stages": ["ResponseComplete"], "requests": ["requests for non-resource URLs"]},
            "Requests other than watches are missing, because a replay reads these requests from ResponseComplete events.",
        ),
        (
            lambda event: event["verb"] not in {"get", "list", "watch"},
            {"verbs": ["get", "list", "watch"], "requests": ["requests for non-resource URLs"]},
            "The log has no get, list or watch requests, no requests for non-resource URLs: the audit policy may omit them",
        ),
        (
            lambda event: event.update(user={"username": "a", "groups": []}, objectRef={"resource": "pods"}) is None,
            {"requests": ["requests of nodes", "requests for leases", "requests for non-resource URLs"]},
            "The log has no requests of nodes, no requests for leases",
        ),
        (
            lambda event: event.pop("annotations", None) is not event,
            {"authorizationDecisions": True},
            "No event has the annotation authorization.k8s.io/decision, so REJECTED counts all responses with status 429",
        ),
    ],
)
def test_omissions(
    kept: Any, omissions: dict[str, Any], sentence: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "audit.log", [value for value in map(dict, EVERYTHING) if kept(value)])
    expected = {"stages": [], "verbs": [], "requests": [], "authorizationDecisions": False, **omissions}
    assert replay_json(capsys, log, "--engine", engine)["omissions"] == expected
    assert run(["replay", str(log), "--engine", engine]) == 0
    printed = capsys.readouterr().out
    assert sentence in printed
    assert ("The log has no" in printed or "No event has" in printed) == bool(omissions)


def test_filters_omit_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", EVERYTHING)
    unfiltered = replay_json(capsys, log)["omissions"]
    assert replay_json(capsys, log, "--since", "2026-12-01T00:00:00Z")["omissions"] == unfiltered


def test_log_without_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event(stage="RequestReceived")])
    report = replay_json(capsys, log)
    assert report["omissions"]["stages"] == ["ResponseComplete"]
    (tmp_path / "empty.log").touch()
    assert not any(replay_json(capsys, tmp_path / "empty.log", code=2)["omissions"].values())


@pytest.mark.parametrize("name", ["gke-sink.jsonl", "gke-logging-read.json"])
def test_google_records_have_no_requests_for_other_paths(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    omissions = replay_json(capsys, FIXTURES / "envelopes" / name)["omissions"]
    assert "RequestReceived" in omissions["stages"]
    assert "requests for non-resource URLs" in omissions["requests"]
