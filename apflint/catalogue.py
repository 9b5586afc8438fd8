"""The rules, as their pages in `rules/` tell them: read when asked for, one page at a time.

The page of a rule is the one source of its name, severity and summary. Its examples are tests: `examples` reads them.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from apflint.location import clipped
from apflint.package_data import find_data_directory
from apflint.record import NamedTuple
from apflint.wording import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "https://github.com/apflint/apflint/blob/main/rules/{id}.md"
"""Where the page of a rule can be read; stays valid, as ids do."""

DefaultSeverity = Literal["error", "warning", "info", "off"]
Stage = Literal["validation", "consistency", "analysis"]
Fixable = Literal["safe", "unsafe"]

# Patterns are compiled when a page is read, not at import: a run without findings reads none.
_FORMS = {"id": r"APF[0-9]{3}", "name": r"[a-z]+(-[a-z]+)*", "since": r"[0-9]+\.[0-9]+\.[0-9]+"}
_KEYS = ("id", "name", "severity", "stage", "since", "summary", "references")
_MORE_KEYS = ("fix",)


class Rule(NamedTuple):
    """One rule. `severity` is what its findings have by default; `off` means only when selected."""

    id: str
    name: str
    severity: DefaultSeverity
    stage: Stage
    since: str
    """The version of apflint that had it first."""
    summary: str
    references: tuple[str, ...]
    body: str
    """Markdown: Why, Bad, Good. The markers of the examples are in it."""
    body_line: int = 1
    """1-based line of the page on which `body` starts."""
    fix: Fixable | None = None
    """Whether some of its findings can be fixed, and how the best of these fixes are."""

    @property
    def url(self) -> str:
        """Address of the page."""
        return url(self.id)


class Example(NamedTuple):
    """A fenced example of a page, without its markers."""

    kind: Literal["bad", "good"]
    text: str
    file: str
    """Name to read it under: the ending says whether it is YAML or JSON."""
    kubernetes: str | None
    """Target release; None for the newest."""
    expected: tuple[tuple[str, int], ...]
    """The findings it must have, all of them: rule id and 1-based line of `text`, in the order of lines."""
    page_line: int
    """1-based line of its opening fence in the page, for messages."""


def url(rule_id: str) -> str:
    """Address of the page of a rule. Needs no page to be read."""
    return PAGE.format(id=rule_id)


@cache
def ids() -> tuple[str, ...]:
    """All ids, in order. Costs one listing of the folder."""
    pages = (name for name in os.listdir(_folder()) if name.startswith("APF"))  # pathlib costs 5 ms
    return tuple(sorted(page.removesuffix(".md") for page in pages if page.endswith(".md")))


@cache
def rule(rule_id: str) -> Rule:
    """The rule with this id; reads its page only. KeyError for an unknown id, ValueError for a page that is wrong."""
    if rule_id not in ids():
        raise KeyError(rule_id)
    with open(os.path.join(_folder(), f"{rule_id}.md"), encoding="utf-8") as page:
        found = parse(page.read(), f"rules/{rule_id}.md")
    if found.id != rule_id:
        raise ValueError(f'rules/{rule_id}.md:2: the id is "{found.id}", and the file says "{rule_id}".')
    return found


def rules() -> tuple[Rule, ...]:
    """All rules, in the order of their ids; reads every page."""
    return tuple(map(rule, ids()))


@cache
def names() -> dict[str, str]:
    """Name -> id; reads every page."""
    return {found.name: found.id for found in rules()}


def find(text: str) -> Rule:
    """The rule with this id (in any case) or name. ValueError with the nearest ones for a text that is neither."""
    found = known(text)
    if found is None:
        raise ValueError(f'Unknown rule "{clipped(text)}".{_nearest(text)} `apflint rule` lists them all.')
    return rule(found)


def matching(selector: str) -> tuple[str, ...]:
    """Ids that an id, a prefix of ids (`APF2`) or a name stands for. ValueError with the nearest for any other text."""
    prefix = selector.upper()
    if prefix.startswith("APF") and (found := tuple(one for one in ids() if one.startswith(prefix))):
        return found
    named = known(selector)
    if named is None:
        raise ValueError(f'No rule has the id, the prefix or the name "{clipped(selector)}".{_nearest(selector)}')
    return (named,)


def known(text: str) -> str | None:
    """The id that an id (in any case) or a name stands for."""
    return text.upper() if text.upper() in ids() else names().get(text.lower())


def _nearest(text: str) -> str:
    """Return a question for the rules whose id or name resembles `text`, after a space."""
    return suggest(text, ids(), 2) or suggest(text, names(), 2)


def _folder() -> str:
    """The folder of the pages."""
    return find_data_directory("rules")


# The page. Its front matter is YAML of a kind so simple that a few lines read it; a test holds them against a YAML parser.


def parse(text: str, page: str) -> Rule:
    """The rule in the text of a page. ValueError, with `page` and the line, where the page breaks the format."""
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise ValueError(f'{page}:1: a page starts with front matter between two lines "---".')
    end = lines.index("---", 1)
    values: dict[str, str] = {}
    references: list[str] = []
    for number, line in enumerate(lines[1:end], 2):
        if line.startswith("  - ") and "references" in values:
            references.append(_scalar(line[4:], page, number))
            continue
        key, colon, value = line.partition(":")
        if key not in (*_KEYS, *_MORE_KEYS) or not colon or key in values:
            keys = ", ".join((*_KEYS, *_MORE_KEYS))
            raise ValueError(f'{page}:{number}: "{line}" is not one of {keys}, each once, as "key: value".')
        values[key] = "" if key == "references" and not value else _scalar(value.removeprefix(" "), page, number)
        _check(key, values[key], page, number)
    missing = [key for key in _KEYS if key not in values]
    if missing or not references:
        raise ValueError(f"{page}:{end + 1}: the front matter lacks {', '.join(missing) or 'a reference'}.")
    return Rule(
        id=values["id"],
        name=values["name"],
        severity=cast("DefaultSeverity", values["severity"]),
        stage=cast("Stage", values["stage"]),
        since=values["since"],
        summary=values["summary"],
        references=tuple(references),
        body="\n".join(lines[end + 1 :]).strip("\n") + "\n",
        body_line=end + 2 + next((n for n, line in enumerate(lines[end + 1 :]) if line), 0),
        fix=cast("Fixable | None", values.get("fix")),
    )


def _scalar(text: str, page: str, number: int) -> str:
    """A value on one line: plain, or in quotes (which text with `: ` or ` #` needs)."""
    quote = text[:1]
    if quote in ("'", '"') and len(text) > 1 and text.endswith(quote):
        inner = text[1:-1]
        if quote == "'" and "'" not in inner.replace("''", ""):
            return inner.replace("''", "'")
        if quote == '"' and '"' not in inner and "\\" not in inner:
            return inner
    elif (
        text and text == text.strip() and text[0] not in "'\"[]{}&*!|>%@`#-?" and ": " not in text and " #" not in text
    ):
        return text
    raise ValueError(f"{page}:{number}: `{text}` is no plain text on one line; what has `: ` or ` #` needs quotes.")


def _check(key: str, value: str, page: str, number: int) -> None:
    """Hold the value of a key against the form that it must have."""
    forms = {"severity": DefaultSeverity, "stage": Stage, "fix": Fixable}
    choices = get_args(forms[key]) if key in forms else ()
    if choices and value not in choices:
        raise ValueError(f'{page}:{number}: the {key} "{value}" is none of {", ".join(choices)}.')
    if key in _FORMS and not re.fullmatch(_FORMS[key], value):
        raise ValueError(f'{page}:{number}: "{value}" has not the form of {key}.')


# The examples.

_FENCE = r"(`{3,})(\w*)(.*)"
_MARKED = r"[ \t]*# ~ (APF[0-9]{3}(?: APF[0-9]{3})*)[ \t]*$"
_MARKED_BELOW = r"[ \t]*# ~v (APF[0-9]{3}(?: APF[0-9]{3})*)[ \t]*$"


def examples(found: Rule) -> list[Example]:
    """The examples of a rule, in order: the `yaml` and `json` fences below the headings Bad and Good.

    ValueError, with page and line, for a fence that is not closed, an unknown option, a marker that is misspelt, and
    a bad example without or a good one with a marker.
    """
    return list(_examples(found))


def _examples(found: Rule) -> Iterator[Example]:
    heading = ""
    lines = iter(enumerate(found.body.split("\n"), found.body_line))
    for number, line in lines:
        if line.startswith("## "):
            heading = line[3:].strip().lower()
        fence = re.fullmatch(_FENCE, line)
        if not fence:
            continue
        content: list[str] = []
        for _, inner in lines:
            if inner == fence[1]:
                break
            content.append(inner)
        else:
            raise ValueError(f"rules/{found.id}.md:{number}: the fence that starts here is not closed.")
        if heading in ("bad", "good") and fence[2] in ("yaml", "json"):
            try:
                yield _example(cast("Literal['bad', 'good']", heading), fence[2], fence[3], content, number)
            except ValueError as error:
                raise ValueError(f"rules/{found.id}.md:{number}: {error}") from None


def _example(kind: Literal["bad", "good"], language: str, info: str, content: list[str], number: int) -> Example:
    options = dict(option.partition("=")[::2] for option in info.split())
    if unknown := options.keys() - {"kubernetes", "file"}:
        raise ValueError(f'"{min(unknown)}" is no option of an example; there are kubernetes= and file=.')
    kept: list[str] = []
    expected: list[tuple[str, int]] = []
    for line in content:
        if below := re.match(_MARKED_BELOW, line):
            expected += [(marked, len(kept) + 1) for marked in below[1].split()]
            continue
        if marker := re.search(_MARKED, line):
            expected += [(marked, len(kept) + 1) for marked in marker[1].split()]
            line = line[: marker.start()]  # noqa: PLW2901  # the line as the example has it
        if "# ~" in line:
            raise ValueError(f'"{line.strip()}" has a marker that is misspelt: write `# ~ APF123 APF124`.')
        kept.append(line)
    if (kind == "bad") != bool(expected):
        raise ValueError("a bad example marks its findings, and a good one has none.")
    return Example(
        kind=kind,
        text="".join(f"{line}\n" for line in kept),
        file=options.get("file", f"example.{language}"),
        kubernetes=options.get("kubernetes"),
        expected=tuple(expected),
        page_line=number,
    )


def readable(body: str) -> str:
    """`body` with its markers as comments that a reader understands, and fences without our options."""
    body = re.sub(_MARKED_BELOW, r"# \1: the next line", body, flags=re.MULTILINE)
    body = re.sub(_MARKED.removeprefix(r"[ \t]*"), r"# <- \1", body, flags=re.MULTILINE)
    return re.sub(r"^(`{3,}\w+)[ \t].*$", r"\1", body, flags=re.MULTILINE)
