"""Which objects of ours a text holds, and what in it could not be read: documents, lists, templates, near misses."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint.load import templates
from apflint.load.decode import Decoded, DecodeError, decode
from apflint.load.document import GROUP, KINDS, Document
from apflint.load.scalars import shown
from apflint.load.yaml_text import YamlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.finding import Path
    from apflint.load.decode import Duplicate
    from apflint.load.node import Node
    from apflint.load.source import Source
    from apflint.load.yaml_text import YamlDocument

_OURS = re.compile("flowcontrol|FlowSchema|PriorityLevelConfiguration")
_ESCAPED_LETTER = re.compile(r"\\(?:u00|x|U000000)[4-7]")
_KIND = re.compile(r"^kind:[ \t]+[\"']?(\w+)", re.MULTILINE)
_API_VERSION = re.compile(r"^apiVersion:[ \t]+\S", re.MULTILINE)
_OUR_VERSION = re.compile(r"apiVersion[\"']?[ \t]*:?[ \t]*[\"']?flowcontrol")
_SOMETHING = re.compile(r"^[ \t]*[^\s#-]", re.MULTILINE)
FILE = 2_000_000
"""How much is read of one file, in line ends, commas and colons of the documents that may be ours: 15,000 FlowSchemas."""
_EACH = 50  # what a document costs besides: a million tiny ones take longer than a few large ones
_KINDS = 200
_LISTS = {"FlowSchemaList": "FlowSchema", "PriorityLevelConfigurationList": "PriorityLevelConfiguration"}
_KUSTOMIZE = "and was not checked. Check what it makes: kustomize build DIR | apflint check -"
_ENVSUBST = "a placeholder, and this was not checked. Fill it in first: envsubst < FILE | apflint check -"

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

    def worth_reading(self, start: int, end: int, value: Any = None) -> bool:
        """Whether a document may hold an object of ours, from its mere text; if not it is counted by its kind.

        Most of what `helm template` prints is other people's, and this is fifty times as fast as parsing it. `value` is
        the document's where it is known already.
        """
        text = self.source.text
        if _OURS.search(text, start, end) or _ESCAPED_LETTER.search(text, start, end):
            return self._affordable(start, end)
        if value is not None:
            self._object(_OTHERS, value, ())
        elif kind := _KIND.search(text, start, end):
            self._other(kind.group(1))
        elif _SOMETHING.search(text, start, end):
            self.others["no Kubernetes object"] += 1
        return False

    def _affordable(self, start: int, end: int) -> bool:
        """Whether there is enough left of what is read of one file; told once where there is not."""
        if self._left > 0:
            text = self.source.text
            self._left -= (
                _EACH + text.count("\n", start, end) + text.count(",", start, end) + text.count(":", start, end)
            )
            if self._left > 0 or not self._read:
                self._read += 1
                return True
            message = (
                f"this file has more in it than apflint reads of one file: from here on, after {self._read:,} documents, what"
                " it has of API Priority and Fairness was not read. Split it"
            )
            self._trouble("unsafe", start, start + 1, message, rejected=False)
        return False

    def _other(self, kind: str, of: str = "") -> None:
        """Counts somebody else's object; of hundreds of kinds the last ones together."""
        reason = f"{shown(kind)} objects{of}"
        self.others[reason if reason in self.others or len(self.others) < _KINDS else "other objects"] += 1

    def read(self, found: Iterable[YamlDocument], compose: Callable[[str, int, int], Node | None]) -> None:
        """Sorts the documents of the text; `compose` reads one of them again, to point at places in it. Never raises."""
        for document in found:
            if document.error:
                self._broken(document, document.error)
            elif document.value is not None or document.root is not None:
                try:
                    decoded = Decoded(document.value, (), ()) if document.root is None else decode(document.root)
                except DecodeError as error:
                    node = error.node
                    self._broken(document, YamlError(str(error), node.start, node.end, unsafe=error.unsafe))
                    continue
                tree = _Tree(compose, self.source.text, document.start, document.end)
                self._object(_Decoded(decoded, tree), decoded.value, ())

    def _broken(self, document: YamlDocument, error: YamlError) -> None:
        """A document that cannot be read: a template, an unsafe one, or a mistake; other people's are only counted."""
        text = self.source.text
        if not _OURS.search(text, document.start, document.end):
            self.others["unreadable, but nothing of API Priority and Fairness in it"] += 1
        elif kind := _of_others(text, document.start, document.end):
            self._other(kind)
        elif error.unsafe:
            self._trouble("unsafe", error.start, error.end, str(error))
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
        if isinstance(items, list) and ((group == GROUP and kind in _LISTS) or (api_version, kind) == ("v1", "List")):
            child = (api_version, _LISTS[kind]) if kind in _LISTS else ("", "")
            for number, item in enumerate(items):
                self._object(whole, item, (*path, "items", number), child)
        elif group == GROUP and kind in _LISTS:
            if items is not None:
                message = f"the items of a {kind} are a list, and this is none. This object was not checked"
                self._at(whole, path, "items", "not-ours", message)
        elif kind in KINDS and (placeholder := templates.in_name(api_version)):
            message = f"apiVersion is `{shown(placeholder)}`, {_ENVSUBST}"
            self._at(whole, path, "apiVersion", "template", message)
        elif kind in KINDS and group == GROUP and templates.is_patch(value):
            self._at(whole, path, "kind", "template", f"this is a patch for a {kind} {_KUSTOMIZE}")
        elif kind in KINDS and group == GROUP:
            self.documents.append(whole.document(self.source, value, path, api_version, kind))
        elif near := _near_miss(group, api_version, kind):
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


