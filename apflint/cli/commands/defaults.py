"""Defines `apflint defaults`, which prints the built-in objects of a release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.completers import complete_api_versions
from apflint.cli.options import CLUSTER, OUTPUT, option
from apflint.output.defaults import render_defaults_json, render_defaults_yaml
from apflint.releases import API_VERSIONS, GROUP, NEWEST, parse_api_version
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.releases import Release


@command(
    panel="Analyze",
    epilog=examples(
        ("the objects of the newest release, as YAML", "apflint defaults"),
        ("the objects of another release", "apflint defaults --kubernetes 1.28"),
        ("what an upgrade changes", "apflint diff defaults:1.28 defaults:1.36"),
    ),
)
def defaults(
    kubernetes: options.Kubernetes = None,
    api_version: Annotated[
        str | None,
        option(
            CLUSTER,
            "API version of the objects.",
            metavar="V",
            autocompletion=complete_api_versions,
            show_default="the newest that the release serves",
        ),
    ] = None,
    output_format: Annotated[Literal["yaml", "json"], option(OUTPUT, "Output format.", "--format")] = "yaml",
) -> None:
    """Print the built-in objects that every API server of a release creates.

    Servers always have the mandatory objects, and do not let you change them.
    You may change the suggested objects.
    """
    release = kubernetes or NEWEST
    version = _choose_version(api_version, release)
    render = render_defaults_json if output_format == "json" else render_defaults_yaml
    sys.stdout.write(render(release, version))


def _choose_version(text: str | None, release: Release) -> str:
    """Return the API version in `text`, or the newest version that the release serves if `text` is None.

    Raises UserError for an unknown version, and for a version that is newer than the release.
    """
    if text is None:
        return release.newest_version
    version = parse_api_version(text)
    introduced = next(life.introduced for life in API_VERSIONS if life.name == version)
    if introduced > release.minor:
        raise UserError(
            f"Kubernetes {release.name} has no {GROUP}/{version}, which 1.{introduced} introduces. Its newest version is"
            f" {release.newest_version}"
        )
    return version
