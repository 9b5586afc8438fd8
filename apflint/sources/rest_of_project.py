"""Removes findings that unread files of the project disprove. A hook, for example, reads only some files."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from apflint.budgets import MAX_PROJECT_FILES
from apflint.settings.discovery import find_git_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.finding import Finding, Report
    from apflint.sources.input_types import Inputs


def confirm_findings(
    report: Report, inputs: Inputs, check_again: Callable[[Iterable[tuple[str, str | bytes]]], Report]
) -> Report:
    """Return the report without the findings that unread files of the project disprove.

    For example, a file that the run does not read may define a missing priority level. If the report has findings that
    depend on other objects, the other files of the git repository are read. `check_again` then checks the files of the
    run again, with the other files as context. A finding that depends on other objects is kept only if the new report
    contains it, too.

    Findings in manifests of a cluster in the settings are kept, because the run has read all files of this cluster.

    If the current directory is in no git repository, the report is returned unchanged. If the repository has more than
    `MAX_PROJECT_FILES` files, all findings that depend on other objects are removed.
    """
    root = find_git_root(os.getcwd())
    if root is None or not any(map(depends_on_others, report.findings)):
        return report
    others = _other_files(root, inputs)
    confirming = {} if others is None else {_key(finding): finding for finding in check_again(others).findings}
    kept = (confirming.get(_key(finding)) if depends_on_others(finding) else finding for finding in report.findings)
    return report._replace(findings=tuple(finding for finding in kept if finding is not None))


def depends_on_others(finding: Finding) -> bool:
    """Return whether a finding depends on other objects, so that a file that the run does not read may disprove it."""
    from apflint.checks import CHECKS, DEPENDS_ON_OTHERS

    check = CHECKS[finding.rule]
    return not finding.clusters and (check.phase == "analysis" or DEPENDS_ON_OTHERS in check.tags)


def _key(finding: Finding) -> tuple[object, ...]:
    """Return a key that is equal for the same finding in two runs.

    The key does not contain the message, because the message may name different objects in the two runs.
    """
    return finding.rule, finding.file, finding.object, finding.field, finding.span


def _other_files(root: str, inputs: Inputs) -> list[tuple[str, str | bytes]] | None:
    """Return the manifests of the project that the run has not read, or None if the project has too many files."""
    from apflint.sources.discovery import discover_files  # imported here, because most runs do not need it
    from apflint.sources.files import read_files

    exclude = inputs.request.settings.exclude
    found = list(islice(discover_files((os.path.relpath(root),), exclude), MAX_PROJECT_FILES + 1))
    if len(found) > MAX_PROJECT_FILES:
        return None
    members = (name for configuration in inputs.configurations for name in configuration.members)
    checked = inputs.owned.union(os.path.realpath(inputs.files[name].path) for name in members)
    others = (file for file in found if not file.problem and os.path.realpath(file.path) not in checked)
    return [file.input for file in read_files(others).files if file.may_hold_apf]
