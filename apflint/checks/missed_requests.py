"""APF505, APF508, APF513: requests that a FlowSchema seems to be intended for, but does not match (missed requests).

Each finding contains an example that proves it: a missed request that goes to another priority level. A missed request
counts only if no FlowSchema before the reported FlowSchema captures it. For other requests, the suggested change would
have no effect.
"""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

from apflint.budgets import MAX_MISSED_RULES, MAX_MISSED_SUBJECTS, MAX_MISSED_TRIALS, MAX_MISSED_VALUES
from apflint.checks.policy_rules import COLLECTION_VERBS, are_cluster_scoped, is_namespaces, known_resources
from apflint.checks.system_traffic import documents_to_widen
from apflint.evaluate import resources
from apflint.evaluate.match import (
    ALL,
    UserInfo,
    contains_string,
    match_policy_rule_api_group,
    match_policy_rule_verb,
    matches_a_subject,
)
from apflint.finding import Elsewhere, Problem
from apflint.fixes.field_fixes import set_fields
from apflint.location import Place
from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.named_tuple import NamedTuple
from apflint.wording import join_words, quote
from apflint.workspace import resource_rules_of, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.edit_operations import Value
    from apflint.effective_configuration import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject
    from apflint.proofs.candidates import Unmentioned
    from apflint.proofs.request_space import Point

    _Find = Callable[[FlowSchema, Unmentioned], Iterator["_Candidate"]]

_ALL = (ALL,)
_WELL_KNOWN = (("", "pods"), ("apps", "deployments"), ("", "configmaps"))
"""API groups and resources of example requests, for a rule whose resources are `*`. If the API groups of the rule are
also `*`, a resource that no FlowSchema names is tried last."""
_COLLECTION = ("list", "watch", "deletecollection")
"""`COLLECTION_VERBS`, in order of preference for examples."""
_PATHS = ("/apis", "/openapi/v3", "/version", "/metrics")


class _Candidate(NamedTuple):
    """A rule that seems to be intended for more requests than it matches. An example request has to confirm this."""

    place: Place
    """The place to report."""
    rule: PolicyRulesWithSubjects
    missed: str
    """Description of the missed requests, used in the message."""
    probes: Iterable[PolicyRulesWithSubjects]
    """Rules that match some of the missed requests. Each list in these rules has one value."""


class _Example(NamedTuple):
    """A missed request, and a note about its priority level, which is not the level of the reported FlowSchema."""

    command: str
    note: str


def cluster_scope_missed(effective: Effective) -> Iterator[Problem]:
    """APF505: report resource rules that miss requests because they lack `clusterScope: true`."""
    notes = ('namespaces: ["*"] matches requests in any namespace, but does not match requests without a namespace.',)
    for problem in _report_scopes(effective, _misses_cluster_scope, notes, "clusterScope", True, "clusterScope: true"):
        if problem.place.document not in documents_to_widen(effective):
            yield problem


def namespaced_requests_missed(effective: Effective) -> Iterator[Problem]:
    """APF513: report resource rules that miss requests because they lack `namespaces`."""
    yield from _report_scopes(effective, _misses_namespaces, (), "namespaces", _ALL, 'namespaces: ["*"]')


def non_resource_requests_missed(effective: Effective) -> Iterator[Problem]:
    """APF508: report rules that match all resource requests, but no non-resource requests."""
    for schema in effective.own_flow_schemas:
        level = effective.assumed.levels.get(schema.spec.priority_level_configuration)
        if level is None or level.spec.type == "Exempt":
            continue  # the author probably wants to exempt only resource requests
        if missed := _confirm(effective, schema, _misses_paths):
            (first, example), *others = missed
            yield Problem(
                first.place,
                f"rule matches all resource requests, but no {first.missed}",
                related=tuple(Elsewhere(other.place, "rule without nonResourceRules") for other, _ in others),
                notes=(example.note,),
                help='to match non-resource requests, add nonResourceRules with verbs: ["*"] and nonResourceURLs: ["*"]',
                example=example.command,
            )


def _report_scopes(
    effective: Effective, find: _Find, notes: tuple[str, ...], field: str, value: Value, written: str
) -> Iterator[Problem]:
    """Yield one problem for each FlowSchema that misses requests because its resource rules lack `field`.

    `find` returns the rules of a FlowSchema that may lack the field. `value` is the value to add to the rules, and
    `written` is the YAML text of the field with this value.
    """
    for schema in effective.own_flow_schemas:
        if missed := _confirm(effective, schema, find):
            (first, example), *others = missed
            rules = [Place(schema.document, candidate.place.path[:-1]) for candidate, _ in missed]
            yield Problem(
                first.place,
                f"{f'{len(missed)} rules do' if others else 'rule does'} not match {first.missed}",
                related=tuple(Elsewhere(other.place, "the same mistake") for other, _ in others),
                fix=set_fields(rules, field, value, f"add {written}"),
                notes=(*notes, example.note),
                help=f"add {written}",
                example=example.command,
            )


