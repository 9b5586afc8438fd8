"""Finds the APF objects in a text, and problems: syntax errors, templates, misspelled kinds and API groups."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from apflint.budgets import MAX_FILE_CONTENT, MAX_KEPT_TREES
from apflint.load.document import GROUP, KINDS, LISTS, Document
from apflint.load.kubernetes_decoding import decode_document
from apflint.load.prefilter import Prefilter, find_kind, find_other_kind, has_content, mentions_apf
from apflint.load.scalars import shorten
from apflint.load.templates import find_placeholder, is_patch, recognize_template
from apflint.load.tree import ParseError
from apflint.location import TextRange
from apflint.named_tuple import NamedTuple
from apflint.spelling import find_similar, measure_similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.load.kubernetes_decoding import Decoded, Duplicate
    from apflint.load.source_text import Source
    from apflint.load.templates import Template
    from apflint.load.tree import Node, ParsedDocument
    from apflint.location import Path

    ParseTree = Callable[[str, int, int], Node | None]
    _DecodingProblems = defaultdict[Path, tuple[list[Duplicate], list[Path]]]
    ProblemKind = Literal["syntax", "unsafe", "template", "not-apf"]

# MAX_FILE_CONTENT limits the number of line ends, commas and colons in a file. Each document counts as
# `_DOCUMENT_COST` of these characters, and each problem as `_PROBLEM_COST`.
_DOCUMENT_COST = 100
_PROBLEM_COST = 100
_MAX_OTHER_KINDS = 200  # objects of further kinds are counted as one kind

_NO_OBJECT = "no Kubernetes object"
_DELETE_ANNOTATION = "release.openshift.io/delete"
_DELETING_MANIFESTS = f"manifests that only delete an object: {_DELETE_ANNOTATION}"


class LoadProblem(NamedTuple):
    """Text that cannot be parsed as a manifest, or an object that resembles an APF object but is not one."""

    kind: ProblemKind
    place: TextRange
    message: str
    help: str | None
    is_rejected: bool
    """Whether the API server rejects the text, because the server cannot decode it."""
    correction: tuple[str, str] | None = None
    """(kind or apiVersion in the text, value that was probably intended) for `not-apf`, or None if unknown."""


class _FileTooLargeError(Exception):
    """Raised if a text exceeds `MAX_FILE_CONTENT`. The code that raises this error first reports the problem."""


class ObjectFinder:
    """Collects the APF objects of a text and the problems that are found in the text.

    Counts all other documents by their kind, such as `Deployment`.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.documents: list[Document] = []
        self.problems: list[LoadProblem] = []
        self.others: Counter[str] = Counter()
        self._has_template = False
        self._content_left: int = MAX_FILE_CONTENT
        self._documents_read = 0
        self._kept_trees_left: int = MAX_KEPT_TREES
        self._prefilter = Prefilter(source.text)

    def is_wanted(self, start: int, end: int, value: object = None) -> bool:
        """Return whether the document in `text[start:end]` may contain an APF object.

        If the document contains no APF object, count the document by its kind. To decide this, apflint
        searches the text, which is 50 times as fast as parsing. Most documents in the output of
        `helm template` are not APF objects. `value` is the decoded document, or None if the caller has not
        decoded it. Raises _FileTooLargeError, which `collect` catches.
        """
        if self._prefilter.may_contain_apf(start, end):
            self._spend(start, end)
            return True
        text = self.source.text
        if value is not None:
            self._count_value(value)
        elif kind := find_kind(text, start, end):
            self._count_object(kind)
        elif has_content(text, start, end):
            self.others[_NO_OBJECT] += 1
        return False

    def collect(self, documents: Iterable[ParsedDocument], parse_tree: ParseTree) -> None:
        """Collect the objects and problems of documents. Never raises an exception.

        `parse_tree(text, start, end)` parses a document again, if the position of a value is needed.
        """
        with suppress(_FileTooLargeError):
            for document in documents:
                try:
                    decoded = decode_document(document)
                except ParseError as error:
                    self._add_unreadable(document, error)
                else:
                    self._collect_document(document, decoded, parse_tree)

    def add_template(self, template: Template) -> None:
        """Report that the file is a template. Only the first template of a file is reported."""
        if not self._has_template:
            self._has_template = True
            message = f"this is {template.what}"
            self._add_problem("template", template.start, template.end, message, template.help)

    def _spend(self, start: int, end: int) -> None:
        """Subtract the cost of a document from the budget of the file.

        If the budget is exhausted, report a problem and raise _FileTooLargeError.
        """
        left = self._content_left - _DOCUMENT_COST - self._measure(start, end)
        if left <= 0 and self._documents_read:
            self._add_too_large(start, start + 1, self._documents_read)
        self._content_left = left
        self._documents_read += 1

    def _add_too_large(self, start: int, end: int, documents: int) -> None:
        message = f"this file is too large: apflint checks only its first {documents:,} documents"
        self._add_problem("unsafe", start, end, message, "split the file", is_rejected=False)
        raise _FileTooLargeError

    def _measure(self, start: int, end: int) -> int:
        """Estimate the number of YAML nodes in `text[start:end]`, as the number of line ends, commas and colons."""
        text = self.source.text
        return text.count("\n", start, end) + text.count(",", start, end) + text.count(":", start, end)

    def _count_value(self, value: Any) -> None:
        """Count the objects in the value of a YAML document that contains no FlowSchema and no priority level.

        The items of a `List` are counted separately. For such documents, this function is faster than
        `_collect_value`.
        """
        if value.__class__ is not dict:
            if value is not None:
                self.others[_NO_OBJECT] += 1
            return
        api_version, kind = value.get("apiVersion") or "", value.get("kind")
        if api_version.__class__ is not str or kind.__class__ is not str or not kind:
            self.others[_NO_OBJECT] += 1
        elif kind == "List" and api_version == "v1" and isinstance(value.get("items"), list):
            for item in value["items"]:
                self._count_value(item)
        else:
            self._count_object(kind)

    def _count_object(self, kind: str, suffix: str = "") -> None:
        """Count an object that is not an APF object.

        After `_MAX_OTHER_KINDS` kinds, the objects of all further kinds are counted together.
        """
        what = f"{shorten(kind)} objects{suffix}"
        if what not in self.others and len(self.others) >= _MAX_OTHER_KINDS:
            what = "other objects"
        self.others[what] += 1

    def _collect_document(self, document: ParsedDocument, decoded: Decoded, parse_tree: ParseTree) -> None:
        root = document.root
        if root is not None and (size := self._measure(document.start, document.end)) <= self._kept_trees_left:
            self._kept_trees_left -= size
        else:
            root = None
        whole = _DecodedDocument(decoded, self.source.text, document.start, document.end, root, parse_tree)
        self._collect_value(whole, decoded.value, ())

    def _add_unreadable(self, document: ParsedDocument, error: ParseError) -> None:
        """Report a document that cannot be parsed. If the document is certainly not an APF object, only count it."""
        text = self.source.text
        if not mentions_apf(text, document.start, document.end):
            self.others["unreadable, but without objects of API Priority and Fairness"] += 1
        elif kind := find_other_kind(text, document.start, document.end):
            self._count_object(kind)
        elif error.limit:
            is_rejected = error.limit == "server"
            self._add_problem("unsafe", error.start, error.end, str(error), error.help, is_rejected=is_rejected)
        elif template := recognize_template(text, document.start, document.end):
            self.add_template(template)
        else:
            self._add_problem("syntax", error.start, error.end, str(error), error.help)

    def _add_problem(
        self,
        kind: ProblemKind,
        start: int,
        end: int,
        message: str,
        help_: str | None = None,
        *,
        is_rejected: bool = True,
        correction: tuple[str, str] | None = None,
    ) -> None:
        self._content_left -= _PROBLEM_COST
        length = len(self.source.text)
        start = min(start, length)
        place = TextRange(self.source, start, min(max(end, start), length))
        self.problems.append(LoadProblem(kind, place, message, help_, is_rejected, correction))

    def _collect_value(
        self, whole: _DecodedDocument, value: Any, path: Path, inherited: tuple[str, str] = ("", "")
    ) -> None:
        """Collect the objects in the decoded value at `path`.

        `inherited` is the default apiVersion and kind for an item of a list such as FlowSchemaList, or two empty
        strings for other values.
        """
        if not isinstance(value, dict):
            if value is not None:
                self.others[_NO_OBJECT] += 1
            return
        api_version, kind = value.get("apiVersion") or inherited[0], value.get("kind") or inherited[1]
        if not isinstance(api_version, str) or not isinstance(kind, str) or not kind:
            self.others[_NO_OBJECT] += 1
            return
        group = api_version.rpartition("/")[0]
        items = value.get("items")
        if isinstance(items, list) and ((group == GROUP and kind in LISTS) or (api_version, kind) == ("v1", "List")):
            of_items = (api_version, LISTS[kind]) if kind in LISTS else ("", "")
            for number, item in enumerate(items):
                self._content_left -= _DOCUMENT_COST
                if self._content_left <= 0 and number:
                    self._add_too_large(*whole.offsets(self.source, (*path, "items", number), "kind"), number)
                self._collect_value(whole, item, (*path, "items", number), of_items)
            return

        def report(problem: ProblemKind, field: str, message: str, help_: str | None, correction: Any = None) -> None:
            start, end = whole.offsets(self.source, path, field)
            self._add_problem(problem, start, end, message, help_, is_rejected=False, correction=correction)

        if group == GROUP and kind in LISTS:
            if items is not None:
                report("not-apf", "items", f"the items of a {kind} must be a list", None)
        elif kind in KINDS and (placeholder := find_placeholder(api_version)):
            message = f"apiVersion is the placeholder `{shorten(placeholder)}`"
            report("template", "apiVersion", message, "replace the placeholder: envsubst < FILE | apflint check -")
        elif kind in KINDS and group == GROUP and is_patch(value):
            message = f"this is a patch for a {kind}"
            report("template", "kind", message, "check the result: apflint check -k DIR")
        elif kind in KINDS and group == GROUP and _only_deletes(value):
            self.others[_DELETING_MANIFESTS] += 1
        elif kind in KINDS and group == GROUP:
            self.documents.append(whole.document(self.source, value, path, api_version, kind))
        elif near_miss := _find_near_miss(group, api_version, kind, kind in KINDS and _has_apf_spec(kind, value)):
            report("not-apf", *near_miss)
        else:
            self._count_object(kind, f" of {shorten(group)}" if kind in KINDS and group else "")


