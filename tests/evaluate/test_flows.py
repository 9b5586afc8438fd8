"""Flows, and what may become of their requests."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from apflint.evaluate import flows, limits
from apflint.evaluate.requestinfo import request_info
from apflint.model import flow_schema, priority_level
from apflint.releases import release

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.load.document import Document
    from apflint.model import FlowSchema, PriorityLevelConfiguration

_DOCUMENT = cast("Document", SimpleNamespace(version="v1"))
_RELEASE = release("1.36")


def _schema(method: str | None) -> FlowSchema:
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": "a"}}
    if method is not None:
        spec["distinguisherMethod"] = {"type": method}
    return flow_schema({"metadata": {"name": "global-default"}, "spec": spec}, _DOCUMENT)


def _queue(queues: int = 128, hand: int = 6, shares: int = 10, **more: Any) -> PriorityLevelConfiguration:
    response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, **more}
    return priority_level(
        {"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": limited}}, _DOCUMENT, _RELEASE
    )


def _reject(shares: int = 10, **more: Any) -> PriorityLevelConfiguration:
    limited = {"nominalConcurrencyShares": shares, "limitResponse": {"type": "Reject"}, **more}
    return priority_level(
        {"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": limited}}, _DOCUMENT, _RELEASE
    )


_EXEMPT = priority_level({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt"}}, _DOCUMENT, _RELEASE)


def test_a_recorded_flow() -> None:
    # Recorded from kube-apiserver 1.36.2: alice lists pods, with the objects that it creates by itself.
    found = flows.flow(_schema("ByUser"), _queue(), "alice", "dev")
    assert flows.flow_json(found) == {
        "distinguisherMethod": "ByUser",
        "distinguisher": "alice",
        "hash": "17644606172554983095",
        "hand": [55, 62, 126, 125, 105, 1],
    }
    assert flows.describe_flow(found) == (
        'User "alice" is one flow, dealt queues 55, 62, 126, 125, 105, 1 (of 128, from 0). Hash 17644606172554983095.'
    )


@pytest.mark.parametrize(
    ("method", "level", "distinguisher", "words"),
    [
        ("ByUser", _queue(), "alice", 'User "alice" is one flow'),
        ("ByNamespace", _queue(), "dev", 'Namespace "dev" is one flow'),
        (None, _queue(), "", "All requests are one flow"),
        ("ByUser", _queue(1, 1), "", "1 queue, so all its requests wait in line together"),
        ("ByUser", _reject(), "", "no queues"),
        ("ByUser", _EXEMPT, "", "no queues"),
        ("ByUser", _queue(8, 1), "alice", "is one flow, dealt queue "),
    ],
)
def test_what_tells_flows_apart(
    method: str | None, level: PriorityLevelConfiguration, distinguisher: str, words: str
) -> None:
    found = flows.flow(_schema(method), level, "alice", "dev")
    assert found.distinguisher == distinguisher
    assert words in flows.describe_flow(found)
    assert (found.hash is None) == (found.hand is None) == (found.queues < 2)


def test_requests_without_a_namespace_are_one_flow() -> None:
    found = flows.flow(_schema("ByNamespace"), _queue(), "alice", "")
    assert found.distinguisher == ""
    assert "All requests without a namespace" in flows.describe_flow(found)


def test_flows_are_those_of_the_server_in_the_whole_recording(shared: Path) -> None:
    folder = shared / "oracle/classify"
    base = json.loads((folder / "defaults.json").read_text())
    builtin = base if isinstance(base, list) else base["flow_schemas"] + base["priority_levels"]
    objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for line in (folder / "configs.jsonl").read_text().splitlines():
        row = json.loads(line)
        own = row["flow_schemas"] + row["priority_levels"]
        objects[row["id"]] = {(each["kind"], each["metadata"]["name"]): each for each in builtin + own}
    compared = 0
    for line in (folder / "requests.jsonl").read_text().splitlines():
        row = json.loads(line)
        if not row["flow_schema"] or "%" in row["url"]:  # URLs are decoded elsewhere
            continue
        schema = flow_schema(objects[row["config"]]["FlowSchema", row["flow_schema"]], _DOCUMENT)
        level = objects[row["config"]]["PriorityLevelConfiguration", row["priority_level"]]
        parts = [*row["url"].partition("?")[0].split("/"), ""]
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
        mine = flows.flow_json(flows.flow(schema, priority_level(level, _DOCUMENT, _RELEASE), row["user"], namespace))
        theirs = (row["flow_distinguisher"], row["hash"], row["hand"])
        assert (mine["distinguisher"], mine["hash"], mine["hand"]) == theirs, row["id"]
        compared += 1
    assert compared > 5000


def _limits(level: PriorityLevelConfiguration, others: int = 10) -> limits.LevelLimits:
    other = {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": others, "lendablePercent": 50, "limitResponse": {"type": "Reject"}},
    }
    levels = [level, priority_level({"metadata": {"name": "other"}, "spec": other}, _DOCUMENT, _RELEASE)]
    return limits.compute_limits(levels, (), 100, _RELEASE).levels[0]


def test_fates_of_a_queueing_level() -> None:
    found = flows.fates(_limits(_queue()), _RELEASE)
    assert [(fate.outcome, fate.status, fate.reason) for fate in found] == [
        ("dispatched", None, None),
        ("queued", None, None),
        ("rejected", 429, "queue-full"),
        ("rejected", 429, "time-out"),
    ]
    queue = "in the one of its 6 queues with the least estimated work"
    assert [fate.when for fate in found] == [
        "Executed at once while a seat is free and no request waits.",
        f"Otherwise waits up to 15 seconds (a quarter of its timeout, at most 1 minute) {queue}.",
        "Rejected at once if no seat is free and that queue has 50 waiting.",
        "Rejected after 15 seconds, or when the client is gone.",
    ]


@pytest.mark.parametrize(
    ("name", "reason"), [("1.18", None), ("1.22", None), ("1.23", "cancelled"), ("1.27", "cancelled")]
)
def test_up_to_1_27_only_another_request_ends_the_wait(name: str, reason: str | None) -> None:
    # timeoutOldRequestsAndRejectOrEnqueueLocked and the metrics of `wait` in queueset.go of these releases.
    found = flows.fates(_limits(_queue()), release(name))
    assert [fate.reason for fate in found] == [None, None, "queue-full", "time-out", reason]
    assert "seconds" not in found[1].when
    assert found[3].when == (
        "Rejected after 15 seconds (a quarter of --request-timeout), once another request arrives there."
    )
    assert found[4].when == "Removed when the client is gone or its timeout expires."
    chosen = "the fewest requests" if name in ("1.18", "1.22") else "the least estimated work"
    assert f"in the one of its 6 queues with {chosen}" in found[1].when


def test_flows_that_make_no_difference() -> None:
    # Nothing to choose among: no queues, or one. The FlowSchema and its method are told all the same.
    for level, queues in ((_reject(), 0), (_EXEMPT, 0), (_queue(1, 1), 1)):
        found = flows.flow(_schema("ByUser"), level, "alice", "dev")
        assert found == flows.Flow("global-default", "ByUser", "", queues, None, None)


def test_fates_follow_the_queues_and_the_timeout() -> None:
    one = " ".join(fate.when for fate in flows.fates(_limits(_queue(1, 1)), _RELEASE, wait_seconds=2.5))
    assert "up to 2.5 seconds (a quarter of its timeout, at most 1 minute) in the level's one queue" in one
    assert "that queue has 50 waiting" in one
    single = " ".join(fate.when for fate in flows.fates(_limits(_queue(8, 1)), _RELEASE))
    assert "in its one queue" in single


def test_fates_of_levels_without_queues() -> None:
    reject = flows.fates(_limits(_reject(borrowingLimitPercent=0)), _RELEASE)
    assert [(fate.outcome, fate.status, fate.reason) for fate in reject] == [
        ("dispatched", None, None),
        ("rejected", 429, "concurrency-limit"),
    ]
    assert reject[0].when == "Executed at once while a seat is free."
    exempt = flows.fates(_limits(_EXEMPT), _RELEASE)
    assert [(fate.outcome, fate.status, fate.reason) for fate in exempt] == [("dispatched", None, None)]


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (_queue(), None),
        (_EXEMPT, None),
        (_queue(shares=0), "until the server lends it some"),
        (_queue(shares=0), "rejected with 429 after 15 seconds"),
        (_queue(shares=0, borrowingLimitPercent=0), "then it is rejected with 429"),
        (_queue(shares=0, borrowingLimitPercent=500), "may not borrow any"),
        (_reject(0), "one request at a time"),
        (_queue(shares=1), None),
    ],
)
def test_levels_without_seats_are_told(level: PriorityLevelConfiguration, words: str | None) -> None:
    said = flows.starvation(_limits(level))
    assert (said is None) == (words is None)
    if words is not None:
        assert words in (said or "")


def test_a_reject_level_without_any_seat_lets_one_through() -> None:
    first = flows.fates(_limits(_reject(0, borrowingLimitPercent=0)), _RELEASE)[0]
    assert first.when == "Executed at once while no other request of this level is executing (it has no seats)."


def test_a_queueing_level_without_any_seat_executes_nothing() -> None:
    # Recorded from 1.36.2: such a request waits 15 seconds and is answered with 429.
    found = flows.fates(_limits(_queue(shares=0, borrowingLimitPercent=0)), _RELEASE)
    assert "dispatched" not in [fate.outcome for fate in found]
    assert found[0].when.startswith("Waits up to 15 seconds")
    assert found[1].when == "Rejected at once if that queue has 50 waiting."


def test_what_is_not_classified() -> None:
    listing, watch, log = (
        request_info("GET", f"/api/v1/namespaces/a/pods{rest}") for rest in ("", "?watch=true", "/x/log")
    )
    assert flows.why_unseen(listing, _RELEASE) is None
    assert flows.why_unseen(watch, _RELEASE) is None
    said = flows.why_unseen(log, _RELEASE) or ""
    assert "does not classify this request" in said
    assert "no 429 from API Priority and Fairness" in said
    assert "(exec, attach," in said


@pytest.mark.parametrize(("name", "seen"), [("1.18", False), ("1.21", False), ("1.22", True), ("1.37", True)])
def test_watches_are_classified_from_1_22_on(name: str, *, seen: bool) -> None:
    # WithPriorityAndFairness skips every long-running request up to 1.21.
    watch = request_info("GET", "/api/v1/pods?watch=true")
    assert (flows.why_unseen(watch, release(name)) is None) is seen
    assert flows.why_unseen(request_info("GET", "/api/v1/pods"), release(name)) is None
    assert "(watch, exec," in (flows.why_unseen(watch, release(name)) or "(watch, exec,")


def test_a_watch_holds_its_seats_for_a_short_time() -> None:
    assert "only until" in (flows.note_on_seats("watch", long_running=True) or "")
    assert flows.note_on_seats("list", long_running=False) is None
    assert flows.note_on_seats("connect", long_running=True) is None
    assert flows.note_on_seats("watch", long_running=False) is None
