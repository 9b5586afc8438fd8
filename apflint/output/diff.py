"""The differences of two configurations as text, as Markdown for a comment on a pull request, and as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from apflint.builtin import AUTOUPDATE
from apflint.diff.requests import has_flows
from apflint.evaluate.explanation import explain_match
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.outcomes import DEFAULT_WAIT_SECONDS, describe_starvation
from apflint.output.console import hang, label_lines, render_prose
from apflint.output.explain import matched_by_json, outcomes_json, place_json
from apflint.output.json_text import SCHEMA
from apflint.output.limits import level_json
from apflint.output.markdown import format_code, format_prose
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.tables import Text, render_table
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.diff.apply import Drift
    from apflint.diff.objects import LevelChange
    from apflint.diff.requests import ChangeGroup, Difference, Example, RequestChange
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.model import FlowSchema
    from apflint.output.configuration import Sides
    from apflint.output.console import Style

MAX_CHANGES, MAX_EXAMPLES, MAX_GROUPS, MAX_OBJECTS = 10, 3, 20, 30
"""Maximum numbers of items in text and Markdown. Further items are only counted. JSON has all items."""
MAX_MARKDOWN_LEVELS = 40
"""Maximum number of levels in Markdown. With these limits, a comment on GitHub stays below 65,536 characters."""
TITLES = {
    "priorityLevel": "another priority level",
    "flowSchema": "same priority level, another FlowSchema",
    "flow": "same FlowSchema, other flows",
    "limits": "same FlowSchema, other queues",
}
"""Description of each type of change."""
_RARE = "rare: only a user of Kubernetes' own that is in additional groups"
_LABEL_CELLS = 9
_MAX_NAMED = 3
_FIGURES = {"Nominal": "nominal", "Min": "min", "Attainable": "attainable", "Queued": "max_queued"}


def render_text(difference: Difference, sides: Sides, style: Style) -> str:
    """Render the difference as text."""
    first, *others = _summarize(difference)
    summary = render_prose(style, first, color="bold") + render_prose(
        style, *others, *_warn_about_queues(difference, str)
    )
    scope = f"{sides.old} -> {sides.new}, {_describe_scope(difference)}"
    parts = [summary + render_prose(style, scope, f"Configuration: {sides.description}", color="dim")]
    groups = [group for group in difference.groups if needs_own_section(group)]
    shown = (_group_lines(group, difference, style) for group in groups[:MAX_GROUPS])
    parts += ("".join(f"{line}\n" for line in lines) for lines in shown)
    if left := sum(len(group.changes) for group in groups[MAX_GROUPS:]):
        parts.append(f"And {pluralize(left, 'more group')} of requests: see --format json.\n")
    if groups:
        parts.append(f"{style.paint('Each request is an argument list of `apflint explain`.', 'dim')}\n")
    objects = "".join(f"{line}\n" for line in (*_object_lines(difference, style), *_drift_lines(difference, style)))
    upgrade = render_prose(style, *_describe_upgrade(difference, sides), color="dim")
    return "\n".join(filter(None, (*parts, _level_table(difference, style), objects + upgrade)))


def _group_lines(group: ChangeGroup, difference: Difference, style: Style) -> Iterator[str]:
    names = _format_step(sanitize(group.old.name), sanitize(group.new.name))
    yield f"{style.paint(names, 'bold')}  {style.paint(f'({TITLES[group.type]})', 'dim')}"
    for label, text in _list_level_facts(group):
        fact = ("seats", f"{label}: {text}") if label == "as before" else (label, text)
        yield from label_lines(*fact, _LABEL_CELLS, style, 2)
    for change in group.changes[:MAX_CHANGES]:
        yield from _change_lines(change, group, difference, style)
    if len(group.changes) > MAX_CHANGES:
        yield f"  and {len(group.changes) - MAX_CHANGES} more: see --format json"


def _change_lines(change: RequestChange, group: ChangeGroup, difference: Difference, style: Style) -> Iterator[str]:
    names = (side.flow_schema.name for side in (change.old, change.new))
    step = _format_step(*(f"{name}{_format_change(name, difference)}" for name in names))
    yield from hang("  ", step, style.prose_width, 4)
    for example in change.examples[:MAX_EXAMPLES]:
        # The command stays on one line, so that users can copy it.
        yield f"    apflint explain {style.paint(sanitize(_format_request(example)), 'info')}"
        for verb, part in _list_causes(example, difference):
            yield from label_lines(verb, part, _LABEL_CELLS, style, 6)
    if len(change.examples) > MAX_EXAMPLES:
        yield f"    and {len(change.examples) - MAX_EXAMPLES} more like these: see --format json"
    if flows := _describe_flows(change, group):
        yield from label_lines("flows", flows, _LABEL_CELLS, style, 4)
    if change.is_rare:
        yield from label_lines("who", _RARE, _LABEL_CELLS, style, 4)


def _object_lines(difference: Difference, style: Style) -> Iterator[str]:
    changes = difference.objects
    if changes:
        yield style.paint("Objects", "bold")
    for change in changes[:MAX_OBJECTS]:
        text = f"{change.change}: {change.kind} {change.name} ({', '.join(change.details)})"
        yield from hang("  ", text, style.prose_width, 4)
    if len(changes) > MAX_OBJECTS:
        yield f"  and {len(changes) - MAX_OBJECTS} more: see --format json"


def _drift_lines(difference: Difference, style: Style) -> Iterator[str]:
    if difference.drift is None:
        return
    for title, items in _list_drift(difference.drift):
        yield style.paint(title, "bold")
        for item in items[:MAX_OBJECTS]:
            yield from hang("  ", item, style.prose_width, 4)
        if len(items) > MAX_OBJECTS:
            yield f"  and {len(items) - MAX_OBJECTS} more: see --format json"


def _list_drift(drift: Drift) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of a drift that are not empty: a title, and a description of each item."""
    parts = {
        "Only in the cluster (kubectl apply does not delete them)": [
            f"{kind} {name}" for kind, name in drift.only_live
        ],
        "Fields that the manifests do not set, and that stay": [
            f"{kept.kind} {kept.name}: {kept.field} {kept.value}{_describe_managers(kept.managers)}"
            for kept in drift.kept
        ],
        "Objects with fields of other managers": [
            f"{kind} {name}: {', '.join(managers)}" for kind, name, managers in drift.managers
        ],
    }
    yield from ((title, items) for title, items in parts.items() if items)


