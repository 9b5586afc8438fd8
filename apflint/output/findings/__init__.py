"""Renderers of a report's findings: one module per format, each with `render(report, style) -> str`.

A new format is a module and a line in `FORMATS`.
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
"""The module of each format, by name: a run imports only the one it uses."""


def render(report: Report, name: str = "text", style: Style = Style()) -> str:  # noqa: B008  # a frozen value
    """Render `report` in the format `name`: nothing, or text that ends in a newline. Raises KeyError for an unknown format."""
    from importlib import import_module  # only a run that prints needs it

    text: str = import_module(FORMATS[name]).render(report, style)
    return text
