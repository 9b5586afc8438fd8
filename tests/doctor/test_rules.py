"""Rules about a running server: cases that the examples on their pages do not show."""

from __future__ import annotations

import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import builders
from support.recordings import TOTAL, read_moment, recorded_objects
from support.server_examples import diagnose_files

from apflint.builtin import load_objects
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import Waits, compute_state
from apflint.doctor.manifest_comparison_findings import find_restored, spec_restored
from apflint.doctor.server_seats import find_totals
from apflint.doctor.snapshot import group_servers, parse_part
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.location import Place
from apflint.releases import NEWEST, parse_release
from apflint.workspace import build_workspace


def lines(*rows: str) -> str:
    return "".join(f"apiserver_flowcontrol_{row}\n" for row in rows)


def level(name: str, nominal: int, low: int, high: int, current: int, used: int, waiting: int = 0) -> tuple[str, ...]:
    label, both = f'{{priority_level="{name}"}}', f'{{flow_schema="a",priority_level="{name}"}}'
    return (
        f"nominal_limit_seats{label} {nominal}",
        f"lower_limit_seats{label} {low}",
        f"upper_limit_seats{label} {high}",
        f"current_limit_seats{label} {current}",
        f"current_executing_seats{both} {used}",
        f"current_inqueue_requests{both} {waiting}",
    )


def messages(rule: str, *rows: str, **more: int) -> list[tuple[str, str]]:
    found = diagnose_files({"m": lines(*rows)}, more.get("server_concurrency")).findings
    return [(finding.severity, finding.message) for finding in found if finding.rule == rule]


@pytest.mark.parametrize(("rejected", "severity"), [(1, "info"), (2, "warning")])
def test_few_rejections_are_an_info(rejected: int, severity: str) -> None:
    """1 rejection of 1,000 requests is an info, and 2 of 1,001 are a warning."""
    found = messages(
        "APF801",
        'nominal_limit_seats{priority_level="low"} 1',
        'dispatched_requests_total{flow_schema="a",priority_level="low"} 999',
        f'rejected_requests_total{{flow_schema="a",priority_level="low",reason="time-out"}} {rejected}',
    )
    assert [found_severity for found_severity, _ in found] == [severity]


def test_rejections_are_counted_by_reason_and_flow_schema() -> None:
    rows = (("a", "time-out", 2), ("a", "queue-full", 3), ("b", "queue-full", 4))
    rejected = (
        f'rejected_requests_total{{flow_schema="{schema}",priority_level="low",reason="{reason}"}} {count}'
        for schema, reason, count in rows
    )
    report = diagnose_files({"m": lines('nominal_limit_seats{priority_level="low"} 1', *rejected)})
    (finding,) = (finding for finding in report.findings if finding.rule == "APF801")
    assert finding.message.startswith('"low" rejected 9 requests ')
    assert finding.message.endswith(": 7 queue-full, 2 time-out")
    assert "By FlowSchema: a (5) and b (4)." in finding.notes


@pytest.mark.parametrize(("version", "seats"), [
    ("v1.33.0", "Large lists take up to 10 seats. Changes that many watchers observe take up to 10 seats."),
    ("v1.36.0", "Large lists take up to 100 seats (up to 10 if the server answers from the watch cache). Changes that many watchers observe take up to 10 seats."),
])  # fmt: skip
def test_widest_requests_of_a_release(version: str, seats: str) -> None:
    buckets = (
        f'work_estimated_seats_bucket{{priority_level="low",le="{bound}"}} {n}' for bound, n in (("2", 8), ("4", 9))
    )
    text = lines(*level("low", 2, 1, 610, 2, 0), *buckets)
    report = diagnose_files({"m": f'{text}kubernetes_build_info{{git_version="{version}"}} 1\n'})
    (finding,) = (finding for finding in report.findings if finding.rule == "APF813")
    assert finding.notes[-1] == seats


