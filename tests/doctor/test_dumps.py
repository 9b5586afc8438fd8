"""The parser of debug dumps: values with commas, columns of other releases, and incomplete rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from support.recordings import LIVE, read_text

from apflint.doctor.dumps import RequestRow, looks_like_dump, parse_level_rows, parse_queue_rows, parse_request_rows
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

REQUESTS = read_text(LIVE / "4-mixed.requests.txt")
TITLES = REQUESTS.split("\n", maxsplit=1)[0]
TIME, NEVER = "2026-11-22T05:51:00.36079680Z", "0001-01-01T00:00:00Z"


def request_row(distinguisher: str = "ann", user: str = "ann", path: str = "/api/v1/pods", name: str = "") -> str:
    """Return a row as the server writes it: each value is followed by a comma and at least one space, and is not quoted."""
    cells = [
        "low",
        "all",
        "3",
        "0",
        distinguisher,
        TIME,
        "1",
        "0",
        "0s",
        NEVER,
        user,
        "list",
        path,
        "dev",
        name,
        "v1",
        "pods",
        "",
    ]
    return ",  ".join(cells)


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/x,y/pods", "/apis/a/b, c", "/a, get, /b", "/x,,y"])
def test_path_with_commas(path: str) -> None:
    (row,) = parse_request_rows(f"{TITLES}\n{request_row(path=path)}\n") or ()
    assert (row.path, row.user, row.verb, row.namespace, row.resource) == (path, "ann", "list", "dev", "pods")


@pytest.mark.parametrize("user", ["CN=ann,O=dev", "CN=ann, O=dev", "a, b, c", "ann,"])
def test_user_with_commas(user: str) -> None:
    (row,) = parse_request_rows(f"{TITLES}\n{request_row(user, user)}\n") or ()
    assert (row.distinguisher, row.user, row.path, row.subresource) == (user, user, "/api/v1/pods", "")


def test_name_with_commas() -> None:
    (row,) = parse_request_rows(f"{TITLES}\n{request_row(name='a,b')}\n") or ()
    assert (row.namespace, row.resource) == ("dev", "pods")


def test_request() -> None:
    rows = parse_request_rows(REQUESTS) or ()
    assert len(rows) == REQUESTS.count("\n") - 1
    row = next(row for row in rows if row.level == "slow" and row.is_waiting)
    assert (row.schema, row.initial_seats, row.final_seats, row.seats, row.started) == ("slow-writes", 1, 1, 1, None)
    assert row.arrived.tzinfo == UTC
    assert row.arrived.year == 2026
    executing = [row for row in rows if not row.is_waiting]
    assert executing
    assert all(row.started is not None for row in executing)
    assert {row.queue for row in rows if row.level == "exempt"} == {None}


def test_every_column_of_a_request() -> None:
    cells = request_row("x", "ann", name="p").split(",  ")
    cells[6], cells[7], cells[9], cells[15], cells[17] = "2", "3", TIME, "v1beta1", "log"
    (row,) = parse_request_rows(f"{TITLES}\n{',  '.join(cells)}\n") or ()
    assert row._replace(arrived=None, started=None) == RequestRow(  # type: ignore[arg-type]  # compared below
        *("low", 2, "all", 3, True, "x", None, 2, 3, None),  # type: ignore[arg-type]  # compared below
        *("ann", "list", "/api/v1/pods", "dev", "pods", "v1beta1", "log", "p"),
    )
    assert row.arrived == row.started == datetime(2026, 11, 22, 5, 51, 0, 360796, UTC)
    assert row.seats == 3


def test_request_without_details() -> None:
    rows = parse_request_rows(read_text(LIVE / "4-mixed.requests_short.txt")) or ()
    assert rows
    assert {(row.user, row.path) for row in rows} == {(None, None)}


def test_request_without_seats() -> None:
    titles = "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistinguisher, ArriveTime\n"
    (row,) = parse_request_rows(f"{titles}low, all, 3, 0, ann, {TIME}\n") or ()
    assert (row.distinguisher, row.initial_seats, row.final_seats) == ("ann", 1, 0)


@pytest.mark.parametrize(
    ("path", "group"), [("/apis/apps/v1/deployments", "apps"), ("/apis", ""), ("/api/v1/pods", "")]
)
def test_api_group_is_that_of_the_path(path: str, group: str) -> None:
    (row,) = parse_request_rows(f"{TITLES}\n{request_row(path=path)}\n") or ()
    assert row.api_group == group


@pytest.mark.parametrize("title", ["PriorityLevelName", "FlowSchemaName"])
def test_long_name_is_an_error(title: str) -> None:
    row = request_row().replace({"PriorityLevelName": "low", "FlowSchemaName": "all"}[title], "x" * 10_000)
    with pytest.raises(UserError, match=f"{title} is longer than the name of an object"):
        parse_request_rows(f"{TITLES}\n{row}\n")


def test_time() -> None:
    (row,) = parse_request_rows(f"{TITLES}\n{request_row()}\n") or ()
    assert row.arrived == datetime(2026, 11, 22, 5, 51, 0, 360796, UTC)


def test_levels_and_queues() -> None:
    levels = {row.level: row for row in parse_level_rows(read_text(LIVE / "6-level-deleted.priority_levels.txt")) or ()}
    assert len(levels) == 14
    assert levels["batch"][2:] == (2, True, 5, 1, 318, 632, 0, 13)
    queues = parse_queue_rows(read_text(LIVE / "2-slow-a.queues.txt.gz")) or ()
    assert sum(row.waiting for row in queues if row.level == "slow") == 20
    assert {row.number for row in queues if row.level == "slow"} == {0, 1, 2, 3}


def test_columns_of_older_releases() -> None:
    """Until 1.24, dumps have no counters.

    An exempt level has no queues, and its cells contain `<none>` instead of numbers.
    """
    text = (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests\n"
        "exempt,            <none>,       <none>, <none>,      <none>,          <none>\n"
    )
    (row,) = parse_level_rows(text) or ()
    assert row[2:] == (0, False, 0, 0, None, None, None, None)


@pytest.mark.parametrize("title", ["QueueIndex", "ArriveTime"])
def test_column_that_every_release_has(title: str) -> None:
    reason = "is missing" if title == "QueueIndex" else "is not a time"
    with pytest.raises(UserError, match=f"line 2 is not a complete row of the dump: {title} {reason}"):
        parse_request_rows(f"{TITLES.replace(title, 'Other')}\n{request_row()}\n")


def test_negative_number() -> None:
    titles = "PriorityLevelName, Index, PendingRequests, ExecutingRequests, SeatsInUse\n"
    with pytest.raises(UserError, match="line 2 is not a complete row of the dump: ExecutingRequests is not a number"):
        parse_queue_rows(f"{titles}low, 0, 5, -5, 0\n")


def test_other_dumps() -> None:
    assert parse_level_rows(REQUESTS) is None
    assert parse_queue_rows(REQUESTS) is None
    assert parse_request_rows(read_text(LIVE / "2-slow-a.queues.txt.gz")) is None
    assert looks_like_dump(TITLES)
    assert not looks_like_dump("PriorityLevelName, Weight\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("low, all, 3", "line 2 is not a complete row of the dump: it has 3 of 18 cells"),
        (request_row().replace("3,", "x,", 1), "QueueIndex is not a number"),
        (request_row().replace("3,", "-2,", 1), "QueueIndex is not a number"),
        (request_row().replace("11-22", "13-22"), "ArriveTime is not a time"),
        (request_row().replace("1,", "9" * 30 + ",", 1), "InitialSeats is not a number"),
        (request_row().rsplit(",", 4)[0], "it has 14 of 18 cells"),
    ],
)
def test_row_that_cannot_be_read(row: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_request_rows(f"{TITLES}\n{row}\n")


def test_row_with_too_many_cells() -> None:
    with pytest.raises(UserError, match="line 2 is not a complete row of the dump: it has 4 of 2 cells"):
        parse_queue_rows("PriorityLevelName, Index\nlow, 1, 2, 3\n")


def test_dump_that_is_cut_off() -> None:
    with pytest.raises(UserError, match="a part of the dump is missing"):
        parse_request_rows(REQUESTS[: len(REQUESTS) // 2])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"$ kubectl get --raw /debug/api_priority_and_fairness/dump_queues\n{text}",
        lambda text: f"Warning: deprecated\n\n{text}",
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"{line.rstrip()},\n" for line in text.splitlines()),
        lambda text: "".join(f"{line.rstrip()}, \n" for line in text.splitlines()),
        lambda text: text.replace("\n", "\r\n"),
    ],
    ids=["command", "warning", "indented", "comma", "comma and space", "crlf"],
)
def test_copies_of_a_dump_from_a_terminal(change: Callable[[str], str]) -> None:
    """Dumps that users copied from a terminal or a chat can be read. In 1.18 and 1.19, each row ends with a comma."""
    text = "PriorityLevelName, Index, PendingRequests, ExecutingRequests\nlow, 0, 3, 1\nlow, 1, 0, 2\n"
    rows = parse_queue_rows(text)
    changed = change(text)
    assert looks_like_dump(changed)
    found = parse_queue_rows(changed)
    assert rows is not None
    assert found is not None
    assert [row._replace(line=0) for row in found] == [row._replace(line=0) for row in rows]
    lines = changed.splitlines()
    assert ["low" in lines[row.line - 1] for row in found] == [True, True]
