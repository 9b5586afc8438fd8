"""Plots of the seats in use of a priority level over time, as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.replay.wording import find_peak, format_clock, format_count
from apflint.output.sanitize import escape_xml, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.replay.statistics import Intervals, LevelTraffic

# Lengths in CSS pixels.
_WIDTH, _HEIGHT = 1080, 182
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 24, 36
"""Space for the scale, the names of the limits, labels above the plot, and the times with the strip of rejections."""
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_BASE = _TOP + _PLOT_HEIGHT
_STRIP = 8
"""Height of the strip that shows rejections."""
_LABEL_GAP = 15
_OFF_SCALE_GAP = 12
"""Distance from the top of the plot to the line of a limit that is above its scale."""
_TIMES = 5
_MAX_STRETCH = 4
"""Attainable seats above this multiple of both peak and nominal seats are drawn above the scale of the plot. Otherwise,
the other curves would look flat."""

STYLE = """\
svg.seats{display:block;width:100%;min-width:720px;max-width:1080px;height:auto}
svg.seats text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:#1c2127;font-variant-numeric:tabular-nums}
svg.seats .dim{fill:#57606a}
svg.seats .end{text-anchor:end}
svg.seats .middle{text-anchor:middle}
svg.seats .area{fill:#2f63c9;fill-opacity:.25;stroke:#2f63c9;stroke-width:1.5;stroke-linejoin:round}
svg.seats .axis{stroke:#c3cad2}
svg.seats .nominal{stroke:#1c2127;stroke-width:1.5}
svg.seats .attainable{stroke:#1c2127;stroke-width:1.5;stroke-dasharray:6 4}
svg.seats .arrow{fill:#1c2127}
svg.seats .rejected{fill:#c0362c}
svg.seats text.rejected{fill:#a3261d}
@media (prefers-color-scheme:dark){
svg.seats text{fill:#e8ebef}
svg.seats .dim{fill:#a3adb8}
svg.seats .area{fill:#7fa8f5;stroke:#7fa8f5}
svg.seats .axis{stroke:#48515b}
svg.seats .nominal,svg.seats .attainable{stroke:#e8ebef}
svg.seats .arrow{fill:#e8ebef}
svg.seats .rejected{fill:#f08a80}
svg.seats text.rejected{fill:#ffa198}
}
"""


def render_plot(level: LevelTraffic, intervals: Intervals, number: int) -> str:
    """Render the seats in use against nominal and attainable seats. `number` makes the ids of the plot unique."""
    return "".join(f"{line}\n" for line in _lines(level, intervals, number))


def _lines(level: LevelTraffic, intervals: Intervals, number: int) -> Iterator[str]:
    limits = {} if level.limits.is_exempt else {"nominal": level.limits.nominal, "attainable": level.limits.attainable}
    highest = max(find_peak(level) or 0, limits.get("nominal", 0), 1)
    if limits and limits["attainable"] <= _MAX_STRETCH * highest:
        highest = max(highest, limits["attainable"])
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="seats" role="img" aria-labelledby="t{number} d{number}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
    )
    yield f'<title id="t{number}">Seats in use of {escape_xml(sanitize(level.name))} over time</title>'
    yield f'<desc id="d{number}">{escape_xml(_describe(level, limits))}</desc>'
    for value in sorted({0, highest // 2, highest}):
        y = _y(value, highest)
        yield f'<path class="axis" d="M{_LEFT} {y:g}H{_LEFT + _PLOT_WIDTH}"/>'
        yield _text(_LEFT - 6, y + 4, format_count(value), "dim end")
    yield f'<path class="area" d="{_area(level.series.seats, highest)}"/>'
    yield from _limits(limits, highest)
    yield from _rejections(level.series.rejected)
    for at in range(_TIMES):
        time = intervals.start + at * intervals.size * intervals.number // (_TIMES - 1)
        anchor = "dim" if at == 0 else "dim end" if at == _TIMES - 1 else "dim middle"
        is_long = intervals.size * intervals.number > 86_400_000_000
        yield _text(_LEFT + at * _PLOT_WIDTH / (_TIMES - 1), _HEIGHT - 4, format_clock(time, is_long), anchor)
    yield "</svg>"


def _describe(level: LevelTraffic, limits: dict[str, int]) -> str:
    peak = find_peak(level)
    parts = [f"Peak {format_count(peak)}" if peak is not None else "No request was executed"]
    parts += [f"{name} {format_count(seats)}" for name, seats in limits.items()] or ["no limit"]
    if level.rejected:
        parts.append(f"{format_count(level.rejected)} rejected requests")
    return ", ".join(parts)


def _y(seats: float, highest: int) -> float:
    return round(_BASE - seats * _PLOT_HEIGHT / highest, 1)


def _area(seats: Sequence[int], highest: int) -> str:
    """Return a path with a step for each interval in which the number changes."""
    path = [f"M{_LEFT} {_BASE}"]
    previous = 0
    for at, value in enumerate(seats):
        if value != previous:
            path.append(f"H{_LEFT + at * _PLOT_WIDTH / len(seats):.1f}V{_y(value, highest):g}")
            previous = value
    return "".join((*path, f"H{_LEFT + _PLOT_WIDTH}V{_BASE}Z"))


def _limits(limits: dict[str, int], highest: int) -> Iterator[str]:
    """Yield the lines of the limits and their names. Equal limits share a line."""
    x = _LEFT + _PLOT_WIDTH
    labels: list[tuple[float, str]] = []
    for name, seats in limits.items():
        if name == "attainable" and seats == limits["nominal"]:
            labels[0] = (labels[0][0], f"{labels[0][1]} = {name}")
        elif seats <= highest:
            y = _y(seats, highest)
            yield f'<path class="{name}" d="M{_LEFT} {y:g}H{x}"/>'
            labels.append((y, f"{format_count(seats)} {name}"))
        else:
            y = _TOP - _OFF_SCALE_GAP
            title = f"<title>{format_count(seats)} {name} (above the plot)</title>"
            yield f'<path class="{name}" d="M{_LEFT} {y}H{x}">{title}</path>'
            yield f'<path class="arrow" d="M{x - 8} {y}l4 -7 4 7z"/>'
            labels.append((float(y), f"\u2191 {format_count(seats)} {name}"))
    lowest = float(_BASE + _LABEL_GAP - 6)  # above the number of rejections
    for y, label in sorted(labels, reverse=True):
        lowest = min(y, lowest - _LABEL_GAP)
        yield _text(x + 6, lowest + 4, label, "")


def _rejections(rejected: Sequence[int]) -> Iterator[str]:
    """Yield a bar below the plot for each interval with rejected requests."""
    width = _PLOT_WIDTH / len(rejected)
    for at, count in enumerate(rejected):
        if count:
            yield (
                f'<rect class="rejected" x="{_LEFT + at * width:.1f}" y="{_BASE + 4}" width="{max(width, 2):.1f}"'
                f' height="{_STRIP}"><title>{format_count(count)} rejected</title></rect>'
            )
    if any(rejected):
        yield _text(_LEFT + _PLOT_WIDTH + 6, _BASE + 4 + _STRIP, f"{format_count(sum(rejected))} rejected", "rejected")


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape_xml(text)}</text>'
