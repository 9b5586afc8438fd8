"""Servers to record: new servers started from binaries, or a running server."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from apflint.releases import SERVER_CONCURRENCY
from recording.client import Client, Credentials, ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

START_SECONDS = 120
SERVE_REMOVED = "KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE"
"""Environment variable that makes a server serve the API versions that its release has removed."""
TOKEN = "apflint-recorder"  # not secret: the server is on the loopback address, and ends after the recording
AUDIT_POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"


class Server(NamedTuple):
    """A running server with a client."""

    client: Client
    audit_log: Path | None


class Servers(Protocol):
    """A source of servers."""

    def can_have(self, total: int) -> bool:
        """Return whether `start` can provide a server with this number of seats."""

    def start(self, *, total: int = SERVER_CONCURRENCY, removed: bool = False) -> AbstractContextManager[Server]:
        """Provide a server with `total` seats.

        If `removed` is true, the server also serves removed API versions of its release.
        """


class RunningServer:
    """A server that already runs. The recording creates and deletes objects on this server."""

    def __init__(self, client: Client, audit_log: Path | None, total: int) -> None:
        self._server = Server(client, audit_log)
        self._total = total

    def can_have(self, total: int) -> bool:
        """Return whether the server has this number of seats."""
        return total == self._total

    @contextmanager
    def start(self, *, total: int = SERVER_CONCURRENCY, removed: bool = False) -> Iterator[Server]:  # noqa: ARG002
        """Provide the running server unchanged."""
        with closing(self._server.client):
            yield self._server


class OwnServers:
    """Starts etcd and kube-apiserver on the loopback address, with an empty database each time."""

    def __init__(self, kube_apiserver: Path, etcd: Path) -> None:
        self._kube_apiserver = kube_apiserver
        self._etcd = etcd

    def can_have(self, total: int) -> bool:
        """Return whether a server can be started with `total` seats. This is true for at least one seat."""
        return total > 0

    @contextmanager
    def start(self, *, total: int = SERVER_CONCURRENCY, removed: bool = False) -> Iterator[Server]:
        """Start a server, and end it after the block."""
        directory = Path(tempfile.mkdtemp(prefix="record-apiserver-"))
        running: list[subprocess.Popen[bytes]] = []
        etcd_url, peer_url = (f"http://127.0.0.1:{_find_free_port()}" for _ in range(2))
        port = _find_free_port()
        environment = os.environ | ({SERVE_REMOVED: "true"} if removed else {})
        try:
            for program, arguments in (
                (self._etcd, _list_etcd_arguments(directory, etcd_url, peer_url)),
                (self._kube_apiserver, _list_arguments(directory, etcd_url, port, total, removed=removed)),
            ):
                with (directory / f"{program.name}.log").open("wb") as log:
                    command = [str(program), *arguments]
                    running.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
            with closing(_wait_until_ready(directory, port, running)) as client:
                yield Server(client, directory / "audit.log")
        finally:
            for process in reversed(running):
                process.terminate()
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            shutil.rmtree(directory)


def _list_etcd_arguments(directory: Path, url: str, peer_url: str) -> list[str]:
    return [
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",  # the database is temporary
    ]


def _list_arguments(directory: Path, etcd_url: str, port: int, total: int, *, removed: bool) -> list[str]:
    key = directory / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    (directory / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n', encoding="ascii")
    (directory / "audit-policy.yaml").write_text(AUDIT_POLICY, encoding="ascii")
    mutating = total // 3  # as by default, where --max-mutating-requests-inflight is 200 of 600 in total
    return [
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory}",  # the client trusts the certificate that the server writes there
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--authorization-mode=RBAC",
        f"--token-auth-file={directory / 'tokens.csv'}",
        f"--audit-policy-file={directory / 'audit-policy.yaml'}",
        f"--audit-log-path={directory / 'audit.log'}",
        f"--max-requests-inflight={total - mutating}",
        f"--max-mutating-requests-inflight={mutating}",
        *(["--runtime-config=api/all=true"] if removed else []),
    ]


def _wait_until_ready(directory: Path, port: int, running: list[subprocess.Popen[bytes]]) -> Client:
    """Return a client of the server once its built-in objects exist. Raises ServerError after `START_SECONDS`."""
    certificate = directory / "apiserver.crt"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for process in running:
            if process.poll() is not None:
                raise ServerError(f"a server ends on its own\n{_read_end_of_logs(directory)}")
        time.sleep(0.5)
        if not certificate.exists():
            continue
        try:
            client = Client(f"https://127.0.0.1:{port}", Credentials(TOKEN, certificate))
            if client.send("GET", "/readyz").status == 200:
                return client
            client.close()
        except (ServerError, ssl.SSLError):  # the certificate file may be incomplete
            continue
    raise ServerError(f"kube-apiserver is not ready after {START_SECONDS} seconds\n{_read_end_of_logs(directory)}")


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read_end_of_logs(directory: Path) -> str:
    return "\n".join(
        f"{log.name}: ...{log.read_text(encoding='utf-8', errors='replace')[-1500:]}"
        for log in directory.glob("*.log")
        if log.name != "audit.log"
    )
