"""Labelled incidents of a kube-apiserver: recorded metrics and dumps, and their true causes. APFLINT_RECORDINGS adds more."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from apflint.doctor.causes import conclude
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import Part, group_servers, parse_part
from support.recordings import ROOT, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from apflint.doctor.causes import Conclusion

INCIDENTS = ROOT / "fixtures" / "doctor" / "incidents"
RECORDINGS = [
    path
    for path in (ROOT.parent / "shared" / "oracle", ROOT.parent.parent / "shared" / "oracle")
    if (path / "incidents").is_dir()
]
COMPLETE = (
    (type(ROOT)(os.environ["APFLINT_RECORDINGS"]) if "APFLINT_RECORDINGS" in os.environ else None)
    or next(iter(RECORDINGS), ROOT / "absent")
) / "incidents"
"""Directory of the complete recordings, with their series. May be absent."""
MOMENTS = {"0": "0-before", "1": "1-during", "2": "2-during", "3": "3-after", "f": "flood"}
NAMES = sorted(str(path.parent.relative_to(INCIDENTS)) for path in INCIDENTS.rglob("label.json"))
"""Names of incidents, and of the recordings after their fix: `slow-webhook`, `slow-webhook/fixed`."""
_SCALED_GAUGES = (
    "nominal_limit_seats",
    "lower_limit_seats",
    "upper_limit_seats",
    "current_limit_seats",
    "current_executing_seats",
    "current_executing_requests",
    "current_inqueue_requests",
    "current_inqueue_seats",
    "demand_seats_average",
    "demand_seats_high_watermark",
    "demand_seats_smoothed",
    "demand_seats_stdev",
)
_COUNTED = (
    "apiserver_flowcontrol_dispatched_requests_total",
    "apiserver_flowcontrol_rejected_requests_total",
    "apiserver_flowcontrol_request_execution_seconds",
    "apiserver_flowcontrol_request_wait_duration_seconds",
    "apiserver_flowcontrol_work_estimated_seats",
    "apiserver_admission_webhook_",
    "etcd_request",
    "apiserver_request_terminations_total",
    "apiserver_init_events_total",
)
"""Prefixes of the names of counters that count requests. Other counters count time."""
RENAMED = {
    "workload-low": "tenants-low",
    "service-accounts": "robots",
    "platform-shared": "infra-all",
    "platform": "infra",
    "reporting": "analytics",
    "batch": "deferred",
    "apps": "web-tier",
    "floodgate": "jail",
    "bulk-readers": "crawlers",
    "policy.payments.example.com": "vet.example.org",
    "authz.policy.example.com": "gate.example.org",
    "checkout-deployer": "rollout",
    "image-tagger": "tagbot",
    "ci-pipeline": "bob",
    "dora": "zoe",
    "opa": "judge",
    "asset-sync": "inventory-reader",
    "node-agent": "watchdog",
    "backup-agent": "archiver",
    "partner-acme": "partner-one",
    "configmaps": "configsets",
}
"""Other names for objects, users, webhooks and resources. Names must not change a conclusion."""


def read_label(name: str, root: Path = INCIDENTS) -> dict[str, Any]:
    """Return the label of an incident: its true cause and other facts."""
    label: dict[str, Any] = json.loads((root / name / "label.json").read_text("utf-8"))
    return label


def find_files(name: str, moments: str, *, dumps: bool, metrics: bool = True, root: Path = INCIDENTS) -> list[Path]:
    """Return the files of some moments, such as `12` for moments 1 and 2.

    Only moment 1 has dumps. Incidents of imbalance have the files of two servers.
    """
    found: list[Path] = []
    for folder in (root / name, root / name / "peer"):
        if folder.name == "peer" and not folder.is_dir():
            continue
        for moment in moments:
            if metrics:
                found.append(folder / f"{MOMENTS[moment]}.metrics.txt.gz")
            if dumps:
                found += sorted(folder.glob(f"{MOMENTS[moment]}.dump_*"))
    return found


@lru_cache(None)
def _read(path: Path) -> str:
    return read_text(path)


@lru_cache(None)
def _parse(path: Path) -> Part:
    return parse_part(str(path), _read(path))


def conclude_files(paths: Iterable[Path], change: Callable[[str], str | None] | None = None) -> Conclusion:
    """Return the conclusion from files. `change` changes the text of a file, or returns None to leave the file out."""
    parts = []
    for path in paths:
        if change is None:
            parts.append(_parse(path))
        elif (text := change(_read(path))) is not None:
            parts.append(parse_part(str(path), text))
    return conclude([compute_state(server) for server in group_servers(parts)])


def rename(text: str) -> str:
    """Return metrics or a dump with the names replaced by those in `RENAMED`."""
    for name, other in RENAMED.items():
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", other, text)
    return text


def scale(text: str, factor: float) -> str | None:
    """Return metrics or a dump of requests, changed to a server with `factor` times the seats, requests and clients.

    Durations are unchanged. Return None for a dump of levels or queues: its counters would contradict the metrics.
    """
    if text.startswith("PriorityLevelName"):
        return _scale_requests(text, factor) if text.startswith("PriorityLevelName, FlowSchemaName") else None
    return "\n".join(_scale_sample(line, factor) for line in text.split("\n"))


def _scale_requests(text: str, factor: float) -> str:
    titles, *rows = text.split("\n")[:-1]
    if factor < 1:
        rows = rows[:: round(1 / factor)] if len(rows) > 3 else rows
    else:
        rows = [row for row in rows for _ in range(round(factor))]
    return "\n".join([titles, *rows, ""])


def _scale_sample(line: str, factor: float) -> str:
    name = re.split(r"[{ ]", line, maxsplit=1)[0]
    body, _, number = line.rpartition(" ")
    short = name.removeprefix("apiserver_flowcontrol_")
    if not number or line.startswith("#"):
        return line
    if short in _SCALED_GAUGES:
        value = float(number) * factor
        if short.endswith("_limit_seats") and float(number):
            value = max(1, value)
        return f"{body} {value if short.startswith('demand_') else round(value)}"
    if name.startswith(_COUNTED):
        value = float(number) * factor
        return f"{body} {value if name.endswith('_sum') else round(value)}"
    return line


def split_series(text: str) -> list[tuple[float, str]]:
    """Return pairs of time and metrics for the scrapes of an OpenMetrics series, the oldest first."""
    scrapes: dict[int, list[str]] = {}
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            sample, _, seconds = line.rpartition(" ")
            scrapes.setdefault(round(float(seconds)), []).append(sample)
    merged: list[tuple[int, list[str]]] = []
    for time in sorted(scrapes):
        if merged and time - merged[-1][0] <= 1:
            merged[-1][1].extend(scrapes[time])
        else:
            merged.append((time, scrapes[time]))
    return [(float(time), "\n".join(lines) + "\n") for time, lines in merged]
