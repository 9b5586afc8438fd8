"""Reads the APF configuration of a running cluster with kubectl. Does not change the cluster.

kubectl is used instead of a client library, so that every kubeconfig and login plugin of the user works.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import yaml

from apflint.budgets import MAX_KUBECTL_SECONDS, MAX_LIVE_PAGES
from apflint.diff.kubectl_apply import FieldManager
from apflint.load.scalars import resolve_plain
from apflint.load.source_text import LIVE_PREFIX
from apflint.releases import API_VERSIONS, GROUP, parse_release
from apflint.sources.programs import run_program
from apflint.user_error import UserError
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.diff.kubectl_apply import Managers
    from apflint.releases import Release

_GROUP_PATH = f"/apis/{GROUP}"
_RESOURCES = {"flowschemas": "FlowSchema", "prioritylevelconfigurations": "PriorityLevelConfiguration"}


class KubectlOptions(NamedTuple):
    """Options that select the cluster. If an option is None, kubectl uses its default."""

    kubeconfig: str | None = None
    context: str | None = None
    address: str | None = None
    """Address and port of one API server of the cluster, or None for the address in the kubeconfig."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options of kubectl that select this cluster.

        If `address` is set, kubectl compares the name in the certificate of the API server with the name of the service
        `kubernetes`. Pods use this name, so every certificate contains it. A certificate may not contain the address.
        """
        given = (
            ("--kubeconfig", self.kubeconfig),
            ("--context", self.context),
            ("--server", None if self.address is None else f"https://{self.address}"),
            ("--tls-server-name", None if self.address is None else "kubernetes.default.svc"),
        )
        return tuple(f"{name}={value}" for name, value in given if value is not None)

    @property
    def apflint_arguments(self) -> tuple[str, ...]:
        """The command-line options of apflint that select this cluster, such as `--live --kube-context prod`."""
        given = (("--kubeconfig", self.kubeconfig), ("--kube-context", self.context))
        return ("--live", *(word for name, value in given if value is not None for word in (name, value)))


class LiveConfiguration(NamedTuple):
    """The APF objects of an API server, its release, and the API versions that it serves.

    If the caller requested a release, the release and the versions are those of the requested release.
    """

    kubernetes: Release
    """The release of the API server, or the release that the caller requested."""
    files: tuple[tuple[str, bytes], ...]
    """The objects, as pairs of name and YAML. For the name `live:flowschemas/batch`, the YAML has the same lines as the output
    of `kubectl get flowschemas/batch -o yaml`."""
    managers: Managers
    """The managers of the fields of each object."""
    served: tuple[str, ...]
    """The API versions that the API server serves, or those of the release that the caller requested."""


def read_live_configuration(options: KubectlOptions, kubernetes: Release | None = None) -> LiveConfiguration:
    """Return the release and the APF objects of the API server that kubectl connects to.

    If `kubernetes` is not None, it replaces the release that the API server reports. Raises UserError if kubectl is
    missing, fails, takes longer than `MAX_KUBECTL_SECONDS`, or does not print the response of an API server.
    """
    release = kubernetes or _read_release(options)
    served = _list_versions(read_json(options, _GROUP_PATH))
    version = _choose_version(served)
    managers: dict[tuple[str, str], tuple[FieldManager, ...]] = {}
    files = tuple(file for resource in _RESOURCES for file in _read_objects(options, version, resource, managers))
    if not files:
        raise UserError("The API server has no FlowSchemas and no priority levels, not even the mandatory ones.")
    if kubernetes is not None:
        served = (*kubernetes.served, *kubernetes.on_request)
    return LiveConfiguration(release, files, managers, served)


def _read_release(options: KubectlOptions) -> Release:
    answer = read_json(options, "/version")
    version = answer.get("gitVersion")
    if not isinstance(version, str):
        raise _unexpected("/version")
    try:
        return parse_release(version)
    except UserError as error:
        raise UserError(
            f"{error}. The API server reports this version. Use --kubernetes to choose a release."
        ) from None


def _list_versions(group: dict[str, Any]) -> tuple[str, ...]:
    """Return the API versions in a response about the API group: those that the API server serves."""
    versions = group.get("versions")
    if not isinstance(versions, list) or not all(isinstance(entry, dict) for entry in versions):
        raise _unexpected(_GROUP_PATH)
    return tuple(str(entry.get("version")) for entry in versions)


def _choose_version(served: tuple[str, ...]) -> str:
    """Return the newest of the API versions in `served` that apflint supports. Raises UserError if there is none."""
    for known in API_VERSIONS:
        if known.name in served:
            return known.name
    names = [known.name for known in API_VERSIONS]
    raise UserError(
        f"The API server serves {join_words(served) or 'no version'} of {GROUP}, but apflint knows {join_words(names)}."
    )


def _read_objects(
    options: KubectlOptions, version: str, resource: str, managers: dict[tuple[str, str], tuple[FieldManager, ...]]
) -> Iterator[tuple[str, bytes]]:
    """Yield (name, YAML) of each object of a resource, such as `flowschemas`.

    The managers of the fields of each object are added to `managers`.
    """
    path, kind = f"{_GROUP_PATH}/{version}/{resource}", _RESOURCES[resource]
    for item in _list_items(options, path, f"{kind}List"):
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise _unexpected(path)
        managers[kind, metadata["name"]] = tuple(_list_managers(metadata.get("managedFields")))
        # Add the kind, because items of a list have no kind. Remove managedFields, as kubectl does.
        shown = {key: value for key, value in metadata.items() if key != "managedFields"}
        value = {**item, "apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": shown}
        try:
            yield f"{LIVE_PREFIX}{resource}/{metadata['name']}", _to_yaml(value)
        except RecursionError:
            raise _unexpected(path) from None


def _list_items(options: KubectlOptions, path: str, kind: str) -> Iterator[Any]:
    """Yield the items of a list that the API server returns. If the list has several pages, all pages are read.

    Raises UserError for more than `MAX_LIVE_PAGES` pages.
    """
    query = ""
    for _ in range(MAX_LIVE_PAGES):
        answer = read_json(options, path + query)
        items: Any = answer.get("items")
        metadata = answer.get("metadata")
        if answer.get("kind") != kind or not isinstance(items, list | None):
            raise _unexpected(path)
        yield from items or ()  # Go writes an empty list as null
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        if not token:
            return
        query = f"?continue={quote(str(token), safe='')}"
    raise UserError(f"kubectl get --raw {path}: the list has more than {MAX_LIVE_PAGES} pages.")


def _list_managers(entries: object) -> Iterator[FieldManager]:
    """Yield the managers in `managedFields` of an object.

    Entries that are invalid, or about a subresource such as the status, are omitted.
    """
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("manager"), str) and not entry.get("subresource"):
            yield FieldManager(entry["manager"], str(entry.get("operation")), entry.get("fieldsV1"))


def _to_yaml(value: object) -> bytes:
    """Return a value as YAML with the same lines as `kubectl get -o yaml`.

    Raises RecursionError if the value is nested too deeply.
    """
    text: bytes = yaml.dump(
        value, Dumper=_LiveObjectDumper, encoding="utf-8", allow_unicode=True, default_flow_style=False
    )
    return text


class _LiveObjectDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the dumper of libyaml is faster
    """Writes YAML as go-yaml does."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML calls the method with this argument
        """Return True, to disable aliases in the output."""
        return True


