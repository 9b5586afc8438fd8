"""Results of a simulation as an HTML page: seats over time, waiting requests of each queue, and all numbers as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.html_page import render_page, render_table
from apflint.output.sanitize import escape_xml, sanitize
from apflint.output.simulation import (
    CLIENT_TITLES,
    DIFFERENCE_TITLES,
    LEVEL_TITLES,
    SEAT_TITLES,
    client_cells,
    describe_likeness,
    describe_other_seats,
    describe_run,
    difference_cells,
    level_cells,
    list_notes,
    seat_cells,
)
from apflint.simulate.statistics import SLOTS
from apflint.simulate.verdict import format_clock, list_verdicts
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.simulate.comparison import Comparison
    from apflint.simulate.simulation import Result
    from apflint.simulate.statistics import LevelResult

_LEFT, _WIDTH, _HEIGHT, _TICKS = 56, 960, 150, 6
_HEAT_HEIGHT, _MAX_CELL, _MIN_CELL = 320, 14, 3
_SHADES = 5
_MARGIN = 1.05
_MAX_NAMES = 6
_STYLE = """\
:root{--ink:#1c2127;--line:#d0d7de;--dim:#59636e;--seats:#2c7fb8;--limit:#1c2127;--rejected:#c8102e;--mouse:#2c7fb8;--elephant:#e66101}
@media (prefers-color-scheme:dark){
:root{--ink:#e8ebef;--line:#3a424b;--dim:#9aa5b1;--seats:#5aa9e6;--limit:#e8ebef;--rejected:#ff7b8a;--mouse:#5aa9e6;--elephant:#ff9d4d}
}
h1{font-size:22px;margin:16px 0 4px}
h2{font-size:18px;margin:32px 0 4px;border-top:1px solid var(--line);padding-top:16px}
h3{font-size:15px;margin:16px 0 4px}
p,ul{margin:4px 0 12px}
.picture{overflow-x:auto}
svg{display:block;min-width:720px;width:100%;height:auto}
svg text{fill:var(--dim);font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
.grid{stroke:var(--line);stroke-width:1}
.seats{fill:var(--seats);fill-opacity:.45;stroke:var(--seats)}
.limit{fill:none;stroke:var(--limit);stroke-width:1.5}
.nominal{fill:none;stroke:var(--dim);stroke-dasharray:5 4}
.rejected{fill:var(--rejected)}
.mouse{fill:var(--mouse)}
.elephant{fill:var(--elephant)}
.key{display:inline-block;width:14px;height:11px;margin:0 4px 0 12px;vertical-align:baseline}
.legend{color:var(--dim);font-size:13px;margin:2px 0 8px}
"""


def render_html(result: Result, comparison: Comparison | None = None) -> str:
    """Render a self-contained page.

    If there is a comparison, the page begins with its differences. `result` is its new simulation.
    """
    levels = [level for level in result.levels if level.attempts]
    verdicts = dict(list_verdicts(result))
    levels.sort(key=lambda level: list(verdicts).index(level.name))
    parts = [
        "<h1>Simulation of API Priority and Fairness</h1>\n",
        *(f"<p>{_escape(line)}</p>\n" for line in describe_run(result)),
        _differences(comparison),
        "<ul>\n",
        *(f"<li>{_escape(verdict)}</li>\n" for verdict in verdicts.values()),
        "</ul>\n",
        *(f"<p>{_escape(note)}</p>\n" for note in list_notes(result)),
        _table(LEVEL_TITLES, map(level_cells, levels)),
        _table(SEAT_TITLES, map(seat_cells, levels)),
        *(part for level in levels for part in _level(level, result)),
    ]
    return render_page("Simulation of API Priority and Fairness", f"<main>\n{''.join(parts)}</main>\n", _STYLE)


def _escape(text: str) -> str:
    return escape_xml(sanitize(text))


def _differences(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    seats = "".join(f"<p>{_escape(sentence)}</p>\n" for sentence in describe_other_seats(comparison))
    if not comparison.differences:
        return f"<p>{_escape(describe_likeness(comparison))}</p>\n{seats}"
    return f"<h2>Differences</h2>\n{_table(DIFFERENCE_TITLES, map(difference_cells, comparison.differences))}{seats}"


def _level(level: LevelResult, result: Result) -> Iterator[str]:
    name = _escape(level.name)
    yield f"<h2>{name}</h2>\n"
    yield "<h3>Seats over time</h3>\n"
    yield _legend(
        ("var(--seats)", "seats in use"),
        *(
            ()
            if level.limits.is_exempt
            else (("var(--limit)", "current limit"), ("var(--dim)", "nominal limit (dashed)"))
        ),
        *((("var(--rejected)", "rejections"),) if level.rejected else ()),
    )
    yield _seats_picture(level, result)
    rows = sorted({queue for sample in level.samples for queue in sample.queues})
    if rows:
        yield "<h3>Waiting requests of each queue</h3>\n"
        elephants = [flow for flow in level.flows if flow.is_elephant]
        named = ", ".join(
            f"{flow.client} ({flow.distinguisher or flow.flow_schema})" for flow in elephants[:_MAX_NAMES]
        )
        more = f" and {len(elephants) - _MAX_NAMES} more" if len(elephants) > _MAX_NAMES else ""
        mice = pluralize(len(level.flows) - len(elephants), "other flow")
        yield _legend(
            *((("var(--elephant)", f"mostly busy flows: {named}{more}"),) if elephants else ()), ("var(--mouse)", mice)
        )
        yield _heat_map(level, rows, result)
    yield _table(CLIENT_TITLES, map(client_cells, level.clients))


def _legend(*entries: tuple[str, str]) -> str:
    keys = (f'<span class="key" style="background:{color}"></span>{_escape(text)}' for color, text in entries)
    return f'<p class="legend">{"".join(keys)}</p>\n'


def _seats_picture(level: LevelResult, result: Result) -> str:
    """Draw the average seats in use, the limits, and a strip of rejections below."""
    samples, servers = level.samples, result.load.servers
    nominal = level.limits.nominal * servers
    limits = [] if level.limits.is_exempt else [*(sample.limit for sample in samples), nominal]
    top = max(1.0, *limits, *(sample.seats for sample in samples)) * _MARGIN

    def y(value: float) -> str:
        return f"{_HEIGHT - value / top * (_HEIGHT - 8):.1f}"

    step = _WIDTH / SLOTS
    area = "".join(f"V{y(sample.seats)}h{step:g}" for sample in samples)
    parts = [f'<path class="seats" d="M{_LEFT},{_HEIGHT}{area}V{_HEIGHT}z"/>\n']
    if limits:
        line = "".join(f"V{y(sample.limit)}h{step:g}" for sample in samples)
        parts.append(f'<path class="limit" d="M{_LEFT},{y(samples[0].limit)}{line}"/>\n')
        parts.append(f'<path class="nominal" d="M{_LEFT},{y(nominal)}h{_WIDTH}"/>\n')
    most = max(sample.rejected for sample in samples)
    for place, sample in enumerate(samples):
        if sample.rejected:
            opacity = 0.25 + 0.75 * sample.rejected / most
            x = _LEFT + place * step
            parts.append(
                f'<rect class="rejected" x="{x:g}" y="{_HEIGHT + 3}" width="{step:g}" height="8" opacity="{opacity:.2f}">'
                f"<title>{sample.rejected:,} rejections</title></rect>\n"
            )
    parts += (
        f'<text x="{_LEFT - 6}" y="{y(value)}" dy="4" text-anchor="end">{value:,}</text>\n'
        for value in _list_ticks(top)
    )
    label = f"Seats of {level.name} over time"
    return _picture(label, _HEIGHT + 12, parts, result)


def _list_ticks(top: float) -> range:
    """Return 2 to 5 round numbers from 0 to `top`, which is at least 1."""
    step = 1
    while top / step >= 5:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return range(0, int(top) + 1, step)


def _heat_map(level: LevelResult, rows: Sequence[int], result: Result) -> str:
    """Draw a row for each queue that ever had waiting requests, and a column for each part of the duration."""
    cell = max(_MIN_CELL, min(_MAX_CELL, _HEAT_HEIGHT // len(rows)))
    most = max(count for sample in level.samples for count, _ in sample.queues.values())
    step = _WIDTH / SLOTS
    parts: list[str] = []
    for row, queue in enumerate(rows):
        cells = [_shade(level, sample.queues.get(queue), most) for sample in level.samples]
        start = 0
        for place in range(1, SLOTS + 1):
            if place < SLOTS and cells[place] == cells[start]:
                continue
            if (shade := cells[start]) is not None:
                kind, opacity = shade
                parts.append(
                    f'<rect class="{kind}" x="{_LEFT + start * step:g}" y="{row * cell}" width="{(place - start) * step:g}"'
                    f' height="{cell}" opacity="{opacity:g}"/>\n'
                )
            start = place
    height = len(rows) * cell
    parts += _label_rows(rows, cell, level.limits.queues or 1, result.load.servers)
    return _picture(
        f"Waiting requests in the queues of {level.name}, at most {most:,} in one queue", height, parts, result
    )


def _label_rows(rows: Sequence[int], cell: int, queues: int, servers: int) -> Iterator[str]:
    """Label the first and the last queue, or the first queue of each API server."""
    if servers == 1:
        labels = {0: str(rows[0])} | ({len(rows) - 1: str(rows[-1])} if len(rows) * cell > 24 else {})
    else:
        numbers = [row // queues for row in rows]
        labels = {numbers.index(number): f"server {number + 1}" for number in sorted(set(numbers))}
    below = 0
    for place, label in labels.items():
        y = place * cell
        if servers > 1:
            yield f'<path class="grid" d="M{_LEFT},{y}h{_WIDTH}"/>\n'
        if y >= below:
            text_y = (place + 1) * cell if servers == 1 and place else y + 10
            yield f'<text x="{_LEFT - 6}" y="{text_y}" text-anchor="end">{label}</text>\n'
            below = y + 12


def _shade(level: LevelResult, waiting: tuple[int, int] | None, most: int) -> tuple[str, float] | None:
    if waiting is None:
        return None
    count, flow = waiting
    kind = "elephant" if level.flows[flow].is_elephant else "mouse"
    return kind, -(-count * _SHADES // most) / _SHADES


def _picture(label: str, height: int, parts: Iterable[str], result: Result) -> str:
    """Return an SVG picture with a time axis at the bottom."""
    axis = []
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDTH * tick / _TICKS
        time = format_clock(result.load.duration * tick // _TICKS)
        anchor = "end" if tick == _TICKS else "middle"
        axis.append(f'<path class="grid" d="M{x:g},0V{height + 4}"/>\n')
        axis.append(f'<text x="{x:g}" y="{height + 18}" text-anchor="{anchor}">{time}</text>\n')
    view = f"0 0 {_LEFT + _WIDTH + 4} {height + 24}"
    return (
        f'<div class="picture"><svg viewBox="{view}" role="img" aria-label="{_escape(label)}">\n'
        f"<title>{_escape(label)}</title>\n{''.join(axis)}{''.join(parts)}</svg></div>\n"
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return render_table([title.capitalize() for title in titles], ([sanitize(cell) for cell in row] for row in rows))
