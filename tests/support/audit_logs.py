"""Recorded audit logs, engines of `apflint replay`, and audit events for tests."""

from __future__ import annotations

import gzip
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from apflint.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "fixtures" / "replay"
COMPLETE = Path(os.environ.get("APFLINT_RECORDINGS") or ROOT.parent / "shared" / "oracle")
"""The complete recordings, which contain the fixtures. They are not in the repository."""

needs_duckdb = pytest.mark.skipif(find_spec("duckdb") is None, reason="DuckDB is not installed: apflint[replay]")
ENGINES = [pytest.param("python"), pytest.param("duckdb", marks=needs_duckdb)]
RECORDINGS = [
    pytest.param(FIXTURES, id="fixtures"),
    pytest.param(
        COMPLETE,
        id="complete",
        # If the environment names a directory that does not exist, the tests fail instead of being skipped.
        marks=pytest.mark.skipif(
            not os.environ.get("APFLINT_RECORDINGS") and not (COMPLETE / "live").is_dir(),
            reason=f"no complete recordings in {COMPLETE}",
        ),
    ),
]


def replay_json(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    """Run `apflint replay --format json`, and return the report."""
    assert run(["replay", *map(str, arguments), "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def replay_each(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> list[dict[str, Any]]:
    """Run `apflint replay --each`, and return the JSON values of its lines."""
    assert run(["replay", *map(str, arguments), "--each"]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def read_lines(path: Path) -> list[Any]:
    """Return the JSON values in the lines of a file, which may be compressed with gzip."""
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def event(**changes: Any) -> dict[str, Any]:
    """Return the audit event of a list request that took one second. `changes` replace fields, and None removes a field."""
    fields: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "11111111-0000-0000-0000-000000000000",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/team-a/pods",
        "verb": "list",
        "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
        "userAgent": "kubectl/v1.36.0",
        "objectRef": {"resource": "pods", "namespace": "team-a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-11-22T05:49:20.000000Z",
        "stageTimestamp": "2026-11-22T05:49:21.000000Z",
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }
    fields.update(changes)
    return {key: value for key, value in fields.items() if value is not None}


def write_log(path: Path, events: Sequence[object]) -> Path:
    """Write events as lines of JSON, and return the path."""
    path.write_text("".join(f"{json.dumps(value, separators=(',', ':'))}\n" for value in events), encoding="utf-8")
    return path
