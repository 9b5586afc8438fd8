"""Isolation of a tenant: laws for random configurations, and each reason why there is no proposal."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import ALL, PATHS, effective, flow_schema, group, priority_level, service_account, user

from apflint.effective_configuration import Assumptions
from apflint.engine import Options, check, load_inputs
from apflint.evaluate.classify import Classifier
from apflint.evaluate.limits import nominal_limit
from apflint.evaluate.match import matches_policy_rule
from apflint.policy.parser import parse_suite
from apflint.policy.running import Runner
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.request_space import make_digest
from apflint.proofs.two_configurations import ConfigurationComparison
from apflint.propose.changes import add_objects, apply_changes
from apflint.propose.goals import Isolation, parse_subject
from apflint.propose.isolation import NoProposal, make_name, propose_isolation
from apflint.propose.proof import find_new_findings, prove
from apflint.propose.proposal import ProvenProposal, build_proposal
from apflint.user_error import UserError

if TYPE_CHECKING:
    from random import Random

    from apflint.effective_configuration import Effective

QUEUES = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
SUBJECTS = ("group:dev", "user:alice", "serviceaccount:shop/*", "serviceaccount:shop/operator")
LEASES = {
    "verbs": ["get", "update"],
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "namespaces": ["*"],
}


def isolate(server: Effective, *subjects: str, seats: int = 50) -> ProvenProposal | NoProposal:
    goal = Isolation(tuple(map(parse_subject, subjects)), seats)
    return build_proposal(server, goal, "apflint propose", lambda name: (f"{name}.yaml",), "")


def propose(server: Effective, *subjects: str, seats: int = 50) -> ProvenProposal:
    found = isolate(server, *subjects, seats=seats)
    assert isinstance(found, ProvenProposal), found
    return found


def explain(server: Effective, *subjects: str, seats: int = 50) -> str:
    found = isolate(server, *subjects, seats=seats)
    assert isinstance(found, NoProposal)
    return f"{found.reason}. {found.advice}"


@st.composite
def manifests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return FlowSchemas of other tenants, and of parts of the tenant's requests, with their levels."""
    clients = [
        *(group("dev"), group("other"), group("system:authenticated"), user("alice"), user("bob")),
        *(service_account("shop", "*"), service_account("shop", "operator"), service_account("ci", "runner")),
    ]
    levels = [priority_level(name, draw(st.integers(1, 15)), QUEUES) for name in ("a", "b")]
    names = ("s", "t", "u")[: draw(st.integers(0, 3))]
    schemas = [
        flow_schema(
            name,
            draw(st.sampled_from(("a", "b", "workload-low", "leader-election", "exempt"))),
            draw(st.integers(1, 10).map(lambda number: number * 950) | st.integers(9898, 9902)),
            subjects=[draw(st.sampled_from(clients))],
            resources=[draw(st.sampled_from((ALL, LEASES)))],
            paths=draw(st.sampled_from((None, [PATHS]))),
        )
        for name in names
    ]
    return [*levels, *schemas]


@settings(max_examples=60, deadline=None)
@given(manifests(), st.sampled_from(SUBJECTS), st.integers(1, 60), st.randoms(use_true_random=False))
def test_laws(objects: list[dict[str, Any]], subject: str, seats: int, random: Random) -> None:
    server = effective(*objects)
    found = isolate(server, subject, seats=seats)
    random.shuffle(objects)
    shuffled = isolate(effective(*objects), subject, seats=seats)
    if isinstance(found, NoProposal):
        assert found == shuffled
        return
    assert isinstance(shuffled, ProvenProposal)
    assert (found.manifests, found.policy_test) == (shuffled.manifests, shuffled.policy_test)
    # Only requests of the tenant move, and they move only to the level of the tenant. `find_moves`
    # finds an example of each move by proof, and the classifier confirms the example.
    before, after = Classifier(found.before.configuration), Classifier(found.after.configuration)
    rule = found.isolation.goal.rule
    for move in ConfigurationComparison(found.before.configuration, found.after.configuration).find_moves():
        assert matches_policy_rule(move.witness.digest, rule)
        assert after(move.witness.digest).priority_level.name == found.isolation.level
    # All requests of the rule move: the FlowSchemas after the new FlowSchema (`sources`) do not capture any of them.
    remaining = [schema for schema in found.after.configuration.order if schema in found.isolation.sources]
    assert Analysis(found.after.configuration, more_rules=[rule]).find_request_in(rule, remaining) is None
    for captor in found.isolation.captors:
        digest = make_digest(captor.witness.point)
        assert before(digest).flow_schema is captor.flow_schema
        assert after(digest).priority_level.name == found.isolation.level
    for captor in found.isolation.staying:
        digest = make_digest(captor.witness.point)
        assert after(digest).flow_schema.name == captor.flow_schema.name
    # The level has the wanted seats, and no smaller number of shares gives it these seats.
    limits = {level.name: level for level in found.after.limits.levels}
    own, share_sum = limits[found.isolation.level], sum(level.shares for level in limits.values())
    assert own.nominal >= seats
    if found.isolation.new_level is not None:
        assert nominal_limit(own.shares - 1, share_sum - 1, 600) < seats
    assert not [
        finding for finding in find_new_findings(found.before, found.after) if finding not in found.proof.findings
    ]
    # A second run, on the result, has no proposal.
    assert isinstance(isolate(found.after, subject, seats=seats), NoProposal)
    # The proofs are about the written YAML, and the policy test passes.
    assert_text_is_proven(found)


