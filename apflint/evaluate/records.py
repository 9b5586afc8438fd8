"""Requests from files: audit events, and the lines of a requests file.

Audit events carry all groups of their user. To a line of a requests file, the groups that authentication always adds are added.
"""

from __future__ import annotations

import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.evaluate.authentication import AUTHENTICATED, EXACT_GROUPS, UNAUTHENTICATED, effective_groups
from apflint.evaluate.envelopes import CHILDREN, event_in, is_other_log, without_timestamp
from apflint.evaluate.match import UserInfo, rs_join
from apflint.evaluate.request import METHODS, Request, group_in_words, resource_info
from apflint.evaluate.requestinfo import request_info
from apflint.evaluate.resources import named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.requestinfo import RequestInfo

_JSON_TYPES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


class Line(NamedTuple):
    """One value of a file of JSON or JSON lines, with its 1-based line; or why there is none."""

    number: int
    value: object
    error: str | None = None


def json_values(text: str) -> Iterator[Line]:
    """The values of a text that is one JSON value or one a line; lists and Kubernetes lists give their items.

    A line that is no JSON gives an error, and the rest goes on.
    """
    first = text.lstrip("\ufeff \t\r\n")
    lines = ((at, line) for at, line in enumerate(text.lstrip("\ufeff").split("\n"), 1) if line.strip())
    opening = list(islice(lines, 2))
    # One value over several lines is told by its first line, which is no value on its own.
    if len(opening) > 1 and _decode(1, opening[0][1]).error is not None:
        whole = _decode(opening[0][0], first)
        if whole.error is None:
            yield from _items(whole)
            return
    for number, line in chain(opening, lines):
        yield from _items(_decode(number, line))


def no_json(error: ValueError | RecursionError) -> str:
    """A sentence for what Python's reader of JSON says."""
    if isinstance(error, RecursionError):
        return "This JSON is nested too deeply."
    # What is neither about JSON nor about UTF-8 is advice on how to raise Python's limit on digits.
    said = "a number has thousands of digits" if type(error) is ValueError else error
    return f"This is no JSON: {said}."


def from_record(value: object) -> Request:
    """The request in a line of a requests file.

    `{"user", "groups", "method", "path"}`, or `{"user", "groups", "verb", "resource", "group" or "apiGroup",
    "namespace", "subresource", "name"}`. A resource without a group is read as kubectl would read it; an empty group is
    the core group. Groups that authentication always adds are added and noted, unless the line already has
    `system:authenticated` or `system:unauthenticated`, or `"exactGroups": true`. Raises ValueError with a message for the user if the value is not a
    request.
    """
    fields = _object(value, "a request")
    _refuse_event(fields)
    name, groups = _text(fields, "user", needed=True), _texts(fields, "groups")
    added: tuple[str, ...] = ()
    if AUTHENTICATED not in groups and UNAUTHENTICATED not in groups and fields.get(EXACT_GROUPS) is not True:
        groups, added = effective_groups(name, groups)
    user = UserInfo(name, groups)
    path = _text(fields, "path")
    if path:
        method = _text(fields, "method") or _text(fields, "verb").upper() or "GET"
        return Request(user, request_info(method, path), added, path)
    resource, subresource = _text(fields, "resource"), _text(fields, "subresource")
    if not resource:
        raise ValueError('A request needs "method" and "path", or "verb" and "resource".')
    if not subresource:
        resource, _, subresource = resource.partition("/")
    group = fields.get("group", fields.get("apiGroup"))
    notes: tuple[str, ...] = ()
    if group is None:
        resource, group, notes = _inferred(resource)
    elif not isinstance(group, str):
        raise ValueError(f'"group" is {_type(group)}; it has to be a text.')
    info = resource_info(
        _text(fields, "verb", needed=True),
        group,
        _text(fields, "version") or _version(group, resource),
        resource,
        namespace=_text(fields, "namespace"),
        subresource=subresource,
        name=_text(fields, "name"),
    )
    return Request(user, info, (*notes, *added))


def _refuse_event(fields: dict[str, Any]) -> None:
    """Raise ValueError for an audit event, which has its user in an object."""
    if isinstance(fields.get("user"), str) and "apiVersion" not in fields:
        return  # a request, as nearly every line is
    if isinstance(fields.get("user"), dict) or str(fields.get("apiVersion")).startswith("audit.k8s.io/"):
        raise ValueError('This is an audit event: read it with --event. "user" of a request is a string.')
    if (event := event_in(fields)) is not fields and isinstance(event, dict):
        raise ValueError("This is an audit event in a log record: read it with --event.")