def _confirm(effective: Effective, schema: FlowSchema, find: _Find) -> list[tuple[_Candidate, _Example]]:
    """Return (candidate, example) for each candidate rule that is proven to miss requests.

    The example is the proof: a request that the rule does not match and that goes to another priority
    level. Candidates without such an example are left out. `find` yields the candidates.
    """
    return [
        (candidate, example)
        for candidate in islice(find(schema, effective.proofs.unmentioned), MAX_MISSED_RULES)
        if (example := _find_example(effective, schema, candidate)) is not None
    ]


def _misses_cluster_scope(schema: FlowSchema, unmentioned: Unmentioned) -> Iterator[_Candidate]:
    """Yield resource rules with `namespaces: ["*"]` that seem to be intended also for requests without a namespace."""
    for place, rule, part in resource_rules_of(schema):
        known = known_resources(part)
        if part.cluster_scope or part.namespaces != _ALL or (known and are_cluster_scoped(known)):
            continue  # APF506 reports rules that lack clusterScope and have only cluster-scoped resources
        # A request for a subresource is always about a single object, so collection verbs do not apply.
        verbs = tuple(verb for verb in _COLLECTION if verb in part.verbs or part.verbs == _ALL)
        names = tuple(name for name in part.resources if "/" not in name)
        missed = f"{join_words(verbs, 'and')} requests across all namespaces"
        if not verbs or not names:
            # A request for an existing Namespace object, such as get or delete, has a namespace: the name of
            # the object. Only a create request has no namespace. So a rule can miss requests for `namespaces`
            # only if the rule has the verb create.
            names = tuple(
                name
                for name in part.resources
                for resource in known_resources(part._replace(resources=(name,))) or ()
                if not resource.namespaced
                and (not is_namespaces(resource) or (name == "namespaces" and "create" in part.verbs))
            )
            missed = f"requests for the cluster-scoped {join_words(map(quote, dict.fromkeys(names)), 'and')}"
            verbs = ("create",) if set(names) == {"namespaces"} else part.verbs
        if names:
            pairs = _list_resources(part._replace(resources=names), unmentioned)
            yield _Candidate(place / "namespaces", rule, missed, _probes(rule, verbs, pairs, cluster_scope=True))


def _misses_namespaces(schema: FlowSchema, unmentioned: Unmentioned) -> Iterator[_Candidate]:
    """Yield resource rules that have `clusterScope: true` and no `namespaces`, but seem to need both.

    The verbs and resources of these rules show that the rules are probably also intended for requests
    in a namespace.
    """
    for place, rule, part in resource_rules_of(schema):
        # A rule without `namespaces` matches list and watch requests across all namespaces. These requests
        # may be the only purpose of the rule. So `namespaces` seems to be missing only if the rule has
        # verbs other than `COLLECTION_VERBS`.
        verbs = {"get", "update"} if part.verbs == _ALL else {*part.verbs} - COLLECTION_VERBS
        if not part.cluster_scope or part.namespaces or not verbs:
            continue
        if part.resources != _ALL:
            known = known_resources(part)
            if not known or not all(resource.namespaced for resource in known):
                continue
            if part.verbs != _ALL and COLLECTION_VERBS.isdisjoint(part.verbs):
                continue  # APF506 reports this rule, because it matches no request at all
        pairs = _list_resources(part, unmentioned, namespaced=True)
        probes = _probes(rule, sorted(verbs), pairs, cluster_scope=False)
        yield _Candidate((place / "clusterScope").at_key(), rule, "requests in a namespace", probes)


def _misses_paths(schema: FlowSchema, unmentioned: Unmentioned) -> Iterator[_Candidate]:
    """Yield the rules that match all resource requests and have no nonResourceRules."""
    for place, rule in islice(rules_of(schema), MAX_MISSED_RULES):
        if not rule.non_resource_rules and any(
            part.verbs == part.api_groups == part.resources == part.namespaces == _ALL for part in rule.resource_rules
        ):
            probes = (
                rule._replace(resource_rules=(), non_resource_rules=(NonResourcePolicyRule(("get",), (path,)),))
                for path in (*_PATHS, unmentioned.path)
            )
            missed = "non-resource requests such as /apis and /metrics"
            yield _Candidate((place / "resourceRules").at_key(), rule, missed, probes)


def _probes(
    rule: PolicyRulesWithSubjects, verbs: Sequence[str], pairs: Sequence[tuple[str, str]], *, cluster_scope: bool
) -> Iterator[PolicyRulesWithSubjects]:
    for verb, (group, name) in product(verbs[:MAX_MISSED_VALUES], pairs):
        part = ResourcePolicyRule((verb,), (group,), (name,), cluster_scope, () if cluster_scope else _ALL)
        yield rule._replace(resource_rules=(part,), non_resource_rules=())


