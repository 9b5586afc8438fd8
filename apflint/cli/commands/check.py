"""Defines `apflint check`, which reports findings in manifests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from apflint.cli import completers, options
from apflint.cli.command_definitions import command, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.options import CLUSTER, FIXES, INPUT, OUTPUT, RULES, option
from apflint.cli.progress import show_progress
from apflint.cli.report_files import check_report_files, parse_format, parse_report_file
from apflint.cli.reporting import Output, answer_with_report, note_files_without_objects
from apflint.cli.terminal import is_kubectl_plugin
from apflint.input_checking import check_inputs
from apflint.output.findings import FORMATS
from apflint.run import Answer, run
from apflint.sources.input_types import InputRequest
from apflint.sources.source_arguments import Words, parse_words
from apflint.user_error import UserError
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.engine import Options
    from apflint.finding import Report
    from apflint.sources.input_types import Inputs

_MAX_STALE_ENTRIES = 5
"""Maximum number of stale entries that a message names. A baseline entry is stale if its finding no longer exists."""


@command(
    panel="Lint",
    epilog=examples(
        ("a directory and all directories below", "apflint check manifests/"),
        ("what Helm renders; findings name the templates", "helm template CHART | apflint check -"),
        ("what Kustomize builds", "apflint check -k overlays/prod"),
        ("the objects of a running cluster", "apflint check --live"),
        ("manifests together with the objects of a running cluster", "apflint check --live manifests/"),
        ("for the release of the cluster", "apflint check --kubernetes 1.29 manifests/"),
        (
            "in GitHub Actions, with a SARIF file for code scanning",
            "apflint check --format github --report sarif=apflint.sarif manifests/",
        ),
        ("only the rules whose ids start with APF2 or APF3", "apflint check --select APF2,APF3 ."),
        ("exit with 1 if there are warnings, too", "apflint check --fail-on warning ."),
        ("apply all safe fixes, and show the findings without a safe fix", "apflint check --fix manifests/"),
        ("record the findings, to see only new ones later", "apflint check --baseline known.json --write-baseline ."),
    ),
)
def check(
    paths: options.Paths = None,
    filename: options.Filenames = None,
    kustomize: options.Kustomize = None,
    exclude: options.Exclude = None,
    force_exclude: options.ForceExclude = False,
    stdin_filename: options.StdinFilename = None,
    context: options.Context = None,
    require_objects: Annotated[
        bool, option(INPUT, "Exit with 2 if there are no FlowSchemas and no priority levels.", "--require-objects")
    ] = False,
    select: options.Select = None,
    extend_select: options.ExtendSelect = None,
    ignore: options.Ignore = None,
    no_ignores: Annotated[bool, option(RULES, "Ignore suppression comments and annotations.", "--no-ignores")] = False,
    baseline: options.Baseline = None,
    write_baseline: Annotated[
        bool, option(RULES, "Record all findings in the file of --baseline.", "--write-baseline")
    ] = False,
    live: options.Live = False,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
    kubernetes: options.Kubernetes = None,
    server_concurrency: options.ServerConcurrency = None,
    cluster: options.Clusters = None,
    render: options.Render = False,
    complete: Annotated[
        bool, option(CLUSTER, "Treat the manifests as the cluster's complete configuration.", "--complete")
    ] = False,
    fix: Annotated[bool, option(FIXES, "Apply safe fixes, and show the other findings.", "--fix")] = False,
    diff: Annotated[bool, option(FIXES, "Show the edits that --fix would make.", "--diff")] = False,
    unsafe_fixes: options.UnsafeFixes = False,
    output_format: Annotated[
        str | None,
        option(
            OUTPUT,
            f"Output format: {', '.join(FORMATS)}.",
            "--format",
            metavar="FORMAT",
            show_default="text",
            parser=parse_format,
            autocompletion=completers.complete_formats,
        ),
    ] = None,
    report: Annotated[
        list[str] | None,
        option(
            OUTPUT,
            "Write an additional report to a file; repeatable.",
            metavar="FORMAT=FILE",
            autocompletion=completers.complete_report,
        ),
    ] = None,
    fail_on: options.FailOn = None,
    exit_zero: options.ExitZero = False,
    statistics: Annotated[
        bool, option(OUTPUT, "Show the number of findings of each rule instead of the findings.", "--statistics")
    ] = False,
    color: options.Color = "auto",
    quiet: Annotated[bool, option(OUTPUT, "Show findings only, without the summary.", "--quiet", "-q")] = False,
    verbose: Annotated[bool, option(OUTPUT, "Show field paths, and all skipped files.", "--verbose", "-v")] = False,
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Check manifests for errors the API server rejects and mistakes it silently accepts.

    All manifests are analyzed together with the built-in objects of the
    Kubernetes release. Files without APF objects are skipped.

    Exits with 1 if there are findings at or above --fail-on.
    """
    options.reject_kube_context(context, "To check the cluster of a kubeconfig's context: --live --kube-context {}")
    settings = options.join_settings(
        config,
        isolated,
        select=select,
        extend_select=extend_select,
        ignore=ignore,
        fail_on=fail_on,
        kubernetes=kubernetes,
        exclude=exclude,
        context=context,
        complete=complete,
        server_concurrency=server_concurrency,
        format=output_format,
    )
    listed = options.list_words(paths, filename, kustomize=kustomize, clusters=cluster, live=live)
    words = parse_words(listed)
    kubectl = options.parse_kubectl(words.is_live, kubeconfig, kube_context)
    request = InputRequest(
        listed,
        settings,
        "check",
        kubectl=kubectl,
        may_render=options.may_render(render),
        force_exclude=force_exclude,
        stdin_filename=stdin_filename,
        baseline=baseline,
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
        "apflint fix -" if request.paths == ("-",) else "apflint fix",
        require_objects,
    )
    if statistics and output.format not in ("text", "concise"):
        raise UserError(f"--statistics requires --format text or concise, and the format is {output.format}")
    _reject_conflicts({"--write-baseline": write_baseline, "--fix": fix, "--diff": diff, "--report": bool(report)})
    # If only some clusters were checked, the baseline would lose the entries of all other clusters.
    _reject_conflicts({"--write-baseline": write_baseline, "--cluster": bool(words.clusters)})
    options.reject_combinations(
        {"--live": words.is_live, "git:REVISION": words.revisions, "--kustomize": words.kustomizations},
        {"--cluster": words.clusters, "--fix": fix, "--diff": diff},
    )
    if write_baseline and baseline is None:
        raise UserError("--write-baseline requires --baseline FILE, the file to write")
    if unsafe_fixes and not (fix or diff):
        raise UserError("--unsafe-fixes requires --fix or --diff")
    check_report_files(output.report_files, request)
    get_options = settings.prepare_options(suppressions=not no_ignores)
    if fix or diff:
        from apflint.cli.commands.fix import fix_and_check

        return fix_and_check(request, get_options(), output, diff=diff, unsafe=unsafe_fixes)
    if write_baseline:
        return _write_baseline(request, get_options())

    def find_answer(inputs: Inputs) -> Answer:
        with show_progress("Analyzing", quiet=quiet):
            found, notes = _check(inputs, get_options)
        if not (quiet or force_exclude):
            notes += note_files_without_objects(inputs, found)
        return answer_with_report(found, inputs, output)._replace(notes=notes)

    exit_code = run(request, find_answer, quiet=quiet)
    if words == Words() and not quiet:
        _suggest_live()
    return exit_code


