"""Reports in files, beside the printed one: `--report FORMAT=FILE`, and the job summary on GitHub."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import typer

from apflint.atomic_write import write_atomically
from apflint.cli.exit_codes import print_note
from apflint.errors import UserError
from apflint.inputs.discovery import discover_files
from apflint.inputs.reading import read_file
from apflint.output.console import Style
from apflint.output.findings import FORMATS, render
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.finding import Report
    from apflint.inputs.discovery import FoundFile
    from apflint.inputs.selection import Selection

JOB_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_JOB_SUMMARY_BYTES = 1 << 20
"""GitHub does not show a larger summary at all."""


class ReportFile(NamedTuple):
    """The value of `--report`."""

    format: str
    file: str


def parse_format(name: str) -> str:
    """Return the name of a format. Raises typer.BadParameter for an unknown one."""
    if name not in FORMATS:
        raise typer.BadParameter(f'unknown format "{name}": use {join_words(FORMATS)}')
    return name


def parse_report_file(text: str) -> ReportFile:
    """Parse `FORMAT=FILE`. Raises UserError for an unknown format or a missing file name."""
    name, equals, file = text.partition("=")
    if name not in FORMATS:
        raise UserError(
            f'--report: unknown format "{name}". Write FORMAT=FILE; formats are {join_words(FORMATS, "and")}.'
        )
    if not equals or not file or file == "-":
        raise UserError(f'--report: no file name in "{text}". Write FORMAT=FILE; --format is for standard output.')
    return ReportFile(name, file)


def check_report_files(report_files: Sequence[ReportFile], selection: Selection) -> None:
    """Raise UserError if two reports have one file, or if a report would replace a file that this run reads.

    An earlier report in JSON is not an input, even if it lies in a directory that is read.
    """
    for number, report_file in enumerate(report_files):
        if any(_is_same_file(report_file.file, other.file) for other in report_files[:number]):
            raise UserError(f'--report: "{report_file.file}" is named twice. Each report needs its own file.')
    existing = [report_file for report_file in report_files if os.path.isfile(report_file.file)]
    if not existing:
        return
    paths = (*selection.paths, *selection.context)
    read = {os.path.realpath(path) for path in (*paths, selection.baseline) if path is not None and "\0" not in path}
    names = {os.path.basename(os.path.realpath(report_file.file)) for report_file in existing}
    for found in discover_files(paths, selection.exclude, selection.force_exclude):
        is_candidate = "\0" not in found.path and os.path.basename(os.path.realpath(found.path)) in names
        if is_candidate and not _is_earlier_report(found):
            read.add(os.path.realpath(found.path))
    for report_file in existing:
        if os.path.realpath(report_file.file) in read:
            raise UserError(
                f'--report: "{report_file.file}" is an input of this run, and the report would replace it. Name another file.'
            )


def _is_same_file(path: str, other: str) -> bool:
    if "\0" in path or "\0" in other:  # invalid in a path, as writing the report will say
        return path == other
    return os.path.realpath(path) == os.path.realpath(other)


def _is_earlier_report(found: FoundFile) -> bool:
    if not found.path.endswith(".json"):
        return False
    from apflint.load import load

    data = read_file(found)
    return isinstance(data, bytes) and not load(found.name, data).documents


def write_report_files(
    report: Report, report_files: Sequence[ReportFile], *, verbose: bool, statistics: bool
) -> list[str]:
    """Write the reports, and return a message for each that could not be written."""
    style = Style(verbose=verbose, statistics=statistics)
    errors = []
    for report_file in report_files:
        try:
            text = render(report, report_file.format, style)
            write_atomically(report_file.file, text.encode("utf-8", "backslashreplace"))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            errors.append(_describe("report", report_file.file, error))
    return errors


def append_job_summary(report: Report) -> list[str]:
    """Append the report in Markdown to the job summary if GitHub provides one, and return a message if that fails.

    An empty line separates the report from the output of other commands of the step. If that output leaves no room, nothing
    is appended: GitHub would not show any of it.
    """
    path = os.environ.get(JOB_SUMMARY_VARIABLE)
    if not path:
        return []
    from apflint.output.findings.markdown import render_within

    try:
        with open(path, "ab+") as file:
            size = file.tell()
            file.seek(max(0, size - 1))
            gap = {b"": "", b"\n": "\n"}.get(file.read(1), "\n\n")
            text = render_within(report, MAX_JOB_SUMMARY_BYTES - size - len(gap))
            file.write(f"{gap}{text}".encode("utf-8", "backslashreplace") if text else b"")
    except (OSError, ValueError) as error:
        return [_describe("job summary", path, error)]
    if not text:
        print_note("the job summary has no room left, so it does not contain the findings")
    return []


def _describe(what: str, path: str, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return f'cannot write the {what} to "{path}": {reason or error}'
