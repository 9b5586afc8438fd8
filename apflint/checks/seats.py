"""APF603: seats that new and redefined priority levels take from the others. Figures are for one API server."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.wording import listed, quote, several

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.effective import Effective
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import PriorityLevelConfiguration

MAX_NAMED_LEVELS = 12
"""Maximum number of levels that one message names."""
_MAX_NAMED_SHARES = 3
"""Maximum number of redefined levels whose shares one message states."""
_NEGLIGIBLE = 0.01
_NOTABLE = 0.1
"""Part of its seats by which a level must change for a redefinition to be reported."""
_SEVERE = 0.25


class SeatChange(NamedTuple):
    """The nominal limit of a level before and after a change of the configuration, in seats."""

    name: str
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """Change as a part of the seats before; negative for a loss. Only the level `exempt` can have had no seats."""
        return (self.after - self.before) / self.before if self.before else 0.0


def seats_taken(effective: Effective) -> Iterator[Problem]:
    """APF603."""
    yield from _new_levels(effective)
    yield from _redefined_levels(effective)


def shares_path(document: Document) -> Path:
    """Path of the shares of a level, by the name that its API version has for them; of the owner if they are absent."""
    owner = "limited" if document.has("spec", "limited") else "exempt"
    for name in ("nominalConcurrencyShares", "assuredConcurrencyShares"):
        if document.has("spec", owner, name):
            return ("spec", owner, name)
    return ("spec", owner)


def _new_levels(effective: Effective) -> Iterator[Problem]:
    """Compare the configuration with and without each new level."""
    total, release = effective.assumptions.server_concurrency, effective.release
    in_context = {manifest.document.name for manifest in effective.workspace.context}
    limits = {level.name: level for level in effective.limits.levels}
    losses: dict[int, _Losses] = {}  # by the shares of the new level, which alone decide
    for level in effective.own_priority_levels:
        new = limits.get(level.name)
        if new is None or level.spec.limited is None or not level.name or level.name in in_context:
            continue
        if level.name in builtin.names(release, level.document.kind) or new.nominal <= _NEGLIGIBLE * total:
            continue
        if new.shares not in losses:
            losses[new.shares] = _losses(effective, new.shares)
        if message := _new_level_message(losses[new.shares], level.name, new.nominal, total):
            severe = bool(_without(losses[new.shares].severe, level.name))
            place = Place(level.document, ("metadata", "name"))
            yield Problem(place, message, severity="warning" if severe else None)


def _new_level_message(losses: _Losses, name: str, nominal: int, total: int) -> str | None:
    """The message on a new level, or None if no other level loses a notable number of seats to it."""
    lost = losses.seats - (losses.all[name].before - losses.all[name].after if name in losses.all else 0)
    if lost <= 0 or all(change.ratio >= -_NEGLIGIBLE for change in losses.all.values() if change.name != name):
        return None
    shown = _described(losses.all, name, "{0.name} {0.before} -> {0.after}")
    taken = f"this new level takes {nominal} of {total} seats"
    if total > SERVER_CONCURRENCY:
        effect = f"built-in levels get fewer than on a default server ({SERVER_CONCURRENCY} seats)"
    else:
        effect = f"the others lose {lost}" + (", because every limit is rounded up" if lost != nominal else "")
    message = f"{taken}, and {effect}: {listed(shown, 'and')}"
    severe = _described(losses.severe, name, "{0.name}")
    return f"{message}. {_severe_sentence(severe)}" if severe else message


def _severe_sentence(names: list[str]) -> str:
    verb, its = ("loses", "its") if len(names) == 1 else ("lose", "their")
    return f"{several(names, MAX_NAMED_LEVELS + 1)} {verb} more than a quarter of {its} seats"


class _Losses(NamedTuple):
    """Levels that lose seats, by name; if there are many, those that lose most come first."""

    all: dict[str, SeatChange]
    severe: dict[str, SeatChange]
    """Those that lose more than a quarter."""
    seats: int
    """Seats that all of them lose together."""


def _losses(effective: Effective, shares: int) -> _Losses:
    """What a new level with these shares takes from all levels, itself among them as if it were another one.

    A server with more seats than the default was given them on purpose, perhaps for the new level. There a built-in level
    loses only what it has less than on a default server.
    """
    from apflint.evaluate.limits import nominal_limit  # only files with new levels need it

    levels, total = effective.limits.levels, effective.assumptions.server_concurrency
    share_sum = sum(level.shares for level in levels) - shares
    stock = _stock_seats(effective)
    losses: list[SeatChange] = []
    for level in levels:
        before = nominal_limit(level.shares, share_sum, total)
        if total > SERVER_CONCURRENCY:
            before = min(before, stock.get(level.name, 0))
        if level.nominal < before:
            losses.append(SeatChange(level.name, before, level.nominal))
    if len(losses) > MAX_NAMED_LEVELS:
        losses.sort(key=lambda loss: loss.after - loss.before)
    severe = {loss.name: loss for loss in losses if loss.ratio < -_SEVERE}
    return _Losses({loss.name: loss for loss in losses}, severe, sum(loss.before - loss.after for loss in losses))


def _without(changes: Mapping[str, SeatChange], name: str) -> Mapping[str, SeatChange]:
    return {other: change for other, change in changes.items() if other != name} if name in changes else changes


def _described(changes: Mapping[str, SeatChange], but: str, form: str) -> list[str]:
    """The first changes of other levels in the given form, and the number of further ones."""
    some = [form.format(change) for change in islice(changes.values(), MAX_NAMED_LEVELS + 1) if change.name != but]
    del some[MAX_NAMED_LEVELS:]
    more = len(changes) - (but in changes) - len(some)
    return [*some, f"{more:,} more"] if more else some


def _stock_shares(effective: Effective) -> dict[str, int]:
    """Shares of the release's own levels, by name."""
    from apflint.evaluate.limits import get_shares  # only files with levels need it

    levels = builtin.workspace_objects(effective.release).priority_levels
    return {level.name: get_shares(level, effective.release) for level in levels}


