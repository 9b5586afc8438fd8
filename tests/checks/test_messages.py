"""Reports of each rule about the bad examples on its page, and the form of messages, notes and help.

After a change, run `python -m pytest tests/checks/test_messages.py --snapshot-update`, and review what git shows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.rule_examples import parse_examples

from apflint import rule_catalogue
from apflint.checks import CHECKS, rules_of
from apflint.engine import Options, check
from apflint.location import field_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syrupy.assertion import SnapshotAssertion

    from apflint.finding import Finding

RULES = [rule_id for rule_id in CHECKS if rule_id not in rules_of("runtime")]
MAX_MESSAGE_LENGTH = 110
"""Maximum number of characters of a message, without quoted values and field paths."""
NAMES = ("API ", "JSON", "FlowSchema", "Kubernetes", "PriorityLevelConfiguration", "YAML")
"""Names that begin with a capital letter anywhere in a sentence."""


def findings_of_examples(rule_id: str) -> Iterator[tuple[int, list[Finding]]]:
    """Yield the number of each bad example on the page of a rule, and the findings of the rule."""
    for number, example in enumerate(parse_examples(rule_catalogue.read_rule(rule_id)), 1):
        if example.kind == "bad":
            options = example.adapt(Options(rules=tuple(CHECKS)))
            found = check([(example.file, example.text.encode())], options).findings
            yield number, [finding for finding in found if finding.rule == rule_id]


def describe(finding: Finding) -> Iterator[str]:
    """Yield lines with all parts of a finding: message, notes, help and places."""
    span = finding.span
    yield f"{span.line}:{span.column} {finding.severity} {finding.field}: {finding.message}"
    yield from (f"    note: {note}" for note in finding.notes)
    labeled = (("help", finding.help), ("example", finding.example))
    yield from (f"    {label}: {text}" for label, text in labeled if text)
    if finding.apiserver is not None:
        yield f"    apiserver: {finding.apiserver.reason} {finding.apiserver.field}".rstrip()
    for other in finding.related:
        yield f"    related: {other.message} ({other.file}:{other.span.line})"
    if finding.fix is not None:
        yield f"    fix ({'safe' if finding.fix.safe else 'unsafe'}): {finding.fix.title}"
        for operation in finding.fix.operations:
            _, *values = operation
            name = type(operation).__name__.lower()
            yield " ".join((f"        {name} {field_path(operation.path)}", *map(repr, values)))


@pytest.mark.parametrize("rule_id", RULES)
def test_messages(rule_id: str, snapshot: SnapshotAssertion) -> None:
    lines = []
    for number, found in findings_of_examples(rule_id):
        lines += [f"example {number}", *(line for finding in found for line in describe(finding))]
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize("rule_id", RULES)
def test_form_of_messages_notes_and_help(rule_id: str) -> None:
    for _, found in findings_of_examples(rule_id):
        assert found
        for finding in found:
            message = re.sub(r'"[^"]*"|[\w./-]+/[\w./-]+|\b\w+(\.\w+)+\b', "x", finding.message)
            assert not message[0].isupper() or message.startswith(NAMES), message
            assert not re.search(r"[.!?](\s|$)", message), message
            assert len(message) <= MAX_MESSAGE_LENGTH, message
            for note in finding.notes:
                assert note.endswith("."), note
            if finding.help is not None:
                assert not finding.help.endswith("."), finding.help
                assert finding.help[0].islower(), finding.help
