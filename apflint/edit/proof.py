"""Whether an edited text holds what it should, and nothing else has changed: read again, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.edit.operations import ordered
from apflint.load.decode import decode
from apflint.load.document import GROUP, KINDS

if TYPE_CHECKING:
    from apflint.load import Loaded
    from apflint.load.node import Node


def same(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same, types included: a truth and a number are not, though 1 == True in Python."""
    return repr(ordered(one)) == repr(ordered(other))


def others_same(before: Loaded, after: Loaded) -> bool:
    """Whether what is not ours in lists that hold objects of ours is as it was: an anchor may be shared with it."""
    olds, news = _roots(before), _roots(after)
    return len(olds) == len(news) and all(
        _bare(whole(old)) == _bare(whole(new)) for old, new in zip(olds, news, strict=True)
    )


def whole(root: Node) -> Any:
    """The decoded value of a whole document, a list of objects perhaps."""
    return decode(root).value


def _roots(loaded: Loaded) -> list[Node]:
    return list({id(document.root): document.root for document in loaded.documents}.values())


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
