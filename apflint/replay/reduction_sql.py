"""The SQL that reduces audit events to distinct attribute tuples, and to a row for each request.

DuckDB and Spark execute the same SQL. Each engine provides the relation `event`, with the columns `_EVENT_COLUMNS`,
from the files of the log. The functions in the SQL have the same names in both engines, except `regexp_like`, for which
the DuckDB engine defines a macro.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from apflint.replay import request_timeouts, uri_namespace
from apflint.replay.events import COMPLETE, PANIC, RECEIVED, STARTED, UNREADABLE_WAIT, make_attributes
from apflint.replay.sql_text import quote
from apflint.requests.list_options import LIST_VERBS, make_sql

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Wanted

_EVENT_COLUMNS = """
    line, is_plain, server, id, kind, version, stage, audit_id, verb, uri, requester, impersonated, reference, code, decision,
    queue_wait, received, ended, agent
"""
"""Columns of the relation `event`.

`line` is the text of the line, if it may be needed. `is_plain` is true if all fields have the types of an audit event.
`server` is the index of the API server, and `id` is a hash of the audit ID. The other columns are fields of the event.
`requester`, `impersonated` and `reference` are structs. Groups are a JSON list as a string, because databases store and
compare a single string faster.
"""
_SEPARATOR = "\x01"
STAGES = (COMPLETE, STARTED, PANIC, RECEIVED)
"""Stages in the order of their classes. The class of an event is the index of its stage, or `ODD`."""
ODD = len(STAGES)
"""Class of lines that only Python can read: text that is not an event, events in an envelope, and events in an unusual form."""
IS_REQUEST = "class < 3"
_WAIT_UNITS = (("h", 3600e6), ("m", 60e6), ("s", 1e6), ("ms", 1e3), ("[uµμ]s", 1.0), ("ns", 1e-3))
"""Units of Go durations in microseconds, in the order in which `parse_wait` adds them."""


_NUMBER = r"-?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?"
_OTHER_VALUE = rf"^([{{\[]|({_NUMBER}|true|false|[-+]?([Nn][Aa][Nn]|[Ii][Nn][Ff]([Ii][Nn][Ii][Tt][Yy])?))$)"
"""Pattern of strings that may come from a JSON value that is not a string.

The pattern does not match UUIDs, although some UUIDs consist only of digits, `e` and `-`.
"""
_find_other_value = re.compile(_OTHER_VALUE).search
_IS_PLAIN = """
    is_plain AND (kind IS NULL OR kind IN ('', 'Event')) AND (version IS NULL OR version = '' OR version LIKE 'audit.k8s.io/%')
"""
# An empty object, such as `"objectRef": {}`, means the same as an absent object. But in SQL, an empty
# object looks like an object with only unknown fields. If objectRef or impersonatedUser looks like this,
# the condition is not true, and Python reads the line of the event.
_IS_COMPLETE = f"""
    verb IS NOT NULL AND received >= TIMESTAMP '1970-01-01 00:00:00' AND ended >= TIMESTAMP '1970-01-01 00:00:00'
    AND coalesce(code BETWEEN 0 AND 9999, TRUE) AND coalesce(namespace <> '{uri_namespace.UNCERTAIN}', TRUE) AND (impersonated IS NULL OR impersonated.username <> '')
    AND CASE WHEN reference IS NULL THEN uri <> '' ELSE coalesce(reference.resource, reference.apiVersion, reference.name,
        reference.namespace, reference.apiGroup, reference.subresource) IS NOT NULL END
