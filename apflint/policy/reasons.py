"""Why an expectation does not hold, in sentences: what `apflint.evaluate.why` knows, as far as it bears on what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate import explanation
from apflint.policy.destinations import is_named, mismatches
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.policy.destinations import Place
    from apflint.policy.suite import Destination
    from apflint.proofs.single import Analysis

_MAX_BLOCKERS = 12
"""Maximum number of FlowSchemas that are named as those that capture all requests of another one."""
_SHOWN = 3
"""FlowSchemas of a level of which it is said why nothing reaches them."""


def why_there(
    configuration: Configuration, digest: RequestDigest, goes: Place, wanted: Destination | None
) -> Iterator[str]:
    """Why a request goes where it goes, and (where `wanted` names a place) why not there."""
    taker = goes.flow_schema
    named = wanted is not None and bool(wanted.flow_schemas or wanted.priority_levels)
    if wanted is not None and named and is_named(taker, wanted):
        yield from _figures(configuration, goes, wanted)
        return
    took = explanation.explain_match(taker, digest)
    if not took.matched:
        yield f'No FlowSchema matches it, so the server falls back to "{taker.name}".'
        return
    yield f'FlowSchema "{taker.name}"{_file(taker, took.path)} comes first: {took.because}.'
    if wanted is None:
        return
    if named:
        meant = [schema for schema in configuration.order if is_named(schema, wanted)]
        yield from _why_not_these(taker, [explanation.explain_match(schema, digest) for schema in meant])
    for skipped in explanation.explain_skipped(configuration):
        if skipped.flow_schema.name in wanted.flow_schemas:
            yield _skipped(skipped)
    yield from _figures(configuration, goes, wanted)


def _why_not_these(taker: FlowSchema, tried: Sequence[explanation.Verdict]) -> Iterator[str]:
    """Why none of the FlowSchemas that were meant took the request."""
    for each in tried:
        if not each.matched:
            continue
        precedence, later = (schema.spec.matching_precedence for schema in (taker, each.flow_schema))
        order = "the name decides" if precedence == later else f"its matchingPrecedence is {later}, not {precedence}"
        yield f'FlowSchema "{each.flow_schema.name}"{_file(each.flow_schema)} matches it too, but later: {order}.'
    if tried and not any(each.matched for each in tried):
        # The closest is one that is for this user, then the one with the fewest conditions that fail.
        close = min(tried, key=lambda each: (_not_for_user(each), len(each.mismatches)))
        name, place = close.flow_schema.name, _file(close.flow_schema, close.path)
        yield f'FlowSchema "{name}"{place} does not match it: {close.because}.'


def _figures(configuration: Configuration, goes: Place, wanted: Destination) -> Iterator[str]:
    """Why the level has so few seats, or the flow another distinguisher."""
    level, schema = goes.level, goes.flow_schema
    wrong = {field for field, _ in mismatches(goes, wanted)}
    limited = configuration.levels[level.name].spec.limited
    if "minSeats" in wrong and limited is not None:
        seats = f"{pluralize(level.shares, 'share')}, which are {pluralize(level.nominal, 'seat')}"
        yield f"It has {seats} of one API server; it lends {limited.lendable_percent} percent."
    if "distinguisher" not in wrong:
        return
    if (level.queues or 0) < 2:
        yield f'The level "{level.name}" has no queues to choose among, so it tells no flows apart.'
    else:
        method = schema.spec.distinguisher_method
        has = f"the distinguisherMethod {method}" if method else "no distinguisherMethod"
        yield f'FlowSchema "{schema.name}"{_file(schema)} has {has}.'


def why_nothing(analysis: Analysis, level: str | None, name: str, schemas: Sequence[FlowSchema]) -> Iterator[str]:
    """Why no request reaches these FlowSchemas: those of the name, or of the level of that name."""
    for skipped in explanation.explain_skipped(analysis.configuration):
        schema = skipped.flow_schema
        if name == (schema.name if level is None else schema.spec.priority_level_configuration):
            yield _skipped(skipped)
    if not schemas and level is not None:
        yield f'No FlowSchema that is in effect leads to "{level}".'
    for schema in schemas[:_SHOWN]:
        blockers = analysis.blockers(schema)
        if blockers:
            names = ", ".join(f'"{blocker.name}"{_file(blocker)}' for blocker in blockers[:_MAX_BLOCKERS])
            more = f" and {len(blockers) - _MAX_BLOCKERS:,} more" if len(blockers) > _MAX_BLOCKERS else ""
            yield f'Every request that "{schema.name}" matches is captured by {names}{more}.'
        else:
            yield f'"{schema.name}" matches no request.'


def _skipped(skipped: explanation.Skipped) -> str:
    schema = skipped.flow_schema
    return f'The server skips "{schema.name}"{_file(schema, skipped.path)}: {skipped.because}.'


def _not_for_user(tried: explanation.Verdict) -> bool:
    return any(miss.condition == "subject" for miss in tried.mismatches)


def _file(schema: FlowSchema, path: Path = ("metadata", "name")) -> str:
    """` (FILE:LINE)` of a FlowSchema of the user's; "" for the server's own."""
    if builtin.is_built_in(schema.document):
        return ""
    return f" ({schema.document.source.name}:{schema.document.span(path).line})"
