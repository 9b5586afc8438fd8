"""Audit logs of hosted control planes: the same requests as in the raw audit log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, FIXTURES, RECORDINGS, read_lines, replay_each, replay_json

from apflint.cli.app import run
from apflint.evaluate.authentication import complete_groups, has_fixed_groups

if TYPE_CHECKING:
    from pathlib import Path

ENVELOPES = sorted(path.name for path in (FIXTURES / "envelopes").iterdir() if path.name != "raw.jsonl")
GOOGLE = [name for name in ENVELOPES if name.startswith("gke")]


def answers(capsys: pytest.CaptureFixture[str], recordings: Path, name: str, engine: str) -> dict[str, Any]:
    manifests = recordings / "live" / "objects-begin.json"
    lines = replay_each(capsys, recordings / "envelopes" / name, "-f", manifests, "--engine", engine)
    assert len({line["auditID"] for line in lines}) == len(lines)
    return {line["auditID"]: line for line in lines}


@pytest.mark.parametrize("recordings", RECORDINGS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in ENVELOPES if name not in GOOGLE])
def test_events_in_envelopes_have_the_same_answers(
    name: str, engine: str, recordings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = answers(capsys, recordings, "raw.jsonl", "python")
    wrapped = answers(capsys, recordings, name, engine)
    assert len(wrapped) >= 11
    assert wrapped == {audit_id: raw[audit_id] for audit_id in wrapped}
    if name != "eks-insights.json":  # this file is the result of a query, which selects some events
        assert wrapped == raw


@pytest.mark.parametrize("recordings", RECORDINGS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GOOGLE)
def test_google_records_have_the_same_answers_if_groups_can_be_derived(
    name: str, engine: str, recordings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = answers(capsys, recordings, "raw.jsonl", "python")
    wrapped = answers(capsys, recordings, name, engine)
    events = {event["auditID"]: event for event in read_lines(recordings / "envelopes" / "raw.jsonl")}
    compared = 0
    for audit_id, answer in wrapped.items():
        user = events[audit_id].get("impersonatedUser") or events[audit_id]["user"]
        derived = {*complete_groups(user["username"], ())[0]}
        if derived == {*user["groups"]}:
            assert answer | {"wait": None} == raw[audit_id] | {"wait": None}
            compared += 1
        else:
            assert not has_fixed_groups(user["username"]) or "extra" in user["groups"]
    assert compared >= 5
    own = [audit_id for audit_id in wrapped if events[audit_id]["user"].get("username") == "system:apiserver"]
    assert {wrapped[audit_id]["priorityLevel"] for audit_id in own} == {"exempt"}
    manifests = recordings / "live" / "objects-begin.json"
    report = replay_json(capsys, recordings / "envelopes" / name, "-f", manifests)
    assert report["withoutGroups"] == report["classified"]
    assert 0 < report["uncertain"] < report["withoutGroups"]


def explain_events(capsys: pytest.CaptureFixture[str], recordings: Path, name: str) -> list[Any]:
    manifests = recordings / "live" / "objects-begin.json"
    path = str(recordings / "envelopes" / name)
    assert run(["explain", "--event", path, "-f", str(manifests), "--format", "json"]) == 0
    answers = map(json.loads, capsys.readouterr().out.splitlines())
    return [(answer["user"], answer["request"]["verb"], answer["flowSchema"]) for answer in answers]


@pytest.mark.parametrize("recordings", RECORDINGS)
@pytest.mark.parametrize("name", ENVELOPES)
def test_explain_reads_events_in_envelopes(name: str, recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = explain_events(capsys, recordings, "raw.jsonl")
    wrapped = explain_events(capsys, recordings, name)
    if name in GOOGLE:
        with_groups = [answer for answer in raw if answer in wrapped]
        assert len(with_groups) >= 5
        assert len(wrapped) <= len(raw)
    elif name == "eks-insights.json":
        assert wrapped == [answer for answer in raw if answer in wrapped][: len(wrapped)]
        assert len(wrapped) >= 3
    else:
        assert wrapped == raw


@pytest.mark.parametrize(
    ("name", "servers"),
    [
        ("raw.jsonl", 1),
        ("aks-storage.jsonl", 3),
        ("aks-eventhub.jsonl", 3),
        ("eks-filter-log-events.json", 2),
    ],
)
def test_api_servers_are_kept_apart(name: str, servers: int, capsys: pytest.CaptureFixture[str]) -> None:
    report = replay_json(capsys, FIXTURES / "envelopes" / name, "--by", "server")
    found = {group["server"]: group["requests"] for group in report["by"]["groups"]}
    assert len(found) == servers
    assert sum(found.values()) == report["classified"]
    assert {peak["server"] for level in report["levels"] for peak in level["peaks"]} <= {*found}


def test_records_of_other_logs_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = replay_json(capsys, FIXTURES / "envelopes" / "aks-eventhub.jsonl")
    assert report["otherRecords"] == 1
    assert report["unreadable"] == 0


def test_fields_of_query_results_may_be_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = json.dumps(read_lines(FIXTURES / "envelopes" / "raw.jsonl")[0])
    (tmp_path / "log.jsonl").write_text(json.dumps({"@message": first, "@logStream": "server-1"}), encoding="utf-8")
    report = replay_json(capsys, tmp_path / "log.jsonl", "--by", "server")
    assert [group["server"] for group in report["by"]["groups"]] == ["server-1"]
