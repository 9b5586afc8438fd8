"""Compares findings of a run that reads only some files, as a pre-commit hook does, with the rest of the project."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from apflint.budgets import MAX_PROJECT_FILES
from apflint.settings.discovery import find_git_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from apflint.finding import Finding, Report
    from apflint.inputs.manifests import InputFile, Selection


def confirm_findings(
    report: Report,
    checked: Sequence[InputFile],
    check_again: Callable[[Iterable[tuple[str, bytes]]], Report],
    selection: Selection,
) -> Report:
    """Return the report without the findings that other files of the project refute.

    A priority level may be defined, and a FlowSchema matched, in a file that the run does not read. So findings that
    depend on other objects stay only if they stay with all files of the git repository as context (`check_again`). These are
    read only if there is such a finding: most runs of a hook have none. Without a repository the report stays as it is.
    """
    root = find_git_root(os.getcwd())
    if root is None or not any(map(depends_on_others, report.findings)):
        return report
    others = _other_files(root, checked, selection)
    confirming = {} if others is None else {_key(finding): finding for finding in check_again(others).findings}
    kept = (confirming.get(_key(finding)) if depends_on_others(finding) else finding for finding in report.findings)
    return report._replace(findings=tuple(finding for finding in kept if finding is not None))


def depends_on_others(finding: Finding) -> bool:
    """Return whether objects in other files can refute a finding."""
    from apflint.checks import CHECKS, DEPENDS_ON_OTHERS

    check = CHECKS[finding.rule]
    return check.phase == "analysis" or DEPENDS_ON_OTHERS in check.tags


def _key(finding: Finding) -> tuple[object, ...]:
    """Return what identifies a finding in two runs. Its message may name other objects of the project."""
    return finding.rule, finding.file, finding.object, finding.field, finding.span


def _other_files(root: str, checked: Sequence[InputFile], selection: Selection) -> list[tuple[str, bytes]] | None:
    """Return the manifests of the project that were not named, or None if there are too many files."""
    from apflint.inputs.discovery import discover_files  # most runs of a hook have no such finding
    from apflint.inputs.manifests import read_files

    found = list(islice(discover_files((os.path.relpath(root),), selection.exclude), MAX_PROJECT_FILES + 1))
    if len(found) > MAX_PROJECT_FILES:
        return None
    named = {os.path.realpath(file.path) for file in checked}
    others = (file for file in found if not file.problem and os.path.realpath(file.path) not in named)
    return [file.content for file in read_files(others, lambda _file, _reason: None, []) if file.may_hold_apf]
