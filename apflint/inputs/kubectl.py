"""Reads the APF configuration of a running cluster with kubectl. It only reads.

kubectl is used instead of a client library, so that every kubeconfig and login plugin of the user works.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.budgets import MAX_KUBECTL_SECONDS
from apflint.errors import UserError
from apflint.inputs.programs import run_program
from apflint.releases import API_VERSIONS, GROUP, parse_release
from apflint.wording import join_words

if TYPE_CHECKING:
    from apflint.releases import Release

_GROUP_PATH = f"/apis/{GROUP}"
_RESOURCES = {"flowschemas": "FlowSchema", "prioritylevelconfigurations": "PriorityLevelConfiguration"}
_MAX_MESSAGE_CHARACTERS = 400


class KubectlOptions(NamedTuple):
    """The cluster that kubectl reads. If a value is None, kubectl uses its own default."""

    kubeconfig: str | None = None
    context: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options of kubectl."""
        given = (("--kubeconfig", self.kubeconfig), ("--context", self.context))
        return tuple(f"{name}={value}" for name, value in given if value is not None)


class LiveConfiguration(NamedTuple):
    """The APF configuration that an API server has returned."""

    kubernetes: Release
    """The release of the API server, or the release that the caller has asked for."""
    files: tuple[tuple[str, bytes], ...]
    """A list of FlowSchemas and a list of priority levels, as pairs of name and JSON. A name looks like `live:flowschemas`."""


def read_live_configuration(options: KubectlOptions, kubernetes: Release | None = None) -> LiveConfiguration:
    """Return the release and the APF objects of the API server that kubectl reaches.

    If `kubernetes` is None, the release is that of the API server. Raises UserError if kubectl is missing, fails, takes
    longer than `MAX_KUBECTL_SECONDS`, or prints anything else than an answer of an API server.
    """
    if kubernetes is None:
        kubernetes = _read_release(options)
    version = _choose_version(_get(options, _GROUP_PATH))
    return LiveConfiguration(
        kubernetes,
        tuple(
            (f"live:{resource}", _read_list(options, f"{_GROUP_PATH}/{version}/{resource}", f"{kind}List"))
            for resource, kind in _RESOURCES.items()
        ),
    )


def _read_release(options: KubectlOptions) -> Release:
    answer = _get(options, "/version")
    version = answer.get("gitVersion")
    if not isinstance(version, str):
        raise _unexpected("/version")
    try:
        return parse_release(version)
    except UserError as error:
        raise UserError(f"The API server reports the version {error}. Use --kubernetes to choose a release.") from None


def _choose_version(group: dict[str, Any]) -> str:
    """Return the newest API version that both the API server and apflint know."""
    versions = group.get("versions")
    if not isinstance(versions, list) or not all(isinstance(entry, dict) for entry in versions):
        raise _unexpected(_GROUP_PATH)
    served = [str(entry.get("version")) for entry in versions]
    for known in API_VERSIONS:
        if known.name in served:
            return known.name
    names = [known.name for known in API_VERSIONS]
    raise UserError(
        f"The API server serves {join_words(served) or 'no version'} of {GROUP}, but apflint knows {join_words(names)}."
    )


def _read_list(options: KubectlOptions, path: str, kind: str) -> bytes:
    """Return the JSON of a list of objects."""
    answer = _get(options, path)
    if answer.get("kind") != kind or not isinstance(answer.get("items"), list):
        raise _unexpected(path)
    return json.dumps(answer, indent=1).encode()


def _get(options: KubectlOptions, path: str) -> dict[str, Any]:
    """Return the JSON object that the API server answers to a GET request. Raises UserError for everything else."""
    text = _run(options, path)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise _unexpected(path) from None
    if not isinstance(answer, dict):
        raise _unexpected(path)
    return answer


def _run(options: KubectlOptions, path: str) -> bytes:
    """Return the standard output of `kubectl get --raw`."""
    command = ("kubectl", "get", "--raw", path, f"--request-timeout={MAX_KUBECTL_SECONDS}s", *options.arguments)
    done = run_program(command, MAX_KUBECTL_SECONDS)
    if done.status == 0:
        return done.stdout
    message = " ".join(done.stderr.split())[:_MAX_MESSAGE_CHARACTERS] or f"exit code {done.status}"
    if "(Forbidden)" in message:
        raise UserError(f"kubectl: {message}. To allow it, add this rule to a ClusterRole of the user: {_rule(path)}")
    if "(NotFound)" in message and path == _GROUP_PATH:
        raise UserError(f"The API server does not serve the API group {GROUP}: API Priority and Fairness is disabled.")
    raise UserError(f"kubectl get --raw {path}: {message}")


def _rule(path: str) -> str:
    """Return the RBAC rule that allows a GET request for a path, in the syntax of a ClusterRole."""
    resource = path.rpartition("/")[2]
    if resource in _RESOURCES:
        return f"{{apiGroups: [{GROUP}], resources: [{', '.join(_RESOURCES)}], verbs: [list]}}"
    return f"{{nonResourceURLs: [{path}], verbs: [get]}}"


def _unexpected(path: str) -> UserError:
    return UserError(f"kubectl get --raw {path} printed something else than the answer of an API server.")
