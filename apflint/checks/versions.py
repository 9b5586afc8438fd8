"""APF701, APF702, APF704: API versions, and what changes its meaning from one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks.exports import is_exported
from apflint.finding import Problem
from apflint.fixes import suggestions
from apflint.load.document import GROUP
from apflint.location import Place
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.releases import api_version
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.finding import Severity
    from apflint.load.document import Document
    from apflint.releases import Release


def removed_api_version(effective: Effective) -> Iterator[Problem]:
    """APF701."""
    release = effective.release
    untouched = _untouched_exports(effective)
    switched_on: set[str] = set()
    for manifest in effective.workspace.manifests:
        version = manifest.document.version
        if version not in release.served:
            message = f"{_not_served(version, release)}. {_use_instead(version, release)}"
            # Where there is no other version, whoever has these objects has switched this one on.
            only = not release.served and version in release.on_request
            if only and manifest.document in untouched:
                continue  # a server of this release sent it
            severity: Severity | None = "info" if only else None
            # How the server is started is one cause, whatever the number of objects.
            covered = only and version in switched_on
            yield Problem(Place(manifest.document, ("apiVersion",)), message, severity=severity, covered=covered)
            if only:
                switched_on.add(version)


def _untouched_exports(effective: Effective) -> set[Document]:
    """The documents that a server sent and that say what its release has built in."""
    exported = {
        manifest.document
        for manifest in effective.workspace.manifests
        if manifest.object and is_exported(manifest.document)
    }
    return exported - effective.own_documents if exported else exported


def _not_served(version: str, release: Release) -> str:
    if not version:
        return f"apiVersion has no version after {quote(GROUP)}"
    life = api_version(version)
    if life is None:
        return f"{quote(version)} is no version of {GROUP}, in any release of Kubernetes"
    if life.introduced > release.minor:
        return f"Kubernetes {release.name} does not serve {version} yet: it came with 1.{life.introduced}"
    if version in release.on_request:
        return f"Kubernetes {release.name} serves {version} only when it is started with --runtime-config"
    if not life.by_default:
        return f"Kubernetes {release.name} does not serve {version}: it was an alpha version, and gone with 1.{life.removed}"
    return f"Kubernetes {release.name} does not serve {version} any more: it was removed in 1.{life.removed}"


def _use_instead(version: str, release: Release) -> str:
    if not release.served:
        return (
            f"It has no other version: start it with --runtime-config={GROUP}/{release.on_request[0]}=true, or leave the file"
            " out"
        )
    served = listed((f"{GROUP}/{each}" for each in release.served), "and")
    life, newest = api_version(version), release.served[0]
    older = life is not None and life.introduced < release.minor
    moved = f", and `apflint migrate --to {newest}` moves the manifest there" if older else ""
    return f"`kubectl apply` fails. It serves {served}{moved}"


def deprecated_api_version(effective: Effective) -> Iterator[Problem]:
    """APF702."""
    release = effective.release
    untouched = _untouched_exports(effective)
    for manifest in effective.workspace.manifests:
        version = manifest.document.version
        if manifest.document in untouched:
            continue  # nobody applies it, and the server chose the version
        if version in release.served and (deprecation := release.deprecated(version)):
            message = (
                f"{version} is deprecated since Kubernetes {deprecation.since} and gone from {deprecation.removed_in} on."
                f" Kubernetes {release.name} serves {GROUP}/{deprecation.replacement} as well, and `apflint migrate --to {deprecation.replacement}` moves the manifest there"
            )
            yield Problem(Place(manifest.document, ("apiVersion",)), message)


def share_default_differs(effective: Effective) -> Iterator[Problem]:
    """APF704."""
    for level in effective.priority_levels:
        version = level.document.version
        field = shares_field(version)
        path = ("spec", "limited", field)
        written = level.document.at(*path)
        annotated = PRESERVE_ZERO in level.metadata.annotations
        if version == "v1" or level.spec.type != "Limited" or level.spec.limited is None:
            continue
        if written == 0 and level.spec.limited.shares == 30:
            message = (
                f"{field}: 0 means 30 shares in {version}; in v1, from Kubernetes 1.30 on, it means none."
                f" Write 30 if that is meant{_newer(effective.release)}"
            )
            yield Problem(Place(level.document, path), message)
        elif written is None and annotated and level.spec.limited.shares == 0 and effective.release.allows_zero_shares:
            message = (
                f"{field} is absent, which the annotation {PRESERVE_ZERO} turns into 0 shares here; in v1 absent means 30."
                f" Write {field}: 0"
            )
            fix = suggestions.set_field(level.document, path, 0, f"write {field}: 0", safe=True)
            yield Problem(Place(level.document, path), message, fix=fix)


def _newer(release: Release) -> str:
    return ", or 0 with v1 if none is" if "v1" in release.served and release.allows_zero_shares else ""
