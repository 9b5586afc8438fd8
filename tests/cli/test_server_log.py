"""kube-apiserver's own log in `apflint explain --event` and `apflint replay`."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from support.audit_logs import ENGINES, ROOT, event, write_log
from support.reading import read_effective

from apflint.cli.app import run
from apflint.output.console import Style, count_cells
from apflint.output.replay.server_log_report import report_server_log
from apflint.output.server_log_comparison import report_logged
from apflint.output.text import render
from apflint.replay.server_decisions import read_server_logs
from apflint.requests.server_log import parse_logged_request
from apflint.requests.server_log_comparison import LoggedComparer
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from syrupy.assertion import SnapshotAssertion

FIXTURES = ROOT / "fixtures" / "server-log"
LINES = (FIXTURES / "httplog.txt").read_text("utf-8").splitlines()
SERVER = ["-f", "objects.json", "--kubernetes", "1.36", "--server-concurrency", "30", "--isolated"]
BUILT_IN = ["-f", "defaults:1.36", "--isolated"]
OTHER = "I1123 16:48:35.496585    8743 controller.go:1] starting"
SOME = [
    next(line for line in LINES if 'apf_fs="reporting"' in line and "resp=429" in line),
    OTHER,
    next(line for line in LINES if 'verb="WATCH"' in line and "resp=429" in line),
    next(line for line in LINES if "resp=504" in line),
    next(line for line in LINES if "fl_priorityandfairness" in line and "resp=20" in line),
    '"HTTP" verb="GET" URI="/api/v1/pods" latency="1ms" resp=401',
    '"HTTP" verb="GET" URI="/api/v1/namespaces/a/pods/b/log" latency="1ms" resp=200',
    (
        '"HTTP" verb="POST" URI="/api/v1/namespaces/a/pods/b/eviction" latency="3ms" apf_pl="global-default"'
        ' apf_fs="global-default" apf_iseats=1 apf_fseats=4 apf_execution_time="2ms" resp=429'
    ),
]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Change to a directory with a log, and return its name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.log").write_text("\n".join(SOME) + "\n", encoding="utf-8")
    shutil.copy(FIXTURES / "objects.json", ".")
    return "server.log"


def test_explain(log: str, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--event", log, *SERVER, "--color", "never"]) == 0
    printed = capsys.readouterr()
    assert printed.out == snapshot
    assert printed.err == "apflint: 1 line of the log skipped: not about a request\n"


def test_explain_as_json(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--event", log, *SERVER, "--format", "json"]) == 0
    printed = capsys.readouterr()
    answers = [json.loads(line) for line in printed.out.splitlines()]
    assert printed.err == ""
    assert len(answers) == len(SOME) - 1
    rejected, watch, *_, eviction = answers
    assert rejected["user"] is None
    assert rejected["flowSchema"] is None
    assert "reporting" in rejected["possibleFlowSchemas"]
    assert rejected["disagreements"] == []
    assert rejected["logged"] == {
        "time": "11-23 16:37:47.203114",
        "auditID": "2a72afd1-52c7-4874-ad82-bc2c73ba7386",
        "userAgent": "report-builder/v3.1 client-go/v0.34.0",
        "flowSchema": "reporting",
        "priorityLevel": "reporting",
        "seats": 1,
        "finalSeats": 0,
        "wait": None,
        "rejected": True,
        "status": 429,
    }
    assert (watch["logged"]["wait"], watch["request"]["verb"]) == (15.000960636, "watch")
    assert (eviction["logged"]["rejected"], eviction["logged"]["finalSeats"]) == (False, 4)
    assert run(["schema", "explain-output"]) == 0
    schema = Draft202012Validator(json.loads(capsys.readouterr().out))
    for answer in answers:
        schema.validate(answer)


def test_replay(log: str, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", log, *SERVER]) == 0
    printed = capsys.readouterr()
    assert printed.out == snapshot
    assert printed.err == ""
    assert run(["replay", log, *SERVER, "--format", "markdown"]) == 0
    assert capsys.readouterr().out == snapshot


@pytest.mark.usefixtures("log")
def test_replay_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress("\n".join([OTHER, *LINES]).encode()))
    assert run(["replay", str(path), *SERVER, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["source"], report["requests"], report["otherLines"], report["files"]) == (
        "server-log",
        len(LINES),
        1,
        1,
    )
    levels = {(row["flowSchema"], row["priorityLevel"]): row for row in report["logged"]}
    assert report["logged"][0]["flowSchema"] == "reporting"
    for (schema, _), row in levels.items():
        of_schema = [line for line in LINES if f'apf_fs="{schema}"' in line]
        assert row["requests"] == len(of_schema)
        assert row["rejected"] == sum("resp=429" in line for line in of_schema)
    waiting = levels["service-accounts", "workload-low"]
    assert waiting["maxWait"] == waiting["p99Wait"] > 15
    assert waiting["maxSeats"] == 10
    (found,) = report["disagreements"]  # one decision was logged by a server with more seats
    assert found["message"].startswith("a watch takes at most ")
    assert report["disagreeing"] == found["requests"]
    assert (found["file"], LINES[found["line"] - 2].count('verb="WATCH"')) == (str(path), 1)


def test_text_fits_the_terminal() -> None:
    known = read_effective([str(FIXTURES / "objects.json")], server_concurrency=30, isolated=True)
    report = read_server_logs(find_audit_logs([str(FIXTURES / "httplog.txt")]), known, "objects.json")
    text = render(report_server_log(report), Style(width=80))
    assert all(count_cells(line) <= 80 or " " not in line.strip() for line in text.splitlines()), text
    comparer = LoggedComparer(known)
    for line in LINES:
        request = parse_logged_request(line)
        assert request is not None
        shown = render(report_logged(request, comparer.compare(request)), Style(width=80))
        assert all(count_cells(line) <= 80 for line in shown.splitlines()), shown


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--by", "user"], "--by"),
        (["--each"], "--each"),
        (["--where", "user=a"], "--where"),
        (["--since", "1h"], "--since"),
        (["--format", "html"], "--format html"),
        (["--compare", "defaults:1.30"], "--compare"),
    ],
)
def test_options_that_need_users(log: str, option: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", log, "--isolated", *option]) == 2
    error = capsys.readouterr().err
    assert error.startswith("apflint: server.log: this is kube-apiserver's own log, which does not name users.")
    assert named in error


@pytest.mark.parametrize("engine", ENGINES)
def test_line_among_audit_events(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(tmp_path / "audit.log", [event()])
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{SOME[0]}\n")
    assert run(["replay", str(path), "--isolated", "--engine", engine]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "audit.log:2: this line is from kube-apiserver's own log, which does not name users" in out


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize("option", ["--event", "--requests"])
def test_file_that_is_not_json_has_one_error(
    option: str, format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("a\nb\nc\n", encoding="utf-8")
    assert run(["explain", option, "notes.txt", "--format", format_]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "notes.txt: the file does not contain " in error
    assert "no line is JSON. Line 1: this is not JSON: Expecting value" in error


def test_file_with_some_json_has_an_error_for_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events").write_text(f"{json.dumps(event())}\nb\nc\n", encoding="utf-8")
    assert run(["explain", "--event", "events"]) == 2
    assert [line.split(": ")[1].rpartition(":")[2] for line in capsys.readouterr().err.splitlines()] == ["2", "3"]


def pipe_in(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_replay_of_standard_input(
    compress: Callable[[bytes], bytes], log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard input can be kube-apiserver's own log, as in `kubectl logs -n kube-system kube-apiserver-a | apflint replay -`."""
    assert run(["replay", log, *SERVER]) == 0
    expected = capsys.readouterr().out.replace(log, "<stdin>")
    pipe_in(compress(Path(log).read_bytes()), monkeypatch)
    assert run(["replay", "-", *SERVER]) == 0
    assert capsys.readouterr().out == expected


