"""`apflint explain`."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import completers, options
from apflint.cli.app import app, examples
from apflint.cli.exit_codes import ExitCode, print_note
from apflint.cli.options import OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.errors import UserError
from apflint.explainer import Explainer, find_name_by_uid
from apflint.formats import check_dns_label
from apflint.inputs.cluster import read_cluster
from apflint.inputs.discovery import SUFFIXES
from apflint.inputs.streams import read_pieces, split_lines
from apflint.output.explain.json import explanation_json
from apflint.output.explain.lines import explain_lines
from apflint.output.explain.text import render_explanation
from apflint.output.json_text import to_json
from apflint.requests.audit_event import parse_event
from apflint.requests.command_line import RequestArguments
from apflint.requests.json_lines import parse_record, read_json_values
from apflint.requests.request import COLLECTION_VERBS, Request
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.effective import Effective
    from apflint.output.console import Style

REQUEST = "Request"
HttpMethod = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
MAX_CACHED_CHARACTERS = 16 * 1024 * 1024
"""Characters of answers to keep: most events of an audit log are alike."""
MAX_PRINTED_ERRORS = 10
"""Lines without a request that are named; further ones are counted."""


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        (
            "a user of a group lists the pods of a namespace",
            "apflint explain list pods -n team-a --as alice --as-group dev",
        ),
        ("a probe from outside", "apflint explain get /healthz --as system:anonymous"),
        (
            "an HTTP request of a service account",
            "apflint explain --path '/api/v1/pods?watch=true' --as system:serviceaccount:ci:runner",
        ),
        ("an event of the audit log", "apflint explain --event event.json"),
        ("many requests", "apflint explain -f manifests/ --requests requests.jsonl --format json"),
        (
            "the FlowSchema of a response, by its header X-Kubernetes-PF-FlowSchema-UID",
            "apflint explain -f live.yaml --flow-schema-uid 6f9a4d3e-0c5b-4b7e-9a51-3f2d8a1c7e60",
        ),
    ),
)
def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REQUEST]...",
            autocompletion=completers.complete_request,
            help="VERB RESOURCE.GROUP/SUBRESOURCE NAME, or VERB /PATH, as for `kubectl auth can-i`.",
            show_default="ask on a terminal",
        ),
    ] = None,
    user: Annotated[str | None, option(REQUEST, "User making the request.", "--as", metavar="USER")] = None,
    groups: Annotated[
        list[str] | None, option(REQUEST, "Group of the user; repeatable.", "--as-group", metavar="GROUP")
    ] = None,
    namespace: Annotated[
        str | None,
        option(
            REQUEST,
            "Namespace of the request; omit it to list across all namespaces.",
            "--namespace",
            "-n",
            metavar="NS",
        ),
    ] = None,
    all_namespaces: Annotated[
        bool, option(REQUEST, "List or watch across all namespaces.", "--all-namespaces", "-A")
    ] = False,
    method: Annotated[
        HttpMethod | None,
        option(REQUEST, "HTTP method, with --path.", metavar="METHOD", case_sensitive=False, default="GET"),
    ] = None,
    path: Annotated[str | None, option(REQUEST, "Path of an HTTP request, with its query.", metavar="URL")] = None,
    event: Annotated[
        str | None, option(REQUEST, "Audit events in JSON, also as AKS and EKS log them; or -.", metavar="FILE")
    ] = None,
    requests: Annotated[
        str | None, option(REQUEST, "Requests in JSON, one a line; or -. Prints JSON lines.", metavar="FILE")
    ] = None,
    flow_schema_uid: Annotated[
        str | None, option(REQUEST, "Show the name of the FlowSchema with this uid.", metavar="UID")
    ] = None,
    priority_level_uid: Annotated[
        str | None, option(REQUEST, "Show the name of the priority level with this uid.", metavar="UID")
    ] = None,
    filename: options.Filenames = None,
    kubernetes: options.Kubernetes = None,
    no_defaults: options.NoDefaults = False,
    server_concurrency: options.ServerConcurrency = None,
    output_format: options.Format = "text",
    verbose: Annotated[bool, option(OUTPUT, "With --requests: show why FlowSchemas match.", "--verbose", "-v")] = False,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Show which FlowSchema and priority level a request gets, and why.

    Groups that authentication always adds, such as system:authenticated, are
    added, and the answer says so. Audit events, and requests that already
    carry system:authenticated or system:unauthenticated, are used unchanged.
    """
    uids = flow_schema_uid, priority_level_uid
    sources = {
        "a request in words": bool(words),
        "--path": method is not None or path is not None,
        "--event": event is not None,
        "--requests": requests is not None,
        "--flow-schema-uid or --priority-level-uid": uids != (None, None),
    }
    given = [source for source, is_given in sources.items() if is_given]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} cannot be combined: name one request")
    if not given and not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):  # None if closed
        raise UserError("no request given. For example: apflint explain list pods -n team-a --as alice")
    paths = options.join_paths(None, filename)
    if "-" in paths and "-" in (event, requests):
        raise UserError("standard input cannot be both the manifests and the requests")
    if method is not None and path is None:
        raise UserError("--method requires --path, the path of the URL with its query")
    if (user is not None or groups) and given and not (words or path):
        raise UserError(f"--as and --as-group cannot be combined with {given[0]}")
    if (namespace is not None or all_namespaces) and given and not words:
        raise UserError(f"-n and -A cannot be combined with {given[0]}")
    if namespace is not None and all_namespaces:
        raise UserError("-n and -A cannot be combined")
    if namespace is not None and (problem := check_dns_label(namespace)):
        raise UserError(f'-n: "{namespace}" is not a valid name of a namespace: {problem}')
    request = None
    if words or path is not None:
        if not user or user.isspace():
            raise UserError(
                "no user given. Name the user with --as, as in --as alice or --as system:serviceaccount:NAMESPACE:NAME"
            )
        named_groups = tuple(groups or ())
        arguments = RequestArguments(user, tuple(words or ()), named_groups, namespace, all_namespaces, method, path)
        request = _note_path(arguments.to_request(), arguments.words)
    cluster = options.join_cluster_options(
        kubernetes, server_concurrency, no_defaults=no_defaults, config=config, isolated=isolated
    )
    known = read_cluster(paths, cluster, print_note)
    if uids != (None, None):
        return _print_names(known, *uids, output_format)
    explainer, how = Explainer(known), style(color)
    if request is not None:
        explanation = explainer.explain(request)
        is_json = output_format == "json"
        text = to_json(explanation_json(explanation), 2) if is_json else render_explanation(explanation, how)
        sys.stdout.write(text)
        return ExitCode.OK
    if requests is not None:
        return _print_answers(explainer, requests, parse_record, reasons=verbose)
    if event is not None and output_format == "json":
        return _print_answers(explainer, event, parse_event, reasons=True)
    if event is not None:
        return _print_stories(explainer, event, how)
    from apflint.cli.explain_prompt import Draft, converse

    return converse(explainer, Draft(user or "", ", ".join(groups or ()), namespace=namespace or ""), how)


