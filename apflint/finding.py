"""The results of a run: problems from checks, the findings that the engine makes of them, and the report of all findings.

All are immutable values.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.fix import Fix
    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.location import Location, Place, Span

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the highest to the lowest."""

ObjectKey = tuple[str, str]
"""Kind and name of an object."""


Reason = Literal[
    "FieldValueInvalid",
    "FieldValueRequired",
    "FieldValueForbidden",
    "FieldValueNotSupported",
    "FieldValueTooLong",
    "BadRequest",
]


class Cause(NamedTuple):
    """Why the API server rejects the object: an entry of `Status.details.causes[]`."""

    reason: str
    """`BadRequest` if the server cannot decode the object."""
    field: str
    """Path that the server reports. It can differ from the path of the finding: `metadata.labels` for every label."""


class Elsewhere(NamedTuple):
    """A related place of a problem, and what is there."""

    place: Location
    message: str


class Problem(NamedTuple):
    """A mistake that a check found at a place. The engine adds the rule, the severity and the position."""

    place: Location
    message: str
    apiserver: Cause | None = None
    related: tuple[Elsewhere, ...] = ()
    fix: Fix | None = None
    severity: Severity | None = None
    """The severity, if it differs from that of the rule."""
    covered: bool = False
    """Whether another problem of the rule covers this one, so that only `fix` needs it."""
    involves: tuple[ObjectKey, ...] | None = None
    """The other objects involved, including built-in ones, or None if they are unknown."""
    notes: tuple[str, ...] = ()
    """What the API server does and why it matters, in full sentences."""
    help: str | None = None
    """What to do, in the imperative, without a final period."""
    example: str | None = None
    """A command that demonstrates the problem."""
    is_template: bool = False
    """Whether the place is in a template that a tool renders. The API server rejects it only as it is."""


def reject(
    reason: Reason,
    place: Place,
    message: str,
    *,
    field: str | None = None,
    notes: tuple[str, ...] = (),
    help: str | None = None,  # noqa: A002  # as the field is called
    fix: Fix | None = None,
    related: tuple[Elsewhere, ...] = (),
) -> Problem:
    """Return a problem for which the API server rejects the object, with the cause that it reports.

    `field` is the path in that cause, if it is not the path of `place`.
    """
    return Problem(place, message, Cause(reason, field or place.field), related, fix, notes=notes, help=help)


# The names are those of `k8s.io/apimachinery/pkg/util/validation/field`.
invalid = partial(reject, "FieldValueInvalid")
required = partial(reject, "FieldValueRequired")
forbidden = partial(reject, "FieldValueForbidden")
not_supported = partial(reject, "FieldValueNotSupported")
too_long = partial(reject, "FieldValueTooLong")
bad_request = partial(reject, "BadRequest")


class ObjectRef(NamedTuple):
    """The object of a finding."""

    api_version: str
    kind: str
    name: str


class Related(NamedTuple):
    """A related place of a finding, and what is there."""

    file: str
    span: Span
    message: str


class Finding(NamedTuple):
    """A problem as it is reported."""

    rule: str
    name: str
    severity: Severity
    message: str
    file: str
    span: Span
    object: ObjectRef | None
    field: str
    apiserver: Cause | None
    related: tuple[Related, ...]
    fix: Fix | None
    url: str
    document: Document | None = None
    """The manifest of the object, or None if the finding is not about an object. The fields below are those of `Problem`."""
    covered: bool = False
    involves: tuple[ObjectKey, ...] | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    example: str | None = None
    is_template: bool = False
    more: int = 0
    """Minimum number of further findings of the rule in the file, which are not reported one by one."""

    @property
    def is_rejected(self) -> bool:
        """Whether the API server rejects the manifest, whatever severity the settings give the rule."""
        return self.apiserver is not None and not self.is_template


class Skipped(NamedTuple):
    """Documents of a file that were not checked, and the reason."""

    file: str
    reason: str
    documents: int = 1


class Report(NamedTuple):
    """The result of a run."""

    kubernetes: str
    findings: tuple[Finding, ...]
    files: int
    """Number of files that were read."""
    objects: int
    """Number of FlowSchemas and PriorityLevelConfigurations."""
    skipped: tuple[Skipped, ...]
    suppressed: int
    """Number of findings that comments and annotations suppress."""
    sources: Mapping[str, Source]
    """The contents of each file, by its name."""
    baselined: int = 0
    """Number of findings that the baseline contains."""
    files_with_objects: frozenset[str] = frozenset()
    """Names of the files that contain FlowSchemas or PriorityLevelConfigurations."""

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity, including those that are left out."""
        return sum(1 + finding.more for finding in self.findings if finding.severity == severity)

    @property
    def left_out(self) -> int:
        """Minimum number of findings that are left out because of `MAX_FINDINGS_PER_RULE`."""
        return sum(finding.more for finding in self.findings)
