"""Generates synthetic audit logs of a large cluster from a seed. The format is that of logs in `fixtures/replay/live/`.

The events have the audit level `Metadata`. The cluster has 500 nodes, 240 service accounts, 300 people and 400
namespaces. At times, some clients overload their priority level, so that their requests wait or are rejected. All
numbers are invented.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import re
from datetime import UTC, datetime
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

NODES, OPERATORS, PIPELINES, PEOPLE, NAMESPACES = 500, 180, 60, 300, 400
_OBJECTS = 40
"""Number of objects that a client uses. A client uses some of them more often than others."""
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_ROTATED_BYTES = 100_000_000
"""Size of a rotated file in bytes. The CIS Kubernetes Benchmark recommends `--audit-log-maxsize=100`, so that
kube-apiserver starts a new file after 100 MB."""
_START = int(datetime(2026, 11, 16, 8, tzinfo=UTC).timestamp()) * 1_000_000
_REQUESTS_PER_SECOND = 600
_BURST_SECONDS, _BURST_PERIOD_SECONDS, _BURST_FACTOR = range(2, 22), 180, 2.5
"""Seconds with a burst in each period, length of a period in seconds, and factor by which clients send more in a burst."""
_SLOW_MICROSECONDS = 500_000
"""Minimum duration of requests whose latencies kube-apiserver annotates."""
_AKS = {"category": "kube-audit", "operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read"}
WRAPPERS: dict[str, Callable[[str], str]] = {
    "an export of CloudWatch Logs, as of EKS": lambda line: f"2026-11-16T08:00:00.000Z {line}",
    "lines of CRI": lambda line: f"2026-11-16T08:00:00.000000000Z stdout F {line}",
    "records of AKS": lambda line: json.dumps(
        {
            **_AKS,
            "time": "2026-11-16T08:00:00Z",
            "properties": {"log": f"{line}\n", "stream": "stdout", "pod": "server-1"},
        },
        separators=(",", ":"),
    ),
}
"""For each wrapper, which is what log collectors write around an event, a function that wraps a line of an audit log."""
_NAMESPACE, _NAME, _SELF = "\x01", "\x02", "\x03"
"""Placeholders in templates: the namespace and the name of the object, and the name of the client."""


class _Action(NamedTuple):
    """A request that clients of one kind send."""

    weight: float
    verb: str
    path: str
    """Path and query, with the placeholders `_NAMESPACE` and `_NAME`."""
    group: str = ""
    resource: str = ""
    """Resource, with `/SUBRESOURCE` if any. Empty for non-resource requests."""
    milliseconds: float = 5
    """Mean duration in milliseconds."""
    code: int = 200


class _Client(NamedTuple):
    user: dict[str, Any]
    agent: str
    reason: str
    """Reason for which authorization allows the requests of the client."""
    is_greedy: bool = False
    """Whether requests of the client wait and are rejected during bursts."""
    impersonated: dict[str, Any] | None = None


class _Template(NamedTuple):
    """The JSON of the events for one action of a client, without the outer braces.

    The values that differ between requests are added when an event is written.
    """

    received: str
    """Text of the event `RequestReceived`, before impersonation."""
    answered: str
    action: _Action
    annotations: str
    client: int
    """Index of the client."""
    is_greedy: bool


def parse_size(text: str) -> int:
    """Parse a size such as 1GB, for argparse."""
    match = re.fullmatch(r"(\d+) ?([kMG]?)B?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 100MB or 1GB")
    return int(match[1]) * _UNITS[match[2]]


def write_audit_log(path: Path, size: int, seed: int, server: str = "") -> None:
    """Write a log until it has at least `size` bytes. Equal arguments give equal bytes."""
    _write_lines(path, size, events(seed, server))


def write_rotated_audit_log(directory: Path, size: int, seed: int) -> None:
    """Write a log of one server in files of `_ROTATED_BYTES`."""
    directory.mkdir()
    lines = events(seed)
    for number in range(math.ceil(size / _ROTATED_BYTES)):
        _write_lines(directory / f"audit.log.{number}", _ROTATED_BYTES, lines)


def wrap_audit_log(path: Path, target: Path, wrap: Callable[[str], str]) -> None:
    """Write an audit log whose lines are those of `path` in a wrapper."""
    with path.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8") as file:
        file.writelines(f"{wrap(line.rstrip())}\n" for line in lines)


def _write_lines(path: Path, size: int, lines: Iterator[str]) -> None:
    written = 0
    with path.open("wb") as file:
        for line in lines:
            written += file.write(line.encode())
            if written >= size:
                return


def events(seed: int, server: str = "") -> Iterator[str]:
    """Yield the lines of an endless log of one server in the order in which the server writes them."""
    chance = Random(f"{seed} {server}")
    templates, weights = _list_templates()
    cumulated = list(accumulate(weights))
    clock = _Clock()
    answers: list[tuple[int, str]] = []
    """Events to write later, as pairs of time and event."""
    now = _START
    while True:
        for template in chance.choices(templates, cum_weights=cumulated, k=1000):
            is_burst = now // 1_000_000 % _BURST_PERIOD_SECONDS in _BURST_SECONDS
            rate = _REQUESTS_PER_SECOND * (_BURST_FACTOR if is_burst else 1)
            now -= int(math.log(1 - chance.random()) * 1e6 / rate) - 1
            while answers and answers[0][0] <= now:
                yield heapq.heappop(answers)[1]
            number = f"{chance.getrandbits(128):032x}"
            identity = f"{number[:8]}-{number[8:12]}-4{number[13:16]}-a{number[17:20]}-{number[20:]}"
            used = template.client * _OBJECTS + int(_OBJECTS * chance.random() ** 2)
            # A few namespaces get most of the requests. Multiples of the golden ratio distribute the objects evenly.
            namespace = f"team-{int(NAMESPACES * (used * 0.618034 % 1) ** 3):03}"
            name = f"app-{used * 40503 % 0xFFFFF:05x}"
            received = template.received.replace(_NAMESPACE, namespace).replace(_NAME, name)
            answered = received
            if template.answered is not template.received:
                answered = template.answered.replace(_NAMESPACE, namespace).replace(_NAME, name)
            time = clock.show(now)
            head = f'{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"{identity}","stage":'
            if template.action.code != 401:
                yield f'{head}"RequestReceived",{received},"requestReceivedTimestamp":"{time}","stageTimestamp":"{time}"}}\n'
            for stage, end, status, rest in _answer(chance, template, is_burst=is_burst):
                line = (
                    f'{head}"{stage}",{answered},"responseStatus":{status},"requestReceivedTimestamp":"{time}",'
                    f'"stageTimestamp":"{clock.show(now + end)}"{rest}}}\n'
                )
                heapq.heappush(answers, (now + end, line))


def _answer(chance: Random, template: _Template, *, is_burst: bool) -> Iterator[tuple[str, int, str, str]]:
    """Yield the events after `RequestReceived`: stage, microseconds after the request, status, and annotations."""
    action = template.action
    if template.is_greedy and is_burst and chance.random() < 0.1:
        yield "ResponseComplete", 200 + int(chance.random() * 300), '{"metadata":{},"code":429}', ""
        return
    length = 500 - int(math.log(1 - chance.random()) * action.milliseconds * 1000)
    status = _STATUS[action.code]
    if action.code == 401:
        yield "ResponseStarted", length, status, ""
    elif action.verb == "watch" or action.resource in ("pods/log", "pods/exec"):
        yield "ResponseStarted", 3000, status, template.annotations
        yield "ResponseComplete", 3000 + length, status, template.annotations
    else:
        wait = int(chance.random() * 4e6) if template.is_greedy and is_burst and chance.random() < 0.3 else 30
        annotations = template.annotations
        if length + wait > _SLOW_MICROSECONDS:
            annotations = (
                _LATENCIES.format(_duration(wait), _duration(length), _duration(length + wait)) + annotations[16:]
            )
        yield "ResponseComplete", length + wait, status, annotations


_STATUS = {
    code: json.dumps({"metadata": {}, **failure, "code": code}, separators=(",", ":"))
    for code, failure in (
        (200, {}),
        (201, {}),
        (401, {"status": "Failure", "message": "Unauthorized", "reason": "Unauthorized"}),
        (403, {"status": "Failure", "message": "forbidden: no access", "reason": "Forbidden"}),
        (404, {"status": "Failure", "message": "not found", "reason": "NotFound"}),
    )
}
_LATENCIES = (
    ',"annotations":{{"apiserver.latency.k8s.io/apf-queue-wait":"{}","apiserver.latency.k8s.io/etcd":"{}",'
    '"apiserver.latency.k8s.io/total":"{}",'
)


def _duration(microseconds: int) -> str:
    """Return a duration as Go prints it."""
    if microseconds >= 1_000_000:
        return f"{microseconds / 1e6:.6f}".rstrip("0").rstrip(".") + "s"
    return f"{microseconds / 1000:g}ms" if microseconds >= 1000 else f"{microseconds}µs"


class _Clock:
    """Formats times. Caches the text of the last second."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def show(self, time: int) -> str:
        second, rest = divmod(time, 1_000_000)
        text = self._texts.get(second)
        if text is None:
            if len(self._texts) > 10_000:
                self._texts.clear()
            text = self._texts[second] = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"
        return f"{text}.{rest:06}Z"


