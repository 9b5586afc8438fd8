"""Defines `apflint graph`, which draws FlowSchemas and priority levels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.options import OUTPUT, option
from apflint.cli.terminal import style
from apflint.graph.content import build_picture, find_unreachable
from apflint.run import Answer, analyze

if TYPE_CHECKING:
    from apflint.graph.content import Picture
    from apflint.sources.effective_configurations import EffectiveConfiguration


@command(
    panel="Analyze",
    epilog=examples(
        ("as text in a terminal", "apflint graph manifests/"),
        ("Mermaid, which GitHub and GitLab draw in Markdown", "apflint graph --format mermaid manifests/"),
        ("a page for the browser", "apflint graph --format html manifests/ > apf.html"),
        ("with Graphviz", "apflint graph --format dot manifests/ | dot -Tpdf > apf.pdf"),
        ("a running cluster", "apflint graph --live --format html > apf.html"),
        ("the built-in objects of a release", "apflint graph defaults:1.36"),
    ),
)
def graph(
    paths: options.Paths = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    output_format: Annotated[
        Literal["text", "mermaid", "dot", "svg", "html"] | None,
        option(OUTPUT, "Output format; dot is for Graphviz. By default text in a terminal, else mermaid.", "--format"),
    ] = None,
    color: options.Color = "auto",
) -> int:
    """Draw FlowSchemas in matching order, and the seats of their priority levels."""

    def find_answer(configuration: EffectiveConfiguration) -> Answer:
        known = configuration.effective
        picture = build_picture(known, find_unreachable(known.configuration))
        name = output_format or ("text" if sys.stdout.isatty() else "mermaid")
        return _render(picture._replace(configuration=configuration.description), name, color)

    return analyze(sources.select(paths), find_answer)


def _render(drawing: Picture, output_format: str, color: str) -> Answer:
    match output_format:
        case "text":
            from apflint.graph.terminal import report_picture
            from apflint.output.text import render as render_text

            return Answer(render_text(report_picture(drawing), style(color)))
        case "dot":
            from apflint.graph.dot import render
        case "svg":
            from apflint.graph.svg import render
        case "html":
            from apflint.graph.html_page import render
        case "mermaid":
            from apflint.graph.mermaid import is_too_large, render

            if is_too_large(text := render(drawing)):
                note = "GitHub and others do not draw a Mermaid diagram of this size. Use --format html, svg or dot"
                return Answer(text, (note,))
    return Answer(render(drawing))
