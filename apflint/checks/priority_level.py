"""APF301 to APF304, APF310, APF312: the spec of a priority level (`ValidatePriorityLevelConfigurationSpec` and kin)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import forbidden, invalid, not_supported, required
from apflint.fix import Fix, Insert
from apflint.fixes.suggestions import correct_spelling, find_intended, remove_field, replace_value, set_field
from apflint.location import Place
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.wording import did_you_mean, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Problem
    from apflint.model import (
        ExemptPriorityLevelConfiguration,
        LimitedPriorityLevelConfiguration,
        PriorityLevelConfiguration,
    )
    from apflint.workspace import Workspace

_TYPES = ("Limited", "Exempt")
_RESPONSES = ("Queue", "Reject")


def exempt_level_mismatch(workspace: Workspace) -> Iterator[Problem]:
    """APF301."""
    for level in workspace.priority_levels:
        if (level.name == "exempt") == (level.spec.type == "Exempt"):
            continue
        place = Place(level.document, ("spec", "type"))
        if level.name == "exempt":
            yield invalid(
                place,
                f'priority level "exempt" has {f"type {quote(level.spec.type)}" if level.spec.type else "no type"}',
                help="use type Exempt, and remove limited",
            )
        else:
            yield invalid(
                place,
                f'type Exempt is allowed only for the priority level "exempt", not for {quote(level.name)}',
                help='use type Limited; to exempt requests, reference the priority level "exempt" in their FlowSchema',
                fix=_limited_instead(place, level),
            )


def _limited_instead(place: Place, level: PriorityLevelConfiguration) -> Fix | None:
    """Change the type of a level to Limited if it is Exempt, but has the limits of a Limited one."""
    if level.name == "exempt" or level.spec.type != "Exempt" or level.spec.limited is None:
        return None
    return replace_value(place.path, "Exempt", "Limited", safe=False)


def mismatched_level_type(workspace: Workspace) -> Iterator[Problem]:
    """APF302."""
    for level in workspace.priority_levels:
        spec, place = level.spec, Place(level.document, ("spec",))
        if spec.type not in _TYPES:
            yield not_supported(
                place / "type",
                f"unknown priority level type {quote(spec.type)}" if spec.type else "priority level has no type",
                help='use type Exempt, as required for "exempt"'
                if level.name == "exempt"
                else 'use type Limited; Exempt is allowed only for the priority level "exempt"',
                fix=_fix_type(place / "type", level),
            )
        elif spec.type == "Limited":
            if spec.exempt is not None:
                yield forbidden(
                    (place / "exempt").at_key(),
                    'field "exempt" is not allowed in a priority level of type Limited',
                    help='remove "exempt"',
                    fix=remove_field((*place.path, "exempt"), safe=False) if spec.limited is not None else None,
                )
            if spec.limited is None:
                yield required(
                    place / "limited",
                    'priority level of type Limited has no field "limited"',
                    help="add limited with shares and limitResponse",
                )
        elif spec.limited is not None:
            yield forbidden(
                (place / "limited").at_key(),
                'field "limited" is not allowed in a priority level of type Exempt',
                help='remove "limited"' if level.name == "exempt" else "change the type to Limited",
                fix=_limited_instead(place / "type", level) or remove_field((*place.path, "limited"), safe=False),
            )


def _fix_type(place: Place, level: PriorityLevelConfiguration) -> Fix | None:
    """Write the required type if its misspelling or the other fields confirm it."""
    spec, expected = level.spec, "Exempt" if level.name == "exempt" else "Limited"
    if spec.type:
        return correct_spelling(place.path, spec.type, _TYPES) if find_intended(spec.type, _TYPES) == expected else None
    if (spec.limited is None) != (expected == "Exempt"):
        return None
    return set_field(place.document, place.path, expected, f"write type: {expected}", safe=True)


def mismatched_limit_response(workspace: Workspace) -> Iterator[Problem]:
    """APF303."""
    for place, limited in _limited(workspace):
        response, place = limited.limit_response, place / "limitResponse"  # noqa: PLW2901
        if response.type not in _RESPONSES:
            fix = correct_spelling((*place.path, "type"), response.type, _RESPONSES)
            if not response.type and response.queuing is not None:
                fix = set_field(place.document, (*place.path, "type"), "Queue", "write type: Queue", safe=False)
            yield not_supported(
                place / "type",
                f"unknown limitResponse type {quote(response.type)}" if response.type else "limitResponse has no type",
                help=did_you_mean(response.type, _RESPONSES)
                or "use Queue to let requests wait for a seat, or Reject to answer 429 at once",
                fix=fix,
            )
        elif response.type == "Reject" and response.queuing is not None:
            yield forbidden(
                (place / "queuing").at_key(),
                'field "queuing" is not allowed in a limitResponse of type Reject',
                help="remove queuing, or change the type to Queue",
                fix=remove_field((*place.path, "queuing"), safe=True),
            )
        elif response.type == "Queue" and response.queuing is None:
            # One field creates the mapping, and 64 queues are the default (DefaultQueues).
            insertion = Insert((*place.path, "queuing", "queues"), 64)
            yield required(
                place / "queuing",
                'limitResponse of type Queue has no field "queuing"',
                help="add queuing; queuing: {} uses all defaults",
                fix=Fix("add queuing with 64 queues, the default", safe=False, operations=(insertion,)),
            )


def _limited(workspace: Workspace) -> Iterator[tuple[Place, LimitedPriorityLevelConfiguration]]:
    """Yield `spec.limited` of the levels in which the API server validates it."""
    for level in workspace.priority_levels:
        if level.spec.type == "Limited" and level.spec.limited is not None:
            yield Place(level.document, ("spec", "limited")), level.spec.limited


def _exempt(workspace: Workspace) -> Iterator[tuple[Place, ExemptPriorityLevelConfiguration]]:
    """Yield `spec.exempt` of the levels in which the API server validates it."""
    for level in workspace.priority_levels:
        if level.spec.type == "Exempt" and level.spec.exempt is not None:
            yield Place(level.document, ("spec", "exempt")), level.spec.exempt


def shares_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF304."""
    release = workspace.release
    minimum = 0 if release.allows_zero_shares else 1
    for place, limited in _limited(workspace):
        if limited.shares < minimum:
            name = shares_field(place.document.version)
            yield invalid(
                place / name,
                f"{name} {limited.shares} is less than {minimum}",
                notes=("A priority level may have 0 shares from Kubernetes 1.30 on.",) if limited.shares == 0 else (),
                help=f"set {name} to {minimum} or more; the default is 30",
            )
    for place, exempt in _exempt(workspace):
        if exempt.shares < 0:
            yield invalid(
                place / "nominalConcurrencyShares",
                f"nominalConcurrencyShares {exempt.shares} is less than 0",
                help="set nominalConcurrencyShares to 0 or more",
            )


