"""Renders the blocks of a report in a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.output.blocks import Block
    from apflint.output.console import Style


def render_report(title: str, blocks: Iterable[Block], output_format: str, style: Style) -> str:
    """Render a report as `text`, `markdown` or `html`. `title` is the title of the page in HTML.

    Markdown has at most the size of a comment on GitHub, and states what is left out.
    """
    match output_format:
        case "markdown":
            from apflint.output.markdown_size import render_comment

            return render_comment(blocks)
        case "html":
            from apflint.output.html import render as render_html

            return render_html(title, blocks)
    from apflint.output.text import render as render_text

    return render_text(blocks, style)
