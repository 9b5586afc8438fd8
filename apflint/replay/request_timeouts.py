"""The parameter `timeout` of a request, read from its URI by Python and by SQL.

The patterns have neither backslashes nor look-around, so that Python and SQL evaluate them equally. The patterns match
the URI as the client encoded it, so a parameter with an escaped name, such as `%74imeout=5s`, is not found.
`timeoutSeconds` is another parameter, which API Priority and Fairness does not read.
"""

from __future__ import annotations

import re

_TIMEOUT = "[?&]timeout=([^&]+)"
_MARK = "timeout="
_search = re.compile(_TIMEOUT).search


def find_timeout(uri: str) -> str | None:
    """Return the value of the parameter `timeout` as the client encoded it, or None if the value is absent or empty."""
    match = _search(uri) if _MARK in uri else None
    return match[1] if match else None


def make_sql(uri: str) -> str:
    """Return an SQL expression that computes `find_timeout` for the SQL expression `uri`."""
    return f"CASE WHEN instr({uri}, '{_MARK}') > 0 THEN nullif(regexp_extract({uri}, '{_TIMEOUT}', 1), '') END"
