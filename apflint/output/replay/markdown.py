"""The report of a replay as Markdown, for an issue or a post-mortem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.markdown import format_code, format_prose
from apflint.output.replay.wording import (
    describe_contradictions,
    describe_coverage,
    describe_limits_of_log,
    describe_more_groups,
    describe_more_levels,
    list_groups,
    list_seats,
    list_traffic,
    summarize,
    summarize_levels,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.replay.statistics import ReplayReport

_NAMES = ("Priority level", "Top users", "FlowSchemas")
"""Columns with text. All other columns of the tables of levels have numbers."""


def render(report: ReplayReport) -> str:
    """Render the report. Names from the log become code spans."""
    parts = ["### Replay of audit logs"]
    parts += [f"**{_prose(sentence)}**" for sentence in describe_contradictions(report)]
    if report.levels:
        levels, others = summarize_levels(report)
        parts.append(f"**{' '.join(summarize(report))}**")
        items = [f"- {format_code(level.name)}: {_prose(str(level))}" for level in levels]
        items += [f"- {describe_more_levels(others)}"] if others else []
        parts.append("\n".join(items))
    parts.append("\n".join(f"- {_prose(sentence)}" for sentence in describe_coverage(report)))
    if report.levels:
        parts += (render_table(list_traffic(report), _NAMES), render_table(list_seats(report), _NAMES))
    if report.breakdown is not None:
        parts.append(render_table(list_groups(report.breakdown), report.breakdown.dimensions))
        parts.append(describe_more_groups(report.breakdown))
    parts.append("\n".join(f"- {_prose(sentence)}" for sentence in describe_limits_of_log(report)))
    return "\n\n".join(filter(None, parts)) + "\n"


def _prose(sentence: str) -> str:
    return format_prose(sentence)


def render_table(rows: Iterable[Mapping[str, str]], names: Iterable[str]) -> str:
    """Render a table. The columns `names` have text, which becomes code spans. Other columns have numbers."""
    lines: list[str] = []
    texts = frozenset(names)
    for row in rows:
        if not lines:
            lines.append(f"| {' | '.join(row)} |")
            lines.append(f"|{'|'.join('---' if title in texts else '---:' for title in row)}|")
        cells = (format_code(value) if title in texts and value else value for title, value in row.items())
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
