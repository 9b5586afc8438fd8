"""Stored objects of a server, and the seats of lists of them."""

from __future__ import annotations

import pytest

from apflint.doctor.snapshot import Metrics, parse_part
from apflint.doctor.stored_objects import StoredObjects, list_stored_objects
from apflint.evaluate.seats import ListOptions
from apflint.releases import NEWEST, parse_release


def test_objects_of_each_resource() -> None:
    rows = {
        'apiserver_flowcontrol_nominal_limit_seats{priority_level="low"}': 1,
        'apiserver_resource_objects{group="apps",resource="deployments"}': 3,
        'apiserver_resource_objects{group="",resource="pods"}': 5,
        'apiserver_resource_objects{group="",resource="nodes"}': -1,
        'apiserver_resource_size_estimate_bytes{group="",resource="pods"}': 501,
        'apiserver_resource_size_estimate_bytes{group="apps",resource="deployments"}': -1,
    }
    content = parse_part("m", "".join(f"{name} {value}\n" for name, value in rows.items())).content
    assert isinstance(content, Metrics)
    assert list_stored_objects(content) == {
        ("apps", "deployments"): StoredObjects(3, None, 2),
        ("", "pods"): StoredObjects(5, 501, 3),
    }


@pytest.mark.parametrize(
    ("number", "size", "average"), [(5, 501, 100), (1, None, 0), (0, None, 0), (0, 7, 0), (7, 7, 1)]
)
def test_average_size(number: int, size: int | None, average: int) -> None:
    assert StoredObjects(number, size, 1).average == average


def test_seats_of_lists() -> None:
    large, unknown = StoredObjects(1000, 100_000_000, 1), StoredObjects(1000, None, 1)
    assert unknown.list_seats(NEWEST, ListOptions()) is None
    assert unknown.list_seats(parse_release("1.33"), ListOptions()) == 10
    assert StoredObjects(0, None, 1).list_seats(NEWEST, ListOptions()) == 1
    cached, stored = (large.list_seats(NEWEST, ListOptions(), consistent=value) for value in (True, False))
    assert cached is not None
    assert stored is not None
    assert cached < stored
    assert large.list_seats(NEWEST, ListOptions()) == cached
    assert large.list_seats(NEWEST, ListOptions(), 3) == 3
