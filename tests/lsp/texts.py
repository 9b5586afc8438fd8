"""Manifests: a FlowSchema with a mistake (`byUser` in line 10), its priority level, and a FlowSchema with an unknown field."""

from __future__ import annotations

from apflint.effective_configuration import Effective
from apflint.load import load
from apflint.releases import NEWEST, parse_release
from apflint.workspace import build_workspace


def cluster(manifests: str = "", release: str = NEWEST.name) -> Effective:
    """Return the effective configuration of a cluster to which `manifests` are applied."""
    return Effective(build_workspace([load("a.yaml", manifests.encode())], parse_release(release)))


NEW_CLUSTER = cluster()

FLOW = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: batch
spec:
  priorityLevelConfiguration:
    name: batch
  matchingPrecedence: 500
  distinguisherMethod:
    type: byUser
  rules:
  - subjects:
    - kind: User
      user: {name: ann}
    resourceRules:
    - verbs: [list]
      apiGroups: [""]
      resources: [pods]
      namespaces: ["*"]
      clusterScope: true
"""
LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: batch
spec:
  type: Limited
  limited:
    limitResponse:
      type: Queue
      queuing: {}
"""
UNKNOWN_FIELD = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: a}
spec: {x: 1}
"""
