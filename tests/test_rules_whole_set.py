"""The rules that look at all objects together: open and closed world, context, built-in objects, and what was seen in the wild.

The pages in `rules/` have an example of each rule; here is what a page cannot show.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from apflint import builtin, catalogue
from apflint.checks import CHECKS
from apflint.cli.app import run
from apflint.effective import Assumptions, Effective
from apflint.engine import load_inputs, report
from apflint.evaluate import shards
from apflint.evaluate.limits import compute
from apflint.releases import NEWEST, RELEASES, Release, release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Finding

OPEN, CLOSED = Assumptions(), Assumptions(complete=True)
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
GET_ALL = {**ALL, "verbs": ["get"]}
PATHS = {"verbs": ["*"], "nonResourceURLs": ["*"]}
READ_PODS = {
    "verbs": ["get", "list", "watch"],
    "apiGroups": [""],
    "resources": ["pods"],
    "clusterScope": True,
    "namespaces": ["*"],
}


def account(namespace: str, name: str) -> dict[str, Any]:
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}


def user(name: str) -> dict[str, Any]:
    return {"kind": "User", "user": {"name": name}}


def group(name: str) -> dict[str, Any]:
    return {"kind": "Group", "group": {"name": name}}


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
    """A manifest; by default a service account that reads pods."""
    if resources is None and paths is None:
        resources = [READ_PODS]
    spec: dict[str, Any] = {"priorityLevelConfiguration": {"name": level}}
    if precedence is not None:
        spec["matchingPrecedence"] = precedence
    if by is not None:
        spec["distinguisherMethod"] = {"type": by}
    rule = {
        "subjects": subjects or [account("ci", "runner")],
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


def level(
    name: str, shares: int = 10, queuing: dict[str, int] | None = None, *, version: str = "v1", **limited: Any
) -> dict[str, Any]:
    """A manifest; by default a level that rejects."""
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


def known(
    *objects: Any, context: tuple[Any, ...] = (), assumptions: Assumptions = OPEN, kubernetes: str = NEWEST.name
) -> Effective:
    """What a server would have of these manifests; each is a file of its own: `0.json`, `1.json`, ..., `context-0.json`, ..."""
    inputs = [(f"{number}.json", json.dumps(value).encode()) for number, value in enumerate(objects)]
    others = [(f"context-{number}.json", json.dumps(value).encode()) for number, value in enumerate(context)]
    return Effective(build_workspace(load_inputs(inputs), release(kubernetes), load_inputs(others)), assumptions)


def findings(
    *objects: Any,
    only: str = "",
    context: tuple[Any, ...] = (),
    assumptions: Assumptions = OPEN,
    kubernetes: str = NEWEST.name,
) -> list[Finding]:
    """What all rules find, or those whose ids begin with `only`."""
    read = known(*objects, context=context, assumptions=assumptions, kubernetes=kubernetes)
    return [found for found in report([], read, CHECKS).findings if found.rule.startswith(only)]


def ids(found: list[Finding]) -> list[str]:
    return [finding.rule for finding in found]


# Open and closed world.

DANGLING = flow_schema("ci", "batch")
UNUSED = level("batch")
SHADOWED = flow_schema("agent", precedence=1000, subjects=[account("kube-system", "agent")])


@pytest.mark.parametrize(
    ("rule", "manifest", "opened", "closed"),
    [
        ("APF401", DANGLING, "warning", "error"),
        ("APF403", UNUSED, "info", "warning"),
        ("APF501", SHADOWED, "warning", "error"),
    ],
)
def test_a_closed_world_is_severer(rule: str, manifest: dict[str, Any], opened: str, closed: str) -> None:
    in_open = findings(manifest, only=rule)
    in_closed = findings(manifest, only=rule, assumptions=CLOSED)
    assert [found.severity for found in in_open] == [opened] == [catalogue.rule(rule).severity]
    assert [found.severity for found in in_closed] == [closed]


@pytest.mark.parametrize(("rule", "manifest"), [("APF401", DANGLING), ("APF403", UNUSED)])
def test_only_an_open_world_asks_for_context(rule: str, manifest: dict[str, Any]) -> None:
    assert "--context" in findings(manifest, only=rule)[0].message
    assert "--context" not in findings(manifest, only=rule, assumptions=CLOSED)[0].message


def test_other_rules_are_the_same_in_both_worlds() -> None:
    objects = (
        level("jail", 0, borrowingLimitPercent=0),
        flow_schema("a", "jail", subjects=[group("sso:dev")], by="ByUser"),
        flow_schema("b", "catch-all", subjects=[user("alice")]),
        flow_schema("c", "exempt", 3000, subjects=[group("system:serviceaccounts")]),
    )
    told = findings(*objects)
    closed = findings(*objects, assumptions=CLOSED)
    assert [one._replace(document=None) for one in told] == [one._replace(document=None) for one in closed]
    assert {"APF407", "APF503", "APF511", "APF601", "APF602"} <= set(ids(told))


# Context: known, and never reported on.


def test_a_level_of_the_context_is_there() -> None:
    assert ids(findings(DANGLING, only="APF401")) == ["APF401"]
    assert findings(DANGLING, context=(UNUSED,)) == []


def test_a_flow_schema_of_the_context_uses_a_level() -> None:
    assert ids(findings(UNUSED, only="APF403")) == ["APF403"]
    assert not findings(UNUSED, context=(DANGLING,), only="APF403")


def test_the_context_has_no_findings() -> None:
    context = (
        flow_schema("a", "nowhere", None),
        flow_schema("b", "catch-all", 9000, subjects=[group("system:authenticated")], by="ByUser"),
        level("c", 0),
        level("d", 300, {"queues": 2, "handSize": 1, "queueLengthLimit": 100_000}),
        SHADOWED,
    )
    assert len(findings(*context)) > len(context)
    assert findings(flow_schema("mine", subjects=[account("prod", "deployer")]), context=context) == []


def test_a_flow_schema_of_the_context_shadows() -> None:
    earlier = flow_schema("everything", precedence=1500, resources=[ALL], paths=[PATHS])
    assert findings(flow_schema("mine")) == []
    (found,) = findings(flow_schema("mine"), context=(earlier,))
    assert (found.rule, found.file) == ("APF501", "0.json")
    assert '"everything"' in found.message
    assert [(other.file, other.span.line) for other in found.related] == [("context-0.json", 1)]


def test_a_level_elsewhere_is_taken_to_be_there_in_the_open_world_only() -> None:
    everything = flow_schema("everything", "elsewhere", 1500, resources=[ALL], paths=[PATHS])
    assert ids(findings(everything, flow_schema("mine"))) == ["APF401", "APF501"]
    assert ids(findings(everything, flow_schema("mine"), assumptions=CLOSED)) == ["APF401"]


def test_what_the_server_rejects_shadows_nothing_and_is_not_shadowed() -> None:
    everything = flow_schema("everything", precedence=1500, resources=[ALL], paths=[PATHS])
    assert ids(findings(everything, flow_schema("mine"))) == ["APF501"]
    everything["spec"]["distinguisherMethod"] = {"type": "ByVibes"}
    assert ids(findings(everything, flow_schema("mine"))) == ["APF203"]
    late = flow_schema("late", precedence=1_000_000)
    assert ids(findings(late)) == ["APF201"]


def test_a_tie_with_the_context() -> None:
    (found,) = findings(
        flow_schema("zebra"), context=(flow_schema("ape", "workload-high", resources=[GET_ALL]),), only="APF503"
    )
    assert '"ape" captures requests that "zebra" matches too' in found.message


def test_what_a_level_of_the_context_takes_is_not_new() -> None:
    context = (level("theirs", 55),)
    alone, beside = (findings(level("mine", 45), context=seen, only="APF603")[0].message for seen in ((), context))
    assert "workload-low 245 -> 207" in alone  # 600 * 100 / 245 and / 290
    assert "workload-low 200 -> 174" in beside  # / 300 and / 345
    assert "theirs 110 -> 96" in beside


# The objects that every server has.


def _of_every_release() -> list[Any]:
    return [pytest.param(one, id=one.name) for one in RELEASES]


@pytest.mark.parametrize("target", _of_every_release())
@pytest.mark.parametrize("assumptions", [OPEN, CLOSED], ids=["open", "closed"])
def test_exact_copies_of_the_built_in_objects_have_no_findings(target: Release, assumptions: Assumptions) -> None:
    copies = builtin.manifest(target, target.newest_version)
    assert copies
    told = [
        found
        for found in findings(*copies, kubernetes=target.name, assumptions=assumptions)
        if found.rule not in _VERSIONS
    ]
    assert told == []


@pytest.mark.parametrize("target", _of_every_release())
def test_copies_without_annotations_have_none_either(target: Release) -> None:
    copies = builtin.manifest(target, target.newest_version)
    for copy in copies:
        copy["metadata"].pop("annotations", None)
    assert [found for found in findings(*copies, kubernetes=target.name) if found.rule not in _VERSIONS] == []


_VERSIONS = ("APF701", "APF702")
"""Old releases serve only API versions that are deprecated, or off unless they are asked for."""


@pytest.mark.parametrize("target", _of_every_release())
def test_a_server_with_its_own_objects_only_has_no_findings(target: Release) -> None:
    assert findings(kubernetes=target.name, assumptions=CLOSED) == []


def test_the_objects_of_the_release_before_are_gone_or_the_same() -> None:
    """The objects of 1.33 checked for 1.34: the two FlowSchemas that it dropped."""
    leftovers = ["endpoint-controller", "workload-leader-election"]
    objects = builtin.manifest(release("1.33"), "v1")
    found = findings(*objects, kubernetes="1.34")
    reported = [(finding.rule, finding.object.name) for finding in found if finding.object]
    # Their annotation makes the server delete them, which says more than that the release has none.
    assert [entry for entry in reported if entry[0] in ("APF405", "APF705")] == [("APF405", name) for name in leftovers]
    unmarked = [{**value, "metadata": {"name": value["metadata"]["name"]}} for value in objects]
    found = findings(*unmarked, kubernetes="1.34", only="APF7")
    assert [finding.message.split(" created ")[1].split(" and ")[0] for finding in found] == [
        f'a FlowSchema "{name}"' for name in leftovers
    ]
    assert {finding.severity for finding in found} == {"warning"}


def test_an_object_of_a_later_release_is_like_any_other() -> None:
    assert not findings(flow_schema("system-node-high", version="v1beta1"), kubernetes="1.21", only="APF705")


# Messages name the other object.


def test_a_missing_level_of_another_release_is_named() -> None:
    ours = flow_schema("a", "node-high", version="v1beta1")
    for assumptions, advice in (
        (CLOSED, ""),
        (OPEN, ". If the level is defined elsewhere, name its file with --context"),
    ):
        (found,) = findings(ours, kubernetes="1.21", only="APF401", assumptions=assumptions)
        assert found.message.endswith(
            f" Servers create a level of this name in Kubernetes 1.22 to {NEWEST.name}{advice}"
        )


def test_a_missing_level_with_a_near_one() -> None:
    (found,) = findings(flow_schema("a", "global-defaults"), only="APF401")
    assert 'Did you mean "global-default"' in found.message


@pytest.mark.parametrize("complete", [True, False])
def test_a_missing_level_with_none_near(complete: bool) -> None:
    (found,) = findings(flow_schema("a", "qqq"), only="APF401", assumptions=Assumptions(complete=complete))
    advice = "" if complete else ". If the level is defined elsewhere, name its file with --context"
    assert found.message.startswith('there is no priority level "qqq"')
    assert found.message.endswith(f"in the end to global-default or catch-all{advice}")


def test_a_level_that_is_refused_is_not_missing() -> None:
    broken = level("batch", queuing={"queues": 4, "handSize": 8, "queueLengthLimit": 50})
    assert not findings(broken, DANGLING, only="APF401")
    assert findings(broken, DANGLING)


def test_why_nothing_reaches_a_flow_schema_that_nobody_shadows() -> None:
    empty = flow_schema("mine")
    empty["spec"]["rules"] = []
    (found,) = findings(empty, only="APF501")
    assert found.message == "unreachable FlowSchema: it has no rules. Add a rule, or remove the FlowSchema"
    log = {**READ_PODS, "verbs": ["get"], "resources": ["pods/log"]}
    (found,) = findings(flow_schema("mine", resources=[log]), only="APF501")
    assert found.message == (
        'unreachable FlowSchema: requests for "pods/log" are long-running,'
        " and API Priority and Fairness does not classify them. Remove or correct it"
    )
    never = flow_schema("mine", resources=[{**READ_PODS, "apiGroups": ["apps/v1"]}])
    assert ids(findings(never, only="APF50")) == ["APF504"]


def test_all_that_shadow_are_named() -> None:
    reads = flow_schema("reads", precedence=1100, resources=[{**ALL, "verbs": ["get", "list", "watch"]}])
    changes = flow_schema("changes", precedence=1200, resources=[{**ALL, "verbs": ["create", "update", "patch"]}])
    other = flow_schema(
        "bystander", precedence=1300, subjects=[account("ci", "deployer")], resources=[ALL], paths=[PATHS]
    )
    dead = flow_schema("dead", resources=[{**READ_PODS, "verbs": ["get", "create"]}])
    (found,) = findings(dead, other, changes, reads)
    assert found.rule == "APF501"
    assert 'one of the FlowSchemas "reads" (precedence 1100) and "changes" (precedence 1200)' in found.message
    assert "bystander" not in found.message
    assert [related.file for related in found.related] == ["3.json", "2.json"]


def test_everybody_is_more_than_everybody_who_is_authenticated() -> None:
    known_to_all = flow_schema("first", "exempt", 50, subjects=[group("system:authenticated")], resources=[ALL])
    for subject, rules in ((group("*"), []), (user("*"), []), (user("alice"), ["APF501"])):
        rest = flow_schema("rest", "exempt", 60, subjects=[subject], resources=[ALL])
        told = findings(known_to_all, rest, only="APF501")
        assert [found.rule for found in told if found.object and found.object.name == "rest"] == rules


def test_a_path_that_two_take_together_below_a_prefix() -> None:
    def urls(name: str, at: int, verbs: list[str], url: str) -> dict[str, Any]:
        paths = {"verbs": verbs, "nonResourceURLs": [url]}
        return flow_schema(name, "exempt", at, subjects=[user("alice")], paths=[paths])

    reads, writes = urls("reads", 50, ["get"], "/a/*"), urls("writes", 60, ["delete"], "/a/*")
    (found,) = findings(reads, writes, urls("dead", 70, ["get", "delete"], "/a/b"), only="APF501")
    assert re.findall('"(.*?)"', found.message) == ["reads", "writes"]
    assert not findings(reads, writes, urls("rest", 70, ["get", "delete"], "/a"), only="APF501")


def test_an_entry_is_dead_by_what_stands_before_it_only() -> None:
    def read(resource: str, *verbs: str) -> dict[str, Any]:
        return {**READ_PODS, "resources": [resource], "verbs": [*verbs]}

    # Of the last entry only `list` is left: neither the first of its verbs nor the last.
    first = flow_schema("first", "exempt", 50, subjects=[user("alice")], resources=[read("configmaps", "get", "watch")])
    entries = [
        read("pods", "get"),
        read("pods", "get"),
        read("secrets", "get"),
        read("configmaps", "get", "list", "watch"),
    ]
    mine = flow_schema("mine", "exempt", 60, subjects=[user("alice")], resources=entries)
    assert [found.field for found in findings(first, mine, only="APF50")] == ["spec.rules[0].resourceRules[1]"]


def test_what_could_be_spared_is_not_named_among_those_that_shadow() -> None:
    def taking(name: str, at: int, verbs: str, resources: str, namespaces: str, *users: str) -> dict[str, Any]:
        part = {"verbs": verbs.split(), "apiGroups": [""], "resources": resources.split(), "namespaces": [*namespaces]}
        return flow_schema(name, "exempt", at, subjects=[*map(user, users)], resources=[part])

    everything = "get list create watch update"
    told = findings(
        taking("pods-in-c", 51, everything, "pods", "c", "alice"),
        taking("configmaps", 52, "create get watch update", "configmaps", "acb", "alice", "bob"),
        taking("in-a-and-b", 53, "list watch update", "pods configmaps secrets", "ab", "bob", "alice"),
        taking("spare", 56, everything, "configmaps", "a", "alice"),
        taking("dead", 99, "update watch", "pods configmaps", "ca", "alice"),
        only="APF501",
    )
    takers = {found.object.name: re.findall('"(.*?)"', found.message) for found in told if found.object}
    assert takers == {"spare": ["configmaps", "in-a-and-b"], "dead": ["pods-in-c", "configmaps", "in-a-and-b"]}


def test_a_dangling_flow_schema_shadows_nothing_and_is_not_shadowed() -> None:
    everything = flow_schema("everything", "nowhere", 1500, resources=[ALL], paths=[PATHS])
    assert not findings(everything, flow_schema("mine"), only="APF50", assumptions=CLOSED)
    everything["spec"]["priorityLevelConfiguration"]["name"] = "workload-low"
    assert ids(findings(everything, flow_schema("mine"), only="APF50", assumptions=CLOSED)) == ["APF501"]
    assert not findings(everything, DANGLING, only="APF50", assumptions=CLOSED)


@pytest.mark.parametrize(("first", "second"), [("ape", "zebra"), ("a10", "a2"), ("a-2", "a10"), ("a.b", "ab")])
def test_the_name_that_wins_a_tie_is_the_one_that_the_server_takes(first: str, second: str) -> None:
    (found,) = findings(flow_schema(second), flow_schema(first, "workload-high", resources=[GET_ALL]), only="APF503")
    assert f'"{first}" captures requests that "{second}" matches too' in found.message
    order = [schema.name for schema in known(flow_schema(second), flow_schema(first)).configuration.order]
    assert order.index(first) < order.index(second)


def test_no_tie_where_no_request_matches_both() -> None:
    assert not findings(flow_schema("a"), flow_schema("b", subjects=[account("ci", "deployer")]), only="APF503")
    assert not findings(flow_schema("a"), flow_schema("b", paths=[PATHS]), only="APF503")


def test_a_tie_with_system_traffic_is_told_whichever_of_its_requests_the_solver_comes_upon() -> None:
    """The solver's request may be of a node that asks for a path as nobody does; others are such as the system makes."""
    node = flow_schema("ops", precedence=500, subjects=[user("system:node:n")], resources=[ALL])
    (found,) = findings(node, only="APF503")
    assert '"system-nodes"' in found.message
    both = flow_schema(
        "fs-1", precedence=500, subjects=[user("bob")], paths=[{"verbs": ["get"], "nonResourceURLs": ["*"]}]
    )
    watch = {**ALL, "verbs": ["watch", "get"]}
    both["spec"]["rules"].append({"subjects": [group("system:authenticated")], "resourceRules": [watch]})
    last = flow_schema(
        "fs-6", precedence=9900, subjects=[group("*")], resources=[{**ALL, "namespaces": ["ops", "dev"]}]
    )
    told = [found.message for found in findings(both, last, only="APF503")]
    assert any('"system-nodes"' in message and "--as system:node:node-1" in message for message in told)
    assert any('"system-nodes"' in found.message for found in findings(both, only="APF503"))


