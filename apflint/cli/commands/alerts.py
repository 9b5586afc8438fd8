"""The command `apflint alerts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.definitions import command, examples
from apflint.cli.options import OUTPUT, option
from apflint.doctor.alerts import build_alerts
from apflint.output.alerts import render_alerts
from apflint.run import Answer, analyze

if TYPE_CHECKING:
    from apflint.sources.configuration import EffectiveConfiguration


@command(
    panel="Analyze",
    epilog=examples(
        ("an object of the Prometheus Operator", "apflint alerts manifests/ > apf-alerts.yaml"),
        ("a rule file of Prometheus", "apflint alerts --format rules manifests/ > apf.rules.yaml"),
        ("for the objects and the release of the running cluster", "apflint alerts --live"),
    ),
)
def alerts(
    paths: options.Paths = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    output_format: Annotated[
        Literal["prometheusrule", "rules"],
        option(OUTPUT, "A PrometheusRule object, or a rule file of Prometheus.", "--format"),
    ] = "prometheusrule",
) -> int:
    """Print Prometheus alerts for the priority levels of a configuration.

    Alerts are about rejections, waits, saturation, and servers whose seats
    or levels differ from the manifests. Thresholds follow from the manifests.
    """

    def find_answer(configuration: EffectiveConfiguration) -> Answer:
        # The notes are part of the output, too: whoever reads the file later does not see standard error.
        comments = (f"Configuration: {configuration.description}", *configuration.notes)
        alerts = build_alerts(configuration.effective)
        return Answer(render_alerts(alerts, comments, is_object=output_format == "prometheusrule"))

    return analyze(sources.select(paths), find_answer)
