"""Defines `apflint test`, which runs policy tests."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import INPUT, OUTPUT, argument, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.output import policy
from apflint.policy.running import Run, find_suites, run_suite_file
from apflint.run import Answer, show
from apflint.settings.clusters import find_cluster
from apflint.settings.resolution import resolve_settings
from apflint.sources.input_types import create_request
from apflint.sources.source_arguments import LIVE
from apflint.user_error import UserError


@command(
    panel="Lint",
    epilog=examples(
        ("one suite", "apflint test apf-test.yaml"),
        ("all suites in a directory, for a CI system", "apflint test --format junit policy > results.xml"),
        ("a running cluster instead of the manifests that the suite names", "apflint test --live apf-test.yaml"),
        ("the manifests of a cluster of the settings", "apflint test --cluster prod apf-test.yaml"),
        ("the same suite for another release", "apflint test --kubernetes 1.33 apf-test.yaml"),
    ),
)
def test(
    suites: Annotated[
        list[str], argument("Test suites in YAML or JSON, directories with suites, or -.", metavar="PATH...")
    ],
    filename: Annotated[
        list[str] | None,
        option(
            INPUT,
            "Manifests to test instead of those that the suites name; repeatable.",
            "--filename",
            "-f",
            metavar="PATH",
        ),
    ] = None,
    kustomize: options.Kustomize = None,
    live: options.Live = False,
    kubeconfig: options.Kubeconfig = None,
    kube_context: options.KubeContext = None,
    cluster: options.Cluster = None,
    render: options.Render = False,
    kubernetes: options.Kubernetes = None,
    server_concurrency: options.ServerConcurrency = None,
    output_format: Annotated[Literal["text", "json", "junit"], option(OUTPUT, "Output format.", "--format")] = "text",
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
    quiet: Annotated[bool, option(OUTPUT, "Show only failed tests.", "--quiet", "-q")] = False,
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Run policy tests: example requests, and properties proven for all requests.

    A failed test is shown with a request that proves it.

    Exits with 1 if a test fails.
    """
    clusters = [cluster] if cluster is not None else None
    words = options.list_words(filename, kustomize=kustomize, clusters=clusters, live=live)
    if "-" in suites and "-" in words:
        raise UserError("standard input cannot be both the suite and the manifests")
    # Resolve the settings before the suites run, so that a mistake in the settings is reported only once.
    effective = resolve_settings(config=config, isolated=isolated)
    options.reject_combinations({"--live": live, "--kustomize": kustomize}, {"--cluster": cluster})
    request = create_request(
        words,
        kubernetes,
        server_concurrency,
        config=config,
        isolated=isolated,
    )._replace(
        kubectl=options.parse_kubectl(LIVE in words, kubeconfig, kube_context),
        may_render=options.may_render(render),
    )
    if cluster is not None:
        find_cluster(effective, cluster)
    with show_progress("Testing", quiet=quiet):
        paths = [path for named in suites for path in find_suites(named, effective.exclude)]
        result = Run(tuple(file for path in paths for file in run_suite_file(path, request, print_note)))
    if not result.files:
        raise UserError("no suite was run, because no suite names the cluster of --cluster")
    for file in result.files:
        sys.stderr.write(policy.render_mistakes(file, style(color, sys.stderr)))
    status = ExitCode.OK if exit_zero and result.status == ExitCode.FINDINGS else result.status
    if output_format == "json":
        return show(Answer(policy.render_json(result), status=status))
    if output_format == "junit":
        return show(Answer(policy.render_junit(result), status=status))
    text, summary = policy.render_text(result, style(color, quiet=quiet)), policy.render_summary(result)
    return show(Answer(text, summary="" if quiet else summary, status=status))
