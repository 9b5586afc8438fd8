"""Generates configurations on which apflint's findings are compared with a brute-force enumeration.

The same seed gives the same manifests everywhere. Each configuration draws its values from a small
pool of precedences, subjects and request attributes, so that FlowSchemas often overlap, tie, shadow
each other and capture requests.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from .server import Manifest

T = TypeVar("T")

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/oracle/releases/defaults.jsonl"
GROUP = "flowcontrol.apiserver.k8s.io"
RELEASES = {"1.36": "v1", "1.29": "v1", "1.25": "v1beta2", "1.20": "v1beta1"}
"""Target releases with different built-in FlowSchemas, and the API version of the manifests."""
FIRST_WITH_WATCHES = "1.22"
"""The first release that classifies watches."""

LOW = (2, 3, 50, 99, 100, 101, 150, 200, 300, 400, 450, 500)
HIGH = (501, 799, 800, 850, 899, 900, 950, 1000, 2000, 5000, 8999, 9000, 9500, 9900, 9950, 10000)
NAMES = ("a-team", "a2", "a10", "builds", "kube-proxy", "operators", "platform", "strangers", "team-a", "team-b", "zz")
REDEFINED = (
    *("system-leader-election", "system-nodes", "kube-scheduler", "service-accounts", "global-default", "probes"),
    *("endpoint-controller", "workload-leader-election"),
)
"""Names of built-in FlowSchemas; the last two are not in the newest release."""
LEVELS = (
    "workload-low",
    "workload-high",
    "global-default",
    "exempt",
    "system",
    "leader-election",
    "batch",
    "elsewhere",
)
DISTINGUISHERS = (None, None, "ByUser", "ByNamespace")
USERS = (
    "alice",
    "bob",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:node:node-1",
    "system:node:node-7",
    "system:apiserver",
    "system:anonymous",
    "*",
)
GROUPS = (
    "dev",
    "ops",
    "monitors",
    "system:authenticated",
    "system:authenticated",
    "system:unauthenticated",
    "system:nodes",
    "system:masters",
    "system:serviceaccounts",
    "system:serviceaccounts:ci",
    "system:serviceaccounts:kube-system",
    "*",
)
ACCOUNTS = (("ci", "runner"), ("ci", "*"), ("kube-system", "coredns"), ("kube-system", "*"), ("prod", "deployer"))
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
API_GROUPS = ("", "apps", "coordination.k8s.io", "example.com", "apps/v1")
RESOURCES = (
    "pods",
    "pods/log",
    "pods/status",
    "nodes",
    "nodes/status",
    "leases",
    "deployments",
    "namespaces",
    "widgets",
    "pods/*",
)
NAMESPACES = ("prod", "ci", "kube-system")
PATHS = (
    "/healthz",
    "/healthz/*",
    "/livez",
    "/readyz/*",
    "/metrics",
    "/metrics/slis",
    "/version",
    "/openapi/*",
    "/apis",
    "/apis/*",
    "/",
    "/debug/pprof/*",
)
ODD_USERS = ("system:serviceaccount:ci:runner", "system:serviceaccount:ci", "system:monitor")
ODD_GROUPS = ("system:serviceaccounts:Not_A_Name", "system:monitoring", "system:serviceaccounts:prod")
ODD_RESOURCES = ("status", "pods/exec", "*/scale", "Pods", "nodes/proxy", "namespaces/status", "namespaces/finalize")
ODD_PATHS = ("/api/*", "/api/v1/*", "/apis/apps/*", "/healthz/", "/hea", "/debug/*", "/debug/pprof/heap")
ODD = 0.08
"""Probability of drawing one of the unusual values."""
HTTP_VERBS = ("get", "patch", "delete", "list")


class Configuration(NamedTuple):
    """Manifests of a user for a cluster of a release."""

    kubernetes: str
    complete: bool
    """Whether the manifests and the built-in objects are the complete configuration of the cluster (`--complete`)."""
    manifests: tuple[Manifest, ...]
    context: tuple[Manifest, ...] = ()
    """Manifests that are read as context (`--context`), so apflint reports no findings about them."""

    @property
    def watches(self) -> bool:
        """Whether the server classifies watches."""
        return self.kubernetes >= FIRST_WITH_WATCHES

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """The manifests and the context."""
        return (*self.context, *self.manifests)


@cache
def built_in(release: str) -> tuple[Manifest, ...]:
    """Return the recorded objects of a new server of the release."""
    version = f"{release}-{RELEASES[release]}"
    rows = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return tuple(manifest(row["kind"], row["name"], row["spec"], release) for row in rows if version in row["in"])


def manifest(kind: str, name: str, spec: dict[str, Any], release: str) -> Manifest:
    return {"apiVersion": f"{GROUP}/{RELEASES[release]}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def configuration(seed: int | str) -> Configuration:
    """Generate a configuration of 1 to 6 FlowSchemas, sometimes of 11, with 1 to 3 rules each."""
    random = Random(f"configuration {seed}")
    kubernetes = random.choice(("1.36", "1.36", "1.29", "1.25", "1.20"))
    complete, manifests = random.random() < 0.5, _manifests(random, kubernetes)
    share = random.choice((0, 0, 0, 0.3))
    context = [manifest for manifest in manifests if random.random() < share]
    rest = (manifest for manifest in manifests if manifest not in context)
    return Configuration(kubernetes, complete, tuple(rest), tuple(context))


def _manifests(random: Random, kubernetes: str) -> list[Manifest]:
    pool = _Pool.draw(random)
    names = random.sample(NAMES, random.randint(1, 6) if random.random() < 0.9 else len(NAMES))
    if random.random() < 0.15:
        names[0] = random.choice(REDEFINED)
    manifests = [manifest("FlowSchema", name, _spec(random, pool), kubernetes) for name in names]
    if random.random() < 0.05:
        copied = random.choice([schema for schema in built_in(kubernetes) if schema["kind"] == "FlowSchema"])
        manifests = [schema for schema in manifests if schema["metadata"] != copied["metadata"]] + [copied]
    manifests += (level for level in _own_levels(kubernetes) if random.random() < 0.8)
    random.shuffle(manifests)
    return manifests


class _Pool(NamedTuple):
    """The pool of values for the objects of one configuration."""

    precedences: tuple[int, ...]
    levels: tuple[str, ...]
    subjects: tuple[Manifest, ...]
    resource_rules: tuple[Manifest, ...]
    non_resource_rules: tuple[Manifest, ...]

    @classmethod
    def draw(cls, random: Random) -> _Pool:
        numbers = random.choice((LOW, HIGH, LOW + HIGH))
        return cls(
            tuple(random.sample(numbers, random.randint(1, 3))),
            tuple(random.sample(LEVELS, random.randint(1, 3))),
            tuple(_subject(random) for _ in range(random.randint(2, 6))),
            tuple(_resource_rule(random) for _ in range(random.randint(1, 4))),
            tuple(_non_resource_rule(random) for _ in range(random.randint(1, 3))),
        )


def _spec(random: Random, pool: _Pool) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": random.choice(pool.levels)},
        "matchingPrecedence": random.choice(pool.precedences),
        "rules": [_rule(random, pool) for _ in range(random.choice((1, 1, 2, 3)))],
    }
    by = random.choice(DISTINGUISHERS)
    if by is not None:
        spec["distinguisherMethod"] = {"type": by}
    if random.random() < 0.03:
        del spec["matchingPrecedence"]
    if random.random() < 0.02:
        spec["rules"] = []
    return spec


def _rule(random: Random, pool: _Pool) -> Manifest:
    rule: Manifest = {"subjects": _sample_items(random, pool.subjects, 2)}
    kinds = random.choice((("resource",), ("resource",), ("non-resource",), ("resource", "non-resource")))
    if "resource" in kinds:
        rule["resourceRules"] = [
            _varied(random, _resource_rule, pool.resource_rules) for _ in range(random.choice((1, 1, 2, 3)))
        ]
    if "non-resource" in kinds:
        rule["nonResourceRules"] = [
            _varied(random, _non_resource_rule, pool.non_resource_rules) for _ in range(random.choice((1, 1, 2)))
        ]
    return rule


def _varied(random: Random, draw: Callable[[Random], Manifest], pool: tuple[Manifest, ...]) -> Manifest:
    """Return an entry of the pool, or a copy with one changed attribute."""
    entry = dict(random.choice(pool))
    if random.random() < 0.4:
        other = draw(random)
        member = random.choice(("verbs", "apiGroups", "resources", "nonResourceURLs"))
        if member in entry:
            entry[member] = other[member]
    return entry


def _sample_items(random: Random, values: tuple[T, ...], most: int) -> list[T]:
    return [random.choice(values) for _ in range(random.randint(1, most))]


def _either(random: Random, values: tuple[str, ...], odd: tuple[str, ...]) -> str:
    return random.choice(odd if random.random() < ODD else values)


def _values(random: Random, values: tuple[str, ...], odd: tuple[str, ...] = ()) -> list[str]:
    """Return a list with only a wildcard or a few different values, rarely also with values from `odd`."""
    if odd and random.random() < ODD:
        return random.sample((*values, *odd), random.randint(1, 4))
    return ["*"] if random.random() < 0.4 else random.sample(values, random.randint(1, min(3, len(values))))


def _subject(random: Random) -> Manifest:
    kind = random.choice(("User", "Group", "Group", "ServiceAccount"))
    if kind == "User":
        return {"kind": kind, "user": {"name": _either(random, USERS, ODD_USERS)}}
    if kind == "Group":
        return {"kind": kind, "group": {"name": _either(random, GROUPS, ODD_GROUPS)}}
    namespace, name = random.choice(ACCOUNTS)
    return {"kind": kind, "serviceAccount": {"namespace": namespace, "name": name}}


def _resource_rule(random: Random) -> Manifest:
    rule: Manifest = {
        "verbs": _values(random, VERBS),
        "apiGroups": _values(random, API_GROUPS),
        "resources": _values(random, RESOURCES, ODD_RESOURCES),
    }
    scope = random.choice(("cluster", "namespaces", "both", "both"))
    if scope != "namespaces":
        rule["clusterScope"] = True
    if scope != "cluster":
        rule["namespaces"] = _values(random, NAMESPACES)
    return rule


def _non_resource_rule(random: Random) -> Manifest:
    return {"verbs": _values(random, HTTP_VERBS), "nonResourceURLs": _values(random, PATHS, ODD_PATHS)}


def _own_levels(kubernetes: str) -> tuple[Manifest, Manifest]:
    shares = "nominalConcurrencyShares" if RELEASES[kubernetes] == "v1" else "assuredConcurrencyShares"
    queuing = {"queues": 128, "handSize": 8, "queueLengthLimit": 200}
    small = {shares: 20, "limitResponse": {"type": "Reject"}}
    large = {shares: 2000, "limitResponse": {"type": "Queue", "queuing": queuing}}
    batch, reserve = (
        manifest("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited}, kubernetes)
        for name, limited in (("batch", small), ("reserve", large))
    )
    return batch, reserve