"""
_IS_RESOURCE = f"stage <> '{RECEIVED}' AND reference IS NOT NULL"
"""SQL condition for events of requests for resources. For `RequestReceived`, only the audit ID is needed."""
_MATCHED = f"CASE WHEN {_IS_RESOURCE} THEN {uri_namespace.match_sql('uri')} END"
_NAMESPACE = f"CASE WHEN {_IS_RESOURCE} THEN {uri_namespace.make_sql('uri', 'reference.namespace', 'matched')} END"
"""SQL expression for the namespace of a request, or NULL if the event is not for a resource."""
_CLASS = f"""
    CAST(CASE WHEN NOT coalesce({_IS_PLAIN}, FALSE) THEN {ODD}
         WHEN stage = '{RECEIVED}' THEN {STAGES.index(RECEIVED)}
         WHEN NOT coalesce({_IS_COMPLETE}, FALSE) THEN {ODD}
         {" ".join(f"WHEN stage = '{stage}' THEN {number}" for number, stage in enumerate(STAGES[:3]))} ELSE {ODD} END AS TINYINT)
"""


_DURATION = "^([0-9]{1,7}h)?([0-9]{1,2}m)?[0-9]{1,3}([.][0-9]{1,9})?(s|ms|[uµμ]s|ns)$"
_WAIT_PARTS = " + ".join(
    f"coalesce(TRY_CAST(nullif(regexp_extract(queue_wait, '([0-9.]+){unit}{'([^s]|$)' if unit == 'm' else ''}', 1), '')"
    f" AS DOUBLE), 0) * {factor!r}"
    for unit, factor in _WAIT_UNITS
)
_WAIT = f"""
    CASE WHEN queue_wait IS NULL THEN NULL WHEN regexp_like(queue_wait, '{_DURATION}') THEN CAST(floor({_WAIT_PARTS}) AS BIGINT)
        ELSE {UNREADABLE_WAIT} END
