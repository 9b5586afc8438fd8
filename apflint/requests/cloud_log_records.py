"""Envelopes of audit events: lists, and log records of hosted control planes.

Azure (AKS) puts an audit event as a string into `properties.log`. Amazon (EKS) uses `message`, or the field `@message` of a
query result. Google (GKE) records requests in its own format, without the groups of the user; `_convert_google_record`
turns such a record into an audit event.
"""

from __future__ import annotations

import json
import re
from typing import Any

from apflint.user_error import UserError

_LIST_KEYS = ("items", "records", "events", "results")
"""Keys under which the list is in a Kubernetes list, a batch of an Azure event hub, and the outputs of
`aws logs filter-log-events` and `aws logs get-query-results`, in this order."""
_AKS_CATEGORIES = ("kube-audit", "kube-audit-admin")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\S+ (?:(?:UTC|[+-]\d\d:?\d\d) )?(?=\{)", re.ASCII)
_GKE_TYPE = "google.cloud.audit.AuditLog"
_GKE_SERVICE = "k8s.io"
_GKE_PREFIX = "io.k8s."
"""Prefix of `methodName` for requests to kube-apiserver. Methods without this prefix manage the GKE cluster."""
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


def strip_timestamp(line: str) -> str:
    """Return the line without its leading timestamp. Exports from CloudWatch to object storage have timestamps."""
    match = _TIMESTAMP.match(line)
    return line[match.end() :] if match else line


def unwrap_list(value: object) -> object:
    """Return the items if the value is a Kubernetes list or a batch of log records. Return all other values unchanged."""
    if isinstance(value, dict):
        return next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), value)
    return value


def is_other_log(value: object) -> bool:
    """Return whether a value is an Azure log record that contains no audit event, such as a record of `kube-scheduler`."""
    return isinstance(value, dict) and "properties" in value and value.get("category") not in (None, *_AKS_CATEGORIES)


def unwrap_event(value: object) -> object:
    """Return the audit event in a log record of a hosted control plane. Return values that are not log records unchanged.

    Raises UserError if a log record has no readable audit event.
    """
    if isinstance(value, list):  # maybe a row of CloudWatch Logs Insights, a list of fields
        message = _find_field(value, "@message")
        return value if message is None else _parse_wrapped_event(message, "@message")
    if not isinstance(value, dict):
        return value
    properties = value.get("properties")
    if isinstance(properties, dict) and "log" in properties:
        category, log = value.get("category"), properties["log"]
        if category is not None and category not in _AKS_CATEGORIES:
            raise UserError(f'this Azure log record has the category "{category}", which is not an audit log')
        return _parse_wrapped_event(log, "properties.log") if isinstance(log, str) else log
    if _is_google_record(value):
        return _convert_google_record(value)
    message = value.get("message")
    if isinstance(message, str) and "requestURI" not in value and "kind" not in value:
        return _parse_wrapped_event(message, "message")
    if isinstance(value.get("@message"), str):
        return _parse_wrapped_event(value["@message"], "@message")
    return value


def find_server(value: object) -> str:
    """Return the name of the API server in a log record, or "" if there is no name. Raw audit events do not name the server."""
    name: object = None
    if isinstance(value, list):
        name = _find_field(value, "@logStream")
    elif isinstance(value, dict):
        properties = value.get("properties")
        name = properties.get("pod") if isinstance(properties, dict) else value.get("logStreamName")
        name = name or value.get("@logStream")
    return name if isinstance(name, str) else ""


def _convert_google_record(record: dict[str, Any]) -> dict[str, object]:
    """Return a record of Cloud Audit Logs as an audit event without groups, duration and URI.

    `resourceName` is GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE[/NAME][/SUBRESOURCE], and the core group is `core`. The
    last part of `methodName` is the verb. The status is a gRPC code. For code 8 (HTTP status 429), the record does not show who
    rejected the request. An eviction is assumed to be rejected after authorization, by a PodDisruptionBudget. Other requests are
    assumed to be rejected before authorization, by API Priority and Fairness. Raises UserError for a record of another service.
    """
    payload = record["protoPayload"]
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
        name, subresource = "", name  # a subresource without an object name
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
    if (
        subresource == "eviction" and status == 429
    ):  # a PodDisruptionBudget refuses the eviction, with or without authorizationInfo
        granted = granted or [True]
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


def _is_google_record(value: dict[str, Any]) -> bool:
    """Return whether a log record is from Cloud Audit Logs. Records in BigQuery and in some sinks have no `@type`."""
    payload = value.get("protoPayload")
    return isinstance(payload, dict) and (
        str(payload.get("@type", "")).endswith(_GKE_TYPE)
        or payload.get("serviceName") == _GKE_SERVICE
        or str(payload.get("methodName", "")).startswith(_GKE_PREFIX)
    )


def _find_field(row: list[Any], name: str) -> str | None:
    """Return the value of a field in a row of CloudWatch Logs Insights, or None if the row does not have the field."""
    for field in row:
        if isinstance(field, dict) and field.get("field") == name and isinstance(field.get("value"), str):
            return str(field["value"])
    return None


def _parse_wrapped_event(text: str, field: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f'"{field}" of this log record is not an audit event in JSON') from None
