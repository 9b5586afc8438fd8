"""The table of resources, compared with the output of `kubectl api-resources`."""

from __future__ import annotations

from apflint.evaluate.resources import RESOURCES, Resource, find_resources, get_resource, is_stored


def test_resource_of_the_core_group() -> None:
    assert get_resource("nodes", "") == Resource("", "v1", "nodes", "node", "Node", False, ("no",), ("proxy", "status"))
    pods = get_resource("pods", "")
    assert pods is not None
    assert (pods.namespaced, pods.short_names, pods.qualified_name) == (True, ("po",), "pods")
    assert {"exec", "log", "portforward", "status"} <= set(pods.subresources)


def test_resource_of_another_group() -> None:
    deployments = get_resource("deployments", "apps")
    assert deployments == Resource(
        "apps", "v1", "deployments", "deployment", "Deployment", True, ("deploy",), ("scale", "status")
    )
    assert deployments.qualified_name == "deployments.apps"
    leases = get_resource("leases", "coordination.k8s.io")
    assert leases == Resource("coordination.k8s.io", "v1", "leases", "lease", "Lease", True, (), ())
    crds = get_resource("customresourcedefinitions", "apiextensions.k8s.io")
    assert crds is not None
    assert (crds.short_names, crds.namespaced) == (("crd", "crds"), False)


def test_resource_is_found_by_names_of_kubectl() -> None:
    for word in ("pods", "pod", "po", "Pod", "PO"):
        assert [resource.name for resource in find_resources(word)] == ["pods"]
    assert [resource.group for resource in find_resources("ev")] == ["", "events.k8s.io"]  # kubectl uses the first
    assert find_resources("") == find_resources("widgets") == ()


def test_table_is_read_with_groups_scopes_and_names() -> None:
    pods, nodes = get_resource("pods", ""), get_resource("nodes", "")
    assert pods == Resource(
        *("", "v1", "pods", "pod", "Pod", True, ("po",)),
        (
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status",
        ),
    )
    assert nodes == Resource("", "v1", "nodes", "node", "Node", False, ("no",), ("proxy", "status"))
    assert get_resource("leasecandidates", "coordination.k8s.io") == Resource(
        "coordination.k8s.io", "v1beta1", "leasecandidates", "leasecandidate", "LeaseCandidate", True
    )


def test_resources_without_stored_objects() -> None:
    virtual = {resource.name for resource in RESOURCES if resource.is_virtual}
    assert virtual == {
        *("bindings", "componentstatuses", "tokenreviews", "selfsubjectreviews", "subjectaccessreviews"),
        *("localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
    }
    assert is_stored("pods", "")
    assert is_stored("widgets", "example.com")
    assert not is_stored("pods", "metrics.k8s.io")
    assert not is_stored("tokenreviews", "authentication.k8s.io")


def test_table_of_resources_is_consistent() -> None:
    assert len({(resource.name, resource.group) for resource in RESOURCES}) == len(RESOURCES)
    for resource in RESOURCES:
        assert resource.name == resource.name.lower()
        assert resource.singular == resource.kind.lower()
        assert not {"deletecollection", "watch"} & set(resource.subresources)
    assert get_resource("pods", "") is not None
    assert get_resource("pods", "apps") is None
    assert get_resource("podsecuritypolicies", "policy") is None  # removed in 1.25
    # Only events belong to two groups. Every other name that kubectl accepts identifies one resource.
    shared = {
        word
        for resource in RESOURCES
        for word in (resource.name, *resource.short_names)
        if len(find_resources(word)) > 1
    }
    assert shared == {"events", "ev"}
