"""Comparison of two priority levels of one configuration."""

from __future__ import annotations

import pytest

from apflint.evaluate.limits import LevelLimits

OTHER = LevelLimits(
    name="other",
    type="Limited",
    response="Queue",
    shares=10,
    nominal=40,
    min=40,
    max=600,
    idle=40,
    attainable=300,
    max_seats=None,
    max_list_seats=0,
    max_mutating_seats=0,
    queues=16,
    hand_size=4,
    queue_length_limit=50,
    flow_schemas=(),
)
EXEMPT = OTHER._replace(type="Exempt", response=None, nominal=0, queues=None, hand_size=None, queue_length_limit=None)
REJECT = OTHER._replace(response="Reject", queues=None, hand_size=None, queue_length_limit=None)


@pytest.mark.parametrize(
    ("level", "other", "expected"),
    [
        (OTHER, OTHER, True),
        (OTHER._replace(nominal=39), OTHER, False),
        (OTHER._replace(attainable=299), OTHER, False),
        (OTHER._replace(nominal=41, attainable=301, queues=128), OTHER, True),
        (OTHER._replace(queues=2, hand_size=2, queue_length_limit=100), OTHER, True),
        (OTHER._replace(queues=2, hand_size=2, queue_length_limit=99), OTHER, False),
        (OTHER._replace(queues=1, hand_size=1, queue_length_limit=5000), OTHER, False),
        (OTHER._replace(queues=1, hand_size=1), OTHER._replace(queues=1, hand_size=1), True),
        (REJECT, OTHER, False),
        (OTHER, REJECT, True),
        (REJECT, REJECT, True),
        (EXEMPT, OTHER, True),
        (EXEMPT, EXEMPT, True),
        (OTHER._replace(nominal=600, attainable=600), EXEMPT, False),
    ],
)
def test_level_is_at_least_as_good_as_another(level: LevelLimits, other: LevelLimits, expected: bool) -> None:
    assert level.is_at_least_as_good_as(other) is expected
