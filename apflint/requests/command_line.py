"""A request from the arguments of `apflint explain`, and back: `list pods -n team-a --as alice`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from typing import TYPE_CHECKING, NoReturn

from apflint.errors import UserError
from apflint.record import NamedTuple
from apflint.requests.request import parse_http
from apflint.requests.words import parse_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.requests.request import Request

_OPTIONS = {"method": ("--method",), "path": ("--path",), "namespace": ("-n", "--namespace"), "user": ("--as",)}
"""Names of the options with one value, by fields of `RequestArguments`."""


class RequestArguments(NamedTuple):
    """The arguments that name one request: words, or method and path."""

    user: str
    words: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespace: str | None = None
    all_namespaces: bool = False
    method: str | None = None
    path: str | None = None

    def to_request(self) -> Request:
        """Return the request. Raises UserError if the arguments are not a request."""
        if self.path is not None and not self.words:
            return parse_http(self.method or "GET", self.path, user=self.user, groups=self.groups)
        if self.words and (self.method is not None or self.path is not None):
            raise UserError("the request is given twice: in words, and with --method and --path")
        return parse_words(
            self.words,
            user=self.user,
            groups=self.groups,
            namespace=self.namespace,
            all_namespaces=self.all_namespaces,
        )

    def to_command_line(self) -> tuple[str, ...]:
        """Return the arguments that `parse_command_line` reads as these values."""
        options = [(names[0], getattr(self, field)) for field, names in _OPTIONS.items()]
        arguments = list(self.words)
        for option, value in (*options, *(("--as-group", group) for group in self.groups)):
            if value is not None:
                arguments += [f"{option}={value}"] if value.startswith("-") else [option, value]
        return (*arguments, *(["-A"] if self.all_namespaces else []))


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"cannot parse the request: {message}")


def parse_command_line(text: str, user: str | None = None, groups: Sequence[str] = ()) -> RequestArguments:
    """Parse the arguments of `apflint explain` that name a request; `user` and `groups` are given separately.

    Raises UserError if the text is not such a command line.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"cannot parse the request: {str(error).lower()}") from None
    if words[:2] == ["apflint", "explain"]:
        words = words[2:]  # copied from a terminal
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for field, names in _OPTIONS.items():
        parser.add_argument(*names, dest=field, action="append")
    parser.add_argument("--as-group", dest="groups", action="append", default=[])
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    values = vars(parser.parse_intermixed_args(words))
    for field, names in _OPTIONS.items():
        value, *others = values[field] or [None]
        if others:
            raise UserError(f"the request has {'/'.join(names)} twice")
        values[field] = value
    if user is None:
        user = values["user"]
    elif values["user"] is not None:
        raise UserError("the user is given twice: with `as`, and with `--as` in the request")
    if user is None:
        raise UserError(
            "the request has no user: add `as`, as in `as: alice` or `as: system:serviceaccount:NAMESPACE:NAME`"
        )
    named = {"user": user, "words": tuple(values["words"]), "groups": (*groups, *values["groups"])}
    return RequestArguments(**values | named)
