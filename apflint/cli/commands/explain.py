"""The command `apflint explain`."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import completers, options
from apflint.cli.app import app, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import OUTPUT, option
from apflint.cli.progress import Progress, show_progress
from apflint.cli.terminal import style
from apflint.errors import UserError
from apflint.explainer import Explainer, find_name_by_uid
from apflint.inputs.apf_configuration import (
    ClusterOptions,
    list_clusters,
    read_cluster,
    read_clusters,
    select_cluster,
)
from apflint.inputs.discovery import SUFFIXES
from apflint.inputs.reading import read_pieces, split_lines
from apflint.output.explain import clusters_json, explanation_json, render_clusters, render_explanation
from apflint.output.json_text import to_json
from apflint.requests.request import COLLECTION_VERBS, Request
from apflint.requests.words import RequestArguments
from apflint.string_formats import check_dns_label
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.explainer import Explanation
    from apflint.inputs.kubectl import KubectlOptions
    from apflint.output.console import Style

REQUEST = "Request"
HttpMethod = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
MAX_PRINTED_ERRORS = 10
"""Maximum number of rejected input lines whose errors are printed. Further rejected lines are only counted."""


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        (
            "a user of a group lists the pods of a namespace",
            "apflint explain list pods -n team-a --as alice --as-group dev",
        ),
        ("the same in a cluster of the settings", "apflint explain --cluster prod list pods -n team-a --as alice"),
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
        option(REQUEST, "HTTP method, with --path.", metavar="METHOD", case_sensitive=False, show_default="GET"),
    ] = None,
    path: Annotated[str | None, option(REQUEST, "Path of an HTTP request, with its query.", metavar="URL")] = None,
    event: Annotated[
        str | None,
        option(REQUEST, "File of audit events in JSON, also as AKS, EKS and GKE log them, or -.", metavar="FILE"),
    ] = None,
    requests: Annotated[
        str | None, option(REQUEST, "File of requests in JSON, one a line, or -. Prints JSON lines.", metavar="FILE")
    ] = None,
    flow_schema_uid: Annotated[
        str | None, option(REQUEST, "Show the name of the FlowSchema with this uid.", metavar="UID")
    ] = None,
    priority_level_uid: Annotated[
        str | None, option(REQUEST, "Show the name of the priority level with this uid.", metavar="UID")
    ] = None,
    metrics: options.Metrics = None,
    dump: options.Dumps = None,
    filename: options.Filenames = None,
    kustomize: options.Kustomize = None,
    cluster: options.Cluster = None,
    live: options.Live = False,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
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
    kubectl = options.parse_live(live, kubeconfig, kube_context, no_defaults=no_defaults)
    options.reject_combinations({"--live": live, "--kustomize": kustomize}, {"--cluster": cluster})
    options.reject_combinations(
        {"--metrics": metrics, "--dump": dump},
        {
            "--live": live,
            "--event": event,
            "--requests": requests,
            "--flow-schema-uid": flow_schema_uid,
            "--priority-level-uid": priority_level_uid,
        },
    )
    paths = options.chain_paths(filename)
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
    settings = ClusterOptions(
        kubernetes, server_concurrency, not no_defaults, config, isolated, kubectl, cluster, tuple(kustomize or ())
    )
    is_json = output_format == "json"
    is_project = not (paths or settings.names_manifests)
    observed_files = options.chain_paths(metrics, dump)
    if request is not None and is_project and len(names := list_clusters(settings)) > 1:
        if observed_files:
            raise UserError("the settings define several clusters: select the one of the server with --cluster NAME")
        return _explain_in_clusters(request, names, settings, style(color), is_json=is_json)
    known = read_cluster(*select_cluster(paths, settings), print_note)
    if uids != (None, None):
        return _print_names(known, *uids, is_json=is_json)
    explainer, how = Explainer(known), style(color)
    if request is not None:
        return _print_answer(explainer.explain(request), observed_files, kubectl, how, is_json=is_json)
    if event is not None and not is_json:
        return _print_answers(event, _explain_events(explainer, event, how), is_log=True)
    if (file := event or requests) is not None:
        from apflint.output.explain_lines import explain_lines
        from apflint.requests.audit_event import parse_event
        from apflint.requests.json_lines import parse_record

        reasons, read = (verbose, parse_record) if event is None else (True, parse_event)
        answers = explain_lines(explainer, read, split_lines(read_pieces(file)), reasons=reasons)
        return _print_answers(file, answers, is_log=event is not None)
    from apflint.cli.explain_prompt import Draft, converse

    return converse(explainer, Draft(user or "", ", ".join(groups or ()), namespace=namespace or ""), how)


def _print_answer(
    explanation: Explanation, files: tuple[str, ...], kubectl: KubectlOptions | None, how: Style, *, is_json: bool
) -> int:
    """Print the answer for one request, with what the files or the running server show about its level."""
    observations, now = _observe(explanation, files, kubectl)
    if is_json:
        observed = {} if observations is None else {"observed": observations}
        sys.stdout.write(to_json({**explanation_json(explanation), **observed}, 2))
    else:
        sys.stdout.write(render_explanation(explanation, how, now))
    return ExitCode.OK


def _observe(
    explanation: Explanation, files: tuple[str, ...], kubectl: KubectlOptions | None
) -> tuple[list[dict[str, object]] | None, str]:
    """Return what the files or the running server show about a request: for JSON, and as a sentence."""
    if not files and kubectl is None:
        return None, ""
    from apflint.doctor.level_state import compute_state
    from apflint.doctor.snapshot import group_servers
    from apflint.output.observation import describe_observations, observation_json, observe

    if kubectl is None:
        from apflint.inputs.server_files import read_parts

        parts = read_parts(files)
    else:
        from apflint.inputs.live_server import read_live_parts

        try:
            parts = read_live_parts(kubectl, [])
        except UserError as error:  # the objects, which the answer needs, were read
            return [], f"Unknown. {error}"
    observations = [observe(explanation, compute_state(server)) for server in group_servers(parts)]
    return [observation_json(one) for one in observations], describe_observations(observations)


def _explain_in_clusters(
    request: Request, names: tuple[str, ...], settings: ClusterOptions, how: Style, *, is_json: bool
) -> int:
    """Print the answer of each cluster for a request."""
    notes: list[str] = []
    with show_progress("Explaining"):
        explanations = [
            (name, Explainer(known).explain(request, reasons=is_json))
            for name, known in read_clusters(names, settings, notes.append)
        ]
    for note in dict.fromkeys(notes):  # clusters share files
        print_note(note)
    text = to_json(clusters_json(explanations), 2) if is_json else render_clusters(explanations, how)
    sys.stdout.write(text)
    return ExitCode.OK


def _note_path(request: Request, words: tuple[str, ...]) -> Request:
    """Add a note if the object name in the request is also the path of a directory or manifest.

    In `explain get pods manifests`, the user may want the manifests in that directory. Raises UserError if the verb
    does not take an object name, as in `explain list pods manifests`.
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
    known: Effective, flow_schema_uid: str | None, priority_level_uid: str | None, *, is_json: bool
) -> int:
    schema = flow_schema_uid and find_name_by_uid(known, "FlowSchema", flow_schema_uid)
    level = priority_level_uid and find_name_by_uid(known, "PriorityLevelConfiguration", priority_level_uid)
    if is_json:
        sys.stdout.write(to_json({"flowSchema": schema, "priorityLevel": level}, 2))
    else:
        names = {"FlowSchema": schema, "priority level": level}
        sys.stdout.write("".join(f"{kind}: {name}\n" for kind, name in names.items() if name is not None))
    return ExitCode.OK


