"""Defines `apflint fix`, which fixes findings in files, and implements --fix and --diff of `apflint check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from apflint import engine
from apflint.budgets import MAX_FIXED_FINDINGS
from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.edited_files import print_edited, print_remark
from apflint.cli.error_reporting import format_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.cli.reporting import Output, answer_with_report, exit_code_of, note_files_without_objects
from apflint.edit.fix_batch import identity
from apflint.edit.fixing import apply_fixes
from apflint.input_checking import Checker, describe_inputs
from apflint.output.sanitize import sanitize_path
from apflint.run import Answer, run
from apflint.sources.input_types import InputRequest
from apflint.sources.rest_of_project import depends_on_others
from apflint.user_error import UserError
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.edit.fix_batch import Identity
    from apflint.edit.fixing import Check, Refusal
    from apflint.engine import Options
    from apflint.finding import Finding, Report
    from apflint.sources.input_types import Inputs


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

    A safe fix keeps the meaning of an object, or restores the meaning that was
    certainly intended. The result is checked again: a fix is refused if it does
    not remove its finding, or causes another finding. For standard input (-),
    the result goes to standard output.

    Exits with 1 if a fix is refused, or if --diff shows edits.
    """
    words = options.list_words(paths, filename, clusters=cluster)
    options.reject_other_sources("apflint fix", words)
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
    request = InputRequest(
        words, settings, "fix", force_exclude=force_exclude, stdin_filename=stdin_filename, baseline=baseline
    )
    chosen = settings.prepare_options()()

    def find_answer(inputs: Inputs) -> Answer:
        outcome = _fix_files(inputs, chosen, color, diff=diff, unsafe=unsafe_fixes, quiet=quiet)
        notes: tuple[str, ...] = ()
        if not quiet:
            for finding in sorted(outcome.fixed, key=_order):
                hidden = " (hidden by another finding)" if identity(finding) in outcome.exposed else ""
                verb = "would fix" if diff else "fixed"
                print_remark(f"{_at(finding)}: {verb} {finding.rule}{hidden}: {_title(finding)}")
            if not force_exclude:
                notes = note_files_without_objects(inputs, outcome.before)
        is_unfixed = outcome.refused or (diff and outcome.fixed)
        status = ExitCode.FINDINGS if is_unfixed and not exit_zero else ExitCode.OK
        summary = _render_refusals(outcome, diff=diff)
        if not quiet:
            summary += _render_summary(outcome, diff=diff, unsafe=unsafe_fixes, findings_shown=False)
        return Answer(notes=notes, errors=outcome.errors, summary=summary, status=status)

    return run(request, find_answer, quiet=quiet)


def fix_and_check(request: InputRequest, chosen: Options, output: Output, *, diff: bool, unsafe: bool) -> int:
    """Run `check --fix` or `check --diff`. Return the exit code for the findings that remain after fixing."""
    if not diff and not {"-", "/dev/stdin"}.isdisjoint(request.paths):
        raise UserError("--fix edits files. For standard input use `apflint fix -`, which prints the result")

    def find_answer(inputs: Inputs) -> Answer:
        outcome = _fix_files(inputs, chosen, output.color, diff=diff, unsafe=unsafe, quiet=output.quiet)
        if diff:
            is_empty = output.require_objects and not outcome.before.objects
            status = ExitCode.ERROR if is_empty else exit_code_of(outcome.before, output)
            answer = Answer(errors=outcome.errors, status=status)
        else:
            report = engine.limit_findings(outcome.after)
            report = report._replace(configuration=describe_inputs(inputs, report))
            answer = answer_with_report(report, inputs, output._replace(fix_command=""), outcome.errors)
        summary = answer.summary + _render_refusals(outcome, diff=diff)
        if not output.quiet:
            summary += _render_summary(outcome, diff=diff, unsafe=unsafe, findings_shown=not diff)
        return answer._replace(summary=summary)

    return run(request._replace(purpose="fix"), find_answer, quiet=output.quiet)


class _Outcome(NamedTuple):
    before: Report
    """The findings in the files before fixing."""
    fixed: list[Finding]
    """Findings that were fixed. With --diff, findings that would be fixed."""
    exposed: frozenset[Identity]
    """Fixed findings that were not found before fixing, because another finding hid them."""
    refused: tuple[Refusal, ...]
    after: Report
    """The findings in the files after fixing."""
    errors: tuple[str, ...]
    """Messages about files that cannot be written."""
    has_errors: bool
    """Whether files cannot be read or written."""


