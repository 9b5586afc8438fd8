"""The namespace of a request, extracted from its URI by Python and by SQL.

`objectRef` is not enough: if the URI has no namespace, the server completes `objectRef` from the body of the request
(`LogRequestObject` in staging/src/k8s.io/apiserver/pkg/audit/request.go). But API Priority and Fairness does not read
bodies. For example, a ClusterRole is created outside of any namespace, even if its body has `metadata.namespace`.

Python and SQL evaluate the same patterns, so the patterns have neither backslashes nor look-around.
`parse_request_info` parses URIs that the patterns do not cover, such as URIs with escaped segments.
"""

from __future__ import annotations

import re

from apflint.evaluate.requestinfo import parse_request_info
from apflint.user_error import UserError

_START = "^/+(api|apis/[^/?%]+)/[^/?%]+/(watch/|proxy/)?"
_NAMESPACE = f"{_START}namespaces/([^/?%]+)([/?]|$)"
_RESOURCE = f"{_START}([^/?%]+(/|[?]|$))"
"""Pattern for the first segment after the version, and for the character after this segment."""
_SPECIAL = "^(|namespaces/|(watch|proxy)[/?]?)$"
"""Pattern for matches of `_RESOURCE` that do not prove that the request has no namespace."""
_MARK, _ESCAPE = "/namespaces/", "%"
UNCERTAIN = _ESCAPE
"""Value of the SQL expression if only Python can determine the namespace. A namespace cannot contain this character."""
_match_namespace = re.compile(_NAMESPACE).match
_match_resource = re.compile(_RESOURCE).match
_is_special = re.compile(_SPECIAL).match


def find_namespace(uri: str | None, reference: str | None) -> str:
    """Return the namespace of a resource request, or an empty string if it has none.

    `reference` is the namespace in `objectRef`. `reference` is used if the event has no URI, as on GKE, or a URI that
    the server cannot parse. Raises TypeError if `uri` is neither a string nor None.
    """
    if uri is not None and type(uri) is not str:
        raise TypeError("the URI is not a string")
    if not uri:
        return reference or ""
    if _MARK not in uri and _ESCAPE not in uri:
        return ""
    if match := _match_namespace(uri):
        return match[3]
    if (match := _match_resource(uri)) and not _is_special(match[3]):
        return ""
    try:
        return parse_request_info("GET", uri).namespace
    except UserError:
        return reference or ""


def find_version(uri: str) -> str | None:
    """Return the start of a URI up to `/namespaces/NAMESPACE/`, such as `/api/v1`.

    Return None if the URI does not begin with an API version and a namespace. The caller can use the
    result for other URIs: if a URI begins with the result and `/namespaces/`, the next segment is the
    namespace.
    """
    match = _match_namespace(uri)
    if match is None or match[4] != "/" or uri.find(_MARK) != match.start(3) - len(_MARK):
        return None
    return uri[: match.start(3) - len(_MARK)]


def match_sql(uri: str) -> str:
    """Return an SQL expression for the namespace that `_NAMESPACE` finds in a URI.

    Its value is an empty string if the pattern does not match. `uri` is an SQL expression.
    """
    return f"regexp_extract({uri}, '{_NAMESPACE}', 3)"


def make_sql(uri: str, reference: str, matched: str) -> str:
    """Return an SQL expression that computes `find_namespace`.

    Its value is `UNCERTAIN` if only Python can determine the namespace. All parameters are SQL expressions; `matched` is
    the value of `match_sql`, or NULL. It is a parameter because databases evaluate each occurrence of a regular expression.
    """
    # IN with several values is avoided, because DuckDB would evaluate its operand for all rows.
    resource = f"regexp_extract({uri}, '{_RESOURCE}', 3)"
    return (
        f"CASE WHEN {matched} <> '' THEN {matched} WHEN coalesce({uri}, '') = '' THEN coalesce({reference}, '')"
        f" WHEN instr({uri}, '{_MARK}') = 0 AND instr({uri}, '{_ESCAPE}') = 0 THEN ''"
        f" WHEN regexp_like({resource}, '{_SPECIAL}') THEN '{UNCERTAIN}' ELSE '' END"
    )
