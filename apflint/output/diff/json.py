"""The differences of two configurations as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.output.diff.phrases import describe_part
from apflint.output.explain import matched_by_json, outcomes_json, place_json
from apflint.output.limits import level_json

if TYPE_CHECKING:
    from apflint.diff.levels import LevelChange
    from apflint.diff.requests import ChangeGroup, Difference, Example, RequestChange
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.output.diff.phrases import Sides


def diff_json(difference: Difference, sides: Sides) -> dict[str, object]:
    """Return the object that `diff --format json` prints, with everything that differs.

    `changed`: whether any request or level fares differently (exit status 1). `complete`: false if so much changes that the
    search for requests was ended; `changes` then lacks some. `old`, `new`: `name` as on the command line, `kubernetes`,
    `serverConcurrency`. `changes`: groups of requests that fare differently, the most severe first, each with `change`:

    - `priorityLevel`: another level; `flowSchema`: another FlowSchema of the same level;
    - `flow`: the same FlowSchema splits them into other flows (`distinguisherMethod`);
    - `limits`: the same FlowSchema and level, but the level has other seats or queues;

    `from` and `to`: the level before and after: `priorityLevel`, `limits` as in `limits --format json`, and `fates` as in
    `explain --format json`; `requests`: each a pair of FlowSchemas, `from` and `to` (`flowSchema`, `distinguisherMethod`,
    `file` and `line`, null for built-in ones), and `witnesses`, at least one: a request as `words` (arguments of `apflint
    explain`) and as `record` (a line for `explain --requests`), with `from` and `to`: `matchedBy` as in `explain`, and
    `covers`, that part of the FlowSchema in words. `levels`: `name`, `change` (added, removed, changed, same), `gain` of
    nominal seats, `old` and `new` as in `limits --format json`. `objects`: what differs in the manifests: `kind`, `name`,
    `change` (removed, added, changed), `details`.
    """
    old, new = difference.old.limits, difference.new.limits
    return {
        "schema": 1,
        "changed": difference.changed,
        "complete": difference.complete,
        "old": _side(sides.old, old),
        "new": _side(sides.new, new),
        "changes": [_group(group, old, new) for group in difference.groups],
        "levels": [_level_change(change) for change in difference.levels],
        "objects": [
            {"kind": change.kind, "name": change.name, "change": change.change, "details": list(change.details)}
            for change in difference.objects
        ],
    }


def _side(name: str, limits: Limits) -> dict[str, Any]:
    return {"name": name, "serverConcurrency": limits.server_concurrency, "kubernetes": limits.release.name}


def _level_change(change: LevelChange) -> dict[str, Any]:
    kind = "added" if change.old is None else "removed" if change.new is None else "changed"
    return {
        "name": change.name,
        "change": kind if change.is_changed else "same",
        "gain": change.gain,
        "old": None if change.old is None else level_json(change.old),
        "new": None if change.new is None else level_json(change.new),
    }


def _group(group: ChangeGroup, old: Limits, new: Limits) -> dict[str, Any]:
    return {
        "change": group.type,
        "from": _level(group.old, old),
        "to": _level(group.new, new),
        "requests": [_change(change) for change in group.changes],
    }


def _level(level: LevelLimits, limits: Limits) -> dict[str, Any]:
    return {
        "priorityLevel": level.name,
        "limits": level_json(level),
        "fates": outcomes_json(level, limits),
    }


def _change(change: RequestChange) -> dict[str, Any]:
    return {
        "from": _schema(change.old),
        "to": _schema(change.new),
        "witnesses": [
            {
                "words": None if example.witness.words is None else list(example.witness.words),
                "record": example.witness.record,
                "from": _part(example.old, example),
                "to": _part(example.new, example),
            }
            for example in change.examples
        ],
    }


def _schema(resolution: Resolution) -> dict[str, Any]:
    schema = resolution.flow_schema
    return {
        "flowSchema": schema.name,
        "distinguisherMethod": schema.spec.distinguisher_method,
        **place_json(schema),
    }


def _part(resolution: Resolution, example: Example) -> dict[str, Any]:
    return {"matchedBy": matched_by_json(resolution.matched_by), "covers": describe_part(resolution, example)}
