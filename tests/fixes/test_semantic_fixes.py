"""Fixes of values in FlowSchemas and priority levels. The rest of the text must not change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rule_examples import parse_examples

from apflint import engine, rule_catalogue
from apflint.edit.fixing import FixResult, apply_fixes
from apflint.finding import Cause
from apflint.load import load
from apflint.model import build_flow_schema, build_priority_level
from apflint.releases import NEWEST, parse_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Report

SCHEMA = """\
# Who asks for this: the platform team.
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: deployer  # one for all clusters
spec:
  matchingPrecedence: 1500
  priorityLevelConfiguration:
    name: workload-low
  distinguisherMethod:
    type: ByUser
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount:
            namespace: ci
            name: deployer
      resourceRules:
        - verbs: [get, update]
          apiGroups: ["", apps]
          resources: [pods, deployments]
          namespaces: ["*"]
      nonResourceRules:
        - verbs: [get]
          nonResourceURLs: [/version, '/metrics']
"""
LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: builds
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 20
    lendablePercent: 50
    limitResponse:
      type: Queue
      queuing:
        queues: 64   # see the page on shards
        handSize: 6
        queueLengthLimit: 50
"""
QUEUING = LEVEL[LEVEL.index("      queuing:") :]
LIMITED = LEVEL[LEVEL.index("  limited:") :]
RULES = tuple(rule for rule in engine.Options().rules if rule not in ("APF403", "APF603"))
"""All default rules except APF403 and APF603, which report priority levels in manifests without FlowSchemas."""


class Case(NamedTuple):
    """A test of a fix. In the manifest `base`, which has no mistakes, `bad` replaces `old`. The fix replaces `bad` by `good`."""

    rule: str
    base: str
    old: str
    bad: str
    good: str
    safe: bool = True
    left: tuple[str, ...] = ()
    """Rules with findings before and after the fix."""


def level(rule: str, old: str, bad: str, good: str, safe: bool = True) -> Case:
    return Case(rule, LEVEL, old, bad, good, safe)


def schema(rule: str, old: str, bad: str, good: str, safe: bool = True, left: tuple[str, ...] = ()) -> Case:
    return Case(rule, SCHEMA, old, bad, good, safe, left)


BETA = LEVEL.replace("v1\n", "v1beta3\n", 1)
VERBS_LINE = "verbs: [get, update]"
DISTINGUISHER = "  distinguisherMethod:\n    type: ByUser\n"
NAME = "  name: deployer  # one for all clusters\n"
ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
KEPT = "apf.kubernetes.io/autoupdate-spec"
SCHEDULER = SCHEMA.replace("namespace: ci", "namespace: kube-system # the").replace(
    "name: deployer\n      r", "name: kube-scheduler # one\n      r"
)
WIDE = SCHEMA.replace("          namespaces", "          clusterScope: true\n          namespaces")
SCOPED = SCHEMA.replace("get, update", "get, list").replace("workload-low", "global-default")
"""A FlowSchema whose priority level is not that of the built-in FlowSchema for service accounts (workload-low)."""