def _only_deletes(value: dict[str, Any]) -> bool:
    """Return whether a manifest only instructs OpenShift's cluster-version operator to delete an object.

    The operator never sends such a manifest to the server, even if it has a spec. Source: "Use Manifest Annotation For
    Object Removal" (openshift/enhancements, enhancements/cvo/object-removal-manifest-annotation.md).
    """
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get(_DELETE_ANNOTATION) == "true"


class _DecodedDocument:
    """A decoded YAML or JSON document, which may be a list of many objects.

    All objects of a document share one tree.
    """

    __slots__ = (
        *("_duplicates", "_end", "_not_finite", "_parse_tree", "_problems_by_depth", "_root", "_start", "_text"),
    )

    def __init__(
        self, decoded: Decoded, text: str, start: int, end: int, root: Node | None, parse_tree: ParseTree
    ) -> None:
        # Store two fields instead of `decoded`, because keeping one more object for every document would take memory.
        self._duplicates = decoded.duplicates
        self._not_finite = decoded.not_finite
        self._text = text
        self._start = start
        self._end = end
        self._root = root
        self._parse_tree = parse_tree
        # None until the first use, because few documents have problems.
        self._problems_by_depth: dict[int, _DecodingProblems] | None = None

    def document(self, source: Source, value: dict[str, Any], path: Path, api_version: str, kind: str) -> Document:
        """Return the Document for the object at `path`, whose decoded value is `value`."""
        problems: tuple[tuple[Duplicate, ...], tuple[Path, ...]] = (), ()
        if self._duplicates or self._not_finite:
            duplicates, not_finite = self._problems_at_depth(len(path)).get(path, ((), ()))
            problems = tuple(duplicates), tuple(not_finite)
        return Document(source, value, self, path, api_version, kind, *problems, self._start)

    def offsets(self, source: Source, path: Path, field: str) -> tuple[int, int]:
        """Return the start and end offsets of the value of `field` in the object at `path`."""
        return Document(source, {}, self, path, kind=KINDS[0]).offsets((field,))

    def __call__(self) -> Node | None:
        """Return the tree of the document.

        Each `Document` stores this callable object as `parse_tree`, because a separate closure for each document would
        take more memory.
        """
        if self._root is None:
            self._root = self._parse_tree(self._text, self._start, self._end)
        return self._root

    def _problems_at_depth(self, depth: int) -> _DecodingProblems:
        """Return duplicate keys and infinite numbers, grouped by the first `depth` steps of their paths.

        The keys of the result are these first steps. The paths in the groups consist of the remaining steps.
        """
        if self._problems_by_depth is None:
            self._problems_by_depth = {}
        if depth not in self._problems_by_depth:
            groups = self._problems_by_depth[depth] = defaultdict(lambda: ([], []))
            for duplicate in self._duplicates:
                groups[duplicate.path[:depth]][0].append(duplicate._replace(path=duplicate.path[depth:]))
            for path in self._not_finite:
                groups[path[:depth]][1].append(path[depth:])
        return self._problems_by_depth[depth]


