"""Renderers of a report's findings: one module per format, each with `render(report, style) -> str`.

To add a format, add a module and an entry of `FORMATS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Style

if TYPE_CHECKING:
    from apflint.finding import Report

FORMATS: dict[str, str] = {
    "text": "apflint.output.findings.text",
    "concise": "apflint.output.findings.concise",
    "json": "apflint.output.findings.json",
    "sarif": "apflint.output.findings.sarif",
    "github": "apflint.output.findings.github",
    "gitlab": "apflint.output.findings.gitlab",
    "junit": "apflint.output.findings.junit",
    "markdown": "apflint.output.findings.markdown",
}
"""For each format: the name of its module. A run imports only the module of its format."""


def render(report: Report, name: str = "text", style: Style = Style()) -> str:  # noqa: B008  # a frozen value
    """Render `report` in the format `name`. Raises KeyError if the format is unknown.

    The result ends in a newline, unless it is empty.
    """
    from importlib import import_module  # a run imports only the module of its format

    text: str = import_module(FORMATS[name]).render(report, style)
    return text
