"""The state of API servers and the findings as a self-contained HTML page, with drawings of seats and queues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES
from apflint.output.doctor import describe_server, flows_table, requests_table, seats_table
from apflint.output.html_page import render_page, render_table
from apflint.output.sanitize import escape_xml, sanitize
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.doctor.dumps import QueueRow
    from apflint.doctor.level_state import LevelState, ServerState
    from apflint.finding import Finding, Report
    from apflint.output.doctor import Table

_STYLE = """\
:root{--use:#2f63c9;--wait:#c0362c;--track:#e1e5ea;--line:#57606a;--soft:#57606a}
h1{font-size:20px;margin:24px 0 8px}
svg{display:block;max-width:100%}
.drawing svg{max-width:none}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:currentColor}
.track{fill:var(--track)}
.use{fill:var(--use)}
.wait{fill:var(--wait)}
.mark{stroke:var(--line);stroke-width:2}
.end{text-anchor:end}
p.legend{color:var(--soft);margin:4px 0;font-size:13px}
.key{display:inline-block;width:12px;height:12px;margin:0 4px 0 12px;vertical-align:-1px}
.error,.warning{color:#a3261d}
.finding summary{margin:4px 0;font-weight:400}
.finding p{margin:2px 20px}
@media (prefers-color-scheme:dark){
:root{--use:#7fa8f5;--wait:#f08a80;--track:#333b44;--line:#a3adb8;--soft:#a3adb8}
.error,.warning{color:#ffa198}
}
"""
_NAME_WIDTH, _BAR_WIDTH, _NUMBER_WIDTH, _ROW_HEIGHT = 190, 600, 290, 26
_QUEUE_HEIGHT, _MAX_QUEUE_WIDTH = 90, 30
MAX_DRAWN_QUEUES = 512
"""Maximum number of queues of a level that are drawn. A level with more queues is only described."""


def render_html(states: Sequence[ServerState], report: Report, configuration: str | None = None) -> str:
    """Render a page with the findings, and with drawings and tables of each server.

    `configuration` describes the manifests, if there are any.
    """
    counts = [pluralize(count, severity) for severity in SEVERITIES for count in [report.count(severity)] if count]
    body = f"<main>\n<h1>{', '.join(counts) or 'No findings'}</h1>\n"
    body += "" if configuration is None else f"<p>Configuration: {_text(configuration)}</p>\n"
    body += "".join(map(_finding, report.findings)) + "".join(map(_server, states)) + "</main>\n"
    return render_page("apflint doctor", body, _STYLE)


def _finding(finding: Finding) -> str:
    is_link = re.fullmatch(r"https://[\w./#-]+", finding.url, re.ASCII) is not None
    rule = f'<a href="{finding.url}">{finding.rule}</a>' if is_link else finding.rule
    place = f"{finding.file}:{finding.span.line}"
    lines = [_text(note) for note in finding.notes]
    lines += [f"<b>help:</b> {_text(finding.help)}"] if finding.help else []
    paragraphs = "".join(f"<p>{line}</p>\n" for line in (*lines, f"<code>{_text(place)}</code>"))
    title = f"<b class={finding.severity}>{finding.severity}</b> {rule} {_text(finding.message)}"
    return f'<details class="finding">\n<summary>{title}</summary>\n{paragraphs}</details>\n'


def _text(text: str) -> str:
    return escape_xml(sanitize(text))


def _server(state: ServerState) -> str:
    first, *others = map(_text, describe_server(state))
    parts = [f"<h1>{first}</h1>\n", *(f"<p>{line}</p>\n" for line in others)]
    if state.server.last.metrics is not None:
        parts += [_heading("Seats of each priority level"), _draw_seats(state)]
    if state.server.last.queues is not None:
        parts += [_heading("Queues with requests"), *_queues(state, state.server.last.queues)]
    for title, table in (
        ("Seats", seats_table(state)),
        ("Requests", requests_table(state)),
        ("Busiest flows", flows_table(state)),
    ):
        if table.rows:
            parts += [_heading(title), _table(table)]
    return "".join(parts)


def _heading(title: str) -> str:
    return f"<h2>{title}</h2>\n"


def _table(table: Table) -> str:
    titles = [title.capitalize() for title in table.titles]
    legend = "".join(f'<p class="legend">{escape_xml(line)}</p>\n' for line in table.legend)
    return render_table(titles, ([sanitize(cell) for cell in row] for row in table.rows)) + legend


def _draw_seats(state: ServerState) -> str:
    """Draw a bar for each level: the current limit, the seats in use, and the nominal limit as a line."""
    scale = max((value for level in state.levels for value in _drawn_values(level)), default=1) or 1
    rows = "".join(_seat_bar(level, row, scale) for row, level in enumerate(state.levels))
    width, height = _NAME_WIDTH + _BAR_WIDTH + _NUMBER_WIDTH, _ROW_HEIGHT * len(state.levels)
    keys = (
        '<p class="legend"><span class="key" style="background:var(--use)"></span>seats in use'
        '<span class="key" style="background:var(--wait)"></span>demand above them (high watermark of 10 s)'
        '<span class="key" style="background:var(--track)"></span>current limit'
        '<span class="key" style="background:var(--line);width:2px"></span>nominal limit</p>\n'
    )
    svg = f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="Seats">\n{rows}</svg>\n'
    return f'<div class="drawing">\n{svg}</div>\n{keys}'


def _drawn_values(level: LevelState) -> tuple[float, ...]:
    values = (level.nominal, level.current, level.seats_in_use, level.demand_high)
    return tuple(value for value in values if value is not None)


def _seat_bar(level: LevelState, row: int, scale: float) -> str:
    top = row * _ROW_HEIGHT
    numbers = [
        f"{label} {value:g}"
        for label, value in (
            ("in use", level.seats_in_use),
            ("demand", level.demand_high),
            ("current", level.current),
            ("nominal", level.nominal),
        )
        if value is not None
    ]
    parts = [f'<text class="end" x="{_NAME_WIDTH - 10}" y="{top + 17}">{_text(_shorten(level.name))}</text>']

    def bar(kind: str, value: float | None, inset: int) -> None:
        if value:
            parts.append(
                f'<rect class="{kind}" x="{_NAME_WIDTH}" y="{top + inset}" width="{value / scale * _BAR_WIDTH:.1f}"'
                f' height="{_ROW_HEIGHT - 2 * inset}"/>'
            )

    bar("track", level.current, 3)
    bar("wait", level.demand_high, 9)
    bar("use", level.seats_in_use, 6)
    if level.nominal is not None:
        at = f"{_NAME_WIDTH + level.nominal / scale * _BAR_WIDTH:.1f}"
        parts.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{top + 2}" y2="{top + _ROW_HEIGHT - 2}"/>')
    description = ", ".join(numbers)
    parts.append(f'<text x="{_NAME_WIDTH + _BAR_WIDTH + 12}" y="{top + 17}">{description}</text>')
    return f"<g><title>{_text(level.name)}: {description}</title>{''.join(parts)}</g>\n"


def _shorten(name: str) -> str:
    return name if len(name) <= 28 else f"{name[:27]}…"


def _queues(state: ServerState, queues: Sequence[QueueRow]) -> Iterator[str]:
    """Yield a drawing of the queues of each level that has requests in them."""
    is_empty = True
    for level in state.levels:
        rows = [queue for queue in queues if queue.level == level.name]
        waiting = sum(queue.waiting for queue in rows)
        busy = sum(queue.waiting > 0 for queue in rows)
        if waiting or any(queue.executing for queue in rows):
            is_empty = False
            executing = pluralize(sum(queue.executing for queue in rows), "request")
            yield f"<p><code>{_text(level.name)}</code>: {pluralize(waiting, 'request')} in {busy} of {len(rows)} queues"
            yield f" {'waits' if waiting == 1 else 'wait'}, {executing} {'executes' if executing.startswith('1 ') else 'execute'}</p>\n"
            if len(rows) <= MAX_DRAWN_QUEUES:
                yield _draw_queues(level.name, rows)
    if is_empty:
        yield "<p>All queues are empty.</p>\n"
    else:
        yield (
            '<p class="legend">A column is a queue:'
            '<span class="key" style="background:var(--wait)"></span>waiting'
            '<span class="key" style="background:var(--use)"></span>executing</p>\n'
        )


def _draw_queues(name: str, queues: Sequence[QueueRow]) -> str:
    highest = max(queue.waiting + queue.executing for queue in queues)
    step = min(_MAX_QUEUE_WIDTH, (_NAME_WIDTH + _BAR_WIDTH) / len(queues))
    width, unit = step * len(queues), _QUEUE_HEIGHT / highest
    parts = []
    for position, queue in enumerate(queues):
        x, column = position * step, f'width="{step * 0.85:.2f}"'
        executing, waiting = queue.executing * unit, queue.waiting * unit
        title = f"<title>queue {queue.number}: {queue.waiting} waiting, {queue.executing} executing</title>"
        parts.append(
            f'<g>{title}<rect class="track" x="{x:.2f}" y="{_QUEUE_HEIGHT}" {column} height="3"/>'
            f'<rect class="use" x="{x:.2f}" y="{_QUEUE_HEIGHT - executing:.1f}" {column} height="{executing:.1f}"/>'
            f'<rect class="wait" x="{x:.2f}" y="{_QUEUE_HEIGHT - executing - waiting:.1f}" {column}'
            f' height="{waiting:.1f}"/></g>\n'
        )
    return (
        f'<svg viewBox="0 0 {width:.0f} {_QUEUE_HEIGHT + 4}" width="{width:.0f}" role="img"'
        f' aria-label="Queues of {_text(name)}">\n{"".join(parts)}</svg>\n'
    )
