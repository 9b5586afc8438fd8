"""The facts that APF518 and APF601 should report: requests of outsiders in protected priority levels.

The rule pages define requests of the system. This module implements that definition without code of apflint.
"""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from . import server
from .claims import UNPROTECTED, Layout, Witness, World, is_left_over, lowest_bit, names_of_built_in
from .configurations import Configuration, built_in, configuration
from .universe import NODES, is_usual, is_usual_request, universe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .server import Manifest, Request, User
    from .universe import RequestClass, UserClass

ACCOUNT = server.SERVICE_ACCOUNT
PLATFORM = (
    *("eks:", "system:aggregator", "system:apiserver", "system:cloud-", "system:gke-", "system:kube-"),
    *(f"{ACCOUNT}kube-", f"{ACCOUNT}openshift-"),
)
BROAD = (
    {"kind": "User", "user": {"name": "*"}},
    *(
        {"kind": "Group", "group": {"name": name}}
        for name in ("*", "system:authenticated", "system:unauthenticated", "system:serviceaccounts")
    ),
)
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
LEASES = {**EVERYTHING, "apiGroups": ["coordination.k8s.io"]}
HEALTH = {"verbs": ["*"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version"]}
PATHS = {"verbs": ["*"], "nonResourceURLs": ["*"]}


class OutsiderClaims(NamedTuple):
    """The user's FlowSchemas that send requests of outsiders, clients outside the system, to protected levels."""

    broad: dict[tuple[str, str], Witness]
    """FlowSchemas that send requests of outsiders to protected levels through a broad subject.

    A broad subject matches nearly all users. Keys are (name of the FlowSchema, field of the subject).
    """
    named: dict[str, Witness]
    """FlowSchemas that send requests of outsiders to protected levels through another subject, by name."""

    def severity(self, name: str) -> str | None:
        """The highest severity of the findings about a FlowSchema."""
        if any(schema == name for schema, _ in self.broad):
            return "warning"
        return "info" if name in self.named else None


def protected_schemas(release: str) -> list[Manifest]:
    """Return the suggested FlowSchemas whose levels are reserved for the system."""
    names = names_of_built_in(release).difference(UNPROTECTED)
    return [item for item in built_in(release) if item["kind"] == "FlowSchema" and server.name_of(item) in names]


def is_candidate(schema: Manifest, release: str) -> bool:
    level = server.level_of(schema)
    reserved = {server.level_of(other) for other in protected_schemas(release)} - {"exempt"}
    return level == "exempt" or (level in reserved and not is_left_over(server.name_of(schema), release))


def is_outsider(schema: Manifest, release: str, user: User, request: Request) -> bool:
    """Return whether the request is none of the requests that the system sends to the priority level of `schema`."""
    level = server.level_of(schema)
    protected = protected_schemas(release)
    redefined = [other for other in protected if server.name_of(other) == server.name_of(schema)]
    is_moved = level != "exempt" and any(server.level_of(other) != level for other in redefined)
    anyhow = [{"spec": {"rules": [{"subjects": [BROAD[0]], "nonResourceRules": [HEALTH]}]}}]
    if level == "exempt":
        flow_schemas = [item for item in built_in(release) if item["kind"] == "FlowSchema"]
        system = [item for item in flow_schemas if server.level_of(item) in ("exempt", "workload-high")] + anyhow
        is_moved = any(server.level_of(other) != level for other in redefined)
    else:
        system = [other for other in protected if not (is_moved and other in redefined)]
    return (
        is_usual(user)
        and is_usual_request(request)
        and (is_moved or not user.name.startswith(PLATFORM))
        and server.classify(system, user, request) is None
    )


def is_lease(request: Request) -> bool:
    return request.is_resource and request.api_group == "coordination.k8s.io"


def outsider_claims(config: Configuration) -> OutsiderClaims:
    world = World.of(config)
    candidates = {at for at in world.own & world.with_own if is_candidate(world.schemas[at], config.kubernetes)}
    claims = OutsiderClaims({}, {})
    if candidates:
        layout = Layout.of(world)
        space = universe([*layout.rules, *distinguishing_rules(config)], watches=config.watches)
        for user in space.users:
            for request in space.requests:
                both = user.rules & request.rules
                captured = both & layout.with_own
                if captured and (taker := layout.owner[lowest_bit(captured)]) in candidates:
                    record(claims, world, layout, taker, user, request, config.kubernetes)
    return claims


def record(
    claims: OutsiderClaims,
    world: World,
    layout: Layout,
    taker: int,
    user: UserClass,
    request: RequestClass,
    release: str,
) -> None:
    """Record the claims that follow from one request about the FlowSchema that captures it."""
    schema, both = world.schemas[taker], user.rules & request.rules
    if not is_outsider(schema, release, user.user, request.request):
        return
    witness = Witness(user.user, request.request)
    name, level = server.name_of(schema), server.level_of(schema)
    for bit, rule in enumerate(layout.rules):
        if layout.owner[bit] == taker and both & 1 << bit:
            for at, subject in enumerate(rule["subjects"]):
                if server.matches_subject(subject, user.user):
                    if subject in BROAD:
                        claims.broad.setdefault((name, f"{layout.fields[bit]}.subjects[{at}]"), witness)
                    elif level != "leader-election" or not is_lease(request.request):
                        claims.named.setdefault(name, witness)


def distinguishing_rules(config: Configuration) -> Iterator[Manifest]:
    """Yield additional rules for `universe`, so that its classes separate requests of the system from all other requests."""
    schemas = [item for item in (*built_in(config.kubernetes), *config.objects) if item["kind"] == "FlowSchema"]
    subjects = [subject for schema in schemas for rule in server.rules_of(schema) for subject in rule["subjects"]]
    accounts = [subject["serviceAccount"] for subject in subjects if subject["kind"] == "ServiceAccount"]
    subjects += [{"kind": "ServiceAccount", "serviceAccount": {**account, "name": "*"}} for account in accounts]
    for subject in (*BROAD, *subjects, {"kind": "Group", "group": {"name": NODES}}):
        yield {"subjects": [subject], "resourceRules": [EVERYTHING], "nonResourceRules": [PATHS]}
    for schema in schemas:
        yield from server.rules_of(schema)
    yield {"subjects": [BROAD[0]], "resourceRules": [LEASES]}
    yield {"subjects": [BROAD[0]], "nonResourceRules": [HEALTH]}


LEVELS = ("leader-election", "node-high", "system", "workload-high", "exempt", "exempt", "leader-election")
NAMES = ("kube-controller-manager", "system-nodes", "kube-system-service-accounts", "workload-leader-election")
ACCOUNTS = (("kube-flannel", "*"), ("openshift-sdn", "sdn"), ("operators", "operator"), ("kube-system", "*"))
USERS = ("system:kube-proxy", "system:kube-scheduler", "system:anonymous", "carol")
LOCKS = ("leases", "configmaps", "endpoints", "*")


def protected_configuration(seed: int | str) -> Configuration:
    """Generate a random configuration, and change its FlowSchemas so that they concern requests of the system.

    In comparison with `configuration(seed)`, more FlowSchemas reference protected priority levels, and
    more subjects are service accounts and users of the system. Mandatory FlowSchemas stay unchanged.
    """
    config = configuration(seed)
    random = Random(f"protected {seed}")
    changed = tuple(
        _changed(random, manifest) if manifest["kind"] == "FlowSchema" else manifest for manifest in config.manifests
    )
    names = [server.name_of(manifest) for manifest in changed]
    return config._replace(manifests=changed) if len(names) == len(set(names)) else config


def _changed(random: Random, original: Manifest) -> Manifest:
    manifest = copy.deepcopy(original)
    if server.name_of(manifest) in ("exempt", "catch-all"):
        return manifest  # the server rejects changes of mandatory objects
    if random.random() < 0.6:
        manifest["spec"]["priorityLevelConfiguration"]["name"] = random.choice(LEVELS)
    if random.random() < 0.1:
        manifest["metadata"]["name"] = random.choice(NAMES)
    for rule in manifest["spec"]["rules"]:
        if random.random() < 0.3:
            namespace, name = random.choice(ACCOUNTS)
            rule["subjects"].append(
                {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
            )
        if random.random() < 0.2:
            rule["subjects"][0] = {"kind": "User", "user": {"name": random.choice(USERS)}}
        for entry in rule.get("resourceRules") or []:
            if random.random() < 0.3:
                lock = random.choice(LOCKS)
                entry["resources"] = [lock]
                entry["apiGroups"] = ["coordination.k8s.io"] if lock in ("leases", "*") else [""]
        for entry in rule.get("nonResourceRules") or []:
            if random.random() < 0.3:
                entry["nonResourceURLs"] = random.choice(
                    (["/version"], ["/healthz/*", "/livez"], ["/version", "/metrics"])
                )
    return manifest
