"""Which objects of ours a text holds, and what in it could not be read: documents, lists, templates, near misses."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint.load import templates
from apflint.load.decode import Decoded, DecodeError, decode
from apflint.load.document import GROUP, KINDS, LISTS, Document
from apflint.load.near_misses import has_apf_spec, near_miss
from apflint.load.prefilter import Signs, kind_at_the_margin, kind_of_others, says_something, words_of_ours
from apflint.load.scalars import shown
from apflint.load.yaml import YamlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.load.decode import Duplicate
    from apflint.load.source import Source
    from apflint.load.tree import Node
    from apflint.load.yaml import YamlDocument
    from apflint.location import Path

FILE = 2_000_000
"""How much is read of one file, in line ends, commas and colons of the documents that may be ours: 10,000 FlowSchemas."""
_EACH = 100  # what a document costs besides: tens of thousands of tiny ones, each with mistakes, take longer than a few large ones
_TROUBLE = 100  # and one that cannot be read, or in which a place is looked up, so that it is read twice
_KEPT = 500_000
"""Of how much text, measured like FILE, the trees are kept that were made to read it: to point at places they are read again else."""
_KINDS = 200
_KUSTOMIZE = "and was not checked. Check what it makes: kustomize build DIR | apflint check -"
_ENVSUBST = "a placeholder, and this was not checked. Fill it in first: envsubst < FILE | apflint check -"

_DELETE = "release.openshift.io/delete"
_TOMBSTONES = f"manifests that only delete an object: {_DELETE}"

What = Literal["syntax", "unsafe", "template", "not-ours"]


class Trouble(NamedTuple):
    """Text that could not be read as a manifest, or is not one of ours though it looks like it."""

    what: What
    source: Source
    start: int
    end: int
    message: str
    rejected: bool
    """Whether the API server cannot decode it either."""
    correction: tuple[str, str] | None = None
    """Of a text that is not ours: what is in it, and what was probably meant instead."""


class _EnoughError(Exception):
    """As much of a file was read as is read of one."""


class Objects:
    """What one text holds: `documents` are ours, `troubles` could not be read, `others` counts the rest by what it is."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.documents: list[Document] = []
        self.troubles: list[Trouble] = []
        self.others: Counter[str] = Counter()
        self._templated = False
        self._left = FILE
        self._read = 0
        self._kept = _KEPT
        self._signs = Signs(source.text)
        self._reasons: dict[str, str] = {}

    def worth_reading(self, start: int, end: int, value: object = None) -> bool:
        """Whether a document may hold an object of ours, from its mere text; if not it is counted by its kind.

        Most of what `helm template` prints is other people's, and this is fifty times as fast as parsing it. `value` is
        the document's where it is known already. `read` stops where this says that it has been enough.
        """
        if self._signs.within(start, end):
            self._afford(start, end)
            return True
        text = self.source.text
        if value is not None:
            self._count(value)
        elif kind := kind_at_the_margin(text, start, end):
            self._other(kind)
        elif says_something(text, start, end):
            self.others["no Kubernetes object"] += 1
        return False

    def _afford(self, start: int, end: int) -> None:
        """Takes a document from what is read of one file. Raises _EnoughError, once that is told, where too little is left."""
        left = self._left - _EACH - self._size(start, end)
        if left <= 0 and self._read:
            self._trouble("unsafe", start, start + 1, self._enough(self._read), rejected=False)
            raise _EnoughError
        self._left = left
        self._read += 1

    @staticmethod
    def _enough(read: int) -> str:
        return (
            f"this file has more in it than apflint reads of one file: from here on, after {read:,} documents, what"
            " it has of API Priority and Fairness was not read. Split it"
        )

    def _count(self, value: Any) -> None:
        """Counts a value without a sign of ours in its text: quicker than to look for an object of ours in it."""
        if value.__class__ is not dict:
            if value is not None:
                self.others["no Kubernetes object"] += 1
            return
        api_version, kind = value.get("apiVersion") or "", value.get("kind")
        if api_version.__class__ is not str or kind.__class__ is not str or not kind:
            self.others["no Kubernetes object"] += 1
        elif kind == "List" and api_version == "v1" and isinstance(value.get("items"), list):
            for item in value["items"]:
                self._count(item)
        else:
            self._other(kind)

    def _size(self, start: int, end: int) -> int:
        """How much there is to read in a piece of the text: its line ends, commas and colons."""
        text = self.source.text
        return text.count("\n", start, end) + text.count(",", start, end) + text.count(":", start, end)

    def _other(self, kind: str, of: str = "") -> None:
        """Counts somebody else's object; of hundreds of kinds the last ones together."""
        reason = self._reasons.get(kind + of)
        if reason is None:
            reason = f"{shown(kind)} objects{of}"
            if reason not in self.others and len(self.others) >= _KINDS:
                reason = "other objects"
            else:
                self._reasons[kind + of] = reason
        self.others[reason] += 1

    def read(self, found: Iterable[YamlDocument], compose: Callable[[str, int, int], Node | None]) -> None:
        """Sorts the documents of the text; `compose` reads one of them again, to point at places in it. Never raises."""
        with suppress(_EnoughError):
            self._read_all(found, compose)

    def _read_all(self, found: Iterable[YamlDocument], compose: Callable[[str, int, int], Node | None]) -> None:
        for document in found:
            if document.error:
                self._broken(document, document.error)
            elif document.value is not None or document.root is not None:
                try:
                    decoded = Decoded(document.value, (), ()) if document.root is None else decode(document.root)
                except DecodeError as error:
                    node = error.node
                    self._broken(document, YamlError(str(error), node.start, node.end, error.limit))
                    continue
                tree = _Tree(compose, self.source.text, document.start, document.end)
                if document.root is not None and (size := self._size(document.start, document.end)) <= self._kept:
                    self._kept -= size
                    tree.root = document.root
                self._object(_Decoded(decoded, tree), decoded.value, ())

    def _broken(self, document: YamlDocument, error: YamlError) -> None:
        """A document that cannot be read: a template, an unsafe one, or a mistake; other people's are only counted."""
        text = self.source.text
        if not words_of_ours(text, document.start, document.end):
            self.others["unreadable, but nothing of API Priority and Fairness in it"] += 1
        elif kind := kind_of_others(text, document.start, document.end):
            self._other(kind)
        elif error.limit:
            self._trouble("unsafe", error.start, error.end, str(error), rejected=error.limit == "server")
        elif (template := templates.in_text(text, document.start, document.end)) is None:
            self._trouble("syntax", error.start, error.end, str(error))
        else:
            self.template(template)

    def template(self, template: templates.Template) -> None:
        """A piece of text that is a template. Told once a file: the pieces between its directives are no documents."""
        if not self._templated:
            self._templated = True
            message = f"this is {template.what} and was not checked. {template.render}"
            self._trouble("template", template.start, template.end, message)

    def _trouble(self, what: What, start: int, end: int, message: str, *, rejected: bool = True) -> None:
        self._left -= _TROUBLE
        last = len(self.source.text)
        start = min(start, last)
        self.troubles.append(Trouble(what, self.source, start, min(max(end, start), last), message, rejected))

    def _object(self, whole: _Decoded, value: Any, path: Path, inherited: tuple[str, str] = ("", "")) -> None:
        """One decoded value: an object of ours, a list of objects, or something else."""
        if not isinstance(value, dict):
            if value is not None:
                self.others["no Kubernetes object"] += 1
            return
        api_version, kind = value.get("apiVersion") or inherited[0], value.get("kind") or inherited[1]
        if not isinstance(api_version, str) or not isinstance(kind, str) or not kind:
            self.others["no Kubernetes object"] += 1
            return
        group = api_version.rpartition("/")[0]
        items = value.get("items")
        if isinstance(items, list) and ((group == GROUP and kind in LISTS) or (api_version, kind) == ("v1", "List")):
            child = (api_version, LISTS[kind]) if kind in LISTS else ("", "")
            for number, item in enumerate(items):
                self._left -= _EACH
                if self._left <= 0 and number:
                    self._at(whole, (*path, "items", number), "kind", "unsafe", self._enough(number))
                    raise _EnoughError
                self._object(whole, item, (*path, "items", number), child)
        elif group == GROUP and kind in LISTS:
            if items is not None:
                message = f"the items of a {kind} are a list, and this is none. This object was not checked"
                self._at(whole, path, "items", "not-ours", message)
        elif kind in KINDS and (placeholder := templates.in_name(api_version)):
            message = f"apiVersion is `{shown(placeholder)}`, {_ENVSUBST}"
            self._at(whole, path, "apiVersion", "template", message)
        elif kind in KINDS and group == GROUP and templates.is_patch(value):
            self._at(whole, path, "kind", "template", f"this is a patch for a {kind} {_KUSTOMIZE}")
        elif kind in KINDS and group == GROUP and _is_tombstone(value):
            self.others[_TOMBSTONES] += 1
        elif kind in KINDS and group == GROUP:
            self.documents.append(whole.document(self.source, value, path, api_version, kind))
        elif near := near_miss(group, api_version, kind, apf_spec=kind in KINDS and has_apf_spec(kind, value)):
            self._at(
                whole, path, near.field, "not-ours", f"{near.message} This object was not checked", near.correction
            )
        else:
            named_like_ours = f" of {shown(group)}" if kind in KINDS and group else ""
            self._other(kind, named_like_ours)

    def _at(
        self,
        whole: _Decoded,
        path: Path,
        field: str,
        what: What,
        message: str,
        correction: tuple[str, str] | None = None,
    ) -> None:
        """A trouble at a field of an object that is not read further. The server has no say in it."""
        start, end = whole.document(self.source, {}, path, "", "FlowSchema").offsets((field,))
        self._trouble(what, start, end, message, rejected=False)
        self.troubles[-1] = self.troubles[-1]._replace(correction=correction)


