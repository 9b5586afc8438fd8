"""Applying fixes: fixes that succeed together are applied together, and a fix that fails alone is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apflint.edit.fix_batch import edits_of
from apflint.edit.fixing import FixResult, apply_fixes
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Edit, Fix, Operation, Remove, Rename, Set
from apflint.effective_configuration import Assumptions
from apflint.engine import Options, check

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from apflint.finding import Finding, Report

LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: NAME}
spec:
  type: Limited
  limited:
    lendablePercent: 5
    limitResponse: {type: Reject}
"""


class CountedCheck:
    """A check that replaces the fixes of findings by the fixes of the test, and counts its calls."""

    def __init__(self, fix: Callable[[Finding], Fix | None], **options: object) -> None:
        self.fix = fix
        self.options = Options(**options)  # type: ignore[arg-type]  # `options` are fields of Options
        self.calls = 0

    def __call__(self, inputs: Mapping[str, bytes]) -> Report:
        self.calls += 1
        report = check(inputs.items(), self.options)
        return report._replace(findings=tuple(finding._replace(fix=self.fix(finding)) for finding in report.findings))


def rename(new: str, *, safe: bool = True) -> Callable[[Finding], Fix | None]:
    def fix(found: Finding) -> Fix | None:
        path = ("spec", "limited", found.field.rpartition(".")[2])
        if path[-1] == "stillWrong":
            return None
        return Fix(f'rename to "{new}"', safe, (Rename(path, new),)) if found.rule == "APF101" else None

    return fix


def level(name: str = "a", field: str = "lendablePercent", extra: str = "") -> str:
    return LEVEL.replace("NAME", name).replace("lendablePercent", field).replace("    limitR", f"{extra}    limitR")


def fixed(fix: Callable[[Finding], Fix | None], unsafe: bool = False, **files: str) -> FixResult:
    return apply_fixes({name: text.encode() for name, text in files.items()}, CountedCheck(fix), unsafe=unsafe)


def test_fix_changes_nothing_else() -> None:
    outcome = fixed(rename("lendablePercent"), a="# one\n" + level(field="lendable") + "# two", b=level("b"))
    assert outcome.inputs == {"a": ("# one\n" + level() + "# two").encode(), "b": level("b").encode()}
    assert [found.rule for found in outcome.fixed] == ["APF101"]
    assert outcome.refused == ()
    assert "APF101" not in {finding.rule for finding in outcome.report.findings}


def test_unsafe_fix_is_applied_only_on_request() -> None:
    before = level(field="lendable")
    assert fixed(rename("lendablePercent", safe=False), a=before).inputs == {"a": before.encode()}
    assert fixed(rename("lendablePercent", safe=False), True, a=before).inputs == {"a": level().encode()}


def test_fix_with_another_finding_of_its_rule_is_refused() -> None:
    outcome = fixed(rename("stillWrong"), a=level(field="lendable"))
    assert outcome.inputs == {"a": level(field="lendable").encode()}
    assert outcome.fixed == ()
    [(found, reason)] = outcome.refused
    assert found.message.startswith('unknown field "lendable"')
    assert reason.startswith('it would cause APF101 in line 7: unknown field "stillWrong" in spec.limited')


def test_fix_without_effect_is_refused() -> None:
    outcome = fixed(
        lambda found: Fix("x", True, (Set(("spec", "type"), "Limited"),)) if found.apiserver else None,
        a=level(field="lendable"),
    )
    [(_, reason)] = outcome.refused
    assert reason.startswith('APF101 would remain: unknown field "lendable"')


def test_fix_that_causes_another_finding_is_refused() -> None:
    outcome = fixed(rename("nominalConcurrencyShares"), a=level(field="shares").replace(": 5", ": -5"))
    [(_, reason)] = outcome.refused
    assert reason.startswith("it would cause APF304 in line 7: ")
    assert outcome.inputs == {"a": level(field="shares").replace(": 5", ": -5").encode()}


