"""APF001, APF003, APF004, APF005: text that cannot be read as a manifest, or that is not an APF object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import Cause, Problem
from apflint.fix import Edit, Fix
from apflint.releases import api_version
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.load import LoadProblem
    from apflint.workspace import Workspace

_DOCUMENT_NOT_CHECKED = "The document is not checked."


def syntax_error(workspace: Workspace) -> Iterator[Problem]:
    """APF001."""
    return _problems(workspace, "syntax", _DOCUMENT_NOT_CHECKED)


def unrendered_template(workspace: Workspace) -> Iterator[Problem]:
    """APF003."""
    return _problems(workspace, "template")


def unsafe_document(workspace: Workspace) -> Iterator[Problem]:
    """APF004."""
    return _problems(workspace, "unsafe", _DOCUMENT_NOT_CHECKED)


def not_an_apf_object(workspace: Workspace) -> Iterator[Problem]:
    """APF005."""
    return _problems(workspace, "not-apf", "The object is not checked.")


def _problems(workspace: Workspace, kind: str, *notes: str) -> Iterator[Problem]:
    for problem in workspace.problems:
        if problem.kind == kind:
            yield Problem(
                problem.place,
                problem.message,
                Cause("BadRequest", "") if problem.is_rejected else None,
                notes=notes,
                help=problem.help,
                fix=_correct(problem),
                is_template=kind == "template",
            )


def _correct(problem: LoadProblem) -> Fix | None:
    """Return a fix that writes what was probably intended. Unsafe: it turns what may be another object into an APF object."""
    if problem.correction is None:
        return None
    old, new = problem.correction
    at = problem.place.source.text.rfind(old, *problem.place.offsets)
    if at < 0 or (api_version(new.rpartition("/")[2]) is None and "/" in new):
        return None
    return Fix(f"change {quote(old)} to {quote(new)}", safe=False, edits=(Edit(at, at + len(old), new),))


def about_suppressions(_effective: Effective) -> Iterator[Problem]:
    """APF901, APF902, APF903: none here. They are about the findings of the other rules: `apflint.suppressions` finds them."""
    return iter(())
