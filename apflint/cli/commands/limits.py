"""The command `apflint limits`."""

from __future__ import annotations

import sys

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.terminal import style
from apflint.inputs.apf_configuration import ClusterOptions, read_cluster, select_cluster
from apflint.output.json_text import to_json
from apflint.output.limits import limits_json, render_limits


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("the priority levels of a new cluster, and those of the manifests", "apflint limits manifests/"),
        ("a server with other flags", "apflint limits --server-concurrency 1600+400 manifests/"),
        ("a running cluster", "apflint limits --live"),
        ("what changes with an upgrade", "apflint diff defaults:1.28 defaults:1.36"),
    ),
)
def limits(
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
    output_format: options.Format = "text",
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> None:
    """Show how many seats each priority level gets.

    Built-in objects of the Kubernetes release are included, unless the
    manifests define them or --no-defaults is given.
    """
    kubectl = options.parse_live(live, kubeconfig, kube_context, no_defaults=no_defaults)
    options.reject_combinations({"--live": live, "--kustomize": kustomize}, {"--cluster": cluster})
    settings = ClusterOptions(
        kubernetes, server_concurrency, not no_defaults, config, isolated, kubectl, cluster, tuple(kustomize or ())
    )
    known = read_cluster(*select_cluster(options.chain_paths(paths, filename), settings), print_note)
    if output_format == "json":
        text = to_json(limits_json(known.limits), 2)
    else:
        text = render_limits(known.limits, style(color))
    sys.stdout.write(text)
