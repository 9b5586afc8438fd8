"""Values that shells offer for options and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer  # noqa: TC002  # typer reads the annotations

from apflint.releases import API_VERSIONS, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Candidate = str | tuple[str, str]
"""A value, or a value and its description."""


def complete_releases(incomplete: str) -> list[str]:
    """Complete `1.36`."""
    return _matching((release.name for release in reversed(RELEASES)), incomplete)


def complete_api_versions(incomplete: str) -> list[str]:
    """Complete `v1beta3`."""
    return _matching((version.name for version in API_VERSIONS), incomplete)


def complete_configuration(incomplete: str) -> list[str]:
    """Complete `defaults:1.36`. Without candidates, shells complete files."""
    from apflint.inputs.apf_configuration import BUILT_IN_PREFIX

    return _matching((f"{BUILT_IN_PREFIX}{release.name}" for release in reversed(RELEASES)), incomplete)


def complete_rule(incomplete: str) -> list[Candidate]:
    """Complete the id or the name of a rule."""
    return [candidate for candidate in _rules() if candidate[0].startswith(incomplete)]


def complete_rules(incomplete: str) -> list[Candidate]:
    """Complete the last of several rules, separated by commas."""
    earlier, comma, last = incomplete.rpartition(",")
    return [(f"{earlier}{comma}{value}", description) for value, description in _rules() if value.startswith(last)]


def _rules() -> Iterator[tuple[str, str]]:
    from apflint.catalogue import read_rules

    for rule in read_rules():
        yield rule.id, rule.name
        yield rule.name, rule.id


def complete_formats(incomplete: str) -> list[str]:
    """Complete a format of `apflint check`."""
    from apflint.output.findings import FORMATS

    return _matching(FORMATS, incomplete)


def complete_report(incomplete: str) -> list[str]:
    """Complete the format in `FORMAT=FILE`."""
    return [f"{name}=" for name in complete_formats(incomplete)]


def complete_request(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the verb, which is the first word of a request."""
    from apflint.requests.request import VERBS

    return [] if ctx.params.get("words") else _matching(VERBS, incomplete)


def _matching(values: Iterable[str], incomplete: str) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]