CASES = [
    schema("APF203", "type: ByUser", "type: byuser", "type: ByUser"),
    schema("APF203", "type: ByUser", "type: 'By-User'  # ?", "type: 'ByUser'  # ?"),
    schema("APF203", "type: ByUser", 'type: "Namespace"', 'type: "ByNamespace"'),
    schema("APF204", "name: workload-low", "name: Workload_Low", "name: workload-low", safe=False),
    # The field `name` contains the whole user name of the service account.
    schema(
        "APF208",
        "  name: deployer\n      ",
        "  name: system:serviceaccount:ci:deployer\n      ",
        "  name: deployer\n      ",
        False,
    ),
    schema(
        "APF208",
        "  namespace: ci\n            name: deployer",
        "  name: 'system:serviceaccount:ci:deployer'",
        "  namespace: ci\n            name: 'deployer'",
        safe=False,
    ),
    # A wildcard next to other items.
    Case("APF210", WIDE, VERBS_LINE, "verbs: [get, '*', update]", "verbs: ['*']"),
    Case("APF210", WIDE, VERBS_LINE, 'verbs: ["*", "*"]', 'verbs: ["*"]'),
    Case("APF210", WIDE, VERBS_LINE, 'verbs: [\n  get, # a\n  "*" ]', 'verbs: [\n  # a\n  "*" ]'),
    schema("APF210", 'apiGroups: ["", apps]', 'apiGroups: ["*", apps]', 'apiGroups: ["*"]'),
    schema("APF210", "resources: [pods, deployments]", "resources: [pods, '*']", "resources: ['*']"),
    schema("APF210", 'namespaces: ["*"]', 'namespaces: [a, "*", b]', 'namespaces: ["*"]'),
    schema(
        "APF210",
        'namespaces: ["*"]',
        'namespaces:\n            - a\n            # all of them\n            - "*"  # yes\n            - b',
        'namespaces:\n            # all of them\n            - "*"  # yes',
    ),
    schema("APF210", "[/version, '/metrics']", "[/version, '*']", "['*']"),
    # Verbs in upper case, misspelled verbs, and HTTP methods.
    schema("APF211", VERBS_LINE, "verbs: [GET, Update]", "verbs: [get, update]"),
    schema("APF211", VERBS_LINE, "verbs: [get, GET, 'updates']", "verbs: [get, 'update']"),
    schema("APF211", "verbs: [get]", 'verbs: ["Get"]', 'verbs: ["get"]'),
    schema("APF211", VERBS_LINE, "verbs: [get, PUT, POST]", "verbs: [get, update, create]", safe=False),
    schema("APF211", VERBS_LINE, "verbs: [get, post]", "verbs: [get, create]", safe=False),
    schema("APF213", 'namespaces: ["*"]', "namespaces: [ci, Team-A]", "namespaces: [ci, team-a]", safe=False),
    schema("APF214", "[/version, '/metrics']", "['version', '/metrics']", "['/version', '/metrics']", safe=False),
    # Types of priority levels and of limit responses.
    level("APF302", "type: Limited", "type: limited", "type: Limited"),
    level("APF302", "type: Limited", 'type: "LIMIT"', 'type: "Limited"'),
    level("APF302", "  type: Limited\n", "", "  type: Limited\n"),
    level("APF302", "type: Limited", "type:", 'type: "Limited"'),
    level("APF302", "  limited:", "  exempt: {lendablePercent: 5}\n  limited:", "  limited:", safe=False),
    level("APF302", "type: Limited", "type: Exempt", "type: Limited", safe=False),
    level("APF303", "type: Queue", "type: queue", "type: Queue"),
    level("APF303", f"type: Queue\n{QUEUING}", "type: reject # 429\n", "type: Reject # 429\n"),
    level(
        "APF303",
        f"type: Queue\n{QUEUING}",
        f"type: Reject # 429\n{QUEUING}",
        "type: Reject # 429\n      # see the page on shards\n",
    ),
    level("APF303", "      type: Queue\n", "", "      type: Queue\n", safe=False),
    level(
        "APF303",
        f"type: Queue\n{QUEUING}",
        "type: Queue\n",
        "type: Queue\n      queuing:\n        queues: 64\n",
        safe=False,
    ),
    level(
        "APF303",
        f"type: Queue\n{QUEUING}",
        "queuing: # ?\n      type: Queue\n",
        "queuing: # ?\n        queues: 64\n      type: Queue\n",
        False,
    ),
    level("APF312", "metadata:\n", f"metadata:\n  annotations: {{{ZERO}: ''}}\n", "metadata:\n", safe=False),
    # A misspelled name of a priority level.
    schema("APF401", "name: workload-low", "name: workload-lwo", "name: workload-low", safe=False),
    schema("APF401", "name: workload-low", "name: 'globaldefault'", "name: 'global-default'", safe=False),
    # Built-in objects, and objects that the server treats as its own.
    schema(
        "APF404",
        NAME,
        "  name: probes # of us\n",
        f'  name: probes # of us\n  annotations:\n    {KEPT}: "false"\n',
        left=("APF517",),
    ),
    schema(
        "APF404",
        NAME,
        f"  name: probes\n  annotations: {{a: b, {KEPT}: 'true'}}\n",
        f"  name: probes\n  annotations: {{a: b, {KEPT}: 'false'}}\n",
        left=("APF517",),
    ),
    schema(
        "APF404",
        NAME,
        "  name: probes\n  annotations:\n    # ours\n    a: b\n",
        f'  name: probes\n  annotations:\n    # ours\n    a: b\n    {KEPT}: "false"\n',
        left=("APF517",),
    ),
    schema(
        "APF404",
        NAME,
        "  name: probes\n  annotations:\n",
        f'  name: probes\n  annotations:\n    {KEPT}: "false"\n',
        left=("APF517",),
    ),
    schema(
        "APF404",
        NAME,
        "  name: probes\n  annotations: null # ?\n",
        f'  name: probes\n  annotations: {{{KEPT}: "false"}} # ?\n',
        left=("APF517",),
    ),
    schema("APF405", NAME, f'{NAME}  annotations: {{{KEPT}: "1"}}\n', f'{NAME}  annotations: {{{KEPT}: "false"}}\n'),
    schema(
        "APF405",
        NAME,
        f'  name: workload-leader-election  # of older servers\n  annotations: {{{KEPT}: "true"}}\n',
        f'  name: workload-leader-election  # of older servers\n  annotations: {{{KEPT}: "false"}}\n',
        safe=False,
        left=("APF705",),
    ),
    # Names that cannot occur in requests.
    schema("APF504", '["", apps]', "['', apps/v1]", "['', apps]", safe=False),
    schema("APF504", '["", apps]', "[core, Apps, apps/v1]", '["", apps]', safe=False),
    schema("APF504", "[pods, deployments]", "[Pod, 'Deployment/Scale']", "[pods, 'deployments/scale']", safe=False),
    schema("APF504", "[pods, deployments]", "[deploy, po, pods]", "[deployments, pods]", safe=False),
    schema("APF504", "verbs: [get]", "verbs: [get, list, watch]", "verbs: [get]", safe=False),
    # The scope of a rule: namespaces, or the whole cluster.
    Case(
        "APF505",
        SCOPED,
        'namespaces: ["*"]',
        'clusterScope: false\n          namespaces: ["*"]',
        'clusterScope: true\n          namespaces: ["*"]',
        False,
    ),
    Case(
        "APF505",
        SCOPED,
        "          namespaces",
        "          namespaces",
        "          clusterScope: true\n          namespaces",
        False,
    ),
    schema(
        "APF506",
        '- verbs: [get, update]\n          apiGroups: ["", apps]\n          resources: [pods, deployments]',
        "- verbs: [get, update]\n          apiGroups: ['']\n          resources: [nodes]",
        "- verbs: [get, update]\n          apiGroups: ['']\n          resources: [nodes]\n          clusterScope: true",
        safe=False,
    ),
    schema(
        "APF506",
        SCHEMA[SCHEMA.index("- verbs") : SCHEMA.index("      nonResourceRules")],
        "- verbs: [get]\n          apiGroups: ['']\n          resources: [pods]\n          clusterScope: true\n",
        "- verbs: [get]\n          apiGroups: ['']\n          resources: [pods]\n"
        '          clusterScope: true\n          namespaces: ["*"]\n',
        safe=False,
    ),
    schema("APF509", "  matchingPrecedence: 1500\n", "", "  matchingPrecedence: 1000\n"),
    schema("APF509", "matchingPrecedence: 1500\n", "matchingPrecedence: 0 # ?\n", "matchingPrecedence: 1000 # ?\n"),
    schema("APF509", "matchingPrecedence: 1500\n", "matchingPrecedence:\n", "matchingPrecedence: 1000\n"),
    schema(
        "APF511",
        f"workload-low\n{DISTINGUISHER}",
        f"exempt\n{DISTINGUISHER}",
        "exempt\n",
        safe=False,
        left=("APF601",),
    ),
]


