"""APF514, APF516: FlowSchemas and entries that change less than they seem to, because requests go there anyway."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_REDUNDANCY_PARTS, MAX_REDUNDANCY_PROOF_PARTS, MAX_REDUNDANCY_PROOFS
from apflint.effective import once
from apflint.evaluate.authentication import AUTHENTICATED, UNAUTHENTICATED
from apflint.evaluate.configuration import CATCH_ALL, matching_order
from apflint.evaluate.match import ALL
from apflint.evaluate.url_set import includes_urls
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.wording import listed, quote, several

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.load.document import Document
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject

_MAX_REQUESTS = 64
"""Requests tried of each rule, before the solver is asked."""
_MAX_NAMED = 3
_EVERYBODY = {AUTHENTICATED, UNAUTHENTICATED}
_ANYTHING = (
    ResourcePolicyRule((ALL,), (ALL,), (ALL,), cluster_scope=True, namespaces=(ALL,)),
    NonResourcePolicyRule((ALL,), (ALL,)),
)


def captured_method(effective: Effective) -> Iterator[Problem]:
    """APF514."""
    for schema in effective.own_flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, part in enumerate(rule.non_resource_rules):
                found = _method_captor(effective, schema, rule, part)
                if found is None:
                    continue
                taker, methods = found
                names = listed(map(str.upper, methods), "and")
                yield Problem(
                    Place(schema.document, ("spec", "rules", i, "nonResourceRules", j, "verbs")),
                    f"{_named(taker)} (precedence {taker.spec.matching_precedence}) captures all {names} requests of this"
                    f" entry: they go to the priority level {quote(taker.spec.priority_level_configuration)}. Only requests"
                    f" with other methods can match the entry. Remove it if it is for {names} requests",
                )


def _method_captor(
    effective: Effective, schema: FlowSchema, rule: PolicyRulesWithSubjects, part: NonResourcePolicyRule
) -> tuple[FlowSchema, tuple[str, ...]] | None:
    """Return the earlier built-in FlowSchema that captures some methods of an entry completely, and these methods."""
    if part.verbs != (ALL,) and len(set(part.verbs)) == 1:
        return None  # APF501 and APF502 report it
    for taker, verbs in _captors(effective):
        methods = tuple(verb for verb in verbs if part.verbs == (ALL,) or verb in part.verbs)
        if not methods or set(part.verbs) <= set(methods) or matching_order(taker) > matching_order(schema):
            continue
        if any(
            _includes_all(other.subjects, rule.subjects)
            and any(
                (entry.verbs == (ALL,) or {*methods} <= {*entry.verbs})
                and includes_urls(entry.non_resource_urls, part.non_resource_urls)
                for entry in other.non_resource_rules
            )
            for other in taker.spec.rules
        ):
            return taker, methods
    return None


def _includes_all(subjects: Sequence[Subject], others: Sequence[Subject]) -> bool:
    """Whether the first subjects surely include the others. Every request has one of the two groups of `_EVERYBODY`."""
    return {subject.group for subject in subjects} >= _EVERYBODY or {*others} <= {*subjects}


@once
def _captors(effective: Effective) -> tuple[tuple[FlowSchema, tuple[str, ...]], ...]:
    """Return the effective built-in FlowSchemas with entries for some methods only, in order, and these methods."""
    return tuple(
        (schema, part.verbs)
        for schema in effective.assumed.order
        if builtin.is_built_in(schema.document)
        for rule in schema.spec.rules
        for part in rule.non_resource_rules
        if part.verbs != (ALL,)
    )


def redundant_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF516. All FlowSchemas with a finding can be removed at once: each is compared without those found before."""
    removed: set[Document] = set()
    skipped: list[FlowSchema] = []
    proofs = parts = 0
    for schema in effective.own_flow_schemas:
        if not _has_peers(effective, schema):
            continue
        if _parts(schema) > MAX_REDUNDANCY_PARTS:
            skipped.append(schema)
            continue
        if not _no_effect_seen(effective, schema):
            continue
        if proofs >= MAX_REDUNDANCY_PROOFS:
            skipped.append(schema)
            continue
        proofs += 1
        with_it, without_it = _compared(effective, schema, removed)
        size = sum(map(_parts, with_it.order))
        if parts + size > MAX_REDUNDANCY_PROOF_PARTS:
            skipped.append(schema)
            continue
        parts += size
        takers = _takers(effective, schema, with_it, without_it)
        if not takers:
            continue
        removed.add(schema.document)
        names = several([_named(taker) for taker in takers], _MAX_NAMED)
        same = f"the same priority level {quote(schema.spec.priority_level_configuration)}"
        if _flows_matter(effective, schema):
            same += f" and the same distinguisherMethod {schema.spec.distinguisher_method}"
        yield Problem(
            Place(schema.document, ("metadata", "name")),
            f"FlowSchema has no effect: without it, its requests go to {names}, with {same}. Remove it, or reference"
            " another priority level",
            related=tuple(
                Elsewhere(Place(taker.document, ("metadata", "name")), "would match its requests")
                for taker in takers
                if not builtin.is_built_in(taker.document)
            ),
        )
    if skipped:
        yield _not_analyzed(skipped)


def _not_analyzed(skipped: Sequence[FlowSchema]) -> Problem:
    what = "FlowSchema is" if len(skipped) == 1 else f"{len(skipped):,} FlowSchemas are"
    return Problem(
        Place(skipped[0].document, ("metadata", "name")),
        f"{what} not analyzed for redundancy: apflint proves it for at most {MAX_REDUNDANCY_PROOFS} FlowSchemas of up to"
        f" {MAX_REDUNDANCY_PARTS:,} subjects and entries",
        severity="info",
    )


