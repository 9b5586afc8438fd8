"""Time zones of reports and of times in options."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime

import pytest

from apflint.time_zones import convert, describe_period, name_zone, parse_zone
from apflint.user_error import UserError

SUMMER, WINTER = 1_782_864_000_000_000, 1_795_326_560_000_000


@pytest.mark.parametrize(
    ("name", "time", "shown"),
    [
        ("UTC", SUMMER, "2026-07-01 00:00 UTC"),
        ("utc", SUMMER, "2026-07-01 00:00 UTC"),
        ("Europe/Berlin", SUMMER, "2026-07-01 02:00 CEST"),
        ("Europe/Berlin", WINTER, "2026-11-22 06:49 CET"),
        ("America/Sao_Paulo", WINTER, "2026-11-22 02:49 UTC-03"),
        ("Asia/Kathmandu", WINTER, "2026-11-22 11:34 UTC+0545"),
    ],
)
def test_zones(name: str, time: int, shown: str) -> None:
    zone = parse_zone(name)
    assert f"{convert(time, zone):%Y-%m-%d %H:%M} {name_zone(time, zone)}" == shown


@pytest.mark.parametrize(
    "name", ["", "x", "Europe", "/etc/passwd", "../UTC", "Europe/Berlim", "+01:00", "a\0b", "\udc80"]
)
def test_unknown_zones(name: str) -> None:
    with pytest.raises(UserError, match=r"^--timezone: .* is not a time zone such as Europe/Berlin or UTC"):
        parse_zone(name)


def test_unknown_zone_has_a_suggestion() -> None:
    with pytest.raises(UserError, match='did you mean "Europe/Berlin"'):
        parse_zone("Europe/Berlim")


def test_computer_without_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    assert parse_zone("UTC") is UTC
    with pytest.raises(UserError, match=r"no database of time zones\. Install it with: pip install tzdata"):
        parse_zone("Nowhere/Else")


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("2026-11-23T16:54:36.9", "2026-11-23 16:54:36 UTC"),
        ("2026-11-23T16:55:15", "2026-11-23 16:54:36 to 16:55:15 UTC"),
        ("2026-11-24T16:54:36", "2026-11-23 16:54:36 to 2026-11-24 16:54:36 UTC"),
    ],
)
def test_period(end: str, shown: str) -> None:
    start, last = (
        round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1e6)
        for text in ("2026-11-23T16:54:36", end)
    )
    assert describe_period(start, last) == shown
    within_a_day = shown if shown.count("2026") == 2 else shown.removeprefix("2026-11-23 ")
    assert describe_period(start, last, has_date=False) == within_a_day