BESIDE = {"APF302": {"APF301"}, "APF504": {"APF106"}}
"""Maps the rule of a case to other rules that also report the mistake of the case."""


def judge(inputs: Mapping[str, bytes]) -> Report:
    return engine.check(list(inputs.items()), engine.Options(rules=RULES, covered=True))  # the options of `apflint fix`


def fixed(text: str, *, unsafe: bool = False, name: str = "a.yaml") -> tuple[FixResult, str]:
    done = apply_fixes({name: text.encode()}, judge, unsafe=unsafe)
    return done, done.inputs[name].decode()


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.bad[:30].strip()}")
def test_fixes_change_nothing_else(case: Case) -> None:
    assert case.base.count(case.old) == 1, "the case would change more than it shows"
    before = case.base.replace(case.old, case.bad)
    report = judge({"a.yaml": before.encode()})
    assert {case.rule, *case.left} <= set(rules(report))
    assert all(
        finding.fix.safe is case.safe for finding in report.findings if finding.rule == case.rule and finding.fix
    )

    done, after = fixed(before, unsafe=not case.safe)

    assert after == case.base.replace(case.old, case.good)
    assert case.rule in {found.rule for found in done.fixed} <= {case.rule, *BESIDE.get(case.rule, ())}
    assert not done.refused
    assert rules(done.report) == list(case.left)
    assert fixed(after, unsafe=True)[1] == after


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.safe], ids=lambda case: f"{case.rule}-{case.bad[:30].strip()}"
)
def test_unsafe_fixes_are_applied_on_request(case: Case) -> None:
    before = case.base.replace(case.old, case.bad)
    done, after = fixed(before)
    assert (after, done.fixed, done.refused) == (before, (), ())


