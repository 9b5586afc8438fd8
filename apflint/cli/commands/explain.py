"""Defines `apflint explain`, which shows the FlowSchema and priority level of requests."""

from __future__ import annotations

import gc
import os
import re
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import completers, options
from apflint.cli.command_definitions import command, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.observed_server import read_observed_servers, use_seats_of_server
from apflint.cli.options import OUTPUT, argument, option
from apflint.cli.progress import Progress, show_progress
from apflint.cli.terminal import style
from apflint.output.configuration_line import name_configuration, render_configuration
from apflint.output.explain import clusters_json, explanation_json, report_clusters, report_explanation
from apflint.output.json_text import SCHEMA, to_json
from apflint.output.text import render as render_text
from apflint.request_explanation import Explainer, find_name_by_uid
from apflint.requests.json_lines import NotEventError, NotJsonError
from apflint.requests.request import COLLECTION_VERBS, Request
from apflint.requests.request_words import RequestArguments
from apflint.run import Answer, read, show
from apflint.sources.audit_logs import read_log_pieces
from apflint.sources.discovery import SUFFIXES
from apflint.sources.effective_configurations import build_configurations
from apflint.sources.file_reading import split_lines
from apflint.sources.inputs import read_inputs
from apflint.string_formats import check_dns_label
from apflint.user_error import UserError
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.cli.observed_server import ObservedServers
    from apflint.output.console import Style
    from apflint.output.explain_json_lines import ExplainLogged
    from apflint.request_explanation import Explanation
    from apflint.requests.json_lines import RejectedLine
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest

REQUEST = "Request"
HttpMethod = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
_MAX_PRINTED_ERRORS = 10
"""Maximum number of rejected input lines whose errors are printed. Further rejected lines are only counted."""


