"""Select the series of recorded incidents that the tests of alerts, dashboards and `doctor --prometheus` read.

    python scripts/select_series.py            write fixtures/doctor/series/
    python scripts/select_series.py --check    fail if a file differs from the recording

The recording is ../shared/oracle/incidents, which is too large for the repository. The script selects the metrics in
`METRICS`, rounds times to multiples of 5 seconds, and adds up the metrics of etcd over all types of objects.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from generated_files import update_or_check

from apflint import builtin
from apflint.engine import load_inputs
from apflint.releases import parse_release
from apflint.workspace import build_workspace

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT.parent / "shared" / "oracle" / "incidents"
SERIES = ROOT / "fixtures" / "doctor" / "series"
INTERVAL_SECONDS = 5
RELEASE = parse_release("1.36")
METRICS = re.compile(
    r"apiserver_flowcontrol_((nominal|lower|upper|current)_limit_seats|demand_seats_(average|smoothed|high_watermark|stdev)"
    r"|demand_seats_(bucket|count)|current_executing_(seats|requests)|current_inqueue_(requests|seats)"
    r"|(dispatched|rejected)_requests_total|request_(wait_duration|execution)_seconds_(bucket|sum|count)"
    r"|work_estimated_seats_(bucket|sum|count))"
    r"|etcd_request_duration_seconds_(sum|count)|apiserver_admission_webhook_admission_duration_seconds_(sum|count)"
    r"|apiserver_request_terminations_total|process_start_time_seconds"
)
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+) (\S+)")
_TYPE_OF_OBJECT = re.compile(r',?type="[^"]*"')


def main() -> int:
    """Write the files, or compare them with the recording."""
    texts: dict[str, str] = {}
    facts: dict[str, Any] = {}
    for file in sorted(RECORDING.rglob("series.om.txt.gz")):
        name = "-".join(file.parent.relative_to(RECORDING).parts)
        start, texts[f"{name}.txt.gz"] = select_series(gzip.decompress(file.read_bytes()).decode())
        facts[name] = {"start": start, **read_facts(file.parent, start)}
    texts["recordings.json"] = json.dumps(facts, indent=1) + "\n"
    return update_or_check({SERIES / name: text for name, text in texts.items()})


def select_series(text: str) -> tuple[float, str]:
    """Return the time of the first scrape, and a line `SERIES VALUE VALUE ...` for each selected series (`_`: missing value)."""
    samples: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        if match is not None and METRICS.fullmatch(match[1]):
            labels = (
                _TYPE_OF_OBJECT.sub("", match[2] or "").lstrip(",") if match[1].startswith("etcd_") else match[2] or ""
            )
            samples[f"{match[1]}{{{labels}}}"][float(match[4])] += float(match[3])
    start = min(time for values in samples.values() for time in values)
    lines = []
    for series, values in sorted(samples.items()):
        grid = {round((time - start) / INTERVAL_SECONDS): value for time, value in values.items()}
        shown = (f"{grid[index]:.12g}" if index in grid else "_" for index in range(max(grid) + 1))
        lines.append(f"{series} {' '.join(shown)}\n")
    return start, "".join(lines)


def read_facts(directory: Path, start: float) -> dict[str, Any]:
    """Return the facts about an incident: cause, times in seconds after `start`, seats, and objects other than built-in ones."""
    labelled = directory if (directory / "label.json").exists() else directory.parent
    label = json.loads((labelled / "label.json").read_text())
    times = {
        key: None if label[key] is None else round(datetime.fromisoformat(label[key]).timestamp() - start, 1)
        for key in ("started", "ended")
    }
    flags = label["server_flags"]
    seats = f"{flags['max-requests-inflight']}+{flags['max-mutating-requests-inflight']}"
    objects = next(path for path in (directory / "objects.json", labelled / "objects.json") if path.exists())
    healthy = label["healthy"] or directory.name == "peer"
    return {"cause": label["cause"], "healthy": healthy, **times, "seats": seats, "objects": list_objects(objects)}


def list_objects(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a recorded server without copies of built-in objects, and without fields that the server sets."""
    value = json.loads(file.read_text())
    lists = [value] if isinstance(value, list) or "items" in value else list(value.values())
    items = [item for part in lists for item in (part if isinstance(part, list) else part["items"])]
    kept = [
        {key: item[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": item["metadata"]["name"]}}
        for item in items
    ]
    return [item for item in kept if not is_copy(item)]


def is_copy(item: dict[str, Any]) -> bool:
    """Return whether an object equals the built-in object of the same kind and name."""
    (manifest,) = build_workspace(load_inputs([("object.json", json.dumps(item).encode())]), RELEASE).manifests
    return manifest.object is not None and builtin.is_copy(manifest.object, RELEASE)


if __name__ == "__main__":
    sys.exit(main())
