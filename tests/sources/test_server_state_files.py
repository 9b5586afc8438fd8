"""Reading metrics and dumps: compressed files, directories, standard input, and files that cannot be read."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from support.recordings import LIVE, read_text

from apflint.doctor.metric_names import NOMINAL
from apflint.doctor.snapshot import Metrics
from apflint.sources import server_state_files
from apflint.sources.server_state_files import read_parts
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = read_text(LIVE / "0-idle.metrics.txt.gz").encode()
LEVELS = read_text(LIVE / "0-idle.priority_levels.txt").encode()


def compress(data: bytes) -> bytes:
    """Compress data without a timestamp, so that the names of tests, which contain the data, stay the same."""
    return gzip.compress(data, mtime=0)


def kinds(*paths: Path | str) -> list[str]:
    return [part.kind for part in read_parts(map(str, paths))]


@pytest.mark.parametrize(
    "data", [METRICS, compress(METRICS), METRICS.replace(b"\n", b"\r\n"), METRICS.decode().encode("utf-16")]
)
def test_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m"
    path.write_bytes(data)
    (part,) = read_parts([str(path)])
    assert part.kind == "metrics"
    assert isinstance(part.content, Metrics)
    assert len(part.content.find(NOMINAL)) == 14


def test_directory(tmp_path: Path) -> None:
    (tmp_path / "levels.txt").write_bytes(LEVELS)
    (tmp_path / "metrics.gz").write_bytes(compress(METRICS))
    (tmp_path / "notes.txt").write_text("restarted at noon\n", "utf-8")
    (tmp_path / "flow-schema.yaml").write_text("kind: FlowSchema\n", "utf-8")
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b broken")
    (tmp_path / ".hidden").write_bytes(METRICS)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "m").write_bytes(METRICS)
    assert kinds(tmp_path) == ["levels", "metrics"]


@pytest.mark.parametrize("size", [1000, -8])
def test_incomplete_file_in_a_directory(tmp_path: Path, size: int) -> None:
    (tmp_path / "levels.txt").write_bytes(LEVELS)
    (tmp_path / "metrics.gz").write_bytes(compress(METRICS)[:size])
    with pytest.raises(UserError, match=r"metrics\.gz: the compressed file is incomplete or damaged"):
        read_parts([str(tmp_path)])


def test_directory_without_files_of_a_server(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the directory has no metrics and no dumps"):
        read_parts([str(tmp_path)])


@pytest.mark.parametrize("data", [METRICS, compress(METRICS)])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    (part,) = read_parts(["-"])
    assert (part.kind, part.source.name) == ("metrics", "<stdin>")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (compress(METRICS)[:-100], "m: the compressed file is incomplete or damaged"),
        (b"\x1f\x8b", "m: the compressed file is incomplete or damaged"),
        (compress(METRICS)[:40] + b"x" * 99, "m: the compressed file is incomplete or damaged"),
        (b"\0" * 99, "m: this is neither metrics nor one of the dumps"),
        (b"", "m: the file is empty"),
        (compress(b""), "m: the file is empty"),
        (METRICS[: len(METRICS) // 2], "m: the last line does not end with a line break"),
    ],
)
def test_file_that_cannot_be_used(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "m"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        read_parts([str(path)])


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="m: No such file or directory"):
        read_parts([str(tmp_path / "m")])


@pytest.mark.parametrize("write", [bytes, compress])
def test_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[bytes], bytes]) -> None:
    """A small compressed file can become large, so no more than the limit is decompressed."""
    monkeypatch.setattr(server_state_files, "MAX_METRICS_BYTES", len(METRICS))
    path = tmp_path / "m"
    path.write_bytes(write(METRICS))
    assert kinds(path) == ["metrics"]
    path.write_bytes(write(METRICS + b"\n"))
    with pytest.raises(UserError, match=r"m: the file has more than 0 MiB\. Keep only the lines"):
        read_parts([str(path)])


def test_large_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_state_files, "MAX_METRICS_BYTES", len(METRICS) - 1)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(METRICS)))
    with pytest.raises(UserError, match="-: the file has more than 0 MiB"):
        read_parts(["-"])


def test_compressed_stream_that_becomes_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test sends 32 MiB of data that gzip has compressed to about 32 KiB.

    apflint stops decompressing the data when they exceed `MAX_METRICS_BYTES`.
    """
    monkeypatch.setattr(server_state_files, "MAX_METRICS_BYTES", 1 << 20)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(bytes(32 << 20), 1))))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="-: the file has more than 1 MiB"):
            read_parts(["-"])
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_pipe(tmp_path: Path) -> None:
    """Metrics are read from a pipe of the shell, as in `--metrics <(kubectl get --raw /metrics)`, but not from other pipes."""
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(Path(f"/dev/fd/{writing}").write_bytes, METRICS).add_done_callback(lambda _: os.close(writing))
        assert kinds(f"/dev/fd/{reading}") == ["metrics"]
    os.close(reading)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: This is a named pipe"):
        read_parts([str(tmp_path / "pipe")])


def test_standard_input_is_read_once() -> None:
    with pytest.raises(UserError, match="can be read only once"):
        read_parts(["-", "-"])
