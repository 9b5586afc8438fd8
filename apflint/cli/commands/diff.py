"""The command `apflint diff`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.completers import complete_configuration
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import INPUT, OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.diff.requests import Side, compare_configurations
from apflint.errors import UserError
from apflint.inputs.apf_configuration import GIT_PREFIX, ClusterOptions, read_configuration
from apflint.output.diff import Sides, diff_json, render_markdown, render_text
from apflint.output.json_text import to_json

if TYPE_CHECKING:
    from apflint.effective import Effective


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("a branch and the work tree", "apflint diff git:main ."),
        ("two checkouts", "apflint diff main/ branch/"),
        ("an upgrade of Kubernetes", "apflint diff defaults:1.33 defaults:1.36"),
        ("an upgrade of a cluster with these manifests", "apflint diff defaults:1.33 defaults:1.36 -f manifests/"),
        ("for a comment on a pull request", "apflint diff --format markdown --exit-zero old.yaml new.yaml"),
    ),
)
def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            autocompletion=complete_configuration,
            help="File, directory, -, git:REVISION[:PATH] for manifests in git, or defaults:X.Y for the built-in objects of a"
            " release.",
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", autocompletion=complete_configuration, help="The same.")],
    filename: Annotated[
        list[str] | None,
        option(
            INPUT, "Files and directories to add to OLD and to NEW; repeatable.", "--filename", "-f", metavar="PATH"
        ),
    ] = None,
    kubernetes: options.Kubernetes = None,
    no_defaults: options.NoDefaults = False,
    server_concurrency: options.ServerConcurrency = None,
    output_format: Annotated[
        Literal["text", "json", "markdown"], option(OUTPUT, "Output format; markdown is for comments.", "--format")
    ] = "text",
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Show which requests change FlowSchema or priority level, and which seats change.

    Each change comes with a request that proves it. Built-in objects are
    included, unless the manifests define them or --no-defaults is given.

    Exits with 1 if a request or a priority level is affected, or if the
    search for affected requests ended early.
    """
    common = tuple(filename or ())
    if old == new == "-" or "-" in common:
        raise UserError("standard input cannot be both OLD and NEW")
    cluster = ClusterOptions(kubernetes, server_concurrency, not no_defaults, config, isolated)
    before, after = (_read(name, common, cluster) for name in (old, new))
    with show_progress("Comparing"):
        found = compare_configurations(
            Side(before.configuration, before.limits), Side(after.configuration, after.limits)
        )
    sides = Sides(*(" + ".join((_shown(name), *common)) for name in (old, new)))
    if output_format == "json":
        text = to_json(diff_json(found, sides), 2)
    elif output_format == "markdown":
        text = render_markdown(found, sides)
    else:
        text = render_text(found, sides, style(color))
    sys.stdout.write(text)
    return ExitCode.FINDINGS if found.changed and not exit_zero else ExitCode.OK


def _read(name: str, common: tuple[str, ...], cluster: ClusterOptions) -> Effective:
    """Read the configuration `name`, with the manifests in `common`. Print a note if directories or standard input contain no APF objects."""
    names = (name, *common)
    known = read_configuration(names, cluster, print_note)
    for path in () if known.workspace.manifests else names:
        if path == "-" or os.path.isdir(path) or path.startswith(GIT_PREFIX):
            print_note(f"{_shown(path)}: no FlowSchema and no PriorityLevelConfiguration found")
    return known


def _shown(name: str) -> str:
    return "<stdin>" if name == "-" else name