def _describe_managers(managers: tuple[str, ...]) -> str:
    return f" (set by {', '.join(managers)})" if managers else ""


def _level_table(difference: Difference, style: Style) -> str:
    changed = [change for change in difference.levels if change.is_changed]
    if not changed:
        return ""
    figures = ("nominal", "shares", "min", "max", "attainable", "max_queued")
    rows: list[list[str | Text]] = []
    for change in changed:
        gain, *steps = _level_steps(change, *figures)
        name = Text(_name_with_change(change, sanitize_line(change.name)), "bold")
        rows.append([name, Text(gain, {"+": "green", "-": "bold red"}.get(gain[0], "")), *steps])
    titles = ("PRIORITY LEVEL", "CHANGE", "NOMINAL", "SHARES", "MIN", "MAX", "ATTAINABLE", "QUEUED")
    return render_table(titles, rows, style, optional=("SHARES", "MAX", "QUEUED"))


def render_markdown(difference: Difference, sides: Sides) -> str:
    """Render the difference as Markdown for a comment."""
    first, *others = _summarize(difference)
    parts = [
        "### API Priority and Fairness",
        " ".join((f"**{first}**", *others, *map(_arrow, _warn_about_queues(difference, format_code)))),
        f"{format_code(sides.old)} → {format_code(sides.new)}, {_arrow(_describe_scope(difference))}",
        _arrow(format_prose(f"Configuration: {sides.description}")),
    ]
    groups = [group for group in difference.groups if needs_own_section(group)]
    for group in groups[:MAX_GROUPS]:
        parts += _group_markdown(group, difference)
    if left := sum(len(group.changes) for group in groups[MAX_GROUPS:]):
        parts.append(f"And {pluralize(left, 'more group')} of requests, not shown here.")
    parts += [*_levels_markdown(difference), *_objects_markdown(difference), *_drift_markdown(difference)]
    return "\n\n".join(parts) + "\n"


