"""The language server with a hostile editor or project: the server answers, or ends with a one-line message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from conftest import UNMEASURED
from limited import NEIGHBOUR, apflint

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SECONDS = 60


def message(method: str, number: int | None = None, **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    return json.dumps(body).encode()


def framed(body: bytes, header: str = "Content-Length: {}\r\n\r\n") -> bytes:
    return header.format(len(body)).encode() + body


def session(directory: Path, header: str = "Content-Length: {}\r\n\r\n") -> list[bytes]:
    uri = directory.as_uri()
    bodies = [
        message("initialize", 1, processId=None, rootUri=uri, capabilities={}),
        message("initialized"),
        message(
            "textDocument/didOpen",
            textDocument={"uri": f"{uri}/a.yaml", "languageId": "yaml", "version": 1, "text": NEIGHBOUR},
        ),
    ]
    return [framed(body, header) for body in bodies]


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Length: {}\r\nContent-Type: x\r\n\r\n",
    ],
)
def test_headers_of_the_content_type(header: str, tmp_path: Path) -> None:
    end = [framed(message("shutdown", 2), header), framed(message("exit"), header)]
    run = apflint(tmp_path, "lsp", stdin=b"".join([*session(tmp_path, header), *end]))
    assert (run.status, run.err) == (0, "")
    assert '"capabilities"' in run.out
    assert '"id":2' in run.out.replace(" ", "")


@pytest.mark.parametrize("length", ["99999999999999", "67108865"])
def test_a_message_that_is_too_long_ends_the_server(length: str, tmp_path: Path) -> None:
    run = apflint(tmp_path, "lsp", stdin=f"Content-Length: {length}\r\n\r\n{{}}".encode())
    assert (run.status, run.out) == (2, "")
    assert run.err == f"apflint: Content-Length {length} is greater than 67,108,864; the language server ends\n"


@pytest.mark.parametrize("length", ["9" * 5_000, "-1", "1e3", "x", ""])
def test_an_invalid_length_is_not_a_message(length: str, tmp_path: Path) -> None:
    run = apflint(tmp_path, "lsp", stdin=f"Content-Length: {length}\r\n\r\n{{}}".encode())
    assert (run.status, run.out) == (1, "")
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    "text", [b"hello\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x1b[31m\n" * 10_000, b"x" * 10_000_000]
)
def test_text_that_is_not_a_header_is_reported_once(text: bytes, tmp_path: Path) -> None:
    run = apflint(tmp_path, "lsp", stdin=text + b"\n\n" + b"".join(session(tmp_path)))
    assert run.status == 1  # the editor disconnected
    assert run.err.startswith('apflint: expected the header "Content-Length: N", got "')
    assert run.err.count("\n") == 1
    assert len(run.err) < 500
    assert '"capabilities"' in run.out


@pytest.mark.parametrize(
    ("command", "sentence"), [("lsp", "Standard input is closed. "), ("explain", "no request given")]
)
def test_a_closed_standard_input(command: str, sentence: str, tmp_path: Path) -> None:
    run = apflint(tmp_path, command, first=lambda: os.close(0))
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f"apflint: {sentence}")
    assert run.err.count("\n") == 1


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0", "/", "link"])
def test_settings_of_a_project_take_no_messages_away(name: str, tmp_path: Path) -> None:
    """Settings that name standard input must not make the server read the messages of its editor as a manifest."""
    (tmp_path / "link").symlink_to("/dev/stdin")
    (tmp_path / "link.yaml").symlink_to("/dev/stdin")
    (tmp_path / "apflint.toml").write_text(f'context = ["{name}"]\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "apflint", "lsp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=UNMEASURED,
    )
    guard = threading.Timer(SECONDS, process.kill)
    guard.start()
    try:
        end = [framed(message("shutdown", 2)), framed(message("exit"))]
        assert process.stdin is not None
        assert process.stdout is not None
        for part in session(tmp_path):
            process.stdin.write(part)
        process.stdin.flush()
        seen = b""
        while b"publishDiagnostics" not in seen:
            piece = os.read(process.stdout.fileno(), 1 << 16)
            assert piece, seen
            seen += piece
        out, err = process.communicate(b"".join(end))
        assert (process.returncode, err) == (0, b"")
        assert b"APF201" in seen + out
        assert b"the settings are not used" in seen + out
    finally:
        guard.cancel()
        process.kill()
        process.communicate()
