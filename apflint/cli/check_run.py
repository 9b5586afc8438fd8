"""The body of `apflint check`: checks manifests and prints the report."""

from __future__ import annotations

import sys
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.progress import show_progress
from apflint.cli.terminal import is_kubectl_plugin, style
from apflint.finding import SEVERITIES, Report
from apflint.output.console import Style
from apflint.output.findings import render
from apflint.output.findings.summary import render_summary
from apflint.record import NamedTuple
from apflint.releases import NEWEST
from apflint.sources.files import (
    Selection,
    collect_named,
    describe_files_without_objects,
    read_context,
    read_selection,
)
from apflint.sources.renamings import RenamingFinder
from apflint.sources.words import KUSTOMIZE_PREFIX
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.cli.report_files import ReportFile
    from apflint.effective import Renaming
    from apflint.engine import Options
    from apflint.finding import Skipped
    from apflint.releases import Release
    from apflint.sources.discovery import InputFile
    from apflint.sources.kubectl import LiveConfiguration

_MAX_SHOWN_NAMES = 3
MAX_STALE_ENTRIES = 5
"""Maximum number of stale entries that a message names. The finding of a stale baseline entry no longer exists."""


class CheckRun(NamedTuple):
    """Manifests to check, and options of the check."""

    selection: Selection
    get_options: Callable[[], Options]
    kubernetes: Release = NEWEST
    """Release for a report without objects, which does not need the options."""
    require_objects: bool = False
    """Whether to exit with 2 if the manifests contain no FlowSchemas and no priority levels."""

    @property
    def options(self) -> Options:
        """Options of the check."""
        return self.get_options()


class Output(NamedTuple):
    """Format and options of the output, and the lowest severity that causes exit code 1 (`fail_on`)."""

    format: str
    fail_on: str
    color: str = "auto"
    quiet: bool = False
    verbose: bool = False
    statistics: bool = False
    report_files: tuple[ReportFile, ...] = ()
    exit_zero: bool = False
    fix_command: str = "apflint fix"
    """Command that the summary suggests for fixable findings, or "" if fixes have already been applied."""


def suggest_live() -> None:
    """On a terminal, tell users of `kubectl apflint check` without a path how to check the cluster instead of files."""
    if is_kubectl_plugin() and sys.stderr.isatty():
        print_note("to check the objects of the running cluster instead of files: kubectl apflint check --live")


def run_check(run: CheckRun, output: Output) -> int:
    """Check the selected manifests, and print the report. Return the exit code."""
    errors: list[str] = []
    named: list[str] = []
    report = check_selection(run, errors, named)
    baseline = run.selection.baseline
    if baseline is not None:
        report = _hide_known_findings(report, baseline, run)
    if not (output.quiet or run.selection.force_exclude):
        note_files_without_objects(named, report)
    return print_report(report, output, errors, require_objects=run.require_objects)


def check_selection(run: CheckRun, errors: list[str], named: list[str] | None = None) -> Report:
    """Check the selected manifests, and return the report.

    Messages about unreadable files are appended to `errors`. Names of files that the user named are appended to
    `named`.
    """
    selection = run.selection
    skipped: list[Skipped] = []
    partial: tuple[InputFile, ...] = ()
    with show_progress("Reading") as progress:
        if selection.clusters is not None:
            from apflint.cli.cluster_run import check_selected_clusters

            report = check_selected_clusters(selection, run.options, errors, skipped, progress.track, named)
        else:
            context = [file.content for file in read_context(selection, errors)] if selection.context else []
            files: Iterable[InputFile] = read_selection(selection, errors, skipped, progress.track)
            if named is not None:
                files = collect_named(files, set(selection.paths), named)
            if selection.is_partial:
                files = partial = tuple(files)
            if selection.live is not None and selection.has_manifests:
                report = _check_applied(files, run, context, selection.live)
            elif len(selection.kustomizations) > 1:
                report = _check_kustomizations(files, run, context)
            else:
                renamings = RenamingFinder()
                report = _check_files(renamings.track(files), run, context, renamings.find)
        if partial and report.findings:
            from apflint.sources.project_context import confirm_findings

            report = confirm_findings(
                report, partial, lambda others: _check_files(partial, run, (*context, *others)), selection
            )
    if selection.kustomizations:
        from apflint.sources.kustomize import name_origins

        report = name_origins(report, selection.kustomizations)
    if selection.revisions or (selection.live and not selection.has_manifests):  # no file to fix
        report = report._replace(findings=tuple(finding._replace(fix=None) for finding in report.findings))
    return report._replace(skipped=(*report.skipped, *skipped), configuration=describe_selection(selection, report))


