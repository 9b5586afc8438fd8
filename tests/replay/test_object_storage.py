"""Logs in object storage give the same answers as files, and what cannot be read is reported."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from conftest import UNMEASURED
from support.audit_logs import ENGINES, FIXTURES, event, needs_duckdb, replay_json
from support.object_store import BUCKET, needs_object_store, run_object_store

from apflint.cli.app import run
from apflint.replay.python_engine import EventReader
from apflint.sources import object_storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.object_store import ObjectStore

# The event loop of fsspec runs until the end of the process, and leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
RECORDED = gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes())


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with run_object_store() as store:
        yield store


@pytest.fixture
def store(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    import s3fs

    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()  # each test has its own credentials
    object_storage._read_small.cache_clear()
    return server


@pytest.fixture
def prefix() -> str:
    """A prefix that no other test uses."""
    return uuid4().hex[:12].replace("2", "x")  # without a 2, because `20` could look like the beginning of a year


def lines(*numbers: int, **changes: Any) -> bytes:
    return b"".join(json.dumps(event(auditID=f"{number:036}", **changes)).encode() + b"\n" for number in numbers)


def compress(data: bytes, name: str) -> bytes:
    if name.endswith(".zst"):
        zstandard = pytest.importorskip("zstandard")
        compressed: bytes = zstandard.ZstdCompressor().compress(data)
        return compressed
    return gzip.compress(data, 1) if name.endswith(".gz") else data


def without_place(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without the names of files."""
    assert len(report["servers"]) == 1
    text = json.dumps({**report, "engine": ""})
    answer: dict[str, Any] = json.loads(text.replace(json.dumps(report["servers"][0]), '"server"'))
    return answer


