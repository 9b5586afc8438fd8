"""Markdown for a terminal, formatted by rich."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markdown import Heading, Markdown
from rich.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from apflint.output.console import Style


class _LeftHeading(Heading):
    """A heading at the left edge, because rich centers headings."""

    def __rich_console__(self, *_: Any) -> Iterator[Text]:
        text = self.text.copy()
        text.justify = "left"
        text.stylize("bold")
        yield text


class MarkdownPage(Markdown):
    """Renders Markdown on a terminal with headings at the left edge. The library rich would center the headings."""

    elements = {**Markdown.elements, "heading_open": _LeftHeading}  # noqa: RUF012  # rich declares a mutable attribute


def render_markdown(text: str, style: Style, width: int) -> str:
    """Format Markdown for a terminal, without trailing spaces, and without the random IDs of links.

    Environment variables are ignored.
    """
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=style.color or style.hyperlinks,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        _environ={},
    )
    # rich's default theme shows code on black, even in light terminals.
    console.push_theme(Theme({"markdown.code": "bold cyan"}))
    with console.capture() as captured:
        console.print(MarkdownPage(text, code_theme="ansi_dark", hyperlinks=style.hyperlinks))
    page = re.sub(r"\x1b\]8;id=[^;]*;", "\x1b]8;;", captured.get())
    return "".join(f"{line.rstrip(' ')}\n" for line in page.splitlines())