def _list_resources(
    part: ResourcePolicyRule, unmentioned: Unmentioned, *, namespaced: bool = False
) -> list[tuple[str, str]]:
    """Return some (API group, resource) pairs that a resource rule matches. Pairs that Kubernetes serves come first.

    If the API groups or the resources of the rule are `*`, a pair can contain a name from
    `unmentioned`. No FlowSchema contains these names. If `namespaced` is true and only the resources
    of the rule are `*`, the result omits API groups that may have cluster-scoped resources, except
    the core group.
    """
    groups, names = part.api_groups[:MAX_MISSED_VALUES], [*dict.fromkeys(part.resources)][:MAX_MISSED_VALUES]
    if part.resources == _ALL:
        if part.api_groups == _ALL:
            return [*_WELL_KNOWN, (unmentioned.api_group, unmentioned.resource)]
        pairs: list[tuple[str, str]] = []
        for group in groups:
            of_group = [resource for resource in resources.RESOURCES if resource.group == group]
            if group == "":
                pairs += [pair for pair in _WELL_KNOWN if pair[0] == ""]
            elif not namespaced or (of_group and all(resource.namespaced for resource in of_group)):
                pairs.append((group, of_group[0].name if of_group else unmentioned.resource))
        return pairs
    served = {name: [resource.group for resource in resources.find_resources(name.partition("/")[0])] for name in names}
    if part.api_groups == _ALL:
        return [(next(iter(served[name]), unmentioned.api_group), name) for name in names]
    return [
        *dict.fromkeys((group, name) for name in names for group in served[name] if group in part.api_groups),
        *((group, name) for group in groups for name in names if not served[name]),
    ]


def _find_example(effective: Effective, schema: FlowSchema, candidate: _Candidate) -> _Example | None:
    """Return a request that the rule of `candidate` misses, or None if no example was found.

    The request goes to a FlowSchema after `schema` and to another priority level than the level of
    `schema`. The user of the request is a subject of the rule.
    """
    from apflint.proofs.request_space import with_usual_groups
    from apflint.proofs.witness import make_witness

    proofs, level = effective.proofs, schema.spec.priority_level_configuration
    position = proofs.find_position(schema)
    if position is None:
        return None
    subjects = _requesters(candidate.rule.subjects)
    probes = (probe._replace(subjects=subjects) for probe in candidate.probes)
    points = (with_usual_groups(point) for probe in probes for point in proofs.candidates([probe], ends=(0,)))
    for point in islice(points, MAX_MISSED_TRIALS):
        destination = proofs.resolve(point)
        other_level, other = destination.priority_level.name, destination.flow_schema
        if (
            destination.position > position
            and other_level != level
            and not _is_left_to_another(effective, destination, candidate.rule, point)
            and not _is_limited_to_namespaces(schema, point)
        ):
            origin = "built-in FlowSchema" if effective.is_built_in(other) else "FlowSchema"
            return _Example(
                make_witness(point).command,
                f"For example, the request below goes to the priority level {quote(other_level)} through the {origin}"
                f" {quote(other.name)}.",
            )
    return None


def _requesters(subjects: tuple[Subject, ...]) -> tuple[Subject, ...]:
    """Return the subjects of a rule from which the example requests get their users.

    The result contains at most the first `MAX_MISSED_SUBJECTS` items of `subjects`. If one of them
    matches all users, the result also contains the group of all service accounts.
    """
    some = subjects[:MAX_MISSED_SUBJECTS]
    if any(ALL in (subject.user, subject.group) or subject.group == "system:authenticated" for subject in some):
        accounts = some[0]._replace(kind="Group", user=None, group="system:serviceaccounts", service_account=None)
        return (*some, accounts)
    return some


def _is_limited_to_namespaces(schema: FlowSchema, point: Point) -> bool:
    """Return whether the FlowSchema matches a request that differs from `point` only in the namespace.

    In this case, the FlowSchema is assumed to leave out the namespace of `point` intentionally. `point`
    is a request that the FlowSchema does not match. If `point` has no namespace, return False.
    """
    requester = UserInfo(point.user, point.groups)
    return point.namespace != "" and any(
        part.namespaces
        and matches_a_subject(requester, rule.subjects)
        and match_policy_rule_verb(part.verbs, point.verb)
        and match_policy_rule_api_group(part.api_groups, point.api_group)
        and contains_string(point.resource, part.resources, ALL)
        for _, rule, part in resource_rules_of(schema)
    )


def _is_left_to_another(
    effective: Effective, destination: Resolution, rule: PolicyRulesWithSubjects, point: Point
) -> bool:
    """Return whether a different FlowSchema of the manifests intentionally captures the request `point`.

    `rule` is the rule that misses the request. `destination` names the FlowSchema that captures the
    request, and the subject and the resource rule that match the request. The capture counts as
    intentional under two conditions:

    - The FlowSchema is not built in, and the matching subject is also a subject of `rule`.
    - If a resource rule matches, it matches only requests with a namespace, or only requests without a
      namespace.
    """
    matched_by, schema = destination.matched_by, destination.flow_schema
    if matched_by is None or effective.is_built_in(schema):
        return False
    other = schema.spec.rules[matched_by.rule]
    if other.subjects[matched_by.subject] not in rule.subjects:
        return False
    if matched_by.resource_rule is None:
        return True
    part = other.resource_rules[matched_by.resource_rule]
    return not part.cluster_scope if point.namespace else not part.namespaces
