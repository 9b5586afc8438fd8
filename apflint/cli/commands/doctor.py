"""Defines `apflint doctor`, which diagnoses a running API server."""

from __future__ import annotations

import json
import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated, NamedTuple

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, argument, option
from apflint.cli.progress import show_progress
from apflint.cli.prometheus_options import PrometheusOptions
from apflint.cli.report_files import parse_format
from apflint.cli.reporting import Output, exit_code_of
from apflint.cli.terminal import style
from apflint.doctor.causes import conclude
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.rule_runner import diagnose
from apflint.doctor.rules import DIAGNOSES
from apflint.doctor.snapshot import group_servers
from apflint.output.configuration_line import name_configuration
from apflint.output.doctor import describe_gaps, report_doctor, state_json
from apflint.output.doctor_causes import causes_json, group_findings, name_verdict
from apflint.output.doctor_period import describe_periods, periods_json, report_comparison, report_periods
from apflint.output.findings import FORMATS, render
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.run import Answer, read, show
from apflint.settings.clusters import apply_cluster, find_cluster
from apflint.sources.input_types import InputRequest
from apflint.sources.server_state_files import read_parts
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.doctor.causes import Conclusion
    from apflint.doctor.level_state import ServerState
    from apflint.doctor.snapshot import Server
    from apflint.effective_configuration import Effective
    from apflint.finding import Report
    from apflint.output.console import Style
    from apflint.settings.model import Settings
    from apflint.sources.kubectl import KubectlOptions
    from apflint.sources.prometheus_server import PrometheusReading

_FILES_HELP = "Metrics and debug dumps of API servers: files, gzip, directories, or - for standard input."
_MANIFESTS_HELP = "Manifests that the server should have: files or directories; repeatable."
_LIVE_HELP = "Read the metrics, dumps and objects of the API servers that kubectl reaches."
_WATCH_HELP = "With --live: read the metrics again after this time, such as 60s, and show rates. A terminal shows them until Ctrl-C."
_FORMATS = (*FORMATS, "html")
_FORMATS_WITH_TABLES = ("text", "json", "markdown", "html")
"""Formats that show the state of the server, too. In other formats, missing metrics are printed as notes."""


def parse_doctor_format(name: str) -> str:
    """Return the name of an output format unchanged. Raises UserError for an unknown format."""
    return name if name == "html" else parse_format(name)


