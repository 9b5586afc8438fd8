"""The command `apflint replay`."""

from __future__ import annotations

import gc
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.completers import complete_configuration
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.cli.sides import describe_side, read_live, read_side, require_objects
from apflint.cli.terminal import style
from apflint.errors import UserError
from apflint.inputs.apf_configuration import (
    BUILT_IN_PREFIX,
    LIVE,
    ClusterOptions,
    list_clusters,
    read_cluster,
    select_cluster,
)
from apflint.inputs.audit_logs import find_audit_logs
from apflint.inputs.object_counts import read_object_counts
from apflint.output.json_text import to_json
from apflint.output.replay.comparison import Sides, comparison_json, render_comparison, render_markdown
from apflint.output.replay.json import replay_json, request_json
from apflint.releases import parse_release
from apflint.replay.filters import Filter, check_period, parse_condition, parse_dimensions, parse_moment
from apflint.replay.running import ReplayOptions, compare
from apflint.replay.running import replay as run_replay
from apflint.replay.statistics import compute_report, stream_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.cli.progress import Progress
    from apflint.effective import Effective
    from apflint.inputs.audit_logs import AuditLogFile
    from apflint.output.console import Style
    from apflint.replay.comparison import ReplayComparison
    from apflint.replay.log import Coverage
    from apflint.replay.statistics import ReplayReport

