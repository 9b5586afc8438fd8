"""APF701, APF702, APF704, APF705: what changes between API versions and between releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.metadata import is_exported
from apflint.checks.objects import is_deleted_by_server
from apflint.finding import Problem
from apflint.fixes.suggestions import set_field
from apflint.location import Place
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.releases import GROUP, api_version
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.load.document import Document
    from apflint.releases import Release


def removed_api_version(effective: Effective) -> Iterator[Problem]:
    """APF701."""
    release = effective.release
    untouched = _untouched_exports(effective)
    reported: set[str] = set()
    for manifest in effective.workspace.manifests:
        version = manifest.document.version
        if version in release.served:
            continue
        # If there is no other version, whoever has these objects has enabled this one: an info, once for all objects.
        is_only_version = not release.served and version in release.on_request
        if is_only_version and manifest.document in untouched:
            continue  # a server of this release returned it
        yield Problem(
            Place(manifest.document, ("apiVersion",)),
            _describe_unserved(version, release),
            notes=() if is_only_version else ("kubectl apply fails.",),
            help=_suggest_version(version, release),
            severity="info" if is_only_version else None,
            covered=is_only_version and version in reported,
        )
        reported.add(version)


def _untouched_exports(effective: Effective) -> set[Document]:
    """Return the documents of objects that a server returned and that are built in."""
    exported = {
        manifest.document
        for manifest in effective.workspace.manifests
        if manifest.object and is_exported(manifest.document)
    }
    return exported - effective.own_documents if exported else exported


def _describe_unserved(version: str, release: Release) -> str:
    if not version:
        return f"apiVersion has no version after {quote(GROUP)}"
    life = api_version(version)
    if life is None:
        return f"unknown version {quote(version)} of {GROUP}"
    if version in release.on_request:
        return f"Kubernetes {release.name} serves {version} only with --runtime-config"
    changed = f"added in 1.{life.introduced}" if life.introduced > release.minor else f"removed in 1.{life.removed}"
    return f"Kubernetes {release.name} does not serve {version}: it was {changed}"


def _suggest_version(version: str, release: Release) -> str:
    if not release.served:
        return f"start kube-apiserver with --runtime-config={GROUP}/{release.on_request[0]}=true, or remove the file"
    life = api_version(version)
    if life is not None and life.introduced < release.minor:
        return _suggest_migration(release.served[0])
    return f"use {join_words(f'{GROUP}/{served}' for served in release.served)}"


def _suggest_migration(version: str) -> str:
    return f"use {GROUP}/{version}: apflint migrate --to {version}"


def deprecated_api_version(effective: Effective) -> Iterator[Problem]:
    """APF702."""
    release = effective.release
    untouched = _untouched_exports(effective)
    for manifest in effective.workspace.manifests:
        version = manifest.document.version
        if manifest.document in untouched:
            continue  # nobody applies it, and the server chose the version
        if version in release.served and (deprecation := release.deprecated(version)):
            yield Problem(
                Place(manifest.document, ("apiVersion",)),
                f"{version} is deprecated since Kubernetes {deprecation.since} and removed in {deprecation.removed_in}",
                help=_suggest_migration(deprecation.replacement),
            )


def share_default_differs(effective: Effective) -> Iterator[Problem]:
    """APF704."""
    release = effective.release
    for level in effective.priority_levels:
        version, limited = level.document.version, level.spec.limited
        if version == "v1" or level.spec.type != "Limited" or limited is None:
            continue
        field = shares_field(version)
        place = Place(level.document, ("spec", "limited", field))
        written = level.document.at(*place.path)
        if written == 0 and limited.shares == 30:
            has_zero = "v1" in release.served and release.allows_zero_shares
            yield Problem(
                place,
                f"{field} 0 means 30 shares in {version}, but 0 shares in v1",
                notes=("In v1, this is so from Kubernetes 1.30 on.",),
                help=f"set {field} to 30, or use v1 for 0 shares" if has_zero else f"set {field} to 30",
            )
        elif (
            written is None
            and limited.shares == 0
            and PRESERVE_ZERO in level.metadata.annotations
            and release.allows_zero_shares
        ):
            yield Problem(
                place,
                f"absent {field} means 0 shares in {version} with this annotation, but 30 in v1",
                notes=(f"The annotation {PRESERVE_ZERO} keeps 0 shares in v1beta3.",),
                help=f"set {field} to 0",
                fix=set_field(place.document, place.path, 0, f"set {field} to 0", safe=True),
            )


def default_object_gone(effective: Effective) -> Iterator[Problem]:
    """APF705."""
    release = effective.release
    for manifest in effective.workspace.manifests:
        document = manifest.document
        if builtin.is_retired(release, document.kind, document.name):
            lifetime = builtin.find_lifetime(document.kind, document.name)
            last = lifetime[1].name if lifetime else ""
            yield Problem(
                Place(document, ("metadata", "name")),
                f"{document.kind} {quote(document.name)} is not built in after Kubernetes {last}",
                notes=("This manifest creates an object instead of changing a built-in one.",),
                help="remove it, or rename it",
                covered=is_deleted_by_server(release, document),  # APF405 explains that
            )