def _stock_seats(effective: Effective) -> dict[str, int]:
    """Nominal limits of the release's own levels on a server with default flags and no other levels, by name."""
    from apflint.evaluate.limits import nominal_limit

    shares = _stock_shares(effective)
    return {name: nominal_limit(each, sum(shares.values()), SERVER_CONCURRENCY) for name, each in shares.items()}


def _redefined_levels(effective: Effective) -> Iterator[Problem]:
    """Compare the configuration with one in which the built-in levels have the shares of the release. One finding at most."""
    candidates = {level.name: level for level in effective.own_priority_levels if _is_built_in(effective, level)}
    if not candidates:
        return
    stock = _stock_shares(effective)
    shares = {level.name: level.shares for level in effective.limits.levels}
    redefined = [level for name, level in candidates.items() if shares.get(name, stock[name]) != stock[name]]
    changes = _notable_changes(effective, {level.name: stock[level.name] for level in redefined})
    if not changes:
        return
    described = [f"{change.name} {change.before} -> {change.after}" for change in changes]
    values = [f"{quote(level.name)} {shares[level.name]:,} instead of {stock[level.name]:,}" for level in redefined]
    what = "built-in level has other shares" if len(redefined) == 1 else "built-in levels have other shares"
    message = (
        f"{what} than in Kubernetes {effective.release.name}: {several(values, _MAX_NAMED_SHARES)}."
        f" Of {effective.assumptions.server_concurrency} seats, nominal limits change by more than a tenth:"
        f" {several(described, MAX_NAMED_LEVELS)}."
    )
    severe = [change.name for change in changes if change.ratio < -_SEVERE]
    if severe:
        message += f" {_severe_sentence(severe)}."
    first, *others = [Place(level.document, shares_path(level.document)) for level in redefined]
    related = tuple(Elsewhere(place, "other shares here, too") for place in others)
    message += " Restore the shares of the release if that is not intended"
    yield Problem(first, message, related=related, severity="warning" if severe else None)


def _is_built_in(effective: Effective, level: PriorityLevelConfiguration) -> bool:
    return level.name in builtin.names(effective.release, "PriorityLevelConfiguration")


def _notable_changes(effective: Effective, stock: Mapping[str, int]) -> list[SeatChange]:
    """Levels whose seats change by more than a tenth by redefining those in `stock`: these first, then by their loss."""
    from apflint.evaluate.limits import nominal_limit

    levels, total = effective.limits.levels, effective.assumptions.server_concurrency
    share_sum = sum(stock.get(level.name, level.shares) for level in levels)
    default = _stock_seats(effective) if total > SERVER_CONCURRENCY else {}
    changes: list[SeatChange] = []
    for level in levels:
        before = nominal_limit(stock.get(level.name, level.shares), share_sum, total)
        if level.nominal < before and level.name in default:
            before = max(level.nominal, min(before, default[level.name]))  # as in `_losses`
        change = SeatChange(level.name, before, level.nominal)
        if abs(change.ratio) > _NOTABLE:
            changes.append(change)
    return sorted(changes, key=lambda change: (change.name not in stock, change.ratio))