def test_line_ends_stay() -> None:
    before = SCHEMA.replace("  matchingPrecedence: 1500\n", "").replace(NAME, "  name: probes\n").replace("\n", "\r\n")
    _, after = fixed(before)
    wanted = SCHEMA.replace("1500", "1000").replace(NAME, f'  name: probes\n  annotations:\n    {KEPT}: "false"\n')
    assert after == wanted.replace("\n", "\r\n")


def test_fixes_in_json() -> None:
    value = yaml.safe_load(SCHEMA)
    del value["spec"]["matchingPrecedence"]
    value["spec"]["distinguisherMethod"]["type"] = "byUser"
    value["spec"]["rules"][0]["resourceRules"][0]["apiGroups"] = ["", "*", "apps"]
    for indent in (None, 2, "\t"):
        text = json.dumps(value, indent=indent)
        done, after = fixed(text, name="a.json")
        assert not done.refused
        wanted = json.loads(text)
        wanted["spec"]["rules"][0]["resourceRules"][0]["apiGroups"] = ["*"]
        wanted["spec"]["distinguisherMethod"]["type"] = "ByUser"
        wanted["spec"]["matchingPrecedence"] = 1000
        assert json.loads(after) == wanted
        assert len(after.splitlines()) == len(text.splitlines()) + (0 if indent is None else -1)


def test_fixes_in_a_list() -> None:
    item = "".join(f"    {line}" for line in SCHEMA.replace("ByUser", "byUser").splitlines(keepends=True))
    before = f"apiVersion: v1\nkind: List\nitems:\n  -\n{item}  - {{kind: Other, apiVersion: v1, type: byUser}}\n"
    assert fixed(before)[1] == before.replace("    type: byUser\n", "    type: ByUser\n")


def test_several_findings_in_one_object() -> None:
    before = WIDE.replace("ByUser", "byuser").replace(VERBS_LINE, 'verbs: [GET, "*"]').replace("[get]", "[GET]")
    done, after = fixed(before)
    assert not done.refused
    assert after == WIDE.replace(VERBS_LINE, 'verbs: ["*"]')


def test_insertion_beside_a_removal() -> None:
    """The annotation is inserted at the line from which the namespace is removed, so two edits start there."""
    calls = 0

    def counting(inputs: Mapping[str, bytes]) -> Report:
        nonlocal calls
        calls += 1
        return judge(inputs)

    before = SCHEMA.replace(NAME, "  name: probes\n  namespace: x\n")
    done = apply_fixes({"a.yaml": before.encode()}, counting)
    after = SCHEMA.replace(NAME, f'  name: probes\n  annotations:\n    {KEPT}: "false"\n')
    assert done.inputs["a.yaml"].decode() == after
    assert calls == 2


def test_shared_value_stays() -> None:
    """The type is an alias of an annotation, so an edit of the type would also change the annotation."""
    before = SCHEMA.replace("metadata:\n", "metadata:\n  annotations: {by: &by byuser}\n").replace("ByUser", "*by")
    done, after = fixed(before)
    assert after == before
    assert [refusal.finding.rule for refusal in done.refused] == ["APF203"]
    assert "the edit would change another value, too, perhaps because of an anchor" in done.refused[0].reason


def test_shared_value_is_fixed_if_all_uses_are_wrong() -> None:
    before = WIDE.replace('namespaces: ["*"]', 'namespaces: &all ["*", /ci]').replace("[/version, '/metrics']", "*all")
    assert fixed(before)[1] == before.replace('["*", /ci]', '["*"]')


