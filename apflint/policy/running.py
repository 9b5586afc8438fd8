"""Compares the expectations of a suite with a configuration.

Properties are proven in batches. The time of a proof grows with its formula, and the formula with every name that occurs in a
property. The objects of the configuration are in each formula, so a batch contains about as many names as they do.
"""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import TYPE_CHECKING

from apflint.evaluate.classify import Classifier
from apflint.evaluate.deadline import find_deadline
from apflint.evaluate.flows import find_flow
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.outcomes import explain_unclassified
from apflint.policy.conditions import describe_requests
from apflint.policy.expectation import Destination, Example, Property, Requirement
from apflint.policy.failure_reasons import explain_destination, explain_unreachable
from apflint.policy.results import Result
from apflint.proofs.one_configuration import Analysis, rules_of
from apflint.proofs.witness import Witness
from apflint.wording import join_words, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.policy.expectation import Expectation, Reachability, Suite
    from apflint.releases import Release

_MIN_BATCH_VALUES = 128
"""Minimum number of values of rules in a batch: about as many as in the built-in objects."""


class Runner:
    """Runs a suite against one configuration."""

    def __init__(self, suite: Suite, configuration: Configuration, release: Release, server_concurrency: int) -> None:
        self.suite = suite
        self.configuration = configuration
        self.analysis = Analysis(configuration, suite.world)
        levels = tuple(configuration.levels.values())
        self._release = release
        limits = compute_limits(levels, configuration.order, server_concurrency, release)
        self._levels = {level.name: level for level in limits.levels}
        self._classify = Classifier(configuration)
        self._forbidden: dict[tuple[bool, Requirement], tuple[FlowSchema, ...]] = {}

    def run(self) -> Iterator[Result]:
        """Yield the result of each expectation, in order."""
        for batch in split_into_batches(self.suite, self.configuration):
            rules = (*self.suite.excluded, *rules_of_properties(batch))
            conditions = Analysis(self.configuration, self.suite.world, rules)
            for test in batch:
                claim = test.claim
                if isinstance(claim, Example):
                    result = self._check_example(test, claim)
                elif isinstance(claim, Property):
                    result = self._check_property(test, claim, conditions)
                else:
                    result = self._check_reachability(test, claim)
                yield result._replace(span=self.suite.document.span(result.path or (*test.path, test.kind)))

    def _check_example(self, test: Expectation, claim: Example) -> Result:
        request, required = claim.request, claim.reaches
        expected = f"`{shlex.join(claim.words)}` reaches {required.describe()}"
        user = request.user
        witness = Witness(request.digest, claim.words, {"user": user.name, "groups": list(user.groups)})
        destination = self._find_destination(request.digest)
        failure = Result(test, False, expected, path=(*test.path, "request"), request=witness, destination=destination)
        if missing := self._find_missing(required):
            return failure._replace(happened=missing[1], path=missing[0])
        deadline = find_deadline(request.url, request.info)
        if reason := explain_unclassified(request.info, deadline, self._release):
            return failure._replace(happened="it reaches no priority level", reasons=(reason,), destination=None)
        mismatches = required.find_mismatches(destination)
        if not mismatches:
            return Result(test, True, expected, request=witness, destination=destination)
        reasons = explain_destination(self.configuration, request.digest, destination, required)
        return failure._replace(
            happened="; ".join(mismatches.values()),
            reasons=(*reasons, *request.notes),
            path=self._path_of_key(required, next(iter(mismatches))),
        )

    def _check_property(self, test: Expectation, claim: Property, conditions: Analysis) -> Result:
        required, is_never = claim.reaches, claim.kind == "never"
        excluded = "; ".join(describe_requests(rule) for rule in claim.excluded)
        expected = f"{'no' if is_never else 'every'} {describe_requests(claim.requests)} reaches {required.describe()}"
        expected += f" (excluded: {excluded})" if excluded else ""
        failure = Result(test, False, expected, path=required.path)
        if missing := self._find_missing(required):
            return failure._replace(happened=missing[1], path=missing[0])
        all_excluded = (*self.suite.excluded, *claim.excluded)
        forbidden = self._find_forbidden(required, is_never=is_never)
        witness = conditions.find_request_in(claim.requests, forbidden, all_excluded) if forbidden else None
        if witness is None:
            if conditions.has_request_in(claim.requests, all_excluded):
                return Result(test, True, expected)
            return failure._replace(
                happened="there is no such request, so this proves nothing",
                reasons=("Look for a misspelled name, and at the excluded requests.",),
                path=(*test.path, claim.kind),
            )
        destination = self._find_destination(witness.digest)
        mismatches = {} if is_never else required.find_mismatches(destination)
        reasons = explain_destination(self.configuration, witness.digest, destination, None if is_never else required)
        return failure._replace(
            happened="this request does" if is_never else f"this request does not: {'; '.join(mismatches.values())}",
            reasons=tuple(reasons),
            path=self._path_of_key(required, next(iter(mismatches))) if mismatches else required.path,
            request=witness,
            destination=destination,
        )

    def _check_reachability(self, test: Expectation, claim: Reachability) -> Result:
        targets, is_reachable = claim.names.targets, claim.kind == "reachable"
        described = join_words([_describe_target(key, name) for key, name in targets], "and")
        expected = f"{described} {'can be reached' if is_reachable else 'cannot be reached by any request'}"
        failure = Result(test, False, expected, path=claim.names.path)
        if missing := self._find_missing(claim.names):
            return failure._replace(happened=missing[1], path=missing[0])
        for key, name in targets:
            level = name if key == "priorityLevel" else None
            schemas = [
                schema
                for schema in self.configuration.order
                if name == (schema.name if level is None else schema.spec.priority_level_configuration)
            ]
            witnesses = (self.analysis.find_request(schema) for schema in schemas)
            witness = next((witness for witness in witnesses if witness is not None), None)
            path = self._path_of_name(claim.names, key, name)
            if is_reachable and witness is None:
                return failure._replace(
                    happened=f"no request can reach {_describe_target(key, name)}",
                    reasons=tuple(explain_unreachable(self.analysis, level, name, schemas)),
                    path=path,
                )
            if not is_reachable and witness is not None:
                destination = self._find_destination(witness.digest)
                return failure._replace(
                    happened=f"this request reaches {_describe_target(key, name)}",
                    reasons=tuple(explain_destination(self.configuration, witness.digest, destination, None)),
                    path=path,
                    request=witness,
                    destination=destination,
                )
        return Result(test, True, expected)

    def _find_destination(self, digest: RequestDigest) -> Destination:
        schema, level, *_ = self._classify(digest)
        flow = find_flow(schema, level, digest.user.name, digest.request_info.namespace)
        return Destination(schema, self._levels[level.name], flow.distinguisher)

    def _find_forbidden(self, required: Requirement, *, is_never: bool) -> tuple[FlowSchema, ...]:
        """Return the FlowSchemas that no request may go to; remembered, as properties often have the same requirement."""
        key = is_never, required._replace(path=())
        if key not in self._forbidden:
            self._forbidden[key] = tuple(
                schema
                for schema in self.configuration.order
                if is_never
                != bool(
                    required.find_mismatches(
                        Destination(schema, self._levels[schema.spec.priority_level_configuration])
                    )
                )
            )
        return self._forbidden[key]

    @cached_property
    def _known_names(self) -> dict[str, tuple[str, ...]]:
        schemas = (*self.configuration.order, *self.configuration.dangling)
        return {
            "flowSchema": tuple(schema.name for schema in schemas),
            "priorityLevel": tuple(self.configuration.levels),
        }

    def _find_missing(self, required: Requirement) -> tuple[Path, str] | None:
        """Return the first name that no object has: a test with it would pass or fail for the wrong reason."""
        for key, name in required.targets:
            if name not in self._known_names[key]:
                unusable = self.configuration.unusable.get(name) if key == "priorityLevel" else None
                hint = f" It {unusable}, so it counts as absent" if unusable else suggest(name, self._known_names[key])
                message = f"this configuration has no {_describe_target(key, name)}"
                return self._path_of_name(required, key, name), f"{message}.{hint}" if hint else message
        return None

    def _path_of_key(self, required: Requirement, key: str) -> Path:
        """Return the path of a key of `reaches`: in the short form, of all of it."""
        is_mapping = isinstance(self.suite.document.at(*required.path), dict)
        return (*required.path, key) if is_mapping else required.path

    def _path_of_name(self, required: Requirement, key: str, name: str) -> Path:
        path = self._path_of_key(required, key)
        value = self.suite.document.at(*path)
        return (*path, value.index(name)) if isinstance(value, list) else path


