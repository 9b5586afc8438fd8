"""Sentences that explain why an expectation is not met."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.match_reasons import explain_match, explain_skipped
from apflint.output.match_reasons import describe_skipped, describe_verdict
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest
    from apflint.evaluate.match_reasons import SkippedFlowSchema, Verdict
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.policy.expectation import Destination, Requirement
    from apflint.proofs.one_configuration import Analysis

_MAX_BLOCKERS = 12
"""Maximum number of earlier FlowSchemas to name as the reason why a FlowSchema is unreachable."""
_MAX_EXPLAINED = 3
"""Maximum number of FlowSchemas to explain if no request reaches their priority level."""


def explain_destination(
    configuration: Configuration, digest: RequestDigest, destination: Destination, required: Requirement | None
) -> Iterator[str]:
    """Explain why a request reaches `destination`, and why `destination` does not meet the requirement `required`."""
    schema = destination.flow_schema
    if required is not None and required.targets and required.includes(schema):
        yield from _explain_figures(configuration, destination, required)
        return
    verdict = explain_match(schema, digest)
    if not verdict.matched:
        yield f'No FlowSchema matches the request, so the server falls back to "{schema.name}".'
        return
    yield f'FlowSchema "{schema.name}"{_position(schema, verdict.path)} comes first: {describe_verdict(verdict)}.'
    if required is None:
        return
    if required.targets:
        verdicts = [explain_match(other, digest) for other in configuration.order if required.includes(other)]
        yield from _explain_other_schemas(schema, verdicts)
    for skipped in explain_skipped(configuration):
        if skipped.flow_schema.name in required.flow_schemas:
            yield _explain_skipped(skipped)
    yield from _explain_figures(configuration, destination, required)


def _explain_other_schemas(schema: FlowSchema, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Explain why `schema` captures the request instead of a required FlowSchema.

    `verdicts` has the verdict on each required FlowSchema.
    """
    for verdict in verdicts:
        if verdict.matched:
            other, precedence = verdict.flow_schema, verdict.flow_schema.spec.matching_precedence
            order = (
                "the name decides"
                if precedence == schema.spec.matching_precedence
                else f"its matchingPrecedence is {precedence}, not {schema.spec.matching_precedence}"
            )
            yield f'FlowSchema "{other.name}"{_position(other)} also matches the request, but later: {order}.'
    if verdicts and not any(verdict.matched for verdict in verdicts):
        # The closest FlowSchema is one whose subjects match the user, if there is one. Among several, it is the FlowSchema
        # with the fewest failed conditions.
        closest = min(
            verdicts,
            key=lambda verdict: (
                any(mismatch.condition == "subject" for mismatch in verdict.mismatches),
                len(verdict.mismatches),
            ),
        )
        name, position = closest.flow_schema.name, _position(closest.flow_schema, closest.path)
        yield f'FlowSchema "{name}"{position} does not match it: {describe_verdict(closest)}.'


def _explain_figures(configuration: Configuration, destination: Destination, required: Requirement) -> Iterator[str]:
    """Explain the seats of the level and the distinguisher of the flow, if they differ from the required values."""
    level, schema = destination.level, destination.flow_schema
    mismatches = required.find_mismatches(destination)
    limited = configuration.levels[level.name].spec.limited
    if mismatches.keys() & {"minSeats", "nominalSeats"} and limited is not None:
        seats = f"{pluralize(level.shares, 'share')}, which are {pluralize(level.nominal, 'seat')}"
        yield f'The level "{level.name}" has {seats} in each API server. It lends {limited.lendable_percent}% of its seats.'
    if "distinguisher" not in mismatches:
        return
    if (level.queues or 0) < 2:
        yield f'The level "{level.name}" has fewer than 2 queues, so flows are not distinguished.'
    else:
        method = schema.spec.distinguisher_method
        has = f"the distinguisherMethod {method}" if method else "no distinguisherMethod"
        yield f'FlowSchema "{schema.name}"{_position(schema)} has {has}.'


def explain_unreachable(
    analysis: Analysis, level: str | None, name: str, schemas: Sequence[FlowSchema]
) -> Iterator[str]:
    """Explain why no request reaches the FlowSchema or priority level `name`.

    For a priority level, `level` is its name, and `schemas` are the effective FlowSchemas that reference it. For a
    FlowSchema, `level` is None, and `schemas` contains the FlowSchema if it is effective.
    """
    for skipped in explain_skipped(analysis.configuration):
        schema = skipped.flow_schema
        if name == (schema.name if level is None else schema.spec.priority_level_configuration):
            yield _explain_skipped(skipped)
    if not schemas and level is not None:
        yield f'No effective FlowSchema references "{level}".'
    for schema in schemas[:_MAX_EXPLAINED]:
        blockers = analysis.find_blockers(schema)
        if blockers:
            names = ", ".join(f'"{blocker.name}"{_position(blocker)}' for blocker in blockers[:_MAX_BLOCKERS])
            more = f" and {len(blockers) - _MAX_BLOCKERS:,} more" if len(blockers) > _MAX_BLOCKERS else ""
            yield f'Every request that "{schema.name}" matches is captured by {names}{more}.'
        else:
            yield f'"{schema.name}" matches no request.'


def _explain_skipped(skipped: SkippedFlowSchema) -> str:
    schema = skipped.flow_schema
    return f'The server skips "{schema.name}"{_position(schema, skipped.path)}: {describe_skipped(skipped)}.'


def _position(schema: FlowSchema, path: Path = ("metadata", "name")) -> str:
    """Return ` (FILE:LINE)` of the field at `path` of a FlowSchema, or an empty string for a built-in FlowSchema."""
    if builtin.is_built_in(schema.document):
        return ""
    return f" ({schema.document.source.name}:{schema.document.span(path).line})"