def test_beginning_of_a_stream_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(tmp_path / "audit.log", [event(auditID=str(number)) for number in range(500)])
    pipe_in(path.read_bytes(), monkeypatch)
    assert run(["replay", "-", *BUILT_IN]) == 0
    assert "500 events of 500 requests" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["text", "json"])
def test_lines_of_other_programs_are_counted(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.log").write_text(
        f"{SOME[0]}\ngoroutine 1 [running]\n\tmain.go:3\n{SOME[0]}\n", encoding="utf-8"
    )
    assert run(["explain", "--event", str(tmp_path / "server.log"), *BUILT_IN, "--format", output]) == 0
    printed = capsys.readouterr()
    assert "error" not in printed.out
    assert printed.err == ("" if output == "json" else "apflint: 2 lines of the log skipped: not about a request\n")


def test_deprecated_flags_come_before_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.log").write_text(f"Flag --x has been deprecated\n{SOME[0]}\n", encoding="utf-8")
    assert run(["explain", "--event", str(tmp_path / "server.log"), *BUILT_IN]) == 0
    assert capsys.readouterr().err == "apflint: 1 line of the log skipped: not about a request\n"


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_times_need_an_audit_log(option: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", log, option, "2026-01-01T00:00:00Z"]) == 2
    assert f"{option} needs an audit log" in capsys.readouterr().err


def test_load_needs_an_audit_log(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--from-audit", log, *BUILT_IN]) == 2
    assert "which does not name users; an audit log is required. To show the decisions" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["text", "json"])
def test_compressed_audit_log_is_explained(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(tmp_path / "audit.log", [event()])
    (tmp_path / "audit.log.gz").write_bytes(gzip.compress(path.read_bytes()))
    answers = set()
    for name in ("audit.log", "audit.log.gz"):
        assert run(["explain", "--event", str(tmp_path / name), *BUILT_IN, "--format", output]) == 0
        answers.add(capsys.readouterr().out)
    assert len(answers) == 1


@pytest.mark.parametrize("output", ["text", "json"])
def test_log_with_some_lines_that_are_not_json(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If only some lines are not JSON, these lines are reported, and the file is still read as an audit log."""
    path = write_log(tmp_path / "audit.log", [event(), event()])
    with path.open("a", encoding="utf-8") as file:
        file.write("a\nb\n")
    assert run(["explain", "--event", str(path), *BUILT_IN, "--format", output]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [error.split(": ")[1].rsplit(":", 1)[1] for error in errors] == ["3", "4"]


@pytest.mark.parametrize("output", ["text", "json"])
def test_json_of_another_program_is_one_error(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.log").write_text('{"level": "info", "msg": "a"}\n' * 3, encoding="utf-8")
    assert run(["explain", "--event", str(tmp_path / "app.log"), *BUILT_IN, "--format", output]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert (
        "app.log: the file does not contain audit events or lines of kube-apiserver's own log: no line is an audit event. Line 1:"
        in error
    )
