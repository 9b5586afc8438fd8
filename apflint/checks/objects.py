"""APF402, APF404, APF405: which objects there are, and whose they are.

What servers do with objects under the autoupdate annotation: `pkg/registry/flowcontrol/ensurer` in Kubernetes; recorded on 1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks import repair
from apflint.checks.metadata import objects
from apflint.checks.wording import quote
from apflint.finding import Elsewhere, Fix, Path, Place, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.document import Document
    from apflint.workspace import Workspace

_NAME: Path = ("metadata", "name")
_ANNOTATION: Path = ("metadata", "annotations", builtin.AUTOUPDATE)
# strconv.ParseBool, with which the server reads the annotation.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def duplicate_object(workspace: Workspace) -> Iterator[Problem]:
    """APF402."""
    first: dict[tuple[str, str], Document] = {}
    for manifest in workspace.manifests:
        document = manifest.document
        if not document.name:
            continue
        earlier = first.setdefault((document.kind, document.name), document)
        if earlier is not document:
            message = (
                f"{document.kind} {quote(document.name)} is already defined in these files. A cluster has one object of each"
                " name: with `kubectl apply` the last one replaces the other, and Helm and `kubectl create` refuse it. Rename"
                " or remove one of them"
            )
            yield Problem(Place(document, _NAME), message, related=(Elsewhere(Place(earlier, _NAME), "the first one"),))


def suggested_object_overwritten(workspace: Workspace) -> Iterator[Problem]:
    """APF404."""
    release = workspace.release
    if not release.maintains_objects:
        return
    for found in objects(workspace):
        kind = found.document.kind
        if found.name not in builtin.suggested_names(release, kind):
            continue
        value = found.metadata.annotations.get(builtin.AUTOUPDATE)
        # Any value but a true one: the spec was changed, so the server leaves it alone (shouldUpdateSpec). Without the
        # annotation `kubectl apply` keeps the stored one, which is "true".
        if (value is not None and value not in _TRUE) or found not in workspace.own_objects:
            continue
        how = f"With {builtin.AUTOUPDATE}: {quote(value)}" if value else f'Without {builtin.AUTOUPDATE}: "false"'
        message = (
            f"{quote(found.name)} is one of the server's own objects. {how} the server puts its own spec back within a minute"
            ' of `kubectl apply`. Write the annotation with the value "false" to keep this spec'
        )
        place = Place(found.document, _ANNOTATION if value is not None else _NAME)
        yield Problem(place, message, fix=_kept(found.document))


def object_deleted_by_server(workspace: Workspace) -> Iterator[Problem]:
    """APF405."""
    release = workspace.release
    if not release.maintains_objects:
        return
    for found in objects(workspace):
        value = found.metadata.annotations.get(builtin.AUTOUPDATE)
        if value in _TRUE and found.name and found.name not in builtin.names(release, found.document.kind):
            message = (
                f"the server of Kubernetes {release.name} deletes this {found.document.kind}: with"
                f" {builtin.AUTOUPDATE}: {quote(value)} it takes the object for an outdated one of its own,"
                ' because it has none of this name. Write "false", or leave the annotation out'
            )
            # Of an object that servers had once, nobody knows whether it is to stay: perhaps it is a copy, and may go.
            own = builtin.lifetime(found.document.kind, found.name) is None
            yield Problem(Place(found.document, _ANNOTATION), message, fix=_kept(found.document, safe=own))


def _kept(document: Document, *, safe: bool = True) -> Fix:
    """Tells the server that the object is not its own to change or delete."""
    title = f'write the annotation {builtin.AUTOUPDATE}: "false"'
    return repair.given(document, _ANNOTATION, "false", title, safe=safe)
