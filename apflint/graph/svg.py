"""The picture as SVG, without scripts and without external fonts and images. Its text can be selected and searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph.content import ORIGINS, format_facts
from apflint.named_tuple import NamedTuple
from apflint.output.console import shorten
from apflint.output.sanitize import escape_xml
from apflint.output.stylesheet import read_style_sheet, resolve_colors
from apflint.output.svg_chart import draw_text
from apflint.wording import join_some, join_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.limits import LevelLimits
    from apflint.graph.content import LevelNode, Picture, SchemaNode

# Lengths in CSS pixels. FlowSchemas are in the left column, and levels in the right column.
TOP, MARGIN = 122, 20
"""Space above the columns (for title, legend and headings), and space around the drawing."""
SCHEMA_WIDTH, SCHEMA_HEIGHT, MIN_SCHEMA_GAP, MAX_SCHEMA_GAP = 580, 48, 8, 40
LEVEL_WIDTH, LEVEL_HEIGHT, MISSING_HEIGHT, LEVEL_GAP = 330, 84, 48, 12
_COLUMN_GAP = 180
_BLOCKER_GUTTER = 56
"""Width at the left for arrows from unreachable FlowSchemas to the FlowSchemas that capture their requests."""
_PORT_GAP = 9
"""Maximum distance between the ends of arrows at a level."""
_NAME_WIDTH, _TEXT_WIDTH = 7.9, 6.5
"""Widths of a character: in names (monospaced font of 13 px), and on average in other text (font of 12 px)."""
_BAR_WIDTH = LEVEL_WIDTH - 28
_PRECEDENCE_WIDTH = 76
_HUES = 8
"""Number of colors for levels and for arrows to them, in `picture.css`. Red and amber are reserved for problems."""
_LEGEND = {
    "built-in": "built-in",
    "own": "yours",
    "unreachable": "unreachable",
    "dangling": "skipped, or does not exist",
}
"""Maps the style of a card to its meaning. A card is the box of a FlowSchema or a level."""


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Return the y coordinate of the middle."""
        return self.y + self.height / 2


class DrawingLayout(NamedTuple):
    """The size of the drawing, the boxes of FlowSchemas and levels, and the ends of arrows.

    The boxes and ends are in the order of `Picture.schemas` and `Picture.levels`.
    """

    width: float
    height: float
    schemas: tuple[Box, ...]
    levels: tuple[Box, ...]
    arrow_ends: tuple[float, ...]
    """The y coordinates at which the arrows of the FlowSchemas end, in the order of `Picture.schemas`."""


def lay_out(picture: Picture) -> DrawingLayout:
    """Compute the size of a drawing, and the positions of its boxes and arrows.

    A level has the average y coordinate of its FlowSchemas, or the nearest y coordinate at which no two levels overlap.
    """
    count = len(picture.schemas)  # at least 2, because every server has the FlowSchemas `exempt` and `catch-all`
    has_arrows_left = any(node.state == "unreachable" and node.blockers for node in picture.schemas)
    left = MARGIN + (_BLOCKER_GUTTER if has_arrows_left else 0)
    right = left + SCHEMA_WIDTH + _COLUMN_GAP
    heights = [MISSING_HEIGHT if level.limits is None else LEVEL_HEIGHT for level in picture.levels]
    # With few FlowSchemas, the gaps between them are larger, so that both columns have about the same height.
    space = sum(heights) + LEVEL_GAP * (len(heights) - 1) - SCHEMA_HEIGHT * count
    gap = max(MIN_SCHEMA_GAP, min(space / (count - 1), MAX_SCHEMA_GAP))
    schemas = tuple(Box(left, TOP + at * (SCHEMA_HEIGHT + gap), SCHEMA_WIDTH, SCHEMA_HEIGHT) for at in range(count))
    bottom = schemas[-1].y + SCHEMA_HEIGHT
    middles = [
        sum(schemas[at].middle for at in level.schemas) / len(level.schemas) if level.schemas else bottom
        for level in picture.levels
    ]
    tops = _spread(middles, heights, bottom)
    levels = tuple(Box(right, top, LEVEL_WIDTH, height) for top, height in zip(tops, heights, strict=True))
    ends = [0.0] * count
    for level, box in zip(picture.levels, levels, strict=True):
        steps = len(level.schemas) - 1
        step = min(_PORT_GAP, (box.height - 24) / steps) if steps > 0 else 0
        for at, schema in enumerate(level.schemas):
            ends[schema] = box.middle + step * (at - steps / 2)
    lowest = max(bottom, *(box.y + box.height for box in levels))
    return DrawingLayout(right + LEVEL_WIDTH + MARGIN, lowest + MARGIN, schemas, levels, tuple(ends))


def _spread(middles: Sequence[float], heights: Sequence[float], bottom: float) -> list[float]:
    """Return the tops of boxes that do not overlap and whose middles are near `middles`.

    `middles` and `heights` have one value for each box, from top to bottom. No box ends below `bottom`, unless the
    boxes need more space.
    """
    tops: list[float] = []
    lowest = float(TOP)
    for middle, height in zip(middles, heights, strict=True):
        tops.append(max(lowest, middle - height / 2))
        lowest = tops[-1] + height + LEVEL_GAP
    highest = max(bottom, TOP + sum(heights) + LEVEL_GAP * (len(heights) - 1))
    for at in reversed(range(len(tops))):
        tops[at] = min(tops[at], highest - heights[at])
        highest = tops[at] - LEVEL_GAP
    return tops


