"""APF518 and APF601 report exactly the outsiders that an independent enumeration of all requests finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .claims import claims
from .comparison import compare, differences, run_check
from .configurations import Configuration, manifest
from .outsiders import EVERYTHING, PATHS, is_outsider, outsider_claims, protected_configuration
from .reduction import as_yaml, reduce
from .server import Request, User

if TYPE_CHECKING:
    from apflint.finding import Severity

pytestmark = pytest.mark.slow

RULES = ("APF518", "APF601")
SEEDS = 80
AT_ONCE = 20
ALICE = User("alice", frozenset({"system:authenticated"}))
PODS = Request(True, "list", "", "pods", "")


@pytest.mark.parametrize("start", range(0, SEEDS, AT_ONCE))
def test_findings_are_what_an_enumeration_finds(start: int) -> None:
    for seed in range(start, start + AT_ONCE):
        config = protected_configuration(seed)
        if compare(config, RULES):
            smallest = reduce(config, lambda smaller: bool(compare(smaller, RULES)))
            pytest.fail(as_yaml(smallest, *(str(difference) for difference in compare(smallest, RULES))))


def test_the_configurations_have_cases_of_everything() -> None:
    everything = [outsider_claims(protected_configuration(seed)) for seed in range(SEEDS)]
    assert sum(len(true.broad) for true in everything) > 50
    assert sum(len(true.named) for true in everything) > 50


def test_wrong_findings_are_noticed() -> None:
    noticed = set()
    for seed in range(12):
        config = protected_configuration(seed)
        true, findings = claims(config), run_check(config)
        for at, finding in enumerate(findings):
            if finding.rule not in RULES:
                continue
            others = (*findings[:at], *findings[at + 1 :])
            hidden = finding.message.replace("apflint explain", "explain")
            other: Severity = "info" if finding.severity == "warning" else "warning"
            for wrong in ((), (finding._replace(message=hidden),), (finding._replace(severity=other),)):
                found = {(item.rule, item.kind) for item in differences(config, true, (*others, *wrong))}
                assert found, (seed, finding, wrong)
                noticed |= found
    assert noticed >= {(rule, kind) for rule in RULES for kind in ("miss", "false claim")}


@pytest.mark.parametrize(
    ("level", "user", "request_", "expected"),
    [
        ("leader-election", ALICE, PODS, True),
        ("exempt", ALICE, PODS, True),
        ("exempt", ALICE, Request(False, "get", path="/livez/ping"), False),
        ("exempt", ALICE, Request(False, "get", path="/metrics"), True),
        ("exempt", ALICE, Request(True, "get", "", "nodes", "prod"), False),
        ("exempt", ALICE, Request(True, "get", "", "nodes"), True),
        ("exempt", User("alice", frozenset({"system:authenticated", "system:masters"})), PODS, False),
        ("system", User("system:node:node-1", frozenset({"system:authenticated", "system:nodes"})), PODS, False),
        ("exempt", User("system:node:node-1", frozenset({"system:authenticated", "system:nodes"})), PODS, True),
        ("system", User("system:kube-scheduler", frozenset({"system:authenticated"})), PODS, False),
    ],
)
def test_outsiders(level: str, user: User, request_: Request, expected: bool) -> None:
    assert is_outsider(schema(level), "1.36", user, request_) is expected


def test_leases_of_named_clients_are_no_claim() -> None:
    rule = {**EVERYTHING, "apiGroups": ["coordination.k8s.io"]}
    subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "runner"}}
    leases = schema("leader-election", [{"subjects": [subject], "resourceRules": [rule]}])
    assert not outsider_claims(Configuration("1.36", True, (leases,))).named
    everything = schema(
        "leader-election", [{"subjects": [subject], "resourceRules": [rule], "nonResourceRules": [PATHS]}]
    )
    assert set(outsider_claims(Configuration("1.36", True, (everything,))).named) == {"x"}


def schema(level: str, rules: list[dict[str, object]] | None = None) -> dict[str, object]:
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 1000, "rules": rules or []}
    return manifest("FlowSchema", "x", spec, "1.36")