def test_shared_value_is_fixed_beside_one_that_cannot_be() -> None:
    before = WIDE.replace("metadata:\n", "metadata:\n  annotations: {by: &by byuser}\n").replace("ByUser", "*by")
    before = before.replace('namespaces: ["*"]', 'namespaces: &all ["*", /ci]').replace(
        "[/version, '/metrics']", "*all"
    )
    done, after = fixed(before)
    assert after == before.replace('["*", /ci]', '["*"]')
    assert [refusal.finding.rule for refusal in done.refused] == ["APF203"]


def test_merged_field_stays() -> None:
    before = LEVEL.replace(f"type: Queue\n{QUEUING}", "<<: *response\n      type: Reject\n").replace(
        "spec:", "x-response: &response\n  queuing: {queues: 64, handSize: 6}\nspec:"
    )
    done, after = fixed(before)
    assert after == before
    assert [refusal.finding.rule for refusal in done.refused] == ["APF303"]
    assert "a YAML merge key takes `queuing` from another mapping" in done.refused[0].reason


@pytest.mark.parametrize(
    ("base", "bad", "good", "left"),
    [
        (LEVEL.replace("50\n    limit", "500\n    limit"), "type: limited", "type: Limited", "APF310"),
        (LEVEL.replace("handSize: 6", "handSize: 99"), "type: queue", "type: Queue", "APF305"),
        (SCHEMA.replace("name: deployer\n      res", "name: De_ployer\n      res"), "kind: serviceaccount", "kind: ServiceAccount", "APF208"),
    ],
)  # fmt: skip
def test_findings_masked_by_a_type_are_allowed(base: str, bad: str, good: str, left: str) -> None:
    done, after = fixed(base.replace(good, bad))
    assert after == base
    assert not done.refused
    assert [finding.rule for finding in done.report.findings if finding.severity == "error"] == [left]


def test_type_that_contradicts_its_fields_stays() -> None:
    before = LEVEL.replace(f"type: Queue\n{QUEUING}", "type: queue\n")
    done, after = fixed(before)
    assert after == before
    [refusal] = done.refused
    assert refusal.reason.startswith("it would cause APF303 in line ")


def test_fix_that_causes_another_finding_is_refused() -> None:
    """After the fix, a built-in FlowSchema with the same priority level would capture all requests of the FlowSchema."""
    before = SCHEDULER.replace("1500", "850").replace("workload-low", "workload-high").replace("ByUser", "ByNamespace")
    done, after = fixed(before, unsafe=True)
    assert after == before
    assert [refusal.finding.rule for refusal in done.refused] == ["APF512"]
    assert done.refused[0].reason.startswith("it would cause APF501")


def test_service_account_becomes_the_intended_user() -> None:
    before = SCHEDULER.replace("1500", "700").replace("workload-low", "workload-high")
    done, after = fixed(before, unsafe=True)
    assert not done.refused
    user = "        - kind: User\n          user:\n            # the\n            name: system:kube-scheduler # one\n"
    assert after == before.replace(before[before.index("        - kind") : before.index("      resource")], user)


