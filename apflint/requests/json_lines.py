"""Parser of requests in JSON: one value, a list, or one value per line. Values may be log records of hosted control planes."""

from __future__ import annotations

import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_AUDIT_VALUE_BYTES, MAX_LINES_WITHOUT_EVENTS
from apflint.evaluate.authentication import AUTHENTICATED, EXACT_GROUPS, UNAUTHENTICATED, complete_groups
from apflint.evaluate.match import UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.evaluate.resources import find_resources
from apflint.named_tuple import NamedTuple
from apflint.requests.log_wrappers import is_other_log, strip_prefix, unwrap_event, unwrap_list
from apflint.requests.request import Request, describe_group, make_resource_info
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MAX_EMPTY_BATCHES = 8
"""Maximum number of batches without a value at the start of a text. A batch has up to 512 KiB of lines."""
_JSON_TYPES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}

NO_EVENTS = (
    f"more than {MAX_LINES_WITHOUT_EVENTS:,} consecutive lines are not audit events: the rest of the file is not read"
)
"""Error message for a file that is probably not an audit log."""


class NotJsonError(UserError):
    """Raised for text that is not JSON."""


class NotEventError(UserError):
    """Raised for JSON without the fields by which apflint recognizes audit events, and for a file without audit events."""


class RejectedLine(NamedTuple):
    """The number of a line without a valid request (from 1), and the reason."""

    number: int
    message: str
    kind: type[UserError]

    @classmethod
    def of(cls, number: int, error: UserError) -> RejectedLine:
        """Return a RejectedLine for the line `number`, whose reason is the message of `error`."""
        return cls(number, str(error), type(error))


class JsonValue(NamedTuple):
    """A value of a JSON text, with its line number (from 1). If the line is not JSON, `error` states the reason."""

    line: int
    value: object
    error: UserError | None = None


def read_json_values(text: str) -> Iterator[JsonValue]:
    """Yield the values of a text that contains one JSON value, or one JSON value per line. For a list, yield its items.

    If a line is not JSON, yield a `JsonValue` with an error for this line, and continue with the next line.
    """
    lines = ((at, line) for at, line in enumerate(text.lstrip("\ufeff").split("\n"), 1) if line.strip())
    first_lines = list(islice(lines, 2))
    # If a value spans several lines, its first line alone is not valid JSON.
    if len(first_lines) > 1 and _read_value(1, first_lines[0][1]).error is not None:
        value = _read_value(first_lines[0][0], text.lstrip("\ufeff \t\r\n"))
        if value.error is None:
            yield from _split_list(value)
            return
    for line, part in chain(first_lines, lines):
        yield from _split_list(_read_value(line, part))


def join_first_value(batches: Iterable[list[bytes]]) -> Iterator[list[bytes] | str]:
    """Yield the whole text as one string if it may be one JSON value over several lines.

    Otherwise, yield `batches`, the lines of the text, unchanged.
    """
    batches = iter(batches)
    head: list[list[bytes]] = []
    for batch in batches:
        head.append(batch)
        first = next((line for line in batch if line.strip()), None)
        if first is None and len(head) <= _MAX_EMPTY_BATCHES:
            continue
        if first is not None and _is_beginning(first):
            size = 0
            for more in batches:
                head.append(more)
                size += sum(map(len, more))
                # A text of more than MAX_AUDIT_VALUE_BYTES is probably not one value, but a log with one value per
                # line whose first line is incomplete. So yield the lines unchanged.
                if size > MAX_AUDIT_VALUE_BYTES:
                    break
            else:
                text = b"\n".join(chain.from_iterable(head))
                head.clear()
                yield text.decode("utf-8", "replace")
                return
        break
    yield from head
    yield from batches


def _is_beginning(line: bytes) -> bool:
    """Return whether parsing a line as JSON fails at the end of the line, so that the line may be the start of a JSON value."""
    text = line.decode("utf-8", "replace").strip()
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return isinstance(error, json.JSONDecodeError) and error.pos >= len(text)
    return False


def describe_json_error(error: ValueError | RecursionError) -> UserError:
    """Return the UserError to raise for an exception of `json.loads`."""
    if isinstance(error, RecursionError):
        return UserError("this JSON is nested too deeply")
    # json.loads raises a plain ValueError only for a number with too many digits. The message of this
    # error is advice for Python programmers, so replace the message.
    reason = "a number has thousands of digits" if type(error) is ValueError else error
    return NotJsonError(f"this is not JSON: {reason}")


