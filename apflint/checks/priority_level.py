"""APF301 to APF310, APF312: the spec of a priority level.

Sources: `ValidatePriorityLevelConfigurationSpec` in pkg/apis/flowcontrol/validation/validation.go of kubernetes/kubernetes, and from
1.37 on also the rules beginning with `+k8s:` in staging/src/k8s.io/api/flowcontrol/v1/types.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks.capacity import CRITICAL_LEVELS, MAX_LENDABLE_PERCENT
from apflint.checks.queuing_values import choose_queuing, find_built_in_queuing, fix_queuing, suggest_queuing
from apflint.edit_operations import Fix, Insert
from apflint.evaluate.shuffle_sharding import (
    MAX_ENTROPY_BITS,
    MAX_QUEUES,
    largest_deck,
    largest_hand,
    required_entropy_bits,
)
from apflint.finding import forbidden, invalid, not_supported, required
from apflint.fixes.field_fixes import correct_spelling, remove_field, replace_value, set_field
from apflint.location import Place
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.spelling import did_you_mean, find_intended
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.finding import Problem
    from apflint.model import ExemptPriorityLevelConfiguration, LimitResponse, PriorityLevelConfiguration
    from apflint.releases import Release
    from apflint.workspace import Workspace

_TYPES = ("Limited", "Exempt")
_RESPONSES = ("Queue", "Reject")
_DEFAULT_QUEUES = 64
"""The server's default number of queues (`PriorityLevelConfigurationDefaultQueues`)."""


def exempt_level_mismatch(workspace: Workspace) -> Iterator[Problem]:
    """APF301: report the level `exempt` if its type is not Exempt, and any other level of type Exempt."""
    for level in workspace.priority_levels:
        place, type_ = Place(level.document, ("spec", "type")), level.spec.type
        if level.name == "exempt" and type_ != "Exempt":
            yield invalid(
                place,
                f'priority level "exempt" has {f"type {quote(type_)}" if type_ else "no type"}',
                help="use type Exempt, and remove limited",
            )
        elif level.name != "exempt" and type_ == "Exempt":
            yield invalid(
                place,
                f'type Exempt is allowed only for the priority level "exempt", not for {quote(level.name)}',
                help='use type Limited, or reference the priority level "exempt" in the FlowSchema to exempt requests',
                fix=_limited_instead(place, level),
            )


def _limited_instead(place: Place, level: PriorityLevelConfiguration) -> Fix | None:
    """Return a fix that changes the type of a level from Exempt to Limited.

    Return None if the level is `exempt`, has another type, or has no field `limited`.
    """
    if level.name == "exempt" or level.spec.type != "Exempt" or level.spec.limited is None:
        return None
    return replace_value(place.path, "Exempt", "Limited", safe=False)


def mismatched_level_type(workspace: Workspace) -> Iterator[Problem]:
    """APF302: report priority levels whose fields do not fit their type."""
    for level in workspace.priority_levels:
        spec, place, is_exempt = level.spec, Place(level.document, ("spec",)), level.name == "exempt"
        if spec.type not in _TYPES:
            yield from _invalid_level_type(workspace.release, level)
        elif spec.type == "Limited":
            if spec.exempt is not None:
                fix = remove_field((*place.path, "exempt"), safe=False) if spec.limited is not None else None
                message = 'field "exempt" is not allowed in a priority level of type Limited'
                yield forbidden((place / "exempt").at_key(), message, help='remove "exempt"', fix=fix)
            if spec.limited is None:
                message = 'priority level of type Limited requires the field "limited"'
                suggestion = f"add limited with {shares_field(level.document.version)} and limitResponse"
                yield required(place / "limited", message, help=suggestion)
        elif spec.limited is not None:
            yield forbidden(
                (place / "limited").at_key(),
                'field "limited" is not allowed in a priority level of type Exempt',
                help='remove "limited"' if is_exempt else "change the type to Limited",
                fix=_limited_instead(place / "type", level) or remove_field((*place.path, "limited"), safe=False),
            )


