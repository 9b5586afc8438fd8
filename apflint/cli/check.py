"""`apflint check`: reads the inputs, has them checked, prints the report, and knows the exit status."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from apflint.cli.progress import followed, watched, working
from apflint.cli.terminal import style
from apflint.engine import STDIN, Options, check
from apflint.finding import SEVERITIES, Skipped
from apflint.inputs import files
from apflint.output.console import Painter, Style
from apflint.output.findings import render
from apflint.output.findings.summary import summary
from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple
from apflint.settings import effective

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.cli.reports import Target
    from apflint.finding import Report


CONTEXT = "context"
"""Why a file is not checked that `context` names: it is read for what it defines."""


class Inputs(NamedTuple):
    """What to read. `stdin_filename` is the name that findings show for standard input."""

    paths: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    stdin_filename: str | None = None
    context: tuple[str, ...] = ()
    """Paths that are read for what they define. Never reported on, even if they lie below one of `paths`."""
    apart: str | None = None
    """A file of ours that is no manifest, though it may lie among them: the baseline."""


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


class Input(NamedTuple):
    """One input that was read."""

    name: str
    """As findings show it."""
    path: str
    """Where it was read; `-` is standard input."""
    data: bytes
    ours: bool
    """Whether it may hold something of ours. The rest is not parsed at all: most files of a repository."""


class Request(NamedTuple):
    """What a command line and the settings together ask for."""

    inputs: Inputs
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
    settings = effective(asked, flags.config, isolated=flags.isolated)
    given = settings.values
    inputs = Inputs(
        paths or (".",),
        given["exclude"],
        force_exclude=flags.force_exclude,
        stdin_filename=flags.stdin_filename,
        context=given["context"],
        apart=flags.baseline,
    )
    options = Options.from_settings(settings, suppressions=not flags.no_ignores)
    if flags.statistics and given["format"] not in ("text", "concise"):
        raise ValueError(
            f"--statistics counts in words: it goes with --format text or concise, not with {given['format']}."
        )
    printing = Printing(
        given["format"],
        flags.color,
        quiet=flags.quiet,
        verbose=flags.verbose,
        statistics=flags.statistics,
        fail_on=given["fail-on"],
        reports=flags.reports,
        fixes="apflint fix -" if paths == ("-",) else "apflint fix",
    )
    known = Baseline(flags.baseline, flags.write_baseline) if flags.baseline is not None else None
    return Request(inputs, options, printing, known)


def _run(request: Request, flags: Flags) -> int:
    inputs, options, printing, baseline = request
    wanted = wanted_reports(request)
    if baseline is not None and baseline.write:
        return _write_baseline(inputs, options, baseline.path)
    unreadable: list[str] = []
    report = _checked(inputs, options, unreadable)
    if baseline is not None:
        from apflint.cli import baselines

        report = baselines.without_known(report, baseline.path, inputs.paths, options)
    return show(report, printing, wanted, unreadable, require_objects=flags.require_objects)


def _checked(inputs: Inputs, options: Options, unreadable: list[str]) -> Report:
    skipped: list[Skipped] = []
    context = list(pairs(read_context(inputs, unreadable))) if inputs.context else []
    found: Iterable[Input] = read(inputs, unreadable, skipped)
    if only_some_files(inputs):
        found = kept = tuple(found)
    with working(lambda: "Analyzing") as start:
        report = check(pairs(followed(found, start)), options, context)
        if isinstance(found, tuple) and report.findings:
            from apflint.cli import project

            report = project.confirm_findings(
                report, kept, lambda more: check(pairs(kept), options, (*context, *more)), inputs
            )
    return report._replace(skipped=(*report.skipped, *skipped)) if skipped else report


def only_some_files(inputs: Inputs) -> bool:
    """Whether the inputs are named files of a project: with --force-exclude, as in the hooks."""
    return inputs.force_exclude and not any(path == "-" or os.path.isdir(path) for path in inputs.paths)


def _write_baseline(inputs: Inputs, options: Options, path: str) -> int:
    """Writes what is found as known; nothing where not all can be read, because what is known of that would be lost."""
    from apflint.cli import baselines

    old = baselines.replaced(path)
    unreadable: list[str] = []
    report = _checked(inputs, options, unreadable)
    if unreadable:
        unreadable.append(sanitize(f"{path} is not written, because not everything could be read"))
        for message in unreadable:
            sys.stderr.write(f"apflint: {message}\n")
        return 2
    baselines.write(report, path, inputs.paths, options, old)
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
        sys.stderr.write(f"apflint: {message}\n")
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
    own = (inputs.apart,) if inputs.apart is not None else ()
    paths = (*inputs.paths, *inputs.context)
    refuse_inputs(wanted, (*paths, *own), files.discover(paths, inputs.exclude, inputs.force_exclude))
    return wanted


def _save(report: Report, wanted: tuple[Target, ...], printing: Printing, how: Style) -> list[str]:
    """Writes the files; a sentence for each that cannot be written."""
    if not wanted and printing.format != "github":
        return []
    from apflint.cli.reports import save, summarise

    failures = save(report, wanted, Style(verbose=how.verbose, statistics=how.statistics))
    if printing.format == "github" or any(target.format == "github" for target in wanted):
        failures += summarise(report)
    return list(map(sanitize, failures))


def _summarise(report: Report, printing: Printing) -> None:
    """What was found and what was skipped, on standard error; for machines' formats only that there was nothing to check."""
    if printing.format in ("text", "concise"):
        how = style(printing.color, sys.stderr, verbose=printing.verbose)
        gap = "\n" if report.findings and printing.format == "text" and not printing.statistics else ""
        sys.stderr.write(f"{gap}{summary(report, how, Painter(color=how.color), fixes=printing.fixes)}\n")
    elif not report.objects and not report.findings:
        where = "1 file" if report.files == 1 else f"{report.files} files"
        sys.stderr.write(f"apflint: no FlowSchema and no PriorityLevelConfiguration in {where}\n")


