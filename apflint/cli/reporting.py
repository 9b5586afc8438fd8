"""Turns the report of `check` and `doctor` into an answer: rendered findings, summary, and exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.cli.error_reporting import format_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.terminal import style
from apflint.finding import SEVERITIES
from apflint.named_tuple import NamedTuple
from apflint.output.console import Style
from apflint.output.findings import render
from apflint.output.findings.summary import render_summary
from apflint.run import Answer
from apflint.sources.files import describe_files_without_objects
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.cli.report_files import ReportFile
    from apflint.finding import Report
    from apflint.sources.input_types import Inputs


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
    """Command that the summary suggests for fixable findings. Empty after `--fix`, because the fixes are applied already."""
    require_objects: bool = False
    """Whether to exit with 2 if the manifests contain no FlowSchemas and no priority levels."""


def answer_with_report(report: Report, inputs: Inputs, output: Output, errors: tuple[str, ...] = ()) -> Answer:
    """Write the report files, and return the answer for a report.

    `errors` contains a message for each file that a fix should have changed, but that apflint could not
    write.
    """
    how = style(output.color, quiet=True, verbose=output.verbose, statistics=output.statistics)
    if output.report_files or output.format == "github":
        from apflint.cli.report_files import append_job_summary, write_report_files

        # Write the files before printing, because printing fails if the program that reads from a pipe has ended.
        plain = Style(verbose=output.verbose, statistics=output.statistics)
        errors += write_report_files(report, output.report_files, plain)
        if "github" in (output.format, *(file.format for file in output.report_files)):
            errors += append_job_summary(report)
    shows_summary = not output.quiet and (report.files or not (errors or inputs.errors))
    is_empty = output.require_objects and not report.objects
    return Answer(
        render(report, output.format, how),
        errors=errors,
        summary=_render_summary(report, output) if shows_summary else "",
        status=ExitCode.ERROR if is_empty else exit_code_of(report, output),
    )


def note_files_without_objects(inputs: Inputs, report: Report) -> tuple[str, ...]:
    """Return notes about files that the user named, and that contain neither APF objects nor findings."""
    known = {*report.files_with_objects, *(finding.file for finding in report.findings)}
    return describe_files_without_objects([name for name in inputs.named if name not in known])


def exit_code_of(report: Report, output: Output) -> int:
    """Return 1 if a finding has the severity `output.fail_on` or higher, else 0.

    If `output.exit_zero` is true, always return 0.
    """
    if output.fail_on == "never" or output.exit_zero:
        return ExitCode.OK
    counted = SEVERITIES[: [*SEVERITIES].index(output.fail_on) + 1]  # type: ignore[arg-type]  # options and settings are checked
    failed = any(finding.severity in counted for finding in report.findings)
    return ExitCode.FINDINGS if failed else ExitCode.OK


def _render_summary(report: Report, output: Output) -> str:
    """Return the summary for the formats `text` and `concise`.

    For all other formats, return "", or a note if there are no objects.
    """
    if output.format in ("text", "concise"):
        how = style(output.color, sys.stderr, verbose=output.verbose)
        gap = "\n" if report.findings and output.format == "text" and not output.statistics else ""
        return f"{gap}{render_summary(report, how, fixes=output.fix_command)}"
    if not report.objects and not report.findings:
        return format_note(f"no FlowSchema and no PriorityLevelConfiguration in {pluralize(report.files, 'file')}")
    return ""