def test_good_fixes_beside_a_bad_one_are_applied() -> None:
    def fix(found: Finding) -> Fix | None:
        return rename("stillWrong" if "x3" in found.message else "lendablePercent")(found)

    text = "---\n".join(level(f"a{n}", f"x{n}") for n in range(7))
    outcome = fixed(fix, a=text, b=level("b", "x9"))
    assert len(outcome.fixed) == 7
    assert [found.field for found, _ in outcome.refused] == ["spec.limited.x3"]
    expected = "---\n".join(level(f"a{n}", "x3" if n == 3 else "lendablePercent") for n in range(7))
    assert outcome.inputs == {"a": expected.encode(), "b": level("b").encode()}


def test_one_of_two_fixes_with_the_same_key_is_applied() -> None:
    outcome = fixed(rename("lendablePercent"), a=level(field="lend", extra="    lendable: 6\n"))
    assert outcome.inputs == {"a": level(extra="    lendable: 6\n").encode()}
    [(found, reason)] = outcome.refused
    assert found.message.startswith('unknown field "lendable"')
    assert reason.startswith("it would cause APF002 in line 8: ")


def test_refused_fix_is_tried_again_after_another_one() -> None:
    limited = ("spec", "limited")

    def fix(found: Finding) -> Fix | None:
        if "bbb" in found.message:
            steps = (Rename((*limited, "bbb"), "borrowingLimitPercent"),)
            return Fix("make way", True, (Remove((*limited, "lendablePercent")), *steps))
        # The new finding is about the field `queuing`, so apflint cannot tell which fix caused it.
        if "ccc" in found.message:
            return Fix("miss the queues", True, (Set((*limited, "limitResponse", "type"), "Queue"),))
        return rename("lendablePercent")(found)

    # apflint first applies all fixes together, which fails because of `ccc`. Alone, the fix of `aaa` also fails at first,
    # because the key that it inserts exists until the fix of `bbb` has removed it.
    outcome = fixed(fix, a=level(field="aaa", extra="    lendablePercent: 6\n    ccc: 8\n    bbb: 7\n"))
    assert [found.field for found in outcome.fixed] == ["spec.limited.bbb", "spec.limited.aaa"]
    assert [found.field for found, _ in outcome.refused] == ["spec.limited.ccc"]
    assert outcome.inputs == {"a": level(extra="    ccc: 8\n    borrowingLimitPercent: 7\n").encode()}


@pytest.mark.parametrize("bad", [set(), {5}, {1, 2, 150, 299}, set(range(300))])
def test_number_of_checks_does_not_grow_with_files(bad: set[int]) -> None:
    def fix(found: Finding) -> Fix | None:
        return rename("stillWrong" if int(found.file) in bad else "lendablePercent")(found)

    check_ = CountedCheck(fix)
    outcome = apply_fixes({str(n): level(f"a{n}", "x").encode() for n in range(300)}, check_)
    assert {found.file for found in outcome.fixed} == {str(n) for n in range(300) if n not in bad}
    assert {found.file for found, _ in outcome.refused} == set(map(str, bad))
    assert check_.calls <= 3


def test_bad_fixes_in_several_files_need_no_more_checks() -> None:
    def fix(found: Finding) -> Fix | None:
        return rename("stillWrong" if "bad" in found.message else "lendablePercent")(found)

    def calls(files: int) -> int:
        document = "---\n".join(level(f"NAME{n}", "bad" if n in (1, 6) else "x") for n in range(8))
        check_ = CountedCheck(fix)
        outcome = apply_fixes({str(n): document.replace("NAME", f"l{n}-").encode() for n in range(files)}, check_)
        assert (len(outcome.fixed), len(outcome.refused)) == (6 * files, 2 * files)
        return check_.calls

    assert calls(20) == calls(1) <= 3


