"""Draws sparklines: one line of bars for numbers over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def draw_sparkline(values: Sequence[float], cells: int, top: float | None = None) -> str:
    """Return values as a line of at most `cells` bars. If there are more values, each bar is the average of several values.

    The highest bar stands for `top`, or for the highest average if `top` is None. An average of 0 has no bar.
    """
    cells = min(cells, len(values))
    sums = [0.0] * cells
    for position, value in enumerate(values):
        sums[position * cells // len(values)] += value
    highest = max(sums, default=0.0) if top is None else top * len(values) / cells
    return "".join(_BARS[min(7, int(total * 8 / highest))] if total > 0 else " " for total in sums)
