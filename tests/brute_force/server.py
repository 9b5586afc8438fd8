"""The matching rules of kube-apiserver on plain manifests: a reference that shares no code with apflint.

Sources: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/rule.go (which requests a FlowSchema matches),
apf_controller.go (`digestFlowSchemasLocked`: which FlowSchemas are effective, and their order), and
staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go (attributes of a request). `test_server.py` compares
this module with recorded answers of a kube-apiserver. The code is slow on purpose: it follows the Go code line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Manifest = dict[str, Any]
"""A decoded manifest, or a part of one."""

DEFAULT_PRECEDENCE = 1000
LONG_RUNNING_SUBRESOURCES = ("attach", "exec", "log", "portforward", "proxy")
LONG_RUNNING_PATHS = "/debug/pprof/"
SERVICE_ACCOUNT = "system:serviceaccount:"


class User(NamedTuple):
    """The user of a request, as authentication reports it."""

    name: str
    groups: frozenset[str]


class Request(NamedTuple):
    """The attributes of a request that FlowSchemas match. Attributes that do not apply are empty."""

    is_resource: bool
    verb: str
    api_group: str = ""
    resource: str = ""
    """The resource, or `resource/subresource`."""
    namespace: str = ""
    """Empty for cluster-scoped requests and for requests across all namespaces."""
    path: str = ""
    """The path of a non-resource request."""

    @property
    def is_classified(self) -> bool:
        """Whether API Priority and Fairness classifies the request: long-running requests other than watches bypass it."""
        if self.verb == "watch":
            return True
        if self.is_resource:
            return self.verb != "proxy" and self.resource.partition("/")[2] not in LONG_RUNNING_SUBRESOURCES
        return self.verb != "proxy" and not self.path.startswith(LONG_RUNNING_PATHS)


class Match(NamedTuple):
    """The match of a request: a FlowSchema, and its first rule, subject and entry that match."""

    schema: int
    """Index into the order of FlowSchemas."""
    rule: int
    subject: int
    entry: int
    """Index into `resourceRules`, or for a non-resource request into `nonResourceRules`."""


# --- rule.go ----------------------------------------------------------------------------------------------------------


def includes(values: Sequence[str], value: str) -> bool:
    """Return whether a list includes a value. `*` is a wildcard only if it is the only item."""
    return list(values) == ["*"] or value in values


def matches_subject(subject: Manifest, user: User) -> bool:
    kind = subject["kind"]
    if kind == "User":
        return subject.get("user", {}).get("name") in ("*", user.name)
    if kind == "Group":
        name = subject.get("group", {}).get("name")
        return name == "*" or name in user.groups
    if kind == "ServiceAccount" and "serviceAccount" in subject:
        account = subject["serviceAccount"]
        prefix = f"{SERVICE_ACCOUNT}{account['namespace']}:"
        return user.name.startswith(prefix) if account["name"] == "*" else user.name == prefix + account["name"]
    return False


def matches_resource_rule(rule: Manifest, request: Request) -> bool:
    if not request.is_resource:
        return False
    if not includes(rule.get("verbs") or [], request.verb):
        return False
    if not includes(rule.get("apiGroups") or [], request.api_group):
        return False
    if not includes(rule.get("resources") or [], request.resource):
        return False
    if request.namespace == "":
        return bool(rule.get("clusterScope", False))
    return includes(rule.get("namespaces") or [], request.namespace)


def matches_url(url: str, path: str) -> bool:
    """Return whether an entry of nonResourceURLs matches a path. With or without `/*`, an entry also matches all paths
    below it."""
    if url in ("*", path):
        return True
    prefix = url.removesuffix("*")
    return path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def matches_non_resource_rule(rule: Manifest, request: Request) -> bool:
    if request.is_resource or not includes(rule.get("verbs") or [], request.verb):
        return False
    return any(matches_url(url, request.path) for url in rule.get("nonResourceURLs") or [])


def first(matches: Iterable[bool]) -> int | None:
    """Return the index of the first true value."""
    return next((index for index, match in enumerate(matches) if match), None)


def first_subject(rule: Manifest, user: User) -> int | None:
    return first(matches_subject(subject, user) for subject in rule.get("subjects") or [])


def first_entry(rule: Manifest, request: Request) -> int | None:
    """Return the first matching item of `resourceRules` for a resource request, else of `nonResourceRules`."""
    if request.is_resource:
        return first(matches_resource_rule(entry, request) for entry in rule.get("resourceRules") or [])
    return first(matches_non_resource_rule(entry, request) for entry in rule.get("nonResourceRules") or [])


# --- apf_controller.go ------------------------------------------------------------------------------------------------


def name_of(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name


def precedence_of(schema: Manifest) -> int:
    return schema["spec"].get("matchingPrecedence") or DEFAULT_PRECEDENCE


def level_of(schema: Manifest) -> str:
    level: str = schema["spec"]["priorityLevelConfiguration"]["name"]
    return level


def rules_of(schema: Manifest) -> list[Manifest]:
    return schema["spec"].get("rules") or []


def matching_order(schema: Manifest) -> tuple[int, bytes]:
    """Return the sort key of a FlowSchema: the precedence, then the name byte by byte."""
    return precedence_of(schema), name_of(schema).encode()


def effective_flow_schemas(objects: Iterable[Manifest], mandatory: Iterable[Manifest]) -> list[Manifest]:
    """Return the FlowSchemas that the server matches requests against, in matching order.

    The server skips a FlowSchema whose priority level is missing. It adds a missing mandatory FlowSchema: `exempt`
    before and `catch-all` after all others, whatever their precedence.
    """
    stored = {(manifest["kind"], name_of(manifest)): manifest for manifest in objects}
    schemas = [schema for (kind, _), schema in stored.items() if kind == "FlowSchema"]
    order = sorted(
        (schema for schema in schemas if ("PriorityLevelConfiguration", level_of(schema)) in stored), key=matching_order
    )
    names = {name_of(schema) for schema in order}
    imagined = {
        name_of(schema): schema
        for schema in mandatory
        if schema["kind"] == "FlowSchema" and name_of(schema) in ("exempt", "catch-all")
    }
    if "exempt" not in names:
        order.insert(0, imagined["exempt"])
    if "catch-all" not in names:
        order.append(imagined["catch-all"])
    return order


def classify(order: Sequence[Manifest], user: User, request: Request) -> Match | None:
    """Return the match of the first FlowSchema in `order` that matches the request.

    Return None if none matches. The server then falls back to `catch-all`.
    """
    for position, schema in enumerate(order):
        for number, rule in enumerate(rules_of(schema)):
            subject, entry = first_subject(rule, user), first_entry(rule, request)
            if subject is not None and entry is not None:
                return Match(position, number, subject, entry)
    return None


# --- requestinfo.go ---------------------------------------------------------------------------------------------------

VERBS_OF_METHODS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def is_resource_path(path: str) -> bool:
    segments = path.strip("/").split("/")
    return (segments[0] == "api" and len(segments) > 2) or (segments[0] == "apis" and len(segments) > 3)


def parse_request(method: str, url: str) -> Request | None:
    """Return the attributes of a request, or None if the server answers with an error before it classifies the request."""
    raw, _, query = url.partition("?")
    path = unquote(raw)
    if not is_resource_path(path):
        return Request(False, method.lower(), path=path)
    segments = path.strip("/").split("/")
    group, rest = ("", segments[2:]) if segments[0] == "api" else (segments[1], segments[3:])
    verb = VERBS_OF_METHODS.get(method, "")
    if rest[0] in ("watch", "proxy"):
        if len(rest) == 1:
            return None
        verb, *rest = rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name, subresource = (*rest[:3], "", "")[:3]
    if verb == "proxy":
        subresource = ""
    if name == "":
        verb = {"get": "watch" if is_watch(query) else "list", "delete": "deletecollection"}.get(verb, verb)
    return Request(True, verb, group, f"{resource}/{subresource}" if subresource else resource, namespace)


def is_watch(query: str) -> bool:
    """Return whether the query parameter `watch` is true: its first value is neither `false` nor `0`.

    Go's `url.ParseQuery` drops pairs with a semicolon or a broken escape.
    """
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if unquote_plus(name) == "watch" and ";" not in pair and not BROKEN_ESCAPE.search(pair):
            return unquote_plus(value).lower() not in ("false", "0")
    return False
