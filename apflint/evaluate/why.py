"""Why each FlowSchema that was tried did not take a request, in words, with the field that decided it.

The verdicts themselves are `apflint.evaluate.match`'s; here only the one rule of a FlowSchema that came closest is put
into a sentence. The wording of each condition is in `apflint.evaluate.misses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.evaluate.classify import matched_by
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import ALL, matches_a_subject
from apflint.evaluate.misses import (
    Miss,
    no_rules_of_type,
    non_resource_misses,
    quoted,
    resource_misses,
    subject_in_words,
    subject_miss,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.classify import MatchedBy, Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


class Considered(NamedTuple):
    """A FlowSchema that a request was held against."""

    flow_schema: FlowSchema
    matched: bool
    because: str
    """Why it matched or did not, as a clause without a full stop: `verb "watch" is not among ["get", "list"]`."""
    path: Path
    """The field that decided: `("spec", "rules", 0, "resourceRules", 1, "verbs")`; fit for `document.span(path)`."""
    misses: tuple[Miss, ...] = ()
    """All that failed in the rule that came closest, the first of it in `because`. Empty for a match."""


class Skipped(NamedTuple):
    """A FlowSchema that no request is held against."""

    flow_schema: FlowSchema
    because: str
    path: Path


def considered(configuration: Configuration, digest: RequestDigest, resolution: Resolution) -> Iterator[Considered]:
    """The FlowSchemas that were tried, in order, the one that took the request last.

    Of a resolution that fell back to `catch-all`, all were tried and none matched.
    """
    fell_back = resolution.matched_by is None
    tried = configuration.order if fell_back else configuration.order[: resolution.position + 1]
    for schema in tried:
        yield consider(schema, digest)


def consider(schema: FlowSchema, digest: RequestDigest) -> Considered:
    """Whether one FlowSchema matches, and why. `matched` is what `matches_flow_schema` says."""
    found = matched_by(digest, schema)
    if found is not None:
        return Considered(schema, True, *_match_in_words(schema, found))
    rules = schema.spec.rules
    if not rules:
        return Considered(schema, False, "it has no rules, so it matches nothing", ("spec", "rules"))
    # The closest rule is the one with the fewest conditions that fail. Between equals it is one for this user, then the first.
    attempts = [_rule_misses(rule, index, digest) for index, rule in enumerate(rules)]
    misses = min(attempts, key=lambda attempt: (len(attempt), attempt[0].condition == "subject"))
    return Considered(schema, False, misses[0].because, misses[0].path, misses)


def skipped(configuration: Configuration) -> Iterator[Skipped]:
    """The FlowSchemas that dangle, in order, and what is wrong with the priority level that each refers to."""
    for schema in configuration.dangling:
        name = schema.spec.priority_level_configuration
        reason = configuration.unusable.get(name)
        why = "does not exist" if reason is None else f"{reason}, so it counts as absent"
        yield Skipped(schema, f'the priority level "{name}" {why}', ("spec", "priorityLevelConfiguration", "name"))


def fallback_in_words(resolution: Resolution) -> str | None:
    """Why a request that nothing matches is where it is; None if something matched."""
    if resolution.matched_by is not None:
        return None
    return (
        f'No FlowSchema matches, so the server falls back to "{resolution.flow_schema.name}". A real user is always in the'
        ' group "system:authenticated" or "system:unauthenticated".'
    )


def order_in_words(configuration: Configuration) -> Iterator[str]:
    """Sentences on mandatory objects that are missing: what the server makes up in their place."""
    for kind, name in sorted(configuration.imagined):
        if kind == "PriorityLevelConfiguration":
            yield f'The priority level "{name}" is missing; the server imagines it.'
        else:
            end = "before all others" if name == EXEMPT else "after all others"
            yield f'The FlowSchema "{name}" is missing or dangles; the server imagines it, {end}.'


def _rule_misses(rule: PolicyRulesWithSubjects, index: int, digest: RequestDigest) -> tuple[Miss, ...]:
    """What fails in a rule that does not match, the subject first; never empty for such a rule."""
    path: Path = ("spec", "rules", index)
    info, user = digest
    misses: list[Miss] = []
    if not matches_a_subject(user, rule.subjects):
        misses.append(subject_miss(user, rule.subjects, (*path, "subjects")))
    if info.is_resource_request:
        attempts = [
            resource_misses(info, each, (*path, "resourceRules", at)) for at, each in enumerate(rule.resource_rules)
        ]
    else:
        attempts = [
            non_resource_misses(info, each, (*path, "nonResourceRules", at))
            for at, each in enumerate(rule.non_resource_rules)
        ]
    if not attempts:
        return (*misses, *no_rules_of_type(info, path))
    return (*misses, *min(attempts, key=len))


def _match_in_words(schema: FlowSchema, found: MatchedBy) -> tuple[str, Path]:
    """Which subject matched and which rule covers the request; the place is that rule."""
    rule = schema.spec.rules[found.rule]
    who = subject_in_words(rule.subjects[found.subject])
    path: Path = ("spec", "rules", found.rule)
    if found.resource_rule is not None:
        covered = rule.resource_rules[found.resource_rule]
        field, at = "resourceRules", found.resource_rule
        resources = "all resources" if covered.resources == (ALL,) else f"resources {quoted(covered.resources)}"
        what = _both(_verbs(covered.verbs), resources)
    else:
        field, at = "nonResourceRules", found.non_resource_rule or 0
        paths = rule.non_resource_rules[at]
        urls = "all paths" if ALL in paths.non_resource_urls else f"paths {quoted(paths.non_resource_urls)}"
        what = _both(_verbs(paths.verbs), urls)
    return f"it takes {who}, {what}", (*path, field, at)


def _both(verbs: str, what: str) -> str:
    if verbs.startswith("all ") and what.startswith("all "):
        return f"{verbs} and {what.removeprefix('all ')}"
    return f"{verbs} on {what}"


def _verbs(verbs: Sequence[str]) -> str:
    return "all verbs" if verbs == (ALL,) else f"verbs {quoted(verbs)}"
