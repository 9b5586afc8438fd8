"""Explanations: `matched` agrees with the matcher, and mismatches name the field whose condition fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from support.configurations import BUILT_IN, DIGESTS, FLOW_SCHEMAS, RELEASE, Objects, digest, objects

from apflint import builtin
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import RequestDigest, matches_flow_schema
from apflint.evaluate.match_reasons import explain_match, explain_resolution, explain_skipped
from apflint.location import field_path
from apflint.output.match_reasons import (
    describe_fallback,
    describe_imagined,
    describe_mismatch,
    describe_skipped,
    describe_verdict,
)

if TYPE_CHECKING:
    from apflint.evaluate.match_reasons import Verdict

ANYONE = {"kind": "Group", "group": {"name": "*"}}
ALL_RESOURCES = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
ALL_PATHS = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def tried(
    url: str, *rules: dict[str, Any], user: str = "alice", groups: tuple[str, ...] = ("dev",), method: str = "GET"
) -> Verdict:
    spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "rules": list(rules)}
    (schema,) = objects([{"kind": "FlowSchema", "name": "mine", "spec": spec}]).flow_schemas
    return explain_match(schema, digest(user, list(groups), method, url))


def subject(**named: Any) -> dict[str, Any]:
    ((kind, value),) = named.items()
    return {"kind": kind[0].upper() + kind[1:], kind: value}


PODS = "/api/v1/namespaces/dev/pods"


@pytest.mark.parametrize(
    ("subjects", "because", "field"),
    [
        ([subject(group={"name": "ops"})], 'the user is not in the group "ops"', "subjects[0]"),
        (
            [subject(group={"name": "ops"}), subject(group={"name": "qa"})],
            'the user is in none of the groups ["ops", "qa"]',
            "subjects",
        ),
        ([subject(user={"name": "bob"})], 'the user is not "bob"', "subjects[0]"),
        (
            [{"kind": "Group", "user": {"name": "alice"}}, {"kind": "User", "group": {"name": "dev"}}],
            (
                'the user is none of the 2 subjects: a subject of kind "Group" without a name,'
                ' a subject of kind "User" without a name'
            ),
            "subjects",
        ),
        (
            [subject(user={"name": name}) for name in "wxyz"] + [subject(group={"name": name}) for name in "ops"],
            'the user is none of the 7 subjects: user "w", user "x", user "y", user "z", and 3 more',
            "subjects",
        ),
        (
            [subject(user={"name": name}) for name in "abcdef"],
            'the user is not among ["a", "b", "c", "d", and 2 more]',
            "subjects",
        ),
        (
            [subject(user={"name": "bob"}), subject(group={"name": "ops"})],
            'the user is none of the 2 subjects: user "bob", group "ops"',
            "subjects",
        ),
        (
            [subject(serviceAccount={"namespace": "ci", "name": "*"})],
            'the user is not a service account in "ci"',
            "subjects[0]",
        ),
        ([], "the rule has no subjects", "subjects"),
        (
            [subject(user={"name": "bob"}), subject(group={"name": "Dev"})],
            'the user is none of the 2 subjects: user "bob", group "Dev"; "Dev" and "dev" differ in upper and lower case',
            "subjects[1]",
        ),
        (
            [subject(user={"name": "ali*"})],
            'the user is not "ali*"; "ali*" is matched literally, not as a pattern',
            "subjects[0]",
        ),
        (
            [subject(user={"name": "dev"})],
            'the user is not "dev"; "dev" is a group of the user, but the subject is a user',
            "subjects[0]",
        ),
        (
            [subject(group={"name": "alice"})],
            'the user is not in the group "alice"; "alice" is the user, but the subject is a group',
            "subjects[0]",
        ),
        (
            [subject(user={"name": "*x"}), subject(serviceAccount={"namespace": "ci", "name": "a"})],
            'the user is none of the 2 subjects: user "*x", service account "ci/a"',
            "subjects",
        ),
        (
            [subject(group={"name": name}) for name in "abcd"],
            'the user is in none of the groups ["a", "b", "c", "d"]',
            "subjects",
        ),
        (
            [subject(group={"name": "dev-*"})],
            'the user is not in the group "dev-*"',
            "subjects[0]",
        ),
        (
            [{"kind": "Robot", "serviceAccount": {"namespace": "ci", "name": "a"}}],
            'the user is not a subject of kind "Robot" without a name',
            "subjects[0]",
        ),
        (
            [{"kind": "ServiceAccount"}],
            'the user is not a subject of kind "ServiceAccount" without a name',
            "subjects[0]",
        ),
        ([{"kind": "Group"}], 'the user is not in the group ""', "subjects[0]"),
        ([{"kind": "User"}], 'the user is not ""', "subjects[0]"),
        ([{"kind": "Robot"}], 'the user is not a subject of kind "Robot" without a name', "subjects[0]"),
    ],
)
def test_subjects(subjects: list[dict[str, Any]], because: str, field: str) -> None:
    found = tried(PODS, {"subjects": subjects, "resourceRules": [ALL_RESOURCES]})
    assert (found.matched, describe_verdict(found), field_path(found.path)) == (
        False,
        because,
        f"spec.rules[0].{field}",
    )
    assert [(miss.condition, describe_mismatch(miss), miss.path) for miss in found.mismatches] == [
        ("subject", because, found.path)
    ]


@pytest.mark.parametrize(
    ("account", "hint"),
    [
        ({"namespace": "ci", "name": "other"}, "the namespace is the same, the name differs"),
        ({"namespace": "qa", "name": "runner"}, "the name is the same, the namespace differs"),
        (
            {"namespace": "ci", "name": "system:serviceaccount:ci:runner"},
            "the name of a service account is the part of its user name after the last colon",
        ),
    ],
)
def test_similar_service_account_gets_a_hint(account: dict[str, str], hint: str) -> None:
    rule = {"subjects": [subject(serviceAccount=account)], "resourceRules": [ALL_RESOURCES]}
    assert describe_verdict(tried(PODS, rule, user="system:serviceaccount:ci:runner")).endswith(f'"; {hint}')


@pytest.mark.parametrize("user", ["alice:runner", "system:serviceaccount:ci:other", "bob"])
def test_other_service_account_gets_no_hint(user: str) -> None:
    rule = {
        "subjects": [subject(serviceAccount={"namespace": "qa", "name": "runner"})],
        "resourceRules": [ALL_RESOURCES],
    }
    assert describe_verdict(tried(PODS, rule, user=user)) == 'the user is not service account "qa/runner"'


@pytest.mark.parametrize(
    ("url", "change", "because", "field"),
    [
        (f"{PODS}?watch=1", {"verbs": ["get", "list"]}, 'verb "watch" is not among ["get", "list"]', "verbs"),
        (
            PODS,
            {"verbs": ["*", "get"]},
            'verb "list" is not among ["*", "get"]; "*" matches everything only if it is the only item',
            "verbs",
        ),
        (PODS, {"verbs": []}, "the rule has no verbs", "verbs"),
        (
            f"{PODS}/a/log",
            {"resources": ["pods"]},
            'resource "pods/log" is not among ["pods"]; "pods" does not match its subresources',
            "resources",
        ),
        (
            f"{PODS}/a/log",
            {"resources": ["pods/*"]},
            'resource "pods/log" is not among ["pods/*"]; "pods/*" is matched literally, not as a pattern',
            "resources",
        ),
        (
            PODS,
            {"resources": ["Pod"]},
            'resource "pods" is not among ["Pod"]; in requests, the resource "Pod" has the name "pods"',
            "resources",
        ),
        (PODS, {"resources": ["jobs"]}, 'resource "pods" is not among ["jobs"]', "resources"),
        (PODS, {"apiGroups": ["apps"]}, 'API group "" (core) is not among ["apps"]', "apiGroups"),
        (
            PODS,
            {"apiGroups": ["v1"]},
            'API group "" (core) is not among ["v1"]; the core group is written ""',
            "apiGroups",
        ),
        (
            "/apis/apps/v1/namespaces/dev/deployments",
            {"apiGroups": ["apps/v1"]},
            'API group "apps" is not among ["apps/v1"]; "apps/v1" includes a version, which does not belong here',
            "apiGroups",
        ),
        (
            "/apis/apps/v1/namespaces/dev/deployments",
            {"apiGroups": ["core"]},
            'API group "apps" is not among ["core"]',
            "apiGroups",
        ),
        *(
            (
                PODS,
                {"apiGroups": [written]},
                f'API group "" (core) is not among ["{written}"]; the core group is written ""',
                "apiGroups",
            )
            for written in ("core", "core/v1", "api")
        ),
        (PODS, {"namespaces": ["qa"]}, 'namespace "dev" is not among ["qa"]', "namespaces"),
        (PODS, {"namespaces": ["qa*"]}, 'namespace "dev" is not among ["qa*"]', "namespaces"),
        (
            PODS,
            {"namespaces": ["qa", "*"]},
            'namespace "dev" is not among ["qa", "*"]; "*" matches everything only if it is the only item',
            "namespaces",
        ),
        (
            "/apis/x.io/v1/things",
            {"clusterScope": False, "namespaces": []},
            "no clusterScope: true, and the request is for all namespaces",
            "clusterScope",
        ),
        (
            PODS,
            {"namespaces": ["d*"]},
            'namespace "dev" is not among ["d*"]; "d*" is matched literally, not as a pattern',
            "namespaces",
        ),
        (
            PODS,
            {"namespaces": []},
            'the rule has no namespaces, and the request is for namespace "dev"',
            "namespaces",
        ),
        (
            "/api/v1/pods",
            {"clusterScope": False},
            'no clusterScope: true, and the request is for all namespaces; namespaces: ["*"] matches only requests to a single namespace',
            "clusterScope",
        ),
        (
            "/api/v1/nodes/n",
            {"clusterScope": False, "namespaces": ["dev"]},
            'no clusterScope: true, and "nodes" is cluster-scoped',
            "clusterScope",
        ),
        (
            "/apis/x.io/v1/things/t",
            {"clusterScope": False, "namespaces": []},
            "no clusterScope: true, and the request has no namespace",
            "clusterScope",
        ),
    ],
)
def test_resource_rules(url: str, change: dict[str, Any], because: str, field: str) -> None:
    found = tried(url, {"subjects": [ANYONE], "resourceRules": [ALL_RESOURCES | change]})
    assert (found.matched, describe_verdict(found), field_path(found.path)) == (
        False,
        because,
        f"spec.rules[0].resourceRules[0].{field}",
    )
    conditions = {"verbs": "verb", "resources": "resource", "apiGroups": "group"}
    (miss,) = found.mismatches
    expected = (conditions.get(field, "namespace"), because, found.path)
    assert (miss.condition, describe_mismatch(miss), miss.path) == expected


def test_scope_of_unknown_resource_depends_on_the_verb() -> None:
    rule = {"subjects": [ANYONE], "resourceRules": [ALL_RESOURCES | {"clusterScope": False, "namespaces": []}]}
    for method, what in (("DELETE", "is for all namespaces"), ("POST", "has no namespace")):
        because = describe_verdict(tried("/apis/x.io/v1/things", rule, method=method))
        assert because == f"no clusterScope: true, and the request {what}"


def test_method_without_verb() -> None:
    found = tried(PODS, {"subjects": [ANYONE], "resourceRules": [ALL_RESOURCES | {"verbs": ["get"]}]}, method="OPTIONS")
    assert describe_verdict(found) == 'this HTTP method maps to no verb, so only ["*"] matches it, not ["get"]'


@pytest.mark.parametrize(
    ("url", "change", "because", "field"),
    [
        ("/healthz", {"nonResourceURLs": ["/version"]}, 'path "/healthz" is not among ["/version"]', "nonResourceURLs"),
        (
            "/healthz",
            {"nonResourceURLs": ["/healthz/*"]},
            'path "/healthz" is not among ["/healthz/*"]; "/healthz/*" matches only paths below "/healthz"',
            "nonResourceURLs",
        ),
        (
            "/healthz",
            {"nonResourceURLs": ["/heal*"]},
            'path "/healthz" is not among ["/heal*"]; "/heal*" matches only whole segments of a path',
            "nonResourceURLs",
        ),
        (
            "/healthz",
            {"nonResourceURLs": ["/heal*", "/healthz/"]},
            'path "/healthz" is not among ["/heal*", "/healthz/"]; "/healthz/" matches only paths below "/healthz"',
            "nonResourceURLs",
        ),
        (
            "/healthz",
            {"nonResourceURLs": ["/version/*", "/heal*", "/he*"]},
            'path "/healthz" is not among ["/version/*", "/heal*", "/he*"]; "/heal*" matches only whole segments of a path',
            "nonResourceURLs",
        ),
        ("/healthz", {"nonResourceURLs": []}, "the rule has no paths", "nonResourceURLs"),
        (
            "/ab",
            {"nonResourceURLs": ["/a"]},
            'path "/ab" is not among ["/a"]; "/a" matches only whole segments of a path',
            "nonResourceURLs",
        ),
        (
            "/healthz",
            {"verbs": ["list"]},
            'verb "get" is not among ["list"]; the verb of a non-resource request is its HTTP method in lower case',
            "verbs",
        ),
    ],
)
def test_non_resource_rules(url: str, change: dict[str, Any], because: str, field: str) -> None:
    found = tried(url, {"subjects": [ANYONE], "nonResourceRules": [ALL_PATHS | change]})
    assert (found.matched, describe_verdict(found), field_path(found.path)) == (
        False,
        because,
        f"spec.rules[0].nonResourceRules[0].{field}",
    )
    (miss,) = found.mismatches
    expected = ("verb" if field == "verbs" else "path", because, found.path)
    assert (miss.condition, describe_mismatch(miss), miss.path) == expected


def test_hint_about_methods_is_for_non_resource_requests() -> None:
    hint = "; the verb of a non-resource request is its HTTP method in lower case"
    impersonate = {"subjects": [ANYONE], "resourceRules": [ALL_RESOURCES | {"verbs": ["impersonate"]}]}
    assert describe_verdict(tried(PODS, impersonate)) == 'verb "list" is not among ["impersonate"]'
    for verb, expected_hint in (("post", ""), ("list", hint), ("impersonate", hint)):
        rule = {"subjects": [ANYONE], "nonResourceRules": [ALL_PATHS | {"verbs": [verb]}]}
        assert describe_verdict(tried("/version", rule)) == f'verb "get" is not among ["{verb}"]{expected_hint}'


def test_missing_entries_and_rules() -> None:
    assert describe_verdict(tried(PODS, {"subjects": [ANYONE], "nonResourceRules": [ALL_PATHS]})) == (
        "the rule has no resourceRules, but the request is a resource request"
    )
    found = tried(PODS, {"subjects": [ANYONE], "nonResourceRules": [ALL_PATHS]})
    assert {(describe_mismatch(miss), field_path(miss.path)) for miss in found.mismatches} == {
        ("the rule has no resourceRules, but the request is a resource request", "spec.rules[0].resourceRules")
    }
    # The rule has no entries for this type of request, so every condition counts as failed.
    assert [miss.condition for miss in found.mismatches] == ["verb", "resource", "group", "namespace"]
    found = tried("/healthz", {"subjects": [ANYONE], "resourceRules": [ALL_RESOURCES]})
    assert [miss.condition for miss in found.mismatches] == ["verb", "path"]
    assert describe_verdict(found) == "the rule has no nonResourceRules, but the request is a non-resource request"
    assert field_path(found.path) == "spec.rules[0].nonResourceRules"
    found = tried(PODS)
    assert describe_verdict(found) == "it has no rules, so it matches nothing"
    assert (found.path, found.mismatches) == (("spec", "rules"), ())


def test_closest_rule_is_explained() -> None:
    far = {
        "subjects": [subject(user={"name": "bob"})],
        "resourceRules": [ALL_RESOURCES | {"verbs": ["get"], "resources": ["jobs"]}],
    }
    near = {
        "subjects": [ANYONE],
        "resourceRules": [
            ALL_RESOURCES | {"verbs": ["get"], "resources": ["jobs"]},
            ALL_RESOURCES | {"resources": ["jobs"]},
        ],
    }
    found = tried(PODS, far, near)
    assert field_path(found.path) == "spec.rules[1].resourceRules[1].resources"
    assert [miss.condition for miss in found.mismatches] == ["resource"]
    one_away = {"subjects": [subject(user={"name": "bob"})], "resourceRules": [ALL_RESOURCES]}
    assert field_path(tried(PODS, one_away, near).path) == "spec.rules[1].resourceRules[1].resources"
    # If several entries have equally few failed conditions, the first entry is explained.
    two = [ALL_RESOURCES | {"resources": ["jobs"]}, ALL_RESOURCES | {"verbs": ["get"]}]
    for entries in (two, two[::-1]):
        (miss,) = tried(PODS, {"subjects": [ANYONE], "resourceRules": entries}).mismatches
        assert miss.path[:5] == ("spec", "rules", 0, "resourceRules", 0)
    missed_twice = ALL_RESOURCES | {"verbs": ["get"], "namespaces": ["qa"]}
    found = tried(
        PODS, {"subjects": [ANYONE], "resourceRules": [missed_twice, ALL_RESOURCES | {"resources": ["jobs"]}]}
    )
    assert [miss.condition for miss in found.mismatches] == ["resource"]
    assert field_path(tried(PODS, far, one_away).path) == "spec.rules[1].subjects[0]"


def test_match_names_the_part() -> None:
    found = tried(PODS, {"subjects": [ANYONE], "resourceRules": [ALL_RESOURCES]})
    assert (found.matched, describe_verdict(found)) == (True, "it matches everybody, all verbs and resources")
    assert field_path(found.path) == "spec.rules[0].resourceRules[0]"
    assert found.mismatches == ()
    found = tried(
        "/version",
        {
            "subjects": [subject(group={"name": "dev"})],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version"]}],
        },
    )
    assert describe_verdict(found) == 'it matches group "dev", verbs ["get"] on paths ["/version"]'
    by_others = [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}, ALL_PATHS]
    someone = {"subjects": [subject(user={"name": "bob"}), subject(user={"name": "*"})], "nonResourceRules": by_others}
    found = tried("/version", someone)
    assert (describe_verdict(found), found.path) == (
        "it matches everybody, all verbs and paths",
        ("spec", "rules", 0, "nonResourceRules", 1),
    )


def test_dangling_and_imagined_objects_are_described() -> None:
    spec = {"priorityLevelConfiguration": {"name": "no-such"}}
    broken = {"kind": "PriorityLevelConfiguration", "name": "exempt", "spec": {"type": "Limited"}}
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "lost", "spec": spec}, broken]), BUILT_IN)
    reasons = {skipped.flow_schema.name: describe_skipped(skipped) for skipped in explain_skipped(config)}
    places = {skipped.path for skipped in explain_skipped(config)}
    assert places == {("spec", "priorityLevelConfiguration", "name")}
    assert reasons["lost"] == 'the priority level "no-such" does not exist'
    assert reasons["probes"].startswith('the priority level "exempt" has type "Limited"')
    assert reasons["probes"].endswith("so it counts as absent")
    assert list(describe_imagined(config.imagined)) == [
        'The FlowSchema "exempt" or its priority level is missing. Instead, the server uses the built-in FlowSchema, and checks it before all others.',
        'The priority level "exempt" is missing; the server uses a built-in substitute.',
    ]
    assert list(describe_imagined(build_configuration(Objects(), BUILT_IN, defaults=False).imagined)) == [
        'The FlowSchema "catch-all" or its priority level is missing. Instead, the server uses the built-in FlowSchema, and checks it after all others.',
        'The FlowSchema "exempt" or its priority level is missing. Instead, the server uses the built-in FlowSchema, and checks it before all others.',
        'The priority level "catch-all" is missing; the server uses a built-in substitute.',
        'The priority level "exempt" is missing; the server uses a built-in substitute.',
    ]


def test_paths_are_in_the_document() -> None:
    config = build_configuration(Objects(), BUILT_IN)
    asked = digest("alice", ["system:authenticated"], "GET", "/api/v1/pods")
    for verdict in explain_resolution(config, asked, classify(config, asked)):
        span = verdict.flow_schema.document.span(verdict.path)
        assert verdict.flow_schema.document.source.line(span.line)
    assert builtin.is_built_in(config.order[0].document)
    assert RELEASE.name == "1.36"


def test_fallback_explains_flow_schemas_after_catch_all() -> None:
    rule = {"subjects": [{"kind": "User", "user": {"name": "bob"}}], "nonResourceRules": []}
    spec = {"matchingPrecedence": 10000, "priorityLevelConfiguration": {"name": "catch-all"}, "rules": [rule]}
    config = build_configuration(objects([{"kind": "FlowSchema", "name": "last", "spec": spec}]), BUILT_IN)
    nobody = digest("alice", [], "GET", "/api/v1/pods")
    names = [verdict.flow_schema.name for verdict in explain_resolution(config, nobody, classify(config, nobody))]
    assert names[-2:] == ["catch-all", "last"]


@given(FLOW_SCHEMAS, DIGESTS)
def test_verdict_agrees_with_the_match(values: list[dict[str, Any]], asked: RequestDigest) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    for schema in (*config.order, *config.dangling):
        found = explain_match(schema, asked)
        assert found.matched is matches_flow_schema(asked, schema.spec)
        assert describe_verdict(found)
        assert found.matched is (not found.mismatches) or not schema.spec.rules
        assert found.path[:2] == ("spec", "rules")


@given(FLOW_SCHEMAS, DIGESTS)
def test_last_explained_flow_schema_is_the_first_match(values: list[dict[str, Any]], asked: RequestDigest) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    resolution = classify(config, asked)
    story = list(explain_resolution(config, asked, resolution))
    if describe_fallback(resolution) is None:
        assert [verdict.matched for verdict in story] == [False] * resolution.position + [True]
        assert story[-1].flow_schema is resolution.flow_schema
    else:
        assert len(story) == len(config.order)
        assert not any(verdict.matched for verdict in story)
