"""Flows: distinguisher, hash and hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.levels import DOCUMENT, EXEMPT_LEVEL, RELEASE, queue_level, reject_level

from apflint.evaluate.flows import Flow, describe_flow, find_flow
from apflint.model import build_flow_schema, build_priority_level
from apflint.output.explain import flow_json

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.model import FlowSchema, PriorityLevelConfiguration


def _schema(method: str | None) -> FlowSchema:
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": "a"}}
    if method is not None:
        spec["distinguisherMethod"] = {"type": method}
    return build_flow_schema({"metadata": {"name": "global-default"}, "spec": spec}, DOCUMENT)


def test_flow_is_the_recorded_one() -> None:
    # Recorded from kube-apiserver 1.36.2: alice lists pods, with the default objects.
    found = find_flow(_schema("ByUser"), queue_level(), "alice", "dev")
    assert flow_json(found) == {
        "distinguisherMethod": "ByUser",
        "distinguisher": "alice",
        "hash": "17644606172554983095",
        "hand": [55, 62, 126, 125, 105, 1],
    }
    assert describe_flow(found) == (
        'User "alice" is one flow, dealt queues 55, 62, 126, 125, 105, 1 (of 128, from 0). Hash 17644606172554983095.'
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
        ("ByUser", queue_level(8, 1), "alice", "is one flow, dealt queue "),
    ],
)
def test_distinguisher_follows_the_method(
    method: str | None, level: PriorityLevelConfiguration, distinguisher: str, words: str
) -> None:
    found = find_flow(_schema(method), level, "alice", "dev")
    assert found.distinguisher == distinguisher
    assert words in describe_flow(found)
    assert (found.hash is None) == (found.hand is None) == (found.queues < 2)


def test_requests_without_a_namespace_are_one_flow() -> None:
    found = find_flow(_schema("ByNamespace"), queue_level(), "alice", "")
    assert found.distinguisher == ""
    assert "All requests without a namespace" in describe_flow(found)


def test_flows_agree_with_all_recordings(shared: Path) -> None:
    folder = shared / "oracle/classify"
    base = json.loads((folder / "defaults.json").read_text())
    builtin = base if isinstance(base, list) else base["flow_schemas"] + base["priority_levels"]
    objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for line in (folder / "configs.jsonl").read_text().splitlines():
        row = json.loads(line)
        own = row["flow_schemas"] + row["priority_levels"]
        objects[row["id"]] = {(each["kind"], each["metadata"]["name"]): each for each in builtin + own}
    compared = 0
    for line in (folder / "requests.jsonl").read_text().splitlines():
        row = json.loads(line)
        if not row["flow_schema"] or "%" in row["url"]:  # URLs are decoded elsewhere
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
    # Without queues, or with one, there is no hand. The FlowSchema and its method are reported anyway.
    for level, queues in ((reject_level(), 0), (EXEMPT_LEVEL, 0), (queue_level(1, 1), 1)):
        found = find_flow(_schema("ByUser"), level, "alice", "dev")
        assert found == Flow("global-default", "ByUser", "", queues, None, None)
