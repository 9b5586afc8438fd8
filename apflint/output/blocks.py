"""The document model of reports: a report is a function that yields blocks.

The modules `text`, `markdown` and `html` render the blocks. Blocks have no layout. Their strings
may contain any characters, because renderers sanitize and escape them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.output.svg_chart import Chart

Format = Literal["text", "markdown", "html"]
Tone = Literal["", "name", "bold", "dim", "error", "warning", "info", "good", "bad", "caution"]
"""Emphasis of a string. The tone `name` marks a value from a manifest, a log or a server. Markdown and HTML show it as
code.
"""
TEXT: tuple[Format, ...] = ("text",)
HTML: tuple[Format, ...] = ("html",)
DOCUMENTS: tuple[Format, ...] = ("markdown", "html")


class Text(NamedTuple):
    """A string with emphasis, or a link."""

    plain: str
    tone: Tone = ""
    url: str = ""
    """URL of a page, or `#` and the ID of an element. Markdown and HTML contain a link only if `link` is not empty."""

    @property
    def link(self) -> str:
        """Return the URL, or an empty string if the URL is not a plain `https` URL or a link within the page."""
        import re  # imported on demand: links are rare

        return self.url if re.fullmatch(r"(?:https://[\w./#-]+|#[\w-]+)", self.url, re.ASCII) else ""


Inline: TypeAlias = "str | Text | tuple[str | Text, ...]"
"""Text on one line. Markdown and HTML show `->` as an arrow, and Markdown shows quoted values as code."""


def get_plain(text: Inline) -> str:
    """Return the string of `text`, without emphasis and links."""
    if isinstance(text, str):
        return text
    return text.plain if isinstance(text, Text) else "".join(map(get_plain, text))


class Heading(NamedTuple):
    """A heading."""

    text: Inline
    level: int = 2
    """Level, from 1 for the title of the report. Markdown adds 1 to each level, because the report is a part of a page."""
    remark: str = ""
    """String after the heading, without emphasis."""


class Prose(NamedTuple):
    """Sentences, each on a separate line."""

    sentences: Sequence[Inline]
    tone: Tone = ""


class Bullets(NamedTuple):
    """A bulleted list."""

    items: Sequence[Inline]
    marker: str = "- "
    """String before each item in text. Without a marker, the items look like prose."""
    tone: Tone = ""


class Facts(NamedTuple):
    """Short labels, each with a description. In text, all descriptions start in one column.

    If a description has several lines, the parts of a line that is broken are indented, so that each line stands out.
    """

    pairs: Sequence[tuple[Inline, Inline]]
    """(label, description) of each fact. A fact with an empty label continues the description before it on a new line."""
    cells: int | None = None
    """Width of the labels in text, or None for the width of the longest label."""
    indent: int = 0
    """Number of spaces in text before each label."""
    more: str = ""
    """Noun phrase for the omitted facts, printed after the last fact. Empty if no facts are omitted."""

    def join_lines(self) -> list[tuple[Inline, list[Inline]]]:
        """Return (label, lines) pairs from the (label, line) pairs in `pairs`.

        If a pair has an empty label, its line belongs to the label of the pair before it.
        """
        facts: list[tuple[Inline, list[Inline]]] = []
        for label, line in self.pairs:
            if label or not facts:
                facts.append((label, []))
            facts[-1][1].append(line)
        return facts


class Command(NamedTuple):
    """A command line to copy, which is never broken into lines."""

    program: str
    arguments: str
    indent: int = 0


class Code(NamedTuple):
    """The content of a file, such as a manifest. Its lines are never broken."""

    text: str
    language: str = ""
    """Language of the content in Markdown, such as `yaml`."""


class Column(NamedTuple):
    """A column of a table."""

    title: str
    """Title of the column. Text shows it in capitals."""
    kind: Literal["number", "name", "text", "bar"] = "number"
    """`number`: aligned right. `name`: values from manifests, logs or servers. `text`: words. `bar`: drawn with characters.

    If a table is too wide, the text renderer may break cells of the kind `text` into lines. It breaks names in the first column
    only if all other ways do not save enough width.
    """
    is_optional: bool = False
    """Whether text may move the column to a second table in a narrow terminal."""


class Lines(NamedTuple):
    """A cell with several lines."""

    lines: Sequence[Inline]


Cell: TypeAlias = "Inline | Lines"


class Table(NamedTuple):
    """A table. The cells of the first column name the rows."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    """Heading in Markdown and HTML. Text does not show the title: there, notes explain the columns."""
    notes: Sequence[Inline] = ()
    """Sentences below the table."""
    keys: int = 1
    """Number of first columns to repeat in each part, if the text renderer splits a wide table into several tables."""
    has_header: bool = True
    max_markdown_rows: int | None = None
    """Maximum number of rows in Markdown, because code hosts limit the size of a comment. None for no maximum."""


class Figure(NamedTuple):
    """A drawing in HTML. Text and Markdown omit the drawing, so a table must contain its numbers, too."""

    chart: Chart
    legend: Sequence[tuple[str, str]] = ()
    """(name of a color in `page.css`, meaning of this color) for each color of the drawing."""


class Details(NamedTuple):
    """Blocks that Markdown and HTML fold under the title. Text shows them below the title."""

    title: Inline
    blocks: Iterable[Block]


class Group(NamedTuple):
    """Blocks that belong together. Text has no empty lines between them."""

    blocks: Iterable[Block]


class Only(NamedTuple):
    """Blocks that only some formats show. If `blocks` is a generator, it runs only for these formats, which can save time."""

    formats: tuple[Format, ...]
    blocks: Iterable[Block]


class Raw(NamedTuple):
    """Text that is already in the syntax of one output format, such as HTML.

    `Raw` must be inside an `Only` block that names the format, because other formats cannot render it.
    """

    text: str


Block: TypeAlias = "Heading | Prose | Bullets | Facts | Command | Code | Table | Figure | Details | Group | Only | Raw"
