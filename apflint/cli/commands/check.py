"""The command `apflint check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from apflint.cli import completers, options
from apflint.cli.check_run import CheckRun, Output, check_selection, run_check, suggest_live
from apflint.cli.definitions import command, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, FIXES, INPUT, OUTPUT, RULES, option
from apflint.cli.progress import show_progress
from apflint.cli.report_files import check_report_files, parse_format, parse_report_file
from apflint.errors import UserError
from apflint.output.findings import FORMATS
from apflint.sources.files import Selection
from apflint.sources.words import Words, parse_words
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.releases import Release
    from apflint.sources.kubectl import KubectlOptions


@command(
    panel="Lint",
    epilog=examples(
        ("a directory and all directories below", "apflint check manifests/"),
        ("what Helm renders; findings name the templates", "helm template CHART | apflint check -"),
        ("what Kustomize builds", "apflint check -k overlays/prod"),
        ("the objects of a running cluster", "apflint check --live"),
        ("manifests, as they would be applied to a running cluster", "apflint check --live manifests/"),
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
            "Write a report to a file, too; repeatable.",
            metavar="FORMAT=FILE",
            autocompletion=completers.complete_report,
        ),
    ] = None,
    fail_on: options.FailOn = None,
    exit_zero: options.ExitZero = False,
    statistics: Annotated[
        bool, option(OUTPUT, "Show the number of findings of each rule instead.", "--statistics")
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
    words = parse_words(options.list_words(paths, filename, kustomize=kustomize, clusters=cluster, live=live))
    kubectl = options.parse_kubectl(words.is_live, kubeconfig, kube_context)
    if words.release is not None:
        settings = settings._replace(kubernetes=words.release)
    # These are clusters on their own, so they do not use the clusters of the settings.
    is_own_cluster = words.is_live or words.kustomizations or words.revisions or words.release
    clusters = None if is_own_cluster and not words.clusters else options.select_clusters(settings, words.clusters)
    named = words.paths or (clusters.paths if clusters is not None else ())
    selection = Selection(
        named or (() if is_own_cluster else (".",)),
        settings.exclude,
        force_exclude,
        stdin_filename,
        settings.context if context or words.has_manifests or not words.is_live else (),
        baseline,
        clusters=clusters,
        kustomizations=words.kustomizations,
        revisions=words.revisions,
        may_render=options.may_render(render),
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
    _reject_conflicts({"--write-baseline": write_baseline, "--fix": fix, "--diff": diff, "--report": bool(report)})
    # Entries of findings that only other clusters have would be lost.
    _reject_conflicts({"--write-baseline": write_baseline, "--cluster": bool(words.clusters)})
    options.reject_combinations(
        {"--live": words.is_live, "git:REVISION": words.revisions, "--kustomize": words.kustomizations},
        {"--cluster": words.clusters, "--fix": fix, "--diff": diff},
    )
    if write_baseline and baseline is None:
        raise UserError("--write-baseline requires --baseline FILE, the file to write")
    if unsafe_fixes and not (fix or diff):
        raise UserError("--unsafe-fixes requires --fix or --diff")
    check_report_files(output.report_files, selection)
    get_options = settings.prepare_options(suppressions=not no_ignores)
    run = CheckRun(selection, get_options, settings.kubernetes, require_objects)
    if kubectl is not None:
        run = _read_cluster(run, kubectl, kubernetes)
    if fix or diff:
        from apflint.cli.commands.fix import fix_and_check

        return fix_and_check(run, output, diff=diff, unsafe=unsafe_fixes)
    if write_baseline:
        return _write_baseline(run)
    exit_code = run_check(run, output)
    if words == Words() and not quiet:
        suggest_live()
    return exit_code


def _read_cluster(run: CheckRun, kubectl: KubectlOptions, kubernetes: Release | None) -> CheckRun:
    """Return the run with the objects of a running cluster, which has its own release and its own built-in objects."""
    from apflint.sources.kubectl import read_live_configuration

    with show_progress("Reading the cluster"):
        cluster = read_live_configuration(kubectl, kubernetes)
    assumptions = run.options.assumptions._replace(complete=True, defaults=False)
    options = run.options._replace(kubernetes=cluster.kubernetes, assumptions=assumptions)
    return run._replace(
        selection=run.selection._replace(live=cluster),
        get_options=lambda: options,
        kubernetes=options.kubernetes,
    )


def _reject_conflicts(given: dict[str, bool]) -> None:
    """Raise UserError if two of the options in `given` are true. Only --fix and --report can be combined."""
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1 and names != ["--fix", "--report"]:
        raise UserError(f"{names[0]} and {names[1]} cannot be combined")


def _write_baseline(run: CheckRun) -> int:
    """Write all findings to the baseline file. If an input is unreadable, write nothing, because its entries would be lost."""
    from apflint.sources.baseline_file import read_previous_baseline, write_baseline

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
    more = f"; kept {entries} about files and rules outside this run" if kept else ""
    print_note(f"{pluralize(len(report.findings), 'finding')} written to {path}{more}")
    return ExitCode.OK
