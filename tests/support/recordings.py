"""Recorded moments of a running server: metrics, dumps and objects. APFLINT_RECORDINGS names another directory with moments."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from apflint.doctor.level_state import ServerState, compute_state
from apflint.doctor.snapshot import Part, group_servers, parse_part

ROOT = Path(__file__).resolve().parent.parent.parent
LIVE = Path(os.environ.get("APFLINT_RECORDINGS", ROOT / "fixtures")) / "live"
MOMENTS = sorted(path.name.removesuffix(".metrics.txt.gz") for path in LIVE.glob("*.metrics.txt.gz"))
"""Names of moments with recorded metrics, such as `0-idle`."""
TOTAL = 30
"""Server concurrency limit: --max-requests-inflight=20 --max-mutating-requests-inflight=10."""


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def read_moment(moment: str) -> list[Part]:
    """Return the metrics and the dumps of a moment."""
    files = sorted(LIVE.glob(f"{moment}.*"))
    return [parse_part(f"{moment}{path.name.removeprefix(moment)}", read_text(path)) for path in files]


def state_of(*moments: str) -> ServerState:
    """Return the state of the server at the last of these moments, with counts since the first moment."""
    (server,) = group_servers([part for moment in moments for part in read_moment(moment)])
    return compute_state(server)


def recorded_objects(moment: str) -> list[dict[str, Any]]:
    """Return the FlowSchemas and priority levels of the server at a moment.

    From moment 7 on, the level `batch` is absent. At moment 6, it is deleted but still has requests.
    """
    names = ("objects-end.json",) if moment[0] >= "7" else ("objects-begin.json", "objects.json")
    path = next(path for name in names if (path := LIVE / name).exists())
    items: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["items"]
    return items
