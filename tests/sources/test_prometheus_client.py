"""The HTTP API of Prometheus: credentials, TLS, bounds and errors. Nothing that apflint prints contains credentials."""

from __future__ import annotations

import gzip
import json
import socket
import sys
from contextlib import ExitStack
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.fake_prometheus import Reply, make_certificate, needs_openssl, serve_replies, success

from apflint.budgets import Bound
from apflint.sources import prometheus_client
from apflint.sources.prometheus_client import PrometheusClient, parse_connection
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("requests", reason="requests is not installed: it is the extra prometheus")
pytestmark = pytest.mark.usefixtures("no_proxy")

SECRET, TENANT, PASSWORD = "s3cr3t-token", "hidden-tenant", "pa:ss/word"
SERIES: list[Any] = [{"metric": {"job": "a"}, "value": [1.5, "2"]}]


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "REQUESTS_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)


def query(url: str, *headers: str, **options: Any) -> list[Any]:
    with PrometheusClient(parse_connection(url, headers, **options)) as client:
        return client.query("up", 1700000000.5)


def fail(url: str, *headers: str, **options: Any) -> str:
    """Return the message of a query that fails. Asserts that the message contains no credentials."""
    with pytest.raises(UserError) as error:
        query(url, *headers, **options)
    message = str(error.value)
    assert not any(secret in message for secret in (SECRET, TENANT, PASSWORD, "pa%3Ass"))
    return message


def with_login(url: str) -> str:
    return url.replace("://", "://alice:pa%3Ass%2Fword@")


def token_file(tmp_path: Path, text: str = f"{SECRET}\n") -> str:
    (tmp_path / "token").write_text(text)
    return str(tmp_path / "token")


def test_query() -> None:
    with serve_replies(success(SERIES)) as server:
        (sample,) = query(f"{server.url}/prometheus/?tenant=x")
        assert sample == ({"job": "a"}, "2")
        path = urlsplit(server.requests[0][0])
        assert path.path == "/prometheus/api/v1/query"
        assert parse_qs(path.query) == {
            "tenant": ["x"], "query": ["up"], "time": ["1700000000.500"], "timeout": ["60s"],
        }  # fmt: skip


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/", "/api", "/"])
def test_address_of_the_api_itself(path: str) -> None:
    with serve_replies(success(SERIES)) as server:
        query(server.url + path)
        assert server.requests[0][0].startswith("/api/v1/query?")


def test_values_of_a_range_that_are_not_finite_are_left_out() -> None:
    values = [[1, "NaN"], [2, "+Inf"], [3, "4.5"], [4, "-Inf"]]
    with (
        serve_replies(success([{"metric": {}, "values": values}], "matrix")) as server,
        PrometheusClient(parse_connection(server.url)) as client,
    ):
        assert client.query_range("up", 1, 4, 1) == [({}, {3.0: 4.5})]
        assert client.query_samples("up[5m]", 4) == [({}, {3.0: 4.5})]


def test_compressed_answer() -> None:
    body = gzip.compress(success(SERIES).body)
    with serve_replies(Reply(body, headers=(("Content-Encoding", "gzip"),))) as server:
        assert len(query(server.url)) == 1


@needs_openssl
def test_token_and_headers_over_tls(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "server.pem")
    with serve_replies(success(SERIES), certificate) as server:
        query(server.url, f"X-Scope-OrgID: {TENANT}", token_file=token_file(tmp_path), authority=str(certificate))
        headers = server.requests[0][1]
        assert headers["authorization"] == f"Bearer {SECRET}"
        assert headers["x-scope-orgid"] == TENANT
        message = fail(server.url, f"X-Scope-OrgID: {TENANT}", token_file=token_file(tmp_path))
        assert "TLS failed: self-signed certificate" in message
        assert "--certificate-authority" in message
        assert len(server.requests) == 1
        assert len(query(server.url, is_verified=False)) == 1


@needs_openssl
def test_certificate_of_the_client(tmp_path: Path) -> None:
    certificate, own = make_certificate(tmp_path / "server.pem"), make_certificate(tmp_path / "own.pem")
    with serve_replies(success(SERIES), certificate, own) as server:
        assert len(query(server.url, authority=str(certificate), certificate=str(own))) == 1
        key = str(tmp_path / "own.key")
        assert len(query(server.url, authority=str(certificate), certificate=str(own), key=key)) == 1
        assert server.url in fail(server.url, authority=str(certificate))


