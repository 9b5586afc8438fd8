"""APF401, APF403, APF406, APF407, APF705: how FlowSchemas and levels refer to each other."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint import builtin, formats
from apflint.checks.objects import is_deleted_by_server
from apflint.effective import once
from apflint.finding import Elsewhere, Problem
from apflint.fixes import suggestions
from apflint.load.helm_output import find_helm_templates
from apflint.location import Path, Place
from apflint.model import FlowSchema
from apflint.wording import quote, suggest
from apflint.workspace import is_dangling_on_server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.effective import Effective
    from apflint.fix import Fix
    from apflint.load.document import Document
    from apflint.model import PriorityLevelConfiguration
    from apflint.workspace import Manifest

_LEVEL: Path = ("spec", "priorityLevelConfiguration", "name")
_NAME: Path = ("metadata", "name")


def dangling_priority_level(effective: Effective) -> Iterator[Problem]:
    """APF401."""
    documents = (manifest.document for manifest in _manifests(effective))
    written = {document.name for document in documents if document.kind == "PriorityLevelConfiguration"}
    for schema in effective.flow_schemas:
        name = schema.spec.priority_level_configuration
        if not name or formats.check_dns_subdomain(name) or name in effective.configuration.levels:
            continue
        if name in effective.configuration.unusable or name in written:
            continue  # the level is there and has findings of its own
        gone = builtin.lifetime("PriorityLevelConfiguration", name)
        candidates = _candidates(effective, name)
        near = suggest(name, candidates, 2)
        is_certain = effective.assumptions.complete or is_dangling_on_server(schema)
        message = (
            f"there is no priority level {quote(name)}"
            + ("" if is_certain else " here or built in")
            + ": the server ignores a FlowSchema whose level does not exist, and its requests go to the next one that"
            f" matches, in the end to global-default or catch-all.{near}"
        )
        if gone:
            message += f" Servers create a level of this name in Kubernetes {gone[0].name} to {gone[1].name}."
        if not is_certain:
            message += " If the level is defined elsewhere, name its file with --context"
        yield Problem(
            Place(schema.document, _LEVEL),
            message.rstrip("."),
            fix=_misspelt(name, candidates) if near and not gone else None,
            severity="error" if effective.assumptions.complete else None,
        )


def _misspelt(name: str, levels: Iterable[str]) -> Fix | None:
    """Names the one level that `name` is a letter off: `workload-lwo`, `globaldefault`, and not `team-b` for `team-a`."""
    near = [level for level in levels if _is_slip(name, level)]
    return suggestions.replace_value(_LEVEL, name, near[0], safe=False) if len(near) == 1 else None


def _is_slip(one: str, other: str) -> bool:
    ones, others = _words(one), _words(other)
    if "".join(ones) == "".join(others):
        return True
    if len(ones) != len(others):
        return False
    different = [pair for pair in zip(ones, others, strict=True) if pair[0] != pair[1]]
    return len(different) == 1 and _one_letter_off(*different[0])


def _words(name: str) -> list[str]:
    return name.replace(".", "-").split("-")


def _one_letter_off(one: str, other: str) -> bool:
    """One letter too many, missing, wrong, or two that changed places; no digit among them."""
    start = _alike(one, other)
    end = _alike(one[start:][::-1], other[start:][::-1])
    here, there = one[start : len(one) - end], other[start : len(other) - end]
    if any(letter.isdigit() for letter in here + there):
        return False
    # With few letters, another one makes another name rather than a wrong one: dev and def.
    swapped = len(here) == 2 and here == there[::-1]
    return (swapped and len(one) > 2) or (max(len(here), len(there)) == 1 and min(len(one), len(other)) > 3)


def _alike(one: str, other: str) -> int:
    """How many letters are the same from the start on."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _manifests(effective: Effective) -> Iterator[Manifest]:
    """All of them, those too that the server cannot decode: what they mean to be is there all the same."""
    return chain(effective.workspace.context, effective.workspace.manifests)


def _reference(manifest: Manifest) -> str:
    """The level that a FlowSchema names, as it is written."""
    if isinstance(manifest.object, FlowSchema):
        return manifest.object.spec.priority_level_configuration
    value = manifest.document.at(*_LEVEL)
    return value if isinstance(value, str) else ""


_MANY = 100
"""With more levels than these, only those that are a letter off are held against a name: each comparison takes 0.05 ms."""