def _list_templates() -> tuple[list[_Template], list[float]]:
    templates: list[_Template] = []
    weights = []
    for share, clients, actions in _kinds():
        of_actions = sum(action.weight for action in actions)
        # A few clients send most of the requests.
        ranks = [1 / (10 + number) for number in range(len(clients))]
        for number, (client, rank) in enumerate(zip(clients, ranks, strict=True), len(templates)):
            for action in actions:
                templates.append(_render(client, action, number))
                weights.append(share * rank / sum(ranks) * action.weight / of_actions)
    return templates, weights


def _render(client: _Client, action: _Action, number: int) -> _Template:
    # Go's encoder escapes `&` in strings. Source: encoding/json, HTMLEscape.
    own_name = client.user.get("username", "").rpartition(":")[2]
    path = action.path.replace(_SELF, own_name)
    head = {"requestURI": path, "verb": action.verb, "user": client.user}
    rest: dict[str, Any] = {"sourceIPs": ["10.0.7.41"], "userAgent": client.agent}
    if action.resource:
        resource, _, subresource = action.resource.partition("/")
        parts = path.partition("?")[0].strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        reference = {"resource": resource}
        if parts[0] == "namespaces" and len(parts) > 2:
            reference["namespace"] = parts[1]
            parts = parts[2:]
        if len(parts) > 1:
            reference["name"] = parts[1]
        if action.group:
            reference["apiGroup"] = action.group
        reference["apiVersion"] = "v1"
        if subresource:
            reference["subresource"] = subresource
        rest["objectRef"] = reference
    received = _members({**head, **rest})
    answered = received
    if client.impersonated:
        answered = _members({**head, "impersonatedUser": client.impersonated, **rest})
    decision = "forbid" if action.code == 403 else "allow"
    annotations = {
        "authorization.k8s.io/decision": decision,
        "authorization.k8s.io/reason": client.reason if decision == "allow" else "",
    }
    return _Template(received, answered, action, f",{_members({'annotations': annotations})}", number, client.is_greedy)


