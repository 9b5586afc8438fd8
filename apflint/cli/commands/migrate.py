"""Defines `apflint migrate`, which moves manifests to a later API version."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from apflint.cli import completers, options
from apflint.cli.command_definitions import command, examples
from apflint.cli.edited_files import is_standard_input, print_edited, print_remark
from apflint.cli.error_reporting import format_note, print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, FIXES, OUTPUT, option
from apflint.cli.terminal import style
from apflint.edit.file_content import decode
from apflint.edit.migration import migrate as migrate_source
from apflint.edit.migration_target import (
    choose_target,
    describe_releases,
    parse_release_range,
    warn_about_running_cluster,
)
from apflint.finding import SkippedDocuments
from apflint.load.source_text import Source
from apflint.releases import parse_api_version
from apflint.run import Answer, run
from apflint.settings.clusters import apply_cluster
from apflint.settings.values import is_below
from apflint.sources.built_clusters import list_rendered_files
from apflint.sources.files import PATCH_REASON, describe_files_without_objects
from apflint.sources.input_types import InputRequest
from apflint.user_error import UserError
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.edit.migration import Migration
    from apflint.edit.migration_target import MigrationTarget
    from apflint.releases import Release
    from apflint.settings.model import Settings
    from apflint.sources.discovery import InputFile
    from apflint.sources.input_types import Inputs


class _Cluster(NamedTuple):
    """A cluster that the settings define."""

    release: Release
    is_stated: bool
    """Whether the settings state the release. If not, the newest release is assumed."""
    paths: list[str]
    """The real paths of the cluster's files and directories."""


@command(
    panel="Edit",
    epilog=examples(
        ("preview the edits as a diff", "apflint migrate --to v1 --diff manifests/"),
        ("edit the files", "apflint migrate manifests/"),
        (
            "before an upgrade: use a version that each of the releases 1.26 to 1.31 serves",
            "apflint migrate --range 1.26..1.31 old.yaml",
        ),
        ("an upgrade over several releases, step by step", "apflint migrate --plan --range 1.25..1.33 manifests/"),
        ("as a filter", "apflint migrate --to v1 - < old.yaml > new.yaml"),
    ),
)
def migrate(
    paths: options.Paths = None,
    filename: options.Filenames = None,
    exclude: options.Exclude = None,
    force_exclude: options.ForceExclude = False,
    to: Annotated[
        str | None,
        option(
            CLUSTER,
            "API version, v1alpha1 to v1.",
            metavar="V",
            autocompletion=completers.complete_api_versions,
            show_default="the newest that the releases serve",
        ),
    ] = None,
    kubernetes: options.Kubernetes = None,
    releases: Annotated[
        str | None,
        option(
            CLUSTER,
            "Migrate to the newest API version that all of these Kubernetes releases serve.",
            "--range",
            metavar="X.Y..X.Z",
        ),
    ] = None,
    plan: Annotated[
        bool,
        option(
            OUTPUT,
            "With --range: show what to change before and after each minor release of an upgrade, without editing files.",
            "--plan",
        ),
    ] = False,
    output_format: Annotated[
        Literal["text", "json", "markdown"], option(OUTPUT, "With --plan: output format.", "--format")
    ] = "text",
    server_concurrency: options.ServerConcurrency = None,
    diff: options.Diff = False,
    accept_changes: Annotated[
        bool, option(FIXES, "Migrate objects whose meaning changes, too.", "--accept-changes")
    ] = False,
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
    config: options.Config = None,
    isolated: options.Isolated = False,
) -> int:
    """Move manifests to a later API version without changing their meaning.

    Comments, quotes and order are preserved. An object that would have another
    meaning is refused, and its file stays unchanged. For standard input (-),
    the result goes to standard output.

    Exits with 1 if an object is refused, if --diff shows edits, or if --plan has
    changes of manifests.
    """
    words = options.list_words(paths, filename)
    options.reject_other_sources("apflint migrate", words)
    project = options.join_settings(config, isolated, exclude=exclude, server_concurrency=server_concurrency)
    if kubernetes is not None and releases is not None:
        raise UserError("--kubernetes and --range cannot be combined")
    version = parse_api_version(to) if to is not None else None
    target_releases = parse_release_range(releases) if releases is not None else ()
    if plan:
        options.reject_combinations({"--plan": plan}, {"--to": to, "--diff": diff, "--accept-changes": accept_changes})
        from apflint.cli.upgrade_plans import show_plan

        own = project._replace(cluster=(), context=())
        request = InputRequest(words, own, "migrate", force_exclude=force_exclude)
        return show_plan(request, target_releases, output_format, style(color), exit_zero=exit_zero)
    if output_format != "text" or server_concurrency is not None:
        raise UserError("--format and --server-concurrency require --plan")
    if releases is None and (kubernetes is not None or version is None):
        target_releases = (kubernetes or project.kubernetes,)
    default = choose_target(version, target_releases)
    follows_clusters = releases is None and kubernetes is None and version is None
    clusters = _list_clusters(project)
    # Warnings depend on the releases that the clusters run today. Only the settings state these releases, so releases
    # that apflint assumes are left out.
    stated = [cluster for cluster in clusters if cluster.is_stated]
    stated_release = [project.kubernetes] if "kubernetes" in project.origins else []
    # Each file is migrated independently of all other files. So read the files without the clusters and context of the settings.
    own = project._replace(cluster=(), context=(), kubernetes=kubernetes or project.kubernetes)
    request = InputRequest(words, own, "migrate", force_exclude=force_exclude)

    def find_answer(inputs: Inputs) -> Answer:
        status, moved = ExitCode.OK, Counter[str]()
        errors, empty, warnings = list[str](), list[str](), dict[str, None]()
        for name in inputs.reported:
            file = inputs.files[name]
            if file.may_hold_apf or file.path == "-":
                try:
                    own_releases = _list_releases(file, clusters) if follows_clusters else []
                    target = choose_target(None, own_releases) if own_releases else default
                except UserError as error:
                    errors.append(f"{file.name}: {error}")
                    continue
                code, versions = _migrate_file(
                    file, target, request.paths, color, accept_changes=accept_changes, diff=diff
                )
                status = max(status, code)
                moved[f"{target.version} for Kubernetes {describe_releases(target.releases)}"] += len(versions)
                running = _list_releases(file, stated) or stated_release
                for old in versions:
                    warnings.update(dict.fromkeys(warn_about_running_cluster(old, target, running)))
            elif SkippedDocuments(file.name, PATCH_REASON) in inputs.skipped:
                print_remark(f"{file.name}: not migrated: {PATCH_REASON}")
            elif name in inputs.named and not force_exclude:
                empty.append(file.name)
        has_errors = bool(errors or inputs.errors)
        summary = [*describe_files_without_objects(empty), *_summarize(moved, diff=diff), *warnings]
        if not (moved or status or has_errors):
            summary.append("no FlowSchema and no PriorityLevelConfiguration found")
        if exit_zero and status == ExitCode.FINDINGS:
            status = ExitCode.OK
        return Answer(errors=tuple(errors), summary="".join(map(format_note, summary)), status=status)

    return run(request, find_answer)


