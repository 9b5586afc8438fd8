"""Chooses the API version to migrate to, and the Kubernetes releases that must serve this version."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from apflint.releases import API_VERSIONS, GROUP, RELEASES, Release, parse_release
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class MigrationTarget(NamedTuple):
    """The API version to migrate to, and the Kubernetes releases to support. All of these releases serve the version."""

    version: str
    releases: tuple[Release, ...]


def choose_target(version: str | None = None, releases: Sequence[Release] = ()) -> MigrationTarget:
    """Return the migration target for a version, for releases, or for both.

    Without `version`, choose the newest version that all `releases` serve. Without `releases`, choose the newest release
    that serves `version`. Raises UserError if a release does not serve the version, or if no version is served by
    all releases.
    """
    if not releases:
        releases = [next(known for known in reversed(RELEASES) if version is None or serves(known, version))]
    if version is None:
        first, *others = _split(releases)
        if others:
            sets = ", ".join(f"{part.version} for {describe_releases(part.releases)}" for part in (first, *others))
            raise UserError(
                f"No version of {GROUP} is served by all of Kubernetes {describe_releases(releases)}."
                f" Keep several sets of manifests: {sets}."
            )
        return first
    missing = next((known for known in releases if not serves(known, version)), None)
    if missing is not None:
        served = ", ".join(missing.served or missing.on_request)
        raise UserError(f"Kubernetes {missing.name} does not serve {version}. It serves {served}.")
    return MigrationTarget(version, tuple(releases))


def parse_release_range(text: str) -> tuple[Release, ...]:
    """Return the releases from `X.Y` to `X.Z` for the string `X.Y..X.Z`. Raises UserError if the string is not such a range."""
    first, dots, last = text.partition("..")
    if not dots:
        raise UserError(f'"{text}" is not a range of releases. Write it like "1.26..1.31".')
    low, high = parse_release(first), parse_release(last)
    if low.minor > high.minor:
        raise UserError(f'"{text}" ends before it starts. Write "{high.name}..{low.name}".')
    return tuple(known for known in RELEASES if low.minor <= known.minor <= high.minor)


def serves(known: Release, version: str) -> bool:
    """Return whether a release serves a version, by default or with `--runtime-config`."""
    return version in known.served or version in known.on_request


def describe_releases(releases: Sequence[Release]) -> str:
    """Return `X.Y` for one release, or `X.Y to X.Z` for several releases."""
    first, last = releases[0].name, releases[-1].name
    return first if first == last else f"{first} to {last}"


def _split(releases: Sequence[Release]) -> Iterator[MigrationTarget]:
    """Yield as few targets as possible for all releases. Each target covers consecutive items of `releases`."""
    while releases:
        served = {life.name: (*takewhile(partial(serves, version=life.name), releases),) for life in API_VERSIONS}
        version = max(served, key=lambda name: len(served[name]))
        yield MigrationTarget(version, served[version])
        releases = releases[len(served[version]) :]
