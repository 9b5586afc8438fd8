"""Scaling of a load: factors for the number of requests that all clients, or single clients, send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

MIN_SCALE, MAX_SCALE = 0.001, 1_000_000
_MAX_SUGGESTED = 2_000
"""Maximum number of client names that are compared with an unknown name. A log may have many users."""


class Scaling(NamedTuple):
    """Factors by which the number of requests is multiplied."""

    general: float = 1.0
    """Factor of all clients that are not in `own`."""
    own: tuple[tuple[str, float], ...] = ()
    """Names of clients and their factors. A client with the factor 0 is left out."""

    @property
    def has_effect(self) -> bool:
        """Whether a factor differs from 1."""
        return self != NEUTRAL

    def find_factor(self, *names: str) -> float:
        """Return the factor by which the number of requests of a client is multiplied.

        `names` are all names of the client, the most specific one first. The function uses the first name
        that has its own factor in `own`. If no name has one, it returns `general`.
        """
        factors = dict(self.own)
        return next((factors[name] for name in names if name in factors), self.general)

    def set_factor(self, name: str, factor: float) -> Scaling:
        """Return a copy in which a client has this factor."""
        return self._replace(own=(*(item for item in self.own if item[0] != name), (name, factor)))

    def check_names(self, known: Collection[str]) -> None:
        """Raise UserError if this object has a factor for a client that is not in `known`."""
        for name, factor in self.own:
            check_name("--scale" if factor else "--without", name, known)


NEUTRAL = Scaling()
"""The scaling that changes no client."""


def check_name(option: str, name: str, known: Collection[str], what: str = "client") -> None:
    """Raise UserError, with a suggestion, if `name` is not in `known`, which contains the names in the load.

    The message names `option`, the option that contains the name. `what` is the noun for the name, such as `client`.
    """
    if name not in known:
        compared = known if len(known) <= _MAX_SUGGESTED else ()
        raise UserError(f"{option}: the load has no {what} {quote(name)}.{suggest(name, sorted(compared))}".rstrip("."))


def parse_scaling(scales: Iterable[str], left_out: Sequence[str]) -> Scaling:
    """Parse the values of `--scale`, such as `2`, `150%` or `ci=2`, and of `--without`, which are names of clients.

    Raises UserError for values that are not a factor, and for a client with two factors.
    """
    general: float | None = None
    own: dict[str, float] = {}
    for text in scales:
        name, is_own, number = text.rpartition("=")
        factor = _parse_factor(text, number)
        if is_own:
            _add(own, name, factor)
        elif general is None:
            general = factor
        else:
            raise UserError("--scale: the factor of all clients is given twice")
    for name in left_out:
        _add(own, name, 0.0)
    return Scaling(1.0 if general is None else general, tuple(own.items()))


def _add(own: dict[str, float], name: str, factor: float) -> None:
    if not name:
        raise UserError("--scale: the name of the client before = is empty")
    if name in own:
        raise UserError(f"--scale and --without: the client {quote(name)} is given twice")
    own[name] = factor


def _parse_factor(text: str, number: str) -> float:
    digits = number.strip()
    try:
        factor = float(digits.removesuffix("%")) / (100 if digits.endswith("%") else 1)
    except ValueError:
        raise UserError(f"--scale: {quote(text)} is not FACTOR or CLIENT=FACTOR, such as 2, 150% or ci=2") from None
    if not MIN_SCALE <= factor <= MAX_SCALE:
        advice = "; to leave out a client, use --without" if factor == 0 else ""
        raise UserError(f"--scale: {factor:g} is not a number from {MIN_SCALE} to {MAX_SCALE:,}{advice}")
    return factor
