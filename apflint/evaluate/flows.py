"""The flow of a request, and what may become of the request at its priority level.

Facts: KEP-1040, Kubernetes `util/flowcontrol/apf_filter.go` (computeFlowDistinguisher), `apf_controller.go`
(startRequest), `fairqueuing/queueset/queueset.go`, `server/filters/priority-and-fairness.go` (getRequestWaitContext), and
what was recorded from kube-apiserver 1.36.2. What differs between releases is in `apflint.releases`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.evaluate.deadline import DEFAULT_WAIT_SECONDS
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.requestinfo import seen_by_apf
from apflint.evaluate.shards import deal, flow_hash

if TYPE_CHECKING:
    from apflint.evaluate.deadline import Deadline
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import FlowSchema, PriorityLevelConfiguration, Subject
    from apflint.releases import Release

BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"
ADJUSTMENT_SECONDS = 10
"""How often borrowing is worked out anew (`borrowingAdjustmentPeriod`)."""

Reason = Literal["queue-full", "concurrency-limit", "time-out", "cancelled"]
"""Label `reason` of the metric `apiserver_flowcontrol_rejected_requests_total`. `cancelled` exists from 1.23 to 1.27 only."""


class Flow(NamedTuple):
    """Requests that wait in the same queues: those of one FlowSchema with one distinguisher."""

    flow_schema: str
    method: str | None
    """`distinguisherMethod` of the FlowSchema: `ByUser`, `ByNamespace`, or None."""
    distinguisher: str
    """The user name or namespace that tells flows apart; "" where nothing does."""
    queues: int
    """Queues of the level; 0: it has none."""
    hash: int | None
    """64 bits, unsigned; None where there is nothing to choose among: fewer than 2 queues."""
    hand: tuple[int, ...] | None
    """Numbers of the queues that the flow may wait in, from 0, in the order of dealing; None likewise."""


def flow(schema: FlowSchema, level: PriorityLevelConfiguration, user: str, namespace: str) -> Flow:
    """The flow of a request by `user` in `namespace` ("": cluster-scoped, of all namespaces, or no resource at all).

    The FlowSchema and the level must be those that the request resolves to. Raises ValueError when the level's queues
    cannot be dealt from, which makes it a level that the server does not take.
    """
    method = schema.spec.distinguisher_method
    response = None if level.spec.limited is None else level.spec.limited.limit_response
    queuing = None if response is None or response.type != "Queue" else response.queuing
    if queuing is None or queuing.queues < 2:
        return Flow(schema.name, method, "", 0 if queuing is None else queuing.queues, None, None)
    distinguisher = whose(schema, user, namespace)
    hashed = flow_hash(schema.name, distinguisher)
    hand = deal(hashed, queuing.queues, queuing.hand_size)
    return Flow(schema.name, method, distinguisher, queuing.queues, hashed, hand)


def whose(schema: FlowSchema, user: str, namespace: str) -> str:
    """What tells the flows of a FlowSchema apart: of all requests with the same, `flow` says the same."""
    method = schema.spec.distinguisher_method
    return user if method == BY_USER else namespace if method == BY_NAMESPACE else ""


def count_flows(schema: FlowSchema) -> int | None:
    """Maximum number of flows that the requests of a FlowSchema can form, or None if its manifest sets no bound."""
    method = schema.spec.distinguisher_method
    if method == BY_USER:
        users = {_user_name(subject) for rule in schema.spec.rules for subject in rule.subjects}
        return None if None in users else len(users)
    if method != BY_NAMESPACE:
        return 1
    namespaces: set[str] = set()
    for rule in schema.spec.rules:
        namespaces.update(*(part.namespaces for part in rule.resource_rules))
        if rule.non_resource_rules or any(part.cluster_scope for part in rule.resource_rules):
            namespaces.add("")
    return None if ALL in namespaces else len(namespaces)


def _user_name(subject: Subject) -> str | None:
    """Name of the one user that a subject stands for, or None if it may stand for several."""
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None and account.name != ALL:
        return f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
    return subject.user if subject.kind == "User" and subject.user != ALL else None


def flow_json(each: Flow) -> dict[str, object]:
    """The flow as `explain --format json` prints it; `hash` and `hand` are null where there is nothing to choose among."""
    return {
        "distinguisherMethod": each.method,
        "distinguisher": each.distinguisher,
        "hash": None if each.hash is None else str(each.hash),
        "hand": None if each.hand is None else list(each.hand),
    }


def describe_flow(each: Flow) -> str:
    """Describe a flow and its queues in a few words. Names stand in quotes as they are: the caller makes them fit for a terminal."""
    if each.queues == 0:
        return "The priority level has no queues, so flows make no difference."
    if each.queues == 1:
        return "The priority level has 1 queue, so all its requests wait in line together, whatever flow they are of."
    if each.method == BY_USER:
        whose = f'User "{each.distinguisher}" is one flow'
    elif each.method == BY_NAMESPACE and each.distinguisher:
        whose = f'Namespace "{each.distinguisher}" is one flow'
    elif each.method == BY_NAMESPACE:
        whose = "All requests without a namespace are one flow"
    else:
        whose = "All requests are one flow"
    noun = "queue" if len(each.hand or ()) == 1 else "queues"
    hand = ", ".join(map(str, each.hand or ()))
    return f"{whose}, dealt {noun} {hand} (of {each.queues}, from 0). Hash {each.hash}."


class Fate(NamedTuple):
    """One thing that may become of a request, and when."""

    outcome: Literal["dispatched", "queued", "rejected"]
    status: int | None
    """The HTTP status that APF answers with; None: the request goes on (or waits)."""
    reason: Reason | None
    """What `apiserver_flowcontrol_rejected_requests_total` counts a rejection under."""
    when: str
    """A sentence: when this happens. Those of a level, read one after the other, tell the whole."""


def fates(level: LevelLimits, release: Release, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> tuple[Fate, ...]:
    """Return what may become of a request at a level, from the best to the worst.

    `wait_seconds` is a quarter of the request's own timeout; up to 1.27 it does not count (see `deadline`).
    """
    if level.type == "Exempt":
        return (Fate("dispatched", None, None, "Executed at once, always: the level is exempt."),)
    if level.response != "Queue":
        return (
            Fate("dispatched", None, None, f"Executed at once while {_free(level)}."),
            Fate(
                "rejected",
                429,
                "concurrency-limit",
                "Otherwise rejected at once: the level has no queues (limitResponse Reject).",
            ),
        )
    # Recorded: without any seat a level with queues executes nothing, while one without queues lets one request through.
    at_once = Fate("dispatched", None, None, f"Executed at once while {_free(level)} and no request waits.")
    # Recorded: both conditions are needed, so a queue may grow beyond its limit while a seat is free.
    full = f"that queue has {level.queue_length_limit or 0} waiting"
    full = f"no seat is free and {full}" if level.attainable else full
    return (
        *((at_once,) if level.attainable else ()),
        Fate("queued", None, None, _waits(level, release, wait_seconds)),
        Fate("rejected", 429, "queue-full", f"Rejected at once if {full}."),
        *_timed_out(release, wait_seconds),
    )


def _waits(level: LevelLimits, release: Release, wait_seconds: float) -> str:
    verb = "Otherwise waits" if level.attainable else "Waits"
    if not release.limits_wait_by_deadline:
        return f"{verb} {_queues(level, release)}."
    limit = f"up to {wait_seconds:g} seconds (a quarter of its timeout, at most 1 minute)"
    return f"{verb} {limit} {_queues(level, release)}."


def _timed_out(release: Release, wait_seconds: float) -> tuple[Fate, ...]:
    """The ways in which a waiting request is removed from its queue."""
    if release.limits_wait_by_deadline:
        when = f"Rejected after {wait_seconds:g} seconds, or when the client is gone."
        return (Fate("rejected", 429, "time-out", when),)
    # timeoutOldRequestsAndRejectOrEnqueueLocked runs on arrivals only. Up to 1.22 no metric counts the last of these.
    reason: Reason | None = "cancelled" if release.estimates_seats else None
    return (
        Fate(
            "rejected",
            429,
            "time-out",
            f"Rejected after {DEFAULT_WAIT_SECONDS:g} seconds (a quarter of --request-timeout), once another request"
            " arrives there.",
        ),
        Fate("rejected", 429, reason, "Removed when the client is gone or its timeout expires."),
    )


def _free(level: LevelLimits) -> str:
    if level.attainable == 0:
        # Recorded: a Reject level without seats lets through one request at a time.
        return "no other request of this level is executing (it has no seats)"
    return "a seat is free"


def _queues(level: LevelLimits, release: Release) -> str:
    if level.queues == 1:
        return "in the level's one queue"
    if level.hand_size == 1:
        return "in its one queue"
    # shuffleShardLocked in queueset.go
    least = "the least estimated work" if release.estimates_seats else "the fewest requests"
    return f"in the one of its {level.hand_size} queues with {least}"


def starvation(level: LevelLimits) -> str | None:
    """Describe what happens at a limited level without seats of its own; None if the level has some.

    Only releases from 1.30 on accept such a level.
    """
    if level.type == "Exempt" or level.nominal > 0:
        return None
    if level.response != "Queue":
        return "It has no seats of its own: while it cannot borrow, it executes one request at a time and answers 429 to others."
    if level.attainable > 0:
        return (
            f"It has no seats of its own: requests wait up to {ADJUSTMENT_SECONDS} seconds until the server lends it some."
            " While no other level has seats to spare, they wait longer, and are rejected with 429 after"
            f" {DEFAULT_WAIT_SECONDS:g} seconds by default."
        )
    return (
        f"It has no seats and may not borrow any: each request waits {DEFAULT_WAIT_SECONDS:g} seconds by default"
        " (a quarter of its timeout), then it is rejected with 429, or at once if its queue is full."
    )


def why_unseen(info: RequestInfo, release: Release) -> str | None:
    """Explain why API Priority and Fairness does not classify a request; None if it does."""
    if seen_by_apf(info, watches=release.classifies_watches):
        return None
    kind = "exec, attach, port-forward, log, proxy or profiling"
    if not release.classifies_watches:
        kind = f"watch, {kind}"
    return (
        f"API Priority and Fairness does not classify this request in Kubernetes {release.name}: it is long-running ({kind})."
        " It takes no seat, does not wait, and gets no 429 from API Priority and Fairness."
    )


def why_refused(asked: Deadline, release: Release) -> str | None:
    """Explain why the server answers a request before API Priority and Fairness classifies it; None if it does not."""
    if asked.invalid is None or not release.refuses_invalid_timeouts:
        return None
    return (
        f'The server answers this request with status 400 before API Priority and Fairness: timeout "{asked.invalid}" is'
        " not a duration such as 5s."
    )


def note_on_seats(verb: str, *, long_running: bool) -> str | None:
    """A sentence for a request that holds its seat for less time than it lasts; None for all others."""
    if long_running and verb == "watch":
        return "A watch holds its seats only until it has sent the existing objects."
    return None
