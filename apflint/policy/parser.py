"""Parser of suites of policy tests. Errors in a suite do not raise exceptions: they are returned as `Mistake` values.

The format is documented in `docs/guides/policy-tests.md`. `schemas/apflint-test.json` is its JSON schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from apflint.load.apflint_files import Fields, read_fields
from apflint.named_tuple import NamedTuple
from apflint.policy.expectation import (
    WHEN_FULL,
    Expectation,
    Property,
    Reachability,
    RequestExpectation,
    Requirement,
    Suite,
    WhenFull,
)
from apflint.policy.request_sets import HINTS, KEYS, parse_requests
from apflint.proofs.request_space import World
from apflint.releases import Release, parse_release
from apflint.requests.request_words import parse_command_line
from apflint.user_error import UserError
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from typing import Literal

    from apflint.load.apflint_files import Mistake
    from apflint.load.source_text import Source
    from apflint.location import Path
    from apflint.model import PolicyRulesWithSubjects

_SUITE_KEYS = ("manifests", "clusters", "kubernetes", "serverConcurrency", "world", "except", "tests")
_KINDS = ("request", "never", "always", "reachable", "unreachable")
_NAME_KEYS = ("flowSchema", "priorityLevel")
_REACHES_KEYS = {
    "request": (*_NAME_KEYS, "whenFull", "minSeats", "nominalSeats", "distinguisher"),
    "never": (*_NAME_KEYS, "whenFull"),
    "always": (*_NAME_KEYS, "whenFull", "minSeats", "nominalSeats"),
}
_REACHES_HINTS = {
    "distinguisher": "Different requests have different distinguishers: use `request`",
    "minSeats": "Use `always` with `minSeats` instead",
    "nominalSeats": "Use `always` with `nominalSeats` instead",
}


class ParsedSuite(NamedTuple):
    """The result of parsing a suite. `suite` is None if there are mistakes."""

    source: Source
    suite: Suite | None
    mistakes: tuple[Mistake, ...]


def parse_suite(name: str, data: bytes) -> ParsedSuite:
    """Parse a suite. `name` is the file name for messages; if it ends with `.json`, parse JSON instead of YAML."""
    file = read_fields(name, data, "suite", "`manifests` and `tests`", "list all expectations under one `tests`")
    suite = None if file.fields is None else _parse_suite(file.fields)
    mistakes = file.find_mistakes()
    return ParsedSuite(file.source, None if mistakes else suite, mistakes)


def _parse_suite(fields: Fields) -> Suite | None:
    """Return the suite, or None if the file is not a mapping. If `fields` has mistakes, values of the suite may be wrong."""
    if not fields.check_keys((), _SUITE_KEYS):
        return None
    tests = fields.value(("tests",))
    if not isinstance(tests, list) or not tests:
        fields.reject(("tests",), "`tests` must be a list with at least one expectation")
        tests = []
    expectations = [_parse_expectation(fields, ("tests", number)) for number in range(len(tests))]
    return Suite(
        fields.document,
        _parse_manifests(fields),
        _parse_clusters(fields),
        _parse_release(fields),
        fields.integer(("serverConcurrency",)),
        cast("World", fields.choice(("world",), get_args(World)) or "authenticated"),
        _parse_excluded(fields, ("except",)),
        tuple(test for test in expectations if test is not None),
    )


def _parse_manifests(fields: Fields) -> tuple[str, ...] | None:
    path: Path = ("manifests",)
    if fields.value(path) == [] or not fields.has(path):
        return () if fields.has(path) else None
    manifests = tuple(fields.strings(path).values())
    if "-" in manifests:
        fields.reject(path, "a suite cannot name standard input: use `-f -` on the command line instead of `-`")
    return manifests


def _parse_clusters(fields: Fields) -> dict[Path, str]:
    path: Path = ("clusters",)
    if fields.has(path) and fields.has(("manifests",)):
        fields.reject(
            path,
            "a suite must not have both `clusters` and `manifests`, because each cluster has its own manifests: remove one of the two keys",
            key=True,
        )
    names = fields.strings(path)
    seen: set[str] = set()
    for place, name in names.items():
        if name in seen:
            fields.reject(place, f"the cluster {quote(name)} is already in the list: remove the second entry")
        seen.add(name)
    return names


def _parse_release(fields: Fields) -> Release | None:
    text = fields.string(("kubernetes",))
    try:
        return parse_release(text) if text else None
    except UserError as error:
        fields.reject(("kubernetes",), str(error))
        return None


def _parse_expectation(fields: Fields, path: Path) -> Expectation | None:
    value = fields.value(path)
    kinds = [kind for kind in _KINDS if isinstance(value, dict) and kind in value]
    if len(kinds) > 1:
        message = f"an entry is one expectation, and cannot have both `{kinds[0]}` and `{kinds[1]}`: write two entries"
        fields.reject((*path, kinds[1]), message, key=True)
        return None
    kind = kinds[0] if kinds else None
    hints = dict.fromkeys(
        ("as", "groups"), "Use this key only next to `request`; next to other keys, name the user in `subject`"
    )
    hints |= dict.fromkeys(("subject", "verbs", "resources", "reaches"), "Move it one level deeper")
    keys = ("name", "request", "as", "groups", "reaches") if kind == "request" else ("name", *(kinds or _KINDS))
    count = len(fields.mistakes)
    if not fields.check_keys(path, keys, {} if kind in (None, "request") else hints) or len(fields.mistakes) > count:
        return None  # do not parse the entry: a misplaced key would also be reported as missing from its correct place
    name = fields.string((*path, "name"))
    claim: RequestExpectation | Property | Reachability | None
    if kind is None:
        fields.reject(path, f"this entry is not an expectation: add {join_words(_KINDS)}")
        return None
    if kind == "request":
        claim = _parse_example(fields, path)
    elif kind in ("never", "always"):
        claim = _parse_property(fields, (*path, kind), cast('Literal["never", "always"]', kind))
    else:
        names = _parse_requirement(fields, (*path, kind), _NAME_KEYS)
        claim = names and Reachability(cast('Literal["reachable", "unreachable"]', kind), names)
    return None if claim is None else Expectation(path, name, claim)


def _parse_example(fields: Fields, path: Path) -> RequestExpectation | None:
    count = len(fields.mistakes)
    text, user = fields.string((*path, "request")), fields.string((*path, "as"))
    groups = tuple(fields.strings((*path, "groups")).values())
    is_complete = len(fields.mistakes) == count
    reaches = _parse_requirement(fields, (*path, "reaches"), _REACHES_KEYS["request"])
    if not is_complete or reaches is None:
        return None
    try:
        arguments = parse_command_line(text, user or None, groups)
        return RequestExpectation(arguments.to_request(), arguments.to_command_line(), reaches)
    except UserError as error:
        fields.reject((*path, "request"), str(error))
        return None


def _parse_property(fields: Fields, path: Path, kind: Literal["never", "always"]) -> Property | None:
    if not fields.check_keys(path, (*KEYS, "except", "reaches"), HINTS):
        return None
    reaches = _parse_requirement(fields, (*path, "reaches"), _REACHES_KEYS[kind])
    requests = parse_requests(fields, path)
    return None if reaches is None else Property(kind, requests, _parse_excluded(fields, (*path, "except")), reaches)


def _parse_excluded(fields: Fields, path: Path) -> tuple[PolicyRulesWithSubjects, ...]:
    """Parse `except`, which is a set of requests or a list of such sets."""
    excluded = []
    if fields.value(path) == []:
        fields.reject(path, "an empty list excludes nothing: remove it")
    for item in fields.items(path):
        if not fields.check_keys(item, KEYS, HINTS):
            continue
        if not fields.value(item):
            fields.reject(item, "this excludes all requests")
        excluded.append(parse_requests(fields, item))
    return tuple(excluded)


def _parse_requirement(fields: Fields, path: Path, keys: tuple[str, ...]) -> Requirement | None:
    """Parse `reaches`, `reachable` or `unreachable`: the name of a priority level, a list of names, or a mapping."""
    value = fields.value(path)
    if isinstance(value, str) or (isinstance(value, list) and value):
        return Requirement(path, priority_levels=tuple(fields.strings(path).values()))
    if value is None or value == {}:
        what = "the destination of these requests" if path[-1] == "reaches" else "names, such as `flowSchema: NAME`"
        fields.reject(path, f"`{path[-1]}` is missing or empty: write {what}")
        return None
    if not fields.check_keys(path, keys, {key: hint for key, hint in _REACHES_HINTS.items() if key not in keys}):
        return None
    when_full = fields.strings((*path, "whenFull"))
    for item in when_full:
        fields.choice(item, WHEN_FULL)
    distinguisher = None
    if "distinguisher" in keys and fields.has((*path, "distinguisher")):
        # The distinguisher may be empty. With ByNamespace, an empty distinguisher means the flow of
        # requests without a namespace.
        distinguisher = fields.string((*path, "distinguisher"), may_be_empty=True)
    return Requirement(
        path,
        tuple(fields.strings((*path, "flowSchema")).values()),
        tuple(fields.strings((*path, "priorityLevel")).values()),
        cast("tuple[WhenFull, ...]", tuple(when_full.values())),
        fields.integer((*path, "minSeats")) if "minSeats" in keys else None,
        fields.integer((*path, "nominalSeats")) if "nominalSeats" in keys else None,
        distinguisher,
    )