def _candidates(effective: Effective, name: str) -> list[str]:
    """The levels whose names may be what `name` was meant to be."""
    levels = effective.configuration.levels
    if len(levels) <= _MANY:
        return list(levels)
    index = _by_shorter(effective)
    return list(dict.fromkeys(level for shorter in _shorter(name) for level in index.get(shorter, ())))


@once
def _by_shorter(effective: Effective) -> dict[str, list[str]]:
    """Levels by their names, and by their names with any one letter left out."""
    index: dict[str, list[str]] = {}
    for level in effective.configuration.levels:
        for shorter in _shorter(level):
            index.setdefault(shorter, []).append(level)
    return index


def _shorter(name: str) -> list[str]:
    """Two names have one of these in common if they are a letter off: one more, one less, another, or two that changed places."""
    return list(dict.fromkeys((name, *(name[:at] + name[at + 1 :] for at in range(min(len(name), 253))))))


def unused_priority_level(effective: Effective) -> Iterator[Problem]:
    """APF403."""
    led_to = {schema.spec.priority_level_configuration for schema in effective.configuration.order}
    led_to |= {_reference(found) for found in _manifests(effective) if found.document.kind == "FlowSchema"}
    for level in effective.priority_levels:
        if (
            not level.name
            or level.name in led_to
            or level.name in builtin.names(effective.release, level.document.kind)
        ):
            continue
        hint = "" if effective.assumptions.complete else " If one is defined elsewhere, name its file with --context"
        yield Problem(
            Place(level.document, _NAME),
            f"priority level {quote(level.name)} is not referenced by any FlowSchema, but takes seats from the other levels. Remove it, or reference it in a FlowSchema.{hint}",
            severity="warning" if effective.assumptions.complete else None,
        )


def level_after_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF406."""
    seen: dict[tuple[str, str], PriorityLevelConfiguration] = {}
    position = {manifest.document: number for number, manifest in enumerate(effective.workspace.manifests)}
    for level in effective.priority_levels:
        if level.name in builtin.names(effective.release, level.document.kind):
            continue  # it is there already
        seen.setdefault((level.document.source.name, level.name), level)
    for schema in effective.flow_schemas:
        later = seen.get((schema.document.source.name, schema.spec.priority_level_configuration))
        if later is None or position[later.document] < position[schema.document]:
            continue
        if not (_is_generated(later.document) or _is_generated(schema.document)):
            yield Problem(
                Place(schema.document, _LEVEL),
                f"priority level {quote(later.name)} is defined later in this file. `kubectl apply` sends objects in the order"
                " of the file, and the server ignores the FlowSchema until the priority level exists. Move the priority"
                " level before the FlowSchema",
                related=(Elsewhere(Place(later.document, _NAME), "the priority level"),),
            )


def _is_generated(document: Document) -> bool:
    """Whether a tool chose the order: that of a list, or the output of `helm template`, kustomize and others."""
    source = document.source
    return (
        bool(document.prefix)
        or source.rendered
        or ("# Source: " in source.text and bool(find_helm_templates(source.text)))
    )


def traffic_to_catch_all(effective: Effective) -> Iterator[Problem]:
    """APF407."""
    for schema in effective.flow_schemas:
        if schema.spec.priority_level_configuration != "catch-all" or schema.name == "catch-all":
            continue
        level = effective.limits.level("catch-all")
        seats = f"with {level.nominal} of {effective.assumptions.server_concurrency} seats and " if level else ""
        yield Problem(
            Place(schema.document, _LEVEL),
            f"catch-all is the priority level of last resort, {seats}without queues: requests that find no seat are rejected"
            " with 429 at once, and all FlowSchemas that reference it share its seats. To isolate these requests, reference a"
            " priority level of your own with few shares. If they need no isolation, global-default and workload-low have"
            " queues",
        )


def default_object_gone(effective: Effective) -> Iterator[Problem]:
    """APF705."""
    for manifest in effective.workspace.manifests:
        document = manifest.document
        life = builtin.lifetime(document.kind, document.name) if document.name else None
        if life is None or document.name in builtin.names(effective.release, document.kind):
            continue
        first, last = life
        if effective.release.minor < first.minor:
            continue  # of a later release: here it is an object like any other
        yield Problem(
            Place(document, _NAME),
            f"servers up to Kubernetes {last.name} created a {document.kind} {quote(document.name)} and"
            f" {effective.release.name} does not: this manifest no longer changes a built-in object, but creates one of your"
            " own. Remove it, or give it a name of your own",
            covered=is_deleted_by_server(effective.release, document),  # APF405 names the reason
        )
