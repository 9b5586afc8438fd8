"""The table of resources, as `kubectl api-resources` prints them."""

from __future__ import annotations

from apflint.evaluate.resources import REMOVED, Resource, _read, lookup, named


def test_a_resource_of_the_core_group() -> None:
    assert lookup("nodes", "") == Resource("", "v1", "nodes", "node", "Node", False, ("no",), ("proxy", "status"))
    pods = lookup("pods", "")
    assert pods is not None
    assert (pods.namespaced, pods.short_names, pods.qualified_name) == (True, ("po",), "pods")
    assert {"exec", "log", "portforward", "status"} <= set(pods.subresources)


def test_a_resource_of_a_named_group() -> None:
    deployments = lookup("deployments", "apps")
    assert deployments == Resource(
        "apps", "v1", "deployments", "deployment", "Deployment", True, ("deploy",), ("scale", "status")
    )
    assert deployments.qualified_name == "deployments.apps"
    leases = lookup("leases", "coordination.k8s.io")
    assert leases == Resource("coordination.k8s.io", "v1", "leases", "lease", "Lease", True, (), ())
    crds = lookup("customresourcedefinitions", "apiextensions.k8s.io")
    assert crds is not None
    assert (crds.short_names, crds.namespaced) == (("crd", "crds"), False)


def test_any_word_that_kubectl_takes_names_it() -> None:
    for word in ("pods", "pod", "po", "Pod", "PO"):
        assert [each.name for each in named(word)] == ["pods"]
    assert [each.group for each in named("ev")] == ["", "events.k8s.io"]  # kubectl means the first
    assert named("") == named("widgets") == ()


def test_what_older_servers_served_is_not_among_what_is_served() -> None:
    removed = {(each.name, each.group) for each in REMOVED}
    assert {("podsecuritypolicies", "policy"), ("podsecuritypolicies", "extensions")} <= removed
    assert lookup("podsecuritypolicies", "policy") is None


def test_how_the_table_is_read() -> None:
    table = """
core v1
 pods Pod N po,p exec,log
 nodes Node C -
apps v1beta1
 deployments Deployment N deploy scale
"""
    assert _read(table) == (
        Resource("", "v1", "pods", "pod", "Pod", True, ("po", "p"), ("exec", "log")),
        Resource("", "v1", "nodes", "node", "Node", False, (), ()),
        Resource("apps", "v1beta1", "deployments", "deployment", "Deployment", True, ("deploy",), ("scale",)),
    )
