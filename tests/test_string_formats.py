"""Formats of strings: timestamps."""

from __future__ import annotations

import pytest

from apflint.string_formats import is_timestamp


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T10:00:00Z",
        "2026-11-21T10:00:00.123456789123Z",
        "2026-11-21T10:00:00+02:00",
        "2026-11-21T10:00:00-24:60",
        "2026-11-21T1:00:00Z",
        "2026-11-21T10:00:00,5Z",
        "0000-01-01T00:00:00Z",
        "2024-02-29T00:00:00Z",
        "2000-02-29T00:00:00Z",
    ],
)
def test_valid_timestamps(text: str) -> None:
    assert is_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-21",
        "2026-11-21 10:00:00",
        "2026-11-21T10:00:00",
        "2026-11-21t10:00:00Z",
        "2026-11-21T10:00:00z",
        "2026-11-21T10:00:00Z ",
        "2026-11-21T10:00:00Z\n",
        "2026-11-21T24:00:00Z",
        "2026-11-21T10:60:00Z",
        "2026-11-21T23:59:60Z",
        "2026-11-21T10:00:00.Z",
        "2026-11-21T10:00:00+2:00",
        "2026-11-21T10:00:00+25:00",
        "2026-13-21T10:00:00Z",
        "2026-00-21T10:00:00Z",
        "2026-11-31T10:00:00Z",
        "2026-11-00T10:00:00Z",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-1-21T10:00:00Z",
        "\uff12026-11-21T10:00:00Z",
    ],
)
def test_invalid_timestamps(text: str) -> None:
    assert not is_timestamp(text)
