"""The differences of two configurations for a comment on a pull request. Text from manifests stands in code spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.diff import phrases
from apflint.output.markdown import format_code
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.diff.requests import ChangeGroup, Difference, RequestChange
    from apflint.output.diff.phrases import Sides

_FIGURES = {"Nominal": "nominal", "Min": "min", "Attainable": "attainable", "Queued": "max_queued"}
_MAX_LEVELS = 40
"""A comment on GitHub has room for 65,536 characters; with the bounds of `phrases` it stays below."""


def render_diff(difference: Difference, sides: Sides) -> str:
    """Render the difference as a comment."""
    first, *others = phrases.summarize(difference)
    old, new = difference.old.limits, difference.new.limits
    seats = _arrow(phrases.format_step(old.server_concurrency, new.server_concurrency))
    kubernetes = _arrow(phrases.format_step(old.release.name, new.release.name))
    parts = [
        "### API Priority and Fairness",
        " ".join((f"**{first}**", *others)),
        f"{format_code(sides.old)} → {format_code(sides.new)}, Kubernetes {kubernetes}, {seats} seats in one API server",
    ]
    groups = [group for group in difference.groups if phrases.needs_own_section(group)]
    for group in groups[: phrases.MAX_GROUPS]:
        parts += _group(group, difference)
    if left := sum(len(group.changes) for group in groups[phrases.MAX_GROUPS :]):
        parts.append(f"And {pluralize(left, 'more kind')} of requests, not shown here.")
    parts += [*_levels(difference), *_objects(difference)]
    return "\n\n".join(parts) + "\n"


def _arrow(text: str) -> str:
    return text.replace("->", "→")


def _group(group: ChangeGroup, difference: Difference) -> Iterator[str]:
    names = _arrow(phrases.format_step(format_code(group.old.name), format_code(group.new.name)))
    yield f"#### {names} ({phrases.TITLES[group.type]})"
    before, after = phrases.describe_level(group.old), phrases.describe_level(group.new)
    lines = [f"- as before: {after}"] if before == after else [f"- before: {before}", f"- after: {after}"]
    lines += [f"- {problem}"] if (problem := phrases.describe_new_starvation(group)) else []
    yield "\n".join(lines)
    rows = ["| FlowSchema before | after | for example: `apflint explain ...` |", "|---|---|---|"]
    rows += [_row(change, group, difference) for change in group.changes[: phrases.MAX_CHANGES]]
    if len(group.changes) > phrases.MAX_CHANGES:
        rows.append(f"| and {len(group.changes) - phrases.MAX_CHANGES} more | | |")
    yield "\n".join(rows)


def _row(change: RequestChange, group: ChangeGroup, difference: Difference) -> str:
    names = [side.flow_schema.name for side in (change.old, change.new)]
    old, new = (f"{format_code(name)}{phrases.format_change(name, difference)}" for name in names)
    lines = []
    for example in change.examples[: phrases.MAX_EXAMPLES]:
        lines.append(format_code(phrases.format_request(example)))
        lines += [f"{verb} {format_code(part)}" for verb, part in phrases.list_causes(example, difference)]
    if change.is_rare:
        lines.append(phrases.RARE)
    if len(change.examples) > phrases.MAX_EXAMPLES:
        lines.append(f"and {len(change.examples) - phrases.MAX_EXAMPLES} more like these")
    if flows := phrases.describe_flows(change, group):
        lines.append(f"flows: {_arrow(flows)}")
    return f"| {old} | {new} | {'<br>'.join(lines)} |"


def _levels(difference: Difference) -> Iterator[str]:
    changed = [change for change in difference.levels if change.is_changed]
    if not changed:
        return
    rows = [f"| Priority level | Change | {' | '.join(_FIGURES)} |", f"|---|--:|{'--:|' * len(_FIGURES)}"]
    for change in changed[:_MAX_LEVELS]:
        name = phrases.name_with_change(change, format_code(change.name))
        rows.append(f"| {name} | {_arrow(' | '.join(phrases.level_steps(change, *_FIGURES.values())))} |")
    if len(changed) > _MAX_LEVELS:
        rows.append(f"| and {len(changed) - _MAX_LEVELS} more |{' |' * (len(_FIGURES) + 1)}")
    yield "#### Seats of each level"
    yield "\n".join(rows)
    yield (
        "Nominal: the seats of the level. Min: the seats that it never lends. Attainable: the seats that it can reach while"
        " all other levels are idle. Queued: its queues times their length limit."
    )


def _objects(difference: Difference) -> Iterator[str]:
    changes = difference.objects
    lines = [
        f"- {change.change}: {change.kind} {format_code(change.name)} ({', '.join(map(format_code, change.details))})"
        for change in changes[: phrases.MAX_OBJECTS]
    ]
    if len(changes) > phrases.MAX_OBJECTS:
        lines.append(f"- and {len(changes) - phrases.MAX_OBJECTS} more")
    if lines:
        items = "\n".join(lines)
        yield f"<details><summary>Objects that differ: {len(changes)}</summary>\n\n{items}\n\n</details>"
