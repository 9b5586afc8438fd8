"""APF103 to APF106: `metadata`, fields that the API server sets, and duplicate items in lists.

The checks of `metadata` mirror `ValidateObjectMeta` in `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`, with the
name formats of flowcontrol objects. Errors of the API server about labels, annotations and owner references name only
the whole field, without a key or index.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.edit_operations import Fix, Remove
from apflint.finding import Elsewhere, Problem, invalid, required, too_long
from apflint.fixes.field_fixes import remove_field
from apflint.load.source_text import STDIN
from apflint.load.templates import suggest_rendering
from apflint.location import Place
from apflint.string_formats import check_dns_subdomain, check_label_value, check_qualified_name
from apflint.wording import join_words, pluralize, quote, quote_some, write_sentence

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema, ObjectMeta, OwnerReference, PriorityLevelConfiguration
    from apflint.workspace import Workspace

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_MAX_ANNOTATION_BYTES = 256 * 1024
"""Maximum bytes of all annotations of an object (`TotalAnnotationSizeLimitB` in Kubernetes)."""
_MAX_GENERATED_PREFIX = 58
"""Maximum number of bytes of generateName that the server uses. The server appends 5 random characters
(rest.BeforeCreate)."""


def reject_name(
    place: Place,
    noun: str,
    name: str,
    reason: str,
    *,
    field: str | None = None,
    suggestion: str | None = None,
    fix: Fix | None = None,
) -> Problem:
    """Return a problem for a name with a wrong format. `reason` is a clause from a function of `apflint.string_formats`."""
    return invalid(
        place,
        f"{quote(name)} is not a valid {noun}",
        field=field,
        notes=(write_sentence(reason),),
        help=suggest_rendering(name) or suggestion,
        fix=fix,
    )


def invalid_metadata(workspace: Workspace) -> Iterator[Problem]:
    """APF103: report names, labels, annotations, owners and finalizers that the API server rejects."""
    for item in workspace.objects():
        place, metadata = Place(item.document, ("metadata",)), item.metadata
        yield from _invalid_name(place, metadata)
        if metadata.labels:
            yield from _invalid_labels(place / "labels", metadata.labels)
        if metadata.annotations:
            yield from _invalid_annotations(place / "annotations", metadata.annotations)
        for index, owner in enumerate(metadata.owner_references):
            yield from _invalid_owner(place / "ownerReferences" / index, owner)
        yield from _several_controllers(place / "ownerReferences", metadata.owner_references)
        if metadata.finalizers:
            yield from _invalid_finalizers(place / "finalizers", metadata.finalizers)


def _invalid_name(place: Place, metadata: ObjectMeta) -> Iterator[Problem]:
    name, prefix, kind = metadata.name, metadata.generate_name, place.document.kind
    if prefix:
        # A generateName may end in `-`, although a name may not, because random characters follow. Like the server's
        # maskTrailingDash, replace the end before the check.
        masked = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        if wrong := check_dns_subdomain(masked):
            yield reject_name(place / "generateName", "generateName", prefix, wrong)
    if name:
        if wrong := check_dns_subdomain(name):
            yield reject_name(place / "name", f"{kind} name", name, wrong)
    elif prefix:
        generated = f"{prefix.encode()[:_MAX_GENERATED_PREFIX].decode('utf-8', 'ignore')}bcdfg"
        if wrong := check_dns_subdomain(generated):
            noun = f"prefix of a {kind} name"
            yield reject_name(place / "generateName", noun, prefix, wrong, field="metadata.name")
    else:
        yield required(place / "name", f"{kind} has no name", help="add metadata.name")


def _invalid_labels(place: Place, labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        if wrong := check_qualified_name(key):
            yield reject_name((place / key).at_key(), "label key", key, wrong, field=place.field)
        if wrong := check_label_value(value):
            noun, suggestion = (
                f"value of the label {quote(key)}",
                "move the value to an annotation, which may have any value",
            )
            yield reject_name(place / key, noun, value, wrong, field=place.field, suggestion=suggestion)


def _invalid_annotations(place: Place, annotations: Mapping[str, str]) -> Iterator[Problem]:
    for key in annotations:
        if wrong := check_qualified_name(key.lower()):
            yield reject_name((place / key).at_key(), "annotation key", key, wrong, field=place.field)
    size = sum(len(f"{key}{value}".encode("utf-8", "surrogatepass")) for key, value in annotations.items())
    if size > _MAX_ANNOTATION_BYTES:
        message = f"annotations have {size:,} bytes, more than the maximum of {_MAX_ANNOTATION_BYTES:,}"
        yield too_long(place.at_key(), message, help="shorten or remove annotations")


def _invalid_owner(place: Place, owner: OwnerReference) -> Iterator[Problem]:
    field, version = "metadata.ownerReferences", owner.api_version
    if version.count("/") > 1 or not version.rpartition("/")[2]:  # schema.ParseGroupVersion fails under this condition
        yield invalid(
            place / "apiVersion",
            f"{quote(version)} is not a valid apiVersion of an owner",
            field=f"{field}.apiVersion",
            help="write group and version, as in apps/v1",
        )
    for name, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
        if not value:
            suggestion = f"add the {name}, or remove the reference"
            yield invalid(place / name, f"owner reference has no {name}", field=f"{field}.{name}", help=suggestion)
    if (version, owner.kind) == ("v1", "Event"):
        yield invalid(place, "an Event cannot own another object", field=field, help="remove the owner reference")


def _several_controllers(place: Place, owners: Sequence[OwnerReference]) -> Iterator[Problem]:
    controllers = [place / index / "controller" for index, owner in enumerate(owners) if owner.controller]
    if len(controllers) > 1:
        yield invalid(
            controllers[1],
            "more than one owner reference has controller: true",
            field=place.field,
            help="keep controller: true in one owner reference",
            related=(Elsewhere(controllers[0], "the first one"),),
        )


def _invalid_finalizers(place: Place, names: Sequence[str]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if wrong := check_qualified_name(name):
            yield reject_name(place / index, "finalizer", name, wrong, field=place.field)
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            yield invalid(
                place / index,
                f"finalizer {quote(name)} has no domain",
                notes=("Only finalizers of Kubernetes itself have no domain.",),
                help="add a domain, as in example.com/name",
            )
    if {"orphan", "foregroundDeletion"} <= set(names):
        message = "finalizers orphan and foregroundDeletion exclude each other"
        yield invalid(place / names.index("orphan"), message, field=place.field, help="remove one of them")


def namespace_on_cluster_scoped(workspace: Workspace) -> Iterator[Problem]:
    """APF104: report a namespace in a cluster-scoped object."""
    path = ("metadata", "namespace")
    for item in workspace.objects():
        document = item.document
        if namespace := document.has_other_fields and document.at(*path):
            yield Problem(
                Place(document, path, key=True),
                f"namespace {quote(namespace)} has no effect: {document.kind} objects are cluster-scoped",
                notes=("The API server drops the namespace and creates the object for the whole cluster.",),
                help="remove the namespace",
                fix=remove_field(path, safe=True),
            )


# Recordings of a kube-apiserver 1.36 show that it answers 500 to a create with a positive integer in resourceVersion, and
# 409 to an update whose uid or resourceVersion differs from the stored one. It rejects a server-side apply with
# managedFields, or with a uid if the object does not exist.
_HARMFUL = {
    "resourceVersion": (
        "kubectl create fails if the manifest has a resourceVersion."
        " kubectl apply fails if the stored object has changed since the export."
    ),
    "uid": (
        "With a uid, an update fails if the object was recreated."
        " Server-side apply cannot create an object that has a uid."
    ),
    "managedFields": "With managedFields, server-side apply fails.",
}
"""Fields of `metadata` that make requests fail, each with a note about which requests fail."""
_HARMLESS = ("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_EMPTY_STATUS: tuple[object, ...] = (None, {}, {"conditions": []}, {"conditions": None})
_MAX_NAMED_FIELDS = 4


def is_exported(document: Document) -> bool:
    """Return whether an object was exported from a server. Only exported objects have both a uid and a status."""
    return document.has_other_fields and bool(document.at("metadata", "uid")) and document.has("status")


def server_populated_field(workspace: Workspace) -> Iterator[Problem]:
    """APF105: report the fields of an object that the API server sets, such as `status`.

    For a list that was exported from a server, the first problem is about all objects of the list. The
    other problems of the list are `covered`: reports omit them, but `apflint fix` applies their fixes.
    If the list comes from standard input, the first problem is covered, too.

    Yield nothing for objects read from a running cluster, and for an exported list that contains only
    unchanged built-in objects. Nobody maintains such a list by hand.
    """
    exports: defaultdict[Hashable, list[FlowSchema | PriorityLevelConfiguration]] = defaultdict(list)
    for item in workspace.objects():
        document = item.document
        if document.source.is_live:
            continue
        paths = _populated_paths(document) if document.has_other_fields else []
        if paths and document.prefix and is_exported(document):
            exports[document.source, document.start, document.prefix[:-1]].append(item)
        elif paths:
            names = [str(path[-1]) for path in paths]
            effects = tuple(effect for name, effect in _HARMFUL.items() if name in names)
            yield Problem(
                Place(document, paths[0], key=True),
                f"{_join_fields(names)} {'is' if len(names) == 1 else 'are'} set by the API server",
                notes=("The API server drops the status of a manifest.",) if names == ["status"] else effects,
                help=f"remove {'the field' if len(names) == 1 else 'the fields'}",
                fix=_remove_fields(paths),
                severity="warning" if effects else None,
            )
    for items in exports.values():
        if not all(builtin.is_copy(item, workspace.release) for item in items):
            yield from _report_export([item.document for item in items])


def _populated_paths(document: Document) -> list[Path]:
    """Return the paths of the fields in `document` that normally only the API server sets, such as `metadata.uid`.

    Fields that can make a request to create or apply the object fail come first. Fields that are absent
    or empty are omitted.
    """
    names = (*_HARMFUL, *_HARMLESS)
    paths: list[Path] = [("metadata", name) for name in names if document.at("metadata", name) not in (None, [], "")]
    return paths if document.at("status") in _EMPTY_STATUS else [*paths, ("status",)]


def _report_export(documents: Sequence[Document]) -> Iterator[Problem]:
    """Yield one problem for each object of an exported list.

    The problem at the first object is about all objects. The other problems have the attribute `covered`, so a report
    does not show them, but `apflint fix` applies their fixes.
    """
    paths_of = [_populated_paths(document) for document in documents]
    names = dict.fromkeys(str(path[-1]) for paths in paths_of for path in paths)
    notes = [f"The fields are {join_words(names, 'and')}."]
    if harmful := [name for name in _HARMFUL if name in names]:
        notes.append(f"Requests to create or apply the objects can fail because of {join_words(harmful, 'and')}.")
    for index, (document, paths) in enumerate(zip(documents, paths_of, strict=True)):
        yield Problem(
            Place(document, paths[0], key=True),
            f"list exported from a cluster has {pluralize(len(documents), 'object')} with fields that the API server sets",
            notes=tuple(notes),
            help="before you use the list as a manifest, remove the fields: apflint fix",
            fix=_remove_fields(paths),
            severity="info",
            covered=index > 0 or document.source.name == STDIN,
        )


def _join_fields(names: Iterable[str | int]) -> str:
    return quote_some([*names], _MAX_NAMED_FIELDS)


def _remove_fields(paths: list[Path]) -> Fix:
    return Fix(f"remove {_join_fields(path[-1] for path in paths)}", True, tuple(Remove(path) for path in paths))


def duplicate_list_entry(workspace: Workspace) -> Iterator[Problem]:
    """APF106: report items that occur twice in a list that has `x-kubernetes-list-type: set` in the API."""
    finalizers = (
        (Place(item.document, ("metadata",)), "finalizers", item.metadata.finalizers) for item in workspace.objects()
    )
    for place, name, entries in chain(workspace.string_lists(), finalizers):
        if len(entries) < 2 or len(set(entries)) == len(entries) or ("*" in entries and name != "finalizers"):
            continue  # APF210 reports lists that contain "*" and other items
        first: dict[str, Place] = {}
        for index, entry in enumerate(entries):
            duplicate = place / name / index
            if first.setdefault(entry, duplicate) is not duplicate:
                yield Problem(
                    duplicate,
                    f"duplicate item {quote(entry)} in {name}",
                    related=(Elsewhere(first[entry], "the first one"),),
                    notes=(
                        "kubectl create accepts an object with duplicate items, but server-side apply of the object fails.",
                    ),
                    help="remove one of the duplicates",
                    fix=Fix(f"remove the second {quote(entry)}", True, (Remove(duplicate.path),)),
                )
