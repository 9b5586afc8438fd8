"""`apflint replay`: its report, its options, and audit logs that are damaged, mixed or not audit logs."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, FIXTURES, event, needs_duckdb, replay_each, replay_json, write_log
from support.hostile_lines import BAD_LINES

from apflint.budgets import MAX_FILE_BYTES
from apflint.cli.app import run
from apflint.replay import python_engine
from apflint.sources import audit_logs, file_reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

LIVE = FIXTURES / "live"


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(LIVE)
    command = [
        "replay",
        "audit.log.gz",
        "-f",
        "objects-begin.json",
        "--server-concurrency",
        "20+10",
        "--by",
        "flow,verb",
    ]
    assert run([*command, "--kubernetes", "1.36", "--top", "2", "--isolated"]) == 0
    assert capsys.readouterr().out == snapshot


HINT = ". Name the objects of your cluster with -f, --live or --cluster."


@pytest.mark.parametrize(
    ("arguments", "description", "hint"),
    [
        ([], "the current directory (37 objects) and built-in objects of 1.37", ""),
        (["-f", "defaults:1.36"], "built-in objects of 1.36", HINT),
        (
            ["-f", "empty.yaml", "-f", "begin.json"],
            "empty.yaml and begin.json (37 objects) and built-in objects of 1.37",
            "",
        ),
        (["-f", "begin.json"], "begin.json (37 objects) and built-in objects of 1.37", ""),
        (
            ["-f", "begin.json", "--no-defaults"],
            "begin.json (37 objects), without the other built-in objects of 1.37",
            "",
        ),
        (["--config", "one.toml"], "cluster:prod (37 objects) and built-in objects of 1.37", ""),
    ],
)
def test_report_names_the_configuration(
    arguments: list[str], description: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "begin.json").write_bytes((LIVE / "objects-begin.json").read_bytes())
    (tmp_path / "one.toml").write_text('[[cluster]]\nname = "prod"\npaths = ["begin.json"]\n', encoding="utf-8")
    (tmp_path / "empty.yaml").touch()
    log = write_log(tmp_path / "audit.log", [event()])
    check_configuration(capsys, log, arguments, description, hint)


@pytest.mark.parametrize(
    ("arguments", "description"),
    [
        ([], "built-in objects of 1.37; no objects in the current directory"),
        (
            ["--no-defaults"],
            "mandatory objects, without the other built-in objects of 1.37; no objects in the current directory",
        ),
    ],
)
def test_report_states_that_the_current_directory_has_no_objects(
    arguments: list[str], description: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit log in the current directory does not count as a manifest."""
    log = write_log(tmp_path / "audit.json", [event()])
    check_configuration(capsys, log, arguments, description, HINT)


def check_configuration(
    capsys: pytest.CaptureFixture[str], log: Path, arguments: list[str], description: str, hint: str
) -> None:
    """Assert that all formats name the configuration, and that the formats for people also contain the hint."""
    for form in ("text", "markdown", "html"):
        assert run(["replay", str(log), *arguments, "--format", form]) == 0
        printed = capsys.readouterr().out.replace("`", "").replace("\\", "")
        assert f"Configuration: {description}{hint}" in printed
        assert (HINT in printed) == bool(hint)
    report = replay_json(capsys, log, *arguments)
    assert list(report)[:2] == ["schema", "configuration"]
    assert report["configuration"] == description
    assert {line["configuration"] for line in replay_each(capsys, log, *arguments)} == {description}


MISSING = "no FlowSchema and no PriorityLevelConfiguration"


