"""Keeps Markdown within the maximum size of a comment on GitHub. First, tables get fewer rows. Then the last blocks are omitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output import markdown
from apflint.output.blocks import Details, Group, Only, Prose, Table
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.output.blocks import Block

MAX_COMMENT_BYTES = 65_536
"""Maximum size of a comment on GitHub in characters. apflint counts bytes, because there are never more characters than bytes."""
_ROWS = (100, 50, 20, 10, 5)
"""Maximum numbers of rows of a table, in the order in which they are tried until the comment is small enough."""


def render_comment(blocks: Iterable[Block]) -> str:
    """Render blocks as Markdown of at most `MAX_COMMENT_BYTES`. The last paragraph names omitted rows and blocks."""
    listed = list(_materialize(blocks))
    text = markdown.render(listed)
    if _measure(text) <= MAX_COMMENT_BYTES:
        return text
    for rows in _ROWS:
        shortened = [_shorten(block, rows) for block in listed]
        text = markdown.render([*shortened, Prose([_describe_cut(listed, rows, 0)])])
        if _measure(text) <= MAX_COMMENT_BYTES:
            return text
    return _drop_blocks(shortened, listed, rows)


def _measure(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _materialize(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks that Markdown shows. Generators become lists, so that the blocks can be rendered repeatedly."""
    for block in blocks:
        match block:
            case Only():
                if "markdown" in block.formats:
                    yield from _materialize(block.blocks)
            case Group():
                yield from _materialize(block.blocks)
            case Details():
                yield block._replace(blocks=list(_materialize(block.blocks)))
            case _:
                yield block


def _shorten(block: Block, rows: int) -> Block:
    """Return a block whose tables have at most `rows` rows."""
    match block:
        case Table():
            return block._replace(max_markdown_rows=min(rows, block.max_markdown_rows or rows))
        case Details():
            return block._replace(blocks=[_shorten(inner, rows) for inner in block.blocks])
        case _:
            return block


def _drop_blocks(blocks: Sequence[Block], complete: Sequence[Block], rows: int) -> str:
    """Render as many of the first blocks as fit into a GitHub comment, and a sentence about what is omitted.

    At least one block is omitted. `blocks` are the blocks with at most `rows` rows in each table, and
    `complete` are the blocks with all rows.
    """
    number = len(blocks)
    while number:
        number -= 1
        note = Prose([_describe_cut(complete, rows, len(blocks) - number)])
        text = markdown.render([*blocks[:number], note])
        if _measure(text) <= MAX_COMMENT_BYTES:
            return text
    return text


def _describe_cut(blocks: Sequence[Block], rows: int, dropped: int) -> str:
    """Return a sentence about the omitted rows and blocks."""
    tables = list(_find_tables(blocks))
    titles = [table.title or table.columns[0].title for table in tables if len(table.rows) > rows]
    parts = [f"rows after the first {rows} of the tables {', '.join(map(sanitize, titles))}"] if titles else []
    if dropped:
        parts.append(f"the last {dropped} parts of the report" if dropped > 1 else "the last part of the report")
    return (
        f"Left out, because a comment on GitHub has at most {MAX_COMMENT_BYTES:,} characters: {' and '.join(parts)}. For"
        " the complete report, use `--format html` or `--format json`."
    )


def _find_tables(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        match block:
            case Table():
                yield block
            case Details():
                yield from _find_tables(block.blocks)
            case _:
                pass