@needs_openssl
def test_key_with_a_passphrase_does_not_prompt(tmp_path: Path) -> None:
    own = make_certificate(tmp_path / "own.pem", passphrase="secret")
    assert "has a passphrase" in fail("https://localhost", certificate=str(own))


def test_login_in_the_address() -> None:
    with serve_replies(success(SERIES)) as server:
        url = with_login(server.url)
        query(url)
        assert server.requests[0][1]["authorization"] == "Basic YWxpY2U6cGE6c3Mvd29yZA=="
        client = PrometheusClient(parse_connection(url))
        assert client.connection.shown == server.url


def test_login_of_netrc_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve_replies(success(SERIES)) as server:
        query(server.url)
        assert "authorization" not in server.requests[0][1]


def test_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_replies(success(SERIES)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert len(query("http://prometheus.invalid")) == 1
        assert proxy.requests[0][0].startswith("http://prometheus.invalid/api/v1/query?")
        monkeypatch.setenv("http_proxy", f"http://u:{SECRET}@127.0.0.1:1")
        assert "the proxy" in fail("http://prometheus.invalid")


def test_connection_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert fail(with_login(url)) == f"{url}: there is no connection: Connection refused"


def test_unknown_host() -> None:
    assert "the name of the host is unknown" in fail("http://prometheus.invalid:9090")


ECHO = json.dumps(
    {"status": "error", "errorType": "bad_data", "error": f"no {TENANT} {SECRET} YWxpY2U6cGE6c3Mvd29yZA== {PASSWORD}"}
).encode()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"no", 401), "access is denied (401): check the credentials"),
        (Reply(ECHO, 403), "access is denied (403)"),
        (Reply(b"404 page not found", 404), "no API of Prometheus at this path (404)"),
        (Reply(b"", 302, (("Location", f"https://sso.example.com/login?token={SECRET}"),)), 'a redirect to "https://sso.example.com/login"'),
        (Reply(b"busy", 503), "the error 503"),
        (Reply(b"<html>login", headers=(("Content-Type", "text/html"),)), "HTML instead of JSON"),
        (Reply(b"hello"), "something else instead of JSON"),
        (Reply(b"[" * 100_000), "something else instead of JSON"),
        (Reply(b"1" * 5000), "something else instead of JSON"),
        (Reply(b""), "something else instead of JSON"),
        (Reply(ECHO, 400), "the query failed: bad_data: no *** *** *** ***"),
        (Reply(ECHO), "the query failed: bad_data"),
        (success([], "matrix"), "no vector"),
        (Reply(b'{"status": "success", "data": []}'), "no vector"),
        (success([1]), "a series without labels"),
        (success([{"metric": {"a": 1}, "value": [1, "2"]}]), "a series without labels"),
        (success([{"metric": {}}]), "a value that is not a pair"),
        (success([{"metric": {}, "value": [1, 2]}]), "a value that is not a pair"),
        (success([{"metric": {}, "value": [1, "many"]}]), "a value that is not a number"),
        (Reply(b"{}" * 10, headers=(("Content-Encoding", "gzip"),)), "incomplete or damaged"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["token", "login"])
def test_errors(reply: Reply, reason: str, kind: str, tmp_path: Path) -> None:
    with serve_replies(reply) as server:
        if kind == "token":
            message = fail(with_login(server.url), f"X-Scope-OrgID: {TENANT}", token_file=token_file(tmp_path))
        else:
            message = fail(with_login(server.url), f"X-Scope-OrgID: {TENANT}", f"X-Api-Key: Bearer {SECRET}")
        assert reason in message
        assert message.startswith(f"{server.url}: ")


def test_missing_credentials() -> None:
    with serve_replies(Reply(b"", 401)) as server:
        assert "pass the credentials" in fail(server.url)


def test_incomplete_answer() -> None:
    with serve_replies(Reply(b"{", headers=(("Content-Length", "100"),))) as server:
        assert fail(server.url) == f"{server.url}: the answer is incomplete or damaged"


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_replies(success(SERIES * 20)) as server:
        monkeypatch.setattr(prometheus_client, "MAX_PROMETHEUS_SERIES", Bound(10, ""))
        assert "20 series, more than the maximum of 10" in fail(server.url)
    with serve_replies(Reply(gzip.compress(b" " * (40 << 20)), headers=(("Content-Encoding", "gzip"),))) as server:
        assert "more than 32 MiB" in fail(server.url)


