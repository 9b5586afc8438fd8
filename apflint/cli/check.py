"""`apflint check`: reads the inputs, has them checked, prints the report, and knows the exit status."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from apflint.cli.progress import followed, watched, working
from apflint.cli.terminal import style
from apflint.engine import check
from apflint.finding import SEVERITIES
from apflint.inputs import discovery
from apflint.inputs.selection import Selection, read_context, read_selection
from apflint.output.console import Painter, Style
from apflint.output.findings import render
from apflint.output.findings.summary import render_summary
from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple
from apflint.releases import parse_release
from apflint.rule_selection import parse_selector
from apflint.settings import resolve_settings
from apflint.settings.patterns import Patterns
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.cli.reports import Target
    from apflint.engine import Options
    from apflint.finding import Report, Skipped
    from apflint.inputs.selection import InputFile


_SHOWN_STALE = 5
"""Stale entries of a baseline that are listed."""


class Printing(NamedTuple):
    """What to print, and which severity makes the exit status 1 (`never`: none does)."""

    format: str
    color: str
    quiet: bool
    verbose: bool
    statistics: bool
    fail_on: str
    reports: tuple[str, ...] = ()
    """FORMAT=FILE: written beside what is printed."""
    fixes: str = "apflint fix"
    """The command that fixes, for the summary; "" where that was just done."""


class Baseline(NamedTuple):
    """The file with the findings that are known already, and whether this run writes it."""

    path: str
    write: bool


class Flags(NamedTuple):
    """What the command line alone can say; what a settings file can say as well is in a mapping beside it."""

    force_exclude: bool = False
    stdin_filename: str | None = None
    reports: tuple[str, ...] = ()
    require_objects: bool = False
    baseline: str | None = None
    write_baseline: bool = False
    config: str | None = None
    isolated: bool = False
    no_ignores: bool = False
    color: str = "auto"
    quiet: bool = False
    verbose: bool = False
    statistics: bool = False
    fix: bool = False
    diff: bool = False
    unsafe_fixes: bool = False


class Request(NamedTuple):
    """What a command line and the settings together ask for."""

    inputs: Selection
    options: Options
    printing: Printing
    baseline: Baseline | None


def command(paths: tuple[str, ...], asked: Mapping[str, object], flags: Flags) -> int:
    """The whole of `apflint check`: `asked` has what the command line says of the settings, by their keys, None for nothing.

    ValueError, fit to be shown, for what cannot be.
    """
    if flags.write_baseline and flags.baseline is None:
        raise ValueError("--write-baseline needs the file to write: add --baseline FILE.")
    if flags.write_baseline and flags.reports:
        raise ValueError(
            "--write-baseline takes what is found as known, and --report tells of it. Give one of the two."
        )
    request = requested(paths, asked, flags)
    if flags.fix or flags.diff:
        from apflint.cli import fix

        return fix.check(request, flags)
    if flags.unsafe_fixes:
        raise ValueError("--unsafe-fixes goes with --fix or --diff.")
    return _run(request, flags)


def requested(paths: tuple[str, ...], asked: Mapping[str, object], flags: Flags) -> Request:
    """What a command line asks for, with the settings of the project. ValueError, fit to be shown, for what cannot be."""
    settings = resolve_settings(_parse(asked), flags.config, isolated=flags.isolated)
    inputs = Selection(
        paths or (".",),
        settings.exclude,
        force_exclude=flags.force_exclude,
        stdin_filename=flags.stdin_filename,
        context=settings.context,
        baseline=flags.baseline,
    )
    options = settings.to_options(suppressions=not flags.no_ignores)
    if flags.statistics and settings.format not in ("text", "concise"):
        raise ValueError(
            f"--statistics counts in words: it goes with --format text or concise, not with {settings.format}."
        )
    printing = Printing(
        settings.format,
        flags.color,
        quiet=flags.quiet,
        verbose=flags.verbose,
        statistics=flags.statistics,
        fail_on=settings.fail_on,
        reports=flags.reports,
        fixes="apflint fix -" if paths == ("-",) else "apflint fix",
    )
    known = Baseline(flags.baseline, flags.write_baseline) if flags.baseline is not None else None
    return Request(inputs, options, printing, known)


def _parse(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options to the types of `Settings`. Raises UserError for an unknown rule or release."""
    values = {key.replace("-", "_"): value for key, value in asked.items() if value is not None}
    for field in ("select", "extend_select", "ignore"):
        if field in values:
            values[field] = tuple(map(parse_selector, values[field]))
    if "kubernetes" in values:
        values["kubernetes"] = parse_release(values["kubernetes"])
    if "exclude" in values:
        values["exclude"] = Patterns(values["exclude"])
    return values


def _run(request: Request, flags: Flags) -> int:
    inputs, options, printing, baseline = request
    wanted = wanted_reports(request)
    if baseline is not None and baseline.write:
        return _write_baseline(inputs, options, baseline.path)
    unreadable: list[str] = []
    report = _checked(inputs, options, unreadable)
    if baseline is not None:
        report = _without_known(report, baseline.path, inputs.paths, options)
    return show(report, printing, wanted, unreadable, require_objects=flags.require_objects)


