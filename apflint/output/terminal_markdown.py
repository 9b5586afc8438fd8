"""Markdown for a terminal, formatted by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markdown import Heading, Markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text


class _LeftHeading(Heading):
    """A heading at the left edge, because rich centers headings."""

    def __rich_console__(self, *_: Any) -> Iterator[Text]:
        text = self.text.copy()
        text.justify = "left"
        text.stylize("bold")
        yield text


class MarkdownPage(Markdown):
    """A page of Markdown with headings at the left edge."""

    elements = {**Markdown.elements, "heading_open": _LeftHeading}  # noqa: RUF012  # rich declares a mutable attribute
