"""Long lists of rules, laid out by what they cover, lose nothing, keep their order, and leave little to look at."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.evaluate import classifier, index, shelves
from apflint.evaluate.match import match_policy_rule_non_resource_url
from apflint.evaluate.resolve import classify, configuration
from apflint.evaluate.shelves import MANY, laid_out, picked

from .configurations import (
    BUILT_IN,
    DIGESTS,
    FLOW_SCHEMAS,
    NON_RESOURCE_RULES,
    RESOURCE_RULES,
    digest,
    group,
    objects,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.match import RequestDigest
    from apflint.evaluate.resolve import Configuration

VALUES = "abcdef"
LISTS = st.none() | st.frozensets(st.sampled_from(VALUES), max_size=3)
ROWS = st.lists(st.tuples(LISTS, LISTS, LISTS), max_size=40)
WANTED = st.tuples(*[st.lists(st.sampled_from(VALUES), max_size=2, unique=True).map(tuple)] * 3)


def covers(row: Sequence[frozenset[str] | None], wanted: Sequence[tuple[str, ...]]) -> bool:
    return all(listed is None or not listed.isdisjoint(values) for listed, values in zip(row, wanted, strict=True))


@given(ROWS, WANTED, st.integers(1, 4))
def test_what_covers_the_values_is_picked_in_order(
    rows: list[tuple[frozenset[str] | None, ...]], wanted: tuple[tuple[str, ...], ...], many: int
) -> None:
    with patch.object(shelves, "MANY", many):
        lists = picked(laid_out(dict(enumerate(rows))), wanted)
    assert {at for at, row in enumerate(rows) if covers(row, wanted)} <= {at for listed in lists for at in listed}
    assert all(list(listed) == sorted(set(listed)) for listed in lists)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_of_thousands_a_few_are_picked(axis: int) -> None:
    few = frozenset(("get", "list"))
    rows = {
        at: tuple(frozenset((f"r{at}",)) if each == axis else (few, None)[at % 2] for each in range(3))
        for at in range(4000)
    }
    found = picked(laid_out(rows), [("r7",) if each == axis else ("get",) for each in range(3)])
    assert 7 in {at for listed in found for at in listed}
    assert sum(map(len, found)) < MANY


def test_two_axes_tell_apart_what_one_does_not() -> None:
    rows = {at: (frozenset((f"a{at % 64}",)), frozenset((f"b{at // 64}",)), None) for at in range(4096)}
    found = picked(laid_out(rows), (("a5",), ("b7",), ()))
    assert sorted(map(tuple, found)) == [(), (), (7 * 64 + 5,)]


def test_those_that_name_very_many_values_are_not_copied_as_often() -> None:
    rows = {at: (frozenset(f"v{(at + more) % 100}" for more in range(50)), None, None) for at in range(1000)}
    assert laid_out(rows) == tuple(range(1000))


@given(FLOW_SCHEMAS, st.lists(DIGESTS, max_size=12))
def test_the_classifier_agrees_with_long_lists(values: list[dict[str, Any]], asked: list[RequestDigest]) -> None:
    config = configuration(objects(values), BUILT_IN)
    with ExitStack() as patches:
        for module in (shelves, index, classifier):
            patches.enter_context(patch.object(module, "MANY", 0))
        fast = classifier.classifier(config)
        assert [fast(each) for each in asked] == [classify(config, each) for each in asked]


def test_lists_of_a_model_are_its_own_in_the_index() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["dev"]}
    path = {"verbs": ["get"], "nonResourceURLs": ["/x"]}
    spec = {"priorityLevelConfiguration": {"name": "exempt"}}
    rules = [{"subjects": [group("dev")], "resourceRules": [rule], "nonResourceRules": [path]}]
    config = configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec | {"rules": rules}}]), BUILT_IN)
    made = index.index(config)
    (position,) = (at for at, each in enumerate(config.order) if each.name == "x")
    (mine,) = config.order[position].spec.rules
    number = made.first_rule[position]
    assert made.resource[number] is mine.resource_rules
    assert made.non_resource[number] is mine.non_resource_rules


@pytest.mark.parametrize("path", ["/p7", "/p7/", "/p7/x", "/p7*", "/p7*/x", "//p7", "/", "/q7", "/q7/x/y", "/p63/x"])
def test_a_path_meets_all_rules_of_its_first_segment(path: str) -> None:
    urls = [[f"/p{at}*"] if at % 2 else [f"/q{at}/x", f"/q{at + 1}/x/*"] for at in range(2 * MANY)]
    urls.insert(MANY, ["/"])
    rules = [
        {"subjects": [group("dev")], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": each}]} for each in urls
    ]
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": rules}
    config = configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    asked = digest("alice", ["dev"], "GET", path)
    assert classifier.classifier(config)(asked) == classify(config, asked)


@pytest.mark.parametrize("url", ["/api/v1/pods", "/api/v1/namespaces/n7/pods", "/api/v1/namespaces/m/pods"])
def test_a_request_meets_all_rules_of_its_scope(url: str) -> None:
    rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
    scopes = [{"namespaces": [f"n{at}"], "clusterScope": at == MANY} for at in range(2 * MANY)] + [
        {"namespaces": ["*"]}
    ]
    rules = [{"subjects": [group("dev")], "resourceRules": [rule | scope]} for scope in scopes]
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": rules}
    config = configuration(objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]), BUILT_IN)
    asked = digest("alice", ["dev"], "GET", url)
    found = classifier.classifier(config)(asked)
    assert found == classify(config, asked)
    assert found.flow_schema.name == "x"


# --- long rules -------------------------------------------------------------------------------------------------------


def one_rule(resources: list[dict[str, Any]], paths: list[dict[str, Any]]) -> Configuration:
    rules = [{"subjects": [group("*")], "resourceRules": resources, "nonResourceRules": paths}]
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1, "rules": rules}
    return configuration(objects([{"kind": "FlowSchema", "name": "a", "spec": spec}]), BUILT_IN)


LONG = st.builds(one_rule, st.lists(RESOURCE_RULES, max_size=12), st.lists(NON_RESOURCE_RULES, max_size=12))


@given(LONG, st.lists(DIGESTS, max_size=12))
def test_entries_of_a_long_rule_are_found_as_one_by_one(config: Configuration, asked: list[RequestDigest]) -> None:
    with ExitStack() as patches:
        for module in (shelves, index, classifier):
            patches.enter_context(patch.object(module, "MANY", 1))
        fast = classifier.classifier(config)
        assert [fast(each) for each in asked] == [classify(config, each) for each in asked]


@settings(max_examples=500)
@given(st.text("/a*", max_size=6), st.integers(0, 6), st.text("/a*", max_size=3), st.integers(1, 3))
def test_what_covers_a_path_covers_what_is_wanted_for_it(url: str, kept: int, more: str, deep: int) -> None:
    path = url[:kept] + more
    with patch.object(index, "_DEEP", deep):
        axes = index._path_axes([(None, (url,))])
        wanted = index.wanted_paths(path)
    if match_policy_rule_non_resource_url((url,), path):
        assert covers(axes[1:], wanted)


def test_of_thousands_of_entries_a_few_are_met_in_order() -> None:
    count = 5_000
    rule = {"verbs": ["get"], "apiGroups": [""], "namespaces": ["*"]}
    resources = [rule | {"resources": [f"r{at}"]} for at in range(count)]
    paths = [{"verbs": ["get"], "nonResourceURLs": [f"/a/b{at}"]} for at in range(count)]
    resources[1000] |= {"resources": ["*"]}
    paths[1000] |= {"nonResourceURLs": ["*"]}
    config = one_rule(resources, paths)
    made = index.index(config)
    (number,) = (at for at, each in enumerate(made.resource) if len(each) == count)
    for at in (77, 4077):
        found = made.entries(number, (("get",), ("",), (f"r{at}",), ("dev",)), resource=True)
        assert [*found] == sorted((at, 1000))
        found = made.entries(number, (("get",), *index.wanted_paths(f"/a/b{at}/c")), resource=False)
        assert [*found] == sorted((at, 1000))
