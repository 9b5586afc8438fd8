"""Renders alerts as a PrometheusRule object of the Prometheus Operator, or as a rule file of Prometheus."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml

from apflint.monitoring.alerts import EVALUATION_SECONDS, escape_template
from apflint.output.sanitize import escape_quoted_commands, find_commands, sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from apflint.monitoring.alerts import Alert

GROUP_NAME = "api-priority-and-fairness"


def render_alerts(
    alerts: Sequence[Alert],
    notes: Sequence[str] = (),
    *,
    is_object: bool,
    labels: Mapping[str, str] = MappingProxyType({}),
    level_label: str = "priority_level",
) -> str:
    """Render alerts as YAML: as a PrometheusRule if `is_object` is true, or else as a plain rule file.

    `notes` become comments. An example is a note about objects that have no alerts, because the API server rejects the objects.
    `labels` are added to each alert, and may replace its severity.
    """
    rules = [_rule(alert, labels, level_label) for alert in alerts]
    groups = {"groups": [{"name": GROUP_NAME, "interval": f"{EVALUATION_SECONDS}s", "rules": rules}]}
    value: dict[str, Any] = groups
    if is_object:
        value = {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": GROUP_NAME},
            "spec": groups,
        }
    return "".join((*(f"# {sanitize(note)}\n" for note in notes), render_yaml(value)))


def render_yaml(value: object) -> str:
    """Render a value as YAML in ASCII, without character sequences that a terminal or a CI system executes."""
    # Lines are not wrapped, so that no part of a name is at the start of a line, where a CI system may execute it.
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=float("inf"))
    return escape_quoted_commands(text)


class _Dumper(yaml.SafeDumper):
    """Writes YAML: strings with several lines as block scalars, strings with CI commands in double quotes.

    In double quotes, `escape_quoted_commands` can escape the commands without changing the string. PyYAML writes strings with
    unprintable characters in double quotes as well.
    """


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if next(find_commands(text), None) is not None else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _rule(alert: Alert, more_labels: Mapping[str, str], level_label: str) -> dict[str, Any]:
    level = {level_label: alert.level} if alert.level else {}
    labels = {name: escape_template(value) for name, value in {**level, **more_labels}.items()}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.duration,
        "labels": {"severity": alert.severity, **labels},
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook_url": alert.runbook},
    }
