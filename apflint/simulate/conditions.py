"""Conditions of `--fail-if`: rejections or waits of a client or a priority level that make the command fail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.request_outcomes import parse_duration
from apflint.named_tuple import NamedTuple
from apflint.simulate.client_verdicts import join_clients
from apflint.simulate.load import SECOND
from apflint.simulate.scaling import check_name
from apflint.simulate.verdict_sentences import format_share, format_time
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.simulate.client_verdicts import ClientTotals
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import LevelResult

_CONDITION = re.compile(r"(?:(client|level)\s+)?(\S.*?)\s+(?:(rejected)|waits(?:\s+(p99))?\s*>\s*(\S+))", re.IGNORECASE)


class FailureCondition(NamedTuple):
    """A condition about a client or a priority level. A simulation whose results meet the condition fails."""

    text: str
    name: str
    kind: Literal["client", "level"] | None = None
    """Whether the name is that of a client or of a level.

    If None, the name is the name of a client, or of a level if no client has this name.
    """
    wait: int | None = None
    """Longest permitted wait in nanoseconds, or None for the condition `rejected`, which permits no rejection."""
    is_p99: bool = False
    """Whether `wait` limits the 99th percentile of the waits instead of the longest wait."""


def parse_condition(text: str) -> FailureCondition:
    """Parse `NAME rejected`, `NAME waits > 1s` or `NAME waits p99 > 1s`. The word `client` or `level` may precede NAME.

    Raises UserError for other text.
    """
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise UserError(
            f"--fail-if: {quote(text)} is not a condition: write NAME rejected, NAME waits > 1s or NAME waits p99 > 1s,"
            " where NAME is a client or a priority level"
        )
    kind, name, rejected, p99, limit = match.groups()
    of: Literal["client", "level"] | None = None
    if kind:
        of = "client" if kind.lower() == "client" else "level"
    if rejected:
        return FailureCondition(text, name, of)
    seconds = 0.0 if limit == "0" else parse_duration(limit)
    if seconds is None or seconds < 0:
        raise UserError(f"--fail-if: {quote(limit)} is not a duration such as 500ms, 1.5s or 10m")
    return FailureCondition(text, name, of, round(seconds * SECOND), bool(p99))


def check_conditions(conditions: Sequence[FailureCondition], clients: Collection[str], levels: Collection[str]) -> None:
    """Raise UserError if a condition names an unknown client or level."""
    for condition in conditions:
        known = {"client": clients, "level": levels, None: {*clients, *levels}}[condition.kind]
        what = condition.kind or "client or priority level"
        check_name("--fail-if", condition.name, known, what)


def list_failures(conditions: Sequence[FailureCondition], result: SimulationResult) -> Iterator[tuple[str, str]]:
    """Yield a pair for each condition that is true: its text, and a sentence that states the value and the limit."""
    users = {totals.name: totals for totals in join_clients(result, by_user=True)}
    clients = users | {totals.name: totals for totals in join_clients(result)}
    levels = {level.name: level for level in result.levels}
    for condition in conditions:
        row: ClientTotals | LevelResult | None = None
        if condition.kind != "level":
            row = clients.get(condition.name)
        if row is None and condition.kind != "client":
            row = levels.get(condition.name)
        if row is not None and row.attempts and (sentence := _describe_failure(condition, row)):
            yield condition.text, sentence


def _describe_failure(condition: FailureCondition, row: ClientTotals | LevelResult) -> str | None:
    rejected = sum(row.rejected.values())
    if condition.wait is None:
        if not rejected:
            return None
        share = format_share(rejected, row.attempts)
        return f"{condition.name} is rejected: {rejected:,} of {row.attempts:,} attempts ({share}), and the condition allows no rejection."
    waits = row.waits
    value = 0 if waits is None else waits.p99 if condition.is_p99 else waits.max
    if value <= condition.wait:
        return None
    what = "the 99th percentile of its waits is" if condition.is_p99 else "it waits up to"
    return (
        f"{condition.name} waits too long: {what} {format_time(value)}, and the limit is {format_time(condition.wait)}."
    )