@command(
    panel="Analyze",
    epilog=examples(
        (
            "a user of a group lists the pods of a namespace",
            "apflint explain list pods -n team-a --as alice --as-group dev",
        ),
        (
            "the same request in a cluster that apflint.toml defines",
            "apflint explain --cluster prod list pods -n team-a --as alice",
        ),
        ("a probe from outside", "apflint explain get /healthz --as system:anonymous"),
        (
            "an HTTP request of a service account",
            "apflint explain --path '/api/v1/pods?watch=true' --as system:serviceaccount:ci:runner",
        ),
        ("an event of the audit log", "apflint explain --event event.json"),
        ("many requests", "apflint explain -f manifests/ --requests requests.jsonl --format json"),
        ("the objects of a running cluster", "apflint explain --live list pods -n team-a --as alice"),
        ("with the queues of a server", "apflint explain list pods -n team-a --as alice --metrics metrics.txt"),
        (
            "the FlowSchema of a response, by its header X-Kubernetes-PF-FlowSchema-UID",
            "apflint explain --live --flow-schema-uid ed64adff-da4d-424d-b18d-973d2ada602f",
        ),
    ),
)
def explain(
    words: Annotated[
        list[str] | None,
        argument(
            "VERB RESOURCE.GROUP/SUBRESOURCE NAME, or VERB /PATH, as for `kubectl auth can-i`.",
            metavar="[REQUEST]...",
            autocompletion=completers.complete_request,
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
        option(REQUEST, "HTTP method, with --path.", metavar="METHOD", case_sensitive=False, show_default="GET"),
    ] = None,
    path: Annotated[str | None, option(REQUEST, "Path of an HTTP request, with its query.", metavar="URL")] = None,
    event: Annotated[
        str | None,
        option(
            REQUEST,
            "File with audit events in JSON, as kube-apiserver, AKS, EKS or GKE log them, or with kube-apiserver's own log; or -.",
            metavar="FILE",
        ),
    ] = None,
    requests: Annotated[
        str | None,
        option(
            REQUEST, "File with one JSON request per line, or -. Prints one line of JSON per request.", metavar="FILE"
        ),
    ] = None,
    flow_schema_uid: Annotated[
        str | None, option(REQUEST, "Show the name of the FlowSchema with this uid.", metavar="UID")
    ] = None,
    priority_level_uid: Annotated[
        str | None, option(REQUEST, "Show the name of the priority level with this uid.", metavar="UID")
    ] = None,
    metrics: options.Metrics = None,
    dump: options.Dumps = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    output_format: options.Format = "text",
    verbose: Annotated[
        bool,
        option(
            OUTPUT,
            "Show all FlowSchemas, and the hash and the queues of the flow. With --requests: show why FlowSchemas match.",
            "--verbose",
            "-v",
        ),
    ] = False,
    color: options.Color = "auto",
) -> int:
    """Show which FlowSchema and priority level a request gets, and why.

    Groups that authentication always adds, such as system:authenticated, are
    added, and the answer says so. Audit events, and requests that already
    carry system:authenticated or system:unauthenticated, are used unchanged.
    """
    uids = flow_schema_uid, priority_level_uid
    ways = {
        "a request as arguments": bool(words),
        "--path": method is not None or path is not None,
        "--event": event is not None,
        "--requests": requests is not None,
        "--flow-schema-uid or --priority-level-uid": uids != (None, None),
    }
    given = [source for source, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} cannot be combined: name one request")
    # `sys.stdin` is None if standard input is closed.
    if not given and not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("no request given. For example: apflint explain list pods -n team-a --as alice")
    selected = sources.select()
    options.reject_combinations(
        {"--metrics": metrics, "--dump": dump},
        {
            "--live": selected.kubectl is not None,
            "--event": event,
            "--requests": requests,
            "--flow-schema-uid": flow_schema_uid,
            "--priority-level-uid": priority_level_uid,
        },
    )
    if "-" in selected.words and "-" in (event, requests):
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
        spoken, named_groups = tuple(words or ()), tuple(groups or ())
        arguments = RequestArguments(user or "", spoken, named_groups, namespace, all_namespaces, method, path)
        request = _note_path(_parse_request(arguments), arguments.words)
    is_json = output_format == "json"
    observed_files = options.chain_paths(metrics, dump)
    if request is not None and not selected.words and len(selected.cluster_names) > 1:
        if observed_files:
            raise UserError(
                "the settings define several clusters: select the cluster of this server with --cluster NAME"
            )
        return _explain_in_clusters(request, selected, style(color), is_json=is_json)
    observed = read_observed_servers(observed_files, selected.kubectl) if request is not None else None
    configuration = read(use_seats_of_server(selected, observed))
    if uids != (None, None):
        return _print_names(configuration, *uids, style(color), is_json=is_json)
    explainer, how = Explainer(configuration.effective), style(color)._replace(verbose=verbose)
    if request is not None:
        return _print_answer(explainer.explain(request), configuration.description, observed, how, is_json=is_json)
    if event is not None and not is_json:
        line = render_configuration(configuration.description, how)
        answers = _explain_events(explainer, event, how)
        return _print_answers(event, _with_first_line(line, answers), is_log=True)
    if (file := event or requests) is not None:
        from apflint.output.explain_json_lines import explain_lines
        from apflint.requests.audit_event import parse_event
        from apflint.requests.json_lines import parse_record

        reasons, parse = (verbose, parse_record) if event is None else (True, parse_event)
        answers = explain_lines(
            explainer,
            parse,
            split_lines(read_log_pieces(file)),
            reasons=reasons,
            logged=None if event is None else _explain_logged_json(explainer, configuration.description),
            configuration=configuration.description,
        )
        return _print_answers(file, answers, is_log=event is not None)
    from apflint.cli.interactive_explain import Draft, converse

    sys.stdout.write(render_configuration(configuration.description, how))
    return converse(explainer, Draft(user or "", ", ".join(groups or ()), namespace=namespace or ""), how)


def _print_answer(
    explanation: Explanation, description: str, observed: ObservedServers | None, how: Style, *, is_json: bool
) -> int:
    """Print the answer for one request, and the state of its priority level if `observed` is not None."""
    observations, now = (None, "") if observed is None else observed.describe(explanation)
    if is_json:
        more = {} if observations is None else {"observed": observations}
        return show(Answer(to_json({**name_configuration(explanation_json(explanation), description), **more}, 2)))
    return show(Answer(render_text(report_explanation(explanation, how, now, description), how)))


def _explain_in_clusters(request: Request, selected: InputRequest, how: Style, *, is_json: bool) -> int:
    """Print the answer of each cluster for one request. Return the exit code."""
    with show_progress("Explaining"):
        configurations = build_configurations(read_inputs(selected._replace(is_single=False)))
        explanations = [
            (configuration, Explainer(configuration.effective).explain(request, reasons=is_json))
            for configuration in configurations
        ]
    # Print equal notes only once: clusters that share files have the same notes.
    notes = tuple(dict.fromkeys(note for configuration in configurations for note in configuration.notes))
    text = to_json(clusters_json(explanations), 2) if is_json else render_text(report_clusters(explanations), how)
    return show(Answer(text, notes))


def _parse_request(arguments: RequestArguments) -> Request:
    """Return the request. Raises UserError if the request is invalid or the user is missing.

    If both are true, the message is about both.
    """
    if arguments.words and re.fullmatch(r"APF\d{3}", arguments.words[-1]):
        raise UserError(f'"{arguments.words[-1]}" is a rule, and not a request: see apflint rule {arguments.words[-1]}')
    if arguments.user and not arguments.user.isspace():
        return arguments.to_request()
    advice = "ame the user with --as, as in --as alice or --as system:serviceaccount:NAMESPACE:NAME"
    try:
        arguments._replace(user="nobody").to_request()
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}. Also n{advice}") from error
    raise UserError(f"no user given. N{advice}")


def _note_path(request: Request, words: tuple[str, ...]) -> Request:
    """Return the request, with a note if its object name is also the path of a directory or manifest.

    In `explain get pods manifests`, the user may want the manifests in that directory. Raises UserError if the verb
    does not take an object name, as in `explain list pods manifests`.
    """
    word = words[2] if len(words) > 2 else ""
    if not (os.path.isdir(word) or (word.endswith(SUFFIXES) and os.path.isfile(word))):
        return request
    if request.info.verb in COLLECTION_VERBS:
        raise UserError(
            f'"{word}" is a path, and {request.info.verb} does not take an object name. To read manifests from the'
            f" path, use -f {word}"
        )
    note = f'"{word}" is read as the name of an object. To read manifests from the path of this name, use -f.'
    return request._replace(notes=(*request.notes, note))


