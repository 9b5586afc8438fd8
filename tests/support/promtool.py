"""Runs `promtool test rules`. Without promtool, tests are skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed: it is part of the Debian package prometheus"
)
_ENVIRONMENT = {"GOGC": "400"} | os.environ
"""With this value, promtool needs 15% to 20% less CPU time, and up to three times the memory: about 140 MB."""
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SERIES = re.compile(r'\{__name__="ALERTS", [^}]*\}')


def run_tests(directory: Path, rules: str, groups: list[dict[str, Any]], *, evaluation: int = 15) -> str:
    """Run tests of a rule file, and return the output of promtool, which is empty if all tests pass."""
    (directory / "rules.yaml").write_text(rules, encoding="utf-8")
    value = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{evaluation}s", "tests": groups}
    (directory / "tests.yaml").write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    return run_test_file(directory / "tests.yaml")


def run_test_file(file: Path) -> str:
    """Run a file of tests, and return the output of promtool, which is empty if all tests pass."""
    assert PROMTOOL is not None
    command = [PROMTOOL, "test", "rules", file.name]
    done = subprocess.run(command, cwd=file.parent, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _parse_labels(text: str) -> dict[str, str]:
    labels: list[tuple[str, str]] = _LABEL.findall(text)
    return dict(labels)


def find_alerts(
    directory: Path, rules: str, series: list[dict[str, str]], until: int, *, label: str = ""
) -> dict[tuple[str, str], int]:
    """Return the alerts that fire up to `until` seconds: the time of the first firing by name and subject.

    The subject is the priority level, the webhook, or the value of `label`.
    """
    found: dict[tuple[str, str], int] = {}
    times = range(0, until + 1, 15)
    # Each test expects that no alert fires at its time. If alerts fire, the test fails, and its output lists these
    # alerts with the time.
    expected = [{"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{time}s", "exp_samples": []} for time in times]
    output = run_tests(directory, rules, [{"interval": "5s", "input_series": series, "promql_expr_test": expected}])
    assert not output or 'expr: "ALERTS' in output, output
    for part in output.split('expr: "ALERTS')[1:]:
        minutes, seconds = re.findall(r"time: (?:(\d+)m)?(?:(\d+)s)?,", part)[0]
        for fields in (_parse_labels(labels) for labels in _SERIES.findall(part.partition("got:")[2])):
            subject = fields[label] if label else fields.get("priority_level", fields.get("name", ""))
            found.setdefault((fields["alertname"], subject), int(minutes or 0) * 60 + int(seconds or 0))
    return found
