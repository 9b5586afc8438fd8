"""Makes fixes in texts, and proves that they do what they intend; or finds which of them cannot be made."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from apflint.edit.files import decode
from apflint.edit.lookup import find_alias
from apflint.edit.operations import locate, text_edits
from apflint.edit.original_lines import map_lines
from apflint.edit.proof import NotProvenError, prove
from apflint.edit.regressions import Conflict, ConflictsError, identity, is_unrecognized, scopes
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.fix import Set, Wrap
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from apflint.edit.original_lines import LineMap
    from apflint.finding import Finding
    from apflint.fix import Edit, Operation


def edits_of(finding: Finding) -> tuple[Edit, ...]:
    """Return the edits that make the fix of a finding, alone. Raises CannotEditError if the text does not permit that."""
    document = finding.document
    edits = (*(finding.fix.edits if finding.fix is not None else ()), *_edits_together([finding]))
    if edits and document is not None and "&" in document.source.text:  # an anchored value may be used elsewhere, too
        prove(document.source, apply_edits(document.source.text, edits), {document.start: _operations([finding])})
    return edits


def edit_inputs(
    inputs: Mapping[str, bytes], line_map: LineMap, findings: Iterable[Finding]
) -> tuple[dict[str, bytes], LineMap]:
    """Make the fixes of findings; return all inputs and the original lines of edited ones.

    Raises ConflictsError if fixes cannot be made.
    """
    edited, new_line_map = dict(inputs), dict(line_map)
    conflicts: list[Conflict] = []
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    for name, group in by_file.items():
        if name not in inputs:
            reason = "this is a part of a rendered chart, not a file"
            conflicts += (Conflict((finding,), reason, scopes(finding)[2]) for finding in group)
            continue
        try:
            edited[name], new_line_map[name] = _edit_file(name, inputs[name], line_map.get(name), group)
        except (CannotEditError, UnicodeError) as error:
            conflicts += _find_conflicts(group, error)
    if conflicts:
        raise ConflictsError(conflicts)
    return edited, new_line_map


def _edit_file(name: str, data: bytes, lines: list[int] | None, findings: list[Finding]) -> tuple[bytes, list[int]]:
    """Make fixes in a file, and prove that it contains what they intend, and that nothing else has changed.

    Return the file and the original lines of its lines; `lines` are those of `data`. Raises CannotEditError or UnicodeError.
    """
    groups = _group_by_document(findings)
    edits = [edit for finding in findings if finding.fix is not None for edit in finding.fix.edits]
    edits += (edit for group in groups.values() for edit in _edits_together(group))
    text, encoding = decode(data)
    old = Source(name, text)
    new = Source(name, apply_edits(text, edits))
    intended = {start: _operations(group) for start, group in groups.items()}
    prove(old, new.text, intended, allows_new_objects=any(map(is_unrecognized, findings)))
    return encoding.encode(new.text), map_lines(old, new, edits, lines)


def _find_conflicts(findings: list[Finding], error: Exception) -> list[Conflict]:
    """Return which fixes of a file cannot be made: those that fail alone, those in the same YAML document, or all."""
    conflicts: list[Conflict] = []
    for start, group in _group_by_document(findings).items():
        if together := _try_edit(group):
            alone = [_conflict([finding], own) for finding in group if (own := _try_edit([finding]))]
            conflicts += alone or [_conflict(group, together)]
        elif isinstance(error, NotProvenError) and start in error.failed:
            groups = group_inseparable(group)
            shared = [finding for finding, *others in groups if not others and _is_reached_through_alias(finding)]
            conflicts += [_conflict([finding], error) for finding in shared] or [_conflict(group, error)]
    suspects = tuple(findings)
    return conflicts or [_conflict(suspects, error)._replace(scope=scopes(suspects[0])[1])]


def _conflict(suspects: Iterable[Finding], error: Exception) -> Conflict:
    suspects = tuple(suspects)
    return Conflict(suspects, f"the text cannot be edited there: {error}", scopes(suspects[0])[2])


def _is_reached_through_alias(finding: Finding) -> bool:
    """Whether a fix edits an anchored value at a place where an alias repeats it: the edit changes other places, too."""
    document = finding.document
    return document is not None and any(
        find_alias(document.root, operation.path if isinstance(operation, Set | Wrap) else operation.path[:-1])
        for operation in _operations([finding])
    )


def group_inseparable(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group the findings that are fixed together or not at all.

    Aliases repeat a value, so that an edit changes several places. Objects of the same name have equal findings.
    """
    groups: list[list[Finding]] = []
    group_of: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        keys: list[Hashable] = [identity(finding)]
        with suppress(CannotEditError):
            keys += ((finding.file, edit) for edit in _edits_together([finding]))
        group = next((group_of[key] for key in keys if key in group_of), None)
        if group is None:
            groups.append(group := [])
        group.append(finding)
        group_of |= dict.fromkeys(keys, group)
    return groups


def _group_by_document(findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Group findings about objects of one file by the offset of their YAML document."""
    groups: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.document is not None:
            groups.setdefault(finding.document.start, []).append(finding)
    return groups


def _operations(findings: Iterable[Finding]) -> list[Operation]:
    """Return the operations of findings in one YAML document, with paths from its root."""
    return [
        operation
        for finding in findings
        if finding.document is not None and finding.fix is not None
        for operation in locate(finding.document, finding.fix.operations)
    ]


def _edits_together(findings: list[Finding]) -> tuple[Edit, ...]:
    """Return the edits for findings in one YAML document; none if the findings are not about objects."""
    document = findings[0].document
    return text_edits(document.source.text, document.root, _operations(findings)) if document is not None else ()


def _try_edit(findings: list[Finding]) -> CannotEditError | None:
    try:
        _edits_together(findings)
    except CannotEditError as error:
        return error
    return None
