"""Fields of audit events that a replay needs, and the reasons why a value is not an audit event.

An event has one of four stages. `RequestReceived` precedes impersonation, so its user may be wrong. A later event of the
request has the correct user. Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit.go.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from math import floor
from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.replay.uri_namespace import find_namespace
from apflint.requests.json_lines import get_string, get_strings, require_object
from apflint.requests.list_options import LIST_VERBS, reduce_list_options
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

RECEIVED, STARTED, COMPLETE, PANIC = "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"
STAGES = (RECEIVED, STARTED, COMPLETE, PANIC)
LATER_STAGES = frozenset(STAGES) - {RECEIVED}
DECISION = "authorization.k8s.io/decision"
"""Annotation of requests that reached authorization. Authorization follows API Priority and Fairness.

Recorded on 1.36.2: a request has this annotation if and only if API Priority and Fairness admitted the request.
"""
TOO_MANY_REQUESTS = 429
"""Status of rejections by API Priority and Fairness. Their `responseStatus` has no `reason`, because the body is plain text.

A status with a reason is the response of a handler, such as the refusal of an eviction because of a
PodDisruptionBudget, even if the event has no annotations. Source: `tooManyRequests` in
staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go. All 10,352 recorded rejections of a server 1.36.2 have
no reason.
"""
QUEUE_WAIT = "apiserver.latency.k8s.io/apf-queue-wait"
"""Annotation with the time in the queue, a Go duration. Only requests that took more than 500 ms have the annotation.

Source: `writeLatencyToAnnotation` in staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit.go.
"""

UNREADABLE_WAIT = -1
"""Value that marks a queue wait whose annotation is not a duration. `forget_unreadable_waits` counts and clears such waits."""

MIN_YEAR, MAX_YEAR = 1970, 2999
"""First and last year of times in audit logs. Times in other years are errors, and would overflow 64-bit calculations."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DURATION = re.compile(r"(?:([0-9]{1,7})h)?(?:([0-9]{1,2})m)?([0-9]{1,3}(?:\.[0-9]{1,9})?)(s|ms|[uµμ]s|ns)")
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ns": 1e-3}


class AttributeTuple(NamedTuple):
    """The attributes of a request that determine its FlowSchema and seats. Many requests have equal tuples."""

    user: str | None
    """Name of the user, or None if the event has no user, such as an event with status 401."""
    groups: tuple[str, ...] | None
    """Groups of the user, or None if the event does not contain groups, as on GKE."""
    verb: str
    api_group: str
    resource: str
    subresource: str
    namespace: str
    """The namespace if the configuration names it, else `OTHER_NAMESPACE`. Empty for requests without a namespace."""
    path: str
    """The percent-encoded path of a non-resource request. Empty for resource requests.

    Recorded: events of resource requests have an `objectRef`, even if the resource is empty, as in `/api/v1//pods`."""
    list_options: str = ""
    """The options of a list or watch that determine its seats, such as `limit=500&resourceVersion=0` (`list_options`).

    If the log was read without `Wanted.list_options`, the field contains only whether the request is for a single object."""


OTHER_NAMESPACE = "\x00"
"""Placeholder for the namespaces that the configuration does not name. FlowSchemas cannot distinguish these namespaces."""


def read_attributes(event: object, namespaces: Collection[str], *, has_options: bool) -> Hashable:
    """Return the values of the fields of `AttributeTuple` in an event. Namespaces outside `namespaces` become `OTHER_NAMESPACE`.

    If `has_options` is false, the options of lists and watches in the URL are omitted.

    Raises AttributeError or TypeError if a value that must be an object or a string of an audit event has another type. Then
    `find_problem` returns the reason. To save time, the types of most strings are not checked.
    """
    fields: Any = event
    user = fields.get("impersonatedUser") or fields.get("user") or _NOTHING
    reference = fields.get("objectRef") or _NOTHING
    groups = user.get("groups")
    if type(groups) is list:
        groups = tuple(groups)
    verb, uri, namespace = fields["verb"], fields.get("requestURI"), reference.get("namespace")
    if namespace is not None and type(namespace) is not str:
        raise TypeError("the namespace is not a string")
    namespace = find_namespace(uri, namespace) if reference else None
    if namespace and namespace not in namespaces:
        namespace = OTHER_NAMESPACE
    return (
        user.get("username"),
        groups,
        verb,
        reference.get("apiGroup"),
        reference.get("resource"),
        reference.get("subresource"),
        namespace,
        None if reference else fields["requestURI"].partition("?")[0],
        reduce_list_options((uri or "") if has_options else "", reference.get("name"))
        if reference and verb in LIST_VERBS
        else None,
    )


