"""Statistics: every figure of a small simulation, computed by hand."""

from __future__ import annotations

import pytest
from support.simulations import Options, client, load, simulate

from apflint.evaluate.shuffle_sharding import deal, flow_hash
from apflint.simulate.histogram import TimePercentiles
from apflint.simulate.load import SECOND, Burst, Retries, ServiceTime
from apflint.simulate.statistics import ClientResult, FlowResult, LevelSample

from .test_simulation import level, result_at

MILLISECOND = SECOND // 1000
SHORT = "{type: Queue, queuing: {queues: 64, handSize: 1, queueLengthLimit: 1}}"


def test_every_figure_of_a_level() -> None:
    """There are two servers with 1 seat each.

    On each server, `one` sends 3 requests at 0 s. The first request executes, and the second waits until 1 s. The queue
    is full for the third, which is sent again at 1 s and waits until 2 s. `two` leaves its queue after 250 ms. The
    deadline of `three` is before the end of its execution.
    """
    found = result_at(
        simulate(
            load(
                client(
                    "one",
                    user="u1",
                    groups=("a",),
                    instances=2,
                    bursts=(Burst(0, 6),),
                    service=ServiceTime(SECOND),
                    retries=Retries(1),
                ),
                client(
                    "two",
                    user="u2",
                    groups=("a",),
                    request="get pods x -n y",
                    bursts=(Burst(SECOND // 2, 1),),
                    service=ServiceTime(300 * MILLISECOND),
                    timeout=SECOND,
                ),
                client(
                    "three",
                    user="u3",
                    groups=("a",),
                    bursts=(Burst(10 * SECOND, 1),),
                    service=ServiceTime(1, samples=(1500 * MILLISECOND,)),
                    timeout=SECOND,
                ),
                duration=120 * SECOND,
                servers=2,
            ),
            Options(level("a", 1, SHORT), seats=1),
        ),
        "a",
    )
    quarter, two = 250_609_663, 2_004_877_311  # the ends of the buckets of 250 ms and 2 s
    wait, later = TimePercentiles(1, *[SECOND // 4] * 4), TimePercentiles(1, 0, 0, 0, 0)
    assert found.clients == (
        ClientResult(
            *("one", "a", ("a",), "list", 6, 8, 6, {"queue-full": 2}, 0, 0, 0, 4),
            TimePercentiles(6, SECOND, SECOND, SECOND, SECOND),
            TimePercentiles(6, two, 3 * SECOND, 3 * SECOND, 3 * SECOND),
            *(0, 0),
        ),
        ClientResult(
            *("two", "a", ("a",), "get", 1, 1, 0, {"time-out": 1}, 0, 1, 0, 1, wait, None),
            *(750 * MILLISECOND, 750 * MILLISECOND),
        ),
        ClientResult("three", "a", ("a",), "list", 1, 1, 0, {}, 1, 1, 0, 0, later, None, None, None),
    )
    assert found.flows == (
        FlowResult("a", "u1", "one", 8, 2, 6.0, 6.0, is_elephant=True),
        FlowResult("a", "u2", "two", 1, 1, 0.3, 0.0, is_elephant=False),
        FlowResult("a", "u3", "three", 1, 0, 1.5, 1.0, is_elephant=False),
    )
    assert (found.requests, found.attempts, found.executed, found.expired, found.failed) == (8, 10, 6, 1, 2)
    assert (found.rejected, found.waited) == ({"queue-full": 2, "time-out": 1}, 5)
    assert found.waits == TimePercentiles(8, quarter, SECOND, SECOND, SECOND)
    assert found.latencies == found.clients[0].latencies
    assert (found.peak, found.borrowed, found.lent) == (1, 0, 0)
    assert found.seats == pytest.approx(7 / 120)
    # Fair shares of 7 seat-seconds are 5.2, 0.3 and 1.5.
    ratios = 6 / 5.2, 1 / 1.5
    assert found.fairness == pytest.approx(sum(ratios) ** 2 / (3 * (ratios[0] ** 2 + ratios[1] ** 2)))
    (queue,) = deal(flow_hash("a", "u1"), 64, 1)
    waiting = {queue: (1, 0), 64 + queue: (1, 0)}
    assert found.samples == (
        LevelSample(2.0, 2, 0, 2, 3, waiting),
        LevelSample(2.0, 2, 0, 2, 0, waiting),
        LevelSample(2.0, 2, 0, 0, 0, {}),
        *[LevelSample(0.0, 2, 0, 0, 0, {})] * 7,
        LevelSample(1.0, 2, 0, 0, 0, {}),
        *[LevelSample(0.0, 2, 0, 0, 0, {})] * 109,
    )


def test_level_without_requests() -> None:
    result = simulate(
        load(client("one", groups=("a",), bursts=(Burst(0, 1),))), Options(level("a") + "---" + level("b"))
    )
    found = result_at(result, "b")
    assert (found.clients, found.flows, found.rejected) == ((), (), {})
    assert (found.requests, found.attempts, found.executed, found.expired, found.failed, found.waited) == (0,) * 6
    assert (found.waits, found.latencies, found.fairness) == (None, None, None)
    assert (found.seats, found.peak, found.borrowed, found.lent) == (0, 0, 0, 0)
    assert found.samples == (LevelSample(0, found.limits.nominal, 0, 0, 0, {}),) * 120


def test_rejections_after_the_end_belong_to_the_last_part() -> None:
    burst = (Burst(9_999 * MILLISECOND, 2),)
    late = client("one", groups=("a",), bursts=burst, service=ServiceTime(SECOND), timeout=2 * SECOND)
    found = result_at(simulate(load(late), Options(level("a", 1), seats=1)), "a")
    assert found.rejected == {"time-out": 1}
    assert [number for number, sample in enumerate(found.samples) if sample.rejected] == [119]
