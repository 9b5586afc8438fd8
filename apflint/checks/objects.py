"""APF402, APF404, APF405: which objects there are, and whose they are.

What servers do with objects under the autoupdate annotation: `pkg/registry/flowcontrol/ensurer` in Kubernetes; recorded on 1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.metadata import objects
from apflint.finding import Elsewhere, Problem
from apflint.fixes import suggestions
from apflint.location import Path, Place
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.fix import Fix
    from apflint.load.document import Document
    from apflint.releases import Release

_NAME: Path = ("metadata", "name")
_ANNOTATION: Path = ("metadata", "annotations", builtin.AUTOUPDATE)
# strconv.ParseBool, with which the server reads the annotation.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def duplicate_object(effective: Effective) -> Iterator[Problem]:
    """APF402."""
    first: dict[tuple[str, str], Document] = {}
    for manifest in effective.workspace.manifests:
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


def suggested_object_overwritten(effective: Effective) -> Iterator[Problem]:
    """APF404."""
    release = effective.release
    if not release.maintains_objects:
        return
    for found in objects(effective.workspace):
        kind = found.document.kind
        if found.name not in builtin.suggested_names(release, kind):
            continue
        value = found.metadata.annotations.get(builtin.AUTOUPDATE)
        # Any value but a true one: the spec was changed, so the server leaves it alone (shouldUpdateSpec). Without the
        # annotation `kubectl apply` keeps the stored one, which is "true".
        if (value is not None and value not in _TRUE) or found.document not in effective.own_documents:
            continue
        how = f"With {builtin.AUTOUPDATE}: {quote(value)}" if value else f'Without {builtin.AUTOUPDATE}: "false"'
        message = (
            f"{quote(found.name)} is one of the server's own objects. {how} the server puts its own spec back within a minute"
            ' of `kubectl apply`. Write the annotation with the value "false" to keep this spec'
        )
        place = Place(found.document, _ANNOTATION if value is not None else _NAME)
        yield Problem(place, message, fix=_kept(found.document))


def object_deleted_by_server(effective: Effective) -> Iterator[Problem]:
    """APF405."""
    release = effective.release
    for found in objects(effective.workspace):
        if not is_deleted_by_server(release, found.document):
            continue
        kind, value = found.document.kind, found.metadata.annotations[builtin.AUTOUPDATE]
        life = builtin.lifetime(kind, found.name)
        if life is not None and builtin.is_retired(release, kind, found.name):
            why = f"servers up to {life[1].name} created it, and the object has the annotation"
            # Nobody knows whether such an object is to stay: perhaps it is a copy, and may go.
            advice = 'Remove it from your files, or write "false" to keep it as your own'
        else:
            why = f"{release.name} has no built-in object of this name, and the object has the annotation"
            advice = 'Write "false", or leave the annotation out'
        yield Problem(
            Place(found.document, _ANNOTATION),
            f"the server of Kubernetes {release.name} deletes this {kind}: {why} {builtin.AUTOUPDATE}: {quote(value)}, which"
            f" marks the server's own objects. {advice}",
            fix=_kept(found.document, safe=life is None),
        )


def is_deleted_by_server(release: Release, document: Document) -> bool:
    """Whether the server takes an object for an outdated one of its own."""
    value = document.at(*_ANNOTATION)
    return (
        release.maintains_objects
        and isinstance(value, str)
        and value in _TRUE
        and bool(document.name)
        and document.name not in builtin.names(release, document.kind)
    )


def _kept(document: Document, *, safe: bool = True) -> Fix:
    """Tells the server that the object is not its own to change or delete."""
    title = f'write the annotation {builtin.AUTOUPDATE}: "false"'
    return suggestions.set_field(document, _ANNOTATION, "false", title, safe=safe)
