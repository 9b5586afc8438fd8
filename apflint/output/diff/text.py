"""The differences of two configurations for people: a summary, the requests that move, seats, and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from apflint.output.console import hang, label_lines, render_prose
from apflint.output.diff import phrases
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.tables import render_table
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.diff.requests import ChangeGroup, Difference, RequestChange
    from apflint.output.console import Style
    from apflint.output.diff.phrases import Sides

_LABEL_CELLS = 9


def render_diff(difference: Difference, sides: Sides, style: Style) -> str:
    """Render the difference as text."""
    parts = [_summary(difference, sides, style)]
    groups = [group for group in difference.groups if phrases.needs_own_section(group)]
    shown = (_group(group, difference, style) for group in groups[: phrases.MAX_GROUPS])
    parts += ("".join(f"{line}\n" for line in lines) for lines in shown)
    if left := sum(len(group.changes) for group in groups[phrases.MAX_GROUPS :]):
        parts.append(f"And {pluralize(left, 'more kind')} of requests: see --format json.\n")
    if groups:
        parts.append(f"{style.paint('Each request is an argument list of `apflint explain`.', 'dim')}\n")
    objects = "".join(f"{line}\n" for line in _objects(difference, style))
    upgrade = render_prose(style, *phrases.describe_upgrade(difference, sides), color="dim")
    return "\n".join(filter(None, (*parts, _levels(difference, style), objects + upgrade)))


def _summary(difference: Difference, sides: Sides, style: Style) -> str:
    first, *others = phrases.summarize(difference)
    old, new = difference.old.limits, difference.new.limits
    seats = f"{phrases.format_step(old.server_concurrency, new.server_concurrency)} seats in one API server"
    kubernetes = phrases.format_step(old.release.name, new.release.name)
    scope = f"{sides.old} -> {sides.new}, Kubernetes {kubernetes}, {seats}"
    return (
        render_prose(style, first, color="bold")
        + render_prose(style, *others)
        + render_prose(style, scope, color="dim")
    )


def _group(group: ChangeGroup, difference: Difference, style: Style) -> Iterator[str]:
    names = phrases.format_step(sanitize(group.old.name), sanitize(group.new.name))
    yield f"{style.paint(names, 'bold')}  {style.paint(f'({phrases.TITLES[group.type]})', 'dim')}"
    before, after = phrases.describe_level(group.old), phrases.describe_level(group.new)
    facts = [("seats", f"as before: {after}")] if before == after else [("before", before), ("after", after)]
    for label, text in (*facts, ("", phrases.describe_new_starvation(group))):
        if text:
            yield from label_lines(label, text, _LABEL_CELLS, style, 2)
    for change in group.changes[: phrases.MAX_CHANGES]:
        yield from _change(change, group, difference, style)
    if len(group.changes) > phrases.MAX_CHANGES:
        yield f"  and {len(group.changes) - phrases.MAX_CHANGES} more: see --format json"


def _change(change: RequestChange, group: ChangeGroup, difference: Difference, style: Style) -> Iterator[str]:
    names = (side.flow_schema.name for side in (change.old, change.new))
    step = phrases.format_step(*(f"{name}{phrases.format_change(name, difference)}" for name in names))
    yield from hang("  ", step, style.prose_width, 4)
    for example in change.examples[: phrases.MAX_EXAMPLES]:
        # Never broken into lines, so that it can be copied.
        yield f"    apflint explain {style.paint(sanitize(phrases.format_request(example)), 'info')}"
        for verb, part in phrases.list_causes(example, difference):
            yield from label_lines(verb, part, _LABEL_CELLS, style, 6)
    if len(change.examples) > phrases.MAX_EXAMPLES:
        yield f"    and {len(change.examples) - phrases.MAX_EXAMPLES} more like these: see --format json"
    if flows := phrases.describe_flows(change, group):
        yield from label_lines("flows", flows, _LABEL_CELLS, style, 4)
    if change.is_rare:
        yield from label_lines("who", phrases.RARE, _LABEL_CELLS, style, 4)


def _objects(difference: Difference, style: Style) -> Iterator[str]:
    changes = difference.objects
    if changes:
        yield style.paint("Objects", "bold")
    for change in changes[: phrases.MAX_OBJECTS]:
        text = f"{change.change}: {change.kind} {change.name} ({', '.join(change.details)})"
        yield from hang("  ", text, style.prose_width, 4)
    if len(changes) > phrases.MAX_OBJECTS:
        yield f"  and {len(changes) - phrases.MAX_OBJECTS} more: see --format json"


def _levels(difference: Difference, style: Style) -> str:
    changed = [change for change in difference.levels if change.is_changed]
    if not changed:
        return ""
    figures = ("nominal", "shares", "min", "max", "attainable", "max_queued")
    rows: list[list[str | Text]] = []
    for change in changed:
        gain, *steps = phrases.level_steps(change, *figures)
        name = Text(phrases.name_with_change(change, sanitize_line(change.name)), "bold")
        rows.append([name, Text(gain, {"+": "green", "-": "bold red"}.get(gain[0], "")), *steps])
    titles = ("PRIORITY LEVEL", "CHANGE", "NOMINAL", "SHARES", "MIN", "MAX", "ATTAINABLE", "QUEUED")
    return render_table(titles, rows, style, optional=("SHARES", "MAX", "QUEUED"))
