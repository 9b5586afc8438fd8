"""Reduces the URL of a list or watch request to a string with the options that determine its seats.

Requests with the same string can be counted together. The patterns have neither backslashes nor look-around, so that
Python and SQL evaluate them equally. The patterns match the URL as the client encoded it. So a repeated parameter, or a
parameter with an escaped name (`%6Cimit=5`), may be misread.
"""

from __future__ import annotations

import re
from functools import cache

from apflint.evaluate.seats import ListOptions

LIST_VERBS = ("list", "watch")
MAX_LIMIT = 100_000
"""Greatest limit in a result. Greater limits are replaced by this limit, because it already allows the maximum seats in
every release.
"""
_SINGLE_OBJECT = "name"
"""Part of the result for a list of a single object (`fieldSelector=metadata.name=x`, visible in `objectRef`)."""

_LIMIT, _INVALID = "limit=", "invalid"
_BAD_NUMBER = "(=-?[0-9]*[^-0-9&]|=-?[0-9]+-|=--|=-?&|=-?$|&|$)"
_OPTIONS = (
    (
        "limit",
        (
            ("[?&]limit=0*([1-9][0-9]{0,4})(&|$)", _LIMIT),
            ("[?&](limit)=0*[1-9][0-9]{5}", f"{_LIMIT}{MAX_LIMIT}"),
            (f"[?&](limit){_BAD_NUMBER}", _INVALID),
        ),
    ),
    ("timeoutSeconds", ((f"[?&](timeoutSeconds){_BAD_NUMBER}", _INVALID),)),
    (
        "resourceVersion=",
        (
            ("[?&](resourceVersion)=0(&|$)", "resourceVersion=0"),
            ("[?&](resourceVersion)=[^&]", "resourceVersion=other"),
        ),
    ),
    (
        "resourceVersionMatch=",
        (
            ("[?&](resourceVersionMatch)=Exact(&|$)", "resourceVersionMatch=Exact"),
            ("[?&](resourceVersionMatch)=NotOlderThan(&|$)", "resourceVersionMatch=NotOlderThan"),
            ("[?&](resourceVersionMatch)=[^&]", "resourceVersionMatch=other"),
        ),
    ),
    ("continue=", (("[?&](continue)=[^&]", "continue"),)),
    ("Selector=", (("[?&](labelSelector|fieldSelector)=[^&]", "selector"),)),
    (
        "sendInitialEvents",
        (
            ("[?&](sendInitialEvents)=(0|[fF][aA][lL][sS][eE])(&|$)", ""),
            ("[?&](sendInitialEvents)(=|&|$)", "sendInitialEvents"),
        ),
    ),
)
"""(word, patterns) for each option. A pattern is (regular expression, part of the result).

The patterns are tried only if the URL contains the word. The result gets the part of the first matching pattern. The
part `limit=` is followed by the first group of the match. An empty part stands for the default value of the option. If
a number is invalid, the server cannot decode any option. Source: `Convert_url_Values_To_v1_ListOptions` in
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/zz_generated.conversion.go, and conversion.go in
apimachinery/pkg/runtime.
"""
_COMPILED = tuple(
    (word, tuple((re.compile(pattern.replace("$", r"\Z")).search, part) for pattern, part in cases))
    for word, cases in _OPTIONS
)


def reduce_list_options(url: str, name: object) -> str:
    """Return the options that determine the seats of a list or watch, such as `&limit=500&resourceVersion=0`.

    `name` is the object name in `objectRef` of the audit event, or None. Raises TypeError if
    `name` is neither a string nor None.
    """
    reduced = ""
    if name:
        if type(name) is not str:
            raise TypeError("the name of the object is not a string")
        reduced = f"&{_SINGLE_OBJECT}"
    query = url[url.find("?") :]
    if query[:1] != "?":
        return reduced
    for word, cases in _COMPILED:
        if word in query:
            for search, part in cases:
                if match := search(query):
                    reduced += f"&{part}{match[1] if part == _LIMIT else ''}" if part else ""
                    break
    return reduced


def make_sql(query: str | None, name: str) -> str:
    """Return an SQL expression with the same result as `reduce_list_options`.

    `query` is an SQL expression for the part of the URL from the first `?`, or None if no query options are available. `name` is
    an SQL condition for "the request has an object name".
    """
    parts = [f"CASE WHEN {name} THEN '&{_SINGLE_OBJECT}' ELSE '' END"]
    if query is None:
        return parts[0]
    for word, cases in _OPTIONS:
        choices = " ".join(
            f"WHEN regexp_like({query}, '{pattern}') THEN "
            + (
                f"'&{part}' || regexp_extract({query}, '{pattern}', 1)"
                if part == _LIMIT
                else f"'{part and f'&{part}'}'"
            )
            for pattern, part in cases
        )
        parts.append(f"CASE WHEN {query} LIKE '%{word}%' THEN CASE {choices} ELSE '' END ELSE '' END")
    options = " || ".join(parts[1:])
    return f"{parts[0]} || CASE WHEN {query} IS NOT NULL THEN {options} ELSE '' END"


@cache
def parse_list_options(reduced: str) -> ListOptions:
    """Return the options of a string that `reduce_list_options` returned, with or without the first `&`."""
    values = {key: value for key, _, value in (part.partition("=") for part in reduced.split("&"))}
    return ListOptions(
        limit=int(values.get("limit", 0)),
        resource_version=values.get("resourceVersion", ""),
        match=values.get("resourceVersionMatch", ""),
        continued="continue" in values,
        selector="selector" in values,
        single=_SINGLE_OBJECT in values,
        send_initial_events="sendInitialEvents" in values,
        is_valid=_INVALID not in values,
    )