def _arrow(text: str) -> str:
    return text.replace("->", "→")


def _group_markdown(group: ChangeGroup, difference: Difference) -> Iterator[str]:
    names = _arrow(_format_step(format_code(group.old.name), format_code(group.new.name)))
    yield f"#### {names} ({TITLES[group.type]})"
    yield "\n".join(f"- {label}: {text}" if label else f"- {text}" for label, text in _list_level_facts(group))
    rows = ["| FlowSchema before | after | for example: `apflint explain ...` |", "|---|---|---|"]
    rows += [_row_markdown(change, group, difference) for change in group.changes[:MAX_CHANGES]]
    if len(group.changes) > MAX_CHANGES:
        rows.append(f"| and {len(group.changes) - MAX_CHANGES} more | | |")
    yield "\n".join(rows)


def _row_markdown(change: RequestChange, group: ChangeGroup, difference: Difference) -> str:
    names = [side.flow_schema.name for side in (change.old, change.new)]
    old, new = (f"{format_code(name)}{_format_change(name, difference)}" for name in names)
    lines = []
    for example in change.examples[:MAX_EXAMPLES]:
        lines.append(format_code(_format_request(example)))
        lines += [f"{verb} {format_code(part)}" for verb, part in _list_causes(example, difference)]
    if change.is_rare:
        lines.append(_RARE)
    if len(change.examples) > MAX_EXAMPLES:
        lines.append(f"and {len(change.examples) - MAX_EXAMPLES} more like these")
    if flows := _describe_flows(change, group):
        lines.append(f"flows: {_arrow(flows)}")
    return f"| {old} | {new} | {'<br>'.join(lines)} |"


def _levels_markdown(difference: Difference) -> Iterator[str]:
    changed = [change for change in difference.levels if change.is_changed]
    if not changed:
        return
    rows = [f"| Priority level | Change | {' | '.join(_FIGURES)} |", f"|---|--:|{'--:|' * len(_FIGURES)}"]
    for change in changed[:MAX_MARKDOWN_LEVELS]:
        name = _name_with_change(change, format_code(change.name))
        rows.append(f"| {name} | {_arrow(' | '.join(_level_steps(change, *_FIGURES.values())))} |")
    if len(changed) > MAX_MARKDOWN_LEVELS:
        rows.append(f"| and {len(changed) - MAX_MARKDOWN_LEVELS} more |{' |' * (len(_FIGURES) + 1)}")
    yield "#### Seats of each level"
    yield "\n".join(rows)
    yield (
        "Nominal: the seats of the level. Min: the seats that it never lends. Attainable: the seats that it can reach while"
        " all other levels are idle. Queued: its queues times their length limit."
    )


def _objects_markdown(difference: Difference) -> Iterator[str]:
    changes = difference.objects
    lines = [
        f"- {change.change}: {change.kind} {format_code(change.name)} ({', '.join(map(format_code, change.details))})"
        for change in changes[:MAX_OBJECTS]
    ]
    if len(changes) > MAX_OBJECTS:
        lines.append(f"- and {len(changes) - MAX_OBJECTS} more")
    if lines:
        items = "\n".join(lines)
        yield f"<details><summary>Objects that differ: {len(changes)}</summary>\n\n{items}\n\n</details>"


def _drift_markdown(difference: Difference) -> Iterator[str]:
    for title, items in _list_drift(difference.drift) if difference.drift is not None else ():
        lines = [f"- {format_code(item)}" for item in items[:MAX_OBJECTS]]
        if len(items) > MAX_OBJECTS:
            lines.append(f"- and {len(items) - MAX_OBJECTS} more")
        text = "\n".join(lines)
        yield f"<details><summary>{title}: {len(items)}</summary>\n\n{text}\n\n</details>"


