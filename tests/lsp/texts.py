"""A FlowSchema with one mistake (`byUser` in line 10), and the priority level that it references."""

from __future__ import annotations

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
