"""Charts of HTML reports, drawn as SVG. `page.css` defines the colors.

Each chart has a name for screen readers, and its numbers are also in a table of the report.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from apflint.output.console import shorten
from apflint.output.sanitize import escape_xml, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Lengths in CSS pixels, which apply if the window is wide enough for the whole chart.
WIDTH = 1080
LEFT, RIGHT = 56, 150
"""Space for the scale on the left, and for the names of lines on the right."""
_PLOT_WIDTH = WIDTH - LEFT - RIGHT
_TOP, _PLOT_HEIGHT, _AXIS_HEIGHT = 24, 122, 22
_STRIP, _STRIP_GAP = 8, 4
"""Height of the strip with rejections, and its distance from the plot."""
_LABEL_GAP = 15
_OFF_SCALE_GAP = 12
"""Distance from the top of the plot to a line whose value is above the scale."""
_MAX_STRETCH = 4
"""Minimum ratio of a constant line to all other values for drawing the line above the scale. A scale up to this line
would make the other curves flat.
"""
_MAX_TICKS = 5
_NAME_WIDTH, _BAR_WIDTH, _ROW_HEIGHT = 190, 600, 26
_MAX_NAME_CELLS = 28
_QUEUE_HEIGHT, _QUEUES_WIDTH, _MAX_QUEUE_WIDTH = 90, 790, 30
_HEAT_HEIGHT, _MIN_CELL, _MAX_CELL = 320, 3, 14
_SHADES = 5
_LINE_HEIGHT = 12


class Chart(Protocol):
    """A chart that can be converted to SVG."""

    def draw(self) -> str:
        """Return the chart as an SVG element."""


class Line(NamedTuple):
    """A line in the chart of seats: the name of a limit, and the values of the limit over time."""

    name: str
    values: Sequence[float]
    """One value for each interval, or a single value for all intervals."""


class SeatsOverTime(NamedTuple):
    """The seats in use and the limits over time, with a strip of rejections below. All intervals have the same length."""

    label: str
    description: str
    seats: Sequence[float]
    lines: Sequence[Line]
    """Limits, the most important limit first. The first line is solid, the others are dashed."""
    rejected: Sequence[int]
    times: Sequence[str]
    """Labels of the time axis, at equal distances from its start to its end."""

    def draw(self) -> str:
        """Return the chart as an SVG element. If several constant limits are equal, they are drawn as one line."""
        highest = self._find_highest()
        base = _TOP + _PLOT_HEIGHT
        parts = [*_draw_scale(highest), f'<path class="area use" d="{_area(self.seats, highest)}"/>']
        parts += (*self._draw_lines(highest), *_draw_rejections(self.rejected, base))
        height = base + _STRIP_GAP + _STRIP + _AXIS_HEIGHT
        return draw_svg(self.label, height, (*parts, *_draw_times(self.times, height)), description=self.description)

    def _find_highest(self) -> float:
        highest = max(1.0, *self.seats, *(max(line.values) for line in self.lines[:1]))
        for line in self.lines[1:]:
            if len(line.values) > 1 or line.values[0] <= _MAX_STRETCH * highest:
                highest = max(highest, *line.values)
        return highest

    def _draw_lines(self, highest: float) -> Iterator[str]:
        """Yield SVG elements for the lines of the limits, and for the names of the limits."""
        right = LEFT + _PLOT_WIDTH
        labels: list[tuple[float, str]] = []
        drawn: dict[float, int] = {}
        for number, line in enumerate(self.lines):
            kind, last = "line dashed" if number else "line", line.values[-1]
            is_constant = len(line.values) == 1
            if is_constant and last in drawn:
                at = drawn[last]
                labels[at] = (labels[at][0], f"{labels[at][1]} = {line.name}")
                continue
            text = f"{last:,.{0 if last == int(last) else 1}f} {line.name}"
            if is_constant and last > highest:
                y = float(_TOP - _OFF_SCALE_GAP)
                yield f'<path class="{kind}" d="M{LEFT} {y:g}H{right}"><title>{text} (above the plot)</title></path>'
                yield f'<path class="arrow mark" d="M{right - 8} {y:g}l4 -7 4 7z"/>'
                text = f"\u2191 {text}"
            elif is_constant:
                y = _y(last, highest)
                yield f'<path class="{kind}" d="M{LEFT} {y:g}H{right}"/>'
            else:
                y = _y(last, highest)
                yield f'<path class="{kind}" d="{_steps(line.values, highest)}"/>'
            if is_constant:
                drawn[last] = len(labels)
            labels.append((y, text))
        lowest = float(_TOP + _PLOT_HEIGHT + _LABEL_GAP - 6)  # names must stay above the text about rejections
        for y, text in sorted(labels, reverse=True):
            lowest = min(y, lowest - _LABEL_GAP)
            yield draw_text(right + 6, lowest + 4, text)


class HeatMap(NamedTuple):
    """Waiting requests in each queue over time. Queues that never had waiting requests have no row."""

    label: str
    rows: Sequence[Sequence[tuple[int, bool] | None]]
    """By queue and interval: (number of waiting requests, whether most of them belong to a busy flow), or None if no request waits."""
    names: Sequence[tuple[int, str]]
    """(index of a row, name to show at this row). For a group of rows, the name is at the first row of the group."""
    is_grouped: bool
    """Whether a line is drawn between groups of rows."""
    times: Sequence[str]

    def draw(self) -> str:
        """Return the heat map as an SVG element. Neighboring cells with equal values become one rectangle."""
        cell = max(_MIN_CELL, min(_MAX_CELL, _HEAT_HEIGHT // len(self.rows)))
        most = max(value[0] for row in self.rows for value in row if value is not None)
        parts: list[str] = []
        for number, row in enumerate(self.rows):
            shades = [None if value is None else (-(-value[0] * _SHADES // most), value[1]) for value in row]
            step, start = _PLOT_WIDTH / len(shades), 0
            for end in range(1, len(shades) + 1):
                if end < len(shades) and shades[end] == shades[start]:
                    continue
                if (shade := shades[start]) is not None:
                    x, width, kind = LEFT + start * step, (end - start) * step, "busy" if shade[1] else "use"
                    parts.append(draw_rect(kind, x, number * cell, width, cell, shade[0] / _SHADES))
                start = end
        height = len(self.rows) * cell + _AXIS_HEIGHT
        return draw_svg(self.label, height, (*parts, *self._draw_names(cell), *_draw_times(self.times, height)))

    def _draw_names(self, cell: int) -> Iterator[str]:
        below = 0
        for row, name in self.names:
            y = row * cell
            if self.is_grouped:
                yield f'<path class="grid" d="M{LEFT} {y}H{LEFT + _PLOT_WIDTH}"/>'
            if y >= below:  # omit a name that would overlap the previous name
                bottom = (row + 1) * cell if row and not self.is_grouped else y + _LINE_HEIGHT - 2
                yield draw_text(LEFT - 6, bottom, name, "dim end")
                below = y + _LINE_HEIGHT


class Bar(NamedTuple):
    """A priority level in a chart of bars. A value is None if it is unknown."""

    name: str
    used: float | None
    wanted: float | None
    """Demand: the sum of the seats that executing requests use and the seats that waiting requests need."""
    limit: float | None
    nominal: float | None
    description: str


class Bars(NamedTuple):
    """The seats of each level: the limit, the seats in use, the demand above the limit, and the nominal limit as a mark."""

    label: str
    bars: Sequence[Bar]

    def draw(self) -> str:
        """Return an SVG element with a row for each bar."""
        values = [value for bar in self.bars for value in (bar.used, bar.wanted, bar.limit, bar.nominal) if value]
        scale = _BAR_WIDTH / max(values, default=1)
        rows = [_draw_bar(bar, row * _ROW_HEIGHT, scale) for row, bar in enumerate(self.bars)]
        return draw_svg(self.label, _ROW_HEIGHT * len(self.bars), rows)


def _draw_bar(bar: Bar, top: float, scale: float) -> str:
    parts = [draw_text(_NAME_WIDTH - 10, top + 17, shorten(sanitize(bar.name), _MAX_NAME_CELLS), "end")]
    for kind, value, inset in (("track", bar.limit, 3), ("use", bar.used, 6)):
        if value:
            parts.append(draw_rect(kind, _NAME_WIDTH, top + inset, value * scale, _ROW_HEIGHT - 2 * inset))
    start = max(bar.limit or 0, bar.used or 0)
    if bar.wanted is not None and bar.wanted > start:  # draw only the demand that exceeds the limit
        x, width = _NAME_WIDTH + start * scale, (bar.wanted - start) * scale
        parts.append(draw_rect("wait", x, top + 9, width, _ROW_HEIGHT - 18))
    if bar.nominal is not None:
        x = _NAME_WIDTH + bar.nominal * scale
        parts.append(f'<path class="line" d="M{x:.1f} {top + 2:g}V{top + _ROW_HEIGHT - 2:g}"/>')
    parts.append(draw_text(_NAME_WIDTH + _BAR_WIDTH + 12, top + 17, bar.description))
    return f"<g>{_title(f'{bar.name}: {bar.description}')}{''.join(parts)}</g>"


class Queues(NamedTuple):
    """The queues of a priority level. `queues` has (index of the queue, waiting requests, executing requests) for each queue."""

    label: str
    queues: Sequence[tuple[int, int, int]]

    def draw(self) -> str:
        """Return an SVG element with a column for each queue, which shows the waiting and executing requests."""
        unit = _QUEUE_HEIGHT / max(waiting + executing for _, waiting, executing in self.queues)
        step = min(_MAX_QUEUE_WIDTH, _QUEUES_WIDTH / len(self.queues))
        width = step * 0.85
        parts = []
        for position, (number, waiting, executing) in enumerate(self.queues):
            x, used, waits = position * step, executing * unit, waiting * unit
            title = _title(f"queue {number}: {waiting} waiting, {executing} executing")
            parts.append(
                f"<g>{title}{draw_rect('track', x, _QUEUE_HEIGHT, width, 3)}"
                f"{draw_rect('use', x, _QUEUE_HEIGHT - used, width, used)}"
                f"{draw_rect('wait', x, _QUEUE_HEIGHT - used - waits, width, waits)}</g>"
            )
        return draw_svg(self.label, _QUEUE_HEIGHT + 4, parts, width=round(step * len(self.queues)), kind="chart queues")


def draw_text(x: float, y: float, text: str, kind: str = "") -> str:
    """Return an SVG text element at (x, y).

    `kind` contains CSS classes, separated by spaces, such as `dim` for the color, and `end` or `middle` for the alignment.
    """
    classes = f' class="{kind}"' if kind else ""
    return f'<text{classes} x="{x:g}" y="{y:g}">{escape_xml(sanitize(text))}</text>'


def list_ticks(top: float) -> range:
    """Return 2 to 5 round numbers from 0 to `top`. `top` must be at least 1."""
    step = 1
    while top / step >= _MAX_TICKS:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return range(0, int(top) + 1, step)


def draw_svg(
    label: str, height: float, parts: Iterable[str], *, width: int = WIDTH, kind: str = "chart", description: str = ""
) -> str:
    """Return an `<svg>` element that contains `parts`. Screen readers read `label` as its name."""
    text = f"<desc>{escape_xml(sanitize(description))}</desc>\n" if description else ""
    name = escape_xml(sanitize(label))
    body = "".join(f"{part}\n" for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" aria-label="{name}" width="{width}"'
        f' height="{height:g}" viewBox="0 0 {width} {height:g}">\n<title>{name}</title>\n{text}{body}</svg>\n'
    )


def _title(text: str) -> str:
    return f"<title>{escape_xml(sanitize(text))}</title>"


def draw_rect(kind: str, x: float, y: float, width: float, height: float, opacity: float = 1, title: str = "") -> str:
    """Return an SVG rectangle. The title is shown while the mouse pointer is over the rectangle."""
    shade = f' opacity="{opacity:.2g}"' if opacity < 1 else ""
    size = f'x="{round(x, 1):g}" y="{round(y, 1):g}" width="{round(width, 1):g}" height="{round(height, 1):g}"'
    return (
        f'<rect class="{kind}" {size}{shade}>{_title(title)}</rect>'
        if title
        else f'<rect class="{kind}" {size}{shade}/>'
    )


def _y(value: float, highest: float) -> float:
    return round(_TOP + _PLOT_HEIGHT - value * _PLOT_HEIGHT / highest, 1)


def _draw_scale(highest: float) -> Iterator[str]:
    for value in list_ticks(highest):
        y = _y(value, highest)
        yield f'<path class="grid" d="M{LEFT} {y:g}H{LEFT + _PLOT_WIDTH}"/>'
        yield draw_text(LEFT - 6, y + 4, f"{value:,}", "dim end")


def _draw_times(times: Sequence[str], height: float) -> Iterator[str]:
    for number, time in enumerate(times):
        anchor = "dim" if number == 0 else "dim end" if number == len(times) - 1 else "dim middle"
        yield draw_text(LEFT + number * _PLOT_WIDTH / (len(times) - 1), height - 4, time, anchor)


def _steps(values: Sequence[float], highest: float) -> str:
    """Return the data of an SVG path: a line with a step at each change of the value. Each value fills one interval."""
    step = _PLOT_WIDTH / len(values)
    path = [f"M{LEFT} {_y(values[0], highest):g}"]
    path += (
        f"H{LEFT + number * step:.1f}V{_y(value, highest):g}"
        for number, (previous, value) in enumerate(pairwise(values), 1)
        if value != previous
    )
    return "".join((*path, f"H{LEFT + _PLOT_WIDTH}"))


def _area(values: Sequence[float], highest: float) -> str:
    """Return the data of an SVG path around the area below the line of `_steps`."""
    base, steps = _TOP + _PLOT_HEIGHT, _steps(values, highest).removeprefix(f"M{LEFT} ")
    return f"M{LEFT} {base}V{steps}V{base}Z"


def _draw_rejections(rejected: Sequence[int], base: float) -> Iterator[str]:
    """Yield a bar below the plot for each interval with rejections. A darker bar stands for more rejections."""
    width, most = _PLOT_WIDTH / len(rejected), max(rejected)
    for number, count in enumerate(rejected):
        if count:
            x, opacity = LEFT + number * width, 0.25 + 0.75 * count / most
            yield draw_rect("rejected", x, base + _STRIP_GAP, max(width, 2), _STRIP, opacity, f"{count:,} rejected")
    if most:
        y = base + _STRIP_GAP + _STRIP
        yield draw_text(LEFT + _PLOT_WIDTH + 6, y, f"{sum(rejected):,} rejected", "rejected")
