"""Where a person would point at a syntax error: libyaml says where it could not go on, which is often lines later."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from apflint.load.scalars import shown
from apflint.load.yaml import YamlError

if TYPE_CHECKING:
    from yaml.error import YAMLError

_COLON = re.compile(r":(?=\s|\Z)")
_LINE_END = re.compile(r"[\r\n]|\Z")
_CLOSING = {"[": "]", "{": "}"}


def mistake(error: YAMLError, text: str, base: int, end: int) -> YamlError:
    """The error of a parser that was given `text[base:end]`; its marks are offsets in code points."""
    problem, context = getattr(error, "problem", None), getattr(error, "context", None)
    position = getattr(error, "position", None)
    if isinstance(position, int):
        # A ReaderError has the offset in bytes of what the parser was given, which is UTF-8.
        before = text[base:end].encode("utf-8", "replace")[:position]
        return YamlError("control characters are not allowed", base + len(before.decode("utf-8", "ignore")))
    at = _offset(error, "problem_mark", base)
    began = _offset(error, "context_mark", base)
    at = began if at is None else at
    if at is None:
        return YamlError(str(problem or error), base)
    if problem and began is not None and (found := _since(problem, context or "", text, base, began, at, end)):
        return found
    return _there(f"{problem} {context}" if context else str(problem or error), text, base, at, end)


def _since(problem: str, context: str, text: str, base: int, began: int, at: int, end: int) -> YamlError | None:
    """What began somewhere and went wrong later: point at its beginning."""
    if "quoted scalar" in context and "found unexpected" in problem:
        return YamlError(f"{problem} {context}", began)
    if "scanning an alias" in context or "scanning an anchor" in context:
        return YamlError(f"{problem} {context}", began)
    if "simple key" in context and "expected ':'" in problem:
        return YamlError(f"{problem} {context}", began, _line_end(text, began, end))
    opening = text[began : began + 1]
    closing = _CLOSING.get(opening)
    if closing and "a flow " in context and _left_open(text, base, began, at, end):
        return YamlError(f"the `{opening}` that is opened here is not closed: its `{closing}` is missing", began)
    return None


def _left_open(text: str, base: int, began: int, at: int, end: int) -> bool:
    """Whether a bracket was forgotten, rather than a comma inside it: the text goes on no deeper than it began."""
    if not text[at:end].strip():
        return True
    opened, broken = _line_start(text, base, began), _line_start(text, base, at)
    return opened != broken and _indent(text, broken, end) <= _indent(text, opened, end)


def _there(message: str, text: str, base: int, at: int, end: int) -> YamlError:
    """An error at the place where the parser found it."""
    line = _line_start(text, base, at)
    if message.startswith("found incompatible YAML document"):
        stop = _line_end(text, at, end)
        return YamlError(f"`{shown(text[at:stop])}`: Kubernetes reads YAML 1.1 only", at, stop)
    if message.startswith("mapping values are not allowed") and not _COLON.search(text, line, at):
        start = line + _indent(text, line, end)
        return YamlError(
            "this key is indented below a line that has a value already: look at the indentation, and at the line before",
            start,
            max(at, start + 1),
        )
    if message.startswith("did not find expected key"):
        if at < end and text[at] in _CLOSING.values():
            return YamlError(f"this `{text[at]}` closes nothing", at)
        before = text[line:at].rstrip()
        if before.endswith(("'", '"')) and before.strip() not in ("'", '"'):
            return YamlError(
                "there is text after the closing quote: put all of the value inside the quotes",
                at,
                _line_end(text, at, end),
            )
    return YamlError(message, at)


def _offset(error: Any, name: str, base: int) -> int | None:
    mark = getattr(error, name, None)
    return None if mark is None else base + int(mark.index)


def _line_start(text: str, base: int, offset: int) -> int:
    found = max(text.rfind("\n", base, offset), text.rfind("\r", base, offset))
    return base if found < 0 else found + 1


def _line_end(text: str, offset: int, end: int) -> int:
    """The end of what is written on the line."""
    found = _LINE_END.search(text, offset, end)
    stop = found.start() if found else end
    return offset + max(1, len(text[offset:stop].rstrip()))


def _indent(text: str, line: int, end: int) -> int:
    at = line
    while at < end and text[at] in " -\t":
        at += 1
    return at - line
