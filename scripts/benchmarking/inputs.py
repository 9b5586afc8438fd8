"""Generates inputs from a fixed seed, so that they are the same on every machine."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 1040

SMALL = """---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: health-for-team-a
spec:
  matchingPrecedence: 1000
  priorityLevelConfiguration:
    name: workload-low
  distinguisherMethod:
    type: ByUser
  rules:
    - subjects:
        - kind: Group
          group:
            name: team-a
      resourceRules:
        - verbs: [get, list]
          apiGroups: [""]
          resources: [pods]
          namespaces: [team-a]
"""
ONE_FINDING = SMALL.replace("1000", "20000")
"""`SMALL` with one finding: its matchingPrecedence is out of range."""

OTHER = """apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: blue
"""
VARIED_LEVELS = 50
"""Number of priority levels in the file of `write_varied_file`."""

_MANIFEST = """---
# FlowSchema of {team}: its people and its pipelines.
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: {team}
  labels:
    app.kubernetes.io/managed-by: kustomize
    app.kubernetes.io/part-of: {team}
spec:
  matchingPrecedence: {precedence}
  priorityLevelConfiguration:
    name: {level}
  distinguisherMethod:
    type: {method}
  rules:
    - subjects:
        - kind: Group
          group:
            name: {team}
        - kind: ServiceAccount
          serviceAccount:
            namespace: {team}
            name: "*"
      resourceRules:
        - verbs: [get, list, watch, update]
          apiGroups: ["", apps]
          resources: [pods, pods/status, deployments]
          namespaces: [{team}]
      nonResourceRules:
        - verbs: [get]
          nonResourceURLs: ["/{team}/*"]
"""


def manifest(number: int) -> str:
    """Return a valid FlowSchema of a team: 850 bytes of YAML.

    `apflint check` has no findings for up to 5,000 of these FlowSchemas.
    """
    return _MANIFEST.format(
        team=f"team-{number:04}",
        precedence=1001 + number,
        level=("global-default", "workload-low")[number % 2],
        method=("ByUser", "ByNamespace")[number % 2],
    )


def write_one_file(path: Path, documents: int) -> None:
    """Write FlowSchemas into one file."""
    path.write_text("".join(map(manifest, range(documents))))


def write_varied_file(path: Path, schemas: int, *, mistakes: bool = False) -> None:
    """Write FlowSchemas and priority levels that differ in all fields that a check reads.

    Groups, users, service accounts, namespaces, verbs, resources, URLs and levels are of many kinds. If `mistakes` is
    true, some FlowSchemas have the same precedence, and every 50th FlowSchema misspells a known group, user and level.
    """
    chance = random.Random(SEED)
    documents = [_VARIED_LEVEL.format(number=number, shares=5 + number) for number in range(VARIED_LEVELS)]
    documents += [_varied_schema(number, chance, mistakes=mistakes) for number in range(schemas)]
    path.write_text("".join(documents))


def _varied_schema(number: int, chance: random.Random, *, mistakes: bool) -> str:
    group, user, level = f"team-{number}-admins", f"robot-{number}@example.com", f"level-{number % VARIED_LEVELS}"
    if mistakes and number % 50 == 0:
        letter = chance.choice("abcdefghij")
        group = f"system:{chance.choice(('mastes', 'nodez', 'authentcated', 'monitorin' + letter))}"
        user = f"system:kube-schedule{letter}"
        level = f"levle-{number % VARIED_LEVELS}"
    verbs = chance.sample(("get", "list", "watch", "create", "update", "patch", "delete"), chance.randint(1, 4))
    resources = chance.sample(("pods", "deployments", "configmaps", "pods/log", "leases", "widgets", "jobs"), 2)
    return _VARIED_SCHEMA.format(
        number=number,
        precedence=chance.randint(1001, 8999) if mistakes else 1001 + number,
        level=level,
        method=chance.choice(("ByUser", "ByNamespace")),
        group=group,
        user=user,
        space=f"team-{number % 997}",
        verbs=", ".join(verbs),
        resources=", ".join(resources),
        api_groups=chance.choice(('""', '"", apps', '"*"', "batch, coordination.k8s.io", "example.com")),
    )


_VARIED_SCHEMA = """---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: schema-{number}
  labels:
    example.com/team: team-{number}
