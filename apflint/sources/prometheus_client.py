"""Queries Prometheus, Thanos and Mimir over their HTTP API.

The API is described at https://prometheus.io/docs/prometheus/latest/querying/api/. Queries are GET requests, because
the proxies of Kubernetes and OpenShift allow them with the permission `get`. POST requests would need the permission
`create`. Redirects are not followed, because they lead to login pages, and because headers with credentials must not
reach another host. The messages of exceptions contain no credentials.
"""

from __future__ import annotations

import json
import math
import re
import socket
import ssl
from base64 import b64encode
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from apflint.budgets import (
    MAX_CREDENTIAL_BYTES,
    MAX_PROMETHEUS_BYTES,
    MAX_PROMETHEUS_SECONDS,
    MAX_PROMETHEUS_SERIES,
)
from apflint.sources.file_reading import describe_failure
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import requests

READER = "prometheus"
"""Name of the thread that reads an answer."""
_CONNECT_SECONDS = 10
_PIECE_BYTES = 64 * 1024
_MAX_MESSAGE_CHARACTERS = 300
"""Maximum number of characters that are shown of an error message from the server."""
_MAX_WARNINGS = 5
_MIN_SECRET_CHARACTERS = 3
"""Minimum length of the value of a header that is removed from messages. Shorter values, such as `1`, are not secrets."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REDACTED = "***"


class Connection(NamedTuple):
    """Address and credentials of a Prometheus server."""

    url: str
    """Address without credentials. The path of the API is this address plus `/api/v1/`."""
    shown: str
    """Address for messages, without the query string."""
    login: tuple[str, str] | None = None
    """User and password in the address, or None if the address has none."""
    headers: tuple[tuple[str, str], ...] = ()
    token: str | None = None
    authority: str | None = None
    """File with the certificates of trusted authorities.

    If None, the package requests uses its own certificates, or the file in the variable REQUESTS_CA_BUNDLE."""
    certificate: str | None = None
    """File with the certificate of the client."""
    key: str | None = None
    """File with the private key of `certificate`, or None if the file of the certificate contains the key."""
    is_verified: bool = True

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that must not appear in messages, the longest first."""
        login = self.login or ("", "")
        basic = b64encode(":".join(login).encode()).decode() if self.login else ""
        values = [value for _, value in self.headers if len(value) >= _MIN_SECRET_CHARACTERS]
        words = [word for value in values for word in value.split(" ") if len(word) >= _MIN_SECRET_CHARACTERS]
        found = {*values, *words, self.token or "", login[1], basic}
        return tuple(sorted(filter(None, found), key=lambda secret: (-len(secret), secret)))

    @property
    def has_credentials(self) -> bool:
        """Whether requests to Prometheus contain a login, a token or headers, or use a client certificate."""
        return bool(self.login or self.token or self.headers or self.certificate)


class InstantSample(NamedTuple):
    """A series of an answer, with its value at the time of the query."""

    labels: dict[str, str]
    value: str
    """The value as Prometheus writes it, such as `1.5e+06`, `NaN` or `+Inf`."""


class RangeSeries(NamedTuple):
    """A series of an answer, with its values at several times.

    The keys of `values` are times in seconds since 1970. Values that are NaN or infinite are left out.
    """

    labels: dict[str, str]
    values: dict[float, float]


def parse_connection(
    url: str,
    headers: Iterable[str] = (),
    *,
    token_file: str | None = None,
    authority: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    is_verified: bool = True,
) -> Connection:
    """Return the connection that the options describe.

    Raises UserError for an invalid value, for contradictory options, and for a file that cannot be read.
    """
    parts = _split_url(url)
    if key is not None and certificate is None:
        raise UserError("--client-key requires --client-certificate")
    if authority is not None and not is_verified:
        raise UserError("--certificate-authority and --insecure-skip-tls-verify cannot be combined")
    host = parts.hostname or ""
    address = f"[{host}]" if ":" in host else host
    address += f":{parts.port}" if parts.port is not None else ""
    path = re.sub(r"/(api(/v1)?/?)?$", "", parts.path)
    shown = urlunsplit((parts.scheme, address, path, "", ""))
    parsed = tuple(_parse_header(header) for header in headers)
    token = _read_token(token_file) if token_file is not None else None
    if token is not None and any(name.lower() == "authorization" for name, _ in parsed):
        raise UserError("--token-file and --header Authorization cannot be combined")
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else None
    _check_certificates(authority, certificate, key)
    return Connection(
        urlunsplit((parts.scheme, address, path, parts.query, "")),
        shown,
        login,
        parsed,
        token,
        authority,
        certificate,
        key,
        is_verified,
    )


