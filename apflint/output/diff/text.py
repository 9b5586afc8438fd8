"""The differences of two configurations for people: a summary, the requests that move, seats, and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from apflint.output.console import Painter, indent_lines, label_lines, wrap
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
    writer = _Writer(difference, style)
    parts = [writer.summary(sides)]
    groups = [group for group in difference.groups if phrases.needs_own_section(group)]
    parts += [writer.group(group) for group in groups[: phrases.MAX_GROUPS]]
    if left := sum(len(group.changes) for group in groups[phrases.MAX_GROUPS :]):
        parts.append([f"And {pluralize(left, 'more kind')} of requests: see --format json."])
    if groups:
        parts.append([writer.paint("Each request is an argument list of `apflint explain`.", "dim")])
    blocks = ["".join(f"{line}\n" for line in part) for part in parts]
    blocks.append(_levels(difference, style))
    blocks.append("".join(f"{line}\n" for line in writer.objects(sides)))
    return "\n".join(filter(None, blocks))


class _Writer:
    """What the lines of all parts need."""

    def __init__(self, difference: Difference, style: Style) -> None:
        self.difference = difference
        self.style = style
        self.paint = Painter(color=style.color)

    def summary(self, sides: Sides) -> list[str]:
        first, *others = phrases.summarize(self.difference)
        old, new = self.difference.old.limits, self.difference.new.limits
        origin = f"{sanitize(sides.old)} -> {sanitize(sides.new)}, Kubernetes"
        seats = f"{phrases.format_step(old.server_concurrency, new.server_concurrency)} seats in one API server"
        scope = f"{origin} {phrases.format_step(old.release.name, new.release.name)}, {seats}"
        return [
            *(self.paint(line, "bold") for line in wrap(first, self.style.prose_width)),
            *(line for sentence in others for line in wrap(sentence, self.style.prose_width)),
            *(self.paint(line, "dim") for line in wrap(scope, self.style.prose_width)),
        ]

    def group(self, group: ChangeGroup) -> list[str]:
        names = phrases.format_step(sanitize(group.old.name), sanitize(group.new.name))
        lines = [f"{self.paint(names, 'bold')}  {self.paint(f'({phrases.TITLES[group.type]})', 'dim')}"]
        before, after = phrases.describe_level(group.old), phrases.describe_level(group.new)
        if before == after:
            lines += self._labelled("seats", f"as before: {after}", 2)
        else:
            lines += [*self._labelled("before", before, 2), *self._labelled("after", after, 2)]
        if problem := phrases.describe_new_starvation(group):
            lines += self._labelled("", problem, 2)
        for change in group.changes[: phrases.MAX_CHANGES]:
            lines += self._change(change, group)
        if len(group.changes) > phrases.MAX_CHANGES:
            lines.append(f"  and {len(group.changes) - phrases.MAX_CHANGES} more: see --format json")
        return lines

    def _change(self, change: RequestChange, group: ChangeGroup) -> Iterator[str]:
        names = (
            f"{sanitize(side.flow_schema.name)}{phrases.format_change(side.flow_schema.name, self.difference)}"
            for side in (change.old, change.new)
        )
        yield from indent_lines(wrap(phrases.format_step(*names), self.style.prose_width, 2, 4), "  ")
        for example in change.examples[: phrases.MAX_EXAMPLES]:
            # Never broken into lines, so that it can be copied.
            yield f"    apflint explain {self.paint(sanitize(phrases.format_request(example)), 'info')}"
            for verb, part in phrases.list_causes(example, self.difference):
                yield from self._labelled(verb, part, 6)
        if len(change.examples) > phrases.MAX_EXAMPLES:
            yield f"    and {len(change.examples) - phrases.MAX_EXAMPLES} more like these: see --format json"
        if flows := phrases.describe_flows(change, group):
            yield from self._labelled("flows", flows, 4)
        if change.is_rare:
            yield from self._labelled("who", phrases.RARE, 4)

    def objects(self, sides: Sides) -> Iterator[str]:
        changes = self.difference.objects
        if changes:
            yield self.paint("Objects", "bold")
        for change in changes[: phrases.MAX_OBJECTS]:
            text = sanitize(f"{change.change}: {change.kind} {change.name} ({', '.join(change.details)})")
            yield from indent_lines(wrap(text, self.style.prose_width, 2, 4), "  ")
        if len(changes) > phrases.MAX_OBJECTS:
            yield f"  and {len(changes) - phrases.MAX_OBJECTS} more: see --format json"
        for sentence in phrases.describe_upgrade(self.difference, sides):
            yield from (self.paint(line, "dim") for line in wrap(sentence, self.style.prose_width))

    def _labelled(self, label: str, text: str, indent: int) -> list[str]:
        return label_lines(label, text, _LABEL_CELLS, self.style, self.paint, indent)


def _levels(difference: Difference, style: Style) -> str:
    changed = [change for change in difference.levels if change.is_changed]
    if not changed:
        return ""
    figures = ("nominal", "shares", "min", "max", "attainable", "max_queued")
    colors = {1: "green", 0: "", -1: "bold red"}
    rows: list[list[str | Text]] = []
    for change in changed:
        gain, *steps = phrases.level_steps(change, *figures)
        name = Text(phrases.name_with_change(change, sanitize_line(change.name)), "bold")
        rows.append([name, Text(gain, colors[(change.gain > 0) - (change.gain < 0)]), *steps])
    titles = ("PRIORITY LEVEL", "CHANGE", "NOMINAL", "SHARES", "MIN", "MAX", "ATTAINABLE", "QUEUED")
    return render_table(titles, rows, style, optional=("SHARES", "MAX", "QUEUED"))
