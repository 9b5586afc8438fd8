"""APF215, APF311, APF402, APF404, APF405: duplicate objects, and objects that the API server maintains itself.

The API server handles the autoupdate annotation in `pkg/registry/flowcontrol/ensurer` of kubernetes/kubernetes. The
effect of the annotation was recorded on a kube-apiserver 1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.finding import Elsewhere, Problem, invalid
from apflint.fixes.field_fixes import set_field
from apflint.location import Path, Place
from apflint.model import shares_field
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.edit_operations import Fix
    from apflint.effective_configuration import Effective
    from apflint.finding import ObjectKey
    from apflint.load.document import Document
    from apflint.model import FlowSchema, PriorityLevelConfiguration
    from apflint.releases import Release
    from apflint.workspace import Workspace

_NAME: Path = ("metadata", "name")
_ANNOTATION: Path = ("metadata", "annotations", builtin.AUTOUPDATE)
# Strings that Go's strconv.ParseBool parses as true. The API server parses the annotation with this function.
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_MAX_NAMED_DIFFERENCES = 3


def mandatory_flow_schema_changed(workspace: Workspace) -> Iterator[Problem]:
    """APF215: report mandatory FlowSchemas whose spec differs from the built-in spec."""
    for schema in workspace.flow_schemas:
        if schema.name in builtin.MANDATORY:
            built_in = builtin.load_objects(workspace.release).flow_schemas
            required = next(other.spec for other in built_in if other.name == schema.name)
            if schema.spec != required:
                suggestion = "restore the spec, or write a FlowSchema with another name"
                yield _reject_changes(schema.document, schema.spec, required, suggestion)


def mandatory_level_changed(workspace: Workspace) -> Iterator[Problem]:
    """APF311: report mandatory priority levels whose spec differs from the built-in spec."""
    for level in workspace.priority_levels:
        if level.name in builtin.MANDATORY:
            built_in = builtin.load_objects(workspace.release).priority_levels
            spec, required = level.spec, next(other.spec for other in built_in if other.name == level.name)
            notes: tuple[str, ...] = ()
            if level.name == "exempt":
                # The server accepts differences in `spec.exempt`, but in no other field
                # (ValidateIfMandatoryPriorityLevelConfigurationObject). So compare without `exempt`.
                spec, required = spec._replace(exempt=None), required._replace(exempt=None)
                notes = (
                    ("In the spec, only fields in spec.exempt may differ from the built-in object.",)
                    if workspace.release.has_exempt_field
                    else ()
                )
            if spec != required:
                yield _reject_changes(level.document, spec, required, "restore the spec, or remove the object", *notes)


def _reject_changes(document: Document, spec: object, required: object, suggestion: str, *notes: str) -> Problem:
    differences = join_some(list(find_differences(spec, required, document.version)), _MAX_NAMED_DIFFERENCES)
    return invalid(
        Place(document, ("spec",), key=True),
        f"spec of the mandatory {document.kind} {quote(document.name)} must not change",
        notes=(
            f"Different from the built-in object: {differences}.",
            *notes,
            "The API server creates this object itself. The manifest may set other labels and annotations.",
        ),
        help=suggestion,
    )


_FIELDS = {
    "priority_level_configuration": "priorityLevelConfiguration.name",
    "distinguisher_method": "distinguisherMethod.type",
    "non_resource_urls": "nonResourceURLs",
}


def find_differences(value: object, required: object, version: str, path: str = "") -> Iterator[str]:
    """Yield the name of each field in which `value` and `required`, two values of the same class, differ.

    A name can be followed by both values, such as `type ("Queue" instead of "Reject")`. Fields are named as in the API
    version `version`. `path` is the field path of `value`.
    """
    if value == required:
        return
    fields = getattr(value, "_fields", None)
    if fields is None or type(value) is not type(required):
        is_scalar = all(isinstance(side, str | int | None) for side in (value, required))
        here, there = ("absent" if side is None else quote(side) for side in (value, required))
        yield f"{path} ({here} instead of {there})" if is_scalar else path
        return
    for name in fields:
        first, *rest = name.split("_")
        field = _FIELDS.get(name) or first + "".join(word.capitalize() for word in rest)
        field = shares_field(version) if name == "shares" else field
        inner = f"{path}.{field}" if path else field
        yield from find_differences(getattr(value, name), getattr(required, name), version, inner)


def duplicate_object(effective: Effective) -> Iterator[Problem]:
    """APF402: report objects that are defined more than once.

    The manifests of different clusters are often in sibling directories. So if two sibling directories define the same
    objects, the result has one problem for all of these objects together. But if the settings or options declare that
    the manifests belong to one cluster, the result has a separate problem for each object.
    """
    seen: dict[ObjectKey, list[Document]] = {}
    for document in effective.workspace.documents():
        if document.name:
            seen.setdefault((document.kind, document.name), []).append(document)
    duplicates = [documents for documents in seen.values() if len(documents) > 1]
    if not duplicates:
        return
    if effective.assumptions.one_cluster or effective.assumptions.complete:
        near = [(documents[0], document) for documents in duplicates for document in documents[1:]]
    else:
        from apflint.checks.duplicates_in_directories import find_problems, split_duplicates

        near, pairs = split_duplicates(duplicates)
        yield from find_problems(pairs)
    for earlier, document in near:
        yield Problem(
            Place(document, _NAME),
            f"{document.kind} {quote(document.name)} is already defined",
            related=(Elsewhere(Place(earlier, _NAME), "the first one"),),
            notes=(
                "With kubectl apply, the last definition replaces the others.",
                "Helm and `kubectl create` reject the second definition.",
            ),
            help="rename or remove one of the duplicates",
        )


def suggested_object_overwritten(effective: Effective) -> Iterator[Problem]:
    """APF404: report suggested objects whose spec the API server restores after `kubectl apply`."""
    release = effective.release
    for item in effective.workspace.objects():
        document, value = item.document, item.metadata.annotations.get(builtin.AUTOUPDATE)
        if is_restored_by_server(item, release) and document in effective.own_documents:
            yield Problem(
                Place(document, _ANNOTATION if value is not None else _NAME),
                f"the API server overwrites the spec of the suggested {document.kind} {quote(item.name)}",
                notes=(
                    f"The API server restores the spec of Kubernetes {release.name} within a minute of kubectl apply.",
                ),
                help=f'set the annotation {builtin.AUTOUPDATE}: "false" to keep this spec',
                fix=_set_annotation(document, safe=True),
            )


def is_restored_by_server(item: FlowSchema | PriorityLevelConfiguration, release: Release) -> bool:
    """Return whether the object is a suggested object whose spec the API server restores after `kubectl apply`.

    The API server restores the spec if the autoupdate annotation of the stored object is "true" (shouldUpdateSpec). If
    the manifest does not contain the annotation, `kubectl apply` keeps the stored annotation, which is "true". So the
    spec stays changed only if the manifest sets the annotation to another value, or if the release restores no objects.
    """
    value = item.metadata.annotations.get(builtin.AUTOUPDATE)
    is_suggested = item.name in builtin.list_suggested_names(release, item.document.kind)
    return release.maintains_objects and is_suggested and (value is None or value in _TRUE)


def object_deleted_by_server(effective: Effective) -> Iterator[Problem]:
    """APF405: report objects that the API server deletes, because it regards them as outdated built-in objects."""
    release = effective.release
    for item in effective.workspace.objects():
        document = item.document
        if not is_deleted_by_server(release, document):
            continue
        note, suggestion = (
            f"Kubernetes {release.name} has no",
            'set the annotation to "false", or remove the annotation',
        )
        lifetime = builtin.find_lifetime(document.kind, item.name)
        if lifetime is not None and builtin.is_retired(release, document.kind, item.name):
            note = f"Kubernetes {lifetime[1].name} is the last release with a"
            # There is no safe fix, because only the user knows whether the object should stay.
            suggestion = f'remove the object, or set the annotation {builtin.AUTOUPDATE} to "false" to keep the object'
        yield Problem(
            Place(document, _ANNOTATION),
            f"Kubernetes {release.name} deletes the {document.kind} {quote(item.name)}",
            notes=(
                f"The annotation {builtin.AUTOUPDATE} marks objects that the API server maintains.",
                f"{note} built-in object of this name.",
            ),
            help=suggestion,
            fix=_set_annotation(document, safe=lifetime is None),
        )


def is_deleted_by_server(release: Release, document: Document) -> bool:
    """Return whether the API server deletes an object, because it regards the object as an outdated built-in object."""
    return (
        release.maintains_objects
        and document.at(*_ANNOTATION) in _TRUE
        and bool(document.name)
        and document.name not in builtin.list_names(release, document.kind)
    )


def _set_annotation(document: Document, *, safe: bool) -> Fix:
    """Return a fix that sets the autoupdate annotation to "false", so that the API server does not change the object."""
    return set_field(document, _ANNOTATION, "false", f'set the annotation {builtin.AUTOUPDATE}: "false"', safe=safe)
