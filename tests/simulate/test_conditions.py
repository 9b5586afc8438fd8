"""Conditions of `--fail-if`: how they are parsed, and when they are true."""

from __future__ import annotations

import pytest
from support.simulations import Options, client, load, simulate

from apflint.simulate.conditions import FailureCondition, check_conditions, list_failures, parse_condition
from apflint.simulate.load import SECOND, Burst, ServiceTime
from apflint.user_error import UserError

from .test_simulation import level

REJECT = "{type: Reject}"
RESULT = simulate(
    load(
        client("slow", groups=("queued",), bursts=(Burst(0, 200),), service=ServiceTime(SECOND)),
        client("mice", groups=("queued",), user="bob", rate=1.0, service=ServiceTime(SECOND // 100)),
        client("none", groups=("rejected",), bursts=(Burst(0, 30),), service=ServiceTime(SECOND)),
        client("system", rate=1.0),
        duration=60 * SECOND,
    ),
    Options(f"{level('queued', 400)}---{level('rejected', 100, REJECT)}", seats=40),
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("ci rejected", FailureCondition("ci rejected", "ci")),
        ("ci waits > 1s", FailureCondition("ci waits > 1s", "ci", None, SECOND)),
        ("ci waits>500ms", FailureCondition("ci waits>500ms", "ci", None, SECOND // 2)),
        ("ci waits p99 > 0", FailureCondition("ci waits p99 > 0", "ci", None, 0, True)),
        (
            "level batch waits P99 > 1m",
            FailureCondition("level batch waits P99 > 1m", "batch", "level", 60 * SECOND, True),
        ),
        ("client my ci rejected", FailureCondition("client my ci rejected", "my ci", "client")),
        ("rejected rejected", FailureCondition("rejected rejected", "rejected")),
    ],
)
def test_condition(text: str, condition: FailureCondition) -> None:
    assert parse_condition(text) == condition


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ci", "is not a condition: write NAME rejected, NAME waits > 1s or NAME waits p99 > 1s"),
        ("rejected", "is not a condition"),
        ("ci waits", "is not a condition"),
        ("ci waits < 1s", "is not a condition"),
        ("ci waits p95 > 1s", "is not a condition"),
        ("ci waits > 1", '--fail-if: "1" is not a duration such as 500ms, 1.5s or 10m'),
        ("ci waits > -1s", '--fail-if: "-1s" is not a duration'),
    ],
)
def test_invalid_condition(text: str, words: str) -> None:
    with pytest.raises(UserError, match=r"^--fail-if: ") as error:
        parse_condition(text)
    assert words in str(error.value)


def test_unknown_names_have_a_suggestion() -> None:
    for text, message in (
        ("slwo rejected", '--fail-if: the load has no client or priority level "slwo". Did you mean "slow"?'),
        ("level slow rejected", '--fail-if: the load has no level "slow"'),
        ("client queued rejected", '--fail-if: the load has no client "queued"'),
    ):
        with pytest.raises(UserError) as error:
            check_conditions([parse_condition(text)], ["slow", "mice"], ["queued"])
        assert str(error.value) == message
    check_conditions(map(parse_condition, ["slow rejected", "queued rejected"]), ["slow"], ["queued"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("none rejected", "none is rejected: 24 of 30 attempts (80%), and the condition allows no rejection."),
        (
            "level rejected rejected",
            "rejected is rejected: 24 of 30 attempts (80%), and the condition allows no rejection.",
        ),
        ("slow rejected", None),
        ("mice waits > 2s", None),
        ("slow waits > 1s", "slow waits too long: it waits up to 9.0 s, and the limit is 1.0 s."),
        ("slow waits > 9s", None),
        (
            "queued waits p99 > 1s",
            "queued waits too long: the 99th percentile of its waits is 8.1 s, and the limit is 1.0 s.",
        ),
        ("system waits > 0", None),
        ("level system rejected", None),
    ],
)
def test_failures(text: str, sentence: str | None) -> None:
    assert list(list_failures([parse_condition(text)], RESULT)) == ([] if sentence is None else [(text, sentence)])
