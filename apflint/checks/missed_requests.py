"""APF505, APF508, APF513: requests that a FlowSchema seems to be for and that another priority level gets.

Each finding is proven by a request that the classifier sends elsewhere. A request counts only if no earlier FlowSchema
captures it, so that the advice would change something.
"""

from __future__ import annotations

from itertools import chain, islice, product
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.matching import COLLECTION_VERBS, is_namespaces, known_resources
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
from apflint.fix import Fix
from apflint.fixes import suggestions
from apflint.location import Place
from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.record import NamedTuple
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.effective import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject
    from apflint.proofs.encoding import Point
    from apflint.proofs.trials import Trials

_ALL = (ALL,)
_MAX_REQUESTS = 32
"""Requests tried for each entry."""
_MAX_ENTRIES = 64
"""Entries of a FlowSchema that are examined."""
_MAX_SUBJECTS = 8
_MAX_VALUES = 16
"""Values of a list that requests are made of."""
_WELL_KNOWN = (("", "pods"), ("apps", "deployments"), ("", "configmaps"))
"""API groups and resources that stand for `*`, before one that no FlowSchema names."""
_COLLECTION = ("list", "watch", "deletecollection")
"""COLLECTION_VERBS, those first that make the better example."""
_PATHS = ("/apis", "/openapi/v3", "/version", "/metrics")


class _Entry(NamedTuple):
    """An entry of resourceRules, and what it seems to miss."""

    path: Path
    rule: PolicyRulesWithSubjects
    missed: str
    """In words."""
    requests: Callable[[Trials], Iterable[ResourcePolicyRule]]
    """Entries of single values that would match the missed requests."""


class _Missed(NamedTuple):
    path: Path
    what: str
    example: str


def cluster_scope_missed(effective: Effective) -> Iterator[Problem]:
    """APF505."""
    for schema in effective.own_flow_schemas:
        found = _missed(effective, schema, _cluster_wide(schema))
        if not found or schema.document in documents_to_widen(effective):
            continue
        yield _problem(
            schema,
            found,
            f"{_these_miss(found)} {found[0].what}: `namespaces: ['*']` matches requests in a single namespace only."
            f" {found[0].example}. Add `clusterScope: true`",
            member="namespaces",
            fix=("clusterScope", True, "set clusterScope: true"),
        )


def namespaced_requests_missed(effective: Effective) -> Iterator[Problem]:
    """APF513."""
    for schema in effective.own_flow_schemas:
        found = _missed(effective, schema, _namespaced(schema))
        if not found:
            continue
        yield _problem(
            schema,
            found,
            f"{_these_miss(found)} {found[0].what}: with `clusterScope: true` and no namespaces it matches only requests"
            f" across all namespaces and for cluster-scoped objects. {found[0].example}. Add `namespaces: ['*']`",
            member="clusterScope",
            fix=("namespaces", _ALL, 'set namespaces: ["*"]'),
        )


def non_resource_requests_missed(effective: Effective) -> Iterator[Problem]:
    """APF508."""
    for schema in effective.own_flow_schemas:
        level = effective.assumed.levels.get(schema.spec.priority_level_configuration)
        if level is None or level.spec.type == "Exempt":
            continue  # an exemption should not be widened without need
        found = [
            (number, example)
            for number, rule in enumerate(schema.spec.rules)
            if number < _MAX_ENTRIES
            and not rule.non_resource_rules
            and any(_matches_all_namespaces(part) for part in rule.resource_rules)
            and (example := _example(effective, schema, rule, _path_rules)) is not None
        ]
        if not found:
            continue
        first, *others = (
            Place(schema.document, ("spec", "rules", number, "resourceRules"), key=True) for number, _ in found
        )
        yield Problem(
            first,
            "rule matches all requests for resources, but none for other paths, such as /apis, /version and /metrics."
            f" {found[0][1]}. If they belong to this FlowSchema, add nonResourceRules with verbs ['*'] and"
            " nonResourceURLs ['*']",
            related=tuple(Elsewhere(place, "another rule without nonResourceRules") for place in others),
        )


def _matches_all_namespaces(part: ResourcePolicyRule) -> bool:
    return part.verbs == part.api_groups == part.resources == part.namespaces == _ALL


def _problem(
    schema: FlowSchema,
    found: list[_Missed],
    message: str,
    *,
    member: str,
    fix: tuple[str, bool | tuple[str, ...], str],
) -> Problem:
    """Make one finding of all entries of a FlowSchema with the same mistake."""
    document = schema.document
    first, *others = (Place(document, (*missed.path, member), key=member == "clusterScope") for missed in found)
    name, value, title = fix
    fixes = [suggestions.set_field(document, (*missed.path, name), value, title, safe=False) for missed in found]
    return Problem(
        first,
        message,
        related=tuple(Elsewhere(place, "another entry with the same mistake") for place in others),
        fix=Fix(title, safe=False, operations=tuple(chain.from_iterable(each.operations for each in fixes))),
    )


