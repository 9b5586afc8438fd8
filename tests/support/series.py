"""Reads the recorded series of incidents, and writes them for promtool and Prometheus.

fixtures/doctor/series/README.md describes the format.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.cli.options import parse_seats
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.releases import parse_release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent.parent
SERIES = ROOT / "fixtures" / "doctor" / "series"
INTERVAL_SECONDS = 5
KUBE_APISERVER = {"job": "kube-apiserver", "instance": "192.0.2.1:6443", "cluster": "test"}


class Series(NamedTuple):
    """A series with a value every 5 seconds."""

    metric: str
    labels: str
    """Labels as PromQL, such as `flow_schema="probes",priority_level="exempt"`."""
    values: tuple[str, ...]
    """Values as text. `_` is a missing value."""

    def name(self, labels: Mapping[str, str]) -> str:
        """Return the series in PromQL, with the labels of a target added."""
        target = ",".join(f'{name}="{value}"' for name, value in labels.items())
        return f"{self.metric}{{{','.join(filter(None, (target, self.labels)))}}}"


class Recording(NamedTuple):
    """The series of a recorded server. Times are in seconds after the first scrape."""

    name: str
    cause: str
    is_healthy: bool
    start: float
    """Time of the first scrape, in seconds since 1970."""
    started: float | None
    """Time at which the cause started, or None if the recording has no cause."""
    ended: float | None
    seats: str
    objects: tuple[dict[str, Any], ...]
    series: tuple[Series, ...]

    @property
    def effective(self) -> Effective:
        """The configuration of the server."""
        inputs = [(f"{number}.json", json.dumps(item).encode()) for number, item in enumerate(self.objects)]
        workspace = build_workspace(load_inputs(inputs), parse_release("1.36"))
        return Effective(workspace, Assumptions(server_concurrency=parse_seats(self.seats)))

    @property
    def last(self) -> int:
        """Time of the last scrape, in seconds after the first."""
        return INTERVAL_SECONDS * (max(len(series.values) for series in self.series) - 1)


NAMES: tuple[str, ...] = tuple(json.loads((SERIES / "recordings.json").read_text()))


@cache
def read_recording(name: str) -> Recording:
    """Read a recording, such as `small-level` or `small-level-fixed`."""
    facts = json.loads((SERIES / "recordings.json").read_text())[name]
    lines = gzip.decompress((SERIES / f"{name}.txt.gz").read_bytes()).decode().splitlines()
    return Recording(
        name,
        facts["cause"],
        facts["healthy"],
        facts["start"],
        facts["started"],
        facts["ended"],
        facts["seats"],
        tuple(facts["objects"]),
        tuple(_parse_series(line) for line in lines),
    )


def _parse_series(line: str) -> Series:
    metric, _, rest = line.partition("{")
    labels, _, values = rest.rpartition("} ")
    return Series(metric, labels, tuple(values.split(" ")))


def list_input_series(recording: Recording, labels: Mapping[str, str], *, delay: int = 0) -> list[dict[str, str]]:
    """Return `input_series` of a promtool test with an interval of 5 seconds. The series start after `delay` seconds."""
    missing = ["_"] * (delay // INTERVAL_SECONDS)
    return [
        {"series": series.name(labels), "values": " ".join((*missing, *series.values))} for series in recording.series
    ]


def write_openmetrics(recording: Recording, labels: Mapping[str, str], start: float) -> Iterator[str]:
    """Yield lines for `promtool tsdb create-blocks-from openmetrics`. The first scrape is at `start` seconds since 1970."""
    for series in recording.series:
        name = series.name(labels)
        for index, value in enumerate(series.values):
            if value != "_":
                yield f"{name} {value} {start + index * INTERVAL_SECONDS:.3f}\n"
