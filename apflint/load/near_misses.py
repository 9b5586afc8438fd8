"""Objects whose group or kind is nearly ours (APF005)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from apflint.load.document import GROUP, KINDS, LISTS
from apflint.load.scalars import shown
from apflint.wording import find_similar, measure_similarity

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = re.compile(r"v1((alpha|beta)\d)?")


class NearMiss(NamedTuple):
    """The field that is nearly ours, and what is to be said of it."""

    field: str
    message: str
    """Sentences about the field."""
    correction: tuple[str, str] | None = None
    """What is in it, and what was probably meant instead."""


_FLOW_SCHEMA_FIELDS = frozenset(("matchingPrecedence", "priorityLevelConfiguration", "distinguisherMethod"))
_LEVEL_TYPES = ("Limited", "Exempt")


def has_apf_spec(kind: str, value: Mapping[str, object]) -> bool:
    """Whether the spec of an object of this kind has fields that only API Priority and Fairness has."""
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return False
    if kind == KINDS[0]:
        return not _FLOW_SCHEMA_FIELDS.isdisjoint(spec)
    return isinstance(spec.get("limited"), dict) or spec.get("type") in _LEVEL_TYPES


@lru_cache(1_000)  # of thousands in a file most are alike
def near_miss(group: str, api_version: str, kind: str, *, apf_spec: bool = False) -> NearMiss | None:
    """What is nearly ours in group or kind; None for everybody else's objects (APF005).

    `apf_spec` is the answer of `has_apf_spec`: in whatever group, such an object was meant for API Priority and Fairness.
    """
    if group == GROUP:
        close = find_similar(kind, (*KINDS, *LISTS))
        hint = f"did you mean {close[0]}?" if close else f"its kinds are {KINDS[0]} and {KINDS[1]}."
        message = f"kind `{shown(kind)}`: the group {GROUP} has no such kind; {hint}"
        return NearMiss("kind", message, (kind, close[0]) if close and close[0] in KINDS else None)
    if kind in KINDS and not api_version:
        message = f"this {kind} has no apiVersion, so kubectl refuses it. Write `apiVersion: {GROUP}/v1`."
        return NearMiss("kind", message)
    if kind in KINDS and _resembles(group, api_version):
        message = f"{kind} is in the group {GROUP}, as in `{GROUP}/v1`. No API server knows this one."
        _, slash, version = api_version.rpartition("/")
        meant = f"{GROUP}/{version}" if slash or (not group and version != GROUP) else f"{GROUP}/v1"
        return NearMiss("apiVersion", f"apiVersion `{shown(api_version)}`: {message}", (api_version, meant))
    if kind in KINDS and apf_spec:
        version = api_version.rpartition("/")[2]
        meant = f"{GROUP}/{version if _VERSION.fullmatch(version) else 'v1'}"
        message = (
            f"apiVersion `{shown(api_version)}`: this spec is that of a {kind} in the group {GROUP}. API Priority and"
            f" Fairness ignores objects of other groups. Write `apiVersion: {meant}`."
        )
        return NearMiss("apiVersion", message, (api_version, meant))
    return None


def _resembles(group: str, api_version: str) -> bool:
    """Whether somebody meant our group, rather than one of his own that has a kind of the same name."""
    if group.startswith("flowcontrol") or api_version == GROUP:
        return True
    if not group:
        return _VERSION.fullmatch(api_version) is not None
    if len(group) > 2 * len(GROUP):
        return False
    return measure_similarity(group, GROUP) > 0.8
