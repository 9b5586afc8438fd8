"""Alerts as a PrometheusRule object of the Prometheus Operator, or as a rule file of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.doctor.alerts import Alert

GROUP_NAME = "api-priority-and-fairness"


def render_alerts(alerts: Sequence[Alert], *, is_object: bool) -> str:
    """Render alerts as YAML. `is_object`: as a PrometheusRule, instead of a plain rule file."""
    groups = {"groups": [{"name": GROUP_NAME, "rules": [_rule(alert) for alert in alerts]}]}
    value: dict[str, Any] = groups
    if is_object:
        value = {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": GROUP_NAME},
            "spec": groups,
        }
    text: str = yaml.safe_dump(value, sort_keys=False, width=1000, allow_unicode=True)
    return text


def _rule(alert: Alert) -> dict[str, Any]:
    labels = {"severity": alert.severity}
    if alert.level:
        labels["priority_level"] = alert.level
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.duration,
        "labels": labels,
        "annotations": {
            "summary": _escape(alert.summary),
            "description": _escape(alert.description),
            "runbook_url": alert.runbook,
        },
    }


def _escape(text: str) -> str:
    """Escape text that Prometheus expands as a template of Go."""
    return text.replace("{{", '{{"{{"}}')
