"""Computes for `apflint limits --want` which shares give priority levels the wanted number of seats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.shares import MAX_SHARES, find_joint_shares, find_smallest_shares
from apflint.model import shares_field
from apflint.named_tuple import NamedTuple
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import Limits
    from apflint.model import PriorityLevelConfiguration

_WANTED = re.compile(r"([^=]+)=([0-9]{1,10})", re.ASCII)


class ShareChange(NamedTuple):
    """The change of the shares of a priority level that gives the level the wanted nominal seats."""

    level: PriorityLevelConfiguration
    seats: int
    """Wanted nominal seats of one API server."""
    before: int
    """Shares of the level in the configuration."""
    after: int
    """Shares that the level needs: `before` or more."""
    smallest: int
    """The smallest shares that give the wanted seats if the shares of all other levels stay the same."""

    @property
    def field(self) -> str:
        """Return the name of the field that contains the shares, in the API version of the manifest."""
        return shares_field(self.level.document.version)


class WantedSeats(NamedTuple):
    """The changes of shares, and the limits of all priority levels before and after the changes."""

    changes: tuple[ShareChange, ...]
    before: Limits
    after: Limits


def parse_wanted(texts: Iterable[str]) -> dict[str, int]:
    """Parse texts of the form `LEVEL=SEATS`. Return a mapping from names of levels to numbers of seats.

    Raises UserError if a text does not have this form, or if a level occurs twice.
    """
    wanted: dict[str, int] = {}
    for text in texts:
        match = _WANTED.fullmatch(text)
        if match is None:
            raise UserError(f"--want: {quote(text)} is not LEVEL=SEATS, as in workload-low=300")
        if match[1] in wanted:
            raise UserError(f"--want: the priority level {quote(match[1])} is named twice")
        wanted[match[1]] = int(match[2])
    return wanted


def find_wanted_seats(effective: Effective, wanted: Mapping[str, int]) -> WantedSeats:
    """Compute the smallest shares that give each level in `wanted` at least the wanted nominal seats.

    Raises UserError if a level is unknown, if its shares cannot be changed, or if no shares give the wanted seats.
    """
    levels, limits = effective.configuration.levels, effective.limits
    for name in wanted:
        _require_changeable(name, levels)
    total, all_shares = limits.server_concurrency, sum(level.shares for level in limits.levels)
    current = {level.name: level.shares for level in limits.levels if level.name in wanted}
    after = find_joint_shares(wanted, current, all_shares - sum(current.values()), total)
    if after is None:
        named = join_words((f"{pluralize(seats, 'seat')} of {quote(name)}" for name, seats in wanted.items()), "and")
        raise UserError(
            f"--want: no number of shares up to {MAX_SHARES:,} is enough for {named}. An API server has {pluralize(total, 'seat')} for all levels"
        )
    changes = tuple(
        ShareChange(
            levels[name],
            seats,
            current[name],
            after[name],
            smallest if (smallest := find_smallest_shares(seats, all_shares - current[name], total)) is not None else 0,
        )
        for name, seats in wanted.items()
    )
    changed = [_set_shares(level, after.get(name)) for name, level in levels.items()]
    return WantedSeats(
        changes, limits, compute_limits(changed, effective.configuration.order, total, effective.release)
    )


def find_level_shares(effective: Effective, name: str, seats: int) -> ShareChange | None:
    """Return the smallest shares that give a level at least `seats` nominal seats, or None if no shares can."""
    try:
        return find_wanted_seats(effective, {name: seats}).changes[0]
    except UserError:
        return None


def _require_changeable(name: str, levels: Mapping[str, PriorityLevelConfiguration]) -> None:
    if name not in levels:
        raise UserError(f"--want: there is no priority level {quote(name)}.{suggest(name, levels)}".rstrip("."))
    if levels[name].spec.limited is None:
        raise UserError(f"--want: requests of the exempt priority level {quote(name)} need no seats")
    if name in builtin.MANDATORY:
        raise UserError(
            f"--want: the shares of the mandatory priority level {quote(name)} cannot be changed: the API server restores"
            " them"
        )


def _set_shares(level: PriorityLevelConfiguration, shares: int | None) -> PriorityLevelConfiguration:
    limited = level.spec.limited
    if shares is None or limited is None:
        return level
    return level._replace(spec=level.spec._replace(limited=limited._replace(shares=shares)))