def read(inputs: Inputs, unreadable: list[str], skipped: list[Skipped] | None = None) -> Iterator[Input]:
    """Yield the inputs that can be read. Others become sentences in `unreadable`, or entries of `skipped` with a reason."""
    skipped = [] if skipped is None else skipped
    found = list(files.discover(inputs.paths, inputs.exclude, inputs.force_exclude, skipped))
    if inputs.apart is not None:
        found = [one for one in found if not _is_file(inputs.apart, one.path)]
    if inputs.context:
        found = _without_context(found, inputs, skipped)
    patches = None
    for one in watched(found):
        data = files.read(one)
        if isinstance(data, files.Unreadable):
            unreadable.append(sanitize(f"{one.name}: {data.reason}"))
            continue
        name = inputs.stdin_filename or STDIN if one.name == STDIN else one.name
        ours = files.may_hold_apf(data)
        if ours and one.name != STDIN:
            from apflint.inputs.patches import REASON, Patches  # most files of a repository are not ours

            patches = patches or Patches()
            if one.path in patches:
                skipped.append(Skipped(name, REASON))
                ours = False
        yield Input(name, one.path, data, ours)


def read_context(inputs: Inputs, unreadable: list[str]) -> Iterator[Input]:
    """Yield the files of `context`. They are named in settings or options, so `exclude` applies only within directories."""
    return read(inputs._replace(paths=inputs.context, context=(), force_exclude=False), unreadable)


def _without_context(found: list[files.Found], inputs: Inputs, skipped: list[Skipped]) -> list[files.Found]:
    """Leave out the files of the context."""
    known = {os.path.realpath(one.path) for one in files.discover(inputs.context, inputs.exclude) if not one.problem}
    kept: list[files.Found] = []
    for one in found:
        if not one.problem and os.path.realpath(one.path) in known:
            skipped.append(Skipped(one.name, CONTEXT))
        else:
            kept.append(one)
    return kept


def _is_file(path: str, other: str) -> bool:
    """Whether two paths name one file, without a look at the disk for all that are called otherwise."""
    return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)


def pairs(inputs: Iterable[Input]) -> Iterator[tuple[str, bytes]]:
    """Names and bytes, as the engine wants them."""
    return ((one.name, one.data if one.ours else b"") for one in inputs)


def status(report: Report, fail_on: str, *, failed: bool) -> int:
    """The exit status of a report; 2 in any case where something failed."""
    if failed:
        return 2
    if fail_on == "never":
        return 0
    counted = SEVERITIES[: [*SEVERITIES].index(fail_on) + 1]  # type: ignore[arg-type]  # typer admits only severities
    return int(any(finding.severity in counted for finding in report.findings))