def _note_path(request: Request, words: tuple[str, ...]) -> Request:
    """Note that a word that is read as an object's name is also a path, as in `explain list pods manifests`.

    Raises UserError if the verb has no object name.
    """
    word = words[2] if len(words) > 2 else ""
    if not (os.path.isdir(word) or (word.endswith(SUFFIXES) and os.path.isfile(word))):
        return request
    if request.info.verb in COLLECTION_VERBS:
        raise UserError(
            f'"{word}" is a path, and {request.info.verb} has no object name. To read manifests from it, use -f {word}'
        )
    note = f'"{word}" is read as the name of an object. To read manifests from the path of this name, use -f.'
    return request._replace(notes=(*request.notes, note))


def _print_names(
    known: Effective, flow_schema_uid: str | None, priority_level_uid: str | None, output_format: str
) -> int:
    schema = flow_schema_uid and find_name_by_uid(known, "FlowSchema", flow_schema_uid)
    level = priority_level_uid and find_name_by_uid(known, "PriorityLevelConfiguration", priority_level_uid)
    if output_format == "json":
        sys.stdout.write(to_json({"flowSchema": schema, "priorityLevel": level}, 2))
    else:
        names = {"FlowSchema": schema, "priority level": level}
        sys.stdout.write("".join(f"{kind}: {name}\n" for kind, name in names.items() if name is not None))
    return ExitCode.OK


def _print_stories(explainer: Explainer, path: str, how: Style) -> int:
    """Print the answers to all audit events in a file as text."""
    text = b"".join(read_pieces(path)).decode("utf-8-sig", "replace")
    errors: list[tuple[int, str]] = []
    error_count, cached_characters = 0, 0
    cache: dict[Request, str] = {}
    separator = ""
    for line in read_json_values(text):
        error = line.error
        if error is None:
            try:
                request = parse_event(line.value)
            except UserError as problem:
                error = str(problem)
            else:
                answer = cache.get(request)
                if answer is None:
                    answer = render_explanation(explainer.explain(request), how)
                    cached_characters += len(answer)
                    if cached_characters > MAX_CACHED_CHARACTERS:
                        cache.clear()
                        cached_characters = len(answer)
                    cache[request] = answer
                sys.stdout.write(separator + answer)
                separator = "\n"
                continue
        error_count += 1
        if error_count <= MAX_PRINTED_ERRORS:
            errors.append((line.line, error))
    return _print_errors(path, errors, error_count)


def _print_answers(explainer: Explainer, path: str, read: Callable[[object], Request], *, reasons: bool) -> int:
    """Print a line of JSON for each request in a file, as they arrive."""
    errors: list[tuple[int, str]] = []
    error_count, answered = 0, 0
    gc.disable()  # the caches are bounded and free of cycles; collecting them would take a fifth of the time
    try:
        with show_progress(lambda: f"Explained {pluralize(answered, 'request')}") as start:
            if not sys.stdout.isatty():  # on a terminal, the answers show the progress
                start()
            for text, new_errors in explain_lines(explainer, read, split_lines(read_pieces(path)), reasons=reasons):
                sys.stdout.write(text)
                sys.stdout.flush()  # requests from a pipe are answered at once
                answered += text.count("\n")
                errors += new_errors[: MAX_PRINTED_ERRORS - len(errors)]
                error_count += len(new_errors)
    finally:
        gc.enable()
    return _print_errors(path, errors, error_count)


def _print_errors(path: str, errors: list[tuple[int, str]], count: int) -> int:
    """Print the first errors of `count`, and return the exit code."""
    name = "<stdin>" if path == "-" else path
    for line, error in errors:
        print_note(f"{name}:{line}: {error}")
    if count > len(errors):
        print_note(f"{name}: {pluralize(count - len(errors), 'more line')} without a request")
    return ExitCode.ERROR if count else ExitCode.OK
