"""An HTTP server that gives the responses of a kube-apiserver, made from recorded objects."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from support.shell import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

GROUP = "flowcontrol.apiserver.k8s.io"
OBJECTS = json.loads((ROOT / "fixtures/live/objects.json").read_text(encoding="utf-8"))["items"]


def status(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    """Return the status code and body with which an API server reports an error."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return code, body


def recorded_answers(version: str = "v1", git_version: str = "v1.36.2") -> dict[str, tuple[int, Any]]:
    """Return (status code, body) by path, made from the recorded objects. As in Kubernetes, items of a list have no kind."""
    answers: dict[str, tuple[int, Any]] = {
        "/version": (200, {"major": "1", "minor": git_version.split(".")[1], "gitVersion": git_version}),
        f"/apis/{GROUP}": (
            200,
            {
                "kind": "APIGroup",
                "apiVersion": "v1",
                "name": GROUP,
                "versions": [{"groupVersion": f"{GROUP}/{version}", "version": version}],
                "preferredVersion": {"groupVersion": f"{GROUP}/{version}", "version": version},
            },
        ),
    }
    for resource, kind in (
        ("flowschemas", "FlowSchema"),
        ("prioritylevelconfigurations", "PriorityLevelConfiguration"),
    ):
        items = [
            {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
            for item in OBJECTS
            if item["kind"] == kind
        ]
        body = {"kind": f"{kind}List", "apiVersion": f"{GROUP}/{version}", "metadata": {"resourceVersion": "1"}}
        answers[f"/apis/{GROUP}/{version}/{resource}"] = (200, body | {"items": items})
    return answers


@contextmanager
def serve(answers: Mapping[str, tuple[int, Any]], directory: Path) -> Iterator[str]:
    """Serve GET requests for the paths in `answers`, and yield the path of a kubeconfig for the server.

    A body of type bytes is sent unchanged. All other paths get a response 404.
    """
    with listen(answers) as port:
        yield write_kubeconfig(directory, f'server: "http://127.0.0.1:{port}"')


def write_kubeconfig(directory: Path, cluster: str) -> str:
    """Write a kubeconfig and return its path. `cluster` are the fields of the only cluster, as YAML."""
    kubeconfig = directory / "kubeconfig.yaml"
    kubeconfig.write_text(
        f"""\
apiVersion: v1
kind: Config
clusters: [{{name: recorded, cluster: {{{cluster}}}}}]
users: [{{name: alice, user: {{token: secret}}}}]
contexts: [{{name: recorded, context: {{cluster: recorded, user: alice}}}}]
current-context: recorded
""",
        encoding="utf-8",
    )
    return str(kubeconfig)


@contextmanager
def listen(answers: Mapping[str, tuple[int, Any]], certificate: Path | None = None) -> Iterator[int]:
    """Answer GET requests as `serve` does, with TLS if there is a file with a key and a certificate. Yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            not_found = status(404, "NotFound", "the server could not find the requested resource")
            code, body = answers.get(self.path.partition("?")[0], not_found)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    """A server that does not report closed connections, such as those of clients that reject its certificate."""

    def handle_error(self, *_: object) -> None:
        pass
