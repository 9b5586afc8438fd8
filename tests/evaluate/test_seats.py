"""Seats of single requests, compared with the estimates of a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate import seats
from apflint.proofs.request_space import VERBS
from apflint.releases import RELEASES, parse_release
from apflint.requests.list_options import parse_list_options, reduce_list_options

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.releases import Release

_COUNTS: dict[str, seats.Count] = {"stale": "stale", "other": "stale", "notfound": "unknown"}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _estimate(row: dict[str, Any]) -> seats.Seats:
    """Return the estimate for a request recorded on 1.36.2; the arguments come from its URL."""
    recorded_seats, bound = row["expect"], row["pl_max_seats"]
    url = urlsplit(row["url"])
    segments = [*url.path.split("/"), "", "", "", "", "", "", ""]
    resource, subresource = segments[5], segments[7]
    verb = recorded_seats["verb"]
    if verb not in ("list", "watch"):
        mutating = seats.is_mutating(verb, resource, subresource)
        return seats.estimate_mutating_seats(recorded_seats["watch_count"], bound) if mutating else seats.Seats(1)
    reduced = reduce_list_options(row["url"], recorded_seats["name"])
    initial = seats.estimate_seats(
        parse_release("1.36"),
        verb,
        parse_list_options(reduced),
        _COUNTS.get(row["stats_error"], row["object_count"]),
        row["avg_object_bytes"],
        bound,
        consistent=row["id"].startswith("se-"),
    )
    return seats.Seats(initial)


def _check_seats(rows: list[dict[str, Any]]) -> None:
    assert rows
    wrong = {}
    for row in rows:
        mine, recorded_seats = _estimate(row), row["expect"]
        theirs = (
            recorded_seats["initial_seats"],
            recorded_seats["final_seats"],
            recorded_seats["additional_latency_ns"],
            recorded_seats["max_seats"],
        )
        if (*mine, mine.peak) != theirs:
            wrong[row["id"]] = (mine, theirs)
    assert wrong == {}


def test_seats_agree_with_the_server(root: Path) -> None:
    _check_seats(_rows(root / "fixtures/oracle-numbers/seats.jsonl"))


def test_seats_agree_with_all_recordings(shared: Path) -> None:
    _check_seats(_rows(shared / "oracle/seats/default.jsonl") + _rows(shared / "oracle/seats/server.jsonl"))


def _check_max_seats(rows: list[dict[str, Any]]) -> None:
    assert rows
    mine = {row["id"]: seats.max_seats(row["nominal"], row["hand_size"]) for row in rows}
    assert mine == {row["id"]: row["max_seats"] for row in rows}


def test_seat_bounds_agree_with_the_server(root: Path) -> None:
    _check_max_seats(_rows(root / "fixtures/oracle-numbers/max_seats.jsonl"))


def test_seat_bounds_agree_with_all_recordings(shared: Path) -> None:
    _check_max_seats(_rows(shared / "oracle/seats/max_seats.jsonl"))


# `took` was computed by hand from list_work_estimator.go. A list takes 1 seat for each 100 kB, rounded up. Its size is
# the number of loaded objects times the size of an object.
@pytest.mark.parametrize(
    ("took", "objects", "size", "options", "from_cache"),
    [
        (1, 0, 0, {}, True),
        (1, 100, 1000, {}, True),  # exactly one seat
        (2, 101, 1000, {}, True),  # one more object needs a second seat
        (10, 2000, 1000, {}, True),  # the cache streams its response, so the list takes at most 10 seats
        (20, 2000, 1000, {}, False),
        (5, 2000, 1000, {"limit": 500}, False),
        (20, 2000, 1000, {"limit": 5000}, False),
        (10, 2000, 1000, {"limit": 500, "selector": True}, False),  # the server assumes half of the objects
        (11, 2001, 1000, {"limit": 1001, "selector": True}, False),
        (10, 2001, 1000, {"limit": 500, "selector": True}, False),
        (1, 2000, 1000, {"single": True}, False),
        (2, 2000, 150_000, {"single": True}, False),
        (15, 1, 0, {}, False),  # an object of unknown size counts as the maximum size in etcd
        (10, 1, 0, {}, True),
        (15, 2000, 0, {"limit": 1}, False),
        (100, "stale", 0, {}, False),
        (10, "stale", 1000, {}, True),
        (15, "stale", 1000, {"limit": 1}, False),
        (1, "unknown", 1000, {}, False),
    ],
)
def test_seats_by_size(took: int, objects: seats.Count, size: int, options: Any, from_cache: bool) -> None:
    assert seats.estimate_by_size(seats.ListOptions(**options), objects, size, from_cache=from_cache) == took


# `took` was computed by hand from list_work_estimator.go of 1.33. A list takes 1 seat for each 100 objects.
@pytest.mark.parametrize(
    ("took", "objects", "options", "from_cache"),
    [
        (1, 0, {}, True),
        (1, 100, {}, True),
        (2, 101, {}, True),
        (10, 901, {"limit": 1}, True),  # for a list from the cache, all objects count
        (10, 5000, {}, True),
        (2, 100, {}, False),  # for a list from etcd, each object counts twice
        (1, 5000, {"limit": 50}, False),
        (2, 5000, {"limit": 51}, False),
        (4, 300, {"limit": 51, "selector": True}, False),  # with a selector: 300 objects plus 51 objects of the page
        (6, 300, {"limit": 5000, "selector": True}, False),
        (1, "unknown", {}, False),
        (10, "stale", {"limit": 1}, False),
    ],
)
def test_seats_by_count(took: int, objects: seats.Count, options: Any, from_cache: bool) -> None:
    assert seats.estimate_by_count(seats.ListOptions(**options), objects, 10, from_cache=from_cache) == took


def test_level_bounds_a_list() -> None:
    newest, exact = parse_release("1.36"), seats.ListOptions(match="Exact")
    assert seats.estimate_seats(newest, "list", exact, 2000, 1000, 3) == 3
    assert seats.estimate_seats(newest, "list", exact, 2000, 1_000_000, 1000) == 100
    for bound, took in ((0, 100), (7, 7)):
        assert seats.estimate_seats(newest, "list", seats.ListOptions(is_valid=False), 1, 1, bound) == took
        assert seats.estimate_seats(newest, "watch", seats.ListOptions(is_valid=False), 1, 1, bound) == took


# Options of a list. For each minor release: whether the watch cache answers the list, according to the source code.
_CACHE_CASES: tuple[tuple[dict[str, Any], dict[int, bool]], ...] = (
    ({}, {23: False, 30: False, 31: True, 33: True, 36: True}),
    ({"limit": 500}, {23: False, 30: False, 31: True, 36: True}),
    ({"resource_version": "0", "limit": 500}, {23: True, 30: True, 31: True, 36: True}),
    ({"resource_version": "0", "continued": True}, {23: False, 30: False, 31: False, 36: False}),
    ({"resource_version": "12"}, {23: True, 30: True, 31: True, 36: True}),
    ({"resource_version": "12", "limit": 500}, {23: False, 30: False, 32: False, 36: False}),
    ({"resource_version": "12", "match": "Exact"}, {23: False, 36: False}),
    ({"resource_version": "12", "match": "NotOlderThan", "limit": 5}, {23: False, 30: False, 31: True, 36: True}),
    ({"resource_version": "12", "match": "NotOlderThan", "continued": True}, {30: False, 32: False, 33: True}),
    ({"match": "NotOlderThan"}, {23: False, 30: False, 31: True, 33: True}),
    ({"resource_version": "12", "match": "other"}, {23: True, 26: True, 27: False, 31: False, 36: False}),
    ({"continued": True}, {23: False, 31: False, 36: False}),
)


@pytest.mark.parametrize(("options", "expected"), _CACHE_CASES)
def test_watch_cache_answers_lists(options: Any, expected: dict[int, bool]) -> None:
    for minor, is_cached in expected.items():
        release = parse_release(f"1.{minor}")
        assert seats.is_listed_from_cache(release, seats.ListOptions(**options)) is is_cached, minor


def test_newest_state_is_read_from_an_old_etcd() -> None:
    options = seats.ListOptions()
    assert not seats.is_listed_from_cache(parse_release("1.36"), options, consistent=False)
    assert seats.is_listed_from_cache(parse_release("1.36"), options._replace(resource_version="0"), consistent=False)


# `took` has the seats of six requests (see the test) for 5,000 objects of 4 kB, computed by hand.
@pytest.mark.parametrize(
    ("minors", "took"),
    [
        (range(18, 23), (1, 1, 1, 1, 1, 1)),
        (range(23, 31), (10, 10, 1, 1, 1, 10)),  # the second list is from etcd, so its 500 objects count twice
        ((31, 33), (10, 10, 1, 1, 1, 10)),
        ((32,), (10, 10, 1, 1, 10, 10)),
        ((34,), (10, 10, 1, 1, 10, 20)),  # 10 seats for 1 MB from the watch cache, 20 seats for 2 MB from etcd
        ((35, 36, 37), (10, 10, 10, 1, 10, 20)),
    ],
)
def test_seats_by_release(minors: Any, took: tuple[int, ...]) -> None:
    requests: tuple[tuple[Any, seats.ListOptions], ...] = (
        ("list", seats.ListOptions()),
        ("list", seats.ListOptions(limit=500)),
        ("watch", seats.ListOptions()),
        ("watch", seats.ListOptions(resource_version="12")),
        ("watch", seats.ListOptions(resource_version="12", send_initial_events=True)),
        ("list", seats.ListOptions(limit=500, continued=True)),
    )
    for minor in minors:
        release = parse_release(f"1.{minor}")
        assert tuple(seats.estimate_seats(release, *request, 5000, 4000, 0) for request in requests) == took, minor


def test_list_of_a_single_object_takes_one_seat_until_the_size_counts() -> None:
    single = seats.ListOptions(single=True, is_valid=False)
    assert seats.estimate_seats(parse_release("1.33"), "list", single, 5000, 4000, 0) == 1
    assert seats.estimate_seats(parse_release("1.34"), "list", single, 5000, 4000, 0) == 100
    assert seats.estimate_seats(parse_release("1.34"), "list", single._replace(is_valid=True), 9, 10**6, 0) == 10


def test_mutating_requests() -> None:
    assert [verb for verb in VERBS if seats.is_mutating(verb)] == ["create", "update", "patch", "delete"]
    assert not seats.is_mutating("create", "serviceaccounts", "token")
    assert seats.is_mutating("create", "serviceaccounts")
    assert seats.is_mutating("create", "pods", "token")


@given(
    st.sampled_from(RELEASES),
    st.sampled_from(["list", "watch"]),
    st.builds(
        seats.ListOptions,
        st.integers(0, 5000),
        st.sampled_from(["", "0", "other"]),
        st.sampled_from(["", "Exact", "NotOlderThan", "other"]),
        *[st.booleans()] * 5,
    ),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 200),
)
def test_list_takes_from_one_seat_to_its_bound(
    release: Release, verb: Any, options: seats.ListOptions, objects: int, size: int, bound: int
) -> None:
    took = seats.estimate_seats(release, verb, options, objects, size, bound)
    maximum = release.max_list_seats
    assert 1 <= took <= (min(bound, maximum) if bound else maximum)
    assert seats.estimate_seats(release, verb, options, objects + 1, size, bound) >= took
    assert seats.estimate_seats(release, verb, options, "stale", size, bound) >= took
    assert seats.estimate_seats(release, verb, options._replace(is_valid=True), "unknown", size, bound) == 1


@given(st.integers(0, 10**6), st.integers(0, 200))
def test_bounded_change_holds_its_seats_longer(watchers: int, bound: int) -> None:
    took = seats.estimate_mutating_seats(watchers, bound)
    assert took.initial == 1
    assert took.final <= min(10, bound or 10)
    assert (took.final == 0) == (watchers < 10)
    # The work (final seats times their duration) is 5 ms for each ten watchers, and the number of tens
    # is rounded up. The duration is rounded down, which loses less than a nanosecond for each of the at
    # most ten seats.
    wanted = -(-watchers // 10) * 5_000_000 if watchers >= 10 else 0
    assert 0 <= wanted - took.final * took.nanoseconds < 10
