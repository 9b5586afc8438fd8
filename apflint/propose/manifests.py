"""Writes the objects of a proposal as YAML, with comments that explain each number, and the policy test of the proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.checks.outsiders_in_reserved_levels import is_broad
from apflint.fixes.yaml_values import write_string
from apflint.model import (
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    Subject,
    shares_field,
)
from apflint.output.console import wrap
from apflint.output.sanitize import escape_quoted_commands, sanitize_line
from apflint.policy.parser import parse_suite
from apflint.policy.running import Runner
from apflint.proofs.one_configuration import Analysis
from apflint.propose.changes import NewFlowSchema, NewLevel, build_manifest, find_last_built_in
from apflint.propose.goals import match_all_requests
from apflint.propose.isolation import QUEUING, describe_tenant
from apflint.wording import join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.location import Path
    from apflint.propose.isolation import IsolationProposal

    Comments = Mapping[Path, str]
    """Comments by field: each comment is written above the field with this path.

    The comment of the path () is written at the top.
    """

_MAX_EXCEPTIONS = 24
"""Maximum number of exceptions in the policy test.

If there are more, the test contains an example request instead of a property.
"""
_LIMITED: Path = ("spec", "limited")
_QUEUING: Path = (*_LIMITED, "limitResponse", "queuing")
_EVERYBODY = Subject("User", "*", None, None)
_WIDTH = 110
"""Maximum width of a comment."""


def write_manifests(proposal: IsolationProposal, before: Effective, after: Effective, command: str) -> str:
    """Return the new objects as YAML, levels first, or "" if the proposal has no new object.

    `command` is the command line that created the proposal.
    """
    documents = []
    if (level := proposal.new_level) is not None:
        documents.append(render_object(level, after, _comment_level(level, after)))
    if (schema := proposal.flow_schema) is not None:
        documents.append(render_object(schema, after, _comment_flow_schema(schema, proposal, before)))
    if not documents:
        return ""
    release, total = before.release.name, before.limits.server_concurrency
    head = f"Proposed by `{command}` for Kubernetes {release} and {total} seats in each API server."
    return _render_comment(head, 0) + "---\n".join(documents)


def render_object(change: NewLevel | NewFlowSchema, after: Effective, comments: Comments) -> str:
    """Return a new object as YAML."""
    return render_yaml(build_manifest(change, after.release), comments)


def render_yaml(value: Mapping[str, object], comments: Comments) -> str:
    """Return a mapping as YAML in block style, with lists of strings on one line, and with comments above their fields."""
    head = _render_comment(comments[()], 0) if () in comments else ""
    return head + escape_quoted_commands("".join(_render_mapping(value, comments, (), 0)))


def _render_comment(text: str, indent: int) -> str:
    lines = wrap(sanitize_line(text), _WIDTH - indent - 2)
    return "".join(f"{' ' * indent}# {line}\n" for line in lines)


def _render_mapping(value: Mapping[str, Any], comments: Comments, path: Path, indent: int) -> Iterator[str]:
    for key, item in value.items():
        here = (*path, key)
        if here in comments:
            yield _render_comment(comments[here], indent)
        yield f"{' ' * indent}{key}:{_render_value(item, comments, here, indent + 2)}"


def _render_value(value: Any, comments: Comments, path: Path, indent: int) -> str:
    """Return the value of a key as YAML: the text after the colon, with the newline at the end."""
    if isinstance(value, dict):
        return "\n" + "".join(_render_mapping(value, comments, path, indent))
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = (
            "".join(_render_mapping(item, comments, (*path, number), indent + 2)) for number, item in enumerate(value)
        )
        return "\n" + "".join(f"{' ' * indent}- {item[indent + 2 :]}" for item in items)
    if isinstance(value, list):
        return f" [{', '.join(map(_render_scalar, value))}]\n"
    return f" {_render_scalar(value)}\n"


def _render_scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return write_string(value) if isinstance(value, str) else str(value)


def _comment_level(level: NewLevel, after: Effective) -> dict[Path, str]:
    limits = after.limits.level(level.name)
    assert limits is not None, "the configuration has the level"
    total, share_sum = after.limits.server_concurrency, sum(other.shares for other in after.limits.levels)
    shares = shares_field(after.release.newest_version)
    comments: dict[Path, str] = {
        (
            *_LIMITED,
            shares,
        ): f"{total} seats x {level.shares} / {share_sum} shares, rounded up, are {limits.nominal} seats in"
        " each API server. Fewer shares do not suffice. Shares are relative: new levels change the result.",
        (
            *_LIMITED,
            "lendablePercent",
        ): f"Other levels may use {limits.nominal - limits.min} of these seats while this level does not need"
        f" them. This level always keeps {limits.min} seats.",
        (
            *_LIMITED,
            "borrowingLimitPercent",
        ): f"While other levels are idle, this level may use up to {limits.max} seats. The limit keeps the tenant from using the whole server.",
    }
    if level.queuing == QUEUING:
        comments[(*_QUEUING, "queues")] = (
            "Four busy clients fill all queues of another client with a probability of 0.1% (apflint shards --recommend 0.001"
            " --elephants 4)."
        )
    else:
        comments[(*_QUEUING, "queues")] = "One client has one flow, so it needs one queue."
    comments[(*_QUEUING, "queueLengthLimit")] = f"{limits.max_queued_per_flow} requests of one client may wait."
    return comments


def _comment_flow_schema(schema: NewFlowSchema, proposal: IsolationProposal, before: Effective) -> dict[Path, str]:
    order = before.configuration.order
    captors = join_words(
        (f"{captor.flow_schema.name} ({captor.flow_schema.spec.matching_precedence})" for captor in proposal.captors),
        "and",
    )
    position = f"Before {captors}, which captures the requests now"
    if (last := find_last_built_in(before.configuration, before.release)) >= 0:
        position += f", and after {order[last].name} ({order[last].spec.matching_precedence}), the last built-in FlowSchema for system components"
    comments: dict[Path, str] = {("spec", "matchingPrecedence"): f"{position}."}
    if schema.distinguisher_method is not None:
        comments["spec", "distinguisherMethod"] = (
            "The requests of each user and of each service account form a flow. Each flow has its own hand of queues."
        )
    comments["spec", "rules"] = f"All requests of {describe_tenant(proposal.goal)}."
    return comments


def write_policy_test(
    proposal: IsolationProposal, after: Effective, manifests: Sequence[str], cluster: str = ""
) -> str:
    """Return a policy test that passes if the proposal is applied.

    The test checks that the requests of the tenant get the proposed priority level, except requests
    that FlowSchemas of other levels capture, and that no other requests get the level. If these
    exceptions cannot be stated, the test checks examples of the tenant's requests instead. `manifests`
    are the paths that the test loads, relative to the directory of the test. If `cluster` is not empty,
    the test loads this cluster of the settings instead of `manifests`.
    """
    limits = after.limits.level(proposal.level)
    assert limits is not None, "the configuration has the level"
    subjects = [*map(_write_subject, proposal.goal.subjects)]
    suite: dict[str, Any] = {"clusters": [cluster]} if cluster else {"manifests": [*manifests]}
    suite |= {"kubernetes": after.release.name, "serverConcurrency": after.limits.server_concurrency}
    reaches: dict[str, object] = {"priorityLevel": proposal.level, "nominalSeats": proposal.goal.seats}
    tests = [
        {
            "name": "nobody else gets the level",
            "never": {"except": {"subject": subjects}, "reaches": {"priorityLevel": proposal.level}},
        }
    ]
    exceptions = _find_exceptions(proposal, after)
    if exceptions is not None:
        claim = {"subject": subjects} | ({"except": exceptions} if exceptions else {}) | {"reaches": reaches}
        tests.insert(0, {"name": f"{describe_tenant(proposal.goal)} gets the level {proposal.level}", "always": claim})
        text = _render_suite({**suite, "tests": tests}, limits)
        if _passes(text, after):
            return text
        del tests[0]
    tests[:0] = _write_examples(proposal, reaches)
    return _render_suite({**suite, "tests": tests}, limits)


def _render_suite(suite: dict[str, Any], limits: LevelLimits) -> str:
    note = "These expectations must hold after you apply the proposal. `apflint test FILE` proves `always` and `never` for all requests."
    note += f" nominalSeats is the requested number of seats in each API server. The level always keeps {pluralize(limits.min, 'seat')}, and never lends them (minSeats)."
    return render_yaml(suite, {(): note})


def _passes(text: str, after: Effective) -> bool:
    suite = parse_suite("suite.yaml", text.encode()).suite
    return suite is not None and all(result.passed for result in Runner(suite, after.configuration, after.limits).run())


def _write_examples(proposal: IsolationProposal, reaches: dict[str, object]) -> Iterator[dict[str, Any]]:
    """Yield a test case with an example request for each FlowSchema that loses requests."""
    for captor in proposal.captors:
        words, point = captor.witness.words or (), captor.witness.point
        own = [group for group in point.groups if f"--as-group={group}" in words or group in words]
        at = next((at for at, word in enumerate(words) if word.startswith("--as")), len(words))
        example: dict[str, Any] = {"request": " ".join(words[:at]), "as": point.user}
        yield {**example, **({"groups": own} if own else {}), "reaches": reaches}


def _find_exceptions(proposal: IsolationProposal, after: Effective) -> list[dict[str, Any]] | None:
    """Return the requests of the tenant that other FlowSchemas send to other levels, in sets.

    All requests of the tenant outside of the sets get the proposed level. Return None if there are too many sets, or if a request of the tenant goes to
    `catch-all` because no FlowSchema matches it.

    In each step, the solver looks for a captured request that is in none of the known sets. The requests that
    match the same entries of a rule become a new set. If the entry of the rule is a single subject of a tenant
    with several subjects, all requests of this subject become the set.
    """
    configuration, requests = after.configuration, proposal.goal.rule
    others = [schema for schema in configuration.order if schema.spec.priority_level_configuration != proposal.level]
    rules: list[PolicyRulesWithSubjects] = []
    sets: list[dict[str, Any]] = []
    while len(rules) < _MAX_EXCEPTIONS:
        analysis = Analysis(configuration, more_rules=(requests, *rules))
        witness = analysis.find_request_in(requests, others, rules)
        if witness is None:
            return sets
        resolution = analysis.resolve(witness.point)
        if resolution.matched_by is None:
            return None
        number, subject, resource, path = resolution.matched_by
        rule = resolution.flow_schema.spec.rules[number]
        matched = rule.subjects[subject]
        if matched in proposal.goal.subjects or is_broad(matched):
            who = () if is_broad(matched) else (matched,)
            narrow = PolicyRulesWithSubjects(
                who or (_EVERYBODY,),
                () if resource is None else (rule.resource_rules[resource],),
                () if path is None else (rule.non_resource_rules[path],),
            )
        else:
            who, narrow = (matched,), match_all_requests((matched,))
        rules.append(narrow)
        sets.append(_write_set(narrow, who))
    return None


def _write_set(rule: PolicyRulesWithSubjects, who: tuple[Subject, ...]) -> dict[str, Any]:
    written: dict[str, Any] = {"subject": [*map(_write_subject, who)]} if who else {}
    if rule == match_all_requests(who):
        return written
    entries: tuple[ResourcePolicyRule | NonResourcePolicyRule, ...] = (*rule.resource_rules, *rule.non_resource_rules)
    for entry in entries:
        if entry.verbs != ("*",):
            written["verbs"] = [*entry.verbs]
        if isinstance(entry, NonResourcePolicyRule):
            written["nonResourceURLs"] = [*entry.non_resource_urls]
            continue
        written |= {"apiGroups": [*entry.api_groups], "resources": [*entry.resources]}
        if entry.namespaces:
            written["namespaces"] = [*entry.namespaces]
        written["clusterScope"] = entry.cluster_scope
    return written


def _write_subject(subject: Subject) -> dict[str, str]:
    if (account := subject.service_account) is not None:
        return {"serviceAccount": f"{account.namespace}/{account.name}"}
    return {"user": subject.user or ""} if subject.kind == "User" else {"group": subject.group or ""}
