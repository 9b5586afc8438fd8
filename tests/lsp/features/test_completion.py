"""Completion proposals in incomplete documents. `|` marks the cursor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from apflint.checks import CHECKS
from apflint.engine import Options, check
from apflint.load import load
from apflint.lsp.features.completion import Proposal, complete
from apflint.lsp.features.hover import explain
from apflint.lsp.partial_yaml import read_entries
from apflint.lsp.schema_fields import find_field
from apflint.releases import NEWEST
from lsp.texts import NEW_CLUSTER, cluster

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
LEVEL = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nspec:\n"
RULE = f"{HEAD}spec:\n  rules:\n  - resourceRules:\n"


def at(marked: str, effective: Effective = NEW_CLUSTER, *, is_json: bool = False) -> list[Proposal]:
    offset = marked.index("|")
    return complete(marked.replace("|", "", 1), offset, effective, json=is_json)


def result(marked: str, label: str, *, is_json: bool = False) -> str:
    """Return the text after the user accepts the proposal `label`. `marked` is the text with `|` at the cursor."""
    text = marked.replace("|", "", 1)
    item = next(item for item in at(marked, is_json=is_json) if item.label == label)
    return text[: item.start] + item.new + text[item.end :]


@pytest.mark.parametrize(
    ("marked", "labels"),
    [
        ("|", ["apiVersion", "kind"]),
        ("ap|", ["apiVersion", "kind"]),
        ("apiVersion: |", ["flowcontrol.apiserver.k8s.io/v1"]),
        ("kind: Fl|", ["FlowSchema", "PriorityLevelConfiguration"]),
        (f"{HEAD}|", ["metadata", "spec"]),
        (f"{HEAD}m|\nspec: {{}}\n", ["metadata"]),
        (f"{HEAD}---\n|", ["apiVersion", "kind"]),
        (f"{HEAD}spec:\n  mat|\n  rules: []\n", ["priorityLevelConfiguration", "distinguisherMethod", "matchingPrecedence"]),
        (f"{HEAD}spec:\n  distinguisherMethod:\n    type: |", ["ByUser", "ByNamespace"]),
        (f"{HEAD}spec:\n  distinguisherMethod: {{type: By|}}", ["ByUser", "ByNamespace"]),
        (f"{HEAD}spec:\n  priorityLevelConfiguration: {{|", ["name"]),
        (f"{HEAD}spec:\n  rules:\n  - |", ["subjects", "nonResourceRules", "resourceRules"]),
        (f"{HEAD}spec:\n  rules:\n  - subjects:\n    - kind: |", ["User", "Group", "ServiceAccount"]),
        (f"{HEAD}spec:\n  rules:\n  - subjects:\n    - kind: User\n      |\n    resourceRules: []\n", ["user"]),
        (f"{HEAD}spec:\n  rules:\n  - subjects:\n    - kind: Gr\n      |", ["group", "serviceAccount", "user"]),
        (f"{RULE}    - clusterScope: |", ["true", "false"]),
        (f"{RULE}    - verbs: [get, |", ["list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"]),
        (f"{RULE}    - verbs:\n      - get\n      - l|\n      resources: [", ["list", "watch", "create", "update", "patch",
                                                                            "delete", "deletecollection", "proxy"]),
        (f"{RULE}    - verbs: ['*', |", []),
        (f"{RULE}    - namespaces:\n        |", ["- *", "- default", "- kube-system"]),
        (f"{LEVEL}  limited:\n    limitResponse:\n      type: |", ["Queue", "Reject"]),
        (f"{LEVEL}  limited:\n    limitResponse:\n      type: Reject\n      |", []),
        (f"{LEVEL}  limited:\n    limitResponse:\n      type: Queue\n      |", ["queuing"]),
        (f"{LEVEL}  type: Limited\n  |", ["limited"]),
        (f"{LEVEL}  type: Exempt\n  |", ["exempt"]),
        # The document is not an APF object, or is not yet complete, or has no proposals for the place of the cursor.
        ("kind: Deployment\napiVersion: apps/v1\nspec:\n  |", []),
        ("services:\n  web:\n|", []),
        ("spec:\n  |", []),
        ("spec:\n  distinguisherMethod:\n    type: |", []),
        ("apiVersion: flowcontrol.apiserver.k8s.io/v1\nspec: {}\n|", ["kind"]),
        ("kind: FlowSchema\napiVersion: example.com/v1\nspec:\n  |", []),
        (f"{HEAD}# |", []),
        (f"{HEAD}metadata:\n  annotations:\n    a: >\n      |text\n", []),
        (f"{HEAD}metadata:\n  name: x\n    |", []),
        (f"{HEAD}spec:\n  two words|", []),
    ],
)  # fmt: skip
def test_proposals(marked: str, labels: list[str]) -> None:
    assert [item.label for item in at(marked)] == labels


@pytest.mark.parametrize(
    ("marked", "label", "expected"),
    [
        ("api|", "apiVersion", "apiVersion: "),
        ("apiVersion:|", "flowcontrol.apiserver.k8s.io/v1", "apiVersion: flowcontrol.apiserver.k8s.io/v1"),
        (f"{HEAD}spec:\n  m|", "matchingPrecedence", f"{HEAD}spec:\n  matchingPrecedence: "),
        (f"{HEAD}spec:\n  |rules: []", "distinguisherMethod", f"{HEAD}spec:\n  distinguisherMethod: []"),
        (f"{HEAD}spec:\n  ru|", "rules", f"{HEAD}spec:\n  rules:"),
        (f"{RULE}    - verbs: [get, |]", "list", f"{RULE}    - verbs: [get, list]"),
        (f'{RULE}    - verbs: ["li|"]', "list", f'{RULE}    - verbs: ["list"]'),
        (f"{RULE}    - verbs: ['li|", "list", f"{RULE}    - verbs: ['list'"),
        (f"{RULE}    - verbs: [|]", "*", f'{RULE}    - verbs: ["*"]'),
        (f"{RULE}    - verbs:\n      - |", "*", f'{RULE}    - verbs:\n      - "*"'),
        (f"{RULE}    - apiGroups:\n      |", "- apps", f"{RULE}    - apiGroups:\n      - apps"),
        (f"{HEAD}spec:\n  rules:\n  |", "- subjects", f"{HEAD}spec:\n  rules:\n  - subjects:"),
        (f'{HEAD}spec:\n  distinguisherMethod:\n    type: "By|"', "ByUser",
         f'{HEAD}spec:\n  distinguisherMethod:\n    type: "ByUser"'),
        (f"{HEAD}# apflint: ignore[AP|", "APF203", f"{HEAD}# apflint: ignore[APF203] "),
        (f"{HEAD}# apflint: ignore[APF203, |] why", "APF204", f"{HEAD}# apflint: ignore[APF203, APF204] why"),
        (f"{HEAD}# apf|", "apflint: ignore[", f"{HEAD}# apflint: ignore["),
    ],
)  # fmt: skip
def test_text_after_accepting_a_proposal(marked: str, label: str, expected: str) -> None:
    assert result(marked, label) == expected


@pytest.mark.parametrize(
    ("marked", "label", "expected"),
    [
        ('{"spec": {|', "type", '"type": '),
        ('{"spec": {"ty|', "type", '"type": '),
        ('{"spec": {"ty|": 1}}', "type", '"type": 1}}'),
        ('{"spec": {"type": |', "Limited", '"Limited"'),
        ('{"spec": {"type":"|"}}', "Limited", '"Limited"}}'),
    ],
)
def test_proposals_in_json(marked: str, label: str, expected: str) -> None:
    head = '{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", '
    assert result(head + marked[1:], label, is_json=True).endswith(expected)


def test_proposals_in_items_of_a_list() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: flowcontrol.apiserver.k8s.io/v1\n  kind: FlowSchema\n  spec:\n    distinguisherMethod:\n      type: |"
    assert [item.label for item in at(text)] == ["ByUser", "ByNamespace"]
    assert at("apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n  apiVersion: v1\n  spec:\n    |") == []


def test_priority_levels_of_the_workspace_and_built_in_ones() -> None:
    manifest = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: batch-jobs}\nspec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n"
    items = at(f"{HEAD}spec:\n  priorityLevelConfiguration:\n    name: |", cluster(manifest))
    assert [item.label for item in items[:3]] == ["batch-jobs", "catch-all", "exempt"]
    assert "30 shares" in items[0].documentation


def test_proposals_depend_on_the_target_release() -> None:
    old = cluster(release="1.25")
    assert [item.label for item in at("apiVersion: |", old)] == [
        f"flowcontrol.apiserver.k8s.io/{version}" for version in ("v1beta2", "v1beta1")
    ]
    level = LEVEL.replace("v1\n", "v1beta2\n") + "  type: Limited\n  limited:\n    |"
    assert [item.label for item in at(level, old)] == ["limitResponse", "assuredConcurrencyShares"]
    assert "lendablePercent" in [item.label for item in at(level, cluster(release="1.28"))]


OBJECTS = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: flows}
spec:
  priorityLevelConfiguration: {name: catch-all}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects:
    - {kind: User, user: {name: ann}}
    - {kind: Group, group: {name: dev}}
    - {kind: ServiceAccount, serviceAccount: {namespace: ci, name: runner}}
    resourceRules: [{verbs: [get], apiGroups: [""], resources: [pods], namespaces: ["*"]}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/healthz]}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: level}
spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {}}}}
"""
RULES = ("spec", "rules", 0)


