"""HTTP method and URL to the attributes of a request, as kube-apiserver works them out before anything else sees it.

Source: `RequestInfoFactory.NewRequestInfo` in staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, with
the prefixes `api` (no group) and `apis`; held against what a kube-apiserver 1.36.2 was seen to do.
"""

from __future__ import annotations

import re

from apflint.errors import UserError
from apflint.evaluate.selectors import exact_field_match, is_label_selector
from apflint.record import NamedTuple

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# url.ParseRequestURI also takes what a client of a proxy sends: GET http://host/path.
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_INT64 = re.compile(r"[+-]?[0-9]+", re.ASCII)

LONG_RUNNING_VERBS = frozenset(("watch", "proxy"))
LONG_RUNNING_SUBRESOURCES = frozenset(("attach", "exec", "proxy", "log", "portforward"))
LONG_RUNNING_PATH = "/debug/pprof/"
"""The three ways to be long-running. Source: `BuildGenericConfig` in pkg/controlplane/apiserver/config.go and
`BasicLongRunningRequestCheck` in staging/src/k8s.io/apiserver/pkg/server/filters/longrunning.go."""


class RequestInfo(NamedTuple):
    """The attributes of a request; the names are Kubernetes' own. What does not apply is empty."""

    is_resource_request: bool
    verb: str
    """`get`, `list`, `watch`, `create`, ...; of a non-resource request the HTTP method in lower case; empty for a method
    that means nothing to a resource (OPTIONS)."""
    api_prefix: str
    api_group: str
    api_version: str
    namespace: str
    """Empty: cluster-scoped, or all namespaces. Of the namespace `foo` itself it is `foo`."""
    resource: str
    subresource: str
    name: str
    path: str
    """The path of the URL, percent signs decoded, otherwise as sent."""
    parts: tuple[str, ...] = ()
    """The path from the resource on."""
    field_selector: str = ""
    label_selector: str = ""


def request_info(method: str, url: str) -> RequestInfo:
    """The attributes of the request `method url`; `url` is a path with or without a query, as on an HTTP request line.

    Raises UserError where the server answers 400 or 500 instead:
    `/api/v1/watch` with nothing after it, a broken percent escape, a target that does not start with a slash.
    Pure: the same arguments always give the same answer, so it may be cached.
    """
    path, query = _target(url)
    parts = path.strip("/").split("/")
    grouped = parts[0] == "apis"
    if len(parts) < (4 if grouped else 3) or not (grouped or parts[0] == "api"):
        # Of the paths that are too short for a resource, only /apis/GROUP/VERSION keeps its prefix.
        prefix = "apis" if grouped and len(parts) == 3 else ""
        return RequestInfo(False, method.lower(), prefix, "", "", "", "", "", "", path)
    prefix = parts[0]
    group, version, parts = (parts[1], parts[2], parts[3:]) if grouped else ("", parts[1], parts[2:])

    by_prefix = parts[0] in ("watch", "proxy")
    if by_prefix:
        if len(parts) < 2:
            raise UserError(
                f'"{url}" ends after "{parts[0]}": the server cannot tell which resource is meant and answers with status'
                f' 500. Name one: "{path.rstrip("/")}/pods".'
            )
        verb, parts = parts[0], parts[1:]
    else:
        verb = _VERBS.get(method, "")

    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        # .../namespaces/foo/status and /finalize are about the namespace itself; all else lives in it.
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
    # Selectors are for authorization (KEP-4601). The old /watch/ paths have none there.
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


def long_running(info: RequestInfo) -> bool:
    """Whether the server lets this request run without a time limit (a watch, a log, a port-forward, a profile)."""
    if info.verb in LONG_RUNNING_VERBS:
        return True
    if info.is_resource_request:
        return info.subresource in LONG_RUNNING_SUBRESOURCES
    return info.path.startswith(LONG_RUNNING_PATH)


def seen_by_apf(info: RequestInfo, *, watches: bool = True) -> bool:
    """Whether API Priority and Fairness classifies the request: it skips long-running ones, except watches.

    `watches` is the release's `classifies_watches`: up to 1.21 watches are skipped like the others. Source:
    `WithPriorityAndFairness` in staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go.
    """
    return (watches and info.verb == "watch") or not long_running(info)


def parse_query(query: str) -> dict[str, str]:
    """The first value of each parameter, as Go's `url.ParseQuery`: what is malformed (`%zz`, a semicolon) is dropped."""
    values: dict[str, str] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        values.setdefault(_decoded(key.replace("+", " ")), _decoded(value.replace("+", " ")))
    return values


def _target(url: str) -> tuple[str, str]:
    """Path (decoded) and query (raw) of a request target, as Go's `url.ParseRequestURI`."""
    target = url
    if not url.startswith("/") and url != "*":
        absolute = _ABSOLUTE.match(url)
        if absolute is None:
            raise UserError(f'"{url}" is no path: it has to start with "/".')
        target = url[absolute.end() :]
    raw, _, query = target.partition("?")
    if "%" in raw:
        broken = _BAD_ESCAPE.search(raw)
        if broken:
            escape = raw[broken.start() : broken.start() + 3]
            raise UserError(f'"{url}" has the broken escape "{escape}": the server answers with status 400.')
        raw = _decoded(raw)
    if _CONTROL.search(target):
        raise UserError(f"{url!r} has a control character in it: the server answers with status 400.")
    return raw, query


def _decoded(text: str) -> str:
    # Bytes that are no UTF-8 become U+FFFD, as in everything that the server itself prints about the request.
    if "%" not in text:
        return text
    from urllib.parse import unquote_to_bytes  # 1.5 ms at start, for escapes alone

    return unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _list_or_watch(values: dict[str, str]) -> tuple[str, str]:
    """Verb and name of a GET without a name. A name comes from `fieldSelector=metadata.name=x`, if all else is well formed.

    Source: as above, and `Convert_Slice_string_To_bool` in staging/src/k8s.io/apimachinery/pkg/runtime/conversion.go:
    anything but `false` and `0` is true.
    """
    if not values:
        return "list", ""
    verb = "watch" if values.get("watch", "0").lower() not in ("false", "0") else "list"
    selector = values.get("fieldSelector", "")
    if not selector or not _decodes(values):
        return verb, ""
    name = exact_field_match(selector, "metadata.name") or ""
    # `IsValidPathSegmentName`: a name that could not stand in a path is no name.
    return verb, "" if name in (".", "..") or "/" in name or "%" in name else name


def _decodes(values: dict[str, str]) -> bool:
    """Whether the other parameters decode to list options; one that does not makes the server forget them all."""
    for key in ("limit", "timeoutSeconds"):
        value = values.get(key)
        if value is not None and not (_INT64.fullmatch(value) and len(value) < 400 and -(2**63) <= int(value) < 2**63):
            return False
    return is_label_selector(values.get("labelSelector", ""))
