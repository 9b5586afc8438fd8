"""APF204, APF401, APF403, APF406 to APF408: references of FlowSchemas to priority levels."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.capacity import seats_taken
from apflint.checks.metadata import reject_name
from apflint.edit_operations import Set
from apflint.finding import Elsewhere, Problem, required
from apflint.fixes.field_fixes import replace_value
from apflint.load.helm_output import find_helm_templates
from apflint.location import Path, Place
from apflint.named_tuple import NamedTuple
from apflint.spelling import did_you_mean, find_similar, is_within_distance
from apflint.string_formats import check_dns_subdomain
from apflint.wording import pluralize, quote
from apflint.workspace import is_dangling_on_server

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.effective_configuration import Effective, Renaming
    from apflint.load.document import Document
    from apflint.load.source_text import Source
    from apflint.model import FlowSchema, PriorityLevelConfiguration
    from apflint.workspace import Manifest, Workspace

_LEVEL: Path = ("spec", "priorityLevelConfiguration", "name")
_NAME: Path = ("metadata", "name")
_MAX_OTHER_REFERENCES = 10
"""Maximum number of related places of a finding of APF408."""
MAX_COMPARISONS = 10_000
"""Maximum number of comparisons of an unknown name with the name of a priority level, to find typos. Each comparison takes
0.05 ms. If more comparisons would be necessary, APF401 compares no names and suggests no name."""


def invalid_level_reference(workspace: Workspace) -> Iterator[Problem]:
    """APF204: report FlowSchemas whose reference to a priority level contains no name, or a name that is not valid."""
    built_in = builtin.list_names(workspace.release, "PriorityLevelConfiguration")
    for schema in workspace.flow_schemas:
        place, name = Place(schema.document, _LEVEL), schema.spec.priority_level_configuration
        if not name:
            suggestion = "add priorityLevelConfiguration: {name: ...}"
            yield required(place, "FlowSchema references no priority level", help=suggestion)
        elif wrong := check_dns_subdomain(name):
            similar = name.strip().lower().replace("_", "-")
            is_known = similar in built_in or any(level.name == similar for level in workspace.priority_levels)
            yield reject_name(
                place,
                "priority level name",
                name,
                wrong,
                suggestion=f"did you mean {quote(similar)}?" if is_known else None,
                fix=replace_value(_LEVEL, name, similar, safe=False) if is_known else None,
            )


def dangling_priority_level(effective: Effective) -> Iterator[Problem]:
    """APF401: report references to priority levels that do not exist."""
    levels, complete = effective.configuration.levels, effective.assumptions.complete
    written = {manifest.document.name for manifest in _manifests(effective, "PriorityLevelConfiguration")}
    # A level that the server rejects still counts as known here, because other rules report why it is rejected.
    known = {*levels, *effective.configuration.unusable, *written}
    dangling = [
        schema
        for schema in effective.flow_schemas
        if (name := schema.spec.priority_level_configuration) not in known and not check_dns_subdomain(name)
    ]
    names = {schema.spec.priority_level_configuration for schema in dangling}
    candidates = tuple(levels) if len(levels) * len(names) <= MAX_COMPARISONS else ()
    for schema in dangling:
        name = schema.spec.priority_level_configuration
        lifetime = builtin.find_lifetime("PriorityLevelConfiguration", name)
        question = did_you_mean(name, candidates, 2)
        is_certain = complete or is_dangling_on_server(schema)
        notes = ["The API server skips a FlowSchema whose priority level does not exist."]
        if lifetime:
            releases = f"from Kubernetes {lifetime[0].name} to {lifetime[1].name}"
            notes.append(f"{quote(name)} is built in {releases}; the checked release is {effective.release.name}.")
        context = None if is_certain else f"if another file defines {quote(name)}, {_add_file(effective)}"
        intended = [level for level in find_similar(name, candidates, 2) if not lifetime and _is_typo(name, level)]
        yield Problem(
            Place(schema.document, _LEVEL),
            f"priority level {quote(name)} does not exist" if is_certain else f"unknown priority level {quote(name)}",
            notes=tuple(notes),
            help=" ".join(filter(None, [question, context])) or None,
            fix=replace_value(_LEVEL, name, intended[0], safe=False) if len(intended) == 1 else None,
        )


def _manifests(effective: Effective, kind: str) -> Iterator[Manifest]:
    """Yield all manifests of a kind, including those of `--context` and those that the server cannot decode."""
    for manifest in (*effective.workspace.context, *effective.workspace.manifests):
        if manifest.document.kind == kind:
            yield manifest


def _add_file(effective: Effective) -> str:
    """Return advice to add a missing file to the check, as a clause such as `add that file with --context`.

    If the checked files belong to one cluster, the clause says to add the file to the `paths` of the
    cluster.
    """
    if effective.assumptions.one_cluster:
        return "add that file to the paths of the cluster in the settings"
    return "add that file with --context"


def _is_typo(name: str, other: str) -> bool:
    """Return whether one of the names is a typo of the other name.

    Examples are `workload-lwo` and `globaldefault`. The names `team-b` and `team-a` are no typos.
    """
    words, others = (side.replace(".", "-").split("-") for side in (name, other))
    if "".join(words) == "".join(others):
        return True
    different = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return len(words) == len(others) and len(different) == 1 and _is_letter_typo(*different[0])


def _is_letter_typo(word: str, other: str) -> bool:
    """Return whether one letter is added, missing or wrong, or two letters are swapped. A different digit is not a typo."""
    if re.findall("[0-9]", word) != re.findall("[0-9]", other) or not is_within_distance(word, other, 1):
        return False
    # If two short words differ in one letter, such as dev and def, this is probably not a typo.
    return min(len(word), len(other)) > (2 if sorted(word) == sorted(other) else 3)


def unused_priority_level(effective: Effective) -> Iterator[Problem]:
    """APF403: report priority levels that no FlowSchema references, and the seats that these levels take.

    APF603 does not report the seats of unreferenced levels.
    """
    referenced = {schema.spec.priority_level_configuration for schema in effective.configuration.order}
    written = (manifest.document.at(*_LEVEL) for manifest in _manifests(effective, "FlowSchema"))
    referenced |= {name for name in written if isinstance(name, str)}
    built_in = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    unused = [level for level in effective.priority_levels if level.name not in {"", *referenced, *built_in}]
    misspelled = _find_misspelled_levels(effective) if unused else ()
    unused = [level for level in unused if level.name not in misspelled]
    seats = {level.name: level.nominal for level in effective.limits.levels} if unused else {}
    total = effective.assumptions.server_concurrency
    complete = effective.assumptions.complete
    elsewhere = (
        "" if complete else f"; if a FlowSchema in another file references the priority level, {_add_file(effective)}"
    )
    seats_problems = _find_seats_of_unused(effective, {level.document for level in unused}) if unused else {}
    for level in unused:
        taken, of_all = seats.get(level.name, 0), seats_problems.get(level.document)
        note = f"The priority level still takes {taken} of {pluralize(total, 'seat')} from the other priority levels."
        yield Problem(
            Place(level.document, _NAME),
            f"priority level {quote(level.name)} is not referenced by any FlowSchema",
            notes=(*((note,) if taken else ()), *(_describe_seats_taken(of_all) if of_all else ())),
            help=f"remove the priority level, or reference it in a FlowSchema{elsewhere}",
            severity="warning" if complete or (of_all and of_all.severity == "warning") else None,
        )


def _find_misspelled_levels(effective: Effective) -> frozenset[object]:
    """Return the names of the priority levels that some FlowSchema references by a misspelled name.

    Fixes of APF401 write these names.
    """
    fixes = (problem.fix for problem in dangling_priority_level(effective) if problem.fix is not None)
    return frozenset(operation.value for fix in fixes for operation in fix.operations if isinstance(operation, Set))


def _find_seats_of_unused(effective: Effective, unused: Collection[Document]) -> dict[Document | None, Problem]:
    """Return {document: problem} with the problem of APF603 that new levels take seats from other levels.

    The document defines the new level that takes the most seats. The result is empty if APF603 reports
    no such problem, or if the problem names a level that is not in `unused`.
    """
    return {
        problem.place.document: problem
        for problem in seats_taken(effective)
        if all(place.document in unused for place in problem.places)
    }


def _describe_seats_taken(problem: Problem) -> Iterator[str]:
    """Yield notes for a finding about unused levels. `problem` is the problem of APF603 about their seats.

    If several levels are unused, the first note states how many seats these levels take together. The
    notes of `problem`, which list seats before and after, follow if several levels are unused, or if
    the severity of `problem` is warning.
    """
    if problem.related:
        yield f"Together, {problem.message}."
    if problem.related or problem.severity == "warning":
        yield from problem.notes


def level_after_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF406: report priority levels that a file defines after a FlowSchema that references them."""
    built_in = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    levels: dict[tuple[str, str], PriorityLevelConfiguration] = {}
    for level in effective.priority_levels:
        if level.name not in built_in:
            levels.setdefault((level.document.source.name, level.name), level)
    order = {manifest.document: index for index, manifest in enumerate(effective.workspace.manifests)}
    is_from_helm = cache(_is_from_helm)
    for schema in effective.flow_schemas:
        document = schema.document
        later = levels.get((document.source.name, schema.spec.priority_level_configuration))
        if later is None or order[later.document] < order[document]:
            continue
        # Do not report objects in lists of kubectl, or in the output of `helm template` or kustomize: no author chose
        # the order of these objects.
        source = document.source
        if not (document.prefix or later.document.prefix or source.rendered or is_from_helm(source)):
            yield Problem(
                Place(document, _LEVEL),
                f"priority level {quote(later.name)} is defined later in this file",
                related=(Elsewhere(Place(later.document, _NAME), "the priority level"),),
                notes=(
                    "kubectl apply creates the FlowSchema first, because it sends objects in the order of the file.",
                    "The API server skips the FlowSchema until the priority level exists.",
                ),
                help="move the priority level before the FlowSchema",
            )


