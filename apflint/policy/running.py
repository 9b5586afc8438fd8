"""Holds the expectations of a suite against a configuration: what holds, what does not, and the request that shows it."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from apflint.evaluate.classify import Classifier
from apflint.evaluate.deadline import find_deadline
from apflint.evaluate.flows import find_flow
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.outcomes import explain_unclassified
from apflint.location import Span
from apflint.policy import conditions
from apflint.policy.batches import batches, spoken_of
from apflint.policy.destinations import Place, in_words, mismatches
from apflint.policy.reading import Fields
from apflint.policy.reasons import why_nothing, why_there
from apflint.policy.suite import Example, Property
from apflint.proofs.conditions import Conditions
from apflint.proofs.parts import Witness
from apflint.proofs.single import Analysis
from apflint.wording import join_words, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.evaluate.match import RequestDigest
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.policy.suite import Destination, Expectation, Reachability, Suite
    from apflint.releases import Release


class Outcome(NamedTuple):
    """What became of one expectation."""

    test: Expectation
    passed: bool
    expected: str
    """A sentence without its stop; also the name of a test that has none."""
    happened: str = ""
    """The same on what is so instead; "" for what passed."""
    why: tuple[str, ...] = ()
    """Sentences on why that is so."""
    place: Path = ()
    """What in the suite does not hold; () for what passed."""
    span: Span = Span(1, 1, 1, 1)
    """Where `place` is, or the key that tells the test."""
    request: Witness | None = None
    """The request of an example, or the one that refutes a property."""
    goes: Place | None = None
    """Where that request goes."""

    @property
    def name(self) -> str:
        """The name that the suite gives it, otherwise what it expects."""
        return self.test.name or self.expected


class Runner:
    """Answers for one configuration. What was worked out for one expectation serves the others."""

    def __init__(self, suite: Suite, configuration: Configuration, release: Release, server_concurrency: int) -> None:
        self.suite = suite
        self.configuration = configuration
        self._release = release
        self.limits: Limits = compute_limits(
            tuple(configuration.levels.values()), configuration.order, server_concurrency, release
        )
        self._levels = {level.name: level for level in self.limits.levels}
        self._classify = Classifier(configuration)
        self._analysis = Analysis(configuration, suite.world)
        self._ends: dict[tuple[bool, Destination], tuple[FlowSchema, ...]] = {}

    def outcomes(self) -> Iterator[Outcome]:
        """One for each test, in order."""
        for batch in batches(self.suite, self.configuration):
            asked = Conditions(self.configuration, (*self.suite.but_for, *spoken_of(batch)), self.suite.world)
            for test in batch:
                outcome = self._outcome(test, asked)
                yield outcome._replace(span=self.suite.document.span(outcome.place or (*test.path, test.kind)))

    def _outcome(self, test: Expectation, asked: Conditions) -> Outcome:
        claim = test.claim
        if isinstance(claim, Example):
            return self._example(test, claim)
        return self._property(test, claim, asked) if isinstance(claim, Property) else self._reachability(test, claim)

    def _example(self, test: Expectation, claim: Example) -> Outcome:
        request, wanted = claim.request, claim.reaches
        expected = f"`{shlex.join(claim.words)}` reaches {in_words(wanted)}"
        info, user = request.digest
        record = {"user": user.name, "groups": list(user.groups)}
        shown = Witness(request.digest, claim.words, record)
        goes = self._place(request.digest)
        failed = Outcome(test, False, expected, place=(*test.path, "request"), request=shown, goes=goes)
        if missing := self._missing(wanted):
            path, message = missing
            return failed._replace(happened=message, place=path)
        if unseen := explain_unclassified(info, find_deadline(request.url, info), self._release):
            return failed._replace(happened="it reaches no priority level at all", why=(unseen,), goes=None)
        wrong = mismatches(goes, wanted)
        if not wrong:
            return Outcome(test, True, expected, request=shown, goes=goes)
        reasons = (*why_there(self.configuration, request.digest, goes, wanted), *request.notes)
        return failed._replace(
            happened="; ".join(message for _, message in wrong),
            why=reasons,
            place=_written(self.suite, wanted, wrong[0][0]),
        )

    def _property(self, test: Expectation, claim: Property, asked: Conditions) -> Outcome:
        wanted, never = claim.reaches, claim.kind == "never"
        who = conditions.in_words(claim.requests)
        excepted = "; ".join(conditions.in_words(each) for each in claim.but_for)
        expected = f"{'no' if never else 'every'} {who} reaches {in_words(wanted)}"
        expected += f" (excepted: {excepted})" if excepted else ""
        failed = Outcome(test, False, expected, place=wanted.path)
        if missing := self._missing(wanted):
            path, message = missing
            return failed._replace(happened=message, place=path)
        # What is excepted goes nowhere, as far as this is about.
        but_for = (*self.suite.but_for, *claim.but_for)
        bad = self._wrong_ends(wanted, never=never)
        witness = asked.found(claim.requests, bad, but_for) if bad else None
        if witness is None:
            if not asked.there_is(claim.requests, but_for):
                return failed._replace(
                    happened="there is no such request, so this proves nothing",
                    why=("Look for a name that is misspelt, and at what is excepted.",),
                    place=(*test.path, claim.kind),
                )
            return Outcome(test, True, expected)
        goes = self._place(witness.digest)
        wrong = [] if never else mismatches(goes, wanted)
        return failed._replace(
            happened="this request does" if never else f"this request does not: {'; '.join(m for _, m in wrong)}",
            why=tuple(why_there(self.configuration, witness.digest, goes, None if never else wanted)),
            place=_written(self.suite, wanted, wrong[0][0]) if wrong else wanted.path,
            request=witness,
            goes=goes,
        )

    def _reachability(self, test: Expectation, claim: Reachability) -> Outcome:
        names, wanted = claim.names, claim.kind == "reachable"
        targets = [("flowSchema", name) for name in names.flow_schemas]
        targets += [("priorityLevel", name) for name in names.priority_levels]
        expected = f"{_listed(targets)} {'can be reached' if wanted else 'cannot be reached by any request'}"
        failed = Outcome(test, False, expected, place=names.path)
        if missing := self._missing(names):
            path, message = missing
            return failed._replace(happened=message, place=path)
        for field, name in targets:
            schemas = [s for s in self.configuration.order if name == self._name(s, field)]
            found = (self._analysis.reachable(schema) for schema in schemas)
            witness = next((each for each in found if each is not None), None)
            what, place = _listed([(field, name)]), _named(self.suite, names, field, name)
            if wanted and witness is None:
                level = name if field == "priorityLevel" else None
                reasons = tuple(why_nothing(self._analysis, level, name, schemas))
                return failed._replace(happened=f"no request can reach {what}", why=reasons, place=place)
            if not wanted and witness is not None:
                goes = self._place(witness.digest)
                reasons = tuple(why_there(self.configuration, witness.digest, goes, None))
                happened = f"this request reaches {what}"
                return failed._replace(happened=happened, why=reasons, place=place, request=witness, goes=goes)
        return Outcome(test, True, expected)

    def _name(self, schema: FlowSchema, field: str) -> str:
        return schema.name if field == "flowSchema" else schema.spec.priority_level_configuration

    def _level(self, schema: FlowSchema) -> LevelLimits:
        return self._levels[schema.spec.priority_level_configuration]

    def _of(self, schema: FlowSchema) -> Place:
        """Where all requests of a FlowSchema go."""
        return Place(schema, self._level(schema))

    def _place(self, digest: RequestDigest) -> Place:
        """Where one request goes."""
        found = self._classify(digest)
        info, user = digest
        flow = find_flow(found.flow_schema, found.priority_level, user.name, info.namespace)
        return Place(found.flow_schema, self._levels[found.priority_level.name], flow.distinguisher)

    def _wrong_ends(self, wanted: Destination, *, never: bool) -> tuple[FlowSchema, ...]:
        """The FlowSchemas to which no request may go: with `never` those that are as `wanted`, otherwise those that are not."""
        key = never, wanted._replace(path=())
        if key not in self._ends:
            order = self.configuration.order
            self._ends[key] = tuple(each for each in order if bool(mismatches(self._of(each), wanted)) != never)
        return self._ends[key]

    @cached_property
    def _known(self) -> dict[str, tuple[str, ...]]:
        effective, dangling = self.configuration.order, self.configuration.dangling
        return {
            "flowSchema": tuple(schema.name for schema in (*effective, *dangling)),
            "priorityLevel": tuple(self.configuration.levels),
        }

    def _missing(self, wanted: Destination) -> tuple[Path, str] | None:
        """A name that no object has: with it a test could only pass or fail for the wrong reason."""
        for field, names in (("flowSchema", wanted.flow_schemas), ("priorityLevel", wanted.priority_levels)):
            for name in names:
                if name not in self._known[field]:
                    what = "FlowSchema" if field == "flowSchema" else "priority level"
                    broken = self.configuration.unusable.get(name) if field == "priorityLevel" else None
                    hint = (
                        f"it {broken}, so it counts as absent" if broken else suggest(name, self._known[field]).lstrip()
                    )
                    message = f'there is no {what} "{name}" in this configuration{". " + hint if hint else ""}'
                    return _named(self.suite, wanted, field, name), message
        return None


def _written(suite: Suite, wanted: Destination, field: str) -> Path:
    """Where a part of `reaches` is written: in the short form it is all of it."""
    in_full = isinstance(Fields(suite.document).value(wanted.path), dict)
    return (*wanted.path, field) if in_full else wanted.path


def _named(suite: Suite, wanted: Destination, field: str, name: str) -> Path:
    """Where one of its names is written."""
    path = _written(suite, wanted, field)
    value = Fields(suite.document).value(path)
    return (*path, value.index(name)) if isinstance(value, list) else path


def _listed(targets: Iterable[tuple[str, str]]) -> str:
    """`FlowSchema "a" and priority level "b"`."""
    words = [f'{"FlowSchema" if field == "flowSchema" else "priority level"} "{name}"' for field, name in targets]
    return join_words(words, "and")
