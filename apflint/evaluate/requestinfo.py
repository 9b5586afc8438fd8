"""Parser that determines the attributes of a request from its HTTP method and URL, as kube-apiserver does.

Source: `RequestInfoFactory.NewRequestInfo` in staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, with
the prefixes `api` (no group) and `apis`; compared with recordings of kube-apiserver 1.36.2.
"""

from __future__ import annotations

import re

from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# url.ParseRequestURI also accepts absolute URLs, which clients of a proxy send: GET http://host/path.
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_INT64 = re.compile(r"[+-]?[0-9]+", re.ASCII)
# Patterns of selectors. Sources: `fields.ParseSelector` in staging/src/k8s.io/apimachinery/pkg/fields/selector.go, and
# `labels.Parse` in .../pkg/labels/selector.go.
_TERM = re.compile(r"((?:\\.|[^\\,])*\\?)(?:,|\Z)", re.DOTALL)
"""Pattern of a term of a field selector. The term ends at an unescaped comma or at the end of the selector."""
_OPERATOR = re.compile(r"!=|==|=")
_VALUE = re.compile(r"(?:\\[\\,=]|[^\\,=])*", re.DOTALL)
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_DNS_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_NAME = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:(?=[^/]{{1,253}}/){_DNS_LABEL}(?:\.{_DNS_LABEL})*/)?{_NAME}"
# In label selectors, empty values are valid, except after < and >. Lists may have empty items, but must not be empty.
_VALUES = rf"\( (?!\))(?:(?:{_NAME} )?, )*(?:{_NAME} )?\)"
_REQUIREMENT = rf"(?:! {_KEY}|{_KEY}(?: (?:in|notin) {_VALUES}| (?:==?|!=)(?: {_NAME})?| [<>] [0-9]{{1,19}})?)"
_LABEL_SELECTOR = rf"(?:{_REQUIREMENT}(?: , {_REQUIREMENT})*)?"
"""Pattern of a label selector with single spaces between tokens. The pattern is compiled only if needed: compiling
takes 3 ms."""

_LONG_RUNNING_VERBS = frozenset(("watch", "proxy"))
LONG_RUNNING_SUBRESOURCES = frozenset(("attach", "exec", "proxy", "log", "portforward"))
LONG_RUNNING_PATH = "/debug/pprof/"
"""Prefix of the paths of profiles. Requests with this prefix are long-running, like requests with the verbs and subresources above.

Source: `BuildGenericConfig` in pkg/controlplane/apiserver/config.go and
`BasicLongRunningRequestCheck` in staging/src/k8s.io/apiserver/pkg/server/filters/longrunning.go."""


class RequestInfo(NamedTuple):
    """The attributes of a request, with the names of Kubernetes. Attributes that do not apply to the request are empty."""

    is_resource_request: bool
    verb: str
    """Verb of a resource request (`get`, `list`, `create`, ...), or the HTTP method of a non-resource request in lower case.
    Empty for a resource request whose method maps to no verb, such as OPTIONS."""
    api_prefix: str
    api_group: str
    api_version: str
    namespace: str
    """Namespace, empty for cluster-scoped resources and for all namespaces. For the Namespace object `foo`: `foo`."""
    resource: str
    subresource: str
    name: str
    path: str
    """The path of the URL, percent-decoded."""
    parts: tuple[str, ...] = ()
    """The segments of the path, beginning with the resource."""
    field_selector: str = ""
    label_selector: str = ""


def parse_request_info(method: str, url: str) -> RequestInfo:
    """Return the attributes of the HTTP request `method url`. `url` is a path with or without a query, or an absolute URL.

    Raises UserError if the server would answer 400 or 500: for a path that ends after `watch` or `proxy`
    (`/api/v1/watch`), a broken percent escape, a control character, or a path that does not start with a slash.
    """
    path, query = _target(url)
    parts = path.strip("/").split("/")
    grouped = parts[0] == "apis"
    if len(parts) < (4 if grouped else 3) or not (grouped or parts[0] == "api"):
        # If the path is too short for a resource, the result has no API prefix, except for /apis/GROUP/VERSION.
        prefix = "apis" if grouped and len(parts) == 3 else ""
        return RequestInfo(False, method.lower(), prefix, "", "", "", "", "", "", path)
    prefix = parts[0]
    group, version, parts = (parts[1], parts[2], parts[3:]) if grouped else ("", parts[1], parts[2:])

    by_prefix = parts[0] in ("watch", "proxy")
    if by_prefix:
        if len(parts) < 2:
            raise UserError(
                f'"{url}" ends after "{parts[0]}": the server cannot determine the resource and answers with status 500.'
                f' Add a resource: "{path.rstrip("/")}/pods"'
            )
        verb, parts = parts[0], parts[1:]
    else:
        verb = _VERBS.get(method, "")

    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        # .../namespaces/foo/status and /finalize are for the Namespace object. Other paths are for objects in the namespace.
        if len(parts) > 2 and parts[2] not in ("status", "finalize"):
            parts = parts[2:]
    resource = parts[0]
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 and verb != "proxy" else ""

    values = parse_query(query) if query else {}
    if not name and verb == "get":
        verb, name = _list_or_watch(values)
    elif not name and verb == "delete":
        verb = "deletecollection"
    # The server parses selectors for authorization (KEP-4601), but not in requests with the deprecated prefix /watch/.
    selectors = values if not by_prefix and verb in ("list", "watch", "deletecollection") else {}
    return RequestInfo(
        True,
        verb,
        prefix,
        group,
        version,
        namespace,
        resource,
        subresource,
        name,
        path,
        tuple(parts),
        selectors.get("fieldSelector", ""),
        selectors.get("labelSelector", ""),
    )


