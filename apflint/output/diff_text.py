"""What `apflint diff` prints for people: the answer, then what happens to which requests, to seats, to objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output import diff_words as words
from apflint.output.console import Painter, indent_lines, wrap
from apflint.output.limits import render_comparison
from apflint.output.sanitize import sanitize
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.diff.requests import Difference, Group, Way
    from apflint.output.console import Style
    from apflint.output.diff_words import Sides


def render(found: Difference, sides: Sides, style: Style) -> str:
    """The text, ending in a newline."""
    paint = Painter(color=style.color)
    parts = [[*_answer(found, sides, style, paint)]]
    groups = [group for group in found.groups if words.shown(group)]
    parts += [[*_group(group, found, style, paint)] for group in groups[: words.GROUPS]]
    if len(groups) > words.GROUPS:
        left = sum(len(group.ways) for group in groups[words.GROUPS :])
        parts.append([f"And {pluralize(left, 'more kind')} of requests: --format json has all."])
    if groups:
        explain = "Each request is in the words of `apflint explain`, which says more about it."
        parts.append([paint(line, "dim") for line in wrap(explain, style.width)])
    if any(change.is_changed for change in found.levels):
        parts.append(
            render_comparison(found.old.limits, found.new.limits, width=style.width, paint=paint).split("\n")[:-1]
        )
    if found.objects:
        parts.append([*_objects(found, style, paint)])
    if all(name.startswith("defaults:") for name in sides) and found.objects:
        releases = " ".join(name.removeprefix("defaults:") for name in sides)
        more = f"What a server does with such objects that exist: apflint defaults --diff {sanitize(releases)}"
        parts.append([paint(more, "dim")])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _answer(found: Difference, sides: Sides, style: Style, paint: Painter) -> Iterator[str]:
    first, *rest = words.headline(found)
    yield from (paint(line, "bold") for line in wrap(first, style.width))
    for sentence in rest:
        yield from wrap(sentence, style.width)
    old, new = found.old.limits, found.new.limits
    where = f"{sanitize(sides.old)} -> {sanitize(sides.new)}"
    yield from (
        paint(line, "dim")
        for line in wrap(f"{where}, Kubernetes {words.step(old.release.name, new.release.name)}", style.width)
    )


def _group(group: Group, found: Difference, style: Style, paint: Painter) -> Iterator[str]:
    names = words.step(sanitize(group.old.name), sanitize(group.new.name))
    yield f"{paint(names, 'bold')}  {paint(f'({words.title(group)})', 'dim')}"
    before, after = words.fate(group.old), words.fate(group.new)
    if before == after:
        yield from _labelled("seats", f"as before: {after}", 2, style, paint)
    else:
        yield from _labelled("before", before, 2, style, paint)
        yield from _labelled("after", after, 2, style, paint)
    if starving := words.trouble(group):
        yield from _labelled("", starving, 2, style, paint)
    for way in group.ways[: words.WAYS]:
        yield from _way(way, group, found, style, paint)
    if len(group.ways) > words.WAYS:
        yield f"  and {len(group.ways) - words.WAYS} more: --format json has all"


def _way(way: Way, group: Group, found: Difference, style: Style, paint: Painter) -> Iterator[str]:
    old, new = way.old.flow_schema.name, way.new.flow_schema.name
    source, target = (f"{sanitize(name)}{words.remark(name, found)}" for name in (old, new))
    yield from indent_lines(wrap(words.step(source, target), style.width, 2, 4), "  ")
    for example in way.examples[: words.EXAMPLES]:
        # Never broken into lines: it is there to be copied.
        yield f"    apflint explain {paint(sanitize(words.request(example)), 'info')}"
        for verb, clause in words.among(example, found):
            yield from _labelled(verb, sanitize(clause), 6, style, paint)
    if len(way.examples) > words.EXAMPLES:
        yield f"    and {len(way.examples) - words.EXAMPLES} more like these: --format json has all"
    if flows := words.flows(way, group):
        yield from _labelled("flows", flows, 4, style, paint)
    if way.is_rare:
        yield from _labelled("who", words.RARE, 4, style, paint)


def _labelled(label: str, text: str, indent: int, style: Style, paint: Painter) -> Iterator[str]:
    column = indent + 8
    first, *rest = wrap(text, style.width, column, column)
    yield f"{' ' * indent}{paint(label, 'dim')}{' ' * (8 - len(label))}{first}"
    yield from indent_lines(rest, " " * column)


def _objects(found: Difference, style: Style, paint: Painter) -> Iterator[str]:
    yield paint("Objects", "bold")
    for each in found.objects[: words.OBJECTS]:
        text = f"{each.change}: {each.kind} {sanitize(each.name)} ({sanitize(', '.join(each.details))})"
        yield from indent_lines(wrap(text, style.width, 2, 4), "  ")
    if len(found.objects) > words.OBJECTS:
        yield f"  and {len(found.objects) - words.OBJECTS} more: --format json has all"