def _has_peers(effective: Effective, schema: FlowSchema) -> bool:
    """Whether another FlowSchema treats requests alike, so that this one may be redundant."""
    level = effective.configuration.levels.get(schema.spec.priority_level_configuration)
    if level is None or schema.name in builtin.names(effective.release, "FlowSchema"):
        return False
    flows = _flows_matter(effective, schema)
    # In another FlowSchema the requests of a namespace would be a flow with those of others, and so would all requests.
    if flows and schema.spec.distinguisher_method != "ByUser":
        return False
    return _alike(effective)[_kind(schema, flows=flows)] > 1


def _no_effect_seen(effective: Effective, schema: FlowSchema) -> bool:
    """Whether no request that is tried shows an effect. Cheap: the solver is not loaded."""
    flows = _flows_matter(effective, schema)
    trials = effective.proofs.trials
    try:
        position = trials.position(schema)
    except ValueError:
        return False
    captured = 0
    for rule in schema.spec.rules:
        for corner in (0, 1):
            for point in islice(trials.requests(schema, rule, corner), _MAX_REQUESTS):
                if trials.resolve(point).position != position:
                    continue
                captured += 1
                taker = trials.next_match(point, position)
                if taker is None or not _is_alike(schema, taker, flows=flows):
                    return False
            others = islice(trials.requests(schema, _of_the_same_users(rule), corner), _MAX_REQUESTS)
            if flows and any(_is_split(schema, trials.resolve(point), position) for point in others):
                return False
    return captured > 0


def _is_split(schema: FlowSchema, found: Resolution, position: int) -> bool:
    """Whether a request of a user of the FlowSchema goes to another one that treats it alike: the user has two flows."""
    return found.position > position and _is_alike(schema, found.flow_schema, flows=True)


def _kind(schema: FlowSchema, *, flows: bool) -> tuple[str, str | None]:
    """Return what two FlowSchemas have in common that treat requests alike."""
    return schema.spec.priority_level_configuration, schema.spec.distinguisher_method if flows else None


def _is_alike(schema: FlowSchema, other: FlowSchema, *, flows: bool) -> bool:
    return _kind(schema, flows=flows) == _kind(other, flows=flows)


@once
def _alike(effective: Effective) -> Counter[tuple[str, str | None]]:
    """Count the FlowSchemas by their kind."""
    order = effective.assumed.order
    return Counter(kind for schema in order for kind in {_kind(schema, flows=True), _kind(schema, flows=False)})


def _of_the_same_users(rule: PolicyRulesWithSubjects) -> PolicyRulesWithSubjects:
    resources, paths = _ANYTHING
    return rule._replace(resource_rules=(resources,), non_resource_rules=(paths,))


def _flows_matter(effective: Effective, schema: FlowSchema) -> bool:
    """Whether flows are kept apart at the priority level: only between several queues."""
    level = effective.configuration.levels[schema.spec.priority_level_configuration]
    queuing = level.spec.limited.limit_response.queuing if level.spec.limited is not None else None
    return queuing is not None and queuing.queues > 1


def _parts(schema: FlowSchema) -> int:
    """Count the subjects and entries of a FlowSchema."""
    return sum(len(part) for rule in schema.spec.rules for part in rule)


def _everything(schema: FlowSchema) -> FlowSchema:
    """Return a FlowSchema for all requests of the same users."""
    return schema._replace(spec=schema.spec._replace(rules=tuple(map(_of_the_same_users, schema.spec.rules))))


def _compared(
    effective: Effective, schema: FlowSchema, removed: Collection[Document]
) -> tuple[Configuration, Configuration]:
    """Return the configurations with and without a FlowSchema.

    Both lack those in `removed`, and FlowSchemas that match no request of the same users: that makes proofs fast.
    """
    from apflint.proofs.overlap import may_overlap

    everything = _everything(schema)

    def relevant(configuration: Configuration) -> Configuration:
        order = (
            each
            for each in configuration.order
            if each.name == CATCH_ALL or may_overlap(each, everything, "authenticated")
        )
        return configuration._replace(order=tuple(order))

    return (
        relevant(effective.without(removed).assumed),
        relevant(effective.without({*removed, schema.document}).assumed),
    )


def _takers(
    effective: Effective, schema: FlowSchema, with_it: Configuration, without_it: Configuration
) -> tuple[FlowSchema, ...]:
    """Return who would get the requests of a FlowSchema; empty unless that makes no difference for any request."""
    from apflint.proofs.pair import Comparison
    from apflint.proofs.single import Analysis

    flows = _flows_matter(effective, schema)
    takers: list[FlowSchema] = []
    for move in Comparison(with_it, without_it).moved(leaving=[schema]):
        if not _is_alike(schema, move.to_schema, flows=flows):
            return ()
        takers.append(move.to_schema)
    # If one of them is unreachable now, it is the one to remove (APF501).
    analysis = Analysis(with_it)
    if any(analysis.reachable(taker) is None for taker in takers if not builtin.is_built_in(taker.document)):
        return ()
    # Users with requests here and there have two flows, of which one does not wait for the other.
    if flows and (len(takers) != 1 or _splits_users(with_it, _everything(schema), takers[0])):
        return ()
    return tuple(takers)


def _splits_users(configuration: Configuration, everything: FlowSchema, taker: FlowSchema) -> bool:
    """Whether some users also have requests at the FlowSchema that would get those of another one."""
    from apflint.proofs.pair import Comparison

    order = [each for other in configuration.order for each in ((everything, other) if other is taker else (other,))]
    extended = configuration._replace(order=tuple(order))
    return Comparison(extended, configuration).captures(everything, taker) is not None


def _named(schema: FlowSchema) -> str:
    origin = "the built-in FlowSchema" if builtin.is_built_in(schema.document) else "the FlowSchema"
    return f"{origin} {quote(schema.name)}"