def test_wide_requests_of_all_flow_schemas_are_counted() -> None:
    buckets = (
        f'work_estimated_seats_bucket{{flow_schema="{schema}",priority_level="low",le="{bound}"}} {n}'
        for schema, counts in (("a", (8, 9)), ("b", (5, 7)))
        for bound, n in zip(("2", "4"), counts, strict=True)
    )
    ((_, message),) = messages("APF813", *level("low", 2, 1, 610, 2, 0), *buckets)
    assert message == '3 requests needed more than 2 seats at "low", which has 2'


def test_waits_beyond_all_buckets_are_infinite() -> None:
    assert Waits(2, ((1.0, 1), (10.0, 1))).quantile(1) == inf


def test_idle_levels_that_do_not_lend() -> None:
    busy = level("low", 10, 10, 610, 10, 10, waiting=1)
    (finding,) = messages("APF803", *busy, *level("high", 20, 20, 620, 20, 1))
    assert finding == ("warning", '"low" uses all of its seats (10) while other levels have 19 idle seats')
    # If the other level can lend one more seat, the next adjustment moves this seat, so there is no finding.
    assert messages("APF803", *busy, *level("high", 20, 19, 620, 20, 1)) == []
    assert messages("APF803", *busy, *level("high", 20, 20, 620, 20, 20)) == []
    # A level that gets seats soon must not hide a level that has reached its maximum.
    full = level("second", 10, 10, 10, 10, 10, waiting=1)
    (finding,) = messages("APF803", *busy, *full, *level("third", 20, 19, 620, 20, 1))
    assert finding[1].startswith('"second" uses all of its seats')
    assert messages("APF803", *level("low", 10, 10, 610, 10, 9, waiting=1), *level("high", 20, 20, 620, 20, 1)) == []
    assert messages("APF803", *level("low", 10, 10, 610, 10, 10), *level("high", 20, 20, 620, 20, 1)) == []


@pytest.mark.parametrize(("version", "count"), [("v1.25.9", 1), ("v1.26.0", 0)])
def test_levels_without_borrowing(version: str, count: int) -> None:
    """Up to 1.25, the limit of a level is always its nominal limit."""
    limit, used, waiting = "request_concurrency_limit", "request_concurrency_in_use", "current_inqueue_requests"
    rows = [
        f'{limit}{{priority_level="low"}} 10',
        f'{limit}{{priority_level="high"}} 20',
        f'{used}{{flow_schema="a",priority_level="low"}} 10',
        f'{waiting}{{flow_schema="a",priority_level="low"}} 3',
    ]
    report = diagnose_files({"m": f'{lines(*rows)}kubernetes_build_info{{git_version="{version}"}} 1\n'})
    found = [finding for finding in report.findings if finding.rule == "APF803"]
    assert [finding.message for finding in found] == [
        '"low" uses all of its seats (10) while other levels have 20 idle seats'
    ] * count
    assert all("In Kubernetes 1.25, levels cannot borrow seats." in finding.notes[-1] for finding in found)


def test_borrowed_seats_of_exempt_requests_are_not_idle() -> None:
    """Together, the current limits of all levels may be more than the seats of the server."""
    exempt = 'upper_limit_seats{priority_level="exempt"} 30'
    rows = (*level("low", 10, 10, 610, 10, 10, waiting=1), *level("high", 20, 20, 620, 20, 1))
    nominal = 'nominal_limit_seats{priority_level="exempt"} 0'
    busy = 'current_executing_seats{flow_schema="exempt",priority_level="exempt"} '
    assert len(messages("APF803", *rows, nominal, exempt, f"{busy}18")) == 1
    assert messages("APF803", *rows, nominal, exempt, f"{busy}19") == []


@pytest.mark.parametrize(("current", "severity"), [(11, "warning"), (12, "info")])
def test_demand_that_borrowed_seats_satisfy_is_an_info(current: int, severity: str) -> None:
    rows = level("low", 10, 10, 610, current, 10)
    demand = [f'demand_seats_{name}{{priority_level="low"}} 12' for name in ("average", "smoothed")]
    assert [found for found, _ in messages("APF804", *rows, *demand)] == [severity]


