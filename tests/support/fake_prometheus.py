"""A stand-in for Prometheus: an HTTP or HTTPS server that gives the answer that a test defines, and records the requests."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from apflint.sources.prometheus_client import READER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed, so there is no certificate")


class Reply(NamedTuple):
    """An answer of the server."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0
    """Seconds to wait between two bytes of the body."""


class Fake(NamedTuple):
    """A running server."""

    url: str
    requests: list[tuple[str, dict[str, str]]]
    """Received requests, as pairs of the path with its query string, and the headers by lower-case name."""


def success(result: list[Any], kind: str = "vector", **more: object) -> Reply:
    """Return a successful answer of Prometheus with this result. `more` are further fields."""
    return Reply(json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more}).encode())


@contextmanager
def serve_replies(reply: Reply, certificate: Path | None = None, authority: Path | None = None) -> Iterator[Fake]:
    """Run a server that gives one answer to all requests. If `authority` is given, clients need a certificate signed by it."""
    requests: list[tuple[str, dict[str, str]]] = []

    stopped = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(reply.status)
            for name, value in ({"Content-Length": str(len(reply.body))} | dict(reply.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                if not reply.delay:
                    self.wfile.write(reply.body)
                for byte in reply.body if reply.delay else b"":
                    self.wfile.write(bytes([byte]))
                    if stopped.wait(reply.delay):
                        break
            except OSError:
                pass  # the client has closed the connection

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class QuietServer(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Print nothing about handshakes that fail."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if authority is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(authority)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Fake(f"{scheme}://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()
        for reader in threading.enumerate():
            if reader.name == READER:
                reader.join()


def make_certificate(file: Path, passphrase: str | None = None) -> Path:
    """Write a self-signed certificate for 127.0.0.1, with its key, to a file."""
    assert OPENSSL is not None
    key = file.with_suffix(".key")
    command = [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    command += ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)]
    command += ["-passout", f"pass:{passphrase}"] if passphrase is not None else ["-nodes"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    file.write_bytes(file.read_bytes() + key.read_bytes())
    return file
