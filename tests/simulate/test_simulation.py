"""Simulations of loads: laws that are true for every load, and effects that can be computed by hand."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.simulations import Options, client, load, simulate

from apflint.effective_configuration import Assumptions, Effective
from apflint.output.json_text import to_json
from apflint.output.simulation import describe_likeness, simulation_json
from apflint.releases import NEWEST
from apflint.request_explanation import Explainer
from apflint.simulate import simulation
from apflint.simulate.arrivals import list_sources
from apflint.simulate.comparison import compare
from apflint.simulate.fairness import max_min_shares, measure_fairness
from apflint.simulate.feasibility import check_servers, count_in_flight, count_requests, find_excess, find_problems
from apflint.simulate.field_overrides import apply_changes, parse_change
from apflint.simulate.histogram import Histogram
from apflint.simulate.load import SECOND, Burst, Load, ObjectCount, Retries, ServiceTime, log_normal
from apflint.simulate.random_draws import Draws
from apflint.simulate.routes import Routes, SimulatedFlow
from apflint.simulate.scaling import Scaling
from apflint.simulate.statistics import FlowTally, _summarize_flows
from apflint.user_error import UserError
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import LevelResult

MILLISECOND = SECOND // 1000
TEAMS = """
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: NAME}
spec:
  matchingPrecedence: 1000
  distinguisherMethod: {type: ByUser}
  priorityLevelConfiguration: {name: NAME}
  rules:
  - resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
    subjects: [{kind: Group, group: {name: NAME}}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: NAME}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: SHARES
    borrowingLimitPercent: 0
    lendablePercent: 0
    limitResponse: RESPONSE
