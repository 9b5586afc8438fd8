"""What checks say (Problem), what the engine makes of it (Finding), and the whole answer of a run (Report).

All are plain frozen values. A check knows the place of its problem as a field path; only the engine turns that into
lines and columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.load.document import Document
    from apflint.load.source import Source

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the worst to the mildest."""

Path = tuple[str | int, ...]
"""Field path inside an object: `("spec", "rules", 0, "subjects")`."""


TOLD = 1000
"""Findings of one rule in one file that are told one by one. Thousands are the same mistake, or made to exhaust somebody."""
LONGEST_NAME = 400
"""Characters of a name or a key that are shown; the longest key that a server takes has 317 (253, a slash, 63)."""


ObjectKey = tuple[str, str]
"""Kind and name of an object."""


def clipped(name: str) -> str:
    """A name as findings bear it: a huge one would be in each of them."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def field_path(path: Path) -> str:
    """Kubernetes' spelling of a path: `spec.rules[0].subjects`; a map's keys with dots and slashes as `labels[a.io/b]`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            step = clipped(step)  # noqa: PLW2901  # the step as it is shown
        if isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


class Cause(NamedTuple):
    """Why the API server rejects the object: an entry of `Status.details.causes[]`, or BadRequest when it cannot decode it."""

    reason: str
    """`FieldValueInvalid`, `FieldValueRequired`, `FieldValueForbidden`, `FieldValueNotSupported`, ..., `BadRequest`."""
    field: str
    """As the server spells it. Not always the path of the finding: `metadata.labels` for any one label."""


class Span(NamedTuple):
    """A piece of a file: 1-based lines, 1-based columns in code points, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Operation(NamedTuple):
    """One change of an object, at a field path of the object as it was before any change."""

    what: Literal["rename", "set", "insert", "remove", "nest", "wrap"]
    path: Path
    value: str | int | bool | tuple[str, ...] | None = None
    """`rename`: the new key. `set`: the text, number or truth to write. `insert`: the same, for a key that is not there; the
    mappings above it are made where they are missing. `remove`: nothing; of a mapping's entry or a list's item.
    `nest`: the keys beside `path` that move into a new mapping there. `wrap`: the key under which the value at `path` becomes
    the only entry of a mapping."""


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`. Offsets are in code points."""

    start: int
    end: int
    new: str


class Fix(NamedTuple):
    """How the finding can be mended: by operations on its object, or by edits of its text where it is about no object."""

    title: str
    """What is done, as an order: `rename to "queues"`."""
    safe: bool
    """Whether the object means the same to the server that accepts it, or is what was plainly meant."""
    operations: tuple[Operation, ...] = ()
    edits: tuple[Edit, ...] = ()


class Place(NamedTuple):
    """A place in a document, before the engine has worked out its line: the value at `path`, or its key."""

    document: Document
    path: Path
    key: bool = False
    """Point at the key, not at the value."""
    offsets: tuple[int, int] | None = None
    """Where the place is known already: for a key that is there twice the path alone does not tell which."""


def offsets_of(place: Place | tuple[Source, int, int]) -> tuple[Source, int, int]:
    """The text that a place is in, and where it starts and ends there."""
    if not isinstance(place, Place):
        return place
    start, end = place.offsets or place.document.offsets(place.path, key=place.key)
    return place.document.source, start, end


def source_of(place: Place | tuple[Source, int, int]) -> Source:
    """The text that a place is in. Costs nothing, where `offsets_of` may read a document again."""
    return place.document.source if isinstance(place, Place) else place[0]


class Elsewhere(NamedTuple):
    """Another place that a problem is about, and what to see there."""

    place: Place | tuple[Source, int, int]
    message: str


class Problem(NamedTuple):
    """What a check found: a message about a place. The engine adds rule, severity and line.

    `place` is a field of an object, or (for text that is no object) offsets into a source, in code points.
    """

    place: Place | tuple[Source, int, int]
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
    """How many of its kind in its file are left out of the report beside it, at least: the message says so, too."""

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