@needs_object_store
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["audit.log", "audit.log.gz", "audit.log.zst", "large.log"])
def test_objects_give_the_answers_of_files(
    name: str, engine: str, store: ObjectStore, prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = compress(RECORDED if name != "large.log" else lines(*range(16_000)), name)
    assert (len(data) > object_storage._SMALL_BYTES) == (name == "large.log")
    (tmp_path / name).write_bytes(data)
    expected = replay_json(capsys, tmp_path / name, "--engine", "python")
    found = replay_json(capsys, store.put(f"{prefix}/{name}", data), "--engine", engine)
    assert found["events"] > 800
    assert without_place(found) == without_place(expected)


@needs_object_store
@needs_duckdb
@pytest.mark.parametrize("name", ["audit[1].log", "audit*.log.gz"])
def test_duckdb_reads_objects_itself(
    name: str, store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = b"".join(line for line in RECORDED.splitlines(keepends=True) if b"/namespaces/dev%2F" not in line)
    url = store.put(f"{prefix}/{name}", compress(plain, name))
    monkeypatch.setattr(EventReader, "read_file", lambda *_: pytest.fail("Python reads the object"))
    assert replay_json(capsys, url, "--engine", "duckdb")["events"] == 881


@needs_object_store
@pytest.mark.parametrize("engine", ENGINES)
def test_prefix_is_a_directory(
    engine: str, store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.put(f"{prefix}/", b"")
    store.put(f"{prefix}/node-1/audit.log", lines(2))
    store.put(f"{prefix}/node-1/audit-2026-11-22T05-49-20.098.log.gz", gzip.compress(lines(1)))
    store.put(f"{prefix}/node-2/stream-1-2026-11-22-05-49-20-5dc02010-61be-4a86-8d18-5a1c6a3c4d1f", lines(3))
    store.put(f"{prefix}/README.md", b"# Logs")
    store.put(f"{prefix}/.hidden.log", b"x")
    store.put(f"{prefix}-other/audit.log", lines(4))
    for url in (f"s3://{BUCKET}/{prefix}", f"s3://{BUCKET}/{prefix}/"):
        report = replay_json(capsys, url, "--engine", engine)
        assert (report["files"], report["events"], report["unreadable"]) == (3, 3, 0)
        assert report["servers"] == [
            f"s3://{BUCKET}/{prefix}/node-1/audit",
            f"s3://{BUCKET}/{prefix}/node-2/stream-1",
        ]
        assert report["omittedObjects"] == [{"url": url, "objects": 2, "bytes": 7, "reason": "names"}]
    assert replay_json(capsys, f"s3://{BUCKET}/{prefix}/*/audit*")["files"] == 2
    assert replay_json(capsys, f"s3://{BUCKET}/{prefix}/**/audit.log", f"s3://{BUCKET}/{prefix}/node-1/")["files"] == 2
    assert replay_json(capsys, f"s3://{BUCKET}/{prefix}*/audit.log")["files"] == 1
    assert replay_json(capsys, f"s3://{BUCKET}/{prefix}/node-[!2]/audit.log")["files"] == 1


@needs_object_store
def test_no_object_with_the_name_of_a_log(store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    store.put(f"{prefix}/part-0000", lines(1))
    assert run(["replay", f"s3://{BUCKET}/{prefix}"]) == 2
    error = capsys.readouterr().err
    assert "none of 1 object has the name of a log" in error
    assert f"use a pattern: s3://{BUCKET}/{prefix}/**" in error
    assert replay_json(capsys, f"s3://{BUCKET}/{prefix}/**")["events"] == 1


@needs_object_store
@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_names(engine: str, store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        *("a//b.log", "../dots.log", "/slash.log", "[1].log", "*.log", "100%41.log", "a b'#?.log", "ü.log", "::x.log"),
        *("a\\b.log", "\x1b[31m.log", "x.log/y.log", "x.log", "'; DROP TABLE request; --.log"),
    ]
    for number, name in enumerate(names):
        store.put(f"{prefix}/{name}", lines(number))
    report = replay_json(capsys, f"s3://{BUCKET}/{prefix}/", "--engine", engine)
    assert (report["files"], report["events"], report["unreadable"]) == (len(names), len(names), 0)
    for name in ("[1].log", "100%41.log", "a//b.log", "\x1b[31m.log"):
        assert run(["replay", f"s3://{BUCKET}/{prefix}/{name}", "--engine", engine, "--by", "server"]) == 0
        assert "\x1b" not in capsys.readouterr().out


@needs_object_store
@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"s3://{BUCKET}/none.log", "no object has this URL, is below this prefix or matches this pattern"),
        (f"s3://{BUCKET}/none/*.log", "no object has this URL, is below this prefix or matches this pattern"),
        ("s3://missing-bucket/audit/", "no such object (The specified bucket does not exist)"),
    ],
)
def test_missing_objects(url: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", url]) == 2
    assert capsys.readouterr().err == f"apflint: {url}: {message}\n"


@needs_object_store
def test_wrong_credentials(store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = store.put(f"{prefix}/audit.log", lines(1))
    store.send("POST", "moto-api/reset-auth", b"0")  # from now on, the server checks signatures
    try:
        assert run(["replay", url]) == 2
    finally:
        store.send("POST", "moto-api/reset-auth", b"1000000000")
    error = capsys.readouterr().err
    assert error.startswith(f"apflint: {url}: access denied (")
    assert "; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a role\n" in error
    assert error.count("\n") == 1


@needs_object_store
@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("variables", [(), (("AWS_PROFILE", "missing"),)])
def test_no_credentials(
    variables: tuple[tuple[str, str], ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, value in variables:
        monkeypatch.setenv(name, value)
    assert run(["replay", f"s3://{BUCKET}/audit.log"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"apflint: s3://{BUCKET}/audit.log: no valid credentials (")
    assert "Traceback" not in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("s3://bucket/audit.log", "s3fs", "s3"),
        ("S3://bucket/audit.log", "s3fs", "s3"),
        ("gs://bucket/audit.log", "gcsfs", "gs"),
        ("az://container/audit.log", "adlfs", "az"),
        ("https://user:pw@host/audit.log?sig=secret", "fsspec.implementations.http", "https"),
    ],
)
def test_missing_extra(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert run(["replay", url]) == 2
    scheme, shown = url.partition(":")[0].lower(), url.replace("user:pw@", "").partition("?")[0]
    assert (
        capsys.readouterr().err
        == f"apflint: {shown}: {scheme}:// needs the extra {extra}: pip install 'apflint[{extra}]'\n"
    )


@needs_object_store
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["audit.log.gz", "audit.log.zst"])
def test_truncated_object(
    name: str, engine: str, store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = compress(RECORDED, name)
    store.put(f"{prefix}/good.log", lines(1))
    url = store.put(f"{prefix}/{name}", data[: len(data) // 2])
    report = replay_json(capsys, f"s3://{BUCKET}/{prefix}", "--engine", engine, code=2)
    (damaged,) = report["damagedFiles"]
    assert damaged["file"] == url
    assert "ends too early" in damaged["reason"]
    assert report["events"] > 1


@needs_object_store
def test_object_disappears_or_changes(
    store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report names objects that changed or were removed after the listing, and has the events of the others."""
    from apflint.sources import audit_logs

    list_objects = object_storage.list_objects
    for name in ("a-changed.log", "b-removed.log", "c-good.log"):
        store.put(f"{prefix}/{name}", lines(1))

    def change(url: str) -> Any:
        found = list_objects(url)
        store.put(f"{prefix}/a-changed.log", lines(2, 3))
        store.send("DELETE", f"{BUCKET}/{prefix}/b-removed.log")
        return found

    monkeypatch.setattr(audit_logs, "list_objects", change)
    report = replay_json(capsys, f"s3://{BUCKET}/{prefix}/", "--engine", "python", code=2)
    assert [place["file"].rpartition("/")[2] for place in report["damagedFiles"]] == ["a-changed.log", "b-removed.log"]
    assert "when it was listed" in report["damagedFiles"][0]["reason"]
    assert "no such object" in report["damagedFiles"][1]["reason"]
    assert report["events"] == 1


HOURS = [
    "{prefix}/2026/11/22/{hour:02}/stream-1-2026-11-22-{hour:02}-15-00-5dc02010-61be-4a86-8d18-5a1c6a3c4d1f.gz",
    "{prefix}/2026/11/22/1234_cluster_20261122T{hour:02}15Z_node.log.gz",
    "{prefix}/y=2026/m=11/d=22/h={hour:02}/m=00/PT1H.json",
]


@needs_object_store
@pytest.mark.parametrize("name", HOURS)
def test_names_with_times(name: str, store: ObjectStore, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Objects whose names have times outside of the period are not read, and the report states this."""
    for hour in range(0, 24, 2):
        times = {
            field: f"2026-11-22T{hour:02}:15:0{at}.000000Z"
            for at, field in enumerate(("requestReceivedTimestamp", "stageTimestamp"))
        }
        key = name.format(prefix=prefix, hour=hour)
        store.put(key, compress(lines(hour, **times), key))
    url = f"s3://{BUCKET}/{prefix}/"
    whole = replay_json(capsys, url)
    assert (whole["files"], whole["requests"], whole["omittedObjects"]) == (12, 12, [])
    for maximum, *period in (
        (4, "--since", "2026-11-22T10:00", "--until", "2026-11-22T12:00"),
        (8, "--since", "13h30m", "--until", "11h30m"),  # the end of the log is known only after reading
    ):
        report = replay_json(capsys, url, *period)
        (omitted,) = report["omittedObjects"]
        assert (report["requests"], omitted["reason"]) == (1, "times")
        assert report["files"] == 12 - omitted["objects"] <= maximum
    assert run(["replay", url, "--since", "2026-11-25"]) == 2
    assert "the times in the names of all 12 objects are outside of --since and --until" in capsys.readouterr().err
    assert replay_json(capsys, f"{url}**", "--since", "2026-11-25")["files"] == 12
    assert run(["replay", url, "--since", "2026-11-22T20:00", "--each"]) == 0
    assert "apflint does not read " in capsys.readouterr().err


class _Files(BaseHTTPRequestHandler):
    """A web server with the recorded log."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        status = {"/denied": 403, "/missing": 404, "/broken": 500}.get(self.path.partition("?")[0], 200)
        data = RECORDED if status == 200 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def web() -> Iterator[str]:
    pytest.importorskip("aiohttp", reason="not installed: apflint[https]")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("engine", ENGINES)
def test_web_server(engine: str, web: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = replay_json(capsys, f"{web}/audit.log?X-Amz-Signature=secret", "--engine", engine)
    assert report["events"] == 883
    assert report["servers"] == [f"{web}/audit"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("denied", "access denied (HTTP status 403); the URL may have expired"),
        ("missing", "no such object"),
        ("broken", "HTTP status 500"),
    ],
)
def test_web_server_refuses(path: str, reason: str, web: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", f"{web}/{path}?X-Amz-Signature=secret"]) == 2
    assert capsys.readouterr().err == f"apflint: {web}/{path}: {reason}\n"


@pytest.mark.parametrize("arguments", [["replay", "audit.log"], ["check", "."]])
def test_nothing_is_imported_for_local_files(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "audit.log").write_bytes(lines(1))
    code = (
        "import sys; from apflint.cli.app import run; run(sys.argv[1:])\n"
        "names = {'fsspec', 's3fs', 'gcsfs', 'adlfs', 'aiohttp', 'botocore', 'asyncio', 'pyspark', 'ssl'} & {*sys.modules}\n"
        "sys.exit(f'imported: {names}' if names else 0)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=UNMEASURED, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.replace("no APF", "")) == (0, done.stderr.replace("no APF", ""))
