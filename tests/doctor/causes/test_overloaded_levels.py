"""Detection of overloaded levels: bursts, lasting queues, levels without queues, and incomplete metrics or dumps."""

from __future__ import annotations

import re
import time

import pytest
from support.incidents import INCIDENTS, conclude_files, find_files
from support.recordings import read_text

from apflint.doctor.causes import conclude
from apflint.doctor.causes.measurements import Sum, measure, waits_between
from apflint.doctor.causes.overloaded_levels import blocking_probability, find_overloads
from apflint.doctor.level_state import Waits, compute_state
from apflint.doctor.snapshot import Server, group_servers, parse_part

PREFIX = "apiserver_flowcontrol_"
LEVEL = 'priority_level="low"'
REQUESTS = f'flow_schema="all",{LEVEL}'
GREPPED = re.compile(r"^(# (HELP|TYPE) )?apiserver_flowcontrol_(current|dispatched|rejected|request_execution)")


def metrics(age: int = 100, /, **values: float) -> str:
    """Return metrics of a server with 40 seats and a level of 10 seats.

    No request waits, unless `values` contains waiting requests.
    """
    defaults: dict[str, float] = {
        "nominal": 10, "lower": 5, "upper": 50, "current": 10, "used": 10, "waiting": 0, "average": 5, "high": 10,
        "dispatched": 1000, "rejected": 0, "seconds": 50, "waits": 0, "deviation": 0,
    }  # fmt: skip
    now = {**defaults, **values}
    rows = [
        f"nominal_limit_seats{{{LEVEL}}} {now['nominal']}",
        f"lower_limit_seats{{{LEVEL}}} {now['lower']}",
        f"upper_limit_seats{{{LEVEL}}} {now['upper']}",
        f"current_limit_seats{{{LEVEL}}} {now['current']}",
        f"current_executing_seats{{{REQUESTS}}} {now['used']}",
        f"current_executing_requests{{{REQUESTS}}} {now['used']}",
        f"current_inqueue_requests{{{REQUESTS}}} {now['waiting']}",
        f"current_inqueue_seats{{{REQUESTS}}} {now['waiting']}",
        f"demand_seats_average{{{LEVEL}}} {now['average']}",
        f"demand_seats_stdev{{{LEVEL}}} {now['deviation']}",
        f"demand_seats_high_watermark{{{LEVEL}}} {now['high']}",
        f"demand_seats_count{{{LEVEL}}} {age * 1e9:.0f}",
        f"dispatched_requests_total{{{REQUESTS}}} {now['dispatched']}",
        f'rejected_requests_total{{{REQUESTS},reason="queue-full"}} {now["rejected"]}',
        f'request_execution_seconds_sum{{{REQUESTS},type="regular"}} {now["seconds"]}',
        f'request_execution_seconds_count{{{REQUESTS},type="regular"}} {now["dispatched"]}',
        f'request_wait_duration_seconds_sum{{{REQUESTS},execute="true"}} {now["waits"]}',
        f'request_wait_duration_seconds_count{{{REQUESTS},execute="true"}} {now["dispatched"]}',
        'nominal_limit_seats{priority_level="exempt"} 0',
        'upper_limit_seats{priority_level="exempt"} 40',
    ]
    return "process_start_time_seconds 1\n" + "".join(f"{PREFIX}{row}\n" for row in rows)


def overloaded(*texts: str) -> list[str]:
    (server,) = group_servers([parse_part(f"m{number}", text) for number, text in enumerate(texts)])
    return [overload.name for overload in find_overloads(measure(compute_state(server)))]


@pytest.mark.parametrize(
    ("values", "is_overloaded"),
    [
        ({"waiting": 40, "average": 50}, True),
        # The average demand is below the limit, so the waiting requests are a burst after the last
        # adjustment of the limits. The server has 40 seats, which execute 40 requests of 50 ms in 50 ms, so
        # the burst is not an overload.
        ({"waiting": 40, "average": 9}, False),
        ({"waiting": 4000, "average": 9}, True),  # even all 40 seats need 5 s for this queue
        ({"waiting": 4, "average": 50}, False),  # a wait of 20 ms is not a delay: 4 requests of 50 ms on 10 seats
        ({"waiting": 40, "average": 9, "deviation": 8}, False),
        # 120 requests of 50 ms on 10 seats take 0.6 s, and the demand sometimes exceeded the limit.
        ({"waiting": 120, "average": 9, "deviation": 8}, True),
        (
            {"waiting": 0, "rejected": 900, "average": 50, "used": 3},
            False,
        ),  # only 3 of 10 seats are in use, so the rejections are old
        ({"waiting": 0, "rejected": 900, "average": 50}, True),  # the queue is empty only at this moment
    ],
)
def test_one_snapshot(values: dict[str, float], *, is_overloaded: bool) -> None:
    assert overloaded(metrics(100, **values)) == ["low"] * is_overloaded


def test_two_snapshots() -> None:
    before = metrics(100, waiting=40, waits=10)
    assert overloaded(before, metrics(120, waiting=40, waits=910, dispatched=3000)) == ["low"]
    assert overloaded(before, metrics(120, waiting=40, waits=11, dispatched=3000)) == []
    # The snapshots are less than 10 seconds apart, so their waiting requests may belong to two different bursts.
    assert overloaded(before, metrics(105, waiting=40, waits=910, dispatched=3000)) == []


@pytest.mark.parametrize("rejected", [4, 5])
def test_few_rejections_are_no_overload(rejected: int) -> None:
    text = metrics(120, rejected=rejected, average=10, dispatched=1100)
    assert overloaded(metrics(100), text) == ["low"] * (rejected >= 5)


