"""Which API version to migrate to, and for which releases."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from apflint.releases import API_VERSIONS, GROUP, RELEASES, Release, api_version, release


class Target(NamedTuple):
    """An API version, and the releases in which the objects are to work: all of them serve it."""

    version: str
    releases: tuple[Release, ...]


def choose(to: str | None = None, kubernetes: str | None = None, span: str | None = None) -> Target:
    """The target of a migration: by version, by release, by both; or by a range of releases such as `1.26..1.31`.

    Without a version it is the newest that all the releases serve, without a release the newest that serves the version.
    ValueError, fit to be shown, where there is no such version or release, or where they do not go together.
    """
    version = _version(to) if to is not None else None
    if kubernetes is not None and span is not None:
        raise ValueError("--kubernetes names one release, --range many. Give one of the two.")
    if span is not None:
        releases = _range(span)
    elif kubernetes is not None:
        releases = (release(kubernetes),)
    else:
        releases = (next(known for known in reversed(RELEASES) if version is None or serves(known, version)),)
    return Target(_common(releases, version), releases)


def serves(known: Release, version: str) -> bool:
    """Whether a release serves a version, if only when it is started with `--runtime-config`."""
    return version in known.served or version in known.on_request


def age(version: str) -> int:
    """A number that is the greater the later the version came."""
    return next(-index for index, life in enumerate(API_VERSIONS) if life.name == version)


def source(version: str, known: Release) -> Release:
    """The release that says what an object of `version` means before it is migrated for a release.

    That release itself if it serves the version; else the last one before it that did.
    """
    serving = [other for other in RELEASES if serves(other, version)]
    return max((other for other in serving if other.minor <= known.minor), default=serving[0])


def _version(text: str) -> str:
    version = text.removeprefix(f"{GROUP}/")
    if api_version(version) is None:
        names = ", ".join(life.name for life in API_VERSIONS)
        raise ValueError(f'"{text}" is no version of {GROUP}. The versions are {names}.')
    return version


def _range(text: str) -> tuple[Release, ...]:
    first, dots, last = text.partition("..")
    if not dots:
        raise ValueError(f'"{text}" is no range of releases. Write it like "1.26..1.31".')
    low, high = release(first), release(last)
    if low.minor > high.minor:
        raise ValueError(f'"{text}": the range ends before it begins. Write "{high.name}..{low.name}".')
    return tuple(known for known in RELEASES if low.minor <= known.minor <= high.minor)


def _common(releases: tuple[Release, ...], wanted: str | None) -> str:
    """The version that all of the releases serve: the wanted one, or the newest."""
    if wanted is not None:
        missing = [known for known in releases if not serves(known, wanted)]
        if missing:
            offers = ", ".join(missing[0].served or missing[0].on_request)
            raise ValueError(f"Kubernetes {missing[0].name} does not serve {wanted}. It serves {offers}.")
        return wanted
    for life in API_VERSIONS:
        if all(serves(known, life.name) for known in releases):
            return life.name
    parts = ", ".join(_stretches(releases))
    raise ValueError(
        f"No version of {GROUP} is served by all of Kubernetes {releases[0].name} to {releases[-1].name}."
        f" Keep several sets of manifests: {parts}."
    )


def _stretches(releases: tuple[Release, ...]) -> list[str]:
    """The fewest versions that together do for all the releases, and from which to which each does."""
    told = []
    while releases:
        stretches = ((life.name, _served_from_start(releases, life.name)) for life in API_VERSIONS)
        version, served = max(stretches, key=lambda stretch: len(stretch[1]))
        first, last = served[0].name, served[-1].name
        told.append(f"{version} for {first}" + (f" to {last}" if last != first else ""))
        releases = releases[len(served) :]
    return told


def _served_from_start(releases: tuple[Release, ...], version: str) -> list[Release]:
    return list(takewhile(lambda known: serves(known, version), releases))
