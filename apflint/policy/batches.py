"""The expectations of a suite in batches: one formula for each, so that a property does not pay for all the others.

A question takes a time that grows with its formula, and what any property mentions makes the formula larger. The objects
of the configuration are in each formula. So a batch mentions about as much as they do: its formula is at most a few times
as large as it must be, and is made once for many properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.policy.suite import Property
from apflint.proofs.destinations import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.configuration import Configuration
    from apflint.model import PolicyRulesWithSubjects
    from apflint.policy.suite import Expectation, Suite

_ENOUGH = 128
"""So many values a batch mentions at least: about as many as the server's own objects."""


def batches(suite: Suite, configuration: Configuration) -> Iterator[tuple[Expectation, ...]]:
    """All expectations in order."""
    enough = max(_ENOUGH, _values((*rules_of(configuration.order), *suite.but_for)))
    batch: list[Expectation] = []
    values = 0
    for test in suite.tests:
        batch.append(test)
        values += _values(spoken_of((test,)))
        if values >= enough:
            yield tuple(batch)
            batch, values = [], 0
    if batch:
        yield tuple(batch)


def spoken_of(tests: Iterable[Expectation]) -> list[PolicyRulesWithSubjects]:
    """What the properties among them speak of, and what they except."""
    claims = (test.claim for test in tests)
    return [rule for claim in claims if isinstance(claim, Property) for rule in (claim.requests, *claim.but_for)]


def _values(rules: Iterable[PolicyRulesWithSubjects]) -> int:
    """How many values rules mention, `*` included."""
    found = 0
    for rule in rules:
        found += len(rule.subjects)
        for each in rule.resource_rules:
            found += len(each.verbs) + len(each.api_groups) + len(each.resources) + len(each.namespaces)
        found += sum(len(each.verbs) + len(each.non_resource_urls) for each in rule.non_resource_rules)
    return found
