"""The line of an output that names its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.output.blocks import Prose
from apflint.output.console import render_prose
from apflint.releases import RELEASES, api_version
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.output.console import Style
    from apflint.sources.effective_configurations import EffectiveConfiguration


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

    `sides` are one configuration, or two that are compared. If both have the same release, and no release serves the
    API versions of both, yield a single sentence that says so.
    """
    found: dict[str, dict[str, None]] = {}
    unserved: dict[tuple[str, str], dict[str, None]] = {}
    for side in sides:
        release = side.effective.release
        for document in side.effective.workspace.documents():
            version = document.version
            if api_version(version) is None:
                continue  # manifests with an unknown API version are not used
            found.setdefault(version, {})[side.name] = None
            if version not in (*release.served, *release.on_request):
                unserved.setdefault((release.name, version), {})[side.name] = None
    if not unserved:
        return
    serving = [release for release in RELEASES if not found.keys() - {*release.served, *release.on_request}]
    releases = {side.effective.release for side in sides}
    if not serving and len(releases) < len(sides):
        versions = (f"{_describe_version(version)} of {join_words(names, 'and')}" for version, names in found.items())
        yield (
            f"No release serves {join_words(versions, 'and')}."
            f" This comparison interprets both sides in the same way as Kubernetes {sides[0].effective.release.name}"
        )
        return
    is_assumed = any(side.is_release_assumed for side in sides)
    advice = f": choose the release of your cluster, such as --kubernetes {serving[-1].name}" if serving else ""
    for (release_name, version), names in unserved.items():
        sentence = (
            f"Kubernetes {release_name} does not serve {_describe_version(version)} of {join_words(names, 'and')}"
        )
        yield f"{sentence}{advice if is_assumed else ''}"


def _describe_version(name: str) -> str:
    life = api_version(name)
    return name if life is None else f"{name} ({life.releases})"


def report_configuration(*sentences: str) -> Prose:
    """Return a paragraph that names the basis of a verdict. The last sentence is the description of a configuration.

    For example `Configuration: apf.yaml (2 objects) and built-in objects of 1.36`.
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