def _summarize(difference: Difference) -> list[str]:
    """Return sentences about the requests that move, the seats of levels, and objects."""
    level, schema, flow = (len(difference.changes_of_type(kind)) for kind in ("priorityLevel", "flowSchema", "flow"))
    groups = level + schema
    sentences = [f"{groups} {'group of requests moves' if groups == 1 else 'groups of requests move'}"]
    if level and schema:
        sentences[0] += f": {level} to another priority level, {schema} to another FlowSchema of the same level."
    elif level:
        sentences[0] += " to another priority level."
    elif schema:
        sentences[0] += " to another FlowSchema of the same priority level."
    else:
        sentences = ["No request changes its FlowSchema or its priority level."] if difference.complete else []
    if not difference.complete:
        sentences.append("More requests may move: the search ended early.")
    if flow:
        sentences.append(f"Requests of {pluralize(flow, 'FlowSchema')} are split into other flows when they wait.")
    gains = [change.gain for change in difference.levels if change.is_changed]
    counts = {
        "with more seats": sum(gain > 0 for gain in gains),
        "with fewer seats": sum(gain < 0 for gain in gains),
        "with other limits or queues": gains.count(0),
    }
    levels = ", ".join(f"{pluralize(count, 'level')} {kind}" for kind, count in counts.items() if count)
    sentences.append(f"Priority levels: {levels or 'unchanged'}.")
    if difference.objects and not difference.changed:
        sentences.append("The objects differ, but without effect.")
    return sentences


def _warn_about_queues(difference: Difference, format_name: Callable[[str], str]) -> Iterator[str]:
    """Yield a warning if levels get fewer queues."""
    lowered = [
        f"{format_name(change.name)} ({change.old.queues} -> {change.new.queues})"
        for change in difference.levels
        if change.lowers_queues and change.old and change.new
    ]
    if lowered:
        names = join_some(lowered, _MAX_NAMED)
        yield f"Warning: fewer queues can crash an API server that is busy with the level: {names}. See APF608."


def _describe_scope(difference: Difference) -> str:
    old, new = difference.old.limits, difference.new.limits
    kubernetes = _format_step(old.release.name, new.release.name)
    seats = _format_step(old.server_concurrency, new.server_concurrency)
    return f"Kubernetes {kubernetes}, {seats} seats in one API server"


def needs_own_section(group: ChangeGroup) -> bool:
    """Return whether a group needs a section. It needs none if only seats differ, because the table of levels shows them."""
    return group.type != "limits" or _describe_waiting(group.old) != _describe_waiting(group.new)


def _list_level_facts(group: ChangeGroup) -> Iterator[tuple[str, str]]:
    """Yield labels and sentences about the levels of a group, and a warning if requests starve only after the change."""
    before, after = _describe_level(group.old), _describe_level(group.new)
    yield from [("as before", after)] if before == after else [("before", before), ("after", after)]
    problem = describe_starvation(group.new)
    if problem and problem != describe_starvation(group.old):
        yield "", problem


def _describe_level(level: LevelLimits) -> str:
    """Return the seats of a level, and what happens to requests without a free seat."""
    if level.is_exempt:
        return "exempt: every request is executed at once"
    seats = f"nominal {level.nominal}"
    if level.attainable > level.nominal:
        seats += f", attainable {level.attainable}"
    return f"{seats}; {_describe_waiting(level)}"


def _describe_waiting(level: LevelLimits) -> str:
    if level.is_exempt:
        return ""
    if level.response != "Queue":
        return "requests without a free seat get 429 at once"
    queue = f"1 of {level.hand_size} queues (of {level.queues})"
    if level.queues == 1 or level.hand_size == 1:
        queue = "the one queue" if level.queues == 1 else f"1 of {level.queues} queues"
    wait = f"up to {DEFAULT_WAIT_SECONDS:g} seconds (with the default timeout)"
    return f"requests without a free seat wait {wait} in {queue}, then get 429"


def _describe_flows(change: RequestChange, group: ChangeGroup) -> str | None:
    """Return how waiting requests are split into flows before and after, or None if their flows stay the same."""
    if not (has_flows(group.old) and has_flows(group.new)):
        return None
    before, after = (_describe_method(side.flow_schema) for side in (change.old, change.new))
    return None if before == after else f"{before} -> {after}"


def _describe_method(schema: FlowSchema) -> str:
    method = schema.spec.distinguisher_method
    return {BY_USER: "one per user", BY_NAMESPACE: "one per namespace"}.get(method or "", "one flow")


