"""Describes the configuration of a report, such as `Configuration: apf.yaml (2 objects) and ...`.

If a report compares two configurations, names and describes both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.output.blocks import Prose
from apflint.output.console import render_prose
from apflint.releases import GROUP, RELEASES, api_version
from apflint.wording import count_noun, join_some, join_words, quote, write_sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from apflint.load.document import Document
    from apflint.output.console import Style
    from apflint.releases import Release
    from apflint.sources.effective_configurations import EffectiveConfiguration


_MAX_FILES = 3


class Sides(NamedTuple):
    """The names of two configurations that are compared, and their descriptions."""

    old: str
    new: str
    old_description: str = ""
    new_description: str = ""
    is_release_assumed: bool = False
    """Whether the release of a side is the newest one because nothing states it."""
    unserved: tuple[str, ...] = ()
    """Sentences about API versions in the manifests that the releases do not serve."""

    @property
    def description(self) -> str:
        """The descriptions of both configurations."""
        return f"{self.old_description} -> {self.new_description}"


def name_sides(old: EffectiveConfiguration, new: EffectiveConfiguration) -> Sides:
    """Return the names and descriptions of two configurations."""
    is_assumed = old.is_release_assumed or new.is_release_assumed
    return Sides(
        old.name,
        new.name,
        old.description,
        new.description,
        is_assumed,
        tuple(f"{sentence}." for sentence in describe_unserved(old, new)),
    )


def describe_unserved(*sides: EffectiveConfiguration) -> Iterator[str]:
    """Yield a sentence, without the final period, for each API version in manifests that the release does not serve.

    A sentence names the objects, their files, and what the API server does. `sides` are one configuration, or two that
    are compared. If both have the same release, and no release serves the API versions of both, yield a single sentence
    that says so.
    """
    found: dict[str, dict[Document, None]] = {}
    unserved: dict[tuple[Release, str], dict[Document, None]] = {}
    for side in sides:
        release = side.effective.release
        for document in side.effective.workspace.documents():
            version = document.version
            if api_version(version) is None:
                continue  # manifests with an unknown API version are not used
            found.setdefault(version, {})[document] = None
            if version not in (*release.served, *release.on_request):
                unserved.setdefault((release, version), {})[document] = None
    if not unserved:
        return
    serving = [release for release in RELEASES if not found.keys() - {*release.served, *release.on_request}]
    releases = {side.effective.release for side in sides}
    if not serving and len(releases) < len(sides):
        versions = (
            f"apiVersion {_name_version(version)} of {_name_objects(documents)} ({_name_releases(version)})"
            for version, documents in found.items()
        )
        yield (
            f"No Kubernetes release serves both {join_words(versions, 'and')}: no API server accepts all of them."
            f" This comparison interprets both sides in the same way as Kubernetes {sides[0].effective.release.name}"
        )
        return
    assumed = {side.effective.release for side in sides if side.is_release_assumed}
    for (release, version), documents in unserved.items():
        is_single = len(documents) == 1
        advice = _suggest_version(version, release)
        if release in assumed and serving:
            advice = f"choose the release of your cluster, such as --kubernetes {serving[-1].name}"
        yield (
            f"{_name_objects(documents)} {'has' if is_single else 'have'} apiVersion {_name_version(version)}, which"
            f" only Kubernetes {_name_releases(version)} serve: an API server of {release.name} rejects"
            f" {'it' if is_single else 'them'}. {write_sentence(advice)[:-1]}"
        )


def _suggest_version(version: str, release: Release) -> str:
    """Return a clause that says which API version to use instead of `version`."""
    served, life = (release.served or release.on_request)[0], api_version(version)
    is_older = life is not None and life.introduced < release.minor
    return f"use {served}{f': apflint migrate --to {served}' if is_older else ''}"


def _name_objects(documents: Collection[Document]) -> str:
    """Return a phrase such as `FlowSchema "a" and 2 more objects in apf.yaml`."""
    first = next(iter(documents))
    more = f" and {count_noun(len(documents) - 1, 'more object')}" if len(documents) > 1 else ""
    files = tuple(dict.fromkeys(document.source.name for document in documents))
    return f"{first.kind} {quote(first.name)}{more} in {join_some(files, _MAX_FILES)}"


def _name_version(version: str) -> str:
    return f"{GROUP}/{version}"


def _name_releases(version: str) -> str:
    """Return the releases that serve a known API version, such as `1.26 to 1.31`."""
    life = api_version(version)
    assert life is not None
    return life.releases


def report_configuration(*sentences: str) -> Prose:
    """Return a paragraph that states what a result is about: the sentences, and the configuration.

    The last of `sentences` is the description of the configuration. It becomes a line such as
    `Configuration: apf.yaml (2 objects) and built-in objects of 1.36`.
    """
    *others, description = sentences
    return Prose([*others, f"Configuration: {description}"], "dim")


def render_configuration(description: str, style: Style) -> str:
    """Render the line that names the configuration."""
    return render_prose(style, f"Configuration: {description}", color="dim")


def name_configuration(value: Mapping[str, object], description: str | None) -> dict[str, object]:
    """Return the JSON object `value` with `configuration` inserted after `schema`.

    `description` is None if the command has no configuration.
    """
    return {"schema": value["schema"], "configuration": description, **value}
