"""APF514, APF516: non-resource rules whose requests a built-in FlowSchema captures, and redundant FlowSchemas."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import (
    MAX_REDUNDANCY_PARTS,
    MAX_REDUNDANCY_PROOF_PARTS,
    MAX_REDUNDANCY_PROOFS,
    MAX_REDUNDANCY_TRIALS,
)
from apflint.checks.descriptions import describe_flow_schema
from apflint.checks.distinguisher import queuing_of
from apflint.effective_configuration import once
from apflint.evaluate.authentication import AUTHENTICATED, UNAUTHENTICATED
from apflint.evaluate.configuration import CATCH_ALL, matching_order
from apflint.evaluate.match import ALL
from apflint.evaluate.rule_index import includes_urls
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.wording import join_some, join_words, quote
from apflint.workspace import rules_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects

    Treatment = tuple[str, str | None]
    """Priority level and distinguisherMethod. The method is None if the level does not separate flows."""

_NAME = ("metadata", "name")
_MAX_NAMED_SCHEMAS = 3
_EVERY_REQUEST = {AUTHENTICATED, UNAUTHENTICATED}
"""Groups of users. Every request has one of these two groups."""
_ANY_RESOURCE = ResourcePolicyRule((ALL,), (ALL,), (ALL,), cluster_scope=True, namespaces=(ALL,))
_ANY_PATH = NonResourcePolicyRule((ALL,), (ALL,))


def captured_method(effective: Effective) -> Iterator[Problem]:
    """APF514: report non-resource rules that have no effect for some of their HTTP methods.

    An earlier built-in FlowSchema captures all requests of the rule with these methods.
    """
    effective_documents = {schema.document for schema in effective.assumed.order}
    for schema in effective.own_flow_schemas:
        for place, rule in rules_of(schema) if schema.document in effective_documents else ():
            for index, part in enumerate(rule.non_resource_rules):
                captor, methods = _find_method_captor(effective, schema, part)
                path = place.path
                if captor is not None and not _is_unreachable(effective, schema, (*path, "nonResourceRules", index)):
                    names = join_words(map(str.upper, methods), "and")
                    yield Problem(
                        place / "nonResourceRules" / index / "verbs",
                        f"all {names} requests of this rule are captured by {describe_flow_schema(effective, captor)}",
                        notes=(
                            f"The captured requests go to the priority level {quote(captor.spec.priority_level_configuration)}.",
                            "The rule can match only requests with HTTP methods other than the captured ones.",
                        ),
                        help=f"if the rule is intended only for {names} requests, remove the rule, because it has no effect on these requests",
                    )


def _find_method_captor(
    effective: Effective, schema: FlowSchema, part: NonResourcePolicyRule
) -> tuple[FlowSchema | None, tuple[str, ...]]:
    """Find an earlier built-in FlowSchema that captures all requests of `part` for some HTTP methods.

    Return this FlowSchema and the methods, or None and () if there is no such FlowSchema.
    """
    if part.verbs != (ALL,) and len(set(part.verbs)) == 1:
        return None, ()  # if a FlowSchema captures the only method of the rule, APF501 or APF502 reports the rule
    urls = _list_classified(part.non_resource_urls)
    for captor, verbs in _method_captors(effective) if urls else ():
        methods = tuple(verb for verb in verbs if part.verbs == (ALL,) or verb in part.verbs)
        if not methods or set(part.verbs) <= set(methods) or matching_order(captor) > matching_order(schema):
            continue
        for other in captor.spec.rules:
            groups = {subject.group for subject in other.subjects}
            if groups >= _EVERY_REQUEST and any(
                (paths.verbs == (ALL,) or {*methods} <= {*paths.verbs}) and includes_urls(paths.non_resource_urls, urls)
                for paths in other.non_resource_rules
            ):
                return captor, methods
    return None, ()


def _is_unreachable(effective: Effective, schema: FlowSchema, path: Path) -> bool:
    """Return whether APF501 or APF502 reports the part of a FlowSchema at `path`, or a part that contains this part."""
    return any(
        part.schema.document == schema.document and (part.rule is None or path[: len(part.path)] == part.path)
        for part in effective.dead_parts.parts
    )


def _list_classified(urls: tuple[str, ...]) -> tuple[str, ...]:
    """Return the URLs of a non-resource rule for whose requests the rule can have an effect.

    URLs of resource requests and of long-running requests are omitted, because the API server does not match these
    requests against non-resource rules.
    """
    from apflint.proofs.request_space import is_long_running_path, is_resource_path

    return tuple(url for url in urls if not is_long_running_path(url) and not is_resource_path(url.removesuffix(ALL)))


@once
def _method_captors(effective: Effective) -> tuple[tuple[FlowSchema, tuple[str, ...]], ...]:
    """Return (FlowSchema, HTTP methods) for each non-resource rule of the built-in FlowSchemas, in matching order.

    Rules with the method `*` are omitted.
    """
    return tuple(
        (schema, part.verbs)
        for schema in effective.assumed.order
        if effective.is_built_in(schema)
        for rule in schema.spec.rules
        for part in rule.non_resource_rules
        if part.verbs != (ALL,)
    )


def redundant_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF516: report FlowSchemas without any effect. All FlowSchemas with a finding can be removed together."""
    removed: set[Document] = set()
    not_analyzed: list[FlowSchema] = []
    proofs = proof_parts = 0
    for schema in filter(partial(_has_peers, effective), effective.own_flow_schemas):
        is_small = _count_parts(schema) <= MAX_REDUNDANCY_PARTS
        if is_small and _shows_effect(effective, schema):
            continue
        if not is_small or proofs == MAX_REDUNDANCY_PROOFS:
            not_analyzed.append(schema)
            continue
        proofs += 1
        before, after = _configurations(effective, schema, removed)
        size = sum(map(_count_parts, before.order))
        if proof_parts + size > MAX_REDUNDANCY_PROOF_PARTS:
            not_analyzed.append(schema)
            continue
        proof_parts += size
        if successors := _find_successors(effective, schema, before, after):
            removed.add(schema.document)
            yield _redundant(effective, schema, successors)
    if not_analyzed:
        count = len(not_analyzed)
        yield Problem(
            Place(not_analyzed[0].document, _NAME),
            f"{'FlowSchema is' if count == 1 else f'{count:,} FlowSchemas are'} not analyzed for redundancy",
            severity="info",
            notes=(
                f"apflint proves redundancy for at most {MAX_REDUNDANCY_PROOFS} FlowSchemas.",
                f"apflint does not analyze FlowSchemas with more than {MAX_REDUNDANCY_PARTS:,} subjects, resource rules and non-resource rules in total.",
            ),
        )