def _these_miss(found: list[_Missed]) -> str:
    others = len(found) - 1
    if not others:
        return "this entry does not match"
    return f"this entry and {others} other{'s' if others > 1 else ''} of this FlowSchema do not match"


def _missed(effective: Effective, schema: FlowSchema, entries: Iterable[_Entry]) -> list[_Missed]:
    """Return the entries of which a request goes to another priority level."""
    return [
        _Missed(entry.path, entry.missed, example)
        for entry in islice(entries, _MAX_ENTRIES)
        if (example := _example(effective, schema, entry.rule, entry.requests)) is not None
    ]


def _entries(schema: FlowSchema) -> Iterator[tuple[Path, PolicyRulesWithSubjects, ResourcePolicyRule]]:
    for i, rule in enumerate(schema.spec.rules):
        for j, part in enumerate(rule.resource_rules):
            yield ("spec", "rules", i, "resourceRules", j), rule, part


def _cluster_wide(schema: FlowSchema) -> Iterator[_Entry]:
    """Yield the entries for all namespaces that seem to be for requests in no namespace, too."""
    for path, rule, part in _entries(schema):
        if part.cluster_scope or part.namespaces != _ALL:
            continue
        known = known_resources(part)
        if known and all(not found.namespaced and not is_namespaces(found) for found in known):
            continue  # APF506 reports it
        verbs = _COLLECTION if part.verbs == _ALL else _collection_verbs(part)
        if verbs:
            missed = f"{listed(verbs, 'and')} across all namespaces"
            yield _Entry(path, rule, missed, _cluster_wide_requests(part, verbs))
            continue
        # The server takes a request for one Namespace as one in that namespace; creating one is in none.
        outside = [
            found.name
            for found in known or ()
            if not found.namespaced and (not is_namespaces(found) or "create" in part.verbs)
        ]
        if outside:
            missed = f"requests for {listed(map(quote, dict.fromkeys(outside)), 'and')}, which are not namespaced"
            verbs = ("create",) if set(outside) == {"namespaces"} else part.verbs
            narrowed = part._replace(resources=tuple(outside))
            yield _Entry(path, rule, missed, _cluster_wide_requests(narrowed, verbs))


def _collection_verbs(part: ResourcePolicyRule) -> tuple[str, ...]:
    return tuple(verb for verb in _COLLECTION if verb in part.verbs)


def _cluster_wide_requests(
    part: ResourcePolicyRule, verbs: tuple[str, ...]
) -> Callable[[Trials], Iterable[ResourcePolicyRule]]:
    return lambda trials: (
        part._replace(verbs=(verb,), api_groups=(group,), resources=(name,), cluster_scope=True, namespaces=())
        for verb, (group, name) in product(verbs[:_MAX_VALUES], _things(part, trials))
    )


def _namespaced(schema: FlowSchema) -> Iterator[_Entry]:
    """Yield the entries without namespaces that seem to be for requests in namespaces, too."""
    for path, rule, part in _entries(schema):
        if not part.cluster_scope or part.namespaces:
            continue
        # Who only lists and watches may well do that across all namespaces, and nothing else.
        verbs = ("get", "update") if part.verbs == _ALL else tuple(set(part.verbs) - COLLECTION_VERBS)
        if not verbs:
            continue
        if part.resources != _ALL:
            known = known_resources(part)
            if not known or not all(found.namespaced for found in known):
                continue
            if part.verbs != _ALL and not _collection_verbs(part):
                continue  # APF506 reports it
        yield _Entry(path, rule, "requests in a namespace", _namespaced_requests(part, sorted(verbs)))


def _namespaced_requests(
    part: ResourcePolicyRule, verbs: list[str]
) -> Callable[[Trials], Iterable[ResourcePolicyRule]]:
    things = _namespaced_things if part.resources == _ALL else _things
    return lambda trials: (
        part._replace(verbs=(verb,), api_groups=(group,), resources=(name,), cluster_scope=False, namespaces=_ALL)
        for verb, (group, name) in product(verbs[:_MAX_VALUES], things(part, trials))
    )


def _namespaced_things(part: ResourcePolicyRule, trials: Trials) -> list[tuple[str, str]]:
    """Return some namespaced resources of the API groups; none of groups that may be meant for their cluster-scoped ones."""
    if part.api_groups == _ALL:
        return [*_WELL_KNOWN, (trials.fresh.api_group, trials.fresh.resource)]
    found = []
    for group in part.api_groups[:_MAX_VALUES]:
        served = [each for each in resources.RESOURCES if each.group == group]
        if group == "":
            found += [thing for thing in _WELL_KNOWN if thing[0] == ""]
        elif served and all(each.namespaced for each in served):
            found.append((group, served[0].name))
    return found