def describe_selection(selection: Selection, report: Report) -> str:
    """Describe the sources of the checked objects, as `Configuration.description` does for one configuration."""
    objects = pluralize(report.objects, "object")
    if report.clusters:
        names = join_some([name for name, _ in report.clusters], _MAX_SHOWN_NAMES)
        return f"clusters {names} ({objects}) and built-in objects of {report.kubernetes}"
    if selection.live is not None:
        running = f"running cluster (Kubernetes {report.kubernetes})"
        return f"{running} after {objects} applied" if selection.has_manifests else f"{running} with {objects}"
    paths = ("<stdin>" if path == "-" else path for path in selection.paths)
    words = [*selection.revisions, *(KUSTOMIZE_PREFIX + path for path in selection.kustomizations), *paths]
    names = "the current directory" if words == ["."] else join_some(words, _MAX_SHOWN_NAMES)
    return f"{names} ({objects}) and built-in objects of {report.kubernetes}"


def _check_files(
    files: Iterable[InputFile],
    run: CheckRun,
    context: Iterable[tuple[str, bytes]],
    find_renamings: Callable[[], tuple[Renaming, ...]] = tuple,
) -> Report:
    """Check the files. Import the checks only if a file may hold APF objects, because the import takes a third of a short run."""
    rest = iter(files)
    contents: deque[tuple[str, bytes]] = deque()
    for file in rest:
        contents.append(file.content)
        if file.may_hold_apf:
            from apflint.engine import check

            del file  # so that its bytes are freed when they are decoded
            first = (contents.popleft() for _ in range(len(contents)))
            options = run.options._replace(find_renamings=find_renamings)
            return check(chain(first, (other.content for other in rest)), options, context)
    return Report(run.kubernetes.name, (), len(contents), objects=0, skipped=(), suppressed=0, sources={})


def _check_applied(
    files: Iterable[InputFile], run: CheckRun, context: Iterable[tuple[str, bytes]], live: LiveConfiguration
) -> Report:
    """Check the files as `kubectl apply` would change the running cluster: fields that they do not set may stay."""
    from apflint.diff.apply import apply_manifests
    from apflint.effective import Effective
    from apflint.engine import load_inputs, report
    from apflint.workspace import build_workspace

    loaded = load_inputs((file.content for file in files), helm=run.options.helm)
    applied = apply_manifests(load_inputs(live.files), loaded, live.managers, live.kubernetes, live.served)
    workspace = build_workspace(applied.manifests, live.kubernetes, [*applied.unchanged, *load_inputs(context)])
    return report(applied.manifests, Effective(workspace, run.options.assumptions), run.options)


def _check_kustomizations(files: Iterable[InputFile], run: CheckRun, context: Iterable[tuple[str, bytes]]) -> Report:
    """Check each of several kustomizations with the other files. Each kustomization is a cluster."""
    from apflint.clusters import Cluster, check_clusters
    from apflint.engine import load_inputs
    from apflint.sources.kustomize import name_rendered

    options = run.options
    loaded = {file.name: load_inputs([file.content], helm=options.helm) for file in files}
    further = {name: load_inputs([(name, data)]) for name, data in context}
    built = {name_rendered(directory): directory for directory in run.selection.kustomizations}
    clusters = [
        Cluster(
            f"{KUSTOMIZE_PREFIX}{directory}",
            tuple(file for file in loaded if file == name or file not in built),
            tuple(further),
            options.kubernetes,
            options.assumptions._replace(one_cluster=True),
        )
        for name, directory in built.items()
    ]
    return check_clusters({**further, **loaded}, clusters, options, tuple(loaded))