def _fix_files(inputs: Inputs, chosen: Options, color: str, *, diff: bool, unsafe: bool, quiet: bool) -> _Outcome:
    """Fix findings in memory. Then print the edits, or write the files."""
    # Without `helm=False`, findings in the output of Helm would refer to the templates of the chart. Fixes need the places in the
    # text that was read.
    chosen = chosen._replace(max_findings_per_rule=MAX_FIXED_FINDINGS, covered=True, helm=False)
    checker = Checker(inputs, chosen)
    files = {name: inputs.files[name] for name in inputs.reported}
    with show_progress("Fixing", quiet=quiet):
        check = _checker(inputs, chosen, checker.check)
        before = {name: file.data if file.may_hold_apf else b"" for name, file in files.items()}
        first = check(before)
        if inputs.left_out:
            result = apply_fixes(before, _checker(inputs, chosen, checker.check_in_all_clusters), unsafe=unsafe)
        else:
            result = apply_fixes(before, check, unsafe=unsafe, first=first)
    contents = dict(result.inputs)
    errors: list[str] = []
    for name, file in files.items():
        after = contents[name] if file.may_hold_apf else file.data
        paths = inputs.request.paths
        if error := print_edited(name, file.path, file.data, after, paths, diff=diff, color=color):
            errors.append(error)
            contents[name] = before[name]
    fixed = [finding for finding in result.fixed if contents[finding.file] == result.inputs[finding.file]]
    is_final = contents == result.inputs and not inputs.left_out
    after_fixing = result.report if is_final else check(contents)
    exposed = frozenset(map(identity, fixed)) - set(map(identity, first.findings))
    return _Outcome(first, fixed, exposed, result.refused, after_fixing, tuple(errors), bool(errors or inputs.errors))


def _checker(inputs: Inputs, chosen: Options, check_files: Check) -> Check:
    """Return a function that checks the contents of files, and returns the findings that are not in the baseline."""
    skipped, is_partial = inputs.skipped, inputs.request.is_partial

    def check(contents: Mapping[str, bytes]) -> Report:
        report = check_files(contents)
        # Only a part of the project was read. Do not fix findings that depend on other files, because a file that was
        # not read may disprove them.
        if is_partial:
            findings = (
                finding._replace(fix=None) if depends_on_others(finding) else finding for finding in report.findings
            )
            report = report._replace(findings=tuple(findings))
        return report._replace(skipped=(*report.skipped, *skipped)) if skipped else report

    baseline = inputs.request.baseline
    if baseline is None:
        return check
    from apflint.baseline import hide_known_findings
    from apflint.sources.baseline_file import read_baseline

    entries, rules = read_baseline(baseline), chosen.rules
    return lambda contents: hide_known_findings(check(contents), entries, rules).report


def _render_refusals(outcome: _Outcome, *, diff: bool) -> str:
    current = {} if diff else {identity(finding): finding for finding in outcome.after.findings}
    lines = []
    for finding, reason in sorted(outcome.refused, key=lambda refusal: _order(refusal.finding)):
        moved = current.get(identity(finding), finding)  # applied fixes can change the line number of the finding
        remark = f"{_at(moved)}: not fixed: {finding.rule} ({_title(moved)}): {reason}"
        lines.append(f"{sanitize_path(remark)}\n")
    return "".join(lines)


def _render_summary(outcome: _Outcome, *, diff: bool, unsafe: bool, findings_shown: bool) -> str:
    parts = []
    if outcome.fixed:
        parts.append(_summarize_fixed(outcome, diff=diff))
    if outcome.refused:
        parts.append(f"{pluralize(len(outcome.refused), 'finding')} not fixed")
    if not parts and outcome.has_errors and not outcome.before.files:
        return ""  # no input was readable
    if not parts:
        parts.append("nothing was fixed" if outcome.has_errors else "nothing to fix")
    remaining = outcome.after.findings
    unsafe_count = sum(finding.fix is not None and not finding.fix.safe for finding in remaining)
    if unsafe_count and not unsafe:
        number = f"{unsafe_count} more" if outcome.fixed else pluralize(unsafe_count, "finding")
        parts.append(f"{number} with --unsafe-fixes")
    others = sum(finding.fix is None and finding.severity != "info" for finding in remaining)
    if others and not findings_shown:
        parts.append(f"{pluralize(others, 'finding')} without a fix: apflint check")
    return format_note("; ".join(parts))


def _summarize_fixed(outcome: _Outcome, *, diff: bool) -> str:
    """Return a sentence such as `fixed 3 findings in 1 file, and 1 that they had hidden`.

    The first number counts findings that `check` shows before fixing. The second number counts findings that `check`
    shows only after others are fixed.
    """
    exposed = sum(identity(finding) in outcome.exposed for finding in outcome.fixed)
    known = len(outcome.fixed) - exposed
    # `check` does not show covered findings, which usually repeat another finding at a different place.
    # So do not count covered findings.
    shown = known - sum(finding.covered for finding in outcome.fixed) or known
    files = pluralize(len({finding.file for finding in outcome.fixed}), "file")
    summary = f"{'would fix' if diff else 'fixed'} {pluralize(shown, 'finding')} in {files}"
    pronoun, present = ("it", "hides") if shown == 1 else ("they", "hide")
    return f"{summary}, and {exposed} that {pronoun} {present if diff else 'had hidden'}" if exposed else summary


def _order(finding: Finding) -> tuple[Any, ...]:
    return finding.file, finding.span.line, finding.span.column, finding.rule, finding.message


def _at(finding: Finding) -> str:
    return f"{finding.file}:{finding.span.line}"


def _title(finding: Finding) -> str:
    return finding.fix.title if finding.fix else ""
