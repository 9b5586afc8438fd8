"""The reference agrees with recordings of kube-apiserver 1.36.2: attributes of requests, matching order,
classification."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from . import server
from .server import Manifest, User

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/oracle-classify"


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDED / name).read_text(encoding="utf-8").splitlines()]


@cache
def recorded_orders() -> dict[str, list[Manifest]]:
    """Return the effective FlowSchemas of each recorded configuration, by the id of the configuration."""
    defaults, *rows = lines("configs.jsonl")
    base = [manifest(value) for value in defaults["objects"]]
    orders = {}
    for row in rows:
        removed = {("FlowSchema", name) for name in row["removed_flow_schemas"]}
        removed |= {("PriorityLevelConfiguration", name) for name in row["removed_priority_levels"]}
        kept = [value for value in base if (value["kind"], server.name_of(value)) not in removed]
        orders[row["id"]] = server.effective_flow_schemas([*kept, *map(manifest, row["objects"])], base)
    return orders


def manifest(value: dict[str, Any]) -> Manifest:
    return {"kind": value["kind"], "metadata": {"name": value["name"]}, "spec": value["spec"]}


def test_the_effective_flow_schemas_are_the_recorded_ones() -> None:
    _, *rows = lines("configs.jsonl")
    assert len(rows) == 84
    for row in rows:
        assert [server.name_of(schema) for schema in recorded_orders()[row["id"]]] == row["order"], row["id"]


def test_the_attributes_of_requests_are_the_recorded_ones() -> None:
    checked = 0
    internal = dict(lines("requestinfo_internal.jsonl"))
    for case, method, url, classified, recorded in lines("requestinfo.jsonl"):
        request = server.parse_request(method, url)
        if request is None or "error" in recorded:
            assert request is None, url
            assert "error" in recorded, url
            continue
        resource, subresource = recorded.get("resource", ""), recorded.get("subresource", "")
        expected = server.Request(
            recorded.get("isResourceRequest", False),
            recorded.get("verb", ""),
            recorded.get("apiGroup", ""),
            f"{resource}/{subresource}" if subresource else resource,
            recorded.get("namespace", ""),
            "" if recorded.get("isResourceRequest") else internal[case]["path"],
        )
        assert (request, request.is_classified) == (expected, classified), (method, url)
        checked += 1
    assert checked > 300


def test_requests_go_where_the_server_sent_them() -> None:
    orders = recorded_orders()
    rows = lines("requests.jsonl")
    assert len(rows) > 1000
    for number, name, groups, method, url, verb, classified, flow_schema, level in rows:
        order = orders[number.partition("-")[0]]
        request = server.parse_request(method, url)
        assert request is not None
        assert (request.verb, request.is_classified) == (verb, classified), number
        match = server.classify(order, User(name, frozenset(groups)), request)
        schema = (
            next(schema for schema in order if server.name_of(schema) == "catch-all")
            if match is None
            else order[match.schema]
        )
        assert (server.name_of(schema), server.level_of(schema)) == (flow_schema, level), number
