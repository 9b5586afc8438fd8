"""Renders reports as Markdown. Text from manifests is escaped, so that it cannot be markup, a mention or a link."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.output.blocks import (
    Bullets,
    Code,
    Command,
    Details,
    Facts,
    Figure,
    Group,
    Heading,
    Lines,
    Only,
    Prose,
    Raw,
    Table,
    Text,
)
from apflint.output.sanitize import escape_xml, sanitize, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.output.blocks import Block, Cell, Column, Inline

_PLAIN_WORD = re.compile(r"(?:[A-Za-z0-9.,;()'%?/=+µ→≤-]|[<~](?=[0-9]))+:?")
_LINK = re.compile(r"www\.|\b[0-9a-f]{7,40}\b|\bGH-[0-9]")
"""Pattern for plain text that GitHub turns into a link: a web address, a commit or an issue."""
_WORDS = re.compile(r'(?:"[^"]*"|`[^`]*`|[^ ])+')
_NUMBER = re.compile(r"(?:[A-Za-z0-9.,()%/+µ→≤ -]|[<>](?=[ 0-9])|~(?=[0-9]))*")
"""Pattern for cells with numbers, which need no escapes."""
_STRONG = ("bold", "error", "warning")
_TOP_LEVEL = 2
"""Number to add to the level of a heading. The title of a report gets level 3, because a page contains the report."""
_QUOTED = re.compile(r"(\(?)(`[^`]+`|\"[^\"]*\")([.,:;)]*)")


def render(blocks: Iterable[Block]) -> str:
    """Render blocks, with an empty line between them."""
    return "\n\n".join(_render_all(blocks)) + "\n"


def _render_all(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the Markdown of each block, without a newline at its end. Skip blocks without Markdown."""
    for block in blocks:
        match block:
            case Only():
                if "markdown" in block.formats:
                    yield from _render_all(block.blocks)
            case Group():
                yield from _render_all(block.blocks)
            case Heading():
                remark = f" ({_format(block.remark)})" if block.remark else ""
                yield f"{'#' * (block.level + _TOP_LEVEL)} {_format(block.text)}{remark}"
            case Prose():
                yield from (_emphasize(sentence, block.tone) for sentence in block.sentences)
            case Bullets() | Facts():
                if lines := list(_list_items(block)):
                    yield "\n".join(f"- {line}" for line in lines)
            case Command():
                yield format_code(f"{block.program} {block.arguments}")
            case Code():
                yield _fence(block)
            case Table():
                if block.rows:
                    yield from _table(block)
            case Details():
                content = "\n\n".join(_render_all(block.blocks))
                yield f"<details><summary>{_format_summary(block.title)}</summary>\n\n{content}\n\n</details>"
            case Raw():
                yield block.text.rstrip("\n")
            case Figure():
                pass


def _format_summary(title: Inline) -> str:
    """Format the title of a `Details` block for `<summary>`. A name becomes `<code>`, because HTML has no backticks."""
    if isinstance(title, Text) and title.tone == "name":
        return f"<code>{escape_xml(sanitize_line(title.plain))}</code>"
    return _format(title) if isinstance(title, str | Text) else "".join(map(_format_summary, title))


def _fence(block: Code) -> str:
    """Return a fenced code block. The fence has more backticks than any sequence of backticks in the content."""
    lines = "\n".join(map(sanitize_line, block.text.splitlines()))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", lines)), default=0))
    return f"{fence}{block.language}\n{lines}\n{fence}"


def _list_items(block: Bullets | Facts) -> Iterator[str]:
    if isinstance(block, Bullets):
        yield from map(_format, block.items)
        return
    for label, lines in block.join_lines():
        text = "  \n  ".join(map(_format, lines))
        yield f"{_format(label).strip()}: {text}" if label else text
    if block.more:
        yield _format(block.more)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"{'#' * (2 + _TOP_LEVEL)} {_format(table.title)}"
    lines = [
        f"| {' | '.join(_format(column.title) for column in table.columns)} |",
        f"|{'|'.join('---:' if column.kind == 'number' else '---' for column in table.columns)}|",
    ]
    for row in table.rows[: table.max_markdown_rows]:
        cells = (_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))
        lines.append(f"| {' | '.join(cells)} |")
    yield "\n".join(lines)
    if (more := len(table.rows) - len(table.rows[: table.max_markdown_rows])) > 0:
        yield f"{more} more: see `--format json`."
    yield from map(_format, table.notes)


def _cell(cell: Cell, column: Column) -> str:
    if isinstance(cell, Lines):
        return "<br>".join(map(_format, cell.lines))
    if not isinstance(cell, str | Text):
        return _format(cell)
    text = cell.plain if isinstance(cell, Text) else cell
    if column.kind == "name" and text not in ("", "-"):
        return format_code(text)
    if column.kind == "number":
        text = text.replace(" -> ", " → ")
        return text if _NUMBER.fullmatch(text) else format_prose(text)
    return _format(text) if text else ""


def _emphasize(sentence: Inline, tone: str) -> str:
    if isinstance(sentence, Text):
        tone = sentence.tone or tone
        sentence = sentence.plain
    return f"**{_format(sentence)}**" if tone in _STRONG else _format(sentence)


def _format(text: Inline) -> str:
    """Return text as Markdown with emphasis and links. ` -> ` becomes an arrow character."""
    if isinstance(text, str):
        return format_prose(text.replace(" -> ", " → ")) if text else ""
    if not isinstance(text, Text):
        return "".join(map(_format_run, text))
    if text.tone == "name":
        return format_code(text.plain)
    shown = f"**{_format(text.plain)}**" if text.tone in _STRONG else _format(text.plain)
    return f"[{shown}]({link})" if text.url and (link := text.link) else shown


def _format_run(run: str | Text) -> str:
    """Format a part of a line. Keep the spaces at its start and end."""
    if isinstance(run, Text):
        return _format(run)
    text = run.replace(" -> ", " → ")
    words = text.strip(" ")
    return text.replace(words, format_prose(words)) if words else text


def format_prose(text: str) -> str:
    """Return `text` as Markdown, with values and commands as code spans."""
    safe = sanitize(text).strip()
    if not safe or "  " in safe:  # only a code span preserves several spaces
        return format_code(safe)
    return " ".join(map(_format_word, _WORDS.findall(safe)))


def _format_word(word: str) -> str:
    """Return a word as Markdown: plain text if it is safe, else a code span.

    If the word is a value in quotes, such as `"a b"`, the code span replaces the quotes.
    """
    if _PLAIN_WORD.fullmatch(word) and not _LINK.search(word):
        return word
    if quoted := _QUOTED.fullmatch(word):
        before, value, after = quoted.groups()
        return f"{before}{format_code(value.strip('`'))}{after}"
    return format_code(word)


def format_code(text: str) -> str:
    """Return `text` as a code span that is also safe in a table."""
    safe = sanitize(text).replace("|", "\\|")
    if not safe.strip():
        return '""'
    longest = max(map(len, re.findall("`+", safe)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if safe[0] in "` " or safe[-1] in "` " else ""
    return f"{fence}{padding}{safe}{padding}{fence}"
