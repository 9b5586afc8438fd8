"""The Spark engine gives the same answers as the other engines. Starting Spark takes seconds, so one log has all cases."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from support.audit_logs import FIXTURES, event, replay_json
from support.reading import read_effective
from support.spark import needs_spark, without_warnings
from support.wrapped_logs import LINES, wrap_log

from apflint.cli.app import run
from apflint.replay.running import ReplayOptions, replay
from apflint.replay.spark_engine import check_server
from apflint.replay.statistics import compute_report, stream_requests
from apflint.sources.audit_logs import find_audit_logs
from apflint.user_error import UserError

pytestmark = without_warnings
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
    known = read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)

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
def test_spark_unwraps_events(tmp_path: Path) -> None:
    """Spark reads several logs at once, one for each wrapper with one event per line. Audit IDs differ between logs."""
    recorded = gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes()).decode().splitlines()[::12]
    for number, name in enumerate(LINES):
        text = wrap_log(name, [line.replace('"auditID":"', f'"auditID":"{number}-') for line in recorded])
        (tmp_path / f"{number}.log").write_text(text, encoding="utf-8")
    known = read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)

    def answer(engine: Any) -> Any:
        result = replay(find_audit_logs([str(tmp_path)]), known, ReplayOptions(engine, by=("user", "verb", "server")))
        try:
            return compute_report(result)._replace(engine="")
        finally:
            result.log.database.close()

    report = answer("python")
    assert report.coverage.stages.total() == len(LINES) * len(recorded)
    assert "server-1" in report.servers
    assert answer("spark") == report


@needs_spark
@pytest.mark.slow
def test_spark_keeps_the_requests(tmp_path: Path) -> None:
    """The number of rows that this machine receives does not grow with the number of requests."""
    recorded = gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes())
    known = read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)
    received, requests = [], []
    for copies in (1, 4):
        directory = tmp_path / str(copies)
        directory.mkdir()
        for copy in range(copies):
            log = recorded.replace(b'"auditID":"', b'"auditID":"%d' % copy)
            (directory / f"audit-2026-11-22T05-49-2{copy}.098.log.gz").write_bytes(gzip.compress(log))
        result = replay(find_audit_logs([directory.as_uri()], keeps_urls=True), known, ReplayOptions("spark"))
        try:
            report = compute_report(result)
            received.append(result.log.database.rows_received)  # type: ignore[attr-defined]  # only SparkDatabase has this field
            requests.append(report.extent.requests)
            assert len(report.servers) == 1
        finally:
            result.log.database.close()
    assert requests[1] == 4 * requests[0]
    assert received[1] <= received[0] + 20  # each file adds rows with numbers of events by stage


@needs_spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--baseline", "2m"], id="duration"),
        pytest.param(
            ["--baseline", "2026-11-22T05:49:00Z/2026-11-22T05:51:00Z", "--where", "verb!=watch"], id="interval"
        ),
        pytest.param(["--baseline", "earlier.log", "--since", "2026-11-22T05:51:00Z"], id="other log"),
        pytest.param(
            ["-f", f"2026-11-22T05:51:00Z={FIXTURES / 'live' / 'objects-end.json'}", "--by", "flow"], id="changes"
        ),
    ],
)
def test_periods_and_changes(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Comparisons with a baseline, and configurations that change in the log, are the same as with Python, also with lists."""
    lines = gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes()).splitlines()
    lists = [b'{"items":[%s]}\n' % b",".join(lines[start : start + 100]) for start in range(0, len(lines), 100)]
    Path("audit.log").write_bytes(b"".join(lists))
    Path("earlier.log").write_bytes(b"\n".join(lines[: len(lines) // 2]))
    objects = str(FIXTURES / "live" / "objects-begin.json")
    command = ["audit.log", "-f", objects, "--isolated", "--server-concurrency", "30", *options]
    expected = replay_json(capsys, *command, "--engine", "python")
    found = replay_json(capsys, *command, "--engine", "spark")
    assert _drop_engine(found) == _drop_engine(expected)
    assert len(json.dumps(found)) > 5000


def _drop_engine(value: Any) -> Any:
    """Return a JSON value without the name of the engine."""
    if isinstance(value, dict):
        return {key: _drop_engine(item) for key, item in value.items() if key != "engine"}
    return [_drop_engine(item) for item in value] if isinstance(value, list) else value


@needs_spark
@pytest.mark.slow
def test_lines_for_python_do_not_fill_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit applies to the lines of all files together, and to local files that Spark cannot read."""
    text = wrap_log("AKSAudit", [json.dumps(event(auditID=f"{number}")) for number in range(20)])
    for number in range(3):
        (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
    monkeypatch.setattr("apflint.replay.spark_engine._MAX_PYTHON_BYTES", round(2.5 * len(text)))
    options = ["--isolated", "--engine", "spark", "--format", "json"]
    for source, message in (
        (tmp_path.as_uri(), "Spark cannot read 60 lines (1 MiB), most of them in file://"),
        (str(tmp_path), f"{tmp_path}/0.json: Spark cannot read the events of this file. Python reads at most 1 MiB"),
    ):
        assert run(["replay", source, *options]) == 2
        output = capsys.readouterr()
        assert message in output.err
        assert output.out == ""
    (tmp_path / "2.json").unlink()
    for source in (tmp_path.as_uri(), str(tmp_path)):
        assert replay_json(capsys, source, *options[:3])["log"]["requests"] == 20  # the files are copies


@needs_spark
@pytest.mark.slow
def test_missing_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "file:///no/such/audit.log", "--engine", "spark"]) == 2
    output = capsys.readouterr().err
    assert "file:///no/such/audit.log: Spark cannot list it: [PATH_NOT_FOUND]" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["s3a://bucket/audit.log"], "s3a://bucket/audit.log: only --engine spark reads s3a:// URLs"),
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


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.usefixtures("no_proxy")
def test_server_does_not_answer(unused_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is immediate, although PySpark alone would try to connect for more than 10 minutes."""
    remote = f"sc://127.0.0.1:{unused_port}"
    arguments = ["replay", "--engine", "spark", "file:///x.log", "--spark-remote", f"{remote}/;token=secret"]
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"apflint: cannot use the Spark server {remote}: Connection refused\n"


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_server_accepts_connections(family: socket.AddressFamily, host: str) -> None:
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("the machine has no IPv6")
    with server:
        server.settimeout(5)
        name = f"[{host}]" if ":" in host else host
        check_server(f"sc://{name}:{server.getsockname()[1]}/;use_ssl=true")
        server.accept()[0].close()


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError("timed out"), "timed out"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (UnicodeError("label too long"), "label too long"),
    ],
)
def test_connection_fails(error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = []

    def fail(address: tuple[str, int], seconds: float) -> None:
        addresses.append((*address, seconds))
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    with pytest.raises(UserError, match=f"^cannot use the Spark server sc://host: {reason}$"):
        check_server("sc://host")
    assert addresses == [("host", 15002, 10)]


def test_proxy_of_grpc(unused_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a proxy, no connection is tested, because the proxy may reach servers that this machine cannot reach."""
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "")
    remote = f"sc://127.0.0.1:{unused_port}"
    check_server(remote)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(UserError, match="Connection refused"):
        check_server(remote)


@pytest.mark.parametrize(
    "remote",
    [
        *(
            "http://host",
            "SC://host",
            "host:15002",
            "local[*]",
            "sc://",
            "sc://:15002",
            "sc:///;token=x",
            "sc://user@host",
        ),
        *("sc://host:port", "sc://host:0", "sc://host:65536", "sc://host:123456", "sc://host:1:2", "sc://host/path"),
        *("sc://[::1", "sc://::1", "sc://[host]", "sc://host;token=x", "sc://host ", "sc://host?token=x"),
    ],
)
def test_invalid_url_of_server(remote: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "--engine", "spark", "file:///x.log", "--spark-remote", remote]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is not a valid URL of a Spark server; use sc://HOST or sc://HOST:PORT" in line
    assert ";token" not in line
