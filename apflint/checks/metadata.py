"""APF103, APF104, APF106: `metadata`, and lists that are sets.

The rules are Kubernetes' `ValidateObjectMeta` (`k8s.io/apimachinery/pkg/api/validation/objectmeta.go`) with the names that
flowcontrol objects have; the server reports labels, annotations and owner references without an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint import formats
from apflint.finding import Cause, Elsewhere, Problem
from apflint.fix import Fix, Remove
from apflint.fixes import suggestions
from apflint.location import Place
from apflint.model import FlowSchema
from apflint.wording import placeholder_hint, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import ObjectMeta, OwnerReference, PriorityLevelConfiguration
    from apflint.workspace import Workspace

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_ANNOTATIONS_LIMIT = 256 * 1024  # TotalAnnotationSizeLimitB
# rest.BeforeCreate makes names with SimpleNameGenerator: at most 58 characters of the prefix, five random ones after it.
_GENERATED_PREFIX = 58


def objects(workspace: Workspace) -> Iterator[FlowSchema | PriorityLevelConfiguration]:
    """All typed objects, in the order of the input."""
    return (manifest.object for manifest in workspace.manifests if manifest.object is not None)


def invalid_metadata(workspace: Workspace) -> Iterator[Problem]:
    """APF103."""
    for found in objects(workspace):
        document, metadata = found.document, found.metadata
        yield from _names(document, metadata)
        yield from _labels(document, metadata)
        yield from _annotations(document, metadata)
        yield from _owners(document, metadata)
        yield from _finalizers(document, metadata)


def _invalid(document: Document, path: Path, message: str, field: str, *, key: bool = False) -> Problem:
    return Problem(Place(document, path, key), message, Cause("FieldValueInvalid", field))


def _names(document: Document, metadata: ObjectMeta) -> Iterator[Problem]:
    prefix = metadata.generate_name
    if prefix:
        # A name made from a prefix may end in `-`: maskTrailingDash.
        masked = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        if wrong := formats.check_dns_subdomain(masked):
            message = f"generateName {quote(prefix)} can start no name: {wrong}"
            yield _invalid(document, ("metadata", "generateName"), message, "metadata.generateName")
    name = metadata.name
    if not name and prefix:
        generated = f"{prefix.encode()[:_GENERATED_PREFIX].decode('utf-8', 'ignore')}bcdfg"
        if wrong := formats.check_dns_subdomain(generated):
            message = f"nor is the name that the server would make of {quote(prefix)}"
            yield _invalid(document, ("metadata", "generateName"), message, "metadata.name")
    elif not name:
        message = f"this {document.kind} has no name. Write one under `metadata`"
        yield Problem(Place(document, ("metadata", "name")), message, Cause("FieldValueRequired", "metadata.name"))
    elif wrong := formats.check_dns_subdomain(name):
        message = f"{quote(name)} is no name for a {document.kind}: {wrong}.{placeholder_hint(name)}".rstrip(".")
        yield _invalid(document, ("metadata", "name"), message, "metadata.name")


def _labels(document: Document, metadata: ObjectMeta) -> Iterator[Problem]:
    for key, value in metadata.labels.items():
        path = ("metadata", "labels", key)
        if wrong := formats.check_qualified_name(key):
            yield _invalid(document, path, f"{quote(key)} is no label key: {wrong}", "metadata.labels", key=True)
        if wrong := formats.check_label_value(value):
            hint = placeholder_hint(value) or " An annotation may hold any text."
            message = f"{quote(value)} is no value for the label {quote(key)}: {wrong}.{hint}"
            yield _invalid(document, path, message, "metadata.labels")


def _annotations(document: Document, metadata: ObjectMeta) -> Iterator[Problem]:
    for key in metadata.annotations:
        if wrong := formats.check_qualified_name(key.lower()):
            path = ("metadata", "annotations", key)
            yield _invalid(
                document, path, f"{quote(key)} is no annotation key: {wrong}", "metadata.annotations", key=True
            )
    size = sum(len(f"{key}{text}".encode("utf-8", "surrogatepass")) for key, text in metadata.annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        message = (
            f"annotations have {size:,} bytes in total; the maximum is {_ANNOTATIONS_LIMIT:,}. Shorten or remove some"
        )
        cause = Cause("FieldValueTooLong", "metadata.annotations")
        yield Problem(Place(document, ("metadata", "annotations"), key=True), message, cause)


def _owners(document: Document, metadata: ObjectMeta) -> Iterator[Problem]:
    field = "metadata.ownerReferences"
    controllers: list[Path] = []
    for number, owner in enumerate(metadata.owner_references):
        path: Path = ("metadata", "ownerReferences", number)
        version = _version(owner)
        if not version:
            message = f"the owner's apiVersion {quote(owner.api_version)} names no version. Write it like `apps/v1`"
            yield _invalid(document, (*path, "apiVersion"), message, f"{field}.apiVersion")
        for name, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
            if not value:
                yield _invalid(
                    document,
                    (*path, name),
                    f"owner reference has no {name}. Add it, or remove the reference",
                    f"{field}.{name}",
                )
        if (owner.api_version, owner.kind) == ("v1", "Event"):
            yield _invalid(document, path, "an Event cannot own another object. Remove the reference", field)
        if owner.controller:
            controllers.append(path)
    if len(controllers) > 1:
        first, second = controllers[:2]
        yield Problem(
            Place(document, (*second, "controller")),
            "second owner with `controller: true`: an object has at most one controller. Remove the field from one of them",
            Cause("FieldValueInvalid", field),
            (Elsewhere(Place(document, (*first, "controller")), "the first one"),),
        )


def _version(owner: OwnerReference) -> str:
    """The version in an apiVersion, or "" where it is none (`schema.ParseGroupVersion`)."""
    return owner.api_version.rpartition("/")[2] if owner.api_version.count("/") < 2 else ""


def _finalizers(document: Document, metadata: ObjectMeta) -> Iterator[Problem]:
    field = "metadata.finalizers"
    for number, finalizer in enumerate(metadata.finalizers):
        path = ("metadata", "finalizers", number)
        if wrong := formats.check_qualified_name(finalizer):
            yield _invalid(document, path, f"{quote(finalizer)} is no finalizer: {wrong}", field)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            message = (
                f"finalizer {quote(finalizer)} is not one of Kubernetes' own and has no domain. Write it like"
                " `example.com/name`"
            )
            yield _invalid(document, path, message, f"{field}[{number}]")
    if {"orphan", "foregroundDeletion"} <= set(metadata.finalizers):
        path = ("metadata", "finalizers", metadata.finalizers.index("orphan"))
        yield _invalid(
            document,
            path,
            "the finalizers `orphan` and `foregroundDeletion` exclude each other. Remove one of them",
            field,
        )


def namespace_on_cluster_scoped(workspace: Workspace) -> Iterator[Problem]:
    """APF104."""
    for found in objects(workspace):
        if not found.document.more:
            continue
        namespace = found.document.at("metadata", "namespace")
        if namespace:
            message = (
                f"{found.document.kind} objects are in no namespace: the server drops {quote(namespace)}"
                " and takes the object for the whole cluster. Leave it out"
            )
            yield _removable(found.document, ("metadata", "namespace"), message)


def _removable(document: Document, path: Path, message: str) -> Problem:
    """A field that the server drops: without it the object is the same."""
    fix = suggestions.remove_field(path, safe=True)
    return Problem(Place(document, path, key=True), message, fix=fix)


def duplicate_list_entry(workspace: Workspace) -> Iterator[Problem]:
    """APF106. The lists are those with `x-kubernetes-list-type: set` in the API."""
    for found in objects(workspace):
        document = found.document
        if not (document.more or _repeats(found)):
            continue
        for path, items in _sets(document):
            if "*" in items and path[-1] != "finalizers":
                continue  # APF210 says that `*` is alone
            first_at: dict[Any, int] = {}
            for number, item in enumerate(items):
                key = item if item is None or isinstance(item, str) else repr(item)
                if key not in first_at:
                    first_at[key] = number
                    continue
                yield Problem(
                    Place(document, (*path, number)),
                    f"{quote(item)} is in this list already. A plain create accepts that; server-side apply"
                    " (`kubectl apply --server-side`, Argo CD, Flux) rejects it. Remove one of the two",
                    related=(Elsewhere(Place(document, (*path, first_at[key])), "the first one"),),
                    fix=Fix(f"remove the second {quote(item)}", True, (Remove((*path, number)),)),
                )


def _repeats(found: FlowSchema | PriorityLevelConfiguration) -> bool:
    """Whether one of the lists in its rules may have something twice: here null and the empty text are one."""
    return isinstance(found, FlowSchema) and any(
        items.__class__ is tuple and len(items) > 1 and len(set(items)) < len(items)
        for rule in found.spec.rules
        for part in (*rule.resource_rules, *rule.non_resource_rules)
        for items in part
    )


def _sets(document: Document) -> Iterator[tuple[Path, list[Any]]]:
    value: Any = document.value
    if finalizers := (value.get("metadata") or {}).get("finalizers"):
        yield ("metadata", "finalizers"), finalizers
    if document.kind != "FlowSchema":
        return  # "rules" would be an unknown field, of whatever type
    for i, rule in enumerate((value.get("spec") or {}).get("rules") or ()):
        for kind, lists in (
            ("resourceRules", ("verbs", "apiGroups", "resources", "namespaces")),
            ("nonResourceRules", ("verbs", "nonResourceURLs")),
        ):
            for j, part in enumerate((rule or {}).get(kind) or ()):
                for name in lists:
                    if items := (part or {}).get(name):
                        yield ("spec", "rules", i, kind, j, name), items