def _summarize(moved: Mapping[str, int], *, diff: bool) -> Iterator[str]:
    """Yield a sentence for each target API version. `moved` maps API versions to numbers of migrated objects."""
    for target, count in moved.items():
        if count:
            yield f"{pluralize(count, 'object')} {'would be moved' if diff else 'moved'} to {target}"
        else:
            yield f"no object moved to {target}"


def _list_clusters(settings: Settings) -> list[_Cluster]:
    """Return the clusters in the settings."""
    applied = [(cluster, apply_cluster(settings, cluster)) for cluster in settings.cluster]
    return [
        _Cluster(
            effective.kubernetes,
            cluster.kubernetes is not None or "kubernetes" in settings.origins,
            [*map(os.path.realpath, (*cluster.paths, *effective.context)), *list_rendered_files(cluster)],
        )
        for cluster, effective in applied
    ]


def _list_releases(file: InputFile, clusters: Iterable[_Cluster]) -> list[Release]:
    """Return the releases of the clusters to which a file belongs, the oldest first."""
    real = os.path.realpath(file.path)
    releases = {cluster.release.minor: cluster.release for cluster in clusters if is_below(real, cluster.paths)}
    return [releases[minor] for minor in sorted(releases)]


def _migrate_file(
    file: InputFile, target: MigrationTarget, named: tuple[str, ...], color: str, *, accept_changes: bool, diff: bool
) -> tuple[ExitCode, tuple[str, ...]]:
    """Migrate a file, and print or write the result. Return (exit code, previous API version of each migrated object)."""
    try:
        text, encoding = decode(file.data)
    except UnicodeDecodeError:
        print_note(f"{file.name}: not a text file")
        return ExitCode.ERROR, ()
    migration = migrate_source(Source(file.name, text), target, accept_changes=accept_changes)
    _print_remarks(file.name, migration)
    after = encoding.encode(migration.text)
    if error := print_edited(file.name, file.path, file.data, after, named, diff=diff, color=color):
        print_note(error)
        return ExitCode.ERROR, ()
    is_edited = after != file.data
    if is_edited and not diff and not is_standard_input(file.path):
        print_note(f"wrote {file.name}")
    is_unwritten = migration.is_refused or (is_edited and diff)
    return ExitCode.FINDINGS if is_unwritten else ExitCode.OK, migration.versions


def _print_remarks(name: str, migration: Migration) -> None:
    for remark in migration.remarks:
        if remark.kind == "migrated" and migration.is_refused:
            continue  # no object is migrated if one object of the file is refused
        prefix = "refused: " if remark.kind == "refused" else ""
        owner = f"{remark.object}: " if remark.object else ""
        print_remark(f"{name}:{remark.line}: {prefix}{owner}{remark.message}")
    if migration.is_refused:
        print_remark(f"{name}: the file is not changed, because apflint refused to migrate one of its objects")
