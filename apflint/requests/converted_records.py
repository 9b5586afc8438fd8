"""Converts log records that contain the fields of an audit event under different names to audit events.

Google (GKE) records requests in its own format, without the groups of the user. Tables of Azure Log Analytics have a column for
each field of an event.
"""

from __future__ import annotations

import json
from typing import Any

from apflint.user_error import UserError

_GKE_TYPE = "google.cloud.audit.AuditLog"
_GKE_SERVICE = "k8s.io"
_GKE_PREFIX = "io.k8s."
"""Prefix of `methodName` for requests to kube-apiserver. Methods without this prefix manage the GKE cluster."""
CONVERTED_KEYS = ("protoPayload", "protopayload_auditlog", "AuditId")
"""Keys of which each record that this module converts has one."""
_STATUS_OF_GRPC = {
    0: 200,
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
"""HTTP status for each gRPC code. Source: comments in google/rpc/code.proto."""


def convert_google_record(record: dict[str, object]) -> dict[str, object]:
    """Return a record of Cloud Audit Logs as an audit event without groups, duration and URI.

    `resourceName` is GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE[/NAME][/SUBRESOURCE], and the core group is `core`.
    The last part of `methodName` is the verb. The status is a gRPC code. For code 8 (HTTP status 429), the record does
    not show who rejected the request. Evictions are assumed to be rejected by a PodDisruptionBudget, after
    authorization. Other requests are assumed to be rejected by API Priority and Fairness, before authorization. Raises
    UserError for a record of another service.
    """
    payload = _find_payload(record)
    method, path = payload.get("methodName"), payload.get("resourceName")
    if not (isinstance(method, str) and method.startswith(_GKE_PREFIX) and isinstance(path, str)):
        raise UserError(f"this Cloud Audit Logs record is not a request to a Kubernetes API server: {method}")
    group, version, *parts = [*path.split("/"), ""] if "/" not in path else path.split("/")
    namespace = ""
    if parts[:1] == ["namespaces"] and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in ("status", "finalize"):
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "", "")[:3]
    verb, methods = method.rpartition(".")[2], method.split(".")
    if not subresource and name and name == methods[-2] and resource == methods[-3]:
        name, subresource = "", name  # the path has a subresource, but no object name
    code = _get_object(payload, "status").get("code") or 0
    status = _STATUS_OF_GRPC.get(code, 500) if isinstance(code, int) else 500
    reference = {"resource": resource, "subresource": subresource, "namespace": namespace, "name": name}
    is_started = _get_object(record, "operation").get("last") is False
    event: dict[str, object] = {
        "auditID": record.get("insertId"),
        "stage": "ResponseStarted" if is_started else "ResponseComplete",
        "verb": verb,
        "user": {"username": _get_object(payload, "authenticationInfo").get("principalEmail")},
        "userAgent": _get_object(payload, "requestMetadata").get("callerSuppliedUserAgent"),
        "objectRef": {**reference, "apiGroup": "" if group == "core" else group, "apiVersion": version},
        "responseStatus": {"code": status},
        "requestReceivedTimestamp": record.get("timestamp"),
    }
    decisions = payload.get("authorizationInfo") or ()
    if not isinstance(decisions, list | tuple):
        raise UserError('"authorizationInfo" must be a list')
    granted = [item.get("granted") is True for item in decisions if isinstance(item, dict)]
    if subresource == "eviction" and status == 429:
        granted = granted or [True]  # a PodDisruptionBudget refused the eviction, which was authorized before
    elif status == 429:
        granted = []
    if granted:
        event["annotations"] = {"authorization.k8s.io/decision": "allow" if all(granted) else "forbid"}
    return event


def _get_object(fields: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the JSON object at `key`, or {} if it is absent or null. Raises UserError if the value is not an object."""
    value = fields.get(key)
    if value is not None and not isinstance(value, dict):
        raise UserError(f'"{key}" must be a JSON object')
    return value or {}


def is_google_record(value: dict[str, object]) -> bool:
    """Return whether a log record is from Cloud Audit Logs.

    The function checks several fields, because records in BigQuery and in some sinks have no `@type`.
    """
    payload = _find_payload(value)
    return isinstance(payload, dict) and (
        str(payload.get("@type", "")).endswith(_GKE_TYPE)
        or payload.get("serviceName") == _GKE_SERVICE
        or str(payload.get("methodName", "")).startswith(_GKE_PREFIX)
    )


def _find_payload(record: dict[str, Any]) -> Any:
    """Return the audit log entry in a record, or None if there is none.

    The key of the entry is different in BigQuery tables.
    """
    payload, payload_of_bigquery, _ = CONVERTED_KEYS
    return record.get(payload, record.get(payload_of_bigquery))


def is_azure_row(value: dict[str, object]) -> bool:
    """Return whether a value is a row of the tables `AKSAudit`, `AKSAuditAdmin` or `ArcK8sAudit`."""
    return CONVERTED_KEYS[-1] in value and "Stage" in value


def convert_azure_row(row: dict[str, object]) -> dict[str, object]:
    """Return a row of the table `AKSAudit` as an audit event.

    A column such as `User` contains a JSON object, or a string with the JSON text of an object. An empty string means
    that the value is absent. Raises UserError if such a column contains another string.
    """
    event: dict[str, object] = {}
    for column, field in _AZURE_COLUMNS.items():
        value = row.get(column)
        if field in _AZURE_OBJECTS and isinstance(value, str) and value:
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise UserError(f'the column "{column}" is not an object in JSON') from None
        if value is not None and value != "":
            event[field] = value
    return event


_AZURE_COLUMNS = {
    "AuditId": "auditID",
    "Stage": "stage",
    "RequestUri": "requestURI",
    "Verb": "verb",
    "User": "user",
    "ImpersonatedUser": "impersonatedUser",
    "UserAgent": "userAgent",
    "ObjectRef": "objectRef",
    "ResponseStatus": "responseStatus",
    "RequestReceivedTime": "requestReceivedTimestamp",
    "StageReceivedTime": "stageTimestamp",
    "Annotations": "annotations",
}
"""Maps each column of the table `AKSAudit` to the field of an audit event.

Source: https://learn.microsoft.com/azure/azure-monitor/reference/tables/AKSAudit.
"""
_AZURE_OBJECTS = frozenset(("user", "impersonatedUser", "objectRef", "responseStatus", "annotations"))
