"""Writes reports to files in addition to the printed report: for `--report FORMAT=FILE`, and for GitHub's job summary."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from apflint.atomic_write import write_atomically
from apflint.cli.error_reporting import print_note
from apflint.output.findings import FORMATS, render
from apflint.settings.patterns import PathMatcher
from apflint.sources.discovery import SUFFIXES, FoundFile
from apflint.sources.file_reading import read_file
from apflint.user_error import UserError
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.finding import Report
    from apflint.output.console import Style
    from apflint.sources.input_types import InputRequest

JOB_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
_MAX_JOB_SUMMARY_BYTES = 1 << 20
"""Maximum size of a job summary. GitHub does not show larger summaries."""


class ReportFile(NamedTuple):
    """A value of `--report`: a format, and the file to write."""

    format: str
    file: str


def parse_format(name: str) -> str:
    """Return the name of an output format unchanged. Raises UserError for an unknown format."""
    if name not in FORMATS:
        raise UserError(f'unknown format "{name}": use {join_words(FORMATS)}')
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


def check_report_files(report_files: Sequence[ReportFile], request: InputRequest) -> None:
    """Raise UserError if two reports have the same file, or if a report would replace an input of this run.

    A report may not replace a YAML or JSON file in an input directory, unless the file is excluded or has no APF objects,
    such as an earlier report.
    """
    real_paths = [_real_path(report_file.file) for report_file in report_files]
    inputs = {_real_path(path) for path in (*request.paths, *request.context, request.baseline) if path is not None}
    excluded = PathMatcher(request.settings.exclude)
    for number, (report_file, real) in enumerate(zip(report_files, real_paths, strict=True)):
        if real in real_paths[:number]:
            raise UserError(f'--report: "{report_file.file}" is named twice. Each report needs its own file.')
        is_read = real in inputs or (
            real.endswith(SUFFIXES)
            and any(real.startswith(f"{directory.rstrip('/')}/") for directory in inputs)
            and not excluded.matches_or_parent(report_file.file)
            and not _is_earlier_report(real)
        )
        if is_read and os.path.isfile(real):
            raise UserError(
                f'--report: "{report_file.file}" is an input of this run, and the report would replace it. Name another file.'
            )


def _real_path(path: str) -> str:
    return path if "\0" in path else os.path.realpath(path)  # `realpath` fails for a NUL. Writing the file reports it


def _is_earlier_report(path: str) -> bool:
    if not path.endswith(".json"):
        return False
    from apflint.load import load

    data = read_file(FoundFile(path, path))
    return isinstance(data, bytes) and not load(path, data).documents


def write_report_files(report: Report, report_files: Sequence[ReportFile], style: Style) -> tuple[str, ...]:
    """Write the report files. Return a message for each file that could not be written."""
    errors = []
    for report_file in report_files:
        try:
            text = render(report, report_file.format, style)
            write_atomically(report_file.file, text.encode("utf-8", "backslashreplace"))
        except (OSError, ValueError) as error:  # a NUL in the name raises ValueError
            errors.append(_describe("report", report_file.file, error))
    return tuple(errors)


def append_job_summary(report: Report) -> tuple[str, ...]:
    """Append the report in Markdown to GitHub's job summary, if there is one. Return messages about failures.

    An empty line separates the report from earlier output in the summary. If the summary would exceed GitHub's size
    limit, nothing is appended, because GitHub does not show larger summaries.
    """
    path = os.environ.get(JOB_SUMMARY_VARIABLE)
    if not path:
        return ()
    from apflint.output.findings.markdown import render_within

    try:
        with open(path, "ab+") as file:
            size = file.tell()
            file.seek(max(0, size - 1))
            gap = {b"": "", b"\n": "\n"}.get(file.read(1), "\n\n")
            text = render_within(report, _MAX_JOB_SUMMARY_BYTES - size - len(gap))
            file.write(f"{gap}{text}".encode("utf-8", "backslashreplace") if text else b"")
    except (OSError, ValueError) as error:
        return (_describe("job summary", path, error),)
    if not text:
        print_note("the job summary has no room left, so it does not contain the findings")
    return ()


def _describe(what: str, path: str, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return f'cannot write the {what} to "{path}": {reason or error}'
