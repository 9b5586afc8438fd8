"""APF301 to APF310: the spec of a priority level, and the limits of queues and hands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.builders import findings, findings_in_text, manifest, priority_level, rule_ids

KIND = "PriorityLevelConfiguration"
LIMITED = {"limitResponse": {"type": "Reject"}}
BOTH = {"limited": LIMITED, "exempt": {"lendablePercent": 5}}


@pytest.mark.parametrize(
    ("name", "level_type", "message", "required"),
    [
        ("exempt", "X", 'unknown priority level type "X"', "Exempt"),
        ("exempt", "", "priority level has no type", "Exempt"),
        ("x", "X", 'unknown priority level type "X"', "Limited"),
    ],
)
def test_help_for_an_unknown_type_depends_on_the_name(name: str, level_type: str, message: str, required: str) -> None:
    (finding,) = findings(manifest(KIND, {"type": level_type}, name=name), only="APF302")
    assert finding.message == message
    assert str(finding.help).startswith(f"use type {required}")


@pytest.mark.parametrize(("kubernetes", "part"), [("1.36", "limited"), ("1.37", "the numbers in limited")])
@pytest.mark.parametrize("level_type", ["limited", "", "Unlimited"])
def test_numbers_of_a_level_of_unknown_type_are_not_checked(level_type: str, kubernetes: str, part: str) -> None:
    limited = {"nominalConcurrencyShares": -5, "limitResponse": {"type": "Queue", "queuing": {}}}
    not_checked = f"The API server checks {part} only if the priority level has a valid type."
    level = manifest(KIND, {"type": level_type, "limited": limited})
    finding, *others = findings(level, only="APF30", kubernetes=kubernetes)
    assert rule_ids([finding, *others]) == ["APF302"] * (2 if kubernetes == "1.37" else 1)
    assert not_checked in finding.notes
    (other,) = findings(manifest(KIND, {"type": level_type}), only="APF30", kubernetes=kubernetes)
    assert not_checked not in other.notes
    rules = rule_ids(findings(manifest(KIND, {"type": "Limited", "limited": limited}), only="APF30"))
    assert rules == ["APF304"]


@pytest.mark.parametrize(
    ("kubernetes", "part", "count"), [("1.36", "queuing", 1), ("1.37", "the numbers in queuing", 2)]
)
def test_queues_of_an_unknown_response_are_not_checked(kubernetes: str, part: str, count: int) -> None:
    response = {"type": "queue", "queuing": {"queues": -1}}
    level = manifest(KIND, {"type": "Limited", "limited": {"limitResponse": response}})
    finding, *others = findings(level, only="APF30", kubernetes=kubernetes)
    assert rule_ids([finding, *others]) == ["APF303"] * count
    assert finding.notes == (f"The API server checks {part} only if limitResponse has a valid type.",)


TYPE, LIMITED_FIELD, EXEMPT_FIELD = "spec.type", "spec.limited", "spec.exempt"
RESPONSE_TYPE, QUEUING = "spec.limited.limitResponse.type", "spec.limited.limitResponse.queuing"
REQUIRED, FORBIDDEN, INVALID, UNKNOWN = (
    f"FieldValue{name}" for name in ("Required", "Forbidden", "Invalid", "NotSupported")
)


@pytest.mark.parametrize(
    ("spec", "in_1_36", "in_1_37"),
    [
        ({}, {(UNKNOWN, TYPE)}, {(REQUIRED, TYPE)}),
        (BOTH, {(UNKNOWN, TYPE)}, {(REQUIRED, TYPE), (FORBIDDEN, LIMITED_FIELD), (FORBIDDEN, EXEMPT_FIELD)}),
        ({"type": "Unlimited"}, {(UNKNOWN, TYPE)}, {(UNKNOWN, TYPE)}),
        (
            {"type": "limited", "limited": {"limitResponse": {"type": "Queue"}}},
            {(UNKNOWN, TYPE)},
            {(UNKNOWN, TYPE), (FORBIDDEN, LIMITED_FIELD), (REQUIRED, QUEUING)},
        ),
        (
            {"type": "Limited", "limited": {"limitResponse": {"queuing": {}}}},
            {(UNKNOWN, RESPONSE_TYPE)},
            {(REQUIRED, RESPONSE_TYPE), (FORBIDDEN, QUEUING)},
        ),
        ({"type": "Limited", "limited": {}}, {(UNKNOWN, RESPONSE_TYPE)}, {(REQUIRED, RESPONSE_TYPE)}),
        (
            {"type": "Limited", "limited": {"limitResponse": {"type": "Drop", "queuing": {}}}},
            {(UNKNOWN, RESPONSE_TYPE)},
            {(UNKNOWN, RESPONSE_TYPE), (FORBIDDEN, QUEUING)},
        ),
        (
            {"type": "Exempt", "limited": {"limitResponse": {"queuing": {"queues": -1}}}},
            {(INVALID, TYPE), (FORBIDDEN, LIMITED_FIELD)},
            {(INVALID, TYPE), (FORBIDDEN, LIMITED_FIELD), (REQUIRED, RESPONSE_TYPE), (FORBIDDEN, QUEUING)},
        ),
        (
            {"type": "Exempt", "limited": {"limitResponse": {"type": "Drop"}}},
            {(INVALID, TYPE), (FORBIDDEN, LIMITED_FIELD)},
            {(INVALID, TYPE), (FORBIDDEN, LIMITED_FIELD)},
        ),
        (
            {"type": "Limited", "limited": LIMITED, "exempt": {}},
            {(FORBIDDEN, EXEMPT_FIELD)},
            {(FORBIDDEN, EXEMPT_FIELD)},
        ),
        ({"type": "Limited", "limited": LIMITED}, set(), set()),
    ],
)
def test_causes_of_types_and_their_fields(
    spec: dict[str, Any], in_1_36: set[tuple[str, str]], in_1_37: set[tuple[str, str]]
) -> None:
    """The causes of 1.36 were recorded on a kube-apiserver. In 1.37, the cause of a missing type is Required, and the
    declarative rules of kubernetes/api add causes. All other causes are those of 1.36."""
    for kubernetes, expected in (("1.36", in_1_36), ("1.37", in_1_37)):
        found = findings(manifest(KIND, spec), only="APF30", kubernetes=kubernetes)
        causes = [finding.apiserver for finding in found if finding.apiserver]
        assert {(cause.reason, cause.field) for cause in causes} == expected
        assert len(causes) == len(expected)


@pytest.mark.parametrize(("level_type", "has_fix"), [("Exe", False), ("Exem", True), ("empt", True), ("Limit", False)])
def test_misspelled_type_is_corrected_if_the_name_allows_it(level_type: str, has_fix: bool) -> None:
    (finding,) = findings(manifest(KIND, {"type": level_type}, name="exempt"), only="APF302")
    assert (finding.fix is not None) is has_fix


@pytest.mark.parametrize(
    ("name", "level_type", "field", "help_text", "title"),
    [
        ("x", "Limited", "spec.exempt", 'remove "exempt"', 'remove "exempt"'),
        ("exempt", "Exempt", "spec.limited", 'remove "limited"', 'remove "limited"'),
        ("x", "Exempt", "spec.limited", "change the type to Limited", 'change "Exempt" to "Limited"'),
    ],
)
def test_field_of_the_other_type_is_fixed_unsafely(
    name: str, level_type: str, field: str, help_text: str, title: str
) -> None:
    text = json.dumps(manifest(KIND, {"type": level_type, **BOTH}, name=name))
    (finding,) = findings_in_text(text, only="APF302")
    key = field.removeprefix("spec.")
    assert finding.message == f'field "{key}" is not allowed in a priority level of type {level_type}'
    assert finding.help == help_text
    assert finding.field == field
    assert finding.fix is not None
    assert (finding.fix.title, finding.fix.safe) == (title, False)
    assert text[finding.span.column - 1 : finding.span.end_column - 1] == f'"{key}"'


def test_exempt_level_with_limits_is_changed_to_limited() -> None:
    level = manifest(KIND, {"type": "Exempt", "limited": LIMITED})
    fixes = [finding.fix for finding in findings(level, only="APF30")]
    assert [fix and fix.title for fix in fixes] == ['change "Exempt" to "Limited"'] * 2


def test_field_of_the_other_type_is_not_validated() -> None:
    wrong = {"nominalConcurrencyShares": -1, "lendablePercent": 200}
    for level in (
        manifest(KIND, {"type": "Limited", "limited": LIMITED, "exempt": wrong}),
        manifest(KIND, {"type": "Exempt", "limited": wrong}, name="exempt"),
    ):
        assert [finding.rule for finding in findings(level, only="APF302")] == ["APF302"]
        assert not findings(level, only="APF304")
        assert not findings(level, only="APF310")


@pytest.mark.parametrize(
    ("field", "percent", "is_accepted"),
    [
        *(("lendablePercent", percent, 0 <= percent <= 100) for percent in (0, 1, 100, 101, 2**31 - 1, -1)),
        *(("borrowingLimitPercent", percent, percent >= 0) for percent in (0, 1, 100, 101, 2**31 - 1, -1)),
    ],
)
def test_percentages(field: str, percent: int, is_accepted: bool) -> None:
    limited: dict[str, Any] = {field: percent}
    found = findings(priority_level("x", **limited), only="APF310")
    assert [finding.field for finding in found] == [f"spec.limited.{field}"] * (not is_accepted)


@pytest.mark.parametrize(("level_type", "fields"), [("Exempt", ["spec.exempt.lendablePercent"]), ("Limited", [])])
def test_percentages_of_exempt_count_for_the_type_exempt(level_type: str, fields: list[str]) -> None:
    spec = {"type": level_type, "limited": LIMITED, "exempt": {"lendablePercent": 200}}
    assert [finding.field for finding in findings(manifest(KIND, spec, name="exempt"), only="APF310")] == fields


def test_shares_are_named_as_in_the_version() -> None:
    for version, kubernetes, field in (
        ("v1", "1.30", "nominalConcurrencyShares"),
        ("v1beta3", "1.30", "nominalConcurrencyShares"),
        ("v1beta2", "1.28", "assuredConcurrencyShares"),
    ):
        level = manifest(KIND, {"type": "Limited", "limited": {field: -1, **LIMITED}}, version=version)
        (finding,) = findings(level, only="APF304", kubernetes=kubernetes)
        assert finding.field == f"spec.limited.{field}"
        assert finding.message.startswith(f"{field} -1 is less than ")


@pytest.mark.parametrize(
    ("queues", "hand_size", "length", "rules"),
    [
        (1, 1, 1, []),
        (64, 8, 50, []),
        (10_000_000, 1, 1, []),
        (10_000_001, 1, 1, ["APF307"]),
        (-1, 1, 1, ["APF307", "APF305"]),
        (64, -1, 1, ["APF309"]),
        (64, 8, -1, ["APF308"]),
        (8, 8, 1, []),
        (8, 9, 1, ["APF305"]),
        (1024, 6, 1, []),
        (1025, 6, 1, ["APF306"]),
        (1024, 7, 1, ["APF306"]),
    ],
)
def test_queues_are_rejected_as_the_server_rejects_them(
    queues: int, hand_size: int, length: int, rules: list[str]
) -> None:
    level = priority_level("x", queuing={"queues": queues, "handSize": hand_size, "queueLengthLimit": length})
    assert sorted(rule_ids(findings(level, only="APF30"))) == sorted(rules)


@pytest.mark.parametrize(
    ("queues", "hand_size", "help_text"),
    [
        (64, 16, "set handSize to 9 (at most 10), the best handSize to separate four busy flows with 64 queues"),
        (
            10_000_000,
            3,
            "set handSize to 2, the best handSize to separate four busy flows with 10,000,000 queues, or queues to 1,048,576 or less",
        ),
        (64, 64, "set handSize to 9 (at most 10), the best handSize to separate four busy flows with 64 queues"),
    ],
)
def test_help_for_too_much_entropy_names_what_fits(queues: int, hand_size: int, help_text: str) -> None:
    level = priority_level("x", queuing={"queues": queues, "handSize": hand_size, "queueLengthLimit": 5})
    (finding,) = findings(level, only="APF306")
    assert finding.message.endswith(" bits of entropy, more than the maximum of 60")
    assert finding.help == help_text


def test_message_marks_values_that_are_defaults() -> None:
    (finding,) = findings(priority_level("x", queuing={"queues": 4}), only="APF305")
    assert finding.message == "handSize 8 (default) is greater than queues 4"
    assert finding.help == (
        "set queues to 58 and handSize to 8; with 4 queues, four busy flows often fill all queues of another flow"
    )


@pytest.mark.parametrize(
    ("queuing", "rule", "fixed", "safe"),
    [
        # handSize is absent, and its default is 8. Only queues is set, so the author intended this number of queues.
        ({"queues": 1}, "APF305", 1, True),
        ({"queues": 1024}, "APF306", 6, True),
        ({"queues": 1, "handSize": 8}, "APF305", 1, False),
        ({"queues": 48, "handSize": 49}, "APF305", 7, False),
        ({"handSize": 100}, "APF305", 9, False),
        ({"queues": 512, "handSize": 7}, "APF306", 6, False),
        ({"queues": 64, "handSize": -1}, "APF309", 9, False),
        # With -1 queues, no handSize is valid.
        ({"queues": -1, "handSize": 3}, "APF305", None, False),
        ({"queues": -1, "handSize": -1}, "APF309", None, False),
        ({"queues": 20_000_000, "handSize": -1}, "APF309", None, False),
    ],
)
def test_fix_sets_the_best_hand_size(queuing: dict[str, int], rule: str, fixed: int | None, *, safe: bool) -> None:
    level = priority_level("x", queuing=queuing)
    (finding,) = findings(level, only=rule)
    if fixed is None:
        assert finding.fix is None
        return
    assert finding.fix is not None
    assert (finding.fix.title, finding.fix.safe) == (f"set handSize to {fixed}", safe)
    assert finding.help is not None
    assert finding.help.startswith(finding.fix.title)
    assert not findings(priority_level("x", queuing={**queuing, "handSize": fixed}), only="APF30")


@pytest.mark.parametrize(
    ("name", "queuing", "rule", "expected"),
    [
        ("x", {"queues": 16, "handSize": 40}, "APF305", (58, 8)),
        ("x", {"queues": 4}, "APF305", (58, 8)),
        ("x", {"queues": 32, "handSize": -1}, "APF309", (58, 8)),
        ("x", {"queues": 6, "handSize": 128}, "APF305", (128, 6)),  # queues and handSize are probably swapped
        ("workload-low", {"queues": 4}, "APF305", (128, 6)),  # the values of the built-in level workload-low
        ("system", {"queues": 6, "handSize": 40}, "APF305", (64, 6)),  # not 40 queues (a swap), but the built-in 64
    ],
)
def test_fix_sets_the_number_of_queues_if_no_hand_size_separates_flows(
    name: str, queuing: dict[str, int], rule: str, expected: tuple[int, int]
) -> None:
    (finding,) = findings(priority_level(name, queuing=queuing), only=rule)
    assert finding.fix is not None
    title = f"set queues to {expected[0]} and handSize to {expected[1]}"
    assert (finding.fix.title, finding.fix.safe) == (title, False)
    assert finding.help is not None
    assert finding.help.startswith(f"{title}; with ")


@pytest.mark.parametrize(("percent", "nearest", "share"), [(120, 100, "all"), (-1, 0, "none")])
def test_fix_of_a_percentage_is_the_nearest_valid_one(percent: int, nearest: int, share: str) -> None:
    level = priority_level("x")
    level["spec"]["limited"]["lendablePercent"] = percent
    (finding,) = findings(level, only="APF310")
    assert finding.fix is not None
    title = f"set lendablePercent to {nearest}, so that other levels can borrow {share} of its seats"
    assert (finding.fix.title, finding.fix.safe) == (title, False)
