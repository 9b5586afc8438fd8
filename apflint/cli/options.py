"""Options that several commands share, and what they may be."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer


class FailOn(StrEnum):
    """From which severity on findings make the exit status 1."""

    error = "error"
    warning = "warning"
    info = "info"
    never = "never"


class Colour(StrEnum):
    """When output is coloured."""

    auto = "auto"
    always = "always"
    never = "never"


class CheckFormat(StrEnum):
    """How findings are printed."""

    text = "text"
    concise = "concise"
    json = "json"
    sarif = "sarif"
    github = "github"
    gitlab = "gitlab"
    junit = "junit"
    markdown = "markdown"


class PageFormat(StrEnum):
    """How rules and tables are printed."""

    text = "text"
    json = "json"


class GraphFormat(StrEnum):
    """How the configuration is drawn."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    html = "html"


class DefaultsFormat(StrEnum):
    """How built-in objects are printed."""

    yaml = "yaml"
    json = "json"


class DiffFormat(StrEnum):
    """How differences are printed."""

    text = "text"
    json = "json"
    markdown = "markdown"


class ResultFormat(StrEnum):
    """How the results of suites are printed."""

    text = "text"
    json = "json"
    junit = "junit"


class Shell(StrEnum):
    """Shells with a completion script."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


MAX_SEATS = 2**31 - 1
"""Maximum seats of an API server: its flags are 32-bit integers."""


def parse_seats(text: str) -> int:
    """Parse `600`, or `400+200`: the values of --max-requests-inflight and --max-mutating-requests-inflight.

    Raises typer.BadParameter for anything else, and for seats with which kube-apiserver does not start.
    """
    match = re.fullmatch(r"(\d{1,20})(?:\+(\d{1,20}))?", text.strip(), re.ASCII)
    seats = int(match[1]) + int(match[2] or 0) if match else 0
    if not 1 <= seats <= MAX_SEATS:
        raise typer.BadParameter(
            f'"{text}" is not an integer from 1 to {MAX_SEATS}, or the sum of the two inflight flags of kube-apiserver,'
            " such as 400+200"
        )
    return seats


Kubernetes = Annotated[
    str | None, typer.Option(metavar="X.Y", help="Target release, 1.18 to 1.37 (default: the newest known).")
]
Color = Annotated[
    Colour, typer.Option("--color", help="auto asks NO_COLOR, FORCE_COLOR and whether this is a terminal.")
]
Files = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", metavar="PATH", help="Manifests: files, directories, - (repeatable; default .)."),
]
NoDefaults = Annotated[bool, typer.Option("--no-defaults", help="Without the built-in objects of the release.")]
Seats = Annotated[
    int | None,
    typer.Option(
        "--server-concurrency",
        metavar="N|N+N",
        parser=parse_seats,
        help="Seats of one API server, or its --max-requests-inflight + --max-mutating-requests-inflight (default 400+200).",
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no configuration file.")]
ConfigFile = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="Settings, in place of the closest apflint.toml.")
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Files in directories to leave out; repeatable.")
]
ForceExclude = Annotated[bool, typer.Option("--force-exclude", help="Leave out named files as well.")]
UnsafeFixes = Annotated[bool, typer.Option("--unsafe-fixes", help="Make also fixes that change what the objects mean.")]