def _split_url(url: str) -> SplitResult:
    """Split an address into its parts.

    Raises UserError for an invalid address. The message does not quote the address, which may contain credentials.
    """
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not url.isprintable() or " " in url:
        raise UserError("--prometheus: this is not an address such as https://prometheus.example.com:9090")
    return parts


def _parse_header(text: str) -> tuple[str, str]:
    """Parse a header `NAME: VALUE`.

    Raises UserError for an invalid header. The message does not contain the value, which may be secret.
    """
    name, colon, value = text.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name.strip()):
        raise UserError("--header: this is not a header such as 'X-Scope-OrgID: prod'")
    if not value.strip().isascii() or not value.strip().isprintable():
        raise UserError(f"--header {name.strip()}: the value has a character that a header must not have")
    return name.strip(), value.strip()


def _read_token(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_CREDENTIAL_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UserError(f"--token-file {path}: {describe_failure(path, error)}") from None
    token = data.strip().decode("ascii", "replace")
    if not token or len(data) > MAX_CREDENTIAL_BYTES or not token.isascii() or not token.isprintable() or " " in token:
        raise UserError(f"--token-file {path}: the file does not contain a token, which is one line without spaces")
    return token


def _check_certificates(authority: str | None, certificate: str | None, key: str | None) -> None:
    """Raise UserError if the TLS library cannot load one of the files.

    A key with a passphrase is rejected, because the library would ask the user for the passphrase.
    """
    context = ssl.create_default_context()
    try:
        if authority is not None:
            context.load_verify_locations(authority)
    except (OSError, ValueError) as error:
        raise UserError(f"--certificate-authority {authority}: {_describe_file(authority, error)}") from None
    try:
        if certificate is not None:
            context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        shown = f"--client-certificate {certificate}" + (f", --client-key {key}" if key is not None else "")
        raise UserError(f"{shown}: {_describe_file(certificate, error)}") from None


def _describe_file(path: str | None, error: Exception) -> str:
    if isinstance(error, ssl.SSLError) or not isinstance(error, OSError):
        return "the file is not in the format PEM, or the key does not match the certificate or has a passphrase"
    return describe_failure(path or "", error)


class PrometheusClient:
    """Queries a Prometheus server. Use it as a context manager.

    Its methods raise UserError if the server does not answer, or if the answer does not have the form of Prometheus' HTTP API.
    """

    def __init__(self, connection: Connection) -> None:
        try:
            import requests  # requests is an optional dependency
        except ImportError:
            raise UserError(
                "--prometheus needs the Python package requests, which is not installed: pip install 'apflint[prometheus]'"
            ) from None
        self.connection = connection
        self.queries = 0
        """Number of queries so far."""
        self._warnings: dict[str, None] = {}  # an ordered set: only the keys are used
        self._session = requests.Session()
        self._session.auth = self._authorize  # because `auth` is set, requests does not send passwords from ~/.netrc
        self._session.headers.update(dict(connection.headers))
        if not connection.is_verified:
            import urllib3

            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.connection.token is not None:
            request.headers["Authorization"] = f"Bearer {self.connection.token}"
        elif self.connection.login is not None:
            pair = b64encode(":".join(self.connection.login).encode()).decode()
            request.headers["Authorization"] = f"Basic {pair}"
        return request

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings in the answers of the server, such as those of Thanos about stores that Thanos could not read."""
        found = list(self._warnings)
        more = [f"and {len(found) - _MAX_WARNINGS} more warnings"] if len(found) > _MAX_WARNINGS else []
        return (*found[:_MAX_WARNINGS], *more)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about security risks of the connection."""
        host = urlsplit(self.connection.url).hostname
        if not self.connection.is_verified:
            return (f"{self.connection.shown}: the certificate is not verified (--insecure-skip-tls-verify)",)
        if self.connection.url.startswith("http:") and self.connection.has_credentials and host not in _LOOPBACK:
            return (f"{self.connection.shown}: http sends the credentials unencrypted; use https",)
        return ()

    def query(self, expression: str, time: float) -> list[InstantSample]:
        """Return the value of each series of an expression at a time in seconds since 1970."""
        result = self._get("query", "vector", {"query": expression, "time": f"{time:.3f}"})
        samples = [InstantSample(labels, self._point(entry.get("value"))[1]) for labels, entry in result]
        for sample in samples:
            self._number(sample.value)
        return samples

    def query_samples(self, expression: str, time: float) -> list[RangeSeries]:
        """Return the samples that Prometheus has stored for each series of a range vector, such as `up[5m]`.

        The times of the samples are the times of the scrapes. `time` is the end of the range, in seconds since 1970.
        """
        return self._read_series("query", {"query": expression, "time": f"{time:.3f}"})

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[RangeSeries]:
        """Return the values of each series of an expression at the times from `start` to `end`, `step` seconds apart."""
        parameters = {"query": expression, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        return self._read_series("query_range", parameters)

    def _read_series(self, name: str, parameters: dict[str, str]) -> list[RangeSeries]:
        found = []
        for labels, entry in self._get(name, "matrix", parameters):
            values = entry.get("values")
            if not isinstance(values, list):
                raise self._unexpected("a series without values")
            points = map(self._point, values)
            numbers = {time: number for time, text in points if math.isfinite(number := self._number(text))}
            found.append(RangeSeries(labels, numbers))
        return found

    def _get(self, name: str, kind: str, parameters: dict[str, str]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
        """Send a query, and yield (labels, series) for each series of the answer.

        `name` is the endpoint of the API, and `kind` is the expected type of the result, such as `vector`.
        """
        answer = self._read_answer(name, {**parameters, "timeout": f"{MAX_PROMETHEUS_SECONDS:d}s"})
        data = answer.get("data")
        if not isinstance(data, dict) or data.get("resultType") != kind or not isinstance(data.get("result"), list):
            raise self._unexpected(f"no {kind}")
        if len(data["result"]) > MAX_PROMETHEUS_SERIES:
            raise UserError(
                f"{self.connection.shown}: the answer has {len(data['result']):,} series, more than the maximum of"
                f" {MAX_PROMETHEUS_SERIES:,}: select fewer API servers with --selector"
            )
        for entry in data["result"]:
            labels = entry.get("metric") if isinstance(entry, dict) else None
            if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
                raise self._unexpected("a series without labels")
            yield labels, entry

    def _point(self, value: object) -> tuple[float, str]:
        match value:
            case [int() | float() as time, str() as text]:
                return float(time), text
        raise self._unexpected("a value that is not a pair of a time and a number")

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self._unexpected("a value that is not a number") from None

    def _read_answer(self, name: str, parameters: dict[str, str]) -> dict[str, Any]:
        status, kind, location, body = self._fetch(name, parameters)
        answer = _parse_json(body)
        if isinstance(answer, dict) and answer.get("status") == "error":
            self._check_access(status)
            raise UserError(
                f"{self.connection.shown}: the query failed: {self._clean(answer.get('errorType'))}:"
                f" {self._clean(answer.get('error'))}"
            )
        self._check_access(status)
        if 300 <= status < 400:
            raise UserError(
                f"{self.connection.shown}: the answer is a redirect to {_drop_query(location)}: name the address of the"
                " API of Prometheus. A redirect to a login page means that credentials are missing"
            )
        if status == 404:
            raise UserError(
                f"{self.connection.shown}: there is no API of Prometheus at this path (404): name the address without"
                " /api/v1. The address of Mimir ends with /prometheus"
            )
        if status != 200:
            raise UserError(f"{self.connection.shown}: the answer is the error {status}")
        if not isinstance(answer, dict) or answer.get("status") != "success":
            shown = "HTML" if "html" in kind or body.lstrip()[:1] == b"<" else "something else"
            raise UserError(
                f"{self.connection.shown}: the answer is {shown} instead of JSON of Prometheus. Name the address of the"
                " API of Prometheus. If the answer is a login page, credentials are missing"
            )
        warnings = answer.get("warnings")
        for text in warnings if isinstance(warnings, list) else ():
            self._warnings[self._clean(text)] = None
        return answer

    def _check_access(self, status: int) -> None:
        if status in (401, 403, 407):
            action = "check" if self.connection.has_credentials else "pass"
            raise UserError(
                f"{self.connection.shown}: access is denied ({status}): {action} the credentials (--token-file, --header, or"
                " --client-certificate)"
            )

    def _fetch(self, name: str, parameters: dict[str, str]) -> tuple[int, str, str, bytes]:
        """Send a query, and return HTTP status, content type, target of a redirect, and body of the answer.

        A thread reads the answer, so that the total time can be limited. A timeout of the socket would limit only the
        time between two bytes.
        """
        found: list[tuple[int, str, str, bytes] | Exception] = []

        def read() -> None:
            try:
                found.append(self._request(name, parameters))
            except Exception as error:  # noqa: BLE001  # raised again below
                found.append(error)

        thread = Thread(target=read, name=READER, daemon=True)
        thread.start()
        thread.join(MAX_PROMETHEUS_SECONDS)
        self.queries += 1
        if not found:
            raise self._timeout()
        if isinstance(found[0], Exception):
            raise self._describe(found[0]) from None
        return found[0]

    def _request(self, name: str, parameters: Mapping[str, str]) -> tuple[int, str, str, bytes]:
        connection = self.connection
        scheme, address, path, query, _ = urlsplit(connection.url)
        with self._session.get(
            urlunsplit((scheme, address, f"{path}/api/v1/{name}", query, "")),
            params=parameters,
            timeout=(_CONNECT_SECONDS, MAX_PROMETHEUS_SECONDS),
            verify=connection.authority if connection.authority is not None else connection.is_verified,
            cert=(connection.certificate, connection.key) if connection.key else connection.certificate,  # type: ignore[arg-type]  # checked when parsed
            allow_redirects=False,
            stream=True,
        ) as response:
            pieces, size = [], 0
            for piece in response.iter_content(_PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_PROMETHEUS_BYTES:
                    raise UserError(
                        f"{connection.shown}: the answer has more than {MAX_PROMETHEUS_BYTES >> 20} MiB: select fewer API"
                        " servers with --selector"
                    )
            headers = response.headers
            return (
                response.status_code,
                headers.get("Content-Type", ""),
                headers.get("Location", ""),
                b"".join(pieces),
            )

    def _describe(self, error: Exception) -> UserError:
        """Return an error that states why Prometheus did not answer.

        The message does not contain the text of `error`, because errors of requests may contain credentials.
        """
        from requests import exceptions

        shown = self.connection.shown
        if isinstance(error, UserError):
            return error
        # requests raises ConnectionError, not Timeout, if an answer stops in its body. Time-outs of sockets have no errno.
        has_stopped = any(isinstance(found, TimeoutError) and found.errno is None for found in _chain(error))
        if has_stopped or isinstance(error, exceptions.Timeout):
            return self._timeout()
        if isinstance(error, exceptions.SSLError):
            return UserError(
                f"{shown}: TLS failed: {_describe_tls(error)}. Name the authority of the server's certificate with"
                " --certificate-authority, or a client certificate with --client-certificate"
            )
        if isinstance(error, exceptions.ProxyError | exceptions.InvalidProxyURL):
            return UserError(f"{shown}: the proxy in the environment variables does not connect to this address")
        if isinstance(error, exceptions.ChunkedEncodingError | exceptions.ContentDecodingError):
            return UserError(f"{shown}: the answer is incomplete or damaged")
        if isinstance(error, exceptions.RequestException | OSError):
            return UserError(f"{shown}: there is no connection: {_describe_connection(error)}")
        raise error

    def _timeout(self) -> UserError:
        return UserError(
            f"{self.connection.shown}: no answer within {MAX_PROMETHEUS_SECONDS} s: choose a shorter period with --since, or fewer"
            " API servers with --selector"
        )

    def _unexpected(self, reason: str) -> UserError:
        return UserError(f"{self.connection.shown}: the answer is not in the format of Prometheus: it has {reason}")

    def _clean(self, value: object) -> str:
        """Return a text that the server sent, on one line, shortened, and without credentials."""
        text = " ".join(str(value).split())
        for secret in self.connection.secrets:
            text = text.replace(secret, _REDACTED)
        return text if len(text) <= _MAX_MESSAGE_CHARACTERS else f"{text[:_MAX_MESSAGE_CHARACTERS]}…"


def _parse_json(body: bytes) -> object:
    """Return the value of a JSON text, or None if the text is not valid JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _drop_query(location: str) -> str:
    """Return the address of a redirect without its user, password and query string, which may be secret."""
    try:
        parts = urlsplit(location)
        return quote(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))
    except ValueError:
        return "another address"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, and then its causes, contexts, reasons and exceptions in its arguments, recursively."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, BaseException) or any(current is known for known in seen):
            continue
        seen.append(current)
        yield current
        waiting += [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]


def _describe_tls(error: Exception) -> str:
    for found in _chain(error):
        if isinstance(found, ssl.SSLCertVerificationError):
            return found.verify_message
    return next(
        (found.reason for found in _chain(error) if isinstance(found, ssl.SSLError) and found.reason), "no reason"
    )


def _describe_connection(error: Exception) -> str:
    for found in _chain(error):
        if isinstance(found, socket.gaierror):
            return "the name of the host is unknown"
        if type(found) is not OSError and isinstance(found, OSError) and found.strerror and not found.filename:
            return found.strerror
    return "it was closed or refused"
