"""The results of a run: problems that checks yield, findings that the engine makes from problems, and the report."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.edit_operations import Fix
    from apflint.load.document import Document
    from apflint.load.source_text import Source
    from apflint.location import Location, Place, Span

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""All severities, from the highest to the lowest."""

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
    """Reason why the API server rejects an object: an entry of `Status.details.causes[]`."""

    reason: str
    """Reason such as `FieldValueInvalid`, or `BadRequest` if the server cannot decode the object."""
    field: str
    """Path that the API server reports. This path can differ from the path of the finding: for a label, the server
    reports `metadata.labels`."""


class Elsewhere(NamedTuple):
    """A place that is related to a problem, with a message about this place."""

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
    """The severity, or None for the severity of the rule."""
    covered: bool = False
    """Whether another problem of the rule already reports the mistake, so that only `fix` uses this problem."""
    involves: tuple[ObjectKey, ...] | None = None
    """Kind and name of other objects that cause the problem, including built-in objects. None if unknown."""
    notes: tuple[str, ...] = ()
    """Full sentences about what the API server does, and why this matters."""
    help: str | None = None
    """Advice in the imperative, without a final period."""
    example: str | None = None
    """A command that demonstrates the problem."""
    is_template: bool = False
    """Whether the place is in a template. The API server rejects the template only if no tool renders it first."""
    clusters: tuple[str, ...] = ()
    """Names of the clusters that have the problem, or () if the manifest belongs to no cluster of the settings."""

    @property
    def places(self) -> tuple[Location, ...]:
        """The place of the problem, and the related places."""
        return (self.place, *(other.place for other in self.related))


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
    """Return a problem that makes the API server reject the object, with the cause that the server reports.

    `field` is the path in the cause, by default the path of `place`.
    """
    return Problem(place, message, Cause(reason, field or place.field), related, fix, notes=notes, help=help)


# The strings are names of error types in `k8s.io/apimachinery/pkg/util/validation/field`.
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
    """A place that is related to a finding, with a message about this place."""

    file: str
    span: Span
    message: str


class Finding(NamedTuple):
    """A problem in a report, with rule, severity and position."""

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
    """The manifest of the object, or None if the finding is not about an object. The fields below are copied from the
    `Problem`."""
    covered: bool = False
    involves: tuple[ObjectKey, ...] | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    example: str | None = None
    is_template: bool = False
    clusters: tuple[str, ...] = ()
    more: int = 0
    """Minimum number of omitted findings: the report omits at least this many findings of the same rule and file."""

    @property
    def is_rejected(self) -> bool:
        """Whether the API server rejects the manifest. Settings that change the severity do not change the result."""
        return self.apiserver is not None and not self.is_template


class SkippedDocuments(NamedTuple):
    """Documents of a file that were not checked, and the reason."""

    file: str
    reason: str
    documents: int = 1


class Report(NamedTuple):
    """The result of a run."""

    kubernetes: str
    """The target release. If configurations have different target releases, all releases, such as `1.33, 1.36`. Empty
    if the release of a server is unknown."""
    findings: tuple[Finding, ...]
    files: int
    """Number of files that were read."""
    objects: int
    """Number of FlowSchemas and PriorityLevelConfigurations."""
    skipped: tuple[SkippedDocuments, ...]
    suppressed: int
    """Number of findings that comments and annotations suppress."""
    sources: Mapping[str, Source]
    """Maps the name of each file to the text of the file."""
    baselined: int = 0
    """Number of findings that the baseline contains."""
    clusters: tuple[tuple[str, str], ...] = ()
    """Name and release of each cluster of the settings that was analyzed."""
    files_with_objects: frozenset[str] = frozenset()
    """Names of the files that contain FlowSchemas or PriorityLevelConfigurations."""
    configuration: str = ""
    """Text that describes where the checked objects come from."""

    @property
    def counted_files(self) -> int:
        """Number of files in the summary: the files with APF objects, or all read files if no file has APF objects."""
        return len(self.files_with_objects) or self.files

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity, including findings that are only counted (`Finding.more`)."""
        return sum(1 + finding.more for finding in self.findings if finding.severity == severity)

    @property
    def left_out(self) -> int:
        """Minimum number of findings that the report does not contain because of `MAX_FINDINGS_PER_RULE`."""
        return sum(finding.more for finding in self.findings)