_NOTHING: dict[str, Any] = {}


def make_attributes(key: Hashable) -> AttributeTuple:
    """Return the attribute tuple for `key`, a result of `read_attributes`."""
    fields: Any = key
    user, groups, verb, api_group, resource, subresource, namespace, path, options = fields
    return AttributeTuple(
        user,
        None if groups is None else tuple(groups),
        verb,
        api_group or "",
        resource or "",
        subresource or "",
        namespace or "",
        path or "",
        options[1:] if options else "",
    )


def find_problem(value: object) -> str | None:
    """Return why a JSON value is not an audit event that a replay can read, as a clause, or None if it is such an event.

    Fields that `read_attributes` does not use may have any value.
    """
    try:
        event = require_object(value, "an audit event")
        kind, version = get_string(event, "kind"), get_string(event, "apiVersion")
        if kind not in ("", "Event") or not (version or "audit.k8s.io/").startswith("audit.k8s.io/"):
            return f"this is {version} {kind or 'without a kind'}, not an audit.k8s.io Event"
        stage = get_string(event, "stage")
        if stage not in STAGES:
            return f"unknown stage {quote(stage)}" if stage else "the event has no stage"
        if stage == RECEIVED:
            return None
        verb = get_string(event, "verb", required=True)
        get_string(event, "auditID")
        key = "impersonatedUser" if event.get("impersonatedUser") else "user"
        user = require_object(event.get(key) or {}, f'"{key}"')
        get_string(user, "username")
        get_strings(user, "groups")
        reference = require_object(event.get("objectRef") or {}, '"objectRef"')
        for key in ("resource", "subresource", "apiGroup", "namespace", *(("name",) if verb in LIST_VERBS else ())):
            get_string(reference, key)
        get_string(event, "requestURI", required=not reference)
        for key in ("requestReceivedTimestamp", "stageTimestamp"):
            if get_string(event, key) and parse_time(event[key]) is None:
                return f'"{key}" is not a time in the years {MIN_YEAR} to {MAX_YEAR}: {quote(event[key])}'
        if not (event.get("requestReceivedTimestamp") or event.get("stageTimestamp")):
            return "the event has no time"
        code = require_object(event.get("responseStatus") or {}, '"responseStatus"').get("code")
        if code is not None and not is_status(code):
            return f'"responseStatus.code" is not an HTTP status: {quote(json.dumps(code))}'
        require_object(event.get("annotations") or {}, '"annotations"')
    except UserError as error:
        return str(error)
    return None


def is_status(code: object) -> bool:
    """Return whether a JSON value is an integer from 0 to 9999, and so may be an HTTP status."""
    return type(code) is int and 0 <= code <= 9999


def parse_time(text: object) -> int | None:
    """Return a time in RFC 3339 as microseconds since 1970, or None if `text` is not a time from `MIN_YEAR` to `MAX_YEAR`.

    Exported logs may have times with a space, and with `UTC` or nothing in place of `Z`: `2026-11-22 05:49:20.1 UTC`.
    """
    try:
        time = datetime.fromisoformat(text.removesuffix(" UTC"))  # type: ignore[attr-defined]  # AttributeError is expected
    except (AttributeError, TypeError, ValueError):
        return None
    if time.tzinfo is None and str(text)[10:11] == " ":
        time = time.replace(tzinfo=UTC)
    # Python 3.14 also accepts the hour 24, which earlier versions reject.
    if time.tzinfo is None or not MIN_YEAR <= time.year <= MAX_YEAR or "T24" in str(text):
        return None
    return (time - _EPOCH) // _MICROSECOND


def parse_wait(text: object) -> int | None:
    """Return a Go duration in microseconds, rounded down, or `UNREADABLE_WAIT` if `text` is not a duration as Go prints it.

    The units are added in the same order as in the SQL of the other engines, so that all engines round equally.
    """
    if text is None:
        return None
    if not isinstance(text, str) or (match := _DURATION.fullmatch(text)) is None:
        return UNREADABLE_WAIT
    hours, minutes, number, unit = match.groups()
    return floor(int(hours or 0) * 3600e6 + int(minutes or 0) * 60e6 + float(number) * _MICROSECONDS[unit])
