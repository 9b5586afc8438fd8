"""Fixes of fields and types. The rest of the text must not change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from apflint import engine
from apflint.edit.fixing import FixResult, apply_fixes
from apflint.load import load
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
  labels: {team: "ci"}
spec:
  matchingPrecedence: 1500
  priorityLevelConfiguration:
    name: workload-low
  distinguisherMethod:
    type: ByUser   # each for himself
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount:
            name: deployer
            namespace: ci
        - kind: Group
          group:
            name: 'sso:ci'
      resourceRules:
        - verbs: [get, update]
          apiGroups: ["", apps]
          resources:
            - pods
            - deployments
          namespaces: ["ci"]
      nonResourceRules:
        - verbs: ["get"]
          nonResourceURLs: [/version]
"""
LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: workload-low
  annotations:
    apf.kubernetes.io/autoupdate-spec: "false"
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 90
    lendablePercent: 50
    limitResponse:
      type: Queue
      queuing:
        queues: 64   # see the page on shards
        handSize: 6
"""


class Case(NamedTuple):
    """A test of a fix. In the manifest `base`, which has no mistakes, `bad` replaces `old`.

    The fix replaces `bad` by `good`, or by `old` if `good` is empty.
    """

    rule: str
    base: str
    old: str
    bad: str
    good: str = ""
    kubernetes: str = NEWEST.name

    @property
    def before(self) -> str:
        assert self.base.count(self.old) == 1, self.old
        return self.base.replace(self.old, self.bad)

    @property
    def after(self) -> str:
        return self.base.replace(self.old, self.good or self.old)


V1BETA2 = LEVEL.replace("io/v1", "io/v1beta2").replace("nominal", "assured")
RBAC_ACCOUNT = "          serviceAccount:\n            name: deployer\n            namespace: ci\n"
GROUP = "          group:\n            name: 'sso:ci'\n"
QUEUING = "      queuing:\n        queues: 64   # see the page on shards\n        handSize: 6\n"
LIMITED = LEVEL[LEVEL.index("  limited:") :]
TYPE = "  distinguisherMethod:\n    type: ByUser   # each for himself\n"

SAFE = [
    Case("APF703", LEVEL, "nominalConcurrencyShares", "assuredConcurrencyShares"),
    Case("APF703", LEVEL, "nominalConcurrencyShares", "'assuredConcurrencyShares'", "'nominalConcurrencyShares'"),
    Case("APF703", V1BETA2, "assuredConcurrencyShares", "nominalConcurrencyShares", kubernetes="1.25"),
    Case("APF703", V1BETA2, "assuredConcurrencyShares", "nominalConcurrencyShares", kubernetes="1.24"),
    # Misspelled fields, and misspelled fields inside misspelled fields.
    Case("APF101", SCHEMA, "nonResourceRules", "nonResourceRule"),
    Case("APF101", SCHEMA, "matchingPrecedence", "priority"),
    Case("APF101", SCHEMA, "matchingPrecedence", "MatchingPrecedence"),
    Case("APF101", SCHEMA, "apiGroups: ", "apiGroup : ", "apiGroups : "),
    Case("APF101", LEVEL, "handSize", '"handsize"', '"handSize"'),
    Case("APF101", LEVEL, "lendablePercent: 50", "lendablePercentt: '50'", "lendablePercent: 50"),
    Case("APF101", SCHEMA, '["ci"]', '["ci"]\n          cluster_scope: false', '["ci"]\n          clusterScope: false'),
    Case(
        "APF101",
        SCHEMA,
        "  nonResourceRules:\n        - verbs: [",
        "  nonresourcerules:\n        - verb: [",
        "  nonResourceRules:\n        - verbs: [",
    ),
    Case("APF101", SCHEMA, 'namespaces: ["ci"]', "namespace: ci", 'namespaces: ["ci"]'),
    # Subjects in the form of RBAC: `name` and `namespace` are directly in the subject, and not in `serviceAccount` or
    # `group`.
    Case("APF101", SCHEMA, RBAC_ACCOUNT, "          name: deployer\n          namespace: ci\n"),
    Case(
        "APF101",
        SCHEMA,
        RBAC_ACCOUNT,
        "          # who\n          name: deployer # he\n\n          # where\n          namespace: ci\n",
        "          # who\n          serviceAccount:\n            name: deployer # he\n\n            # where\n            namespace: ci\n",
    ),
    Case("APF101", SCHEMA, GROUP, "          name: 'sso:ci'\n"),
    Case("APF101", SCHEMA, GROUP, "          name: &it 0x1F\n", '          group:\n            name: &it "0x1F"\n'),
    Case("APF101", SCHEMA, GROUP, "          name: no\n", '          group:\n            name: "no"\n'),
    Case("APF101", SCHEMA, "kind: Group\n" + GROUP, "kind: group\n          name: 'sso:ci'\n"),
    Case("APF101", SCHEMA, GROUP, "          name: 'sso:ci'\n          apiGroup: rbac.authorization.k8s.io\n"),
    Case("APF101", SCHEMA, GROUP, "          apiVersion: v1\n" + GROUP),
    Case(
        "APF101", SCHEMA, "- kind: Group\n" + GROUP, "- {kind: Group, name: a}\n", "- {kind: Group, group: {name: a}}\n"
    ),
    Case(
        "APF101",
        SCHEMA,
        "- kind: Group\n" + GROUP,
        "- name: a\n          kind: Group\n",
        "- group:\n            name: a\n          kind: Group\n",
    ),
    Case(
        "APF101",
        SCHEMA,
        "- kind: ServiceAccount\n" + RBAC_ACCOUNT,
        "- namespace: ci # of theirs\n          kind: ServiceAccount\n          apiGroup: ''\n          name: deployer\n",
        "- serviceAccount:\n            namespace: ci # of theirs\n            name: deployer\n          kind: ServiceAccount\n",
    ),
    # Fields that belong in a nested mapping.
    Case("APF101", LEVEL, QUEUING, "      queues: 64   # see the page on shards\n      handSize: 6\n"),
    Case("APF101", LEVEL, LIMITED, LIMITED.partition("\n")[2].replace("\n  ", "\n")[2:]),
    Case("APF101", SCHEMA, TYPE, "  type: ByUser   # each for himself\n"),
    # Values that YAML parses as another type.
    Case("APF102", SCHEMA, '"ci"}', "yes}", '"yes"}'),
    Case("APF102", SCHEMA, '"ci"}', "0x1F }", '"0x1F" }'),
    Case("APF102", SCHEMA, '"ci"}', "1.10}", '"1.10"}'),
    Case("APF102", SCHEMA, "'sso:ci'", "007 # bond", '"007" # bond'),
    Case("APF102", SCHEMA, '["ci"]', "[no, on]", '["no", "on"]'),
    Case("APF102", SCHEMA, "deployer  # one", "12  # one", '"12"  # one'),
    Case("APF102", LEVEL, '"false"', "no", '"false"'),
    Case("APF102", SCHEMA, "1500", '"1500"'),
    Case("APF102", LEVEL, "Percent: 50", "Percent: '50%'", "Percent: 50"),
    Case("APF102", SCHEMA, '["ci"]', '["ci"]\n          clusterScope: "true"', '["ci"]\n          clusterScope: true'),
    Case("APF102", SCHEMA, '["get"]', "get # only", '["get"] # only'),
    Case("APF102", SCHEMA, "[get, update]", "get, update", '["get", "update"]'),
    Case("APF102", SCHEMA, '["", apps]', '""', '[""]'),
    Case("APF102", SCHEMA, '["ci"]', "no", '["no"]'),
    Case("APF102", SCHEMA, "Configuration:\n    name: workload-low", "Configuration: a", "Configuration: {name: a}"),
    Case(
        "APF102", SCHEMA, TYPE, "  distinguisherMethod: 'ByUser' # x\n", "  distinguisherMethod: {type: 'ByUser'} # x\n"
    ),
    Case("APF102", SCHEMA, GROUP, "          group: system:masters\n", "          group: {name: system:masters}\n"),
    Case("APF102", SCHEMA, TYPE, "  distinguisherMethod: byUser\n", "  distinguisherMethod: {type: ByUser}\n"),
    # Fields that the server drops or fills in.
    Case("APF104", SCHEMA, "metadata:\n", "metadata:\n  namespace: x # why\n", "metadata:\n  # why\n"),
    Case("APF105", SCHEMA, "metadata:\n", "metadata:\n  uid: a-b\n  generation: 3\n"),
    Case("APF105", SCHEMA, "metadata:\n", "metadata:\n  managedFields:\n  - manager: kubectl\n    operation: Apply\n"),
    Case("APF105", SCHEMA, "spec:\n", 'status: {conditions: [{type: Dangling, status: "False"}]}\nspec:\n'),
    Case("APF106", SCHEMA, "[get, update]", "[get, update, get, get]"),
    Case(
        "APF106",
        SCHEMA,
        "            - pods\n",
        "            - pods\n            - pods # again\n",
        "            - pods\n            # again\n",
    ),
    Case("APF106", SCHEMA, "[/version]", "[ /version , /version ]", "[ /version ]"),
    # Kinds of subjects.
    Case("APF207", SCHEMA, "kind: Group", "kind: group"),
    Case("APF207", SCHEMA, "kind: ServiceAccount", 'kind: "serviceaccount"', 'kind: "ServiceAccount"'),
    Case("APF207", SCHEMA, "- kind: Group\n  ", "- # who\n  ", "- # who\n          kind: Group\n  "),
    Case(
        "APF207",
        SCHEMA,
        "- kind: Group\n" + GROUP,
        "- kind: users\n          name: a\n",
        "- kind: User\n          user:\n            name: a\n",
    ),
    # Suppressions.
    Case("APF901", SCHEMA, "1500", "1500  # apflint: ignore[APF203] no", "1500"),
    Case("APF901", SCHEMA, "1500", "1500 # note # apflint: ignore[APF203]  ", "1500 # note"),
    Case("APF901", SCHEMA, "spec:\n", "# apflint: ignore[APF203, APF207] no\nspec:\n"),
    Case("APF901", SCHEMA, "metadata:\n", "metadata:\n  annotations:\n    apflint/ignore.APF203: no\n"),
    Case(
        "APF901",
        SCHEMA,
        "ByUser   # each for himself",
        "X # apflint: ignore[APF207, APF203,APF208 ] why",
        "X # apflint: ignore[APF203 ] why",
    ),
    Case(
        "APF901",
        SCHEMA,
        "ByUser   # each for himself",
        "X # apflint: ignore[APF203,APF208 ] why",
        "X # apflint: ignore[APF203 ] why",
    ),
    Case(
        "APF902",
        SCHEMA,
        "ByUser   # each for himself",
        "X # apflint: ignore[unknown-distinguishers] y",
        "X # apflint: ignore[unknown-distinguisher] y",
    ),
    Case(
        "APF902",
        SCHEMA,
        "ByUser   # each for himself",
        "X # apflint: ignore[apf-203] y",
        "X # apflint: ignore[APF203] y",
    ),
    Case(
        "APF902",
        SCHEMA,
        "ByUser   # each for himself",
        "X # apflint: ignored[APF203] y",
        "X # apflint: ignore[APF203] y",
    ),
]

WRITTEN = ("yes}", "0x1F }", "1.10}", "[no, on]", "no", "name: &it 0x1F\n", "name: no\n")
"""Strings that YAML parses as another type. They are not tested in JSON, which does not keep their spelling."""
UNSAFE = [
    Case("APF005", SCHEMA, "kind: FlowSchema", "kind: FlowSchemas # x", "kind: FlowSchema # x"),
    Case("APF005", LEVEL, "kind: PriorityLevelConfiguration", "kind: 'PriorityLevel'", "kind: 'PriorityLevelConfiguration'"),
    Case("APF005", SCHEMA, "flowcontrol.apiserver.k8s.io/v1", '"flowcontrol.k8s.io/v1"', '"flowcontrol.apiserver.k8s.io/v1"'),
    Case("APF005", SCHEMA, "flowcontrol.apiserver.k8s.io/v1", "v1"),
    Case("APF005", SCHEMA, "flowcontrol.apiserver.k8s.io/v1", "flowcontrol.apiserver.k8s.io"),
    Case("APF101", SCHEMA, '["ci"]', '["ci"]\n          resourceNames: [a]', '["ci"]'),
    Case("APF207", SCHEMA, "kind: Group", "kind: User", "kind: Group"),
    Case("APF703", LEVEL, "nominalConcurrencyShares: 90", "assuredConcurrencyShares: 0", "nominalConcurrencyShares: 0"),
]  # fmt: skip
NONE = [
    Case("APF101", LEVEL, "handSize: 6", "queueSize: 6"),  # ambiguous: queues or queueLengthLimit
    Case("APF101", LEVEL, "lendablePercent: 50", "borrowablePercent: 50"),
    Case("APF101", SCHEMA, "1500", "1500\n  MatchingPrecedence: 1600"),  # the right field also exists
    Case("APF703", LEVEL, "Shares: 90", "Shares: 90\n    assuredConcurrencyShares: 80"),
    Case("APF101", SCHEMA, "  matchingPrecedence: 1500", "  priority: 1500\n  precedence: 1600"),
    Case("APF101", SCHEMA, RBAC_ACCOUNT, "          name: deployer\n"),  # no fix, because the namespace is unknown
    Case("APF101", SCHEMA, GROUP, GROUP + "          name: 'sso:ci'\n"),
    Case("APF101", SCHEMA, TYPE, "  colour: red\n"),
    Case("APF102", SCHEMA, "1500", '"0777"'),
    Case("APF102", SCHEMA, "1500", '"many"'),
    Case("APF102", SCHEMA, "1500", '"99999999999"'),
    Case("APF102", SCHEMA, TYPE, "  distinguisherMethod: |\n    ByUser\n"),
    Case("APF102", SCHEMA, "1500", "{a: 1}"),
    Case("APF102", SCHEMA, '["get"]', "get update"),
    Case("APF102", SCHEMA, '["get"]', "{get: update}"),
    Case("APF102", SCHEMA, GROUP, '          group: "name:a"\n'),
    Case("APF207", SCHEMA, "kind: Group", "kind: Role"),
    Case("APF207", SCHEMA, GROUP, GROUP + "          user:\n            name: a\n"),
    Case("APF902", SCHEMA, "1500", "1500 # apflint: ignore[E203] x"),
    Case("APF902", SCHEMA, "1500", "1500 # apflint: ignore"),
    Case("APF005", SCHEMA, "kind: FlowSchema", "kind: Bucket"),
]


def fixed(text: str, *, unsafe: bool = False, kubernetes: str = NEWEST.name, name: str = "a.yaml") -> FixResult:
    def judge(inputs: Mapping[str, bytes]) -> Report:
        return engine.check(inputs.items(), engine.Options(parse_release(kubernetes)))

    return apply_fixes({name: text.encode()}, judge, unsafe=unsafe)


def text_of(result: FixResult) -> str:
    return next(iter(result.inputs.values())).decode()


@pytest.mark.parametrize("case", SAFE, ids=lambda case: f"{case.rule} {case.bad}")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_safe_fixes(case: Case, end: str) -> None:
    before, after = (text.replace("\n", end) for text in (case.before, case.after))
    result = fixed(before, kubernetes=case.kubernetes)
    assert text_of(result) == after
    assert case.rule in {found.rule for found in result.fixed}
    assert not result.refused
    assert not [finding.message for finding in result.report.findings if finding.fix and finding.fix.safe]


@pytest.mark.parametrize(
    "case",
    [case for case in SAFE if case.bad.lstrip() not in WRITTEN and "#" not in case.bad],
    ids=lambda case: f"{case.rule} {case.bad}",
)
def test_safe_fixes_of_json(case: Case) -> None:
    before, after = (load("a.yaml", text.encode()).documents[0].value for text in (case.before, case.after))
    for indent in (2, None):
        result = fixed(json.dumps(before, indent=indent), kubernetes=case.kubernetes, name="a.json")
        assert json.loads(text_of(result)) == after


@pytest.mark.parametrize("case", UNSAFE, ids=lambda case: f"{case.rule} {case.bad}")
def test_unsafe_fixes_are_applied_on_request(case: Case) -> None:
    cautious = fixed(case.before)
    assert text_of(cautious) == case.before
    assert [finding for finding in cautious.report.findings if finding.rule == case.rule and finding.fix]
    bold = fixed(case.before, unsafe=True)
    assert text_of(bold) == case.after
    assert case.rule in {found.rule for found in bold.fixed}


@pytest.mark.parametrize("case", NONE, ids=lambda case: f"{case.rule} {case.bad}")
def test_ambiguous_mistakes_stay(case: Case) -> None:
    result = fixed(case.before, unsafe=True)
    assert case.rule in {finding.rule for finding in result.report.findings}
    assert text_of(result) == case.before
    assert not result.refused


ANCHORED = SCHEMA.replace("[get, update]", "&verbs [get, update]").replace('["get"]', "*verbs")


@pytest.mark.parametrize(
    ("before", "rule", "reason"),
    [
        # The fix would also change an alias of the value.
        (
            SCHEMA.replace("1500", '&n "1500"').replace("    name: workload-low", "    name: *n"),
            "APF102",
            "the edit would change another value",
        ),
        # The tag makes the value a boolean, so quotes would not help.
        (SCHEMA.replace('"ci"}', "!!bool yes}"), "APF102", "cannot be edited"),
        # The server does not accept the value, even with the right type.
        (SCHEMA.replace("1500", '"99999"'), "APF102", "it would cause APF201"),
    ],
)  # fmt: skip
def test_reasons_of_refused_fixes(before: str, rule: str, reason: str) -> None:
    result = fixed(before)
    assert text_of(result) == before
    assert {refusal.finding.rule for refusal in result.refused} == {rule}
    assert reason in result.refused[0].reason


@pytest.mark.parametrize(
    ("old", "bad", "good", "left"),
    [
        ('["get"]', "fetch", '["fetch"]', "APF211"),
        (RBAC_ACCOUNT, "          name: A_B\n          namespace: ci\n", RBAC_ACCOUNT.replace("deployer", "A_B"), "APF208"),
        ('nonResourceRules:\n        - verbs: ["get"]', "nonResourceRule:\n        - verbs: [fetch]", "nonResourceRules:\n        - verbs: [fetch]", "APF211"),
    ],
)  # fmt: skip
def test_masked_mistake_is_no_regression(old: str, bad: str, good: str, left: str) -> None:
    result = fixed(SCHEMA.replace(old, bad))
    assert text_of(result) == SCHEMA.replace(old, good)
    assert not result.refused
    assert [finding.rule for finding in result.report.findings if finding.severity == "error"] == [left]


@pytest.mark.parametrize(
    ("bad", "new"), [("limmited:\n    colour: 5", "APF101"), ("limmited:\n    nominalConcurrencyShares: a", "APF102")]
)
def test_field_with_unsuitable_content_is_not_renamed(bad: str, new: str) -> None:
    before = LEVEL.replace("limited:\n    nominalConcurrencyShares: 90", bad)
    result = fixed(before)
    assert text_of(result) == before
    assert [refusal.reason.split(":")[0] for refusal in result.refused] == [f"it would cause {new} in line 10"]


def test_anchored_value_is_fixed_if_all_uses_have_the_finding() -> None:
    before = ANCHORED.replace("[get, update]", "[get, update, get]")
    assert text_of(fixed(before)) == ANCHORED


def test_findings_about_a_decodable_object_are_allowed() -> None:
    """The wrong type masks the finding of APF213. The finding is new after the fix of the type, but the fix is not refused."""
    other = SCHEMA.replace('["ci"]', '["C_I"]')
    result = fixed(other.replace("1500", '"1500"'))
    assert text_of(result) == other
    assert [finding.rule for finding in result.report.findings if finding.severity == "error"] == ["APF213"]


def test_several_documents_in_one_file() -> None:
    before = "---\n".join(case.before for case in SAFE[:2] + SAFE[4:8])
    after = "---\n".join(case.after for case in SAFE[:2] + SAFE[4:8])
    assert text_of(fixed(before)) == after


def test_refused_fix_is_tried_again_after_others() -> None:
    """Without strict decoding, a misspelled `name` is also reported as missing, so one fix fails until the other is applied."""
    after = SCHEMA.replace("io/v1", "io/v1beta1")
    before = after.replace("ServiceAccount\n", "Serviceaccount\n").replace("name: deployer\n", "NAME: deployer\n")
    assert text_of(fixed(before, kubernetes="1.21")) == after