@pytest.mark.parametrize("bad", [{3}, {5, 60, 61}, set(range(100)), set(range(0, 100, 2))])
def test_number_of_checks_does_not_grow_with_objects(bad: set[int]) -> None:
    """A validation finding depends only on its own object, so a failed fix of one object does not delay the fixes of others."""

    def fix(found: Finding) -> Fix | None:
        return rename("stillWrong" if found.object and int(found.object.name[1:]) in bad else "lendablePercent")(found)

    check_ = CountedCheck(fix)
    outcome = apply_fixes({"a": "---\n".join(level(f"a{n}", "x") for n in range(100)).encode()}, check_)
    assert {found.object.name for found in outcome.fixed if found.object} == {
        f"a{n}" for n in range(100) if n not in bad
    }
    assert {found.object.name for found, _ in outcome.refused if found.object} == {f"a{n}" for n in bad}
    assert check_.calls <= 3


def test_object_that_cannot_be_edited_does_not_affect_others() -> None:
    def fix(found: Finding) -> Fix | None:
        return rename("stillWrong" if found.object and found.object.name == "a7" else "lendablePercent")(found)

    def unreachable(found: Finding) -> Fix | None:
        result = fix(found)
        if result and found.object and found.object.name == "a7":
            return result._replace(operations=(Set(("spec", "nothing", "x"), 1),))
        return result

    check_ = CountedCheck(unreachable)
    outcome = apply_fixes({"a": "---\n".join(level(f"a{n}", "x") for n in range(20)).encode()}, check_)
    assert len(outcome.fixed) == 19
    assert [refusal.reason for refusal in outcome.refused] == ["the text cannot be edited there: it is not a scalar"]
    assert check_.calls <= 2


def test_all_masked_findings_are_fixed() -> None:
    """A misspelled field masks findings about 30 verbs. Three of them cannot be fixed because of an anchor."""
    kind = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
    head = "metadata: {name: s, annotations: {a: &a GET, b: &b GET, c: &c GET}}\nspec:\n  RULES:\n"
    rule = (
        "  - subjects: [{kind: User, user: {name: u}}]\n    nonResourceRules: [{verbs: [X], nonResourceURLs: [/x]}]\n"
    )
    rest = "  priorityLevelConfiguration: {name: workload-low}\n  matchingPrecedence: 500\n"
    text = (
        kind + head + "".join(rule.replace("X", {3: "*a", 13: "*b", 23: "*c"}.get(n, "GET")) for n in range(30)) + rest
    )

    outcome = apply_fixes({"a": text.encode()}, engine_check)

    assert len(outcome.fixed) == 28
    assert len(outcome.refused) == 3
    assert apply_fixes(outcome.inputs, engine_check).fixed == ()


def engine_check(inputs: Mapping[str, bytes]) -> Report:
    return check(inputs.items(), Options())


def test_fix_that_causes_a_finding_in_another_file_is_refused() -> None:
    schema = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: s}
spec:
  priorityLevelConfiguration: {name: a5}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: g}}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]