# APF005: objects whose group or kind resembles the API group or a kind of APF.

_VERSION = re.compile(r"v1((alpha|beta)\d)?")
_FLOW_SCHEMA_FIELDS = frozenset(("matchingPrecedence", "priorityLevelConfiguration", "distinguisherMethod"))
_LEVEL_TYPES = ("Limited", "Exempt")
_MIN_GROUP_SIMILARITY = 0.8


def _has_apf_spec(kind: str, value: Mapping[str, object]) -> bool:
    """Return whether the spec of an object of this kind has fields that only APF objects have."""
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return False
    if kind == "FlowSchema":
        return not _FLOW_SCHEMA_FIELDS.isdisjoint(spec)
    return isinstance(spec.get("limited"), dict) or spec.get("type") in _LEVEL_TYPES


@lru_cache(1_000)  # a file may have thousands of objects with the same mistake
def _find_near_miss(
    group: str,
    api_version: str,
    kind: str,
    has_apf_spec: bool,
) -> tuple[str, str, str, tuple[str, str] | None] | None:
    """Return (field, message, help, correction) for an object that resembles an APF object, but is not one.

    `correction` is (old string, new string), or None if the correction is not certain. Return None for other objects.
    """
    if group == GROUP:
        similar = find_similar(kind, (*KINDS, *LISTS))
        help_ = f"did you mean {similar[0]}?" if similar else f"use {KINDS[0]} or {KINDS[1]}"
        correction = (kind, similar[0]) if similar and similar[0] in KINDS else None
        return "kind", f"the group {GROUP} has no kind `{shorten(kind)}`", help_, correction
    if kind not in KINDS:
        return None
    if not api_version:
        return "kind", f"this {kind} has no apiVersion, and kubectl rejects it", f"add apiVersion: {GROUP}/v1", None
    version = api_version.rpartition("/")[2]
    if _resembles_group(group, api_version):
        message = f"apiVersion `{shorten(api_version)}` does not exist: {kind} belongs to the group {GROUP}"
        intended = f"{GROUP}/{version}" if "/" in api_version or version != GROUP else f"{GROUP}/v1"
    elif has_apf_spec:
        message = f"the spec belongs to the group {GROUP}, but apiVersion is `{shorten(api_version)}`"
        intended = f"{GROUP}/{version if _VERSION.fullmatch(version) else 'v1'}"
    else:
        return None
    return "apiVersion", message, f"did you mean apiVersion: {shorten(intended)}?", (api_version, intended)


def _resembles_group(group: str, api_version: str) -> bool:
    """Return whether `group` is probably a misspelling of the API group of APF.

    Return False for groups of other projects that have kinds with the names of APF kinds.
    """
    if group.startswith("flowcontrol") or api_version == GROUP:
        return True
    if not group:
        return _VERSION.fullmatch(api_version) is not None
    return len(group) <= 2 * len(GROUP) and measure_similarity(group, GROUP) > _MIN_GROUP_SIMILARITY
