"""What a rule finds in one object it finds beside others, too: each object is looked at, whatever comes before it.

But what the server rejects is in no cluster: rules about what objects do there say nothing of it.
"""

from __future__ import annotations

import pytest
from support.rule_examples import Example, parse_examples

from apflint import catalogue
from apflint.checks import CHECKS, SINGLE_VALUE, rules_with
from apflint.engine import Options, check
from apflint.releases import parse_release

COMPANY = """\
apiVersion: flowcontrol.apiserver.k8s.io/{version}
kind: PriorityLevelConfiguration
metadata:
  name: {end}-company-queues
spec:
  type: Limited
  limited:
    {shares}: 10
    limitResponse:
      type: Queue
      queuing: {{queues: 64, handSize: 6, queueLengthLimit: 50}}
---
apiVersion: flowcontrol.apiserver.k8s.io/{version}
kind: PriorityLevelConfiguration
metadata:
  name: {end}-company-rejects
spec:
  type: Limited
  limited:
    {shares}: 10
    limitResponse:
      type: Reject
---
apiVersion: flowcontrol.apiserver.k8s.io/{version}
kind: FlowSchema
metadata:
  name: {end}-company
spec:
  priorityLevelConfiguration:
    name: {end}-company-queues
  matchingPrecedence: {precedence}
  distinguisherMethod:
    type: ByUser
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount:
        name: {end}
        namespace: company-{end}
    resourceRules:
    - verbs: [get]
      apiGroups: [""]
      resources: [configmaps]
      namespaces: [company-{end}]
---
apiVersion: flowcontrol.apiserver.k8s.io/{version}
kind: FlowSchema
metadata:
  name: {end}-company-paths
spec:
  priorityLevelConfiguration:
    name: {end}-company-rejects
  matchingPrecedence: {precedence}1
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount:
        name: {end}
        namespace: company-{end}
    nonResourceRules:
    - verbs: [get]
      nonResourceURLs: [/company/{end}]
"""
"""Objects with nothing about them, with names and precedences before and after most."""

# These tell of all levels or all FlowSchemas together, and the company is among them.
TOGETHER = {"APF603": "who loses seats", "APF606": "how many seats a share is"}

EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.id}-{example.page_line}")
    for rule in catalogue.read_rules()
    for example in parse_examples(rule)
    if example.kind == "bad" and rule.id not in TOGETHER
]


def company(version: str, end: str, precedence: int) -> bytes:
    shares = "nominalConcurrencyShares" if version in ("v1", "v1beta3") else "assuredConcurrencyShares"
    return COMPANY.format(version=version, end=end, precedence=precedence, shares=shares).encode()


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_company_changes_nothing(rule: catalogue.Rule, example: Example) -> None:
    options = Options(rules=tuple(CHECKS))
    if example.kubernetes is not None:
        options = options._replace(kubernetes=parse_release(example.kubernetes))
    version = next((each for each in ("v1", "v1beta3", "v1beta2", "v1beta1") if f"/{each}\n" in example.text), "v1")
    bad = (example.file, example.text.encode())
    around = [("0.yaml", company(version, "a", 850)), bad, ("z.yaml", company(version, "z", 870))]
    alone, beside = (
        [
            (found.span, found.severity, found.field)
            for found in check(inputs, options).findings
            if (found.rule, found.file) == (rule.id, example.file)
        ]
        for inputs in ([bad], around)
    )
    assert alone
    assert beside == alone


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_a_fix_is_safe_or_it_is_not(rule: catalogue.Rule, example: Example) -> None:
    found = check([(example.file, example.text.encode())], Options(rules=(rule.id,))).findings
    assert {type(each.fix.safe) for each in found if each.fix} <= {bool}


ANALYSED = [
    pytest.param(rule, example, id=f"{rule.id}-{example.page_line}")
    for rule in catalogue.read_rules()
    for example in parse_examples(rule)
    if example.kind == "bad" and rule.id.startswith(("APF5", "APF6"))
]


@pytest.mark.parametrize(("rule", "example"), ANALYSED)
def test_of_what_the_server_rejects_only_single_values_are_analysed(rule: catalogue.Rule, example: Example) -> None:
    options = Options(rules=tuple(CHECKS))
    if example.kubernetes is not None:
        options = options._replace(kubernetes=parse_release(example.kubernetes))
    rejected = example.text.replace("metadata:\n", "metadata:\n  labels: {-: x}\n")
    found = check([(example.file, rejected.encode())], options).findings
    assert example.text.count("metadata:\n") == len([each for each in found if each.apiserver is not None])
    assert (rule.id in {each.rule for each in found}) == (rule.id in rules_with(SINGLE_VALUE))
