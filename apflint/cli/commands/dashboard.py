"""Defines `apflint dashboard`, which prints a Grafana dashboard for the priority levels of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.options import option
from apflint.run import Answer, analyze
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.sources.effective_configurations import EffectiveConfiguration

PROMETHEUS = "Prometheus"


@command(
    panel="Analyze",
    epilog=examples(
        (
            "for the manifests and the built-in objects of the newest release",
            "apflint dashboard manifests/ > apf-dashboard.json",
        ),
        ("for the levels and the release of the running cluster", "apflint dashboard --live"),
    ),
)
def dashboard(
    paths: options.Paths = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    selector: Annotated[
        str, option(PROMETHEUS, "Matchers that select the metrics of kube-apiserver.", "--selector", metavar="MATCHERS")
    ] = 'job="kube-apiserver"',
    cluster_label: Annotated[
        str, option(PROMETHEUS, "Label with the cluster of a server.", "--cluster-label", metavar="NAME")
    ] = "cluster",
) -> int:
    """Print a Grafana dashboard for the priority levels of a configuration.

    It shows seats and limits, demand, waits, rejections, service times and
    exempt requests. It needs grafana-foundation-sdk (extra: dashboard).
    """
    from apflint.monitoring.panels import build_rows, narrow
    from apflint.monitoring.queries import Queries, parse_label_name, parse_selector

    try:
        from apflint.output.dashboard import render_dashboard
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "grafana_foundation_sdk":
            raise
        raise UserError("dashboard needs grafana-foundation-sdk: pip install 'apflint[dashboard]'") from error
    matchers = tuple(str(matcher) for matcher in parse_selector(selector))
    label = parse_label_name(cluster_label)

    def find_answer(configuration: EffectiveConfiguration) -> Answer:
        source = Queries(configuration.effective.release, matchers, label)
        levels = [level.name for level in configuration.effective.limits.levels]
        notes = (f"Configuration: {configuration.description}", *configuration.notes)
        return Answer(render_dashboard(build_rows(narrow(source)), levels, source, notes))

    return analyze(sources.select(paths), find_answer)