class _Tree:
    """The tree of a document: read again when a place is asked for, and kept then, as all objects of a list share it."""

    __slots__ = ("_compose", "_end", "_root", "_start", "_text")

    def __init__(self, compose: Callable[[str, int, int], Node | None], text: str, start: int, end: int) -> None:
        self._compose = compose
        self._text = text
        self._start = start
        self._end = end
        self._root: Node | None = None

    def __call__(self) -> Node | None:
        if self._root is None:
            self._root = self._compose(self._text, self._start, self._end)
        return self._root


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
            api_version=api_version,
            kind=kind,
            duplicates=tuple(found._replace(path=found.path[depth:]) for found in duplicates),
            not_finite=tuple(found[depth:] for found in infinite),
        )


_OTHERS = _Decoded(Decoded(None, (), ()), _Tree(lambda _text, _start, _end: None, "", 0, 0))
"""In place of a document without a sign of ours: nothing in it is ever pointed at."""


def _of_others(text: str, start: int, end: int) -> str | None:
    """The kind of an unreadable document that is plainly another's, such as a ClusterRole that names our group.

    Both lines have to say so at the left margin, and no apiVersion may be ours: a document of ours may be broken anywhere.
    """
    version, kind = _API_VERSION.search(text, start, end), _KIND.search(text, start, end)
    if version is None or kind is None or kind.group(1) in (*KINDS, *_LISTS, "List"):
        return None
    return None if _OUR_VERSION.search(text, start, end) else kind.group(1)


def _by_prefix(paths: Iterable[Path], depth: int) -> dict[Path, list[int]]:
    """The numbers of the paths by their first `depth` steps."""
    found: dict[Path, list[int]] = {}
    for number, path in enumerate(paths):
        found.setdefault(path[:depth], []).append(number)
    return found


class _NearMiss(NamedTuple):
    field: str
    message: str
    """Sentences about the field."""
    correction: tuple[str, str] | None = None


def _near_miss(group: str, api_version: str, kind: str) -> _NearMiss | None:
    """What is nearly ours in group or kind; None for everybody else's objects (APF005)."""
    if group == GROUP:
        from difflib import get_close_matches

        close = get_close_matches(kind, (*KINDS, *_LISTS), 1, 0.6)
        hint = f"did you mean {close[0]}?" if close else f"its kinds are {KINDS[0]} and {KINDS[1]}."
        message = f"kind `{shown(kind)}`: the group {GROUP} has no such kind; {hint}"
        return _NearMiss("kind", message, (kind, close[0]) if close and close[0] in KINDS else None)
    if kind in KINDS and not api_version:
        message = f"this {kind} has no apiVersion, so kubectl refuses it. Write `apiVersion: {GROUP}/v1`."
        return _NearMiss("kind", message)
    if kind in KINDS and _resembles(group, api_version):
        message = f"{kind} is in the group {GROUP}, as in `{GROUP}/v1`. No API server knows this one."
        _, slash, version = api_version.rpartition("/")
        meant = f"{GROUP}/{version}" if slash or (not group and version != GROUP) else f"{GROUP}/v1"
        return _NearMiss("apiVersion", f"apiVersion `{shown(api_version)}`: {message}", (api_version, meant))
    return None


def _resembles(group: str, api_version: str) -> bool:
    """Whether somebody meant our group, rather than one of his own that has a kind of the same name."""
    if group.startswith("flowcontrol") or api_version == GROUP:
        return True
    if not group:
        return re.fullmatch(r"v1((alpha|beta)\d)?", api_version) is not None
    if len(group) > 2 * len(GROUP):
        return False
    from difflib import SequenceMatcher

    return SequenceMatcher(None, group, GROUP).ratio() > 0.8
