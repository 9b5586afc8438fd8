"""Words and paths are parsed as kubectl does. Notes name the inferred values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from apflint.evaluate.match import UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.requests.request import parse_http
from apflint.requests.request_words import infer_resource, parse_words
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.requests.request import Request


def words(text: str, **options: Any) -> Request:
    return parse_words(text.split(), user="alice", **options)


@pytest.mark.parametrize(
    ("text", "namespace", "method", "url"),
    [
        ("list pods", "team-a", "GET", "/api/v1/namespaces/team-a/pods"),
        ("list po", "team-a", "GET", "/api/v1/namespaces/team-a/pods"),
        ("list Pod", None, "GET", "/api/v1/pods"),
        ("watch deploy", "x", "GET", "/apis/apps/v1/namespaces/x/deployments?watch=1"),
        ("create svc", "x", "POST", "/api/v1/namespaces/x/services"),
        ("update deployments/scale web", "x", "PUT", "/apis/apps/v1/namespaces/x/deployments/web/scale"),
        ("get pods/log web-0", "x", "GET", "/api/v1/namespaces/x/pods/web-0/log"),
        ("get pod/web-0", None, "GET", "/api/v1/namespaces/default/pods/web-0"),
        ("get pod/web-0/log", "x", "GET", "/api/v1/namespaces/x/pods/web-0/log"),
        ("patch no n1", "ignored", "PATCH", "/api/v1/nodes/n1"),
        ("get ns foo", None, "GET", "/api/v1/namespaces/foo"),
        ("update namespaces/finalize foo", None, "PUT", "/api/v1/namespaces/foo/finalize"),
        ("list ns", None, "GET", "/api/v1/namespaces"),
        ("create ns", None, "POST", "/api/v1/namespaces"),
        ("deletecollection cm", "x", "DELETE", "/api/v1/namespaces/x/configmaps"),
        ("list leases.coordination.k8s.io", "x", "GET", "/apis/coordination.k8s.io/v1/namespaces/x/leases"),
        ("list deploy.v1.apps", "x", "GET", "/apis/apps/v1/namespaces/x/deployments"),
        ("list events", "x", "GET", "/api/v1/namespaces/x/events"),
        ("list ev.events.k8s.io", "x", "GET", "/apis/events.k8s.io/v1/namespaces/x/events"),
        ("list hpa", "x", "GET", "/apis/autoscaling/v2/namespaces/x/horizontalpodautoscalers"),
        ("list crds", None, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        ("list pods.", "x", "GET", "/api/v1/namespaces/x/pods"),
        ("LIST pods", "x", "GET", "/api/v1/namespaces/x/pods"),
        ("get widgets.v1.example.com w", "x", "GET", "/apis/example.com/v1/namespaces/x/widgets/w"),
    ],
)
def test_words_are_the_request_of_kubectl(text: str, namespace: str | None, method: str, url: str) -> None:
    assert words(text, namespace=namespace).info == parse_request_info(method, url)


def test_custom_resource_has_no_version() -> None:
    assert words("get widgets.example.com a").info.namespace == ""
    info = words("list widgets.example.com", namespace="x").info
    assert (info.api_group, info.api_version, info.resource, info.namespace, info.path) == (
        "example.com",
        "",
        "widgets",
        "x",
        "",
    )


def test_inferred_values_are_noted() -> None:
    assert words("watch deploy").notes[0] == '"deploy" is read as "deployments" in the API group "apps".'
    assert words("watch deploy").info.namespace == ""
    both = '"events" is in the core API group ""; for the resource with the same name in another API group, write "events.events.k8s.io".'
    assert words("list events", namespace="x").notes[0] == both
    assert "core API group" not in words("list pods", namespace="x").notes[0]
    assert words("get po a").notes[1] == 'No namespace is given, so the request is for the namespace "default".'
    assert words("list deployments", all_namespaces=True).notes[0] == '"deployments" is in the API group "apps".'
    assert '"n" is ignored' in words("list nodes", namespace="n").notes[0]
    assert '"events.events.k8s.io"' in words("list ev").notes[0]
    assert '"web-0" is not a subresource of "pods"' in words("get pods/web-0", namespace="x").notes[0]
    assert words("get pods", namespace="x").notes[0] == (
        'The server treats a GET without a name as "list". If you intend this, write "list" instead.'
    )
    assert words("delete pods", namespace="x").notes[0] == (
        'The server treats a DELETE without a name as "deletecollection". If you intend this, write "deletecollection" instead.'
    )
    assert not any("without a name" in note for note in words("delete pods a", namespace="x").notes)
    assert '"foo" itself' in words("get ns foo").notes[1]
    assert not any('"foo" itself' in note for note in words("list ns foo").notes)
    assert 'in the API group "apps", not in the group "extensions"' in words("list deployments.extensions").notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name a verb"),
        ("list", '"list" is incomplete'),
        ("describe pods", '"describe" sends "get"'),
        ("exec pods", '"create pods/exec"'),
        ("bake pods", "not a verb of resource requests"),
        ("list pdos", 'Did you mean "pods"'),
        ("list widgets", '"widgets.example.com"'),
        ("list qqqqqq", '^"qqqqqq" is not a resource of Kubernetes itself. For a custom resource'),
        ("get pods/foo web-0", "Its subresources are: attach, binding"),
        ("get pods/a/b/c", "cannot parse"),
        ("get pods/ a", "cannot parse"),
        ("get pods a b", 'unexpected argument "b"'),
        ("get /healthz x", 'unexpected argument "x"'),
        ("get /api/v1/watch", "cannot determine the resource"),
    ],
)
def test_invalid_words_are_rejected(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        words(text)


@pytest.mark.parametrize(
    ("verb", "sent"),
    [
        ("POST", "create"),
        ("put", "update"),
        ("head", "get"),
        ("describe", "get"),
        ("edit", "patch"),
        ("apply", "patch"),
        ("label", "patch"),
        ("annotate", "patch"),
        ("replace", "update"),
        ("logs", "get pods/log"),
        ("log", "get pods/log"),
        ("exec", "create pods/exec"),
        ("attach", "create pods/attach"),
        ("port-forward", "create pods/portforward"),
        ("scale", "update deployments/scale"),
        ("evict", "create pods/eviction"),
    ],
)
def test_command_of_kubectl_is_not_a_verb(verb: str, sent: str) -> None:
    verbs = "Verbs are get, list, watch, create, update, patch, delete, deletecollection"
    with pytest.raises(UserError, match=f'^"{verb}" is not a verb of .*{verbs}. "{verb}" sends "{sent}"$'):
        words(f"{verb} pods")


def test_http_methods_are_verbs_of_paths() -> None:
    for method in ("get", "HEAD", "post", "put", "patch", "delete", "options", "trace", "connect"):
        assert "HTTP has no method" not in words(f"{method} /healthz").notes[0]
    assert words("list /healthz").notes[0].startswith("HTTP has no method LIST: ")


def test_name_of_a_new_object_is_ignored() -> None:
    request = parse_words(("create", "configmaps", "x"), user="a", namespace="dev")
    assert request.info == parse_request_info("POST", "/api/v1/namespaces/dev/configmaps")
    assert 'The name "x" is in the body of the request, which API Priority and Fairness does not read.' in request.notes
    binding = parse_words(("create", "pods/binding", "x"), user="a", namespace="dev")
    assert binding.info.name == "x"
    assert not [note for note in binding.notes if "body" in note]


def test_single_object_requires_one_namespace() -> None:
    with pytest.raises(UserError, match="single namespace"):
        words("get pods a", all_namespaces=True)


@pytest.mark.parametrize(
    ("text", "verb", "resource"),
    [
        ("get /healthz", "get", ""),
        ("HEAD /healthz", "head", ""),
        ("list /healthz", "list", ""),
        ("get /api/v1/pods", "list", "pods"),
        ("watch /api/v1/pods", "watch", "pods"),
        ("watch /api/v1/pods?limit=5", "watch", "pods"),
        ("create /api/v1/namespaces/x/pods", "create", "pods"),
        ("post /api/v1/namespaces/x/pods", "create", "pods"),
        ("deletecollection /api/v1/namespaces/x/pods", "deletecollection", "pods"),
    ],
)
def test_path_in_words(text: str, verb: str, resource: str) -> None:
    request = words(text)
    assert (request.info.verb, request.info.resource) == (verb, resource)


def test_namespace_beside_a_path_is_ignored() -> None:
    assert "The given namespace is ignored" in words("get /api/v1/pods", namespace="x").notes[1]
    assert "HTTP has no method LIST" in words("list /healthz").notes[0]


def test_http_request() -> None:
    request = parse_http("GET", "/version", user="bob", groups=["ops"])
    assert request.user == UserInfo("bob", ("ops", "system:authenticated"))
    assert request.info == parse_request_info("GET", "/version")
    assert request.digest.user == request.user


@pytest.mark.parametrize(
    ("text", "note"),
    [
        # A group without a dot, and a group that Kubernetes itself serves, cannot be the group of a custom resource.
        ("pods.apps", 'Kubernetes serves "pods" in the core API group "", not in the group "apps".'),
        ("ingresses.extensions", 'Kubernetes serves "ingresses" in the API group "networking.k8s.io", not in the'),
        ("nodes.networking.k8s.io", 'Kubernetes serves "nodes" in the core API group "", not in the group'),
        ("pods.metrics.k8s.io", 'An aggregated API server serves the API group "metrics.k8s.io".'),
        ("pods.custom.metrics.k8s.io", 'An aggregated API server serves the API group "custom.metrics.k8s.io".'),
        ("queue.external.metrics.k8s.io", 'An aggregated API server serves the API group "external.metrics.k8s.io".'),
        (
            "services.serving.knative.dev",
            '"services" is read as a resource of the API group "serving.knative.dev". This API group must',
        ),
        (
            "jobs.batch.volcano.sh",
            '"jobs" is read as a resource of the API group "batch.volcano.sh". This API group must',
        ),
        ("widgets.example.com", ""),
    ],
)
def test_group_of_a_resource_with_the_name_of_another(text: str, note: str) -> None:
    target = infer_resource(text)
    assert (target.name, target.group) == tuple(text.split(".", 1))
    assert " ".join(target.notes).startswith(note)
    assert bool(target.notes) == bool(note)
    assert ("not in the group" in " ".join(target.notes)) == note.startswith("Kubernetes serves")


def test_resources_of_metrics_server() -> None:
    pods, nodes = infer_resource("pod.metrics.k8s.io"), infer_resource("nodes.v1beta1.metrics.k8s.io")
    assert (pods.name, pods.version, pods.known is not None and pods.known.namespaced) == ("pods", "v1beta1", True)
    assert (nodes.name, nodes.version, nodes.known is not None and nodes.known.namespaced) == (
        "nodes",
        "v1beta1",
        False,
    )
    assert infer_resource("pods").notes == ()
