"""Hover texts. `|` marks the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apflint import rule_catalogue
from apflint.lsp.features.hover import HoverText, explain
from apflint.releases import NEWEST
from lsp.texts import NEW_CLUSTER, cluster

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective

FLOW = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
LEVEL = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\n"


def at(
    marked: str, effective: Effective = NEW_CLUSTER, rules: tuple[str, ...] = (), *, json: bool = False
) -> HoverText | None:
    offset = marked.index("|")
    return explain(marked.replace("|", "", 1), offset, effective, json=json, rules=rules)


def shown(marked: str, effective: Effective = NEW_CLUSTER, rules: tuple[str, ...] = ()) -> str:
    found = at(marked, effective, rules)
    assert found is not None
    return found.markdown


def test_field_with_type_default_and_description() -> None:
    text = f"{LEVEL}spec:\n  limited:\n    limitResponse:\n      queuing:\n        hand|Size: 12\n"
    assert shown(text) == (
        "**handSize**: integer, default 8\n\n"
        "The number of queues that each flow may use. A request joins the one with the least work. At most the number of"
        " queues. Absent or 0 means 8. The server rejects values for which ceil(log2(queues) \\* handSize) is greater than"
        " 60: with 64 queues, at most 10 is allowed.\n\n"
        f"`spec.limited.limitResponse.queuing.handSize` of PriorityLevelConfiguration v1, Kubernetes {NEWEST.name}"
    )


@pytest.mark.parametrize(
    ("marked", "parts"),
    [
        (f"{FLOW}spec:\n  |matchingPrecedence: 5\n", ["integer, default 1000"]),
        (f"{FLOW}spec:\n  distinguisherMethod: {{t|ype: x}}\n", ["string, required, such as `ByUser`, `ByNamespace`"]),
        (f"{FLOW}spec:\n  rules:\n  - subje|cts:\n    - kin", ["**subjects**: list of objects, required"]),
        (f"{LEVEL.replace('/v1', '/v1beta2')}spec:\n  limited:\n    assured|ConcurrencyShares: 1\n",
         ["default 30", "of PriorityLevelConfiguration v1beta2"]),
        (f"{FLOW}metadata:\n  |name: x\n", ["**name**: string, required"]),
        (f"{FLOW}metadata:\n  name: |x\n", ["**name**: string, required", "`metadata.name` of"]),
        (f"{FLOW}spec:\n  rules:\n  - resourceRules:\n    - verbs: [get, li|st]\n",
         ["**verbs**: list of strings, required", "`spec.rules[0].resourceRules[0].verbs` of"]),
    ],
)  # fmt: skip
def test_fields(marked: str, parts: list[str]) -> None:
    text = shown(marked)
    assert [part for part in parts if part not in text] == []


def test_hover_in_json() -> None:
    found = at('{"kind": "List", "items": [{"kind": "FlowSchema", "spec": {"ru|les": []}}]}', json=True)
    assert found is not None
    assert found.markdown.startswith("**rules**: list of objects")


@pytest.mark.parametrize(
    "marked",
    [
        "|",
        "kind: Deployment\nsp|ec: {}\n",
        f"{FLOW}spec:\n  rules: # the ru|les\n",
        f"{FLOW}spec:\n  nonse|nse: 1\n",
        f"{FLOW}metadata:\n  labels: {{a: |x}}\n",
        f"{FLOW}metadata:\n  annotations:\n    a: |\n".replace("|", "> \n      ki|nd: FlowSchema", 1),
    ],
)
def test_no_hover(marked: str) -> None:
    assert at(marked) is None


def test_priority_levels() -> None:
    manifests = (
        f"{LEVEL}metadata: {{name: batch}}\nspec: {{type: Limited, limited: {{nominalConcurrencyShares: 10, lendablePercent: 50,"
        f" limitResponse: {{type: Queue, queuing: {{}}}}}}}}\n---\n{FLOW}metadata: {{name: jobs}}\n"
        "spec: {priorityLevelConfiguration: {name: batch}}\n"
    )
    known = cluster(manifests)
    text = shown(f"{FLOW}spec:\n  priorityLevelConfiguration:\n    name: ba|tch\n", known)
    assert "`batch`: Limited, 10 shares. If no seat is free, requests wait in a queue." in text
    limits = known.limits.level("batch")
    assert limits is not None
    assert f"{limits.nominal} of the 600 seats of one API server; at least {limits.min}" in text
    assert "64 queues of 50 requests each; a flow uses up to 8 of these queues." in text
    assert "FlowSchemas: `jobs`." in text
    assert text == shown(f"{LEVEL}metadata:\n  name: |batch\n", known)
    assert "Unknown priority level `nobody`" in shown(
        f"{FLOW}spec:\n  priorityLevelConfiguration:\n    name: nob|ody\n", known
    )
    built_in = shown(f"{FLOW}spec:\n  priorityLevelConfiguration:\n    name: workload|-low\n", known)
    assert built_in.endswith(f"Every API server of Kubernetes {NEWEST.name} creates this level automatically.")
    assert "Exempt. Requests of this level are never" in shown(f"{LEVEL}metadata:\n  name: exempt|\n", known)
    node_high = f"{LEVEL}metadata:\n  name: node-hi|gh\n"
    assert shown(node_high, cluster(release="1.20")).startswith("Unknown priority level `node-high`")


def test_names_are_escaped() -> None:
    text = shown(f"{FLOW}spec:\n  priorityLevelConfiguration:\n    name: 'x`[a](http://b)<b>|'\n")
    assert "``x`[a](http://b)<b>``" in text


def test_rules_of_comments_and_findings() -> None:
    rule = rule_catalogue.read_rule("APF203")
    for comment in (
        "ignore[APF203|] why",
        "ignore[APF101, |APF203]",
        "file-ignore[APF|203",
        "ignore[unknown-distin|guisher]",
    ):
        text = shown(f"{FLOW}# apflint: {comment}\n")
        assert text.startswith(f"**[APF203]({rule.url})** unknown-distinguisher (error)\n\n")
    assert at(f"{FLOW}# apflint: ignore[APF999|]\n") is None
    assert "APF203" not in shown(f'{FLOW}metadata:\n  name: "# apflint: ignore[APF2|03]"\n')
    field = shown(f"{FLOW}sp|ec: {{}}\n", rules=("APF203", "APF203"))
    assert field.startswith("**spec**: object")
    assert field.count(rule.url) == 1
    assert shown(f"{FLOW}spec: {{}}\n|", rules=("APF203",)).startswith(f"[APF203]({rule.url})")