def _invalid_level_type(release: Release, level: PriorityLevelConfiguration) -> Iterator[Problem]:
    """Yield the problems of a priority level without a type, or with an unknown type."""
    spec, place, is_exempt = level.spec, Place(level.document, ("spec",)), level.name == "exempt"
    expected = "Exempt" if is_exempt else "Limited"
    notes = () if is_exempt else ('Type Exempt is allowed only for the priority level "exempt".',)
    if spec.limited is not None:
        part = "the numbers in limited" if release.checks_fields_of_invalid_types else "limited"
        notes = (*notes, f"The API server checks {part} only if the priority level has a valid type.")
    yield _reject_type(release, spec.type)(
        place / "type",
        f"unknown priority level type {quote(spec.type)}" if spec.type else "priority level has no type",
        notes=notes,
        help='use type Exempt, as required for "exempt"' if is_exempt else "use type Limited",
        fix=_fix_type(place / "type", level),
    )
    fields = (("limited", "Limited", spec.limited), ("exempt", "Exempt", spec.exempt))
    for name, type_, value in fields if release.checks_fields_of_invalid_types else ():
        if value is not None:
            yield forbidden(
                (place / name).at_key(),
                f"field {quote(name)} is allowed only in a priority level of type {type_}",
                help=f"use type {type_}" if type_ == expected else f"remove {quote(name)}",
            )


def _reject_type(release: Release, type_: str) -> Callable[..., Problem]:
    """Return the function that makes the problem for `type_`, a missing or unknown type of a priority level.

    The function makes a `FieldValueRequired` problem if the type is missing and the API server of
    `release` reports a missing type as required. Otherwise, it makes a `FieldValueNotSupported`
    problem.
    """
    return required if not type_ and release.reports_missing_types_as_required else not_supported


def _fix_type(place: Place, level: PriorityLevelConfiguration) -> Fix | None:
    """Return a fix that writes the intended type.

    Return None if the type is neither a misspelling of a valid type nor evident from the other fields of the spec.
    """
    spec, expected = level.spec, "Exempt" if level.name == "exempt" else "Limited"
    if spec.type:
        return correct_spelling(place.path, spec.type, _TYPES) if find_intended(spec.type, _TYPES) == expected else None
    if (spec.limited is None) != (expected == "Exempt"):
        return None
    return set_field(place.document, place.path, expected, f"write type: {expected}", safe=True)


def mismatched_limit_response(workspace: Workspace) -> Iterator[Problem]:
    """APF303: report a limitResponse whose fields do not fit its type."""
    for limited_place, limited in workspace.limited():
        response, place = limited.limit_response, limited_place / "limitResponse"
        if response.type not in _RESPONSES:
            yield _invalid_response_type(workspace.release, place, response)
        yield from _mismatched_queuing(workspace.release, place, response)
    if workspace.release.checks_fields_of_invalid_types:
        yield from _responses_of_other_levels(workspace)


def _responses_of_other_levels(workspace: Workspace) -> Iterator[Problem]:
    """Yield the problems of limitResponses in levels whose type is not Limited.

    An unknown type of a limitResponse is not reported, because the API server does not report such a type in these
    levels.
    """
    for level in workspace.priority_levels:
        if level.spec.type != "Limited" and level.spec.limited is not None:
            response = level.spec.limited.limit_response
            place = Place(level.document, ("spec", "limited", "limitResponse"))
            if not response.type:
                yield _invalid_response_type(workspace.release, place, response)
            yield from _mismatched_queuing(workspace.release, place, response)


def _invalid_response_type(release: Release, place: Place, response: LimitResponse) -> Problem:
    """Return the problem of a limitResponse without a type, or with an unknown type."""
    fix = correct_spelling((*place.path, "type"), response.type, _RESPONSES)
    if not response.type and response.queuing is not None:
        fix = set_field(place.document, (*place.path, "type"), "Queue", "write type: Queue", safe=False)
    part = "the numbers in queuing" if release.checks_fields_of_invalid_types else "queuing"
    return _reject_type(release, response.type)(
        place / "type",
        f"unknown limitResponse type {quote(response.type)}" if response.type else "limitResponse has no type",
        notes=()
        if response.queuing is None
        else (f"The API server checks {part} only if limitResponse has a valid type.",),
        help=did_you_mean(response.type, _RESPONSES)
        or "use Queue to let requests wait for a seat, or Reject to answer 429 immediately",
        fix=fix,
    )


