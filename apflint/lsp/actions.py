"""What an editor can do about findings: make their fixes, all safe ones of a file at once, or set one aside by a comment."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from apflint.finding import Edit
from apflint.load.comments import comments
from apflint.load.source import Source
from apflint.lsp.outline import piece
from apflint.lsp.positions import to_offsets
from apflint.suppression import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.finding import Finding

_IGNORE = re.compile(r"#+[ \t]*apflint:[ \t]*ignore[ \t]*\[(?P<ids>[^\]\r\n]*)\]")
_MANY = 1000
MOST = 50
"""Findings that actions are offered for at once. Nobody reads a longer menu, and whoever selects all has not asked for one."""


class Action(NamedTuple):
    """Something to do: edits of the text, the findings that it is about."""

    title: str
    preferred: bool
    """Safe: the one to take where nobody looks closely."""
    edits: tuple[Edit, ...]
    findings: tuple[Finding, ...]


def between(findings: Iterable[Finding], source: Source, start: int, end: int) -> Iterator[Finding]:
    """The findings of a text that touch `text[start:end]`."""
    first, last = source.position(start)[0], source.position(end)[0]
    for found in findings:
        if found.span.line <= last and found.span.end_line >= first:  # most are elsewhere
            from_, to = to_offsets(source, found.span)
            if from_ <= end and start <= to:
                yield found


def quick_fixes(findings: Iterable[Finding]) -> list[Action]:
    """The fixes that the findings bring along, where the text can be edited so; one that mends several is one."""
    from apflint.edit.fix import edits

    actions: dict[tuple[Edit, ...], Action] = {}
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            made = edits(finding)
        except ValueError:
            continue
        if made in actions:
            known = actions[made]
            actions[made] = known._replace(findings=(*known.findings, finding))
        elif made:
            note = "" if finding.fix.safe else " (may change what the object means)"
            title = f"{finding.fix.title[:1].upper()}{finding.fix.title[1:]}{note}"
            actions[made] = Action(title, finding.fix.safe, made, (finding,))
    return list(actions.values())


def ignores(source: Source, findings: Iterable[Finding]) -> Iterator[Action]:
    """The comments that set the rules of findings aside on the line where they start; none where no comment can be."""
    by_rule: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault((finding.rule, finding.span.line), []).append(finding)
    for (rule, line), found in by_rule.items():
        if rule in RULES or source.name.endswith(".json"):
            continue
        edit = _comment(source, rule, line)
        at, _ = to_offsets(source, found[0].span)
        if edit is not None and _heeded(source, edit, rule, at):
            yield Action(f"Ignore {rule} for this line", False, (edit,), tuple(found))


def _comment(source: Source, rule: str, line: int) -> Edit | None:
    """The edit that adds a rule to the comment of a line, or a comment to a line that has none."""
    start = source.line_starts[line - 1]
    text = source.line(line)
    if (known := _IGNORE.search(text)) is not None:
        at = start + known.end("ids")
        return Edit(at, at, f", {rule}" if known["ids"].strip() else rule)
    if re.search(r"(?:^|\s)#", text):
        return None  # behind another comment it would be a part of that
    at = start + len(text.rstrip())
    return Edit(at, start + len(text), f"  # apflint: ignore[{rule}]")


def _heeded(source: Source, edit: Edit, rule: str, at: int) -> bool:
    """Whether the comment would be one, and about the finding at `at`: inside of a text of several lines it is not."""
    part = piece(source.text, edit.start)
    if part is None:
        return False
    text = source.text[part.start : edit.start] + edit.new + source.text[edit.end : part.end]
    end = edit.start + len(edit.new) - part.start
    return any(
        comment.start <= end <= comment.end
        and rule in comment.text
        and comment.scope[0] <= at - part.start < comment.scope[1]
        for comment in comments(Source(source.name, text), "apflint:")
    )


def difference(old: str, new: str) -> tuple[Edit, ...]:
    """Edits of whole lines that make one text of another: as few as can be told soon."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    return tuple(
        Edit(starts[first], starts[last], "".join(after[other:end]))
        for first, last, other, end in _changes(before, after)
    )


def _changes(before: list[str], after: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Where lines differ: first and last of the ones, first and last of the others."""
    if len(before) == len(after):  # most fixes change a line
        differ = [number for number in range(len(before)) if before[number] != after[number]]
        for number in differ:
            yield number, number + 1, number, number + 1
        return
    least = min(len(before), len(after))
    head = next((number for number in range(least) if before[number] != after[number]), least)
    tail = next((number for number in range(least - head) if before[-1 - number] != after[-1 - number]), least - head)
    last, end = len(before) - tail, len(after) - tail
    if last - head > _MANY:  # SequenceMatcher takes time by the square
        yield head, last, head, end
        return
    for what, *places in SequenceMatcher(None, before[head:last], after[head:end], autojunk=False).get_opcodes():
        if what != "equal":
            yield places[0] + head, places[1] + head, places[2] + head, places[3] + head
