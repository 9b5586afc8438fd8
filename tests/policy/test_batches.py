"""Long suites: no result depends on other expectations, and the size of a formula does not depend on the size of the suite."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from apflint.evaluate.match import matches_policy_rule
from apflint.policy.expectation import Property
from apflint.policy.running import rules_of_properties, split_into_batches
from apflint.proofs.vocabulary import build_vocabulary
from apflint.releases import NEWEST
from policy.test_running import CONFIGURATION, OURS, built, check_witness, outcome, run, schema, suite

if TYPE_CHECKING:
    from apflint.evaluate.configuration import Configuration
    from apflint.policy.running import ExpectationResult


def users(many: int) -> list[dict[str, Any]]:
    return [{"never": {"subject": {"user": f"user-{at}"}, "reaches": "exempt"}} for at in range(many)]


def mixed(many: int) -> list[dict[str, Any]]:
    """Return expectations with different names. Some of them are met, and some are not."""
    tests: list[dict[str, Any]] = []
    for at in range(many):
        tests += [
            {"never": {"subject": {"user": f"u{at}"}, "verbs": "list", "resources": "pods", "reaches": "builds"}},
            {"always": {"subject": {"serviceAccount": f"n{at}/a"}, "resources": "pods", "reaches": "workload-low"}},
            {"never": {"subject": {"group": f"g{at}"}, "except": {"subject": {"group": f"x{at}"}}, "reaches": "batch"}},
            {"always": {"namespaces": f"n{at}", "subject": {"group": "ops"}, "reaches": "exempt"}},
            {"never": {"resources": f"r{at}.example.com", "reaches": {"flowSchema": "late"}}},
            {"always": {"nonResourceURLs": f"/p{at}/*", "reaches": "global-default"}},
            {"never": {"subject": {"user": f"u{at}"}, "except": {"subject": {"user": f"u{at}"}}, "reaches": "batch"}},
            {"request": f"list pods -n n{at} --as alice", "reaches": "batch"},
        ]
    random.Random(many).shuffle(tests)
    return tests


@pytest.mark.parametrize("world", ["authenticated", "any"])
def test_result_does_not_depend_on_other_expectations(world: str) -> None:
    tests = mixed(30)
    excepted: dict[str, Any] = {"except": {"subject": {"group": "system:masters"}}, "world": world}
    found = run(suite({"tests": tests, **excepted}), CONFIGURATION, NEWEST)
    assert len(found) == len(tests)
    assert len(list(split_into_batches(suite({"tests": tests}), CONFIGURATION))) > 5
    for test, test_result in zip(tests, found, strict=True):
        alone = outcome(test, **excepted)
        assert (test_result.passed, test_result.expected, test_result.request is None) == (
            alone.passed,
            alone.expected,
            alone.request is None,
        )
        claim = test_result.test.claim
        if not isinstance(claim, Property):
            assert test_result._replace(test=alone.test, span=alone.span) == alone
        elif test_result.request is None:
            assert (test_result.happened, test_result.reasons, test_result.path[2:]) == (
                alone.happened,
                alone.reasons,
                alone.path[2:],
            )
        else:
            check_refutation(test_result, CONFIGURATION)


def check_refutation(test_result: ExpectationResult, known: Configuration) -> None:
    """Check that the witness of a failed property disproves the property.

    The witness must match the requests of the property, must match none of its exclusions, and must
    reach a priority level that the property forbids.
    """
    claim = test_result.test.claim
    assert isinstance(claim, Property)
    assert test_result.request is not None
    assert matches_policy_rule(test_result.request.digest, claim.requests)
    assert not any(matches_policy_rule(test_result.request.digest, rule) for rule in claim.excluded)
    assert test_result.destination is not None
    assert (test_result.destination.level.name in claim.reaches.priority_levels) == (claim.kind == "never")
    check_witness(test_result, known)


@pytest.mark.parametrize("world", ["authenticated", "any"])
def test_witness_has_few_groups(world: str) -> None:
    many = range(60)
    level = ("builds", "batch")
    teams = [schema(f"t{at}", level[at % 2], 1000 + at, {"kind": "Group", "group": {"name": f"t{at}"}}) for at in many]
    known = built([*OURS, *teams])
    tests = [{"always": {"subject": {"group": f"t{at}"}, "resources": "pods", "reaches": level[at % 2]}} for at in many]
    for test_result in run(suite({"tests": tests, "world": world}), known, NEWEST):
        check_refutation(test_result, known)
        assert test_result.request is not None
        assert len(test_result.request.digest.user.groups) <= 3


def test_batches_have_all_expectations_in_order() -> None:
    found = suite({"tests": mixed(40)})
    assert [test for batch in split_into_batches(found, CONFIGURATION) for test in batch] == list(found.tests)


def test_formulas_do_not_grow_with_the_suite() -> None:
    def largest(many: int) -> int:
        found = suite({"tests": users(many)})
        return max(
            len(build_vocabulary(rules_of_properties(batch), "authenticated").users.values)
            for batch in split_into_batches(found, CONFIGURATION)
        )

    assert largest(400) == largest(1600) < 100


def test_batch_grows_with_the_configuration() -> None:
    """If batches did not grow, hundreds of formulas would each contain thousands of FlowSchemas."""
    tests = users(400)
    many = [schema(f"s{at}", "builds", 600, {"kind": "User", "user": {"name": f"s{at}"}}) for at in range(200)]
    few = len(list(split_into_batches(suite({"tests": tests}), CONFIGURATION)))
    assert len(list(split_into_batches(suite({"tests": tests}), built([*OURS, *many])))) < few / 2
    excepted = [{"subject": {"user": f"x{at}"}} for at in range(200)]
    assert len(list(split_into_batches(suite({"tests": tests, "except": excepted}), CONFIGURATION))) < few / 2