def _things(part: ResourcePolicyRule, trials: Trials) -> list[tuple[str, str]]:
    """Return pairs of API group and resource that the entry matches, those that Kubernetes serves first."""
    groups = part.api_groups[:_MAX_VALUES]
    names = list(dict.fromkeys(part.resources))[:_MAX_VALUES]
    unnamed_group, unnamed = trials.fresh.api_group, trials.fresh.resource
    if part.api_groups == _ALL and part.resources == _ALL:
        return [*_WELL_KNOWN, (unnamed_group, unnamed)]
    if part.resources == _ALL:
        return [(group, _first_of(group) or unnamed) for group in groups]
    if part.api_groups == _ALL:
        return [(_group_of(name) or unnamed_group, name) for name in names]
    known = {(each.group, name): None for name in names for each in resources.find_resources(name.partition("/")[0])}
    foreign = set(names) - {name for _, name in known}
    listed_groups = set(part.api_groups)
    return [
        *(thing for thing in known if thing[0] in listed_groups),
        *((group, name) for group in groups for name in names if name in foreign),
    ]


def _first_of(group: str) -> str | None:
    return "pods" if group == "" else next((each.name for each in resources.RESOURCES if each.group == group), None)


def _group_of(name: str) -> str | None:
    return next((each.group for each in resources.find_resources(name.partition("/")[0])), None)


def _path_rules(trials: Trials) -> Iterator[NonResourcePolicyRule]:
    return (NonResourcePolicyRule(("get",), (path,)) for path in (*_PATHS, trials.fresh.path))


def _example(
    effective: Effective,
    schema: FlowSchema,
    rule: PolicyRulesWithSubjects,
    wanted: Callable[[Trials], Iterable[ResourcePolicyRule | NonResourcePolicyRule]],
) -> str | None:
    """Return a sentence with a request of the subjects that goes to another level; None if none of those tried does."""
    trials = effective.proofs.trials
    try:
        position = trials.position(schema)
    except ValueError:
        return None  # it dangles, or a later one of its name replaces it
    subjects = _requesters(rule.subjects)
    only = rule._replace(subjects=subjects, resource_rules=(), non_resource_rules=())
    points = (
        point
        for entry in wanted(trials)
        for point in trials.requests(
            schema,
            only._replace(resource_rules=(entry,))
            if isinstance(entry, ResourcePolicyRule)
            else only._replace(non_resource_rules=(entry,)),
        )
    )
    for point in islice(points, _MAX_REQUESTS):
        found = trials.resolve(point)
        if (
            found.position > position
            and found.priority_level.name != schema.spec.priority_level_configuration
            and not _is_left_to_another(found, rule, point)
            and not _is_limited_to_namespaces(schema, point)
        ):
            return _sentence(trials, point, found)
    return None


def _requesters(subjects: tuple[Subject, ...]) -> tuple[Subject, ...]:
    """Return some of the subjects. For everybody, service accounts are tried as well: they have a FlowSchema of their own."""
    some = subjects[:_MAX_SUBJECTS]
    if any(ALL in (each.user, each.group) or each.group == "system:authenticated" for each in some):
        accounts = some[0]._replace(kind="Group", user=None, group="system:serviceaccounts", service_account=None)
        return (*some, accounts)
    return some


def _is_limited_to_namespaces(schema: FlowSchema, point: Point) -> bool:
    """Whether the FlowSchema names some namespaces for such a request, so that the others are left out on purpose."""
    requester = UserInfo(point.user, point.groups)
    return point.namespace != "" and any(
        entry.namespaces
        and matches_a_subject(requester, rule.subjects)
        and match_policy_rule_verb(entry.verbs, point.verb)
        and match_policy_rule_api_group(entry.api_groups, point.api_group)
        and contains_string(point.resource, entry.resources, ALL)
        for _, rule, entry in _entries(schema)
    )


def _is_left_to_another(found: Resolution, rule: PolicyRulesWithSubjects, point: Point) -> bool:
    """Whether the user wrote another FlowSchema for the same subject and just these requests."""
    by, taker = found.matched_by, found.flow_schema
    if by is None or builtin.is_built_in(taker.document):
        return False
    other = taker.spec.rules[by.rule]
    if other.subjects[by.subject] not in rule.subjects:
        return False
    if by.resource_rule is None:
        return True
    entry = other.resource_rules[by.resource_rule]
    return not entry.cluster_scope if point.namespace else not entry.namespaces


def _sentence(trials: Trials, point: Point, found: Resolution) -> str:
    import shlex

    shown = trials.witness(point)
    command = f"`apflint explain {shlex.join(shown.words)}`" if shown.words is not None else f"{shown.record}"
    origin = "built-in FlowSchema" if builtin.is_built_in(found.flow_schema.document) else "FlowSchema"
    return (
        f"For example, {command} goes to the priority level {quote(found.priority_level.name)} through the {origin}"
        f" {quote(found.flow_schema.name)}"
    )
