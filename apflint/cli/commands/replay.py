"""The command `apflint replay`."""

from __future__ import annotations

import gc
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import INPUT, OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.errors import UserError
from apflint.inputs.apf_configuration import ClusterOptions, read_cluster
from apflint.inputs.audit_logs import find_audit_logs
from apflint.output.json_text import to_json
from apflint.output.replay import render_replay, replay_json, request_json
from apflint.replay.events import parse_time
from apflint.replay.running import ReplayOptions
from apflint.replay.running import replay as run_replay
from apflint.replay.statistics import compute_report, parse_dimensions, stream_requests

if TYPE_CHECKING:
    from apflint.replay.log import Coverage

ENGINE = "Engine"
_LOG_HELP = "Audit logs: files, directories, patterns, or - for standard input; also .gz and .zst."
_BY_HELP = "Group the requests by these, separated by commas: user, group, userAgent, verb, resource, namespace, flowSchema, priorityLevel, flow, status, server."


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("who fills the priority levels", "apflint replay audit.log -f manifests/"),
        ("all rotated files, by user and verb", "apflint replay logs/ --by user,verb --top 20"),
        ("the priority level of each request", "zcat audit.log.gz | apflint replay - --each"),
    ),
)
def replay(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help=_LOG_HELP, show_default=False)],
    filename: options.Filenames = None,
    since: Annotated[
        str | None,
        option(INPUT, "Ignore requests received before this time, as in 2026-11-22T05:49:20Z.", metavar="TIME"),
    ] = None,
    until: Annotated[
        str | None, option(INPUT, "Ignore requests received at this time or later.", metavar="TIME")
    ] = None,
    kubernetes: options.Kubernetes = None,
    no_defaults: options.NoDefaults = False,
    server_concurrency: options.ServerConcurrency = None,
    engine: Annotated[
        Literal["auto", "duckdb", "python"],
        option(ENGINE, "auto: DuckDB for logs over 50 MB, if it is installed."),
    ] = "auto",
    memory: Annotated[
        str, option(ENGINE, "Memory for DuckDB. Further data is kept in temporary files.", metavar="SIZE")
    ] = "256MB",
    by: Annotated[str | None, option(OUTPUT, _BY_HELP, metavar="NAMES")] = None,
    top: Annotated[
        int, option(OUTPUT, "Number of groups of --by, and of users of each priority level.", metavar="N")
    ] = 0,
    each: Annotated[bool, option(OUTPUT, "Print a line of JSON for each request.", "--each")] = False,
    output_format: options.Format = "text",
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Show which priority levels the requests in an audit log get.

    For each priority level: requests, rejections, waits, seats in use and
    users. The configuration consists of the manifests, and of the built-in
    objects of the Kubernetes release.
    """
    dimensions = parse_dimensions(by) if by is not None else ()
    if each and dimensions:
        raise UserError("--each and --by cannot be combined")
    if top < 0:
        raise UserError("--top must be at least 1")
    paths = options.join_paths(filename) if filename else ()
    if "-" in paths and "-" in logs:
        raise UserError("standard input cannot be both the manifests and the audit log")
    wanted = ReplayOptions(
        engine,
        memory,
        dimensions,
        since=_parse_time("--since", since),
        until=_parse_time("--until", until),
        each=each,
    )
    files = find_audit_logs(logs)
    cluster = ClusterOptions(kubernetes, server_concurrency, not no_defaults, config, isolated)
    known = read_cluster(paths, cluster, print_note)
    total, done = sum(file.size for file in files), 0
    gc.disable()  # rows have no reference cycles; looking for them would take a third of the time
    try:
        with show_progress("Reading") as progress:

            def show(size: int) -> None:
                nonlocal done
                done += size
                progress.label = f"Read {done / 1e6:,.0f} MB of {total / 1e6:,.0f} MB"

            result = run_replay(files, known, wanted, show)
            with closing(result.log.database):
                progress.label = "Computing the report"
                report = None if each else compute_report(result, dimensions, top or 3, top or 10)
                if each:
                    for answer in stream_requests(result.log):
                        sys.stdout.write(to_json(request_json(answer)))
    finally:
        gc.enable()
    if report is not None and output_format == "json":
        sys.stdout.write(to_json(replay_json(report), 2))
    elif report is not None:
        sys.stdout.write(render_replay(report, style(color)))
    return _report_problems(result.log.coverage, is_shown=report is not None and output_format == "text")


def _report_problems(coverage: Coverage, *, is_shown: bool) -> ExitCode:
    """Print what was not read on standard error, unless the report shows it. Return the exit code."""
    first = coverage.first_unreadable
    if not is_shown and first is not None:
        print_note(f"{first.file}:{first.line}: {first.reason} (unreadable lines: {coverage.unreadable})")
    if not is_shown:
        for place in coverage.damaged:
            print_note(f"{place.file}:{place.line}: {place.reason}")
    if coverage.interrupted:
        print_note("interrupted: the result is partial")
        return ExitCode.INTERRUPTED
    if not coverage.stages.total():
        print_note("no audit event in the log")
        return ExitCode.ERROR
    return ExitCode.ERROR if coverage.damaged else ExitCode.OK


def _parse_time(name: str, text: str | None) -> int | None:
    time = parse_time(text) if text is not None else None
    if text is not None and time is None:
        raise UserError(f'{name}: "{text}" is not a time with a time zone, such as 2026-11-22T05:49:20Z')
    return time