def _redundant(effective: Effective, schema: FlowSchema, successors: Sequence[FlowSchema]) -> Problem:
    level, method = _treatment(effective, schema)
    names = join_some([describe_flow_schema(effective, successor) for successor in successors], _MAX_NAMED_SCHEMAS)
    own = [successor for successor in successors if not builtin.is_built_in(successor.document)]
    flows = f" and have distinguisherMethod {method}" if method else ""
    all_schemas, verb = ("Both FlowSchemas", "treats") if len(successors) == 1 else ("These FlowSchemas", "treat")
    return Problem(
        Place(schema.document, _NAME),
        f"redundant FlowSchema: {names} {verb} the same requests identically",
        related=tuple(Elsewhere(Place(other.document, _NAME), "would match its requests") for other in own),
        notes=(f"{all_schemas} reference the priority level {quote(level)}{flows}.",),
        help="remove the FlowSchema, or reference another priority level",
    )


def _has_peers(effective: Effective, schema: FlowSchema) -> bool:
    """Return whether APF516 has to compare `schema` with other FlowSchemas to find out whether it is redundant.

    The result is True if another FlowSchema has the same priority level and distinguisherMethod as
    `schema`. Otherwise, `schema` cannot be redundant. Return False without this comparison if APF516
    must not report `schema`, for example because `schema` is a built-in FlowSchema.
    """
    level, name = schema.spec.priority_level_configuration, schema.name
    if level not in effective.configuration.levels or name in builtin.list_names(effective.release, "FlowSchema"):
        return False
    if builtin.is_retired(effective.release, "FlowSchema", name):
        return False  # APF705 already suggests removing or renaming this FlowSchema
    # A flow belongs to one FlowSchema. If `schema` is removed, its requests move to another FlowSchema.
    # If the distinguisherMethod is not ByUser, the moved requests share a flow with requests that the
    # other FlowSchema already has. So the removal has an effect.
    if _separates_flows(effective, level) and schema.spec.distinguisher_method != "ByUser":
        return False
    return _count_treatments(effective)[_treatment(effective, schema)] > 1


@once
def _count_treatments(effective: Effective) -> Counter[Treatment]:
    return Counter(_treatment(effective, schema) for schema in effective.assumed.order)


def _treatment(effective: Effective, schema: FlowSchema) -> Treatment:
    """Return how a FlowSchema treats requests: (priority level, distinguisherMethod).

    The method is None if the level does not separate flows.
    """
    level = schema.spec.priority_level_configuration
    return level, schema.spec.distinguisher_method if _separates_flows(effective, level) else None


def _separates_flows(effective: Effective, name: str) -> bool:
    """Return whether a priority level has two or more queues, so that it can separate flows."""
    return name in _list_separating_levels(effective)


@once
def _list_separating_levels(effective: Effective) -> frozenset[str]:
    levels = effective.configuration.levels.items()
    return frozenset(name for name, level in levels if (queuing := queuing_of(level)) and queuing.queues > 1)


