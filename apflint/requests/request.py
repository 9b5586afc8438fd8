"""A request to classify: the user, the attributes, and notes on values that the input did not state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import RequestInfo, parse_request_info
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

COLLECTION_VERBS = ("list", "watch", "deletecollection")
HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
METHOD_OF_VERB = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""HTTP method for each verb of resource requests."""
VERBS = tuple(METHOD_OF_VERB)
"""Verbs of resource requests."""


class Request(NamedTuple):
    """A request by a user, with the groups and attributes that determine its classification."""

    user: UserInfo
    info: RequestInfo
    notes: tuple[str, ...] = ()
    """Sentences about inferred values, such as groups that authentication adds."""
    url: str = ""
    """Path and query if the input contains them. Empty if the input describes the request by verb and resource."""
    added_groups: tuple[str, ...] = ()
    """Groups that authentication adds. The groups of the user end with these groups, and a note names them."""

    @property
    def digest(self) -> RequestDigest:
        """The attributes and the user of the request, which determine the FlowSchemas that match."""
        return RequestDigest(self.info, self.user)


def parse_http(method: str, url: str, *, user: str, groups: Sequence[str] = ()) -> Request:
    """Return the HTTP request `method url`. The user gets the groups that authentication adds.

    Raises UserError if the server cannot parse the URL (see `parse_request_info`).
    """
    all_groups, notes = complete_groups(user, tuple(groups))
    info = parse_request_info(method, url)
    return Request(UserInfo(user, all_groups), info, notes, url, all_groups[len(groups) :])


def make_resource_info(
    verb: str, group: str, version: str, resource: str, *, namespace: str = "", subresource: str = "", name: str = ""
) -> RequestInfo:
    """Return the attributes of a resource request. If `version` is empty, the path is empty.

    A request for the Namespace object `foo` has the namespace `foo`, as on the server.
    """
    is_named = bool(name) and (bool(subresource) or requires_name(verb))
    is_namespace = resource == "namespaces" and not group
    if is_namespace and is_named and not namespace:
        namespace = name
    parts = (resource, *((part for part in (name, subresource) if part) if is_named else ()))
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if namespace and not is_namespace:
        base += f"/namespaces/{namespace}"
    path = f"{base}/{'/'.join(parts)}" if version else ""
    prefix = "apis" if group else "api"
    return RequestInfo(True, verb, prefix, group, version, namespace, resource, subresource, name, path, parts)


def requires_name(verb: str) -> bool:
    """Return whether resource requests with this verb have the name of an object in their path."""
    return verb not in (*COLLECTION_VERBS, "create")


def describe_group(group: str) -> str:
    """Return an API group as a noun: `the API group "apps"`."""
    return f'the API group "{group}"' if group else 'the core API group ""'
