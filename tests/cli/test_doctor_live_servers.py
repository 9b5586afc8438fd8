"""`apflint doctor --live` on several API servers: a real kubectl asks each of them over TLS, with recorded answers."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import listen, recorded_answers, status, write_kubeconfig
from support.recordings import ROOT, read_text

from apflint.cli.app import run
from apflint.sources import live_servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None or shutil.which("openssl") is None,
    reason="kubectl or openssl is not installed; Debian has them in the packages kubernetes-client and openssl",
)
LIVE = ROOT / "fixtures" / "live"
DEBUG = "/debug/api_priority_and_fairness/"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
FORBIDDEN = status(403, "Forbidden", 'forbidden: User "alice" cannot get path')


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a key and a certificate like those of API servers.

    The certificate is valid for names, but not for the address of the server.
    """
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    names = "subjectAltName=DNS:kubernetes.default.svc,DNS:api.example.org"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kube-apiserver"]
    subprocess.run(
        [*command, "-addext", names, "-keyout", file, "-out", f"{file}.crt"], check=True, capture_output=True
    )
    file.write_bytes(file.read_bytes() + file.with_name("server.pem.crt").read_bytes())
    return file


def read(moment: str, part: str) -> bytes:
    return read_text(next(LIVE.glob(f"{moment}.{part}.txt*"))).encode()


def answers_of(started: int, moment: str = "2-slow-a") -> dict[str, tuple[int, Any]]:
    """Return the answers of an API server that started at this time."""
    metrics = re.sub(
        rb"(?m)^process_start_time_seconds .*$", b"process_start_time_seconds %d" % started, read(moment, "metrics")
    )
    return {
        **recorded_answers(),
        "/metrics": (200, metrics),
        f"{DEBUG}dump_priority_levels": (200, read(moment, "priority_levels")),
        f"{DEBUG}dump_queues": (200, read(moment, "queues")),
        f"{DEBUG}dump_requests": (200, read(moment, "requests")),
    }


