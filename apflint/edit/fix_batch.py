"""Applies the fixes of findings to texts and proves that nothing else changes, or finds the fixes that fail."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from apflint.edit.entry_locations import find_alias
from apflint.edit.file_content import decode
from apflint.edit.object_edits import locate, prove, text_edits
from apflint.edit.text_edits import CannotEditError, apply_edits, map_lines
from apflint.edit_operations import Set, Wrap
from apflint.load.source_text import Source
from apflint.suppressions import SUPPRESSION_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from apflint.edit_operations import Edit, Operation
    from apflint.finding import Finding, ObjectRef

    Identity = tuple[str, str, ObjectRef | None, str, str]
    LineMap = Mapping[str, list[int]]
    """Maps the name of an edited file to the original line number of each of its lines. Files without edits are absent."""
    Scope = tuple[()] | tuple[str] | tuple[str, ObjectRef | None]
    """A part of the inputs: all inputs (an empty tuple), a file, or an object in a file."""

K = TypeVar("K", bound="Hashable")


class Conflict(NamedTuple):
    """The reason why a batch (fixes that are applied together) fails, and the findings whose fixes may be the cause."""

    suspects: tuple[Finding, ...]
    """Findings whose fixes may cause the conflict. Some of these fixes may be unrelated to the conflict."""
    reason: str
    scope: Scope
    """The part of the inputs on which the conflict depends. After another fix in this part, the fixes may succeed."""


def identity(finding: Finding) -> Identity:
    """Return the attributes that identify a finding even if its line number changes."""
    return finding.rule, finding.file, finding.object, finding.field, finding.message


def is_unrecognized(finding: Finding) -> bool:
    """Return whether a finding is about text that apflint does not recognize as an APF object.

    After the finding is fixed, apflint may recognize the object.
    """
    return finding.document is None and finding.rule not in SUPPRESSION_RULES


def edits_of(finding: Finding) -> tuple[Edit, ...]:
    """Return the edits that apply the fix of one finding. Raises CannotEditError if the text does not permit the fix."""
    document, edits = finding.document, _edits([finding])
    if edits and document is not None and "&" in document.source.text:  # an alias may repeat the edited value elsewhere
        prove(document.source, apply_edits(document.source.text, edits), {document.start: _operations([finding])})
    return tuple(edits)


def edit_inputs(
    inputs: Mapping[str, bytes], line_map: LineMap, findings: Iterable[Finding]
) -> tuple[dict[str, bytes], LineMap, list[Conflict]]:
    """Apply the fixes of findings. Return (contents of all inputs, new line map, conflicts).

    A line map contains the original line number of each line of each edited file. It is needed because
    earlier edits may have moved the lines. If the fixes of a file cannot be applied, the file stays
    unchanged, and the conflicts contain the findings with these fixes.
    """
    edited, new_line_map = dict(inputs), dict(line_map)
    conflicts: list[Conflict] = []
    for name, group in _group(findings, lambda finding: finding.file).items():
        try:
            edited[name], new_line_map[name] = _edit_file(name, inputs[name], line_map.get(name), group)
        except (CannotEditError, UnicodeError) as error:
            conflicts += (
                Conflict(tuple(suspects), f"the text cannot be edited there: {reason}", (name,))
                for suspects, reason in _find_suspects(group, error)
            )
    return edited, new_line_map, conflicts


def _edit_file(name: str, data: bytes, lines: list[int] | None, findings: list[Finding]) -> tuple[bytes, list[int]]:
    """Apply fixes to the file content `data`, and prove that the result contains the intended changes and no others.

    Return the new content, and the original line number of each line. `lines` are the original line numbers of `data`,
    or None if no earlier edit has changed the file. Raises CannotEditError or UnicodeError if the fixes fail.
    """
    groups = _group(findings, _document_start)
    edits = [edit for group in groups.values() for edit in _edits(group)]
    text, encoding = decode(data)
    old = Source(name, text)
    new = Source(name, apply_edits(text, edits))
    intended = {start: _operations(group) for start, group in groups.items()}
    prove(old, new.text, intended, allows_new_objects=any(map(is_unrecognized, findings)))
    return encoding.encode(new.text), map_lines(old, new, edits, lines)


def _find_suspects(findings: list[Finding], error: Exception) -> list[tuple[list[Finding], Exception]]:
    """Return (findings, error) pairs: the findings whose fixes probably prevent the edit of a file.

    If a fix also fails alone, its finding is in a separate pair. If the fixes of a YAML document fail only together,
    all of their findings are one pair. If no cause is found, the only pair contains all `findings`. `error` is the
    error of applying all fixes together.
    """
    suspects: list[tuple[list[Finding], Exception]] = []
    for start, group in _group(findings, _document_start).items():
        if together := _try_edit(group):
            alone = [([finding], own) for finding in group if (own := _try_edit([finding]))]
            suspects += alone or [(group, together)]
        elif isinstance(error, CannotEditError) and start in error.failed:
            groups = group_inseparable(group)
            shared = [[finding] for finding, *others in groups if not others and _is_reached_through_alias(finding)]
            suspects += ((finding, error) for finding in shared or [group])
    return suspects or [(findings, error)]


def _is_reached_through_alias(finding: Finding) -> bool:
    """Return whether the fix of `finding` edits a value through an alias. The edit then changes all places that share the value."""
    document = finding.document
    return document is not None and any(
        find_alias(document.root, operation.path if isinstance(operation, Set | Wrap) else operation.path[:-1])
        for operation in _operations([finding])
    )


def group_inseparable(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings that must be fixed together, because they have a common edit or are not distinguishable.

    Two findings have a common edit if an alias repeats the edited value. Two findings are not
    distinguishable if their rule, file, object, field and message are equal, for example because two
    objects have the same name.
    """
    groups: list[list[Finding]] = []
    group_of: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        keys: list[Hashable] = [identity(finding)]
        with suppress(CannotEditError):
            keys += ((finding.file, edit) for edit in _edits([finding]))
        group = next((group_of[key] for key in keys if key in group_of), None)
        if group is None:
            groups.append(group := [])
        group.append(finding)
        group_of |= dict.fromkeys(keys, group)
    return groups


def _group(findings: Iterable[Finding], key: Callable[[Finding], K]) -> dict[K, list[Finding]]:
    groups: dict[K, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return groups


def _document_start(finding: Finding) -> int:
    """Return the start offset of the YAML document that contains the finding, or -1 if the finding belongs to no document."""
    return finding.document.start if finding.document is not None else -1


def _operations(findings: Iterable[Finding]) -> list[Operation]:
    """Return the fix operations of findings in one YAML document, with paths from the root of the document."""
    return [
        operation
        for finding in findings
        if finding.document is not None and finding.fix is not None
        for operation in locate(finding.document, finding.fix.operations)
    ]


def _edits(findings: list[Finding]) -> list[Edit]:
    """Return the edits that fix findings. The findings must all belong to the same YAML document, or all to none."""
    edits = [edit for finding in findings if finding.fix is not None for edit in finding.fix.edits]
    if document := findings[0].document:
        edits += text_edits(document.source.text, document.root, _operations(findings))
    return edits


def _try_edit(findings: list[Finding]) -> CannotEditError | None:
    try:
        _edits(findings)
    except CannotEditError as error:
        return error
    return None
