"""The possible outcomes of a request at its priority level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.levels import DOCUMENT, EXEMPT_LEVEL, RELEASE, queue_level, reject_level

from apflint.evaluate import limits
from apflint.evaluate.request_outcomes import (
    Deadline,
    find_deadline,
    find_unclassified,
    list_outcomes,
    parse_duration,
)
from apflint.evaluate.requestinfo import parse_request_info
from apflint.model import build_priority_level
from apflint.output.outcome_sentences import describe_outcome, describe_starvation, describe_unclassified
from apflint.releases import parse_release

if TYPE_CHECKING:
    from apflint.evaluate.request_outcomes import Unclassified
    from apflint.model import PriorityLevelConfiguration


def _limits(level: PriorityLevelConfiguration, others: int = 10) -> limits.LevelLimits:
    other = {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": others, "lendablePercent": 50, "limitResponse": {"type": "Reject"}},
    }
    levels = [level, build_priority_level({"metadata": {"name": "other"}, "spec": other}, DOCUMENT, RELEASE)]
    return limits.compute_limits(levels, (), 100, RELEASE).levels[0]


def sentences(level: PriorityLevelConfiguration, release: str = "1.36", wait_seconds: float = 15) -> list[str]:
    found, target = _limits(level), parse_release(release)
    return [describe_outcome(outcome, found, target, wait_seconds) for outcome in list_outcomes(found, target)]


def describe(unclassified: Unclassified | None) -> str:
    return "" if unclassified is None else describe_unclassified(unclassified)


def test_outcome_of_an_exempt_level() -> None:
    (outcome,) = list_outcomes(_limits(EXEMPT_LEVEL), RELEASE)
    assert outcome == ("dispatched", "exempt", None, None)
    assert sentences(EXEMPT_LEVEL) == ["Executed immediately, always: the level is exempt"]


def test_outcomes_of_a_level_with_queues() -> None:
    found = list_outcomes(_limits(queue_level()), RELEASE)
    assert [(outcome.result, outcome.status, outcome.reason) for outcome in found] == [
        ("dispatched", None, None),
        ("queued", None, None),
        ("rejected", 429, "queue-full"),
        ("rejected", 429, "time-out"),
    ]
    queue = "in the queue with the least estimated work among the 6 queues of its flow"
    assert sentences(queue_level()) == [
        "Executed immediately while a seat is free and no request waits",
        f"Otherwise waits up to 15 seconds (a quarter of its timeout, at most 1 minute) {queue}",
        "Rejected immediately if no seat is free and that queue has 50 waiting",
        "Rejected after 15 seconds, or when the client is gone",
    ]


@pytest.mark.parametrize(
    ("name", "reason"), [("1.18", None), ("1.22", None), ("1.23", "cancelled"), ("1.27", "cancelled")]
)
def test_until_1_27_only_another_request_ends_the_wait(name: str, reason: str | None) -> None:
    # Source: timeoutOldRequestsAndRejectOrEnqueueLocked, and the metrics of `wait`, in queueset.go of these releases.
    found = list_outcomes(_limits(queue_level()), parse_release(name))
    assert [outcome.reason for outcome in found] == [None, None, "queue-full", "time-out", reason]
    assert [outcome[::2] for outcome in found] == [("dispatched", None), ("queued", None), *[("rejected", 429)] * 3]
    texts = sentences(queue_level(), name)
    assert "seconds" not in texts[1]
    assert (
        texts[3]
        == "Rejected after a wait of at least 15 seconds (a quarter of --request-timeout), when the next request arrives at the queue"
    )
    assert texts[4] == "Removed when the client is gone or its timeout expires"
    chosen = "the fewest requests" if name in ("1.18", "1.22") else "the least estimated work"
    assert f"in the queue with {chosen} among the 6 queues of its flow" in texts[1]


def test_outcomes_name_the_queues_and_the_timeout() -> None:
    text = " ".join(sentences(queue_level(1, 1), wait_seconds=2.5))
    assert "up to 2.5 seconds (a quarter of its timeout, at most 1 minute) in the level's one queue" in text
    assert "that queue has 50 waiting" in text
    single = " ".join(sentences(queue_level(8, 1)))
    assert "in its one queue" in single


def test_outcomes_of_levels_without_queues() -> None:
    reject = list_outcomes(_limits(reject_level(borrowingLimitPercent=0)), RELEASE)
    assert [(outcome.result, outcome.status, outcome.reason) for outcome in reject] == [
        ("dispatched", None, None),
        ("rejected", 429, "concurrency-limit"),
    ]
    assert sentences(reject_level(borrowingLimitPercent=0))[0] == "Executed immediately while a seat is free"
    exempt = list_outcomes(_limits(EXEMPT_LEVEL), RELEASE)
    assert [(outcome.result, outcome.status, outcome.reason) for outcome in exempt] == [("dispatched", None, None)]


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (queue_level(), None),
        (EXEMPT_LEVEL, None),
        (queue_level(shares=0), "until the level can borrow seats"),
        (queue_level(shares=0), "rejects them with 429 after 15 seconds"),
        (queue_level(shares=0, borrowingLimitPercent=0), "and is then rejected with 429"),
        (queue_level(shares=0, borrowingLimitPercent=500), "may not borrow any"),
        (reject_level(0), "one request at a time"),
        (queue_level(shares=1), None),
    ],
)
def test_starvation_is_described(level: PriorityLevelConfiguration, words: str | None) -> None:
    description = describe_starvation(_limits(level))
    assert (description is None) == (words is None)
    if words is not None:
        assert words in (description or "")


def test_single_seat_that_can_be_borrowed_ends_starvation() -> None:
    starved = _limits(queue_level(shares=0))
    assert describe_starvation(starved._replace(attainable=1)) == describe_starvation(starved._replace(attainable=9))
    assert describe_starvation(starved._replace(attainable=1)) != describe_starvation(starved._replace(attainable=0))


def test_reject_level_without_seats_executes_one_request_at_a_time() -> None:
    first = sentences(reject_level(0, borrowingLimitPercent=0))[0]
    assert first == "Executed immediately while no other request of this level is executing (the level has no seats)"


def test_queue_level_without_seats_executes_nothing() -> None:
    # Recordings of 1.36.2 show that such a request waits 15 seconds and is answered with 429.
    found = list_outcomes(_limits(queue_level(shares=0, borrowingLimitPercent=0)), RELEASE)
    assert "dispatched" not in [outcome.result for outcome in found]
    texts = sentences(queue_level(shares=0, borrowingLimitPercent=0))
    assert texts[0].startswith("Waits up to 15 seconds")
    assert texts[1] == "Rejected immediately if that queue has 50 waiting"


def test_long_running_requests_are_not_classified() -> None:
    listing, watch, log = (
        parse_request_info("GET", f"/api/v1/namespaces/a/pods{rest}") for rest in ("", "?watch=true", "/x/log")
    )
    assert find_unclassified(listing, Deadline(15), RELEASE) is None
    assert find_unclassified(watch, Deadline(15), RELEASE) is None
    description = describe(find_unclassified(log, Deadline(15), RELEASE))
    assert "does not classify this request" in description
    assert "no 429 from API Priority and Fairness" in description
    assert "(exec, attach," in description


@pytest.mark.parametrize(("name", "seen"), [("1.18", False), ("1.21", False), ("1.22", True), ("1.37", True)])
def test_watches_are_classified_from_1_22_on(name: str, *, seen: bool) -> None:
    # WithPriorityAndFairness skips every long-running request up to 1.21.
    watch = parse_request_info("GET", "/api/v1/pods?watch=true")
    assert (find_unclassified(watch, Deadline(15), parse_release(name)) is None) is seen
    assert find_unclassified(parse_request_info("GET", "/api/v1/pods"), Deadline(15), parse_release(name)) is None
    assert "(watch, exec," in (describe(find_unclassified(watch, Deadline(15), parse_release(name))) or "(watch, exec,")


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        # kube-apiserver 1.36.2 answered 429 after 15.0006 s to the first request, and after 2 s to the second request.
        ("/api/v1/pods", 15),
        ("/api/v1/pods?timeout=8s", 2),
        ("/api/v1/pods?timeout=5s", 1.25),
        ("/api/v1/pods?limit=5&timeout=500ms", 0.125),
        ("/api/v1/pods?timeout=0.5m", 7.5),
        ("/api/v1/pods?timeout=5s&fieldSelector=?", 1.25),
        ("/api/v1/pods?timeout=1h", 15),  # limited by --request-timeout
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
        ("2562048h", None),  # exceeds an int64 in nanoseconds
        ("1" * 400 + "s", None),
    ],
)
def test_durations_are_parsed_as_in_go(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_long_timeout_is_parsed_in_linear_time() -> None:
    assert parse_duration("1" * 1_000_000) is None
    assert parse_duration("1s" * 300_000 + "x") is None


def test_invalid_timeout_is_answered_before_classification() -> None:
    # kube-apiserver 1.36.2 answered this request with status 400, without the headers of API Priority and Fairness.
    url = "/api/v1/pods?timeout=bogus"
    info = parse_request_info("GET", url)
    deadline = find_deadline(url, info)
    assert deadline == Deadline(15, "bogus")
    assert 'status 400 before API Priority and Fairness: timeout "bogus"' in (
        describe(find_unclassified(info, deadline, parse_release("1.36")))
    )
    assert find_unclassified(info, deadline, parse_release("1.20")) is None
    assert find_unclassified(info, Deadline(15), parse_release("1.36")) is None