def slices(*ports: int) -> tuple[int, Any]:
    """Return the EndpointSlices of API servers on this machine."""
    items = [
        {"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}], "ports": [{"name": "https", "port": port}]}
        for port in ports
    ]
    return 200, {"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "items": items}


class Recorder(dict[str, tuple[int, Any]]):
    """Answers that record the requested paths. The metrics can be a sequence, one item for each request. The last item repeats."""

    def __init__(self, answers: Mapping[str, tuple[int, Any]], metrics: Sequence[bytes] = ()) -> None:
        super().__init__(answers)
        self.asked: list[str] = []
        self.metrics = metrics
        self._number = count()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.append(key)
        if key == "/metrics" and self.metrics:
            return 200, self.metrics[min(next(self._number), len(self.metrics) - 1)]
        return super().get(key, default)


@contextmanager
def cluster(
    servers: Sequence[Recorder], directory: Path, certificate: Path, *, verify: bool = True, more: tuple[int, ...] = ()
) -> Iterator[tuple[str, list[int]]]:
    """Run API servers, and yield the kubeconfig and the ports.

    kubectl reaches the first server. `more` are ports of other servers.
    """
    with ExitStack() as stack:
        ports = [stack.enter_context(listen(server, certificate)) for server in servers]
        servers[0].setdefault(SLICES, slices(*ports, *more))
        trust = f"certificate-authority: {certificate}, tls-server-name: api.example.org"
        fields = trust if verify else "insecure-skip-tls-verify: true"
        yield write_kubeconfig(directory, f'server: "https://127.0.0.1:{ports[0]}", {fields}'), ports


def diagnose(kubeconfig: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str]:
    """Return the JSON that the command prints, and its notes."""
    assert run(["doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--format", "json", *words]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


def find_closed_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def test_all_servers_are_asked_at_their_addresses(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = [Recorder(answers_of(1)), Recorder(answers_of(2, "1-varied")), Recorder(answers_of(3))]
    with cluster(servers, tmp_path, certificate) as (kubeconfig, ports):
        found, notes = diagnose(kubeconfig, capsys)
    assert [server["started"] for server in found["servers"]] == [1, 2, 3]
    parts = ("metrics", "dump_priority_levels", "dump_queues", "dump_requests")
    assert [server["files"] for server in found["servers"]] == [
        [f"live:127.0.0.1:{port}/{part}" for part in parts] for port in ports
    ]
    waiting = [next(level["waiting"] for level in s["levels"] if level["name"] == "slow") for s in found["servers"]]
    assert waiting == [20, 0, 20]  # the metrics of each server are combined with its own dumps
    assert not any("API server" in sentence for sentence in found["unknown"])
    assert not notes
    assert [server.asked.count("/metrics") for server in servers] == [1, 1, 1]


def test_server_that_does_not_answer_is_named(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = find_closed_port()
    servers = [Recorder(answers_of(1)), Recorder(answers_of(2))]
    with cluster(servers, tmp_path, certificate, more=(closed,)) as (kubeconfig, _):
        found, notes = diagnose(kubeconfig, capsys)
    assert [server["started"] for server in found["servers"]] == [1, 2]
    assert found["unknown"][0] == "Asked 2 of 3 API servers."
    assert found["unknown"][1].startswith(f"apflint does not read the API server at 127.0.0.1:{closed}: ")
    assert "refused" in found["unknown"][1]
    assert not notes


def test_load_balancer_is_asked_several_times(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = [answers_of(started)["/metrics"][1] for started in (3, 1, 1, 2, 3)]
    balancer = Recorder(answers_of(3), metrics)
    balancer[SLICES] = slices(find_closed_port(), find_closed_port(), find_closed_port())
    with cluster([balancer], tmp_path, certificate) as (kubeconfig, _):
        found, notes = diagnose(kubeconfig, capsys)
    assert [(server["started"], *server["files"]) for server in found["servers"]] == [
        (number, f"live:server-{number}/metrics") for number in (1, 2, 3)
    ]
    assert found["unknown"][0] == "Asked 3 of 3 API servers."
    assert "the dumps are not used, because several API servers answer" in notes


def test_load_balancer_that_leads_to_a_known_server(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = [Recorder(answers_of(1)), Recorder(answers_of(1))]
    # Equal start times stand for one server that has two addresses.
    with cluster(servers, tmp_path, certificate) as (kubeconfig, _):
        found, notes = diagnose(kubeconfig, capsys)
    assert [server["started"] for server in found["servers"]] == [1]
    assert len(found["servers"][0]["files"]) == 4
    assert not notes


def test_login_is_not_sent_to_addresses_without_a_verified_certificate(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = [Recorder(answers_of(1)), Recorder(answers_of(2))]
    with cluster(servers, tmp_path, certificate, verify=False) as (kubeconfig, _):
        found, _ = diagnose(kubeconfig, capsys)
    assert not servers[1].asked
    assert [server["started"] for server in found["servers"]] == [1]
    assert found["unknown"][:2] == [
        "Asked 1 of 2 API servers.",
        "kubectl does not verify certificates (insecure-skip-tls-verify), so apflint sends requests only to the address in the kubeconfig, not to the address of each API server.",
    ]


def test_endpoints_are_read_if_slices_are_forbidden(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = [Recorder(answers_of(1)), Recorder(answers_of(2))]
    servers[0][SLICES] = FORBIDDEN
    with cluster(servers, tmp_path, certificate) as (kubeconfig, ports):
        subsets = [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": port}]} for port in ports]
        servers[0][ENDPOINTS] = 200, {"kind": "Endpoints", "subsets": subsets}
        found, _ = diagnose(kubeconfig, capsys)
        assert [server["started"] for server in found["servers"]] == [1, 2]
        servers[0][ENDPOINTS] = FORBIDDEN
        found, _ = diagnose(kubeconfig, capsys)
    assert found["unknown"][0] == "The report covers one API server: the one that answered."
    assert found["unknown"][1].startswith("The addresses of the API servers are unknown: kubectl: ")
    assert "{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}" in found["unknown"][1]


@pytest.mark.parametrize("address", ["evil.example.org", "127.0.0.1/x", "", 5, None, "1.2.3.4:5"])
def test_addresses_that_are_not_ip_addresses_are_not_asked(
    address: object, tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Recorder(answers_of(1))
    items = [{"endpoints": [{"addresses": [address]}, None], "ports": [{"port": 443}]}, {"ports": None}, 5]
    server[SLICES] = 200, {"items": items}
    with cluster([server], tmp_path, certificate) as (kubeconfig, _):
        found, _ = diagnose(kubeconfig, capsys)
    assert found["unknown"][0] == "The report covers one API server: the one that answered."


def test_one_address_may_be_a_load_balancer(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster([Recorder(answers_of(1))], tmp_path, certificate) as (kubeconfig, _):
        found, notes = diagnose(kubeconfig, capsys)
    (server,) = found["servers"]
    assert len(server["files"]) == 4
    assert found["unknown"][1].startswith("The cluster names one address of API servers.")
    assert not notes


def test_number_of_servers_is_bounded(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_servers, "MAX_LIVE_SERVERS", 1)
    servers = [Recorder(answers_of(1)), Recorder(answers_of(2))]
    with cluster(servers, tmp_path, certificate) as (kubeconfig, _):
        found, _ = diagnose(kubeconfig, capsys)
    assert not servers[1].asked
    assert found["unknown"][:2] == [
        "Asked 1 of 2 API servers.",
        "apflint did not ask 1 further API server, because the maximum is 1.",
    ]


def test_watch_shows_rates_of_each_server(
    tmp_path: Path, certificate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_servers, "time", SimpleNamespace(sleep=lambda _: None))
    servers = [
        Recorder(answers_of(number), [answers_of(number, moment)["/metrics"][1] for moment in ("1-varied", "2-slow-a")])
        for number in (1, 2)
    ]
    with cluster(servers, tmp_path, certificate) as (kubeconfig, _):
        found, notes = diagnose(kubeconfig, capsys, "--watch", "10s")
    assert [server["sinceStart"] for server in found["servers"]] == [False, False]
    assert not notes