def _shows_effect(effective: Effective, schema: FlowSchema) -> bool:
    """Return True if an example request proves that the FlowSchema has an effect, without the slower solver.

    Also return True if the FlowSchema can have no effect because the server skips it, or because no
    request reaches it. APF516 does not report such a FlowSchema. Otherwise, return False.
    """
    proofs, treatment = effective.proofs, _treatment(effective, schema)
    has_flows = _separates_flows(effective, treatment[0])
    position = proofs.find_position(schema)
    if position is None:
        return True

    point = proofs.find_reached(schema)
    if point is not None:
        successor = proofs.next_match(point, position)
        if successor is None or _treatment(effective, successor) != treatment:
            return True

    def is_split(resolution: Resolution) -> bool:
        """Return whether a later FlowSchema with the treatment of `schema` captures the request of `resolution`.

        The treatment is the priority level and the distinguisherMethod. If the result is true, a user whose
        requests are captured by both FlowSchemas has two flows. Without `schema`, the user would have only
        one flow. So `schema` has an effect.
        """
        return resolution.position > position and _treatment(effective, resolution.flow_schema) == treatment

    is_reached = False
    for rule in schema.spec.rules:
        for end in (0, -1):
            for point in islice(proofs.candidates([rule], ends=(end,)), MAX_REDUNDANCY_TRIALS):
                if proofs.resolve(point).position == position:
                    is_reached = True
                    successor = proofs.next_match(point, position)
                    if successor is None or _treatment(effective, successor) != treatment:
                        return True
            others = islice(proofs.candidates([_match_everything(rule)], ends=(end,)), MAX_REDUNDANCY_TRIALS)
            if has_flows and any(is_split(proofs.resolve(point)) for point in others):
                return True
    # If no example request reaches the FlowSchema, another request may still reach it. The FlowSchemas in
    # `unreachable_documents` are proven to be unreachable.
    return not is_reached and schema.document in effective.unreachable_documents


def _match_everything(rule: PolicyRulesWithSubjects) -> PolicyRulesWithSubjects:
    """Return a rule that matches all requests of the subjects of `rule`."""
    return rule._replace(resource_rules=(_ANY_RESOURCE,), non_resource_rules=(_ANY_PATH,))


def _widen(schema: FlowSchema) -> FlowSchema:
    """Return a FlowSchema that matches all requests of the subjects of `schema`."""
    return schema._replace(spec=schema.spec._replace(rules=tuple(map(_match_everything, schema.spec.rules))))


def _count_parts(schema: FlowSchema) -> int:
    """Return the total number of subjects, resource rules and non-resource rules in a FlowSchema."""
    return sum(len(part) for rule in schema.spec.rules for part in rule)


def _configurations(
    effective: Effective, schema: FlowSchema, removed: Collection[Document]
) -> tuple[Configuration, Configuration]:
    """Return two configurations, with and without `schema`. Both omit the FlowSchemas of the documents in `removed`.

    To make proofs fast, both configurations also omit FlowSchemas that match no requests of the
    subjects (users, groups and service accounts) of `schema`.
    """
    from apflint.proofs.quick_disjointness import may_overlap

    wide = _widen(schema)

    def without(documents: Collection[Document]) -> Configuration:
        configuration = effective.without(documents).assumed
        order = (
            other
            for other in configuration.order
            if other.name == CATCH_ALL or may_overlap(other, wide, "authenticated")
        )
        return configuration._replace(order=tuple(order))

    return without(removed), without({*removed, schema.document})


def _find_successors(
    effective: Effective, schema: FlowSchema, before: Configuration, after: Configuration
) -> tuple[FlowSchema, ...]:
    """Return the FlowSchemas that get the requests of `schema` if its removal has no effect, else ().

    `before` and `after` are the configurations with and without `schema`. The removal has an effect if
    a request gets another priority level or distinguisherMethod, or if the flows of a user change. Also
    return () if one of the FlowSchemas is not built in and captures no request in `before`, because
    APF501 then suggests to remove that FlowSchema instead.
    """
    from apflint.proofs.one_configuration import Analysis
    from apflint.proofs.two_configurations import ConfigurationComparison

    treatment = _treatment(effective, schema)
    successors: list[FlowSchema] = []
    for move in ConfigurationComparison(before, after).find_moves(leaving=[schema]):
        if _treatment(effective, move.to_schema) != treatment:
            return ()
        successors.append(move.to_schema)
    # If a successor is unreachable because of `schema`, APF501 suggests to remove the successor. Then this rule must not
    # suggest to remove `schema`: if users remove both, the requests go to a third FlowSchema.
    analysis = Analysis(before)
    if any(analysis.find_request(other) is None for other in successors if not effective.is_built_in(other)):
        return ()
    if _separates_flows(effective, treatment[0]):
        # A flow belongs to a single FlowSchema. If the requests of a user move from `schema` to several FlowSchemas,
        # the one flow of this user becomes several flows. So the removal has an effect.
        if len(successors) != 1:
            return ()
        (successor,), wide = successors, _widen(schema)
        order = [each for other in before.order for each in ((wide, other) if other is successor else (other,))]
        extended = before._replace(order=tuple(order))
        if ConfigurationComparison(extended, before).find_passage([wide], [successor]) is not None:
            return ()
    return tuple(successors)
