"""What each rule says of the bad examples on its page, and how it would mend them: what changes is seen in the review.

After a change: `python -m pytest tests/test_rule_messages.py --snapshot-update`, and read what git shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.rule_examples import parse_examples

from apflint import catalogue
from apflint.checks import CHECKS
from apflint.engine import Options, check
from apflint.location import field_path
from apflint.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syrupy.assertion import SnapshotAssertion

    from apflint.finding import Finding


def _said(finding: Finding) -> Iterator[str]:
    span = finding.span
    yield f"{span.line}:{span.column} {finding.severity} {finding.field}: {finding.message}"
    yield from (f"    note: {note}" for note in finding.notes)
    yield from (
        f"    {label}: {text}" for label, text in (("help", finding.help), ("example", finding.example)) if text
    )
    if finding.apiserver is not None:
        yield f"    the server: {finding.apiserver.reason} {finding.apiserver.field}".rstrip()
    for other in finding.related:
        yield f"    see {other.message} ({other.file}:{other.span.line})"
    if finding.fix is not None:
        yield f"    to {'mend' if finding.fix.safe else 'mend, if that is meant'}: {finding.fix.title}"
        for operation in finding.fix.operations:
            _, *values = operation
            yield " ".join(
                (f"        {type(operation).__name__.lower()} {field_path(operation.path)}", *map(repr, values))
            )


@pytest.mark.parametrize("rule_id", catalogue.list_ids())
def test_messages(rule_id: str, snapshot: SnapshotAssertion) -> None:
    said = []
    for number, example in enumerate(parse_examples(catalogue.read_rule(rule_id)), 1):
        if example.kind == "bad":
            options = Options(rules=tuple(CHECKS))
            if example.kubernetes is not None:
                options = options._replace(kubernetes=release(example.kubernetes))
            found = check([(example.file, example.text.encode())], options).findings
            said += [f"example {number}", *(text for each in found if each.rule == rule_id for text in _said(each))]
    assert "\n".join(said) == snapshot