def parse_path(url: str) -> str:
    """Return the path of a URL, percent-decoded. Raises UserError if the server cannot parse the URL."""
    return _target(url)[0]


def is_long_running(info: RequestInfo) -> bool:
    """Return whether the server sets no deadline for a request, such as a watch, a log, a port-forward or a profile."""
    if info.verb in _LONG_RUNNING_VERBS:
        return True
    if info.is_resource_request:
        return info.subresource in LONG_RUNNING_SUBRESOURCES
    return info.path.startswith(LONG_RUNNING_PATH)


def is_seen_by_apf(info: RequestInfo, *, watches: bool = True) -> bool:
    """Return whether API Priority and Fairness classifies a request.

    Long-running requests are not classified, except watches.

    `watches` is `Release.classifies_watches`: releases up to 1.21 do not classify watches, either. Source:
    `WithPriorityAndFairness` in staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go.
    """
    return (watches and info.verb == "watch") or not is_long_running(info)


def parse_query(query: str) -> dict[str, str]:
    """Return a mapping from the name of each parameter of a query string to its first value.

    Parameters with `;` or an invalid escape are omitted, as in Go's `url.ParseQuery`.
    """
    values: dict[str, str] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        values.setdefault(_decoded(key.replace("+", " ")), _decoded(value.replace("+", " ")))
    return values


def _target(url: str) -> tuple[str, str]:
    """Return (decoded path, raw query) of a URL, as Go's `url.ParseRequestURI` does. Raises UserError if Go returns an error."""
    target = url
    if not url.startswith("/") and url != "*":
        absolute = _ABSOLUTE.match(url)
        if absolute is None:
            raise UserError(f'"{url}" is not a path: it must start with "/"')
        target = url[absolute.end() :]
    raw, _, query = target.partition("?")
    if "%" in raw:
        broken = _BAD_ESCAPE.search(raw)
        if broken:
            escape = raw[broken.start() : broken.start() + 3]
            raise UserError(f'"{url}" has the invalid percent escape "{escape}": the server answers with status 400')
        raw = _decoded(raw)
    if _CONTROL.search(target):
        raise UserError(f"{url!r} has a control character in it: the server answers with status 400")
    return raw, query


def _decoded(text: str) -> str:
    # Replace bytes that are not UTF-8 by U+FFFD, as the server does when it writes the path to its log or metrics.
    if "%" not in text:
        return text
    from urllib.parse import unquote_to_bytes  # the import takes 1.5 ms, and only escapes need it

    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _list_or_watch(values: dict[str, str]) -> tuple[str, str]:
    """Return (`list` or `watch`, object name) of a GET request whose path has no name.

    `values` has the query parameters of the request. `fieldSelector=metadata.name=x` sets the name if all list options
    are valid. The parameter `watch` is true for every value except `false` and `0`. Sources: `NewRequestInfo`, and
    `Convert_Slice_string_To_bool` in staging/src/k8s.io/apimachinery/pkg/runtime/conversion.go.
    """
    if not values:
        return "list", ""
    verb = "watch" if values.get("watch", "0").lower() not in ("false", "0") else "list"
    selector = values.get("fieldSelector", "")
    if not selector or not _decodes(values):
        return verb, ""
    name = exact_field_match(selector, "metadata.name") or ""
    # The server ignores a name that is not a valid path segment (`IsValidPathSegmentName`).
    return verb, "" if name in (".", "..") or "/" in name or "%" in name else name


def _decodes(values: dict[str, str]) -> bool:
    """Return whether the query parameters `limit`, `timeoutSeconds` and `labelSelector` are valid.

    If one of them is invalid, the server ignores all list options.
    """
    for key in ("limit", "timeoutSeconds"):
        value = values.get(key)
        if value is not None and not (_INT64.fullmatch(value) and len(value) < 400 and -(2**63) <= int(value) < 2**63):
            return False
    return is_label_selector(values.get("labelSelector", ""))


def exact_field_match(selector: str, field: str) -> str | None:
    """Return the value that a field selector requires for `field`.

    Return None if the selector is malformed, or does not require a value for `field`.
    """
    # The server sorts the terms, and uses the first term that requires a value for `field` with = or ==. Python sorts
    # strings in the same order as Go.
    value: str | None = None
    for term in sorted(filter(None, _TERM.findall(selector))):
        operator = _OPERATOR.search(term)
        if operator is None or _VALUE.fullmatch(term, operator.end()) is None:
            return None
        if value is None and operator[0] != "!=" and term[: operator.start()] == field:
            value = _UNESCAPE.sub(r"\1", term[operator.end() :])
    return value


def is_label_selector(selector: str) -> bool:
    """Return whether the server can decode a label selector such as `app=web,tier in (a, b),!canary`."""
    return re.fullmatch(_LABEL_SELECTOR, " ".join(_TOKEN.findall(selector))) is not None
