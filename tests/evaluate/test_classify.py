"""Matching order, dangling references, mandatory objects, and the FlowSchemas of requests as recorded from a real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.configurations import (
    BUILT_IN,
    DIGESTS,
    FIXTURES,
    FLOW_SCHEMAS,
    SPECS,
    Objects,
    digest,
    lines,
    merged,
    objects,
    recorded,
)

from apflint.evaluate.classify import Classifier, classify, matched_by
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import RequestDigest, matches_flow_schema
from apflint.evaluate.requestinfo import is_seen_by_apf

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration

REQUESTS = lines(FIXTURES / "requests.jsonl")


def names(resolution: Resolution) -> tuple[str, str]:
    return resolution.flow_schema.name, resolution.priority_level.name


@pytest.mark.parametrize("number", sorted(recorded()))
def test_order_and_dangling_agree_with_the_server(number: str) -> None:
    row, config = recorded()[number]
    assert [schema.name for schema in config.order] == row["order"]
    assert sorted(schema.name for schema in config.dangling) == sorted(row["dangling"])


@pytest.mark.parametrize("number", sorted(recorded()))
def test_classification_agrees_with_the_server(number: str) -> None:
    config = recorded()[number][1]
    fast = Classifier(config)
    mine = [request for request in REQUESTS if request[0].startswith(f"{number}-")]
    assert mine
    for identity, user, groups, method, url, verb, seen, schema, level in mine:
        asked = digest(user, groups, method, url)
        assert asked.request_info.verb == verb, identity
        assert is_seen_by_apf(asked.request_info) is seen, identity
        resolution = classify(config, asked)
        assert names(resolution) == (schema, level), identity
        assert fast(asked) == resolution, identity


def test_classification_agrees_with_all_recordings(shared: Path) -> None:
    directory = shared / "oracle/classify"
    defaults = json.loads((directory / "defaults.json").read_text(encoding="utf-8"))
    base = _plain(defaults["priority_levels"] + defaults["flow_schemas"])
    configs = {}
    for row in lines(directory / "configs.jsonl"):
        row["objects"] = _plain(row["priority_levels"] + row["flow_schemas"])
        config = configs[row["id"]] = build_configuration(merged(base, row), BUILT_IN, defaults=False)
        assert [schema.name for schema in config.order] == row["expect"]["order"], row["id"]
        assert sorted(schema.name for schema in config.dangling) == sorted(row["expect"]["dangling"]), row["id"]
    requests = lines(directory / "requests.jsonl")
    assert len(requests) >= 5371
    for row in requests:
        wanted = row if row["flow_schema"] else row["would_be"]
        asked = digest(row["user"], row["groups"], row["method"], row["url"])
        assert is_seen_by_apf(asked.request_info) is row["apf_headers"], row["id"]
        assert names(classify(configs[row["config"]], asked)) == (wanted["flow_schema"], wanted["priority_level"]), row[
            "id"
        ]


def _plain(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"kind": manifest["kind"], "name": manifest["metadata"]["name"], "spec": manifest["spec"]}
        for manifest in manifests
    ]


def schema(name: str, level: str, precedence: int = 500, **rule: Any) -> dict[str, Any]:
    spec = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule] if rule else [],
    }
    return {"kind": "FlowSchema", "name": name, "spec": spec}


REJECT = {"limitResponse": {"type": "Reject"}}


def level(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "PriorityLevelConfiguration", "name": name, "spec": spec}


def test_missing_mandatory_objects_are_imagined_first_and_last() -> None:
    config = build_configuration(
        objects([schema("zz", "catch-all", 10000), schema("a", "exempt", 1)]), BUILT_IN, defaults=False
    )
    # The server does not store the levels that these FlowSchemas reference, so both FlowSchemas dangle.
    assert [flow_schema.name for flow_schema in config.order] == ["exempt", "catch-all"]
    assert [flow_schema.name for flow_schema in config.dangling] == ["a", "zz"]
    assert sorted(config.levels) == ["catch-all", "exempt"]
    assert config.imagined == {
        (kind, name) for kind in ("FlowSchema", "PriorityLevelConfiguration") for name in ("exempt", "catch-all")
    }


def test_imagined_catch_all_is_last() -> None:
    ours = objects(
        [schema("zz", "mine", 10000), level("mine", type="Limited", limited={"limitResponse": {"type": "Reject"}})]
    )
    assert [flow_schema.name for flow_schema in build_configuration(ours, BUILT_IN, defaults=False).order] == [
        "exempt",
        "zz",
        "catch-all",
    ]
    stored = build_configuration(ours, BUILT_IN)
    assert [flow_schema.name for flow_schema in stored.order][-2:] == ["catch-all", "zz"]
    assert not stored.imagined


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (level("mine", type="Exempt"), "Exempt"),
        (level("mine", type="Limited"), "but no"),
        (level("mine", type="Limited", limited={"limitResponse": {"type": "Queue"}}), "queuing"),
        (level("mine", type="Limited", limited={"limitResponse": {"type": "Reject", "queuing": {}}}), "queuing"),
        (
            level(
                "mine",
                type="Limited",
                limited={"limitResponse": {"type": "Queue", "queuing": {"queues": 4, "handSize": 5}}},
            ),
            "hand",
        ),
        (
            level(
                "mine",
                type="Limited",
                limited={"limitResponse": {"type": "Queue", "queuing": {"queues": 1, "handSize": 2}}},
            ),
            "has invalid queuing settings",
        ),
        (
            level(
                "mine",
                type="Limited",
                limited={"limitResponse": {"type": "Queue", "queuing": {"queues": 10000, "handSize": 5}}},
            ),
            "bits",
        ),
        (level("mine", type="Limited", limited={"limitResponse": {"type": "Reject"}}, exempt={}), "exempt"),
        (level("exempt", type="Limited", limited={"limitResponse": {"type": "Reject"}}), "Exempt"),
        (level("mine", type="Limited", limited={"nominalConcurrencyShares": -5, **REJECT}), "-5 shares"),
        (level("mine", type="Limited", limited={"lendablePercent": 101, **REJECT}), "lendablePercent 101"),
        (level("mine", type="Limited", limited={"lendablePercent": -1, **REJECT}), "lendablePercent -1"),
        (level("mine", type="Limited", limited={"borrowingLimitPercent": -1, **REJECT}), "borrowingLimitPercent -1"),
        (level("exempt", type="Exempt", exempt={"nominalConcurrencyShares": -1}), "-1 shares"),
    ],
)
def test_unusable_level_counts_as_absent(broken: dict[str, Any], reason: str) -> None:
    config = build_configuration(objects([broken, schema("a", broken["name"])]), BUILT_IN)
    assert "a" in [flow_schema.name for flow_schema in config.dangling]
    assert reason in config.unusable[broken["name"]]


@pytest.mark.parametrize(
    "limited",
    [
        {"nominalConcurrencyShares": 0},
        {"lendablePercent": 0},
        {"lendablePercent": 100},
        {"borrowingLimitPercent": 0},
        {"borrowingLimitPercent": 1},
    ],
)
def test_level_with_the_smallest_or_largest_numbers_is_usable(limited: dict[str, Any]) -> None:
    mine = level("mine", type="Limited", limited={**limited, **REJECT})
    config = build_configuration(objects([mine, schema("a", "mine")]), BUILT_IN)
    assert "mine" in config.levels
    assert not config.unusable


def test_user_without_groups_falls_back_to_catch_all() -> None:
    config = build_configuration(Objects(), BUILT_IN)
    resolution = classify(config, digest("nobody", [], "GET", "/api/v1/pods"))
    assert (*names(resolution), resolution.matched_by) == ("catch-all", "catch-all", None)


def test_last_object_of_a_name_replaces_the_others() -> None:
    everybody = {
        "subjects": [{"kind": "Group", "group": {"name": "*"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    ours = objects([schema("probes", "nowhere", 2, **everybody), schema("probes", "workload-low", 2, **everybody)])
    config = build_configuration(ours, BUILT_IN)
    assert len(config.order) == len(BUILT_IN.flow_schemas)
    assert names(classify(config, digest("x", [], "GET", "/healthz"))) == ("probes", "workload-low")


@given(FLOW_SCHEMAS, DIGESTS, st.booleans(), st.randoms(use_true_random=False))
def test_order_of_files_does_not_matter(
    values: list[dict[str, Any]], asked: RequestDigest, defaults: bool, random: Any
) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    first = build_configuration(objects(values), BUILT_IN, defaults=defaults)
    other = build_configuration(objects(shuffled), BUILT_IN, defaults=defaults)
    assert [flow_schema.name for flow_schema in first.order] == [flow_schema.name for flow_schema in other.order]
    assert names(classify(first, asked)) == names(classify(other, asked))


@given(FLOW_SCHEMAS, SPECS, DIGESTS)
def test_later_flow_schema_changes_no_classification(
    values: list[dict[str, Any]], spec: dict[str, Any], asked: RequestDigest
) -> None:
    before = classify(build_configuration(objects(values), BUILT_IN), asked)
    later = {"kind": "FlowSchema", "name": "zzz", "spec": spec}
    spec["matchingPrecedence"] = before.flow_schema.spec.matching_precedence
    after = classify(build_configuration(objects([*values, later]), BUILT_IN), asked)
    if before.matched_by is None:
        assert after.flow_schema.name in (before.flow_schema.name, "zzz")
    else:
        assert names(after) == names(before)
        assert after.position == before.position


@given(FLOW_SCHEMAS, DIGESTS, st.booleans())
def test_first_matching_flow_schema_captures_a_request(
    values: list[dict[str, Any]], asked: RequestDigest, defaults: bool
) -> None:
    config = build_configuration(objects(values), BUILT_IN, defaults=defaults)
    resolution = classify(config, asked)
    matching = [flow_schema for flow_schema in config.order if matches_flow_schema(asked, flow_schema.spec)]
    if matching:
        first = min(matching, key=config.order.index)
        assert (resolution.flow_schema, resolution.matched_by is None) == (first, False)
    else:
        assert (resolution.flow_schema.name, resolution.matched_by) == ("catch-all", None)
    assert resolution.priority_level.name == resolution.flow_schema.spec.priority_level_configuration
    assert resolution.matched_by == matched_by(asked, resolution.flow_schema)
    assert config.order[resolution.position] is resolution.flow_schema
    assert _well_ordered(config)


def _well_ordered(config: Configuration) -> bool:
    keys = [
        (flow_schema.spec.matching_precedence, flow_schema.name.encode())
        for flow_schema in config.order
        if ("FlowSchema", flow_schema.name) not in config.imagined
    ]
    return keys == sorted(keys)
