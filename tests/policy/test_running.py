"""Each kind of expectation, met and not met. Properties are compared with all requests of a small set."""

from __future__ import annotations

import itertools
import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.configurations import BUILT_IN, FLOW_SCHEMAS, GROUPS, RELEASE, URLS, USERS

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.match import RequestDigest, UserInfo, matches_policy_rule
from apflint.evaluate.requestinfo import is_seen_by_apf, parse_request_info
from apflint.load import load
from apflint.location import field_path
from apflint.policy.expectation import Property, Suite
from apflint.policy.parser import parse_suite
from apflint.policy.running import Runner
from apflint.proofs.request_space import has_authentic_groups
from apflint.releases import parse_release
from apflint.requests.request_words import parse_command_line
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from apflint.policy.running import ExpectationResult
    from apflint.releases import Release

EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}


def schema(name: str, level: str, precedence: int, subject: dict[str, Any], **spec: Any) -> dict[str, Any]:
    rules = [{"subjects": [subject], "resourceRules": [EVERYTHING]}]
    fields = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": rules, **spec}
    return {"kind": "FlowSchema", "name": name, "spec": fields}


def level(name: str, response: dict[str, Any], **limited: Any) -> dict[str, Any]:
    spec = {"type": "Limited", "limited": {"nominalConcurrencyShares": 20, "limitResponse": response, **limited}}
    return {"kind": "PriorityLevelConfiguration", "name": name, "spec": spec}


DEV = {"kind": "Group", "group": {"name": "dev"}}
ALICE = {"kind": "User", "user": {"name": "alice"}}
OURS = [
    level("builds", {"type": "Reject"}),
    level("batch", {"type": "Queue", "queuing": {"queues": 8, "handSize": 2}}, lendablePercent=50),
    schema("dev", "builds", 500, DEV),
    schema("alice", "batch", 510, ALICE, distinguisherMethod={"type": "ByNamespace"}),
    schema("lost", "gone", 520, ALICE),
    schema("late", "batch", 530, DEV),
    schema("free", "exempt", 400, {"kind": "Group", "group": {"name": "ops"}}),
]


