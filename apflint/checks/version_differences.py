"""APF701, APF702, APF704, APF705: differences between API versions and between releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.duplicate_and_built_in_objects import is_deleted_by_server
from apflint.checks.metadata import is_exported
from apflint.finding import Problem
from apflint.fixes.field_fixes import set_field
from apflint.location import Place
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.releases import GROUP, api_version
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective_configuration import Effective
    from apflint.load.document import Document
    from apflint.releases import Release


def removed_api_version(effective: Effective) -> Iterator[Problem]:
    """APF701: report API versions that the release does not serve."""
    release = effective.release
    untouched = _untouched_exports(effective)
    reported: set[str] = set()
    for document in effective.workspace.documents():
        version = document.version
        # Early releases serve no version of the API by default. Users of these releases have probably enabled the
        # version with --runtime-config, so only the first object of the version gets a finding, with severity info.
        is_only_version = not release.served and version in release.on_request
        if version in release.served or (is_only_version and document in untouched):
            continue  # no finding: a server of this release serves the version, or has exported the unchanged object
        message, suggestion = _describe_unserved(version, release)
        yield Problem(
            Place(document, ("apiVersion",)),
            message,
            notes=() if is_only_version else ("kubectl apply fails.",),
            help=suggestion,
            severity="info" if is_only_version else None,
            covered=is_only_version and version in reported,
        )
        reported.add(version)


def _untouched_exports(effective: Effective) -> set[Document]:
    """Return the documents of unchanged built-in objects that were exported from a server."""
    exported = {item.document for item in effective.workspace.objects() if is_exported(item.document)}
    return exported - effective.own_documents if exported else exported


def _describe_unserved(version: str, release: Release) -> tuple[str, str]:
    """Return (message, help) for a version that the release does not serve."""
    life = api_version(version)
    if not release.served:
        suggestion = (
            f"start kube-apiserver with --runtime-config={GROUP}/{release.on_request[0]}=true, or remove the file"
        )
    elif life is not None and life.introduced < release.minor:
        suggestion = _suggest_migration(release.served[0], release.name)
    else:
        suggestion = f"use {join_words(f'{GROUP}/{served}' for served in release.served)} for Kubernetes {release.name}"
    if not version:
        return f"apiVersion has no version after {quote(GROUP)}", suggestion
    if life is None:
        return f"unknown version {quote(version)} of {GROUP}", suggestion
    if version in release.on_request:
        return f"Kubernetes {release.name} serves {version} only with --runtime-config", suggestion
    changed = f"added in 1.{life.introduced}" if life.introduced > release.minor else f"removed in 1.{life.removed}"
    return f"Kubernetes {release.name} does not serve {version}: it was {changed}", suggestion


def _suggest_migration(version: str, releases: str) -> str:
    # The advice names the releases: a file can belong to several clusters with different releases and different advice.
    return f"use {GROUP}/{version} for Kubernetes {releases}: apflint migrate --to {version}"


def deprecated_api_version(effective: Effective) -> Iterator[Problem]:
    """APF702: report API versions that are deprecated."""
    release = effective.release
    # In an export, the API server chose the version of unchanged built-in objects. Nobody applies such objects again,
    # so the rule does not report them.
    untouched = _untouched_exports(effective)
    for document in effective.workspace.documents():
        version = document.version
        if version in release.served and document not in untouched and (deprecation := release.deprecated(version)):
            replacement = api_version(deprecation.replacement)
            assert replacement is not None, "a replacement is a known version"
            yield Problem(
                Place(document, ("apiVersion",)),
                f"{version} is deprecated since Kubernetes {deprecation.since} and removed in {deprecation.removed_in}",
                help=_suggest_migration(replacement.name, replacement.releases),
            )


def share_default_differs(effective: Effective) -> Iterator[Problem]:
    """APF704: report shares that are 0 or absent, if they mean a different number of shares in v1."""
    release = effective.release
    for limited_place, limited in effective.workspace.limited():
        document = limited_place.document
        field = shares_field(document.version)
        place = limited_place / field
        written = document.at(*place.path)
        if document.version == "v1":
            continue
        if written == 0 and limited.shares == 30:
            has_zero = "v1" in release.served and release.allows_zero_shares
            yield Problem(
                place,
                f"{field} 0 means 30 shares in {document.version}, but 0 shares in v1",
                notes=("From Kubernetes 1.30 on, v1 allows 0 shares.",),
                help=f"set {field} to 30{', or use v1 for 0 shares' if has_zero else ''}",
            )
        elif written is None and limited.shares == 0 and release.allows_zero_shares:
            yield Problem(
                place,
                f"absent {field} means 0 shares in {document.version} because of an annotation, but 30 shares in v1",
                notes=(f"The annotation {PRESERVE_ZERO} keeps 0 shares in v1beta3.",),
                help=f"set {field} to 0",
                fix=set_field(document, place.path, 0, f"set {field} to 0", safe=True),
            )


def default_object_gone(effective: Effective) -> Iterator[Problem]:
    """APF705: report objects with the name of an object that is built in only in earlier releases."""
    release = effective.release
    for document in effective.workspace.documents():
        lifetime = builtin.find_lifetime(document.kind, document.name)
        if lifetime is not None and builtin.is_retired(release, document.kind, document.name):
            yield Problem(
                Place(document, ("metadata", "name")),
                f"Kubernetes {lifetime[1].name} is the last release with the built-in {document.kind} {quote(document.name)}",
                notes=("This manifest creates an object instead of changing a built-in one.",),
                help="remove it, or rename it",
                covered=is_deleted_by_server(release, document),  # APF405 reports objects that the server deletes
            )