def percent_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF310."""
    lendable = [(place, limited.lendable_percent) for place, limited in _limited(workspace)]
    lendable += ((place, exempt.lendable_percent) for place, exempt in _exempt(workspace))
    for place, percent in lendable:
        if not 0 <= percent <= 100:
            yield invalid(
                place / "lendablePercent",
                f"lendablePercent {percent} is not between 0 and 100",
                help="set lendablePercent to the percentage of its seats that the level lends",
            )
    for place, limited in _limited(workspace):
        if limited.borrowing_limit_percent is not None and limited.borrowing_limit_percent < 0:
            yield invalid(
                place / "borrowingLimitPercent",
                f"borrowingLimitPercent {limited.borrowing_limit_percent} is less than 0",
                help="set borrowingLimitPercent to 0 or more; remove it for no limit",
            )


def forbidden_annotation(workspace: Workspace) -> Iterator[Problem]:
    """APF312."""
    for level in workspace.priority_levels:
        version = level.document.version
        if PRESERVE_ZERO in level.metadata.annotations and workspace.release.forbids_preserve_zero_annotation(version):
            place = Place(level.document, ("metadata", "annotations", PRESERVE_ZERO))
            unneeded = ("In v1, 0 shares stay 0 without it.",) if version == "v1" else ()
            yield forbidden(
                place.at_key(),
                f"annotation {PRESERVE_ZERO} is not allowed in {version}",
                field="metadata.annotations",
                notes=("In v1beta3 the annotation keeps 0 shares from becoming 30.", *unneeded),
                help="remove the annotation",
                fix=remove_field(place.path, safe=False),
            )