def _without_known(report: Report, path: str, paths: tuple[str, ...], options: Options) -> Report:
    """Leave out the findings that a baseline has, and report its stale entries."""
    from apflint.inputs.baseline_file import hide_known_findings

    compared = hide_known_findings(report, path, paths, options)
    if stale := compared.stale:
        what = "1 entry of the baseline was" if len(stale) == 1 else f"{len(stale)} entries of the baseline were"
        names = ", ".join(f"{entry.rule} {entry.object} {entry.field}".strip() for entry in stale[:_SHOWN_STALE])
        more = f" and {len(stale) - _SHOWN_STALE} more" if len(stale) > _SHOWN_STALE else ""
        sys.stderr.write(
            f"apflint: {sanitize(path)}: {what} not found in this run: {sanitize(names)}{more}."
            " If all files were read, write it again with --write-baseline\n"
        )
    return compared.report


def _checked(inputs: Selection, options: Options, unreadable: list[str]) -> Report:
    skipped: list[Skipped] = []
    context = [file.content for file in read_context(inputs, unreadable)] if inputs.context else []
    checked: Iterable[InputFile] = read_selection(inputs, unreadable, skipped, watched)
    if inputs.is_partial:
        checked = kept = tuple(checked)
    with working(lambda: "Analyzing") as start:
        report = check((file.content for file in followed(checked, start)), options, context)
        if isinstance(checked, tuple) and report.findings:
            from apflint.inputs.project import confirm_findings

            contents = [file.content for file in kept]
            report = confirm_findings(report, kept, lambda more: check(contents, options, (*context, *more)), inputs)
    return report._replace(skipped=(*report.skipped, *skipped)) if skipped else report


def _write_baseline(inputs: Selection, options: Options, path: str) -> int:
    """Write all findings as a baseline, or nothing if a file is unreadable: the known findings in it would be lost."""
    from apflint.inputs.baseline_file import read_previous_baseline, write_baseline

    previous = read_previous_baseline(path)
    errors: list[str] = []
    report = _checked(inputs, options, errors)
    if errors:
        for message in (*errors, f"{path} is not written, because not everything could be read"):
            sys.stderr.write(f"apflint: {sanitize(message)}\n")
        return 2
    kept = write_baseline(report, path, inputs.paths, options, previous)
    more = (
        f"; {'1 entry' if kept == 1 else f'{kept} entries'} about files and rules outside this run {'is' if kept == 1 else 'are'} kept"
        if kept
        else ""
    )
    sys.stderr.write(f"apflint: {pluralize(len(report.findings), 'finding')} written to {sanitize(path)}{more}\n")
    return 0


def show(
    report: Report, printing: Printing, wanted: tuple[Target, ...], failures: list[str], *, require_objects: bool
) -> int:
    """Prints a report and writes the reports that are wanted beside it; `failures` are sentences. The exit status."""
    how = style(printing.color, quiet=True, verbose=printing.verbose, statistics=printing.statistics)
    unwritten = _save(report, wanted, printing, how)  # first: whoever reads the output may have enough of it early
    if text := render(report, printing.format, how):
        sys.stdout.write(text)
        sys.stdout.flush()
    for message in (*failures, *unwritten):
        sys.stderr.write(f"apflint: {sanitize(message)}\n")
    if not printing.quiet and (report.files or not failures):
        _summarise(report, printing)
    return status(
        report, printing.fail_on, failed=bool(failures or unwritten) or (require_objects and not report.objects)
    )


def wanted_reports(request: Request) -> tuple[Target, ...]:
    """The reports that are asked for; known before anything is checked, so that a mistake is told at once."""
    inputs, reports = request.inputs, request.printing.reports
    if not reports:
        return ()
    from apflint.cli.reports import refuse_inputs, targets

    wanted = targets(reports)
    own = (inputs.baseline,) if inputs.baseline is not None else ()
    paths = (*inputs.paths, *inputs.context)
    refuse_inputs(wanted, (*paths, *own), discovery.discover_files(paths, inputs.exclude, inputs.force_exclude))
    return wanted


def _save(report: Report, wanted: tuple[Target, ...], printing: Printing, how: Style) -> list[str]:
    """Writes the files; a sentence for each that cannot be written."""
    if not wanted and printing.format != "github":
        return []
    from apflint.cli.reports import save, summarise

    failures = save(report, wanted, Style(verbose=how.verbose, statistics=how.statistics))
    if printing.format == "github" or any(target.format == "github" for target in wanted):
        failures += summarise(report)
    return failures


def _summarise(report: Report, printing: Printing) -> None:
    """What was found and what was skipped, on standard error; for machines' formats only that there was nothing to check."""
    if printing.format in ("text", "concise"):
        how = style(printing.color, sys.stderr, verbose=printing.verbose)
        gap = "\n" if report.findings and printing.format == "text" and not printing.statistics else ""
        sys.stderr.write(f"{gap}{render_summary(report, how, Painter(color=how.color), fixes=printing.fixes)}")
    elif not report.objects and not report.findings:
        where = "1 file" if report.files == 1 else f"{report.files} files"
        sys.stderr.write(f"apflint: no FlowSchema and no PriorityLevelConfiguration in {where}\n")


def status(report: Report, fail_on: str, *, failed: bool) -> int:
    """The exit status of a report; 2 in any case where something failed."""
    if failed:
        return 2
    if fail_on == "never":
        return 0
    counted = SEVERITIES[: [*SEVERITIES].index(fail_on) + 1]  # type: ignore[arg-type]  # typer admits only severities
    return int(any(finding.severity in counted for finding in report.findings))
