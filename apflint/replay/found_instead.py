"""Describes the content of a file without audit events, so that users see what is wrong with it."""

from __future__ import annotations

import json

from apflint.requests.log_wrappers import strip_prefix
from apflint.requests.server_log import is_server_log_line, parse_logged_request
from apflint.wording import join_some, quote

_MARK = "audit.k8s.io/"
_MAX_FIELDS, _MAX_CHARACTERS, _MAX_DEPTH = 6, 60, 6


def describe_found(line: str) -> str:
    """Return what a line contains instead of an audit event, as a clause. `line` is the first line of a file."""
    if parse_logged_request(line) is not None or is_server_log_line(line):
        return "found lines of a log of a Kubernetes component, such as kube-apiserver's own log"
    try:
        value = json.loads(strip_prefix(line))
    except (ValueError, RecursionError):
        text = line.strip()
        end = "..." if len(text) > _MAX_CHARACTERS else ""
        return f"found text that is not JSON: {quote(text[:_MAX_CHARACTERS] + end)}"
    if not isinstance(value, dict):
        return "found JSON values that are not objects"
    field = _find_event(value, ())
    if field is not None:
        return f'found audit events in a field that apflint does not know: add "--event-field {field}"'
    names = join_some([quote(name[:_MAX_CHARACTERS]) for name in value], _MAX_FIELDS)
    return f"found JSON objects with the fields {names}" if value else "found empty JSON objects"


def _find_event(value: object, path: tuple[str, ...]) -> str | None:
    """Return the path of the field that contains an audit event, or None if no field contains an event."""
    if isinstance(value, str):
        return ".".join(path) if _MARK in value and value.lstrip().startswith("{") and path else None
    if not isinstance(value, dict) or len(path) > _MAX_DEPTH:
        return None
    version = value.get("apiVersion")
    if path and isinstance(version, str) and version.startswith(_MARK):
        return ".".join(path)
    found = (_find_event(inner, (*path, key)) for key, inner in value.items() if "." not in key)
    return next((field for field in found if field is not None), None)