def render(picture: Picture) -> str:
    """Render the SVG document."""
    return "".join(f"{line}\n" for line in _lines(picture))


def _lines(picture: Picture) -> Iterator[str]:
    layout = lay_out(picture)
    size = f'width="{layout.width:g}" height="{layout.height:g}"'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="apf" role="graphics-document" aria-labelledby="apf-t apf-d"'
        f' {size} viewBox="0 0 {layout.width:g} {layout.height:g}">'
    )
    yield f'<title id="apf-t">{escape_xml(picture.title)}</title>'
    yield f'<desc id="apf-d">{escape_xml(_description(picture))}</desc>'
    yield f"<style>\n{_render_style(len(picture.levels))}</style>"
    yield f"<defs>{''.join(_definitions())}</defs>"
    yield f'<rect class="paper" {size}/>'
    yield draw_text(MARGIN, 32, picture.title, "title")
    yield from _legend(picture)
    yield draw_text(MARGIN, 82, picture.source, "dim")
    left, right = layout.schemas[0].x + _PRECEDENCE_WIDTH, layout.levels[0].x
    yield draw_text(left, TOP - 12, "Precedence", "heading dim end")
    yield draw_text(left + 20, TOP - 12, "FlowSchema: the first one that matches captures the request", "heading dim")
    yield draw_text(right + 14, TOP - 12, "Priority level", "heading dim")
    for at, node in enumerate(picture.schemas):
        yield from _schema(layout, at, node)
    # Levels follow all FlowSchemas, so that the tab key and screen readers go through one column after the other.
    bars = [level.limits for level in picture.levels if level.limits is not None and level.limits.type != "Exempt"]
    longest = max((max(limits.nominal, limits.attainable) for limits in bars), default=0)
    for at, level in enumerate(picture.levels):
        yield from _level(layout.levels[at], at, level, longest)
    yield "</svg>"


def _render_style(levels: int) -> str:
    """Render the style sheet for this number of levels. Hovering over a level fades the arrows to all other levels."""
    lines = read_style_sheet("picture.css", "graph").splitlines(keepends=True)
    shapes, colors = ("".join(line for line in lines if ("var(" in line) == has_color) for has_color in (False, True))
    fading = "".join(
        f"svg.apf:has(#apf-l{at}:hover) .flow:not(.to{at}) .arrow{{stroke-opacity:.12}}\n" for at in range(levels)
    )
    return f"{shapes}{fading}{resolve_colors(colors)}"


def _description(picture: Picture) -> str:
    text = (
        f"{len(picture.schemas)} FlowSchemas in the order in which the server tries them, at the left,"
        f" with arrows to {len(picture.levels)} priority levels at the right. {picture.source}."
    )
    for state, label in (("unreachable", "Unreachable"), ("dangling", "Skipped by the server")):
        if names := [f'"{node.name}"' for node in picture.schemas if node.state == state]:
            text += f" {label}: {join_words(names, 'and')}."
    return text


def _definitions() -> Iterator[str]:
    """Yield SVG definitions: the tips of arrows, and `clipPath` elements that keep wide text inside its card."""
    tips = [(f"apf-m{hue}", f"tip{hue}") for hue in range(_HUES)]
    for name, kind in (*tips, ("apf-mg", "dangling-tip"), ("apf-mt", "captured-tip")):
        yield (
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            f' markerUnits="userSpaceOnUse" orient="auto"><path class="{kind}" d="M0 0L8 4L0 8z"/></marker>'
        )
    for name, width, height in (("s", SCHEMA_WIDTH, SCHEMA_HEIGHT), ("l", LEVEL_WIDTH, LEVEL_HEIGHT)):
        yield f'<clipPath id="apf-c{name}"><rect width="{width}" height="{height}"/></clipPath>'


def _legend(picture: Picture) -> Iterator[str]:
    x = float(MARGIN)
    looks = {node.look for node in picture.schemas} | {level.look for level in picture.levels}
    for look, label in _LEGEND.items():
        if look in looks:
            card = f'<rect class="card" x="{x:g}" y="48" width="22" height="14" rx="3"/>'
            yield f'<g class="{look}">{card}</g>{draw_text(x + 28, 59, label, "dim")}'
            x += 28 + len(label) * _TEXT_WIDTH + 20
    has_borrowing = picture.has_borrowing
    bar = "Dark bar: min; pale bar: nominal; line: attainable" if has_borrowing else "Bar: nominal"
    yield draw_text(x + 12, 59, bar, "dim")


