"""Select the audit logs of recorded incidents that the tests of `apflint simulate --from-audit` read.

    python scripts/select_audit_logs.py            write fixtures/simulate/incidents/
    python scripts/select_audit_logs.py --check    fail if a file differs from the recording

The recording is ../shared/oracle/incidents, which is too large for the repository. The script keeps the events after
`RequestReceived`, only the fields that apflint reads, and numbers in place of audit IDs.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generated_files import update_or_check

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT.parent / "shared" / "oracle" / "incidents"
LOGS = ROOT / "fixtures" / "simulate" / "incidents"
_FIELDS = ("kind", "apiVersion", "stage", "requestURI", "verb", "requestReceivedTimestamp", "stageTimestamp")
_USER, _REFERENCE = ("username", "groups"), ("resource", "namespace", "name", "apiGroup", "apiVersion", "subresource")
_ANNOTATIONS = ("authorization.k8s.io/decision", "apiserver.latency.k8s.io/apf-queue-wait")
_METRICS = re.compile(
    r"(apiserver_(resource_objects|resource_size_estimate_bytes)\{|# (TYPE|HELP) apiserver_resource_)"
)


def main() -> int:
    """Write the files, or compare them with the recording."""
    texts: dict[str, str] = {}
    facts: dict[str, Any] = {}
    for file in sorted(RECORDING.rglob("audit.log.gz")):
        name = "-".join(file.parent.relative_to(RECORDING).parts)
        if name.endswith("-peer"):  # this recording is of the second of two servers
            continue
        label = json.loads((file.parent / "label.json").read_text("utf-8"))
        facts[name] = {"seats": label["server_flags"]["total_seats"], "fix": label.get("fix")}
        texts[f"{name}.log.gz"] = select_events(gzip.decompress(file.read_bytes()).decode())
        texts[f"{name}.objects.json"] = select_objects((file.parent / "objects.json").read_text("utf-8"))
        metrics = gzip.decompress((file.parent / "1-during.metrics.txt.gz").read_bytes()).decode()
        texts[f"{name}.metrics.txt"] = "".join(
            line for line in metrics.splitlines(keepends=True) if _METRICS.match(line)
        )
    texts["recordings.json"] = json.dumps(facts, indent=1) + "\n"
    return update_or_check({LOGS / name: text for name, text in texts.items()})


def select_events(text: str) -> str:
    """Return the events after `RequestReceived` with the fields that apflint reads."""
    return "".join(f"{json.dumps(event, separators=(',', ':'))}\n" for event in _reduce_events(text))


def _reduce_events(text: str) -> Iterator[dict[str, Any]]:
    numbers: dict[str, str] = {}
    for line in text.splitlines():
        event = json.loads(line)
        if event["stage"] == "RequestReceived":
            continue
        audit_id = numbers.setdefault(event["auditID"], str(len(numbers)))
        reduced = {"auditID": audit_id, **_keep(event, _FIELDS)}
        for key in ("user", "impersonatedUser"):
            if event.get(key):
                reduced[key] = _keep(event[key], _USER)
        if event.get("objectRef"):
            reduced["objectRef"] = _keep(event["objectRef"], _REFERENCE)
        reduced["responseStatus"] = _keep(event["responseStatus"], ("code", "reason"))
        if annotations := _keep(event.get("annotations", {}), _ANNOTATIONS):
            reduced["annotations"] = annotations
        yield reduced


def select_objects(text: str) -> str:
    """Return the objects without the metadata and status that the server adds."""
    objects = json.loads(text)
    for item in objects["items"]:
        item["metadata"] = {"name": item["metadata"]["name"]}
        item.pop("status", None)
    return json.dumps(objects, indent=1) + "\n"


def _keep(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}


if __name__ == "__main__":
    sys.exit(main())
