"""A parser for the example commands of findings that shares no code with apflint's own parser."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from . import server
from .universe import AUTHENTICATED, NODE, own_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .server import Manifest, Request, User

COMMAND = re.compile(r"`apflint explain ([^`]+)`")
API_GROUPS = {
    resource: group
    for group, resources in {
        "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
        "authentication.k8s.io": "selfsubjectreviews tokenreviews",
        "authorization.k8s.io": "localsubjectaccessreviews selfsubjectaccessreviews subjectaccessreviews",
        "autoscaling": "horizontalpodautoscalers",
        "batch": "cronjobs jobs",
        "certificates.k8s.io": "certificatesigningrequests",
        "coordination.k8s.io": "leases leasecandidates",
        "discovery.k8s.io": "endpointslices",
        "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
        "networking.k8s.io": "ingressclasses ingresses networkpolicies",
        "policy": "poddisruptionbudgets",
        "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
        "storage.k8s.io": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments",
    }.items()
    for resource in resources.split()
}
"""The API groups of resources that commands name without a group. Resources of the core group are not listed."""


class Example(NamedTuple):
    """The request of an example command."""

    command: str
    user: User
    request: Request

    def path_through(self, order: Sequence[Manifest]) -> list[str]:
        """The names of all FlowSchemas that match, in matching order: the first one captures the request."""
        return [
            server.name_of(schema) for schema in order if server.classify([schema], self.user, self.request) is not None
        ]


def examples(message: str) -> Iterator[Example]:
    for command in COMMAND.findall(message):
        yield read(command)


def read(command: str) -> Example:
    words, options = _split(shlex.split(command))
    (name,) = options["--as"]
    if "--path" in options:
        request = server.parse_request(options["--method"][0], options["--path"][0])
        assert request is not None, command
    else:
        request = _request(words, options.get("-n", [""])[0])
    return Example(command, server.User(name, _groups(name, options.get("--as-group", []))), request)


def _split(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    words, options = [], dict[str, list[str]]()
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("-"):
            options.setdefault(argument, []).append(next(rest))
        else:
            words.append(argument)
    return words, options


def _groups(name: str, groups: list[str]) -> frozenset[str]:
    """Return the groups of an impersonated user. A node gets the group `system:nodes` only if the command names no
    group."""
    added = frozenset({AUTHENTICATED}) if groups and name.startswith(NODE) else own_groups(name)
    return added.union(groups)


def _request(words: list[str], namespace: str) -> Request:
    verb, what, *name = words
    if what.startswith("/"):
        return server.Request(False, verb, path=what)
    resource, slash, subresource = what.partition("/")
    resource, dot, group = resource.partition(".")
    group = group if dot else API_GROUPS.get(resource, "")
    if (resource, group) == ("namespaces", "") and name:
        namespace = name[0]
    return server.Request(True, verb, group, f"{resource}{slash}{subresource}", namespace)