def _is_from_helm(source: Source) -> bool:
    return "# Source: " in source.text and bool(find_helm_templates(source.text))


def traffic_to_catch_all(effective: Effective) -> Iterator[Problem]:
    """APF407: report FlowSchemas that reference the priority level `catch-all`."""
    level = effective.limits.level("catch-all")
    seats = f"{level.nominal} of {effective.assumptions.server_concurrency} seats" if level else "few seats"
    for schema in effective.flow_schemas:
        if schema.spec.priority_level_configuration == "catch-all" and schema.name != "catch-all":
            yield Problem(
                Place(schema.document, _LEVEL),
                "FlowSchema references catch-all, the priority level of last resort",
                notes=(
                    f"All FlowSchemas that reference catch-all share its {seats}.",
                    "catch-all has no queues: the API server answers 429 immediately to requests without a free seat.",
                ),
                # The documentation of Kubernetes suggests `catch-all` to isolate requests. So the help names another way
                # to isolate them.
                help="to isolate these requests, define a small priority level for them; otherwise, use workload-low or global-default",
            )


def reference_not_renamed(effective: Effective) -> Iterator[Problem]:
    """APF408: report references to priority levels that a kustomization renames. Kustomize does not rename the references.

    All broken references of a kustomization are one problem.
    """
    broken: dict[str, list[_BrokenReference]] = {}
    for reference in _find_broken_references(effective) if effective.assumptions.renamings else ():
        broken.setdefault(reference.renaming.kustomization, []).append(reference)
    for kustomization, ((schema, level, renaming), *others) in broken.items():
        name = f"{renaming.prefix}{level.name}{renaming.suffix}"
        count = f"{len(others) + 1} references to them" if others else "this reference"
        levels = "priority levels, such as" if others else "priority level"
        yield Problem(
            Place(schema.document, _LEVEL),
            f"{kustomization} renames {levels} {quote(level.name)} to {quote(name)}, but does not update {count}",
            related=(
                Elsewhere(Place(level.document, _NAME), "the priority level"),
                *(
                    Elsewhere(Place(other.schema.document, _LEVEL), "another reference")
                    for other in others[:_MAX_OTHER_REFERENCES]
                ),
            ),
            notes=(
                "kustomize renames only the references that it knows, and it does not know the reference of a FlowSchema to a priority level.",
                "The API server skips a FlowSchema whose priority level does not exist.",
            ),
            help="add a nameReference for spec/priorityLevelConfiguration/name to the `configurations` of the kustomization",
        )


class _BrokenReference(NamedTuple):
    """A FlowSchema, its level, and the prefix and suffix that a kustomization adds to the name of the level."""

    schema: FlowSchema
    level: PriorityLevelConfiguration
    renaming: Renaming


def _find_broken_references(effective: Effective) -> Iterator[_BrokenReference]:
    """Yield references to a priority level that a kustomization renames without updating the reference.

    The kustomization contains both the FlowSchema and the priority level.
    """
    renamings: dict[str, list[Renaming]] = {}
    for renaming in effective.assumptions.renamings:
        renamings.setdefault(renaming.file, []).append(renaming)
    levels = {level.name: level for level in reversed(effective.priority_levels)}
    for schema in effective.flow_schemas:
        level = levels.get(schema.spec.priority_level_configuration)
        renamed_by = {renaming.kustomization for renaming in renamings.get(schema.document.source.name, ())}
        of_level = renamings.get(level.document.source.name, ()) if level is not None else ()
        for renaming in of_level:
            if level is not None and renaming.kustomization in renamed_by:
                yield _BrokenReference(schema, level, renaming)
                break
