"""`apflint check`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from apflint.cli import completers
from apflint.cli.app import LINT, app, examples
from apflint.cli.check_run import CheckRun, Output, check_selection, run_check
from apflint.cli.exit_codes import ExitCode, print_note
from apflint.cli.options import (
    CLUSTER,
    FIXES,
    INPUT,
    OUTPUT,
    RULES,
    BaselineFile,
    Color,
    ConfigFile,
    Context,
    Exclude,
    ExitZero,
    ExtendSelect,
    Filenames,
    ForceExclude,
    Ignore,
    Isolated,
    Kubernetes,
    Paths,
    Select,
    ServerConcurrency,
    StdinFilename,
    UnsafeFixes,
    manifest_paths,
    parse_patterns,
    parse_selectors,
)
from apflint.cli.report_files import check_report_files, parse_report_file
from apflint.errors import UserError
from apflint.inputs.selection import Selection
from apflint.settings import resolve_settings
from apflint.wording import pluralize

FindingsFormat = Literal["text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown"]
Threshold = Literal["error", "warning", "info", "never"]


@app.command(
    rich_help_panel=LINT,
    epilog=examples(
        ("a directory and all directories below", "apflint check manifests/"),
        ("what Helm renders; findings name the templates", "helm template CHART | apflint check -"),
        ("what Kustomize builds", "kustomize build overlays/prod | apflint check -"),
        ("for the release of the cluster", "apflint check --kubernetes 1.29 manifests/"),
        (
            "on GitHub, with a file for code scanning",
            "apflint check --format github --report sarif=apflint.sarif manifests/",
        ),
        ("some rules, by the start of their ids", "apflint check --select APF2,APF3 ."),
        ("exit with 1 if there are warnings, too", "apflint check --fail-on warning ."),
        ("fix what can be fixed safely, and show the rest", "apflint check --fix manifests/"),
        ("record the findings, to see only new ones later", "apflint check --baseline known.json --write-baseline ."),
    ),
)
def check(
    paths: Paths = None,
    filename: Filenames = None,
    exclude: Exclude = None,
    force_exclude: ForceExclude = False,
    stdin_filename: StdinFilename = None,
    context: Context = None,
    require_objects: Annotated[
        bool,
        typer.Option(
            "--require-objects",
            help="Exit with 2 if there are no FlowSchemas and no priority levels.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    select: Select = None,
    extend_select: ExtendSelect = None,
    ignore: Ignore = None,
    no_ignores: Annotated[
        bool,
        typer.Option("--no-ignores", help="Ignore suppression comments and annotations.", rich_help_panel=RULES),
    ] = False,
    baseline: BaselineFile = None,
    write_baseline: Annotated[
        bool,
        typer.Option("--write-baseline", help="Record all findings in the file of --baseline.", rich_help_panel=RULES),
    ] = False,
    kubernetes: Kubernetes = None,
    server_concurrency: ServerConcurrency = None,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="Treat the manifests as the cluster's complete configuration.", rich_help_panel=CLUSTER
        ),
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Apply safe fixes, and show the other findings.", rich_help_panel=FIXES)
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the edits that --fix would make.", rich_help_panel=FIXES)
    ] = False,
    unsafe_fixes: UnsafeFixes = False,
    output_format: Annotated[
        FindingsFormat | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, concise, json, sarif, github, gitlab, junit or markdown.",
            show_default="text",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMAT=FILE",
            autocompletion=completers.complete_report,
            help="Write a report to a file, too; repeatable.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    fail_on: Annotated[
        Threshold | None,
        typer.Option(
            help="Exit with 1 if there are findings of this severity or higher.",
            show_default="error",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    exit_zero: ExitZero = False,
    statistics: Annotated[
        bool,
        typer.Option("--statistics", help="Show the number of findings of each rule instead.", rich_help_panel=OUTPUT),
    ] = False,
    color: Color = "auto",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show findings only, without the summary.", rich_help_panel=OUTPUT)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show field paths, and all skipped files.", rich_help_panel=OUTPUT)
    ] = False,
    config: ConfigFile = None,
    isolated: Isolated = False,
) -> int:
    """Check manifests for errors the API server rejects and mistakes it silently accepts.

    All manifests are analyzed together with the built-in objects of the
    Kubernetes release. Files without APF objects are skipped.

    Exits with 1 if there are findings at or above --fail-on.
    """
    settings = resolve_settings(
        {
            "select": parse_selectors(select),
            "extend_select": parse_selectors(extend_select),
            "ignore": parse_selectors(ignore),
            "fail_on": fail_on,
            "kubernetes": kubernetes,
            "exclude": parse_patterns(exclude),
            "context": tuple(context) if context else None,
            "complete": complete or None,
            "server_concurrency": server_concurrency,
            "format": output_format,
        },
        config,
        isolated=isolated,
    )
    selection = Selection(
        manifest_paths(paths, filename),
        settings.exclude,
        force_exclude,
        stdin_filename,
        settings.context,
        baseline,
    )
    output = Output(
        settings.format,
        settings.fail_on,
        color,
        quiet,
        verbose,
        statistics,
        tuple(map(parse_report_file, report or ())),
        exit_zero,
        "apflint fix -" if selection.paths == ("-",) else "apflint fix",
    )
    if statistics and output.format not in ("text", "concise"):
        raise UserError(f"--statistics requires --format text or concise, and the format is {output.format}")
    _reject_conflicts(
        {
            "--write-baseline": write_baseline,
            "--fix": fix,
            "--diff": diff,
            "--report": bool(report),
        }
    )
    if write_baseline and baseline is None:
        raise UserError("--write-baseline requires --baseline FILE, the file to write")
    if unsafe_fixes and not (fix or diff):
        raise UserError("--unsafe-fixes requires --fix or --diff")
    check_report_files(output.report_files, selection)
    run = CheckRun(selection, settings.to_options(suppressions=not no_ignores), require_objects)
    if fix or diff:
        from apflint.cli.fix import fix_and_check

        return fix_and_check(run, output, diff=diff, unsafe=unsafe_fixes)
    if write_baseline:
        return _write_baseline(run)
    return run_check(run, output)


def _reject_conflicts(given: dict[str, bool]) -> None:
    """Raise UserError for two options that exclude each other. Only --fix and --report go together."""
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1 and names != ["--fix", "--report"]:
        raise UserError(f"{names[0]} and {names[1]} cannot be combined")


def _write_baseline(run: CheckRun) -> int:
    """Record all findings in the baseline file, or nothing if an input is unreadable: its known findings would be lost."""
    from apflint.inputs.baseline_file import read_previous_baseline, write_baseline

    path = run.selection.baseline
    assert path is not None, "checked with the options"
    previous = read_previous_baseline(path)
    errors: list[str] = []
    report = check_selection(run, errors)
    if errors:
        for message in (*errors, f"{path} is not written, because some inputs are unreadable"):
            print_note(message)
        return ExitCode.ERROR
    kept = write_baseline(report, path, run.selection.paths, run.options, previous)
    entries = "1 entry" if kept == 1 else f"{kept} entries"
    verb = "is" if kept == 1 else "are"
    more = f"; {entries} about files and rules outside this run {verb} kept" if kept else ""
    print_note(f"{pluralize(len(report.findings), 'finding')} written to {path}{more}")
    return ExitCode.OK
