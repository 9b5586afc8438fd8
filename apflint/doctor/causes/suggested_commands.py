"""Commands in suggested actions.

apflint accepts each command line as printed, if the files that the command names exist.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from apflint.doctor.causes.conclusion import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.doctor.causes.client_ranking import Client
    from apflint.releases import Release

_LOG = "audit.log"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_USER = re.compile(r"[\w:@.+=/-]{1,253}", re.ASCII)
_VERB = re.compile(r"[a-z]+", re.ASCII)
_GROUPS = {
    "leases": "coordination.k8s.io",
    "subjectaccessreviews": "authorization.k8s.io",
    "localsubjectaccessreviews": "authorization.k8s.io",
    "selfsubjectaccessreviews": "authorization.k8s.io",
    "tokenreviews": "authentication.k8s.io",
}
"""Maps resources to their API groups. Dumps and metrics name resources without the group."""


def verify_doctor(effect: str) -> Action:
    """Return the action to check a running server after a change. `effect` is a clause: what the check should show."""
    return Action(f"check that {effect}", "apflint doctor --live --watch 60s")


def explain_request(client: Client, verb: str | None = None, resource: str | None = None) -> str | None:
    """Return a command that shows the FlowSchema and level of a request, or None if the request is unknown."""
    verb = verb or _first(client.verb)
    resource = resource or _first(client.resource)
    if client.user is None or not _USER.fullmatch(client.user) or client.user.startswith("-"):
        return None
    if verb is None or resource is None or not _VERB.fullmatch(verb) or not _NAME.fullmatch(resource.partition("/")[0]):
        return None
    name, _, subresource = resource.partition("/")
    groups = {row.api_group for row in client.rows if row.resource == name} or {_GROUPS.get(name, "")}
    group = min(groups)
    if group and not _NAME.fullmatch(group):
        return None
    full = f"{name}.{group}" if group else name
    if subresource:
        full = f"{full}/{subresource}"
    namespace = _first_namespace(client)
    where = f" -n {namespace}" if namespace else ""
    return f"apflint explain --live {verb} {full}{where} --as {shlex.quote(client.user)}"


def _first(names: str | None) -> str | None:
    return names.split(", ")[0] if names else None


def _first_namespace(client: Client) -> str | None:
    names = {row.namespace for row in client.rows if row.namespace}
    name = min(names, default=None)
    return name if name is not None and _NAME.fullmatch(name) else None


def simulate_change(level: str, field: str, value: int) -> str | None:
    """Return a command that simulates another value of a field of a level, for the requests of an audit log."""
    if not _NAME.fullmatch(level):
        return None
    return f"apflint simulate --from-audit {_LOG} --live --set {level}.{field}={value}"


def simulate_manifests() -> str:
    """Return a command that simulates the requests of an audit log with and without new manifests.

    The command compares the present objects of the cluster with these objects plus the manifests. The
    result is only valid if the objects have not changed since the log was written.
    """
    return f"apflint simulate --from-audit {_LOG} --live -f manifests/ --compare live"


def compare_defaults(release: Release) -> str:
    """Return a command that shows how the objects of the cluster differ from the built-in objects of a release."""
    return f"apflint diff live defaults:{release.name}"


def show_flow_schema(name: str | None) -> str | None:
    """Return a command that shows a FlowSchema, or None if its name is unknown."""
    return f"kubectl get flowschema {name} -o yaml" if name is not None and _NAME.fullmatch(name) else None


def fit_command(command: str | None, configuration: Sequence[str]) -> str | None:
    """Return a command that does not access the running cluster, or None if `command` cannot do without this access.

    In a command `apflint explain --live`, the options in `configuration`, such as `-f manifests/`, replace `--live`.
    A command that does not access the cluster stays as it is.
    """
    words = shlex.split(command or "")
    if not {"live", "--live"}.intersection(words):
        return command
    if words[1] != "explain" or not configuration:
        return None
    return shlex.join(("apflint", "explain", *(word for word in words[2:] if word != "--live"), *configuration))


def compare_manifests() -> str:
    """Return a command that shows which requests the manifests would move to another FlowSchema or level."""
    return "apflint diff live manifests/"
