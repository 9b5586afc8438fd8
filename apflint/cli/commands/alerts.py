"""Defines `apflint alerts`, which prints Prometheus alerts for the priority levels of a configuration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.options import OUTPUT, option
from apflint.run import Answer, analyze
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.sources.effective_configurations import EffectiveConfiguration

PROMETHEUS = "Prometheus"
"""Panel of the options about metrics and rules."""


@command(
    panel="Analyze",
    epilog=examples(
        ("an object of the Prometheus Operator", "apflint alerts manifests/ > apf-alerts.yaml"),
        (
            "a rule file of Prometheus, with tests for promtool",
            "apflint alerts --format rules --tests apf.tests.yaml manifests/ > apf.rules.yaml",
        ),
        ("for one of several clusters", 'apflint alerts --selector \'job="apiserver",cluster="prod"\' manifests/'),
        ("for the objects and the release of the running cluster", "apflint alerts --live"),
    ),
)
def alerts(
    paths: options.Paths = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    selector: Annotated[
        str, option(PROMETHEUS, "Matchers that select the metrics of kube-apiserver.", "--selector", metavar="MATCHERS")
    ] = 'job="kube-apiserver"',
    cluster_label: Annotated[
        str, option(PROMETHEUS, "Label with the cluster of a server.", "--cluster-label", metavar="NAME")
    ] = "cluster",
    labels: Annotated[
        list[str] | None,
        option(
            PROMETHEUS,
            "Label of each alert, such as team=platform or severity=page; repeatable.",
            "--label",
            metavar="NAME=VALUE",
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        option(
            PROMETHEUS, "Change a threshold, as in wait=2 or rejected=5%; repeatable.", "--threshold", metavar="NAME=N"
        ),
    ] = None,
    output_format: Annotated[
        Literal["prometheusrule", "rules"],
        option(OUTPUT, "A PrometheusRule object, or a rule file of Prometheus.", "--format"),
    ] = "prometheusrule",
    tests: Annotated[
        str | None,
        option(
            OUTPUT,
            "With --format rules: write promtool tests of the rules to NAME.tests.yaml. The tests read the rules from NAME.rules.yaml.",
            "--tests",
            metavar="FILE",
        ),
    ] = None,
) -> int:
    """Print Prometheus alerts for the priority levels of a configuration.

    Alerts are about rejections, waits, saturation, slow service, exempt
    requests, and servers whose seats or levels differ from the manifests.
    """
    from apflint.monitoring.alert_tests import RULES_SUFFIX, SUFFIX, build_tests
    from apflint.monitoring.alerts import build_alerts, describe_omitted_alerts, parse_thresholds
    from apflint.monitoring.labels import parse_labels
    from apflint.monitoring.queries import Queries, parse_label_name, parse_selector
    from apflint.output.alerts import render_alerts, render_yaml

    more_labels, thresholds = parse_labels(labels or ()), parse_thresholds(threshold or ())
    matchers = parse_selector(selector)
    if tests is not None:
        _check_test_options(tests, output_format)
    label = parse_label_name(cluster_label)
    is_object = output_format == "prometheusrule"

    def find_answer(configuration: EffectiveConfiguration) -> Answer:
        effective = configuration.effective
        source = Queries(effective.release, tuple(map(str, matchers)), label)
        # Write the notes as comments, too, because people who read the file later do not see standard error.
        comments = [f"Configuration: {configuration.description}", *configuration.notes]
        comments += describe_omitted_alerts(effective)
        if tests is not None:
            rule_file = os.path.basename(tests).removesuffix(SUFFIX) + RULES_SUFFIX
            value = build_tests(effective, thresholds, source, matchers, rule_file)
            with open(tests, "w", encoding="utf-8") as file:
                file.write(render_yaml(value))
        rules = build_alerts(effective, thresholds, source)
        return Answer(
            render_alerts(rules, comments, is_object=is_object, labels=more_labels, level_label=source.level_label)
        )

    return analyze(sources.select(paths), find_answer)


def _check_test_options(tests: str, output_format: str) -> None:
    """Raise UserError if the name of the test file does not determine the name of the rule file.

    Also raise UserError if the output format is one that promtool cannot read.
    """
    from apflint.monitoring.alert_tests import SUFFIX

    if output_format != "rules":
        raise UserError("--tests requires --format rules: promtool does not read PrometheusRule objects")
    if not os.path.basename(tests).removesuffix(SUFFIX) or not tests.endswith(SUFFIX):
        raise UserError(
            f'--tests {tests}: the name must end with "{SUFFIX}", such as apf{SUFFIX} for rules in apf.rules.yaml'
        )
