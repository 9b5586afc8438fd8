"""A request as people name it, made into the attributes that a server would see.

There are four ways: words as for `kubectl auth can-i`, method and path, an audit event, and a line of a requests file;
the last two are in `apflint.evaluate.records`. What was inferred is said in `Request.notes`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import effective_groups
from apflint.evaluate.match import RequestDigest, UserInfo, rs_join
from apflint.evaluate.requestinfo import RequestInfo, request_info
from apflint.evaluate.resources import Resource, named
from apflint.record import NamedTuple
from apflint.wording import suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

COLLECTION_VERBS = ("list", "watch", "deletecollection")
_WITHOUT_NAME = {"get": "list", "delete": "deletecollection"}
"""Verbs for one object, and what the server makes of them where none is named (`requestinfo.go`)."""
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
"""The verbs of requests for resources."""
METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""The HTTP method that each verb comes from."""
_HTTP = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_MEANT = {
    "post": "create",
    "put": "update",
    "head": "get",
    "describe": "get",
    "edit": "patch",
    "apply": "patch",
    "label": "patch",
    "annotate": "patch",
    "replace": "update",
    "logs": "get pods/log",
    "log": "get pods/log",
    "exec": "create pods/exec",
    "attach": "create pods/attach",
    "port-forward": "create pods/portforward",
    "scale": "update deployments/scale",
    "evict": "create pods/eviction",
}
_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?", re.ASCII)


class Request(NamedTuple):
    """Who asks for what; `notes` are sentences about what was inferred, for people to read."""

    user: UserInfo
    info: RequestInfo
    notes: tuple[str, ...] = ()
    url: str = ""
    """The path with its query as it was given; empty for a request that was given by verb and resource."""

    @property
    def digest(self) -> RequestDigest:
        """What is matched against FlowSchemas."""
        return RequestDigest(self.info, self.user)


class Target(NamedTuple):
    """A resource as it was named. `known` is None for a resource that is not Kubernetes' own."""

    group: str
    version: str
    name: str
    known: Resource | None
    notes: tuple[str, ...]


def from_http(method: str, url: str, *, user: str, groups: Sequence[str] = ()) -> Request:
    """The request `method url`, with the groups that authentication adds. Raises ValueError where there is no such request."""
    effective, notes = effective_groups(user, tuple(groups))
    return Request(UserInfo(user, effective), request_info(method, url), notes, url)


def from_words(
    words: Sequence[str],
    *,
    user: str,
    groups: Sequence[str] = (),
    namespace: str | None = None,
    all_namespaces: bool = False,
) -> Request:
    """The request in `VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAME]` or `VERB /path`, as for `kubectl auth can-i`.

    `RESOURCE` may be a plural, a singular, a short name or a kind. Groups that authentication adds are added. Raises
    ValueError, fit to be shown, where the words name no request.
    """
    effective, group_notes = effective_groups(user, tuple(groups))
    who = UserInfo(user, effective)
    if len(words) < 2:
        said = f'"{words[0]}" what? Name' if words else "Name"
        raise ValueError(
            f'{said} a verb and a resource, as in "list pods", or a verb and a path, as in "get /healthz".'
        )
    verb, what, *rest = words
    if what.startswith("/"):
        if rest:
            raise ValueError(f'"{rest[0]}" is one word too many: after a path nothing is expected.')
        info, notes = _path_request(verb, what)
        if namespace is not None or all_namespaces:
            notes += ("The namespace is not used: the path says it all.",)
    else:
        if len(rest) > 1:
            raise ValueError(f'"{rest[1]}" is one word too many: after the resource comes at most one name.')
        scope = "" if all_namespaces else namespace
        info, notes = _resource_request(_verb(verb), what, rest[0] if rest else "", scope)
    return Request(who, info, (*notes, *group_notes), what if what.startswith("/") else "")


def resource_info(
    verb: str, group: str, version: str, resource: str, *, namespace: str = "", subresource: str = "", name: str = ""
) -> RequestInfo:
    """The attributes of a request for a resource, as given; its path where the version is known, otherwise an empty one.

    A namespace itself (not the list of all) is in the namespace of its own name, as on the server.
    """
    if resource == "namespaces" and not group and name and not namespace and (subresource or _of_one(verb)):
        namespace = name
    parts = [resource]
    if name and (subresource or _of_one(verb)):
        parts += [name, subresource] if subresource else [name]
    folder = f"apis/{group}/{version}" if group else f"api/{version}"
    if namespace and not (resource == "namespaces" and not group):
        folder += f"/namespaces/{namespace}"
    path = f"/{folder}/{'/'.join(parts)}" if version else ""
    prefix = "apis" if group else "api"
    return RequestInfo(True, verb, prefix, group, version, namespace, resource, subresource, name, path, tuple(parts))


def check_verb(verb: str) -> None:
    """Raise ValueError with a message for the user if no request has this verb: neither one for a resource nor an HTTP method."""
    if verb.upper() not in _HTTP:
        _verb(verb)


def check_target(verb: str, what: str) -> None:
    """Raise ValueError with a message for the user if no request with this verb is for this resource or path."""
    if not what.startswith("/"):
        _resource_request(_verb(verb), what, "", "default")


