"""The format: which keys a suite has, and what they mean. docs/policy-tests.md tells it to people, schemas/apflint-test.json to editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from apflint.errors import UserError
from apflint.policy import conditions
from apflint.policy.suite import (
    WHEN_FULL,
    Destination,
    Example,
    Expectation,
    Property,
    Reachability,
    Suite,
    WhenFull,
)
from apflint.releases import release
from apflint.requests.command_line import parse_command_line
from apflint.wording import suggest

if TYPE_CHECKING:
    from typing import Literal

    from apflint.location import Path
    from apflint.model import PolicyRulesWithSubjects
    from apflint.policy.reading import Fields
    from apflint.proofs.parts import World
    from apflint.releases import Release

SUITE_KEYS = ("manifests", "kubernetes", "serverConcurrency", "world", "except", "tests")
KINDS = ("request", "never", "always", "reachable", "unreachable")
REQUEST_KEYS = ("name", "request", "as", "groups", "reaches")
NAME_KEYS = ("flowSchema", "priorityLevel")
ALWAYS_KEYS = (*NAME_KEYS, "whenFull", "minSeats")
NEVER_KEYS = (*NAME_KEYS, "whenFull")
EXAMPLE_KEYS = (*ALWAYS_KEYS, "distinguisher")
WORLDS = ("authenticated", "any")

_NOT_FOR_ALL = {
    "distinguisher": "Many requests have many distinguishers: say it of one, with `request`",
    "minSeats": "Say it the other way round: `always`, with `minSeats`",
}


def suite(fields: Fields) -> Suite | None:
    """The suite in a document; what is wrong is noted in `fields`, and then the value is of no use."""
    if not fields.keys((), SUITE_KEYS):
        return None
    tests = fields.value(("tests",))
    if not isinstance(tests, list) or not tests:
        fields.wrong(("tests",), "`tests` is a list of what must hold, and there is none in it")
        tests = []
    made = [_test(fields, ("tests", at)) for at in range(len(tests))]
    return Suite(
        fields.document,
        _manifests(fields),
        _release(fields),
        fields.whole(("serverConcurrency",)),
        cast("World", _one_of(fields, ("world",), WORLDS) or WORLDS[0]),
        _but_for(fields, ("except",)),
        tuple(test for test in made if test is not None),
    )


def _manifests(fields: Fields) -> tuple[str, ...] | None:
    path: Path = ("manifests",)
    if fields.value(path) == []:
        return ()
    if "-" in (found := fields.texts(path)):
        fields.wrong(path, "a suite names its manifests; to read standard input use `-f -` on the command line")
    return found if fields.has(path) else None


def _release(fields: Fields) -> Release | None:
    text = fields.text(("kubernetes",))
    try:
        return release(text) if text else None
    except ValueError as error:
        fields.wrong(("kubernetes",), str(error).rstrip("."))
        return None


def _one_of(fields: Fields, path: Path, known: tuple[str, ...]) -> str:
    text = fields.text(path)
    if text and text not in known:
        fields.wrong(path, f'"{text}" is not one of {", ".join(known)}.{suggest(text, known)}'.rstrip("."))
    return text


def _test(fields: Fields, path: Path) -> Expectation | None:
    """One expectation: told by which of the five keys it has."""
    value = fields.value(path)
    kinds = [kind for kind in KINDS if isinstance(value, dict) and kind in value]
    if len(kinds) > 1:
        fields.wrong(
            (*path, kinds[1]), f"`{kinds[0]}` and `{kinds[1]}` are two expectations: write two entries", key=True
        )
        return None
    known = REQUEST_KEYS if kinds == ["request"] else ("name", *(kinds or KINDS))
    hints = dict.fromkeys(("as", "groups"), "It belongs to a `request`; who asks is said with `subject` here")
    hints |= dict.fromkeys(("subject", "verbs", "resources", "reaches"), "It belongs inside, one level deeper")
    before = len(fields.mistakes)
    if not fields.keys(path, known, None if kinds == ["request"] or not kinds else hints):
        return None
    if len(fields.mistakes) > before:
        return None  # what is misplaced is missing elsewhere: that would be the same mistake told twice
    name = fields.text((*path, "name"))
    if not kinds:
        fields.wrong(path, f"this expects nothing: one of {', '.join(KINDS)} says what")
        return None
    (kind,) = kinds
    claim: Example | Property | Reachability | None
    if kind == "request":
        claim = _example(fields, path)
    elif kind in ("never", "always"):
        claim = _property(fields, (*path, kind), cast('Literal["never", "always"]', kind))
    else:
        where = _destination(fields, (*path, kind), NAME_KEYS)
        claim = where and Reachability(cast('Literal["reachable", "unreachable"]', kind), where)
    return None if claim is None else Expectation(path, name, claim)


def _example(fields: Fields, path: Path) -> Example | None:
    before = len(fields.mistakes)
    text, user = fields.text((*path, "request")), fields.text((*path, "as"))
    groups = fields.texts((*path, "groups"))
    whole = len(fields.mistakes) == before
    reaches = _destination(fields, (*path, "reaches"), EXAMPLE_KEYS)
    if not whole or reaches is None:
        return None
    try:
        arguments = parse_command_line(text, user or None, groups)
        return Example(arguments.to_request(), arguments.to_command_line(), reaches)
    except UserError as error:
        fields.wrong((*path, "request"), str(error))
        return None


def _property(fields: Fields, path: Path, kind: Literal["never", "always"]) -> Property | None:
    if not fields.keys(path, (*conditions.KEYS, "except", "reaches"), conditions.HINTS):
        return None
    reaches = _destination(fields, (*path, "reaches"), ALWAYS_KEYS if kind == "always" else NEVER_KEYS)
    requests = conditions.requests(fields, path)
    return None if reaches is None else Property(kind, requests, _but_for(fields, (*path, "except")), reaches)


def _but_for(fields: Fields, path: Path) -> tuple[PolicyRulesWithSubjects, ...]:
    """`except`: one set of requests, or a list of them."""
    if not fields.has(path):
        return ()
    excepted = fields.value(path)
    paths: list[Path] = [(*path, at) for at in range(len(excepted))] if isinstance(excepted, list) else [path]
    found = []
    if not paths:
        fields.wrong(path, "the list is empty, so it excepts nothing: leave it out")
    for each in paths:
        if not fields.keys(each, conditions.KEYS, conditions.HINTS):
            continue
        if not fields.value(each):
            fields.wrong(each, "this excepts every request, so that nothing is left to say")
        found.append(conditions.requests(fields, each))
    return tuple(found)


def _destination(fields: Fields, path: Path, known: tuple[str, ...]) -> Destination | None:
    """`reaches`, `reachable` or `unreachable`: the name of a priority level, a list of names, or a mapping."""
    value = fields.value(path)
    if isinstance(value, str) or (isinstance(value, list) and value):
        return Destination(path, priority_levels=fields.texts(path))
    if value is None or value == {}:
        what = "where such requests go" if path[-1] == "reaches" else "what is meant, as in `flowSchema: NAME`"
        fields.wrong(path, f"`{path[-1]}` is missing or empty: it says {what}")
        return None
    if not fields.keys(path, known, {key: hint for key, hint in _NOT_FOR_ALL.items() if key not in known}):
        return None
    when_full = fields.places((*path, "whenFull"))
    fields.texts((*path, "whenFull"))
    for place, _ in when_full:
        _one_of(fields, place, WHEN_FULL)
    return Destination(
        path,
        fields.texts((*path, "flowSchema")),
        fields.texts((*path, "priorityLevel")),
        cast("tuple[WhenFull, ...]", tuple(text for _, text in when_full)),
        fields.whole((*path, "minSeats")) if "minSeats" in known else None,
        _distinguisher(fields, path) if "distinguisher" in known else None,
    )


def _distinguisher(fields: Fields, path: Path) -> str | None:
    """The only text that may be empty: requests without a namespace have none."""
    place = (*path, "distinguisher")
    return "" if fields.value(place) == "" else fields.text(place) or None