def parse_record(value: object) -> Request:
    """Return the request of a JSON object.

    The keys are `user`, `groups`, `method`, `path`, or `user`, `groups`, `verb`, `resource`, `group` (or `apiGroup`),
    `version`, `namespace`, `subresource`, `name`. If `group` is absent, the resource is resolved as in kubectl. An
    empty group is the core group. The user also gets the groups that authentication adds, and a note names these
    groups, unless `groups` contains `system:authenticated` or `system:unauthenticated`, or `exactGroups` is true.
    Raises UserError if `value` is not a request.
    """
    fields = require_object(value, "a request")
    _reject_event(fields)
    name, groups = get_string(fields, "user", required=True), get_strings(fields, "groups")
    group_notes: tuple[str, ...] = ()
    if AUTHENTICATED not in groups and UNAUTHENTICATED not in groups and fields.get(EXACT_GROUPS) is not True:
        groups, group_notes = complete_groups(name, groups)
    user = UserInfo(name, groups)
    path = get_string(fields, "path")
    if path:
        method = get_string(fields, "method") or get_string(fields, "verb").upper() or "GET"
        return Request(user, parse_request_info(method, path), group_notes, path)
    resource, subresource = get_string(fields, "resource"), get_string(fields, "subresource")
    if not resource:
        raise UserError('a request needs "method" and "path", or "verb" and "resource"')
    if not subresource:
        resource, _, subresource = resource.partition("/")
    group = fields.get("group", fields.get("apiGroup"))
    notes: tuple[str, ...] = ()
    if group is None:
        group, known = "", find_resources(resource)
        if known and (known[0].name, known[0].group) != (resource, ""):
            notes = (f'"{resource}" is read as "{known[0].name}" in {describe_group(known[0].group)}.',)
            resource, group = known[0].name, known[0].group
    elif not isinstance(group, str):
        raise UserError(f'"group" must be a string, not {_describe_type(group)}')
    versions = (known.version for known in find_resources(resource) if (known.name, known.group) == (resource, group))
    info = make_resource_info(
        get_string(fields, "verb", required=True),
        group,
        get_string(fields, "version") or next(versions, ""),
        resource,
        namespace=get_string(fields, "namespace"),
        subresource=subresource,
        name=get_string(fields, "name"),
    )
    return Request(user, info, (*notes, *group_notes))


def _reject_event(fields: dict[str, Any]) -> None:
    """Raise UserError if the object is an audit event, or a log record with an audit event."""
    user = fields.get("user")
    if isinstance(user, str) and "apiVersion" not in fields:
        return  # common case: a request
    if isinstance(user, dict) or str(fields.get("apiVersion")).startswith("audit.k8s.io/"):
        raise UserError('this is an audit event: read it with --event. In a request, "user" must be a string')
    event = unwrap_event(fields)
    if event is not fields and isinstance(event, dict):
        raise UserError("this is an audit event in a log record: read it with --event")


def _read_value(line: int, text: str) -> JsonValue:
    try:
        return JsonValue(line, json.loads(strip_prefix(text)))
    except (ValueError, RecursionError) as error:
        return JsonValue(line, None, describe_json_error(error))


def _split_list(value: JsonValue) -> Iterator[JsonValue]:
    records = unwrap_list(value.value)
    if records is None:
        yield value
        return
    for record in records:
        if not is_other_log(record.value):  # Azure event hubs mix audit events with other records
            yield JsonValue(value.line, record.value)


def require_object(value: object, what: str) -> dict[str, object]:
    """Return `value` if it is a JSON object. Else, raise UserError with a message that calls the value `what`."""
    if not isinstance(value, dict):
        raise UserError(f"{what} must be a JSON object, not {_describe_type(value)}")
    return value


def get_string(fields: Mapping[str, object], key: str, *, required: bool = False) -> str:
    """Return the string at `key`, or "" if it is absent or null.

    Raises UserError if the value is not a string, or if `required` is true and the key is absent.
    """
    value = fields.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        problem = "is missing" if value is None else f"must be a string, not {_describe_type(value)}"
        raise UserError(f'"{key}" {problem}')
    return value


def get_strings(fields: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return the strings at `key`, or () if it is absent or null. Raises UserError if the value is not a list of strings."""
    value = fields.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UserError(f'"{key}" must be a list of strings')
    return tuple(value)


def _describe_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "a number")
