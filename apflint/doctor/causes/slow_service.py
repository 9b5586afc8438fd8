"""Causes of slow requests, which hold their seats for longer: slow webhooks, slow etcd, and webhooks that call the API server."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor.causes.client_ranking import WRITES, Client, find_client, rank_clients
from apflint.doctor.causes.conclusion import Action, OverloadCause
from apflint.doctor.causes.evidence_text import (
    compare,
    describe_clients,
    describe_harm,
    describe_offered,
    describe_service,
    describe_span,
    seats_text,
    seconds_text,
)
from apflint.doctor.causes.measurements import MIN_EXECUTIONS, Sum, list_means
from apflint.doctor.causes.overloaded_levels import MIN_WIDTH
from apflint.doctor.causes.suggested_commands import explain_request, verify_doctor
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad, Webhook
    from apflint.doctor.causes.overloaded_levels import Overload
    from apflint.doctor.dumps import RequestRow

SLOW_WEBHOOK_SECONDS = 0.1
"""Minimum mean duration in seconds of the calls of a slow webhook."""
MIN_WEBHOOK_SHARE = 0.5
"""Minimum proportion of the execution time of a level that calls of webhooks take, for the cause to be webhooks."""
SLOW_ETCD_SECONDS = 0.1
"""Minimum mean duration in seconds of slow etcd operations on single objects.

etcd warns of requests that take longer than this duration (`DefaultWarningApplyDuration` in server/etcdserver/txn).
"""
SLOW_LEVEL_RATIO = 5.0
"""Minimum ratio of the execution time of a slow level to its earlier execution time, or to that of most other levels."""
MIN_SLOW_WRITES = 2
"""Minimum number of slow writes in the dump for concluding that something outside of the server slows the writes."""
GROWN_ETCD_SECONDS, GROWN_ETCD_RATIO = 0.05, 3.0
"""Minimum mean duration in seconds of etcd operations that have become slow, and minimum ratio to their earlier mean duration."""
MIN_GROWTH = 2.0
"""Minimum ratio of the execution time of most levels to their earlier execution time for concluding that etcd has become slow."""
MIN_ETCD_OPERATIONS = 20
MIN_ETCD_SHARE = 0.3
"""Minimum ratio of the execution time of most levels to the time of an etcd operation, for the cause to be etcd."""
LONG_EXECUTION_SECONDS = 0.5
"""Minimum execution time in seconds of a slow request in the dump."""
REVIEWS = frozenset({"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews"})
"""Resources that webhooks create to ask the server whether a user is authorized, or which user a token belongs to."""
MAX_CALLBACK_SECONDS = 0.25
"""Maximum time in seconds between the start of a request and the arrival of the callback of its webhook."""
MAX_ENDED = 0.3
"""Maximum ratio of the seats that ended requests held to the seats in use, for concluding that requests block each other."""
MIN_REVIEWS_PER_CALL = 0.5
"""Minimum number of rejected reviews for each slow call of a webhook, for concluding that the webhook sends the reviews."""
MIN_CALLBACKS, MIN_CALLBACK_SHARE = 3, 0.6
"""Thresholds for requests that are callbacks of a webhook.