"""
QUEUE = "{type: Queue, queuing: {queues: 64, handSize: 4, queueLengthLimit: 50}}"


def level(name: str, shares: int = 100, response: str = QUEUE) -> str:
    """Return a priority level that neither lends nor borrows, and the FlowSchema of the group of this name."""
    return TEAMS.replace("NAME", name).replace("SHARES", str(shares)).replace("RESPONSE", response)


def result_at(result: SimulationResult, name: str) -> LevelResult:
    (found,) = (found for found in result.levels if found.name == name)
    return found


def describe(result: SimulationResult, *names: str) -> list[object]:
    """Return the results of the named levels, as in the JSON output."""
    return [simulation_json(result)["levels"][at] for at, item in enumerate(result.levels) if item.name in names]  # type: ignore[index]


@st.composite
def loads(draw: st.DrawFn, group: str = "a") -> Load:
    """Return a load of 1 to 3 clients for some seconds. All users of the clients are members of `group`."""
    clients = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["open", "closed", "burst"]))
        clients.append(
            client(
                f"{group}{number}",
                user=f"{group}-{number}-{{n}}",
                groups=(group,),
                instances=draw(st.integers(1, 8)),
                rate=draw(st.floats(0.5, 20)) if kind == "open" else 0.0,
                think=draw(st.integers(100, 900)) * MILLISECOND if kind == "closed" else None,
                bursts=(Burst(draw(st.integers(0, 2)) * SECOND, draw(st.integers(1, 200))),) if kind == "burst" else (),
                service=draw(
                    st.sampled_from(
                        [
                            ServiceTime(20 * MILLISECOND),
                            log_normal(50 * MILLISECOND, SECOND),
                            ServiceTime(0),
                            ServiceTime(1, samples=(1, SECOND, 2 * SECOND)),
                        ]
                    )
                ),
                retries=draw(st.sampled_from([None, Retries(2), Retries(5, 10 * MILLISECOND)])),
                timeout=draw(st.sampled_from([SECOND, 8 * SECOND, 60 * SECOND])),
            )
        )
    return load(*clients, duration=draw(st.sampled_from([3, 11])) * SECOND, servers=draw(st.integers(1, 2)))


NO_LENDING = ("workload-low.lendablePercent=0", "workload-low.borrowingLimitPercent=0")
SMALL = Options(level("a", 400) + "---" + level("b"), seats=8)


@given(loads())
@settings(max_examples=25)
def test_no_request_is_lost_or_counted_twice(wanted: Load) -> None:
    result = simulate(wanted, SMALL)
    sent: dict[str, int] = {}
    for source in list_sources(wanted, result.seed):
        if not source.is_closed:
            sent[source.client.name] = sent.get(source.client.name, 0) + sum(1 for _ in source.arrivals)
    for row in (row for item in result.levels for row in item.clients):
        assert row.requests == sent.get(row.name, row.requests)
        assert row.requests == row.executed + row.failed
        assert row.attempts == row.executed + row.expired + sum(row.rejected.values())
        assert row.unfinished <= row.failed
        assert row.waited <= row.attempts
    assert sum(item.requests for item in result.levels) >= sum(sent.values())
    for item in result.levels:
        assert sum(flow.attempts for flow in item.flows) == item.attempts
        assert sum(sample.rejected for sample in item.samples) == sum(item.rejected.values())
        if item.limits.queues:
            assert all(sample.seats <= max(sample.limit, item.limits.max * wanted.servers) for sample in item.samples)


@given(loads(), st.sampled_from([(), ("workload-low.lendablePercent=90", "a.lendablePercent=90")]), st.integers(0, 2))
@settings(max_examples=25)
def test_fast_forward_changes_no_result(wanted: Load, changes: tuple[str, ...], warmup: int) -> None:
    wanted, options = wanted._replace(warmup=warmup * SECOND), SMALL._replace(changes=changes)
    assert simulate(wanted, options) == simulate(wanted, options, fast_forwards=False)


@given(loads())
@settings(max_examples=10)
def test_the_same_seed_gives_the_same_bytes(wanted: Load) -> None:
    assert to_json(simulation_json(simulate(wanted, SMALL))) == to_json(simulation_json(simulate(wanted, SMALL)))


def test_another_seed_gives_other_arrivals() -> None:
    wanted = load(client("a", rate=5.0))
    assert next(list(list_sources(wanted, seed)[0].arrivals) for seed in (1, 2)) != list(
        list_sources(wanted, 2)[0].arrivals
    )


@given(loads("a"), loads("b"))
@settings(max_examples=8)
def test_without_borrowing_a_level_does_not_depend_on_the_clients_of_others(wanted: Load, other: Load) -> None:
    both = wanted._replace(clients=(*wanted.clients, *other.clients))
    if len(both.clients) > 1 and both.servers > 1:
        both, wanted = both._replace(servers=1), wanted._replace(servers=1)
    assert describe(simulate(wanted, SMALL), "a") == describe(simulate(both, SMALL), "a")


def test_scaling_all_times_scales_the_arrivals_and_service_times() -> None:
    base = load(client("a", rate=20.0, service=log_normal(MILLISECOND, 9 * MILLISECOND)), duration=100 * SECOND)
    slow = base._replace(
        duration=1000 * SECOND,
        clients=(base.clients[0]._replace(rate=2.0, service=log_normal(10 * MILLISECOND, 90 * MILLISECOND)),),
    )
    (fast_source,), (slow_source,) = list_sources(base, 3), list_sources(slow, 3)
    fast, scaled = list(fast_source.arrivals), list(slow_source.arrivals)
    assert len(fast) == len(scaled) > 1500
    assert all(abs(other.time - 10 * item.time) <= 10 for item, other in zip(fast, scaled, strict=True))
    assert all(abs(other.service - 10 * item.service) <= 10 for item, other in zip(fast, scaled, strict=True))


def test_flows_with_equal_demand_get_equal_service() -> None:
    # Each of the 2 users demands more seats than the level has.
    wanted = load(
        client("a", user="a-{n}", groups=("a",), instances=2, rate=100.0, service=ServiceTime(100 * MILLISECOND)),
        duration=60 * SECOND,
    )
    found = result_at(simulate(wanted, SMALL), "a")
    first, second = found.flows
    limit = found.limits.nominal
    assert found.rejected["queue-full"] > 1000
    assert abs(first.service - second.service) <= (limit + 1) * 0.1 + 0.01 * first.service
    assert found.fairness is not None
    assert found.fairness > 0.999


def test_mice_do_not_wait_for_an_elephant() -> None:
    service = ServiceTime(100 * MILLISECOND)
    wanted = load(
        client("elephant", user="e", groups=("a",), rate=300.0, service=service),
        client("mice", user="m-{n}", groups=("a",), instances=6, rate=0.5, service=service),
        duration=60 * SECOND,
    )
    found = result_at(simulate(wanted, SMALL), "a")
    elephant, mice = found.clients
    assert [flow.client for flow in found.flows if flow.is_elephant] == ["elephant"]
    assert sum(elephant.rejected.values()) > 0.5 * elephant.attempts
    assert not mice.rejected
    assert mice.waits is not None
    assert elephant.waits is not None
    assert mice.waits.p90 < elephant.waits.p50 / 5
    waiting = [flow for sample in found.samples for _, flow in sample.queues.values()]
    assert found.flows[max(set(waiting), key=waiting.count)].client == "elephant"


def test_closed_loop_sends_the_next_request_after_the_response() -> None:
    wanted = load(
        client("a", groups=("a",), instances=3, think=400 * MILLISECOND, service=ServiceTime(100 * MILLISECOND)),
        duration=50 * SECOND,
    )
    found = result_at(simulate(wanted, Options(level("a"))), "a")
    assert found.requests == 300
    assert found.latencies is not None
    assert found.latencies.max == 100 * MILLISECOND
    assert found.seats == pytest.approx(0.6, rel=0.01)


def test_retries_wait_as_long_as_the_server_asks() -> None:
    reject = level("a", response="{type: Reject}")
    burst = (Burst(0, 30),)
    wanted = load(
        client("a", groups=("a",), bursts=burst, service=ServiceTime(500 * MILLISECOND), retries=Retries(1)),
        duration=10 * SECOND,
    )
    found = result_at(simulate(wanted, Options(reject, seats=2)), "a")
    seats = found.limits.nominal
    assert found.executed == 2 * seats
    (row,) = found.clients
    assert (row.first_rejection, row.last_rejection) == (0, SECOND)
    assert row.rejected == {"concurrency-limit": 2 * 30 - 3 * seats}
    assert row.failed == 30 - 2 * seats
    assert row.latencies is not None
    assert row.latencies.max == 1500 * MILLISECOND
    short = result_at(simulate(wanted._replace(duration=SECOND), Options(reject, seats=2)), "a")
    assert short.clients[0].unfinished == 30 - seats


def test_deadline_ends_the_execution_and_a_quarter_of_it_the_wait() -> None:
    wanted = load(
        client(
            "a",
            groups=("a",),
            bursts=(Burst(0, 2),),
            service=ServiceTime(1, samples=(1500 * MILLISECOND, 1500 * MILLISECOND)),
            timeout=SECOND,
        ),
        duration=10 * SECOND,
    )
    found = result_at(simulate(wanted, Options(level("a", 1), seats=1)), "a")
    assert (found.expired, found.executed, found.rejected) == (1, 0, {"time-out": 1})
    assert found.waits is not None
    assert found.waits.max == 250 * MILLISECOND
    assert found.seats == pytest.approx(0.1)


def test_clients_are_connected_to_the_servers_in_turn() -> None:
    a = client("a", groups=("a",), instances=3, bursts=(Burst(0, 30),), service=ServiceTime(SECOND))
    for servers, peak in ((1, 30), (2, 20), (3, 10)):
        found = result_at(simulate(load(a, servers=servers), Options(level("a"))), "a")
        assert found.peak == peak
        assert found.seats * 10 == pytest.approx(30)
    # The two instances of `a` are connected to the first two servers, and `b` to the third.
    two, single = (
        a._replace(instances=2, bursts=(Burst(0, 20),)),
        a._replace(name="b", instances=1, bursts=(Burst(0, 10),)),
    )
    assert result_at(simulate(load(two, single, servers=3), Options(level("a"))), "a").peak == 10


def test_lists_and_changes_take_seats_of_the_objects_and_watchers() -> None:
    lister = client("lister", groups=("a",), bursts=(Burst(0, 1),), service=ServiceTime(SECOND))
    writer = client("writer", request="create pods -n x", groups=("b",), bursts=(Burst(0, 1),))
    options = Options(level("a", 1000) + "---" + level("b", 1000))
    base = load(lister, writer)
    full = base._replace(objects={("", "pods"): ObjectCount(1000, 900)}, watchers={("", "pods"): 95})
    few, many = simulate(base, options), simulate(full, options)
    assert [result_at(few, name).peak for name in "ab"] == [1, 1]
    assert [result_at(many, name).peak for name in "ab"] == [9, 10]
    assert simulation_json(few)["assumptions"] != simulation_json(many)["assumptions"] == []
    silent = simulate(base.scale(Scaling().set_factor("lister", 0)), options)
    assert simulation_json(silent)["assumptions"] == []


def test_level_borrows_after_10_seconds() -> None:
    user = "system:serviceaccount:ci:runner"
    wanted = load(
        client("a", user=user, instances=60, think=10 * MILLISECOND, service=ServiceTime(100 * MILLISECOND)),
        duration=60 * SECOND,
    )
    found = result_at(simulate(wanted, Options("", seats=60)), "workload-low")
    limits = [sample.limit for sample in found.samples]
    assert limits[18] < found.limits.nominal < limits[40] == found.limits.attainable
    assert found.borrowed > 0.7 * (found.limits.attainable - found.limits.nominal)
    assert found.lent == pytest.approx((found.limits.nominal - limits[18]) * 19 / 120)


def test_comparison_has_the_same_arrivals_on_both_sides() -> None:
    wanted = load(
        client("a", groups=("a",), rate=60.0, service=log_normal(100 * MILLISECOND, SECOND), timeout=2 * SECOND)
    )
    small, large = (simulate(wanted, Options(level("a", shares), seats=40)) for shares in (60, 400))
    differences = compare(small, large).differences
    assert [(item.name, item.levels) for item in differences] == [("a", ("a", "a")), ("a", None)]
    old, new = differences[1].old, differences[1].new
    assert old is not None
    assert new is not None
    assert old.requests == new.requests
    assert old.rejected > new.rejected
    assert compare(small, small).differences == ()
    assert compare(small, small).is_equal
    moved = compare(small, simulate(wanted, Options("", seats=40))).differences
    assert ("a", ("a", "global-default")) in [(item.name, item.levels) for item in moved]


def test_configurations_that_differ_only_in_other_figures_are_not_called_alike() -> None:
    wanted = load(client("a", groups=("a",), bursts=(Burst(0, 99),), service=ServiceTime(SECOND), timeout=8 * SECOND))
    first = simulate(wanted, Options(level("a", 400), seats=8))
    found = compare(first, first._replace(levels=tuple(map(shorten_median, first.levels))))
    assert (found.differences, found.is_equal) == ((), False)
    assert "Other figures differ" in describe_likeness(found)
    assert describe_likeness(compare(first, first)) == "Both configurations serve this load alike."


def shorten_median(item: LevelResult) -> LevelResult:
    """Return a copy of the result of a level in which the median wait of each client is 1 ns."""
    rows = (row._replace(waits=row.waits and row.waits._replace(p50=1)) for row in item.clients)
    return item._replace(clients=tuple(rows))


def test_changed_field_has_the_effect_of_a_changed_manifest() -> None:
    wanted = load(client("a", groups=("a",), rate=60.0, service=ServiceTime(100 * MILLISECOND)))
    changed = simulate(
        wanted, Options(level("a", 60), seats=40, changes=("a.nominalConcurrencyShares=7", "a.queues=9"))
    )
    manifest = simulate(wanted, Options(level("a", 7).replace("queues: 64", "queues: 9"), seats=40))
    assert describe(changed, "a") == describe(manifest, "a")
    # After the first of the changes alone, handSize would be larger than queues, which is invalid.
    in_steps = simulate(wanted, Options(level("a"), changes=("a.queues=2", "a.handSize=1", "a.queueLengthLimit=9")))
    limits = result_at(in_steps, "a").limits
    assert (limits.queues, limits.hand_size, limits.queue_length_limit) == (2, 1, 9)
    built_in = simulate(
        wanted, Options("", changes=("global-default.lendablePercent=null", "exempt.lendablePercent=3"))
    )
    assert result_at(built_in, "global-default").limits.min == result_at(built_in, "global-default").limits.nominal


def test_changed_level_replaces_the_former_one() -> None:
    known = Effective(build_workspace([], NEWEST), Assumptions())
    for text, is_valid in (("workload-low.queues=7", True), ("workload-low.queues=9999999999", False)):
        changed = apply_changes(apply_changes(known, [parse_change("workload-low.queues=9")]), [parse_change(text)])
        manifests = [(item.document.kind, item.document.name) for item in changed.workspace.manifests]
        assert manifests == [("PriorityLevelConfiguration", "workload-low")]
        assert [item.name for item in changed.workspace.priority_levels] == ["workload-low"] * is_valid


def test_shares_of_the_exempt_level_can_change() -> None:
    known = Effective(build_workspace([], NEWEST), Assumptions())
    changed = apply_changes(known, [parse_change("exempt.nominalConcurrencyShares=245")])
    limits = {level.name: level.nominal for level in changed.limits.levels}
    assert limits["exempt"] == 300  # the other levels have 245 shares, too


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.queues", "is not LEVEL.FIELD=VALUE"),
        ("queues=3", "is not LEVEL.FIELD=VALUE"),
        ("a.queue=3", 'Did you mean "queues"?'),
        ("a.zzzzzz=3", '"zzzzzz" is not one of '),
        ("a.queues=many", 'expected an integer, or null for the default value, not "many"'),
    ],
)
def test_invalid_change(text: str, words: str) -> None:
    with pytest.raises(UserError, match="--set") as caught:
        parse_change(text)
    assert words in str(caught.value)
    assert not str(caught.value).endswith(".")


def test_change_of_an_unknown_level() -> None:
    with pytest.raises(UserError, match=r'there is no priority level "workload-lo". Did you mean "workload-low"\?'):
        simulate(load(client("a", rate=1.0)), Options("", changes=("workload-lo.queues=3",)))


def test_arrivals_are_a_poisson_process() -> None:
    (source,) = list_sources(load(client("a", instances=4, rate=25.0), duration=200 * SECOND), 5)
    arrivals = list(source.arrivals)
    assert len(arrivals) == pytest.approx(20_000, abs=4 * 20_000**0.5)
    gaps = [(later.time - earlier.time) / SECOND for earlier, later in pairwise(arrivals)]
    # For a Poisson process, the proportion of gaps that are longer than the mean is 1/e.
    assert sum(gap > 0.01 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.015)
    assert sorted({arrival.instance for arrival in arrivals}) == [0, 1, 2, 3]
    assert [arrival.time for arrival in arrivals] == sorted(arrival.time for arrival in arrivals)


def test_service_times_have_the_percentiles_of_the_load() -> None:
    draws, service = Draws(1, "x"), log_normal(80, 1200)
    times = sorted(service.at(draws(number)) for number in range(20_000))
    assert times[10_000] == pytest.approx(80, rel=0.06)
    assert times[19_800] == pytest.approx(1200, rel=0.2)
    assert service.at(0.99) == 1200
    assert log_normal(80, 80).at(0.999) == 80


def test_burst_can_last() -> None:
    (source,) = list_sources(load(client("a", instances=2, bursts=(Burst(SECOND, 4, 2 * SECOND),))), 1)
    assert [(arrival.time, arrival.instance) for arrival in source.arrivals] == [
        (SECOND, 0),
        (1500 * MILLISECOND, 1),
        (2 * SECOND, 0),
        (2500 * MILLISECOND, 1),
    ]


def test_scale_multiplies_requests() -> None:
    burst = (Burst(0, 3),)
    scaled = load(client("a", rate=2.0, bursts=burst), client("b", instances=3, think=SECOND)).scale(Scaling(2.5))
    assert (scaled.clients[0].rate, scaled.clients[0].bursts) == (5.0, (Burst(0, 8),))
    assert (scaled.clients[1].instances, scaled.clients[0].instances) == (8, 1)


def test_loads_that_do_not_fit_into_memory_are_named_with_the_figure() -> None:
    steady = client("a", rate=100.0, instances=10, retries=Retries(2))
    assert count_requests(steady, 60 * SECOND) == 60_000
    assert count_in_flight(steady, 600 * SECOND) == 1000 * (15 + 0.01 + 2 * 32)
    assert count_in_flight(steady, 20 * SECOND) == 20_000  # all requests
    assert count_requests(client("b", think=SECOND, service=ServiceTime(SECOND)), 60 * SECOND) == 31
    assert not list(find_excess(load(steady)))
    assert not list(find_excess(load(client("b", rate=900_000.0), duration=SECOND)))
    ((path, message),) = find_excess(load(steady, client("b", rate=900_000.0, path=("clients", 1))))
    assert path == ("clients", 1)
    assert "up to 9,010,000 requests can be in flight at once" in message
    ((_, message),) = find_excess(load(steady, duration=200_000 * SECOND))
    assert "the load has 200,000,000 requests" in message
    alike, different = (client("c", user=user, instances=150_000, bursts=(Burst(0, 1),)) for user in ("c", "c-{n}"))
    assert not list(find_excess(load(alike)))
    ((_, message),) = find_excess(load(steady, alike, different))
    assert "the load has 150,000 clients with their own user or request, more than the maximum of 100,000" in message


def test_servers_that_do_not_fit_into_memory_or_time_are_named_with_the_figure() -> None:
    limits = simulate(load(client("a", bursts=(Burst(0, 1),))), Options("")).limits
    check_servers(900, 3600 * SECOND, limits)
    queues = sum(1 + (level.queues or 0) for level in limits.levels)
    with pytest.raises(UserError, match=f"the API servers have {1_000 * queues:,} queues and priority levels"):
        check_servers(1_000, SECOND, limits)
    with pytest.raises(UserError, match="the API servers adjust their limits 2,000,002 times"):
        check_servers(2, 10_000_005 * SECOND, limits)


@pytest.mark.parametrize(
    "further", [{"think": MILLISECOND}, {"rate": 100.0, "retries": Retries(9, MILLISECOND)}], ids=["closed", "retries"]
)
def test_rejected_clients_cannot_send_requests_without_end(
    further: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "MAX_FURTHER_REQUESTS", 500)
    reject = level("a", response="{type: Reject}")
    wanted = load(client("a", groups=("a",), instances=3, service=ServiceTime(5 * SECOND), **further))
    with pytest.raises(
        UserError, match=r"stops after \d simulated seconds, because clients sent 500 requests that follow"
    ):
        simulate(wanted, Options(reject, seats=1))


def test_timeout_in_the_request_must_be_longer_than_the_service_time() -> None:
    slow = client("a", request="--path /api/v1/pods?timeout=5s", rate=1.0, service=ServiceTime(5 * SECOND))
    known = Effective(build_workspace([], NEWEST), Assumptions())
    problems = [
        list(find_problems(wanted, Routes(wanted, Explainer(known))))
        for wanted in (load(slow), load(slow._replace(service=ServiceTime(4 * SECOND))))
    ]
    (((path, message),), others) = problems
    assert (path, others) == (("clients", 0, "request"), [])
    assert "the parameter `timeout` in the URL of the request is not longer than the median service time" in message


def test_borrowed_and_lent_seats_of_one_server_do_not_hide_those_of_another() -> None:
    user = "system:serviceaccount:ci:runner"
    busy = client("a", user=user, rate=250.0, service=ServiceTime(100 * MILLISECOND))
    idle = client("a", user=user, bursts=(Burst(0, 1),), service=ServiceTime(0))
    one, three, none = (
        result_at(simulate(load(wanted, duration=24 * SECOND, servers=servers), Options("", seats=60)), "workload-low")
        for wanted, servers in ((busy, 1), (busy, 3), (idle, 1))
    )
    assert three.seats == one.seats
    assert three.borrowed == one.borrowed > 1
    assert none.lent > 5
    assert three.lent == pytest.approx(one.lent + 2 * none.lent)  # the other servers have no requests


def test_servers_below_their_limits_do_not_borrow() -> None:
    both = client("a", user="system:serviceaccount:ci:runner", instances=2, rate=70.0, service=ServiceTime(SECOND // 5))
    found = result_at(simulate(load(both, servers=2), Options("", seats=60, changes=NO_LENDING)), "workload-low")
    assert found.seats > found.limits.nominal  # `seats` has the seats of both servers, `nominal` those of one
    assert found.borrowed == 0


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300))
def test_percentiles_of_a_histogram_are_1_percent_exact(times: list[int]) -> None:
    histogram, halves = Histogram(), (Histogram(), Histogram())
    for number, time in enumerate(times):
        histogram.add(time)
        halves[number % 2].add(time)
    found = histogram.summarize()
    assert found is not None
    times.sort()
    assert (found.number, found.max) == (len(times), times[-1])
    for part, value in zip((50, 90, 99), found[1:4], strict=True):
        exact = times[-(-len(times) * part // 100) - 1]
        assert exact <= value <= exact * 1.01
    halves[0].merge(halves[1])
    assert halves[0].summarize() == found


def test_flows_are_summarized_in_linear_time() -> None:
    class Counted(list[FlowTally]):
        rounds = 0

        def __iter__(self) -> Iterator[FlowTally]:
            self.rounds += 1
            return super().__iter__()

    tallies = Counted(FlowTally(number, SimulatedFlow("a", str(number)), "a") for number in range(50))
    for tally in [*tallies][:49]:
        tally.attempts = 1
    tallies.rounds = 0
    tallies[7].demand, tallies[8].demand = 2_100, 900
    flows = _summarize_flows(tallies)
    assert [number for number, flow in enumerate(flows) if flow.is_elephant] == [7, 8]
    assert tallies.rounds <= 2
    assert not any(flow.is_elephant for flow in _summarize_flows(tallies[7:9]))
    tallies[8].attempts = 0  # a flow with requests only in the warm-up does not count
    assert not any(flow.is_elephant for flow in _summarize_flows(tallies[7:9]))


@given(loads())
@settings(max_examples=15)
def test_warmup_counts_nothing_and_loses_nothing(wanted: Load) -> None:
    """A load with a warm-up has the same requests as a longer load, but the requests in the warm-up are not counted."""
    warmup = 2 * SECOND
    wanted = wanted._replace(
        clients=tuple(client._replace(bursts=()) for client in wanted.clients if client.think is None and client.rate)
    )
    longer = simulate(wanted._replace(duration=warmup + wanted.duration), SMALL)
    first = simulate(wanted._replace(duration=warmup), SMALL)
    found = simulate(wanted._replace(warmup=warmup), SMALL)
    for both, before, after in zip(longer.levels, first.levels, found.levels, strict=True):
        assert both.requests == before.requests + after.requests
        assert after.requests == after.executed + after.failed
        assert after.attempts == after.executed + after.expired + sum(after.rejected.values())
        assert sum(sample.rejected for sample in after.samples) == sum(after.rejected.values())
        assert after.peak <= both.peak
        assert all(row.requests for row in after.clients)
        assert sum(flow.attempts for flow in after.flows) == after.attempts


def test_steady_load_after_a_warmup_does_not_wait_for_its_seats() -> None:
    """An idle level lends most of its seats, and needs 20 seconds to get them back. The warm-up is longer."""
    steady = load(client("a", groups=("a",), rate=230.0, service=ServiceTime(SECOND)), duration=30 * SECOND)
    lending = level("a", 245).replace("lendablePercent: 0", "lendablePercent: 90")
    cold, warm = (
        result_at(simulate(steady._replace(warmup=warmup), Options(lending)), "a") for warmup in (0, 30 * SECOND)
    )
    assert cold.waited > 1000
    assert warm.waited == 0
    assert warm.samples[0].seats > 200


def test_times_of_bursts_and_results_begin_after_the_warmup() -> None:
    reject = Options(level("a", response="{type: Reject}"), seats=2)
    burst = load(client("a", groups=("a",), bursts=(Burst(4 * SECOND, 30),), service=ServiceTime(SECOND)))
    cold, warm = (result_at(simulate(burst._replace(warmup=warmup), reject), "a") for warmup in (0, 25 * SECOND))
    assert cold == warm
    assert warm.clients[0].first_rejection == 4 * SECOND


def test_requests_of_the_warmup_hold_seats_after_it() -> None:
    long = load(client("a", groups=("a",), think=100 * SECOND, instances=50, service=ServiceTime(20 * SECOND)))
    found = result_at(simulate(long._replace(warmup=100 * SECOND), Options(level("a"))), "a")
    assert found.samples[0].seats > 0
    assert found.peak >= found.samples[0].seats
    assert (found.requests, found.clients) == (0, ())


def test_fair_shares() -> None:
    assert max_min_shares(10, [1, 20, 20]) == [1, 4.5, 4.5]
    assert max_min_shares(10, [1, 2, 3]) == [1, 2, 3]
    assert measure_fairness([1, 4.5, 4.5], [1, 20, 20]) == pytest.approx(1)
    assert measure_fairness([9, 0, 0], [9, 9, 9]) == pytest.approx(1 / 3)
    assert measure_fairness([4, 5], [9, 9]) == pytest.approx(81 / 82)
    assert measure_fairness([9], [9]) is None
    assert measure_fairness([0, 0], [9, 9]) is None


def test_random_numbers_are_uniform_and_independent_of_the_order() -> None:
    draws = Draws(1, "a", "gap")
    numbers = [draws(number) for number in range(20_000)]
    assert all(0 < number < 1 for number in numbers)
    assert sum(numbers) / 20_000 == pytest.approx(0.5, abs=0.01)
    assert sum(-log(number) for number in numbers) / 20_000 == pytest.approx(1, abs=0.03)
    assert draws(7) == numbers[7]
    assert len({round(Draws(*key)(0), 9) for key in ((1, "a"), (2, "a"), (1, "b"))}) == 3


def test_memory_does_not_grow_with_the_duration() -> None:
    a = client("a", groups=("a",), rate=100.0, service=ServiceTime(30 * MILLISECOND), retries=Retries(1, SECOND))
    peaks = []
    for seconds in (3, 5, 15):  # the first run fills caches, so its peak is not compared
        tracemalloc.start()
        simulate(load(a, duration=seconds * SECOND), Options(level("a", 100), seats=5))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1]


def test_times_of_the_run_are_shown() -> None:
    shown: list[Any] = []
    simulate(load(client("a", rate=1.0), duration=120 * SECOND), Options(""), show=shown.append)
    assert shown[:2] == [SECOND, 2 * SECOND]
    assert len(shown) == 120
