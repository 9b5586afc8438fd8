"""Draws a priority level at each snapshot of a server: seats in use, waiting requests, limits and rejections.

The picture is as wide as the screen of a phone. So browsers never scale it down, and its text is as large as that of
the page.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor.causes.measurements import intervals
from apflint.output.svg_chart import draw_rect, draw_svg, draw_text, list_ticks
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.doctor.causes import Conclusion
    from apflint.doctor.level_state import ServerState

WIDTH = 352
MAX_ROWS = 5
"""Maximum number of snapshots that are drawn as one row each. More snapshots are drawn as a line over time."""
MAX_PICTURES = 8
"""Maximum number of levels of a server with a picture. Further levels are only in the tables."""
_LINE, _BAR, _GAP = 16, 14, 8
_LEFT, _TOP, _HEIGHT, _STRIP, _AXIS = 34, 8, 110, 6, 18
_MIN_MARK = 2.0
"""Minimum width of a part of a bar, so that one waiting request among thousands is visible."""
LEGEND = (
    ("use", "seats in use"),
    ("wait", "waiting requests"),
    ("track", "current limit"),
    ("mark", "nominal limit"),
)


class Gallery(NamedTuple):
    """Pictures of levels, side by side if the window is wide enough."""

    histories: Sequence[LevelHistory]

    def draw(self) -> str:
        """Return the SVG images of all levels, one after the other."""
        return "".join(history.draw() for history in self.histories)


class LevelMoment(NamedTuple):
    """A priority level in a snapshot. A value is None if it is unknown or does not apply to the level."""

    label: str
    seconds: float
    """Time of the snapshot. Only differences between two times have a meaning."""
    used: float | None
    waiting: int | None
    limit: float | None
    nominal: float | None
    rejected: int | None
    """Requests that were rejected since the previous snapshot."""

    @property
    def highest(self) -> float:
        """The highest number of seats to draw. Each waiting request counts as one seat."""
        return max((self.used or 0) + (self.waiting or 0), self.limit or 0, self.nominal or 0)

    def describe(self) -> str:
        """Return the numbers as text, such as `now: 5 of 10 seats in use, 3 waiting`."""
        limit = "" if self.limit is None else f" of {self.limit:,g}"
        parts = [] if self.used is None else [f"{self.used:,g}{limit} seats in use"]
        parts += [] if self.waiting is None else [f"{self.waiting:,} waiting"]
        return f"{self.label}: {', '.join(parts) or 'unknown'}"


class LevelHistory(NamedTuple):
    """A priority level at one or more moments, the oldest first."""

    name: str
    moments: Sequence[LevelMoment]

    def draw(self) -> str:
        """Return an SVG image of the seats of the level, with lines instead of rows if there are more than MAX_ROWS moments."""
        parts = [draw_text(0, 12, self.name, "title")]
        highest = max(1.0, *(moment.highest for moment in self.moments))
        body, height = (
            _draw_rows(self.moments, highest) if len(self.moments) <= MAX_ROWS else _draw_line(self.moments, highest)
        )
        label = f"Seats of {self.name}: {'; '.join(moment.describe() for moment in self.moments[-MAX_ROWS:])}"
        return draw_svg(label, height, (*parts, *body), width=WIDTH, kind="chart level")


def _draw_rows(moments: Sequence[LevelMoment], highest: float) -> tuple[list[str], float]:
    """Return (SVG elements, their total height). The elements draw one row for each moment.

    If requests were rejected since the previous moment, a line of text above the row states their
    number.
    """
    scale, y = WIDTH / highest, float(_LINE + _GAP / 2)
    parts: list[str] = []
    for moment in moments:
        if moment.rejected:
            y += _LINE
            parts.append(draw_text(0, y - 5, _describe_rejected(moment, is_first=moment is moments[0]), "rejected"))
        y += _LINE
        parts.append(draw_text(0, y - 5, moment.describe(), "dim"))
        parts += _draw_bar(moment, y, scale)
        y += _BAR + _GAP
    return parts, y


def _describe_rejected(moment: LevelMoment, *, is_first: bool) -> str:
    return f"{moment.rejected:,} rejected {'since the start' if is_first else 'in between'}"


def _draw_bar(moment: LevelMoment, y: float, scale: float) -> Iterator[str]:
    used, waiting = (moment.used or 0) * scale, (moment.waiting or 0) * scale
    if moment.limit:
        yield draw_rect("track", 0, y, moment.limit * scale, _BAR)
    if waiting:
        width = max(waiting, _MIN_MARK)
        yield draw_rect("wait", min(used, WIDTH - width), y + 2, width, _BAR - 4)
    if used:  # draw the seats in use last, so that one seat stays visible next to hundreds of waiting requests
        yield draw_rect("use", 0, y + 2, max(used, _MIN_MARK), _BAR - 4)
    if moment.nominal is not None:
        x = min(max(moment.nominal * scale, 1), WIDTH - 1)
        yield f'<path class="line" d="M{x:.1f} {y - 1:g}V{y + _BAR + 1:g}"/>'


def _draw_line(moments: Sequence[LevelMoment], highest: float) -> tuple[list[str], float]:
    """Return (SVG elements, their total height). The elements draw the seats over time, and below them a strip of rejections."""
    top, first, last = float(_LINE + _TOP), moments[0].seconds, moments[-1].seconds
    base, span = top + _HEIGHT, max(last - first, 1e-9)

    def at(moment: LevelMoment) -> float:
        return round(_LEFT + (moment.seconds - first) / span * (WIDTH - _LEFT), 1)

    def height(value: float | None) -> float:
        return round(base - (value or 0) * _HEIGHT / highest, 1)

    def area(kind: str, low: Sequence[float], high: Sequence[float]) -> str:
        xs = [at(moment) for moment in moments]
        upper = "L".join(f"{x:g} {height(y):g}" for x, y in zip(xs, high, strict=True))
        lower = "L".join(f"{x:g} {height(y):g}" for x, y in zip(reversed(xs), reversed(low), strict=True))
        return f'<path class="area {kind}" d="M{upper}L{lower}Z"/>'

    parts = []
    for value in list_ticks(highest):
        parts.append(f'<path class="grid" d="M{_LEFT} {height(value):g}H{WIDTH}"/>')
        parts.append(draw_text(_LEFT - 4, height(value) + 4, f"{value:,}", "dim end"))
    used = [moment.used or 0 for moment in moments]
    total = [(moment.used or 0) + (moment.waiting or 0) for moment in moments]
    limits = [moment.limit or 0 for moment in moments]
    parts.insert(0, area("track limit", [0] * len(limits), limits))
    parts += [area("use", [0] * len(used), used), *([area("wait", used, total)] if total != used else [])]
    points = [f"{at(moment):g} {height(moment.nominal):g}" for moment in moments if moment.nominal is not None]
    parts += [f'<path class="line" d="M{"L".join(points)}"/>'] if points else []
    parts += _draw_strip(moments, at, base)
    parts.append(draw_text(_LEFT, base + _STRIP + _AXIS, moments[0].label, "dim"))
    parts.append(draw_text(WIDTH, base + _STRIP + _AXIS, moments[-1].label, "dim end"))
    return parts, base + _STRIP + _AXIS + 6


def _draw_strip(moments: Sequence[LevelMoment], at: Callable[[LevelMoment], float], base: float) -> Iterator[str]:
    """Yield a mark below the axis for each period between two snapshots in which requests were rejected.

    A darker mark stands for more rejections.
    """
    most = max((moment.rejected or 0 for moment in moments[1:]), default=0)
    for before, moment in pairwise(moments):
        if moment.rejected:
            x = at(before)
            opacity, title = 0.25 + 0.75 * moment.rejected / most, f"{moment.rejected:,} rejected"
            yield draw_rect("rejected", x, base + 3, max(at(moment) - x, _MIN_MARK), _STRIP, opacity, title)
    if most:
        total = sum(moment.rejected or 0 for moment in moments[1:])
        yield draw_text((WIDTH + _LEFT) / 2, base + _STRIP + _AXIS, f"{total:,} rejected", "rejected middle")


def list_affected(state: ServerState, conclusion: Conclusion) -> list[str]:
    """Return the names of the levels of a server that the causes mention, the worst level first."""
    server = state.server.last.sources[0].name
    return list(dict.fromkeys(name for cause in conclusion.causes if cause.server == server for name in cause.levels))


def list_moments(state: ServerState, levels: Sequence[str]) -> dict[str, list[LevelMoment]]:
    """Return the state of each level in `levels` at each snapshot of the server, by level, the oldest state first.

    Rejections are counted from the previous snapshot. If there is only one snapshot, they are counted
    from the start of the server.
    """
    histories: dict[str, list[LevelMoment]] = {}
    ages = [shot.metrics.age_seconds if shot.metrics is not None else None for shot in state.server.snapshots]
    last = ages[-1]
    for number, (interval, age) in enumerate(zip(intervals(state), ages, strict=True)):
        known = {level.name: level for level in interval.levels}
        before = None if last is None or age is None else last - age
        for name in levels:
            if (level := known.get(name)) is None:
                continue
            moment = LevelMoment(
                _label(number, len(ages), before),
                float(number) if before is None else -before,
                level.seats_in_use,
                level.waiting,
                None if level.is_exempt else level.current,
                level.nominal,
                level.rejected if number or len(ages) == 1 else None,
            )
            histories.setdefault(name, []).append(moment)
    return histories


def _label(number: int, total: int, before: float | None) -> str:
    if number == total - 1:
        return "now" if total == 1 else "last"
    return f"snapshot {number + 1}" if before is None else f"{format_duration(before * 1e6)} before"
