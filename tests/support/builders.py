"""Builders of manifests, and functions that return their findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.checks import CHECKS
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import Options, check, load_inputs, report
from apflint.releases import NEWEST, parse_release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from apflint.finding import Finding

OPEN, COMPLETE = Assumptions(), Assumptions(complete=True)
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
"""A resource rule that matches every resource request."""
PATHS = {"verbs": ["*"], "nonResourceURLs": ["*"]}
"""A non-resource rule that matches every non-resource request."""
FLAWED_FLOW_SCHEMA = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: nightly
  namespace: nights
spec:
  matchingPrecedence: 870
  priorityLevelConfiguration: {name: workload-low}
  distinguisherMethod: {type: ByFoo}
  rules:
  - subjects: [{kind: Group, group: {name: night-watch}}]
    resourceRules:
    - {verbs: [get], apiGroups: [""], resources: [pods], namespaces: ["*"]}
"""
"""A manifest with a warning (APF104, for its namespace) and an error (APF203, for its distinguisher)."""
READ_PODS = {
    "verbs": ["get", "list", "watch"],
    "apiGroups": [""],
    "resources": ["pods"],
    "clusterScope": True,
    "namespaces": ["*"],
}


def service_account(namespace: str, name: str) -> dict[str, Any]:
    """Return a subject for a service account."""
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}


def user(name: str) -> dict[str, Any]:
    """Return a subject for a user."""
    return {"kind": "User", "user": {"name": name}}


def group(name: str) -> dict[str, Any]:
    """Return a subject for a group."""
    return {"kind": "Group", "group": {"name": name}}


def manifest(kind: str, spec: dict[str, Any], *, version: str = "v1", **metadata: Any) -> dict[str, Any]:
    """Return a manifest with this kind, spec and metadata."""
    return {
        "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "x", **metadata},
        "spec": spec,
    }


def flow_schema(
    name: str,
    level: str = "workload-low",
    precedence: int | None = 2000,
    *,
    subjects: list[dict[str, Any]] | None = None,
    resources: list[dict[str, Any]] | None = None,
    paths: list[dict[str, Any]] | None = None,
    by: str | None = None,
    version: str = "v1",
) -> dict[str, Any]:
    """Return the manifest of a FlowSchema with one rule. By default, the rule matches reads of pods by a service account."""
    if resources is None and paths is None:
        resources = [READ_PODS]
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": level}}
    if precedence is not None:
        spec["matchingPrecedence"] = precedence
    if by is not None:
        spec["distinguisherMethod"] = {"type": by}
    rule = {
        "subjects": subjects or [service_account("ci", "runner")],
        "resourceRules": resources,
        "nonResourceRules": paths,
    }
    spec["rules"] = [{key: value for key, value in rule.items() if value is not None}]
    return {
        "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": spec,
    }


def priority_level(
    name: str, shares: int = 10, queuing: dict[str, int] | None = None, *, version: str = "v1", **limited: Any
) -> dict[str, Any]:
    """Return the manifest of a priority level. Without `queuing`, the level rejects requests."""
    response: dict[str, Any] = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    spec = {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": shares, "limitResponse": response, **limited},
    }
    return {
        "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": spec,
    }


def effective(
    *manifests: Any,
    context: tuple[Any, ...] = (),
    assumptions: Assumptions = OPEN,
    kubernetes: str = NEWEST.name,
) -> Effective:
    """Return the effective configuration for manifests (in the files `0.json`, ...) and a context (in the files
    `context-0.json`, ...)."""
    inputs = [(f"{index}.json", json.dumps(manifest).encode()) for index, manifest in enumerate(manifests)]
    others = [(f"context-{index}.json", json.dumps(manifest).encode()) for index, manifest in enumerate(context)]
    return Effective(build_workspace(load_inputs(inputs), parse_release(kubernetes), load_inputs(others)), assumptions)


def findings(
    *manifests: Any,
    only: str = "",
    context: tuple[Any, ...] = (),
    assumptions: Assumptions = OPEN,
    kubernetes: str = NEWEST.name,
) -> list[Finding]:
    """Return the findings of all rules, or of the rules whose IDs start with `only`."""
    server = effective(*manifests, context=context, assumptions=assumptions, kubernetes=kubernetes)
    return [
        finding
        for finding in report([], server, Options(rules=tuple(CHECKS), suppressions=False)).findings
        if finding.rule.startswith(only)
    ]


def findings_in_text(
    text: str, *, only: str = "", name: str = "a.yaml", kubernetes: str = NEWEST.name
) -> list[Finding]:
    """Return the findings in a file with this text, of all rules or of the rules whose IDs start with `only`."""
    answer = check([(name, text.encode())], Options(kubernetes=parse_release(kubernetes)))
    return [finding for finding in answer.findings if finding.rule.startswith(only)]


def full_text(finding: Finding) -> str:
    """Return all text of a finding: message, notes, help and example."""
    return "\n".join(filter(None, (finding.message, *finding.notes, finding.help, finding.example)))


def rule_ids(found: list[Finding]) -> list[str]:
    """Return the rule IDs of findings."""
    return [finding.rule for finding in found]