@pytest.mark.parametrize(("earlier", "count"), [((11,), 1), ((10,), 0), ((11, 11), 1), ((11, 10), 0), ((10, 11), 0)])
def test_every_snapshot_must_show_the_demand(earlier: tuple[int, ...], count: int) -> None:
    def snapshot(age: float, demand: int) -> str:
        rows = [f'demand_seats_{name}{{priority_level="low"}} {demand}' for name in ("average", "smoothed")]
        clock = f'demand_seats_count{{priority_level="low"}} {age * 1e9:.0f}'
        return f"process_start_time_seconds 1\n{lines(*level('low', 10, 10, 610, 10, 10), *rows, clock)}"

    files = {f"{at}": snapshot(10 + at, demand) for at, demand in enumerate(earlier)}
    found = diagnose_files({**files, "last": snapshot(40, 12)}).findings
    assert [finding.rule for finding in found].count("APF804") == count


@pytest.mark.parametrize(("nominal", "current", "count"), [(2, 2, 1), (4, 2, 0), (2, 4, 0)])
def test_level_that_lends_is_not_too_narrow(nominal: int, current: int, count: int) -> None:
    widths = [
        f'work_estimated_seats_bucket{{priority_level="low",le="{bound}"}} {n}' for bound, n in (("2", 8), ("4", 9))
    ]
    assert len(messages("APF813", *level("low", nominal, 1, 610, current, 0), *widths)) == count


@pytest.mark.parametrize(("requests", "severity"), [(1, "info"), (2, "warning")])
def test_few_requests_at_catch_all_are_an_info(requests: int, severity: str) -> None:
    """1 request of 100 is an info, and 2 of 101 are a warning."""
    found = messages(
        "APF809",
        'nominal_limit_seats{priority_level="catch-all"} 1',
        'nominal_limit_seats{priority_level="low"} 1',
        f'dispatched_requests_total{{flow_schema="catch-all",priority_level="catch-all"}} {requests}',
        'dispatched_requests_total{flow_schema="a",priority_level="low"} 99',
    )
    assert [found_severity for found_severity, _ in found] == [severity]


def test_rejected_requests_at_catch_all_count() -> None:
    rejected = 'rejected_requests_total{flow_schema="catch-all",priority_level="catch-all",reason="time-out"} 2'
    ((severity, message),) = messages("APF809", 'nominal_limit_seats{priority_level="catch-all"} 1', rejected)
    assert (severity, message) == ("warning", "catch-all got 2 of 2 requests since the start of the server")


LEASES = "/apis/coordination.k8s.io/v1"
SYSTEM_LEASE = f"{LEASES}/namespaces/kube-system/leases/a"
ACCOUNT = "system:serviceaccount:kube-system:a"


@pytest.mark.parametrize(("user", "verb", "path", "place", "home"), [
    ("system:node:a", "get", "/api/v1/namespaces/x/pods/a", "low", "system"),
    ("system:node:a", "get", "/api/v1/namespaces/x/pods/a", "system", None),
    ("system:node:a", "update", f"{LEASES}/namespaces/kube-node-lease/leases/a", "node-high", None),
    ("system:node:a", "update", f"{LEASES}/namespaces/kube-node-lease/leases/a", "system", "node-high"),
    ("system:nodes-of-mine", "get", "/api/v1/namespaces/x/pods/a", "low", None),
    ("system:kube-controller-manager", "list", "/api/v1/pods", "workload-high", None),
    ("system:kube-controller-manager", "list", "/api/v1/pods", "exempt", None),
    ("system:kube-controller-manager", "list", "/api/v1/pods", "global-default", None),  # APF821 reports this request
    ("system:kube-controller-manager", "update", SYSTEM_LEASE, "workload-high", "leader-election"),
    # The FlowSchema system-leader-election matches get, create and update, but not list.
    ("system:kube-controller-manager", "list", f"{LEASES}/leases", "workload-high", None),
    (ACCOUNT, "update", SYSTEM_LEASE, "low", "leader-election"),
    (ACCOUNT, "list", "/api/v1/pods", "low", None),
    ("ann", "update", SYSTEM_LEASE, "low", None),
])  # fmt: skip
def test_homes_of_system_traffic(user: str, verb: str, path: str, place: str, home: str | None) -> None:
    titles = (
        "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime, InitialSeats, FinalSeats,"
        " AdditionalLatency, StartTime, UserName, Verb, APIPath, Namespace, Name, APIVersion, Resource, SubResource\n"
    )
    moment = "2026-11-22T05:51:00Z"
    row = f"{place}, all, 0, 0, x, {moment}, 1, 0, 0s, {moment}, {user}, {verb}, {path}, , , v1, x, \n"
    names = ("system", "node-high", "workload-high", "leader-election", "low", "global-default", "exempt")
    metrics = lines(*(f'nominal_limit_seats{{priority_level="{name}"}} 1' for name in names))
    found = [
        finding for finding in diagnose_files({"m": metrics, "d": titles + row}).findings if finding.rule == "APF810"
    ]
    assert [finding.notes[0] for finding in found] == (
        [f'The built-in configuration assigns this request to the priority level "{home}".'] if home is not None else []
    )


