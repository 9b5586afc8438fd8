"""The pages in `rules/` have the required form, and their examples have the marked findings."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, get_args

import pytest
import yaml
from support.rule_examples import Example, parse_examples

from apflint import rule_catalogue
from apflint.checks import CHECKS, OFF, rules_of, rules_with
from apflint.edit.fixing import apply_fixes
from apflint.engine import Options, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from apflint.finding import Report

HEADINGS = ["How to fix", "Why", "Bad", "Good"]
LIMITS = "Limits"
"""Last heading of the pages of rules that miss cases, or that leave some cases unreported on purpose."""
MAX_SENTENCE_WORDS = 25

# Rules whose page has no bad or no good example, each with the reason. The page states the reason
# below the heading `Bad` or `Good`.
WITHOUT_BAD: dict[str, str] = {}
WITHOUT_GOOD: dict[str, str] = {}
RULES_ABOUT_MANIFESTS = [rule_id for rule_id in CHECKS if rule_id not in rules_of("runtime")]
"""Rules whose examples are manifests. `tests/doctor/test_rule_pages.py` tests the other rules, whose examples are
metrics and dumps."""


def _examples() -> Iterator[tuple[str, Example]]:
    """Return every example of every page. Unreadable pages are left out, because `test_page_can_be_read` reports them."""
    for rule_id in rule_catalogue.list_ids():
        try:
            found = parse_examples(rule_catalogue.read_rule(rule_id))
        except ValueError:
            continue
        yield from ((rule_id, example) for example in found)


def _judge(example: Example) -> Callable[[Mapping[str, bytes]], Report]:
    options = example.adapt(Options(rules=tuple(CHECKS)))  # rules that are off by default have examples, too
    return lambda inputs: check(inputs.items(), options)


def _report(example: Example) -> Report:
    return _judge(example)({example.file: example.text.encode()})


def _findings(example: Example) -> list[tuple[str, int, str]]:
    """Return rule, line and message of the findings of an example, in the order of lines."""
    return [(finding.rule, finding.span.line, finding.message) for finding in _report(example).findings]


def _differences(example: Example) -> list[str]:
    """Return the findings without a mark in the example, and the marks without a finding. Line numbers are those of the
    page."""
    found = _findings(example)
    yielded = Counter((rule, line) for rule, line, _ in found)
    marked = Counter(example.expected)
    return [
        *(
            f"line {line}: {rule} is found {count} times too often"
            for (rule, line), count in (yielded - marked).items()
        ),
        *(f"line {line}: {rule} is marked, not found" for (rule, line), _ in (marked - yielded).items()),
    ]


EXAMPLES = [
    pytest.param(rule_id, example, id=f"{rule_id}-{example.kind}-{example.page_line}")
    for rule_id, example in _examples()
]


def _is_fixable(rule_id: str, example: Example) -> bool:
    """Return whether a fix applies to a bad example. Each page that announces a fix must have such an example."""
    if (
        example.kind != "bad" or rule_catalogue.read_rule(rule_id).fix is None
    ):  # another test checks that pages of rules without a fix announce none
        return False
    return any(finding.rule == rule_id and finding.fix is not None for finding in _report(example).findings)


FIXABLE = [
    pytest.param(rule_id, example, id=f"{rule_id}-{example.page_line}")
    for rule_id, example in _examples()
    if _is_fixable(rule_id, example)
]


@pytest.mark.parametrize(("rule_id", "example"), EXAMPLES)
def test_example_yields_what_it_marks(rule_id: str, example: Example) -> None:
    differences = _differences(example)
    shown = "\n".join(f"  {rule} line {line}: {message}" for rule, line, message in _findings(example))
    assert not differences, (
        f"rules/{rule_id}.md, the {example.kind} example in the fence at line {example.page_line} (lines here are the"
        f" example's own, markers of the form `# ~v` not counted): {'; '.join(differences)}.\nIt yields:\n{shown}"
    )


@pytest.mark.parametrize(("rule_id", "example"), EXAMPLES)
def test_example_is_about_its_rule(rule_id: str, example: Example) -> None:
    if example.kind == "bad":
        assert rule_id in {rule for rule, _ in example.expected}, f"fence at line {example.page_line}"
    else:
        # Otherwise, an example could have no findings because it has no recognized object.
        assert _report(example).objects, f"fence at line {example.page_line}"


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_fixes_are_as_the_page_says(rule_id: str) -> None:
    rule = rule_catalogue.read_rule(rule_id)
    reports = [_report(example) for example in parse_examples(rule) if example.kind == "bad"]
    fixes = [
        finding.fix for report in reports for finding in report.findings if finding.rule == rule_id and finding.fix
    ]
    best = None if not fixes else "safe" if any(fix.safe for fix in fixes) else "unsafe"
    assert rule.fix == best


@pytest.mark.parametrize(("rule_id", "example"), FIXABLE)
def test_bad_example_is_fixed(rule_id: str, example: Example) -> None:
    judge = _judge(example)
    inputs = {example.file: example.text.encode()}
    before = [finding for finding in judge(inputs).findings if finding.rule == rule_id]
    result = apply_fixes(inputs, judge, unsafe=True)
    left = [finding for finding in result.report.findings if finding.rule == rule_id]
    refused = [refusal for refusal in result.refused if refusal.finding.rule == rule_id]
    # An unsafe fix may conflict with other objects: for example, the fixed FlowSchema may be shadowed.
    assert all(
        not (refused_fix.finding.fix and refused_fix.finding.fix.safe)
        and refused_fix.reason.startswith("it would cause")
        for refused_fix in refused
    )
    assert [found.message for found in left if found.fix is not None] == [
        refused_fix.finding.message for refused_fix in refused
    ]
    assert len(left) < len(before)
    assert apply_fixes(result.inputs, judge, unsafe=True).inputs == result.inputs


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_page_can_be_read(rule_id: str) -> None:
    parse_examples(rule_catalogue.read_rule(rule_id))


@pytest.mark.parametrize("rule_id", RULES_ABOUT_MANIFESTS)
def test_page_has_bad_and_good_examples(rule_id: str) -> None:
    kinds = {example.kind for example in parse_examples(rule_catalogue.read_rule(rule_id))}
    assert ("bad" in kinds) == (rule_id not in WITHOUT_BAD)
    assert ("good" in kinds) == (rule_id not in WITHOUT_GOOD)


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_page_has_its_headings_in_order(rule_id: str) -> None:
    headings, texts = _sections(rule_catalogue.read_rule(rule_id).body)
    assert headings in (HEADINGS, [*HEADINGS, LIMITS])
    assert all(texts), f"a heading without a text: {headings}"


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_limits_of_the_analysis_are_last(rule_id: str) -> None:
    """The limits come last, because most readers come to a page to fix a finding."""
    for heading, text in zip(*_sections(rule_catalogue.read_rule(rule_id).body), strict=True):
        if heading != LIMITS:
            assert not re.search(r"^(Not reported|Limits of)|\b(is|are) not reported\.$", text, re.MULTILINE), heading


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_sentences_are_short(rule_id: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", rule_catalogue.read_rule(rule_id).body, flags=re.MULTILINE | re.DOTALL)
    paragraphs = re.split(r"\n\n|\n- ", re.sub(r"^[|#].*$", "", re.sub(r"`[^`]*`", "code", prose), flags=re.MULTILINE))
    sentences = [sentence for text in paragraphs for sentence in re.split(r"(?<=[.!?:;])\s+", text)]
    assert [sentence for sentence in sentences if len(sentence.split()) > MAX_SENTENCE_WORDS] == []


@pytest.mark.parametrize("rule_id", RULES_ABOUT_MANIFESTS)
def test_every_fence_of_bad_and_good_is_an_example(rule_id: str) -> None:
    rule = rule_catalogue.read_rule(rule_id)
    headings, texts = _sections(rule.body)
    fences = sum(
        len(re.findall(r"^`{3,}\w*", text, re.MULTILINE)) // 2
        for heading, text in zip(headings, texts, strict=True)
        if heading in ("Bad", "Good")
    )
    assert fences == len(parse_examples(rule))


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_front_matter_is_what_a_yaml_parser_reads(rule_id: str, root: Path) -> None:
    text = (root / "rules" / f"{rule_id}.md").read_text(encoding="utf-8")
    rule = rule_catalogue.read_rule(rule_id)
    assert yaml.safe_load(text.split("---\n")[1]) == {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity,
        "stage": rule.stage,
        "since": rule.since,
        "summary": rule.summary,
        "references": list(rule.references),
        **({"fix": rule.fix} if rule.fix else {}),
    }


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_front_matter_has_valid_values(rule_id: str) -> None:
    rule = rule_catalogue.read_rule(rule_id)
    assert rule.id == rule_id
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", rule.since)
    assert rule.severity in get_args(rule_catalogue.DefaultSeverity)
    assert rule.stage in get_args(rule_catalogue.Stage)
    assert rule.fix in (None, *get_args(rule_catalogue.Fixable))
    assert rule.references


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_summary_is_one_sentence(rule_id: str) -> None:
    rule = rule_catalogue.read_rule(rule_id)
    # `0.1`, `kubernetes.io` and `e.g` contain dots, too. Only a dot before a space ends a sentence.
    assert rule.summary.endswith(".")
    assert not re.search(r"[.!?] ", rule.summary)
    assert " " in rule.summary
    assert len(rule.summary) <= 160


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_references_are_addresses_each_once(rule_id: str) -> None:
    references = rule_catalogue.read_rule(rule_id).references
    assert len(set(references)) == len(references)
    assert all(re.fullmatch(r"https://[\w.-]+/\S+", reference) for reference in references)


# Parts of URLs to pages and directories of Kubernetes that were moved. No rule page may link to them.
MOVED = ("kubernetes-api/policy-resources/", "/blob/master/pkg/apis/flowcontrol/bootstrap/")


@pytest.mark.parametrize("directory", ["rules", "docs"])
def test_no_page_links_to_moved_pages(directory: str, root: Path) -> None:
    pages = sorted((root / directory).rglob("*.md"))
    assert len(pages) > 10
    assert [(page.name, old) for page in pages for old in MOVED if old in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_readers_see_no_markers(rule_id: str) -> None:
    assert "# ~" not in rule_catalogue.explain_markers(rule_catalogue.read_rule(rule_id).body)


def test_every_check_has_a_page_and_every_page_a_check() -> None:
    assert list(CHECKS) == list(rule_catalogue.list_ids())


def test_pages_state_the_phase_of_the_rule_table() -> None:
    assert {rule.id: rule.stage for rule in rule_catalogue.read_rules()} == {
        rule: check.phase for rule, check in CHECKS.items()
    }


def test_rules_that_are_off_say_so() -> None:
    assert {rule.id for rule in rule_catalogue.read_rules() if rule.severity == "off"} == rules_with(OFF)


def test_names_are_unique() -> None:
    names = [rule.name for rule in rule_catalogue.read_rules()]
    assert sorted(names) == sorted(set(names))


def test_exceptions_are_about_rules_that_exist() -> None:
    assert {*WITHOUT_BAD, *WITHOUT_GOOD} <= set(rule_catalogue.list_ids())


def _sections(body: str) -> tuple[list[str], list[str]]:
    """Return the headings of a page, each with the text below it. `## ` inside a fence is not a heading."""
    fenced = False
    starts: list[int] = []
    lines = body.split("\n")
    for number, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            starts.append(number)
    texts = ["\n".join(lines[start + 1 : end]).strip() for start, end in pairwise([*starts, len(lines)])]
    return [lines[start].removeprefix("## ") for start in starts], texts


# The comparison of examples is tested with each kind of mistake that a page can have.

MISTAKE = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: example
  name: example
spec:
  matchingPrecedence: 5000
  priorityLevelConfiguration:
    name: workload-low
"""


@pytest.mark.parametrize(
    ("expected", "differences"),
    [
        ((("APF002", 5),), []),
        ((), ["line 5: APF002 is found 1 times too often"]),
        ((("APF002", 4),), ["line 5: APF002 is found 1 times too often", "line 4: APF002 is marked, not found"]),
        ((("APF002", 5), ("APF002", 5)), ["line 5: APF002 is marked, not found"]),
        (
            (("APF101", 5),),
            ["line 5: APF002 is found 1 times too often", "line 5: APF101 is marked, not found"],
        ),
    ],
)
def test_differences_are_seen(expected: tuple[tuple[str, int], ...], differences: list[str]) -> None:
    example = Example(kind="bad", text=MISTAKE, file="example.yaml", kubernetes="1.36", expected=expected, page_line=1)
    assert _differences(example) == differences
