"""Logs with damaged and valid parts: all engines read the valid events, and count and report the damaged parts."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING

import pytest
from support.audit_logs import ENGINES, event, needs_duckdb, replay_json

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path


def lines(*numbers: int) -> bytes:
    """Return a line for each request."""
    return b"".join(json.dumps(event(auditID=f"{number:036}")).encode() + b"\n" for number in numbers)


A, B = lines(1, 2), lines(3)
DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000
ODD_NUMBERS = b'"x":[1e999,-0,NaN,' + b"1" * 5000 + b"]}\n"


def archive() -> bytes:
    """Return a compressed tar archive with a log."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archived:
        member = tarfile.TarInfo("audit.log")
        member.size = len(A)
        archived.addfile(member, io.BytesIO(A))
    return file.getvalue()


LOGS = {
    "cut at the end": (A + B[:100], 2, 1, 3),
    "no line end": ((A + B)[:-1], 3, 0, None),
    "byte order mark": (b"\xef\xbb\xbf" + A, 2, 0, None),
    "byte order mark inside": (A + b"\xef\xbb\xbf" + B, 2, 1, 3),
    "CRLF": ((A + b"{x\n" + B).replace(b"\n", b"\r\n"), 3, 1, 3),
    "UTF-16": (A.decode().encode("utf-16"), 0, 3, 1),
    "UTF-16 between": (A + A.decode().encode("utf-16-le") + b"\n" + B, 3, 3, 3),
    "NUL line": (A + bytes(10) + b"\n" + B, 3, 1, 3),
    "NUL after an event": (A + B[:-1] + bytes(10) + b"\n", 2, 1, 3),
    "NUL at the end": (A + bytes(5000), 2, 1, 3),
    "NUL before an event": (A + bytes(5000) + B, 2, 1, 3),
    "Latin 1": (A + B.replace(b"alice", b"\xe9"), 2, 1, 3),
    "surrogate": (A + B.replace(b"kubectl", b"\\ud800"), 2, 1, 3),
    "deep nesting": (A + DEEP + b"\n" + B, 3, 1, 3),
    "odd numbers": (A + B[:-2] + b"," + ODD_NUMBERS, 3, 0, None),
    "two events in a line": (A + B[:-1] + B, 2, 1, 3),
    "form feed": (A + b"\f\n" + B, 3, 0, None),
    "form feeds around an event": (A + b"\f\v" + B[:-1] + b" \f\n", 3, 0, None),
    "form feed inside an event": (A + B.replace(b"{", b"{\f", 1), 2, 1, 3),
    "trailing comma in an object": (A + B[:-2] + b", \t}\n", 3, 0, None),
    "trailing comma in a list": (A + B[:-2] + b',"x":[1 ,\t]}\n', 3, 0, None),
    "two trailing commas": (A + B[:-2] + b",,}\n", 2, 1, 3),
    "comma in an empty list": (A + B[:-2] + b',"x":[,]}\n', 2, 1, 3),
    "lowercase names of numbers": (A + B[:-2] + b',"x":[nan,-inf,{"y":Infinity}]}\n', 3, 0, None),
    "unknown name of a number": (A + B[:-2] + b',"x":[nano]}\n', 2, 1, 3),
    "deep field": (A + B[:-2] + b',"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n", 3, 0, None),
    "incomplete deep field": (A + B[:-2] + b',"x":' + b"[" * 50_000 + b"]" * 49_999 + b"}\n", 2, 1, 3),
    "surrogate after a trailing comma": (A + B[:-2] + b',"x":"\\ud800",}\n', 2, 1, 3),
    "timestamps": (A + b"2026-11-22T05:49:20Z " + B + b"2026-11-22T05:49:20Z\n", 3, 1, 4),
    "other kinds": (A + b'{"kind":"Policy","apiVersion":"audit.k8s.io/v1"}\n{"kind":"EventList"}\n' + B, 3, 2, 3),
    "empty list": (A + b'{"kind":"EventList","items":[]}\n' + B, 3, 0, None),
    "list with other values": (A + b'{"items":[5,null,' + B[:-1] + b"]}\n", 3, 2, 3),
    "audit ID is a number": (A + json.dumps(event(auditID=7)).encode() + b"\n" + B, 3, 1, 3),
    "URI is a number": (A + json.dumps(event(requestURI=7)).encode() + b"\n" + B, 3, 1, 3),
    "sign within a time": (A + B.replace(b"20.000000Z", b"20.-00000Z") + B, 3, 1, 3),
    "letter within a time": (A + B.replace(b"20.000000Z", b"20.00000xZ") + B, 3, 1, 3),
    "several compressed parts": (gzip.compress(A) + gzip.compress(b"") + gzip.compress(B), 3, 0, None),
    "bad line in compressed data": (gzip.compress(A + b"{\n" + B), 3, 1, 3),
    "tar archive": (archive(), 1, 2, 1),
}
"""Logs as bytes, each with the expected number of events, number of unreadable lines, and first unreadable line."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOGS)
def test_good_events_of_a_damaged_log(
    name: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, events, unreadable, first = LOGS[name]
    (tmp_path / "audit.log").write_bytes(data)
    report = replay_json(capsys, tmp_path / "audit.log", "--engine", engine, code=0 if events else 2)
    assert (report["classified"], report["unreadable"]) == (events, unreadable)
    assert first == (report["firstUnreadable"] or {"line": None})["line"]
    assert report["damagedFiles"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("data", "events", "reason"),
    [
        (gzip.compress(A) + b"garbage", 2, "the gzip data is damaged"),
        (gzip.compress(A) + bytes(512), 2, "the gzip data is damaged"),
        (gzip.compress(A) + gzip.compress(B)[:30], 2, "the gzip data ends too early"),
        (gzip.compress(A)[:-1], 2, "the gzip data ends too early"),
        (gzip.compress(A)[:5], 0, "the gzip data ends too early"),
    ],
    ids=["text after", "NUL after", "second part cut", "last byte cut", "only a header"],
)
def test_good_events_of_a_damaged_file(
    data: bytes, events: int, reason: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "audit.log.gz").write_bytes(data)
    report = replay_json(capsys, tmp_path / "audit.log.gz", "--engine", engine, code=2)
    assert report["classified"] == events
    (place,) = report["damagedFiles"]
    assert place["reason"].startswith(reason)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("first", "events"), [(A, 2), (b"", 0)], ids=["second part cut", "only a header"])
def test_cut_zstandard_data(
    first: bytes, events: int, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compress = pytest.importorskip("zstandard").compress
    (tmp_path / "audit.log.zst").write_bytes((compress(first) if first else b"") + compress(B)[:12])
    report = replay_json(capsys, tmp_path / "audit.log.zst", "--engine", engine, code=2)
    assert report["classified"] == events
    (place,) = report["damagedFiles"]
    assert place["reason"].startswith("the Zstandard data ends too early")


@pytest.mark.parametrize("engine", ENGINES)
def test_one_damaged_file_hides_no_other(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in {
        "a.log": A,
        "b.log.gz": gzip.compress(B)[:40],
        "c.log": b"\xff\xfe",
        "d.log": b"",
        "e.txt": b"This directory has audit logs.\n",
        "f.bin": lines(9),
        "g.log.gz": lines(3),
    }.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "h.log").symlink_to("h.log")
    (tmp_path / "i.log").symlink_to("missing")
    os.mkfifo(tmp_path / "j.log")
    report = replay_json(capsys, tmp_path, "--engine", engine, code=2)
    assert (report["files"], report["classified"], report["unreadable"]) == (6, 3, 2)
    assert [place["file"] for place in report["damagedFiles"]] == [str(tmp_path / "b.log.gz")]


@pytest.mark.parametrize("engine", ENGINES)
def test_file_that_vanishes(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from apflint.cli import replay_answers
    from apflint.sources.found_logs import NO_LOGS, find_logs

    (tmp_path / "a.log").write_bytes(A)
    (tmp_path / "b.log").write_bytes(B)
    files = find_logs([str(tmp_path)])
    (tmp_path / "b.log").unlink()
    monkeypatch.setattr(replay_answers, "find_logs", lambda paths, **_options: files if paths else NO_LOGS)
    report = replay_json(capsys, tmp_path, "--engine", engine, code=2)
    assert report["classified"] == 2
    (place,) = report["damagedFiles"]
    assert place["reason"] == "The file was removed, probably by log rotation."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.symlink_to(path), "Symbolic link that refers back to itself."),
        (lambda path: path.symlink_to("missing"), "Symbolic link to something that does not exist."),
        (
            os.mkfifo,
            "this is not a regular file. To read the output of a command, pipe the output to apflint, and name the file `-`.",
        ),
    ],
    ids=["loop", "dangling link", "named pipe"],
)
def test_path_that_is_not_a_file(
    make: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.log"
    assert callable(make)
    make(path)
    assert run(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"apflint: {path}: {message}\n"


@needs_duckdb
def test_too_little_memory_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audit.log").write_bytes(A)
    assert run(["replay", "--isolated", "--engine", "duckdb", "--memory", "1MB", str(tmp_path / "audit.log")]) == 2
    assert capsys.readouterr().err == "apflint: DuckDB needs more memory: increase --memory\n"