"""
"""SQL expression for the microseconds of a Go duration. Computes the same value as `parse_wait`."""


def reduce_events(event: str, to_microseconds: str, wanted: Wanted, namespaces: Collection[str]) -> str:
    """Return an SQL query that yields one row for each audit event of the relation `event`.

    If the stage of the event is not RequestReceived, the column `key` contains the attributes of the
    request as one string, because databases compare one string faster than several. `to_microseconds` is the SQL function that
    converts times to microseconds. All namespaces that are not in `namespaces` get the same value in
    the key. Columns that the report does not need are absent, because databases would store them.
    """
    has_path = "reference IS NULL"
    is_self = "impersonated IS NULL"
    named = ", ".join(map(quote, sorted(namespaces))) or "NULL"
    lists = ", ".join(map(quote, LIST_VERBS))
    options = make_sql("query" if wanted.list_options else None, "coalesce(reference.name, '') <> ''")
    # The subquery computes the namespace once. Without the subquery, databases would compute it at each use.
    query = f"""
        CASE WHEN stage <> '{RECEIVED}' AND verb IN ({lists}) AND reference IS NOT NULL AND instr(uri, '?') > 0
             THEN substr(uri, instr(uri, '?')) END AS query
    """
    separator = f"chr({ord(_SEPARATOR)})"
    namespace = f"CASE WHEN namespace IN ('', {named}) THEN namespace WHEN namespace IS NOT NULL THEN chr(0) END"
    attributes = (
        f"CAST(CASE WHEN {is_self} THEN requester.groups ELSE impersonated.groups END AS STRING)",
        "verb",
        "reference.apiGroup",
        "reference.resource",
        "reference.subresource",
        namespace,
        f"CASE WHEN {has_path} THEN split_part(uri, '?', 1) END",
        f"CASE WHEN NOT ({has_path}) AND verb IN ({lists}) THEN {options} END",
    )
    user = f"CASE WHEN {is_self} THEN requester.username ELSE impersonated.username END"
    texts = (f"{user} || {separator}", f", {separator}, ".join(f"coalesce({text}, '')" for text in attributes))
    columns = {
        "key": f"concat(coalesce({texts[0]}, ''), {texts[1]})",
        "id": "CASE WHEN audit_id <> '' THEN id END",
        "received": f"{to_microseconds}(received)",
        "ended": f"{to_microseconds}(ended)",
        "code": "CAST(code AS SMALLINT)",
        "decided": "CAST(CASE WHEN decision IS NULL THEN 0 ELSE 1 END AS TINYINT)",
        "wait": _WAIT,
        **{name: value for name, (is_wanted, value) in _list_optional(wanted).items() if is_wanted},
    }
    identity = {"id", "audit_id"}  # needed for all events, to find requests with only `RequestReceived`
    values = ", ".join(
        f"CASE WHEN {f'class < {ODD}' if name in identity else IS_REQUEST} THEN {value} END AS {name}"
        for name, value in columns.items()
    )
    return f"""
        SELECT class, CASE WHEN class = {ODD} THEN line END AS line, server, {values}
        FROM (SELECT *, {_CLASS} AS class{f", {query}" if wanted.list_options else ""}
            FROM (SELECT *, {_NAMESPACE} AS namespace
                FROM (SELECT *, {_MATCHED} AS matched FROM ({event}) AS event) AS matched_event) AS located) AS classified
    """


def _list_optional(wanted: Wanted) -> dict[str, tuple[bool, str]]:
    """Return the columns that only some reports need: whether this report needs the column, and its SQL."""
    return {
        "real_namespace": (wanted.namespace, "namespace"),
        "agent": (wanted.agent, "agent"),
        "audit_id": (wanted.audit_id, "audit_id"),
        "uri_hash": (wanted.calls, "CAST(hash(uri) >> 1 AS BIGINT)"),
        "timeout": (wanted.calls, request_timeouts.make_sql("uri")),
    }


def select_request(wanted: Wanted) -> str:
    """Return the columns of the table `request`, without `tuple` and `server`, in SQL on the rows of `reduce_events`."""
    columns = {
        "id": "id",
        "started": f"CAST(CASE WHEN class = {STAGES.index(STARTED)} THEN 1 ELSE 0 END AS TINYINT)",
        **{name: name for name in ("received", "ended", "code", "decided", "wait")},
    }
    names = {"real_namespace": "namespace", "uri_hash": "uri"}
    for name, (is_wanted, _) in _list_optional(wanted).items():
        kind = "BIGINT" if name == "uri_hash" else "STRING"
        columns[names.get(name, name)] = name if is_wanted else f"CAST(NULL AS {kind})"
    return ", ".join(f"{value} AS {name}" for name, value in columns.items())


def is_ambiguous(texts: Iterable[str]) -> str:
    """Return an SQL condition that is true if one of the strings looks like a converted JSON value.

    `texts` are SQL expressions for the strings. SQL engines convert a number, boolean, list or object
    to a string if the type of the field is string. So the string `true` may come from the boolean.
    """
    # Most strings begin with a lowercase letter. Comparing this letter is faster than a regular expression.
    conditions = (
        f"CASE WHEN {text} >= 'a' AND {text} < '{{' AND {text} NOT IN ('true', 'false') THEN FALSE"
        f" ELSE coalesce(regexp_like({text}, {quote(_OTHER_VALUE)}), FALSE) END"
        for text in texts
    )
    return f"({' OR '.join(conditions)})"


def read_key(key: str) -> AttributeTuple:
    """Return the attribute tuple that a value of the column `key` encodes.

    Raises ValueError if a string in the key may come from a JSON value that is not a string, or if the
    groups are not a list of strings.
    """
    # If an event has no user, its key has no part for the user: the key begins with the groups, and `user` is
    # an empty list.
    *user, groups, verb, api_group, resource, subresource, namespace, path, options = key.split(_SEPARATOR)
    if len(user) > 1 or any(map(_find_other_value, (*user, verb, api_group, resource, subresource))):
        raise ValueError(key)
    names = json.loads(groups or "null")
    if names is not None and not (type(names) is list and all(type(name) is str for name in names)):
        raise ValueError(key)
    fields = (verb, api_group, resource, subresource, namespace, path, options)
    return make_attributes((user[0] if user else None, names, *fields))
