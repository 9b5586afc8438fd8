"""Fixes that make a FlowSchema shadow another FlowSchema: only these fixes are refused, and few checks identify them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apflint.checks import reachability
from apflint.edit.fixing import FixResult, apply_fixes
from apflint.edit_operations import Set
from apflint.engine import Options, check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Finding, Report

SCHEMA = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: {name}}}
spec:
  matchingPrecedence: {precedence}
  priorityLevelConfiguration: {{name: workload-low}}
  distinguisherMethod: {{type: ByUser}}
  rules:
"""
RULE = """\
  - subjects: [{{kind: User, user: {{name: {user}}}}}]
    resourceRules: [{{verbs: [get], apiGroups: [""], resources: [{resources}], namespaces: ["*"]}}]
"""


class CountedCheck:
    """A check that counts its calls."""

    calls = 0

    def __call__(self, inputs: Mapping[str, bytes]) -> Report:
        self.calls += 1
        return check(inputs.items(), Options())


def schema(name: str, precedence: int, *rules: str) -> str:
    """Return a FlowSchema. A rule is a user and resources: `alice pods, secrets`."""
    written = (rule.partition(" ") for rule in rules)
    text = SCHEMA.format(name=name, precedence=precedence)
    return text + "".join(RULE.format(user=user, resources=resources) for user, _, resources in written)


def pair(number: int) -> tuple[str, str]:
    """Return two FlowSchemas. The fix of the first FlowSchema makes it shadow a rule of the second."""
    user, other = f"u{number}", f"v{number}"
    return (
        schema(f"a{number:03}", 1000, f"{user} Pods, secrets"),
        schema(f"b{number:03}", 5000, f"{user} pods", f"{other} pods"),
    )


def fixed(*texts: str, check_: CountedCheck | None = None) -> FixResult:
    """Return the result of applying all fixes to files with these texts."""
    files = {f"{number:04}": text.encode() for number, text in enumerate(texts)}
    return apply_fixes(files, check_ or CountedCheck(), unsafe=True)


def names(outcome: FixResult) -> tuple[list[str], list[str]]:
    """Return (fixed findings, refused findings). A finding is written as its object and the misspelled word, such as `a000 Pods`."""
    fixed_and_refused = [
        [f"{finding.object.name} {finding.message.split(chr(34))[1]}" for finding in findings if finding.object]
        for findings in (outcome.fixed, [found for found, _ in outcome.refused])
    ]
    return sorted(fixed_and_refused[0]), sorted(fixed_and_refused[1])


@pytest.mark.parametrize("together", [True, False], ids=["one file", "many files"])
@pytest.mark.parametrize("number", [1, 40])
def test_number_of_checks_does_not_grow_with_shadowing_fixes(number: int, together: bool) -> None:
    check_, texts = CountedCheck(), [text for index in range(number) for text in pair(index)]
    good = schema("good", 900, "w Services")
    outcome = fixed(
        "---\n".join((*texts, good)) if together else "", *(() if together else (*texts, good)), check_=check_
    )
    assert names(outcome) == (["good Services"], [f"a{index:03} Pods" for index in range(number)])
    assert check_.calls <= 4
    place = "line 20" if together else "0002:9"
    assert outcome.refused[0].reason == (
        f'it would cause APF502 in {place}: unreachable rule: the FlowSchema "a000" (precedence 1000)'
        " captures all requests of the rule"
    )


def test_number_of_checks_does_not_grow_with_fixes_that_cause_ties() -> None:
    check_ = CountedCheck()
    texts = [
        text
        for number in range(30)
        for text in (
            schema(f"a{number:02}", 1000 + number, f"u{number} Pods, secrets"),
            schema(f"b{number:02}", 1000 + number, f"u{number} pods, services"),
        )
    ]
    assert names(fixed(*texts, check_=check_)) == ([], [f"a{number:02} Pods" for number in range(30)])
    assert check_.calls == 2


def test_only_the_shadowing_fix_of_an_object_is_refused() -> None:
    outcome = fixed(
        schema("a", 1000, "u Endpoints, Pods, Services, secrets"), schema("b", 5000, "u pods", "v pods"), *pair(0)
    )
    assert names(outcome) == (["a Endpoints", "a Services"], ["a Pods", "a000 Pods"])


