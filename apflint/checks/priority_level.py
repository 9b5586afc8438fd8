"""APF301 to APF304, APF310 to APF312: the spec of a level (`ValidatePriorityLevelConfigurationSpec` and kin)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.comparison import differences
from apflint.finding import Cause, Problem
from apflint.fix import Fix, Insert
from apflint.fixes import suggestions
from apflint.location import Place, field_path
from apflint.model import PRESERVE_ZERO, shares_field
from apflint.wording import quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.location import Path
    from apflint.model import (
        LimitedPriorityLevelConfiguration,
        PriorityLevelConfiguration,
        PriorityLevelConfigurationSpec,
    )
    from apflint.workspace import Workspace

_TYPES = ("Limited", "Exempt")
_RESPONSES = ("Queue", "Reject")


_TYPE: Path = ("spec", "type")


def _problem(
    level: PriorityLevelConfiguration,
    path: Path,
    reason: str,
    message: str,
    *,
    key: bool = False,
    fix: Fix | None = None,
) -> Problem:
    return Problem(Place(level.document, path, key), message, Cause(f"FieldValue{reason}", field_path(path)), fix=fix)


def _due(level: PriorityLevelConfiguration) -> str:
    """The one type that a level of this name can have."""
    return "Exempt" if level.name == "exempt" else "Limited"


def exempt_level_mismatch(workspace: Workspace) -> Iterator[Problem]:
    """APF301."""
    for level in workspace.priority_levels:
        if (level.name == "exempt") != (level.spec.type == "Exempt"):
            if level.name == "exempt":
                said = f"is of type Exempt, not {quote(level.spec.type)}" if level.spec.type else "has no type"
                message = f'the level "exempt" {said}. Write `type: Exempt` and leave `limited` out'
            else:
                message = (
                    f'only the level "exempt" is of type Exempt, and {quote(level.name)} is not it. To exempt requests, let'
                    " their FlowSchema name the level exempt; here write Limited"
                )
            yield _problem(level, _TYPE, "Invalid", message, fix=_limited_instead(level))


def _limited_instead(level: PriorityLevelConfiguration) -> Fix | None:
    """Makes a level Limited that says its limits, and is Exempt by its type only."""
    if level.name == "exempt" or level.spec.type != "Exempt" or level.spec.limited is None:
        return None
    return suggestions.replace_value(_TYPE, "Exempt", "Limited", safe=False)


def mismatched_level_type(workspace: Workspace) -> Iterator[Problem]:
    """APF302."""
    for level in workspace.priority_levels:
        spec = level.spec
        if spec.type not in _TYPES:
            said = f"{quote(spec.type)} is no type of level" if spec.type else "the level has no type"
            due = _due(level)
            hint = "" if due == "Exempt" else ' (Exempt is only for the level "exempt")'
            message = f"{said}. Write `type: {due}`{hint}"
            yield _problem(level, _TYPE, "NotSupported", message, fix=_type_fix(level))
        elif spec.type == "Limited":
            if spec.exempt is not None:
                message = '"exempt" is not allowed in a priority level of type Limited. Remove it'
                fix = suggestions.remove_field(("spec", "exempt"), safe=False) if spec.limited is not None else None
                yield _problem(level, ("spec", "exempt"), "Forbidden", message, key=True, fix=fix)
            if spec.limited is None:
                message = "priority level of type Limited has no `limited`. Add `limited` with shares and limitResponse"
                yield _problem(level, ("spec", "limited"), "Required", message)
        elif spec.limited is not None:
            message = '"limited" is not allowed in a priority level of type Exempt. Remove it'
            if level.name != "exempt":
                message = '"limited" is not allowed in a priority level of type Exempt. Change the type to Limited'
            fix = _limited_instead(level) or suggestions.remove_field(("spec", "limited"), safe=False)
            yield _problem(level, ("spec", "limited"), "Forbidden", message, key=True, fix=fix)


def _type_fix(level: PriorityLevelConfiguration) -> Fix | None:
    """Writes the type that a level must have, where what is written, or what stands beside it, says the same."""
    spec, due = level.spec, _due(level)
    if spec.type:
        return (
            suggestions.correct_spelling(_TYPE, spec.type, _TYPES)
            if suggestions.find_intended(spec.type, _TYPES) == due
            else None
        )
    if (spec.limited is None) != (due == "Exempt"):
        return None
    return suggestions.set_field(level.document, _TYPE, due, f"write type: {due}", safe=True)


def mismatched_limit_response(workspace: Workspace) -> Iterator[Problem]:
    """APF303."""
    path: Path = ("spec", "limited", "limitResponse")
    for level in workspace.priority_levels:
        if (limited := _validated_limited(level.spec)) is None:
            continue
        response = limited.limit_response
        if response.type not in _RESPONSES:
            said = (
                f"{quote(response.type)} is no type of limitResponse" if response.type else "limitResponse has no type"
            )
            hint = suggest(response.type, _RESPONSES)
            message = f"{said}. Write Queue (requests wait) or Reject (429 at once).{hint}"
            fix = suggestions.correct_spelling((*path, "type"), response.type, _RESPONSES)
            if not response.type and response.queuing is not None:
                fix = suggestions.set_field(level.document, (*path, "type"), "Queue", "write type: Queue", safe=False)
            yield _problem(level, (*path, "type"), "NotSupported", message, fix=fix)
        elif response.type == "Reject" and response.queuing is not None:
            message = '"queuing" goes with type Queue; a level that rejects has no queues. Leave queuing out, or write `type: Queue`'
            fix = suggestions.remove_field((*path, "queuing"), safe=True)
            yield _problem(level, (*path, "queuing"), "Forbidden", message, key=True, fix=fix)
        elif response.type == "Queue" and response.queuing is None:
            message = "a level of type Queue has its queues under `queuing`, which is missing; `queuing: {}` takes all defaults"
            # One field of a mapping makes it; 64 is what the server takes for it anyway (DefaultQueues).
            queues = Insert((*path, "queuing", "queues"), 64)
            fix = Fix("add queuing with 64 queues, the default", safe=False, operations=(queues,))
            yield _problem(level, (*path, "queuing"), "Required", message, fix=fix)


def _validated_limited(spec: PriorityLevelConfigurationSpec) -> LimitedPriorityLevelConfiguration | None:
    """`spec.limited` where the server looks at it."""
    return spec.limited if spec.type == "Limited" else None


def shares_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF304."""
    least = 0 if workspace.release.allows_zero_shares else 1
    for level in workspace.priority_levels:
        limited = _validated_limited(level.spec)
        if limited is not None and limited.shares < least:
            path: Path = ("spec", "limited", shares_field(level.document.version))
            if limited.shares:
                message = f"{limited.shares} shares: a negative value is rejected. Use 0 or more, or omit the field for the default of 30"
            else:
                message = f"0 shares: Kubernetes {workspace.release.name} refuses a level without shares; from 1.30 on it may have none"
            yield _problem(level, path, "Invalid", message)
        exempt = level.spec.exempt if level.spec.type == "Exempt" else None
        if exempt is not None and exempt.shares < 0:
            path = ("spec", "exempt", "nominalConcurrencyShares")
            yield _problem(
                level, path, "Invalid", f"{exempt.shares} shares: a negative value is rejected. Use 0 or more"
            )


