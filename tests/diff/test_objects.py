"""Objects and priority levels that differ between two configurations."""

from __future__ import annotations

from typing import Any

import pytest
from evaluate.test_limits import limited_level, queue_settings
from support.configurations import BUILT_IN, objects

from apflint.diff.objects import ObjectChange, compare_levels, compare_objects
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.limits import Limits, compute_limits
from apflint.releases import parse_release

REJECT = {"type": "Limited", "limited": {"nominalConcurrencyShares": 30, "limitResponse": {"type": "Reject"}}}
QUEUES = {"type": "Queue", "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}}
RULE = {"verbs": ["get"], "nonResourceURLs": ["/version"]}


def level(name: str, spec: dict[str, Any] | None = None, **limited: Any) -> dict[str, Any]:
    merged = spec or {"type": "Limited", "limited": REJECT["limited"] | limited}  # type: ignore[operator]  # a dict
    return {"kind": "PriorityLevelConfiguration", "name": name, "spec": merged}


def schema(name: str, target: str = "workload-low", *users: str, **more: Any) -> dict[str, Any]:
    rules = [{"subjects": [{"kind": "User", "user": {"name": user}}], "nonResourceRules": [RULE]} for user in users]
    spec = {"priorityLevelConfiguration": {"name": target}, "matchingPrecedence": 500, "rules": rules, **more}
    return {"kind": "FlowSchema", "name": name, "spec": spec}


def side(*values: dict[str, Any], defaults: bool = True) -> Configuration:
    return build_configuration(objects([*values]), BUILT_IN, defaults=defaults)


def details(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    (change,) = compare_objects(side(before), side(after))
    assert (change.kind, change.name, change.change) == (before["kind"], before["name"], "changed")
    return change.details


def test_added_and_removed_objects_are_summarized() -> None:
    ours = (level("x"), schema("a", "x", "alice"))
    expected = (
        ("PriorityLevelConfiguration", "x", ("type Limited", "shares 30", "limitResponse Reject")),
        ("FlowSchema", "a", ("matchingPrecedence 500", 'priorityLevelConfiguration "x"')),
    )
    assert compare_objects(side(), side(*ours)) == tuple(ObjectChange(k, n, "added", d) for k, n, d in expected)  # type: ignore[arg-type]  # k is a kind
    assert compare_objects(side(*ours), side()) == tuple(ObjectChange(k, n, "removed", d) for k, n, d in expected)  # type: ignore[arg-type]  # k is a kind
    assert compare_objects(side(*ours), side(*ours)) == ()


def test_changes_are_in_order() -> None:
    before = side(level("gone"), level("both"), schema("gone"), schema("also-gone"), schema("both"))
    after = side(level("new"), level("both", lendablePercent=1), schema("new"), schema("both", "workload-high"))
    assert [
        (compare_object.kind, compare_object.change, compare_object.name)
        for compare_object in compare_objects(before, after)
    ] == [
        ("PriorityLevelConfiguration", "removed", "gone"),
        ("PriorityLevelConfiguration", "added", "new"),
        ("PriorityLevelConfiguration", "changed", "both"),
        ("FlowSchema", "removed", "also-gone"),
        ("FlowSchema", "removed", "gone"),
        ("FlowSchema", "added", "new"),
        ("FlowSchema", "changed", "both"),
    ]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (level("x", nominalConcurrencyShares=31), ("shares 30 -> 31",)),
        (level("x", lendablePercent=5), ("lendablePercent 0 -> 5",)),
        (level("x", borrowingLimitPercent=7), ("borrowingLimitPercent none -> 7",)),
        (level("x", borrowingLimitPercent=0), ("borrowingLimitPercent none -> 0",)),
        (
            level("x", limitResponse=QUEUES),
            ("limitResponse Reject -> Queue", "queues - -> 64", "handSize - -> 6", "queueLengthLimit - -> 50"),
        ),
    ],
)
def test_changed_level(after: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert details(level("x"), after) == expected
    backwards = tuple(
        f"{field} {new} -> {old}" for field, old, new in (change.replace(" -> ", " ").split(" ") for change in expected)
    )
    assert details(after, level("x")) == backwards


def test_changed_exempt_level() -> None:
    def exempt(**fields: int) -> dict[str, Any]:
        return level("exempt", {"type": "Exempt", "exempt": fields})

    assert details(exempt(), exempt(nominalConcurrencyShares=5, lendablePercent=9)) == (
        "shares 0 -> 5",
        "lendablePercent 0 -> 9",
    )
    # If the field `exempt` is absent, the server uses 0 for its values, so this is not a change.
    assert compare_objects(side(exempt()), side(level("exempt", {"type": "Exempt"}))) == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (schema("a"), schema("a", matchingPrecedence=501), "matchingPrecedence 500 -> 501"),
        (schema("a"), schema("a", "global-default"), 'priorityLevelConfiguration "workload-low" -> "global-default"'),
        (schema("a"), schema("a", distinguisherMethod={"type": "ByUser"}), "distinguisherMethod none -> ByUser"),
        (schema("a"), schema("a", "workload-low", "alice"), "rules: 1 added"),
        (schema("a", "workload-low", "alice"), schema("a"), "rules: 1 removed"),
        (schema("a", "workload-low", "alice"), schema("a", "workload-low", "bob"), "rules: 1 changed"),
        (
            schema("a", "workload-low", "alice", "bob"),
            schema("a", "workload-low", "bob", "eve", "carol", "dave"),
            "rules: 1 changed, 2 added",
        ),
        (
            schema("a", "workload-low", "alice", "bob", "carol"),
            schema("a", "workload-low", "carol", "eve"),
            "rules: 1 changed, 1 removed",
        ),
        (
            schema("a", "workload-low", "alice", "bob"),
            schema("a", "workload-low", "bob", "alice"),
            "rules in another order",
        ),
    ],
)
def test_changed_flow_schema(before: dict[str, Any], after: dict[str, Any], expected: str) -> None:
    assert details(before, after) == (expected,)