@pytest.mark.parametrize(
    ("kind", "path", "field", "old", "new"),
    [
        ("FlowSchema", ("metadata",), "name", "{name: flows}", "{}"),
        ("FlowSchema", ("spec",), "priorityLevelConfiguration", "priorityLevelConfiguration: {name: catch-all}", ""),
        ("FlowSchema", ("spec", "distinguisherMethod"), "type", "{type: ByUser}", "{}"),
        ("FlowSchema", RULES, "subjects", "  - subjects:\n", "  - finalizers:\n"),
        ("FlowSchema", (*RULES, "subjects", 0), "kind", "kind: User, ", ""),
        ("FlowSchema", (*RULES, "subjects", 0, "user"), "name", "{name: ann}", "{}"),
        ("FlowSchema", (*RULES, "subjects", 1, "group"), "name", "{name: dev}", "{}"),
        ("FlowSchema", (*RULES, "subjects", 2, "serviceAccount"), "name", ", name: runner", ""),
        ("FlowSchema", (*RULES, "subjects", 2, "serviceAccount"), "namespace", "namespace: ci, ", ""),
        ("FlowSchema", (*RULES, "resourceRules", 0), "verbs", "verbs: [get], apiG", "apiG"),
        ("FlowSchema", (*RULES, "resourceRules", 0), "apiGroups", 'apiGroups: [""], ', ""),
        ("FlowSchema", (*RULES, "resourceRules", 0), "resources", "resources: [pods], ", ""),
        ("FlowSchema", (*RULES, "nonResourceRules", 0), "verbs", "verbs: [get], non", "non"),
        ("FlowSchema", (*RULES, "nonResourceRules", 0), "nonResourceURLs", ", nonResourceURLs: [/healthz]", ""),
        ("PriorityLevelConfiguration", ("spec",), "type", "type: Limited, ", ""),
        ("PriorityLevelConfiguration", ("spec", "limited", "limitResponse"), "type", "type: Queue, ", ""),
    ],
)
def test_required_fields_are_those_that_the_server_requires(
    kind: str, path: tuple[str | int, ...], field: str, old: str, new: str
) -> None:
    """If a field is marked as required, the server rejects the manifest without this field, and accepts it with this field."""
    owner = find_field(kind, "v1", NEWEST, path)
    assert owner is not None
    assert field in [missing.name for missing in owner.list_missing({}) if missing.required]
    options = Options(rules=tuple(rule for rule in CHECKS if rule < "APF4"))
    assert check([("a.yaml", OBJECTS.encode())], options).findings == ()
    assert OBJECTS.count(old) == 1
    assert any(
        finding.apiserver for finding in check([("a.yaml", OBJECTS.replace(old, new).encode())], options).findings
    )


