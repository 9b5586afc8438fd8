"""APF001, APF003, APF004, APF005: text that is no manifest of ours, before anything can be said about fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import Cause, Problem
from apflint.fix import Edit, Fix
from apflint.location import TextRange
from apflint.releases import api_version
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.load import Trouble
    from apflint.workspace import Workspace

# What libyaml says, in words for people. Keys are the start of its problem text.
_PLAIN_WORDS = {
    "mapping values are not allowed": "a second `: ` on this line. Put the value in quotes, or start a new line",
    "could not find expected ':'": "this line has no `: ` after its key (a blank must follow the colon)",
    "found character that cannot start any token": "this character cannot start a value. Values that start with @, ` or %"
    " need quotes",
    "block sequence entries are not allowed": "a list item cannot start here",
    "did not find expected comment or line break": "nothing may follow `|` or `>` but a comment",
    "found unknown escape character": "this is no escape in double quotes. Use single quotes, or `\\\\` for one backslash",
    "found a tab": "a tab cannot indent in YAML. Use blanks",
    "found unexpected end of stream": "a quote that is opened here is never closed",
    "did not find expected alphabetic or numeric character": "`*` and `&` mean alias and anchor in YAML."
    " For the wildcard write it in quotes: '*'",
    "did not find expected ',' or ']'": "a list in brackets goes on here without a `,` or its closing `]`",
    "did not find expected ',' or '}'": "a mapping in braces goes on here without a `,` or its closing `}`",
    "did not find expected key": "this line fits neither the block above it nor a new one: look at the indentation and"
    " at the line before",
    "did not find expected '-' indicator": "this line is no item of the list above: look at the indentation",
    "did not find expected node content": "a value is missing here",
    "control characters are not allowed": "a control character, which YAML does not allow",
    "did not find expected <document start>": "there is text after the end of the document. A new document starts with"
    " `---`",
}


def syntax_error(workspace: Workspace) -> Iterator[Problem]:
    """APF001."""
    for trouble in workspace.troubles:
        if trouble.what == "syntax":
            tab = trouble.source.text.startswith("\t", trouble.start)
            said = "found a tab" if tab else trouble.message
            words = _markdown(trouble) or next(
                (text for start, text in _PLAIN_WORDS.items() if said.startswith(start)), None
            )
            yield _problem(trouble, f"{words or trouble.message}. Nothing of this document can be read")


def _markdown(trouble: Trouble) -> str | None:
    """Why a line of Markdown is not YAML, or None if the trouble is at no such line."""
    source = trouble.source
    line = source.line(source.position(trouble.start)[0]).strip()
    if len(line) > 2 and set(line) == {"*"}:
        return f"{quote(line)} is a horizontal rule of Markdown, not YAML. Separate documents with `---`"
    if line.startswith("```"):
        return f"{quote(line)} is a fence of Markdown, not YAML. Remove it"
    return None


def unrendered_template(workspace: Workspace) -> Iterator[Problem]:
    """APF003."""
    for trouble in workspace.troubles:
        if trouble.what == "template":
            yield _problem(trouble, trouble.message)._replace(is_template=True)


def unsafe_document(workspace: Workspace) -> Iterator[Problem]:
    """APF004."""
    for trouble in workspace.troubles:
        if trouble.what == "unsafe":
            yield _problem(trouble, f"{trouble.message}. The document was not read further")


def not_an_apf_object(workspace: Workspace) -> Iterator[Problem]:
    """APF005."""
    for trouble in workspace.troubles:
        if trouble.what == "not-ours":
            yield _problem(trouble, trouble.message)._replace(fix=_correction(trouble))


def _correction(trouble: Trouble) -> Fix | None:
    """Writes what was probably meant; unsafe, because it makes an object of ours of what may be another's."""
    if trouble.correction is None:
        return None
    old, new = trouble.correction
    at = trouble.source.text.rfind(old, trouble.start, trouble.end)
    if at < 0 or (api_version(new.rpartition("/")[2]) is None and "/" in new):
        return None
    return Fix(f"change {quote(old)} to {quote(new)}", safe=False, edits=(Edit(at, at + len(old), new),))


def about_suppressions(_effective: Effective) -> Iterator[Problem]:
    """APF901, APF902, APF903: nothing here. They are about what the other rules found: `apflint.suppression` finds them."""
    return iter(())


def _problem(trouble: Trouble, message: str) -> Problem:
    return Problem(
        TextRange(trouble.source, trouble.start, trouble.end),
        message,
        Cause("BadRequest", "") if trouble.rejected else None,
    )
