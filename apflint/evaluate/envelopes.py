"""Audit events in the envelopes of hosted control planes.

Azure (AKS) puts the event as a string into `properties.log`, Amazon (EKS) into `message` or into the `@message` field of a
query result. Google (GKE) records the request in a format of its own, without the groups of the user.
"""

from __future__ import annotations

import json
import re
from typing import Any

CHILDREN = ("items", "records", "events", "results")
"""Keys of lists of events: Kubernetes lists, Azure event hubs, `aws logs filter-log-events`, `aws logs get-query-results`."""

AKS_CATEGORIES = ("kube-audit", "kube-audit-admin")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\S+ (?=\{)", re.ASCII)
_GKE = "google.cloud.audit.AuditLog"


def without_timestamp(line: str) -> str:
    """Drop the timestamp that an export from CloudWatch to object storage puts before each event."""
    found = _TIMESTAMP.match(line)
    return line[found.end() :] if found else line


def event_in(value: object) -> object:
    """Return the audit event in an envelope, or the value itself if it is not an envelope.

    Raises ValueError with a message for the user for an envelope without a readable event.
    """
    if isinstance(value, list):
        return _from_query_result(value)
    if not isinstance(value, dict):
        return value
    properties = value.get("properties")
    if isinstance(properties, dict) and "log" in properties:
        return _from_azure(value.get("category"), properties["log"])
    payload = value.get("protoPayload")
    if isinstance(payload, dict) and str(payload.get("@type", "")).endswith(_GKE):
        raise ValueError(_google(payload))
    message = value.get("message")
    if isinstance(message, str) and "requestURI" not in value and "kind" not in value:
        return _parsed(message, '"message"')
    return value


def is_other_log(value: object) -> bool:
    """Whether an Azure log record belongs to another category; an event hub mixes audit events with other logs."""
    return isinstance(value, dict) and "properties" in value and value.get("category") not in (None, *AKS_CATEGORIES)


def _from_azure(category: object, log: object) -> object:
    if category is not None and category not in AKS_CATEGORIES:
        raise ValueError(f'This is an Azure log record of category "{category}", which is not an audit log.')
    return _parsed(log, '"properties.log"') if isinstance(log, str) else log


def _from_query_result(fields: list[Any]) -> object:
    """A row of CloudWatch Logs Insights: a list of fields, of which `@message` has the event."""
    for field in fields:
        if isinstance(field, dict) and field.get("field") == "@message" and isinstance(field.get("value"), str):
            return _parsed(field["value"], '"@message"')
    return fields


def _parsed(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{where} of this log record is not an audit event in JSON.") from None


def _google(payload: dict[str, Any]) -> str:
    """What is wrong with a record of Google's audit log, and the command that answers the question."""
    who, method = payload.get("authenticationInfo"), payload.get("methodName")
    user = who.get("principalEmail") if isinstance(who, dict) else None
    verb = method.rpartition(".")[2] if isinstance(method, str) else ""
    return (
        "This is a Cloud Audit Logs record (GKE). It has no user groups, so its FlowSchema cannot be determined. Ask in words:"
        f" apflint explain {verb or 'VERB'} RESOURCE -n NAMESPACE --as {user or 'USER'} --as-group GROUP."
    )