The thresholds are the minimum number of callbacks, the minimum proportion of executing writes that have a callback, and
the minimum proportion of callbacks among the requests of the user.
"""
_MIN_LEVELS = 3


class Callbacks(NamedTuple):
    """A user, probably of a webhook, whose requests (callbacks) wait for seats that the writes under review hold."""

    client: Client
    executing: int
    """Number of executing writes."""
    matched: int
    """Number of executing writes whose callback waits."""


def find_inversion(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if a webhook sends requests to the level of the requests that wait for the webhook, else None."""
    level = overload.load
    callbacks = find_callbacks(level)
    webhook = _main_webhook(server, level)
    reviews = _count_reviews(server.terminated)
    if is_locked(server, level):
        reviews += _count_reviews(server.terminated_before)
    if callbacks is None and not (
        webhook is not None and reviews >= max(MIN_CALLBACKS, MIN_REVIEWS_PER_CALL * webhook.calls.number)
    ):
        return None
    client = callbacks.client if callbacks else Client(None, next(iter(level.schemas), None), "create", None)
    name = f'The webhook "{webhook.name}"' if webhook is not None else "An admission webhook"
    user = f' as "{client.user}"' if client.user else ""
    evidence = [describe_harm(server, overload)]
    if callbacks is not None:
        evidence.append(
            f"In the dump, {callbacks.executing} writes execute. Right after the start of {callbacks.matched} of these writes, a request"
            f"{user} arrived that waits at the same level."
        )
    if reviews:
        evidence.append(
            f"{count_noun(round(reviews), 'SubjectAccessReview or TokenReview', 'SubjectAccessReviews and TokenReviews')}"
            f" timed out or got the answer 429 {describe_span(server)}."
        )
    if webhook is not None and webhook.calls.mean is not None:
        calls = count_noun(round(webhook.calls.number), "call")
        evidence.append(
            f"{calls} of the webhook took {seconds_text(webhook.calls.mean)} on average, which is about the timeout of the webhook."
            if _is_timed_out(webhook)
            else f"{calls} of the webhook took {seconds_text(webhook.calls.mean)} on average."
        )
    return client.add_to(
        OverloadCause(
            "inversion",
            f'{name} calls the API server back{user}, and its requests wait at "{level.name}". The requests that wait'
            " for the webhook hold all seats of this level, so only timeouts free these seats.",
            is_apf=True,
            levels=(level.name,),
            evidence=(*evidence, *describe_service(level)),
            actions=(
                Action(
                    f"send the requests of {_name(client)} to another priority level, with a separate FlowSchema",
                    explain_request(client),
                ),
                Action(
                    "let the webhook read from a cache or informer, instead of sending a request to the API server for each review"
                ),
                verify_doctor("requests of the level run as fast as before"),
            ),
            would_not_help=(
                "The webhook itself is not slow, so more replicas of it do not help.",
                "A longer timeout of the webhook and longer queues only keep the seats in use for longer.",
            ),
        )
    )


def _count_reviews(terminated: Mapping[tuple[str, str, str], float]) -> float:
    """Return the number of TokenReviews and SubjectAccessReviews that the server rejected, or that timed out.

    The keys of `terminated` are (HTTP status code, verb, resource).
    """
    return sum(
        count
        for (code, verb, resource), count in terminated.items()
        if resource in REVIEWS and verb == "POST" and code in ("429", "504")
    )


def is_locked(server: ServerLoad, level: LevelLoad) -> bool:
    """Return whether all seats of a level are in use, but nearly no executions of its requests have ended.

    The executions are counted since the previous snapshot or, with a single snapshot, since the start
    of the server. The metrics count an execution, or a call of a webhook, only when it ends.
    """
    held = server.held_seats((level.executions.total + level.watches.total) * (level.width.mean or 1))
    used, current = level.state.seats_in_use, level.state.current
    return bool(held is not None and used and current and used >= current and held < MAX_ENDED * used)


def _name(client: Client) -> str:
    return f'"{client.user}"' if client.user else "the user of the webhook"


def find_callbacks(level: LevelLoad) -> Callbacks | None:
    """Return the user whose waiting requests are callbacks of the executing writes of a level, or None if there is none.

    A webhook sends one callback for each reviewed write, right after the write has started. So a waiting request counts
    as a callback if it arrived right after the start of an executing write of another user.
    """
    executing = [
        row
        for flow in level.flows
        for row in flow.executing
        if row.verb in WRITES and row.started is not None and row.resource not in REVIEWS
    ]
    times = [moment for row in level.rows for moment in (row.arrived, row.started) if moment is not None]
    if not executing or (max(times) - min(row.started for row in executing if row.started)).total_seconds() < (
        LONG_EXECUTION_SECONDS
    ):
        return None
    owners = {row.user for row in executing}
    for client in rank_clients(row for flow in level.flows for row in flow.waiting):
        if client.user is None or client.user in owners:
            continue
        matched = _count_callbacks(executing, client.rows)
        is_review = client.resource in REVIEWS
        required = MIN_CALLBACK_SHARE * max(len(executing), 0 if is_review else len(client.rows))
        if matched >= (1 if is_review else MIN_CALLBACKS) and matched >= required:
            return Callbacks(client, len(executing), matched)
    return None


