"""Text searches that find documents with APF objects, and the kinds of other documents, without parsing."""

from __future__ import annotations

import re

from apflint.load.document import KINDS, LISTS

_WORDS = ("flowcontrol", *KINDS)
# In a quoted string, an escape such as `\u0046` can replace a letter of a word. So the last alternative matches each
# escape of a letter.
_SIGN = re.compile(rf"{'|'.join(_WORDS)}|\\(?:u00|x|U000000)[4-7]")
_KIND = re.compile(r"^kind:[ \t]+[\"']?(\w+)", re.MULTILINE)
_API_VERSION = re.compile(r"^apiVersion:[ \t]+\S", re.MULTILINE)
_APF_VERSION = re.compile(r"apiVersion[\"']?[ \t]*:?[ \t]*[\"']?flowcontrol")
_CONTENT = re.compile(r"^[ \t]*[^\s#-]", re.MULTILINE)


class Prefilter:
    """Searches a text for the API group and kinds of APF.

    Remembers the last match, so that the text is read only once.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._from, self._next = 0, -1  # `_SIGN` has no match in the text from `_from` to `_next`

    def may_contain_apf(self, start: int, end: int) -> bool:
        """Return whether `text[start:end]` may contain an APF object."""
        if not self._from <= start <= self._next:
            sign = _SIGN.search(self._text, start)
            self._from, self._next = start, sign.start() if sign else len(self._text)
        return self._next < end


def mentions_apf(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` contains the API group or a kind of APF."""
    return any(text.find(word, start, end) >= 0 for word in _WORDS)


def find_kind(text: str, start: int, end: int) -> str | None:
    """Return the kind from the first `kind:` at the start of a line in a YAML document, or None if there is no such line."""
    match = _KIND.search(text, start, end)
    return match.group(1) if match else None


def has_content(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` contains anything except comments and document markers."""
    return _CONTENT.search(text, start, end) is not None


def find_other_kind(text: str, start: int, end: int) -> str | None:
    """Return the kind of a YAML document with a syntax error that is certainly not an APF object, else None.

    For example, the result is `ClusterRole` for a ClusterRole that mentions the API group of APF. The
    result is certain if three conditions are true: a line begins with `kind:` and names neither a kind
    of APF nor a list, a line begins with `apiVersion:`, and no part of the document contains an
    apiVersion of APF.
    """
    kind = find_kind(text, start, end)
    if kind is None or kind in (*KINDS, *LISTS, "List") or not _API_VERSION.search(text, start, end):
        return None
    return None if _APF_VERSION.search(text, start, end) else kind
