"""Texts of a proposal from a log: the policy test, and manifests whose comments explain each number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.evaluate.flows import BY_USER
from apflint.model import shares_field
from apflint.policy.parser import parse_suite
from apflint.policy.running import Runner
from apflint.propose.changes import FlowSchemaFieldChange, NewFlowSchema, NewLevel, build_manifest, find_last_built_in
from apflint.propose.goals import write_subject
from apflint.propose.manifests import render_yaml, write_policy_test
from apflint.replay.events import OTHER_NAMESPACE
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.location import Path
    from apflint.model import FlowSchema, PriorityLevelConfiguration
    from apflint.propose.candidates import Candidate
    from apflint.propose.changes import Change
    from apflint.propose.log_causes import LogCause
    from apflint.propose.search import Need
    from apflint.replay.events import AttributeTuple

_QUEUING_FIELDS = frozenset(("queues", "handSize", "queueLengthLimit"))
_LIMITED: Path = ("spec", "limited")
_MAX_EXAMPLES = 6
_KEPT_METADATA = ("name", "labels", "annotations")
_SERVER_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def name_files(candidate: Candidate) -> str:
    """Return the name for the files of a proposal: the name of its first object."""
    for change in candidate.changes:
        if isinstance(change, NewFlowSchema):
            return change.name
    return _name_object(candidate.changes[0])


def _name_object(change: Change) -> str:
    match change:
        case LevelFieldChange():
            return change.level
        case FlowSchemaFieldChange():
            return change.flow_schema
    return change.name


def write_changed_manifests(
    candidate: Candidate, before: Effective, after: Effective, needs: Sequence[Need], command: str, evidence: str
) -> str:
    """Return all new and changed objects as YAML, levels first. Comments give the reasons for the values.

    `evidence` is a sentence for the first comment. The sentence names the source of the numbers in the
    comments, for example an audit log.
    """
    head = (
        f"Proposed by `{command}` for Kubernetes {before.release.name} and {before.limits.server_concurrency} seats in each API"
        f" server. {evidence}"
    )
    documents = []
    for name in dict.fromkeys(map(_name_object, sorted(candidate.changes, key=_rank))):
        own = [change for change in candidate.changes if _name_object(change) == name]
        for value, comments in _write_objects(own, before, after, needs, candidate):
            documents.append((value, comments))
    texts = []
    for number, (value, comments) in enumerate(documents):
        texts.append(render_yaml(value, {(): head, **comments} if number == 0 else comments))
    return "---\n".join(texts)


def _rank(change: Change) -> int:
    return 0 if isinstance(change, NewLevel | LevelFieldChange) else 1


def _write_objects(
    changes: Sequence[Change], before: Effective, after: Effective, needs: Sequence[Need], candidate: Candidate
) -> Iterator[tuple[dict[str, Any], dict[Path, str]]]:
    reasons: dict[str, str] = {}
    # The search first tries the proposal without the change of a field, and then with smaller changes. Each failed trial
    # is a need. The comment in the manifest explains only the last need of a field, which is about the smallest change.
    for need in needs:
        reasons[need.field] = f"{need.change[:1].upper()}{need.change[1:]}, {need.misses[0]}."
    for change in changes:
        if isinstance(change, NewLevel):
            yield build_manifest(change, after.release), _comment_new_level(change, after, reasons)
        elif isinstance(change, NewFlowSchema):
            yield build_manifest(change, after.release), _comment_new_schema(change, before, reasons, candidate)
    fields = [change for change in changes if isinstance(change, LevelFieldChange | FlowSchemaFieldChange)]
    if fields:
        new, old = _find_stored(fields[0], after), _find_stored(fields[0], before)
        comments: dict[Path, str] = {}
        for field in fields:
            path = _find_path(field, new.document.version)
            was = _get(old.document.value, path)
            comments[path] = f"Was {'absent' if was is None else was}. {reasons.get(field.field, '')}".strip()
        yield _strip(new.document.value), comments


def _find_stored(
    change: LevelFieldChange | FlowSchemaFieldChange, effective: Effective
) -> FlowSchema | PriorityLevelConfiguration:
    if isinstance(change, LevelFieldChange):
        return effective.configuration.levels[change.level]
    return next(schema for schema in effective.configuration.order if schema.name == change.flow_schema)


def _find_path(change: LevelFieldChange | FlowSchemaFieldChange, version: str) -> Path:
    if isinstance(change, FlowSchemaFieldChange):
        return ("spec", change.field)
    if change.field in _QUEUING_FIELDS:
        return (*_LIMITED, "limitResponse", "queuing", change.field)
    return (*_LIMITED, shares_field(version) if change.field == "nominalConcurrencyShares" else change.field)


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _strip(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that the server adds, and without fields that are null."""
    metadata = {key: item for key, item in value.get("metadata", {}).items() if key in _KEPT_METADATA}
    if annotations := {
        key: text for key, text in (metadata.pop("annotations", None) or {}).items() if key != _SERVER_ANNOTATION
    }:
        metadata["annotations"] = annotations
    kept = {
        "apiVersion": value.get("apiVersion"),
        "kind": value.get("kind"),
        "metadata": metadata,
        "spec": value.get("spec"),
    }
    stripped: dict[str, Any] = _drop_nulls(kept)
    return stripped


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    return [*map(_drop_nulls, value)] if isinstance(value, list) else value