ENGINE = "Engine"
_LOG_HELP = "Audit logs: files, directories, patterns, or - for standard input; also .gz and .zst."
_SINCE_HELP = "Only requests received at this time or later, or in this last part of the log, such as 2h."
_UNTIL_HELP = "Only requests received before this time, or before this last part of the log."
_WHERE_HELP = "Only requests with this value, such as user=alice, verb!=watch or user=system:node:*; repeatable."
_COMPARE_HELP = "Show which requests another configuration assigns differently: manifests, cluster:NAME, git:REVISION[:PATH], live, or defaults:X.Y for the same manifests with another release."
_BY_HELP = "Group the requests by these, separated by commas: user, group, userAgent, verb, resource, namespace, flowSchema, priorityLevel, flow, status, server."


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("who fills the priority levels", "apflint replay audit.log -f manifests/"),
        ("all rotated files, by user and verb", "apflint replay logs/ --by user,verb --top 20"),
        ("the last hour of a client", "apflint replay audit.log --since 1h --where user=alice"),
        ("the configuration of the running cluster", "apflint replay audit.log --live"),
        ("what a branch would have changed", "apflint replay audit.log -f manifests/ --compare git:main:manifests"),
        ("an upgrade of Kubernetes", "apflint replay audit.log --kubernetes 1.33 --compare defaults:1.36"),
        ("the priority level of each request", "zcat audit.log.gz | apflint replay - --each"),
    ),
)
def replay(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help=_LOG_HELP, show_default=False)],
    filename: options.Filenames = None,
    kustomize: options.Kustomize = None,
    since: Annotated[str | None, option(INPUT, _SINCE_HELP, metavar="TIME")] = None,
    until: Annotated[str | None, option(INPUT, _UNTIL_HELP, metavar="TIME")] = None,
    where: Annotated[list[str] | None, option(INPUT, _WHERE_HELP, metavar="NAME=VALUE")] = None,
    cluster: options.Cluster = None,
    live: options.Live = False,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
    kubernetes: options.Kubernetes = None,
    no_defaults: options.NoDefaults = False,
    server_concurrency: options.ServerConcurrency = None,
    metrics: Annotated[
        str | None,
        option(
            CLUSTER,
            "Metrics of the API server, for the seats of lists: a file with the output of kubectl get --raw /metrics.",
            metavar="FILE",
        ),
    ] = None,
    objects: Annotated[
        list[str] | None,
        option(
            CLUSTER,
            "Number of objects of a resource and their average size, as in pods=5000:4000; repeatable.",
            metavar="RESOURCE=COUNT[:BYTES]",
        ),
    ] = None,
    compared: Annotated[
        str | None,
        option(CLUSTER, _COMPARE_HELP, "--compare", metavar="OTHER", autocompletion=complete_configuration),
    ] = None,
    engine: Annotated[
        Literal["auto", "duckdb", "python", "spark"],
        option(ENGINE, "auto: DuckDB for logs over 50 MB, if it is installed."),
    ] = "auto",
    spark_remote: Annotated[
        str | None, option(ENGINE, "Spark Connect server for --engine spark. [default: a local Spark]", metavar="URL")
    ] = None,
    memory: Annotated[
        str, option(ENGINE, "Memory for DuckDB. Further data is kept in temporary files.", metavar="SIZE")
    ] = "224MB",
    by: Annotated[str | None, option(OUTPUT, _BY_HELP, metavar="NAMES")] = None,
    top: Annotated[
        int | None,
        option(OUTPUT, "Number of groups of --by, and of users of each level.", metavar="N", show_default="10 and 3"),
    ] = None,
    each: Annotated[bool, option(OUTPUT, "Print a line of JSON for each request.", "--each")] = False,
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format.", "--format")
    ] = "text",
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Show which priority levels the requests in an audit log get.

    For each priority level: requests, rejections, waits, seats in use and
    users. The configuration consists of the manifests, or those of the only
    cluster of the settings, and of the built-in objects of the Kubernetes
    release.

    With --compare, exits with 1 if a request moves, or a priority level with
    requests has other limits or other seats in use.
    """
    dimensions = parse_dimensions(by) if by is not None else ()
    is_document = output_format in ("markdown", "html")
    options.reject_combinations(
        {"--each": each},
        {"--by": by is not None, "--top": top is not None, f"--format {output_format}": is_document},
    )
    options.reject_combinations({"--compare": compared}, {"--each": each, "--by": by is not None})
    if top is not None and top < 1:
        raise UserError("--top must be at least 1")
    conditions = tuple(map(parse_condition, where or ()))
    selected = Filter(conditions, parse_moment("--since", since), parse_moment("--until", until))
    check_period(selected.since, selected.until)
    kubectl = None
    if live or compared != LIVE:
        kubectl = options.parse_live(live, kubeconfig, kube_context, no_defaults=no_defaults)
    options.reject_combinations({"--live": live, "--kustomize": kustomize}, {"--cluster": cluster})
    paths = options.chain_paths(filename)
    is_other_release = compared is not None and compared.startswith(BUILT_IN_PREFIX)
    inputs = {
        "the manifests": paths,
        "the audit log": logs,
        "the metrics": [metrics],
        "the other side": paths if is_other_release else [compared],
    }
    _reject_shared_stdin([name for name, found in inputs.items() if "-" in found])
    counts = read_object_counts(metrics, objects or ())
    if spark_remote and engine != "spark":
        raise UserError("--spark-remote needs --engine spark")
    wanted = ReplayOptions(engine, memory, dimensions, selected, counts, each=each, spark_remote=spark_remote)
    files = find_audit_logs(logs, allow_urls=engine == "spark")
    settings = ClusterOptions(
        kubernetes, server_concurrency, not no_defaults, config, isolated, kubectl, cluster, tuple(kustomize or ())
    )
    if compared is not None:
        if live:
            settings = read_live(settings, kubeconfig, kube_context)  # both sides share the objects
        known, name = _read_configuration(paths, settings)
        if compared == LIVE and not live:  # the running cluster has the seats of the other side
            settings = settings._replace(server_concurrency=known.limits.server_concurrency)
            settings = read_live(settings, kubeconfig, kube_context)
        other, other_name = _read_other_side(compared, paths, settings)
        comparison = _compare(files, known, other, wanted, top)
        sys.stdout.write(_render_comparison(comparison, Sides(name, other_name), output_format, style(color)))
        problem = _report_problems(comparison.old.coverage, is_shown=output_format != "json")
        return problem or (ExitCode.FINDINGS if comparison.changed and not exit_zero else ExitCode.OK)
    known, name = _read_configuration(paths, settings)
    report, coverage = _run(files, known, wanted, top)
    if report is not None:
        sys.stdout.write(_render(report._replace(configuration=name), output_format, style(color)))
    return _report_problems(coverage, is_shown=report is not None and output_format != "json")


def _render(report: ReplayReport, output_format: str, how: Style) -> str:
    if output_format == "json":
        return to_json(replay_json(report), 2)
    if output_format == "markdown":
        from apflint.output.replay import markdown

        return markdown.render(report)
    if output_format == "html":
        from apflint.output.replay import html

        return html.render(report)
    from apflint.output.replay import text

    return text.render(report, how)


def _render_comparison(comparison: ReplayComparison, sides: Sides, output_format: str, how: Style) -> str:
    if output_format == "json":
        return to_json(comparison_json(comparison, sides), 2)
    if output_format == "markdown":
        return render_markdown(comparison, sides)
    if output_format == "html":
        from apflint.output.replay import html

        return html.render_comparison(comparison, sides)
    return render_comparison(comparison, sides, how)


def _read_configuration(paths: tuple[str, ...], settings: ClusterOptions) -> tuple[Effective, str]:
    """Read the configuration as other commands do, but never the manifests in the current directory. Return it with its name.

    The current directory is often one of logs, whose JSON files are not manifests.
    """
    if paths or settings.names_manifests or list_clusters(settings):
        paths, settings = select_cluster(paths, settings)
    notes: list[str] = []
    known = read_cluster(paths, settings, notes.append)
    name = describe_side(paths, settings, known)
    if paths or settings.kustomizations:
        require_objects(known, name, notes)
    else:
        for note in notes:
            print_note(note)
    return known, name


def _read_other_side(name: str, paths: tuple[str, ...], settings: ClusterOptions) -> tuple[Effective, str]:
    """Read the configuration to compare with, and return its name. `defaults:X.Y` is the same configuration in a release."""
    if not name.startswith(BUILT_IN_PREFIX):
        return read_side(name, (), settings._replace(kustomizations=()), needs_objects=True)
    if settings.live is not None:
        raise UserError(
            f"--live and --compare {name} cannot be combined: a running cluster has its own built-in objects"
        )
    release = parse_release(name.removeprefix(BUILT_IN_PREFIX))
    known, _ = _read_configuration(paths, settings._replace(kubernetes=release))
    return known, " + ".join((name, *paths, *settings.kustomizations))


def _reject_shared_stdin(inputs: list[str]) -> None:
    if len(inputs) > 1:
        raise UserError(f"standard input cannot be both {inputs[0]} and {inputs[1]}")


@contextmanager
def _show_reading(files: list[AuditLogFile]) -> Iterator[tuple[Progress, Callable[[int], None]]]:
    """Show a progress bar. Yield it with the function that is called with the number of bytes read since the last call."""
    total, done = sum(file.size for file in files), 0
    gc.disable()  # rows have no reference cycles; looking for them would take a third of the time
    try:
        with show_progress("Reading") as progress:

            def show(size: int) -> None:
                nonlocal done
                done += size
                # Streams have no size, and compressed files contain more than their size.
                known_total = f" of {total / 1e6:,.0f} MB" if done <= total else ""
                progress.label = f"Read {done / 1e6:,.0f} MB{known_total}"

            yield progress, show
    finally:
        gc.enable()


def _run(
    files: list[AuditLogFile], known: Effective, wanted: ReplayOptions, top: int | None
) -> tuple[ReplayReport | None, Coverage]:
    """Read and classify the requests. Return the report, or print each request and return None as the report."""
    with _show_reading(files) as (progress, show):
        result = run_replay(files, known, wanted, show)
        with closing(result.log.database):
            progress.label = "Computing the report"
            if not wanted.each:
                return compute_report(result, wanted.by, top or 3, top or 10), result.log.coverage
            for answer in stream_requests(result.log):
                sys.stdout.write(to_json(request_json(answer)))
            return None, result.log.coverage


def _compare(
    files: list[AuditLogFile], known: Effective, other: Effective, wanted: ReplayOptions, top: int | None
) -> ReplayComparison:
    with _show_reading(files) as (_, show):
        return compare(files, known, other, wanted, top or 3, show)


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
