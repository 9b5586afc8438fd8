"""Names in alerts: Prometheus expands labels and annotations as templates, and a log or a terminal may show the YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apflint.doctor.alerts import Alert
from apflint.output.alerts import render_alerts
from apflint.output.sanitize import find_commands

NAMES = ["a {{ $x }}", "##vso[a]b", "##[add-mask]x", "a\u202eb", "a\x1b[2Jb", "x " * 2000 + "::add-mask::y"]


@pytest.mark.parametrize("name", NAMES)
def test_name_is_data(name: str) -> None:
    alert = Alert(
        "A", name, f'x{{priority_level="{name}"}} > 0', "1m", "warning", f"about {name}", f"more about {name}", "APF801"
    )
    text = render_alerts([alert], is_object=False)
    assert text.replace("\n", "").isascii()
    assert text.replace("\n", "").isprintable()
    assert list(find_commands(text)) == []
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    rule: dict[str, Any] = yaml.safe_load(text)["groups"][0]["rules"][0]
    assert rule["expr"] == alert.expression  # not a template
    escaped = name.replace("{{", '{{"{{"}}')
    assert rule["labels"]["priority_level"] == escaped
    assert rule["annotations"]["summary"] == f"about {escaped}"
