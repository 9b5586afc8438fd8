"""Audit events inside the log records of hosted control planes.

Azure (AKS) puts the event as a string into `properties.log`, Amazon (EKS) into `message` or into the `@message` field of a
query result. Google (GKE) records requests in its own format, without the groups of the user.
"""

from __future__ import annotations

import json
import re
from typing import Any

from apflint.errors import UserError

_LIST_KEYS = ("items", "records", "events", "results")
"""Keys of lists of events: Kubernetes lists, Azure event hubs, `aws logs filter-log-events`, `aws logs get-query-results`."""
_AKS_CATEGORIES = ("kube-audit", "kube-audit-admin")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\S+ (?=\{)", re.ASCII)
_GKE_TYPE = "google.cloud.audit.AuditLog"


def strip_timestamp(line: str) -> str:
    """Remove the timestamp that an export from CloudWatch to object storage puts before each event."""
    match = _TIMESTAMP.match(line)
    return line[match.end() :] if match else line


def unwrap_list(value: object) -> object:
    """Return the list in a Kubernetes list or in a batch of log records, or any other value unchanged."""
    if isinstance(value, dict):
        return next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), value)
    return value


def is_other_log(value: object) -> bool:
    """Return whether this is an Azure log record of another category; an event hub mixes audit events with other logs."""
    return isinstance(value, dict) and "properties" in value and value.get("category") not in (None, *_AKS_CATEGORIES)


def unwrap_event(value: object) -> object:
    """Return the audit event in a log record, or any other value unchanged.

    Raises UserError for a log record without a readable audit event.
    """
    if isinstance(value, list):  # a row of CloudWatch Logs Insights: a list of fields
        for field in value:
            if isinstance(field, dict) and field.get("field") == "@message" and isinstance(field.get("value"), str):
                return _parse_event(field["value"], "@message")
        return value
    if not isinstance(value, dict):
        return value
    properties = value.get("properties")
    if isinstance(properties, dict) and "log" in properties:
        category, log = value.get("category"), properties["log"]
        if category is not None and category not in _AKS_CATEGORIES:
            raise UserError(f'this Azure log record has the category "{category}", which is not an audit log')
        return _parse_event(log, "properties.log") if isinstance(log, str) else log
    payload = value.get("protoPayload")
    if isinstance(payload, dict) and str(payload.get("@type", "")).endswith(_GKE_TYPE):
        raise UserError(_describe_google_record(payload))
    message = value.get("message")
    if isinstance(message, str) and "requestURI" not in value and "kind" not in value:
        return _parse_event(message, "message")
    return value


def _parse_event(text: str, field: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f'"{field}" of this log record is not an audit event in JSON') from None


def _describe_google_record(payload: dict[str, Any]) -> str:
    """Return why a record of Google's audit log cannot be classified, and a command to try instead."""
    authentication, method = payload.get("authenticationInfo"), payload.get("methodName")
    user = authentication.get("principalEmail") if isinstance(authentication, dict) else None
    verb = method.rpartition(".")[2] if isinstance(method, str) else ""
    return (
        "this is a Cloud Audit Logs record (GKE), which lacks the groups of the user that decide about the FlowSchema."
        f" Try: apflint explain {verb or 'VERB'} RESOURCE -n NAMESPACE --as {user or 'USER'} --as-group GROUP"
    )
