"""The sentences that `apflint diff` says in every format for people. Names in them are as in manifests, not yet escaped."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_MOVES
from apflint.diff.requests import has_flows
from apflint.evaluate.deadline import DEFAULT_WAIT_SECONDS
from apflint.evaluate.explanation import explain_match
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.outcomes import describe_starvation
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.diff.objects import ObjectChange
    from apflint.diff.requests import Difference, Example, Group, Way
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema

WAYS, EXAMPLES, GROUPS, OBJECTS = 10, 3, 20, 30
"""How many of each are shown to people; the rest is counted, and in the JSON."""


class Sides(NamedTuple):
    """What the user calls the two configurations."""

    old: str
    new: str


def headline(found: Difference) -> list[str]:
    """The answer: which requests go elsewhere, what happens to seats; one sentence each."""
    level, schema, flow = (len(found.ways(what)) for what in ("priorityLevel", "flowSchema", "flow"))
    said = ["No request changes its FlowSchema or its priority level."]
    if level and schema:
        total = pluralize(level + schema, "kind")
        said = [
            f"Requests of {total} go elsewhere: {level} to another priority level, {schema} to another FlowSchema of the same level."
        ]
    elif level:
        said = [f"Requests of {pluralize(level, 'kind')} go to another priority level."]
    elif schema:
        said = [f"Requests of {pluralize(schema, 'kind')} go to another FlowSchema of the same priority level."]
    if not found.complete:
        said.append(f"There are more of them: the search ends after {MAX_MOVES} requests.")
    if flow:
        said.append(f"Requests of {pluralize(flow, 'FlowSchema')} are told apart by something else when they wait.")
    said += _about_levels(found)
    if found.objects and not found.changed:
        said.append("The objects differ, but nothing follows from that.")
    return said


def _about_levels(found: Difference) -> list[str]:
    changed = [change for change in found.levels if change.is_changed]
    if not changed:
        return ["Every level keeps its seats and queues."]
    gained, lost = sum(change.gain > 0 for change in changed), sum(change.gain < 0 for change in changed)
    rest = len(changed) - gained - lost
    parts = [f"{pluralize(gained, 'level')} gain{'s' * (gained == 1)} seats"] if gained else []
    parts += [f"{pluralize(lost, 'level')} lose{'s' * (lost == 1)} some"] if lost and gained else []
    parts += [f"{pluralize(lost, 'level')} lose{'s' * (lost == 1)} seats"] if lost and not gained else []
    other = (
        "keeps its own seats but lends, borrows or queues"
        if rest == 1
        else "keep their own seats but lend, borrow or queue"
    )
    parts += [f"{pluralize(rest, 'level')} {other} differently"] if rest else []
    return [f"{', '.join(parts)}."]


def title(group: Group) -> str:
    """What the ways of a group have in common, after the names of the levels."""
    return {
        "priorityLevel": "another priority level",
        "flowSchema": "same priority level, another FlowSchema",
        "flow": "same FlowSchema, other flows",
        "limits": "same FlowSchema, other queues",
    }[group.what]


def shown(group: Group) -> bool:
    """Whether people are told of a group by itself: where only numbers of seats differ, the table of levels says it all."""
    return group.what != "limits" or _waiting(group.old) != _waiting(group.new)


def fate(level: LevelLimits) -> str:
    """How many seats requests have at a level, and what becomes of those that find none, in a line."""
    if level.type == "Exempt":
        return "exempt: executed at once, always"
    own = pluralize(level.nominal, "seat")
    if level.attainable > level.nominal:
        own += f", up to {level.attainable} while other levels are idle"
    return f"{own}; {_waiting(level)}"


def _waiting(level: LevelLimits) -> str:
    if level.type == "Exempt":
        return "executed at once, always"
    if level.response != "Queue":
        return "requests beyond that get 429 at once"
    if level.queues == 1:
        queue = "the one queue"
    elif level.hand_size == 1:
        queue = f"1 of {level.queues} queues"
    else:
        queue = f"1 of {level.hand_size} queues (of {level.queues})"
    wait = f"up to {DEFAULT_WAIT_SECONDS:g} seconds (with the default timeout)"
    return f"requests beyond that wait {wait} in {queue}, then get 429"


def trouble(group: Group) -> str | None:
    """That requests come to a level where they starve, if they do."""
    said = describe_starvation(group.new)
    return None if said is None or (said == describe_starvation(group.old)) else said


RARE = "rare: only a user of Kubernetes' own whom somebody has put into other groups as well"
"""Of a change that is exact and that hardly any cluster has."""


def flows(way: Way, group: Group) -> str | None:
    """How requests that wait are told apart before and after, where that changes; None if it does not, or nothing waits."""
    if not (has_flows(group.old) and has_flows(group.new)):
        return None
    before, after = (_method(side.flow_schema) for side in (way.old, way.new))
    return None if before == after else f"{before} -> {after}"


def _method(schema: FlowSchema) -> str:
    method = schema.spec.distinguisher_method
    return {BY_USER: "one for each user", BY_NAMESPACE: "one for each namespace"}.get(method or "", "all are one")


def request(example: Example) -> str:
    """The request as a command line, after `apflint explain`: quoted for a shell."""
    # In the world that is asked about there are always words for it.
    return shlex.join(example.witness.words or ())


def among(example: Example, found: Difference) -> list[tuple[str, str]]:
    """What the FlowSchemas that are the cause take, of which this is one request: `took` or `takes`, and a clause.

    A request only moves if the FlowSchema that took it, or the one that takes it now, is not what it was.
    """
    said: dict[str, str] = {}
    for verb, resolution in (("took", example.old), ("takes", example.new)):
        if change_of(resolution.flow_schema.name, found) is not None:
            clause = covers(resolution, example)
            if clause:
                said.setdefault(clause, verb)
    return [(verb, clause) for clause, verb in said.items()]


def covers(resolution: Resolution, example: Example) -> str | None:
    """The part of the FlowSchema that decides about the request, in words; None where none does (see `classify`)."""
    if resolution.matched_by is None:
        return None
    return explain_match(resolution.flow_schema, example.witness.digest).because.removeprefix("it matches ")


def change_of(name: str, found: Difference) -> ObjectChange | None:
    """What becomes of the FlowSchema of that name; None if it stays what it is."""
    return next((each for each in found.objects if each.kind == "FlowSchema" and each.name == name), None)


def remark(name: str, found: Difference) -> str:
    """` (removed)` or the like, to stand behind the name of a FlowSchema."""
    change = change_of(name, found)
    return "" if change is None else f" ({change.change})"


def step(old: object, new: object) -> str:
    """`1.33 -> 1.36`, or only one where both are the same."""
    return str(old) if old == new else f"{old} -> {new}"