def _count_callbacks(executing: Sequence[RequestRow], waiting: Sequence[RequestRow]) -> int:
    """Return the number of requests in `executing` that have a callback in `waiting`.

    A callback is a request that a webhook sends to the API server while it reviews another request. It
    arrives at most `MAX_CALLBACK_SECONDS` after the start of the reviewed request. Each request in
    `waiting` counts as the callback of at most one request.
    """
    arrivals = sorted(row.arrived for row in waiting)
    starts = sorted(row.started for row in executing if row.started is not None)
    matched = position = 0
    for start in starts:
        while position < len(arrivals) and arrivals[position] < start:
            position += 1
        if position < len(arrivals) and (arrivals[position] - start).total_seconds() <= MAX_CALLBACK_SECONDS:
            matched += 1
            position += 1
    return matched


def _is_timed_out(webhook: Webhook) -> bool:
    """Return whether the mean duration of calls is close to an integer number of seconds, as if most calls timed out."""
    mean = webhook.calls.mean or 0
    return round(mean) >= 1 and abs(mean - round(mean)) <= 0.02 * mean


def find_slow_webhook(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if an admission webhook takes most of the execution time of a level, else None."""
    level = overload.load
    webhook = _main_webhook(server, level)
    if webhook is None:
        return _suspect_webhook(server, overload)
    mean, held = webhook.calls.mean or 0, server.held_seats(webhook.calls.total)
    share = min(1.0, webhook.calls.total / (level.executions.total or webhook.calls.total))
    seats = f" and hold {seats_text(held)} on average" if held is not None else ""
    client = find_client(server, level, _writes(level))
    return client.add_to(
        OverloadCause(
            "slow-webhook",
            f'Calls of the webhook "{webhook.name}" take {seconds_text(mean)} on average. Requests hold their seats during'
            f' the calls, which take {share:.0%} of the execution time at "{level.name}".',
            is_apf=False,
            levels=(level.name,),
            verb="create" if client.verb is None else client.verb,
            evidence=(
                (
                    f"{count_noun(round(webhook.calls.number), 'call')} of the webhook {describe_span(server)} took"
                    f" {seconds_text(mean)} on average{compare(webhook.earlier)}{seats}."
                ),
                *describe_service(level),
                *describe_offered(server, level),
                describe_harm(server, overload),
                *describe_clients(_writes(level), "Seats of writes in the dump"),
            ),
            actions=_webhook_actions(),
            would_not_help=_WEBHOOK_NOT,
            unsure=None
            if level.rows
            else "The webhook may be slow because it sends requests to this API server that wait at the same"
            " priority level (cause inversion). A dump of requests shows whether such requests wait.",
        )
    )


_WEBHOOK_NOT = (
    "More seats do not help, because slow requests would fill these seats, too: the number of seats in use is the rate of requests x the time in the webhook.",
    "The rate of the clients is small, so throttling them does not help.",
)


def _webhook_actions() -> tuple[Action, ...]:
    return (
        Action(
            "make the webhook fast, or decrease its timeoutSeconds",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ),
        Action("call the webhook for fewer objects: use namespaceSelector, objectSelector or matchConditions"),
        verify_doctor("the execution time of the level falls"),
    )


def _writes(level: LevelLoad) -> tuple[RequestRow, ...]:
    """Return the executing writes in the dump. If there are none, return the waiting writes."""
    executing = tuple(row for flow in level.flows for row in flow.executing if row.verb in WRITES)
    return executing or tuple(row for row in level.rows if row.verb in WRITES)


def _main_webhook(server: ServerLoad, level: LevelLoad) -> Webhook | None:
    """Return the slow webhook that takes most of the execution time of a level, or None if there is no such webhook."""
    locked = is_locked(server, level)
    for webhook in server.webhooks:
        if locked and not webhook.calls.number:
            webhook = webhook._replace(calls=webhook.earlier, earlier=Sum())  # noqa: PLW2901  # no call has ended since then
            if (webhook.calls.mean or 0) >= LONG_EXECUTION_SECONDS:
                return webhook
            continue
        mean, before = webhook.calls.mean, webhook.earlier.mean
        if mean is None or mean < SLOW_WEBHOOK_SECONDS:
            continue
        is_new = before is None or webhook.earlier.number < MIN_ETCD_OPERATIONS or mean >= 2 * before
        if not is_new and mean < LONG_EXECUTION_SECONDS:
            continue  # not the cause: before the overload, the calls already took more than half of this time
        # The metrics count the execution of a request at its end, shortly after the end of its webhook
        # call. So the total times of executions and of calls cover the same period, and are comparable.
        if webhook.calls.total >= MIN_WEBHOOK_SHARE * level.executions.total:
            return webhook
    return None


def _suspect_webhook(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if something outside of the server, probably a webhook, slows the writes of a level, else None.

    If the metrics show the calls of webhooks, return None: then the metrics show which webhook is slow.
    """
    level = overload.load
    executing = [row for flow in level.flows for row in flow.executing]
    slow = [row for row in executing if _execution_seconds(server, row) >= LONG_EXECUTION_SECONDS]
    has_others = any(row.verb not in WRITES or row.initial_seats > 1 for row in executing)
    is_slow_in_dump = len(slow) >= MIN_SLOW_WRITES and 2 * len(slow) >= len(executing)
    if server.has_webhooks or has_others or not (is_slow_in_dump or _is_slow_level(server, level)):
        return None
    client = find_client(server, level, slow or executing)
    mean = level.executions.mean
    seconds = max((_execution_seconds(server, row) for row in slow), default=mean or 0)
    return client.add_to(
        OverloadCause(
            "slow-webhook",
            f'Requests hold the seats of "{level.name}" for {seconds_text(seconds)}, as with a slow admission webhook.',
            is_apf=False,
            levels=(level.name,),
            evidence=(
                *describe_service(level),
                *_describe_other_levels(server, level),
                *_describe_slow_writes(executing, slow),
                *describe_offered(server, level),
                describe_harm(server, overload),
                *describe_clients(slow, "Seats of these writes"),
            ),
            actions=_webhook_actions(),
            would_not_help=_WEBHOOK_NOT,
            unsure=_NO_WEBHOOK_METRICS,
        )
    )


def _describe_other_levels(server: ServerLoad, level: LevelLoad) -> Iterator[str]:
    if level.executions.mean is not None and server.typical_seconds is not None:
        yield f"For comparison: {seconds_text(server.typical_seconds)} at all levels (median)."


def _describe_slow_writes(executing: Sequence[RequestRow], slow: Sequence[RequestRow]) -> Iterator[str]:
    if slow:
        yield (
            f"In the dump, {len(slow)} of {len(executing)} executing requests have run for more than"
            f" {seconds_text(LONG_EXECUTION_SECONDS)}, and all of them are writes."
        )


def _is_slow_level(server: ServerLoad, level: LevelLoad) -> bool:
    """Return whether requests of one seat are slower at this level than before, or than at the majority of other levels."""
    mean, before = level.executions.mean, level.earlier_executions
    if mean is None or mean < LONG_EXECUTION_SECONDS or level.executions.number < MIN_CALLBACKS:
        return False
    if (level.state.seats_in_use or 0) >= MIN_WIDTH * (level.state.executing or 1) or _are_waiting_wide(level):
        return False
    typical = server.typical_seconds
    is_grown = before.number >= MIN_ETCD_OPERATIONS and mean >= SLOW_LEVEL_RATIO * (before.mean or mean)
    return is_grown or (typical is not None and mean >= SLOW_LEVEL_RATIO * typical)


_NO_WEBHOOK_METRICS = (
    "The files do not show the time in admission webhooks. If the metric apiserver_admission_webhook_admission_duration_seconds is low, the"
    " storage of the written objects is slow (cause etcd-slow)."
)


def _execution_seconds(server: ServerLoad, row: RequestRow) -> float:
    """Return how long a request in the dump has executed, in seconds."""
    if row.started is None or server.dumped is None:
        return 0.0
    return (server.dumped - row.started).total_seconds()


def find_slow_etcd(server: ServerLoad, overloads: Sequence[Overload]) -> OverloadCause | None:
    """Return a cause if etcd slows the requests of all levels, else None."""
    overloads = [overload for overload in overloads if not _are_waiting_wide(overload.load)]
    mean = server.etcd.mean
    if not overloads:
        return None
    if mean is None:
        return _suspect_etcd(server, overloads)
    if server.etcd.number < MIN_ETCD_OPERATIONS or not _is_slow_etcd(server, mean):
        return None
    means = list_means(server.limited)
    if not means or median(means) < MIN_ETCD_SHARE * mean:
        return None
    return _etcd_cause(
        server,
        overloads,
        f"etcd takes {seconds_text(mean)} for an operation on a single object, and requests of every level hold their seats"
        " meanwhile.",
        (
            (
                f"{server.etcd.number:,.0f} operations on single objects {describe_span(server)} took {seconds_text(mean)} on"
                f" average{compare(server.earlier_etcd)}. A mean below 10 ms is usual, and etcd warns of requests that take more than 100 ms."
            ),
            f"Execution time at {len(means)} levels: {seconds_text(min(means))} to {seconds_text(max(means))} on average.",
        ),
        None,
    )


def _are_waiting_wide(level: LevelLoad) -> bool:
    return (level.waiting_seats or 0) >= MIN_WIDTH * (level.state.waiting or 1)


def _is_slow_etcd(server: ServerLoad, mean: float) -> bool:
    before = server.earlier_etcd
    is_grown = before.mean is not None and mean >= GROWN_ETCD_RATIO * before.mean
    return mean >= SLOW_ETCD_SECONDS or (mean >= GROWN_ETCD_SECONDS and is_grown and _are_executions_grown(server))


def _are_executions_grown(server: ServerLoad) -> bool:
    """Return whether the requests of most levels run longer than before.

    The time right after the start of a server is ignored: the server then reads and writes only its own objects.
    """
    ratios = [
        now / before
        for level in server.limited
        if (now := level.executions.mean) is not None
        and (before := level.earlier_executions.mean)
        and min(level.executions.number, level.earlier_executions.number) >= MIN_EXECUTIONS
    ]
    return bool(ratios) and median(ratios) >= MIN_GROWTH


def _suspect_etcd(server: ServerLoad, overloads: Sequence[Overload]) -> OverloadCause | None:
    """Return the cause `etcd-slow` if requests of several levels are slow, as if etcd were slow, else None.

    The function is for servers whose metrics do not contain the time in etcd. It uses the execution
    times of at least `_MIN_LEVELS` levels or, if these are not slow, the executing requests in the
    dump.
    """
    means = list_means(server.limited)
    if len(means) >= _MIN_LEVELS and median(means) >= SLOW_ETCD_SECONDS:
        evidence = (
            f"Execution time at {len(means)} levels: {seconds_text(min(means))} to {seconds_text(max(means))} on average.",
        )
    else:
        rows = tuple(_narrow_rows(server))
        times = [_execution_seconds(server, row) for row in rows]
        reads = {
            row.level
            for row, seconds in zip(rows, times, strict=True)
            if row.verb == "get" and seconds >= SLOW_ETCD_SECONDS
        }
        if not reads or len({row.level for row in rows}) < 2 or median(times) < 2 * SLOW_ETCD_SECONDS:
            return None
        evidence = (
            (
                f"In the dump, {count_noun(len(rows), 'executing request')} at {len({row.level for row in rows})} levels have run for"
                f" {seconds_text(median(times))} (median) to {seconds_text(max(times))}. Some of these requests are reads."
            ),
        )
    return _etcd_cause(
        server,
        overloads,
        "Requests of all levels are slow at the same time, as if the storage were slow, and hold their seats for longer.",
        evidence,
        "The files do not show the time of requests to etcd. The metric etcd_request_duration_seconds of kube-apiserver shows it. If etcd is fast,"
        " check whether the processors of the server are busy.",
    )


def _narrow_rows(server: ServerLoad) -> Iterator[RequestRow]:
    """Yield the executing requests in the dump that take one seat."""
    for level in server.limited:
        yield from (
            row for flow in level.flows for row in flow.executing if row.initial_seats == 1 and row.verb != "watch"
        )


def _etcd_cause(
    server: ServerLoad, overloads: Sequence[Overload], message: str, evidence: tuple[str, ...], unsure: str | None
) -> OverloadCause:
    return OverloadCause(
        "etcd-slow",
        message,
        is_apf=False,
        levels=tuple(overload.name for overload in overloads),
        evidence=(*evidence, *(describe_harm(server, overload) for overload in overloads[:_MIN_LEVELS])),
        actions=(
            Action(
                "look at etcd: disk latency, network, defragmentation, changes of the leader",
                "kubectl get --raw /metrics | grep ^etcd_request_duration_seconds_",
            ),
            verify_doctor("the execution time of all levels falls"),
        ),
        would_not_help=(
            "Other shares, FlowSchemas or inflight limits change which requests wait, but do not make etcd faster.",
        ),
        unsure=unsure,
    )