spec:
  matchingPrecedence: {precedence}
  priorityLevelConfiguration:
    name: {level}
  distinguisherMethod:
    type: {method}
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount:
            name: app-{number}
            namespace: {space}
        - kind: Group
          group:
            name: {group}
        - kind: User
          user:
            name: {user}
      resourceRules:
        - verbs: [{verbs}]
          apiGroups: [{api_groups}]
          resources: [{resources}]
          clusterScope: true
          namespaces: [{space}]
      nonResourceRules:
        - verbs: [get]
          nonResourceURLs: ["/apps/{number}/*"]
"""
_VARIED_LEVEL = """---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: level-{number}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: {shares}
    limitResponse:
      type: Queue
      queuing:
        handSize: 6
        queues: 128
        queueLengthLimit: 50
"""


def write_many_files(directory: Path, files: int) -> None:
    """Write files of one FlowSchema each."""
    directory.mkdir()
    for number in range(files):
        (directory / f"{number:04}.yaml").write_text(manifest(number))


def write_repository(directory: Path, files: int, ours: int) -> None:
    """Write a repository with YAML files of 5 kB. `ours` files contain a FlowSchema, and all others a ConfigMap."""
    every = files // ours
    data = "".join(f"  key-{number}: value {number} of a configuration that nobody reads\n" for number in range(100))
    for number in range(files):
        place = directory / f"app-{number // 100:02}"
        place.mkdir(parents=True, exist_ok=True)
        head = f"---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings-{number}\ndata:\n"
        text = manifest(number // every) if number % every == 0 else head + data
        (place / f"{number:05}.yaml").write_text(text)


def flow_schema(number: int) -> dict[str, Any]:
    """Return a FlowSchema of a team: its group and its service accounts, a few resources and one path."""
    subjects = [
        {"kind": "Group", "group": {"name": f"team-{number}"}},
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": f"team-{number}", "name": "*"}},
    ]
    resources = {
        "verbs": ["get", "list", "watch", "update"],
        "apiGroups": ["", "apps"],
        "resources": ["pods", "pods/status", "deployments"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": f"team-{number:02}"},
        "spec": {
            "priorityLevelConfiguration": {"name": ("workload-high", "workload-low")[number % 2]},
            "matchingPrecedence": 1000 + 100 * number,
            "distinguisherMethod": {"type": ("ByUser", "ByNamespace")[number % 2]},
            "rules": [
                {
                    "subjects": subjects,
                    "resourceRules": [resources],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [f"/team-{number}/*"]}],
                }
            ],
        },
    }


def priority_level(name: str) -> dict[str, Any]:
    """Return a priority level with queues."""
    queuing = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
    limited = {"nominalConcurrencyShares": 20, "limitResponse": {"type": "Queue", "queuing": queuing}}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": limited},
    }


def crowd(count: int, rules: int, users: int = 40) -> list[dict[str, Any]]:
    """Return FlowSchemas that overlap: few users and resources, so that many rules are unreachable."""
    chance = random.Random(SEED)

    def rule() -> dict[str, Any]:
        user = {"kind": "User", "user": {"name": f"user-{chance.randrange(users)}"}}
        group = {"kind": "Group", "group": {"name": f"group-{chance.randrange(users // 2)}"}}
        return {
            "subjects": [chance.choice((user, group))],
            "resourceRules": [
                {
                    "verbs": chance.sample(["get", "list", "watch", "create", "update", "delete"], 2),
                    "apiGroups": [chance.choice(("", "apps", "batch"))],
                    "resources": chance.sample(["pods", "deployments", "configmaps", "secrets", "jobs"], 2),
                    "clusterScope": True,
                    "namespaces": chance.choice((["*"], [f"team-{chance.randrange(10)}"])),
                }
            ],
        }

    schemas = [flow_schema(number) for number in range(count)]
    for schema in schemas:
        schema["metadata"]["name"] = f"crowd-{schema['metadata']['name']}"
        schema["spec"]["matchingPrecedence"] = chance.randrange(1001, 8999)
        schema["spec"]["rules"] = [rule() for _ in range(rules)]
    return schemas


def write_clusters(directory: Path, clusters: int) -> None:
    """Write a project with settings. All clusters share 30 objects, and each cluster has 5 objects of its own.

    The FlowSchemas overlap and differ between clusters, so proofs about a cluster do not apply to other clusters.
    """
    schemas = crowd(24 + 4 * clusters, 4, users=10)
    (directory / "base").mkdir(parents=True)
    base = [*schemas[:24], *(priority_level(f"level-{number}") for number in range(6))]
    for number, item in enumerate(base):
        write_list(directory / "base" / f"{number}.json", [item])
    settings = ""
    for number in range(clusters):
        name = f"cluster-{number:03}"
        (directory / name).mkdir()
        for index, schema in enumerate(schemas[24 + 4 * number :][:4]):
            schema["spec"]["priorityLevelConfiguration"]["name"] = name if index % 2 else f"level-{index}"
            write_list(directory / name / f"{index}.json", [schema])
        write_list(directory / name / "level.json", [priority_level(name)])
        settings += f'[[cluster]]\nname = "{name}"\npaths = ["base", "{name}"]\n'
    (directory / "apflint.toml").write_text(settings)


def write_list(path: Path, items: list[dict[str, Any]]) -> None:
    """Write a Kubernetes list of objects into a JSON file."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def requests(count: int) -> Iterator[str]:
    """Yield distinct requests as JSON lines, typical of users and service accounts of 30 teams."""
    chance = random.Random(SEED)
    seen: set[str] = set()
    while len(seen) < count:
        line = _request(chance)
        if line not in seen:
            seen.add(line)
            yield line


