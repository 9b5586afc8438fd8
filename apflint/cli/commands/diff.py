"""Defines `apflint diff`, which shows the requests and seats that differ between two configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.comparison_sides import has_own_objects, is_project, read_live, read_side
from apflint.cli.completers import complete_clusters, complete_configuration
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, argument, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.diff.kubectl_apply import find_drift
from apflint.diff.requests import Side, compare_configurations
from apflint.output.configuration_line import name_sides
from apflint.output.diff import diff_json, report_difference
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.run import Answer, show
from apflint.sources.input_types import create_request
from apflint.sources.source_arguments import LIVE
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest


@command(
    panel="Analyze",
    epilog=examples(
        ("a branch and the work tree", "apflint diff git:main ."),
        ("two clusters of the settings", "apflint diff cluster:staging cluster:prod"),
        ("the manifests of one cluster, in a branch and in the work tree", "apflint diff --cluster prod git:main ."),
        ("the changes in the running cluster if manifests are applied", "apflint diff live manifests/"),
        ("two checkouts", "apflint diff main/ branch/"),
        ("an upgrade of Kubernetes", "apflint diff defaults:1.33 defaults:1.36"),
        (
            "an upgrade of a cluster that has the objects in manifests/",
            "apflint diff defaults:1.33 defaults:1.36 -f manifests/",
        ),
        ("for a comment on a pull request", "apflint diff --format markdown --exit-zero old.yaml new.yaml"),
    ),
)
def diff(
    old: Annotated[
        str,
        argument(
            "File, directory, -, git:REVISION[:PATH] for manifests in git, kustomize:DIR, cluster:NAME for a cluster of the"
            " settings, live for the running cluster, or defaults:X.Y for the built-in objects of a release.",
            metavar="OLD",
            autocompletion=complete_configuration,
        ),
    ],
    new: Annotated[
        str,
        argument(
            "Configuration to compare with OLD: any value that OLD can have.",
            metavar="NEW",
            autocompletion=complete_configuration,
        ),
    ],
    filename: Annotated[
        list[str] | None,
        option(
            INPUT, "Files and directories to add to OLD and to NEW; repeatable.", "--filename", "-f", metavar="PATH"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        option(
            CLUSTER,
            "Cluster to compare if OLD or NEW is . or git:REVISION, and the settings define several clusters.",
            "--cluster",
            metavar="NAME",
            autocompletion=complete_clusters,
        ),
    ] = None,
    kubeconfig: Annotated[
        str | None, option(CLUSTER, "With live: kubeconfig file of the cluster.", "--kubeconfig", metavar="FILE")
    ] = None,
    kube_context: Annotated[
        str | None, option(CLUSTER, "With live: context in the kubeconfig.", "--kube-context", metavar="NAME")
    ] = None,
    render: options.Render = False,
    kubernetes: options.Kubernetes = None,
    no_defaults: options.NoDefaults = False,
    server_concurrency: options.ServerConcurrency = None,
    output_format: Annotated[
        Literal["text", "json", "markdown"], option(OUTPUT, "Output format; markdown is for comments.", "--format")
    ] = "text",
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Show which requests change FlowSchema or priority level, and which seats change.

    Each change comes with a request that proves it. Built-in objects are
    included, unless the manifests define them or --no-defaults is given.

    Exits with 1 if a request or a priority level is affected, or if the
    search for affected requests ended early.
    """
    common = options.list_words(filename)
    if old == new == "-" or "-" in common:
        raise UserError("standard input cannot be both OLD and NEW")
    names = (old, new)
    if LIVE not in names and (kubeconfig is not None or kube_context is not None):
        raise UserError("--kubeconfig and --kube-context require live as OLD or NEW")
    selected = create_request(
        common,
        kubernetes,
        server_concurrency,
        config=config,
        isolated=isolated,
    )._replace(
        defaults=not no_defaults,
        kubectl=options.parse_kubectl(LIVE in names, kubeconfig, kube_context, no_defaults=no_defaults),
        may_render=options.may_render(render),
    )
    if cluster is not None and not any(map(is_project, names)):
        raise UserError(
            '--cluster requires that OLD or NEW is "." or git:REVISION.'
            f" To compare with this cluster, use cluster:{cluster}"
        )
    if LIVE in names:
        selected = read_live(selected)
    old_side, new_side = _read_sides(names, selected, cluster)
    before, after = old_side.effective, new_side.effective
    with show_progress("Comparing"):
        found = compare_configurations(
            Side(before.configuration, before.limits), Side(after.configuration, after.limits)
        )
    if (recorded := selected.recorded) is not None and not all(map(has_own_objects, names)):
        applied = after if old == LIVE else before
        found = found._replace(drift=find_drift(applied.workspace, recorded.managers))
    sides = name_sides(old_side, new_side)
    if output_format == "json":
        text = to_json(diff_json(found, sides), 2)
    else:
        text = render_report("", report_difference(found, sides), output_format, style(color))
    return show(Answer(text, status=ExitCode.FINDINGS if found.changed and not exit_zero else ExitCode.OK))


def _read_sides(
    names: tuple[str, str], request: InputRequest, cluster: str | None
) -> tuple[EffectiveConfiguration, EffectiveConfiguration]:
    """Return (OLD, NEW). If one side is the running cluster, assume that it has the seats of the other side."""
    old, new = names
    if old == LIVE:
        after = read_side(new, request, cluster)
        seats = after.effective.limits.server_concurrency
        return read_side(old, request.assume(server_concurrency=seats), cluster), after
    before = read_side(old, request, cluster)
    if new == LIVE:
        request = request.assume(server_concurrency=before.effective.limits.server_concurrency)
    return before, read_side(new, request, cluster)