def assert_text_is_proven(found: ProvenProposal) -> None:
    written = add_objects(found.before, load_inputs([("new.yaml", found.manifests.encode())]))
    applied = apply_changes(found.before, found.isolation.changes)
    for one, other in ((written, found.after), (applied, found.after)):
        if one is written and found.isolation.shares_change is not None:
            continue
        assert [(schema.name, schema.spec) for schema in one.configuration.order] == [
            (schema.name, schema.spec) for schema in other.configuration.order
        ]
        assert one.limits == other.limits
    if found.policy_test:
        suite = parse_suite("test.yaml", found.policy_test.encode()).suite
        assert suite is not None
        results = [*Runner(suite, found.after.configuration, found.after.limits).run()]
        assert len(results) >= 2
        assert all(result.passed for result in results)


@pytest.mark.parametrize("kubernetes", ["1.20", "1.25", "1.28", "1.33", "1.37"])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_release(kubernetes: str, subject: str) -> None:
    found = propose(effective(kubernetes=kubernetes), subject, seats=20)
    assert_text_is_proven(found)
    answer = check([("a.yaml", found.manifests.encode())], Options(kubernetes=found.before.release))
    assert {finding.rule for finding in answer.findings} <= {"APF603"}
    assert found.after.limits.level(found.isolation.level) is not None


def test_policy_test_pins_the_intention() -> None:
    found = propose(effective(), "group:dev")
    suite = parse_suite("test.yaml", found.policy_test.encode()).suite
    assert suite is not None
    assert [test.kind for test in suite.tests] == ["always", "never"]
    other = flow_schema("x", found.isolation.level, 9600, subjects=[group("intruders")], resources=[ALL])
    earlier = flow_schema("x", "workload-low", 5000, subjects=[group("dev")], resources=[ALL])
    for change, failed in ((other, "never"), (earlier, "always")):
        changed = add_objects(found.after, load_inputs([("x.json", json.dumps(change).encode())]))
        results = Runner(suite, changed.configuration, changed.limits).run()
        assert failed in [result.test.kind for result in results if not result.passed]


def test_several_subjects_are_one_tenant() -> None:
    found = propose(effective(), "group:dev", "serviceaccount:dev/*")
    assert {move.from_schema.name for move in found.proof.moves} == {"service-accounts", "global-default"}
    assert found.isolation.level == "dev"
    assert "already has its own priority level" in explain(found.after, "group:dev", "serviceaccount:dev/*")
    # The level `dev` also has requests of service accounts, so `group:dev` alone gets a new level.
    assert propose(found.after, "group:dev", seats=20).isolation.level == "dev-2"


def test_a_level_that_the_tenant_has_gets_other_shares() -> None:
    first = propose(effective(), "group:dev", seats=20)
    for seats in (40, 10):
        found = propose(first.after, "group:dev", seats=seats)
        assert found.isolation.flow_schema is None
        assert found.isolation.new_level is None
        assert (found.manifests, found.proof.moves) == ("", ())
        assert found.cost[:2] == (0, 1)
        level = found.after.limits.level("dev")
        assert level is not None
        assert seats <= level.nominal <= seats + 2
        assert "already has" in explain(found.after, "group:dev", seats=seats)


def test_a_level_that_has_a_part_of_the_requests_gets_all() -> None:
    server = effective(flow_schema("dev-pods", "dev", 3000, subjects=[group("dev")]), priority_level("dev", 10, QUEUES))
    found = propose(server, "group:dev")
    assert found.isolation.new_level is None
    assert found.isolation.flow_schema is not None
    assert (found.isolation.flow_schema.name, found.isolation.level) == ("dev-2", "dev")
    assert [move.from_schema.name for move in found.proof.moves] == ["global-default"]
    assert "already has" in explain(found.after, "group:dev")


def test_leases_stay_where_they_are() -> None:
    lease = flow_schema(
        "leases", "leader-election", 5000, subjects=[service_account("shop", "operator")], resources=[LEASES]
    )
    lists = flow_schema("lists", "a", 3000, subjects=[service_account("shop", "*")])
    found = propose(effective(lease, lists, priority_level("a", 10, QUEUES)), "serviceaccount:shop/operator")
    assert found.isolation.flow_schema is not None
    assert found.isolation.flow_schema.matching_precedence > 5000
    assert [captor.flow_schema.name for captor in found.isolation.staying] == ["probes", "lists", "leases"]


