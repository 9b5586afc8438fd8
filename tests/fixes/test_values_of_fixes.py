"""Tests that a number written by a fix causes no new finding.

The fixes are those of all rule examples, of all fixtures, and of levels and FlowSchemas with many
combinations of values.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from support.rule_examples import parse_examples
from support.shell import ROOT

from apflint import rule_catalogue
from apflint.edit.fix_batch import edit_inputs
from apflint.edit_operations import Insert, Set
from apflint.engine import Options, check
from apflint.location import field_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Finding

HIDDEN = {"APF502", "APF505", "APF508", "APF510", "APF511", "APF512", "APF513", "APF518", "APF601"}
"""Rules about the text of a FlowSchema, which report nothing as long as the FlowSchema is unreachable."""
LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: {name}, annotations: {{apf.kubernetes.io/autoupdate-spec: "false"}}}}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 50
    lendablePercent: {percent}
    limitResponse:
      type: Queue
      {queuing}
"""
SCHEMA = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: mine}}
spec:
  matchingPrecedence: {precedence}
  priorityLevelConfiguration: {{name: workload-low}}
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: Group, group: {{name: "{group}"}}}}]
    resourceRules: [{{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"]}}]
"""
NUMBERS = (None, 1, 2, 6, 16, 40, 64, 128, 256, 10_000_000)
HANDS = (None, -1, 0, 6, 16, 40, 128, 1000)


def _queuing(queues: int | None, hand_size: int | None) -> str:
    values = {"queues": queues, "handSize": hand_size}
    return "queuing:" + "".join(
        f"\n        {name}: {value}" for name, value in (*values.items(), ("queueLengthLimit", 50)) if value is not None
    )


def _texts() -> Iterator[tuple[str, str, Options]]:
    for rule_id in rule_catalogue.list_ids():
        for example in parse_examples(rule_catalogue.read_rule(rule_id)):
            yield f"{rule_id}-{example.page_line}", example.text, example.adapt(Options())
    for path in sorted((ROOT / "fixtures").rglob("*.yaml")):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), Options()
    for name in ("batch", "workload-low", "system", "leader-election"):
        for queues, hand_size in product(NUMBERS, HANDS):
            text = LEVEL.format(name=name, percent=0, queuing=_queuing(queues, hand_size))
            yield f"{name}-{queues}-{hand_size}", text, Options()
        for percent in (-5, 101):
            yield f"{name}-{percent}", LEVEL.format(name=name, percent=percent, queuing=_queuing(64, 8)), Options()
        yield f"{name}-no-queuing", LEVEL.format(name=name, percent=0, queuing=""), Options()
    for group in (
        "system:nodes",
        "system:authenticated",
        "system:serviceaccounts:kube-system",
        "system:masters",
        "dev",
    ):
        for precedence in (1, 500, 800, 9500, 9999, 10_000):
            yield f"{group}-{precedence}", SCHEMA.format(group=group, precedence=precedence), Options()


def _writes_a_number(finding: Finding) -> bool:
    operations = finding.fix.operations if finding.fix else ()
    return any(isinstance(operation, Set | Insert) and isinstance(operation.value, int) for operation in operations)


def _is_caused(new: Finding, fixed: Finding) -> bool:
    """Return whether a finding after a fix follows from the value, and was not only hidden by the fixed finding."""
    assert fixed.fix is not None
    if fixed.rule == "APF501":
        return new.rule not in HIDDEN or new.object != fixed.object
    if not fixed.is_rejected or new.is_rejected:
        return True
    if new.rule == "APF607" and "set queues" not in fixed.fix.title:
        return False  # the rule is about queues and queueLengthLimit only
    edited = [operation.path for operation in fixed.fix.operations]
    return new.object == fixed.object and any(new.field in map(field_path, (path, path[:-1])) for path in edited)


def _keys(finding: Finding) -> tuple[tuple[object, ...], ...]:
    """Return what identifies a finding if a fix changes its message, or its place because a field is no longer absent."""
    return tuple((finding.rule, finding.object, part) for part in (finding.field, finding.message))


TEXTS = [pytest.param(text, options, id=name) for name, text, options in _texts()]


@pytest.mark.parametrize(("text", "options"), TEXTS)
def test_value_causes_no_finding(text: str, options: Options) -> None:
    inputs = {"a.yaml": text.encode()}
    before = check(inputs.items(), options).findings
    for fixed in filter(_writes_a_number, before):
        edited, _, conflicts = edit_inputs(inputs, {}, [fixed])
        assert not conflicts
        after = check(edited.items(), options).findings
        known = {key for finding in before if finding is not fixed for key in _keys(finding)}
        new = [finding for finding in after if known.isdisjoint(_keys(finding))]
        assert not [(finding.rule, finding.message) for finding in new if _is_caused(finding, fixed)], fixed.fix


def test_values_are_written_in_many_cases() -> None:
    """Otherwise, the test above tests nothing."""
    found = [
        finding.rule
        for parameters in TEXTS
        for finding in check([("a.yaml", str(parameters.values[0]).encode())], Options()).findings
        if _writes_a_number(finding)
    ]
    assert {"APF303", "APF305", "APF306", "APF309", "APF310", "APF501"} <= set(found)
    assert len(found) > 150