@pytest.mark.parametrize("delay", [0.4, 30])
def test_time_out(delay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit also applies to a server that sends a byte from time to time."""
    monkeypatch.setattr(prometheus_client, "MAX_PROMETHEUS_SECONDS", Bound(1, ""))
    with serve_replies(success(SERIES)._replace(delay=delay)) as server:
        assert "no answer within 1 s" in fail(server.url)


def test_answer_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-out of the socket may come before that of the client. Both have the same message."""

    class PatientThread(Thread):
        def join(self, timeout: float | None = None) -> None:  # noqa: ARG002  # waits for the socket
            super().join()

    monkeypatch.setattr(prometheus_client, "Thread", PatientThread)
    monkeypatch.setattr(prometheus_client, "MAX_PROMETHEUS_SECONDS", Bound(1, ""))
    with serve_replies(success(SERIES)._replace(delay=30)) as server:
        assert "no answer within 1 s" in fail(server.url)


def test_warnings_of_thanos() -> None:
    texts = [f"store {number} is down: {SECRET}" for number in range(8)]
    with serve_replies(success(SERIES, warnings=texts)) as server:
        with PrometheusClient(parse_connection(server.url, [f"X-Key: {SECRET}"])) as client:
            client.query("up", 1)
            client.query("up", 1)
        assert client.warnings == (*(f"store {number} is down: ***" for number in range(5)), "and 3 more warnings")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"url": "localhost:9090"}, "--prometheus: this is not an address"),
        ({"url": f"ftp://alice:{SECRET}@host"}, "--prometheus: this is not an address"),
        ({"url": f"http://alice:{SECRET}@host:99999999"}, "--prometheus: this is not an address"),
        ({"url": "http://[::1"}, "--prometheus: this is not an address"),
        ({"url": "http://ho st"}, "--prometheus: this is not an address"),
        ({"headers": [SECRET]}, "--header: this is not a header"),
        ({"headers": [f"X: {SECRET}\r\nY: 1"]}, "--header X: the value has a character"),
        ({"headers": [f"X: {SECRET}ä"]}, "--header X: the value has a character"),
        ({"token_file": "absent"}, "--token-file absent: "),
        ({"key": "own.key"}, "--client-key requires --client-certificate"),
        ({"authority": "absent.pem"}, "--certificate-authority absent.pem: "),
        ({"certificate": "absent.pem"}, "--client-certificate absent.pem: "),
        ({"authority": "a", "is_verified": False}, "cannot be combined"),
    ],
)
def test_invalid_options(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError) as error:
        parse_connection(**{"url": "http://localhost:9090", **options})
    assert reason in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("text", ["", "\n", f"{SECRET} two", f"{SECRET}\nsecond", "\x00\xff", "x" * 70_000])
def test_file_without_a_token(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not contain a token") as error:
        parse_connection("http://localhost", token_file=token_file(tmp_path, text))
    assert SECRET not in str(error.value)


def test_two_tokens(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be combined"):
        parse_connection("http://localhost", ["authorization: Bearer x"], token_file=token_file(tmp_path))


def test_file_that_is_no_certificate(tmp_path: Path) -> None:
    for option in ("authority", "certificate"):
        options: dict[str, Any] = {option: token_file(tmp_path)}
        with pytest.raises(UserError, match="not in the format PEM"):
            parse_connection("https://localhost", **options)


def test_notes_about_connections_that_others_can_read(tmp_path: Path) -> None:
    token = token_file(tmp_path)
    cases: list[tuple[str, dict[str, Any], str | None]] = [
        ("http://prometheus.example.com", {"token_file": token}, "http sends the credentials unencrypted"),
        ("http://prometheus.example.com", {}, None),
        ("http://localhost:9090", {"token_file": token}, None),
        ("https://prometheus.example.com", {"token_file": token}, None),
        ("https://prometheus.example.com", {"is_verified": False}, "the certificate is not verified"),
    ]
    for url, options, note in cases:
        notes = PrometheusClient(parse_connection(url, **options)).notes
        assert len(notes) == (note is not None)
        assert note is None or note in notes[0]


def test_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    with ExitStack() as stack:
        error = stack.enter_context(pytest.raises(UserError))
        PrometheusClient(parse_connection("http://localhost"))
    assert "pip install 'apflint[prometheus]'" in str(error.value)
