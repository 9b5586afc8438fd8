"""Flows: distinguisher, hash and hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.levels import DOCUMENT, EXEMPT_LEVEL, RELEASE, queue_level, reject_level

from apflint.evaluate.flows import RequestFlow, count_flows, find_flow, matched_namespaces
from apflint.model import build_flow_schema, build_priority_level
from apflint.output.explain import describe_flow, describe_queues, flow_json

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.model import FlowSchema, PriorityLevelConfiguration


def _schema(method: str | None) -> FlowSchema:
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": "a"}}
    if method is not None:
        spec["distinguisherMethod"] = {"type": method}
    return build_flow_schema({"metadata": {"name": "global-default"}, "spec": spec}, DOCUMENT)


def test_flow_is_the_recorded_one() -> None:
    # A kube-apiserver 1.36.2 with the default objects answered with these values when alice listed pods.
    found = find_flow(_schema("ByUser"), queue_level(), "alice", "dev")
    assert flow_json(found) == {
        "distinguisherMethod": "ByUser",
        "distinguisher": "alice",
        "hash": "17644606172554983095",
        "hand": [55, 62, 126, 125, 105, 1],
    }
    assert describe_flow(found) == 'User "alice" is one flow, in 6 of 128 queues.'
    assert describe_queues(found) == (
        "Shuffle sharding gives this flow, whose hash is 17644606172554983095, the queues 55, 62, 126, 125, 105, 1 (of 128, numbered from 0)."
    )


@pytest.mark.parametrize(
    ("method", "level", "distinguisher", "words"),
    [
        ("ByUser", queue_level(), "alice", 'User "alice" is one flow'),
        ("ByNamespace", queue_level(), "dev", 'Namespace "dev" is one flow'),
        (None, queue_level(), "", "All requests are one flow"),
        ("ByUser", queue_level(1, 1), "", "1 queue, in which the requests of all flows wait together"),
        ("ByUser", reject_level(), "", "no queues"),
        ("ByUser", EXEMPT_LEVEL, "", "no queues"),
        ("ByUser", queue_level(8, 1), "alice", "is one flow, in 1 of 8 queues."),
        ("ByUser", queue_level(2, 1), "alice", "is one flow, in 1 of 2 queues."),
    ],
)
def test_distinguisher_follows_the_method(
    method: str | None, level: PriorityLevelConfiguration, distinguisher: str, words: str
) -> None:
    found = find_flow(_schema(method), level, "alice", "dev")
    assert found.distinguisher == distinguisher
    assert words in describe_flow(found)
    assert (describe_queues(found) == "") == (found.queues < 2)
    assert (found.hash is None) == (found.hand is None) == (found.queues < 2)


def test_requests_without_a_namespace_are_one_flow() -> None:
    found = find_flow(_schema("ByNamespace"), queue_level(), "alice", "")
    assert found.distinguisher == ""
    assert "All requests without a namespace" in describe_flow(found)


def test_flows_agree_with_all_recordings(shared: Path) -> None:
    directory = shared / "oracle/classify"
    base = json.loads((directory / "defaults.json").read_text())
    builtin = base if isinstance(base, list) else base["flow_schemas"] + base["priority_levels"]
    objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for line in (directory / "configs.jsonl").read_text().splitlines():
        row = json.loads(line)
        own = row["flow_schemas"] + row["priority_levels"]
        objects[row["id"]] = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in builtin + own}
    compared = 0
    for line in (directory / "requests.jsonl").read_text().splitlines():
        row = json.loads(line)
        if not row["flow_schema"] or "%" in row["url"]:  # the caller of `find_flow` decodes URLs
            continue
        schema = build_flow_schema(objects[row["config"]]["FlowSchema", row["flow_schema"]], DOCUMENT)
        level = objects[row["config"]]["PriorityLevelConfiguration", row["priority_level"]]
        parts = [*row["url"].partition("?")[0].split("/"), ""]
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
        mine = flow_json(find_flow(schema, build_priority_level(level, DOCUMENT, RELEASE), row["user"], namespace))
        theirs = (row["flow_distinguisher"], row["hash"], row["hand"])
        assert (mine["distinguisher"], mine["hash"], mine["hand"]) == theirs, row["id"]
        compared += 1
    assert compared > 5000


def test_level_with_fewer_than_two_queues_has_no_hand() -> None:
    # A level without queues, or with 1 queue, has no hand. The FlowSchema and its method are still reported.
    for level, queues in ((reject_level(), 0), (EXEMPT_LEVEL, 0), (queue_level(1, 1), 1)):
        found = find_flow(_schema("ByUser"), level, "alice", "dev")
        assert found == RequestFlow("global-default", "ByUser", "", queues, None, None)


ALICE, BOB = ({"kind": "User", "user": {"name": name}} for name in ("alice", "bob"))
DEV = {"kind": "Group", "group": {"name": "dev"}}


def _rule(subjects: list[Any], *namespaces: str, cluster: bool = False, path: str = "") -> dict[str, Any]:
    entry = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "namespaces": [*namespaces],
        "clusterScope": cluster,
    }
    paths = [{"verbs": ["*"], "nonResourceURLs": [path]}] * bool(path)
    return {"subjects": subjects, "resourceRules": [entry] * bool(namespaces or cluster), "nonResourceRules": paths}


@pytest.mark.parametrize(("method", "rules", "count"), [
    (None, [_rule([DEV], "*")], 1),
    ("ByUser", [_rule([ALICE], "*")], 1),
    ("ByUser", [_rule([ALICE], "*"), _rule([ALICE, BOB], "a")], 2),
    ("ByUser", [_rule([ALICE], "*"), _rule([DEV], "a")], None),
    ("ByUser", [], 0),
    ("ByNamespace", [_rule([DEV], "a", "b"), _rule([ALICE], "b", "c")], 3),
    ("ByNamespace", [_rule([DEV], "a", "b", cluster=True)], 3),
    ("ByNamespace", [_rule([DEV], "a", path="/healthz")], 2),
    ("ByNamespace", [_rule([DEV], cluster=True, path="/healthz")], 1),
    ("ByNamespace", [_rule([DEV], "a"), _rule([DEV], "*")], None),
])  # fmt: skip
def test_number_of_flows(method: str | None, rules: list[Any], count: int | None) -> None:
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": "a"}, "rules": rules}
    if method is not None:
        spec["distinguisherMethod"] = {"type": method}
    assert count_flows(build_flow_schema({"metadata": {"name": "x"}, "spec": spec}, DOCUMENT)) == count


def test_requests_without_a_namespace_are_in_the_empty_one() -> None:
    rules = [_rule([DEV], "a", cluster=True)]
    spec = {"priorityLevelConfiguration": {"name": "a"}, "rules": rules}
    assert matched_namespaces(build_flow_schema({"metadata": {"name": "x"}, "spec": spec}, DOCUMENT)) == {"", "a"}
