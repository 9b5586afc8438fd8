"""The command `apflint doctor`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

from apflint.cli import completers, options
from apflint.cli.app import app, examples
from apflint.cli.check_run import Output, exit_code_of
from apflint.cli.commands.check import Threshold
from apflint.cli.error_reporting import print_note
from apflint.cli.options import INPUT, OUTPUT, option
from apflint.cli.report_files import parse_format
from apflint.cli.terminal import style
from apflint.doctor.diagnosis import diagnose
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import group_servers
from apflint.errors import UserError
from apflint.inputs.apf_configuration import ClusterOptions, read_cluster
from apflint.inputs.server_files import read_parts
from apflint.output.doctor import render_state, state_json
from apflint.output.findings import FORMATS, render
from apflint.output.json_text import to_json
from apflint.settings.clusters import apply_cluster, find_cluster

if TYPE_CHECKING:
    from apflint.doctor.snapshot import Server
    from apflint.effective import Effective
    from apflint.releases import Release
    from apflint.settings.model import Settings

_METRICS_HELP = "Metrics of an API server: a file, gzip, a directory, or - for standard input; repeatable."
_DUMP_HELP = "Debug dump of an API server: a file, gzip, or a directory; repeatable."
_MANIFESTS_HELP = "Manifests that the server should have: files or directories; repeatable."


@app.command(
    rich_help_panel="Analyze",
    epilog=examples(
        ("the saved metrics of a server", "apflint doctor --metrics metrics.txt"),
        ("the metrics of the running cluster", "kubectl get --raw /metrics | apflint doctor --metrics -"),
        ("with dumps, which show clients and queues", "apflint doctor --metrics metrics.txt --dump dump_requests.txt"),
        ("compare the server with manifests", "apflint doctor --metrics metrics.txt -f manifests/"),
    ),
)
def doctor(
    metrics: Annotated[list[str] | None, option(INPUT, _METRICS_HELP, "--metrics", metavar="FILE")] = None,
    dump: Annotated[list[str] | None, option(INPUT, _DUMP_HELP, "--dump", metavar="FILE")] = None,
    filename: Annotated[list[str] | None, option(INPUT, _MANIFESTS_HELP, "--filename", "-f", metavar="PATH")] = None,
    cluster: options.Cluster = None,
    kubernetes: options.Kubernetes = None,
    server_concurrency: options.ServerConcurrency = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    output_format: Annotated[
        str,
        option(
            OUTPUT,
            f"Output format: {', '.join(FORMATS)}.",
            "--format",
            metavar="FORMAT",
            parser=parse_format,
            autocompletion=completers.complete_formats,
        ),
    ] = "text",
    fail_on: Annotated[
        Threshold | None,
        option(OUTPUT, "Exit with 1 if there are findings of this severity or higher.", show_default="error"),
    ] = None,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Diagnose a running API server from its metrics and debug dumps.

    Shows the seats, queues, rejections and waits of each priority level,
    and findings. Two snapshots of a server show rates.

    Exits with 1 if there are findings at or above --fail-on.
    """
    paths = options.chain_paths(metrics, dump)
    if not paths:
        raise UserError("name the metrics or the dumps of an API server: --metrics FILE, --dump FILE")
    settings = options.join_settings(
        config,
        isolated,
        select=select,
        ignore=ignore,
        fail_on=fail_on,
        kubernetes=kubernetes,
        server_concurrency=server_concurrency,
    )
    if cluster is not None:
        named = find_cluster(settings, cluster)
        if named.server_concurrency is not None:
            settings = settings._replace(origins={**settings.origins, "server_concurrency": cluster})
        settings = apply_cluster(settings, named)
    servers = group_servers(read_parts(paths))
    release = _choose_release(kubernetes, settings, servers)
    effective: Effective | None = None
    if filename or cluster is not None:
        cluster_options = ClusterOptions(release, server_concurrency, True, config, isolated, None, cluster)
        effective = read_cluster(options.chain_paths(filename), cluster_options, print_note)
    expected = settings.server_concurrency if "server_concurrency" in settings.origins else None
    evidence = [Evidence(compute_state(server), effective, expected) for server in servers]
    chosen = settings.to_options()
    report = diagnose(evidence, chosen.rules, release, chosen.adjust)
    states = [one.state for one in evidence]
    how = style(color, quiet=True)
    if output_format == "json":
        findings = json.loads(render(report, "json", how))
        sys.stdout.write(to_json({"servers": [state_json(state) for state in states], **findings}, 2))
    elif output_format == "text":
        tables = (render_state(state, how) for state in states)
        sys.stdout.write("\n".join(filter(None, (*tables, render(report, "text", how)))))
    else:
        sys.stdout.write(render(report, output_format, how))
    return exit_code_of(report, Output(output_format, settings.fail_on))


def _choose_release(kubernetes: Release | None, settings: Settings, servers: tuple[Server, ...]) -> Release | None:
    """Return the release of the option or the settings, else the one that the metrics show, or None if they do not."""
    if kubernetes is not None or "kubernetes" in settings.origins:
        return kubernetes or settings.kubernetes
    return next((metrics.release for server in servers if (metrics := server.last.metrics) is not None), None)
