"""Whether an edited text holds what it should, and nothing else has changed: read again, and compared."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from apflint.edit.operations import changed_value, ordered
from apflint.edit.text_edits import CannotEditError
from apflint.load import load_text
from apflint.load.decode import decode
from apflint.load.document import GROUP, KINDS
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.fix import Operation
    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.load.tree import Node
    from apflint.location import Path


def position(document: Document) -> tuple[int, Path]:
    """Which one of a text's objects it is."""
    return document.start, document.prefix


def prove(source: Source, text: str, wanted: Mapping[tuple[int, Path], list[Operation]], *, more: bool) -> None:
    """CannotEditError unless the text holds just what the operations make of the objects; with `more` perhaps others as well."""
    before, after = load_text(source), load_text(Source(source.name, text))
    left = iter(after.documents)
    for document in before.documents:
        try:
            expected = changed_value(document.value, wanted.get(position(document), ()))
        except LookupError:
            raise CannotEditError("the fixes are at odds with each other") from None
        if not any(same(new.value, expected) for new in (left if more else islice(left, 1))):
            raise CannotEditError("something else would change as well (an anchor, perhaps)")
    if not more and (len(after.documents) > len(before.documents) or not others_same(before, after)):
        raise CannotEditError("something else would change as well (an anchor, perhaps)")
    if len(after.problems) > len(before.problems):
        raise CannotEditError("it could not be read any more")


def same(one: object, other: object) -> bool:
    """Whether two decoded values are the same, types included: a truth and a number are not, though 1 == True in Python."""
    return repr(ordered(one)) == repr(ordered(other))


def others_same(before: Loaded, after: Loaded) -> bool:
    """Whether what is not ours in lists that hold objects of ours is as it was: an anchor may be shared with it."""
    olds, news = _roots(before), _roots(after)
    return len(olds) == len(news) and all(
        _bare(whole(old)) == _bare(whole(new)) for old, new in zip(olds, news, strict=True)
    )


def whole(root: Node) -> object:
    """The decoded value of a whole document, a list of objects perhaps."""
    return decode(root).value


def _roots(loaded: Loaded) -> list[Node]:
    """The lists of a text that hold objects of ours."""
    return list({id(document.root): document.root for document in loaded.documents if document.prefix}.values())


def _bare(value: Any) -> str:
    """A whole text without our own objects, and without the apiVersion of lists of them."""
    if not isinstance(value, dict) or not isinstance(value.get("items"), list):
        return ""
    version = value.get("apiVersion")
    rest = {key: item for key, item in value.items() if key not in ("items", "apiVersion")}
    ours = isinstance(version, str) and version.startswith(f"{GROUP}/")  # what is in such a list inherits its kind
    if not ours:
        rest["apiVersion"] = version
    others = [] if ours else [item for item in value["items"] if isinstance(item, dict) and not _is_ours(item)]
    return repr((ordered(rest), [_bare(item) or repr(ordered(item)) for item in others]))


def _is_ours(value: dict[str, Any]) -> bool:
    version = value.get("apiVersion")
    return value.get("kind") in KINDS and (
        not version or (isinstance(version, str) and version.startswith(f"{GROUP}/"))
    )
