"""The index finds the same match as a scan of all rules, and reads only few rules of long lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import group
from support.configurations import BUILT_IN, DIGESTS, FLOW_SCHEMAS, NON_RESOURCE_RULES, RESOURCE_RULES, digest, objects

from apflint.evaluate import rule_index
from apflint.evaluate.classify import Classifier, classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import match_policy_rule_non_resource_url, matches_flow_schema
from apflint.evaluate.rule_index import MAX_SCANNED, UrlSet, ValueIndex, includes_urls, matched_values
from apflint.model import NonResourcePolicyRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest

VALUES = "abcdef"
LISTS = st.none() | st.frozensets(st.sampled_from(VALUES), max_size=3)
ROWS = st.lists(st.tuples(LISTS, LISTS, LISTS), min_size=1, max_size=40)
REQUESTS = st.tuples(*[st.sampled_from(VALUES)] * 3)


def covers(row: Sequence[frozenset[str] | None], request: Sequence[str]) -> bool:
    return all(values is None or value in values for values, value in zip(row, request, strict=True))


@given(ROWS, REQUESTS)
def test_all_items_that_cover_a_request_are_found_in_order(
    rows: list[tuple[frozenset[str] | None, ...]], request: tuple[str, ...]
) -> None:
    lists = ValueIndex([*enumerate(rows)]).find(request)
    assert {at for at, row in enumerate(rows) if covers(row, request)} <= {at for items in lists for at in items}
    assert all(list(items) == sorted(set(items)) for items in lists)


@pytest.mark.parametrize("field", [0, 1, 2])
def test_field_that_distinguishes_most_items_is_indexed(field: int) -> None:
    few = frozenset(("get", "list"))
    rows = [
        (at, tuple(frozenset((f"r{at}",)) if index == field else (few, None)[at % 2] for index in range(3)))
        for at in range(4000)
    ]
    others, items = ValueIndex(rows).find([("r7") if index == field else "get" for index in range(3)])
    assert (list(others), list(items)) == ([], [7])


def test_field_with_many_values_an_item_is_not_indexed() -> None:
    rows = [(at, (frozenset(f"v{(at + more) % 100}" for more in range(50)), None)) for at in range(1000)]
    assert ValueIndex(rows).find(("v1", "x")) == (list(range(1000)), ())


@given(FLOW_SCHEMAS, st.lists(DIGESTS, max_size=12), st.sampled_from((0, 1, MAX_SCANNED)))
def test_classifier_agrees_with_classify(
    values: list[dict[str, Any]], requests: list[RequestDigest], max_scanned: int
) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    with patch.object(rule_index, "MAX_SCANNED", max_scanned):
        classifier = Classifier(config)
        for request in (*requests, *requests):
            assert classifier(request) == classify(config, request)


@given(FLOW_SCHEMAS, DIGESTS, st.integers(0, 12))
def test_next_match_is_the_first_match_from_a_position_on(
    values: list[dict[str, Any]], request: RequestDigest, start: int
) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    expected = next((schema for schema in config.order[start:] if matches_flow_schema(request, schema.spec)), None)
    matched = matched_values(request.request_info)
    assert Classifier(config).next_match(request.user, matched, start) == expected


def one_flow_schema(rules: list[dict[str, Any]]) -> Configuration:
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1, "rules": rules}
    return build_configuration(objects([{"kind": "FlowSchema", "name": "a", "spec": spec}]), BUILT_IN)


@pytest.mark.parametrize("path", ["/p7", "/p7/", "/p7/x", "/p7*", "/p7*/x", "//p7", "/", "/q7", "/q7/x/y", "/p63/x"])
def test_path_is_found_among_many_rules(path: str) -> None:
    urls = [[f"/p{at}*"] if at % 2 else [f"/q{at}/x", f"/q{at + 1}/x/*"] for at in range(2 * MAX_SCANNED)]
    urls.insert(MAX_SCANNED, ["/"])
    config = one_flow_schema(
        [{"subjects": [group("dev")], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": url}]} for url in urls]
    )
    request = digest("alice", ["dev"], "GET", path)
    assert Classifier(config)(request) == classify(config, request)


@pytest.mark.parametrize("url", ["/api/v1/pods", "/api/v1/namespaces/n7/pods", "/api/v1/namespaces/m/pods"])
def test_scope_is_found_among_many_rules(url: str) -> None:
    rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
    scopes: list[dict[str, Any]] = [
        {"namespaces": [f"n{at}"], "clusterScope": at == MAX_SCANNED} for at in range(2 * MAX_SCANNED)
    ]
    scopes.append({"namespaces": ["*"]})
    config = one_flow_schema([{"subjects": [group("dev")], "resourceRules": [rule | scope]} for scope in scopes])
    request = digest("alice", ["dev"], "GET", url)
    resolution = Classifier(config)(request)
    assert resolution == classify(config, request)
    assert resolution.flow_schema.name == "a"


LONG_RULES = st.builds(
    lambda resources, paths: one_flow_schema(
        [{"subjects": [group("*")], "resourceRules": resources, "nonResourceRules": paths}]
    ),
    st.lists(RESOURCE_RULES, max_size=12),
    st.lists(NON_RESOURCE_RULES, max_size=12),
)


@given(LONG_RULES, st.lists(DIGESTS, max_size=12))
def test_first_entry_of_a_long_rule_is_found(config: Configuration, requests: list[RequestDigest]) -> None:
    with patch.object(rule_index, "MAX_SCANNED", 1):
        classifier = Classifier(config)
        assert [classifier(request) for request in requests] == [classify(config, request) for request in requests]


@given(st.text("/a*", max_size=6), st.integers(0, 6), st.text("/a*", max_size=3))
def test_url_covers_the_first_segment_of_the_paths_it_matches(url: str, kept: int, more: str) -> None:
    path = url[:kept] + more
    _, segments = rule_index._path_values(NonResourcePolicyRule(("get",), (url,)))
    if match_policy_rule_non_resource_url((url,), path):
        assert segments is None or rule_index._first_segment(path) in segments
    else:
        assert path != url


def test_few_of_thousands_of_entries_are_scanned() -> None:
    count = 5_000
    rule = {"verbs": ["get"], "apiGroups": [""], "namespaces": ["*"]}
    resources = [rule | {"resources": [f"r{at}"]} for at in range(count)]
    paths = [{"verbs": ["get"], "nonResourceURLs": [f"/b{at}/*"]} for at in range(count)]
    resources[1000] |= {"resources": ["*"]}
    paths[1000] |= {"nonResourceURLs": ["*"]}
    config = one_flow_schema([{"subjects": [group("*")], "resourceRules": resources, "nonResourceRules": paths}])
    classifier = Classifier(config)
    for at in (77, 4077):
        for url in (f"/api/v1/namespaces/dev/r{at}/x", f"/b{at}/c"):
            request = digest("alice", [], "GET", url)
            matched_by = classifier(request).matched_by
            assert matched_by is not None
            assert {matched_by.resource_rule, matched_by.non_resource_rule} == {None, min(at, 1000)}
    indexes = classifier._index._indexes.values()
    assert [len(index.others) for index in indexes] == [1, 1]


PATHS = st.text(alphabet="/a*", max_size=6) | st.sampled_from(["/healthz", "/healthz/", "/healthz/*", "/healthz*", "*"])


@given(urls=st.lists(PATHS, max_size=6), path=PATHS)
def test_set_contains_the_paths_that_the_server_matches(urls: list[str], path: str) -> None:
    assert (path in UrlSet(urls)) == match_policy_rule_non_resource_url(urls, path)


def test_url_includes_the_paths_below_it() -> None:
    assert includes_urls(["/healthz", "/version/"], ["/healthz/etcd", "/version/*"])
    assert not includes_urls(["/healthz/"], ["/healthz"])