def _mismatched_queuing(release: Release, place: Place, response: LimitResponse) -> Iterator[Problem]:
    """Yield the problem of a limitResponse that lacks a required `queuing`, or has a forbidden `queuing`."""
    if response.type == "Reject" and response.queuing is not None:
        yield forbidden(
            (place / "queuing").at_key(),
            'field "queuing" is not allowed in a limitResponse of type Reject',
            help="remove queuing, or change the type to Queue",
            fix=remove_field((*place.path, "queuing"), safe=True),
        )
    elif response.type == "Queue" and response.queuing is None:
        # Inserting `queuing.queues` also creates the missing mapping `queuing`.
        built_in = find_built_in_queuing(release, place)
        queues = max(_DEFAULT_QUEUES, built_in.queues if built_in else 0)  # with fewer queues, APF608 reports the level
        origin = "the default" if queues == _DEFAULT_QUEUES else "as the built-in priority level"
        insertion = Insert((*place.path, "queuing", "queues"), queues)
        yield required(
            place / "queuing",
            'limitResponse of type Queue requires the field "queuing"',
            help="add queuing; queuing: {} uses all defaults",
            fix=Fix(f"add queuing with {queues} queues, {origin}", safe=False, operations=(insertion,)),
        )
    elif response.type not in _RESPONSES and response.queuing is not None and release.checks_fields_of_invalid_types:
        yield forbidden(
            (place / "queuing").at_key(),
            'field "queuing" is allowed only in a limitResponse of type Queue',
            help="use type Queue, or remove queuing",
        )


def _exempt(workspace: Workspace) -> Iterator[tuple[Place, ExemptPriorityLevelConfiguration]]:
    """Yield the place and the value of `spec.exempt` of levels of type Exempt. The server ignores the field in other levels."""
    for level in workspace.priority_levels:
        if level.spec.type == "Exempt" and level.spec.exempt is not None:
            yield Place(level.document, ("spec", "exempt")), level.spec.exempt


def _reject_outside(
    place: Place,
    value: int,
    minimum: int,
    maximum: int | None = None,
    *,
    suggestion: str,
    notes: tuple[str, ...] = (),
    fix: Fix | None = None,
) -> Iterator[Problem]:
    """Yield a problem for a number that is less than `minimum` or greater than `maximum`."""
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"less than {minimum}" if maximum is None else f"not between {minimum} and {maximum:,}"
        yield invalid(place, f"{place.path[-1]} {value:,} is {bounds}", notes=notes, help=suggestion, fix=fix)


def shares_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF304: report a number of shares below the minimum."""
    minimum = 0 if workspace.release.allows_zero_shares else 1
    for place, limited in workspace.limited():
        name = shares_field(place.document.version)
        suggestion = f"set {name} to {minimum} or more; the default is 30"
        notes = () if limited.shares else ("A priority level may have 0 shares from Kubernetes 1.30 on.",)
        yield from _reject_outside(place / name, limited.shares, minimum, suggestion=suggestion, notes=notes)
    for place, exempt in _exempt(workspace):
        shares = place / "nominalConcurrencyShares"
        yield from _reject_outside(shares, exempt.shares, 0, suggestion="set nominalConcurrencyShares to 0 or more")


def percent_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF310: report values of lendablePercent and borrowingLimitPercent that are out of range."""
    lendable = [(place, limited.lendable_percent) for place, limited in workspace.limited()]
    lendable += ((place, exempt.lendable_percent) for place, exempt in _exempt(workspace))
    for place, percent in lendable:
        suggestion = "set lendablePercent to a value from 0 to 100"
        is_critical = place.document.name in CRITICAL_LEVELS  # APF604 limits critical levels to MAX_LENDABLE_PERCENT
        nearest = min(max(percent, 0), MAX_LENDABLE_PERCENT if is_critical else 100)
        share = {0: "none", 100: "all"}.get(nearest, "half")
        title = f"set lendablePercent to {nearest}, so that other levels can borrow {share} of its seats"
        fix = set_field(place.document, (*place.path, "lendablePercent"), nearest, title, safe=False)
        yield from _reject_outside(place / "lendablePercent", percent, 0, 100, suggestion=suggestion, fix=fix)
    for place, limited in workspace.limited():
        suggestion = "set borrowingLimitPercent to 0 or more, or remove the field for no limit"
        percent = limited.borrowing_limit_percent or 0
        yield from _reject_outside(place / "borrowingLimitPercent", percent, 0, suggestion=suggestion)


