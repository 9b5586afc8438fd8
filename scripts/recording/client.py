"""HTTP client for the API of a kube-apiserver."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message
    from pathlib import Path

TIMEOUT_SECONDS = 60
MAX_ATTEMPTS = 5


class ServerError(Exception):
    """Raised if the server does not answer, or answers unexpectedly. The message names the request."""


class Answer(NamedTuple):
    """Response of the server."""

    status: int
    headers: Message
    body: bytes

    def json(self) -> Any:
        """Decode the body. Raises ServerError if the body is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ServerError(f"the server answers {self.status} without JSON: {self.body[:200]!r}") from error


class Credentials(NamedTuple):
    """Credentials of the client. If empty, a proxy such as `kubectl proxy` must add credentials."""

    token: str = ""
    ca_file: Path | None = None
    """File with trusted certificates, or None to trust the certificates of the system."""
    certificate: Path | None = None
    key: Path | None = None


class Client:
    """A connection to a server. Not thread-safe."""

    def __init__(self, url: str, credentials: Credentials = Credentials()) -> None:  # noqa: B008  # immutable
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerError(f"{url} is not the URL of a server: write it like https://127.0.0.1:6443")
        self._token = credentials.token
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=credentials.ca_file)
            if credentials.certificate:
                context.load_cert_chain(credentials.certificate, credentials.key)
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_SECONDS, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close the connection. The next request opens it again."""
        self._connection.close()

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request, and return the response with any status.

        Repeats the request if the server is too busy. Raises ServerError if there is no response.
        """
        sent = {"Accept": "application/json", **(headers or {})}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                self._connection.request(method, path, body, sent)
                response = self._connection.getresponse()
                answer = Answer(response.status, response.headers, response.read())
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if attempt == MAX_ATTEMPTS:
                    raise ServerError(f"{method} {path}: {error}") from error
                continue
            if answer.status != http.HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        return answer

    def get(self, path: str) -> Any:
        """Return the JSON value at a path. Raises ServerError unless the server answers 200."""
        return self._expect_ok("GET", path).json()

    def get_text(self, path: str) -> str:
        """Return the text at a path. Raises ServerError unless the server answers 200."""
        return self._expect_ok("GET", path).body.decode()

    def write(self, method: str, path: str, value: Any = None) -> None:
        """Create, replace or delete an object. Raises ServerError if the server rejects the request."""
        body = None if value is None else json.dumps(value).encode()
        self._expect_ok(method, path, body, {"Content-Type": "application/json"})

    def _expect_ok(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        answer = self.send(method, path, body, headers)
        if answer.status not in (http.HTTPStatus.OK, http.HTTPStatus.CREATED):
            raise ServerError(f"{method} {path}: the server answers {answer.status}: {answer.body[:300]!r}")
        return answer
