"""Alerts as a PrometheusRule object of the Prometheus Operator, or as a rule file of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from apflint.output.sanitize import find_commands, sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.doctor.alerts import Alert

GROUP_NAME = "api-priority-and-fairness"
_HEADER = """\
# For the metrics of the kube-apiservers of one cluster. Aggregated API servers have metrics of the same names, with other limits.
# If this Prometheus scrapes them, or several clusters, add a matcher to each selector, such as job="kube-apiserver".
"""
"""The expressions select neither a job nor a cluster: the labels for both are those of the user's scrape configuration."""


def render_alerts(alerts: Sequence[Alert], notes: Sequence[str] = (), *, is_object: bool) -> str:
    """Render alerts as YAML. `is_object`: as a PrometheusRule, instead of a plain rule file.

    `notes` are comments about the manifests, such as objects without alerts because the API server rejects them.
    """
    groups = {"groups": [{"name": GROUP_NAME, "rules": [_rule(alert) for alert in alerts]}]}
    value: dict[str, Any] = groups
    if is_object:
        value = {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": GROUP_NAME},
            "spec": groups,
        }
    # Without line breaks in strings, so that none of their parts is at the start of a line.
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=float("inf"))
    return "".join((_HEADER, *(f"# {sanitize(note)}\n" for note in notes), escape_commands(text)))


class _Dumper(yaml.SafeDumper):
    """Writes strings with CI commands in double quotes, so that `escape_commands` may escape them without changing them."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if next(find_commands(text), None) is not None else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def escape_commands(text: str) -> str:
    r"""Escape the CI commands in YAML. They are only in double quotes, where `\\xNN` stands for a character."""
    parts: list[str] = []
    start = 0
    for position in find_commands(text):
        parts += text[start:position], f"\\x{ord(text[position]):02x}"
        start = position + 1
    return "".join((*parts, text[start:]))


def _rule(alert: Alert) -> dict[str, Any]:
    labels = {"severity": alert.severity}
    if alert.level:
        labels["priority_level"] = _escape(alert.level)
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
