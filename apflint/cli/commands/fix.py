"""The command `apflint fix`, and the options --fix and --diff of `apflint check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from apflint import engine
from apflint.budgets import MAX_FIXED_FINDINGS
from apflint.cli import options
from apflint.cli.check_run import (
    CheckRun,
    Output,
    describe_selection,
    exit_code_of,
    note_files_without_objects,
    print_report,
)
from apflint.cli.definitions import command, examples
from apflint.cli.edited_files import print_edited, print_remark
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.edit.fix_edits import identity
from apflint.edit.fixing import apply_fixes
from apflint.errors import UserError
from apflint.sources.files import Selection, read_context, read_selection
from apflint.sources.project_context import depends_on_others
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from apflint.edit.fixing import Check, Refusal
    from apflint.finding import Finding, Report, Skipped
    from apflint.sources.discovery import FoundFile, InputFile


@command(
    panel="Edit",
    epilog=examples(
        ("preview the edits as a diff", "apflint fix --diff manifests/"),
        ("edit the files", "apflint fix manifests/"),
        ("fix the findings of one rule", "apflint fix --select APF101 manifests/"),
        ("as a filter", "apflint fix - < old.yaml > new.yaml"),
    ),
)
def fix(
    paths: options.Paths = None,
    filename: options.Filenames = None,
    exclude: options.Exclude = None,
    force_exclude: options.ForceExclude = False,
    stdin_filename: options.StdinFilename = None,
    context: options.Context = None,
    diff: options.Diff = False,
    unsafe_fixes: options.UnsafeFixes = False,
    select: options.Select = None,
    extend_select: options.ExtendSelect = None,
    ignore: options.Ignore = None,
    baseline: options.Baseline = None,
    kubernetes: options.Kubernetes = None,
    cluster: options.Clusters = None,
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
    quiet: Annotated[bool, option(OUTPUT, "Show only refused fixes and errors.", "--quiet", "-q")] = False,
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Fix findings in the files, preserving comments, quotes and order.

    A safe fix keeps the meaning of an object, or what it plainly should mean.
    The result is checked again: a fix that does not remove its finding, or
    leads to another one, is refused. For standard input (-), the result goes
    to standard output.

    Exits with 1 if a fix is refused, or if --diff shows edits.
    """
    options.reject_other_sources("apflint fix", paths, filename)
    options.reject_kube_context(context, "apflint fix edits files, and does not read a cluster")
    settings = options.join_settings(
        config,
        isolated,
        select=select,
        extend_select=extend_select,
        ignore=ignore,
        kubernetes=kubernetes,
        exclude=exclude,
        context=context,
    )
    clusters = options.select_clusters(settings, cluster)
    selection = Selection(
        options.join_paths(paths, filename, clusters=clusters),
        settings.exclude,
        force_exclude,
        stdin_filename,
        settings.context,
        baseline,
        clusters=clusters,
    )
    outcome = _fix_files(CheckRun(selection, settings.prepare_options()), color, diff=diff, unsafe=unsafe_fixes)
    if not quiet:
        for finding in sorted(outcome.fixed, key=_order):
            print_remark(f"{_at(finding)}: {'would fix' if diff else 'fixed'} {finding.rule}: {_title(finding)}")
        if not force_exclude:
            note_files_without_objects(outcome.named, outcome.before)
    for error in outcome.errors:
        print_note(error)
    _print_refusals(outcome, diff=diff)
    if not quiet:
        _print_summary(outcome, diff=diff, unsafe=unsafe_fixes, findings_shown=False)
    if outcome.errors:
        return ExitCode.ERROR
    is_unfixed = outcome.refused or (diff and outcome.fixed)
    return ExitCode.FINDINGS if is_unfixed and not exit_zero else ExitCode.OK


def fix_and_check(run: CheckRun, output: Output, *, diff: bool, unsafe: bool) -> int:
    """Run `check --fix` or `check --diff`. Return the exit code for the findings in the files at the end of the run."""
    if not diff and not {"-", "/dev/stdin"}.isdisjoint(run.selection.paths):
        raise UserError("--fix edits files. For standard input use `apflint fix -`, which prints the result")
    outcome = _fix_files(run, output.color, diff=diff, unsafe=unsafe)
    if diff:
        for error in outcome.errors:
            print_note(error)
        is_failed = outcome.errors or (run.require_objects and not outcome.before.objects)
        exit_code = ExitCode.ERROR if is_failed else exit_code_of(outcome.before, output)
    else:
        report = engine.limit_findings(outcome.after)
        report = report._replace(configuration=describe_selection(run.selection, report))
        exit_code = print_report(
            report, output._replace(fix_command=""), outcome.errors, require_objects=run.require_objects
        )
    _print_refusals(outcome, diff=diff)
    if not output.quiet:
        _print_summary(outcome, diff=diff, unsafe=unsafe, findings_shown=not diff)
    return exit_code


class _Outcome(NamedTuple):
    before: Report
    """The findings in the files before fixing."""
    fixed: list[Finding]
    """Findings that were fixed, or that would be fixed without --diff."""
    refused: tuple[Refusal, ...]
    after: Report
    """The findings in the files after fixing."""
    errors: list[str]
    """Messages about files that cannot be read or written."""
    named: list[str]
    """Names of the files that the command line names."""


