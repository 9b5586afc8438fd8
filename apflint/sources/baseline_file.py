"""Reads and writes the baseline file of `--baseline` and `--write-baseline`."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from apflint import baseline
from apflint.atomic_write import write_atomically
from apflint.budgets import MAX_BASELINE_BYTES
from apflint.location import clipped
from apflint.sources.file_reading import open_without_waiting
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.baseline import BaselineComparison, BaselineEntry
    from apflint.engine import Options
    from apflint.finding import Report


def read_baseline(path: str) -> Counter[BaselineEntry]:
    """Return the entries of a baseline file, with their counts.

    Raises UserError if the file is missing or is not a baseline. Raises OSError if the file cannot be opened.
    """
    try:
        return baseline.parse_baseline(_read(path), path)
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such baseline. To create the baseline, run apflint with `--baseline {path} --write-baseline`."
        ) from None


def read_previous_baseline(path: str) -> Counter[BaselineEntry]:
    """Return the entries of the baseline file that this run will overwrite. A missing or empty file has no entries.

    Raises UserError if the file cannot be read or is not a baseline.
    """
    if not os.path.exists(path):
        return Counter()
    try:
        text = _read(path)
        return baseline.parse_baseline(text, path) if text.strip() else Counter()
    except OSError as error:
        raise UserError(f'Cannot read the baseline "{path}": {error.strerror or error}.') from None
    except UserError:
        raise UserError(
            f"{path}: the file is not a baseline, so --write-baseline leaves the file unchanged. Name another file."
        ) from None


def _read(path: str) -> str:
    """Return the text of a baseline file.

    Raises OSError if the file cannot be read, and UserError if the file is too large or not a regular file.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"{path}: a baseline must be a regular file.")
    with open(path, "rb", opener=open_without_waiting) as file:
        data = file.read(MAX_BASELINE_BYTES + 1) or b""
    if len(data) > MAX_BASELINE_BYTES:
        raise UserError(f"{path}: a baseline must not be larger than {MAX_BASELINE_BYTES >> 20} MiB.")
    return data.decode("utf-8", "replace")


def hide_known_findings(report: Report, path: str, paths: tuple[str, ...], options: Options) -> BaselineComparison:
    """Return the report without the findings in the baseline file `path`, and the stale entries of the file.

    `paths` are the files and directories that the run checked. Raises UserError and OSError as `read_baseline` does.
    """
    rules, entries = options.rules, read_baseline(path)
    comparison = baseline.hide_known_findings(report, entries, rules)
    if comparison.stale and (objects := _read_objects(report, path, paths)) is not None:
        return baseline.hide_known_findings(report, entries, rules, objects)
    return comparison


def write_baseline(
    report: Report, path: str, paths: tuple[str, ...], options: Options, previous: Counter[BaselineEntry]
) -> int:
    """Write the findings of a report to the baseline file `path`.

    An entry in `previous` is kept if this run did not check its rule or its object. Return the number of kept entries.
    `paths` are the files and directories that the run checked. Raises UserError if the file cannot be written.
    """
    rules = options.rules
    objects = _read_objects(report, path, paths) if previous else None
    kept = Counter(
        {
            entry: count
            for entry, count in previous.items()
            if entry.rule not in rules or (objects is not None and entry.object not in objects)
        }
    )
    try:
        write_atomically(path, baseline.render_baseline(report, kept).encode("ascii"))
    except OSError as error:  # the message names `path`, because `error` names the temporary file
        raise UserError(f'Cannot write the baseline "{path}": {error.strerror or error}.') from None
    return len(kept)


def _read_objects(report: Report, path: str, paths: tuple[str, ...]) -> set[str] | None:
    """Return the files and objects that a run on `paths` has read, in the notation of `BaselineEntry.object`.

    If a directory in `paths` contains the baseline file, the run reads the whole project. In this case,
    return None, which means all files and objects. Other runs, such as those of a pre-commit hook, read
    only some files of the project.
    """
    home = os.path.realpath(os.path.dirname(path) or ".")
    for directory in filter(os.path.isdir, paths):
        if f"{home}/".startswith(f"{os.path.realpath(directory).rstrip('/')}/"):
            return None
    from apflint.load import load_text  # imported here, because most runs do not get to this line

    documents = (document for source in report.sources.values() for document in load_text(source).documents)
    return {*report.sources, *(f"{document.kind}/{clipped(document.name)}" for document in documents)}
