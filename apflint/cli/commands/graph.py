"""The command `apflint graph`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from apflint.cli import options
from apflint.cli.definitions import command, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.options import OUTPUT, option
from apflint.cli.sides import read
from apflint.cli.terminal import style
from apflint.graph.picture import build_picture, find_unreachable


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
) -> None:
    """Draw FlowSchemas in matching order, and the seats of their priority levels."""
    configuration = read(sources.select(paths))
    known = configuration.effective
    drawing = build_picture(known, find_unreachable(known.configuration))._replace(
        configuration=configuration.description
    )
    match output_format or ("text" if sys.stdout.isatty() else "mermaid"):
        case "text":
            from apflint.graph.terminal import report_picture
            from apflint.output.text import render as render_text

            sys.stdout.write(render_text(report_picture(drawing), style(color)))
            return
        case "dot":
            from apflint.graph.dot import render
        case "svg":
            from apflint.graph.svg import render
        case "html":
            from apflint.graph.page import render
        case "mermaid":
            from apflint.graph.mermaid import is_too_large, render

            if is_too_large(render(drawing)):
                print_note(
                    "GitHub and others do not draw a Mermaid diagram of this size. Use --format html, svg or dot"
                )
    sys.stdout.write(render(drawing))
