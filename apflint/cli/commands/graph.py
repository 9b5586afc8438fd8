"""The command `apflint graph`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.options import OUTPUT, option
from apflint.graph.picture import build_picture, find_unreachable
from apflint.inputs.apf_configuration import ClusterOptions, read_configuration, select_cluster


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("Mermaid, which GitHub and GitLab draw in Markdown", "apflint graph manifests/"),
        ("a page for the browser", "apflint graph --format html manifests/ > apf.html"),
        ("with Graphviz", "apflint graph --format dot manifests/ | dot -Tpdf > apf.pdf"),
        ("a running cluster", "apflint graph --live --format html > apf.html"),
        ("the built-in objects of a release", "apflint graph defaults:1.36"),
    ),
)
def graph(
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
        Literal["mermaid", "dot", "svg", "html"], option(OUTPUT, "Output format; dot is for Graphviz.", "--format")
    ] = "mermaid",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> None:
    """Draw FlowSchemas in matching order, and the seats of their priority levels."""
    kubectl = options.parse_live(live, kubeconfig, kube_context, no_defaults=no_defaults)
    options.reject_combinations({"--live": live, "--kustomize": kustomize}, {"--cluster": cluster})
    settings = ClusterOptions(
        kubernetes, server_concurrency, not no_defaults, config, isolated, kubectl, cluster, tuple(kustomize or ())
    )
    known = read_configuration(*select_cluster(options.chain_paths(paths, filename), settings), print_note)
    drawing = build_picture(known, find_unreachable(known.configuration))
    match output_format:
        case "dot":
            from apflint.graph.dot import render
        case "svg":
            from apflint.graph.svg import render
        case "html":
            from apflint.graph.page import render
        case "mermaid":
            from apflint.graph.mermaid import is_too_large, render

            if is_too_large(render(drawing)):
                print_note(
                    "GitHub and others do not draw a Mermaid diagram of this size. Use --format html, svg or dot"
                )
    sys.stdout.write(render(drawing))
