"""A request as one line of text: the words that `apflint explain` takes, its options among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.evaluate.request import from_http, from_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.request import Request

_OPTIONS = {
    "-n": "namespace",
    "--namespace": "namespace",
    "--as": "user",
    "--as-group": "groups",
    "--method": "method",
    "--path": "path",
}
_ALL_NAMESPACES = ("-A", "--all-namespaces")


class Said(NamedTuple):
    """The parts of a request in words."""

    words: tuple[str, ...]
    user: str
    groups: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    method: str | None
    path: str | None


def parse(text: str, user: str | None = None, groups: Sequence[str] = ()) -> Said:
    """Takes a line apart. `user` and `groups` are those that are named elsewhere. ValueError, fit to be shown."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"the request cannot be taken apart: {str(error).lower()}") from error
    if words[:2] == ["apflint", "explain"]:
        words = words[2:]  # copied from the terminal
    plain: list[str] = []
    options: dict[str, list[str]] = {}
    all_namespaces = False
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word in _ALL_NAMESPACES:
            all_namespaces = True
        elif option in _OPTIONS:
            given = value if equals else next(rest, None)
            if given is None:
                raise ValueError(f'"{word}" is the last word of the request, and a value was expected after it')
            options.setdefault(_OPTIONS[option], []).append(given)
        elif word.startswith("-"):
            raise ValueError(f'"{word}" is no part of a request. Parts are {", ".join((*_OPTIONS, *_ALL_NAMESPACES))}')
        else:
            plain.append(word)
    for option in ("namespace", "user", "method", "path"):
        if len(options.get(option, ())) > 1:
            raise ValueError("the request has an option twice")
    if user is not None and "user" in options:
        raise ValueError("who asks is said twice: with `as`, and with `--as` in the request")
    asks = user if user is not None else next(iter(options.get("user", ())), None)
    if asks is None:
        raise ValueError(
            "who asks? Name the user with `as`, as in `as: alice` or `as: system:serviceaccount:NAMESPACE:NAME`"
        )
    return Said(
        tuple(plain),
        asks,
        (*groups, *options.get("groups", ())),
        next(iter(options.get("namespace", ())), None),
        all_namespaces,
        next(iter(options.get("method", ())), None),
        next(iter(options.get("path", ())), None),
    )


def request(said: Said) -> Request:
    """The request. ValueError, fit to be shown, where there is no such request."""
    if said.words:
        if said.method is not None or said.path is not None:
            raise ValueError("the request is named twice: in words, and with --method and --path")
        return from_words(
            said.words,
            user=said.user,
            groups=said.groups,
            namespace=said.namespace,
            all_namespaces=said.all_namespaces,
        )
    if said.path is None:
        raise ValueError(
            'name a verb and a resource, as in "list pods -n team-a", or a verb and a path, as in "get /healthz"'
        )
    return from_http(said.method or "GET", said.path, user=said.user, groups=said.groups)


def spoken(said: Said) -> tuple[str, ...]:
    """The arguments of `apflint explain` that mean the same."""
    options = [("--method", said.method), ("--path", said.path), ("-n", said.namespace), ("--as", said.user)]
    options += [("--as-group", group) for group in said.groups]
    arguments = list(said.words)
    for option, value in options:
        if value is not None:
            arguments += [f"{option}={value}"] if value.startswith("-") else [option, value]
    return (*arguments, *(["-A"] if said.all_namespaces else []))
