"""Defines `apflint doctor`, which diagnoses a running API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.doctor_answers import DoctorQuestion, Observed, answer_question, diagnose_live
from apflint.cli.error_reporting import print_note
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, argument, option
from apflint.cli.prometheus_options import PrometheusOptions
from apflint.cli.report_files import parse_format
from apflint.doctor.snapshot import group_servers
from apflint.output.findings import FORMATS
from apflint.run import show
from apflint.settings.clusters import apply_cluster, find_cluster
from apflint.sources.evidence_files import sort_evidence
from apflint.sources.input_types import InputRequest
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.settings.model import Settings
    from apflint.sources.evidence_files import EvidenceFiles

_FILES_HELP = "Metrics, debug dumps and manifests, recognized by their content: files, gzip, directories, or - for standard input."
_NO_LOGS = "doctor reads no logs. Use apflint why, or for an audit log apflint replay"
_MANIFESTS_HELP = "Manifests that the server should have: files or directories; repeatable."
_LIVE_HELP = "Read the metrics, dumps and objects of the API servers that kubectl reaches."
_WATCH_HELP = "With --live: read the metrics again after this time, such as 60s, and show rates. On a terminal, repeat until Ctrl-C."
_FORMATS = (*FORMATS, "html")


def parse_doctor_format(name: str) -> str:
    """Return the name of an output format unchanged. Raises UserError for an unknown format."""
    return name if name == "html" else parse_format(name)


@command(
    panel="Analyze",
    epilog=examples(
        ("the saved metrics of a server", "apflint doctor metrics.txt"),
        ("the API servers that kubectl reaches", "apflint doctor --live"),
        ("with dumps, which show clients and queues", "apflint doctor metrics.txt dump_requests.txt"),
        ("compare the server with manifests", "apflint doctor metrics.txt manifests/"),
    ),
)
def doctor(
    files: Annotated[list[str] | None, argument(_FILES_HELP, metavar="[FILE]...", show_default=False)] = None,
    metrics: options.Metrics = None,
    dump: options.Dumps = None,
    filename: Annotated[list[str] | None, option(INPUT, _MANIFESTS_HELP, "--filename", "-f", metavar="PATH")] = None,
    kustomize: options.Kustomize = None,
    live: Annotated[bool, option(CLUSTER, _LIVE_HELP, "--live")] = False,
    watch: Annotated[
        float | None, option(CLUSTER, _WATCH_HELP, "--watch", metavar="TIME", parser=options.parse_watch)
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
    cluster: options.Cluster = None,
    render: options.Render = False,
    kubernetes: options.Kubernetes = None,
    server_concurrency: options.ServerConcurrency = None,
    prometheus: PrometheusOptions = PrometheusOptions(),  # noqa: B008  # a frozen value
    select: options.Select = None,
    ignore: options.Ignore = None,
    output_format: Annotated[
        str,
        option(
            OUTPUT,
            f"Output format: {', '.join(_FORMATS)}.",
            "--format",
            metavar="FORMAT",
            parser=parse_doctor_format,
            autocompletion=lambda incomplete: [name for name in _FORMATS if name.startswith(incomplete)],
        ),
    ] = "text",
    fail_on: options.FailOn = None,
    exit_zero: options.ExitZero = False,
    verbose: Annotated[bool, option(OUTPUT, "Show all findings and tables, too.", "--verbose", "-v")] = False,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Diagnose a running API server from its metrics and debug dumps.

    Shows a verdict, and the causes of waits and rejections, the worst first.
    Two snapshots of a server show rates. --live reads all API servers whose
    addresses can be reached, and names the others. --prometheus reads the
    worst interval of a period.

    Exits with 1 if there are findings at or above --fail-on. An overload is a
    warning. If Ctrl-C ends --watch, the status is that of the last report.
    """
    kubectl = options.parse_kubectl(live, kubeconfig, kube_context)
    _check_sources(files, {"--metrics": metrics, "--dump": dump}, prometheus, live=live, watch=watch)
    options.reject_combinations({"--cluster": cluster}, {"--kustomize": kustomize})
    settings = options.join_settings(
        config,
        isolated,
        select=select,
        ignore=ignore,
        fail_on=fail_on,
        kubernetes=kubernetes,
        server_concurrency=server_concurrency,
    )
    named = InputRequest(
        options.list_words(filename, kustomize=kustomize, clusters=[cluster] if cluster is not None else None),
        settings,
        may_render=options.may_render(render),
    )
    if cluster is not None:
        settings = _apply_cluster(settings, cluster)
    evidence = sort_evidence(options.chain_paths(files, metrics, dump))
    _check_evidence(evidence, is_observed=live or prometheus.prometheus is not None)
    question = DoctorQuestion(settings, evidence.add_manifests(named), output_format, color, verbose, exit_zero)
    for log in evidence.logs:
        print_note(f"{log.name}: {_NO_LOGS}")
    if kubectl is not None:
        return diagnose_live(question, kubectl, watch)
    return show(answer_question(question, _observe(settings, prometheus, evidence)))


def _observe(settings: Settings, prometheus: PrometheusOptions, evidence: EvidenceFiles) -> Observed:
    """Read the API servers from Prometheus if `--prometheus` is given, or else from saved metrics and dumps."""
    if prometheus.prometheus is None:
        return Observed(group_servers(evidence.parts), is_live=False)
    reading = prometheus.read(settings.kubernetes if "kubernetes" in settings.origins else None)
    return Observed(reading.servers, reading=reading, is_live=False)


def _check_evidence(evidence: EvidenceFiles, *, is_observed: bool) -> None:
    """Raise UserError if files contain no API server, or if they contain one in addition to an observed server."""
    if is_observed and evidence.parts:
        raise UserError(
            f"{evidence.server_files[0]}: metrics and dumps in files cannot be combined with --live or --prometheus"
        )
    if is_observed or evidence.parts:
        return
    if evidence.manifests:
        raise UserError(
            f"{evidence.manifests[0]}: the manifests are not enough. Add metrics or dumps of an API server, as in apflint"
            " doctor metrics.txt manifests/. To check only manifests, use apflint check"
        )
    raise UserError(f"{evidence.logs[0].name}: {_NO_LOGS}")


def _check_sources(
    files: list[str] | None,
    saved: dict[str, object],
    prometheus: PrometheusOptions,
    *,
    live: bool,
    watch: float | None,
) -> None:
    """Raise UserError if the options name no API server, or several sources of metrics.

    `saved` are options that name metrics and dumps. `files` may also be manifests.
    """
    if watch is not None and not live:
        raise UserError("--watch requires --live")
    prometheus.reject_without_prometheus()
    if not files and not any(saved.values()) and not live and prometheus.prometheus is None:
        raise UserError(
            "name the metrics or the dumps of an API server, as in apflint doctor metrics.txt, or use --live or --prometheus"
        )
    options.reject_combinations({"--live": live, "--prometheus": prometheus.prometheus}, saved)
    options.reject_combinations({"--live": live}, {"--prometheus": prometheus.prometheus})


def _apply_cluster(settings: Settings, name: str) -> Settings:
    """Return the settings with the release and the seats of a cluster, marked as values that the user has set."""
    cluster = find_cluster(settings, name)
    origins = {field: name for field in ("kubernetes", "server_concurrency") if getattr(cluster, field) is not None}
    return apply_cluster(settings, cluster)._replace(origins={**origins, **settings.origins})