def _request(chance: random.Random) -> str:
    team, namespace, name = chance.randrange(30), f"team-{chance.randrange(200)}", f"x-{chance.randrange(100_000)}"
    if chance.random() < 0.5:
        user, groups = f"user-{chance.randrange(2000)}", [f"team-{team}", "system:authenticated"]
    else:
        user = f"system:serviceaccount:team-{team}:sa-{chance.randrange(50)}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:team-{team}", "system:authenticated"]
    method, path = chance.choice(
        (
            ("GET", f"/api/v1/namespaces/{namespace}/pods/{name}"),
            ("GET", f"/api/v1/namespaces/{namespace}/pods?limit=500&resourceVersion={name[2:]}"),
            ("PUT", f"/api/v1/namespaces/{namespace}/pods/{name}/status"),
            ("GET", f"/apis/apps/v1/deployments?watch=true&resourceVersion={name[2:]}"),
            ("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs?fieldManager={name}"),
            ("DELETE", f"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"),
            ("GET", f"/team-{team}/{name}"),
        )
    )
    return json.dumps({"user": user, "groups": groups, "method": method, "path": path})


def write_requests(path: Path, lines: int, different: int) -> None:
    """Write requests that are drawn from `different` distinct requests. If both numbers are equal, no request is repeated."""
    known = list(requests(different))
    chance = random.Random(SEED)
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in (known if lines == different else chance.choices(known, k=lines)))


def write_metrics(path: Path, lines: int) -> None:
    """Write `lines` lines of server metrics. A third is about API Priority and Fairness, as in recorded metrics."""
    families = (
        "nominal_limit_seats",
        "current_limit_seats",
        "dispatched_requests_total",
        "current_inqueue_requests",
        *["next_s_bounds"] * 8,
    )
    with path.open("w") as file:
        for number in range(lines):
            metric = f"apiserver_flowcontrol_{families[number % len(families)]}"
            labels = f'flow_schema="a-{number}",priority_level="level-{number % 40}"'
            file.write(f"{metric}{{{labels}}} {number % 100}\n")