def test_first_of_two_fixes_that_shadow_together_is_applied() -> None:
    first, second = schema("first", 1000, "u Pods, secrets"), schema("second", 1001, "u Services, endpoints")
    outcome = fixed(first, second, schema("third", 5000, "u pods, services", "v pods"), pair(0)[0])
    assert names(outcome) == (["a000 Pods", "first Pods"], ["second Services"])


def test_number_of_checks_does_not_grow_with_pairs_that_shadow() -> None:
    check_ = CountedCheck()
    texts = [
        text
        for number in range(20)
        for text in (
            schema(f"a{number:02}", 1000, f"u{number} Pods, secrets"),
            schema(f"b{number:02}", 1001, f"u{number} Services, endpoints"),
            schema(f"c{number:02}", 5000, f"u{number} pods, services", f"v{number} pods"),
            schema(f"d{number:02}", 900, f"w{number} Secrets"),
        )
    ]
    applied = [word for number in range(20) for word in (f"a{number:02} Pods", f"d{number:02} Secrets")]
    refused = [f"b{number:02} Services" for number in range(20)]
    assert names(fixed("---\n".join(texts), check_=check_)) == (sorted(applied), refused)
    assert check_.calls <= 4


def test_fix_that_shadows_only_with_a_refused_one_is_applied() -> None:
    first, second = schema("first", 1000, "u Pods, secrets"), schema("second", 1001, "u Services, endpoints")
    both, one = schema("both", 5000, "u pods, services", "w pods"), schema("one", 900, "u secrets")
    alone = schema("alone", 4000, "u pods", "v pods").replace('"*"', "here")
    outcome = fixed(one, first, second, both, alone)
    assert names(outcome) == (["second Services"], ["first Pods"])


def test_rule_that_was_unreachable_before_is_no_regression() -> None:
    """`b` has a rule that is unreachable even without fixes. Only the fix that makes another rule of `b` unreachable is refused."""
    dead = schema("b", 5000, "w configmaps", "u pods", "v pods")
    outcome = fixed(schema("c", 900, "w configmaps, Services"), schema("a", 1000, "u Pods, secrets"), dead)
    assert names(outcome) == (["c Services"], ["a Pods"])


def test_fix_that_shadows_in_its_own_object_is_refused() -> None:
    check_ = CountedCheck()
    texts = [schema(f"a{number:02}", 1000, f"u{number} pods, Services", f"u{number} Pods") for number in range(20)]
    outcome = fixed(*texts, check_=check_)
    assert names(outcome) == (
        sorted(f"a{number:02} Services" for number in range(20)),
        [f"a{number:02} Pods" for number in range(20)],
    )
    assert check_.calls <= 4


def test_shadowing_fix_is_tried_again_after_another_one() -> None:
    """A fix that fails because of a different fix in its batch succeeds in a later batch.

    Here, the fix of `Services` waits, because the different fix makes `b` shadow `d`.
    """

    def check_(inputs: Mapping[str, bytes]) -> Report:
        report = check(inputs.items(), Options())
        return report._replace(findings=tuple(map(first, report.findings)))

    def first(found: Finding) -> Finding:
        if found.fix is None or "Services" not in found.message:
            return found
        put_first = Set(("spec", "matchingPrecedence"), 500)
        return found._replace(fix=found.fix._replace(operations=(*found.fix.operations, put_first)))

    texts = (
        schema("a", 1000, "u Pods, secrets"),
        schema("b", 2000, "w Endpoints, configmaps", "u pods", "v pods, Services"),
        schema("d", 5000, "w endpoints", "v secrets"),
    )
    outcome = apply_fixes({name: text.encode() for name, text in zip("abd", texts, strict=True)}, check_, unsafe=True)
    assert names(outcome) == (["a Pods", "b Services"], ["b Endpoints"])
    assert [found.object.name for found in outcome.fixed if found.object] == ["b", "a"]


def test_finding_that_names_no_object_blames_no_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "MAX_EXPLAINED_SHADOWS", 0)
    texts = schema("a", 1000, "u Pods, secrets"), schema("b", 5000, "u pods", "v pods, Services")
    assert names(fixed(*texts)) == (["b Services"], ["a Pods"])
    assert names(fixed(*reversed(texts))) == (["b Services"], ["a Pods"])
