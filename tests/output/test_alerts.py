"""Names in alerts: Prometheus expands labels and annotations as templates, and a log or a terminal may show the YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apflint.monitoring.alerts import Alert, escape_template
from apflint.output.alerts import render_alerts
from apflint.output.sanitize import find_commands

NAMES = ["a {{ $x }}", "##vso[a]b", "##[add-mask]x", "a\u202eb", "a\x1b[2Jb", "x " * 2000 + "::add-mask::y"]


@pytest.mark.parametrize("name", NAMES)
def test_name_is_data(name: str) -> None:
    shown = escape_template(name)
    alert = Alert(
        "A",
        f'x{{priority_level="{name}"}}\n> 0',
        "1m",
        "warning",
        f"about {shown}",
        f"more about {shown} of {{{{ $labels.instance }}}}",
        "APF801",
        level=name,
    )
    text = render_alerts([alert], is_object=False, labels={"team": name})
    assert text.replace("\n", "").isascii()
    assert text.replace("\n", "").isprintable()
    assert list(find_commands(text)) == []
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    rule: dict[str, Any] = yaml.safe_load(text)["groups"][0]["rules"][0]
    assert rule["expr"] == alert.expression  # Prometheus does not expand templates in expressions
    escaped = name.replace("{{", '{{"{{"}}')
    assert rule["labels"] == {"severity": "warning", "priority_level": escaped, "team": escaped}
    assert rule["annotations"]["summary"] == f"about {escaped}"
    assert rule["annotations"]["description"].endswith("of {{ $labels.instance }}")


def test_labels_of_the_user_replace_the_severity() -> None:
    alert = Alert("A", "up == 0", "1m", "warning", "", "", "APF801")
    text = render_alerts([alert], is_object=False, labels={"severity": "page"})
    assert yaml.safe_load(text)["groups"][0]["rules"][0]["labels"] == {"severity": "page"}
