"""Seats of single requests, compared with the estimates of a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate import seats
from apflint.proofs.request_space import VERBS

if TYPE_CHECKING:
    from pathlib import Path

_COUNTS: dict[str, seats.Count] = {"stale": "stale", "other": "stale", "notfound": "unknown"}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _estimate(row: dict[str, Any]) -> seats.Seats:
    """Return the estimate for a recorded request; the arguments come from its URL."""
    said, bound = row["expect"], row["pl_max_seats"]
    url = urlsplit(row["url"])
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    segments = [*url.path.split("/"), "", "", "", "", "", "", ""]
    resource, subresource = segments[5], segments[7]
    if said["verb"] not in ("list", "watch"):
        mutating = seats.is_mutating(said["verb"], resource, subresource)
        return seats.estimate_mutating_seats(said["watch_count"], bound) if mutating else seats.Seats(1)
    if not all(query.get(key, "0").isdigit() for key in ("limit", "timeoutSeconds")):
        return seats.estimate_undecodable_list_seats(bound)
    version = query.get("resourceVersion", "")
    initial = query.get("sendInitialEvents", "false") not in ("false", "0")
    if said["verb"] == "watch" and not seats.is_watch_list(version, send_initial_events=initial):
        return seats.Seats(1)
    limit = int(query.get("limit", "0"))
    cached = said["verb"] == "watch" or seats.is_listed_from_cache(
        version,
        query.get("resourceVersionMatch", ""),
        limit=limit,
        continued="continue" in query,
        consistent=row["id"].startswith("se-"),
    )
    return seats.estimate_list_seats(
        _COUNTS.get(row["stats_error"], row["object_count"]),
        row["avg_object_bytes"],
        bound,
        limit=limit,
        selector=bool(query.get("labelSelector") or query.get("fieldSelector")),
        from_cache=cached,
        single=bool(said["name"]),
    )


def _check_seats(rows: list[dict[str, Any]]) -> None:
    assert rows
    wrong = {}
    for row in rows:
        mine, said = _estimate(row), row["expect"]
        theirs = (said["initial_seats"], said["final_seats"], said["additional_latency_ns"], said["max_seats"])
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


# By hand from list_work_estimator.go: objects that are loaded times their size, 100 kB to a seat, rounded up.
@pytest.mark.parametrize(
    ("took", "objects", "size", "more"),
    [
        (1, 0, 0, {}),
        (1, 100, 1000, {}),  # just one seat
        (2, 101, 1000, {}),  # a byte more takes another
        (10, 2000, 1000, {}),  # from the cache never more than ten: it is streamed
        (20, 2000, 1000, {"from_cache": False}),
        (5, 2000, 1000, {"from_cache": False, "limit": 500}),
        (20, 2000, 1000, {"from_cache": False, "limit": 5000}),
        (10, 2000, 1000, {"from_cache": False, "limit": 500, "selector": True}),  # half of all has to be read
        (11, 2001, 1000, {"from_cache": False, "limit": 1001, "selector": True}),
        (10, 2001, 1000, {"from_cache": False, "limit": 500, "selector": True}),
        (1, 2000, 1000, {"from_cache": False, "single": True}),
        (2, 2000, 150_000, {"from_cache": False, "single": True}),
        (15, 1, 0, {"from_cache": False}),  # an object of unknown size may be as large as etcd takes
        (10, 1, 0, {}),
        (15, 2000, 0, {"from_cache": False, "limit": 1}),
        (100, "stale", 0, {"from_cache": False}),
        (10, "stale", 1000, {}),
        (15, "stale", 1000, {"from_cache": False, "limit": 1}),
        (1, "unknown", 1000, {"from_cache": False}),
    ],
)
def test_seats_of_a_list(took: int, objects: seats.Count, size: int, more: dict[str, Any]) -> None:
    assert seats.estimate_list_seats(objects, size, 0, **more) == seats.Seats(took, 0, 0)


def test_level_bounds_a_list() -> None:
    assert seats.estimate_list_seats(2000, 1000, 3, from_cache=False) == seats.Seats(3)
    assert seats.estimate_list_seats(2000, 1_000_000, 1000, from_cache=False) == seats.Seats(100)
    assert seats.estimate_undecodable_list_seats(0) == seats.Seats(100)
    assert seats.estimate_undecodable_list_seats(7) == seats.Seats(7)


@pytest.mark.parametrize(
    ("cached", "version", "match", "more"),
    [
        (True, "", "", {}),
        (False, "", "", {"consistent": False}),
        (True, "", "", {"limit": 500}),
        (True, "0", "", {"limit": 500}),
        (False, "12", "", {"limit": 500}),
        (True, "12", "", {}),
        (False, "12", "Exact", {}),
        (False, "0", "Exact", {}),
        (True, "12", "NotOlderThan", {"limit": 500}),
        (False, "", "", {"continued": True}),
        (False, "0", "", {"continued": True}),
    ],
)
def test_watch_cache_answers_lists(cached: bool, version: str, match: str, more: dict[str, Any]) -> None:
    assert seats.is_listed_from_cache(version, match, **more) is cached


def test_watch_may_begin_with_a_list() -> None:
    assert seats.is_watch_list()
    assert seats.is_watch_list("0")
    assert not seats.is_watch_list("12")
    assert seats.is_watch_list("12", send_initial_events=True)


def test_mutating_requests() -> None:
    assert [verb for verb in VERBS if seats.is_mutating(verb)] == ["create", "update", "patch", "delete"]
    assert not seats.is_mutating("create", "serviceaccounts", "token")
    assert seats.is_mutating("create", "serviceaccounts")
    assert seats.is_mutating("create", "pods", "token")


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 200),
    st.integers(0, 5000),
    st.booleans(),
    st.booleans(),
)
def test_list_takes_from_one_seat_to_its_bound(
    objects: int, size: int, bound: int, limit: int, selector: bool, cached: bool
) -> None:
    took = seats.estimate_list_seats(objects, size, bound, limit=limit, selector=selector, from_cache=cached)
    assert 1 <= took.initial <= (min(bound, 100) if bound else 100)
    assert took.final == took.nanoseconds == 0
    more = seats.estimate_list_seats(objects + 1, size, bound, limit=limit, selector=selector, from_cache=cached)
    # An empty resource has no size, so it is not compared with one of unknown size.
    assert more.initial >= took.initial
    if cached:
        assert took.initial <= 10


@given(st.integers(0, 10**6), st.integers(0, 200))
def test_bounded_change_holds_its_seats_longer(watchers: int, bound: int) -> None:
    took = seats.estimate_mutating_seats(watchers, bound)
    assert took.initial == 1
    assert took.final <= min(10, bound or 10)
    assert (took.final == 0) == (watchers < 10)
    # Seats times time is 5 ms for each ten watchers; what is lost is less than a nanosecond for each seat.
    wanted = -(-watchers // 10) * 5_000_000 if watchers >= 10 else 0
    assert 0 <= wanted - took.final * took.nanoseconds < 10
