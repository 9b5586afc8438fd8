"""Laws of fixes, tested on generated manifests with mistakes in unusual YAML styles.

Every run generates the same 2,200 files with some 3,700 objects. `APFLINT_LAWS=5000 pytest tests/laws/test_fix_laws.py`
generates 5,000 random files for each law; add `--hypothesis-seed=1` to repeat a run.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from support.odd_manifests import Generated, text

from apflint.checks import rules_of
from apflint.edit import object_edits
from apflint.edit.file_content import decode
from apflint.edit.fixing import apply_fixes
from apflint.edit_operations import Nest
from apflint.engine import Options, check
from apflint.load import load
from apflint.model import build_flow_schema, build_priority_level
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.edit.fixing import FixResult
    from apflint.edit_operations import Edit, Operation
    from apflint.finding import Report
    from apflint.load.document import Document

pytestmark = pytest.mark.slow

MANY = os.environ.get("APFLINT_LAWS")
_COMMENT = re.compile(r"#{1,2} ?c\d+ [^\r\n]*")

RANDOM = st.integers(0, 2**40).map(Random)
EVERY = settings(max_examples=int(MANY or 100), derandomize=MANY is None)


def judge(inputs: Mapping[str, bytes]) -> Report:
    return check(inputs.items(), Options(suppressions=False))


def generated(random: Random, *, count: int = 1, anchors: bool = True) -> dict[str, Generated]:
    return {f"{tag}.yaml": text(random, tag, anchors=anchors) for tag in "abc"[:count]}


def fixed(files: Mapping[str, Generated], *, unsafe: bool = False) -> FixResult:
    return apply_fixes({name: file.data for name, file in files.items()}, judge, unsafe=unsafe)


def comments(data: bytes) -> list[str]:
    return [found.rstrip() for found in _COMMENT.findall(decode(data)[0])]


def read(data: bytes) -> list[Any]:
    """Parse YAML with another parser. Tabs are replaced, because this parser rejects them. No string in the text
    contains tabs."""
    return [value for value in yaml.safe_load_all(decode(data)[0].replace("\t", " ")) if value is not None]


def same(first: Any, other: Any) -> bool:
    return json.dumps(first, sort_keys=True) == json.dumps(other, sort_keys=True)


def bare(report: Report) -> list[Any]:
    return [finding._replace(document=None) for finding in report.findings]


@EVERY
@given(RANDOM, st.booleans())
def test_fixing_twice_equals_fixing_once(random: Random, unsafe: bool) -> None:
    once = fixed(generated(random, count=2), unsafe=unsafe)
    assert bare(once.report) == bare(judge(once.inputs))
    again = apply_fixes(once.inputs, judge, unsafe=unsafe)
    assert (again.fixed, again.inputs) == ((), once.inputs)


@EVERY
@given(RANDOM, st.booleans())
def test_comments_stay(random: Random, unsafe: bool) -> None:
    files = generated(random)
    outcome = fixed(files, unsafe=unsafe)
    # Fixes that move fields into a mapping keep all comments, but can change the order of the comments.
    moved = any(
        isinstance(operation, Nest) for found in outcome.fixed if found.fix for operation in found.fix.operations
    )
    in_order = sorted if moved else list
    for name, file in files.items():
        assert in_order(comments(outcome.inputs[name])) == in_order(comments(file.data))


@EVERY
@given(RANDOM)
def test_pyyaml_reads_the_intended_values(random: Random) -> None:
    files = generated(random)
    outcome = fixed(files)
    for name, file in files.items():
        before, after = read(file.data), read(outcome.inputs[name])
        assert len(before) == len(after) == len(file.wanted)
        if not outcome.refused and not same(after, file.wanted):
            left = {finding.rule for finding in outcome.report.findings} & rules_of("validation")
            assert left, (after, file.wanted)


@EVERY
@given(RANDOM)
def test_other_lines_stay(random: Random) -> None:
    files = generated(random)
    outcome = fixed(files)
    for name, file in files.items():
        source, _ = decode(file.data)
        if any(found.document and found.document.source.text != source for found in outcome.fixed):
            reject()  # after several rounds of fixes, the line numbers of edits refer to an intermediate text
        touched: set[int] = set()
        for edit in _together(outcome):
            touched |= set(range(source.count("\n", 0, edit.start), source.count("\n", 0, edit.end) + 1))
        lines, after = source.splitlines(keepends=True), iter(decode(outcome.inputs[name])[0].splitlines(keepends=True))
        assert all(line in after for number, line in enumerate(lines) if number not in touched)
        if not outcome.fixed:
            assert outcome.inputs[name] == file.data


def _together(outcome: FixResult) -> list[Edit]:
    """Return the edits of all fixes of a file, applied together. Removals of two adjacent entries become one edit."""
    documents: dict[int, tuple[Document, list[Operation]]] = {}
    for finding in outcome.fixed:
        if finding.document is not None and finding.fix is not None:
            _, located = documents.setdefault(finding.document.start, (finding.document, []))
            located += object_edits.locate(finding.document, finding.fix.operations)
    return [
        edit
        for document, located in documents.values()
        for edit in object_edits.text_edits(document.source.text, document.root, located)
    ]


@EVERY
@given(RANDOM, st.booleans())
def test_fixed_findings_are_gone_and_none_are_new(random: Random, unsafe: bool) -> None:
    files = generated(random, count=2)
    before = judge({name: source.data for name, source in files.items()})
    outcome = fixed(files, unsafe=unsafe)
    was, now = (
        Counter((finding.rule, finding.file) for finding in report.findings) for report in (before, outcome.report)
    )
    rejected = {found.file for found in outcome.fixed if found.apiserver}
    unread = {found.file for found in outcome.fixed if found.apiserver and found.apiserver.reason == "BadRequest"}
    # A wrong type of a level, limitResponse or subject masks findings about other fields.
    unread |= {found.file for found in outcome.fixed if found.rule in {"APF207", "APF302", "APF303"}}
    for rule, file in now:
        if now[rule, file] > was[rule, file]:
            assert rejected if rule not in rules_of("validation") else file in unread, (rule, file)
    assert len({id(found) for found in outcome.fixed}) == len(outcome.fixed)
    for found in outcome.fixed:
        assert found.fix is not None
        assert found.fix.safe or unsafe


@EVERY
@given(RANDOM)
def test_safe_fixes_keep_the_spec_of_accepted_objects(random: Random) -> None:
    files = generated(random)
    outcome = fixed(files)
    for name, file in files.items():
        report = judge({name: file.data})
        rejected = {finding.object.name for finding in report.findings if finding.apiserver and finding.object}
        old = {
            document.name: _meaning(document)
            for document in load(name, file.data).documents
            if document.name not in rejected
        }
        new = {document.name: document for document in load(name, outcome.inputs[name]).documents}
        for known, meaning in old.items():
            assert _meaning(new[known]) == meaning


def _meaning(document: Document) -> Any:
    if document.kind == "FlowSchema":
        return _sets(build_flow_schema(document.value, document).spec)
    return build_priority_level(document.value, document, NEWEST).spec


def _sets(value: Any) -> Any:
    """Convert lists to sets: repeated entries have no effect."""
    if isinstance(value, tuple):
        items = [_sets(item) for item in value]
        return list(dict.fromkeys(items)) if all(isinstance(item, str) for item in items) else items
    return value


@EVERY
@given(RANDOM)
def test_order_of_files_does_not_matter(random: Random) -> None:
    files = generated(random, count=3)
    reverse = dict(reversed(files.items()))
    first, other = fixed(files), fixed(reverse)
    assert first.inputs == other.inputs
    assert sorted(found.message for found in first.fixed) == sorted(found.message for found in other.fixed)


def test_most_generated_mistakes_are_fixed() -> None:
    """A program without any fixes would satisfy the other laws."""
    fixed_by_rule: Counter[str] = Counter()
    refused, complete = 0, 0
    for number in range(120):
        files = generated(Random(number), anchors=number % 2 == 0)
        outcome = fixed(files)
        fixed_by_rule.update(found.rule for found in outcome.fixed)
        refused += len(outcome.refused)
        complete += all(same(read(outcome.inputs[name]), file.wanted) for name, file in files.items())
    assert set(fixed_by_rule) >= {
        "APF101",
        "APF102",
        "APF104",
        "APF105",
        "APF106",
        "APF203",
        "APF210",
        "APF211",
        "APF303",
        "APF703",
    }
    assert fixed_by_rule.total() >= 8 * refused
    assert complete >= 80