@pytest.mark.parametrize(("user", "place", "count"), [
    ("system:node:a", "low", 1),
    ("system:node:b", "low", 2),
    ("system:node:a", "other", 2),
])  # fmt: skip
def test_system_traffic_is_reported_once_for_each_user_and_level(user: str, place: str, count: int) -> None:
    rows = [
        f"{level}, all, 0, 0, x, {MOMENT}, 1, 0, 0s, {MOMENT}, {name}, get, /api/v1/namespaces/x/pods/a, , , v1, x, \n"
        for name, level in (*[("system:node:a", "low")] * 2, (user, place))
    ]
    metrics = lines(*(f'nominal_limit_seats{{priority_level="{name}"}} 1' for name in ("system", "low", "other")))
    assert found_rules({"m": metrics, "d": TITLES + "".join(rows)}).count("APF810") == count


def test_quiescing_level_is_not_advised() -> None:
    """APF814 reports a deleted level, so no other rule gives advice about the configuration of this level."""
    rows = [*level("low", 10, 10, 10, 10, 10, waiting=1), *level("high", 20, 20, 620, 20, 1)]
    rows += ['demand_seats_average{priority_level="low"} 11', 'demand_seats_smoothed{priority_level="low"} 11']
    dump = (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests\n"
        "low, 1, false, {}, 1, 10\nhigh, 0, false, false, 0, 1\n"
    )
    for is_quiescing, rules in (("false", {"APF803", "APF804"}), ("true", {"APF814"})):
        report = diagnose_files({"m": lines(*rows), "d": dump.format(is_quiescing)})
        assert {finding.rule for finding in report.findings} == rules


@pytest.mark.parametrize(("seconds", "severity"), [(19, "info"), (20, "warning")])
def test_short_burst_is_an_info(seconds: int, severity: str) -> None:
    """The bucket `1` contains the nanoseconds in which the demand was at most the current limit. `+Inf` contains all
    nanoseconds since the start of the server."""
    bucket = 'demand_seats_bucket{priority_level="low",le='
    rows = (
        *level("low", 10, 10, 610, 10, 10),
        'demand_seats_average{priority_level="low"} 11',
        'demand_seats_smoothed{priority_level="low"} 11',
        f'{bucket}"1"}} {(3600 - seconds) * 1e9}',
        f'{bucket}"+Inf"}} {3600 * 1e9}',
    )
    (finding,) = diagnose_files({"m": lines(*rows)}).findings
    assert (finding.rule, finding.severity) == ("APF804", severity)
    assert f"For {seconds} of 3600 s, the demand exceeded the seats that the level had." in finding.notes


def test_rejections_of_a_dump() -> None:
    """The dump of levels contains the number of rejected requests, but not their reasons."""
    dump = (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests,"
        " RejectedRequests, TimedoutRequests, CancelledRequests\nlow, 0, true, false, 0, 0, 9, {}, 0, 0\n"
    )
    (finding,) = diagnose_files({"d": dump.format(3)}).findings
    assert finding.message == '"low" rejected 3 requests since the start of the server'
    assert finding.notes[0] == "Only metrics show the reasons and the FlowSchemas of rejections."
    assert diagnose_files({"d": dump.format(0)}).findings == ()


