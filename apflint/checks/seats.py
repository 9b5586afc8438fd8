"""APF603: seats that new and redefined priority levels take from the others. Figures are for one API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.effective import once
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.load.document import Document

MAX_NAMED_LEVELS = 12
"""Maximum number of levels that a finding names."""
_MAX_NAMED_SHARES = 3
"""Maximum number of redefined levels whose shares a finding states."""
_NEGLIGIBLE = 0.01
"""Part of all seats up to which a new level is not reported."""
_NOTABLE = 0.1
"""Part of its seats by which a level must change for a redefinition to be reported."""
_SEVERE = 0.25
"""Part of its seats by which a level must shrink for the severity `warning`."""


class SeatChange(NamedTuple):
    """The nominal limit of a level before and after a change of the configuration, in seats."""

    name: str
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """Change as a part of the seats before; negative for a loss. Only the level `exempt` can have had no seats."""
        return (self.after - self.before) / self.before if self.before else 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


def seats_taken(effective: Effective) -> Iterator[Problem]:
    """APF603."""
    yield from _new_levels(effective)
    yield from _redefined_levels(effective)


def shares_place(document: Document) -> Place:
    """Return the place of the shares of a level, by their name in its API version, or of `limited` if they are absent."""
    owner = "limited" if document.has("spec", "limited") else "exempt"
    names = ("nominalConcurrencyShares", "assuredConcurrencyShares")
    present = [name for name in names if document.has("spec", owner, name)]
    return Place(document, ("spec", owner, *present[:1]))


def _new_levels(effective: Effective) -> Iterator[Problem]:
    """Compare the configuration with and without each new level."""
    total = effective.assumptions.server_concurrency
    known = builtin.names(effective.release, "PriorityLevelConfiguration")
    known |= {manifest.document.name for manifest in effective.workspace.context}
    limits = {level.name: level for level in effective.limits.levels}
    losses_by_shares: dict[int, list[SeatChange]] = {}
    for level in effective.own_priority_levels:
        new = limits.get(level.name)
        if new is None or level.spec.limited is None or not level.name or level.name in known:
            continue
        if new.nominal > _NEGLIGIBLE * total:
            if new.shares not in losses_by_shares:
                losses_by_shares[new.shares] = _find_losses(effective, new.shares)
            losses = [loss for loss in losses_by_shares[new.shares] if loss.name != level.name]
            if any(loss.ratio < -_NEGLIGIBLE for loss in losses):
                yield _new_level(Place(level.document, ("metadata", "name")), new, losses, total)


def _new_level(place: Place, new: LevelLimits, losses: list[SeatChange], total: int) -> Problem:
    if len(losses) > MAX_NAMED_LEVELS:
        losses.sort(key=lambda loss: loss.after - loss.before)
    severe = [loss.name for loss in losses if loss.ratio < -_SEVERE]
    changes = join_some([*map(str, losses)], MAX_NAMED_LEVELS + 1)
    message = f"new priority level takes {new.nominal} of {total} seats"
    if total > SERVER_CONCURRENCY:
        message += " from built-in levels"
        notes = [f"They get fewer seats than on a default server ({SERVER_CONCURRENCY} seats): {changes}."]
    else:
        lost = sum(loss.before - loss.after for loss in losses)
        message += f", and the others lose {lost}"
        notes = [f"Seats before and after: {changes}."]
        if lost != new.nominal:
            notes.append("The sums differ because every limit is rounded up.")
    return Problem(
        place,
        message,
        severity="warning" if severe else None,
        notes=(*notes, *_note_severe(severe)),
        help="if this is not intended, lower its shares, or use a built-in priority level",
    )


def _note_severe(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    verb, its = ("loses", "its") if len(names) == 1 else ("lose", "their")
    return (f"{join_some(names, MAX_NAMED_LEVELS + 1)} {verb} more than a quarter of {its} seats.",)


def _find_losses(effective: Effective, shares: int) -> list[SeatChange]:
    """Return what a new level with these shares takes from all levels, including itself as if it were another one.

    More seats than on a default server were probably added for new levels. So a built-in level there loses only the seats
    that it has less than on a default server.
    """
    from apflint.evaluate.limits import nominal_limit

    levels, total = effective.limits.levels, effective.assumptions.server_concurrency
    share_sum = sum(level.shares for level in levels) - shares
    default = _default_seats(effective) if total > SERVER_CONCURRENCY else None
    losses: list[SeatChange] = []
    for level in levels:
        before = nominal_limit(level.shares, share_sum, total)
        if default is not None:
            before = min(before, default.get(level.name, 0))
        if level.nominal < before:
            losses.append(SeatChange(level.name, before, level.nominal))
    return losses


@once
def _default_shares(effective: Effective) -> dict[str, int]:
    """Return the shares of the built-in levels of the release, by name."""
    from apflint.evaluate.limits import get_shares

    levels = builtin.workspace_objects(effective.release).priority_levels
    return {level.name: get_shares(level, effective.release) for level in levels}


@once
def _default_seats(effective: Effective) -> dict[str, int]:
    """Return the nominal limits of the built-in levels on a default server with no other levels, by name."""
    from apflint.evaluate.limits import nominal_limit

    shares = _default_shares(effective)
    share_sum = sum(shares.values())
    return {name: nominal_limit(own, share_sum, SERVER_CONCURRENCY) for name, own in shares.items()}


def _redefined_levels(effective: Effective) -> Iterator[Problem]:
    """Compare the configuration with one in which the built-in levels have the shares of the release. At most one problem."""
    built_in = builtin.names(effective.release, "PriorityLevelConfiguration")
    candidates = {level.name: level for level in effective.own_priority_levels if level.name in built_in}
    if not candidates:
        return
    default = _default_shares(effective)
    shares = {level.name: level.shares for level in effective.limits.levels}
    redefined = [level for name, level in candidates.items() if shares.get(name, default[name]) != default[name]]
    changes = _notable_changes(effective, {level.name for level in redefined})
    if not changes:
        return
    values = [
        f"{quote(level.name)} has {shares[level.name]:,} shares instead of {default[level.name]:,}"
        for level in redefined
    ]
    severe, total = (
        [change.name for change in changes if change.ratio < -_SEVERE],
        effective.assumptions.server_concurrency,
    )
    first, *others = [shares_place(level.document) for level in redefined]
    yield Problem(
        first,
        values[0]
        if len(values) == 1
        else f"{len(values)} built-in priority levels have other shares than in the release",
        related=tuple(Elsewhere(place, "other shares here, too") for place in others),
        severity="warning" if severe else None,
        notes=(
            *(() if len(values) == 1 else (f"{join_some(values, _MAX_NAMED_SHARES)}.",)),
            f"Of {total} seats, nominal limits change by more than a tenth: {join_some([*map(str, changes)], MAX_NAMED_LEVELS)}.",
            *_note_severe(severe),
        ),
        help=f"if this is not intended, restore the shares of Kubernetes {effective.release.name}",
    )


def _notable_changes(effective: Effective, redefined: Container[str]) -> list[SeatChange]:
    """Return the levels whose seats a redefinition changes by more than a tenth: redefined ones first, then by their loss."""
    from apflint.evaluate.limits import nominal_limit

    default = _default_shares(effective)
    levels, total = effective.limits.levels, effective.assumptions.server_concurrency
    shares = {level.name: default[level.name] if level.name in redefined else level.shares for level in levels}
    share_sum = sum(shares.values())
    default_seats = _default_seats(effective) if total > SERVER_CONCURRENCY else {}
    changes: list[SeatChange] = []
    for level in levels:
        before = nominal_limit(shares[level.name], share_sum, total)
        if level.nominal < before and level.name in default_seats:
            before = max(level.nominal, min(before, default_seats[level.name]))  # as in `_find_losses`
        change = SeatChange(level.name, before, level.nominal)
        if abs(change.ratio) > _NOTABLE:
            changes.append(change)
    return sorted(changes, key=lambda change: (change.name not in redefined, change.ratio))