def from_event(value: object) -> Request:
    """Return the request that an audit.k8s.io Event is about; the event may be in the envelope of a hosted control plane.

    Raises ValueError with a message for the user if the value is not such an event.

    `impersonatedUser` goes before `user`: API Priority and Fairness comes after impersonation. `verb` and `requestURI`
    go before `objectRef`, whose namespace and name the server completes from the body of the request, where APF does not look
    (`LogRequestObject` in staging/src/k8s.io/apiserver/pkg/audit/request.go).
    """
    event = _object(event_in(value), "an audit event")
    kind = event.get("kind", "Event")
    if kind != "Event" or not str(event.get("apiVersion", "audit.k8s.io/v1")).startswith("audit.k8s.io/"):
        raise ValueError(f"This is {event.get('apiVersion')} {kind}, not an audit.k8s.io/v1 Event.")
    user, notes = _event_user(event)
    verb, uri = _text(event, "verb"), _text(event, "requestURI")
    reference = _object(event.get("objectRef") or {}, '"objectRef"')
    if uri:
        info, more = _uri_info(verb, uri)
        return Request(user, info, (*notes, *more, *_contradictions(info, reference)), uri)
    if not reference.get("resource"):
        raise ValueError('The event has neither a "requestURI" nor an "objectRef" with a resource.')
    info = resource_info(
        verb,
        _text(reference, "apiGroup"),
        _text(reference, "apiVersion"),
        _text(reference, "resource"),
        namespace=_text(reference, "namespace"),
        subresource=_text(reference, "subresource"),
        name=_text(reference, "name"),
    )
    return Request(user, info, (*notes, 'The event has no "requestURI": the request is read from "objectRef".'))


def _event_user(event: dict[str, Any]) -> tuple[UserInfo, tuple[str, ...]]:
    own = _object(event.get("user") or {}, '"user"')
    other = _object(event.get("impersonatedUser") or {}, '"impersonatedUser"')
    if not other:
        return UserInfo(_text(own, "username", needed=True), _texts(own, "groups")), ()
    user = UserInfo(_text(other, "username", needed=True), _texts(other, "groups"))
    return user, (f'"{_text(own, "username")}" impersonates "{user.name}", whose request it is for the server.',)


def _uri_info(verb: str, uri: str) -> tuple[RequestInfo, tuple[str, ...]]:
    info = request_info(METHODS.get(verb, verb.upper()), uri)
    if not info.is_resource_request and info.verb != verb:
        info = request_info(verb.upper(), uri)
    if info.is_resource_request and info.verb != verb:
        note = f'The event says "{verb}", its URI would be "{info.verb}": the event is believed.'
        return info._replace(verb=verb), (note,)
    return info, ()


def _contradictions(info: RequestInfo, reference: dict[str, Any]) -> Iterator[str]:
    if not reference.get("resource"):
        return
    named_there = (
        rs_join(_text(reference, "resource"), _text(reference, "subresource")),
        _text(reference, "apiGroup"),
        _text(reference, "namespace") or info.namespace,
    )
    seen = (rs_join(info.resource, info.subresource), info.api_group, info.namespace or named_there[2])
    if named_there != seen:
        yield 'The "requestURI" and the "objectRef" of the event differ: the URI is believed.'


def _inferred(resource: str) -> tuple[str, str, tuple[str, ...]]:
    """Plural name and group of a resource that came without a group. One that Kubernetes does not serve stays as it is."""
    known = next(iter(named(resource)), None)
    if known is None or (known.name == resource and not known.group):
        return resource, "", ()
    return known.name, known.group, (f'"{resource}" is read as "{known.name}" in {group_in_words(known.group)}.',)


def _version(group: str, resource: str) -> str:
    return next((known.version for known in named(resource) if known.group == group and known.name == resource), "")


def _decode(number: int, text: str) -> Line:
    try:
        return Line(number, json.loads(without_timestamp(text)))
    except (ValueError, RecursionError) as error:
        return Line(number, None, no_json(error))


def _items(line: Line) -> Iterator[Line]:
    value = items_of(line.value)
    if not isinstance(value, list):
        yield line
        return
    for item in value:
        if not is_other_log(item):
            yield Line(line.number, item)


def items_of(value: object) -> object:
    """The list in a Kubernetes list or in a batch of audit records; any other value as it is."""
    if isinstance(value, dict):
        for key in CHILDREN:
            if isinstance(value.get(key), list):
                return value[key]
    return value


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004  # it is the input that is wrong
            f"{what[0].upper()}{what[1:]} has to be a JSON object, not {_type(value)}."
        )
    return value


def _text(fields: dict[str, Any], key: str, *, needed: bool = False) -> str:
    value = fields.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        problem = "is missing." if value is None else f"is {_type(value)}; it has to be a text."
        raise ValueError(f'"{key}" {problem}')  # noqa: TRY004  # it is the input that is wrong
    return value


def _texts(fields: dict[str, Any], key: str) -> tuple[str, ...]:
    value = fields.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'"{key}" has to be a list of texts.')
    return tuple(value)


def _type(value: Any) -> str:
    return _JSON_TYPES.get(type(value), "a number")
