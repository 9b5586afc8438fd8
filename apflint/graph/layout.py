"""Where everything stands in the drawing: FlowSchemas in a column at the left, levels at the right. Lengths in CSS pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.graph.picture import Picture

COMPACT = 60
"""With more FlowSchemas than this each has one line instead of two."""
TOP, MARGIN, BOTTOM = 104, 20, 20
"""Room above the columns (title, legend, headings), beside and below them."""
SCHEMA_WIDTH, LEVEL_WIDTH, BETWEEN = 580, 330, 180
LEVEL_HEIGHT, MISSING_HEIGHT = 84, 48
_GUTTER = 56
"""Room at the left for the arrows to those that take the requests of others."""
_LEVEL_GAP, _WIDEST_GAP = 12, 40
_PORT = 9
"""Distance between the ends of arrows at a level, where there is room."""


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return self.y + self.height / 2


class Layout(NamedTuple):
    """The whole drawing; boxes and ends in the order of the picture."""

    width: float
    height: float
    compact: bool
    schemas: tuple[Box, ...]
    levels: tuple[Box, ...]
    ends: tuple[float, ...]
    """For each FlowSchema: the height at which its arrow ends at its level."""


def layout(drawn: Picture) -> Layout:
    """Places the picture: a level at the middle of its FlowSchemas, as near as the others allow."""
    compact = len(drawn.schemas) > COMPACT
    height, least = (26, 4) if compact else (48, 8)
    left = MARGIN + (_GUTTER if any(node.state == "unreachable" and node.takers for node in drawn.schemas) else 0)
    right = left + SCHEMA_WIDTH + BETWEEN
    heights = [MISSING_HEIGHT if level.limits is None else LEVEL_HEIGHT for level in drawn.levels]
    # Few FlowSchemas stand further apart, so that both columns end together.
    room = sum(heights) + _LEVEL_GAP * (len(heights) - 1) - height * len(drawn.schemas)
    gap = max(least, min(room / (len(drawn.schemas) - 1), _WIDEST_GAP))  # two FlowSchemas are mandatory
    schemas = tuple(Box(left, TOP + at * (height + gap), SCHEMA_WIDTH, height) for at in range(len(drawn.schemas)))
    bottom = schemas[-1].y + height
    wanted = [
        sum(schemas[at].middle for at in level.schemas) / len(level.schemas) if level.schemas else bottom
        for level in drawn.levels
    ]
    tops = _spread(wanted, heights, bottom)
    levels = tuple(Box(right, top, LEVEL_WIDTH, tall) for top, tall in zip(tops, heights, strict=True))
    lowest = max(bottom, *(box.y + box.height for box in levels))
    return Layout(
        width=right + LEVEL_WIDTH + MARGIN,
        height=lowest + BOTTOM,
        compact=compact,
        schemas=schemas,
        levels=levels,
        ends=_ends(drawn, levels),
    )


def _spread(wanted: Sequence[float], heights: Sequence[float], bottom: float) -> list[float]:
    """Tops of boxes in this order, without overlap, their middles near those that are wanted, within the column if they fit."""
    gap = _LEVEL_GAP
    tops: list[float] = []
    least = float(TOP)
    for middle, height in zip(wanted, heights, strict=True):
        tops.append(max(least, middle - height / 2))
        least = tops[-1] + height + gap
    most = max(bottom, TOP + sum(heights) + gap * (len(heights) - 1))
    for at in reversed(range(len(tops))):
        tops[at] = min(tops[at], most - heights[at])
        most = tops[at] - gap
    return tops


def _ends(drawn: Picture, levels: Sequence[Box]) -> tuple[float, ...]:
    ends = [0.0] * len(drawn.schemas)
    for level, box in zip(drawn.levels, levels, strict=True):
        count = len(level.schemas)
        step = min(_PORT, (box.height - 24) / (count - 1)) if count > 1 else 0
        for at, schema in enumerate(level.schemas):
            ends[schema] = box.middle + step * (at - (count - 1) / 2)
    return tuple(ends)
