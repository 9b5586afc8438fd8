"""`apflint diff`: which requests change FlowSchema or priority level from one configuration to another, and how seats change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from apflint.cli.outcome import note
from apflint.cli.progress import working
from apflint.cli.terminal import style
from apflint.diff.requests import Difference, Example, Group, Side, Way, compare_configurations
from apflint.inputs.cluster import read_configuration
from apflint.output.diff_words import Sides, covers
from apflint.output.explain import outcomes_json, place, resolution_json
from apflint.output.json_text import to_json
from apflint.output.limits import comparison_json, level_json
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.effective import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.inputs.cluster import ClusterOptions

_STDIN = "-"


def run(
    old: str,
    new: str,
    cluster: ClusterOptions,
    *,
    output: str,
    color: str,
    exit_zero: bool,
) -> int:
    """Prints what changes; 1 if anything does, 0 if nothing does or with `exit_zero`. ValueError, fit to be shown.

    `old` and `new`: a path, `-`, or `defaults:1.33`. Objects may differ and yet nothing change: then it is 0.
    """
    if old == new == _STDIN:
        raise ValueError("standard input can be OLD or NEW, not both")
    before, after = (read_configuration(path, cluster, note) for path in (old, new))
    for path, known in ((old, before), (new, after)):
        _say_if_empty(path, known)
    with working(lambda: "Comparing") as start:
        start()
        found = compare_configurations(
            Side(before.configuration, before.limits), Side(after.configuration, after.limits)
        )
    sides = Sides(_name(old), _name(new))
    sys.stdout.write(_rendered(found, sides, output, color))
    return 1 if found.changed and not exit_zero else 0


def _say_if_empty(path: str, known: Effective) -> None:
    # A path that was mistyped must not look like a cluster that loses all of its objects.
    if not known.workspace.manifests and not path.startswith("defaults:"):
        sys.stderr.write(
            f"apflint: {sanitize(_name(path))}: no FlowSchema and no PriorityLevelConfiguration in there\n"
        )


def _name(path: str) -> str:
    return "<stdin>" if path == _STDIN else path


def _rendered(found: Difference, sides: Sides, output: str, color: str) -> str:
    if output == "json":
        return to_json(as_json(found, sides), 2)
    if output == "markdown":
        from apflint.output import diff_markdown

        return diff_markdown.render(found, sides)
    from apflint.output import diff_text

    return diff_text.render(found, sides, style(color))


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
    `levels`: as in `limits --compare`. `objects`: what differs in the manifests: `kind`, `name`, `change` (removed, added,
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