def test_clients_of_a_level_without_queues() -> None:
    metrics = lines(
        'nominal_limit_seats{priority_level="low"} 1',
        'rejected_requests_total{flow_schema="a",priority_level="low",reason="concurrency-limit"} 7',
    )
    moment = "2026-11-22T05:51:00Z"
    titles = (
        "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime, UserName\n"
    )
    row = f"low, a, -1, -1, , {moment}, eve\n"
    (finding,) = diagnose_files({"m": metrics, "d": titles + row}).findings
    assert (
        finding.notes[-1]
        == "The busiest flow in the dump has 1 of 1 executing request: the flow of the FlowSchema a, by eve."
    )
    (finding,) = diagnose_files(
        {"m": metrics, "d": titles.replace(", UserName", "") + row.replace(", eve", "")}
    ).findings
    assert (
        finding.notes[-1] == "The busiest flow in the dump has 1 of 1 executing request: the flow of the FlowSchema a."
    )
    (finding,) = diagnose_files({"m": metrics}).findings
    assert "save dump_requests with includeRequestDetails=1" in finding.notes[-1]


def recorded(server_concurrency: int | None, change: tuple[str, str] = ("", "")) -> list[str]:
    parts = {
        part.source.name: part.source.text.replace(*change) for part in read_moment("0-idle") if part.kind == "metrics"
    }
    objects = json.dumps({"kind": "List", "apiVersion": "v1", "items": recorded_objects("0-idle")})
    found = diagnose_files({**parts, "objects.yml": objects}, server_concurrency).findings
    return [f"{finding.message} {finding.notes[-1]}" for finding in found if finding.rule == "APF806"]


def test_other_server_concurrency_than_expected() -> None:
    assert recorded(None) == []
    assert recorded(TOTAL) == []
    (text,) = recorded(TOTAL + 1)
    assert text.startswith("the server has a concurrency limit of 30 seats instead of 31 ")


def test_limits_of_other_manifests() -> None:
    row = 'apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} '
    (text,) = recorded(TOTAL, (f"{row}11", f"{row}12"))
    assert text.startswith(
        "the limits of 1 level differ from the manifests The server concurrency limit is not the reason"
    )
    row = row.replace("nominal", "lower")
    (text,) = recorded(TOTAL, (f"{row}1", f"{row}2"))
    assert text.endswith(" so lendablePercent or borrowingLimitPercent differ.")


def test_total_that_explains_the_limits() -> None:
    """Without the limits of the level `exempt`, the server concurrency limit is unknown.

    The expected limits are then those for 600 seats, the default.
    """
    (text,) = recorded(None, ('apiserver_flowcontrol_upper_limit_seats{priority_level="exempt"} 30\n', ""))
    assert "A server concurrency limit of 29 to 31 would explain the nominal limits" in text


@pytest.mark.parametrize(
    ("expected", "row", "severity"), [(None, "", "info"), (600, "", "warning"), (None, "slow", "warning")]
)
def test_assumed_total_is_an_info(expected: int | None, row: str, severity: str) -> None:
    """If the server concurrency limit is unknown, the expected limits are computed for the default of 600 seats.

    The finding is an info if another server concurrency limit would explain the differences. The finding is a warning
    if no server concurrency limit would explain them, because only the limit of `slow` differs. The finding is also a
    warning if the user has given the limit of 600 seats.
    """
    (part,) = (part for part in read_moment("0-idle") if part.kind == "metrics")
    text = part.source.text.replace('apiserver_flowcontrol_upper_limit_seats{priority_level="exempt"} 30\n', "")
    text = text.replace(
        f'nominal_limit_seats{{priority_level="{row}"}} 2\n', f'nominal_limit_seats{{priority_level="{row}"}} 7\n'
    )
    objects = json.dumps({"kind": "List", "apiVersion": "v1", "items": recorded_objects("0-idle")})
    found = diagnose_files({"m": text, "objects.yml": objects}, expected).findings
    assert [finding.severity for finding in found if finding.rule == "APF806"] == [severity]


