"""How long requests may wait, by the `timeout` in their query."""

from __future__ import annotations

import pytest

from apflint.evaluate.deadline import Deadline, find_deadline, parse_duration
from apflint.evaluate.outcomes import explain_unclassified
from apflint.evaluate.requestinfo import parse_request_info
from apflint.releases import parse_release


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        # Recorded from kube-apiserver 1.36.2: 15.0006 s and 429 without a timeout; 2 s with timeout=8s.
        ("/api/v1/pods", 15),
        ("/api/v1/pods?timeout=8s", 2),
        ("/api/v1/pods?timeout=5s", 1.25),
        ("/api/v1/pods?limit=5&timeout=500ms", 0.125),
        ("/api/v1/pods?timeout=0.5m", 7.5),
        ("/api/v1/pods?timeout=1h", 15),  # not beyond --request-timeout
        ("/api/v1/pods?timeout=60s", 15),
        ("/api/v1/pods?timeout=0", 15),
        ("/api/v1/pods?timeout=-5s", 15),
        ("/api/v1/pods?timeout=", 15),
        ("/api/v1/pods?timeoutSeconds=5", 15),
        ("/api/v1/pods?timeout=5s&timeout=9s", 1.25),  # the first value counts
        ("/api/v1/pods?watch=true&timeout=5s", 15),  # watches have no deadline
        ("/healthz?timeout=5s", 1.25),
    ],
)
def test_request_waits_a_quarter_of_its_deadline(url: str, seconds: float) -> None:
    assert find_deadline(url, parse_request_info("GET", url)) == Deadline(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5),
        ("1m30s", 90),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("5.s", 5),
        ("+3s", 3),
        ("-3s", -3),
        ("0", 0),
        ("100us", 1e-4),
        ("100µs", 1e-4),
        ("7ns", 7e-9),
        ("", None),
        ("5", None),
        ("s", None),
        ("5 s", None),
        ("5S", None),
        ("5d", None),
        (".s", None),
        ("1s0", None),
        ("\u0665s", None),
        ("5s\n", None),
        ("2562047h", 2562047 * 3600),
        ("2562048h", None),  # more nanoseconds than an int64 holds
        ("1" * 400 + "s", None),
    ],
)
def test_durations_are_parsed_as_in_go(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_long_timeout_is_parsed_in_linear_time() -> None:
    assert parse_duration("1" * 1_000_000) is None
    assert parse_duration("1s" * 300_000 + "x") is None


def test_invalid_timeout_is_answered_before_classification() -> None:
    # Recorded from kube-apiserver 1.36.2: status 400 without the headers of API Priority and Fairness.
    url = "/api/v1/pods?timeout=bogus"
    info = parse_request_info("GET", url)
    deadline = find_deadline(url, info)
    assert deadline == Deadline(15, "bogus")
    assert 'status 400 before API Priority and Fairness: timeout "bogus"' in (
        explain_unclassified(info, deadline, parse_release("1.36")) or ""
    )
    assert explain_unclassified(info, deadline, parse_release("1.20")) is None
    assert explain_unclassified(info, Deadline(15), parse_release("1.36")) is None
