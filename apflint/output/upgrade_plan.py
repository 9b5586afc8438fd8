"""Renders the plan of an upgrade of Kubernetes as blocks and as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from apflint.builtin import list_names
from apflint.output.blocks import DOCUMENTS, Command, Facts, Group, Heading, Only, Prose, Text
from apflint.output.diff import TITLES, describe_borrowing, summarize_difference
from apflint.output.json_text import SCHEMA
from apflint.output.wanted_seats import levels_json
from apflint.releases import api_version
from apflint.wording import count_noun, join_some, join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.diff.objects import LevelChange
    from apflint.edit.upgrade_plan import FileChange, Step
    from apflint.output.blocks import Block

TITLE = "Plan of an upgrade of Kubernetes"
_MAX_LEVELS = 6
_LABEL_CELLS, _INDENT = 8, 10
_STORED = (
    "Objects in the cluster need no change: each release serves stored objects in every version that it has. Change the"
    " manifests, and clients that name an old version."
)


class PlanWords(NamedTuple):
    """Arguments of the commands that a plan suggests: the manifests, and the options of this run."""

    migrate: tuple[str, ...]
    diff: tuple[str, ...]


def report_plan(steps: Sequence[Step], words: PlanWords, configuration: str) -> Iterator[Block]:
    """Yield the numbered steps of an upgrade."""
    first, last = steps[0].old, steps[-1].new
    seats = steps[0].difference.old.limits.server_concurrency
    yield Only(DOCUMENTS, [Heading(TITLE, 1)])
    summary = (
        f"Kubernetes {first.name} -> {last.name} in {pluralize(len(steps), 'step')}, because kube-apiserver is upgraded one minor"
        " release at a time."
    )
    yield Prose([Text(summary, "bold"), _STORED, f"Configuration: {configuration}, {seats:,} seats in one API server"])
    for number, step in enumerate(steps, 1):
        yield Group([Heading(f"{number}. {step.old.name} -> {step.new.name}"), *_report_step(step, words)])


def _report_step(step: Step, words: PlanWords) -> Iterator[Block]:
    before = [*_describe_changes(step), *_describe_early(step)]
    if before:
        yield _list_facts("before", before)
    if step.changes:
        yield Command("apflint migrate", _write_migrate(step, words), _INDENT)
    if _is_notable(step):
        yield _list_facts("after", _describe_effect(step))
        yield Command("apflint diff", _write_diff(step, words), _INDENT)
    else:
        start = "" if before else "nothing to change; "
        yield _list_facts("after", [f"{start}no request moves, and no level gets other seats"])


def _list_facts(label: str, lines: Sequence[str]) -> Facts:
    return Facts([("" if number else label, line) for number, line in enumerate(lines)], _LABEL_CELLS, 2)


def _describe_changes(step: Step) -> Iterator[str]:
    """Yield what to write in the manifests before a step, with file and line."""
    for version in dict.fromkeys(change.version for change in step.changes):
        changes = [change for change in step.changes if change.version == version]
        objects = sum(remark.kind == "migrated" for change in changes for remark in change.remarks)
        first = changes[0].first
        when = f"Kubernetes {step.old.name}"
        if first.minor < step.old.minor:
            when = f"Kubernetes {first.name} to {step.old.name}"
        yield (
            f"{when}, before the upgrade to {step.new.name}: write {pluralize(objects, 'object')} in {version}"
            f" ({_describe_life(version)}), because {step.new.name} does not serve {_name_old(changes)}"
        )
        for change in changes:
            for remark in change.remarks:
                refused = "edit it manually: " if remark.kind == "refused" else ""
                owner = f"{remark.object}: " if remark.object else ""
                yield f"{change.file}:{remark.line}: {refused}{owner}{remark.message}"


def _describe_life(version: str) -> str:
    life = api_version(version)
    return "" if life is None else life.releases


def _name_old(changes: Sequence[FileChange]) -> str:
    messages = (remark.message for change in changes for remark in change.remarks if remark.kind == "migrated")
    return join_words(dict.fromkeys(message.partition(" ")[0] for message in messages), "and")


def _describe_early(step: Step) -> Iterator[str]:
    for version in dict.fromkeys(version for _, version in step.early):
        files = [file for file, other in step.early if other == version]
        yield (
            f"{join_some(files, _MAX_LEVELS)}: {step.old.name} does not serve {version} ({_describe_life(version)}), so these"
            " manifests cannot be applied yet. The plan assumes that the cluster has their objects in another version"
        )


def _is_notable(step: Step) -> bool:
    return step.difference.changed or bool(step.difference.objects)


def _describe_effect(step: Step) -> list[str]:
    """Return what a step changes: requests that move, seats of levels, and built-in objects."""
    difference = step.difference
    lines = [" ".join((*summarize_difference(difference), *describe_borrowing(difference)))]
    lines += [
        f"requests of {change.old.flow_schema.name} ({group.old.name}) go to {change.new.flow_schema.name} ({group.new.name}):"
        f" {TITLES[group.type]}"
        for group in difference.groups
        if group.type in ("priorityLevel", "flowSchema")
        for change in group.changes
    ]
    built_in = list_names(step.new, "PriorityLevelConfiguration")
    changed = sorted(
        (change for change in difference.levels if change.is_changed),
        key=lambda change: (change.name in built_in, -abs(change.gain)),  # the levels of the user come first
    )
    if changed:
        lines.append(f"seats: {join_some([*map(_describe_level, changed)], _MAX_LEVELS)}")
    if difference.objects:
        names = [f"{change.change} {change.kind} {change.name}" for change in difference.objects]
        lines.append(f"objects: {join_some(names, _MAX_LEVELS)}")
    return lines


def _describe_level(change: LevelChange) -> str:
    old, new = change.old, change.new
    if old is None or new is None:
        only = new or old
        return f"{change.name} {'new' if old is None else 'removed'}{'' if only is None else f' ({only.nominal})'}"
    nominal = f"{old.nominal}" if old.nominal == new.nominal else f"{old.nominal} -> {new.nominal}"
    attainable = "" if old.attainable == new.attainable else f" (attainable {old.attainable:,} -> {new.attainable:,})"
    return f"{change.name} {nominal}{attainable}"


def _write_migrate(step: Step, words: PlanWords) -> str:
    version = step.changes[0].version  # the same for all files: the newest version that both releases serve
    releases = f"{step.old.name}..{step.new.name}" if version in step.old.served else step.new.name
    return shlex.join(("--to", version, "--range" if ".." in releases else "--kubernetes", releases, *words.migrate))


def _write_diff(step: Step, words: PlanWords) -> str:
    return shlex.join((f"defaults:{step.old.name}", f"defaults:{step.new.name}", *words.diff))


def plan_json(steps: Sequence[Step], words: PlanWords, configuration: str) -> dict[str, object]:
    """Return the object that `migrate --plan --format json` prints."""
    return {
        "schema": SCHEMA,
        "configuration": configuration,
        "from": steps[0].old.name,
        "to": steps[-1].new.name,
        "serverConcurrency": steps[0].difference.old.limits.server_concurrency,
        "steps": [_step_json(step, words) for step in steps],
    }


def _step_json(step: Step, words: PlanWords) -> dict[str, object]:
    difference = step.difference
    return {
        "from": step.old.name,
        "to": step.new.name,
        "before": [
            {
                "file": change.file,
                "version": change.version,
                "since": change.first.name,
                "refused": change.is_refused,
                "changes": [
                    {
                        "line": remark.line,
                        "kind": remark.kind,
                        "object": remark.object or None,
                        "message": remark.message,
                    }
                    for remark in change.remarks
                ],
            }
            for change in step.changes
        ],
        "notServedYet": [{"file": file, "version": version} for file, version in step.early],
        "complete": difference.complete,
        "moves": [
            {
                "from": {"flowSchema": change.old.flow_schema.name, "priorityLevel": group.old.name},
                "to": {"flowSchema": change.new.flow_schema.name, "priorityLevel": group.new.name},
                "type": group.type,
            }
            for group in difference.groups
            for change in group.changes
        ],
        "levels": levels_json([change for change in difference.levels if change.is_changed]),
        "objects": [
            {"kind": change.kind, "name": change.name, "change": change.change, "details": [*change.details]}
            for change in difference.objects
        ],
        "commands": [
            *([f"apflint migrate {_write_migrate(step, words)}"] if step.changes else []),
            *([f"apflint diff {_write_diff(step, words)}"] if _is_notable(step) else []),
        ],
    }


def describe_sources(files: int, objects: int) -> str:
    """Return a description of the manifests of a plan."""
    return f"{count_noun(objects, 'object')} in {count_noun(files, 'file')}, and the built-in objects of each release"
