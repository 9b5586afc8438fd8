"""Options and arguments that several commands share: each with its type, parser, completion, help panel and help text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import completers
from apflint.errors import UserError
from apflint.releases import NEWEST, RELEASES, Release
from apflint.releases import parse_release as parse_known_release
from apflint.settings.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.inputs.cluster import ClusterOptions
    from apflint.rule_selection import RuleSelector

CLUSTER = "Cluster"
FIXES = "Fixes"
INPUT = "Input"
OUTPUT = "Output"
RULES = "Rules"
SETTINGS = "Settings"

MAX_SEATS = 2**31 - 1
"""Maximum seats of an API server: its flags are 32-bit integers."""

ColorMode = Literal["auto", "always", "never"]
PageFormat = Literal["text", "json"]


def parse_release(text: str) -> Release:
    """Parse `1.36`. Raises typer.BadParameter for an unknown release."""
    try:
        return parse_known_release(text)
    except UserError as error:
        raise typer.BadParameter(str(error)) from error


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


def parse_selectors(values: Iterable[str] | None) -> tuple[RuleSelector, ...] | None:
    """Parse the rules of a repeatable option, which are separated by commas, too. Return None if the option is absent.

    Raises UserError for an unknown rule.
    """
    if values is None:
        return None
    from apflint.rule_selection import parse_selector

    words = (word.strip() for value in values for word in value.split(","))
    return tuple(parse_selector(word) for word in words if word)


def parse_patterns(globs: list[str] | None) -> Patterns | None:
    """Return the patterns of a repeatable option, or None if the option is absent."""
    return Patterns(tuple(globs)) if globs else None


def manifest_paths(paths: list[str] | None, filenames: list[str] | None) -> tuple[str, ...]:
    """Return the paths of arguments and of -f, or the current directory."""
    return (*(paths or ()), *(filenames or ())) or (".",)


Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH]...",
        help="Files, directories (the *.yaml, *.yml and *.json files below), or - for standard input.",
        show_default="the current directory",
    ),
]
Filenames = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="PATH",
        help="Files, directories, or - for standard input; repeatable.",
        rich_help_panel=INPUT,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="Ignore matching files and directories below directories; repeatable.",
        rich_help_panel=INPUT,
    ),
]
ForceExclude = Annotated[
    bool, typer.Option("--force-exclude", help="Apply --exclude to named files, too.", rich_help_panel=INPUT)
]
StdinFilename = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Name to show for standard input.", rich_help_panel=INPUT),
]
Context = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="Further manifests of the cluster, which are read but have no findings; repeatable.",
        rich_help_panel=INPUT,
    ),
]
BaselineFile = Annotated[
    str | None,
    typer.Option("--baseline", metavar="FILE", help="Hide findings recorded in this file.", rich_help_panel=RULES),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULES",
        autocompletion=completers.complete_rules,
        help="Run only these rules: ids, prefixes of ids, or names, separated by commas.",
        rich_help_panel=RULES,
    ),
]
ExtendSelect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULES",
        autocompletion=completers.complete_rules,
        help="Run these rules, too, such as rules that are off by default.",
        rich_help_panel=RULES,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULES",
        autocompletion=completers.complete_rules,
        help="Do not run these rules.",
        rich_help_panel=RULES,
    ),
]
Kubernetes = Annotated[
    Release | None,
    typer.Option(
        "--kubernetes",
        metavar="X.Y",
        parser=parse_release,
        autocompletion=completers.complete_releases,
        help=f"Kubernetes release, {RELEASES[0].name} to {NEWEST.name}.",
        show_default="the newest",
        rich_help_panel=CLUSTER,
    ),
]
NoDefaults = Annotated[
    bool,
    typer.Option("--no-defaults", help="Leave out the built-in objects of the release.", rich_help_panel=CLUSTER),
]
ServerConcurrency = Annotated[
    int | None,
    typer.Option(
        "--server-concurrency",
        metavar="N|N+N",
        parser=parse_seats,
        help="Seats of one API server: the sum of its flags --max-requests-inflight and --max-mutating-requests-inflight.",
        show_default="400+200",
        rich_help_panel=CLUSTER,
    ),
]
UnsafeFixes = Annotated[
    bool,
    typer.Option("--unsafe-fixes", help="Include fixes that may change the meaning of objects.", rich_help_panel=FIXES),
]
ExitZero = Annotated[
    bool,
    typer.Option("--exit-zero", help="Exit with 0 instead of 1. Errors still exit with 2.", rich_help_panel=OUTPUT),
]
Color = Annotated[
    ColorMode,
    typer.Option(
        "--color",
        help="Color the output. auto: on a terminal, unless NO_COLOR is set, or if FORCE_COLOR is set.",
        rich_help_panel=OUTPUT,
    ),
]
Format = Annotated[PageFormat, typer.Option("--format", help="Output format.", rich_help_panel=OUTPUT)]
ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings file to use instead of the closest one.", rich_help_panel=SETTINGS
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Ignore settings files.", rich_help_panel=SETTINGS)]


def cluster_options(
    kubernetes: Release | None,
    server_concurrency: int | None = None,
    *,
    no_defaults: bool = False,
    config: str | None = None,
    isolated: bool = False,
) -> ClusterOptions:
    """Return the options of a command that reads a cluster's configuration."""
    from apflint.inputs.cluster import ClusterOptions  # `apflint shards` does without

    return ClusterOptions(kubernetes, server_concurrency, not no_defaults, config, isolated)
