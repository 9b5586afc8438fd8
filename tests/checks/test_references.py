"""APF204, APF401, APF403, APF406, APF705: references to priority levels, and objects that an earlier release created."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import (
    ALL,
    COMPLETE,
    OPEN,
    PATHS,
    effective,
    findings,
    flow_schema,
    manifest,
    priority_level,
    rule_ids,
)

from apflint.checks import CHECKS, references
from apflint.engine import Options, check
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from apflint.effective_configuration import Assumptions
    from apflint.finding import Finding

SOURCE = "# Source: chart/templates/apf.yaml\n"


def in_order(*objects: dict[str, Any], name: str = "apf.yaml", comment: str = "") -> list[Finding]:
    """Return the findings of APF406 in a file with one document for each object.

    `comment` is written before each document.
    """
    text = "".join(f"---\n{comment}{json.dumps(value)}\n" for value in objects)
    return [finding for finding in check([(name, text.encode())], Options()).findings if finding.rule == "APF406"]


def test_level_after_its_flow_schema_is_reported_with_the_place_of_the_level() -> None:
    (finding,) = in_order(DANGLING, UNUSED)
    assert finding.field == "spec.priorityLevelConfiguration.name"
    assert [related.message for related in finding.related] == ["the priority level"]
    assert not in_order(UNUSED, DANGLING)
    assert not findings(DANGLING, UNUSED, only="APF406")  # documents in several files have no order


@pytest.mark.parametrize(("name", "reported"), [("workload-low", False), ("x", True)])
def test_built_in_level_may_come_after_its_flow_schema(name: str, reported: bool) -> None:
    assert bool(in_order(flow_schema("a", name), priority_level(name))) is reported


def test_order_on_standard_input_is_not_reported() -> None:
    assert not in_order(DANGLING, UNUSED, name="<stdin>")
    assert not in_order(DANGLING, UNUSED, name="<stdin>", comment=SOURCE)


def test_order_in_saved_output_of_helm_is_not_reported() -> None:
    assert not in_order(DANGLING, UNUSED, comment=SOURCE)


@pytest.mark.parametrize("kind", ["List", "FlowSchemaList"])
def test_order_in_a_list_is_not_reported(kind: str) -> None:
    if kind == "List":
        assert not findings({"kind": kind, "apiVersion": "v1", "items": [DANGLING, UNUSED]}, only="APF406")
    else:
        schemas = {"kind": kind, "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "items": [DANGLING]}
        assert not in_order(schemas, UNUSED)


@pytest.mark.parametrize(("annotation", "rule"), [("true", "APF405"), ("false", "APF705"), (None, "APF705")])
def test_leftover_of_an_earlier_release_has_one_finding(annotation: str | None, rule: str) -> None:
    leftover = flow_schema("endpoint-controller", "workload-high")
    if annotation is not None:
        leftover["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": annotation}
    found = findings(leftover, kubernetes="1.36")
    assert [finding.rule for finding in found if finding.rule in ("APF405", "APF705")] == [rule]


def test_unreachable_leftover_has_one_finding() -> None:
    leftover = flow_schema("endpoint-controller", "workload-high", 9950)
    leftover["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "false"}
    (found,) = findings(leftover, kubernetes="1.36")
    assert found.rule == "APF501"
    assert '"endpoint-controller" is a built-in FlowSchema only up to Kubernetes 1.33.' in found.notes
    rules = tuple(rule for rule in CHECKS if rule != "APF501")
    inputs = [("a.json", json.dumps(leftover).encode())]
    assert [finding.rule for finding in check(inputs, Options(rules=rules)).findings] == ["APF705"]


def test_redundant_leftover_has_one_finding() -> None:
    leftover = flow_schema("endpoint-controller", "workload-low", resources=[ALL], paths=[PATHS], by="ByUser")
    assert "APF516" in rule_ids(findings({**leftover, "metadata": {"name": "other"}}))
    assert rule_ids(findings(leftover)) == ["APF705"]


DANGLING = flow_schema("ci", "batch")
UNUSED = priority_level("batch")


CONTEXT = 'if another file defines "{}", add that file with --context'


@pytest.mark.parametrize(("assumptions", "help_text"), [(COMPLETE, None), (OPEN, CONTEXT)])
def test_missing_level_of_another_release_names_the_releases(assumptions: Assumptions, help_text: str | None) -> None:
    schema = flow_schema("a", "node-high", version="v1beta1")
    (finding,) = findings(schema, kubernetes="1.21", only="APF401", assumptions=assumptions)
    assert (
        finding.notes[1]
        == f'"node-high" is built in from Kubernetes 1.22 to {NEWEST.name}; the checked release is 1.21.'
    )
    assert finding.help == (help_text and help_text.format("node-high"))


def test_missing_level_with_a_similar_one() -> None:
    (finding,) = findings(flow_schema("a", "global-defaults"), only="APF401")
    assert finding.message == 'unknown priority level "global-defaults"'
    assert finding.help == f'did you mean "global-default"? {CONTEXT.format("global-defaults")}'


@pytest.mark.parametrize(
    ("assumptions", "message", "help_text"),
    [(COMPLETE, 'priority level "qqq" does not exist', None), (OPEN, 'unknown priority level "qqq"', CONTEXT)],
)
def test_missing_level_without_a_similar_one(assumptions: Assumptions, message: str, help_text: str | None) -> None:
    (finding,) = findings(flow_schema("a", "qqq"), only="APF401", assumptions=assumptions)
    assert finding.message == message
    assert finding.help == (help_text and help_text.format("qqq"))


def test_seats_of_an_unused_level_are_counted() -> None:
    (finding,) = findings(priority_level("batch", 30), only="APF403")
    assert finding.notes == ("The priority level still takes 66 of 600 seats from the other priority levels.",)
    (finding,) = findings(priority_level("batch", 0), only="APF403")
    assert not finding.notes


def test_rejected_shares_take_no_seats() -> None:
    (unused,) = findings(priority_level("broken", -5), only="APF403")
    assert not unused.notes
    # The shares of a rejected level do not change the seats of other levels, either.
    _, unused = findings(priority_level("broken", -100), priority_level("batch", 10), only="APF403")
    assert unused.notes == ("The priority level still takes 24 of 600 seats from the other priority levels.",)


def test_rejected_level_is_not_missing() -> None:
    broken = priority_level("batch", queuing={"queues": 4, "handSize": 8, "queueLengthLimit": 50})
    assert not findings(broken, DANGLING, only="APF401")
    assert findings(broken, DANGLING)


def test_level_that_the_server_cannot_decode_is_not_missing() -> None:
    broken = manifest("PriorityLevelConfiguration", {"type": ["Limited"]}, name="batch")
    assert rule_ids(findings(broken, DANGLING))
    assert not findings(broken, DANGLING, only="APF401")
    assert not findings(DANGLING, only="APF401", context=(broken,))


@pytest.mark.parametrize("written", ["workload-lwo", "workload-low2", "workloadlow", "workload-luw"])
def test_level_with_a_typo_is_suggested_among_many_levels(written: str) -> None:
    many = [priority_level(f"team-{number:03}", 1) for number in range(120)]
    (finding,) = findings(*many, flow_schema("a", written), only="APF401")
    assert str(finding.help).startswith('did you mean "workload-low"')
    (other,) = findings(*many, flow_schema("a", "quite-another"), only="APF401")
    assert other.help == CONTEXT.format("quite-another")


def test_levels_are_compared_with_few_unknown_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MAX_COMPARISONS", 500)
    count = len(effective(priority_level("payment-processing", 1)).configuration.levels)
    for unknown, is_compared in ((500 // count, True), (500 // count + 1, False)):
        schemas = [flow_schema(f"s{number}", f"unlike-{number}") for number in range(unknown - 1)]
        schemas.append(flow_schema("a", "payment-processing-eu"))
        found = findings(priority_level("payment-processing", 1), *schemas, only="APF401")
        questions = [finding for finding in found if str(finding.help).startswith('did you mean "payment-processing"?')]
        assert len(questions) == is_compared


def test_missing_level_of_another_release_has_no_fix() -> None:
    ours = priority_level("node-highs", version="v1beta1")
    (found,) = findings(ours, flow_schema("a", "node-high", version="v1beta1"), kubernetes="1.21", only="APF401")
    assert str(found.help).startswith('did you mean "node-highs"?')
    assert found.fix is None
    (other,) = findings(ours, flow_schema("a", "node-hihgs", version="v1beta1"), kubernetes="1.21", only="APF401")
    assert other.fix is not None


def test_typos_are_searched_word_by_word() -> None:
    for written, known in (("work.load-lwo", "work-load-low"), ("work-load.lwo", "work.load.low")):
        (found,) = findings(priority_level(known), flow_schema("a", written), only="APF401")
        assert found.fix is not None
        assert [operation[-1] for operation in found.fix.operations] == [known]


@pytest.mark.parametrize(
    ("written", "fixed"),
    [
        ("global-defaulx", True),
        ("global-defaut", True),
        ("global-defaullt", True),
        ("global-defualt", True),
        ("global-defaxxt", False),
        ("global-dexxault", False),
        ("globel-defaulx", False),
        ("global-default1", False),
        ("global-d3fault", False),
    ],
)
def test_typos_of_one_letter_are_fixed(written: str, fixed: bool) -> None:
    (found,) = findings(flow_schema("a", written), only="APF401")
    assert (found.fix is not None) is fixed


@pytest.mark.parametrize(
    ("known", "written", "fixed"),
    [("ab", "ba", False), ("abc", "bac", True), ("abc", "abd", False), ("abcd", "abce", True), ("abcd", "abc", False)],
)
def test_short_words_are_other_names(known: str, written: str, fixed: bool) -> None:
    (found,) = findings(priority_level(f"{known}-tests"), flow_schema("a", f"{written}-tests"), only="APF401")
    assert (found.fix is not None) is fixed


def test_each_flow_schema_is_checked() -> None:
    broken = priority_level("broken")
    broken["spec"]["type"] = "Nonsense"
    objects = (
        broken,
        flow_schema("a"),
        flow_schema("b", ""),
        flow_schema("c", "Not A Name"),
        flow_schema("d", "broken"),
        flow_schema("e", "qqq"),
        flow_schema("f", "rrr"),
    )
    found = findings(*objects, only="APF401")
    assert [finding.object.name for finding in found if finding.object] == ["e", "f"]


@pytest.mark.parametrize(
    ("name", "help_text", "has_fix"),
    [
        ("Workload_Low", 'did you mean "workload-low"?', True),
        (" MINE ", 'did you mean "mine"?', True),
        ("Unknown", None, False),
        ("${LEVEL}", 'is "${LEVEL}" a placeholder? render the template before checking it', False),
    ],
)
def test_help_for_an_invalid_priority_level_name(name: str, help_text: str | None, has_fix: bool) -> None:
    (finding,) = findings(priority_level("mine"), flow_schema("x", name), only="APF204")
    assert finding.help == help_text
    assert (finding.fix is not None) is has_fix


@pytest.mark.parametrize(
    ("shares", "assumptions", "severity"), [(20, OPEN, "info"), (300, OPEN, "warning"), (20, COMPLETE, "warning")]
)
def test_unused_level_has_one_finding(shares: int, assumptions: Assumptions, severity: str) -> None:
    level = priority_level("batch", shares)
    (found,) = findings(level, assumptions=assumptions)
    assert (found.rule, found.severity) == ("APF403", severity)
    assert "still takes" in found.notes[0]
    assert rule_ids(findings(level, flow_schema("builds", "batch"), only="APF603")) == ["APF603"]


def test_seats_of_all_unused_levels_are_added_up() -> None:
    """One finding states the seats that all levels take together, and has the severity of this sum."""
    first, *others = findings(*(priority_level(f"t{number:02}", 6) for number in range(20)))
    assert {finding.rule for finding in (first, *others)} == {"APF403"}
    assert (first.severity, {finding.severity for finding in others}) == ("warning", {"info"})
    own, total, _, losses = first.notes
    assert own == "The priority level still takes 10 of 600 seats from the other priority levels."
    assert total == "Together, 20 priority levels take 200 of 600 seats from the built-in ones."
    assert "workload-low 245 -> 165" in losses
    assert {finding.notes for finding in others} == {(own,)}
    (alone,) = findings(priority_level("batch", 300))
    assert "workload-low 245 -> " in alone.notes[-1]


def test_seats_are_reported_if_the_rule_for_unused_levels_is_not_selected() -> None:
    rules = tuple(rule for rule in CHECKS if rule != "APF403")
    inputs = [("a.json", json.dumps(priority_level("batch", 300)).encode())]
    assert [finding.rule for finding in check(inputs, Options(rules=rules)).findings] == ["APF603"]


def test_level_with_a_misspelled_reference_is_not_unused() -> None:
    """APF401 already reports the misspelled reference, so APF403 does not report the level."""
    found = findings(priority_level("batch", 5), flow_schema("builds", "bacth"), only="APF4")
    assert rule_ids(found) == ["APF401"]
    assert found[0].fix is not None
    other = findings(priority_level("reports", 5), flow_schema("builds", "bacth"), only="APF4")
    assert sorted(rule_ids(other)) == ["APF401", "APF403"]


def test_the_first_advice_about_catch_all_keeps_requests_isolated() -> None:
    """Kubernetes' documentation isolates a client in `catch-all`, so the advice must not first suggest a shared level."""
    (finding,) = findings(flow_schema("lists", "catch-all", 8000), only="APF407")
    assert finding.help is not None
    first, _, rest = finding.help.partition("; ")
    assert first == "to isolate these requests, define a small priority level for them"
    assert "workload-low" in rest
