"""What a run found, as text: one module per format, each with `render(report, style) -> str`.

A new format is one module and one line in `FORMATS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.finding import Report

FORMATS: dict[str, str] = {
    "text": "apflint.report.text",
    "concise": "apflint.report.concise",
    "json": "apflint.report.json",
    "sarif": "apflint.report.sarif",
    "github": "apflint.report.github",
    "gitlab": "apflint.report.gitlab",
    "junit": "apflint.report.junit",
    "markdown": "apflint.report.markdown",
}
"""Format -> the module that renders it. Named, not imported: a run pays for the one it uses."""


class Style(NamedTuple):
    """How text for people is laid out. The formats for machines pass it over: they are the same everywhere."""

    width: int | None = None
    """Cells in a line of the terminal; None for a pipe: prose is not wrapped, so that one sentence stays one line."""
    colour: bool = False
    hyperlinks: bool = False
    """Rule ids become links (OSC 8): for terminals only."""
    quiet: bool = False
    """Findings only, no summary."""
    verbose: bool = False
    """Field paths with the findings, file names with what was skipped."""
    statistics: bool = False
    """How many findings of each rule, in place of the findings."""


class _Renderer(Protocol):
    def render(self, report: Report, style: Style) -> str: ...


def render(report: Report, name: str = "text", style: Style = Style()) -> str:  # noqa: B008  # a frozen value
    """`report` in the format `name`: empty, or text that ends in a newline. ValueError for an unknown format."""
    from importlib import import_module  # only a run that prints needs it

    if name not in FORMATS:
        raise ValueError(f'"{name}" is no format. The formats are: {", ".join(FORMATS)}.')
    return cast("_Renderer", import_module(FORMATS[name])).render(report, style)