def _reject_conflicts(given: dict[str, bool]) -> None:
    """Raise UserError if two of the options in `given` are true. Only --fix and --report can be combined."""
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1 and names != ["--fix", "--report"]:
        raise UserError(f"{names[0]} and {names[1]} cannot be combined")


def _check(inputs: Inputs, get_options: Callable[[], Options]) -> tuple[Report, tuple[str, ...]]:
    """Return the report without the findings in the baseline, and notes about stale entries of the baseline."""
    report, baseline = check_inputs(inputs, get_options), inputs.request.baseline
    if baseline is None:
        return report, ()
    from apflint.sources.baseline_file import hide_known_findings

    compared = hide_known_findings(report, baseline, inputs.request.paths, get_options())
    # With --cluster, a stale entry (an entry whose finding this run did not find) may belong to a cluster that this run
    # does not check. So apflint reports no stale entries.
    if not compared.stale or inputs.request.parsed.clusters:
        return compared.report, ()
    stale = compared.stale
    what = "1 entry of the baseline was" if len(stale) == 1 else f"{len(stale)} entries of the baseline were"
    names = ", ".join(f"{entry.rule} {entry.object} {entry.field}".strip() for entry in stale[:_MAX_STALE_ENTRIES])
    more = f" and {len(stale) - _MAX_STALE_ENTRIES} more" if len(stale) > _MAX_STALE_ENTRIES else ""
    note = (
        f"{baseline}: {what} not found in this run: {names}{more}. If this run checked all files, these findings no longer exist: update the baseline with"
        " --write-baseline"
    )
    return compared.report, (note,)


def _write_baseline(request: InputRequest, chosen: Options) -> int:
    """Write all findings to the baseline file.

    If an input is unreadable, write nothing, because the new baseline would lack the known findings of this input.
    """
    from apflint.sources.baseline_file import read_previous_baseline, write_baseline

    path = request.baseline
    assert path is not None, "checked with the options"
    previous = read_previous_baseline(path)

    def find_answer(inputs: Inputs) -> Answer:
        if inputs.errors:
            return Answer(errors=(f"{path} is not written, because some inputs are unreadable",))
        with show_progress("Analyzing"):
            report = check_inputs(inputs, lambda: chosen)
        kept = write_baseline(report, path, request.paths, chosen, previous)
        entries = "1 entry" if kept == 1 else f"{kept} entries"
        more = f"; kept {entries} about files and rules outside this run" if kept else ""
        return Answer(notes=(f"{pluralize(len(report.findings), 'finding')} written to {path}{more}",))

    return run(request, find_answer)


def _suggest_live() -> None:
    """Print how to check the running cluster, if `kubectl apflint check` runs without a path on a terminal."""
    if is_kubectl_plugin() and sys.stderr.isatty():
        print_note("to check the objects of the running cluster instead of files: kubectl apflint check --live")