def infer_resource(text: str) -> Target:
    """The resource that `RESOURCE[.VERSION][.GROUP]` names. Raises ValueError where only a group could tell."""
    word, dot, rest = text.partition(".")
    if not word:
        raise ValueError(f'"{text}" names no resource: write RESOURCE.GROUP, as in deployments.apps.')
    if not dot:
        return _infer_group(text)
    first, _, after = rest.partition(".")
    version, group = (first, after) if _VERSION.fullmatch(first) else ("", rest)
    for known in named(word):
        if known.group == group:
            note = (f'"{word}" is read as the resource "{known.name}".',) if word != known.name else ()
            return Target(group, version or known.version, known.name, known, note)
    elsewhere = [known for known in named(word) if known.name == word]
    note = (
        (f'Kubernetes itself serves "{word}" in {group_in_words(elsewhere[0].group)}, not in the group "{group}".',)
        if elsewhere
        else ()
    )
    return Target(group, version, word, None, note)


def _infer_group(word: str) -> Target:
    found = named(word)
    if not found:
        from apflint.evaluate.resources import RESOURCES

        names = [name for known in RESOURCES for name in (known.name, known.singular, *known.short_names)]
        raise ValueError(
            f'"{word}" is not a resource of Kubernetes itself.{suggest(word, names)} For a custom resource, name'
            f' its API group too: "{word}.example.com".'
        )
    known = found[0]
    if word == known.name and not known.group and len(found) == 1:
        return Target("", known.version, known.name, known, ())  # as it was written: nothing was inferred
    read = "is" if word == known.name else f'is read as "{known.name}"'
    note = f'"{word}" {read} in {group_in_words(known.group)}.'
    if len(found) > 1:
        others = ", ".join(f'"{other.qualified_name}"' for other in found[1:])
        note = f"{note[:-1]}; write {others} for the other of that name."
    return Target(known.group, known.version, known.name, known, (note,))


def _resource_request(verb: str, what: str, name: str, namespace: str | None) -> tuple[RequestInfo, tuple[str, ...]]:
    resource, *segments = what.split("/")
    target = infer_resource(resource)
    notes = [*target.notes]
    subresource, name = _segments(what, segments, name, target, notes)
    namespaced = target.known.namespaced if target.known else None
    if name and verb == "create" and not subresource:
        notes.append(f'The name "{name}" is in the body of such a request, where the server does not look for it.')
        name = ""
    if target.name == "namespaces" and not target.group:
        scope = ""
        if name and (subresource or _of_one(verb)):
            notes.append(f'A request for the namespace "{name}" itself counts as one in that namespace.')
    elif namespaced is False:
        scope = ""
        if namespace:
            notes.append(f'"{target.name}" is cluster-scoped: the namespace "{namespace}" is not used.')
    else:
        scope = _namespace(verb, namespace, namespaced, notes)
    if verb in _WITHOUT_NAME and not name:
        real = _WITHOUT_NAME[verb]
        notes.append(f'A {verb.upper()} without a name is a "{real}" to the server: ask for "{real}" if that is meant.')
    info = resource_info(
        verb, target.group, target.version, target.name, namespace=scope, subresource=subresource, name=name
    )
    return info, tuple(notes)


def _segments(what: str, segments: list[str], name: str, target: Target, notes: list[str]) -> tuple[str, str]:
    """Subresource and name from what follows the resource after slashes; kubectl's `pod/web-0` is a name there."""
    if len(segments) > 1 and not name:
        name, *segments = segments
    if len(segments) > 1 or not all((*segments, "x")):
        raise ValueError(f'"{what}" is not understood: write RESOURCE/SUBRESOURCE, then the name.')
    if not segments:
        return "", name
    (subresource,) = segments
    if target.known is None or subresource in target.known.subresources:
        return subresource, name
    if not name:
        notes.append(f'"{subresource}" is no subresource of "{target.name}", so it is read as a name.')
        return "", subresource
    known = ", ".join(target.known.subresources) or "none"
    raise ValueError(f'"{subresource}" is no subresource of "{target.name}". It has: {known}.')


def _namespace(verb: str, namespace: str | None, namespaced: bool | None, notes: list[str]) -> str:
    if namespace:
        return namespace
    if verb in COLLECTION_VERBS:
        return ""  # of all namespaces
    if namespaced is None:
        notes.append("No namespace was given: the resource is taken to be cluster-scoped.")
        return ""
    if namespace is not None:
        raise ValueError(f'"{verb}" is for one namespace, not for all. Name it with -n.')
    notes.append('No namespace was given: the request is for the namespace "default".')
    return "default"


def _path_request(verb: str, url: str) -> tuple[RequestInfo, tuple[str, ...]]:
    """`VERB /path`: the verb is an HTTP method, in any case; for the path of a resource also the verb of a request."""
    lower, upper = verb.lower(), verb.upper()
    info = request_info(METHODS.get(lower, upper), url)
    if not info.is_resource_request:
        if upper not in _HTTP:
            note = f'HTTP has no method {upper}: a request for a path that is no resource has the verb "get", "post" or the like.'
            return request_info(upper, url), (note,)
        return info, ()
    if lower == "watch" and info.verb == "list":
        info = request_info("GET", f"{url}{'&' if '?' in url else '?'}watch=true")
    resource = rs_join(info.resource, info.subresource)
    return info, (f'The path is that of a resource: the server sees the verb "{info.verb}" on "{resource}".',)


def _verb(verb: str) -> str:
    lower = verb.lower()
    if lower in VERBS or lower == "proxy":
        return lower
    meant = _MEANT.get(lower)
    hint = f' "{verb}" sends "{meant}".' if meant else ""
    raise ValueError(f'"{verb}" is no verb of a request for a resource. Verbs are {", ".join(VERBS)}.{hint}')


def _of_one(verb: str) -> bool:
    """Whether requests with this verb have the name of one object in their path."""
    return verb not in (*COLLECTION_VERBS, "create")


def group_in_words(group: str) -> str:
    """An API group in a sentence."""
    return f'the API group "{group}"' if group else 'the core API group ""'
