"""A comparison of two configurations as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.output.diff_words import Sides, covers
from apflint.output.explain import outcomes_json, place, resolution_json
from apflint.output.limits import comparison_json, level_json

if TYPE_CHECKING:
    from apflint.diff.requests import Difference, Example, Group, Way
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits, Limits


def as_json(found: Difference, sides: Sides) -> dict[str, object]:
    """The object that `diff --format json` prints. Nothing that was found is left out of it.

    `changed`: whether any request or level fares differently (exit status 1). `complete`: false where so much changes that
    the search for requests that move was ended; `changes` then lacks some. `old`, `new`: `name` as on the command line,
    `kubernetes`, `serverConcurrency`. `changes`: groups of ways in which requests fare differently, gravest first, each
    with `change`:

    - `priorityLevel`: they go to another level; `flowSchema`: to another FlowSchema of the same level;
    - `flow`: the same FlowSchema tells them apart by something else (`distinguisherMethod`), so other requests wait with them;
    - `limits`: the same FlowSchema and level, but the level has other seats or queues;

    `from` and `to`: the level before and after: `priorityLevel`, `limits` as in `limits --format json`, and `fates` as in
    `explain --format json`; `requests`: each a pair of FlowSchemas, `from` and `to` (`flowSchema`, `distinguisherMethod`,
    `file` and `line`, null for what is built in), and `witnesses`, at least one: a request as `words` (the arguments of
    `apflint explain`) and as `record` (a line for `explain --requests`), with `from` and `to`: `matchedBy` as in `explain`,
    and `covers`, that part of the FlowSchema in words.
    `levels`: as in `limits --format json`, before and after. `objects`: what differs in the manifests: `kind`, `name`, `change` (removed, added,
    changed), `details`.
    """
    old, new = found.old.limits, found.new.limits
    levels: dict[str, Any] = comparison_json(old, new)
    return {
        "schema": 1,
        "changed": found.changed,
        "complete": found.complete,
        "old": {"name": sides.old, **levels["old"]},
        "new": {"name": sides.new, **levels["new"]},
        "changes": [_group_json(group, old, new) for group in found.groups],
        "levels": levels["levels"],
        "objects": [
            {"kind": each.kind, "name": each.name, "change": each.change, "details": list(each.details)}
            for each in found.objects
        ],
    }


def _group_json(group: Group, old: Limits, new: Limits) -> dict[str, Any]:
    return {
        "change": group.what,
        "from": _level_json(group.old, old),
        "to": _level_json(group.new, new),
        "requests": [_way_json(way) for way in group.ways],
    }


def _level_json(level: LevelLimits, limits: Limits) -> dict[str, Any]:
    return {
        "priorityLevel": level.name,
        "limits": level_json(level, limits),
        "fates": outcomes_json(level, limits),
    }


def _way_json(way: Way) -> dict[str, Any]:
    return {
        "from": _schema_json(way.old),
        "to": _schema_json(way.new),
        "witnesses": [
            {
                "words": None if example.witness.words is None else list(example.witness.words),
                "record": example.witness.record,
                "from": _part_json(example.old, example),
                "to": _part_json(example.new, example),
            }
            for example in way.examples
        ],
    }


def _schema_json(resolution: Resolution) -> dict[str, Any]:
    schema = resolution.flow_schema
    where = place(schema)
    return {
        "flowSchema": schema.name,
        "distinguisherMethod": schema.spec.distinguisher_method,
        "file": where[0] if where else None,
        "line": where[1] if where else None,
    }


def _part_json(resolution: Resolution, example: Example) -> dict[str, Any]:
    return {"matchedBy": resolution_json(resolution)["matchedBy"], "covers": covers(resolution, example)}