@command(
    panel="Analyze",
    epilog=examples(
        ("the saved metrics of a server", "apflint doctor metrics.txt"),
        ("the API servers that kubectl reaches", "apflint doctor --live"),
        ("with dumps, which show clients and queues", "apflint doctor metrics.txt dump_requests.txt"),
        ("compare the server with manifests", "apflint doctor metrics.txt -f manifests/"),
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
    paths = options.chain_paths(files, metrics, dump)
    kubectl = options.parse_kubectl(live, kubeconfig, kube_context)
    if watch is not None and kubectl is None:
        raise UserError("--watch requires --live")
    prometheus.reject_without_prometheus()
    if not paths and kubectl is None and prometheus.prometheus is None:
        raise UserError(
            "name the metrics or the dumps of an API server, as in apflint doctor metrics.txt, or use --live or --prometheus"
        )
    others: dict[str, object] = {"FILE": files, "--metrics": metrics, "--dump": dump}
    options.reject_combinations({"--live": live, "--prometheus": prometheus.prometheus}, others)
    options.reject_combinations({"--live": live}, {"--prometheus": prometheus.prometheus})
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
    question = _Question(settings, named, output_format, color, verbose, exit_zero)
    if prometheus.prometheus is not None:
        reading = prometheus.read(settings.kubernetes if "kubernetes" in settings.origins else None)
        return show(_answer(question, _Observed(reading.servers, reading=reading)))
    if kubectl is None:
        return show(_answer(question, _Observed(group_servers(read_parts(paths)))))
    return _diagnose_live(question, kubectl, watch)


class _Question(NamedTuple):
    """The settings of a diagnosis, the manifests to compare with, and the form of the report."""

    settings: Settings
    manifests: InputRequest
    output_format: str
    color: str
    verbose: bool
    exit_zero: bool


class _Observed(NamedTuple):
    """The data that was read from API servers or from Prometheus."""

    servers: tuple[Server, ...]
    objects: Effective | None = None
    """The objects of the running cluster, or None if they are unknown."""
    coverage: tuple[str, ...] = ()
    """Sentences about API servers whose metrics were not read."""
    notes: tuple[str, ...] = ()
    reading: PrometheusReading | None = None
    """The data that was read from Prometheus, or None without --prometheus."""


def _answer(question: _Question, observed: _Observed) -> Answer:
    """Return the report about API servers."""
    if not observed.servers:  # possible with --watch, while no server answers
        return Answer("No API server answers.\n", errors=observed.notes)
    settings, output_format, current = question.settings, question.output_format, observed.objects
    release = settings.kubernetes if "kubernetes" in settings.origins else current.release if current else None
    states = [compute_state(server, release) for server in observed.servers]
    effective = current
    description = None
    if question.manifests.words:
        shown = next((state.release for state in states if state.release is not None), None)
        configuration = read(question.manifests.assume(shown))
        effective, description = configuration.effective, configuration.description
    expected = settings.server_concurrency if "server_concurrency" in settings.origins else None
    evidence = [Evidence(state, effective, expected, current) for state in states]
    chosen = settings.to_options()
    conclusion = conclude(states, "now" if observed.reading is None else "in this interval")
    conclusion = conclusion._replace(limits=(*observed.coverage, *conclusion.limits))
    report = diagnose(evidence, chosen.rules, chosen.adjust, conclusion)
    notes = list(observed.notes)
    if not DIAGNOSES.keys() & chosen.rules:
        notes.append("the selected rules are not about a running server, unlike APF801 to APF821")
    if output_format not in _FORMATS_WITH_TABLES:
        notes += [*observed.coverage, *(gap for state in states for gap in describe_gaps(state))]
        notes += describe_periods(observed.reading) if observed.reading is not None else []
    how = style(question.color, quiet=True, verbose=question.verbose)
    is_selected = "select" in settings.origins
    reading = observed.reading
    text = _render(states, report, conclusion, output_format, how, description, reading, is_selected=is_selected)
    status = exit_code_of(report, Output(output_format, settings.fail_on, exit_zero=question.exit_zero))
    # Causes about storage, lists and differences between servers have no finding. So their warnings also determine the status.
    if conclusion.warnings and settings.fail_on in ("warning", "info") and not question.exit_zero:
        status = ExitCode.FINDINGS
    return Answer(text, tuple(notes), status=status)


def _diagnose_live(question: _Question, kubectl: KubectlOptions, watch: float | None) -> int:
    """Print one report about all API servers that answer. With --watch on a terminal, print reports until the user presses Ctrl-C."""
    from apflint.sources.live_servers import read_live_servers, watch_live_servers

    if watch is not None and question.output_format == "text" and sys.stdout.isatty():
        from apflint.cli.screen_updates import watch as show_on_screen

        return show_on_screen(
            _answer(question, _Observed(*found)) for found in watch_live_servers(kubectl, question.manifests, watch)
        )
    with show_progress("Reading the cluster"):
        found = read_live_servers(kubectl, question.manifests, watch)
    answer = _answer(question, _Observed(*found))
    if watch is not None and question.output_format == "text":
        from apflint.cli.screen_updates import format_time

        answer = answer._replace(
            text=f"{format_time()}\n{answer.text}"
        )  # in a log of several runs, the time identifies the report
    return show(answer)


def _apply_cluster(settings: Settings, name: str) -> Settings:
    """Return the settings with the release and the seats of a cluster, marked as values that the user has set."""
    cluster = find_cluster(settings, name)
    origins = {field: name for field in ("kubernetes", "server_concurrency") if getattr(cluster, field) is not None}
    return apply_cluster(settings, cluster)._replace(origins={**origins, **settings.origins})


def _render(
    states: list[ServerState],
    report: Report,
    conclusion: Conclusion,
    output_format: str,
    how: Style,
    configuration: str | None,
    reading: PrometheusReading | None,
    *,
    is_selected: bool,
) -> str:
    if output_format == "json":
        findings = json.loads(render(report, "json", how))
        causes = causes_json(conclusion, group_findings(conclusion, states, report))
        head = {"schema": findings.pop("schema"), **causes, "servers": [state_json(state) for state in states]}
        if reading is not None:
            head["prometheus"] = periods_json(reading, states)
        return to_json(name_configuration({**head, **findings, "configuration": configuration}, configuration), 2)
    if output_format in _FORMATS_WITH_TABLES:
        start = report_periods(reading) if reading is not None else ()
        more = report_comparison(states, conclusion) if reading is not None else ()
        blocks = report_doctor(states, report, conclusion, how, configuration, more, is_selected=is_selected)
        return render_report(name_verdict(conclusion), chain(start, blocks), output_format, how)
    return render(report, output_format, how)