def note_files_without_objects(named: Iterable[str], report: Report) -> None:
    """Print notes on the files in `named` that contain no FlowSchema, no PriorityLevelConfiguration and no findings."""
    known = {*report.files_with_objects, *(finding.file for finding in report.findings)}
    for note in describe_files_without_objects([name for name in named if name not in known]):
        print_note(note)


def _hide_known_findings(report: Report, path: str, run: CheckRun) -> Report:
    """Return the report without the findings in the baseline file `path`, and print a note on stale entries."""
    from apflint.sources.baseline_file import hide_known_findings

    compared = hide_known_findings(report, path, run.selection.paths, run.options)
    clusters = run.selection.clusters
    is_complete = clusters is None or not clusters.names  # other clusters may have the findings of the entries
    if is_complete and (stale := compared.stale):
        what = "1 entry of the baseline was" if len(stale) == 1 else f"{len(stale)} entries of the baseline were"
        names = ", ".join(f"{entry.rule} {entry.object} {entry.field}".strip() for entry in stale[:MAX_STALE_ENTRIES])
        more = f" and {len(stale) - MAX_STALE_ENTRIES} more" if len(stale) > MAX_STALE_ENTRIES else ""
        print_note(
            f"{path}: {what} not found in this run: {names}{more}. If all files were read, write it again with"
            " --write-baseline"
        )
    return compared.report


def print_report(report: Report, output: Output, errors: Iterable[str], *, require_objects: bool = False) -> int:
    """Print a report and the messages in `errors`, and write the report files. Return the exit code."""
    how = style(output.color, quiet=True, verbose=output.verbose, statistics=output.statistics)
    errors = [*errors]
    if output.report_files or output.format == "github":
        from apflint.cli.report_files import append_job_summary, write_report_files

        # Files are written first, because printing fails if the reader of the output has closed the pipe.
        errors += write_report_files(
            report, output.report_files, Style(verbose=output.verbose, statistics=output.statistics)
        )
        if "github" in (output.format, *(file.format for file in output.report_files)):
            errors += append_job_summary(report)
    if text := render(report, output.format, how):
        sys.stdout.write(text)
        sys.stdout.flush()
    for message in errors:
        print_note(message)
    if not output.quiet and (report.files or not errors):
        _print_summary(report, output)
    if errors or (require_objects and not report.objects):
        return ExitCode.ERROR
    return exit_code_of(report, output)


def exit_code_of(report: Report, output: Output) -> int:
    """Return 1 if a finding has the severity `output.fail_on` or higher, and 0 otherwise.

    Always return 0 if `output.exit_zero` is true.
    """
    if output.fail_on == "never" or output.exit_zero:
        return ExitCode.OK
    counted = SEVERITIES[: [*SEVERITIES].index(output.fail_on) + 1]  # type: ignore[arg-type]  # options and settings are checked
    failed = any(finding.severity in counted for finding in report.findings)
    return ExitCode.FINDINGS if failed else ExitCode.OK


def _print_summary(report: Report, output: Output) -> None:
    """Print the summary on standard error. For machine-readable formats, print only a note if no objects were found."""
    if output.format in ("text", "concise"):
        how = style(output.color, sys.stderr, verbose=output.verbose)
        gap = "\n" if report.findings and output.format == "text" and not output.statistics else ""
        sys.stderr.write(f"{gap}{render_summary(report, how, fixes=output.fix_command)}")
    elif not report.objects and not report.findings:
        print_note(f"no FlowSchema and no PriorityLevelConfiguration in {pluralize(report.files, 'file')}")