def _represent(dumper: Any, text: str) -> Any:
    """Return the YAML node of a string. The string is quoted if PyYAML or go-yaml would parse it as another type.

    For example, go-yaml parses `1e3` as a number, but PyYAML parses it as a string.
    """
    clean = text.encode("utf-8", "replace").decode()  # replaces lone surrogates, which YAML cannot contain, by `?`
    is_plain = resolve_plain(text) == text and dumper.resolve(yaml.ScalarNode, text, (True, False)) in _STRING_TAGS
    return dumper.represent_scalar(_STRING_TAGS[0], clean, style="|" if "\n" in text else None if is_plain else '"')


# `_represent` adds no quotes to texts with these tags. PyYAML gives the first tag to strings, and the second tag to
# `*`, `&` and `!`, which PyYAML itself quotes.
_STRING_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:yaml")
_LiveObjectDumper.add_representer(str, _represent)


def read_json(options: KubectlOptions, path: str) -> dict[str, object]:
    """Return the JSON object in the response to a GET request.

    Raises UserError if the response is not a JSON object.
    """
    text = read_raw(options, path)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise _unexpected(path) from None
    if not isinstance(answer, dict):
        raise _unexpected(path)
    return answer


def read_raw(
    options: KubectlOptions, path: str, max_bytes: int | None = None, seconds: int = MAX_KUBECTL_SECONDS
) -> bytes:
    """Return the body of the response to a GET request, as `kubectl get --raw` prints it.

    `seconds` limits the time of the request, but not the time of a login that kubectl performs before the request.
    Raises UserError if the request fails, or if the body has more than `max_bytes` (`MAX_FILE_BYTES` by default).
    """
    command = ("kubectl", "get", "--raw", path, f"--request-timeout={seconds}s", *options.arguments)
    done = run_program(command, MAX_KUBECTL_SECONDS, max_bytes=max_bytes)
    if done.status == 0:
        return done.stdout
    message = done.message
    if "(Forbidden)" in message:
        raise UserError(
            f"kubectl: {message}. To allow the request, add this rule to a ClusterRole of the user: {_rule(path)}"
        )
    if "(NotFound)" in message and path == _GROUP_PATH:
        # The message does not name --enable-priority-and-fairness=false, because this flag does not disable the API
        # group (`FeatureOptions.ApplyTo` in server/options/feature.go).
        raise UserError(
            f"The API server does not serve the API group {GROUP}: the server is older than Kubernetes 1.20, or"
            " --runtime-config disables the group."
        )
    raise UserError(f"kubectl get --raw {path}: {message}")


def is_verified(options: KubectlOptions) -> bool:
    """Return whether kubectl verifies the certificate of the API server.

    A kubeconfig can disable verification (`insecure-skip-tls-verify`). An option of kubectl cannot enable verification
    again: `--insecure-skip-tls-verify=false` has no effect. If the kubeconfig cannot be read, return False.
    """
    command = ("kubectl", "config", "view", "--minify", "--output=json", *options.arguments)
    done = run_program(command, MAX_KUBECTL_SECONDS)
    try:
        clusters = json.loads(done.stdout)["clusters"] if done.status == 0 else ()
        return bool(clusters) and not any(entry["cluster"].get("insecure-skip-tls-verify") for entry in clusters)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return False


def _rule(path: str) -> str:
    """Return the RBAC rule that allows a GET request for a path, in the syntax of a ClusterRole."""
    resource = path.partition("?")[0].rpartition("/")[2]
    if resource in _RESOURCES:
        return f"{{apiGroups: [{GROUP}], resources: [{', '.join(_RESOURCES)}], verbs: [list]}}"
    if resource == "endpointslices":
        return "{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}"
    return f"{{nonResourceURLs: [{path.partition('?')[0]}], verbs: [get]}}"


def _unexpected(path: str) -> UserError:
    return UserError(f"kubectl get --raw {path} printed something other than a response of an API server.")
