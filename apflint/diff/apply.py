"""What `kubectl apply` makes of the objects of a running cluster.

Applying does not delete objects. It also keeps fields that the manifest does not set, unless the manifest has set them
before: then `managedFields` of the object says that a manager has applied them. Lists of API Priority and Fairness are
atomic (`+listType=atomic` in staging/src/k8s.io/api/flowcontrol/v1/types.go): a manifest replaces a list as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint import builtin
from apflint.location import field_path
from apflint.record import NamedTuple
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import Kind
    from apflint.releases import Release
    from apflint.workspace import Workspace

    Managers = Mapping[tuple[str, str], tuple["FieldManager", ...]]
    """The managers of the fields of each object, by kind and name."""

_CLIENT_SIDE_APPLY = "kubectl-client-side-apply"
"""Manager that kubectl names for client-side apply (`FieldManagerClientSideApply` in its pkg/cmd/apply/apply.go)."""


class FieldManager(NamedTuple):
    """A manager of fields of an object, from `managedFields`."""

    name: str
    operation: str
    """`Apply` for server-side apply, otherwise `Update`."""
    fields: object
    """The fields, in the form `{"f:spec": {"f:limited": {}}}` (FieldsV1)."""

    @property
    def applies(self) -> bool:
        """Whether the manager applies manifests."""
        return self.operation == "Apply" or self.name == _CLIENT_SIDE_APPLY

    def owns(self, path: Path) -> bool:
        """Return whether the manager owns the field at `path`."""
        owned = self.fields
        for step in path:
            if not isinstance(owned, dict) or f"f:{step}" not in owned:
                return False
            owned = owned[f"f:{step}"]
            if not owned:  # an atomic value
                return True
        return True


class KeptField(NamedTuple):
    """A field of an object of the cluster that stays, because the manifest of the object does not set it."""

    kind: Kind
    name: str
    field: str
    value: str
    managers: tuple[str, ...]


class Drift(NamedTuple):
    """How the objects of a running cluster differ from manifests, apart from what applying the manifests changes."""

    only_live: tuple[tuple[Kind, str], ...]
    """Kind and name of the objects that only the cluster has, except built-in objects. Applying does not delete them."""
    kept: tuple[KeptField, ...]
    """Fields that differ from the manifests, and stay."""
    managers: tuple[tuple[Kind, str, tuple[str, ...]], ...]
    """Kind and name of the objects whose spec is managed by others than those that apply manifests, and the managers."""


def apply_manifests(
    live: Iterable[Loaded], manifests: Sequence[Loaded], managers: Managers, release: Release
) -> tuple[list[Loaded], tuple[KeptField, ...]]:
    """Return the objects of a cluster after manifests are applied, and the fields that stay, although they differ."""
    existing = {(document.kind, document.name): document for part in live for document in part.documents}
    applied = {(document.kind, document.name) for part in manifests for document in part.documents}
    loaded = [
        part._replace(documents=tuple(one for one in part.documents if (one.kind, one.name) not in applied))
        for part in live
    ]
    kept: list[KeptField] = []
    for part in manifests:
        documents = []
        for document in part.documents:
            key = (document.kind, document.name)
            old = existing.get(key)
            # The fields of another version may have other names.
            if old is None or old.api_version != document.api_version or not isinstance(document.at("spec"), dict):
                documents.append(document)
                continue
            merged = document
            for path, value in _list_kept(old.at("spec"), document.at("spec"), ("spec",), managers.get(key, ())):
                merged = _set(merged, path, value)
                if _differs(part, document, _set(document, path, value), release):
                    names = dict.fromkeys(manager.name for manager in managers.get(key, ()) if manager.owns(path))
                    kept.append(KeptField(document.kind, document.name, field_path(path), str(value), tuple(names)))
            documents.append(merged)
        loaded.append(part._replace(documents=tuple(documents)))
    return loaded, tuple(kept)


def find_drift(applied: Workspace, managers: Managers) -> Drift:
    """Return how the objects of a cluster differ from manifests. `applied` has both, after the manifests are applied."""
    only_live: list[tuple[Kind, str]] = []
    owners: list[tuple[Kind, str, tuple[str, ...]]] = []
    for document in applied.documents():
        if not document.source.is_live:
            entries = managers.get((document.kind, document.name), ())
            others = (manager for manager in entries if not manager.applies and manager.owns(("spec",)))
            if names := tuple(dict.fromkeys(manager.name for manager in others)):
                owners.append((document.kind, document.name, names))
        elif document.name not in builtin.list_names(applied.release, document.kind):
            only_live.append((document.kind, document.name))
    return Drift(tuple(only_live), applied.kept, tuple(owners))


def _list_kept(
    live: object, manifest: object, path: Path, managers: tuple[FieldManager, ...]
) -> Iterator[tuple[Path, object]]:
    """Yield path and value of each field that the manifest does not set, and that no manager has applied."""
    if not isinstance(live, dict):
        if not any(manager.applies and manager.owns(path) for manager in managers):
            yield path, live
        return
    for key, value in live.items():
        if not isinstance(manifest, dict) or key not in manifest:
            yield from _list_kept(value, None, (*path, key), managers)
        elif isinstance(value, dict) and isinstance(manifest[key], dict):
            yield from _list_kept(value, manifest[key], (*path, key), managers)


def _set(document: Document, path: Path, value: object) -> Document:
    """Return a copy of a document with a value at `path`."""
    root = dict(document.value)
    owner: dict[Any, Any] = root
    for step in path[:-1]:
        below = owner.get(step)
        owner[step] = dict(below) if isinstance(below, dict) else {}
        owner = owner[step]
    owner[path[-1]] = value
    return document.with_value(root)


def _differs(part: Loaded, document: Document, changed: Document, release: Release) -> bool:
    """Return whether two documents have different specs, after defaults are set. Invalid documents differ."""
    (one, other) = build_workspace([part._replace(documents=(document, changed))], release).manifests
    return one.object is None or other.object is None or one.object.spec != other.object.spec
