"""Renders reports as text."""

from __future__ import annotations

from itertools import accumulate, chain
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
    Only,
    Prose,
    Raw,
    Table,
    Text,
    get_plain,
)
from apflint.output.console import count_cells, wrap
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.text_table import render_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.output.blocks import Block, Inline, Tone
    from apflint.output.console import Style

_GAP = 2
"""Cells between labels and descriptions."""


def render(blocks: Iterable[Block], style: Style) -> str:
    """Render blocks, with an empty line between them."""
    return "\n".join(_render_all(blocks, style))


def _render_all(blocks: Iterable[Block], style: Style) -> Iterator[str]:
    """Yield the lines of each block. Skip blocks without lines."""
    for block in blocks:
        if isinstance(block, Only):
            if "text" in block.formats:
                yield from _render_all(block.blocks, style)
        elif text := _render_block(block, style):
            yield text


def _render_block(block: Block, style: Style) -> str:
    match block:
        case Prose():
            return _join(line for sentence in block.sentences for line in _sentence(sentence, block, style))
        case Table():
            notes = _render_block(Prose(block.notes, "dim"), style) if block.notes and block.rows else ""
            return render_table(block, style) + notes if block.rows else ""
        case Facts():
            return _join(_facts(block, style))
        case Bullets():
            return _join(chain.from_iterable(_bullet(item, block, style) for item in block.items))
        case Group():
            return "".join(_render_all(block.blocks, style))
        case Heading():
            return _join(_heading(block, style))
        case Command():
            arguments = style.paint(sanitize(block.arguments), "info")
            return f"{' ' * block.indent}{sanitize(block.program)} {arguments}\n"
        case Code():
            return _join(map(sanitize_line, block.text.splitlines()))
        case Details():
            return "".join((_render_block(Heading(block.title), style), *_render_all(block.blocks, style)))
        case Raw():
            return block.text
        case Figure() | Only():
            return ""


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _paint(text: str, tone: Tone, style: Style) -> str:
    return style.paint(text, tone) if tone not in ("", "name") else text


def _wrap(
    text: Inline, style: Style, tone: Tone = "", first: int = 0, rest: int = 0, *, starts_line: bool = True
) -> list[str]:
    """Return the lines of a text, sanitized and in the colors of the style. Each part of the text keeps its color.

    `first` is the number of columns that other text occupies before the first line. `rest` is the
    number of columns before each other line.
    """
    parts = text if isinstance(text, tuple) and not isinstance(text, Text) else (text,)
    plain = (sanitize_line if starts_line else sanitize)(get_plain(text))
    lines = wrap(plain, style.prose_width, first, rest)
    spans = [(sanitize(get_plain(part)), _find_tone(part) or tone) for part in parts]
    if not style.color or "".join(span for span, _ in spans) != plain:
        return [_paint(line, tone, style) for line in lines]
    return list(_paint_lines(lines, plain, spans, style))


def _find_tone(part: Inline) -> Tone:
    """Return the emphasis of a part of a text. A name is not emphasized, so the result for a name is empty."""
    return part.tone if isinstance(part, Text) and part.tone != "name" else ""


def _paint_lines(lines: Iterable[str], plain: str, spans: Iterable[tuple[str, Tone]], style: Style) -> Iterator[str]:
    """Yield `lines` in the colors of `spans`, which are the parts of `plain`.

    `lines` are the lines into which `wrap` breaks `plain`, without the spaces between the lines.
    """
    ends = list(accumulate((len(span) for span, _ in spans), initial=0))
    tones = [tone for _, tone in spans]
    start = 0
    for line in lines:
        end = start + len(line)
        pieces = zip(ends, ends[1:], tones, strict=False)
        yield "".join(
            _paint(plain[max(start, low) : min(end, high)], tone, style)
            for low, high, tone in pieces
            if low < end and start < high
        )
        start = end + (plain[end : end + 1] == " ")


def _sentence(sentence: Inline, prose: Prose, style: Style) -> list[str]:
    """Return the lines of a sentence. In a dim sentence, such as `MIN: the seats ...`, lines after the first are indented."""
    indent = _GAP if prose.tone == "dim" else 0
    first, *rest = _wrap(sentence, style, prose.tone, 0, indent)
    return [first, *(f"{' ' * indent}{line}" for line in rest)]


def _hang(head: str, text: Inline, style: Style, indent: int, *, cells: int, starts_line: bool = True) -> list[str]:
    """Return the colored lines of a text with a hanging indent (see `hang`). `cells` is the width of `head`."""
    first, *rest = _wrap(text, style, "", cells, indent, starts_line=starts_line)
    return [f"{head}{first}".rstrip(" "), *(f"{' ' * indent}{line}" for line in rest)]


def _bullet(item: Inline, bullets: Bullets, style: Style) -> list[str]:
    marker = bullets.marker
    if not marker:
        return _wrap(item, style, bullets.tone)
    head = style.paint(marker, "gutter") if marker.strip() == "=" else marker
    indent = len(marker) + (_GAP if marker.isspace() and len(bullets.items) > 1 else 0)
    return _hang(head, item, style, indent, cells=len(marker), starts_line=marker.isspace())


def _facts(facts: Facts, style: Style) -> Iterator[str]:
    labels = [sanitize_line(get_plain(label)) for label, _ in facts.pairs]
    cells = facts.cells
    if cells is None:
        cells = max(map(count_cells, labels), default=0) + _GAP
    start = facts.indent + cells
    for place, (label, (_, text)) in enumerate(zip(labels, facts.pairs, strict=True)):
        head = f"{' ' * facts.indent}{style.paint(label, 'dim')}{' ' * (cells - count_cells(label))}"
        # If several texts belong to one label, they are items of a list. So if a text is wrapped, its further lines
        # are indented.
        is_item = not label or labels[place + 1 : place + 2] == [""]
        yield from _hang(head, text, style, start + _GAP * is_item, cells=start, starts_line=not label.strip())
    if facts.more:
        yield f"{' ' * facts.indent}and {sanitize(facts.more)}"


def _heading(heading: Heading, style: Style) -> Iterator[str]:
    """Yield the lines of a heading. The remark follows after two spaces, or on separate lines if space is insufficient."""
    lines = _wrap(heading.text, style, "bold", 0, _GAP)
    remark = f"({heading.remark})" if heading.remark else ""
    used = count_cells(sanitize_line(get_plain(heading.text))) + _GAP
    width = style.prose_width
    if remark and len(lines) == 1 and (width is None or used + count_cells(sanitize(remark)) <= width):
        lines = [f"{lines[0]}{' ' * _GAP}{style.paint(sanitize(remark), 'dim')}"]
    elif remark:
        lines += _wrap(remark, style, "dim", _GAP, _GAP)
    yield lines[0]
    yield from (f"{' ' * _GAP}{line}" for line in lines[1:])