@pytest.mark.parametrize(
    ("captor", "others", "precedence"),
    [
        (9900, (), 9500),
        (9899, (), 9500),
        (9900, (9500,), 9700),
        (9900, (9500, 9899, 9898, 9700), 9800),
        (2002, range(1990, 2002), 1000),
        (907, (906, 904, 902), 905),
    ],
)
def test_precedence_is_free_and_round(captor: int, others: Any, precedence: int) -> None:
    schemas = [flow_schema(f"x{number}", precedence=number, subjects=[group(f"x{number}")]) for number in others]
    if captor != 9900:
        schemas.append(
            flow_schema(
                "captor", precedence=captor, subjects=[group("dev"), group("x")], resources=[ALL], paths=[PATHS]
            )
        )
    found = propose(effective(*schemas), "group:dev")
    assert found.isolation.flow_schema is not None
    assert found.isolation.flow_schema.matching_precedence == precedence


def test_no_precedence_is_free() -> None:
    captor = flow_schema("everything", "workload-low", 901, subjects=[group("dev")], resources=[ALL], paths=[PATHS])
    assert "no matchingPrecedence is free" in explain(effective(captor), "group:dev")


def test_flow_schema_before_those_of_the_system() -> None:
    captor = flow_schema("dev", "workload-low", 870, subjects=[group("dev")], resources=[ALL], paths=[PATHS])
    text = explain(effective(captor), "group:dev")
    assert 'captured by "probes" and "dev"' in text
    assert "raise matchingPrecedence" in text


def test_parts_of_other_flow_schemas_that_lose_their_requests() -> None:
    own = flow_schema("dev", "workload-low", 5000, subjects=[group("dev")], resources=[ALL], paths=[PATHS])
    shared = flow_schema("teams", "a", 6000, subjects=[group("dev"), group("ops")], resources=[ALL], paths=[PATHS])
    found = propose(effective(own), "group:dev")
    assert [finding.rule for finding in found.proof.findings] == ["APF501", "APF603"]
    found = propose(effective(shared, priority_level("a", 10, QUEUES)), "group:dev")
    assert [finding.rule for finding in found.proof.findings] == ["APF502", "APF603"]


def test_requests_that_only_the_system_has() -> None:
    everything = flow_schema("dev", "exempt", 9000, subjects=[group("dev")], resources=[ALL], paths=[PATHS])
    assert "for the system" in explain(effective(everything), "group:dev")


def test_seats() -> None:
    with pytest.raises(UserError, match="use 1 to 600, the seats of an API server"):
        isolate(effective(), "group:dev", seats=601)
    with pytest.raises(UserError, match="use 1 to 600, the seats of an API server"):
        isolate(effective(), "group:dev", seats=0)
    text = explain(effective(), "group:dev", seats=200)
    assert re.search(r'"leader-election" would have 1[0-8] instead of 2[0-9] \(it needs at least 19\)', text)
    # A larger server has enough seats.
    propose(effective(assumptions=Assumptions(server_concurrency=2000)), "group:dev", seats=500)


def test_levels_of_the_system_lose_only_what_they_can() -> None:
    """The seats that built-in levels may lose are limited for all tenants together, not for each tenant."""
    server, number = effective(), 0
    while isinstance(found := isolate(server, f"group:g{number}", seats=10), ProvenProposal):
        server, number = found.after, number + 1
    assert 12 <= number <= 18
    level = server.limits.level("leader-election")
    assert level is not None
    assert level.nominal >= 19


def test_cluster_without_flow_schemas_for_the_system() -> None:
    bare = effective(
        flow_schema("everything", "a", 9000, subjects=[group("system:authenticated")], resources=[ALL]),
        priority_level("a", 10, QUEUES),
        assumptions=Assumptions(defaults=False),
    )
    assert "a request of a system component would go to another FlowSchema" in explain(bare, "group:dev")


def test_proof_finds_requests_of_others() -> None:
    server = effective()
    goal = Isolation((parse_subject("group:dev"),), 50)
    found = propose_isolation(server, goal)
    assert not isinstance(found, NoProposal)
    schema = found.flow_schema
    assert schema is not None
    wide = schema._replace(matching_precedence=1, rules=(Isolation((parse_subject("user:*"),), 1).rule,))
    after = apply_changes(server, [*(change for change in found.changes if change is not schema), wide])
    proof = prove(server, after, found.find_intention(after))
    assert proof.unintended
    assert proof.system is not None
    assert proof.mistakes
    assert len(proof.failures) >= 3
    # If the precedence of the new FlowSchema is too late, requests do not move.
    late = schema._replace(matching_precedence=9950)
    after = apply_changes(server, [*(change for change in found.changes if change is not schema), late])
    proof = prove(server, after, found.find_intention(after))
    assert proof.missed is not None
    assert "would not move" in " ".join(proof.failures)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("group:analytics", "analytics"),
        ("user:Backup@Example.com", "backup-example.com"),
        ("serviceaccount:shop/*", "shop"),
        ("serviceaccount:shop/operator", "shop-operator"),
        ("group:oidc:Team A/b", "oidc-team-a-b"),
        ("group:日本", "tenant"),
        (f"group:{'a' * 300}", "a" * 63),
    ],
)
def test_name(subject: str, name: str) -> None:
    assert make_name(parse_subject(subject)) == name