def split_into_batches(suite: Suite, configuration: Configuration) -> Iterator[tuple[Expectation, ...]]:
    """Split the expectations of a suite, in order, into batches whose properties are proven with one formula."""
    min_values = max(_MIN_BATCH_VALUES, _count_values((*rules_of(configuration.order), *suite.excluded)))
    batch: list[Expectation] = []
    values = 0
    for test in suite.tests:
        batch.append(test)
        values += _count_values(rules_of_properties((test,)))
        if values >= min_values:
            yield tuple(batch)
            batch, values = [], 0
    if batch:
        yield tuple(batch)


def rules_of_properties(tests: Iterable[Expectation]) -> list[PolicyRulesWithSubjects]:
    """Return the sets of requests of properties, and those that they exclude."""
    claims = (test.claim for test in tests)
    return [rule for claim in claims if isinstance(claim, Property) for rule in (claim.requests, *claim.excluded)]


def _count_values(rules: Iterable[PolicyRulesWithSubjects]) -> int:
    """Return the number of values in rules, `*` included."""
    count = 0
    for rule in rules:
        count += len(rule.subjects)
        for entry in rule.resource_rules:
            count += len(entry.verbs) + len(entry.api_groups) + len(entry.resources) + len(entry.namespaces)
        count += sum(len(entry.verbs) + len(entry.non_resource_urls) for entry in rule.non_resource_rules)
    return count


def _describe_target(key: str, name: str) -> str:
    return f'{"FlowSchema" if key == "flowSchema" else "priority level"} "{name}"'
