"""APF305 to APF309: queues and hands."""

from __future__ import annotations

import pytest
from support.builders import findings, priority_level, rule_ids


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
        (64, 16, "set handSize to 10 or less"),
        (10_000_000, 3, "set handSize to 2 or less or queues to 1,048,576 or less"),
        (64, 64, "set handSize to 10 or less"),
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
    assert finding.help == "set handSize to 4 or less, or increase queues"
