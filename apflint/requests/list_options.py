"""Reduces the URL of a list or watch request to the options that determine its seats, as a few different strings.

The patterns have neither backslashes nor look-around, so that Python and SQL evaluate them equally. The patterns match
the URL as the client encoded it. So an escaped parameter name, as in `%6Cimit=5`, or a repeated parameter may be
misread.
"""

from __future__ import annotations

import re
from functools import cache

from apflint.evaluate.seats import ListOptions

LIST_VERBS = ("list", "watch")
MAX_LIMIT = 100_000
"""Greatest limit in a result. It represents all greater limits: such lists take the maximum of seats in any release."""
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
"""Patterns by a word that must be in the URL, each with a part of the result.

Only the part of the first matching pattern is used.

The part `limit=` is followed by the first group of the pattern. An empty part stands for the default. If a parameter is
not a number, the server cannot decode the options. Source: `Convert_url_Values_To_v1_ListOptions` in
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/zz_generated.conversion.go, and conversion.go in apimachinery/pkg/runtime.
"""
_COMPILED = tuple(
    (word, tuple((re.compile(pattern.replace("$", r"\Z")).search, part) for pattern, part in cases))
    for word, cases in _OPTIONS
)


def reduce_list_options(url: str, name: object) -> str:
    """Return the parts of the options of a list or watch, each after a `&`, such as `&limit=500&resourceVersion=0`.

    `name` is the name in `objectRef`, or None. Raises TypeError if it is not a string.
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
    """Return `reduce_list_options` as an SQL expression.

    `query` is an SQL expression for the URL from the first `?`, or None without query options. `name` is an SQL condition.
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
