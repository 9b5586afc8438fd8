"""The FlowSchema and priority level of each recorded request, compared with the headers of the server's responses."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.audit_logs import ENGINES, RECORDINGS, read_lines, replay_each, replay_json

if TYPE_CHECKING:
    from pathlib import Path

SEATS = ("--server-concurrency", "20+10")
"""The flags of the recorded server."""


@pytest.mark.parametrize("recordings", RECORDINGS)
@pytest.mark.parametrize("engine", ENGINES)
def test_recorded_requests_get_the_recorded_levels(
    recordings: Path, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    live = recordings / "live"
    answers = {}
    for part in ("begin", "end"):
        manifests = live / f"objects-{part}.json"
        lines = replay_each(capsys, live / "audit.log.gz", "-f", manifests, "--engine", engine, *SEATS)
        answers[part] = {line["auditID"]: line for line in lines}
    compared: Counter[bool] = Counter()
    for truth in read_lines(live / "truth.jsonl.gz"):
        if truth["config"] == "changing" or truth["status"] is None:
            continue
        answer = answers[truth["config"]].get(truth["audit_id"])
        if answer is None:  # the audit policy omits the request, or its last event is missing
            assert "ResponseComplete" not in truth["stages"]
            assert "ResponseStarted" not in truth["stages"]
            continue
        assert (answer["flowSchema"], answer["priorityLevel"]) == (truth["flow_schema"], truth["priority_level"]), truth
        assert answer["rejected"] == (truth["status"] == 429 and truth["flow_schema"] is not None), truth
        compared[truth["flow_schema"] is not None] += 1
    assert compared[True] > 250
    assert compared[False] > 20


@pytest.mark.parametrize("recordings", RECORDINGS)
@pytest.mark.parametrize("engine", ENGINES)
def test_report_counts_the_recorded_outcomes(recordings: Path, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    live = recordings / "live"
    report = replay_json(capsys, live / "audit.log.gz", "-f", live / "objects-begin.json", "--engine", engine, *SEATS)
    events = read_lines(live / "audit.log.gz")
    last = {event["auditID"]: event for event in events if event["stage"] != "RequestReceived"}
    rejected = sum(
        event["responseStatus"]["code"] == 429 and "authorization.k8s.io/decision" not in event.get("annotations", {})
        for event in last.values()
    )
    strict = {  # the level has no queues, so the logged wait is only the time until the decision
        answer["auditID"]
        for answer in replay_each(capsys, live / "audit.log.gz", "-f", live / "objects-begin.json", *SEATS)
        if answer["priorityLevel"] == "strict"
    }
    waits = sum(
        "apiserver.latency.k8s.io/apf-queue-wait" in event.get("annotations", {})
        for audit_id, event in last.items()
        if audit_id not in strict
    )
    assert next(level["waits"] for level in report["levels"] if level["name"] == "strict") is None
    assert report["events"] == len(events)
    assert report["requests"] == len(last)
    assert report["requests"] == report["classified"] + sum(report["notClassified"].values())
    assert report["classified"] == sum(level["requests"] for level in report["levels"])
    assert sum(level["rejected"] for level in report["levels"]) == rejected > 20
    assert sum((level["waits"] or {"count": 0})["count"] for level in report["levels"]) == waits > 20
    assert report["unreadable"] == report["duplicateEvents"] == 0
