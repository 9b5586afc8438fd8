"""`apflint explain` and `apflint limits`: takes the question apart, reads the manifests, prints the answer."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli import files, manifests
from apflint.cli.explain import Explainer, as_json, by_uid
from apflint.cli.terminal import style
from apflint.evaluate import records
from apflint.evaluate.limits import compute, server_concurrency
from apflint.evaluate.request import Request, from_http, from_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.cli.manifests import Manifests
    from apflint.evaluate.limits import Limits
    from apflint.report import Style


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


class ServerSize(NamedTuple):
    """How many requests one API server executes at once, as the user says it."""

    total: int | None = None
    max_requests_inflight: int | None = None
    max_mutating_requests_inflight: int | None = None

    def seats(self) -> int:
        """The server concurrency limit. ValueError where the options contradict each other or make no server."""
        if self.total is None:
            return server_concurrency(self.max_requests_inflight, self.max_mutating_requests_inflight)
        if self.max_requests_inflight is not None or self.max_mutating_requests_inflight is not None:
            raise ValueError("--server-concurrency is the sum of the two inflight flags: give it or them, not both")
        return self.total


def run(
    question: Question,
    paths: tuple[str, ...],
    kubernetes: str | None,
    size: ServerSize,
    *,
    defaults: bool,
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
    if interactive and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError(
            "which request? For example: apflint explain list pods -n team-a --as alice. On a terminal apflint asks"
        )
    if "-" in paths and "-" in (question.event, question.requests):
        raise ValueError("standard input can be the manifests or the requests, not both")
    known = manifests.read(paths, kubernetes, defaults=defaults)
    if question.flow_schema_uid is not None or question.priority_level_uid is not None:
        return _uids(question, known, output)
    explainer = Explainer(known, size.seats())
    if interactive:
        from apflint.cli.interactive import converse

        return converse(explainer, question, style(color))
    if question.requests is not None:
        return _many(
            explainer, question.requests, records.from_record, reasons=verbose, output="json", how=style(color)
        )
    if question.event is not None:
        return _many(explainer, question.event, records.from_event, reasons=True, output=output, how=style(color))
    _print(explainer, request(question), output, style(color))
    return 0


def request(question: Question) -> Request:
    """The request in a question of words or HTTP. ValueError for what is none."""
    user = question.user
    if user is None:
        raise ValueError(
            "who asks? Name the user with --as, as in --as alice or --as system:serviceaccount:NAMESPACE:NAME"
        )
    if question.words:
        return from_words(
            question.words,
            user=user,
            groups=question.groups,
            namespace=question.namespace,
            all_namespaces=question.all_namespaces,
        )
    if question.path is None:
        raise ValueError("--method needs --path, the path of the URL with its query")
    return from_http(question.method or "GET", question.path, user=user, groups=question.groups)


def _print(explainer: Explainer, asked: Request, output: str, how: Style) -> None:
    answer = explainer.explain(asked)
    if output == "json":
        sys.stdout.write(json.dumps(as_json(answer, explainer.limits), indent=2) + "\n")
    else:
        from apflint.cli.story import story

        sys.stdout.write(story(answer, explainer, how))


def _many(
    explainer: Explainer, path: str, read: Callable[[object], Request], *, reasons: bool, output: str, how: Style
) -> int:
    """Requests from a file: a line of JSON for each, or with text the stories one after the other."""
    (found,) = files.discover([path])
    data = files.read(found)
    if isinstance(data, files.Unreadable):
        raise ValueError(f"{found.name}: {data.reason}")  # noqa: TRY004  # it is the path that is wrong
    lines = records.json_values(data.decode("utf-8-sig", "replace"))
    failed = 0
    if output == "text":
        for number, line in enumerate(lines):
            problem = line.error
            if problem is None:
                try:
                    asked = read(line.value)
                    sys.stdout.write("\n" if number else "")
                    _print(explainer, asked, output, how)
                except ValueError as error:
                    problem = str(error)
            if problem is not None:
                failed += 1
                sys.stderr.write(f"apflint: {found.name}:{line.number}: {problem}\n")
        return 2 if failed else 0
    write, dumps = sys.stdout.write, json.JSONEncoder().encode
    for answer in explainer.answers(lines, read, reasons=reasons):
        write(dumps(answer) + "\n")
        if "error" in answer:
            failed += 1
            sys.stderr.write(f"apflint: {found.name}:{answer['inputLine']}: {answer['error']}\n")
    return 2 if failed else 0


def _uids(question: Question, known: Manifests, output: str) -> int:
    found = by_uid(known, question.flow_schema_uid, question.priority_level_uid)
    if output == "json":
        named = {"flowSchema": found.flow_schema, "priorityLevel": found.priority_level}
        sys.stdout.write(json.dumps(named, indent=2) + "\n")
    else:
        for what, name in (("FlowSchema", found.flow_schema), ("priority level", found.priority_level)):
            if name is not None:
                sys.stdout.write(f"{what}: {name}\n")
    return 0


def limits(
    paths: tuple[str, ...],
    compare: tuple[str, str] | None,
    kubernetes: str | None,
    size: ServerSize,
    *,
    defaults: bool,
    output: str,
    color: str,
) -> int:
    """Prints the seats of every level, or what each gains and loses. ValueError, fit to be shown."""
    from apflint.cli import limits as tables
    from apflint.report.terminal import Paint

    how = style(color)
    paint = Paint(colour=how.colour)
    if compare is None:
        found = _limits(manifests.read(paths, kubernetes, defaults=defaults), size)
        if output == "json":
            sys.stdout.write(json.dumps(tables.limits_json(found), indent=2) + "\n")
        else:
            sys.stdout.write(tables.render(found, width=how.width, paint=paint))
        return 0
    old, new = (_limits(manifests.read_one(path, kubernetes, defaults=defaults), size) for path in compare)
    if output == "json":
        sys.stdout.write(json.dumps(tables.comparison_json(old, new), indent=2) + "\n")
    else:
        sys.stdout.write(tables.render_comparison(old, new, width=how.width, paint=paint))
    return 0


def _limits(known: Manifests, size: ServerSize) -> Limits:
    configuration = known.configuration
    return compute(tuple(configuration.levels.values()), configuration.order, size.seats(), known.release)
