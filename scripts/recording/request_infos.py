"""Records the attributes that a server derives from method and URL (`fixtures/oracle-classify/requestinfo.jsonl`)."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from recording.client import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recording.client import Client

USER = "apflint:recorder"
"""User to impersonate. This user has no permissions, so the requests have no effect."""
HEADER = "X-Kubernetes-PF-FlowSchema-UID"
"""Header of responses to requests that API Priority and Fairness has classified."""
WAIT_SECONDS = 10
_ATTRIBUTES = ("apiGroup", "apiVersion", "name", "namespace", "resource", "subresource")
# Matches the body of an error response, which is plain text (`InternalError` in
# endpoints/handlers/responsewriters/errors.go).
_ERROR = re.compile(r"failed to create RequestInfo: (.*)")


class Case(NamedTuple):
    """A request to send."""

    id: str
    method: str
    url: str


def read_cases(file: Path) -> list[Case]:
    """Return the cases of a recorded file."""
    return [Case(*json.loads(line)[:3]) for line in file.read_text(encoding="utf-8").splitlines()]


def record(client: Client, audit_log: Path, cases: list[Case]) -> Iterator[str]:
    """Send requests as a user without permissions, and yield a line of the file for each request.

    The attributes are those of the audit event with the `Audit-ID` of the request.
    """
    sent = []
    for case in cases:
        audit_id = str(uuid4())
        answer = client.send(case.method, case.url, headers={"Impersonate-User": USER, "Audit-ID": audit_id})
        match = _ERROR.search(answer.body.decode("utf-8", "replace")) if answer.status == 500 else None
        sent.append((case, audit_id, HEADER in answer.headers, match and match[1]))
    events = wait_for_events(audit_log, {audit_id for _, audit_id, _, error in sent if error is None})
    for case, audit_id, seen, error in sent:
        attributes = {"error": error} if error is not None else read_attributes(events[audit_id])
        yield json.dumps([*case, seen, attributes], separators=(",", ":")) + "\n"


def read_attributes(event: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a request in an audit event. Empty attributes are omitted."""
    reference = event.get("objectRef")
    attributes = {key: reference[key] for key in _ATTRIBUTES if reference and reference.get(key)}
    if reference is not None:
        attributes["isResourceRequest"] = True
    if event.get("verb"):
        attributes["verb"] = event["verb"]
    return dict(sorted(attributes.items()))


def wait_for_events(audit_log: Path, audit_ids: set[str]) -> dict[str, Any]:
    """Return the audit events with these IDs. Raises ServerError if some are missing from the log after `WAIT_SECONDS`."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        with audit_log.open(encoding="utf-8") as lines:
            events = {event["auditID"]: event for event in map(json.loads, lines) if event["auditID"] in audit_ids}
        if len(events) == len(audit_ids):
            return events
        if time.monotonic() > deadline:
            raise ServerError(f"{audit_log} lacks {len(audit_ids) - len(events)} of {len(audit_ids)} requests")
        time.sleep(0.2)