def test_unused_objects_are_without_effect() -> None:
    lost, kept = schema("a", "nowhere"), schema("a")
    (added,) = compare_objects(side(), side(lost))
    assert added.details[2:] == ('without effect: its priority level "nowhere" does not exist',)
    assert details(kept, lost) == (
        'now without effect: its priority level "nowhere" does not exist',
        'priorityLevelConfiguration "workload-low" -> "nowhere"',
    )
    assert details(lost, kept)[0] == "takes effect now"
    broken = level("x", {"type": "Limited"})
    assert compare_objects(side(), side(broken)) == (
        ObjectChange(
            "PriorityLevelConfiguration",
            "x",
            "added",
            ('without effect: it has type "Limited" but no "limited" settings',),
        ),
    )
    # The limits of an invalid level are not compared.
    assert details(level("x"), broken) == ('now without effect: it has type "Limited" but no "limited" settings',)
    assert details(broken, level("x")) == ("takes effect now",)


def test_unusable_mandatory_level_is_one_object() -> None:
    broken = level("exempt", {"type": "Limited"})
    (change,) = [
        compare_object
        for compare_object in compare_objects(side(), side(broken))
        if compare_object.name == "exempt" and compare_object.kind[0] == "P"
    ]
    reason = 'it has type "Limited", but "exempt" must have type "Exempt", and other levels "Limited"'
    assert change.details == (f"now without effect: {reason}",)


def test_imagined_objects_are_not_stored() -> None:
    found = compare_objects(side(), side(defaults=False))
    assert {change.change for change in found} == {"removed"}
    expected = {(change.kind, change.name): change.details[-1] for change in found}
    imagined = {at for at, last in expected.items() if last == "the server uses a built-in substitute"}
    kinds = ("FlowSchema", "PriorityLevelConfiguration")
    assert imagined == {(kind, name) for kind in kinds for name in ("exempt", "catch-all")}
    assert compare_objects(side(defaults=False), side(defaults=False)) == ()


def test_objects_without_a_name_are_compared_by_content() -> None:
    def unnamed(prefix: str, precedence: int) -> Configuration:
        found = objects([schema("", matchingPrecedence=precedence)])
        (flow_schema,) = found.flow_schemas
        flow_schema = flow_schema._replace(metadata=flow_schema.metadata._replace(generate_name=prefix))
        return build_configuration(found._replace(flow_schemas=(flow_schema,)), BUILT_IN)

    assert compare_objects(unnamed("a-", 500), unnamed("a-", 500)) == ()
    for other in (unnamed("b-", 500), unnamed("a-", 501)):
        first, second = compare_objects(unnamed("a-", 500), other)
        assert (first.change, first.name, second.change) == ("removed", "a-...", "added")


def test_levels_are_compared_by_name() -> None:
    def limits(**shares: int) -> Limits:
        levels = [limited_level(name, queue_settings(share)) for name, share in shares.items()]
        return compute_limits(levels, (), 600, parse_release("1.36"))

    changes = compare_levels(limits(a=30, b=30), limits(b=20, c=10))
    assert [(change.name, change.old is None, change.new is None, change.gain) for change in changes] == [
        ("a", False, True, -300),
        ("b", False, False, 100),
        ("c", True, False, 200),
    ]
    assert all(change.is_changed for change in changes)
    assert not any(change.is_changed for change in compare_levels(limits(a=30), limits(a=30)))


def test_level_with_other_idle_seats_only_is_not_changed() -> None:
    """If level a may borrow more, level b keeps fewer seats while idle. This does not count as a change of level b."""

    def limits(borrowing: int) -> Limits:
        levels = (
            limited_level("a", queue_settings(30, borrowingLimitPercent=borrowing)),
            limited_level("b", queue_settings(30, lendablePercent=50)),
        )
        return compute_limits(levels, (), 600, parse_release("1.36"))

    a, b = compare_levels(limits(0), limits(10))
    assert a.is_changed
    assert b.old is not None
    assert b.new is not None
    assert b.old.idle > b.new.idle
    assert not b.is_changed
