"""Labels that users add to alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.monitoring.queries import parse_label_name
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESERVED = frozenset({"alertname", "instance", "job", "priority_level", "priorityLevel"})
"""Labels that identify the object of an alert. Users cannot set these labels."""


def parse_labels(values: Iterable[str]) -> dict[str, str]:
    """Parse labels such as `team=platform`. Raises UserError for a reserved name, or a name that Prometheus does not allow."""
    labels: dict[str, str] = {}
    for text in values:
        name, found, value = text.partition("=")
        if not found:
            raise UserError(f'"{text}" is not a label such as team=platform')
        if parse_label_name(name) in _RESERVED:
            raise UserError(f'"{text}": the label {name} identifies the object of an alert, and cannot be changed')
        labels[name] = value
    return labels
