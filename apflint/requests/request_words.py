"""Parser of requests in words, as in `kubectl auth can-i`: `list pods`, `get deploy.apps/scale web`, `get /healthz`.

The module also parses and prints the arguments of `apflint explain` that name a request: `list pods -n team-a --as alice`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.match import UserInfo, rs_join
from apflint.evaluate.requestinfo import parse_request_info
from apflint.evaluate.resources import (
    AGGREGATED_GROUPS,
    RESOURCES,
    find_resources,
    get_resource,
    is_served_by_kubernetes,
)
from apflint.named_tuple import NamedTuple
from apflint.requests.request import (
    COLLECTION_VERBS,
    HTTP_METHODS,
    METHOD_OF_VERB,
    VERBS,
    Request,
    describe_group,
    make_resource_info,
    parse_http,
    requires_name,
)
from apflint.spelling import suggest
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.evaluate.resources import Resource

_VERB_WITHOUT_NAME = {"get": "list", "delete": "deletecollection"}
"""Verb that the server uses instead of `get` or `delete` if the path has no object name (`requestinfo.go`)."""
_KUBECTL_COMMANDS = {
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
"""Verbs by HTTP method in lower case, or by kubectl command.

If the command implies a resource, the value contains the resource.
"""
_OPTIONS = {"method": ("--method",), "path": ("--path",), "namespace": ("-n", "--namespace"), "user": ("--as",)}
"""Names of the options with one value, by the field of `RequestArguments` that contains the value."""
_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?", re.ASCII)


class RequestedResource(NamedTuple):
    """The resource of a request. `known` is None if Kubernetes itself does not serve the resource."""

    group: str
    version: str
    name: str
    known: Resource | None
    notes: tuple[str, ...] = ()


class RequestArguments(NamedTuple):
    """Arguments of `apflint explain` that name one request, either with `words` or with `method` and `path`."""

    user: str
    words: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespace: str | None = None
    all_namespaces: bool = False
    method: str | None = None
    path: str | None = None

    def to_request(self) -> Request:
        """Return the request that the arguments name. Raises UserError if the arguments are incomplete or contradictory."""
        if self.path is not None and not self.words:
            return parse_http(self.method or "GET", self.path, user=self.user, groups=self.groups)
        if self.words and (self.method is not None or self.path is not None):
            raise UserError("the request is given twice: as arguments, and with --method and --path")
        return parse_words(
            self.words,
            user=self.user,
            groups=self.groups,
            namespace=self.namespace,
            all_namespaces=self.all_namespaces,
        )

    def to_command_line(self) -> tuple[str, ...]:
        """Return the arguments as a command line. `parse_command_line` is the inverse function."""
        options = [(names[0], getattr(self, field)) for field, names in _OPTIONS.items()]
        arguments = list(self.words)
        for option, value in (*options, *(("--as-group", group) for group in self.groups)):
            if value is not None:
                arguments += [f"{option}={value}"] if value.startswith("-") else [option, value]
        return (*arguments, *(["-A"] if self.all_namespaces else []))


def parse_command_line(text: str, user: str | None = None, groups: Sequence[str] = ()) -> RequestArguments:
    """Parse the arguments of `apflint explain` that name a request, with or without the words `apflint explain`.

    The request has the groups that `text` names and those in `groups`. If `user` is None, `text` must
    name the user with `--as`. Otherwise, `user` is the user of the request, and `text` must not name a
    user. Raises UserError if the text cannot be parsed, or if the user is missing or named twice.
    """
    import shlex  # imported on demand: only policy tests parse command lines
    from argparse import ArgumentError, ArgumentParser

    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("words", nargs="*")
    for field, names in _OPTIONS.items():
        parser.add_argument(*names, dest=field, action="append")
    parser.add_argument("--as-group", dest="groups", action="append", default=[])
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    try:
        words = shlex.split(text)
        if words[:2] == ["apflint", "explain"]:
            words = words[2:]  # the text is a complete command, for example copied from a terminal
        options, unknown = parser.parse_known_intermixed_args(words)
    except (ArgumentError, ValueError) as error:
        message = str(error)
        raise UserError(f"cannot parse the request: {message[:1].lower()}{message[1:]}") from None
    if unknown:
        raise UserError(f"cannot parse the request: unrecognized arguments: {' '.join(unknown)}")
    values = vars(options)
    for field, names in _OPTIONS.items():
        value, *others = values[field] or [None]
        if others:
            raise UserError(f"the request has {'/'.join(names)} twice")
        values[field] = value
    if user is None:
        user = values["user"]
    elif values["user"] is not None:
        raise UserError("the user is given twice: with `as`, and with `--as` in the request")
    if user is None:
        raise UserError(
            "the request has no user: add `as`, as in `as: alice` or `as: system:serviceaccount:NAMESPACE:NAME`"
        )
    named = {"user": user, "words": tuple(values["words"]), "groups": (*groups, *values["groups"])}
    return RequestArguments(**values | named)


def parse_words(
    words: Sequence[str],
    *,
    user: str,
    groups: Sequence[str] = (),
    namespace: str | None = None,
    all_namespaces: bool = False,
) -> Request:
    """Return the request `VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAME]` or `VERB /path`.

    `RESOURCE` is a plural, a singular, a short name or a kind. The user gets the groups that authentication adds. Raises
    UserError if the words are not a request.
    """
    if len(words) < 2:
        incomplete = f'"{words[0]}" is incomplete: ' if words else ""
        raise UserError(
            f'{incomplete}name a verb and a resource, as in "list pods", or a verb and a path, as in "get /healthz"'
        )
    verb, what, *rest = words
    is_path = what.startswith("/")
    if len(rest) > (not is_path):
        allowed = "nothing may follow a path" if is_path else "at most one name may follow the resource"
        raise UserError(f'unexpected argument "{rest[-1]}": {allowed}')
    if is_path:
        info, notes = _parse_path(verb, what)
        if namespace is not None or all_namespaces:
            notes = (*notes, "The given namespace is ignored: the path determines the namespace of the request.")
    else:
        scope = "" if all_namespaces else namespace
        info, notes = _parse_resource(_parse_verb(verb), what, rest[0] if rest else "", scope)
    all_groups, group_notes = complete_groups(user, tuple(groups))
    url, added = what if is_path else "", all_groups[len(groups) :]
    return Request(UserInfo(user, all_groups), info, (*notes, *group_notes), url, added)


def check_verb(verb: str) -> None:
    """Raise UserError if `verb` is neither a verb of resource requests nor an HTTP method."""
    if verb.upper() not in HTTP_METHODS:
        _parse_verb(verb)


def check_target(verb: str, what: str) -> None:
    """Raise UserError if `what` is neither a path nor a resource that a request with this verb can have."""
    if not what.startswith("/"):
        _parse_resource(_parse_verb(verb), what, "", "default")


def infer_resource(text: str) -> RequestedResource:
    """Return the resource of `RESOURCE[.VERSION][.GROUP]`. Raises UserError if the API group cannot be inferred."""
    word, dot, rest = text.partition(".")
    if not word:
        raise UserError(f'"{text}" has no resource name: write RESOURCE.GROUP, as in deployments.apps')
    if not dot:
        return _infer_group(text)
    first, _, after = rest.partition(".")
    version, group = (first, after) if _VERSION.fullmatch(first) else ("", rest)
    named = find_resources(word)
    for known in named:
        if known.group == group:
            notes = () if word == known.name else (f'"{word}" is read as the resource "{known.name}".',)
            return RequestedResource(group, version or known.version, known.name, known, notes)
    served = get_resource(named[0].name if named else word, group)
    if group in AGGREGATED_GROUPS:
        note = (
            f"An aggregated API server serves {describe_group(group)}. kube-apiserver classifies the requests before it"
            " forwards them."
        )
        name = served.name if served else word
        return RequestedResource(group, version or (served.version if served else ""), name, served, (note,))
    elsewhere = next((known for known in named if known.name == word), None)
    return RequestedResource(
        group, version, word, None, () if elsewhere is None else (_describe_group_of(elsewhere, group),)
    )


def _describe_group_of(resource: Resource, group: str) -> str:
    """Return sentences that explain that Kubernetes serves a resource of this name, but not in `group`.

    `group` is wrong if Kubernetes itself serves the group, or if the group has no dot. Any other group may belong to a
    custom resource or an aggregated API server, whose groups must have a dot. Sources:
    `ValidateCustomResourceDefinition` in apiextensions-apiserver, and `ValidateAPIService` in kube-aggregator.
    """
    where = describe_group(resource.group)
    if "." not in group or is_served_by_kubernetes(group):
        return f'Kubernetes serves "{resource.name}" in {where}, not in the group "{group}".'
    return (
        f'"{resource.name}" is read as a resource of {describe_group(group)}. This API group must belong to a'
        f' CustomResourceDefinition or an aggregated API server. Kubernetes itself serves "{resource.name}" in {where}.'
    )


def _infer_group(word: str) -> RequestedResource:
    named = find_resources(word)
    if not named:
        names = [name for known in RESOURCES for name in (known.name, known.singular, *known.short_names)]
        raise UserError(
            f'"{word}" is not a resource of Kubernetes itself.{suggest(word, names)} For a custom resource, name'
            f' its API group too: "{word}.example.com"'
        )
    known, *others = named
    if word == known.name and not known.group and not others:
        return RequestedResource("", known.version, known.name, known)  # the exact name needs no note
    reading = "is" if word == known.name else f'is read as "{known.name}"'
    note = f'"{word}" {reading} in {describe_group(known.group)}'
    if others:
        qualified = ", ".join(f'"{other.qualified_name}"' for other in others)
        note += f"; for the resource with the same name in another API group, write {qualified}"
    return RequestedResource(known.group, known.version, known.name, known, (f"{note}.",))


def _parse_resource(verb: str, what: str, name: str, namespace: str | None) -> tuple[RequestInfo, tuple[str, ...]]:
    resource, *segments = what.split("/")
    target = infer_resource(resource)
    notes = [*target.notes]
    subresource, name = _parse_segments(what, segments, name, target, notes)
    if name and verb == "create" and not subresource:
        notes.append(f'The name "{name}" is in the body of the request, which API Priority and Fairness does not read.')
        name = ""
    if target.name == "namespaces" and not target.group:
        scope = ""
        if name and (subresource or requires_name(verb)):
            notes.append(f'A request for the namespace "{name}" itself is treated as a request in that namespace.')
    elif target.known is not None and not target.known.namespaced:
        scope = ""
        if namespace:
            notes.append(f'"{target.name}" is cluster-scoped: the namespace "{namespace}" is ignored.')
    else:
        scope = _infer_namespace(verb, namespace, notes, is_custom=target.known is None)
    if verb in _VERB_WITHOUT_NAME and not name:
        sent = _VERB_WITHOUT_NAME[verb]
        notes.append(
            f'The server treats a {verb.upper()} without a name as "{sent}". If you intend this, write "{sent}" instead.'
        )
    info = make_resource_info(
        verb, target.group, target.version, target.name, namespace=scope, subresource=subresource, name=name
    )
    return info, tuple(notes)


def _parse_segments(
    what: str, segments: list[str], name: str, target: RequestedResource, notes: list[str]
) -> tuple[str, str]:
    """Return (subresource, name), parsed from `name` and the `segments` after the resource.

    A segment that is not a subresource is a name, as in `kubectl get pod/web-0`. Raises UserError if there are two names, or if a
    segment is empty.
    """
    if len(segments) > 1 and not name:
        name, *segments = segments
    if len(segments) > 1 or "" in segments:
        raise UserError(f'cannot parse "{what}": write RESOURCE/SUBRESOURCE, then the name')
    if not segments:
        return "", name
    (subresource,) = segments
    if target.known is None or subresource in target.known.subresources:
        return subresource, name
    if not name:
        notes.append(
            f'"{subresource}" is not a subresource of "{target.name}", so apflint uses it as the name of an object.'
        )
        return "", subresource
    known = ", ".join(target.known.subresources) or "none"
    raise UserError(f'"{subresource}" is not a subresource of "{target.name}". Its subresources are: {known}')


def _infer_namespace(verb: str, namespace: str | None, notes: list[str], *, is_custom: bool) -> str:
    if namespace:
        return namespace
    if verb in COLLECTION_VERBS:
        return ""  # if no namespace is given, the request is for all namespaces, as in the API
    if is_custom:
        notes.append("No namespace is given, so the resource is assumed to be cluster-scoped.")
        return ""
    if namespace is not None:
        raise UserError(f'"{verb}" applies to a single namespace: use -n NAMESPACE')
    notes.append('No namespace is given, so the request is for the namespace "default".')
    return "default"


def _parse_path(verb: str, url: str) -> tuple[RequestInfo, tuple[str, ...]]:
    """Return (attributes, notes) of `VERB /path`. VERB is an HTTP method in upper or lower case, or a Kubernetes verb."""
    method = verb.upper()
    info = parse_request_info(METHOD_OF_VERB.get(verb.lower(), method), url)
    if not info.is_resource_request:
        if method in HTTP_METHODS:
            return info, ()
        note = (
            f"HTTP has no method {method}: the verb of a non-resource request is an HTTP method, such as"
            ' "get" or "post".'
        )
        return parse_request_info(method, url), (note,)
    if method == "WATCH" and info.verb == "list":
        info = parse_request_info("GET", f"{url}{'&' if '?' in url else '?'}watch=true")
    resource = rs_join(info.resource, info.subresource)
    return info, (f'This is the path of a resource: the server sees the verb "{info.verb}" on "{resource}".',)


def _parse_verb(verb: str) -> str:
    lower = verb.lower()
    if lower in VERBS or lower == "proxy":
        return lower
    sent = _KUBECTL_COMMANDS.get(lower)
    hint = f'. "{verb}" sends "{sent}"' if sent else ""
    raise UserError(f'"{verb}" is not a verb of resource requests. Verbs are {", ".join(VERBS)}{hint}')