def _format_request(example: Example) -> str:
    """Return the request as arguments of `apflint explain`, quoted for a shell."""
    return shlex.join(example.witness.words or ())  # only the world `any` has requests without words


def _list_causes(example: Example, difference: Difference) -> list[tuple[str, str]]:
    """Return the parts of changed FlowSchemas that match the request, each with a label.

    The label is `matched` for the old configuration and `matches` for the new configuration. A request
    moves only because its old or its new FlowSchema has changed.
    """
    causes: dict[str, str] = {}
    for verb, resolution in (("matched", example.old), ("matches", example.new)):
        part = _describe_part(resolution, example)
        if part and difference.flow_schema_change(resolution.flow_schema.name):
            causes.setdefault(part, verb)
    return [(verb, part) for part, verb in causes.items()]


def _describe_part(resolution: Resolution, example: Example) -> str | None:
    """Describe the part of the FlowSchema that matches the request. Return None if the FlowSchema is only the fallback."""
    if resolution.matched_by is None:
        return None
    return explain_match(resolution.flow_schema, example.witness.digest).because.removeprefix("it matches ")


def _format_change(name: str, difference: Difference) -> str:
    """Return ` (removed)`, ` (added)` or ` (changed)` for the FlowSchema `name`, or an empty string if it is unchanged."""
    change = difference.flow_schema_change(name)
    return "" if change is None else f" ({change.change})"


def _format_step(old: object, new: object) -> str:
    """Return both values as `1.33 -> 1.36`, or one value if they are equal. None becomes `-`."""
    before, after = ("-" if value is None else str(value) for value in (old, new))
    return before if before == after else f"{before} -> {after}"


def _level_steps(change: LevelChange, *figures: str) -> list[str]:
    """Return the gain of a level in seats, and then the old and new value of each attribute of its limits in `figures`."""
    values = ((getattr(change.old, figure, None), getattr(change.new, figure, None)) for figure in figures)
    return [f"{change.gain:+}" if change.gain else "0", *(_format_step(*step) for step in values)]


def _name_with_change(change: LevelChange, name: str) -> str:
    """Return the name of a level. If only one configuration has the level, ` (added)` or ` (removed)` follows."""
    return f"{name} (added)" if change.old is None else f"{name} (removed)" if change.new is None else name


def _describe_upgrade(difference: Difference, sides: Sides) -> list[str]:
    """Return sentences about what a server of the new release does with existing objects.

    There are sentences only if both sides are the defaults of releases, and the new release is newer.
    """
    old, new = difference.old.limits.release, difference.new.limits.release
    if old.minor >= new.minor or not all(name.startswith("defaults:") for name in sides):
        return []
    served = (", ".join(release.served) or "none" for release in (old, new))
    sentences = [f"API versions served by default: {_format_step(*served)}."]
    if difference.objects and not new.maintains_objects:
        # kubernetes/kubernetes pull request 98028 came after these releases.
        sentences.append(f"A {new.name} server creates missing objects and leaves existing ones as they are.")
    elif difference.objects:
        # NewFlowSchemaRemover and the suggested strategy in pkg/registry/flowcontrol/ensurer; recorded on 1.36.2.
        sentences.append(
            f"A {new.name} server deletes removed objects and updates changed ones, if their annotation"
            f' {AUTOUPDATE} is "true".'
        )
    return sentences


