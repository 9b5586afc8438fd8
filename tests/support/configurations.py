"""Recorded configurations and requests for tests of the evaluator, and strategies that generate new ones."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from apflint import builtin
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.load.document import Document
from apflint.load.source_text import Source
from apflint.model import FlowSchema, PriorityLevelConfiguration, build_flow_schema, build_priority_level
from apflint.releases import parse_release

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/oracle-classify"
RELEASE = parse_release("1.36")
BUILT_IN = builtin.load_objects(RELEASE)


class Objects(NamedTuple):
    flow_schemas: tuple[FlowSchema, ...] = ()
    priority_levels: tuple[PriorityLevelConfiguration, ...] = ()


def lines(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def objects(values: list[dict[str, Any]]) -> Objects:
    """Convert decoded objects (`kind`, `name`, `spec`) to typed objects."""
    schemas, levels = [], []
    for value in values:
        manifest = {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": value["kind"],
            "metadata": {"name": value["name"]},
            "spec": value["spec"],
        }
        document = Document(Source("test.json", json.dumps(manifest)), manifest, lambda: None)
        if value["kind"] == "FlowSchema":
            schemas.append(build_flow_schema(manifest, document))
        else:
            levels.append(build_priority_level(manifest, document, RELEASE))
    return Objects(tuple(schemas), tuple(levels))


def schema(subject: dict[str, Any], *, path: bool = False, **more: Any) -> FlowSchema:
    """Return a FlowSchema for one subject and all resources, or all paths if `path` is true. `more` sets other fields."""
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]} | more
    what = (
        {"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]} | more]} if path else {"resourceRules": [rule]}
    )
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": [{"subjects": [subject], **what}]}
    (typed,) = objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]).flow_schemas
    return typed


def merged(base: list[dict[str, Any]], row: dict[str, Any]) -> Objects:
    """Return a recorded configuration: the defaults without removed objects, plus added and replaced objects."""
    gone = {("FlowSchema", name) for name in row["removed_flow_schemas"]}
    gone |= {("PriorityLevelConfiguration", name) for name in row["removed_priority_levels"]}
    stored = {(value["kind"], value["name"]): value for value in base if (value["kind"], value["name"]) not in gone}
    stored |= {(value["kind"], value["name"]): value for value in row["objects"]}
    return objects(list(stored.values()))


@cache
def recorded() -> dict[str, tuple[dict[str, Any], Configuration]]:
    """Return the recorded configurations by ID. A value is a recorded row and its configuration."""
    base, *rows = lines(FIXTURES / "configs.jsonl")
    return {
        row["id"]: (row, build_configuration(merged(base["objects"], row), BUILT_IN, defaults=False)) for row in rows
    }


def digest(user: str, groups: list[str], method: str, url: str) -> RequestDigest:
    return RequestDigest(parse_request_info(method, url), UserInfo(user, tuple(groups)))


# There are only a few values, so that generated requests often match generated rules.
USERS = ("alice", "bob", "system:serviceaccount:dev:builder", "system:serviceaccount:ops:a:b", "eve*")
GROUPS = ("dev", "system:authenticated", "system:unauthenticated", "system:masters", "system:nodes", "*")
NAMESPACES = ("dev", "ops", "kube-system")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "head", "post")
RESOURCES = ("pods", "pods/log", "deployments", "nodes", "namespaces", "namespaces/status")
API_GROUPS = ("", "apps", "apps/v1")
PATHS = ("/", "/healthz", "/healthz/etcd", "/healthz/*", "/hea", "/version/", "//healthz", "*")
LEVELS = ("exempt", "catch-all", "global-default", "workload-low", "nowhere")


def _lists_of(values: tuple[str, ...], *, least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from((*values, "*")), min_size=least, max_size=3, unique=True)


@st.composite
def _subjects(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(("User", "Group", "ServiceAccount")))
    if kind == "User":
        return {"kind": kind, "user": {"name": draw(st.sampled_from((*USERS, "*")))}}
    if kind == "Group":
        return {"kind": kind, "group": {"name": draw(st.sampled_from(GROUPS))}}
    account = {
        "namespace": draw(st.sampled_from((*NAMESPACES, "*"))),
        "name": draw(st.sampled_from(("builder", "a", "*"))),
    }
    return {"kind": kind, "serviceAccount": account}


RESOURCE_RULES = st.fixed_dictionaries(
    {
        "verbs": _lists_of(VERBS),
        "apiGroups": _lists_of(API_GROUPS),
        "resources": _lists_of(RESOURCES),
        "clusterScope": st.booleans(),
        "namespaces": _lists_of(NAMESPACES),
    }
)
NON_RESOURCE_RULES = st.fixed_dictionaries({"verbs": _lists_of(VERBS), "nonResourceURLs": _lists_of(PATHS)})
_RULES = st.fixed_dictionaries(
    {
        "subjects": st.lists(_subjects(), max_size=3),
        "resourceRules": st.lists(RESOURCE_RULES, max_size=2),
        "nonResourceRules": st.lists(NON_RESOURCE_RULES, max_size=2),
    }
)
SPECS = st.fixed_dictionaries(
    {
        "priorityLevelConfiguration": st.sampled_from(LEVELS).map(lambda name: {"name": name}),
        "matchingPrecedence": st.sampled_from((1, 2, 500, 9900, 10000)),
        "rules": st.lists(_RULES, max_size=3),
    }
)
NAMES = ("a", "A", "b-1", "catch", "exempt", "catch-all", "z", "zz")
FLOW_SCHEMAS = st.dictionaries(st.sampled_from(NAMES), SPECS, max_size=5).map(
    lambda specs: [{"kind": "FlowSchema", "name": name, "spec": spec} for name, spec in specs.items()]
)
URLS = (
    "/api/v1/pods",
    "/api/v1/namespaces/dev/pods?watch=1",
    "/api/v1/namespaces/ops/pods/x/log",
    "/apis/apps/v1/namespaces/kube-system/deployments/d",
    "/api/v1/nodes/n",
    "/api/v1/namespaces/dev/status",
    "/api/v1/namespaces",
    *(path for path in PATHS if path != "*"),
)
DIGESTS = st.builds(
    digest,
    st.sampled_from(USERS),
    st.lists(st.sampled_from(GROUPS), max_size=2, unique=True),
    st.sampled_from(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")),
    st.sampled_from(URLS),
)
