"""The Spark engine gives the same answers as the other engines. Starting Spark takes seconds, so one log has all cases."""

from __future__ import annotations

import gzip
import json
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import FIXTURES, event

from apflint.cli.app import run
from apflint.inputs.apf_configuration import ClusterOptions, read_cluster
from apflint.inputs.audit_logs import find_audit_logs
from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report, stream_requests

if TYPE_CHECKING:
    from pathlib import Path

has_spark = find_spec("pyspark") is not None and shutil.which("java") is not None
# Py4J leaves the closing of its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
needs_spark = pytest.mark.skipif(not has_spark, reason="Spark is not installed: apflint[spark] and Java 17")
ODD_LINES = [
    "",
    "  \t\r",
    "not JSON",
    '{"kind":"Pod","apiVersion":"v1"}',
    json.dumps(event(auditID="a1")) + " x",
    json.dumps(event(auditID="a2")) + json.dumps(event(auditID="a3")),
    json.dumps(event(auditID="a4", verb=5)),
    json.dumps(event(auditID="a5", user={"username": "5", "groups": ["1", "true"]})),
    json.dumps(event(auditID="a6", user={"username": "b", "groups": [1]})),
    json.dumps(event(auditID="a7", user="alice")),
    json.dumps(event(auditID="a8", responseStatus={"code": "200"})),
    json.dumps(event(auditID="a9", impersonatedUser={"username": "bob", "groups": ["x'\\"]})),
    json.dumps(event(auditID="b1", objectRef=None, requestURI="/healthz?verbose")),
    json.dumps(event(auditID="b2", objectRef={})),
    json.dumps(event(auditID="b3", stageTimestamp="2026-11-22T24:00:00.000000Z")),
    json.dumps({"kind": "EventList", "items": [event(auditID="b4"), 1]}),
    json.dumps(event(auditID="b5", annotations={"apiserver.latency.k8s.io/apf-queue-wait": "1.5s"})),
]


@needs_spark
@pytest.mark.slow
def test_spark_agrees_with_other_engines(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    recorded = gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes())
    log.write_bytes(recorded + "\n".join(ODD_LINES).encode() + b"\n")
    by = ("user", "group", "namespace", "userAgent", "verb", "resource", "flow", "status", "server")
    known = read_cluster(
        [str(FIXTURES / "live" / "objects-begin.json")], ClusterOptions(server_concurrency=30, isolated=True), str
    )

    def answer(engine: Any) -> Any:
        result = replay(find_audit_logs([str(log)]), known, ReplayOptions(engine, by=by, each=True))
        try:
            requests = sorted(stream_requests(result.log), key=repr)
            return compute_report(result, by, 3, 1000)._replace(engine=""), requests
        finally:
            result.log.database.close()

    report, requests = answer("python")
    assert report.coverage.unreadable > 5
    assert len(requests) > 400
    other, other_requests = answer("spark")
    assert other == report
    assert other_requests == requests


@needs_spark
@pytest.mark.slow
def test_missing_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "file:///no/such/audit.log", "--engine", "spark"]) == 2
    output = capsys.readouterr().err
    assert "Spark cannot read the log: [PATH_NOT_FOUND]" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["s3a://bucket/audit.log"], "s3a://bucket/audit.log: only --engine spark reads URLs"),
        (["x.log", "--spark-remote", "sc://host"], "--spark-remote needs --engine spark"),
    ],
)
def test_urls_need_spark(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_spark_server_cannot_read_local_files(capsys: pytest.CaptureFixture[str]) -> None:
    log = str(FIXTURES / "live" / "audit.log.gz")
    assert run(["replay", log, "--engine", "spark", "--spark-remote", "sc://host"]) == 2
    assert "the Spark server cannot read your files" in capsys.readouterr().err


def test_spark_is_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    assert run(["replay", str(FIXTURES / "live" / "audit.log.gz"), "--engine", "spark"]) == 2
    assert "pip install 'apflint[spark]'" in capsys.readouterr().err