# Witnesses: what a finding says, `explain` says too.


def _explained(message: str, folder: Path, capsys: pytest.CaptureFixture[str], *objects: Any) -> dict[str, Any]:
    """What `apflint explain` answers to the command in a message, with these manifests."""
    for number, value in enumerate(objects):
        (folder / f"{number}.json").write_text(json.dumps(value), encoding="utf-8")
    command = re.search(r"`apflint explain (.*?)`", message)
    assert command is not None, message
    assert run(["explain", *shlex.split(command[1]), "-f", str(folder), "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_witness_of_a_tie(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = (flow_schema("zebra"), flow_schema("ape", "workload-high", resources=[GET_ALL]))
    (found,) = findings(*objects, only="APF503")
    assert _explained(found.message, tmp_path, capsys, *objects)["flowSchema"] == "ape"


@pytest.mark.parametrize(
    ("subject", "rule", "protected"),
    [
        (user("system:kube-scheduler"), {"resources": [READ_PODS]}, "kube-scheduler"),
        (group("system:nodes"), {"resources": [{**READ_PODS, "resources": ["nodes/status"]}]}, "system-node-high"),
        (group("system:nodes"), {"resources": [READ_PODS]}, "system-nodes"),
        (
            user("system:kube-controller-manager"),
            {"paths": [{"verbs": ["get"], "nonResourceURLs": ["/apis"]}]},
            "kube-controller-manager",
        ),
    ],
)
def test_the_witness_of_a_capture(
    subject: dict[str, Any],
    rule: dict[str, Any],
    protected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[subject], **rule)
    (found,) = findings(mine, only="APF507")
    assert f'"{protected}" (`' in found.message
    answer = _explained(found.message, tmp_path, capsys, mine)
    assert (answer["flowSchema"], answer["priorityLevel"]) == ("mine", "workload-low")
    assert findings({**mine, "spec": {**mine["spec"], "matchingPrecedence": 850}}, only="APF507") == []


@pytest.mark.parametrize("subject", [user("alice"), group("sso:sre"), account("payments", "default")])
def test_other_clients_are_no_capture_though_nobody_keeps_them_out_of_the_nodes_group(subject: dict[str, Any]) -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[subject], resources=[ALL], paths=[PATHS])
    assert not findings(mine, only="APF507")


@pytest.mark.parametrize(("level", "told"), [("elsewhere", True), ("workload-low", False)])
def test_a_level_that_is_taken_to_be_elsewhere_is_said(level: str, told: bool) -> None:
    mine = flow_schema("mine", level, 50, subjects=[user("system:kube-scheduler")], resources=[READ_PODS])
    (found,) = findings(mine, only="APF507")
    assert ('if the priority level "elsewhere" is defined elsewhere' in found.message) == told


@pytest.mark.parametrize(("level", "told"), [("elsewhere", True), ("workload-high", False)])
def test_a_rule_that_is_dead_if_a_level_is_elsewhere(level: str, told: bool) -> None:
    first = flow_schema("first", level, 840, subjects=[user("alice")])
    mine = flow_schema("mine", precedence=850)
    rules = [{"subjects": [user(name)], "resourceRules": [READ_PODS]} for name in ("alice", "bob")]
    (found,) = findings(first, {**mine, "spec": {**mine["spec"], "rules": rules}}, only="APF502")
    assert ('if the priority level "elsewhere" is defined elsewhere' in found.message) == told


def test_of_very_many_dead_rules_only_the_first_hundred_name_who_comes_first() -> None:
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS]}
    mine = flow_schema("mine", "workload-low", 850)
    found = findings({**mine, "spec": {**mine["spec"], "rules": [rule] * 103}}, only="APF502")
    named = ["spec.rules[" in each.message for each in found]
    assert named == [True] * 100 + [False] * 2