"""

    def fix(found: Finding) -> Fix | None:
        name = "b5" if found.object and found.object.name == "a5" else None
        operations: list[Operation] = [Remove(("metadata", "namespace"))]
        operations += [Set(("metadata", "name"), name)] if name else []
        return Fix("no namespace", True, tuple(operations)) if found.rule == "APF104" else None

    def in_namespace(name: str) -> bytes:
        return level(name).replace("name: a", "namespace: nights, name: a").encode()

    files = {f"{n}": in_namespace(f"a{n}") for n in range(9)}
    outcome = apply_fixes({"s": schema.encode(), **files}, CountedCheck(fix, assumptions=Assumptions(complete=True)))
    assert {found.file for found, _ in outcome.refused} == {"5"}
    assert {found.file for found in outcome.fixed} == set("01234678")
    assert outcome.refused[0].reason.startswith("it would cause APF401 in s:5: ")
    assert outcome.inputs["5"] == files["5"]


def test_misspelled_field_inside_another_is_fixed_with_it() -> None:
    def fix(found: Finding) -> Fix | None:
        if found.rule != "APF101":
            return None
        *path, name = found.field.split(".")
        return Fix("rename", True, (Rename((*path, name), {"limmited": "limited"}.get(name, "type")),))

    before = level().replace("limited:", "limmited:").replace("{type", "{typ")
    outcome = fixed(fix, a=before)
    assert outcome.inputs == {"a": level().encode()}
    assert [found.field for found in outcome.fixed] == ["spec.limmited", "spec.limited.limitResponse.typ"]


def test_shared_value_is_not_edited() -> None:
    anchored = level(field="lendable").replace("limited:", "limited: &x").rstrip() + "\n"
    text = f"{anchored}---\n" + level("b")
    shared = text.replace("metadata: {name: a}", "metadata: {name: a, annotations: &y {lendable: '5'}, labels: *y}")

    def fix(_: Finding) -> Fix:
        return Fix("rename", True, (Rename(("metadata", "labels", "lendable"), "z"),))

    outcome = fixed(lambda found: fix(found) if found.rule == "APF101" else None, a=shared)
    assert outcome.inputs == {"a": shared.encode()}
    [(_, reason)] = outcome.refused
    assert (
        reason
        == "the text cannot be edited there: the edit would change another value, too, perhaps because of an anchor"
    )


@pytest.mark.parametrize(
    "operation",
    [Remove(("spec", "nothing")), Set(("spec", "limited", 0, "x"), 1)],
)
def test_operation_on_an_absent_field_is_refused(operation: Operation) -> None:
    def fix(found: Finding) -> Fix | None:
        return Fix("x", True, (operation,)) if found.rule == "APF101" else None

    [(_, reason)] = fixed(fix, a=level(field="lendable")).refused
    assert reason.startswith("the text cannot be edited there: ")


def test_file_that_cannot_be_encoded_stays() -> None:
    before = level(field="lendable")
    outcome = fixed(rename("lendablePercent \ud800"), a=before, b=level("b"))
    assert outcome.inputs["a"] == before.encode()
    [(_, reason)] = outcome.refused
    assert reason.startswith("the text cannot be edited there: ")


def test_file_that_cannot_be_decoded_stays() -> None:
    before = level(field="lendable").encode() + b"# \xff\n"
    check_ = CountedCheck(rename("lendablePercent"))
    result = apply_fixes({"a": before}, lambda inputs: check_({"a": inputs["a"].replace(b"\xff", b"?")}))
    assert result.inputs == {"a": before}
    [(_, reason)] = result.refused
    assert reason.startswith("the text cannot be edited there: 'utf-8' codec can't decode byte 0xff")


def test_contradicting_operations_are_refused() -> None:
    def fix(found: Finding) -> Fix | None:
        twice = (Rename(("spec", "limited", "lendable"), new) for new in ("lendablePercent", "x"))
        return Fix("twice", True, tuple(twice)) if found.rule == "APF101" else None

    outcome = fixed(fix, a=level(field="lendable"))
    [(_, reason)] = outcome.refused
    assert reason.startswith("the text cannot be edited there: ")


def test_findings_about_a_newly_accepted_object_are_allowed() -> None:
    # The fix makes the API server accept the priority level. Only then does APF403 report that the level is unused.
    # This new finding must not cause apflint to refuse the fix.
    outcome = fixed(rename("lendablePercent"), a=level("unused", "lendable"))
    assert outcome.refused == ()


def test_given_report_is_used() -> None:
    check_ = CountedCheck(rename("lendablePercent"))
    inputs = {"a": level().encode()}
    outcome = apply_fixes(inputs, check_, first=check_(inputs))
    assert check_.calls == 1
    assert outcome.inputs == inputs


def test_edits_of_a_finding() -> None:
    text = level(field="lendable")
    [found] = [f for f in CountedCheck(rename("lendablePercent"))({"a": text.encode()}).findings if f.fix]
    at = text.index("lendable")
    assert edits_of(found) == (Edit(at, at + 8, "lendablePercent"),)
    assert edits_of(found._replace(fix=None)) == ()
    expected = Fix("t", True, edits=(Edit(0, 1, "x"),))
    assert edits_of(found._replace(fix=expected, document=None)) == (Edit(0, 1, "x"),)
    with pytest.raises(CannotEditError):
        edits_of(found._replace(fix=Fix("t", True, (Rename(("spec", "no"), "x"),))))
