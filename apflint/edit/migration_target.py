"""Chooses the API version to migrate to, and the Kubernetes releases that must serve this version."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from apflint.releases import API_VERSIONS, GROUP, RELEASES, ApiVersion, Release, api_version, parse_release
from apflint.user_error import UserError
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class MigrationTarget(NamedTuple):
    """The API version to migrate to, and the Kubernetes releases to support. All of these releases serve the version."""

    version: str
    releases: tuple[Release, ...]


def choose_target(version: str | None = None, releases: Sequence[Release] = ()) -> MigrationTarget:
    """Return the API version and the Kubernetes releases to which manifests are migrated.

    If `version` is not given, choose the newest version that all `releases` serve. If `releases` are
    not given, choose the newest release that serves `version`. If both are given, return both. Raises
    UserError if a release does not serve the version, or if no version is served by all releases.
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
        raise UserError(f"Kubernetes {missing.name} does not serve {version}. This release serves {served}.")
    return MigrationTarget(version, tuple(releases))


def parse_release_range(text: str) -> tuple[Release, ...]:
    """Return the releases from `X.Y` to `X.Z` for the string `X.Y..X.Z`. Raises UserError if the string is not such a range."""
    first, dots, last = text.partition("..")
    if not dots:
        raise UserError(f'"{text}" is not a range of releases. Write a range such as "1.26..1.31".')
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


def warn_about_running_cluster(old: str, target: MigrationTarget, running: Sequence[Release] = ()) -> Iterator[str]:
    """Yield sentences of a warning if a running cluster may not serve the target version yet.

    `old` is the API version before the migration. `running` are the releases of the clusters in the settings. If `running`
    is empty, the cluster is assumed to run some release that serves `old`.
    """
    before, after = _find_version(old), _find_version(target.version)
    unable = [release for release in running if not serves(release, after.name)]
    if not unable and (running or any(serves(release, old) for release in target.releases)):
        return
    names = [f"Kubernetes {release.name}" for release in unable] or [f"Kubernetes 1.{after.introduced - 1} and earlier"]
    verb = "does" if len(unable) == 1 else "do"
    is_later = all(release.minor < after.introduced for release in unable)
    advice = f": apply the result only after the upgrade to 1.{after.introduced} or later" if is_later else ""
    yield f"{join_words(names, 'and')} {verb} not serve {after.name} ({after.releases}){advice}"
    steps = _find_steps(before, after)
    if steps:
        route = " and then ".join(f"{step.name} ({step.releases})" for step in steps)
        yield (
            f"No release serves both {before.name} ({before.releases}) and {after.name}. For the releases"
            f" in between, use {route}: apflint migrate --to {steps[0].name}"
        )
    sources = dict.fromkeys(life.source for life in (before, *steps, after) if life.source is not None)
    yield f"The releases are from {join_words(sources, 'and')}"


def _find_version(name: str) -> ApiVersion:
    found = api_version(name)
    assert found is not None, "only known versions are migrated"
    return found


def _find_steps(before: ApiVersion, after: ApiVersion) -> list[ApiVersion]:
    """Return the versions to which to migrate one after the other, to get from `before` to a release with `after`.

    If some release serves both `before` and `after`, return an empty list. Otherwise, return as few
    versions as possible. For each version in the result, some release serves it together with the
    previous version. Some release also serves the last version in the result together with `after`.
    """
    steps: list[ApiVersion] = []
    current = before
    while not _overlap(current, after):
        current = next(life for life in API_VERSIONS if _overlap(current, life))
        steps.append(current)
    return steps


def _overlap(first: ApiVersion, second: ApiVersion) -> bool:
    """Return whether at least one Kubernetes release serves both API versions."""
    return any(serves(release, first.name) and serves(release, second.name) for release in RELEASES)


def _split(releases: Sequence[Release]) -> Iterator[MigrationTarget]:
    """Divide `releases` into as few groups as possible, and yield a target for each group.

    Each group contains consecutive items of `releases`.
    """
    while releases:
        served = {life.name: (*takewhile(partial(serves, version=life.name), releases),) for life in API_VERSIONS}
        version = max(served, key=lambda name: len(served[name]))
        yield MigrationTarget(version, served[version])
        releases = releases[len(served[version]) :]
