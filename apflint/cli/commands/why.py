"""Defines `apflint why`, which answers why the requests of a client are slow or rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import completers, options
from apflint.cli.command_definitions import command, examples
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, argument, option
from apflint.cli.prometheus_options import PrometheusOptions
from apflint.cli.terminal import style
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.client_diagnosis.diagnosis import ClientDiagnosis
    from apflint.output.console import Style

CLIENT = "Client"
_WORDS_HELP = (
    "The client, the evidence and the request, in any order. Evidence: metrics, debug dumps, audit logs, manifests (files,"
    " directories, or -). Request, as for `apflint explain`: VERB RESOURCE NAME, or VERB /PATH."
)
_WATCH_HELP = "With --live: read the metrics again after this time, such as 10s, for rates."


@command(
    panel="Analyze",
    epilog=examples(
        (
            "all requests of a service account, from saved metrics, a dump and a log",
            "apflint why system:serviceaccount:ci:runner metrics-1.txt metrics.txt dump_requests.txt audit.log",
        ),
        ("a request, from the running cluster", "apflint why --as alice list pods -A --live --watch 10s"),
        ("what the manifests would do", "apflint why --as alice list pods -n team-a manifests/"),
    ),
)
def why(
    words: Annotated[
        list[str] | None,
        argument(
            _WORDS_HELP,
            metavar="[CLIENT|FILE|REQUEST]...",
            show_default=False,
            autocompletion=completers.complete_file_or_verb,
        ),
    ] = None,
    user: Annotated[
        str | None,
        option(
            CLIENT,
            "User whose requests are slow or rejected. Use either this option or CLIENT.",
            "--as",
            metavar="USER",
        ),
    ] = None,
    groups: Annotated[
        list[str] | None, option(CLIENT, "Group of the user; repeatable.", "--as-group", metavar="GROUP")
    ] = None,
    namespace: Annotated[
        str | None, option(CLIENT, "Namespace of the request.", "--namespace", "-n", metavar="NS")
    ] = None,
    all_namespaces: Annotated[
        bool, option(CLIENT, "The request lists or watches across all namespaces.", "--all-namespaces", "-A")
    ] = False,
    metrics: options.Metrics = None,
    dump: options.Dumps = None,
    log: Annotated[
        list[str] | None,
        option(INPUT, "Audit log, or log of kube-apiserver itself: a file; repeatable.", metavar="FILE"),
    ] = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    watch: Annotated[
        float | None, option(CLUSTER, _WATCH_HELP, "--watch", metavar="TIME", parser=options.parse_watch)
    ] = None,
    prometheus: PrometheusOptions = PrometheusOptions(),  # noqa: B008  # a frozen value
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format.", "--format")
    ] = "text",
    color: options.Color = "auto",
) -> int:
    """Answer why the requests of a client are slow or rejected.

    In at most 15 lines: the FlowSchema and priority level, whether API Priority
    and Fairness is the cause, who fills the level, what to do, and how certain
    the answer is. Files are recognized by their content. The causes are those of
    `doctor` or, with a log only, those of `propose`.
    """
    from apflint.cli.client_questions import ClientQuestion, answer_question

    question = ClientQuestion(
        user, groups or (), namespace, all_namespaces, tuple(words or ()), options.chain_paths(metrics, dump, log)
    )
    selected = sources.select()
    if watch is not None and selected.kubectl is None:
        raise UserError("--watch requires --live")
    prometheus.reject_without_prometheus()

    def render(diagnosis: ClientDiagnosis, configuration: str) -> str:
        return _render(diagnosis, configuration, output_format, style(color))

    return answer_question(question, selected, watch, prometheus, render)


def _render(diagnosis: ClientDiagnosis, configuration: str, output_format: str, how: Style) -> str:
    from apflint.output.client_diagnosis import TITLE, client_diagnosis_json, report_client_diagnosis
    from apflint.output.configuration_line import name_configuration
    from apflint.output.json_text import to_json
    from apflint.output.report import render_report

    if output_format == "json":
        return to_json(name_configuration(client_diagnosis_json(diagnosis), configuration), 2)
    return render_report(TITLE, report_client_diagnosis(diagnosis, configuration), output_format, how)