def _comment_new_level(level: NewLevel, after: Effective, reasons: dict[str, str]) -> dict[Path, str]:
    limits = after.limits.level(level.name)
    assert limits is not None, "the configuration has the level"
    total, share_sum = after.limits.server_concurrency, sum(other.shares for other in after.limits.levels)
    comments: dict[Path, str] = {
        (*_LIMITED, shares_field(after.release.newest_version)): (
            f"{total} seats x {level.shares} / {share_sum} shares, rounded up, are {limits.nominal} seats in each API server."
            f" {reasons.get('shares', '')}"
        ).strip(),
        (*_LIMITED, "lendablePercent"): "The level lends no seats, which is the default.",
    }
    if level.borrowing_limit_percent is not None:
        comments[(*_LIMITED, "borrowingLimitPercent")] = reasons.get("borrowingLimitPercent", "")
    if level.queuing is not None:
        flows = "One flow needs one queue." if level.queuing.queues == 1 else "As in the built-in level node-high."
        comments[(*_LIMITED, "limitResponse", "queuing", "queues")] = flows
    return {path: text for path, text in comments.items() if text}


def _comment_new_schema(
    schema: NewFlowSchema, before: Effective, reasons: dict[str, str], candidate: Candidate
) -> dict[Path, str]:
    comments: dict[Path, str] = {}
    isolation = candidate.isolation
    if isolation is not None:
        names = join_words(
            (
                f"{captor.flow_schema.name} ({captor.flow_schema.spec.matching_precedence})"
                for captor in isolation.captors
            ),
            "and",
        )
        text = f"Before {names}, which captures the requests now"
        order = before.configuration.order
        if (last := find_last_built_in(before.configuration, before.release)) >= 0:
            text += f", and after {order[last].name} ({order[last].spec.matching_precedence}), the last built-in FlowSchema for system components"
        comments["spec", "matchingPrecedence"] = f"{text}."
        subjects = join_words(map(write_subject, isolation.goal.subjects), "and")
        comments["spec", "rules"] = f"All requests of {subjects}."
    if schema.distinguisher_method is not None:
        comments["spec", "distinguisherMethod"] = reasons.get("distinguisherMethod") or "Each user is a flow."
    return comments