def test_beyond_the_first_hundred_nothing_is_claimed_that_was_not_asked() -> None:
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS]}
    nothing = {
        "subjects": [user("alice")],
        "resourceRules": [{**READ_PODS, "verbs": ["proxy"], "resources": ["pods/exec"]}],
    }
    elsewhere = flow_schema("first", "elsewhere", 840)
    mine = flow_schema("mine", "workload-low", 850)
    objects = (elsewhere, {**mine, "spec": {**mine["spec"], "rules": [*[rule] * 102, nothing]}})
    last = findings(*objects, only="APF502")[-1].message
    assert "every request it matches is captured by earlier FlowSchemas or rules" in last
    assert 'if the priority level "elsewhere" is defined elsewhere' in last


def test_taking_traffic_to_the_same_level_is_no_capture() -> None:
    mine = flow_schema("mine", "workload-high", 750, subjects=[user("system:kube-scheduler")])
    assert not findings(mine, only="APF507")


# Seen in the wild: manifests of our own that make the same mistakes.


def test_an_exemption_that_comes_after_the_service_accounts_of_kube_system() -> None:
    mine = flow_schema(
        "node-simulator",
        "exempt",
        1000,
        subjects=[account("kube-system", "node-simulator")],
        resources=[ALL],
        paths=[PATHS],
    )
    (found,) = findings(mine)
    assert found.rule == "APF501"
    assert '"kube-system-service-accounts" (precedence 900)' in found.message
    assert not findings({**mine, "spec": {**mine["spec"], "matchingPrecedence": 899}})


