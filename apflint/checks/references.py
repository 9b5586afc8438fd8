"""APF401, APF403, APF406, APF407: priority levels that FlowSchemas reference."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.effective import once
from apflint.finding import Elsewhere, Problem
from apflint.fixes.suggestions import replace_value
from apflint.formats import check_dns_subdomain
from apflint.load.helm_output import find_helm_templates
from apflint.location import Path, Place
from apflint.model import FlowSchema
from apflint.wording import did_you_mean, pluralize, quote
from apflint.workspace import is_dangling_on_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.load.document import Document
    from apflint.model import PriorityLevelConfiguration
    from apflint.workspace import Manifest

_LEVEL: Path = ("spec", "priorityLevelConfiguration", "name")
_NAME: Path = ("metadata", "name")
_CONTEXT = "if it is defined elsewhere, add its file with --context"
MAX_COMPARED_LEVELS = 100
"""Number of priority levels to compare with an unknown name, 0.05 ms each. Of more levels, only those with a typo are."""


def dangling_priority_level(effective: Effective) -> Iterator[Problem]:
    """APF401."""
    documents = (manifest.document for manifest in _manifests(effective))
    written = {document.name for document in documents if document.kind == "PriorityLevelConfiguration"}
    for schema in effective.flow_schemas:
        name = schema.spec.priority_level_configuration
        if not name or check_dns_subdomain(name) or name in effective.configuration.levels:
            continue
        if name in effective.configuration.unusable or name in written:
            continue  # the level has its own findings
        lifetime = builtin.find_lifetime("PriorityLevelConfiguration", name)
        candidates = _candidates(effective, name)
        question = did_you_mean(name, candidates, 2)
        is_certain = effective.assumptions.complete or is_dangling_on_server(schema)
        notes = ["The API server skips a FlowSchema whose priority level does not exist."]
        if lifetime:
            notes.append(f"Kubernetes {lifetime[0].name} to {lifetime[1].name} create a priority level of this name.")
        intended = [level for level in candidates if _is_typo(name, level)] if question and not lifetime else []
        yield Problem(
            Place(schema.document, _LEVEL),
            f"priority level {quote(name)} does not exist" if is_certain else f"unknown priority level {quote(name)}",
            notes=tuple(notes),
            help=" ".join(filter(None, [question, None if is_certain else _CONTEXT])) or None,
            fix=replace_value(_LEVEL, name, intended[0], safe=False) if len(intended) == 1 else None,
            severity="error" if effective.assumptions.complete else None,
        )


def _manifests(effective: Effective) -> Iterator[Manifest]:
    """Return all manifests, including those that the server cannot decode."""
    return chain(effective.workspace.context, effective.workspace.manifests)


def _candidates(effective: Effective, name: str) -> list[str]:
    """Return the priority levels to compare with an unknown name."""
    levels = effective.configuration.levels
    if len(levels) <= MAX_COMPARED_LEVELS:
        return list(levels)
    index = _levels_by_deletion(effective)
    return list(dict.fromkeys(level for deletion in _deletions(name) for level in index.get(deletion, ())))


@once
def _levels_by_deletion(effective: Effective) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for level in effective.configuration.levels:
        for deletion in _deletions(level):
            index.setdefault(deletion, []).append(level)
    return index


def _deletions(name: str) -> dict[str, None]:
    """Return a name, and the name without each of its characters. Two names that differ by a typo have one in common."""
    return dict.fromkeys((name, *(name[:index] + name[index + 1 :] for index in range(min(len(name), 253)))))


def _is_typo(name: str, other: str) -> bool:
    """Whether two names differ by one typo: `workload-lwo` or `globaldefault`, but not `team-b` and `team-a`."""
    words, others = (side.replace(".", "-").split("-") for side in (name, other))
    if "".join(words) == "".join(others):
        return True
    different = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return len(words) == len(others) and len(different) == 1 and _is_letter_typo(*different[0])


def _is_letter_typo(word: str, other: str) -> bool:
    """Whether one letter is added, missing or wrong, or two letters are swapped. A digit makes another name."""
    start = _common_length(word, other)
    end = _common_length(word[start:][::-1], other[start:][::-1])
    rest, other_rest = word[start : len(word) - end], other[start : len(other) - end]
    if any(letter.isdigit() for letter in rest + other_rest):
        return False
    # In a short word, another letter makes another name: dev and def.
    is_swapped = len(rest) == 2 and rest == other_rest[::-1]
    return (is_swapped and len(word) > 2) or (max(len(rest), len(other_rest)) == 1 and min(len(word), len(other)) > 3)


def _common_length(word: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(word, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(word), len(other)))


def unused_priority_level(effective: Effective) -> Iterator[Problem]:
    """APF403."""
    referenced = {schema.spec.priority_level_configuration for schema in effective.configuration.order}
    referenced |= {_reference(manifest) for manifest in _manifests(effective) if manifest.document.kind == "FlowSchema"}
    built_in = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    unused = [level for level in effective.priority_levels if level.name not in {"", *referenced, *built_in}]
    seats = {level.name: level.nominal for level in effective.limits.levels} if unused else {}
    total = effective.assumptions.server_concurrency
    for level in unused:
        taken = seats.get(level.name, 0)
        yield Problem(
            Place(level.document, _NAME),
            f"priority level {quote(level.name)} is not referenced by any FlowSchema",
            notes=(f"It still takes {taken} of {pluralize(total, 'seat')} from the other priority levels.",)
            if taken
            else (),
            help="remove it, or reference it in a FlowSchema"
            if effective.assumptions.complete
            else "remove it, or reference it in a FlowSchema; if one is defined elsewhere, add its file with --context",
            severity="warning" if effective.assumptions.complete else None,
        )


def _reference(manifest: Manifest) -> str:
    """Return the priority level that a FlowSchema references, even if the server cannot decode the FlowSchema."""
    if isinstance(manifest.object, FlowSchema):
        return manifest.object.spec.priority_level_configuration
    value = manifest.document.at(*_LEVEL)
    return value if isinstance(value, str) else ""


def level_after_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF406."""
    built_in = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    levels: dict[tuple[str, str], PriorityLevelConfiguration] = {}
    for level in effective.priority_levels:
        if level.name not in built_in:
            levels.setdefault((level.document.source.name, level.name), level)
    order = {manifest.document: index for index, manifest in enumerate(effective.workspace.manifests)}
    for schema in effective.flow_schemas:
        document = schema.document
        later = levels.get((document.source.name, schema.spec.priority_level_configuration))
        if later is None or order[later.document] < order[document]:
            continue
        if not (_is_generated(later.document) or _is_generated(document)):
            yield Problem(
                Place(document, _LEVEL),
                f"priority level {quote(later.name)} is defined later in this file",
                related=(Elsewhere(Place(later.document, _NAME), "the priority level"),),
                notes=(
                    "kubectl apply sends objects in the order of the file.",
                    "The API server skips the FlowSchema until the priority level exists.",
                ),
                help="move the priority level before the FlowSchema",
            )


def _is_generated(document: Document) -> bool:
    """Whether a tool chose the order: that of a list, or the output of `helm template`, kustomize and the like."""
    source = document.source
    is_from_helm = "# Source: " in source.text and bool(find_helm_templates(source.text))
    return bool(document.prefix) or source.rendered or is_from_helm


def traffic_to_catch_all(effective: Effective) -> Iterator[Problem]:
    """APF407."""
    for schema in effective.flow_schemas:
        if schema.spec.priority_level_configuration != "catch-all" or schema.name == "catch-all":
            continue
        level = effective.limits.level("catch-all")
        seats = f"{level.nominal} of {effective.assumptions.server_concurrency} seats" if level else "few seats"
        yield Problem(
            Place(schema.document, _LEVEL),
            "FlowSchema references catch-all, the priority level of last resort",
            notes=(
                f"catch-all has {seats} and no queues: requests without a free seat are rejected with 429 at once.",
                "All FlowSchemas that reference catch-all share its seats.",
            ),
            help="to isolate requests, reference your own priority level with few shares; otherwise use global-default or"
            " workload-low, which have queues",
        )
