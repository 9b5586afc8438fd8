"""`apflint explain` and `apflint limits`: takes the question apart, reads the manifests, prints the answer."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.outcome import note
from apflint.cli.progress import working
from apflint.cli.terminal import style
from apflint.formats import check_dns_label
from apflint.inputs import discovery
from apflint.inputs.cluster import read_cluster, read_configuration
from apflint.output.explain import Explainer, as_json, by_uid
from apflint.output.json_text import to_json
from apflint.output.sanitize import sanitize
from apflint.requests.audit_event import parse_event
from apflint.requests.http import parse_http
from apflint.requests.json_lines import parse_record, read_json_values
from apflint.requests.request import COLLECTION_VERBS, Request
from apflint.requests.words import parse_words
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.effective import Effective
    from apflint.inputs.cluster import ClusterOptions
    from apflint.output.console import Style

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_KEPT_CHARACTERS = 16 * 1024 * 1024
_SHOWN = 10
"""How many lines without a request are told one by one."""


class Question(NamedTuple):
    """A request as the command line names it: in words, as HTTP, or in files."""

    words: tuple[str, ...] = ()
    user: str | None = None
    groups: tuple[str, ...] = ()
    namespace: str | None = None
    all_namespaces: bool = False
    method: str | None = None
    path: str | None = None
    event: str | None = None
    requests: str | None = None
    flow_schema_uid: str | None = None
    priority_level_uid: str | None = None

    @property
    def ways(self) -> int:
        """In how many ways a request is named; one is right, none asks."""
        http = self.method is not None or self.path is not None
        uids = self.flow_schema_uid is not None or self.priority_level_uid is not None
        return sum(map(bool, (self.words, http, self.event, self.requests, uids)))


def run(
    question: Question,
    paths: tuple[str, ...],
    cluster: ClusterOptions,
    *,
    output: str,
    color: str,
    verbose: bool,
) -> int:
    """Explains and prints. ValueError, fit to be shown, for what names no request."""
    if question.ways > 1:
        raise ValueError(
            "name one request: in words, with --method and --path, or with one of --event, --requests, --*-uid"
        )
    interactive = question.ways == 0
    if interactive and not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):  # None if closed
        raise ValueError(
            "which request? For example: apflint explain list pods -n team-a --as alice. On a terminal apflint asks"
        )
    if "-" in paths and "-" in (question.event, question.requests):
        raise ValueError("standard input can be the manifests or the requests, not both")
    _consistent(question)
    in_files = question.requests is not None or question.event is not None
    uids = question.flow_schema_uid is not None or question.priority_level_uid is not None
    # What is wrong with the question itself is told before anything is read.
    asked = None if interactive or in_files or uids else _name_or_path(request(question), question.words)
    known = read_cluster(paths, cluster, note)
    if uids:
        return _uids(question, known, output)
    explainer = Explainer(known)
    if asked is not None:
        _print(explainer, asked, output, style(color))
        return 0
    if question.requests is not None:
        return _answers(explainer, question.requests, parse_record, reasons=verbose)
    if question.event is not None:
        if output == "json":
            return _answers(explainer, question.event, parse_event, reasons=True)
        return _stories(explainer, question.event, parse_event, style(color))
    from apflint.cli.interactive import converse

    return converse(explainer, question, style(color))


def _consistent(question: Question) -> None:
    """ValueError where an option says something of the request that is said otherwise already, or that nobody heeds."""
    elsewhere = question.event or question.requests or question.flow_schema_uid or question.priority_level_uid
    if elsewhere and (question.user is not None or question.groups):
        raise ValueError("--as and --as-group go with a request in words or with --path: leave them out here")
    if (question.namespace is not None or question.all_namespaces) and (elsewhere or question.path is not None):
        raise ValueError("-n and -A go with a request for a resource in words: leave them out here")
    if question.namespace is None:
        return
    if question.all_namespaces:
        raise ValueError(
            f'-n "{sanitize(question.namespace)}" is one namespace, and -A is for all. Give one of the two'
        )
    if problem := check_dns_label(question.namespace):
        raise ValueError(f'-n: "{sanitize(question.namespace)}" is no name of a namespace: {problem}')


def _name_or_path(asked: Request, words: tuple[str, ...]) -> Request:
    """Note that a word taken as the name of an object is also a path, as in `explain list pods manifests`.

    Raises ValueError with a message for the user if the verb takes no name.
    """
    word = words[2] if len(words) > 2 else ""
    if not (os.path.isdir(word) or (word.endswith(discovery.SUFFIXES) and os.path.isfile(word))):
        return asked
    shown = sanitize(word)
    if asked.info.verb in COLLECTION_VERBS:
        raise ValueError(
            f'"{shown}" is a path, and {asked.info.verb} takes no object name. To read manifests from it, use -f {shown}'
        )
    note = f'"{word}" is read as the name of an object. To read manifests from the path of this name, use -f.'
    return asked._replace(notes=(*asked.notes, note))


def request(question: Question) -> Request:
    """The request in a question of words or HTTP. ValueError, fit for a terminal, for what is none."""
    try:
        return _request(question)
    except ValueError as error:
        raise ValueError(sanitize(str(error))) from None


def _request(question: Question) -> Request:
    user = question.user
    if not user or user.isspace():
        raise ValueError(
            "who asks? Name the user with --as, as in --as alice or --as system:serviceaccount:NAMESPACE:NAME"
        )
    if question.words:
        return parse_words(
            question.words,
            user=user,
            groups=question.groups,
            namespace=question.namespace,
            all_namespaces=question.all_namespaces,
        )
    if question.path is None:
        raise ValueError("--method needs --path, the path of the URL with its query")
    if question.method is not None and question.method.upper() not in METHODS:
        raise ValueError(f'--method: HTTP has no method "{question.method}". Methods are {", ".join(METHODS)}')
    return parse_http(question.method or "GET", question.path, user=user, groups=question.groups)


def _print(explainer: Explainer, asked: Request, output: str, how: Style) -> None:
    answer = explainer.explain(asked)
    if output == "json":
        sys.stdout.write(to_json(as_json(answer, explainer.limits), 2))
    else:
        from apflint.output.story import story

        sys.stdout.write(story(answer, explainer, how))


def _stories(explainer: Explainer, path: str, read: Callable[[object], Request], how: Style) -> int:
    """The stories of all requests in a file, one after the other."""
    from apflint.output.answers import pieces_of
    from apflint.output.story import story

    data = b"".join(pieces_of(path))
    errors: list[tuple[int, str]] = []
    count = 0
    gap = ""
    stories: dict[Request, str] = {}
    kept = 0
    for line in read_json_values(data.decode("utf-8-sig", "replace")):
        problem = line.error
        if problem is None:
            try:
                asked = read(line.value)
                text = stories.get(asked)  # most events of a log are alike
                if text is None:
                    text = story(explainer.explain(asked), explainer, how)
                    kept += len(text)
                    if kept > _KEPT_CHARACTERS:
                        stories.clear()
                        kept = len(text)
                    stories[asked] = text
                sys.stdout.write(gap + text)
                gap = "\n"
                continue
            except ValueError as error:
                problem = str(error)
        count += 1
        if count <= _SHOWN:
            errors.append((line.line, problem))
    return _said(path, errors, count)


def _answers(explainer: Explainer, path: str, read: Callable[[object], Request], *, reasons: bool) -> int:
    """A line of JSON for each request in a file, as they come."""
    from apflint.output.answers import answers, pieces_of

    errors: list[tuple[int, str]] = []
    count = 0
    answered = 0
    gc.disable()  # what is remembered is bounded and without cycles; to look through it takes a fifth of the time
    try:
        with working(lambda: f"Explained {pluralize(answered, 'request')}") as start:
            if not sys.stdout.isatty():  # there, the answers themselves show the progress
                start()
            for text, found in answers(explainer, read, pieces_of(path), reasons=reasons):
                sys.stdout.write(text)
                sys.stdout.flush()  # what is read from a pipe is answered at once
                answered += text.count("\n")
                errors += found[: _SHOWN - len(errors)]
                count += len(found)
    finally:
        gc.enable()
    return _said(path, errors, count)


def _said(path: str, errors: list[tuple[int, str]], count: int) -> int:
    """Tells the first lines of `count` that name no request."""
    name = sanitize("<stdin>" if path == "-" else path)
    for line, problem in errors:
        sys.stderr.write(f"apflint: {name}:{line}: {sanitize(problem)}\n")
    if count > len(errors):
        sys.stderr.write(f"apflint: {name}: {pluralize(count - len(errors), 'more line')} without a request\n")
    return 2 if count else 0


def _uids(question: Question, known: Effective, output: str) -> int:
    found = by_uid(known, question.flow_schema_uid, question.priority_level_uid)
    if output == "json":
        named = {"flowSchema": found.flow_schema, "priorityLevel": found.priority_level}
        sys.stdout.write(to_json(named, 2))
    else:
        for what, name in (("FlowSchema", found.flow_schema), ("priority level", found.priority_level)):
            if name is not None:
                sys.stdout.write(f"{what}: {name}\n")
    return 0


def limits(
    paths: tuple[str, ...],
    compare: tuple[str, str] | None,
    cluster: ClusterOptions,
    *,
    output: str,
    color: str,
) -> int:
    """Prints the seats of every level, or what each gains and loses. ValueError, fit to be shown."""
    from apflint.output import limits as tables
    from apflint.output.console import Painter

    how = style(color)
    paint = Painter(color=how.color)
    if compare is not None and paths:
        raise ValueError(
            "--compare names two configurations, so there is no room for a third. Leave out the other paths"
        )
    if compare is None:
        found = read_cluster(paths or (".",), cluster, note).limits
        if output == "json":
            sys.stdout.write(to_json(tables.limits_json(found), 2))
        else:
            sys.stdout.write(tables.render(found, width=how.width, paint=paint, unicode=_shows("█░")))
        return 0
    old, new = (read_configuration(path, cluster, note).limits for path in compare)
    if output == "json":
        sys.stdout.write(to_json(tables.comparison_json(old, new), 2))
    else:
        sys.stdout.write(tables.render_comparison(old, new, width=how.width, paint=paint))
    return 0


def _shows(characters: str) -> bool:
    """Whether standard output takes these characters in its encoding."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
