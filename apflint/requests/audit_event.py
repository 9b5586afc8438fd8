"""Parser of requests in events of the audit log. Audit events contain all groups of the user, except on GKE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.evaluate.authentication import complete_groups, has_fixed_groups
from apflint.evaluate.match import UserInfo, rs_join
from apflint.evaluate.requestinfo import parse_request_info
from apflint.requests.json_lines import NotEventError, get_string, get_strings, require_object
from apflint.requests.log_wrappers import unwrap_event
from apflint.requests.request import METHOD_OF_VERB, Request, make_resource_info
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.evaluate.requestinfo import RequestInfo


_FIELDS = frozenset(("kind", "user", "impersonatedUser", "verb", "requestURI", "objectRef"))
"""Fields of audit events. A JSON object without any of these fields is not an audit event."""


def parse_event(value: object) -> Request:
    """Return the request of an audit.k8s.io Event. The event may be inside a log record of a hosted control plane.

    `impersonatedUser` takes precedence over `user`, because API Priority and Fairness classifies requests after
    impersonation. `verb` and `requestURI` take precedence over `objectRef`. The server may have added namespace and
    name from the HTTP body to `objectRef` (`LogRequestObject` in staging/src/k8s.io/apiserver/pkg/audit/request.go),
    but API Priority and Fairness does not read the body. Raises UserError if `value` is not an audit event with a
    readable request.
    """
    event = require_object(unwrap_event(value), "an audit event")
    if _FIELDS.isdisjoint(event):
        raise NotEventError('this is not an audit event: it has no "user", "verb", "requestURI" or "objectRef"')
    kind = event.get("kind", "Event")
    if kind != "Event" or not str(event.get("apiVersion", "audit.k8s.io/v1")).startswith("audit.k8s.io/"):
        found = " ".join(map(str, filter(None, (event.get("apiVersion"), kind))))
        raise UserError(f"this is {found}, not an Event of audit.k8s.io/v1, v1beta1 or v1alpha1")
    user, notes = _parse_user(event)
    verb, uri = get_string(event, "verb"), get_string(event, "requestURI")
    reference = require_object(event.get("objectRef") or {}, '"objectRef"')
    resource, subresource = get_string(reference, "resource"), get_string(reference, "subresource")
    group, namespace = get_string(reference, "apiGroup"), get_string(reference, "namespace")
    if not uri:
        if not resource:
            raise UserError('the event has neither a "requestURI" nor an "objectRef" with a resource')
        version, name = get_string(reference, "apiVersion"), get_string(reference, "name")
        info = make_resource_info(
            verb, group, version, resource, namespace=namespace, subresource=subresource, name=name
        )
        return Request(user, info, (*notes, 'The event has no "requestURI": the request is read from "objectRef".'))
    info = _parse_uri(verb, uri)
    if info.is_resource_request and info.verb != verb:
        notes += (f'The verb of the event is "{verb}", but the verb of its URI is "{info.verb}": "{verb}" is used.',)
        info = info._replace(verb=verb)
    actual = (rs_join(info.resource, info.subresource), info.api_group)
    if resource and (
        actual != (rs_join(resource, subresource), group)
        or (namespace and info.namespace and namespace != info.namespace)
    ):
        notes += ('The "requestURI" and the "objectRef" of the event differ: the "requestURI" is used.',)
    return Request(user, info, notes, uri)


def _parse_user(event: dict[str, Any]) -> tuple[UserInfo, tuple[str, ...]]:
    authenticated = require_object(event.get("user") or {}, '"user"')
    impersonated = require_object(event.get("impersonatedUser") or {}, '"impersonatedUser"')
    fields = impersonated or authenticated
    user = UserInfo(get_string(fields, "username", required=True), get_strings(fields, "groups"))
    notes: tuple[str, ...] = ()
    if fields.get("groups") is None:
        notes = (f'The event has no groups of "{user.name}": {_describe_known_groups(user.name)}.',)
        user = user._replace(groups=complete_groups(user.name, ())[0])
    if not impersonated:
        return user, notes
    return user, (
        *notes,
        f'"{get_string(authenticated, "username")}" impersonates "{user.name}", so the user of the request is "{user.name}".',
    )


def _describe_known_groups(user: str) -> str:
    if has_fixed_groups(user):
        return "apflint uses the groups that authentication always gives to this user"
    return "only the groups that authentication always adds are used, so the answer may be wrong"


def _parse_uri(verb: str, uri: str) -> RequestInfo:
    info = parse_request_info(METHOD_OF_VERB.get(verb, verb.upper()), uri)
    if not info.is_resource_request and info.verb != verb:
        return parse_request_info(verb.upper(), uri)
    return info
