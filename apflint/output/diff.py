"""The differences of two configurations as text, as Markdown for a comment on a pull request, and as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from apflint.builtin import AUTOUPDATE, list_names
from apflint.diff.requests import has_flows
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.output.blocks import (
    DOCUMENTS,
    TEXT,
    Bullets,
    Column,
    Command,
    Details,
    Facts,
    Group,
    Heading,
    Lines,
    Only,
    Prose,
    Table,
    Text,
    get_plain,
)
from apflint.output.explain import matched_by_json, outcomes_json, place_json
from apflint.output.json_text import SCHEMA
from apflint.output.limits import level_json
from apflint.output.match_reasons import describe_match
from apflint.output.outcome_sentences import describe_starvation
from apflint.releases import BORROWING_MINOR
from apflint.wording import join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.diff.kubectl_apply import Drift
    from apflint.diff.objects import LevelChange
    from apflint.diff.requests import ChangedRequest, ChangeGroup, ConfigurationDifference, RequestChange
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.model import FlowSchema
    from apflint.output.blocks import Block, Cell, Inline
    from apflint.output.configuration_line import Sides

MAX_CHANGES, MAX_EXAMPLES, MAX_GROUPS, MAX_OBJECTS = 10, 3, 20, 30
"""Maximum numbers in text and Markdown: changes of a group, examples of a change, groups, objects. Further items are only counted.
JSON has all items."""
MAX_MARKDOWN_LEVELS = 40
"""Maximum number of levels in Markdown, so that a comment on GitHub stays below 65,536 characters."""
TITLES = {
    "priorityLevel": "another priority level",
    "flowSchema": "same priority level, another FlowSchema",
    "flow": "same FlowSchema, other flows",
    "limits": "same FlowSchema, other queues",
}
"""Description of each type of change."""
_RARE = "rare: only requests of a built-in user of Kubernetes that is in additional groups"
_LABEL_CELLS = 9
_MAX_NAMED = 3
_FIGURES = {
    "Nominal": "nominal",
    "Shares": "shares",
    "Min": "min",
    "Max": "max",
    "Attainable": "attainable",
    "Queued": "max_queued",
}
"""Columns of the table of levels, each with the attribute of `LevelLimits` that it shows."""
_OPTIONAL = ("Shares", "Max", "Queued")
"""Columns that a narrow terminal shows in a second table."""
_SHOWN = ("Change", "Nominal", "Min", "Attainable", "Queued")
"""Columns in Markdown."""


def report_difference(difference: ConfigurationDifference, sides: Sides) -> Iterator[Block]:
    """Yield the requests that move, the seats of levels, and the objects that differ."""
    first, *others = (*summarize_difference(difference), *describe_borrowing(difference))
    warnings = [*_warn_about_queues(difference)]
    warnings += ((Text(sentence, "warning"),) for sentence in sides.unserved)
    scope: Inline = (
        Text(sides.old, "name"),
        " -> ",
        Text(sides.new, "name"),
        f", {_describe_scope(difference, sides)}",
    )
    configuration = f"Configuration: {sides.description}"
    summary = Prose([Text(first, "bold"), *others, *warnings])
    yield Only(TEXT, [Group([summary, Prose([get_plain(scope), configuration], "dim")])])
    paragraph: tuple[str | Text, ...] = (Text(first, "bold"), *(f" {sentence}" for sentence in others))
    for warning in warnings:
        paragraph = (*paragraph, " ", *warning)
    yield Only(DOCUMENTS, [Heading("API Priority and Fairness", 1), Prose([paragraph, scope, configuration])])
    groups = [group for group in difference.groups if needs_own_section(group)]
    yield Only(TEXT, [_report_group(group, difference) for group in groups[:MAX_GROUPS]])
    for group in groups[:MAX_GROUPS]:
        yield Only(DOCUMENTS, _tabulate_group(group, difference))
    if left := sum(len(group.changes) for group in groups[MAX_GROUPS:]):
        yield Only(TEXT, [Prose([f"And {pluralize(left, 'more group')} of requests: see --format json."])])
        yield Only(DOCUMENTS, [Prose([f"And {pluralize(left, 'more group')} of requests, not shown here."])])
    if groups:
        yield Only(TEXT, [Prose(["Each request is an argument list of `apflint explain`."], "dim")])
    yield from _tabulate_levels([change for change in difference.levels if change.is_changed])
    upgrade = Prose(_describe_upgrade(difference, sides), "dim")
    yield Only(TEXT, [Group([*_list_objects(difference), upgrade])])
    yield Only(DOCUMENTS, _list_objects(difference, is_document=True))


def _report_group(group: ChangeGroup, difference: ConfigurationDifference) -> Group:
    facts = [
        ("seats", f"{label}: {text}") if label == "as before" else (label, text)
        for label, text in _list_level_facts(group)
    ]
    blocks: list[Block] = [_name_group(group), Facts(facts, _LABEL_CELLS, 2)]
    for change in group.changes[:MAX_CHANGES]:
        blocks += _report_change(change, group, difference)
    if (more := len(group.changes) - MAX_CHANGES) > 0:
        blocks.append(Facts((), indent=2, more=f"{more} more: see --format json"))
    return Group(blocks)


def _name_group(group: ChangeGroup) -> Heading:
    names: tuple[str | Text, ...] = (Text(group.old.name, "name"),)
    if group.old.name != group.new.name:
        names = (*names, " -> ", Text(group.new.name, "name"))
    return Heading(names, 2, TITLES[group.type])


def _report_change(change: RequestChange, group: ChangeGroup, difference: ConfigurationDifference) -> Iterator[Block]:
    names = (side.flow_schema.name for side in (change.old, change.new))
    yield Bullets([_format_step(*(f"{name}{_format_change(name, difference)}" for name in names))], "  ")
    for example in change.examples[:MAX_EXAMPLES]:
        yield Command("apflint explain", _format_request(example), 4)
        yield Facts(_list_causes(example, difference), _LABEL_CELLS, 6)
    if (more := len(change.examples) - MAX_EXAMPLES) > 0:
        yield Facts((), indent=4, more=f"{more} more like these: see --format json")
    flows = _describe_flows(change, group)
    facts = (("flows", flows), ("who", _RARE if change.is_rare else None))
    yield Facts([(label, text) for label, text in facts if text], _LABEL_CELLS, 4)


def _tabulate_group(group: ChangeGroup, difference: ConfigurationDifference) -> Iterator[Block]:
    yield _name_group(group)
    yield Facts([*_list_level_facts(group)])
    columns = [Column(title, "text") for title in ("FlowSchema before", "after", "for example: `apflint explain ...`")]
    more = len(group.changes) - MAX_CHANGES
    rows = [_list_cells(change, group, difference) for change in group.changes[:MAX_CHANGES]]
    yield Table(columns, rows, notes=[f"And {more} more."] if more > 0 else [])


def _list_cells(change: RequestChange, group: ChangeGroup, difference: ConfigurationDifference) -> tuple[Cell, ...]:
    names = [side.flow_schema.name for side in (change.old, change.new)]
    lines: list[Inline] = []
    for example in change.examples[:MAX_EXAMPLES]:
        lines.append(Text(_format_request(example), "name"))
        lines += [(f"{verb} ", Text(part, "name")) for verb, part in _list_causes(example, difference)]
    if change.is_rare:
        lines.append(_RARE)
    if (more := len(change.examples) - MAX_EXAMPLES) > 0:
        lines.append(f"and {more} more like these")
    if flows := _describe_flows(change, group):
        lines.append(f"flows: {flows}")
    return *((Text(name, "name"), _format_change(name, difference)) for name in names), Lines(lines)


def _tabulate_levels(changed: Sequence[LevelChange]) -> Iterator[Block]:
    meaning = (
        "Nominal: the seats of the level. Min: the seats that it never lends. Attainable: the seats that it can reach while"
        " all other levels are idle. Queued: its queues times their length limit."
    )
    columns = tuple(Column(title, is_optional=title in _OPTIONAL) for title in ("Change", *_FIGURES))
    rows: list[tuple[Cell, ...]] = []
    shown: list[tuple[Cell, ...]] = []
    for change in changed:
        gain, *steps = _level_steps(change)
        cells: tuple[str | Text, ...] = (
            Text(gain, "good" if change.gain > 0 else "error" if change.gain < 0 else ""),
            *steps,
        )
        rows.append((Text(f"{change.name}{_describe_presence(change)}", "bold"), *cells))
        figures = [cell for column, cell in zip(columns, cells, strict=True) if column.title in _SHOWN]
        shown.append(((Text(change.name, "name"), _describe_presence(change)), *figures))
    name = Column("Priority level", "name")
    yield Only(TEXT, [Table((name, *columns), rows)])
    titles = [column for column in columns if column.title in _SHOWN]
    title = "Seats of each level"
    table = Table((name, *titles), shown, title, [meaning], max_markdown_rows=MAX_MARKDOWN_LEVELS)
    yield Only(DOCUMENTS, [table])


def _list_objects(difference: ConfigurationDifference, *, is_document: bool = False) -> Iterator[Block]:
    """Yield the objects that differ, and the differences that remain in the cluster after `kubectl apply` (the drift)."""
    changes: list[Inline] = []
    for change in difference.objects:
        details = [part for detail in change.details for part in (", ", Text(detail, "name"))][1:]
        changes.append((f"{change.change}: {change.kind} ", Text(change.name, "name"), " (", *details, ")"))
    parts: list[tuple[str, Sequence[Inline]]] = []
    if changes:
        parts.append(("Objects that differ" if is_document else "Objects", changes))
    if difference.drift is not None:
        parts += ((title, [Text(item, "name") for item in items]) for title, items in _list_drift(difference.drift))
    for title, items in parts:
        shown, more = list(items[:MAX_OBJECTS]), len(items) - MAX_OBJECTS
        if more > 0:
            shown.append(f"and {more} more{'' if is_document else ': see --format json'}")
        yield Details(
            f"{title}: {len(items)}" if is_document else title, [Bullets(shown, "- " if is_document else "  ")]
        )


def _list_drift(drift: Drift) -> Iterator[tuple[str, list[str]]]:
    """Yield (title, descriptions of the items) for each part of a drift that is not empty."""
    parts = {
        "Only in the cluster (kubectl apply does not delete them)": [
            f"{kind} {name}" for kind, name in drift.only_live
        ],
        "Fields that the manifests do not set (kubectl apply keeps them)": [
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


def summarize_difference(difference: ConfigurationDifference) -> list[str]:
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
        sentences.append(
            f"Waiting requests of {pluralize(flow, 'FlowSchema')} are divided into flows in a different way."
        )
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


def describe_borrowing(difference: ConfigurationDifference) -> Iterator[str]:
    """If only one of the releases has borrowing, yield sentences about the effect on seats, with examples of levels."""
    releases = [side.limits.release for side in (difference.old, difference.new)]
    if releases[0].has_borrowing == releases[1].has_borrowing:
        return
    is_new = releases[1].has_borrowing
    without, others = releases if is_new else releases[::-1]
    yield (
        f"Borrowing is new in Kubernetes 1.{BORROWING_MINOR}: levels use idle seats that other levels lend, and get their own seats"
        " back within 10 seconds."
    )
    pairs = [(change.old, change.new) for change in difference.levels if change.old and change.new]
    levels = [pair if is_new else pair[::-1] for pair in pairs if not pair[0].is_exempt]
    if not levels:
        return
    built_in = list_names(others, "PriorityLevelConfiguration")
    # Levels of the manifests are of more interest than built-in ones.
    before, after = max(
        levels, key=lambda pair: (pair[0].name not in built_in, pair[1].attainable / max(pair[0].nominal, 1))
    )
    parts = [
        f"{quote(after.name)} has {before.nominal} seats in {without.name}, and up to {after.attainable} in {others.name}"
    ]
    before, after = max(levels, key=lambda pair: pair[1].nominal - pair[1].min)
    if after.min < after.nominal:
        parts.append(
            f"{quote(after.name)} keeps only {after.min} of its {after.nominal} seats while other levels borrow the rest"
        )
    yield f"{'; '.join(parts)}."


def _warn_about_queues(difference: ConfigurationDifference) -> Iterator[tuple[str | Text, ...]]:
    """Yield a warning if levels get fewer queues."""
    lowered = [
        (change.name, f" ({change.old.queues} -> {change.new.queues})")
        for change in difference.levels
        if change.lowers_queues and change.old and change.new
    ]
    if not lowered:
        return
    names: list[str | Text] = []
    shown = lowered if len(lowered) <= _MAX_NAMED else lowered[: _MAX_NAMED - 1]
    for number, (name, change) in enumerate(shown):
        is_last = number == len(lowered) - 1
        names += [" and " if is_last else ", "] if number else []
        names += [Text(name, "name"), change]
    if more := len(lowered) - len(shown):
        names.append(f" and {more} more")
    yield (
        "Warning: fewer queues can crash an API server that is busy with the level: ",
        *names,
        ". See APF608.",
    )


def _describe_scope(difference: ConfigurationDifference, sides: Sides) -> str:
    old, new = difference.old.limits, difference.new.limits
    kubernetes = _format_step(old.release.name, new.release.name)
    if sides.is_release_assumed:
        kubernetes += " (assumed: choose it with --kubernetes)"
    seats = _format_step(old.server_concurrency, new.server_concurrency)
    return f"Kubernetes {kubernetes}, {seats} seats in one API server"


def needs_own_section(group: ChangeGroup) -> bool:
    """Return whether the report describes a group in a separate section.

    If a group differs only in the seats of its level, it needs no section, because the table of levels
    shows the seats.
    """
    return group.type != "limits" or _describe_waiting(group.old) != _describe_waiting(group.new)


def _list_level_facts(group: ChangeGroup) -> Iterator[tuple[str, str]]:
    """Yield (label, sentence) about the old and the new priority level of a group of changes.

    Include a warning if the new level is limited and has 0 nominal seats, unless the same warning
    applies to the old level.
    """
    before, after = _describe_level(group.old), _describe_level(group.new)
    yield from [("as before", after)] if before == after else [("before", before), ("after", after)]
    problem = describe_starvation(group.new)
    if problem and problem != describe_starvation(group.old):
        yield "", problem


def _describe_level(level: LevelLimits) -> str:
    """Return the seats of a level, and what happens to requests without a free seat."""
    if level.is_exempt:
        return "exempt: every request is executed immediately"
    seats = f"nominal {level.nominal}"
    if level.attainable > level.nominal:
        seats += f", attainable {level.attainable}"
    return f"{seats}; {_describe_waiting(level)}"


def _describe_waiting(level: LevelLimits) -> str:
    if level.is_exempt:
        return ""
    if level.response != "Queue":
        return "requests without a free seat get 429 immediately"
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


def _format_request(example: ChangedRequest) -> str:
    """Return the request as arguments of `apflint explain`, quoted for a shell."""
    # `words` is None only for users that cannot exist: users without the groups that authentication adds.
    return shlex.join(example.witness.words or ())


def _list_causes(example: ChangedRequest, difference: ConfigurationDifference) -> list[tuple[str, str]]:
    """Return (label, part) for the parts of FlowSchemas that explain why the request moves.

    A part is the rule that matches the request. The label is `matched` for the FlowSchema of the old
    configuration, and `matches` for the FlowSchema of the new configuration. An unchanged FlowSchema is
    left out, because it is not the reason for the move.
    """
    causes: dict[str, str] = {}
    for verb, resolution in (("matched", example.old), ("matches", example.new)):
        part = _describe_part(resolution)
        if part and difference.flow_schema_change(resolution.flow_schema.name):
            causes.setdefault(part, verb)
    return [(verb, part) for part, verb in causes.items()]


def _describe_part(resolution: Resolution) -> str | None:
    """Describe the part of the FlowSchema that matches the request.

    Return None if no FlowSchema matches, and the server falls back to `catch-all`.
    """
    part = resolution.matched_by
    return None if part is None else describe_match(resolution.flow_schema, part)


def _format_change(name: str, difference: ConfigurationDifference) -> str:
    """Return ` (removed)`, ` (added)` or ` (changed)` for the FlowSchema `name`, or an empty string if it is unchanged."""
    change = difference.flow_schema_change(name)
    return "" if change is None else f" ({change.change})"


def _format_step(old: object, new: object) -> str:
    """Return both values as `1.33 -> 1.36`, or one value if they are equal. None becomes `-`."""
    before, after = (
        "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value) for value in (old, new)
    )
    return before if before == after else f"{before} -> {after}"


def _level_steps(change: LevelChange) -> list[str]:
    """Return table cells: the gain of a level in seats, and then the old and new value of each attribute in `_FIGURES`."""
    values = ((getattr(change.old, figure, None), getattr(change.new, figure, None)) for figure in _FIGURES.values())
    return [f"{change.gain:+}" if change.gain else "0", *(_format_step(*step) for step in values)]


def _describe_presence(change: LevelChange) -> str:
    """Return ` (added)` or ` (removed)` if only one configuration has the level, or an empty string."""
    return " (added)" if change.old is None else " (removed)" if change.new is None else ""


def _describe_upgrade(difference: ConfigurationDifference, sides: Sides) -> list[str]:
    """Return sentences about what a server does with existing objects after an upgrade to a newer release.

    The result is empty if one of the two sides is not `defaults:RELEASE`, or if the release of the
    second side is not newer.
    """
    old, new = difference.old.limits.release, difference.new.limits.release
    if old.minor >= new.minor or not all(name.startswith("defaults:") for name in (sides.old, sides.new)):
        return []
    served = (", ".join(release.served) or "none" for release in (old, new))
    sentences = [f"API versions served by default: {_format_step(*served)}."]
    if difference.objects and not new.maintains_objects:
        # Before kubernetes/kubernetes pull request 98028, servers do not update existing objects.
        sentences.append(f"A {new.name} server creates missing objects and leaves existing ones as they are.")
    elif difference.objects:
        # The server updates or deletes an object only if the annotation `apf.kubernetes.io/autoupdate-spec` of the
        # object is "true". Sources: NewFlowSchemaRemover and the suggested strategy in
        # pkg/registry/flowcontrol/ensurer, and recordings of kube-apiserver 1.36.2.
        kinds = {change.change for change in difference.objects}
        verbs = {"removed": "deletes removed objects", "changed": "updates changed objects"}
        if actions := [action for kind, action in verbs.items() if kind in kinds]:
            condition = f'if their annotation {AUTOUPDATE} is "true"'
            sentences.append(f"A {new.name} server {join_words(actions)}, {condition}.")
        if "added" in kinds:
            sentences.append(f"A {new.name} server creates missing objects.")
    return sentences


def diff_json(difference: ConfigurationDifference, sides: Sides) -> dict[str, object]:
    """Return the object that `diff --format json` prints. Unlike text and Markdown, JSON has all differences that were found.

    - `changed`: whether anything changes for a request or a level (exit status 1).
    - `complete`: false if the search for requests stopped at its limit. Some items of `changes` are then missing.
    - `old`, `new`: `name` as on the command line, `kubernetes`, `serverConcurrency`.
    - `kubernetesAssumed`: whether `kubernetes` of a side is the newest release because nothing states it.
    - `unserved`: sentences about API versions in the manifests that `kubernetes` does not serve.
    - `changes`: groups of requests, the most severe type of change first. Each group has:
      - `change`: `priorityLevel` (another level), `flowSchema` (another FlowSchema of the same level), `flow` (the same
        FlowSchema, but other flows), or `limits` (the same FlowSchema and level, but other seats or queues).
      - `from`, `to`: the level before and after: `priorityLevel`, `limits` as in `limits --format json`, and `outcomes` as
        in `explain --format json`.
      - `requests`: an item for each pair of FlowSchemas. `from` and `to` have `flowSchema`, `distinguisherMethod`, and
        `file` and `line` (null for built-in FlowSchemas). `witnesses` are one or more example requests: `words`
        (arguments of `apflint explain`), `record` (a line for `explain --requests`), `from` and `to`. In an example,
        `from` and `to` have `matchedBy` as in `explain`, and `covers`, which describes the matching part of the FlowSchema.
    - `levels`: `name`, `change` (added, removed, changed, same), `gain` (nominal seats), `queuesLowered` (whether the level gets
      fewer queues, which can crash a busy server), `old` and `new` as in `limits --format json`.
    - `objects`: objects that differ: `kind`, `name`, `change` (removed, added, changed), `details`.
    - `drift`: None, or if manifests are compared with the running cluster: `onlyInCluster`, objects that only the cluster
      has (`kind`, `name`); `keptFields`, fields that the manifests do not set, and that `kubectl apply` keeps (`kind`, `name`,
      `field`, `value`, `managers`); `managers`, field managers other than kubectl (`kind`, `name`, `managers`).
    """
    old, new = difference.old.limits, difference.new.limits
    return {
        "schema": SCHEMA,
        "configuration": sides.description,
        "changed": difference.changed,
        "complete": difference.complete,
        "old": _side(sides.old, old),
        "new": _side(sides.new, new),
        "kubernetesAssumed": sides.is_release_assumed,
        "unserved": list(sides.unserved),
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
            "from": _part_json(example.old),
            "to": _part_json(example.new),
        }
        for example in change.examples
    ]
    return {"from": _schema_json(change.old), "to": _schema_json(change.new), "witnesses": witnesses}


def _schema_json(resolution: Resolution) -> dict[str, Any]:
    schema = resolution.flow_schema
    method = schema.spec.distinguisher_method
    return {"flowSchema": schema.name, "distinguisherMethod": method, **place_json(schema)}


def _part_json(resolution: Resolution) -> dict[str, Any]:
    return {"matchedBy": matched_by_json(resolution.matched_by), "covers": _describe_part(resolution)}
