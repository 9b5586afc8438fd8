"""Compressed files that become very large, and logs that are not audit logs.

Reading ends early, and the report says so.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from limited import apflint
from support.replayed_logs import recorded_lines

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

NO_EVENTS = "more than 100,000 consecutive lines are not audit events: the rest of the file is not read"
EXPANSION = "expands to more than 1,000 times its size: the rest of the file is not read"
MILLION = 1_000_000


def fill(path: Path, start: bytes, piece: bytes, size: int, end: bytes = b"") -> Path:
    """Write a gzip file whose content has about `size` bytes."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        many = piece * (MILLION // len(piece))
        for _ in range(size // len(many)):
            file.write(many)
        file.write(end)
    return path


def run_length_zstandard(byte: bytes, megabytes: int) -> bytes:
    """Return a Zstandard frame that repeats a byte. Each block has four bytes, and becomes 128 KiB (RFC 8878, 3.1.1.2)."""
    blocks = megabytes * 8
    block = (1 << 1 | (128 * 1024) << 3).to_bytes(3, "little") + byte
    last = (1 | 1 << 1 | (128 * 1024) << 3).to_bytes(3, "little") + byte
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (blocks - 1) + last


@pytest.mark.parametrize("piece", [b"\n", b'{"a":1}\n', b"garbage\n"])
def test_log_without_events(piece: bytes, tmp_path: Path) -> None:
    fill(tmp_path / "audit.log.gz", b"", piece, 100 * MILLION)
    run = apflint(tmp_path, "replay", "--isolated", "--format", "json", "audit.log.gz", seconds=5)
    assert [place["reason"] for place in json.loads(run.out)["damagedFiles"]] == [NO_EVENTS]
    assert NO_EVENTS in run.err
    assert run.status == 2


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("piece", [b"\n", b'{"a":1}\n', b"garbage\n"])
def test_explaining_a_log_without_events(piece: bytes, output: str, tmp_path: Path) -> None:
    fill(tmp_path / "audit.log.gz", b"", piece, 100 * MILLION)
    run = apflint(tmp_path, "explain", "--event", "audit.log.gz", "--isolated", "--format", output)
    assert run.err.startswith("apflint: audit.log.gz:")
    assert len(run.err.splitlines()) == 1
    assert run.status == 2


@pytest.mark.parametrize("output", ["text", "json"])
def test_explaining_one_line_of_250_megabytes(output: str, tmp_path: Path) -> None:
    fill(tmp_path / "audit.log.gz", b'{"a":"', b"x", 250 * MILLION, b'"}\n')
    run = apflint(tmp_path, "explain", "--event", "audit.log.gz", "--isolated", "--format", output)
    assert "longer than 32 MiB" in run.err
    assert run.status == 2


@pytest.mark.parametrize("output", ["text", "json"])
def test_memory_does_not_grow_with_a_log(output: str, tmp_path: Path) -> None:
    """The log has 200 MB of equal events, because different events would take three times as long."""
    line = json.dumps(
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "verb": "list",
            "requestURI": "/api/v1/pods",
            "user": {"username": "alice", "groups": ["system:authenticated"]},
            "userAgent": "x" * 20_000,
        }
    )
    (tmp_path / "audit.log").write_text(f"{line}\n" * 10_000)
    run = apflint(tmp_path, "explain", "--event", "audit.log", "--isolated", "--format", output, seconds=4)
    assert run.out.count("global-default") >= 10_000
    assert run.status == 0


def test_one_value_of_250_megabytes(tmp_path: Path) -> None:
    fill(tmp_path / "audit.json.gz", b"[\n", b'{"a":[1,2,3]},\n', 249 * MILLION, b"{}]\n")
    run = apflint(tmp_path, "replay", "--isolated", "--format", "json", "audit.json.gz", seconds=5)
    assert NO_EVENTS in run.err
    assert run.status == 2


@pytest.mark.parametrize("lines", [1, 2])
def test_a_value_with_ten_million_parts(lines: int, tmp_path: Path) -> None:
    """When parsed, ten million empty lists need 20 times as much memory as their text."""
    (tmp_path / "audit.json").write_bytes(b"[" + b"\n" * (lines - 1) + b"[]," * 10 * MILLION + b"[]]\n")
    run = apflint(tmp_path, "replay", "--isolated", "--format", "json", "audit.json", seconds=5)
    found = json.loads(run.out)
    reasons = {
        1: "the JSON text has more than 3,000,000 commas, colons and brackets, so apflint does not parse it",
        2: "this is not JSON",
    }
    assert found["unreadable"] == lines
    assert found["firstUnreadable"]["reason"].startswith(reasons[lines])
    assert run.status == 2


@pytest.mark.parametrize("byte", [b"\n", b"a"])
def test_zstandard_of_a_gigabyte_in_32_kilobytes(byte: bytes, tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    data = run_length_zstandard(byte, 1024)
    assert len(data) < 33_000
    (tmp_path / "audit.log.zst").write_bytes(data)
    run = apflint(tmp_path, "replay", "--isolated", "--format", "json", "audit.log.zst", seconds=5)
    assert (NO_EVENTS if byte == b"\n" else EXPANSION) in run.err
    assert run.status == 2


def test_hundreds_of_thousands_of_compressed_parts(tmp_path: Path) -> None:
    """Each part contains one byte of the same line. Joining the line again for each part would take hours."""
    (tmp_path / "audit.log.gz").write_bytes(gzip.compress(b"x", mtime=0) * 200_000 + gzip.compress(b"\n"))
    run = apflint(tmp_path, "replay", "--isolated", "--format", "json", "audit.log.gz", seconds=5)
    assert json.loads(run.out)["unreadable"] == 1
    assert run.status == 2


@pytest.mark.parametrize("form", ["deep", "wide"])
def test_large_line_for_the_lenient_parser(form: str, tmp_path: Path) -> None:
    """The time grows with the length of the line. With the square of the length, it would be 20 seconds."""
    members = ",".join(f'"a{number}":1' for number in range(200_000))
    line = {"deep": '{"a":' * 400_000, "wide": f"{{{members},,}}"}[form]
    (tmp_path / "audit.log").write_text(f"{line}\n{line}\n{recorded_lines()[0]}\n")
    run = apflint(tmp_path, "replay", "--isolated", "--format", "json", "audit.log", seconds=5)
    report = json.loads(run.out)
    assert (report["unreadable"], report["events"]) == (2, 1)
