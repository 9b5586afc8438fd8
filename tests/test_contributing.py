"""The examples on the page for contributors work: a rule, an output format, a report, a command, and a source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT
from support.pages import add_examples, find_example
from support.rule_examples import parse_examples
from support.shell import LEVEL, environment

from apflint.rule_catalogue import parse_page

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.rule_catalogue import Rule


@pytest.fixture(scope="module")
def rule() -> Rule:
    """Return the example rule on the page for contributors.

    The code block with the rule begins with `---` and `id:`.
    """
    return parse_page(find_example("---"))


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of apflint to which the files and lines in the examples of the page are added."""
    directory = tmp_path_factory.mktemp("checkout")
    for name in ("apflint", "rules", "schemas"):
        shutil.copytree(root / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    add_examples(directory)
    return directory


def run(checkout: Path, *arguments: str) -> str:
    """Run the copy of apflint, and return the output."""
    command = [sys.executable, "-m", "apflint", *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_rule_and_format(checkout: Path, rule: Rule) -> None:
    for example in parse_examples(rule):
        file = checkout / example.file
        file.write_text(example.text, encoding="utf-8")
        printed = run(checkout, "check", "--isolated", "--format", "logfmt", example.file)
        found = re.findall(
            r'(?m)^level=info rule=(\w+) file="[^"]+" line=(\d+) msg="2,000 queues are more than', printed
        )
        assert [(rule_id, int(line)) for rule_id, line in found] == list(example.expected)
        assert (example.kind == "bad") == ("rule=APF610" in printed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output_format", "expected"),
    [
        ("text", "PRIORITY LEVEL   NUMBER  FLOWSCHEMAS\ncatch-all             1  catch-all\n"),
        ("markdown", "| Priority level | Number | FlowSchemas |\n|---|---:|---|\n| `catch-all` | 1 | `catch-all` |\n"),
        ("html", '<tr><th scope="row"><code>catch-all</code></th><td class="number">1</td>'),
    ],
)
def test_report(checkout: Path, output_format: str, expected: str) -> None:
    """The line on the page that renders the example report works."""
    program = f"""\
import sys
from apflint.cli.terminal import style
from apflint.output.count import report_counts
from apflint.output.report import render_report
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.input_types import create_request

limits = read_configuration(create_request(("defaults:1.36",), isolated=True)).effective.limits
output_format, color = {output_format!r}, "never"
{find_example("text = render_report")}
sys.stdout.write(text)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=checkout, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the stand-in for helm is a shell script")
def test_source(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helm = checkout / "bin/helm"
    helm.parent.mkdir()
    helm.write_text(f"#!/bin/sh\ncat <<'END'\n{LEVEL}END\n", encoding="utf-8")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", str(helm.parent), prepend=os.pathsep)
    described = "Configuration: helm:chart (1 object) and built-in objects of 1.37\n"
    assert described in run(checkout, "limits", "--isolated", "helm:chart")
    assert run(checkout, "graph", "--isolated", "-f", "helm:chart").count("batch")
    assert "chart (rendered):4:9" in run(checkout, "check", "--isolated", "helm:chart")
    assert "helm:other" in run(checkout, "check", "--isolated", "helm:chart", "helm:other")


@pytest.mark.slow
def test_command(checkout: Path) -> None:
    assert run(checkout, "count", "--isolated", "defaults:1.36") == (
        "Configuration: built-in objects of 1.36\n11 FlowSchemas, 8 priority levels\n"
    )
    shutil.copytree(ROOT / "scripts", checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    generate = [sys.executable, "scripts/generate_help_pages.py"]
    variables = {**environment(), "PYTHONPATH": str(checkout)}
    subprocess.run(generate, cwd=checkout, env=variables, capture_output=True, check=True)
    assert "count" in run(checkout, "--help")
