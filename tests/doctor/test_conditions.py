"""Conditions of the rules about a running server: changes of an example keep or remove the finding as expected."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from support.server_examples import diagnose_files

from .test_rules import MOMENT, TITLES, level, lines

Change = tuple[str, str]
BOTH = 'flow_schema="a",priority_level="low"'


class Example(NamedTuple):
    """Files with one finding of a rule, and changes of their text."""

    rule: str
    files: dict[str, str]
    message: str
    keep: tuple[Change, ...] = ()
    """Changes after which the finding is still reported."""
    remove: tuple[Change, ...] = ()
    """Changes after which the finding is no longer reported."""


def gauge(name: str, value: object, label: str = 'priority_level="low"') -> str:
    return f"{name}{{{label}}} {value}"


def request(queue: int, index: int, user: str = "ann", distinguisher: str = "x", **more: str) -> str:
    """Return a row of the dump of requests. An index of -1 means that the request executes."""
    seats, schema, place = more.get("seats", "1"), more.get("schema", "all"), more.get("level", "low")
    row = (place, schema, str(queue), str(index), distinguisher, MOMENT, seats, "0", "0s", MOMENT, user)
    return (
        ", ".join((*row, more.get("verb", "list"), "/api/v1/pods", "", more.get("name", ""), "v1", "pods", "")) + "\n"
    )


def queues(count: int) -> str:
    rows = "".join(f"low, {number}, 0, 0, 0\n" for number in range(count))
    return f"PriorityLevelName, Index, PendingRequests, ExecutingRequests, SeatsInUse\n{rows}"


WAITS = "\n".join(
    f'apiserver_flowcontrol_request_wait_duration_seconds_bucket{{execute="true",flow_schema="a",priority_level="low",le="{le}"}} {count}'
    for le, count in (("10", 198), ("15", 200), ("+Inf", 200))
)


def idle_snapshot(age: float) -> str:
    """Return the metrics of a server that started `age` seconds ago.

    The level `low` executes no requests now, but had a seat demand before.
    """
    return "process_start_time_seconds 1\n" + lines(
        *level("low", 10, 10, 610, 10, 0),
        gauge("current_executing_requests", 0, BOTH),
        gauge("demand_seats_count", f"{age * 1e9:.0f}"),
        gauge("demand_seats_average", 3),
        gauge("demand_seats_high_watermark", 3),
        gauge("dispatched_requests_total", 50, BOTH),
    )


EXAMPLES = (
    Example(
        "APF802",
        {"m": f"{lines(*level('low', 10, 10, 610, 10, 10))}{WAITS.replace('198', '197')}\n"},
        '3 of 200 requests waited more than 10 s at "low"',
        remove=(("} 197", "} 198"), ('le="10"', 'le="9"')),
    ),
    Example(
        "APF803",
        {
            "m": lines(
                *level("low", 10, 10, 610, 10, 10, waiting=1), *level("high", 20, 19, 620, 20, 20), *level("mid", 20, 20, 620, 20, 1), *level("zero", 0, 0, 600, 0, 0)
            )
        },
        '"low" uses all of its seats (10) while other levels have 19 idle seats',
        keep=(('upper_limit_seats{priority_level="low"} 610', 'upper_limit_seats{priority_level="low"} 10'),),
        remove=(
            ('lower_limit_seats{priority_level="mid"} 20', 'lower_limit_seats{priority_level="mid"} 19'),
            ('apiserver_flowcontrol_current_limit_seats{priority_level="high"} 20\n', ""),
            ("current_executing_seats", "current_seats"),
        ),
    ),
    Example(
        "APF803",
        {"m": lines(*level("low", 10, 10, 10, 10, 10, waiting=1), *level("high", 1, 0, 620, 1, 0))},
        '"low" uses all of its seats (10) while other levels have 1 idle seat',
        remove=((gauge("upper_limit_seats", 10), gauge("upper_limit_seats", 11)),),
    ),
    Example(
        "APF804",
        {"m": lines(*level("low", 10, 10, 610, 10, 10), gauge("demand_seats_average", 11), gauge("demand_seats_smoothed", 11))},
        'the smoothed demand of "low" is 11.0 seats, and its nominal limit is 10',
        remove=(
            (gauge("average", 11), gauge("average", 10)),
            (gauge("smoothed", 11), gauge("smoothed", 10)),
            ("demand_seats_average", "demand_seats_averages"),
            ("demand_seats_smoothed", "demand_seats_smooth"),
            ("current_limit_seats", "current_seats"),
            ("nominal_limit_seats", "nominal_seats"),
        ),
    ),
    Example(
        "APF805",
        {"m": lines(*level("low", 10, 5, 610, 9, 9, waiting=1))},
        '"low" lends 1 seat while 1 of its requests waits',
        keep=(
            (gauge("nominal_limit_seats", 10), f'{gauge("nominal_limit_seats", 10)}\napiserver_flowcontrol_{gauge("demand_seats_average", 9.1)}'),
            (gauge("current_executing_seats", 9, BOTH), gauge("current_executing_seats", 10, BOTH)),
        ),
        remove=(
            (gauge("nominal_limit_seats", 10), f'{gauge("nominal_limit_seats", 10)}\napiserver_flowcontrol_{gauge("demand_seats_average", 9)}'),
            (gauge("current_limit_seats", 9), gauge("current_limit_seats", 10)),
            (gauge("current_limit_seats", 9), gauge("current_limit_seats", 0)),
            (gauge("nominal_limit_seats", 10), gauge("nominal_limit_seats", 9)),
            ("nominal_limit_seats", "nominal_seats"),
            ("current_limit_seats", "current_seats"),
            (gauge("current_executing_seats", 9, BOTH), gauge("current_executing_seats", 8, BOTH)),
            (gauge("current_inqueue_requests", 1, BOTH), gauge("current_inqueue_requests", 0, BOTH)),
        ),
    ),
    Example(
        "APF805",
        {"m": lines(*level("low", 10, 5, 610, 8, 8, waiting=2000))},
        '"low" lends 2 seats while 2,000 of its requests wait',
    ),
    Example(
        "APF811",
        {
            "m": lines(*level("low", 10, 5, 610, 9, 9), *level("other", 10, 5, 610, 9, 9)),
            "q": queues(4),
            "d": TITLES + request(0, 0) + request(1, 0) + request(3, 1),
        },
        'one flow waits in 3 of the 4 queues of "low"',
        keep=((request(3, 1), request(2, 0, "bob")), ("low, 3, 0, 0, 0\n", "low, 3, 0, 0, 0\nlow, 4, 0, 0, 0\n")),
        remove=(
            ("low, 3, 0, 0, 0\n", "low, 3, 0, 0, 0\nlow, 4, 0, 0, 0\nlow, 5, 0, 0, 0\n"),
            (request(3, 1), request(1, 1)),
            (request(3, 1), request(3, -1)),
            (request(3, 1), request(3, 0, distinguisher="y")),
            (request(3, 1), request(3, 0, schema="other")),
            (request(3, 1), request(3, 0, level="other")),
            (queues(4), queues(1)),
            (queues(4), queues(0)),
        ),
    ),
    Example(
        "APF811",
        {"m": lines(*level("low", 10, 5, 610, 9, 9)), "q": queues(2), "d": TITLES + request(0, 0) + request(1, 0)},
        'one flow waits in 2 of the 2 queues of "low"',
    ),
    Example(
        "APF812",
        {"m": lines(*level("low", 10, 5, 610, 9, 9)), "q": queues(2), "d": TITLES + request(0, 0, distinguisher="") + request(0, -1, "bob", "")},
        '2 users share one flow of FlowSchema "all" at "low"',
        remove=(
            (queues(2), queues(1)),
            (queues(2), queues(0)),
            (request(0, 0, distinguisher=""), request(0, -1, distinguisher="")),
            ("bob", "ann"),
            (request(0, -1, "bob", ""), request(0, -1, "bob", "x")),
        ),
    ),
    Example(
        "APF816",
        {"a": idle_snapshot(10), "b": idle_snapshot(30)},
        '"low" is idle, but the server still reports a seat demand of 3',
        keep=((f"{30e9:.0f}", f"{31e9:.0f}"),),
        remove=(
            (f"{30e9:.0f}", f"{29e9:.0f}"),
            (idle_snapshot(10), ""),
            *(
                (idle_snapshot(age), idle_snapshot(age).replace(gauge(name, 3), gauge(name, value)))
                for age, name, value in (
                    (30, "demand_seats_average", 4),
                    (10, "demand_seats_average", 4),
                    (30, "demand_seats_high_watermark", 4),
                )
            ),
            ("} 3\n", "} 0\n"),
            *(
                (idle_snapshot(30), idle_snapshot(30).replace(gauge(name, old, BOTH), gauge(name, old + 1, BOTH)))
                for name, old in (
                    ("current_inqueue_requests", 0),
                    ("current_executing_requests", 0),
                    ("current_executing_seats", 0),
                    ("dispatched_requests_total", 50),
                )
            ),
        ),
    ),
    Example(
        "APF817",
        {"d": (
            "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests,"
            " RejectedRequests, TimedoutRequests, CancelledRequests\n"
            "low, 0, true, false, 0, 0, 9, 4, 0, 3\nhigh, 0, true, false, 0, 0, 9, 0, 0, 0\n"
        )},
        'TimedoutRequests is 0, although 3 requests of "low" timed out or were cancelled',
        keep=(("9, 4, 0, 3", "9, 4, 0, 1"),),
        remove=(("9, 4, 0, 3", "9, 4, 0, 0"), ("9, 4, 0, 3", "9, 4, 3, 3")),
    ),
    # The finding depends on the release: until 1.27, the server counts time-outs separately (`wait` in queueset.go of
    # 1.27).
    Example(
        "APF817",
        {
            "x.metrics": 'kubernetes_build_info{git_version="v1.28.5"} 1\n' + lines(*level("low", 10, 10, 610, 10, 0)),
            "x.levels": "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests,"
            " RejectedRequests, TimedoutRequests, CancelledRequests\nlow, 0, true, false, 0, 0, 9, 4, 0, 3\n",
        },
        'TimedoutRequests is 0, although 3 requests of "low" timed out or were cancelled',
        keep=(("v1.28.5", "v1.37.0"),),
        remove=(("v1.28.5", "v1.27.16"),),
    ),
)  # fmt: skip
CHANGES = [
    pytest.param(example, change, count, id=f"{example.rule}-{count}-{number}")
    for example in EXAMPLES
    for count, changes in ((1, example.keep), (0, example.remove))
    for number, change in enumerate(changes)
]


def find_messages(rule: str, files: dict[str, str]) -> list[str]:
    return [finding.message for finding in diagnose_files(files).findings if finding.rule == rule]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_example_has_the_finding(example: Example) -> None:
    assert find_messages(example.rule, example.files) == [example.message]


@pytest.mark.parametrize(("example", "change", "count"), CHANGES)
def test_change_keeps_or_removes_the_finding(example: Example, change: Change, count: int) -> None:
    files = {name: text.replace(*change) for name, text in example.files.items()}
    assert files != example.files
    assert len(find_messages(example.rule, {name: text for name, text in files.items() if text})) == count