def _explain_events(explainer: Explainer, path: str, how: Style) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield the explanations of the audit events in a file, each with an empty list of rejected lines.

    For a line without a valid event, yield an empty text, and a list with the line number and the error.
    """
    from apflint.requests.audit_event import parse_event
    from apflint.requests.json_lines import read_json_values

    @lru_cache(maxsize=256)  # most events of an audit log are alike
    def answer(request: Request) -> str:
        return render_explanation(explainer.explain(request), how)

    separator = ""
    for line in read_json_values(b"".join(read_pieces(path)).decode("utf-8-sig", "replace")):
        if line.error is not None:
            yield "", [(line.line, line.error)]
            continue
        try:
            text = separator + answer(parse_event(line.value))
        except UserError as error:
            yield "", [(line.line, str(error))]
        else:
            yield text, []
            separator = "\n"


def _print_answers(path: str, answers: Iterator[tuple[str, list[tuple[int, str]]]], *, is_log: bool) -> int:
    """Print the explanations in `answers` as they arrive, then the errors of rejected lines. Return the exit code.

    `answers` yields text, together with the rejected input lines: their numbers and errors. A log without audit events
    (`is_log`) is an error, because then it is probably the wrong file.
    """
    errors: list[tuple[int, str]] = []
    error_count = answered = 0
    gc.disable()  # the caches are bounded and free of cycles; collecting them would take a fifth of the time
    try:
        # On a terminal, the answers show the progress.
        with nullcontext(Progress("")) if sys.stdout.isatty() else show_progress("Explaining") as progress:
            for text, new_errors in answers:
                sys.stdout.write(text)
                sys.stdout.flush()  # requests from a pipe are answered at once
                answered += text.count("\n") if text.startswith("{") else bool(text)  # lines of JSON, or one answer
                progress.label = f"Explained {pluralize(answered, 'request')}"
                errors += new_errors[: MAX_PRINTED_ERRORS - len(errors)]
                error_count += len(new_errors)
    finally:
        gc.enable()
    name = "<stdin>" if path == "-" else path
    for line, error in errors:
        print_note(f"{name}:{line}: {error}")
    if error_count > len(errors):
        print_note(f"{name}: {pluralize(error_count - len(errors), 'more line')} without a request")
    if not (answered or error_count) and is_log:
        print_note(f"{name}: no audit event")
        return ExitCode.ERROR
    return ExitCode.ERROR if error_count else ExitCode.OK