def _fix_files(run: CheckRun, color: str, *, diff: bool, unsafe: bool) -> _Outcome:
    """Fix findings in memory, then print the edits or write the files."""
    selection = run.selection
    errors: list[str] = []
    skipped: list[Skipped] = []
    with show_progress("Fixing") as progress:
        files, check_files, verify_files = _read_files(run, errors, skipped, progress.track)
        check = _checker(run, check_files, skipped)
        before = dict(file.content for file in files.values())
        first = check(before)
        if verify_files is None:
            result = apply_fixes(before, check, unsafe=unsafe, first=first)
        else:
            result = apply_fixes(before, _checker(run, verify_files, skipped), unsafe=unsafe)
    contents = dict(result.inputs)
    for name, file in files.items():
        after = contents[name] if file.may_hold_apf else file.data
        if error := print_edited(name, file.path, file.data, after, selection.paths, diff=diff, color=color):
            errors.append(error)
            contents[name] = before[name]
    all_written = contents == result.inputs
    fixed = [finding for finding in result.fixed if contents[finding.file] == result.inputs[finding.file]]
    named = [file.name for file in files.values() if file.path in selection.paths and file.path != "-"]
    report = result.report if all_written and verify_files is None else check(contents)
    return _Outcome(first, fixed, result.refused, report, errors, named)


def _read_files(
    run: CheckRun,
    errors: list[str],
    skipped: list[Skipped],
    track: Callable[[Sequence[FoundFile]], Iterable[FoundFile]],
) -> tuple[dict[str, InputFile], Check, Check | None]:
    """Read the selected files. Return them by name, and the function that checks them in memory.

    The last item is the function that verifies fixes, if other clusters than those of --cluster contain the files.
    """
    selection = run.selection
    # Findings must refer to the text of standard input, not to the templates of a rendered chart.
    options = run.options._replace(max_findings_per_rule=MAX_FIXED_FINDINGS, covered=True, helm=False)
    if selection.clusters is not None:
        from apflint.cli.cluster_run import ClusterChecker
        from apflint.sources.clusters import read_cluster_inputs

        inputs = read_cluster_inputs(
            selection, selection.clusters, errors, skipped, track, reads_left_out=True, renders=False
        )
        checker = ClusterChecker(inputs, options)
        verify = checker.check_in_all_clusters if inputs.left_out else None
        return {name: inputs.files[name] for name in inputs.reported}, checker.check, verify
    context = [file.content for file in read_context(selection, errors)]
    files: dict[str, InputFile] = {}
    for file in read_selection(selection, errors, skipped, track):
        if files.setdefault(file.name, file) is not file:
            raise UserError(f'"{file.name}" names both standard input and a file. Fix one after the other')
    return files, lambda contents: engine.check(contents.items(), options, context), None


def _checker(run: CheckRun, check_files: Check, skipped: list[Skipped]) -> Check:
    """Return a function that checks files in memory. Its reports contain all findings that are not in the baseline."""

    def check(inputs: Mapping[str, bytes]) -> Report:
        report = check_files(inputs)
        if run.selection.is_partial:  # other files may refute a finding, such as an unused suppression
            findings = (
                finding._replace(fix=None) if depends_on_others(finding) else finding for finding in report.findings
            )
            report = report._replace(findings=tuple(findings))
        return report._replace(skipped=(*report.skipped, *skipped)) if skipped else report

    if run.selection.baseline is None:
        return check
    from apflint.baseline import hide_known_findings
    from apflint.sources.baseline_file import read_baseline

    entries, rules = read_baseline(run.selection.baseline), run.options.rules
    return lambda inputs: hide_known_findings(check(inputs), entries, rules).report


def _print_refusals(outcome: _Outcome, *, diff: bool) -> None:
    current = {} if diff else {identity(finding): finding for finding in outcome.after.findings}
    for finding, reason in sorted(outcome.refused, key=lambda refusal: _order(refusal.finding)):
        moved = current.get(identity(finding), finding)  # with its line after fixing
        print_remark(f"{_at(moved)}: not fixed: {finding.rule} ({_title(moved)}): {reason}")


def _print_summary(outcome: _Outcome, *, diff: bool, unsafe: bool, findings_shown: bool) -> None:
    parts = []
    if outcome.fixed:
        files = pluralize(len({finding.file for finding in outcome.fixed}), "file")
        parts.append(f"{'would fix' if diff else 'fixed'} {pluralize(len(outcome.fixed), 'finding')} in {files}")
    if outcome.refused:
        parts.append(f"{pluralize(len(outcome.refused), 'finding')} not fixed")
    if not parts and outcome.errors and not outcome.before.files:
        return  # no input was readable
    if not parts:
        parts.append("nothing was fixed" if outcome.errors else "nothing to fix")
    remaining = outcome.after.findings
    unsafe_count = sum(finding.fix is not None and not finding.fix.safe for finding in remaining)
    if unsafe_count and not unsafe:
        number = f"{unsafe_count} more" if outcome.fixed else pluralize(unsafe_count, "finding")
        parts.append(f"{number} with --unsafe-fixes")
    others = sum(finding.fix is None and finding.severity != "info" for finding in remaining)
    if others and not findings_shown:
        parts.append(f"{pluralize(others, 'finding')} without a fix: apflint check")
    print_note("; ".join(parts))


def _order(finding: Finding) -> tuple[Any, ...]:
    return finding.file, finding.span.line, finding.span.column, finding.rule, finding.message


def _at(finding: Finding) -> str:
    return f"{finding.file}:{finding.span.line}"


def _title(finding: Finding) -> str:
    return finding.fix.title if finding.fix else ""
