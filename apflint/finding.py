"""What checks say (Problem), what the engine makes of it (Finding), and the whole answer of a run (Report).

All are plain frozen values. A check knows the place of its problem as a field path; only the engine turns that into
lines and columns.
"""

from __future__ import annotations

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
"""From the worst to the mildest."""

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
    """Another place that a problem is about, and what to see there."""

    place: Location
    message: str


class Problem(NamedTuple):
    """What a check found: a message about a place. The engine adds rule, severity and line.

    `place` is a field of an object, or (for text that is no object) offsets into a source, in code points.
    """

    place: Location
    message: str
    apiserver: Cause | None = None
    related: tuple[Elsewhere, ...] = ()
    fix: Fix | None = None
    severity: Severity | None = None
    """Where it differs from the severity on the rule's page."""
    covered: bool = False
    """Whether another problem of the rule reports this one, too. It is left out then unless all are to be fixed."""
    involves: tuple[ObjectKey, ...] | None = None
    """The other objects that this one is about, built-in ones included; None if they are not known."""
    notes: tuple[str, ...] = ()
    """What the API server does and why it matters, in full sentences."""
    help: str | None = None
    """What to do, in the imperative, without a final period."""
    example: str | None = None
    """A command that shows it."""


def reject(
    place: Place,
    reason: Reason,
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


class ObjectRef(NamedTuple):
    """Which object a finding is about."""

    api_version: str
    kind: str
    name: str


class Related(NamedTuple):
    """Another place that a finding is about, with what to see there."""

    file: str
    span: Span
    message: str


class Finding(NamedTuple):
    """One finding as reporters print it."""

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
    """The object's manifest; None where the finding is about text that is no object."""
    covered: bool = False
    """`Problem.covered`."""
    involves: tuple[ObjectKey, ...] | None = None
    """`Problem.involves`."""
    notes: tuple[str, ...] = ()
    """`Problem.notes`."""
    help: str | None = None
    """`Problem.help`."""
    example: str | None = None
    """`Problem.example`."""
    more: int = 0
    """Minimum number of further findings of the rule in the file, which are not reported one by one."""

    @property
    def rejected(self) -> bool:
        """Whether the API server rejects the object, however severe the settings take that to be.

        A template (APF003) is no mistake, though a server could not read it as it stands.
        """
        return self.apiserver is not None and self.rule != "APF003"


class Skipped(NamedTuple):
    """Something that was not checked, and why: so many documents of it in `file`."""

    file: str
    reason: str
    documents: int = 1


class Report(NamedTuple):
    """The answer of one run. `sources` gives reporters the text to quote, by file name."""

    kubernetes: str
    findings: tuple[Finding, ...]
    files: int
    """Files that were read."""
    objects: int
    """FlowSchemas and PriorityLevelConfigurations that were seen."""
    skipped: tuple[Skipped, ...]
    suppressed: int
    """Findings that comments and annotations suppress."""
    sources: Mapping[str, Source]
    baselined: int = 0
    """Findings that a baseline has."""

    def count(self, severity: Severity) -> int:
        """How many findings have this severity, with those that are left out."""
        return sum(1 + finding.more for finding in self.findings if finding.severity == severity)

    @property
    def left_out(self) -> int:
        """How many findings are left out, at least: a file has so many of one rule that nobody would read them all."""
        return sum(finding.more for finding in self.findings)
