"""The flow of a request, and what may become of the request at its priority level.

Facts: KEP-1040, Kubernetes `util/flowcontrol/apf_filter.go` (computeFlowDistinguisher), `apf_controller.go`
(startRequest), `fairqueuing/queueset/queueset.go`, and what was recorded from kube-apiserver 1.36.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.shards import deal, flow_hash

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema, PriorityLevelConfiguration, Subject

BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"
WAIT_FRACTION = 4
"""A request waits in a queue for at most the server's `--request-timeout` (default 60 s) divided by this."""
DEFAULT_WAIT_SECONDS = 60 // WAIT_FRACTION
ADJUSTMENT_SECONDS = 10
"""How often borrowing is worked out anew (`borrowingAdjustmentPeriod`)."""

Reason = Literal["queue-full", "concurrency-limit", "time-out", "cancelled"]
"""Label `reason` of the metric `apiserver_flowcontrol_rejected_requests_total`."""


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
    """The flow, which is one of its FlowSchema, in a few words. Names stand in quotes as they are: the caller makes them fit for a terminal."""
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
    hand = ", ".join(map(str, each.hand or ()))
    which = f"queue {hand}" if len(each.hand or ()) == 1 else f"the shortest of queues {hand}"
    return f"{whose}: it waits in {which} (of {each.queues}, from 0). Hash {each.hash}."


class Fate(NamedTuple):
    """One thing that may become of a request, and when."""

    outcome: Literal["dispatched", "queued", "rejected"]
    status: int | None
    """The HTTP status that APF answers with; None: the request goes on (or waits)."""
    reason: Reason | None
    """What `apiserver_flowcontrol_rejected_requests_total` counts a rejection under."""
    when: str
    """A sentence: when this happens. Those of a level, read one after the other, tell the whole."""


def fates(level: LevelLimits, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> tuple[Fate, ...]:
    """What may become of a request at a level, from the best to the worst.

    `wait_seconds` is how long a request may wait: a quarter of the server's `--request-timeout`.
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
    length, wait = level.queue_length_limit or 0, f"{wait_seconds:g} seconds"
    # Recorded: without any seat a level with queues executes nothing, while one without queues lets one request through.
    at_once = Fate("dispatched", None, None, f"Executed at once while {_free(level)} and nobody is waiting.")
    return (
        *((at_once,) if level.attainable else ()),
        Fate(
            "queued",
            None,
            None,
            f"{'Otherwise waits' if level.attainable else 'Waits'} up to {wait} (a quarter of --request-timeout) {_queues(level)}.",
        ),
        Fate(
            "rejected",
            429,
            "queue-full",
            f"Rejected at once if even that queue has {length} waiting.",
        ),
        Fate("rejected", 429, "time-out", f"Rejected after {wait}."),
        Fate(
            "rejected", 429, "cancelled", "Dropped from its queue when the client gives up or its own timeout runs out."
        ),
    )


def counted(count: int, noun: str) -> str:
    """`1 request`, `2 requests`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _free(level: LevelLimits) -> str:
    if level.attainable == 0:
        # Recorded: a Reject level without seats lets through one request at a time.
        return "no other request of this level is executing (it has no seats)"
    return "a seat is free"


def _queues(level: LevelLimits) -> str:
    if level.queues == 1:
        return "in the level's one queue"
    if level.hand_size == 1:
        return "in its one queue"
    return f"in the shortest of its {level.hand_size} queues"


def starvation(level: LevelLimits) -> str | None:
    """What happens at a limited level without seats of its own, in a sentence; None where there is nothing to say."""
    if level.type == "Exempt" or level.nominal > 0:
        return None
    if level.response != "Queue":
        return "It has no seats of its own: while it cannot borrow, it executes one request at a time and answers 429 to others."
    if level.attainable > 0:
        return (
            f"It has no seats of its own: requests wait up to {ADJUSTMENT_SECONDS} seconds until the server lends it some,"
            " and longer when there are none to spare."
        )
    return (
        f"It has no seats and may not borrow any: each request waits {DEFAULT_WAIT_SECONDS} seconds"
        " (a quarter of --request-timeout), then it is rejected with 429."
    )


def why_unseen(verb: str, *, long_running: bool) -> str | None:
    """Why APF does not see a request, in a sentence; None when it does.

    `verb` and `long_running` are the request's attributes as kube-apiserver works them out.
    """
    if not long_running or verb == "watch":
        return None
    return (
        "API Priority and Fairness does not see this request: it is long-running (exec, attach, port-forward, log, proxy or"
        " profiling), so it takes no seat, never waits, and gets no 429."
    )


def note_on_seats(verb: str, *, long_running: bool) -> str | None:
    """A sentence for a request that holds its seat for less time than it lasts; None for all others."""
    if long_running and verb == "watch":
        return "A watch holds its seats only until it has sent what already exists."
    return None
