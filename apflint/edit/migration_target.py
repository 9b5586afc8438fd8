"""The API version to migrate to, and the releases that have to serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.errors import UserError
from apflint.releases import API_VERSIONS, GROUP, RELEASES, Release, parse_release

if TYPE_CHECKING:
    from collections.abc import Sequence


class Target(NamedTuple):
    """An API version, and the releases in which the objects are to work: all of them serve it."""

    version: str
    releases: tuple[Release, ...]


def choose_target(version: str | None = None, releases: Sequence[Release] = ()) -> Target:
    """Return the target for a version, for releases, or for both.

    Without a version it is the newest that all releases serve, without releases the newest one that serves the version.
    Raises UserError if no version fits.
    """
    if not releases:
        releases = [next(known for known in reversed(RELEASES) if version is None or serves(known, version))]
    if version is None:
        version = next((life.name for life in API_VERSIONS if _serve(releases, life.name)), None)
    if version is None:
        raise UserError(
            f"No version of {GROUP} is served by all of Kubernetes {releases[0].name} to {releases[-1].name}."
            f" Keep several sets of manifests: {', '.join(_split(releases))}."
        )
    missing = next((known for known in releases if not serves(known, version)), None)
    if missing is not None:
        served = ", ".join(missing.served or missing.on_request)
        raise UserError(f"Kubernetes {missing.name} does not serve {version}. It serves {served}.")
    return Target(version, tuple(releases))


def parse_release_range(text: str) -> tuple[Release, ...]:
    """Return the releases from `X.Y` to `X.Z` of a string `X.Y..X.Z`. Raises UserError."""
    first, dots, last = text.partition("..")
    if not dots:
        raise UserError(f'"{text}" is not a range of releases. Write it like "1.26..1.31".')
    low, high = parse_release(first), parse_release(last)
    if low.minor > high.minor:
        raise UserError(f'"{text}" ends before it starts. Write "{high.name}..{low.name}".')
    return tuple(known for known in RELEASES if low.minor <= known.minor <= high.minor)


def serves(known: Release, version: str) -> bool:
    """Whether a release serves a version, at least if it is started with `--runtime-config`."""
    return version in known.served or version in known.on_request


def _serve(releases: Sequence[Release], version: str) -> bool:
    return all(serves(known, version) for known in releases)


def _split(releases: Sequence[Release]) -> list[str]:
    """Return the fewest versions that together cover all releases, each with the first and last release."""
    parts = []
    while releases:
        lengths = {
            life.name: next((n for n, known in enumerate(releases) if not serves(known, life.name)), len(releases))
            for life in API_VERSIONS
        }
        version = max(lengths, key=lambda name: lengths[name])
        first, last = releases[0].name, releases[lengths[version] - 1].name
        parts.append(f"{version} for {first}" + (f" to {last}" if last != first else ""))
        releases = releases[lengths[version] :]
    return parts