def diff_json(difference: Difference, sides: Sides) -> dict[str, object]:
    """Return the object that `diff --format json` prints. It has all differences.

    - `changed`: whether anything changes for a request or a level (exit status 1).
    - `complete`: false if the search for requests stopped at its limit. Some items of `changes` are then missing.
    - `old`, `new`: `name` as on the command line, `kubernetes`, `serverConcurrency`.
    - `changes`: groups of requests, the most severe type of change first. Each group has:
      - `change`: `priorityLevel` (another level), `flowSchema` (another FlowSchema of the same level), `flow` (the same
        FlowSchema, but other flows), or `limits` (the same FlowSchema and level, but other seats or queues).
      - `from`, `to`: the level before and after: `priorityLevel`, `limits` as in `limits --format json`, and `outcomes` as
        in `explain --format json`.
      - `requests`: an item for each pair of FlowSchemas. `from` and `to` have `flowSchema`, `distinguisherMethod`, and
        `file` and `line` (null for built-in FlowSchemas). `witnesses` are one or more example requests: `words`
        (arguments of `apflint explain`), `record` (a line for `explain --requests`), `from` and `to`. In an example,
        `from` and `to` have `matchedBy` as in `explain`, and `covers`, which describes the matching part of the FlowSchema.
    - `levels`: `name`, `change` (added, removed, changed, same), `gain` in nominal seats, `queuesLowered` (fewer queues,
      which can crash a busy server), `old` and `new` as in `limits --format json`.
    - `objects`: objects that differ: `kind`, `name`, `change` (removed, added, changed), `details`.
    - `drift`: None, or if manifests are compared with the running cluster: `onlyInCluster`, objects that only the cluster
      has (`kind`, `name`); `keptFields`, fields that the manifests do not set, and that stay (`kind`, `name`, `field`,
      `value`, `managers`); `managers`, other managers of objects (`kind`, `name`, `managers`).
    """
    old, new = difference.old.limits, difference.new.limits
    return {
        "schema": SCHEMA,
        "configuration": sides.description,
        "changed": difference.changed,
        "complete": difference.complete,
        "old": _side(sides.old, old),
        "new": _side(sides.new, new),
        "changes": [_group_json(group, old, new) for group in difference.groups],
        "levels": [_level_change_json(change) for change in difference.levels],
        "objects": [
            {"kind": change.kind, "name": change.name, "change": change.change, "details": list(change.details)}
            for change in difference.objects
        ],
        "drift": None if difference.drift is None else _drift_json(difference.drift),
    }


def _drift_json(drift: Drift) -> dict[str, Any]:
    return {
        "onlyInCluster": [{"kind": kind, "name": name} for kind, name in drift.only_live],
        "keptFields": [
            {
                "kind": kept.kind,
                "name": kept.name,
                "field": kept.field,
                "value": kept.value,
                "managers": [*kept.managers],
            }
            for kept in drift.kept
        ],
        "managers": [{"kind": kind, "name": name, "managers": [*names]} for kind, name, names in drift.managers],
    }


def _side(name: str, limits: Limits) -> dict[str, Any]:
    return {"name": name, "serverConcurrency": limits.server_concurrency, "kubernetes": limits.release.name}


def _level_change_json(change: LevelChange) -> dict[str, Any]:
    kind = "added" if change.old is None else "removed" if change.new is None else "changed"
    return {
        "name": change.name,
        "change": kind if change.is_changed else "same",
        "gain": change.gain,
        "queuesLowered": change.lowers_queues,
        "old": None if change.old is None else level_json(change.old),
        "new": None if change.new is None else level_json(change.new),
    }


def _group_json(group: ChangeGroup, old: Limits, new: Limits) -> dict[str, Any]:
    ends = {"from": (group.old, old), "to": (group.new, new)}
    levels = {
        key: {"priorityLevel": level.name, "limits": level_json(level), "outcomes": outcomes_json(level, limits)}
        for key, (level, limits) in ends.items()
    }
    return {"change": group.type, **levels, "requests": [_change_json(change) for change in group.changes]}


def _change_json(change: RequestChange) -> dict[str, Any]:
    witnesses = [
        {
            "words": None if example.witness.words is None else list(example.witness.words),
            "record": example.witness.record,
            "from": _part_json(example.old, example),
            "to": _part_json(example.new, example),
        }
        for example in change.examples
    ]
    return {"from": _schema_json(change.old), "to": _schema_json(change.new), "witnesses": witnesses}


def _schema_json(resolution: Resolution) -> dict[str, Any]:
    schema = resolution.flow_schema
    method = schema.spec.distinguisher_method
    return {"flowSchema": schema.name, "distinguisherMethod": method, **place_json(schema)}


def _part_json(resolution: Resolution, example: Example) -> dict[str, Any]:
    return {"matchedBy": matched_by_json(resolution.matched_by), "covers": _describe_part(resolution, example)}