@given(total=st.integers(1, 5000), release=st.sampled_from(["1.25", "1.28", "1.36"]))
def test_total_is_found(total: int, release: str) -> None:
    """All server concurrency limits in the returned range give the same nominal limits, and the next ones outside do not."""

    def limits(seats: int) -> dict[str, int]:
        effective = Effective(build_workspace([], parse_release(release)), Assumptions(server_concurrency=seats))
        return {one.name: one.nominal for one in effective.limits.levels if one.nominal}

    effective = Effective(build_workspace([], parse_release(release)), Assumptions())
    totals = find_totals(limits(total), effective.limits)
    assert totals is not None
    first, last = totals
    assert first <= total <= last
    assert limits(first) == limits(last) == limits(total)
    assert first == 1 or limits(first - 1) != limits(total)
    assert limits(last + 1) != limits(total)


@pytest.mark.parametrize(
    ("value", "is_possible"), [("9e18", True), ("-9e18", False), ("1e300", False), ("1e308", False)]
)
def test_huge_limits(value: str, is_possible: bool) -> None:
    row = 'apiserver_flowcontrol_nominal_limit_seats{priority_level="slow"} '
    found = recorded(None, (f"{row}2", f"{row}{value}"))
    assert [text.startswith("the limits of 1 level differ") for text in found] == [True] * is_possible


def test_no_total_gives_contradictory_limits() -> None:
    effective = Effective(build_workspace([], parse_release("1.36")), Assumptions())
    assert find_totals({"workload-low": 245, "system": 1}, effective.limits) is None
    assert find_totals({"unknown": 1}, effective.limits) is None


TITLES = (
    "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime, InitialSeats, FinalSeats,"
    " AdditionalLatency, StartTime, UserName, Verb, APIPath, Namespace, Name, APIVersion, Resource, SubResource\n"
)
MOMENT = "2026-11-22T05:51:00Z"


def found_rules(files: dict[str, str]) -> list[str]:
    return [finding.rule for finding in diagnose_files(files).findings]


@pytest.mark.parametrize(("nominal", "seats", "verb", "name", "count"), [
    (6, 1, "list", "", 1),
    (7, 1, "list", "", 0),  # the level allows 2 seats (15% of 7, rounded up), so it does not limit the list to 1 seat
    (6, 2, "list", "", 0),
    (6, 1, "get", "", 0),
    (6, 1, "list", "a", 0),  # a list with a name returns only one object
])  # fmt: skip
def test_lists_that_the_level_caps(nominal: int, seats: int, verb: str, name: str, count: int) -> None:
    row = f"low, all, 0, -1, x, {MOMENT}, {seats}, 0, 0s, {MOMENT}, ann, {verb}, /apis/apps/v1/deployments, , {name}, v1, deployments, \n"
    metrics = (
        'kubernetes_build_info{git_version="v1.33.1"} 1\n'
        f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="low"}} {nominal}\n'
        # If the sizes are unknown, the server counts one seat for 100 objects.
        'apiserver_storage_objects{resource="deployments.apps"} 101\n'
    )
    queues = "PriorityLevelName, Index, PendingRequests, ExecutingRequests, SeatsInUse\nlow, 0, 0, 1, 1\n"
    assert found_rules({"m": metrics, "q": queues, "d": TITLES + row}).count("APF818") == count


@pytest.mark.parametrize(("place", "resource", "count"), [
    ("low", "pods", 1), ("low", "nodes", 2), ("other", "pods", 2)
])  # fmt: skip
def test_capped_lists_are_reported_once_for_each_level_and_resource(place: str, resource: str, count: int) -> None:
    rows = [
        f"{level}, all, 0, -1, x, {MOMENT}, 1, 0, 0s, {MOMENT}, ann, list, /api/v1/{name}, , , v1, {name}, \n"
        for level, name in (("low", "pods"), (place, resource))
    ]
    rows.insert(
        0, rows[0].replace(" list, ", " get, ")
    )  # the first row is a `get` request for the resource, and must not suppress the findings about lists
    metrics = 'kubernetes_build_info{git_version="v1.33.1"} 1\n' + "".join(
        [f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="{name}"}} 6\n' for name in ("low", "other")]
        + [f'apiserver_storage_objects{{resource="{name}"}} 101\n' for name in ("pods", "nodes")]
    )
    queues = (
        "PriorityLevelName, Index, PendingRequests, ExecutingRequests, SeatsInUse\nlow, 0, 0, 1, 1\nother, 0, 0, 1, 1\n"
    )
    assert found_rules({"m": metrics, "q": queues, "d": TITLES + "".join(rows)}).count("APF818") == count


