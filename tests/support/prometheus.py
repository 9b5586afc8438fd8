"""Runs a real Prometheus on a loopback port with the series of recorded incidents. Without Prometheus, tests are skipped.

with serve(tmp_path, [(read_recording("small-level"), KUBE_APISERVER)]) as server:
    server.query_range("up", server.start, server.end)
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from support.series import write_openmetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from support.series import Recording

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(
    PROMETHEUS is None or PROMTOOL is None,
    reason="prometheus and promtool are not installed: they are part of the Debian package prometheus",
)
START = 1_700_000_000
"""Time of the first scrape of every recording, in seconds since 1970."""
_READY_SECONDS = 60
_CONFIGURATION = "global: {scrape_interval: 1h}\n"


class Result(NamedTuple):
    """A series in a response of Prometheus."""

    labels: dict[str, str]
    values: list[tuple[float, float]]
    """Pairs of time (seconds since 1970) and value."""


class Server(NamedTuple):
    """A running Prometheus."""

    url: str
    start: int
    """Time of the first scrape."""
    end: int
    """Time of the last scrape."""

    def query_range(self, expression: str, start: float, end: float, step: int = 5) -> list[Result]:
        """Return the values of an expression. Raises AssertionError if Prometheus reports an error."""
        answer = self.get("/api/v1/query_range", query=expression, start=start, end=end, step=step)
        return [
            Result(result["metric"], [(seconds, float(value)) for seconds, value in result["values"]])
            for result in answer["result"]
        ]

    def list_label_values(self, label: str, selector: str) -> list[str]:
        """Return the values of a label, as the function `label_values` of Grafana does."""
        values: list[str] = self.get(
            f"/api/v1/label/{label}/values", **{"match[]": selector}, start=self.start, end=self.end
        )
        return values

    def get(self, path: str, **parameters: object) -> Any:
        """Return the field `data` of a response of the API."""
        address = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error


@contextmanager
def serve(directory: Path, recordings: Sequence[tuple[Recording, Mapping[str, str]]]) -> Iterator[Server]:
    """Run a Prometheus with recordings, each with the labels of its target. All recordings start at `START`."""
    assert PROMETHEUS is not None
    data = directory / "data"
    for number, (recording, labels) in enumerate(recordings):
        _write_blocks(directory / f"{number}.om", data, recording, labels)
    (directory / "prometheus.yml").write_text(_CONFIGURATION, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        PROMETHEUS,
        "--config.file=prometheus.yml",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    ]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(command, cwd=directory, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_until_ready(f"http://{address}/-/ready", process, directory / "log")
            yield Server(f"http://{address}", START, START + max(recording.last for recording, _ in recordings))
        finally:
            process.kill()


def _write_blocks(file: Path, data: Path, recording: Recording, labels: Mapping[str, str]) -> None:
    assert PROMTOOL is not None
    with file.open("w", encoding="utf-8") as text:
        text.writelines(write_openmetrics(recording, labels, START))
        text.write("# EOF\n")
    command = [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(file), str(data)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:  # not yet ready: the connection is refused, or the response is 503
            time.sleep(0.1)
    raise AssertionError(f"Prometheus did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