def hand_larger_than_deck(workspace: Workspace) -> Iterator[Problem]:
    """APF305: report a handSize greater than the number of queues."""
    for place, queuing in workspace.queuing():
        if queuing.hand_size > 0 and queuing.hand_size > queuing.queues:
            maximum = largest_hand(queuing.queues)
            limit = (
                f"With {queuing.queues} queues, handSize can be at most {maximum},"
                f" because the API server accepts at most {MAX_ENTROPY_BITS} bits of entropy."
            )
            values = choose_queuing(workspace.release, place, queuing)
            more = ", or increase queues" if values == (queuing.queues, 1) else ""
            yield invalid(
                place / "handSize",
                f"{_with_default(place / 'handSize', queuing.hand_size)} is greater than"
                f" {_with_default(place / 'queues', queuing.queues)}",
                notes=(limit,) if 0 < maximum < queuing.queues else (),
                help=f"{suggest_queuing(queuing, values)}{more}" if values else "set queues to 1 or more",
                fix=fix_queuing(place, queuing, values),
            )


def _with_default(place: Place, value: int) -> str:
    """Return the name and value of the field at `place`, such as `queues 64`.

    If the manifest does not contain the field, mark the value as the default: `queues 64 (default)`.
    """
    default = "" if place.document.at(*place.path) else " (default)"
    return f"{place.path[-1]} {value:,}{default}"


def shuffle_entropy_too_high(workspace: Workspace) -> Iterator[Problem]:
    """APF306: report queues and handSize that need more than 60 bits of entropy."""
    for place, queuing in workspace.queuing():
        queues, hand_size = queuing.queues, queuing.hand_size
        if queues < 1 or not 0 < hand_size <= queues:
            continue
        bits = required_entropy_bits(queues, hand_size)
        if bits > MAX_ENTROPY_BITS:
            values, maximum_queues = choose_queuing(workspace.release, place, queuing), largest_deck(hand_size)
            fits = [suggest_queuing(queuing, values)] if values else []
            fits += [f"{'' if fits else 'set '}queues to {maximum_queues:,} or less"] if maximum_queues else []
            yield invalid(
                place / "handSize",
                f"{_with_default(place / 'handSize', hand_size)} with {_with_default(place / 'queues', queues)} requires {bits} bits of"
                f" entropy, more than the maximum of {MAX_ENTROPY_BITS}",
                notes=(
                    f"The API server accepts at most {MAX_ENTROPY_BITS} bits, because it chooses the queues of a flow by a 64-bit hash.",
                ),
                help=", or ".join(fits),
                fix=fix_queuing(place, queuing, values),
            )


def queue_count_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF307: report a number of queues that is below 1 or above the maximum."""
    for place, queuing in workspace.queuing():
        suggestion = f"set queues to {MAX_QUEUES:,} or less"
        if queuing.queues < 1:
            suggestion = (
                "set queues to 1 or more, or set the type of limitResponse to Reject for a level without queues"
            )
        yield from _reject_outside(place / "queues", queuing.queues, 1, MAX_QUEUES, suggestion=suggestion)


def queue_length_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF308: report a queueLengthLimit below 1."""
    for place, queuing in workspace.queuing():
        suggestion = "set queueLengthLimit to 1 or more; the default is 50"
        yield from _reject_outside(place / "queueLengthLimit", queuing.queue_length_limit, 1, suggestion=suggestion)


def hand_size_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF309: report a handSize below 1."""
    for place, queuing in workspace.queuing():
        values = choose_queuing(workspace.release, place, queuing)
        suggestion = suggest_queuing(queuing, values) if values else "set handSize to 1 or more; the default is 8"
        fix = fix_queuing(place, queuing, values)
        yield from _reject_outside(place / "handSize", queuing.hand_size, 1, suggestion=suggestion, fix=fix)


def forbidden_annotation(workspace: Workspace) -> Iterator[Problem]:
    """APF312: report the annotation that keeps 0 shares in v1beta3, in API versions that do not allow this annotation."""
    for level in workspace.priority_levels:
        version = level.document.version
        if PRESERVE_ZERO in level.metadata.annotations and workspace.release.forbids_preserve_zero_annotation(version):
            place = Place(level.document, ("metadata", "annotations", PRESERVE_ZERO))
            unneeded = ("v1 keeps 0 shares without an annotation.",) if version == "v1" else ()
            yield forbidden(
                place.at_key(),
                f"annotation {PRESERVE_ZERO} is not allowed in {version}",
                field="metadata.annotations",
                notes=(
                    f"In v1beta3, the API server sets 0 shares to 30 unless the annotation {PRESERVE_ZERO} is present.",
                    *unneeded,
                ),
                help="remove the annotation",
                fix=remove_field(place.path, safe=False),
            )
