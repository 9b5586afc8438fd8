"""Reports in files, beside what is printed: `--report FORMAT=FILE`, and the summary of a job on GitHub."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.atomic_write import write_atomically
from apflint.output.findings import FORMATS, render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.finding import Report
    from apflint.inputs.discovery import FoundFile
    from apflint.output.console import Style

SUMMARY = "GITHUB_STEP_SUMMARY"
SUMMARY_SIZE = 1 << 20
"""Bytes of a step's summary at most: a longer one GitHub does not show at all."""


class Target(NamedTuple):
    """A report that is asked for."""

    format: str
    file: str


def targets(values: tuple[str, ...]) -> tuple[Target, ...]:
    """What `--report` asks for. ValueError, fit to be shown, for what is no FORMAT=FILE, and for a file named twice."""
    found: list[Target] = []
    for value in values:
        name, equals, file = value.partition("=")
        if name not in FORMATS:
            raise ValueError(
                f'--report: "{name}" is no format. Write FORMAT=FILE, where FORMAT is one of {", ".join(FORMATS)}.'
            )
        if not equals or not file or file == "-":
            raise ValueError(f'--report: "{value}" names no file. Write FORMAT=FILE; --format is for standard output.')
        if any(_same(file, other.file) for other in found):
            raise ValueError(f'--report: "{file}" is named twice. Each report needs a file of its own.')
        found.append(Target(name, file))
    return tuple(found)


def _same(one: str, other: str) -> bool:
    """Whether two names lead to one file."""
    try:
        return os.path.realpath(one) == os.path.realpath(other)
    except ValueError:  # a NUL, which no file has in its name; writing says more
        return one == other


def refuse_inputs(wanted: tuple[Target, ...], named: Iterable[str], inputs: Iterable[FoundFile]) -> None:
    """ValueError where a report would take the place of what is read: a file that is `named`, or a manifest in a directory.

    An earlier report among the `inputs`, in JSON, is no manifest.
    """
    there = [target for target in wanted if os.path.isfile(target.file)]
    for target in there:
        if any(_same(target.file, name) for name in named):
            raise _is_read(target)
    names = {os.path.basename(os.path.realpath(target.file)): target for target in there}
    for found in inputs if there else ():
        same = names.get(os.path.basename(os.path.realpath(found.path)))
        if same and _same(same.file, found.path) and not _is_earlier_report(found):
            raise _is_read(same)


def _is_read(target: Target) -> ValueError:
    return ValueError(
        f'--report: "{target.file}" is read in this run, and the report would take its place. Name another file.'
    )


def _is_earlier_report(found: FoundFile) -> bool:
    if not found.path.endswith(".json"):
        return False  # what is read of directories is in YAML, else
    from apflint.inputs.reading import read_file
    from apflint.load import load

    data = read_file(found)
    return isinstance(data, bytes) and not load(found.name, data).documents


def save(report: Report, wanted: tuple[Target, ...], style: Style) -> list[str]:
    """Writes the reports. A sentence for each that could not be written; the others are written all the same."""
    failures = []
    for target in wanted:
        try:
            write_atomically(target.file, render(report, target.format, style).encode("utf-8", "backslashreplace"))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            failures.append(_failure("report", target.file, error))
    return failures


def summarise(report: Report) -> list[str]:
    """Adds the Markdown to the summary of the job where GitHub asks for one; a sentence if that fails.

    What other commands of the step have written stays apart, by an empty line. Where it leaves no room, nothing is added:
    a summary that is too long is not shown at all, theirs included.
    """
    path = os.environ.get(SUMMARY)
    if not path:
        return []
    from apflint.output.findings.markdown import render_within

    try:
        with open(path, "ab+") as file:
            size = file.tell()
            file.seek(max(0, size - 1))
            gap = {b"": "", b"\n": "\n"}.get(file.read(1), "\n\n")
            text = render_within(report, SUMMARY_SIZE - size - len(gap))
            file.write(f"{gap}{text}".encode("utf-8", "backslashreplace") if text else b"")
    except (OSError, ValueError) as error:
        return [_failure("summary of the job", path, error)]
    if not text:
        sys.stderr.write("apflint: the summary of the job has no room left, so the findings are not in it\n")
    return []


def _failure(what: str, path: str, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return f'The {what} cannot be written to "{path}": {reason or error}.'
