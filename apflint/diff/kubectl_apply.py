"""Computes the effect of `kubectl apply` on the objects of a running cluster.

`kubectl apply` does not delete objects. It also keeps fields that the manifest does not set, unless an earlier `kubectl apply`
has set them. `managedFields` of the object shows which manager has applied a field. The API server merges the object and the
manifest in the API version of the manifest. If the server rejects the result, the object does not change. Lists of API Priority
and Fairness are atomic (`+listType=atomic` in staging/src/k8s.io/api/flowcontrol/v1/types.go): a manifest replaces a whole list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint import builtin
from apflint.checks import rules_of
from apflint.effective_configuration import Effective
from apflint.engine import Options, find_problems
from apflint.location import Place, field_path
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.named_tuple import NamedTuple
from apflint.releases import API_VERSIONS
from apflint.wording import quote
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import Kind
    from apflint.releases import Release
    from apflint.workspace import Workspace

    Managers = Mapping[tuple[str, str], tuple["FieldManager", ...]]
    """Maps (kind, name) of an object to the managers of its fields."""

_CLIENT_SIDE_APPLY = "kubectl-client-side-apply"
"""Manager that kubectl names for client-side apply (`FieldManagerClientSideApply` in its pkg/cmd/apply/apply.go)."""

_SHARES = tuple({shares_field(version.name) for version in API_VERSIONS})
"""The names of the field with the shares of a priority level, in all API versions."""


class FieldManager(NamedTuple):
    """A manager of fields of an object, from `managedFields`."""

    name: str
    operation: str
    """`Apply` for server-side apply, `Update` for all other requests."""
    fields: object
    """The fields, in the form `{"f:spec": {"f:limited": {}}}` (FieldsV1)."""

    @property
    def applies(self) -> bool:
        """Whether the manager applies manifests (client-side or server-side apply), instead of editing fields."""
        return self.operation == "Apply" or self.name == _CLIENT_SIDE_APPLY

    def owns(self, path: Path) -> bool:
        """Return whether the manager owns the field at `path`."""
        owned = self.fields
        for step in path:
            # The name of the field with the shares depends on the API version that the manager used, so try all names.
            names = [f"f:{name}" for name in (_SHARES if step in _SHARES else (step,))]
            name = next((name for name in names if isinstance(owned, dict) and name in owned), None)
            if name is None or not isinstance(owned, dict):
                return False
            owned = owned[name]
            if not owned:  # no nested fields: the manager owns the whole value, such as an atomic list
                return True
        return True


class KeptField(NamedTuple):
    """A field of an object in the cluster that `kubectl apply` keeps, because the manifest does not set it."""

    kind: Kind
    name: str
    field: str
    value: str
    managers: tuple[str, ...]


class RejectedManifest(NamedTuple):
    """A manifest that the API server rejects. Applying this manifest changes nothing."""

    place: Place
    key: tuple[Kind, str]
    reason: str
    kept: tuple[str, ...]
    """Kept fields of the object in the cluster that make the merged object invalid. Empty if the manifest itself is
    invalid."""
    is_live: bool
    """Whether the cluster already has the object, which then stays unchanged."""


class Applied(NamedTuple):
    """The result of applying manifests to the objects of a cluster with `kubectl apply`."""

    unchanged: list[Loaded]
    """Objects of the cluster that no manifest changes."""
    accepted: list[Loaded]
    """Manifests that the API server accepts, merged with the kept fields of the objects in the cluster."""
    manifests: list[Loaded]
    """`accepted`, followed by the manifests that the API server rejects."""
    kept: tuple[KeptField, ...]
    """Kept fields that differ from the manifests."""
    rejected: tuple[RejectedManifest, ...]

    @property
    def loaded(self) -> list[Loaded]:
        """Return all objects of the cluster after manifests are applied."""
        return [*self.unchanged, *self.accepted]


class Drift(NamedTuple):
    """Differences between a running cluster and manifests that remain even after `kubectl apply` of the manifests."""

    only_live: tuple[tuple[Kind, str], ...]
    """(kind, name) of the objects that only the cluster has, except built-in objects. `kubectl apply` does not delete them."""
    kept: tuple[KeptField, ...]
    """Kept fields that differ from the manifests."""
    managers: tuple[tuple[Kind, str, tuple[str, ...]], ...]
    """(kind, name, managers) of the objects whose spec has fields of managers that do not apply manifests, such as `kubectl edit`."""


def apply_manifests(
    live: Sequence[Loaded], manifests: Sequence[Loaded], managers: Managers, release: Release, served: Collection[str]
) -> Applied:
    """Return the objects of a cluster after `kubectl apply` of manifests.

    `live` are the objects before, and `served` contains the API versions that the cluster serves.
    """
    existing = {(document.kind, document.name): document for part in live for document in part.documents}
    loaded: list[Loaded] = []
    checked: list[Loaded] = []
    kept: list[KeptField] = []
    rejected: list[RejectedManifest] = []
    for part in manifests:
        merged = {
            _merge(document, existing.get((document.kind, document.name)), managers): document
            for document in part.documents
        }
        reasons = _find_reasons(part._replace(documents=tuple(merged)), release, served)
        for result, document in merged.items():
            key = (document.kind, document.name)
            old = existing.get(key)
            fields = _describe_kept(part, document, old, managers, release) if result is not document else ()
            if result not in reasons:
                kept += fields
                continue
            place, reason = reasons[result]
            is_kept_invalid = bool(fields) and not _find_reasons(part._replace(documents=(document,)), release, served)
            causes = [field.field for field in fields] if is_kept_invalid else []
            causes = [field for field in causes if field.startswith(place.field)] or causes
            rejected.append(RejectedManifest(place, key, reason, tuple(causes), old is not None))
        loaded.append(part._replace(documents=tuple(document for document in merged if document not in reasons)))
        results = (document if result in reasons else result for result, document in merged.items())
        checked.append(part._replace(documents=tuple(results)))
    replaced = {(document.kind, document.name) for part in loaded for document in part.documents}
    unchanged = [
        part._replace(documents=tuple(one for one in part.documents if (one.kind, one.name) not in replaced))
        for part in live
    ]
    return Applied(unchanged, loaded, checked, tuple(kept), tuple(rejected))


def find_drift(applied: Workspace, managers: Managers) -> Drift:
    """Return the differences between a cluster and its manifests that remain after `kubectl apply` of the manifests.

    `applied` contains the objects of the cluster after the manifests were applied.
    """
    only_live: list[tuple[Kind, str]] = []
    owners: list[tuple[Kind, str, tuple[str, ...]]] = []
    for document in applied.documents():
        if not document.source.is_live:
            entries = managers.get((document.kind, document.name), ())
            others = (manager for manager in entries if not manager.applies and manager.owns(("spec",)))
            if names := tuple(dict.fromkeys(manager.name for manager in others)):
                owners.append((document.kind, document.name, names))
        elif (
            document.name not in builtin.list_names(applied.release, document.kind)
            and (document.kind, document.name) not in applied.rejected
        ):
            only_live.append((document.kind, document.name))
    return Drift(tuple(only_live), applied.kept, tuple(owners))


def _merge(document: Document, old: Document | None, managers: Managers) -> Document:
    """Return the object that results from `kubectl apply` of a manifest. `old` is the object in the cluster, or None."""
    for path, value in _list_kept_fields(document, old, managers):
        document = _keep(document, path, value)
    return document


def _describe_kept(
    part: Loaded, document: Document, old: Document | None, managers: Managers, release: Release
) -> tuple[KeptField, ...]:
    """Return each field that is only in the cluster, that `kubectl apply` keeps, and that affects the spec.

    `document` is the manifest, and `old` is the object in the cluster. The field affects the spec if
    the spec of the manifest changes when the value in the cluster is added to the manifest. The specs
    are compared after defaults are set. For example, a field whose value is the default does not affect
    the spec.
    """
    entries = managers.get((document.kind, document.name), ())
    return tuple(
        KeptField(
            *(document.kind, document.name, field_path(path), str(value)),
            tuple(dict.fromkeys(manager.name for manager in entries if manager.owns(path))),
        )
        for path, value in _list_kept_fields(document, old, managers)
        if _differs(part, document, _keep(document, path, value), release)
    )


def _find_reasons(part: Loaded, release: Release, served: Collection[str]) -> dict[Document, tuple[Place, str]]:
    """Return {document: (place, reason)} for the documents that the API server rejects.

    If the API server reports several errors for a document, `place` and `reason` are those of the first error.
    """
    found = {
        document: (Place(document, ("apiVersion",)), f"it does not serve {quote(document.api_version)}")
        for document in part.documents
        if document.version not in served
    }
    effective = Effective(build_workspace([part], release))
    for _, problem in find_problems(effective, Options(rules=tuple(rules_of("validation")))).problems:
        place = problem.place
        if problem.apiserver is not None and not problem.is_template and isinstance(place, Place):
            message = problem.message.rstrip(".")
            found.setdefault(place.document, (place, f"{problem.apiserver.field}: {message}"))
    return found


def _list_kept_fields(document: Document, old: Document | None, managers: Managers) -> Iterator[tuple[Path, object]]:
    """Yield (path, value) of each field of the live object `old` that `kubectl apply` of the manifest `document` keeps.

    Paths and values are converted to the API version of the manifest.
    """
    if old is not None and (isinstance(document.at("spec"), dict) or not document.has("spec")):
        spec = _convert_spec(old, document.version)
        yield from _list_kept(spec, document.at("spec"), ("spec",), managers.get((old.kind, old.name), ()))


def _convert_spec(document: Document, version: str) -> object:
    """Return the spec of an object in another API version, as the API server converts it."""
    spec, limited = document.at("spec"), document.at("spec", "limited")
    if not isinstance(spec, dict) or not isinstance(limited, dict):
        return spec
    names = {shares_field(document.version): shares_field(version)}
    return {**spec, "limited": {names.get(key, key): value for key, value in limited.items()}}


def _list_kept(
    live: object, manifest: object, path: Path, managers: tuple[FieldManager, ...]
) -> Iterator[tuple[Path, object]]:
    """Yield (path, value) of each field of the live object that `kubectl apply` keeps.

    `kubectl apply` keeps a field if the manifest does not set the field, and no manager that applies manifests owns the
    field.
    """
    if not isinstance(live, dict):
        if not any(manager.applies and manager.owns(path) for manager in managers):
            yield path, live
        return
    for key, value in live.items():
        if not isinstance(manifest, dict) or key not in manifest:
            yield from _list_kept(value, None, (*path, key), managers)
        elif isinstance(value, dict) and isinstance(manifest[key], dict):
            yield from _list_kept(value, manifest[key], (*path, key), managers)


def _keep(document: Document, path: Path, value: object) -> Document:
    """Return a copy of a manifest in which the field at `path` has `value`, the value of the object in the cluster."""
    kept = _set(document, path, value)
    if value == 0 and path[-1] == shares_field(document.version) and document.version == "v1beta3":
        # Add the annotation to keep the value 0. Servers replace 0 shares in v1beta3 by the default if the object does
        # not have the annotation (conversion.go in pkg/apis/flowcontrol/v1beta3).
        kept = _set(kept, ("metadata", "annotations", PRESERVE_ZERO), "")
    return kept


def _set(document: Document, path: Path, value: object) -> Document:
    """Return a copy of a document with `value` at `path`. Missing parent mappings are added."""
    root = dict(document.value)
    owner: dict[Any, Any] = root
    for step in path[:-1]:
        below = owner.get(step)
        owner[step] = dict(below) if isinstance(below, dict) else {}
        owner = owner[step]
    owner[path[-1]] = value
    return document.with_value(root)


def _differs(part: Loaded, document: Document, changed: Document, release: Release) -> bool:
    """Return whether two documents have different specs after defaults are set. If a document is invalid, return True."""
    (one, other) = build_workspace([part._replace(documents=(document, changed))], release).manifests
    return one.object is None or other.object is None or one.object.spec != other.object.spec
