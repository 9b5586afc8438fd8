"""Edges of the rules about one object that their pages have no room for: just inside, just outside, and what is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.checks.capacity import _percent
from apflint.checks.comparison import differences
from apflint.checks.requests import VERBS
from apflint.engine import Options, check
from apflint.fixes import suggestions
from apflint.model import LimitedPriorityLevelConfiguration, LimitResponse, QueuingConfiguration
from apflint.releases import release
from apflint.wording import join_words, quote, several

if TYPE_CHECKING:
    from apflint.finding import Finding

ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
ALICE = {"kind": "User", "user": {"name": "alice"}}


def manifest(kind: str, spec: dict[str, Any], version: str = "v1", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "x"} | metadata,
        "spec": spec,
    }


def schema(metadata: dict[str, Any] | None = None, level: str = "workload-low", **spec: Any) -> dict[str, Any]:
    rules = [{"subjects": [ALICE], "resourceRules": [ALL]}]
    base = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 2000, "rules": rules}
    return manifest("FlowSchema", base | spec, **metadata or {})


def covering(**rule: Any) -> dict[str, Any]:
    return schema(rules=[{"subjects": [ALICE], "resourceRules": [ALL | rule]}])


def level(queuing: dict[str, int] | None = None, **limited: Any) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    return manifest("PriorityLevelConfiguration", {"type": "Limited", "limited": {"limitResponse": response} | limited})


def found(rule: str, *objects: dict[str, Any]) -> list[Finding]:
    inputs = [(f"{at}.json", json.dumps(value).encode()) for at, value in enumerate(objects)]
    return [each for each in check(inputs, Options()).findings if each.rule == rule]


@pytest.mark.parametrize(
    ("precedence", "rejected"),
    [(0, False), (1, False), (10000, False), (10001, True), (-1, True), (2**31 - 1, True)],
)
def test_precedences_that_the_server_takes(precedence: int, rejected: bool) -> None:
    findings = found("APF201", schema(matchingPrecedence=precedence))
    assert ["Use a value from 2 to 10000" in finding.message for finding in findings] == [True] * rejected


def test_a_precedence_that_is_not_given_is_said_to_be_1000() -> None:
    (zero,) = found("APF509", schema(matchingPrecedence=0))
    (absent,) = found("APF509", schema(matchingPrecedence=None))
    assert zero.message.startswith("matchingPrecedence 0 counts as absent, so the API server sets it to 1000: ")
    assert absent.message.startswith("matchingPrecedence is absent, so the API server sets it to 1000: ")
    assert "catch-all (10000)" in absent.message
    for each in (zero, absent):
        assert each.fix is not None
        assert [operation[-1] for operation in each.fix.operations] == [1000]
    assert not found("APF509", schema(matchingPrecedence=1000))


# Flows


@pytest.mark.parametrize(
    ("subjects", "broad"),
    [
        ([ALICE], False),
        ([ALICE, ALICE], False),
        ([ALICE, {"kind": "User", "user": {"name": "bob"}}], True),
        ([{"kind": "User", "user": {"name": "*"}}], True),
        ([{"kind": "Group", "group": {"name": "dev"}}], True),
        ([{"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "runner"}}], False),
        ([{"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "*"}}], True),
    ],
)
@pytest.mark.parametrize("queues", [1, 2])
def test_many_users_in_one_flow(subjects: list[dict[str, Any]], broad: bool, queues: int) -> None:
    ours = schema(level="x", rules=[{"subjects": subjects, "resourceRules": [ALL]}])
    told = found("APF510", ours, level({"queues": queues, "handSize": 1, "queueLengthLimit": 5}))
    # With one queue all wait in it, whatever flow they are of.
    assert bool(told) is (broad and queues == 2)


# Queues


@pytest.mark.parametrize(
    ("queues", "hand", "length", "rules"),
    [
        (1, 1, 1, []),
        (64, 8, 50, []),
        (10_000_000, 1, 1, []),
        (10_000_001, 1, 1, ["APF307"]),
        (-1, 1, 1, ["APF307", "APF305"]),
        (64, -1, 1, ["APF309"]),
        (64, 8, -1, ["APF308"]),
        (8, 8, 1, []),
        (8, 9, 1, ["APF305"]),
        (1024, 6, 1, []),
        (1025, 6, 1, ["APF306"]),
        (1024, 7, 1, ["APF306"]),
    ],
)
def test_queues_that_the_server_takes(queues: int, hand: int, length: int, rules: list[str]) -> None:
    written = {"queues": queues, "handSize": hand, "queueLengthLimit": length}
    inputs = [("a.json", json.dumps(level(written)).encode())]
    rejected = [each.rule for each in check(inputs, Options()).findings if each.apiserver]
    assert rejected == rules


@pytest.mark.parametrize(("field", "most"), [("lendablePercent", 100), ("borrowingLimitPercent", None)])
def test_percentages(field: str, most: int | None) -> None:
    for percent in (0, 1, 100, 101, 2**31 - 1, -1):
        given: dict[str, Any] = {field: percent}
        told = found("APF310", level(**given))
        assert bool(told) is (percent < 0 or (most is not None and percent > most)), percent


def test_shares_are_named_as_in_the_version() -> None:
    for version, name in (("v1", "nominalConcurrencyShares"), ("v1beta3", "nominalConcurrencyShares")):
        given: dict[str, Any] = {name: -1}
        made = level(**given) | {"apiVersion": f"flowcontrol.apiserver.k8s.io/{version}"}
        inputs = [("a.json", json.dumps(made).encode())]
        told = [each for each in check(inputs, Options(kubernetes=release("1.30"))).findings if each.apiserver]
        assert [each.field for each in told] == [f"spec.limited.{name}"]


# Names and metadata


@pytest.mark.parametrize(
    ("prefix", "good"),
    [
        ("a-", True),
        ("a", True),
        ("-", False),
        ("-a", False),
        ("A-", True),
        ("a.-", True),
        ("a--", True),
        ("a_", False),
    ],
)
def test_prefixes_of_names(prefix: str, good: bool) -> None:
    # `maskTrailingDash` (apimachinery/pkg/api/validation/generic.go) puts an `a` in place of the last two characters.
    told = found("APF103", schema({"name": "", "generateName": prefix}))
    wrong = [each for each in told if each.apiserver and each.apiserver.field == "metadata.generateName"]
    assert not wrong if good else len(wrong) == 1
    if wrong:
        assert wrong[0].field == "metadata.generateName"


@pytest.mark.parametrize(
    ("finalizers", "fields"),
    [
        (["example.com/a"], []),
        (["orphan"], []),
        (["foregroundDeletion"], []),
        (["kubernetes"], []),
        (["plain"], ["metadata.finalizers[0]"]),
        (["example.com/a", "plain"], ["metadata.finalizers[1]"]),
        (["foregroundDeletion", "orphan"], ["metadata.finalizers"]),
    ],
)
def test_finalizers(finalizers: list[str], fields: list[str]) -> None:
    told = found("APF103", schema({"finalizers": finalizers}))
    assert [each.apiserver.field for each in told if each.apiserver] == fields


def test_finalizers_that_exclude_each_other_are_shown_at_the_one() -> None:
    (told,) = found("APF103", schema({"finalizers": ["foregroundDeletion", "example.com/a", "orphan"]}))
    assert told.field == "metadata.finalizers[2]"


def test_lists_in_which_an_entry_is_there_twice() -> None:
    twice = ["example.com/a", "example.com/a"]
    assert [each.field for each in found("APF106", schema({"finalizers": twice}))] == ["metadata.finalizers[1]"]
    for name in ("verbs", "apiGroups", "resources", "namespaces"):
        (told,) = found("APF106", covering(**{name: ["get", "list", "get"]}))
        assert told.field == f"spec.rules[0].resourceRules[0].{name}[2]"
        assert told.related[0].message == "the first one"
        assert told.fix is not None
        assert told.fix.title == 'remove the second "get"'
        assert not found("APF106", covering(**{name: ["*", "*"]}))  # that a star is alone is another rule's
    paths = {"verbs": ["get", "get"], "nonResourceURLs": ["/a", "/a"]}
    assert [
        each.field for each in found("APF106", schema(rules=[{"subjects": [ALICE], "nonResourceRules": [paths]}]))
    ] == ["spec.rules[0].nonResourceRules[0].verbs[1]", "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]"]


def test_a_status_that_says_nothing_is_no_status() -> None:
    nothing: tuple[Any, ...] = ({}, {"conditions": []}, {"conditions": None}, None)
    for status in nothing:
        assert not found("APF105", schema() | {"status": status})
    (told,) = found("APF105", schema() | {"status": {"conditions": [{"type": "Dangling", "status": "False"}]}})
    assert told.field == "status"


# What a rule covers


@pytest.mark.parametrize(
    ("group", "meant"),
    [
        ("core", ""),
        ("v1", ""),
        ("Apps", "apps"),
        ("apps/v1", "apps"),
        ("batch/v1beta1", "batch"),
        ("networking.k8s.io/v1", "networking.k8s.io"),
        ("apps/latest", None),
        ("core/v1", None),
        ("/v1", None),
        ("a b", None),
        ("*.k8s.io", None),
        ("apps/v1/x", None),
    ],
)
def test_groups_that_never_match_and_what_they_were_meant_to_be(group: str, meant: str | None) -> None:
    (told,) = found("APF503", covering(apiGroups=[group])) or found("APF504", covering(apiGroups=[group]))
    fix = told.fix
    assert (fix is None) is (meant is None)
    if fix is not None:
        assert not fix.safe
        assert [operation[-1] for operation in fix.operations][-1:] == [meant]


# Two values of one object


def test_how_two_values_differ() -> None:
    def limited(shares: int, queues: int | None, borrowing: int | None = None) -> LimitedPriorityLevelConfiguration:
        queuing = None if queues is None else QueuingConfiguration(queues, 6, 50)
        response = LimitResponse("Queue" if queuing else "Reject", queuing)
        return LimitedPriorityLevelConfiguration(shares, response, 0, borrowing)

    here = limited(5, 64)
    assert differences(here, here, "v1") == ""
    assert differences(here, limited(30, 64), "v1") == "nominalConcurrencyShares (30 there, 5 here)"
    assert differences(here, limited(30, 64), "v1beta2") == "assuredConcurrencyShares (30 there, 5 here)"
    assert differences(here, limited(5, 128), "v1") == "limitResponse.queuing.queues (128 there, 64 here)"
    assert differences(here, limited(5, 64, 7), "v1") == "borrowingLimitPercent (7 there, nothing here)"
    assert differences(limited(5, 64, 7), here, "v1") == "borrowingLimitPercent (nothing there, 7 here)"
    assert differences(here, limited(5, None), "v1") == (
        'limitResponse.type ("Reject" there, "Queue" here) and limitResponse.queuing'
    )


# What is said of a field, and what is offered


@pytest.mark.parametrize(
    ("level_type", "home"), [("Limited", "limited"), ("Exempt", "exempt"), ("Other", None), (None, None)]
)
def test_a_field_of_two_mappings_goes_into_that_of_the_type(level_type: str | None, home: str | None) -> None:
    (told,) = found("APF101", manifest("PriorityLevelConfiguration", {"type": level_type, "lendablePercent": 5}))
    assert [operation.path for operation in told.fix.operations] == [("spec", home)] if told.fix else home is None


@pytest.mark.parametrize("groups", [["*"], [""]])
def test_a_resource_outside_of_namespaces_in_whatever_group_it_is(groups: list[str]) -> None:
    (told,) = found("APF506", covering(apiGroups=groups, resources=["nodes"], clusterScope=False))
    assert '"nodes"' in told.message
    assert not found("APF506", covering(apiGroups=["x.io"], resources=["nodes"], clusterScope=False))


def test_what_is_wrong_with_a_key_is_shown_at_the_key() -> None:
    text = json.dumps(schema({"annotations": {"a b": "c"}, "labels": {"d e": "f"}}))
    findings = check([("a.json", text.encode())], Options()).findings
    shown = [text[each.span.column - 1 : each.span.end_column - 1] for each in findings if each.rule == "APF103"]
    assert sorted(shown) == ['"a b"', '"d e"']


def test_a_star_among_finalizers_is_a_name_like_others() -> None:
    assert [each.field for each in found("APF106", schema({"finalizers": ["*", "*"]}))] == ["metadata.finalizers[1]"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("maybe", 'expected true or false for "clusterScope", got the string "maybe".'),
        ("'maybe'", 'expected true or false for "clusterScope", got the string "maybe".'),
        ("'TRUE'", 'expected true or false for "clusterScope", got the string "TRUE". Remove the quotes: true.'),
        ("'true'", 'expected true or false for "clusterScope", got the string "true". Remove the quotes: true.'),
        ("'false'", 'expected true or false for "clusterScope", got the string "false". Remove the quotes: false.'),
        ("[]", 'expected true or false for "clusterScope", got a list.'),
        ("{}", 'expected true or false for "clusterScope", got a mapping.'),
    ],
)
def test_what_is_no_boolean(written: str, said: str) -> None:
    text = json.dumps(covering(clusterScope="HERE")).replace('"HERE"', written)
    (told,) = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF102"]
    assert f"{told.message.rstrip('.')}." == said
    plain = {"'true'": True, "'false'": False}.get(written)
    if told.fix is None:
        assert plain is None
    else:
        assert [operation[-1] for operation in told.fix.operations] == [plain]


def test_whatever_is_expected_has_a_name() -> None:
    told = found("APF102", schema(matchingPrecedence="x", rules={}, priorityLevelConfiguration=[]))
    assert sorted(each.message.partition(",")[0] for each in told) == [
        'expected a list for "rules"',
        'expected a mapping for "priorityLevelConfiguration"',
        'expected an integer for "matchingPrecedence"',
    ]
    (time,) = found("APF102", schema({"creationTimestamp": []}))
    assert "None" not in time.message


@pytest.mark.parametrize(
    ("queues", "hand", "help_text"),
    [
        (64, 16, "set handSize to 10 or less"),
        (10_000_000, 3, "set handSize to 2 or less or queues to 1,048,576 or less"),
        (64, 64, "set handSize to 10 or less"),
    ],
)
def test_help_for_too_much_entropy_names_what_fits(queues: int, hand: int, help_text: str) -> None:
    (finding,) = found("APF306", level({"queues": queues, "handSize": hand, "queueLengthLimit": 5}))
    assert finding.message.endswith(" bits of entropy, more than the maximum of 60")
    assert finding.help == help_text


@pytest.mark.parametrize(
    ("verb", "notes", "help_text"),
    [
        ("all", (), 'for all verbs use ["*"]'),
        ("head", ('The verb of HEAD requests for resources is "get".',), 'did you mean "get"?'),
        ("options", (), f"use {join_words(VERBS)}"),
        ("post", ('The verb of POST requests for resources is "create".',), 'did you mean "create"?'),
        ("impersonate", ('"impersonate" is a verb of RBAC only.',), f"use {join_words(VERBS)}"),
        ("get,list", (), "write each verb as a separate item"),
    ],
)
def test_help_for_an_unknown_verb_depends_on_the_verb(verb: str, notes: tuple[str, ...], help_text: str) -> None:
    (finding,) = found("APF211", covering(verbs=[verb]))
    assert finding.message == f'unknown verb "{verb}"'
    assert finding.notes == notes
    assert finding.help == help_text


def test_the_type_that_a_level_with_limits_should_have() -> None:
    for rule in ("APF301", "APF302"):
        value = manifest(
            "PriorityLevelConfiguration", {"type": "Exempt", "limited": {"limitResponse": {"type": "Reject"}}}
        )
        (told,) = found(rule, value)
        assert told.fix is not None
        assert told.fix.title == 'change "Exempt" to "Limited"'


@pytest.mark.parametrize(("kubernetes", "told"), [("1.28", False), ("1.29", False), ("1.30", True), ("1.31", True)])
def test_that_zero_shares_can_be_said_with_v1_is_said_where_that_is_so(kubernetes: str, told: bool) -> None:
    value = level(nominalConcurrencyShares=0) | {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta3"}
    inputs = [("a.json", json.dumps(value).encode())]
    (found,) = [
        each for each in check(inputs, Options(kubernetes=release(kubernetes))).findings if each.rule == "APF704"
    ]
    assert ("or 0 with v1 if none is" in found.message) is told


@pytest.mark.parametrize(
    ("version", "good"), [("apps/v1", True), ("v1", True), ("a/b/c", False), ("apps/", False), ("", False)]
)
def test_the_version_of_an_owner(version: str, good: bool) -> None:
    owner = {"apiVersion": version, "kind": "Deployment", "name": "x", "uid": "y"}
    told = found("APF103", schema({"ownerReferences": [owner]}))
    assert [each.field for each in told] == ([] if good else ["metadata.ownerReferences[0].apiVersion"])


@pytest.mark.parametrize("controllers", [0, 1, 2, 3])
def test_one_owner_may_be_the_controller(controllers: int) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    owners = [owner | {"uid": str(at), "controller": at < controllers} for at in range(3)]
    told = found("APF103", schema({"ownerReferences": owners}))
    assert [each.field for each in told] == ["metadata.ownerReferences[1].controller"] * (controllers > 1)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("deployments/*", "Name them: deployments/scale and deployments/status"),
        ("widgets/*", "Name each subresource"),
    ],
)
def test_a_star_for_subresources(name: str, hint: str) -> None:
    (told,) = found("APF504", covering(resources=["pods", name]))
    assert told.message == f'"{name}" matches nothing: `*` stands for all resources only alone. {hint}'


@pytest.mark.parametrize(("groups", "told"), [(["apps"], True), (["*"], True), ([""], False)])
def test_a_short_name_is_told_in_the_groups_that_have_the_resource(groups: list[str], told: bool) -> None:
    said = ['"deploy" never matches: the resource is called "deployments", as in URLs']
    assert [each.message for each in found("APF504", covering(apiGroups=groups, resources=["deploy"]))] == said * told


@pytest.mark.parametrize(
    ("url", "good"),
    [("/a/*", True), ("/*", True), ("*", True), ("/a*", False), ("/*/a", False), ("/*/*", False), ("/a*/*", False)],
)
def test_where_a_star_of_a_path_may_stand(url: str, good: bool) -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": [url]}
    told = found("APF214", schema(rules=[{"subjects": [ALICE], "nonResourceRules": [paths]}]))
    assert ['"*" is allowed only as the last segment' in each.message for each in told] == [True] * (not good)


def test_what_goes_with_another_type_is_not_looked_into() -> None:
    bad = {"nominalConcurrencyShares": -1, "lendablePercent": 200}
    for level_type, other, name in (("Limited", "exempt", "x"), ("Exempt", "limited", "exempt")):
        mine = {} if level_type == "Exempt" else {"limited": {"limitResponse": {"type": "Reject"}}}
        ours = manifest("PriorityLevelConfiguration", {"type": level_type, **mine, other: bad}, name=name)
        assert [each.field for each in found("APF302", ours)] == [f"spec.{other}"]
        assert not found("APF304", ours)
        assert not found("APF310", ours)


@pytest.mark.parametrize(("written", "fixed"), [("Gro", False), ("oup", False), ("Exem", True), ("empt", True)])
def test_a_part_of_a_word_is_meant_for_it_from_four_letters_on(written: str, fixed: bool) -> None:
    if fixed:
        (told,) = found("APF302", manifest("PriorityLevelConfiguration", {"type": written}, name="exempt"))
    else:
        rules = [{"subjects": [{"kind": written, "group": {"name": "dev"}}], "resourceRules": [ALL]}]
        (told,) = found("APF207", schema(rules=rules))
    assert (told.fix is not None) is fixed


def test_list_of_namespaces_is_outside_of_them() -> None:
    (told,) = found("APF505", covering(apiGroups=[""], resources=["namespaces"], verbs=["list"], clusterScope=False))
    assert "does not match list across all namespaces" in told.message
    for verb, fields in (("create", ["spec.rules[0].resourceRules[0].namespaces"]), ("get", [])):
        told_of = found("APF505", covering(apiGroups=[""], resources=["namespaces"], verbs=[verb], clusterScope=False))
        assert [each.field for each in told_of] == fields  # a namespace itself is in the namespace of its own name


def test_resources_whose_scope_fits_no_request_are_named() -> None:
    (told,) = found("APF506", covering(apiGroups=[""], resources=["nodes", "persistentvolumes"], clusterScope=False))
    assert told.message.startswith('"nodes" and "persistentvolumes": requests for them are in no namespace')
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "secrets"], "namespaces": []}
    (told,) = found("APF506", covering(**part))
    assert told.message.startswith('"pods" and "secrets": requests with "get" for them are always in a namespace')


@pytest.mark.parametrize(
    ("verbs", "fixed"),
    [(["get", "list"], [True]), (["list"], [False]), (["get", "create"], [False]), (["get", "delete", "patch"], [])],
)
def test_a_read_is_get_where_no_resource_is_read(verbs: list[str], fixed: list[bool]) -> None:
    paths = {"verbs": verbs, "nonResourceURLs": ["/a"]}
    told = found("APF504", schema(rules=[{"subjects": [ALICE], "nonResourceRules": [paths]}]))
    assert [each.fix is not None for each in told] == fixed


def test_the_kind_of_a_subject_is_changed_when_asked_for() -> None:
    rules = [{"subjects": [{"kind": "User", "group": {"name": "dev"}}], "resourceRules": [ALL]}]
    fixes = [each.fix for each in found("APF207", schema(rules=rules)) if each.fix]
    assert {(fix.title, fix.safe) for fix in fixes} == {('change "User" to "Group"', False)}


def test_conditions_are_not_for_manifests() -> None:
    (told,) = found("APF101", {**schema(), "conditions": []})
    assert told.fix is None


def test_each_rule_whose_scope_fits_no_request_is_told() -> None:
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True}
    parts = ({**part, "resources": ["widgets"]}, part, {**part, "namespaces": ["*"]}, part)
    rules = [{"subjects": [ALICE], "resourceRules": [each]} for each in parts]
    assert [each.field for each in found("APF506", schema(rules=rules))] == [
        "spec.rules[1].resourceRules[0].clusterScope",
        "spec.rules[3].resourceRules[0].clusterScope",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("precedence", "matchingPrecedence"),
        ("priority", "matchingPrecedence"),
        ("priorityLevel", "priorityLevelConfiguration"),
        ("distinguisher", "distinguisherMethod"),
        ("paths", "nonResourceURLs"),
        ("concurrencyShares", "nominalConcurrencyShares"),
        ("shares", "nominalConcurrencyShares"),
    ],
)
def test_what_people_call_a_field(written: str, meant: str) -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/a"]} | ({written: ["/b"]} if written == "paths" else {})
    ours = schema(rules=[{"subjects": [ALICE], "nonResourceRules": [paths]}])
    if written.lower().endswith("shares"):
        ours = level()
        ours["spec"]["limited"][written] = 5
    elif written != "paths":
        ours["spec"][written] = {}
    (told,) = found("APF101", ours)
    assert told.message.endswith(f'. Did you mean "{meant}"?')


@pytest.mark.parametrize(
    ("kubernetes", "came", "part"),
    [
        ("1.27", "1.28", {"type": "Exempt", "exempt": {}}),
        ("1.25", "1.26", {"type": "Limited", "limited": {"lendablePercent": 5}}),
        ("1.25", "1.26", {"type": "Limited", "limited": {"borrowingLimitPercent": 5}}),
    ],
)
def test_a_field_of_a_later_release(kubernetes: str, came: str, part: dict[str, Any]) -> None:
    text = json.dumps(manifest("PriorityLevelConfiguration", part, "v1beta2"))
    told = check([("a.json", text.encode())], Options(kubernetes=release(kubernetes))).findings
    (message,) = [each.message for each in told if each.rule == "APF101"]
    assert message.endswith(f" It came with Kubernetes {came}")
    astray = json.dumps(manifest("FlowSchema", part, "v1beta2"))
    told = check([("a.json", astray.encode())], Options(kubernetes=release(came))).findings
    messages = [each.message for each in told if each.rule == "APF101"]
    assert messages
    assert not any("It came with" in each for each in messages)


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True", "0", "f", "yes", "tRUE", "false", ""])
def test_what_the_server_reads_as_true(value: str) -> None:
    ours = level()
    ours["metadata"] = {"name": "workload-low", "annotations": {"apf.kubernetes.io/autoupdate-spec": value}}
    told = found("APF404", ours)
    assert ["puts its own spec back" in each.message for each in told] == [True] * (
        value in ("1", "t", "T", "TRUE", "true", "True")
    )


def test_what_is_no_number_of_json_is_told_once_wherever_it_is() -> None:
    text = (
        json.dumps(schema(matchingPrecedence=-11.0, more={"x": -22.0}))
        .replace("-11.0", ".inf")
        .replace("-22.0", ".NaN")
    )
    told = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF102"]
    said = "YAML parses {} as infinity or NaN, which JSON, and so Kubernetes, cannot represent"
    assert [(each.field, each.message) for each in told] == [
        ("spec.matchingPrecedence", said.format(".inf")),
        ("spec.more.x", said.format(".NaN")),
    ]
    assert [each.apiserver.field for each in told if each.apiserver] == ["spec.matchingPrecedence", "spec.more.x"]


def test_what_is_long_is_cut() -> None:
    assert quote("x" * 78) == f'"{"x" * 78}"'
    assert quote("x" * 79) == f'"{"x" * 77}…"'
    assert quote(["x" * 76]) == f'["{"x" * 76}"]'
    assert quote(["x" * 77]) == f'["{"x" * 77}…'


# Versions, and what is nearly an object of ours


@pytest.mark.parametrize(
    ("version", "kubernetes", "said"),
    [
        ("", "1.36", 'apiVersion has no version after "flowcontrol.apiserver.k8s.io".'),
        ("v9", "1.36", '"v9" is no version of flowcontrol.apiserver.k8s.io, in any release of Kubernetes.'),
        ("v1alpha1", "1.36", "Kubernetes 1.36 does not serve v1alpha1: it was an alpha version, and gone with 1.21."),
        ("v1beta2", "1.36", "Kubernetes 1.36 does not serve v1beta2 any more: it was removed in 1.29."),
        ("v1", "1.28", "Kubernetes 1.28 does not serve v1 yet: it came with 1.29."),
    ],
)
def test_versions_that_are_not_served(version: str, kubernetes: str, said: str) -> None:
    value = schema() | {"apiVersion": f"flowcontrol.apiserver.k8s.io/{version}"}
    findings = check([("a.json", json.dumps(value).encode())], Options(kubernetes=release(kubernetes))).findings
    (told,) = [each for each in findings if each.rule == "APF701"]
    assert told.message.startswith(f"{said} `kubectl apply` fails. It serves flowcontrol.apiserver.k8s.io/v1")
    assert ("and `apflint migrate --to" in told.message) is (version in ("v1alpha1", "v1beta2"))


def test_a_line_that_is_indented_with_no_break_spaces() -> None:
    text = json.dumps(schema(more=1)).replace("more", "\u00a0rules")
    (told,) = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF101"]
    assert told.message.endswith("Its line is indented with no-break spaces (U+00A0), which YAML takes for text")


@pytest.mark.parametrize(
    ("api_version", "kind", "fixed"),
    [
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchem", True),
        ("flowcontrol.apiserver.k8s.io/v1", '"Flow\\x53chem"', False),  # not as it is written
        ("flowcontrol.apiserver.k8s.oi/v1", "FlowSchema", True),
        ("flowcontrol.apiserver.k8s.oi/v9", "FlowSchema", False),  # no version of ours
    ],
)
def test_what_is_nearly_ours_is_corrected_where_that_is_plain(api_version: str, kind: str, fixed: bool) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n"
    (told,) = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF005"]
    assert (told.fix is not None) is fixed


def test_what_is_nearly_ours_is_corrected_in_its_own_document() -> None:
    nearly = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: {}\nmetadata: {{name: x}}\n---\n"
    text = nearly.format("FlowSchem") + nearly.format('"Flow\\x53chem"')
    told = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF005"]
    assert [each.fix is not None for each in told] == [True, False]


def test_a_tab_is_said_to_be_one() -> None:
    text = f"{json.dumps(schema())}\n---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n\tname: x\n"
    (told,) = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF001"]
    assert told.message == "a tab cannot indent in YAML. Use blanks. Nothing of this document can be read"


def test_a_field_that_is_nearly_one_of_its_place_goes_nowhere_else() -> None:
    rules = [{"subjects": [ALICE], "resources": ["pods"]}]
    (told,) = [each for each in found("APF101", schema(rules=rules)) if '"resources"' in each.message]
    assert told.fix is None


@pytest.mark.parametrize(("kind", "home"), [("ServiceAccount", "serviceAccount"), ("Group", None), ("User", None)])
def test_a_namespace_goes_into_a_service_account_only(kind: str, home: str | None) -> None:
    rules = [{"subjects": [{"kind": kind, "namespace": "ci"}], "resourceRules": [ALL]}]
    (told,) = found("APF101", schema(rules=rules))
    assert (told.fix and told.fix.title) == (home and f'move "namespace" into "{home}"')


def test_what_goes_with_another_type_is_removed_when_asked_for() -> None:
    limited = {"limitResponse": {"type": "Reject"}}
    spec = {"type": "Limited", "limited": limited, "exempt": {"lendablePercent": 5}}
    (told,) = found("APF302", manifest("PriorityLevelConfiguration", spec))
    assert told.fix is not None
    assert told.fix.safe is False
    assert told.field == "spec.exempt"
    assert [operation.path for operation in told.fix.operations] == [("spec", "exempt")]
    (told,) = found("APF302", manifest("PriorityLevelConfiguration", spec | {"type": "Exempt"}, name="exempt"))
    assert told.fix is not None
    assert told.fix.safe is False
    assert told.field == "spec.limited"
    assert told.message == 'field "limited" is not allowed in a priority level of type Exempt'
    assert told.help == 'remove "limited"'
    (other,) = found("APF302", manifest("PriorityLevelConfiguration", spec | {"type": "Exempt"}))
    assert other.help == "change the type to Limited"
    assert [operation.path for operation in told.fix.operations] == [("spec", "limited")]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**70])
def test_a_number_that_does_not_fit(number: int) -> None:
    (told,) = found("APF102", schema(matchingPrecedence=number))
    assert told.message.startswith(
        'expected an integer from -2,147,483,648 to 2,147,483,647 for "matchingPrecedence", got the number '
    )


def test_a_member_of_another_type_is_shown_at_its_key() -> None:
    limited = {"limitResponse": {"type": "Reject"}}
    for level_type, member in (("Limited", "exempt"), ("Exempt", "limited")):
        spec = {"type": level_type, "limited": limited, "exempt": {"lendablePercent": 5}}
        text = json.dumps(manifest("PriorityLevelConfiguration", spec, name="exempt"))
        (told,) = [each for each in check([("a.json", text.encode())], Options()).findings if each.rule == "APF302"]
        assert text[told.span.column - 1 : told.span.end_column - 1] == f'"{member}"'


def test_a_second_controller_is_shown_beside_the_first() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "ab"]
    (told,) = found("APF103", schema({"ownerReferences": owners}))
    assert told.field == "metadata.ownerReferences[1].controller"
    assert [each.message for each in told.related] == ["the first one"]


def test_a_title_names_a_few() -> None:
    assert several(["a"], 4) == "a"
    assert several(["a", "b", "c"], 4) == "a, b and c"
    assert several(["a", "b", "c", "d"], 4) == "a, b, c and d"
    assert several(["a", "b", "c", "d", "e"], 4) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("name", "level_type", "message", "required"),
    [
        ("exempt", "X", 'unknown priority level type "X"', "Exempt"),
        ("exempt", "", "priority level has no type", "Exempt"),
        ("x", "X", 'unknown priority level type "X"', "Limited"),
    ],
)
def test_help_for_an_unknown_type_depends_on_the_name(name: str, level_type: str, message: str, required: str) -> None:
    (finding,) = found("APF302", manifest("PriorityLevelConfiguration", {"type": level_type}, name=name))
    assert finding.message == message
    assert str(finding.help).startswith(f"use type {required}")


def test_a_name_beside_the_fields_of_a_spec_may_mean_the_level_or_the_object() -> None:
    value = schema(name="workload-low")
    del value["spec"]["priorityLevelConfiguration"]
    (told,) = found("APF101", value)
    assert told.fix is None


@pytest.mark.parametrize(
    ("field", "text", "number"),
    [
        ("generation", "5000000000", 5_000_000_000),
        ("generation", "9223372036854775807", 2**63 - 1),
        ("generation", "-9223372036854775808", -(2**63)),
        ("generation", "9223372036854775808", None),
        ("generation", "007", None),
        ("generation", "1e3", None),
    ],
)
def test_a_number_in_quotes_is_written_without_them_if_it_fits(field: str, text: str, number: int | None) -> None:
    (told,) = found("APF102", schema({field: text}))
    assert (told.fix is None) is (number is None)
    if told.fix is not None:
        assert [operation[-1] for operation in told.fix.operations] == [number]


@pytest.mark.parametrize(
    ("text", "number"), [("2147483647", 2**31 - 1), ("2147483648", None), ("-2147483648", -(2**31))]
)
def test_a_small_number_in_quotes_is_small(text: str, number: int | None) -> None:
    (told,) = found("APF102", schema(matchingPrecedence=text))
    assert [operation[-1] for operation in told.fix.operations] == [number] if told.fix else number is None


def test_where_a_name_is_missing_or_wrong() -> None:
    for metadata, fields in (
        ({"name": ""}, ["metadata.name"]),
        ({"name": "A"}, ["metadata.name"]),
        ({"name": "", "generateName": "A-"}, ["metadata.generateName"]),
        ({"name": "", "generateName": "a-"}, []),
        ({"name": "", "generateName": "_"}, ["metadata.generateName", "metadata.generateName"]),
    ):
        assert [each.field for each in found("APF103", schema(metadata))] == fields, metadata


def test_subjects_as_in_a_role_binding() -> None:
    def said(subject: dict[str, Any]) -> dict[str, str]:
        value = schema(rules=[{"subjects": [subject], "resourceRules": [ALL]}])
        return {str(each.field).rpartition(".")[2]: each.message for each in found("APF101", value)}

    told = said({"kind": "ServiceAccount", "name": "runner", "namespace": "ci", "apiGroup": ""})
    assert told["name"].endswith('with `serviceAccount: {namespace: "ci", name: "runner"}`')
    assert told["namespace"].endswith('It goes into "serviceAccount" with the name')
    assert told["apiGroup"].endswith("Subjects of RBAC have it; subjects of a FlowSchema do not: leave it out")
    assert said({"kind": "ServiceAccount", "namespace": "ci"})["namespace"].endswith('{namespace: "ci", name: "..."}`')
    told = said({"kind": "User", "name": "alice", "namespace": "ci"})
    assert told["name"].endswith('`kind: User` with `user: {name: "alice"}`')
    assert "otherwise than in RBAC" not in told["namespace"]
    assert "RBAC" not in said({"kind": "Robot", "name": "alice"})["name"]
    assert "RBAC" not in said({"kind": 5, "name": "alice"})["name"]
    told = said({"kind": "serviceaccounts", "name": "runner", "namespace": "ci"})  # its kind is another finding
    assert told["name"].endswith('`kind: ServiceAccount` with `serviceAccount: {namespace: "ci", name: "runner"}`')
    assert told["namespace"].endswith('It goes into "serviceAccount" with the name')


def test_a_long_prefix_is_cut_where_the_server_cuts_it() -> None:
    """Bytes count; what is left of a letter that was cut is left out."""
    assert found("APF103", schema({"name": "", "generateName": "a" + "\u00e9" * 40}))
    assert not found("APF103", schema({"name": "", "generateName": "a" * 253}))


def test_an_account_by_its_user_name_is_taken_apart_when_asked_for() -> None:
    for namespace in ("", "ci"):
        account = {"namespace": namespace, "name": "system:serviceaccount:ci:runner"}
        subject = {"kind": "ServiceAccount", "serviceAccount": account}
        told = found("APF208", schema(rules=[{"subjects": [subject], "resourceRules": [ALL]}]))
        (fix,) = [each.fix for each in told if each.fix]
        assert fix.safe is False
        assert [operation[-1] for operation in fix.operations] == (["runner"] if namespace else ["runner", "ci"])


def test_what_is_written_on_several_lines_is_not_repeated() -> None:
    text = json.dumps(covering(resources="HERE")).replace('"HERE"', '"po\\\n  ds"')
    (told,) = [each for each in check([("a.yaml", text.encode())], Options()).findings if each.rule == "APF102"]
    assert told.message == 'expected a list for "resources", got the string "pods". Write a list in brackets'
    (told,) = found("APF102", covering(resources="p" * 41))
    assert told.message.endswith("Write a list in brackets")
    (told,) = found("APF102", covering(resources="p" * 38))
    assert told.message.endswith(f'Write a list: ["{"p" * 38}"]')


def test_a_text_in_place_of_a_mapping_of_many_fields() -> None:
    (told,) = found("APF102", manifest("PriorityLevelConfiguration", {"type": "Limited", "limited": "30"}))
    assert told.message == 'expected a mapping for "limited", got the string "30"'
    (told,) = found("APF102", schema(priorityLevelConfiguration="workload-low"))
    assert told.message.endswith("Write {name: workload-low}")


def test_a_star_that_is_not_alone() -> None:
    (twice,) = found("APF210", covering(verbs=["*", "*"]))
    assert twice.message == '"*" is not the only item of verbs'
    assert twice.help == 'list "*" once'
    (others,) = found("APF210", covering(verbs=["get", "*", "list"]))
    assert others.help == 'remove the other items, or "*"'
    assert others.field == "spec.rules[0].resourceRules[0].verbs[1]"
    assert others.fix is not None
    assert others.fix.title == 'remove "get" and "list" beside "*"'


@pytest.mark.parametrize(
    ("subject", "help_text"),
    [
        ({"kind": "User"}, "add user: {name: ...}"),
        ({"kind": "User", "group": {"name": "dev"}}, "add user: {name: ...}, or change kind to Group"),
        (
            {"kind": "ServiceAccount", "user": {"name": "alice"}},
            "add serviceAccount: {namespace: ..., name: ...}, or change kind to User",
        ),
        (
            {"kind": "ServiceAccount", "user": {"name": "system:serviceaccount:ci:runner"}},
            "add serviceAccount: {namespace: ci, name: runner}, or change kind to User",
        ),
        (
            {"kind": "User", "group": {"name": "dev"}, "serviceAccount": {"namespace": "a", "name": "b"}},
            "add user: {name: ...}",
        ),
    ],
)
def test_help_for_a_missing_member_depends_on_the_others(subject: dict[str, Any], help_text: str) -> None:
    (missing, *others) = found("APF207", schema(rules=[{"subjects": [subject], "resourceRules": [ALL]}]))
    member = missing.field.rpartition(".")[2]
    assert missing.message == f'subject of kind {subject["kind"]} has no field "{member}"'
    assert missing.help == help_text
    assert len(others) == len(subject) - 1


def test_a_member_of_another_kind_is_shown_at_its_key() -> None:
    text = json.dumps(schema(rules=[{"subjects": [ALICE | {"group": {"name": "dev"}}], "resourceRules": [ALL]}]))
    (told,) = [each for each in check([("a.json", text.encode())], Options()).findings if each.rule == "APF207"]
    assert text[told.span.column - 1 : told.span.end_column - 1] == '"group"'
    assert told.fix is None


def test_what_is_wrong_with_a_whole_mapping_is_shown_at_its_key() -> None:
    for rule, value, key in (
        ("APF215", schema({"name": "catch-all"}), '"spec"'),
        ("APF508", schema(), '"resourceRules"'),
        ("APF103", schema({"annotations": {"a": "x" * 256 * 1024}}), '"annotations"'),
    ):
        text = json.dumps(value)
        (told,) = [each for each in check([("a.json", text.encode())], Options()).findings if each.rule == rule]
        assert text[told.span.column - 1 : told.span.end_column - 1] == key


def test_probabilities_in_percent() -> None:
    assert [_percent(each) for each in (None, 0.0, 0.0001234, 0.0999, 0.1, 0.456, 1.0)] == [
        "0%",
        "0%",
        "0.012%",
        "10%",
        "10%",
        "46%",
        "100%",
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("name", "Write {name: name}"),
        ("name:x", "Is a space missing after the colon?"),
        ("x:y", "Write {name: x:y}"),
        ("name:", "Write {name: name:}"),
    ],
)
def test_a_text_in_place_of_a_mapping_of_one_field(written: str, said: str) -> None:
    (told,) = found("APF102", schema(priorityLevelConfiguration=written))
    assert told.message.endswith(f". {said}")


@pytest.mark.parametrize(("level_type", "fields"), [("Exempt", ["spec.exempt.lendablePercent"]), ("Limited", [])])
def test_percentages_of_a_member_that_does_not_count(level_type: str, fields: list[str]) -> None:
    spec = {"type": level_type, "limited": {"limitResponse": {"type": "Reject"}}, "exempt": {"lendablePercent": 200}}
    told = found("APF310", manifest("PriorityLevelConfiguration", spec, name="exempt"))
    assert [each.field for each in told] == fields


def test_of_many_unknown_verbs_the_first_are_named() -> None:
    verbs = [f"x{number}" for number in range(400)]
    (told,) = found("APF211", covering(verbs=verbs))
    assert told.message == 'unknown verbs "x0", "x1", "x2", "x3" and 396 more'
    (told,) = found("APF211", covering(verbs=verbs[:5]))
    assert told.message == 'unknown verbs "x0", "x1", "x2", "x3" and "x4"'


@given(st.lists(st.sampled_from("abAB"), min_size=1), st.data())
def test_one_item_is_replaced_as_among_several(items: list[str], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(items) - 1))
    new = data.draw(st.sampled_from("abcABC").filter(lambda item: item != items[number]))
    one = suggestions.replace_item(("list", number), items[number], new, set(items), safe=False)
    assert one == suggestions.replace_items(("list",), items, {number: new}, safe=False)