@pytest.mark.parametrize(("user", "verb", "path", "count"), [
    ("system:serviceaccount:ci:runner", "list", "/api/v1/pods", 1),
    ("system:serviceaccount:ci:runner", "watch", "/api/v1/pods", 1),
    ("system:serviceaccount:ci:runner", "create", "/api/v1/namespaces/ci/pods", 1),
    ("system:node:a", "get", "/api/v1/nodes/a", 1),
    ("ann", "get", "/healthz", 1),
    ("ann", "get", "/metrics", 0),
    ("ann", "get", "%", 0),
])  # fmt: skip
def test_better_places_for_requests(user: str, verb: str, path: str, count: int) -> None:
    row = f"global-default, global-default, 0, 0, x, {MOMENT}, 1, 0, 0s, {MOMENT}, {user}, {verb}, {path}, , , v1, , \n"
    files = {"m": lines('nominal_limit_seats{priority_level="global-default"} 1'), "d": TITLES + row}
    assert found_rules(files).count("APF821") == count
    assert "APF810" not in found_rules(files)


def test_better_place_by_a_dangling_flow_schema() -> None:
    """The FlowSchema `ann` matches the request, but its level does not exist, so the request is at global-default.

    APF821 reports this request.
    """
    schema = builders.flow_schema("ann", "batsh", subjects=[builders.user("ann")])
    row = f"global-default, global-default, 0, 0, x, {MOMENT}, 1, 0, 0s, {MOMENT}, ann, list, /api/v1/pods, , , v1, pods, \n"
    metrics = lines('nominal_limit_seats{priority_level="global-default"} 1')
    files = {"m": metrics, "d": TITLES + row, "a.yml": json.dumps(schema)}
    assert found_rules(files).count("APF821") == 1
    assert found_rules({**files, "d": TITLES + row.replace("ann", "bob")}).count("APF821") == 0
    same = builders.flow_schema("ann", "global-default", subjects=[builders.user("ann")])
    assert found_rules({**files, "a.yml": json.dumps(same)}).count("APF821") == 0


@pytest.mark.parametrize("quiescing", ["true", "false"])
def test_flow_schema_of_a_quiescing_level_dangles(quiescing: str) -> None:
    schema = json.dumps(builders.flow_schema("ann", "batch"))
    dump = (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests\n"
        f"batch, 0, false, {quiescing}, 0, 1\n"
    )
    assert found_rules({"d": dump, "a.yml": schema}).count("APF819") == (quiescing == "true")


@pytest.mark.parametrize(("stored", "names"), [(9900, ["global-default"]), (9000, [])])
def test_flow_schema_that_the_server_restored(stored: int, names: list[str]) -> None:
    """The manifest changes the precedence of a built-in FlowSchema.

    If the cluster has the built-in precedence, the server has restored the FlowSchema.
    """

    def effective(precedence: int) -> Effective:
        built_in = load_objects(NEWEST).flow_schemas
        value = next(json.loads(json.dumps(item.document.value)) for item in built_in if item.name == "global-default")
        value["spec"]["matchingPrecedence"] = precedence
        del value["metadata"]["annotations"]
        return Effective(build_workspace(load_inputs([("a.yml", json.dumps(value).encode())]), NEWEST))

    (server,) = group_servers([parse_part("m", lines('nominal_limit_seats{priority_level="low"} 1'))])
    evidence = Evidence(compute_state(server), effective(9000), None, effective(stored))
    assert [item.name for item in find_restored(evidence)] == names
    restored = list(spec_restored(evidence))
    assert [diagnosis.object for diagnosis in restored] == [("FlowSchema", name) for name in names]
    assert all(isinstance(found.problem.place, Place) and found.problem.place.key for found in restored)