def _members(value: dict[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("&", "\\u0026")
    return text[1:-1].replace("\\u0001", _NAMESPACE).replace("\\u0002", _NAME)


def _kinds() -> Iterator[tuple[float, Sequence[_Client], Sequence[_Action]]]:
    """Yield a tuple for each kind of client: share of all requests, clients, and requests of these clients."""
    path = f"/api/v1/namespaces/{_NAMESPACE}"
    apps, jobs = f"/apis/apps/v1/namespaces/{_NAMESPACE}", f"/apis/batch/v1/namespaces/{_NAMESPACE}/jobs"
    leases = "/apis/coordination.k8s.io/v1/namespaces"
    widgets = f"/apis/example.com/v1/namespaces/{_NAMESPACE}/widgets"
    watch = "?allowWatchBookmarks=true&resourceVersion=81726354&timeoutSeconds=437&watch=true"
    yield (
        0.3,
        [_node(number) for number in range(NODES)],
        (
            _Action(
                30, "update", f"{leases}/kube-node-lease/leases/{_SELF}?timeout=10s", "coordination.k8s.io", "leases"
            ),
            _Action(10, "get", f"/api/v1/nodes/{_SELF}?resourceVersion=0&timeout=10s", "", "nodes", 1),
            _Action(5, "patch", f"/api/v1/nodes/{_SELF}/status?timeout=10s", "", "nodes/status", 12),
            _Action(20, "patch", f"{path}/pods/{_NAME}/status", "", "pods/status", 9),
            _Action(12, "get", f"{path}/pods/{_NAME}", "", "pods", 3),
            _Action(8, "create", f"{path}/serviceaccounts/{_NAME}/token", "", "serviceaccounts/token", 7, 201),
            _Action(8, "create", f"{path}/events", "", "events", 6, 201),
            _Action(
                5, "watch", f"{path}/configmaps{watch}&fieldSelector=metadata.name%3D{_NAME}", "", "configmaps", 450_000
            ),
            _Action(2, "watch", f"{path}/secrets{watch}&fieldSelector=metadata.name%3D{_NAME}", "", "secrets", 450_000),
        ),
    )
    yield (
        0.15,
        [_component("kube-controller-manager"), _component("kube-scheduler")],
        (
            _Action(20, "update", f"{leases}/kube-system/leases/{_SELF}?timeout=5s", "coordination.k8s.io", "leases"),
            _Action(15, "create", f"{path}/pods/{_NAME}/binding", "", "pods/binding", 10, 201),
            _Action(15, "patch", f"{path}/pods/{_NAME}/status", "", "pods/status", 9),
            _Action(10, "update", f"{apps}/replicasets/{_NAME}/status", "apps", "replicasets/status", 9),
            _Action(10, "create", f"{path}/pods", "", "pods", 15, 201),
            _Action(
                10,
                "create",
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                "authorization.k8s.io",
                "subjectaccessreviews",
                1,
                201,
            ),
            _Action(2, "watch", f"/apis/apps/v1/deployments{watch}", "apps", "deployments", 450_000),
        ),
    )
    yield (
        0.33,
        [_service_account("operators", f"operator-{number:03}") for number in range(OPERATORS)],
        (
            _Action(25, "get", f"{widgets}/{_NAME}", "example.com", "widgets", 4),
            _Action(10, "update", f"{widgets}/{_NAME}/status", "example.com", "widgets/status", 11),
            _Action(15, "update", f"{leases}/operators/leases/{_SELF}", "coordination.k8s.io", "leases", 7),
            _Action(10, "get", f"{path}/configmaps/{_NAME}", "", "configmaps", 3),
            _Action(6, "list", "/api/v1/pods?limit=500&resourceVersion=0", "", "pods", 180),
            _Action(4, "list", f"{path}/secrets?labelSelector=app%3D{_NAME}", "", "secrets", 60),
            _Action(4, "watch", f"/apis/example.com/v1/widgets{watch}", "example.com", "widgets", 450_000),
            _Action(3, "watch", f"/api/v1/pods{watch}", "", "pods", 450_000),
            _Action(
                3, "patch", f"{apps}/deployments/{_NAME}?fieldManager=operator&force=true", "apps", "deployments", 14
            ),
            _Action(2, "get", f"{apps}/deployments/{_NAME}", "apps", "deployments", 2, 404),
            _Action(3, "get", "/metrics", milliseconds=90),
            _Action(2, "get", "/apis/example.com/v1?timeout=32s", milliseconds=1),
        ),
    )
    yield (
        0.12,
        [_service_account(f"ci-{number:02}", "pipeline", is_greedy=True) for number in range(PIPELINES)],
        (
            _Action(20, "list", f"{path}/pods?labelSelector=job-name%3D{_NAME}", "", "pods", 120),
            _Action(15, "create", jobs, "batch", "jobs", 20, 201),
            _Action(25, "get", f"{jobs}/{_NAME}", "batch", "jobs", 4),
            _Action(10, "delete", f"{jobs}/{_NAME}?propagationPolicy=Background", "batch", "jobs", 18),
            _Action(5, "get", f"{path}/pods/{_NAME}/log?follow=true", "", "pods/log", 20_000),
            _Action(2, "deletecollection", f"{path}/pods?labelSelector=app%3D{_NAME}", "", "pods", 400),
        ),
    )
    yield (
        0.07,
        [_person(number) for number in range(PEOPLE)],
        (
            _Action(30, "get", f"{path}/pods/{_NAME}", "", "pods", 4),
            _Action(25, "list", f"{path}/pods?limit=500", "", "pods", 40),
            _Action(10, "list", f"{apps}/deployments?limit=500", "apps", "deployments", 50),
            _Action(
                10,
                "patch",
                f"{apps}/deployments/{_NAME}?fieldManager=kubectl-client-side-apply",
                "apps",
                "deployments",
                16,
            ),
            _Action(5, "list", f"{path}/secrets?limit=500", "", "secrets", 1, 403),
            _Action(5, "create", f"{path}/pods/{_NAME}/exec?command=sh&stdin=true", "", "pods/exec", 60_000, 200),
            _Action(10, "get", "/api?timeout=32s", milliseconds=1),
            _Action(5, "get", "/openapi/v3?timeout=32s", milliseconds=30),
        ),
    )
    anonymous = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
    probes = (
        'RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer"'
    )
    yield (
        0.02,
        [_Client(anonymous, "kube-probe/1.34", f'{probes} to Group "system:unauthenticated"')],
        (_Action(10, "get", "/livez?verbose", milliseconds=2), _Action(10, "get", "/readyz", milliseconds=2)),
    )
    yield 0.01, [_Client({}, "curl/8.5.0", "")], (_Action(1, "list", f"{path}/pods", "", "pods", 1, 401),)


def _node(number: int) -> _Client:
    name = f"ip-10-0-{number // 250}-{number % 250}.example.internal"
    user = {
        "username": f"system:node:{name}",
        "groups": ["system:nodes", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"X509SHA256={number:064x}"]},
    }
    return _Client(user, "kubelet/v1.34.1 (linux/amd64) kubernetes/93248f9", "")


def _component(name: str) -> _Client:
    user = {"username": f"system:{name}", "groups": ["system:authenticated"]}
    reason = (
        f'RBAC: allowed by ClusterRoleBinding "system:{name}" of ClusterRole "system:{name}" to User "system:{name}"'
    )
    return _Client(user, f"{name}/v1.34.1 (linux/amd64) kubernetes/93248f9/leader-election", reason)


def _service_account(namespace: str, name: str, *, is_greedy: bool = False) -> _Client:
    number = f"{Random(f'{namespace}/{name}').getrandbits(128):032x}"
    identity = f"{number[:8]}-{number[8:12]}-4{number[13:16]}-a{number[17:20]}-{number[20:]}"
    user = {
        "username": f"system:serviceaccount:{namespace}:{name}",
        "uid": identity,
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
        "extra": {
            "authentication.kubernetes.io/credential-id": [f"JTI={identity}"],
            "authentication.kubernetes.io/node-name": ["ip-10-0-0-17.example.internal"],
            "authentication.kubernetes.io/node-uid": [identity],
            "authentication.kubernetes.io/pod-name": [f"{name}-{number[:9]}-{number[9:14]}"],
            "authentication.kubernetes.io/pod-uid": [identity],
        },
    }
    reason = (
        f'RBAC: allowed by ClusterRoleBinding "{name}" of ClusterRole "{name}" to ServiceAccount "{name}/{namespace}"'
    )
    return _Client(user, f"{name}/v2.11.0 (linux/amd64) client-go/v0.34.1", reason, is_greedy)


def _person(number: int) -> _Client:
    team = f"team-{number % 40:03}"
    user = {"username": f"oidc:person-{number:03}@example.com", "groups": [f"oidc:{team}", "system:authenticated"]}
    reason = f'RBAC: allowed by RoleBinding "{team}/edit" of ClusterRole "edit" to Group "oidc:{team}"'
    agent = "kubectl/v1.34.1 (darwin/arm64) kubernetes/93248f9"
    if number % 15 == 0:  # a web portal sends the requests, and impersonates the person
        portal = {"username": "portal", "groups": ["portals", "system:authenticated"]}
        return _Client(portal, "Mozilla/5.0 (X11; Linux x86_64)", reason, impersonated=user)
    return _Client(user, agent, reason)
