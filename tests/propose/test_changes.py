"""Changes of a proposal: their effect, forbidden changes, and their size."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from support.builders import effective, flow_schema, group, priority_level

from apflint.model import QueuingConfiguration
from apflint.propose.changes import (
    Change,
    Cost,
    FlowSchemaFieldChange,
    NewFlowSchema,
    NewLevel,
    apply_changes,
    find_forbidden,
    measure,
)
from apflint.propose.goals import match_all_requests, parse_subject
from apflint.simulate.field_overrides import LevelFieldChange

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective

QUEUES = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
RULE = match_all_requests((parse_subject("group:dev"),))
CHANGES: tuple[Change, ...] = (
    NewLevel("dev", 10, 50, 100, QueuingConfiguration(64, 6, 50)),
    NewFlowSchema("dev", "dev", 5000, "ByUser", (RULE,)),
    LevelFieldChange("builds", "queues", 32),
    LevelFieldChange("builds", "handSize", 4),
    FlowSchemaFieldChange("builds", "matchingPrecedence", 3000),
    FlowSchemaFieldChange("builds", "distinguisherMethod", "ByNamespace"),
)


def base() -> Effective:
    return effective(flow_schema("builds", "builds", 2000), priority_level("builds", 20, QUEUES))


def test_effect_of_each_change() -> None:
    after = apply_changes(base(), CHANGES)
    levels = after.configuration.levels
    dev, builds = levels["dev"].spec.limited, levels["builds"].spec.limited
    assert dev is not None
    assert builds is not None
    assert (dev.shares, dev.lendable_percent, dev.borrowing_limit_percent) == (10, 50, 100)
    assert builds.limit_response.queuing == QueuingConfiguration(32, 4, 50)
    schemas = {schema.name: schema.spec for schema in after.configuration.order}
    assert (schemas["builds"].matching_precedence, schemas["builds"].distinguisher_method) == (3000, "ByNamespace")
    assert schemas["dev"].rules == (RULE,)
    assert schemas["dev"].priority_level_configuration == "dev"
    without = apply_changes(base(), [FlowSchemaFieldChange("builds", "distinguisherMethod", None)])
    assert next(schema for schema in without.flow_schemas).spec.distinguisher_method is None


def test_order_of_changes_does_not_matter() -> None:
    changes = list(CHANGES)
    expected = apply_changes(base(), changes)
    for seed in range(5):
        Random(seed).shuffle(changes)
        after = apply_changes(base(), changes)
        assert [(schema.name, schema.spec) for schema in after.configuration.order] == [
            (schema.name, schema.spec) for schema in expected.configuration.order
        ]
        assert after.limits == expected.limits


@pytest.mark.parametrize("kubernetes", ["1.20", "1.25", "1.28", "1.36"])
def test_new_objects_are_valid_in_each_release(kubernetes: str) -> None:
    after = apply_changes(effective(kubernetes=kubernetes), CHANGES[:2])
    assert not any(manifest.violations for manifest in after.workspace.manifests)
    level = after.configuration.levels["dev"].spec.limited
    assert level is not None
    assert level.shares == 10


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (LevelFieldChange("workload-low", "nominalConcurrencyShares", 1), "is a built-in object"),
        (FlowSchemaFieldChange("service-accounts", "distinguisherMethod", None), "is a built-in object"),
        (FlowSchemaFieldChange("builds", "matchingPrecedence", 850), "not greater than that of the system FlowSchema"),
        (FlowSchemaFieldChange("builds", "matchingPrecedence", 9900), '"global-default" has the precedence 9900, too'),
        (NewLevel("builds", 1, 0, None, None), "there is a priority level"),
        (NewLevel("workload-low", 1, 0, None, None), "there is a priority level"),
        (NewFlowSchema("builds", "builds", 5000, None, (RULE,)), "there is a FlowSchema"),
        (NewFlowSchema("x", "exempt", 5000, None, (RULE,)), "is for the system"),
        (NewFlowSchema("x", "leader-election", 5000, None, (RULE,)), "is for the system"),
        (NewFlowSchema("x", "builds", 150, None, (RULE,)), "not greater than that of the system FlowSchema"),
        (NewFlowSchema("x", "builds", 2000, None, (RULE,)), 'FlowSchema "builds" has the precedence 2000, too'),
    ],
)
def test_forbidden_change(change: Change, reason: str) -> None:
    (found,) = find_forbidden(base(), [change])
    assert reason in found


def test_allowed_changes() -> None:
    assert find_forbidden(base(), CHANGES) == ()


def test_size() -> None:
    before = base()
    after = apply_changes(before, CHANGES)
    cost = measure(CHANGES, before, after)
    assert cost[:2] == (2, 4)
    lost = sum(
        max(0, level.nominal - new.nominal)
        for level in before.limits.levels
        if level.name != "builds" and (new := after.limits.level(level.name)) is not None
    )
    assert cost.seats == lost > 0
    assert Cost(0, 5, 100) < Cost(1, 0, 0) < Cost(1, 1, 0) < Cost(1, 1, 9)
    assert measure([], before, before) == Cost(0, 0, 0)


def test_subjects_of_flow_schemas_are_not_levels() -> None:
    before = effective(flow_schema("workload-low-clients", "builds", subjects=[group("a")]), priority_level("builds"))
    changes: list[Change] = [
        NewLevel("dev", 100, 0, None, None),
        NewFlowSchema("workload-low", "dev", 5000, None, (RULE,)),
    ]
    after = apply_changes(before, changes)
    with_other_name: list[Change] = [changes[0], NewFlowSchema("other", "dev", 5000, None, (RULE,))]
    assert measure(changes, before, after) == measure(with_other_name, before, after)