TYPED = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  # What runs at night
  name: nightly
spec:
  priorityLevelConfiguration:
    name: workload-low
  matchingPrecedence: 700
  distinguisherMethod: {type: ByNamespace}
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount:
        namespace: ci
        name: runner
    -   kind: "Group"
        group: {name: system:authenticated}
    resourceRules:
      - verbs:
        - get
        - 'list'
        apiGroups: ["", apps]
        resources: [pods, "pods/log"]
        clusterScope: true
        namespaces:
          - "*"
    nonResourceRules:
    - nonResourceURLs: [ "/healthz", '/livez' ]
      verbs: [get]
---
kind: PriorityLevelConfiguration
apiVersion: flowcontrol.apiserver.k8s.io/v1
metadata:
  name: nightly
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 5
    lendablePercent: 50
    borrowingLimitPercent: 10
    limitResponse:
      type: Queue
      queuing:
        queues: 16
        handSize: 4
        queueLengthLimit: 20
"""
FREE = {"nightly", "ci", "runner", "700", "5", "50", "10", "16", "4", "20"}
"""Values that the user chooses freely, so that no proposal can contain them."""


def _words() -> list[tuple[int, int, str]]:
    """Return (start, end, expected label) of each key and value in the manifests, without quotes."""
    found = []
    for document in (0, TYPED.index("---")):
        for entry in read_entries(TYPED, document):
            if isinstance(entry.path[-1], str):
                found.append((*entry.key, entry.path[-1]))
            if entry.text is not None and entry.text not in FREE and entry.value[0] < entry.value[1]:
                quoted = TYPED[entry.value[0]] in "\"'"
                found.append((entry.value[0] + quoted, entry.value[1] - quoted, entry.text or '""'))
    return found


@pytest.mark.parametrize(("start", "end", "word"), [*_words()], ids=str)
def test_the_next_word_is_proposed(start: int, end: int, word: str) -> None:
    """The word is proposed both if the text ends at the cursor and if further text follows the cursor."""
    for length in {0, 1, len(word) // 2, len(word)}:
        cursor = min(start + length, end)
        line = TYPED.index("\n", cursor)
        for text in (TYPED[:cursor], TYPED[:cursor] + TYPED[end:], TYPED[:cursor] + TYPED[line:]):
            labels = [item.label for item in complete(text, cursor, NEW_CLUSTER)]
            assert word in labels, text[max(0, cursor - 60) : cursor] + "|" + text[cursor : cursor + 30]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("number", [0, 1])
def test_the_next_word_is_proposed_in_json(number: int, indent: int | None) -> None:
    documents = [load("a.yaml", TYPED.encode()).documents[number].value for _ in range(2)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}, indent=indent)
    for entry in read_entries(text, 0):
        if len(entry.path) < 3:
            continue
        words = [(entry.key, entry.path[-1])] if isinstance(entry.path[-1], str) else []
        if entry.text is not None and entry.text not in FREE and text[entry.value[0]] == '"':
            words.append((entry.value, entry.text or '""'))
        for (start, end), word in words:
            for cursor in {start + 1, end - 1}:
                # An unclosed quote turns the rest of the line from unquoted into quoted text, and vice versa.
                unclosed = [text[:cursor] + text[end:]] if indent and (start, end) == entry.value else []
                for typed in (text[:cursor], text[:cursor] + text[end - 1 :], *unclosed):
                    labels = [item.label for item in complete(typed, cursor, NEW_CLUSTER, json=True)]
                    assert word in labels, typed[max(0, cursor - 60) : cursor] + "|" + typed[cursor : cursor + 30]


def test_no_request_fails_at_any_offset() -> None:
    """At every offset, proposals replace only text around the cursor, on the line of the cursor."""
    for cursor in range(len(TYPED) + 1):
        for text in (TYPED[:cursor], TYPED[:cursor] + TYPED[cursor + 7 :]):
            for item in complete(text, cursor, NEW_CLUSTER):
                assert item.start <= cursor <= item.end
                assert "\n" not in text[item.start : item.end]
            explain(text, cursor, NEW_CLUSTER)
