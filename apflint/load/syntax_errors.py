"""Explains YAML syntax errors, and finds the place that causes an error.

libyaml reports only the place at which it stopped, which is often some lines later.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.budgets import MAX_DEPTH
from apflint.load.scalars import shorten
from apflint.load.tree import ParseError
from apflint.wording import quote

if TYPE_CHECKING:
    from yaml.error import YAMLError

_COLON = re.compile(r":(?=\s|\Z)")
_LINE_END = re.compile(r"[\r\n]|\Z")
_CLOSING = {"[": "]", "{": "}"}

_EXPLANATIONS = {
    "mapping values are not allowed": ("second `: ` on this line", "quote the value, or start a new line"),
    "could not find expected ':'": ("this line has no `: ` after its key", "put a colon and a space after the key"),
    "found character that cannot start any token": (
        "this character cannot start a value",
        "quote values that start with @, ` or %",
    ),
    "block sequence entries are not allowed": ("a list item cannot start here", None),
    "did not find expected comment or line break": ("only a comment may follow `|` or `>`", None),
    "found unknown escape character": (
        "unknown escape in double quotes",
        "use single quotes, or `\\\\` for one backslash",
    ),
    "found a tab": ("a tab cannot indent in YAML", "use spaces"),
    "found unexpected end of stream": ("this quote is never closed", None),
    "did not find expected alphabetic or numeric character while scanning an alias": (
        "an unquoted `*` at the start of a value is a YAML alias",
        "quote the wildcard: '*'",
    ),
    "did not find expected alphabetic or numeric character while scanning an anchor": (
        "an unquoted `&` at the start of a value is a YAML anchor",
        "quote the value",
    ),
    "did not find expected ',' or ']'": ("missing `,` or `]` in this list", None),
    "did not find expected ',' or '}'": ("missing `,` or `}` in this mapping", None),
    "did not find expected key": (
        "this line belongs neither to the block above nor to a new block",
        "check the indentation of this line and the line before",
    ),
    "did not find expected '-' indicator": ("this line is not an item of the list above", "check the indentation"),
    "did not find expected node content": ("missing value", None),
    "control characters are not allowed": ("control character, which YAML does not allow", None),
    "did not find expected <document start>": (
        "text after the end of the document",
        "start a new document with `---`",
    ),
}
"""Maps the beginning of a message of libyaml to (message, help) of apflint."""
_LIBYAML_MESSAGES = (
    (r"expected chomping or indentation indicators", "did not find expected comment or line break"),
    (r"expected '<document start>'", "did not find expected <document start>"),
    (r"sequence entries are not allowed", "block sequence entries are not allowed"),
    (r"found character .* that cannot start any token", "found character that cannot start any token"),
    (r"expected (?:the )?(.+), but (?:found|got) .*", r"did not find expected \1"),
)
"""Pairs of a message of PyYAML's Python parser (used without libyaml) and libyaml's message for the same error."""


def explain_syntax_error(error: YAMLError, text: str, base: int, end: int) -> ParseError:
    """Return a ParseError that explains the error of a YAML parser whose input was `text[base:end]`."""
    located = _locate(error, text, base, end)
    line = text[_line_start(text, base, located.start) : _line_end(text, located.start, end)].strip()
    if len(line) > 2 and set(line) == {"*"}:
        message = f"{quote(line)} is a horizontal rule of Markdown, not YAML"
        return ParseError(message, located.start, located.end, help="separate documents with `---`")
    if line.startswith("```"):
        message = f"{quote(line)} is a code fence of Markdown, not YAML"
        return ParseError(message, located.start, located.end, help="remove this line")
    original = "found a tab" if text.startswith("\t", located.start) else str(located)
    # libyaml from 0.2.6 on scans ahead, and fails at 1,000 nested brackets, possibly before apflint checks its own
    # lower limit. The error message always states the limit of apflint.
    if original.startswith("exceeded maximum nesting depth"):
        return ParseError(f"nested more than {MAX_DEPTH} levels deep", located.start, limit="apflint")
    for start, (message, help_) in _EXPLANATIONS.items():
        if original.startswith(start):
            return ParseError(message, located.start, located.end, help=help_)
    return located


def _locate(error: YAMLError, text: str, base: int, end: int) -> ParseError:
    problem, context = getattr(error, "problem", None), getattr(error, "context", None)
    if problem:
        problem = _translate(problem, context or "")
    position = getattr(error, "position", None)
    if isinstance(position, int):
        if getattr(error, "encoding", None) != "unicode":
            # The position in a ReaderError counts bytes of the UTF-8 input with libyaml, and characters with the Python
            # parser.
            before = text[base:end].encode("utf-8", "replace")[:position]
            position = len(before.decode("utf-8", "ignore"))
        return ParseError("control characters are not allowed", base + position)
    at = _offset(error, "problem_mark", base)
    began = _offset(error, "context_mark", base)
    at = began if at is None else at
    if at is None:
        return ParseError(str(problem or error), base)
    if problem and began is not None and (located := _locate_start(problem, context or "", text, base, began, at, end)):
        return located
    return _locate_at_stop(f"{problem} {context}" if context else str(problem or error), text, base, at, end)


def _translate(problem: str, context: str) -> str:
    """Return libyaml's message for a message of PyYAML's Python parser. Return messages of libyaml unchanged."""
    if problem.startswith("expected <block end>"):
        is_list = "block collection" in context
        return "did not find expected '-' indicator" if is_list else "did not find expected key"
    for pattern, message in _LIBYAML_MESSAGES:
        problem = re.sub(rf"\A{pattern}", message, problem, flags=re.DOTALL)
    return problem


def _locate_start(problem: str, context: str, text: str, base: int, began: int, at: int, end: int) -> ParseError | None:
    """Return an error at the start of the quote, alias, key or bracket that caused the error, or None if the cause is unknown."""
    if "quoted scalar" in context and "found unexpected" in problem:
        return ParseError(f"{problem} {context}", began)
    if "scanning an alias" in context or "scanning an anchor" in context:
        return ParseError(f"{problem} {context}", began)
    if "simple key" in context and "expected ':'" in problem:
        return ParseError(f"{problem} {context}", began, _line_end(text, began, end))
    opening = text[began : began + 1]
    closing = _CLOSING.get(opening)
    if closing and "a flow " in context and _is_left_open(text, base, began, at, end):
        return ParseError(f"this `{opening}` is not closed: its `{closing}` is missing", began)
    return None


def _is_left_open(text: str, base: int, began: int, at: int, end: int) -> bool:
    """Return whether the cause of the error is a missing closing bracket, and not a missing comma in the brackets.

    The closing bracket is missing if the text ends, or if a later line is indented no deeper than the line of the
    opening bracket.
    """
    if not text[at:end].strip():
        return True
    opened, stopped = _line_start(text, base, began), _line_start(text, base, at)
    return opened != stopped and _indent(text, stopped, end) <= _indent(text, opened, end)


def _locate_at_stop(message: str, text: str, base: int, at: int, end: int) -> ParseError:
    """Return an error at the place where the parser stopped."""
    if message.startswith("found unknown escape character") and text[at : at + 1] != "\\":
        at -= 1  # the Python parser stops after the backslash, libyaml before
    line = _line_start(text, base, at)
    if message.startswith("found incompatible YAML document"):
        stop = _line_end(text, at, end)
        return ParseError(f"`{shorten(text[at:stop])}`: Kubernetes reads only YAML 1.1", at, stop)
    if message.startswith("mapping values are not allowed") and not _COLON.search(text, line, at):
        start = line + _indent(text, line, end)
        return ParseError(
            "this key is indented below a line that already has a value",
            start,
            max(at, start + 1),
            help="check the indentation of this line and the line before",
        )
    if message.startswith("did not find expected key"):
        if at < end and text[at] in _CLOSING.values():
            return ParseError(f"this `{text[at]}` closes nothing", at)
        before = text[line:at].rstrip()
        if before.endswith(("'", '"')) and before.strip() not in ("'", '"'):
            message = "text after the closing quote"
            return ParseError(message, at, _line_end(text, at, end), help="put the whole value inside the quotes")
    return ParseError(message, at)


def _offset(error: YAMLError, name: str, base: int) -> int | None:
    mark = getattr(error, name, None)
    return None if mark is None else base + int(mark.index)


def _line_start(text: str, base: int, offset: int) -> int:
    end = max(text.rfind("\n", base, offset), text.rfind("\r", base, offset))
    return base if end < 0 else end + 1


def _line_end(text: str, offset: int, end: int) -> int:
    """Return the offset of the end of a line without its trailing space. The result is at least `offset + 1`."""
    match = _LINE_END.search(text, offset, end)
    stop = match.start() if match else end
    return offset + max(1, len(text[offset:stop].rstrip()))


def _indent(text: str, line: int, end: int) -> int:
    at = line
    while at < end and text[at] in " -\t":
        at += 1
    return at - line