def _is_tombstone(value: dict[str, Any]) -> bool:
    """Whether a manifest only tells OpenShift's cluster-version operator to delete the object from the cluster.

    The operator never sends such a manifest to the server, with or without a spec. Source: "Use Manifest Annotation For
    Object Removal" (openshift/enhancements, enhancements/cvo/object-removal-manifest-annotation.md).
    """
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get(_DELETE) == "true"


class _Tree:
    """The tree of a document: read again when a place is asked for, and kept then, as all objects of a list share it."""

    __slots__ = ("_compose", "_end", "_text", "root", "start")

    def __init__(self, compose: Callable[[str, int, int], Node | None], text: str, start: int, end: int) -> None:
        self._compose = compose
        self._text = text
        self.start = start
        self._end = end
        self.root: Node | None = None

    def __call__(self) -> Node | None:
        if self.root is None:
            self.root = self._compose(self._text, self.start, self._end)
        return self.root


class _Decoded:
    """A decoded document, which may hold many objects, and how to read its tree again."""

    __slots__ = ("_duplicates", "_not_finite", "decoded", "tree")

    def __init__(self, decoded: Decoded, tree: _Tree) -> None:
        self.decoded = decoded
        self.tree = tree
        self._duplicates: dict[int, dict[Path, list[int]]] = {}
        self._not_finite: dict[int, dict[Path, list[int]]] = {}

    def document(self, source: Source, value: dict[str, Any], path: Path, api_version: str, kind: str) -> Document:
        """The object at `path`."""
        depth = len(path)
        duplicates: Iterable[Duplicate] = ()
        infinite: Iterable[Path] = ()
        if self.decoded.duplicates:
            if depth not in self._duplicates:
                self._duplicates[depth] = _by_prefix((found.path for found in self.decoded.duplicates), depth)
            duplicates = (self.decoded.duplicates[i] for i in self._duplicates[depth].get(path, ()))
        if self.decoded.not_finite:
            if depth not in self._not_finite:
                self._not_finite[depth] = _by_prefix(self.decoded.not_finite, depth)
            infinite = (self.decoded.not_finite[i] for i in self._not_finite[depth].get(path, ()))
        return Document(
            source,
            value,
            self.tree,
            prefix=path,
            start=self.tree.start,
            api_version=api_version,
            kind=kind,
            duplicates=tuple(found._replace(path=found.path[depth:]) for found in duplicates),
            not_finite=tuple(found[depth:] for found in infinite),
        )


def _by_prefix(paths: Iterable[Path], depth: int) -> dict[Path, list[int]]:
    """The numbers of the paths by their first `depth` steps."""
    found: dict[Path, list[int]] = {}
    for number, path in enumerate(paths):
        found.setdefault(path[:depth], []).append(number)
    return found