def built(values: list[dict[str, Any]]) -> Configuration:
    """Return the configuration of a server with these objects.

    The objects are loaded from text, so that they have positions.
    """
    items = [
        {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": value["kind"],
            "metadata": {"name": value["name"]},
            "spec": value["spec"],
        }
        for value in values
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    return build_configuration(build_workspace([load("objects.json", text.encode())], RELEASE), BUILT_IN)


CONFIGURATION = built(OURS)


def suite(value: dict[str, Any]) -> Suite:
    found = parse_suite("suite.json", json.dumps(value).encode())
    assert found.suite is not None, found.mistakes
    return found.suite


def run(tests: Suite, known: Configuration, release: Release) -> list[ExpectationResult]:
    limits = compute_limits(tuple(known.levels.values()), known.order, 600, release)
    return list(Runner(tests, known, limits).run())


def outcome(test: dict[str, Any], known: Configuration = CONFIGURATION, **top: Any) -> ExpectationResult:
    (found,) = run(suite({"tests": [test], **top}), known, RELEASE)
    return found


def example(request: str, reaches: Any) -> dict[str, Any]:
    return {"request": request, "reaches": reaches}


PASSING = [
    example("list pods -n a --as bob --as-group dev", {"flowSchema": "dev", "priorityLevel": "builds"}),
    example("list pods -n a --as bob --as-group dev", {"whenFull": "rejected", "minSeats": 1}),
    example("list pods -n a --as alice", {"flowSchema": ["x", "alice"][1:], "distinguisher": "a", "whenFull": "queued"}),
    example("list pods -A --as alice", {"distinguisher": ""}),
    example("list pods -n a --as alice", {"minSeats": 21}),
    example("list pods -n a --as alice", {"minSeats": 21, "nominalSeats": 43}),
    example("get /healthz --as system:anonymous", "exempt"),
    example("list pods --as x --as-group system:masters", {"priorityLevel": "exempt", "minSeats": 9999, "nominalSeats": 9999}),
    example("list pods --as x --as-group system:masters", {"whenFull": "dispatched"}),
    {"never": {"subject": {"user": "alice"}, "reaches": "workload-low"}},
    {"never": {"subject": {"group": "dev"}, "resources": "*", "reaches": {"flowSchema": "late"}}},
    {"never": {"except": [{"subject": {"group": ["ops", "system:masters"]}}, {"nonResourceURLs": ["/healthz", "/livez", "/readyz"]}],
               "reaches": "exempt"}},
    {"always": {"subject": {"group": "ops"}, "resources": "secrets", "reaches": {"whenFull": "dispatched", "minSeats": 50, "nominalSeats": 50}}},
    {"always": {"subject": {"user": "alice"}, "resources": "*", "reaches": ["batch", "builds", "exempt"],
                "except": {"subject": {"group": ["system:nodes", "system:serviceaccounts"]}}}},
    {"reachable": {"flowSchema": ["dev", "alice"], "priorityLevel": "batch"}},
    {"unreachable": {"flowSchema": ["late", "lost"], "priorityLevel": "catch-all"}},
]  # fmt: skip


@pytest.mark.parametrize("test", PASSING)
def test_expectation_holds(test: dict[str, Any]) -> None:
    found = outcome(test)
    assert found.passed, (found.happened, found.reasons)
    assert (found.happened, found.reasons) == ("", ())
    if "request" not in test:
        assert found.request is None


# (expectation, path of the violated value, what happened instead, parts of the reasons in order)
FAILING: list[tuple[dict[str, Any], str, str, list[str]]] = [
    (
        example("list pods -n a --as alice --as-group dev", "batch"),
        "reaches",
        'the priority level is "builds"',
        ['"dev"', "comes first", '"alice"', "matchingPrecedence is 510, not 500", '"late"', "530"],
    ),
    (
        example("list pods -n a --as bob", {"flowSchema": "alice"}),
        "reaches.flowSchema",
        'the FlowSchema is "global-default"',
        ["comes first", '"alice"', "does not match", "user"],
    ),
    (
        example("list pods -n a --as alice", {"priorityLevel": "batch", "minSeats": 40}),
        "reaches.minSeats",
        "keeps 21 seats of 43, and lends the others",
        ["20 shares", "lends 50%"],
    ),
    (
        example("list pods -n a --as alice", {"minSeats": 21, "nominalSeats": 44}),
        "reaches.nominalSeats",
        '"batch" has 43 nominal seats',
        ["20 shares, which are 43 seats", "lends 50%"],
    ),
    (
        example("list pods -n a --as alice", {"flowSchema": "alice", "distinguisher": "alice"}),
        "reaches.distinguisher",
        'the distinguisher is "a"',
        ["ByNamespace"],
    ),
    (
        example("list pods -n a --as bob --as-group dev", {"flowSchema": "dev", "distinguisher": "bob"}),
        "reaches.distinguisher",
        'the distinguisher is ""',
        ["fewer than 2 queues"],
    ),
    (
        example("list pods -n a --as bob --as-group dev", {"whenFull": ["queued", "dispatched"]}),
        "reaches.whenFull",
        "a request that finds no free seat is rejected",
        ["comes first"],
    ),
    (
        example("list pods -n a --as alice --as-group dev", {"flowSchema": "lost"}),
        "reaches.flowSchema",
        'the FlowSchema is "dev"',
        ["comes first", 'skips "lost"', '"gone" does not exist'],
    ),
    (example("get pods/log x -n a --as alice", "batch"), "request", "it reaches no priority level", ["long-running"]),
    (example("list pods --as alice", "bach"), "reaches", 'this configuration has no priority level "bach". Did you mean "batch"?', []),
    ({"never": {"reaches": {"flowSchema": ["dev", "dave"]}}}, "never.reaches.flowSchema[1]", 'no FlowSchema "dave"', []),
    ({"never": {"subject": {"user": "carol"}, "reaches": "exempt"}}, "never.reaches", "this request does", ["comes first"]),
    (
        {"always": {"subject": {"group": "dev"}, "resources": "*", "reaches": {"priorityLevel": "builds"}}},
        "always.reaches.priorityLevel",
        "this request does not: the priority level is",
        ["comes first", "also matches the request"],
    ),
    (
        {"always": {"subject": {"user": "alice"}, "resources": "pods", "reaches": {"minSeats": 30}}},
        "always.reaches.minSeats",
        "this request does not",
        ["comes first", "shares"],
    ),
    (
        {"never": {"subject": {"user": "alice"}, "except": {"subject": {"user": "*"}}, "reaches": "exempt"}},
        "never",
        "the expectation describes no possible request",
        ["misspellings"],
    ),
    (
        {"always": {"verbs": "list", "resources": "pods/exec", "reaches": "exempt"}},
        "always",
        "the expectation describes no possible request",
        ["misspellings"],
    ),
    ({"reachable": {"flowSchema": ["dev", "late"]}}, "reachable.flowSchema[1]", 'FlowSchema "late"', ["is captured by", '"dev"']),
    ({"reachable": {"flowSchema": "lost"}}, "reachable.flowSchema", 'FlowSchema "lost"', ['skips "lost"']),
    ({"reachable": {"priorityLevel": "catch-all"}}, "reachable.priorityLevel", '"catch-all"', ["is captured by"]),
    ({"unreachable": {"flowSchema": "dev"}}, "unreachable.flowSchema", 'reaches FlowSchema "dev"', ["comes first"]),
    ({"unreachable": {"priorityLevel": ["builds"]}}, "unreachable.priorityLevel[0]", '"builds"', ["comes first"]),
]  # fmt: skip


@pytest.mark.parametrize(("test", "place", "happened", "reasons"), FAILING)
def test_expectation_fails(test: dict[str, Any], place: str, happened: str, reasons: list[str]) -> None:
    found = outcome(test)
    assert not found.passed
    assert field_path(found.path) == f"tests[0].{place}"
    assert happened in found.happened
    rest = " ".join(found.reasons)
    for piece in reasons:
        assert piece in rest, found.reasons
        rest = rest[rest.index(piece) + len(piece) :]
    if not reasons:
        assert found.reasons == ()
    if found.request is not None and found.destination is not None:
        check_witness(found, CONFIGURATION)


@pytest.mark.parametrize(("name", "passed"), [("1.21", False), ("1.22", True)])
def test_watches_reach_no_level_until_1_21(name: str, *, passed: bool) -> None:
    test = example("watch pods -n a --as bob --as-group dev", {"flowSchema": "dev"})
    (found,) = run(suite({"tests": [test]}), CONFIGURATION, parse_release(name))
    assert found.passed is passed
    assert passed or "does not classify this request in Kubernetes 1.21" in found.reasons[0]


def test_unreachable_destination_is_explained() -> None:
    idle = schema("idle", "spare", 540, ALICE)
    idle["spec"]["rules"] = []
    known = built([*OURS, level("spare", {"type": "Reject"}), level("unused", {"type": "Reject"}), idle])
    found = outcome({"reachable": {"priorityLevel": "unused"}}, known)
    assert found.reasons == ('No effective FlowSchema references "unused".',)
    for claim in ({"priorityLevel": "spare"}, {"flowSchema": "idle"}):
        assert outcome({"reachable": claim}, known).reasons == ('"idle" matches no request.',)


def test_at_most_a_dozen_blockers_are_named() -> None:
    names = [f"n{at}" for at in range(15)]
    reads = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    before = [schema(f"in-{name}", "spare", 200 + at, ALICE) for at, name in enumerate(names)]
    for blocker, name in zip(before, names, strict=True):
        blocker["spec"]["rules"][0] = {"subjects": [ALICE], "resourceRules": [{**reads, "namespaces": [name]}]}
    late = schema("late-reads", "spare", 300, ALICE)
    late["spec"]["rules"][0] = {"subjects": [ALICE], "resourceRules": [{**reads, "namespaces": names}]}
    known = built([*before, late, level("spare", {"type": "Reject"})])
    (why,) = outcome({"reachable": {"flowSchema": "late-reads"}}, known).reasons
    assert why.startswith('Every request that "late-reads" matches is captured by "in-n0" (')
    assert why.count('"in-n') == 12
    assert why.endswith(" and 3 more.")


def check_witness(found: ExpectationResult, known: Configuration) -> None:
    """Check that the witness reaches the reported destination, as a request and as words of a command line."""
    assert found.request is not None
    assert found.destination is not None
    digest = found.request.digest
    if found.request.words is not None:
        assert parse_command_line(shlex.join(found.request.words)).to_request().digest == digest
    resolution = classify(known, digest)
    assert resolution.flow_schema is found.destination.flow_schema
    assert resolution.priority_level.name == found.destination.level.name


def test_suite_excludes_requests_from_all_properties() -> None:
    masters = {"subject": {"group": "system:masters"}}
    claim = {"always": {"subject": {"group": "system:nodes"}, "resources": "pods", "reaches": "system"}}
    ours: dict[str, Any] = {"except": [masters, {"subject": {"group": ["dev", "ops"]}}, {"subject": {"user": "alice"}}]}
    assert not outcome(claim).passed
    assert outcome(claim, **ours).passed
    # The exclusions of a property are added to the exclusions of the suite.
    both = {"always": {**claim["always"], "except": {"verbs": "watch"}}}
    assert outcome(both, **ours).passed
    assert not outcome({"unreachable": {"flowSchema": "exempt"}}, **ours).passed


@pytest.mark.parametrize(
    "claim", [{"unreachable": {"priorityLevel": "catch-all"}}, {"never": {"reaches": "catch-all"}}]
)
def test_world_any_has_users_without_groups(claim: dict[str, Any]) -> None:
    assert outcome(claim).passed
    found = outcome(claim, world="any")
    assert not found.passed
    check_witness(found, CONFIGURATION)
    assert found.request is not None
    assert not set(found.request.digest.user.groups) & {"system:authenticated", "system:unauthenticated"}


def test_name_of_a_test_is_optional() -> None:
    claim = {
        "never": {"subject": {"group": "dev"}, "verbs": ["get", "list"], "resources": "leases", "reaches": "exempt"}
    }
    assert outcome({**claim, "name": "no"}).name == "no"
    expected = (
        'no request of group "dev" to get, list for leases.coordination.k8s.io reaches the priority level "exempt"'
    )
    assert outcome(claim).name == expected


def _world() -> list[RequestDigest]:
    """Return requests of authenticated users."""
    found = []
    several = itertools.chain.from_iterable(itertools.combinations(GROUPS[:5], size) for size in range(3))
    users = [(user, complete_groups(user, groups)[0]) for user, groups in itertools.product(USERS, tuple(several))]
    for user, groups in users:
        if not has_authentic_groups(user, groups):
            continue
        for method, url in itertools.product(("GET", "POST", "DELETE"), URLS):
            info = parse_request_info(method, url)
            if is_seen_by_apf(info):
                found.append(RequestDigest(info, UserInfo(user, groups)))
    return found


WORLD = _world()
CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "subject": st.sampled_from(
            (
                {"user": "alice"},
                {"group": "dev"},
                {"serviceAccount": "dev/*"},
                [{"user": "bob"}, {"group": "system:masters"}],
            )
        ),
        "verbs": st.sampled_from(("get", ["delete", "get"])),
        "resources": st.sampled_from(("pods", ["nodes", "deployments"], "pods/log", "*")),
        "namespaces": st.sampled_from(("dev", ["ops", "kube-system"])),
        "nonResourceURLs": st.sampled_from(("/healthz", ["/version/", "/"], "*")),
    },
)
REACHES = st.sampled_from(
    (
        "exempt",
        {"flowSchema": ["exempt", "catch-all"]},
        {"whenFull": ["queued", "dispatched"]},
        {"priorityLevel": ["global-default", "workload-low"], "whenFull": "queued"},
    )
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    FLOW_SCHEMAS,
    st.sampled_from(("never", "always")),
    CONDITIONS,
    st.lists(CONDITIONS.filter(bool), max_size=2),
    REACHES,
)
def test_properties_agree_with_enumeration(
    values: list[dict[str, Any]], kind: str, condition: dict[str, Any], excepted: list[dict[str, Any]], reaches: Any
) -> None:
    known = built(values)
    body = {**condition, "reaches": reaches} | ({"except": excepted} if excepted else {})
    found = outcome({kind: body}, known)
    claim = found.test.claim
    assert isinstance(claim, Property)

    def is_included(digest: RequestDigest) -> bool:
        return matches_policy_rule(digest, claim.requests) and not any(
            matches_policy_rule(digest, request) for request in claim.excluded
        )

    def is_satisfied(digest: RequestDigest) -> bool:
        went = classify(known, digest)
        level = went.priority_level
        spec = level.spec.limited
        full = "dispatched" if spec is None else {"Queue": "queued", "Reject": "rejected"}[spec.limit_response.type]
        wanted = {"priorityLevel": reaches} if isinstance(reaches, str) else reaches
        is_so = {"flowSchema": went.flow_schema.name, "priorityLevel": level.name, "whenFull": full}
        return all(is_so[key] in ([value] if isinstance(value, str) else value) for key, value in wanted.items())

    refuted_by = [request for request in WORLD if is_included(request) and is_satisfied(request) != (kind == "always")]
    if found.passed:
        assert not refuted_by
    elif found.request is not None:
        digest = found.request.digest
        assert is_included(digest)
        assert is_satisfied(digest) != (kind == "always")
        check_witness(found, known)
    else:
        assert not any(map(is_included, WORLD))
        assert "describes no possible request" in found.happened
