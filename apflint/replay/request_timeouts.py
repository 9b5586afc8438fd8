"""The parameter `timeout` of a request, read from its URI by Python and by SQL.

The patterns are evaluated by Python and by SQL, so they have neither backslashes nor look-around. They see the URI as the
client encoded it: an escaped name of the parameter, as in `%74imeout=5s`, is misread. `timeoutSeconds` is another
parameter, which API Priority and Fairness does not read.
"""

from __future__ import annotations

import re

_TIMEOUT = "[?&]timeout=([^&]+)"
_MARK = "timeout="
_search = re.compile(_TIMEOUT).search


def find_timeout(uri: str) -> str | None:
    """Return the value of the parameter `timeout` as the client encoded it, or None if it is absent or empty."""
    match = _search(uri) if _MARK in uri else None
    return match[1] if match else None


def make_sql(uri: str) -> str:
    """Return `find_timeout` as an SQL expression. `uri` is an SQL expression."""
    return f"CASE WHEN instr({uri}, '{_MARK}') > 0 THEN nullif(regexp_extract({uri}, '{_TIMEOUT}', 1), '') END"
