"""Where more FlowSchemas are shadowed than anybody reads, all are told, and of the first ones by whom."""

from __future__ import annotations

import json
from typing import Any

from apflint.checks.reachability import _NAMED
from apflint.engine import Options, check

MORE = 3


def schema(name: str, precedence: int, user: str) -> dict[str, Any]:
    resources = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"},
            "matchingPrecedence": precedence,
            "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [resources]}],
        },
    }


def test_of_the_first_shadowed_ones_it_is_told_by_whom() -> None:
    schemas = [schema("first", 1000, "*"), *(schema(f"no-{at:03}", 1001 + at, f"u{at}") for at in range(_NAMED + MORE))]
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": schemas}).encode()
    messages = [found.message for found in check([("a.json", data)], Options(select=("APF501",))).findings]
    assert len(messages) == _NAMED + MORE
    assert (
        sum('the FlowSchema "first" (1000) comes first and takes all of it' in message for message in messages)
        == _NAMED
    )
    assert (
        messages.count("no request can ever reach this FlowSchema: whatever it matches is taken by what comes first")
        == MORE
    )
