"""Sentences and figures that text and Markdown share. Names in them are as in manifests, not sanitized."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from apflint.budgets import MAX_MOVES
from apflint.builtin import AUTOUPDATE
from apflint.diff.requests import has_flows
from apflint.evaluate.deadline import DEFAULT_WAIT_SECONDS
from apflint.evaluate.explanation import explain_match
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.outcomes import describe_starvation
from apflint.record import NamedTuple
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.diff.levels import LevelChange
    from apflint.diff.requests import ChangeGroup, Difference, Example, RequestChange
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema

MAX_CHANGES, MAX_EXAMPLES, MAX_GROUPS, MAX_OBJECTS = 10, 3, 20, 30
"""How many to show to people; the others are counted, and in the JSON."""
TITLES = {
    "priorityLevel": "another priority level",
    "flowSchema": "same priority level, another FlowSchema",
    "flow": "same FlowSchema, other flows",
    "limits": "same FlowSchema, other queues",
}
"""What the requests of a group have in common."""
RARE = "rare: only a user of Kubernetes' own that is in additional groups"


class Sides(NamedTuple):
    """The user's names of the two configurations."""

    old: str
    new: str


def summarize(difference: Difference) -> list[str]:
    """Return sentences on the requests that move, on seats, and on objects."""
    level, schema, flow = (
        len(difference.changes_of_type(change_type)) for change_type in ("priorityLevel", "flowSchema", "flow")
    )
    if level and schema:
        first = (
            f"Requests of {pluralize(level + schema, 'kind')} move: {level} to another priority level,"
            f" {schema} to another FlowSchema of the same level."
        )
    elif level:
        first = f"Requests of {pluralize(level, 'kind')} move to another priority level."
    elif schema:
        first = f"Requests of {pluralize(schema, 'kind')} move to another FlowSchema of the same priority level."
    else:
        first = "No request changes its FlowSchema or its priority level."
    sentences = [first]
    if not difference.complete:
        sentences.append(f"There are more: the search ends after {MAX_MOVES} requests.")
    if flow:
        sentences.append(f"Requests of {pluralize(flow, 'FlowSchema')} are split into other flows when they wait.")
    sentences.append(_summarize_levels([change for change in difference.levels if change.is_changed]))
    if difference.objects and not difference.changed:
        sentences.append("The objects differ, but without effect.")
    return sentences


def _summarize_levels(changed: list[LevelChange]) -> str:
    gained, lost = sum(change.gain > 0 for change in changed), sum(change.gain < 0 for change in changed)
    rest = len(changed) - gained - lost
    counts = ((gained, "with more seats"), (lost, "with fewer seats"), (rest, "with other limits or queues"))
    parts = [f"{pluralize(count, 'level')} {kind}" for count, kind in counts if count]
    return f"Priority levels: {', '.join(parts) or 'unchanged'}."


def needs_own_section(group: ChangeGroup) -> bool:
    """Whether to show a group: if only numbers of seats differ, the table of levels shows everything."""
    return group.type != "limits" or _describe_waiting(group.old) != _describe_waiting(group.new)


def describe_level(level: LevelLimits) -> str:
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


def describe_new_starvation(group: ChangeGroup) -> str | None:
    """Return that requests now starve at their level, or None if they do not, or did so before."""
    problem = describe_starvation(group.new)
    return None if problem == describe_starvation(group.old) else problem


def describe_flows(change: RequestChange, group: ChangeGroup) -> str | None:
    """Return how waiting requests are split into flows before and after, or None if nothing changes."""
    if not (has_flows(group.old) and has_flows(group.new)):
        return None
    before, after = (_describe_method(side.flow_schema) for side in (change.old, change.new))
    return None if before == after else f"{before} -> {after}"


def _describe_method(schema: FlowSchema) -> str:
    method = schema.spec.distinguisher_method
    return {BY_USER: "one per user", BY_NAMESPACE: "one per namespace"}.get(method or "", "one flow")


def format_request(example: Example) -> str:
    """Return the request as arguments of `apflint explain`, quoted for a shell."""
    return shlex.join(example.witness.words or ())  # never None for requests of authenticated users


def list_causes(example: Example, difference: Difference) -> list[tuple[str, str]]:
    """Return the parts of differing FlowSchemas that match the request, each with `matched` or `matches`.

    A request moves only if the FlowSchema that captured it, or the one that captures it now, differs.
    """
    causes: dict[str, str] = {}
    for verb, resolution in (("matched", example.old), ("matches", example.new)):
        part = describe_part(resolution, example)
        if part and difference.flow_schema_change(resolution.flow_schema.name):
            causes.setdefault(part, verb)
    return [(verb, part) for part, verb in causes.items()]


def describe_part(resolution: Resolution, example: Example) -> str | None:
    """Return the part of the FlowSchema that matches the request, or None if the server falls back to it."""
    if resolution.matched_by is None:
        return None
    return explain_match(resolution.flow_schema, example.witness.digest).because.removeprefix("it matches ")


def format_change(name: str, difference: Difference) -> str:
    """Return ` (removed)` or the like, to put behind the name of a FlowSchema; empty if it is the same."""
    change = difference.flow_schema_change(name)
    return "" if change is None else f" ({change.change})"


def format_step(old: object, new: object) -> str:
    """Return `1.33 -> 1.36`, or one value if both are the same; `-` for None."""
    before, after = ("-" if value is None else str(value) for value in (old, new))
    return before if before == after else f"{before} -> {after}"


def level_steps(change: LevelChange, *figures: str) -> list[str]:
    """Return the gain of a level, and how these figures of it change."""
    values = ((getattr(change.old, figure, None), getattr(change.new, figure, None)) for figure in figures)
    return [f"{change.gain:+}" if change.gain else "0", *(format_step(*step) for step in values)]


def name_with_change(change: LevelChange, name: str) -> str:
    """Return the name of a level, and whether it is added or removed."""
    return f"{name} (added)" if change.old is None else f"{name} (removed)" if change.new is None else name


def describe_upgrade(difference: Difference, sides: Sides) -> list[str]:
    """Return sentences on what a server of the new release does; none unless both sides are releases, old and new."""
    old, new = difference.old.limits.release, difference.new.limits.release
    if old.minor >= new.minor or not all(name.startswith("defaults:") for name in sides):
        return []
    served = (", ".join(release.served) or "none" for release in (old, new))
    sentences = [f"API versions served by default: {format_step(*served)}."]
    if difference.objects and not new.maintains_objects:
        # kubernetes/kubernetes pull request 98028 came after these releases.
        sentences.append(f"A {new.name} server creates missing objects and leaves existing ones as they are.")
    elif difference.objects:
        # NewFlowSchemaRemover and the suggested strategy in pkg/registry/flowcontrol/ensurer; recorded on 1.36.2.
        sentences.append(
            f"A {new.name} server deletes removed objects and updates changed ones, unless their annotation"
            f' {AUTOUPDATE} is "false".'
        )
    return sentences
