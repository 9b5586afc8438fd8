"""An S3 server (moto) in its own process, with a bucket for tests."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = [name for name in ("s3fs", "moto", "flask") if find_spec(name) is None]
needs_object_store = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (apflint[test])")
BUCKET = "audit-logs"
_START_SECONDS = 60.0


class ObjectStore(NamedTuple):
    """A running server."""

    url: str

    def put(self, key: str, content: bytes) -> str:
        """Store an object in the bucket. Return its URL for apflint."""
        self.send("PUT", f"{BUCKET}/{quote(key, safe='')}", content)
        return f"s3://{BUCKET}/{key}"

    def send(self, method: str, path: str, content: bytes = b"") -> bytes:
        """Send a request without a valid signature, and return the answer."""
        headers = {
            "Content-Type": "application/octet-stream",  # otherwise, the server would read the content as a form
            "Authorization": "AWS4-HMAC-SHA256 Credential=testing/20261122/us-east-1/s3/aws4_request",
        }
        with urlopen(Request(f"{self.url}/{path}", content, headers, method=method), timeout=10) as response:
            answer: bytes = response.read()
        return answer

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which AWS SDKs use this server."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",  # otherwise, SDKs without credentials search for a metadata server
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }


@contextmanager
def run_object_store() -> Iterator[ObjectStore]:
    """Start a server with an empty bucket on a free port of this machine, and end it afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                assert process.poll() is None, "the S3 server has ended"
                assert time.monotonic() < deadline, "the S3 server does not start"
                time.sleep(0.05)
            else:
                break
        store = ObjectStore(f"http://127.0.0.1:{port}")
        store.send("PUT", BUCKET)
        yield store
    finally:
        process.kill()
        process.wait()