@pytest.mark.parametrize(
    ("name", "first"), [("queue-visibility", "queue-visibility"), ("visibility", "service-accounts")]
)
def test_a_flow_schema_at_the_precedence_of_service_accounts(name: str, first: str) -> None:
    mine = flow_schema(
        name,
        "global-default",
        9000,
        subjects=[group("system:authenticated")],
        resources=[{**ALL, "apiGroups": ["visibility.example.com"]}],
        by="ByUser",
    )
    mine["metadata"]["namespace"] = "queueing-system"
    told = findings(mine)
    assert sorted(ids(told)) == ["APF104", "APF503"]
    tie = next(found for found in told if found.rule == "APF503")
    assert '"service-accounts"' in tie.message
    assert f'"{first}" captures requests' in tie.message


def test_a_controller_that_lists_without_cluster_scope() -> None:
    lists = {"verbs": ["list", "watch"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    writes = {
        "verbs": ["create", "delete"],
        "apiGroups": ["wgpolicyk8s.io"],
        "resources": ["policyreports"],
        "namespaces": ["*"],
    }
    reports = flow_schema(
        "reports", "workload-high", subjects=[account("policy", "reports")], resources=[lists, writes]
    )
    (found,) = findings(reports)
    assert (found.rule, found.field) == ("APF505", "spec.rules[0].resourceRules[0].namespaces")


HEALTH = ["/healthz", "/livez", "/readyz"]


def test_health_checks_for_strangers_come_after_probes() -> None:
    get = flow_schema(
        "strangers",
        "global-default",
        1000,
        subjects=[group("system:unauthenticated")],
        by="ByUser",
        paths=[{"verbs": ["get"], "nonResourceURLs": HEALTH}],
    )
    (found,) = findings(get)
    assert found.rule == "APF501"
    assert '"probes" (precedence 2)' in found.message


def test_health_checks_for_strangers_with_all_methods_get_what_is_not_get(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = flow_schema(
        "strangers",
        "global-default",
        1000,
        subjects=[group("system:unauthenticated")],
        by="ByUser",
        paths=[{"verbs": ["*"], "nonResourceURLs": HEALTH}],
    )
    assert not findings(every, only="APF501")
    answers = [
        _explained(f"`apflint explain {method} /healthz --as system:anonymous`", tmp_path, capsys, every)["flowSchema"]
        for method in ("get", "head")
    ]
    assert answers == ["probes", "strangers"]


def test_a_jail_with_zero_shares() -> None:
    told = findings(
        level("jail", 0, lendablePercent=0, borrowingLimitPercent=0),
        flow_schema(
            "jail-agent",
            "jail",
            1000,
            subjects=[account("monitoring", "agent")],
            resources=[{key: value for key, value in ALL.items() if key != "clusterScope"}],
            by="ByUser",
        ),
    )
    assert sorted(ids(told)) == ["APF505", "APF508", "APF511", "APF602"]
    (jail,) = (found for found in told if found.rule == "APF602")
    assert "one request at a time" in jail.message
    assert "RBAC" in jail.message


def test_mistakes_that_the_server_refuses_are_told_by_its_own_rules() -> None:
    deck = level("deck", 10, {"queues": 128, "handSize": 12, "queueLengthLimit": 50})
    exempt = {**level("mine"), "spec": {"type": "Exempt"}}
    rbac = flow_schema("rbac", subjects=[{"kind": "User", "name": "alice"}])
    assert "APF306" in ids(findings(deck))
    assert "APF605" not in ids(findings(deck))
    assert "APF301" in ids(findings(exempt))
    assert "APF101" in ids(findings(rbac))


def test_assured_shares_under_v1beta3() -> None:
    manifest = level("batch", version="v1beta3")
    limited = manifest["spec"]["limited"]
    limited["assuredConcurrencyShares"] = limited.pop("nominalConcurrencyShares")
    assert "APF703" in ids(findings(manifest, kubernetes="1.31"))


def test_objects_of_other_groups_are_not_ours() -> None:
    foreign = {
        "apiVersion": "flows.example.com/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "a"},
        "spec": {"x": 1},
    }
    assert findings(foreign) == []


# Capacity: the figures are those of the evaluator.


@pytest.mark.parametrize(("shares", "total"), [(3, 600), (10, 600), (30, 600), (100, 600), (5, 60), (400, 599)])
def test_seats_taken_are_what_limits_says(shares: int, total: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (level("batch", shares), flow_schema("ci", "batch"))
    (found,) = findings(*objects, only="APF603", assumptions=assumptions)
    order, levels = known(*objects).configuration.order, known(*objects).configuration.levels
    after = compute(tuple(levels.values()), order, total, NEWEST)
    before = compute(tuple(one for one in levels.values() if one.name != "batch"), order, total, NEWEST)
    losses = {
        one.name: (one.nominal, now.nominal)
        for one in before.levels
        if (now := after.level(one.name)) is not None and now.nominal < one.nominal
    }
    told = {name: (int(then), int(now)) for name, then, now in re.findall(r"([a-z-]+) (\d+) -> (\d+)", found.message)}
    batch = after.level("batch")
    assert batch is not None
    assert told == losses
    assert f"takes {batch.nominal} of {total} seats" in found.message
    assert found.severity == ("warning" if any(now < 0.75 * then for then, now in losses.values()) else "info")


@pytest.mark.parametrize(
    ("queues", "hand"),
    [(2, 1), (4, 4), (8, 2), (16, 4), (32, 2), (50, 3), (64, 1), (64, 6), (128, 6), (100, 8), (398, 1), (399, 1)],
)
def test_isolation_is_what_shards_says(queues: int, hand: int) -> None:
    objects = (
        level("batch", 10, {"queues": queues, "handSize": hand, "queueLengthLimit": 50}),
        flow_schema("ci", "batch", subjects=[group("ci")], by="ByUser"),
    )
    told = findings(*objects, only="APF605")
    risk = shards.squish_probability(hand, queues, 4)
    assert bool(told) == (risk > 0.01)
    for found in told:
        better = re.search(r"queues (\d+) (?:with|and) handSize (\d+) brings", found.message)
        assert better is not None
        assert shards.squish_probability(int(better[2]), int(better[1]), 4) <= 0.01
        assert shards.admitted(int(better[1]), int(better[2]))


@pytest.mark.parametrize(
    ("shares", "total", "nominal"), [(1, 600, 3), (1, 400, 2), (1, 200, 1), (2, 200, 2), (3, 200, 3)]
)
def test_single_seats_are_what_limits_says(shares: int, total: int, nominal: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (level("batch", shares), flow_schema("ci", "batch"))
    limits = known(*objects, assumptions=assumptions).limits.level("batch")
    assert limits is not None
    assert limits.nominal == nominal
    told = findings(*objects, only="APF606", assumptions=assumptions)
    assert [found.severity for found in told] == (["warning"] if nominal < 3 else [])
    assert all(f"{nominal} of {total} seats" in found.message for found in told)


@pytest.mark.parametrize(
    ("queues", "length", "found"), [(1000, 100, 0), (1000, 101, 1), (1, 100_000, 0), (1, 100_001, 1)]
)
def test_oversized_queues_begin_above_100000(queues: int, length: int, found: int) -> None:
    objects = (
        level("batch", 10, {"queues": queues, "handSize": min(queues, 6), "queueLengthLimit": length}),
        flow_schema("ci", "batch"),
    )
    told = findings(*objects, only="APF607")
    assert len(told) == found
    assert all(f"{queues * length:,}" in one.message for one in told)


@pytest.mark.parametrize("percent", [50, 51, 100, 101])
@pytest.mark.parametrize("name", ["leader-election", "node-high", "system", "workload-low"])
def test_critical_levels_lend_half_at_most(name: str, percent: int) -> None:
    told = findings(level(name, lendablePercent=percent), only="APF604")
    assert len(told) == (50 < percent <= 100 and name != "workload-low")


@pytest.mark.parametrize(
    ("limited", "queuing", "words"),
    [
        ({"borrowingLimitPercent": 0}, None, "one request at a time. To forbid"),
        ({"borrowingLimitPercent": 200}, None, "one request at a time. To forbid"),
        ({}, None, "one request at a time, and more on seats that it borrows. To forbid"),
        ({"borrowingLimitPercent": 0}, {"queues": 64, "handSize": 6}, "waits a quarter of its timeout (15 seconds by"),
        ({"borrowingLimitPercent": 200}, {"queues": 64, "handSize": 6}, "while the queue is full it gets 429 at once"),
        ({}, {"queues": 64, "handSize": 6}, "until the server lends the level seats"),
    ],
)
def test_what_a_level_without_shares_does(limited: dict[str, Any], queuing: dict[str, int] | None, words: str) -> None:
    objects = (level("jail", 0, queuing, **limited), flow_schema("ci", "jail"))
    (found,) = findings(*objects, only="APF602")
    assert words in found.message


def test_zero_shares_are_refused_before_they_are_a_jail() -> None:
    assert ids(findings(level("jail", 0), flow_schema("ci", "jail"), kubernetes="1.29", only="APF304")) == ["APF304"]
    assert not findings(level("jail", 0), flow_schema("ci", "jail"), kubernetes="1.29", only="APF602")


@pytest.mark.parametrize(
    ("subject", "broad"),
    [
        (group("system:authenticated"), True),
        (group("system:unauthenticated"), True),
        (group("system:serviceaccounts"), True),
        (group("*"), True),
        (user("*"), True),
        (group("system:serviceaccounts:ci"), False),
        (group("sso:admins"), False),
        (user("alice"), False),
        (account("ci", "*"), False),
    ],
)
def test_broad_exemptions(subject: dict[str, Any], broad: bool) -> None:
    told = findings(flow_schema("a", "exempt", subjects=[subject]), only="APF601")
    named = subject.get("group", {}).get("name", "*")
    who = "everybody" if named == "*" else f'the group "{named}"'
    assert [found.message.partition(" from all limits")[0] for found in told] == [f"this exempts {who}"] * broad
    assert not findings(flow_schema("a", "workload-low", subjects=[subject]), only="APF601")
    health = {"verbs": ["get"], "nonResourceURLs": ["/healthz/*", "/livez", "/version"]}
    assert not findings(flow_schema("a", "exempt", subjects=[subject], paths=[health]), only="APF601")
    more = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/healthzy"]}
    assert bool(findings(flow_schema("a", "exempt", subjects=[subject], paths=[more]), only="APF601")) == broad


def test_of_many_levels_that_lose_seats_those_that_lose_most_are_named() -> None:
    many = [level(f"level-{number:02}", 30) for number in range(20)]
    told = findings(*many, level("new", 300), only="APF603", assumptions=Assumptions(server_concurrency=600))
    message = next(found.message for found in told if found.object is not None and found.object.name == "new")
    others = message.partition(": ")[2].partition(" more. ")[0].replace(" and ", ", ").split(", ")
    assert others[0] == "workload-low 72 -> 53"
    assert "exempt" not in message
    assert len(others) == 12 + 1
    assert others[-1] == "15"
    assert message.endswith(" more lose more than a quarter of their seats")
    like_others = next(found.message for found in told if found.object is not None and found.object.name == "level-03")
    assert "level-03 " not in like_others


@pytest.mark.parametrize("written", ["workload-lwo", "workload-low2", "workloadlow", "workload-luw"])
def test_among_many_levels_the_one_that_is_a_letter_off_is_named(written: str) -> None:
    many = [level(f"team-{number:03}", 1) for number in range(120)]
    (found,) = findings(*many, flow_schema("a", written), only="APF401")
    assert 'Did you mean "workload-low"?' in found.message
    (other,) = findings(*many, flow_schema("a", "quite-another"), only="APF401")
    assert "Did you mean" not in other.message


def test_up_to_a_hundred_levels_are_compared_with_a_name_whatever_is_wrong_with_it() -> None:
    own = 100 - len(known().configuration.levels)
    for count, hint in ((own, True), (own + 1, False)):
        levels = (level("payment-processing", 1), *(level(f"team-{number:03}", 1) for number in range(count - 1)))
        (found,) = findings(*levels, flow_schema("a", "payment-processing-eu"), only="APF401")
        assert ('Did you mean "payment-processing"?' in found.message) is hint


# Ties of the system's own users.


@pytest.mark.parametrize("order", [1, -1])
def test_a_user_of_the_system_in_a_group_of_somebody_makes_no_tie(order: int) -> None:
    for own in (group("system:nodes"), user("system:kube-scheduler"), account("kube-system", "x")):
        first, second = (own, group("dev"))[::order]
        objects = (
            flow_schema("a", precedence=100, subjects=[first]),
            flow_schema("b", precedence=100, subjects=[second]),
        )
        assert not findings(*objects, only="APF503")


def test_a_missing_level_of_another_release_with_a_near_one_has_no_fix() -> None:
    ours = level("node-highs", version="v1beta1")
    (found,) = findings(ours, flow_schema("a", "node-high", version="v1beta1"), kubernetes="1.21", only="APF401")
    assert 'Did you mean "node-highs"' in found.message
    assert found.fix is None
    (other,) = findings(ours, flow_schema("a", "node-hihgs", version="v1beta1"), kubernetes="1.21", only="APF401")
    assert other.fix is not None


def test_what_another_rule_says_is_not_said_again_and_the_rest_is() -> None:
    """APF504 tells why the first entry matches nothing; the second is told by APF502."""
    never = {**READ_PODS, "verbs": ["get"], "resources": ["pods/exec"], "apiGroups": ["apps/v1"]}
    mine = flow_schema("mine", resources=[READ_PODS, never, READ_PODS])
    told = [found.field for found in findings(mine, only="APF502")]
    assert "spec.rules[0].resourceRules[2]" in told
    assert "spec.rules[0].resourceRules[1]" not in told


def test_a_single_seat_is_shown_at_the_shares_as_the_version_calls_them() -> None:
    for version, field in (("v1beta2", "assuredConcurrencyShares"), ("v1beta3", "nominalConcurrencyShares")):
        ours = level("x", 1, version=version)
        limited = ours["spec"]["limited"]
        limited[field] = limited.pop("nominalConcurrencyShares")
        (found,) = findings(ours, only="APF606", kubernetes="1.28", assumptions=Assumptions(server_concurrency=100))
        assert found.field == f"spec.limited.{field}"


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        ({"kind": "Group", "group": {"name": "system:kube-scheduler"}}, True),
        ({"kind": "User", "user": {"name": "x"}, "group": {"name": "system:kube-scheduler"}}, False),
        ({"kind": "Group"}, False),
        ({"kind": "ServiceAccount"}, False),
        ({"kind": "User", "serviceAccount": {"namespace": "kube-system", "name": "kube-scheduler"}}, False),
    ],
)
def test_only_the_member_that_goes_with_the_kind_counts(subject: dict[str, Any], told: bool) -> None:
    assert bool(findings(flow_schema("a", subjects=[subject]), only="APF512")) is told


def test_a_mandatory_level_that_was_changed_is_shown_at_the_word_spec() -> None:
    ours = level("catch-all", 77)
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF311")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"spec"'


def test_a_distinguisher_that_makes_no_difference_is_shown_at_its_field() -> None:
    ours = flow_schema("a", "exempt", by="ByUser")
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF511")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"distinguisherMethod"'


def test_weak_isolation_is_told_wherever_the_level_stands() -> None:
    weak, good = {"queues": 2, "handSize": 1}, {"queues": 128, "handSize": 6}
    as_built_in = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
    queues = {"a": weak, "b": {"queues": 1, "handSize": 1}, "c": good, "leader-election": as_built_in, "d": weak}
    told = findings(*(level(name, 11, {"queueLengthLimit": 50} | each) for name, each in queues.items()), only="APF605")
    assert [found.object.name for found in told if found.object] == ["a", "d"]


def test_weak_isolation_is_shown_at_the_word_queuing() -> None:
    ours = level("x", 10, {"queues": 4, "handSize": 2, "queueLengthLimit": 5})
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF605")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"queuing"'


def test_the_server_deletes_what_has_none_of_its_names() -> None:
    autoupdate = {"annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}
    ours = {**level("workload-lo"), "metadata": {"name": "workload-lo", **autoupdate}}
    (found,) = findings(ours, only="APF405")
    assert "PriorityLevelConfiguration" in found.message
    for value in (level("workload-low"), flow_schema("service-accounts")):
        same = {**value, "metadata": {**value["metadata"], **autoupdate}}
        assert not findings(same, only="APF405")
    # A name of the other kind is none.
    other = flow_schema("workload-low")
    (found,) = findings({**other, "metadata": {**other["metadata"], **autoupdate}}, only="APF405")
    assert "FlowSchema" in found.message


def test_a_leftover_of_an_earlier_release_that_the_server_deletes_may_be_removed() -> None:
    leftover = flow_schema("endpoint-controller")
    leftover["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "true"}
    (found,) = findings(leftover, only="APF405")
    assert "servers up to 1.33 created it" in found.message
    assert found.message.endswith('Remove it from your files, or write "false" to keep it as your own')


def test_what_takes_the_place_of_a_protected_flow_schema_is_no_capture() -> None:
    """An own object of that name is a change of it; what it lets go is taken by nobody of ours."""
    for name, subject in (("system-nodes", group("system:nodes")), ("probes", user("nobody"))):
        assert not findings(flow_schema(name, "workload-low", 500, subjects=[subject], paths=[PATHS]), only="APF507")


def test_a_level_that_takes_seats_from_nobody_is_not_told() -> None:
    assert not findings(level("x", 1), only="APF603", assumptions=Assumptions(server_concurrency=1))
    told = findings(level("a", 0), level("workload-low", 100), level("b", 300), only="APF603")
    assert [found.object.name for found in told if found.object] == ["b"]


def test_why_a_distinguisher_is_idle() -> None:
    (found,) = findings(flow_schema("a", "exempt", by="ByUser"), only="APF511")
    assert (
        found.message
        == 'distinguisherMethod ByUser has no effect: no request waits at "exempt", which is exempt. Remove it'
    )


def test_names_of_levels_are_compared_word_for_word() -> None:
    for written, known in (("work.load-lwo", "work-load-low"), ("work-load.lwo", "work.load.low")):
        (found,) = findings(level(known), flow_schema("a", written), only="APF401")
        assert found.fix is not None
        assert [operation[-1] for operation in found.fix.operations] == [known]


def test_only_the_level_of_that_name_may_be_as_weak_as_the_built_in_one() -> None:
    queuing = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}  # of leader-election
    assert findings(level("x", 10, queuing), only="APF605")
    assert not findings(level("leader-election", 11, queuing), only="APF605")
    assert findings(level("leader-election", 10, {**queuing, "handSize": 3}), only="APF605")


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
    ],
)
def test_which_names_are_a_letter_off(written: str, fixed: bool) -> None:
    (found,) = findings(flow_schema("a", written), only="APF401")
    assert (found.fix is not None) is fixed


@pytest.mark.parametrize(
    ("known", "written", "fixed"),
    [("ab", "ba", False), ("abc", "bac", True), ("abc", "abd", False), ("abcd", "abce", True), ("abcd", "abc", False)],
)
def test_short_words_are_other_names_rather_than_wrong_ones(known: str, written: str, fixed: bool) -> None:
    (found,) = findings(level(f"{known}-tests"), flow_schema("a", f"{written}-tests"), only="APF401")
    assert (found.fix is not None) is fixed


def test_a_rule_of_which_a_part_matches_nothing_and_the_rest_is_taken_is_told() -> None:
    never = {**READ_PODS, "apiGroups": ["apps/v1"]}
    mine = flow_schema("mine")
    rules = [
        {"subjects": [user("alice")], "resourceRules": each} for each in ([READ_PODS], [never, READ_PODS], [never])
    ]
    told = {
        found.field: found.message
        for found in findings({**mine, "spec": {**mine["spec"], "rules": rules}}, only="APF502")
    }
    assert "spec.rules[0]" in told["spec.rules[1]"]
    assert "spec.rules[2]" not in told


def test_what_is_well_does_not_hide_what_comes_after_it() -> None:
    broken = level("broken")
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
    told = findings(*objects, only="APF401")
    assert [found.object.name for found in told if found.object] == ["e", "f"]


def test_each_flow_schema_that_takes_system_traffic_is_told() -> None:
    first = flow_schema("first", "workload-low", 50, subjects=[user("system:kube-scheduler")])
    second = flow_schema("second", "workload-low", 60, subjects=[group("system:nodes")])
    told = findings(first, second, only="APF507")
    assert [found.object.name for found in told if found.object] == ["first", "second"]


LONG_RUNNING = 'requests for "pods/exec" are long-running, and API Priority and Fairness does not classify them'
NO_ACCOUNT = (
    '"system:serviceaccount:ci" is not the user name of a service account (system:serviceaccount:NAMESPACE:NAME)'
)
NO_NAMESPACE = 'nobody is in the group "system:serviceaccounts:CI": "CI" is not a valid namespace'
NO_RESOURCE = 'no request is for "pods/" or "a/b/c": write a resource as pods or pods/log'
A_RESOURCE = '"/api/v1/pods" and "/apis/apps/v1/jobs/*" are resource paths, which only resourceRules match'
NO_REASON = "no request that API Priority and Fairness classifies matches it"


def reading(*resources: str) -> dict[str, Any]:
    return {**READ_PODS, "verbs": ["get"], "resources": [*resources]}


def getting(*urls: str) -> dict[str, Any]:
    return {"verbs": ["get"], "nonResourceURLs": [*urls]}


@pytest.mark.parametrize(
    ("rule", "reasons"),
    [
        ({"resourceRules": [reading("pods/exec")]}, [LONG_RUNNING]),
        ({"resourceRules": [reading("pods/", "a/b/c")]}, [NO_RESOURCE]),
        ({"resourceRules": [reading("pods/", "a/b/c", "pods/exec")]}, [NO_RESOURCE, LONG_RUNNING]),
        ({"nonResourceRules": [getting("/api/v1/pods", "/apis/apps/v1/jobs/*")]}, [A_RESOURCE]),
        (
            {"nonResourceRules": [getting("/debug/pprof/heap")]},
            [LONG_RUNNING.replace("pods/exec", "/debug/pprof/heap")],
        ),
        (
            {
                "resourceRules": [reading("pods/exec")],
                "nonResourceRules": [getting("/api/v1/pods", "/apis/apps/v1/jobs/*")],
            },
            [LONG_RUNNING, A_RESOURCE],
        ),
        ({"subjects": [user("system:serviceaccount:ci")]}, [NO_ACCOUNT]),
        (
            {"subjects": [group("system:serviceaccounts:CI"), user("system:serviceaccount:ci")]},
            [NO_NAMESPACE, NO_ACCOUNT],
        ),
        # A resource without a name cannot be listed: there is no path for that.
        ({"resourceRules": [{**reading(""), "verbs": ["list"]}]}, [NO_REASON]),
        ({"resourceRules": [reading("pods/exec"), {**reading(""), "verbs": ["list"]}]}, [NO_REASON]),
    ],
)
def test_why_nothing_matches(rule: dict[str, Any], reasons: list[str]) -> None:
    mine, spec = flow_schema("mine"), flow_schema("mine")["spec"]
    dead, alive = {"subjects": [user("alice")], "resourceRules": [READ_PODS], **rule}, spec["rules"][0]
    if "nonResourceRules" in rule and "resourceRules" not in rule:
        del dead["resourceRules"]
    (found,) = findings({**mine, "spec": {**spec, "rules": [alive, dead]}}, only="APF502")
    assert found.field == "spec.rules[1]"
    assert found.message.startswith("unreachable rule: ")
    assert [found.message.find(reason) >= 0 for reason in reasons] == [True] * len(reasons)
    assert found.message.count("; ") == len(reasons) - 1
    (whole,) = findings({**mine, "spec": {**spec, "rules": [dead]}}, only="APF501")
    assert whole.message == found.message.replace("unreachable rule", "unreachable FlowSchema")


def test_an_entry_has_reasons_of_its_own() -> None:
    rules = {
        "subjects": [account("ci", "runner"), user("system:serviceaccount:ci")],
        "resourceRules": [READ_PODS, reading("pods/exec")],
        "nonResourceRules": [getting("/version/x"), getting("/api/v1/pods")],
    }
    mine = flow_schema("mine", "workload-low", 100)
    told = findings({**mine, "spec": {**mine["spec"], "rules": [rules]}}, only="APF502")
    assert [(found.field, found.message.partition(": ")[2][:30]) for found in told] == [
        ("spec.rules[0].subjects[1]", NO_ACCOUNT[:30]),
        ("spec.rules[0].resourceRules[1]", LONG_RUNNING[:30]),
        ("spec.rules[0].nonResourceRules[1]", '"/api/v1/pods" is a resource p'),
    ]


def test_a_flow_schema_of_everybody_takes_all_system_traffic() -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[group("system:authenticated")], resources=[ALL])
    (found,) = findings(mine, only="APF507")
    for name in ("kube-scheduler", "kube-controller-manager", "system-nodes", "system-leader-election"):
        assert f'"{name}" (`' in found.message


def test_suggested_objects_are_told_wherever_they_stand() -> None:
    kept = flow_schema("service-accounts")
    kept["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "false"}
    objects = (flow_schema("a"), kept, flow_schema("probes"), level("x"), level("workload-low", 77))
    told = findings(*objects, only="APF404")
    assert [found.object.name for found in told if found.object] == ["probes", "workload-low"]


@pytest.mark.parametrize("precedence", [60, 600])
def test_a_changed_protected_one_does_not_hide_a_capture(precedence: int) -> None:
    changed = flow_schema("system-nodes", "workload-low", 500, subjects=[group("system:nodes")], resources=[ALL])
    mine = flow_schema("mine", "workload-low", precedence, subjects=[user("system:kube-scheduler")])
    (found,) = findings(changed, mine, only="APF507")
    assert found.object is not None
    assert found.object.name == "mine"
