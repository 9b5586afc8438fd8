"""Times in names of objects: how they are read, and that no object with requests of the period is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.replay.filters import Moment
from apflint.sources.audit_logs import AuditLogFile
from apflint.sources.log_names import (
    ReadPeriod,
    StoredObject,
    find_names_in_period,
    find_times,
    remove_times,
    select_logs,
)
from apflint.user_error import UserError

UUID = "5dc02010-61be-4a86-8d18-5a1c6a3c4d1f"
STREAM = "kube-apiserver-audit-0123456789abcdef0123456789abcdef"
DAY = datetime(2026, 11, 22, tzinfo=UTC)


def show(microseconds: int | None) -> str | None:
    return None if microseconds is None else f"{datetime.fromtimestamp(microseconds / 1e6, UTC):%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("name", "start", "end", "server"),
    [
        (f"2026/11/22/05/s-1-2026-11-22-05-49-20-{UUID}.gz", "11-22 05:49", "11-22 05:50", "s-1"),
        (f"2026/11/22/05/s-1-2026-11-22-05-49-20-{UUID}", "11-22 05:49", "11-22 05:50", "s-1"),
        ("elb/2026/11/22/1234_20261122T0550Z.log.gz", "11-22 05:50", "11-22 05:51", "elb/1234"),
        ("y=2026/m=11/d=22/h=05/m=00/PT1H.json", "11-22 05:00", "11-22 06:00", "PT1H"),
        ("year=2026/month=1/day=2/x.log", "01-02 00:00", "01-03 00:00", "x"),
        ("dt=2026-11-22/hour=05/a.log", "11-22 05:00", "11-22 06:00", "a"),
        ("gke/2026/11/22/05:00:00_05:59:59_S0.json", "11-22 05:00", "11-22 06:00", "gke"),
        ("n1/2026-11-22T05:49:20.098Z.json", "11-22 05:49", "11-22 05:50", "n1"),
        ("n1/2026/11/22/05/49/a.log", "11-22 05:49", "11-22 05:50", "n1/a"),
        ("n1/20261122/a.log.gz", "11-22 00:00", "11-23 00:00", "n1/a"),
        ("n1/audit-20261122-01.log", "11-22 00:00", "11-23 00:00", "n1/audit--01"),  # a sequence number
        ("n1/2026/11/22/000000.gz", "11-22 00:00", "11-23 00:00", "n1"),  # also a sequence number
        ("n1/audit-2026-11-22T05-49-20.098.log.gz", None, "11-22 05:50", "n1/audit"),
        ("n1/audit.log-20261122.gz", None, "11-23 00:00", "n1/audit"),
    ],
)
def test_times(name: str, start: str | None, end: str, server: str) -> None:
    times = find_times(name)
    assert times is not None
    assert (show(times.start), show(times.end)) == (start, end)
    assert remove_times(f"s3://bucket/{name}") == f"s3://bucket/{server}"


@pytest.mark.parametrize(
    "name",
    [
        "n1/audit.log",
        "2026-02-30/x.log",
        "2026/13/01/x.log",
        "120261122.log",
        "a/2026/x.log",
        f"{UUID}/{STREAM}/000001.gz",
    ],
)
def test_no_times(name: str) -> None:
    assert find_times(name) is None


ROTATED = (
    *("audit.log", "audit.log.gz", "audit.log.zst", "audit.log.7", "audit.log.7.gz", "audit.log-20261122.gz"),
    *("audit.log.2026-11-22T05:49:20", "audit-2026-11-22T05-49-20.098.log", "audit-2026-11-22T05-49-20.098.log.gz"),
    *("audit.json", "audit.jsonl.12.zst"),
)


@pytest.mark.parametrize("name", ROTATED)
@pytest.mark.parametrize(
    "directory", ["/var/log/n1", "n1", "file:///var/log/n1", "s3://b/n1", "abfss://c@a.example/n1"]
)
def test_rotated_files_have_the_name_of_the_current_one(directory: str, name: str) -> None:
    """A path and a URL name the API server in the same way."""
    assert AuditLogFile(f"{directory}/{name}", "").server == f"{directory}/audit"


def test_parts_of_deliveries_do_not_name_a_server() -> None:
    assert remove_times(f"s3://b/x/{UUID}/{STREAM}/000000.gz") == f"s3://b/x/{STREAM}"
    assert remove_times("file:///2026/11/22/05/audit.log") == "file:///audit"


NAMES = {
    "%Y/%m/%d/%H/s-1-%Y-%m-%d-%H-%M-%S-" + UUID: timedelta(minutes=15),  # Firehose collects data for up to 15 minutes
    "%Y/%m/%d/%H/a.log": timedelta(hours=1),
    "y=%Y/m=%m/d=%d/h=%H/m=00/PT1H.json": timedelta(hours=1),
    "%Y/%m/%d/a.log": timedelta(days=1),
}
"""Formats of names of objects, with the time at which an object starts. Values are the maximum time until the object ends."""


@given(
    st.sampled_from(sorted(NAMES)),
    st.lists(st.tuples(st.integers(0, 3 * 86400), st.integers(0, 3600)), min_size=1, max_size=20),
    *[st.tuples(st.integers(0, 3 * 86400), st.booleans()) for _ in range(2)],
)
def test_no_request_of_the_period_is_left_out(
    name: str, requests: list[tuple[int, int]], since: tuple[int, bool], until: tuple[int, bool]
) -> None:
    """An object contains the requests that ended in the time of its name.

    A request belongs to the period in which the server received the request.
    """
    length = NAMES[name]
    objects: dict[str, list[int]] = {}
    for received, seconds in requests:
        end = DAY + timedelta(seconds=received + seconds)
        start = DAY + (end - DAY) // length * length
        objects.setdefault(start.strftime(name), []).append(round((DAY.timestamp() + received) * 1e6))
    last = max(max(times) for times in objects.values())
    limits = [
        Moment(seconds * 1_000_000, is_before_end=True)
        if counts_back
        else Moment(round((DAY.timestamp() + seconds) * 1e6))
        for seconds, counts_back in (since, until)
    ]
    is_kept = dict(zip(objects, find_names_in_period(list(objects), ReadPeriod(*limits)), strict=True))
    begin, stop = (limit.resolve(last).microseconds for limit in limits)
    assert all(is_kept[key] for key, times in objects.items() if any(begin <= time < stop for time in times))
    if since[1] or until[1]:  # a limit counts back from the last request, so this request must be kept
        assert any(is_kept[key] for key, times in objects.items() if last in times)


def test_times_in_the_prefix_do_not_count() -> None:
    """The prefix may contain another date, such as that of an export."""
    period = ReadPeriod(Moment(round(datetime(2026, 11, 25, tzinfo=UTC).timestamp() * 1e6)))
    stored = StoredObject("s3://b/2026-11-22/a.log", 1)
    assert select_logs("s3://b/2026-11-22/", [stored], period, lambda _: None) == [stored]
    with pytest.raises(UserError, match="the times in the names of all 1 object are outside"):
        select_logs("s3://b/", [stored], period, lambda _: None)