def test_blocking_probability() -> None:
    """If the only seat is in use for half of the time, half of the requests are rejected (Erlang's loss formula)."""
    assert blocking_probability(0.5, 1) == pytest.approx(0.5)
    assert blocking_probability(0.8, 1) == pytest.approx(0.8)
    assert blocking_probability(3, 12) < 0.001
    assert blocking_probability(0, 5) == blocking_probability(3, 0) == 0
    assert blocking_probability(1e6, 10**7) < 0.05
    assert 0 < blocking_probability(2**31 - 10_000, 2**31 - 1) < 0.05
    assert blocking_probability(1e18, 10**19) == 0  # a file may have values that no kube-apiserver reports


@pytest.mark.parametrize("seats", [1, 2, 12, 500])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_blocking_probability_is_that_of_the_recurrence(seats: int, share: float) -> None:
    """For a known offered load, the result equals the usual recurrence of Erlang's formula over the number of seats."""
    offered = seats * share * 1.2
    blocked = 1.0
    for seat in range(1, seats + 1):
        blocked = offered * blocked / (seat + offered * blocked)
    used = offered * (1 - blocked)
    assert blocking_probability(used, seats) == pytest.approx(blocked, rel=1e-6, abs=1e-9)


def test_sums() -> None:
    assert Sum(4, 2).mean == 0.5
    assert Sum().mean is None
    assert Sum(4, 2) + Sum(1, 1) == Sum(5, 3)
    assert Sum(4, 2).since(Sum(1, 1)) == Sum(3, 1)
    assert Sum(1, 1).since(Sum(4, 2)) == Sum(0, 0)


def test_waits_between() -> None:
    waits = Waits(10, ((0.1, 2), (1.0, 5), (float("inf"), 10)))
    assert waits_between(waits, 0.1) == 8
    assert waits_between(waits, 0.1, 1.0) == 3
    assert waits_between(None, 0.1) is None


# Sources: the arguments of `RecordEtcdRequest` in pkg/storage/etcd3 of kubernetes/apiserver, v0.31.14 to v0.37.0-beta.0, and the changelog of
# 1.38.0-alpha.2, which separates `deleteGet` and `updateGet` from `get`.
SINGLE = ("create", "delete", "deleteGet", "get", "getCurrentResourceVersion", "update", "updateGet")
LISTS = ("list", "listOnlyKeys", "listStream", "listWithCount")


@pytest.mark.parametrize(("operation", "counts"), [*((name, 7) for name in SINGLE), *((name, 0) for name in LISTS)])
def test_lists_are_no_operations_of_etcd_on_single_objects(operation: str, counts: int) -> None:
    labels = f'{{operation="{operation}",type="pods"}}'
    etcd = f"etcd_request_duration_seconds_sum{labels} 21\netcd_request_duration_seconds_count{labels} 7\n"
    (server,) = group_servers([parse_part("m", metrics() + etcd)])
    load = measure(compute_state(server))
    assert load.has_etcd
    assert load.etcd == Sum(counts, 3 * counts)


def test_snapshots_that_are_too_close_are_not_compared() -> None:
    (server,) = group_servers([parse_part(str(age), metrics(age, dispatched=age)) for age in (100, 130, 131)])
    assert measure(compute_state(server)).seconds == pytest.approx(31)
    assert isinstance(server, Server)


def grep(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if GREPPED.match(line))


def test_part_of_the_metrics_with_a_dump_of_the_same_server() -> None:
    """Only some metrics were saved with `grep`. Missing metrics count as unknown, and the dump still shows the cause."""
    files = find_files("slow-webhook", "1", dumps=True)
    conclusion = conclude_files(files, lambda text: text if text.startswith("Priority") else grep(text))
    assert conclusion.causes[0].cause == "slow-webhook"
    assert conclusion.causes[0].unsure is not None


@pytest.mark.parametrize("family", ["current_inqueue_requests", "current_limit_seats", "dispatched_requests_total"])
def test_one_family_of_metrics(family: str) -> None:
    text = read_text(INCIDENTS / "flood-one-flow" / "2-during.metrics.txt.gz")
    lines = [line for line in text.splitlines() if line.startswith(f"apiserver_flowcontrol_{family}")]
    (server,) = group_servers([parse_part("m", "\n".join([*lines, ""]))])
    (level,) = [level for level in compute_state(server).levels if level.name == "workload-low"]
    assert (level.rejected, level.nominal, level.waits) == (None, None, None)
    assert (level.dispatched is None) == (family != "dispatched_requests_total")
    conclude([compute_state(server)])


def test_dump_of_queues_alone() -> None:
    files = [path for path in find_files("flood-one-flow", "1", dumps=True) if "dump_queues" in path.name]
    (server,) = group_servers([parse_part(str(path), read_text(path)) for path in files])
    level = compute_state(server).level("workload-low")
    assert level is not None
    assert (level.waiting, level.executing, level.seats_in_use) == (300, 10, 10)
    assert conclude([compute_state(server)]).verdict == "overloaded"


def test_thousands_of_levels() -> None:
    """The work is proportional to the number of levels, not to its square."""

    def measure_time(count: int) -> float:
        text = metrics(waiting=400, average=500, rejected=500)
        head, *rows = text.splitlines()
        copies = [
            row.replace('"low"', f'"low-{number}"') for row in rows for number in range(count if '"low"' in row else 1)
        ]
        (server,) = group_servers([parse_part("m", "\n".join([head, *copies, ""]))])
        state = compute_state(server)
        start = time.process_time()
        assert len(conclude([state]).causes) == count
        return time.process_time() - start

    few, many = measure_time(400), measure_time(3200)
    assert many < 24 * few + 0.1
