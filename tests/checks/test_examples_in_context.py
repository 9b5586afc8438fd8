"""Checks the examples of rule pages together with other objects.

The findings are the same as without the other objects, and rejected objects are not analyzed.
"""

from __future__ import annotations

import pytest
from support.rule_examples import Example, parse_examples

from apflint import rule_catalogue
from apflint.checks import CHECKS, SINGLE_VALUE, rules_of, rules_with
from apflint.engine import Options, check

OTHERS = """\
apiVersion: flowcontrol.apiserver.k8s.io/{version}
kind: PriorityLevelConfiguration
metadata:
  name: {end}-others-queues
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
  name: {end}-others-rejects
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
  name: {end}-others
spec:
  priorityLevelConfiguration:
    name: {end}-others-queues
  matchingPrecedence: {precedence}
  distinguisherMethod:
    type: ByUser
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount:
        name: {end}
        namespace: others-{end}
    resourceRules:
    - verbs: [get]
      apiGroups: [""]
      resources: [configmaps]
      namespaces: [others-{end}]
---
apiVersion: flowcontrol.apiserver.k8s.io/{version}
kind: FlowSchema
metadata:
  name: {end}-others-paths
spec:
  priorityLevelConfiguration:
    name: {end}-others-rejects
  matchingPrecedence: {precedence}1
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount:
        name: {end}
        namespace: others-{end}
    nonResourceRules:
    - verbs: [get]
      nonResourceURLs: [/others/{end}]
"""
"""Objects without findings. Their names and their precedence put them before or after the objects of most examples."""

ABOUT_ALL_OBJECTS = ("APF603", "APF606")
"""Rules about all priority levels together: their findings depend on the other objects."""


def list_bad_examples(*rules: str) -> list[object]:
    """Return the bad examples of rules as parameters of a test."""
    return [
        pytest.param(rule, example, id=f"{rule}-{example.page_line}")
        for rule in rules
        for example in parse_examples(rule_catalogue.read_rule(rule))
        if example.kind == "bad"
    ]


def options_of(example: Example) -> Options:
    """Return options for all rules and the release of an example."""
    return example.adapt(Options(rules=tuple(CHECKS)))


def build_others(version: str, end: str, precedence: int) -> bytes:
    """Return a file with other objects."""
    shares = "nominalConcurrencyShares" if version in ("v1", "v1beta3") else "assuredConcurrencyShares"
    return OTHERS.format(version=version, end=end, precedence=precedence, shares=shares).encode()


@pytest.mark.parametrize(
    ("rule", "example"), list_bad_examples(*(rule for rule in CHECKS if rule not in ABOUT_ALL_OBJECTS))
)
def test_other_objects_do_not_change_findings(rule: str, example: Example) -> None:
    versions = ("v1", "v1beta3", "v1beta2", "v1beta1")
    version = next((version for version in versions if f"/{version}\n" in example.text), "v1")
    bad = (example.file, example.text.encode())
    among_others = [("0.yaml", build_others(version, "a", 850)), bad, ("z.yaml", build_others(version, "z", 870))]
    alone, beside = (
        [
            (finding.span, finding.severity, finding.field)
            for finding in check(inputs, options_of(example)).findings
            if (finding.rule, finding.file) == (rule, example.file)
        ]
        for inputs in ([bad], among_others)
    )
    assert alone
    assert beside == alone


@pytest.mark.parametrize(("rule", "example"), list_bad_examples(*sorted(rules_of("analysis"))))
def test_only_single_values_of_rejected_objects_are_analyzed(rule: str, example: Example) -> None:
    rejected = example.text.replace("metadata:\n", "metadata:\n  labels: {-: x}\n")
    found = check([(example.file, rejected.encode())], options_of(example)).findings
    assert example.text.count("metadata:\n") == len([finding for finding in found if finding.apiserver is not None])
    assert (rule in {finding.rule for finding in found}) == (rule in rules_with(SINGLE_VALUE))