@pytest.mark.parametrize(
    ("rule", "base", "old", "bad"),
    [
        ("APF201", SCHEMA, "1500", "20000"),
        ("APF202", SCHEMA, "1500", "1"),
        ("APF203", SCHEMA, "type: ByUser", "type: ByGroup"),
        ("APF203", SCHEMA, "type: ByUser", "type: ''"),
        ("APF204", SCHEMA, "name: workload-low", "name: Builds"),
        ("APF208", SCHEMA, "name: deployer\n      ", "name: system:serviceaccount:cd:deployer\n      "),
        ("APF208", SCHEMA, "name: deployer\n      ", "name: system:serviceaccount:deployer\n      "),
        ("APF208", SCHEMA, "name: deployer\n      ", "name: system:serviceaccount:ci:Deployer\n      "),
        ("APF211", SCHEMA, VERBS_LINE, "verbs: [deleteall]"),
        ("APF211", SCHEMA, VERBS_LINE, "verbs: [use]"),
        ("APF211", SCHEMA, VERBS_LINE, "verbs: [get, HEAD]"),
        ("APF211", SCHEMA, "verbs: [get]", "verbs: [get, post]"),
        ("APF213", SCHEMA, 'namespaces: ["*"]', "namespaces: [team_a]"),
        ("APF214", SCHEMA, "/version", "https://host/version"),
        ("APF214", SCHEMA, "/version", "/version*"),
        ("APF301", LEVEL, f"  type: Limited\n{LIMITED}", "  type: Exempt\n"),
        ("APF302", LEVEL, "type: Limited", "type: Unlimited"),
        ("APF302", LEVEL, "type: Limited", "type: exempt"),
        ("APF303", LEVEL, "type: Queue", "type: Drop"),
        ("APF401", SCHEMA, "workload-low", "team-a"),
        ("APF401", SCHEMA, "workload-low", "workload"),
        ("APF401", SCHEMA, "workload-low", "workload-hi"),
        ("APF504", SCHEMA, '["", apps]', '["*.io", ""]'),
        ("APF504", SCHEMA, '["", apps]', '["", apps/deployments]'),
        ("APF504", SCHEMA, "[pods, deployments]", "[pods, pods/*]"),
        ("APF504", SCHEMA, "[pods, deployments]", "[pods, Widget]"),
        ("APF504", SCHEMA, 'apiGroups: ["", apps]\n          resources: [pods', "apiGroups: [apps]\n          resources: [Pod"),
        ("APF504", SCHEMA, "[get]", "[create]"),
        ("APF702", LEVEL, "/v1\n", "/v1beta3\n"),
    ],
)  # fmt: skip
def test_ambiguous_values_have_no_fix(rule: str, base: str, old: str, bad: str) -> None:
    assert base.count(old) == 1
    target = "1.31" if rule == "APF702" else "1.36"
    report = engine.check(
        [("a.yaml", base.replace(old, bad).encode())], engine.Options(kubernetes=parse_release(target))
    )
    found = [finding for finding in report.findings if finding.rule == rule]
    assert found
    assert [finding.fix for finding in found] == [None] * len(found)


def test_level_is_not_renamed_to_a_similar_one() -> None:
    """`prod-1` is not a misspelling of `prod-2`, and a name that resembles two levels is ambiguous."""
    for wanted, there in (
        ("prod-1", ["prod-2"]),
        ("cluster1", ["cluster2"]),
        ("team-a", ["team-b"]),
        ("tenants", ["tenant", "tenanta"]),
    ):
        levels = "".join(f"---\n{LEVEL.replace('builds', name)}" for name in there)
        report = judge({"a.yaml": (SCHEMA.replace("workload-low", wanted) + levels).encode()})
        assert [finding.fix for finding in report.findings if finding.rule == "APF401"] == [None]


@pytest.mark.parametrize(
    ("verbs", "safe", "unsafe", "left"),
    [
        ("[Get, head]", "[get, head]", "[get, head]", 1),
        ("[GET, exec, use]", "[get, exec, use]", "[get, exec, use]", 1),
        ("[DELETE, post]", "[delete, post]", "[delete, create]", 0),
        ("[put, Updates]", "[put, update]", "[update]", 0),
        ("[Get, put, exec, GET]", "[get, put, exec]", "[get, update, exec]", 1),
    ],
)
def test_misspelled_verb_is_fixed_beside_other_mistakes(verbs: str, safe: str, unsafe: str, left: int) -> None:
    before = SCHEMA.replace(VERBS_LINE, f"verbs: {verbs}")
    report = judge({"a.yaml": before.encode()})
    path = "spec.rules[0].resourceRules[0].verbs"
    assert {finding.apiserver for finding in report.findings} == {Cause("FieldValueNotSupported", path)}
    assert fixed(before)[1] == SCHEMA.replace(VERBS_LINE, f"verbs: {safe}")
    done, after = fixed(before, unsafe=True)
    assert after == SCHEMA.replace(VERBS_LINE, f"verbs: {unsafe}")
    assert rules(done.report) == ["APF211"] * left
    assert fixed(after, unsafe=True)[1] == after


@pytest.mark.parametrize("rule_id", rule_catalogue.list_ids())
def test_pages_state_whether_a_rule_has_fixes(rule_id: str) -> None:
    rule = rule_catalogue.read_rule(rule_id)
    for example in parse_examples(rule):
        options = engine.Options(kubernetes=parse_release(example.kubernetes or NEWEST.name))
        for finding in engine.check([(example.file, example.text.encode())], options).findings:
            if finding.fix is not None:
                marked = rule_catalogue.read_rule(finding.rule).fix
                assert marked == "safe" if finding.fix.safe else marked is not None, finding


