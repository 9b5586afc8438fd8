"""The command `apflint alerts`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.options import OUTPUT, option
from apflint.doctor.alerts import build_alerts
from apflint.inputs.apf_configuration import ClusterOptions, read_cluster, select_cluster
from apflint.output.alerts import render_alerts


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("an object of the Prometheus Operator", "apflint alerts manifests/ > apf-alerts.yaml"),
        ("a rule file of Prometheus", "apflint alerts --format rules manifests/ > apf.rules.yaml"),
        ("for the objects and the release of the running cluster", "apflint alerts --live"),
    ),
)
def alerts(
    paths: options.Paths = None,
    filename: options.Filenames = None,
    kustomize: options.Kustomize = None,
    cluster: options.Cluster = None,
    live: options.Live = False,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
    kubernetes: options.Kubernetes = None,
    no_defaults: options.NoDefaults = False,
    server_concurrency: options.ServerConcurrency = None,
    output_format: Annotated[
        Literal["prometheusrule", "rules"],
        option(OUTPUT, "A PrometheusRule object, or a rule file of Prometheus.", "--format"),
    ] = "prometheusrule",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> None:
    """Print Prometheus alerts for the priority levels of a configuration.

    Alerts are about rejections, waits, saturation, and servers whose seats
    or levels differ from the manifests. Thresholds follow from the manifests.
    """
    kubectl = options.parse_live(live, kubeconfig, kube_context, no_defaults=no_defaults)
    options.reject_combinations({"--live": live, "--kustomize": kustomize}, {"--cluster": cluster})
    settings = ClusterOptions(
        kubernetes, server_concurrency, not no_defaults, config, isolated, kubectl, cluster, tuple(kustomize or ())
    )
    known = read_cluster(*select_cluster(options.chain_paths(paths, filename), settings), print_note)
    sys.stdout.write(render_alerts(build_alerts(known), is_object=output_format == "prometheusrule"))
