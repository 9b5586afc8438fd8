"""Completion functions: each function returns the values that a shell suggests for an incomplete option or argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from apflint.releases import API_VERSIONS, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Candidate = str | tuple[str, str]
"""A suggested value, or a suggested value and its description."""


class ParsedWords(Protocol):
    """The attributes of `typer.Context` that completers use.

    Completers use this protocol because importing `typer.Context` would take 27 ms.
    """

    params: Mapping[str, str]
    """Maps the names of parameters to the values of their options. Only options with string values are used."""


def complete_releases(incomplete: str) -> list[str]:
    """Return the Kubernetes releases, such as `1.36`, that begin with `incomplete`, newest release first."""
    return _matching((release.name for release in reversed(RELEASES)), incomplete)


def complete_api_versions(incomplete: str) -> list[str]:
    """Complete an API version, such as `v1beta3`."""
    return _matching((version.name for version in API_VERSIONS), incomplete)


def complete_configuration(ctx: ParsedWords, incomplete: str) -> list[str]:
    """Complete `defaults:X.Y` with a release, or `cluster:NAME` with a cluster in the settings.

    If nothing matches, return nothing. The shell then completes file names.
    """
    from apflint.sources.source_arguments import BUILT_IN_PREFIX, CLUSTER_PREFIX

    releases = (f"{BUILT_IN_PREFIX}{release.name}" for release in reversed(RELEASES))
    clusters = (f"{CLUSTER_PREFIX}{name}" for name in complete_clusters(ctx, ""))
    return _matching((*releases, *clusters), incomplete)


def complete_clusters(ctx: ParsedWords, incomplete: str) -> list[str]:
    """Complete the name of a cluster in the settings. If the settings are invalid, suggest no names."""
    from apflint.settings.resolution import resolve_settings
    from apflint.user_error import UserError

    try:
        settings = resolve_settings(config=ctx.params.get("config"))
    except (UserError, OSError):
        return []
    return _matching((cluster.name for cluster in settings.cluster), incomplete)


def complete_rule(incomplete: str) -> list[Candidate]:
    """Return (id, name) or (name, id) of each rule if the first of the two begins with `incomplete`."""
    return [candidate for candidate in _rules() if candidate[0].startswith(incomplete)]


def complete_rules(incomplete: str) -> list[Candidate]:
    """Complete the last rule in a list of rules that are separated by commas."""
    earlier, comma, last = incomplete.rpartition(",")
    return [(f"{earlier}{comma}{value}", description) for value, description in _rules() if value.startswith(last)]


def _rules() -> Iterator[tuple[str, str]]:
    from apflint.rule_catalogue import read_rules

    for rule in read_rules():
        yield rule.id, rule.name
        yield rule.name, rule.id


def complete_formats(incomplete: str) -> list[str]:
    """Complete an output format of `apflint check`."""
    from apflint.output.findings import FORMATS

    return _matching(FORMATS, incomplete)


def complete_report(incomplete: str) -> list[str]:
    """Complete the format in a value of `--report`, which is `FORMAT=FILE`."""
    return [f"{name}=" for name in complete_formats(incomplete)]


def complete_request(ctx: ParsedWords, incomplete: str) -> list[str]:
    """Complete the verb, which is the first argument of a request. Later arguments are not completed."""
    from apflint.requests.request import VERBS

    return [] if ctx.params.get("words") else _matching(VERBS, incomplete)


def complete_file_or_verb(ctx: ParsedWords, incomplete: str) -> list[str]:
    """Return the verbs that begin with `incomplete`, or an empty list if `incomplete` is empty.

    Only the first argument can be a verb, so return an empty list for later arguments. If the list is
    empty, the shell completes file names instead.
    """
    return complete_request(ctx, incomplete) if incomplete else []


def _matching(values: Iterable[str], incomplete: str) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]
