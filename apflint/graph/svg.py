"""The picture as one SVG: no script, no font, no image from elsewhere. Text can be selected, and searched in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph.layout import BETWEEN, LEVEL_WIDTH, MARGIN, SCHEMA_WIDTH, TOP, Box, layout
from apflint.graph.markup import cut, escape
from apflint.graph.style import HUES, style
from apflint.graph.words import (
    ORIGINS,
    about,
    about_level,
    level_trouble,
    queues,
    remark,
    seats,
    title,
    trouble,
)
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.graph.layout import Layout
    from apflint.graph.picture import LevelNode, Picture, SchemaNode

_NAME, _TEXT = 7.9, 6.5
"""Pixels of a character of a name (13 px, monospaced) and, about, of other text (12 px)."""
_BAR = LEVEL_WIDTH - 28
_PRECEDENCE = 76
"""Width of the column of precedences in a card."""


def render(drawn: Picture) -> str:
    """The SVG document, ending in a newline."""
    return "\n".join(_lines(drawn)) + "\n"


def _lines(drawn: Picture) -> Iterator[str]:
    placed = layout(drawn)
    width, height = f"{placed.width:g}", f"{placed.height:g}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="apf" role="graphics-document" aria-labelledby="apf-t apf-d"'
        f' width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    )
    yield f'<title id="apf-t">{escape(title(drawn))}</title>'
    yield f'<desc id="apf-d">{escape(_description(drawn))}</desc>'
    yield f"<style>\n{style(len(drawn.levels))}</style>"
    yield f"<defs>{''.join(_markers())}{''.join(_clips(placed))}</defs>"
    yield f'<rect class="paper" width="{width}" height="{height}"/>'
    yield from _head(drawn, placed)
    for at, node in enumerate(drawn.schemas):
        yield from _schema(drawn, placed, at, node)
    # After all FlowSchemas, so that tabbing and reading go down one column and then the other.
    longest = max((_reach(level) for level in drawn.levels), default=0)
    for at, level in enumerate(drawn.levels):
        yield from _level(drawn, placed.levels[at], at, level, longest)
    yield "</svg>"


def _description(drawn: Picture) -> str:
    dead = [f'"{node.name}"' for node in drawn.schemas if node.state == "unreachable"]
    gone = [f'"{node.name}"' for node in drawn.schemas if node.state == "dangling"]
    said = (
        f"{len(drawn.schemas)} FlowSchemas in the order in which the server tries them, at the left,"
        f" with arrows to {len(drawn.levels)} priority levels at the right."
    )
    said += f" Never reached: {join_words(dead, 'and')}." if dead else ""
    return said + (f" Skipped by the server: {join_words(gone, 'and')}." if gone else "")


def _markers() -> Iterator[str]:
    kinds = [*((f"apf-m{hue}", f"tip{hue}") for hue in range(HUES)), ("apf-mg", "gone-tip"), ("apf-mt", "taken-tip")]
    for name, kind in kinds:
        yield (
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            f' markerUnits="userSpaceOnUse" orient="auto"><path class="{kind}" d="M0 0L8 4L0 8z"/></marker>'
        )


def _clips(placed: Layout) -> Iterator[str]:
    """However wide a font is, text stays inside its card."""
    schema = placed.schemas[0]
    for name, width, height in (("s", schema.width, schema.height), ("l", LEVEL_WIDTH, 400)):
        yield f'<clipPath id="apf-c{name}"><rect width="{width:g}" height="{height:g}"/></clipPath>'


def _head(drawn: Picture, placed: Layout) -> Iterator[str]:
    yield _text(MARGIN, 32, title(drawn), "title")
    yield from _legend(drawn)
    left, right = placed.schemas[0].x, placed.levels[0].x
    yield _text(left + _PRECEDENCE, TOP - 12, "Precedence", "heading dim end")
    yield _text(
        left + _PRECEDENCE + 20, TOP - 12, "FlowSchema: the first that matches takes the request", "heading dim"
    )
    yield _text(right + 14, TOP - 12, "Priority level", "heading dim")


def _legend(drawn: Picture) -> Iterator[str]:
    origins = {node.origin for node in drawn.schemas} | {level.origin for level in drawn.levels}
    states = {node.state for node in drawn.schemas}
    samples = [("", "built-in")]
    if origins & {"own", "changed"}:
        samples.append(("own", "yours"))
    if "unreachable" in states:
        samples.append(("dead", "never reached"))
    if "dangling" in states or origins & {"missing", "broken"}:
        samples.append(("gone", "skipped, or does not exist"))
    x = float(MARGIN)
    for kind, said in samples:
        yield (
            f'<g class="{kind}"><rect class="card" x="{x:g}" y="48" width="22" height="14" rx="3"/></g>'
            + _text(x + 28, 59, said, "dim")
        )
        x += 28 + len(said) * _TEXT + 20
    bar = "Bar: seats that it keeps, pale: seats that it may lend, line: its reach while all others are idle"
    yield _text(x + 12, 59, bar if drawn.borrowing else "Bar: the seats of the level (ACV)", "dim")


def _schema(drawn: Picture, placed: Layout, at: int, node: SchemaNode) -> Iterator[str]:
    box, level = placed.schemas[at], drawn.levels[node.level]
    hue = node.level % HUES
    kind = {"unreachable": " dead", "dangling": " gone", "reserve": " spare"}.get(node.state) or _own(node)
    yield f'<g id="apf-s{at}" class="flow to{node.level} h{hue}{kind}">'
    yield f"<title>{escape(chr(10).join(about(node, drawn)))}</title>"
    tip = "apf-mg" if node.state == "dangling" else "apf-mt" if node.state == "unreachable" else f"apf-m{hue}"
    yield f'<path class="arrow" marker-end="url(#{tip})" d="{_curve(box, placed.ends[at])}"/>'
    for taker in node.takers if node.state == "unreachable" else ():
        yield f'<path class="taken" marker-end="url(#apf-mt)" d="{_loop(box, placed.schemas[taker])}"/>'
    yield f'<g transform="translate({box.x:g} {box.y:g})"><rect class="card" {_size(box)} rx="6"/><g clip-path="url(#apf-cs)">'
    yield from _compact(node, level) if placed.compact else _full(drawn, node, level)
    yield "</g></g></g>"


def _full(drawn: Picture, node: SchemaNode, level: LevelNode) -> Iterator[str]:
    badge = ORIGINS[node.origin]
    yield _text(_PRECEDENCE, 29, str(node.precedence), "number end")
    yield _text(
        _PRECEDENCE + 20, 20, cut(node.name, (SCHEMA_WIDTH - _PRECEDENCE - 42 - len(badge) * _TEXT) / _NAME), "name"
    )
    yield _text(SCHEMA_WIDTH - 12, 20, badge, "badge dim end")
    to = cut(level.name, 26)
    room = (SCHEMA_WIDTH - _PRECEDENCE - 50 - (len(to) + 2) * _TEXT) / _TEXT
    yield _text(_PRECEDENCE + 20, 38, cut(remark(drawn, node), room), "said" if trouble(drawn, node) else "dim")
    yield _link(SCHEMA_WIDTH - 12, 38, to, node.level)


def _compact(node: SchemaNode, level: LevelNode) -> Iterator[str]:
    badge = {"unreachable": "never reached", "dangling": "skipped", "reserve": "last resort"}.get(node.state) or (
        "built-in" if node.origin in ("built-in", "imagined") else "yours"
    )
    yield _text(_PRECEDENCE, 17, str(node.precedence), "number end")
    yield _text(_PRECEDENCE + 20, 17, cut(node.name, 30), "name")
    yield _text(SCHEMA_WIDTH - 238, 17, badge, "dim" if node.state in ("live", "reserve") else "said")
    yield _link(SCHEMA_WIDTH - 12, 17, cut(level.name, 20), node.level)


def _link(x: float, y: float, name: str, level: int) -> str:
    """The name of the level again, which leads there: the arrow may be longer than the screen."""
    return f'<a href="#apf-l{level}">{_text(x, y, f"{chr(0x2192)} {name}", "dim end")}</a>'


def _level(drawn: Picture, box: Box, at: int, level: LevelNode, longest: int) -> Iterator[str]:
    kind = " gone" if level.limits is None else _own(level)
    yield f'<g id="apf-l{at}" class="level h{at % HUES}{kind}" transform="translate({box.x:g} {box.y:g})">'
    yield f"<title>{escape(chr(10).join(about_level(level, drawn)))}</title>"
    yield f'<rect class="card" {_size(box)} rx="6"/><g clip-path="url(#apf-cl)">'
    badge = ORIGINS[level.origin]
    yield _text(14, 20, cut(level.name, (LEVEL_WIDTH - 40 - len(badge) * _TEXT) / _NAME), "name")
    yield _text(LEVEL_WIDTH - 12, 20, badge, "badge dim end")
    said = level_trouble(drawn, level)
    if level.limits is None:
        yield _text(14, 38, cut(said, _BAR / _TEXT), "said")
    else:
        yield f'<path class="strip" d="M2 6V{box.height - 6:g}"/>'
        if level.limits.type != "Exempt":
            yield from _bar(level, longest)
            if drawn.borrowing:
                yield _text(LEVEL_WIDTH - 12, 55, f"reach {level.limits.attainable}", "number dim end")
        yield _text(14, 55, seats(level, drawn), "number")
        yield _text(14, 73, cut(said or queues(level), _BAR / _TEXT), "said" if said else "dim")
    yield "</g></g>"


def _reach(level: LevelNode) -> int:
    """The end of its bar, in seats."""
    limits = level.limits
    if limits is None:
        return 0
    return 0 if limits.type == "Exempt" else max(limits.nominal, limits.attainable)


def _bar(level: LevelNode, longest: int) -> Iterator[str]:
    """The seats of a level as a bar; the longest of all fills the card."""
    assert level.limits is not None
    keeps, own, most = (
        round(_BAR * seats / longest, 1) if longest else 0
        for seats in (level.limits.minimum, level.limits.nominal, _reach(level))
    )
    yield f'<rect class="track" x="14" y="29" width="{_BAR}" height="10" rx="2"/>'
    yield f'<rect class="bar lent" x="14" y="29" width="{own:g}" height="10" rx="2"/>'
    yield f'<rect class="bar" x="14" y="29" width="{keeps:g}" height="10" rx="2"/>'
    if most > own:
        yield f'<path class="reach" d="M{14 + own:g} 34H{14 + most:g}M{14 + most:g} 30V38"/>'


def _own(node: SchemaNode | LevelNode) -> str:
    return " own" if node.origin in ("own", "changed") else ""


def _size(box: Box) -> str:
    return f'width="{box.width:g}" height="{box.height:g}"'


def _curve(box: Box, end: float) -> str:
    """From the right side of a FlowSchema to the left side of its level."""
    start, stop, bend = box.x + box.width, box.x + box.width + BETWEEN - 1, BETWEEN * 0.55
    return f"M{start:g} {box.middle:g}C{start + bend:g} {box.middle:g} {stop - bend:g} {end:g} {stop:g} {end:g}"


def _loop(dead: Box, taker: Box) -> str:
    """From the left side of a FlowSchema that is never reached up to one that takes its requests."""
    out = min(50, 14 + (dead.y - taker.y) / 12)
    start, stop = dead.y + dead.height * 0.4, taker.y + taker.height * 0.6
    return f"M{dead.x:g} {start:g}C{dead.x - out:g} {start:g} {taker.x - out:g} {stop:g} {taker.x - 2:g} {stop:g}"


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