def _written(values: list[Any]) -> st.SearchStrategy[str]:
    """Generate a text with these objects, in several styles of YAML and JSON."""
    styles: list[Any] = [
        json.dumps,
        lambda value: yaml.safe_dump(value, sort_keys=False),
        lambda value: yaml.safe_dump(value, default_flow_style=True, width=60),
        lambda value: "".join(f"{line}  # so\n" for line in yaml.safe_dump(value, sort_keys=False).splitlines()),
    ]
    return st.sampled_from(styles).map(lambda style: "---\n".join(style(value) + "\n" for value in values))


def one_of(*values: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(values)


WORDS = st.sampled_from(["get", "GET", "*", "Update", "list", "patch", "exec"])
PRECEDENCE = one_of({}, {"matchingPrecedence": 0}, {"matchingPrecedence": None}, {"matchingPrecedence": 1500})
DISTINGUISHERS = one_of({}, {"distinguisherMethod": {"type": "ByUser"}}, {"distinguisherMethod": {"type": "byuser"}})
ANNOTATIONS = one_of({}, {"annotations": {"a": "b"}}, {"annotations": {KEPT: "true"}}, {"annotations": {KEPT: "no"}})


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """Generate a FlowSchema and a priority level with mistakes, with and without safe fixes."""
    lists = st.lists(WORDS, min_size=1, max_size=4, unique=True)
    rule = {
        "verbs": draw(lists),
        "apiGroups": draw(st.sampled_from([["*"], ["", "*"], ["apps", ""]])),
        "resources": draw(st.sampled_from([["*"], ["pods", "*", "nodes"], ["pods"]])),
        "clusterScope": True,
        "namespaces": ["*"],
    }
    subject = {"kind": "User", "user": {"name": "alice"}}
    spec = {
        **draw(PRECEDENCE),
        "priorityLevelConfiguration": {"name": "builds"},
        **draw(DISTINGUISHERS),
        "rules": [{"subjects": [subject], "resourceRules": [rule]}],
    }
    meta = {"name": draw(st.sampled_from(["own", "probes"])), **draw(ANNOTATIONS)}
    response = draw(one_of({"type": "Reject"}, {"type": "reject"}, {"type": "Queue", "queuing": {"handSize": 6}}))
    if draw(st.booleans()):
        response = {**response, "queuing": {"queues": 32, "handSize": 4}}
    limited = draw(one_of({}, {"nominalConcurrencyShares": 5}))
    marked = draw(one_of({}, {"annotations": {ZERO: ""}}))
    head = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta3", "kind": "PriorityLevelConfiguration"}
    level_value = {
        **head,
        "metadata": {"name": "builds", **marked},
        "spec": {
            "type": draw(st.sampled_from(["Limited", "limited"])),
            "limited": {**limited, "limitResponse": response},
        },
    }
    return draw(_written([level_value, {**head, "kind": "FlowSchema", "metadata": meta, "spec": spec}]))


@pytest.mark.slow
@given(manifests())
@settings(max_examples=100, derandomize=True, deadline=None)
def test_safe_fixes_keep_the_spec_of_accepted_objects(text: str) -> None:
    """A safe fix does not change the spec of an object that the server accepts. Applying the fixes again changes nothing."""

    def check(inputs: Mapping[str, bytes]) -> Report:
        return engine.check(list(inputs.items()), engine.Options(kubernetes=parse_release("1.31")))

    before = check({"a.yaml": text.encode()})
    done = apply_fixes({"a.yaml": text.encode()}, check)

    assert not done.refused
    assert not [finding for finding in done.report.findings if finding.fix is not None and finding.fix.safe]
    after = done.inputs["a.yaml"]
    rejected = {finding.object.kind for finding in before.findings if finding.apiserver and finding.object}
    assert _specs(text.encode(), rejected) == _specs(after, rejected)
    assert apply_fixes(done.inputs, check).inputs == done.inputs


def _specs(data: bytes, rejected: set[str]) -> list[Any]:
    """Return the specs, with defaults, of the objects whose kind is not in `rejected`."""
    specs: list[Any] = []
    for document in load("a.yaml", data).documents:
        if document.kind not in rejected:
            level_of = document.kind == "PriorityLevelConfiguration"
            typed = (
                build_priority_level(document.value, document, parse_release("1.31"))
                if level_of
                else build_flow_schema(document.value, document)
            )
            specs.append(typed.spec)
    return specs