def _print_names(
    configuration: EffectiveConfiguration,
    flow_schema_uid: str | None,
    priority_level_uid: str | None,
    how: Style,
    *,
    is_json: bool,
) -> int:
    known = configuration.effective
    schema = flow_schema_uid and find_name_by_uid(known, "FlowSchema", flow_schema_uid)
    level = priority_level_uid and find_name_by_uid(known, "PriorityLevelConfiguration", priority_level_uid)
    if is_json:
        names = {"schema": SCHEMA, "flowSchema": schema, "priorityLevel": level}
        return show(Answer(to_json(name_configuration(names, configuration.description), 2)))
    names = {"FlowSchema": schema, "priority level": level}
    shown = "".join(f"{kind}: {name}\n" for kind, name in names.items() if name is not None)
    return show(Answer(shown + render_configuration(configuration.description, how)))


def _with_first_line(
    line: str, answers: Iterator[tuple[str, list[RejectedLine]]]
) -> Iterator[tuple[str, list[RejectedLine]]]:
    """Yield `answers`. The text of the first answer begins with `line`."""
    for text, errors in answers:
        yield (line + text if text else text), errors
        line = "" if text else line


def _explain_logged_json(explainer: Explainer, description: str) -> ExplainLogged:
    """Return the function that explains lines of kube-apiserver's own log as JSON."""
    from apflint.output.server_log_comparison import logged_json
    from apflint.requests.server_log import is_server_log_line, parse_logged_request
    from apflint.requests.server_log_comparison import LoggedComparer

    comparer = LoggedComparer(explainer.known)
    is_server_log = False

    def explain_line(text: str) -> dict[str, object] | None:
        nonlocal is_server_log
        request = parse_logged_request(text)
        if request is not None:
            is_server_log = True
            return name_configuration(logged_json(request, comparer.compare(request)), description)
        is_other_line = is_server_log_line(text) or (is_server_log and not text.lstrip().startswith(("{", "[")))
        return {} if is_other_line else None

    return explain_line


def _explain_events(explainer: Explainer, path: str, how: Style) -> Iterator[tuple[str, list[RejectedLine]]]:
    """Yield what `LogExplainer.explain` yields for a log. At the end, print how many lines are not about requests."""
    from apflint.output.explain_log import LogExplainer

    log = LogExplainer(explainer, how)
    yield from log.explain(split_lines(read_log_pieces(path)))
    if log.other_lines:
        print_note(f"{pluralize(log.other_lines, 'line')} of the log skipped: not about a request")


def _print_answers(path: str, answers: Iterator[tuple[str, list[RejectedLine]]], *, is_log: bool) -> int:
    """Print the explanations in `answers` as they arrive, then the errors of rejected lines. Return the exit code.

    `answers` yields (text, rejected input lines). A rejected line is (line number, error). If `is_log` is true, a file without
    audit events is an error, because it is probably the wrong file.
    """
    errors: list[RejectedLine] = []
    error_count = answered = not_json = unlike = 0
    gc.disable()  # garbage collection would find nothing, because the cached values have no reference cycles
    try:
        # On a terminal, the answers themselves show the progress.
        with nullcontext(Progress("")) if sys.stdout.isatty() else show_progress("Explaining") as progress:
            for text, new_errors in answers:
                sys.stdout.write(text)
                sys.stdout.flush()  # a program that writes requests to a pipe may wait for each answer
                # `text` is a single answer for people, or several lines of JSON. Each line of JSON is an answer or the
                # error of an item of `new_errors`, so subtract these errors.
                answered += text.count("\n") - len(new_errors) if text.startswith("{") else bool(text)
                progress.label = f"Explained {pluralize(answered, 'request')}"
                errors += new_errors[: _MAX_PRINTED_ERRORS - len(errors)]
                error_count += len(new_errors)
                not_json += sum(line.kind is NotJsonError for line in new_errors)
                unlike += sum(line.kind in (NotJsonError, NotEventError) for line in new_errors)
    finally:
        gc.enable()
    name = "<stdin>" if path == "-" else path
    if error_count > 1 and error_count == unlike and not answered:
        what = "audit events or lines of kube-apiserver's own log" if is_log else "requests"
        why = "no line is JSON" if error_count == not_json else "no line is an audit event"
        print_note(f"{name}: the file does not contain {what}: {why}. Line {errors[0].number}: {errors[0].message}")
        return ExitCode.ERROR
    for line in errors:
        print_note(f"{name}:{line.number}: {line.message}")
    if error_count > len(errors):
        print_note(f"{name}: {pluralize(error_count - len(errors), 'more line')} that cannot be read as a request")
    if not (answered or error_count) and is_log:
        print_note(f"{name}: no audit event")
        return ExitCode.ERROR
    return ExitCode.ERROR if error_count else ExitCode.OK
