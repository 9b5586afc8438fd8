"""What `apflint diff` prints for a comment on a pull request. Whatever comes from manifests stands in code spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output import diff_words as words
from apflint.output.markdown import format_code
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.diff.levels import LevelChange
    from apflint.diff.requests import Difference, Group, Way
    from apflint.evaluate.limits import LevelLimits
    from apflint.output.diff_words import Sides

_FIGURES = (("Seats", "nominal"), ("Least", "min"), ("Reach", "attainable"), ("Waiting", "max_queued"))
_ROWS = 40
"""A comment on GitHub has room for 65,536 characters: with the bounds of `diff_words` this stays below."""


def render(found: Difference, sides: Sides) -> str:
    """The comment, ending in a newline."""
    parts = ["### API Priority and Fairness", *_answer(found, sides)]
    groups = [group for group in found.groups if words.shown(group)]
    for group in groups[: words.GROUPS]:
        parts += _group(group, found)
    if len(groups) > words.GROUPS:
        left = sum(len(group.ways) for group in groups[words.GROUPS :])
        parts.append(f"And {pluralize(left, 'more kind')} of requests, not shown here.")
    parts += _levels(found)
    parts += _objects(found)
    return "\n\n".join(parts) + "\n"


def _answer(found: Difference, sides: Sides) -> Iterator[str]:
    first, *rest = words.headline(found)
    yield " ".join((f"**{first}**", *rest))
    old, new = found.old.limits, found.new.limits
    size = words.step(old.server_concurrency, new.server_concurrency)
    kubernetes = words.step(old.release.name, new.release.name)
    yield f"{format_code(sides.old)} → {format_code(sides.new)}, Kubernetes {_arrow(kubernetes)}, {_arrow(size)} seats in one API server"


def _arrow(text: str) -> str:
    return text.replace("->", "→")


def _group(group: Group, found: Difference) -> Iterator[str]:
    old, new = format_code(group.old.name), format_code(group.new.name)
    names = old if old == new else f"{old} → {new}"
    yield f"#### {names} ({words.title(group)})"
    before, after = words.fate(group.old), words.fate(group.new)
    lines = [f"- as before: {after}"] if before == after else [f"- before: {before}", f"- after: {after}"]
    starving = words.trouble(group)
    yield "\n".join([*lines, f"- {starving}"] if starving else lines)
    rows = ["| FlowSchema before | after | for example: `apflint explain ...` |", "|---|---|---|"]
    rows += [_row(way, group, found) for way in group.ways[: words.WAYS]]
    if len(group.ways) > words.WAYS:
        rows.append(f"| and {len(group.ways) - words.WAYS} more | | |")
    yield "\n".join(rows)


def _row(way: Way, group: Group, found: Difference) -> str:
    old, new = (
        f"{format_code(name)}{words.remark(name, found)}"
        for name in (way.old.flow_schema.name, way.new.flow_schema.name)
    )
    lines = [
        line
        for example in way.examples[: words.EXAMPLES]
        for line in (
            format_code(words.request(example)),
            *(f"{verb} {format_code(clause)}" for verb, clause in words.among(example, found)),
        )
    ]
    if way.is_rare:
        lines.append(words.RARE)
    if len(way.examples) > words.EXAMPLES:
        lines.append(f"and {len(way.examples) - words.EXAMPLES} more like these")
    if flows := words.flows(way, group):
        lines.append(f"flows: {_arrow(flows)}")
    return f"| {old} | {new} | {'<br>'.join(lines)} |"


def _levels(found: Difference) -> Iterator[str]:
    changed = [change for change in found.levels if change.is_changed]
    if not changed:
        return
    rows = [
        f"| Priority level | Change | {' | '.join(name for name, _ in _FIGURES)} |",
        f"|---|--:|{'--:|' * len(_FIGURES)}",
    ]
    rows += [_level_row(change) for change in changed[:_ROWS]]
    if len(changed) > _ROWS:
        rows.append(f"| and {len(changed) - _ROWS} more |{' |' * (len(_FIGURES) + 1)}")
    yield "#### Seats of each level"
    yield "\n".join(rows)
    yield (
        "Seats: its own. Least: what it never lends. Reach: what it comes to while others are idle."
        " Waiting: its queues times their length limit."
    )


def _level_row(change: LevelChange) -> str:
    added = " (added)" if change.old is None else " (removed)" if change.new is None else ""
    gain = f"{change.gain:+}" if change.gain else "0"
    figures = (_arrow(words.step(_figure(change.old, field), _figure(change.new, field))) for _, field in _FIGURES)
    return f"| {format_code(change.name)}{added} | {gain} | {' | '.join(figures)} |"


def _figure(level: LevelLimits | None, field: str) -> str:
    return "-" if level is None else str(getattr(level, field))


def _objects(found: Difference) -> Iterator[str]:
    if not found.objects:
        return
    lines = [
        f"- {each.change}: {each.kind} {format_code(each.name)} ({', '.join(map(format_code, each.details))})"
        for each in found.objects[: words.OBJECTS]
    ]
    if len(found.objects) > words.OBJECTS:
        lines.append(f"- and {len(found.objects) - words.OBJECTS} more")
    listed = "\n".join(lines)
    yield f"<details><summary>Objects that differ: {len(found.objects)}</summary>\n\n{listed}\n\n</details>"