def _schema(layout: DrawingLayout, at: int, node: SchemaNode) -> Iterator[str]:
    box, hue = layout.schemas[at], node.level % _HUES
    tip = {"dangling": "apf-mg", "unreachable": "apf-mt"}.get(node.state, f"apf-m{hue}")
    yield f'<g id="apf-s{at}" class="flow to{node.level} h{hue} {node.look} {node.state.replace(" ", "-")}">{_tooltip(node)}'
    yield f'<path class="arrow" marker-end="url(#{tip})" d="{_curve(box, layout.arrow_ends[at])}"/>'
    for blocker in node.blockers if node.state == "unreachable" else ():
        yield f'<path class="captured" marker-end="url(#apf-mt)" d="{_loop(box, layout.schemas[blocker])}"/>'
    yield f"{_card(box)}" + '<g clip-path="url(#apf-cs)">'
    left, right, origin = _PRECEDENCE_WIDTH + 20, SCHEMA_WIDTH - 12, ORIGINS[node.origin]
    yield draw_text(_PRECEDENCE_WIDTH, 29, str(node.precedence), "number end")
    yield draw_text(left, 20, shorten(node.name, (right - left - 10 - len(origin) * _TEXT_WIDTH) / _NAME_WIDTH), "name")
    yield draw_text(right, 20, origin, "badge dim end")
    level = f"\u2192 {shorten(node.level_name, 26)}"
    room = (right - left - 18) / _TEXT_WIDTH - len(level)
    yield draw_text(
        left,
        38,
        shorten(node.problem or join_some(node.subjects, 2) or "no subjects", room),
        "problem" if node.problem else "dim",
    )
    # The name of the level links to the card of the level, because this card may be outside of the
    # visible part of the page.
    yield f'<a href="#apf-l{node.level}">{draw_text(right, 38, level, "dim end")}</a>'
    yield "</g></g></g>"


def _level(box: Box, at: int, level: LevelNode, longest: int) -> Iterator[str]:
    origin = ORIGINS[level.origin]
    yield f'<g id="apf-l{at}" class="level h{at % _HUES} {level.look}">{_tooltip(level)}'
    yield f"{_card(box)}" + '<g clip-path="url(#apf-cl)">'
    yield draw_text(14, 20, shorten(level.name, (LEVEL_WIDTH - 40 - len(origin) * _TEXT_WIDTH) / _NAME_WIDTH), "name")
    yield draw_text(LEVEL_WIDTH - 12, 20, origin, "badge dim end")
    if level.limits is None:
        yield draw_text(14, 38, shorten(level.problem, _BAR_WIDTH / _TEXT_WIDTH), "problem")
    else:
        yield f'<path class="strip" d="M2 6V{box.height - 6:g}"/>'
        if level.limits.type != "Exempt":
            yield from _bar(level.limits, longest)
        yield draw_text(14, 55, level.seats, "number")
        remark = shorten(level.problem or level.queues, _BAR_WIDTH / _TEXT_WIDTH)
        yield draw_text(14, 73, remark, "problem" if level.problem else "dim")
    yield "</g></g></g>"


def _bar(limits: LevelLimits, longest: int) -> Iterator[str]:
    """Yield the seats of a level as a bar. A bar of `longest` seats has the full width."""
    figures = limits.min, limits.nominal, limits.attainable
    minimum, nominal, attainable = (round(_BAR_WIDTH * seats / longest, 1) if longest else 0 for seats in figures)
    yield f'<rect class="track" x="14" y="29" width="{_BAR_WIDTH}" height="10" rx="2"/>'
    yield f'<rect class="bar lent" x="14" y="29" width="{nominal:g}" height="10" rx="2"/>'
    yield f'<rect class="bar" x="14" y="29" width="{minimum:g}" height="10" rx="2"/>'
    if attainable > nominal:
        yield f'<path class="attainable" d="M{14 + nominal:g} 34H{14 + attainable:g}M{14 + attainable:g} 30V38"/>'


def _card(box: Box) -> str:
    """Return the rectangle of a card, and the start tag of a group for the content of the card.

    Coordinates in the group are relative to the card. The caller must close the group.
    """
    size = f'width="{box.width:g}" height="{box.height:g}"'
    return f'<g transform="translate({box.x:g} {box.y:g})"><rect class="card" {size} rx="6"/>'


def _curve(box: Box, end: float) -> str:
    """Return a path from the right side of the FlowSchema in `box` to the left side of its level.

    `end` is the y coordinate at which the path ends.
    """
    start, stop, bend = box.x + box.width, box.x + box.width + _COLUMN_GAP - 1, _COLUMN_GAP * 0.55
    return f"M{start:g} {box.middle:g}C{start + bend:g} {box.middle:g} {stop - bend:g} {end:g} {stop:g} {end:g}"


def _loop(box: Box, blocker: Box) -> str:
    """Return a path from the left side of an unreachable FlowSchema up to a FlowSchema that captures its requests."""
    out = min(50, 14 + (box.y - blocker.y) / 12)
    start, stop = box.y + box.height * 0.4, blocker.y + blocker.height * 0.6
    return f"M{box.x:g} {start:g}C{box.x - out:g} {start:g} {blocker.x - out:g} {stop:g} {blocker.x - 2:g} {stop:g}"


def _tooltip(node: SchemaNode | LevelNode) -> str:
    return f"<title>{escape_xml(chr(10).join(format_facts(node)))}</title>"