def percent_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF310."""
    for level in workspace.priority_levels:
        limited = _validated_limited(level.spec)
        exempt = level.spec.exempt if level.spec.type == "Exempt" else None
        for member, part in (("limited", limited), ("exempt", exempt)):
            if part is not None and not 0 <= part.lendable_percent <= 100:
                message = f"lendablePercent {part.lendable_percent} is not between 0 and 100. Use the percentage of its seats that the level lends"
                yield _problem(level, ("spec", member, "lendablePercent"), "Invalid", message)
        borrowing = limited.borrowing_limit_percent if limited is not None else None
        if borrowing is not None and borrowing < 0:
            message = f"borrowingLimitPercent {borrowing} is less than 0. Use 0 or more; without it the level may borrow all seats that others lend"
            yield _problem(level, ("spec", "limited", "borrowingLimitPercent"), "Invalid", message)


def mandatory_level_changed(workspace: Workspace) -> Iterator[Problem]:
    """APF311."""
    if not any(level.name in builtin.MANDATORY for level in workspace.priority_levels):
        return
    fixed = {level.name: level for level in builtin.workspace_objects(workspace.release).priority_levels}
    for level in workspace.priority_levels:
        if level.name not in builtin.MANDATORY:
            continue
        mine, theirs = level.spec, fixed[level.name].spec
        free = ""
        if level.name == "exempt":
            # Only what is inside spec.exempt may be tuned: ValidateIfMandatoryPriorityLevelConfigurationObject.
            mine, theirs = mine._replace(exempt=None), theirs._replace(exempt=None)
            free = " Only what is under `spec.exempt` may be tuned." if workspace.release.has_exempt_field else ""
        if mine != theirs:
            message = (
                f"the level {quote(level.name)} is fixed in every cluster, and this one differs in"
                f" {differences(mine, theirs, level.document.version)}.{free} Restore the spec, or remove the object: the server creates it on its own. Labels and annotations can be changed"
            )
            yield _problem(level, ("spec",), "Invalid", message, key=True)


def forbidden_annotation(workspace: Workspace) -> Iterator[Problem]:
    """APF312."""
    for level in workspace.priority_levels:
        version = level.document.version
        if PRESERVE_ZERO in level.metadata.annotations and workspace.release.forbids_preserve_zero_annotation(version):
            zero = "; in v1, 0 shares are 0" if version == "v1" else ""
            message = (
                f"the server refuses this annotation in {version}: it is for v1beta3 only, where it keeps 0 shares from becoming"
                f" 30. Leave it out{zero}"
            )
            yield Problem(
                Place(level.document, ("metadata", "annotations", PRESERVE_ZERO), key=True),
                message,
                Cause("FieldValueForbidden", "metadata.annotations"),
                fix=suggestions.remove_field(("metadata", "annotations", PRESERVE_ZERO), safe=False),
            )