@pytest.mark.parametrize("option", ["-f", "--compare"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("m/pod.yaml", f"m/pod.yaml: {MISSING} found"),
        ("m/broken.yaml", f"m/broken.yaml: {MISSING} found"),
        ("m/own.yaml", f"m/own.yaml: {MISSING} found. Some manifests have errors: `apflint check` shows the errors."),
        ("audit.log", f"audit.log: {MISSING} found"),
        ("m/empty", f"m/empty: {MISSING} found"),
        ("-", f"<stdin>: {MISSING} found"),
        ("m/chart.yaml", f"m/chart.yaml: {MISSING} found. The manifests are templates: render them first."),
    ],
)
def test_manifests_without_objects_are_an_error(
    path: str,
    message: str,
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chart = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: {{ .Values.name }}}\n"
    (tmp_path / "m/empty").mkdir(parents=True)
    # This setting does not exclude files that the command names.
    (tmp_path / "apflint.toml").write_text('exclude = ["m/*.yaml"]\n', encoding="utf-8")
    (tmp_path / "m/pod.yaml").write_text("kind: Pod\napiVersion: v1\n", encoding="utf-8")
    (tmp_path / "m/broken.yaml").write_text("a: [\n", encoding="utf-8")
    (tmp_path / "m/own.yaml").write_text(chart.replace("{{ .Values.name }}", "["), encoding="utf-8")
    (tmp_path / "m/chart.yaml").write_text(chart, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", "audit.log", option, path]) == 2
    assert capsys.readouterr() == ("", f"apflint: {message}\n")


def at(second: float) -> str:
    return datetime.fromtimestamp(1795326560 + second, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def request(number: int, start: float, end: float, **changes: Any) -> dict[str, Any]:
    audit_id = f"{number:08}-0000-0000-0000-000000000000"
    return event(auditID=audit_id, requestReceivedTimestamp=at(start), stageTimestamp=at(end), **changes)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_of_a_level(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wait = {"authorization.k8s.io/decision": "allow", "apiserver.latency.k8s.io/apf-queue-wait": "1.5s"}
    log = write_log(
        tmp_path / "audit.log",
        [
            request(1, 0, 10),
            request(2, 5, 7.5, annotations=wait),
            request(3, 10, 11),  # starts when request 1 ends
            request(4, 6, 6.5, responseStatus={"code": 429}, annotations=None),
            request(5, 0, 20, verb="watch", requestURI="/api/v1/namespaces/team-a/pods?watch=1"),
            # A PodDisruptionBudget refuses an eviction with 429, too. This is not a rejection by APF.
            request(6, 6, 6.1, verb="create", responseStatus={"code": 429}),
        ],
    )
    (level,) = replay_json(capsys, log, "--engine", engine)["levels"]
    assert level["name"] == "global-default"
    assert (level["requests"], level["rejected"]) == (6, 1)
    assert level["waits"] == {"count": 1, "p50": 1.5, "p99": 1.5, "max": 1.5}
    assert level["durations"] == {"count": 4, "p50": 1.0, "p99": 10.0, "max": 10.0}
    assert level["seatSeconds"] == pytest.approx(10 + 1 + 1 + 0.1)
    assert level["peaks"] == [{"server": str(tmp_path / "audit"), "seats": 2, "time": at(6)}]
    assert [user["user"] for user in level["topUsers"]] == ["alice"]
    assert sum(level["requestsOverTime"]) == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_open_watch_counts_once(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = {"verb": "watch", "requestURI": "/api/v1/namespaces/team-a/pods?watch=1"}
    log = write_log(
        tmp_path / "audit.log",
        [
            *(request(1, 0, 1, stage=stage, **watch) for stage in ("RequestReceived", "ResponseStarted")),
            *(
                request(2, 0, end, stage=stage, **watch)
                for end, stage in ((1, "ResponseStarted"), (9, "ResponseComplete"))
            ),
        ],
    )
    report = replay_json(capsys, log, "--engine", engine)
    assert (report["events"], report["requests"], report["watches"]) == (4, 2, 2)
    assert report["levels"][0]["peaks"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_since_and_until(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [request(number, number, number + 0.5) for number in range(10)])
    report = replay_json(capsys, log, "--since", at(3), "--until", at(5), "--engine", engine)
    assert (report["requests"], report["start"], report["end"]) == (2, at(3), at(4.5))


@pytest.mark.parametrize("engine", ENGINES)
def test_header_with_a_filter(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "audit.log", [request(number, number, number + 0.5) for number in range(10)])
    command = ["replay", "audit.log", "--isolated", "--engine", engine, "--since", at(3)]
    assert run([*command, "--until", at(5)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = "1 file, 1 API server: 10 events of 10 requests"
    start = lines.index(first)
    since = "Only requests since 2026-11-22 05:49:23 UTC"
    period = "2026-11-22 05:49:23 to 05:49:24 UTC (1.5 s)"
    assert lines[start + 3] == f"{since} and before 2026-11-22 05:49:25 UTC: 2 requests, {period}"
    assert run([*command, "--where", "user=bob"]) == 0
    lines = capsys.readouterr().out.splitlines()
    covered = "the log covers 2026-11-22 05:49:20 to 2026-11-22 05:49:29 UTC"
    assert lines[lines.index(first) + 3] == f"{since} and with user=bob: no request is selected; {covered}"


def test_singular_and_empty_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wait = {"authorization.k8s.io/decision": "allow", "apiserver.latency.k8s.io/apf-queue-wait": "1s"}
    anonymous = request(1, 0, 2, annotations=wait, user={"username": "", "groups": ["system:authenticated"]})
    log = write_log(tmp_path / "audit.log", [anonymous])
    assert run(["replay", str(log), "--isolated"]) == 0
    printed = capsys.readouterr().out
    assert "1 event of 1 request, " in printed
    assert "1 is known to have waited in queues" in printed
    assert "Executed seat-seconds: - 100%" in printed
    assert re.search(r"  - 100% +global-default", printed)


def test_long_names_do_not_widen_the_table_of_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event(userAgent="x" * 300)])
    assert run(["replay", str(log), "--isolated", "--by", "userAgent"]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("xxx"))
    assert row.startswith(f"{'x' * 99}\u2026  ")
    assert replay_json(capsys, log, "--by", "userAgent")["by"]["groups"][0]["userAgent"] == "x" * 300


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("user", {("alice",): 2, ("bob",): 1}),
        ("group", {("dev",): 2, ("system:authenticated",): 3, ("ops",): 1}),
        ("userAgent,verb", {("kubectl/v1.36.0", "list"): 2, ("x", "list"): 1}),
        ("resource,namespace", {("pods", "team-a"): 2, ("pods", "team-b"): 1}),
        ("flowSchema,priorityLevel,status", {("global-default", "global-default", "200"): 3}),
        ("flow", {("global-default alice",): 2, ("global-default bob",): 1}),
    ],
)
def test_breakdown(
    by: str, expected: dict[tuple[str, ...], int], engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bob = {
        "user": {"username": "bob", "groups": ["ops", "system:authenticated"]},
        "userAgent": "x",
        "requestURI": "/api/v1/namespaces/team-b/pods",
        "objectRef": {"resource": "pods", "namespace": "team-b", "apiVersion": "v1"},
    }
    log = write_log(tmp_path / "audit.log", [request(1, 0, 1), request(2, 0, 1), request(3, 0, 1, **bob)])
    breakdown = replay_json(capsys, log, "--by", by, "--engine", engine)["by"]
    names = by.split(",")
    assert {tuple(group[name] for name in names): group["requests"] for group in breakdown["groups"]} == expected
    assert breakdown["total"] == len(expected)


GOOD = json.dumps(event(), separators=(",", ":"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
def test_bad_line_is_counted_and_shown(
    line: str, reason: str | None, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "audit.log"
    log.write_text(f"{GOOD}\n{line}\n{GOOD.replace('1111', '2222')}\n", encoding="utf-8")
    report = replay_json(capsys, log, "--engine", engine)
    assert report["classified"] == 2
    if reason is None:
        assert (report["unreadable"], report["firstUnreadable"]) == (0, None)
        return
    first = report["firstUnreadable"]
    assert report["unreadable"] == (2 if line == "[1, 2]" else 1)
    assert (first["file"], first["line"]) == (str(log), 2)
    assert first["reason"].startswith(reason)
    if engine == "python":  # one engine is enough, because all engines print the same text
        assert run(["replay", str(log), "--engine", engine]) == 0
        assert f"First: {log}:2: {reason}"[:60] in capsys.readouterr().out


@pytest.mark.parametrize("engine", ENGINES)
def test_binary_file_has_no_events(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_bytes(bytes(range(256)) * 100)
    report = replay_json(capsys, "x.log", "--engine", engine, code=2)
    assert report["requests"] == 0
    assert report["unreadable"] == 101
    assert report["firstUnreadable"]["line"] == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_log_is_an_error(content: bytes, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audit.log").write_bytes(content)
    assert run(["replay", "audit.log", "--engine", engine]) == 2
    printed = capsys.readouterr()
    assert printed.err == "apflint: no audit event in the log\n"
    assert printed.out.startswith("1 file, 1 API server: 0 events of 0 requests\n")


def compressed(suffix: str, data: bytes) -> bytes:
    if suffix == "gz":
        return gzip.compress(data)
    return bytes(pytest.importorskip("zstandard").compress(data))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_damaged_compressed_log(
    damage: str, suffix: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = random.Random(1)
    lines = b"".join(f"{GOOD.replace('11111111', numbers.randbytes(4).hex())}\n".encode() for _ in range(20_000))
    data = bytearray(compressed(suffix, lines))
    if damage == "truncated":
        del data[len(data) * 3 // 4 :]
    else:
        data[len(data) * 3 // 4 : len(data) * 3 // 4 + 200] = bytes(200)
    (tmp_path / f"audit.log.{suffix}").write_bytes(data)
    report = replay_json(capsys, f"audit.log.{suffix}", "--engine", engine, code=2)
    (place,) = report["damagedFiles"]
    assert place["file"] == f"audit.log.{suffix}"
    assert ("ends too early" if damage == "truncated" else "damaged") in place["reason"]
    assert place["line"] > 5_000  # not exact, because the damaged part may contain line ends
    assert 5_000 < report["classified"] < 20_000


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_concatenated_compressed_logs(
    suffix: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [write_log(tmp_path / "x", [request(number, 0, 1)]).read_bytes() for number in range(3)]
    (tmp_path / "unusual-name").write_bytes(b"".join(compressed(suffix, part) for part in parts))
    assert replay_json(capsys, "unusual-name", "--engine", engine)["classified"] == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_very_long_line_is_skipped(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = json.dumps(event(requestObject="x" * (MAX_FILE_BYTES + 1)))
    medium = json.dumps(event(auditID="a", requestObject="x" * (MAX_FILE_BYTES // 2)))
    (tmp_path / "audit.log").write_text(f"{GOOD}\n{long}\n{medium}\n{long}", encoding="utf-8")
    report = replay_json(capsys, "audit.log", "--engine", engine)
    assert (report["classified"], report["unreadable"]) == (2, 2)
    assert report["firstUnreadable"] == {"file": "audit.log", "line": 2, "reason": "the line is longer than 32 MiB"}


@pytest.mark.parametrize("by", ["user", "namespace"])
@pytest.mark.parametrize("number", [1, 2, 50, 99, 100])
def test_number_of_an_unreadable_line_in_a_long_file(
    number: int, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(file_reading, "_CHUNK_BYTES", 2000)
    lines = [GOOD if place % 2 else GOOD.replace("ResponseComplete", "RequestReceived") for place in range(99)]
    lines.insert(number - 1, "{}")
    (tmp_path / "audit.log").write_text("\n".join(lines), encoding="utf-8")
    report = replay_json(capsys, "audit.log", "--by", by)
    assert report["unreadable"] == 1
    assert report["firstUnreadable"]["line"] == number


@pytest.mark.parametrize("engine", ENGINES)
def test_time_that_runs_backwards(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "audit.log", [request(1, 5, 6), request(2, 3, 1), request(3, 0, 1)])
    report = replay_json(capsys, "audit.log", "--engine", engine)
    assert (report["endBeforeStart"], report["start"], report["end"]) == (1, at(0), at(6))
    assert report["levels"][0]["durations"]["count"] == 2
    assert run(["replay", "audit.log", "--engine", engine]) == 0
    assert (
        "The clock was changed: 1 request with an end before the start. The duration of such a request is unknown."
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_of_events_are_omitted(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same_id = request(1, 5, 6)  # another request with the same ID, which clients may choose
    write_log(tmp_path / "audit.log", [request(1, 0, 1), same_id])
    write_log(tmp_path / "audit-2026-11-22T05-49-20.098.log", [request(1, 0, 1), request(2, 0, 1)])
    report = replay_json(capsys, ".", "--engine", engine)
    assert (report["files"], report["classified"], report["duplicateEvents"]) == (2, 3, 1)
    assert len(report["servers"]) == 1


def test_rotated_file_is_found_by_its_inode(tmp_path: Path) -> None:
    write_log(tmp_path / "audit.log", [request(1, 0, 1)])
    (file,) = audit_logs.find_audit_logs(["audit.log"])
    os.rename("audit.log", "audit-2026-11-22T05-49-20.098.log")
    write_log(tmp_path / "audit.log", [request(2, 0, 1)])
    (block,) = audit_logs.read_blocks(file)
    assert b"00000001-" in block.data
    os.unlink("audit-2026-11-22T05-49-20.098.log")
    (block,) = audit_logs.read_blocks(file)
    assert block.is_file_problem
    assert block.problem == "The file was removed, probably by log rotation."


def test_directories_patterns_and_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("a.log", "b.log.1", "c-2026-11-22T05-49-20.098.log", "notes.md", ".d.log")):
        write_log(tmp_path / name, [request(number, 0, 1)])
    os.link("a.log", "e.log")
    assert replay_json(capsys, ".")["files"] == 3
    assert replay_json(capsys, "*.log", "a.log")["files"] == 2
    (tmp_path / "[x].log").write_text(GOOD, encoding="utf-8")
    assert replay_json(capsys, "[x].log")["files"] == 1


@needs_duckdb
def test_names_with_patterns_are_read_literally_by_duckdb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "a'*.log", [request(1, 0, 1)])
    write_log(tmp_path / "a'b.log", [request(2, 0, 1)])
    assert replay_json(capsys, "a'*.log", "--engine", "duckdb")["classified"] == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(f"{GOOD}\n".encode()))))
    (line,) = replay_each(capsys, "-")
    assert line == {
        "schema": 1,
        "configuration": "built-in objects of 1.37; no objects in the current directory",
        "auditID": "11111111-0000-0000-0000-000000000000",
        "flowSchema": "global-default",
        "priorityLevel": "global-default",
        "distinguisher": "alice",
        "seats": 1,
        "wait": None,
        "rejected": False,
    }


def test_interrupted_reading_gives_a_partial_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_blocks(file: audit_logs.AuditLogFile, report: Callable[[int], None]) -> Iterator[audit_logs.Block]:
        yield next(audit_logs.read_blocks(file, report))
        raise KeyboardInterrupt

    write_log(tmp_path / "audit.log", [request(1, 0, 1)])
    monkeypatch.setattr(python_engine, "read_blocks", read_blocks)
    assert run(["replay", "audit.log"]) == 130
    printed = capsys.readouterr()
    assert printed.out.startswith("PARTIAL RESULT: reading was interrupted.\n")
    assert "global-default" in printed.out
    assert printed.err == "apflint: interrupted: the result is partial\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.log"], "missing.log: No such file or directory."),
        (["*.none"], "*.none: no file matches this pattern"),
        (["."], ".: this directory has no file of an audit log, such as audit.log or audit.log.gz"),
        (
            ["/dev/null"],
            "/dev/null: this is not a regular file. To read the output of a command, pipe the output to apflint, and name the file `-`.",
        ),
        (["x", "--by", "users"], '--by: unknown dimension "users": use user, group'),
        (["x", "--where", "users=a"], '--where: unknown dimension "users": use user, group'),
        (["x", "--where", "alice"], '--where: "alice" is not a condition such as user=alice or verb!=watch'),
        (["x", "--where", "user=\udc80"], '--where: "user=\\udc80" has an unprintable character'),
        (["x", "--by", "user", "--each"], "--each and --by cannot be combined"),
        (["x", "--each", "--format", "html"], "--each and --format html cannot be combined"),
        (["x", "--each", "--format", "markdown"], "--each and --format markdown cannot be combined"),
        (["x", "--by", "user,verb,user"], "--by: user occurs twice"),
        (["x", "--by", ","], '--by: "," contains no dimension'),
        (["x", "--since", at(1), "--until", at(1)], "--since must be before --until"),
        (["x", "--since", "1h", "--until", "2h"], "--since must be before --until"),
        (["x", "--since", "yesterday"], '--since: "yesterday" is not a time such as 2026-'),
        (
            ["x", "--until", "1h30"],
            '--until: "1h30" is not a time such as 2026-11-22T05:49:20Z, or a duration such as 90m',
        ),
        (["x", "--until", ""], "--until is empty"),
        (["x", "--live", "--cluster", "prod"], "--live and --cluster cannot be combined"),
        (["x", "--kubeconfig", "x"], "--kubeconfig requires --live"),
        (["-", "-f", "-"], "standard input cannot be both the manifests and the audit log"),
        (["x", "--top", "-1"], "--top must be at least 1"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"apflint: {message}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", ["much", "0MB", "256", "1_0MB", "-1GB", "1e9MB", "."])
def test_wrong_memory(engine: str, size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid value is an error with every engine, even with engines that do not use the value."""
    write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", "audit.log", "--engine", engine, "--memory", size]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f'"{size}" is not a size such as 256MB or 4GB' in err


@needs_duckdb
@pytest.mark.parametrize("size", ["256MB", "0.5 gib", "1TB", "300m", "30%"])
def test_memory_that_duckdb_accepts(size: str, tmp_path: Path) -> None:
    write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", "audit.log", "--engine", "duckdb", "--memory", size]) == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--since", "0001-01-01"], 2),
        (["--until", "9999-12-31T23:59:59Z"], 2),
        (["--since", "1969-12-31T23:59:59Z"], 2),
        (["--since", "800000d"], 0),
        (["--until", "99999999999999999d"], 0),
        (["--by", "user", "--top", "99999999999999999999"], 0),
        (["--baseline", "99999999999999999d", "--since", "0s"], 2),
        (["--baseline", "0001-01-01/0001-01-02"], 2),
    ],
)
def test_extreme_numbers(
    engine: str, arguments: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers beyond the range of times or of SQL integers give a result or an error message, but never a crash."""
    write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", "audit.log", "--engine", engine, *arguments]) == code
    assert "internal error" not in capsys.readouterr().err
