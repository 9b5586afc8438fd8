"""`apflint fix`, and `check --fix` and `--diff`: has findings mended, writes or shows what changes, and tells what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from apflint import engine
from apflint.budgets import MAX_FIXED_FINDINGS
from apflint.cli.changes import print_bytes, print_diff, say, write
from apflint.cli.check import requested, show, status, wanted_reports
from apflint.cli.progress import watched, working
from apflint.edit.fixing import apply_fixes
from apflint.edit.regressions import identity
from apflint.inputs.selection import read_context, read_selection
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from apflint.cli.check import Flags, Request
    from apflint.edit.fixing import Refusal
    from apflint.finding import Finding, Report, Skipped
    from apflint.inputs.selection import InputFile


class _Outcome(NamedTuple):
    """What was found in the files as they were, what became of them, and what could not be read or written."""

    before: Report
    made: list[Finding]
    """What was mended and written, or would be."""
    refused: tuple[Refusal, ...]
    after: Report
    """What is found in the files as they are now, or would be."""
    failures: list[str]


def command(paths: tuple[str, ...], asked: Mapping[str, object], flags: Flags) -> int:
    """The whole of `apflint fix`; the exit status: 0, 1 where something that can be fixed is not, 2 for failures.

    ValueError, fit to be shown, for what cannot be.
    """
    outcome = _mended(requested(paths, asked, flags), flags)
    if not flags.quiet:
        for found in sorted(outcome.made, key=_order):
            say(f"{_at(found)}: {'would fix' if flags.diff else 'fixed'} {found.rule}: {_title(found)}")
    for failure in outcome.failures:
        say(f"apflint: {failure}")
    _tell(outcome, flags)
    if outcome.failures:
        return 2
    return int(bool(outcome.refused) or (flags.diff and bool(outcome.made)))


def check(request: Request, flags: Flags) -> int:
    """`check --fix` and `check --diff`; the exit status is that of what is found in the files as they are at the end."""
    if flags.fix and flags.diff:
        raise ValueError("--diff shows what --fix would do. Give one of the two.")
    if flags.write_baseline:
        raise ValueError("--write-baseline takes what is found as known, and --fix mends it. Give one of the two.")
    if flags.diff and flags.reports:
        raise ValueError("--report writes findings, and --diff shows changes in their place. Give one of the two.")
    if flags.fix and not {"-", "/dev/stdin"}.isdisjoint(request.inputs.paths):
        raise ValueError("--fix changes files. For standard input use `apflint fix -`, which prints the result.")
    wanted = wanted_reports(request)
    outcome = _mended(request, flags)
    report = outcome.before if flags.diff else outcome.after
    failed = flags.require_objects and not report.objects
    if flags.diff:
        for failure in outcome.failures:
            say(f"apflint: {failure}")
        _tell(outcome, flags)
        return status(report, request.printing.fail_on, failed=bool(outcome.failures) or failed)
    printing = request.printing._replace(fixes="")
    result = show(
        engine.limit_findings(report), printing, wanted, outcome.failures, require_objects=flags.require_objects
    )
    _tell(outcome, flags)
    return result


def _mended(request: Request, flags: Flags) -> _Outcome:
    """Has everything mended in memory, then shows or writes it."""
    failures: list[str] = []
    context = [file.content for file in read_context(request.inputs, failures)]
    inputs: dict[str, InputFile] = {}
    skipped: list[Skipped] = []
    for one in read_selection(request.inputs, failures, skipped, watched):
        if inputs.setdefault(one.name, one) is not one:
            raise ValueError(f'"{one.name}" is the name of standard input and of a file. Fix them one after the other.')
    judge = _judge(request, context, skipped)
    before = dict(file.content for file in inputs.values())
    with working(lambda: "Fixing") as start:
        start()
        first = judge(before)
        result = apply_fixes(before, judge, unsafe=flags.unsafe_fixes, first=first)
    now = dict(result.inputs)
    for name, one in inputs.items():
        after = now[name] if one.may_hold_apf else one.data
        if failure := _settle(one, after, request.inputs.paths, diff=flags.diff):
            failures.append(failure)
            now[name] = before[name]
    settled = now == result.inputs
    made = [found for found in result.fixed if settled or now[found.file] == result.inputs[found.file]]
    return _Outcome(first, made, result.refused, result.report if settled else judge(now), failures)


def _judge(
    request: Request, context: list[tuple[str, bytes]], skipped: list[Skipped]
) -> Callable[[Mapping[str, bytes]], Report]:
    """Checks inputs as `apflint check` would, but tells all there is, and leaves out what the baseline has."""
    # Findings name places in the text of standard input, not in the templates of a rendered chart.
    options = request.options._replace(max_findings_per_rule=MAX_FIXED_FINDINGS, covered=True, helm=False)

    partial = request.inputs.is_partial

    def checked(inputs: Mapping[str, bytes]) -> Report:
        report = engine.check(inputs.items(), options, context)
        if partial:
            report = _without_fixes_that_need_all_files(report)
        return report._replace(skipped=(*report.skipped, *skipped)) if skipped else report

    if request.baseline is None:
        return checked
    from apflint.baseline import compare
    from apflint.inputs.baseline_file import read_baseline

    entries, rules = read_baseline(request.baseline.path), request.options.rules
    return lambda inputs: compare(checked(inputs), entries, rules).report


def _without_fixes_that_need_all_files(report: Report) -> Report:
    """Drop the fixes of findings that other files may refute: of a suppression, for example, that suppresses nothing here."""
    from apflint.inputs.project import depends_on_others

    return report._replace(
        findings=tuple(
            finding._replace(fix=None) if finding.fix and depends_on_others(finding) else finding
            for finding in report.findings
        )
    )


def _settle(one: InputFile, after: bytes, named: Sequence[str], *, diff: bool) -> str | None:
    """Shows or writes what became of an input; a sentence without its end where that cannot be."""
    if diff:
        if after != one.data:
            print_diff(one.name, one.data, after)
        return None
    if one.path in ("-", "/dev/stdin"):
        print_bytes(after)
        return None
    reason = write(one.path, one.data, after, named) if after != one.data else None
    return f"{one.name}: not written: {reason}" if reason else None


def _tell(outcome: _Outcome, flags: Flags) -> None:
    """What was refused, and how many were fixed."""
    now = {} if flags.diff else {identity(found): found for found in outcome.after.findings}
    for refused, reason in sorted(outcome.refused, key=lambda refusal: _order(refusal.finding)):
        found = now.get(identity(refused), refused)  # where it is in the files as they are by now
        say(f"{_at(found)}: not fixed: {found.rule} ({_title(found)}): {reason}")
    if flags.quiet:
        return
    parts = []
    if outcome.made:
        files = pluralize(len({found.file for found in outcome.made}), "file")
        parts.append(f"{'would fix' if flags.diff else 'fixed'} {pluralize(len(outcome.made), 'finding')} in {files}")
    if outcome.refused:
        parts.append(f"{pluralize(len(outcome.refused), 'finding')} not fixed")
    if not parts and outcome.failures and not outcome.before.files:
        return  # nothing was read, and that is told
    if not parts:
        parts.append("nothing was fixed" if outcome.failures else "nothing to fix")
    left = outcome.after.findings
    unsafe = sum(found.fix is not None and not found.fix.safe for found in left)
    if unsafe and not flags.unsafe_fixes:
        number = f"{unsafe} more" if outcome.made else pluralize(unsafe, "finding")
        parts.append(f"{number} with --unsafe-fixes")
    others = sum(found.fix is None and found.severity != "info" for found in left)
    if others and not flags.fix:  # `check --fix` has shown them
        parts.append(f"{pluralize(others, 'finding')} without a fix: apflint check")
    say(f"apflint: {'; '.join(parts)}")


def _order(finding: Finding) -> tuple[Any, ...]:
    return finding.file, finding.span.line, finding.span.column, finding.rule, finding.message


def _at(finding: Finding) -> str:
    return f"{finding.file}:{finding.span.line}"


def _title(finding: Finding) -> str:
    return finding.fix.title if finding.fix else ""
