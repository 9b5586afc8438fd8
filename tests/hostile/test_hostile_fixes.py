"""Hundreds of impossible fixes: each is refused without checking the file again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from limited import HEAD, NEIGHBOUR, apflint

from apflint.edit import fixing as module
from apflint.edit.fixing import apply_fixes
from apflint.engine import Options, check

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from apflint.finding import Report

RULE = """\
  - subjects: [{kind: User, user: {name: u%d}}]
    resourceRules:
    - {VERBS, apiGroups: [""], resources: [pods], namespaces: [a]}
"""
OBJECT = (
    HEAD.replace("exempt", "workload-low")
    + "  matchingPrecedence: 1000\n  distinguisherMethod: {type: ByUser}\n  rules:\n"
)


def objects(count: int) -> str:
    """Return FlowSchemas whose verbs are aliases of an anchor in another field."""
    text = OBJECT.replace("name: x\n", 'name: xN\n  finalizers: &a [get, "*"]\n') + RULE.replace("VERBS", "verbs: *a")
    return "---\n".join(text.replace("xN", f"x{number}") % number for number in range(count))


def one_object(verbs: str, other: str) -> Callable[[int], str]:
    """Return a FlowSchema with an impossible fix in each rule. `other` is an item of another field in the same rule."""

    def text(count: int) -> str:
        rules = "".join(RULE.replace("VERBS", verbs.replace("N", str(number))) % number for number in range(count))
        others = "".join(f"  - {other}\n".replace("N", str(number)) for number in range(count))
        head = OBJECT.replace("spec:\n", f"other:\n{others}spec:\n", 1) if other else OBJECT
        return head + rules

    return text


def merges(count: int) -> str:
    """Return a manifest in which entries merge anchored entries, and override a key of the anchored entries.

    Example: `{<<: *a0, apiGroups: []}` merges the entry with the anchor `a0`, and overrides its
    `apiGroups`.
    """
    text = one_object('&aN verbs: [get, "*"]', "")(count).replace("{&a", "&a").replace(" verbs", " {verbs")
    return text + "  other:\n" + "".join(f"  - {{<<: *a{number}, apiGroups: []}}\n" for number in range(count))


CASES = {
    "objects": objects,
    "an anchor elsewhere": one_object("verbs: *aN", '&aN [get, "*"]'),
    "an anchor below a misspelt field": one_object("verb: *aN", "&aN get"),
    "still rejected": one_object("verb: [{}]", ""),
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_hundreds_of_refused_fixes(text: Callable[[int], str], tmp_path: Path) -> None:
    before = text(250)
    (tmp_path / "a.yaml").write_text(before)
    (tmp_path / "b.yaml").write_text(NEIGHBOUR.replace("matchingPrecedence: 20000", "matchingPrecedenc: 2000"))
    run = apflint(tmp_path, "fix", "--isolated", ".")
    assert run.status == 1
    assert run.err.count(": not fixed: APF") == 250
    assert run.err.count(": fixed APF") == 1
    assert (tmp_path / "a.yaml").read_text() == before


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_number_of_checks_does_not_grow_with_refused_fixes(text: Callable[[int], str]) -> None:
    def checks(count: int) -> int:
        called = []

        def judge(inputs: Mapping[str, bytes]) -> Report:
            called.append(inputs)
            return check(inputs.items(), Options())

        assert len(apply_fixes({"a": text(count).encode()}, judge).refused) == count
        return len(called)

    assert checks(40) == checks(5) <= 4


def test_good_fix_among_shared_values_is_applied() -> None:
    text = one_object("verbs: *aN", '&aN [get, "*"]')(6).replace("verbs: *a3", 'verbs: [get, "*"]')
    result = apply_fixes({"a": text.encode()}, lambda inputs: check(inputs.items(), Options()))
    assert [finding.field for finding in result.fixed] == ["spec.rules[3].resourceRules[0].verbs[1]"]
    assert len(result.refused) == 5


def test_objects_of_equal_names() -> None:
    good, bad = (OBJECT + RULE.replace("VERBS", verbs) % 1 for verbs in ("Verbs: [get]", "verb: [{}]"))
    result = apply_fixes(
        {"a": f"{good}---\n{bad}---\n{good}".encode()}, lambda inputs: check(inputs.items(), Options())
    )
    assert [finding.field for finding, _ in result.refused] == ["spec.rules[0].resourceRules[0].verb"]
    assert len(result.fixed) == 2


def test_number_of_attempts_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text(merges(20))
    run = apflint(tmp_path, "fix", "--isolated", "a.yaml")
    assert (run.status, run.err.count(": not fixed: APF")) == (1, 20)
    assert "apflint stops after" not in run.err
    monkeypatch.setattr(module, "MAX_FIX_ATTEMPTS", 4)
    monkeypatch.setattr(module, "MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS", 0)
    result = apply_fixes({"a": merges(20).encode()}, lambda inputs: check(inputs.items(), Options()))
    assert len(result.refused) == 20
    assert all(refusal.reason.startswith("apflint stops after 4 attempts ") for refusal in result.refused)