def write_log_policy_test(
    candidate: Candidate,
    after: Effective,
    cause: LogCause,
    tuples: Sequence[AttributeTuple],
    manifests: tuple[str, ...],
    cluster: str,
) -> str:
    """Return a policy test that states which FlowSchema and level requests must have after the changes.

    If the candidate has a new level for clients, the test is about all requests of these clients. Otherwise, the test
    has example requests from the log. Return "" if the log has no examples.
    """
    isolation = candidate.isolation
    if isolation is not None and isolation.new_level is not None:
        return write_policy_test(isolation, after, manifests, cluster)
    suite: dict[str, Any] = {"clusters": [cluster]} if cluster else {"manifests": [*manifests]}
    suite |= {"kubernetes": after.release.name, "serverConcurrency": after.limits.server_concurrency}
    tests = [test for test in _list_examples(candidate, after, cause, tuples) if _passes(suite, test, after)]
    if not tests:
        return ""
    note = (
        "Tests that pass as long as the proposal is applied. Their requests are from the log. Run `apflint test FILE`."
    )
    return render_yaml({**suite, "tests": tests[:_MAX_EXAMPLES]}, {(): note})


def _passes(suite: dict[str, Any], test: dict[str, Any], after: Effective) -> bool:
    parsed = parse_suite("suite.yaml", render_yaml({**suite, "tests": [test]}, {}).encode()).suite
    return parsed is not None and all(
        result.passed for result in Runner(parsed, after.configuration, after.limits).run()
    )


def _list_examples(
    candidate: Candidate, after: Effective, cause: LogCause, tuples: Sequence[AttributeTuple]
) -> Iterator[dict[str, Any]]:
    """Yield test cases about changed FlowSchemas and levels: a request of each user and its expected placement."""
    from apflint.replay.classification import TupleClassifier

    classifier = TupleClassifier(after)
    seen: set[tuple[str, str]] = set()
    targets = _find_targets(candidate, cause)
    for attributes in sorted(set(tuples), key=repr):
        if attributes.user is None or attributes.path or not attributes.resource:
            continue
        assignment = classifier.assign(attributes)
        schema, level = assignment.flow_schema or "", assignment.priority_level or ""
        is_moved = bool(candidate.schema) and schema != candidate.schema and cause.level != level
        if not (schema in targets or level in targets or (is_moved and attributes.resource == "leases")):
            continue
        if (attributes.user, schema) in seen:
            continue
        seen.add((attributes.user, schema))
        reaches: dict[str, object] = {"flowSchema": schema, "priorityLevel": level}
        limits = after.limits.level(level)
        if any(isinstance(change, LevelFieldChange) for change in candidate.changes) and limits is not None:
            reaches["nominalSeats"] = limits.nominal
        if assignment.distinguished_by == BY_USER:
            reaches["distinguisher"] = attributes.user
        yield _write_example(attributes, reaches)


def _find_targets(candidate: Candidate, cause: LogCause) -> set[str]:
    """Return the names of the FlowSchemas and levels whose requests become test cases.

    If the candidate changes a precedence, return an empty set. Then the caller writes test cases for
    the requests for leases that move to another FlowSchema and level.
    """
    if candidate.schema:
        return set()
    names = {_name_object(change) for change in candidate.changes}
    return names or {cause.level}


def _write_example(attributes: AttributeTuple, reaches: dict[str, object]) -> dict[str, Any]:
    resource = attributes.resource + (f".{attributes.api_group}" if attributes.api_group else "")
    words = [attributes.verb, resource + (f"/{attributes.subresource}" if attributes.subresource else "")]
    if attributes.verb not in ("list", "watch", "create", "deletecollection"):
        words.append("a")
    if attributes.namespace:
        words += ["-n", "default" if attributes.namespace == OTHER_NAMESPACE else attributes.namespace]
    own = [group for group in attributes.groups or () if not group.startswith("system:")]
    example: dict[str, Any] = {"request": " ".join(words), "as": attributes.user}
    return {**example, **({"groups": own} if own else {}), "reaches": reaches}
