"""The resources that Kubernetes itself serves, with the names that kubectl accepts for each resource."""

from __future__ import annotations

from functools import cache

from apflint.named_tuple import NamedTuple
from apflint.package_data import read_text


class Resource(NamedTuple):
    """A resource of an API group. `version` is the preferred version of the group."""

    group: str
    version: str
    name: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    is_virtual: bool = False
    """Whether the server stores no objects of the resource, such as SubjectAccessReviews and Bindings. Clients cannot
    watch such resources."""

    @property
    def qualified_name(self) -> str:
        """Name with the API group, as in `deployments.apps`. Resources of the core group have no suffix: `pods`."""
        return f"{self.name}.{self.group}" if self.group else self.name


def _read_table() -> tuple[Resource, ...]:
    """Read resources.txt. The format is described in its first lines."""
    resources = []
    group = version = ""
    for line in read_text("evaluate/resources.txt").splitlines():
        fields = line.split()
        if line[0] == " ":
            plural, kind, scope, short, *subresources = fields
            short_names = () if short == "-" else tuple(short.split(","))
            subs = tuple(subresources[0].split(",")) if subresources else ()
            fields_of_kind = kind.lower(), kind, scope.startswith("N")
            resources.append(Resource(group, version, plural, *fields_of_kind, short_names, subs, scope.endswith("V")))
        elif line[0] != "#":
            group, version = "" if fields[0] == "core" else fields[0], fields[1]
    return tuple(resources)


RESOURCES = _read_table()
"""Resources of Kubernetes 1.37, without alpha resources. If several resources have the same name, kubectl uses the first."""


AGGREGATED_GROUPS = frozenset(("metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"))
"""API groups that aggregated API servers serve in most clusters, such as metrics-server.

Source: SIG Instrumentation, `k8s.io/metrics`. Other aggregated API servers serve further groups, so this set is not complete.
"""
_AGGREGATED = (
    Resource("metrics.k8s.io", "v1beta1", "nodes", "node", "NodeMetrics", False),
    Resource("metrics.k8s.io", "v1beta1", "pods", "pod", "PodMetrics", True),
)
"""Resources of metrics-server. They are not in `RESOURCES`, because kubectl uses them only if the command names their group."""


def find_resources(text: str) -> tuple[Resource, ...]:
    """Return the resources whose plural, singular, short name or kind is `text`, in any letter case.

    If there are several, kubectl uses the first of them.
    """
    return _resources_by_word().get(text.lower(), ())


@cache
def _resources_by_word() -> dict[str, tuple[Resource, ...]]:
    by_word: dict[str, tuple[Resource, ...]] = {}
    for resource in RESOURCES:
        for word in dict.fromkeys((resource.name, resource.singular, *resource.short_names)):
            by_word[word] = (*by_word.get(word, ()), resource)
    return by_word


def get_resource(name: str, group: str) -> Resource | None:
    """Return the resource with a plural name and an API group, or None if Kubernetes and metrics-server do not serve it."""
    return _resources_by_name().get((name, group))


@cache
def _resources_by_name() -> dict[tuple[str, str], Resource]:
    return {(resource.name, resource.group): resource for resource in reversed((*RESOURCES, *_AGGREGATED))}


def is_stored(name: str, group: str) -> bool:
    """Return whether kube-apiserver may store objects of a resource.

    The server has an object count and notifies watchers only for stored objects. Custom resources are stored. The
    result is true for every unknown group, although an aggregated API server may serve the group.
    """
    resource = get_resource(name, group)
    return group not in AGGREGATED_GROUPS and not (resource is not None and resource.is_virtual)


def is_served_by_kubernetes(group: str) -> bool:
    """Return whether Kubernetes itself serves an API group."""
    return any(resource.group == group for resource in RESOURCES)
