"""Reads manifests as the configuration of a cluster, for the commands that evaluate them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import rules_of
from apflint.effective import Assumptions, Effective
from apflint.engine import Options, load_inputs, report
from apflint.errors import UserError
from apflint.inputs.discovery import discover_files, is_dangling
from apflint.inputs.selection import collect_named, describe_files_without_objects, read_files
from apflint.releases import parse_release
from apflint.settings import resolve_settings
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.finding import Finding, Skipped
    from apflint.inputs.discovery import FoundFile
    from apflint.load import Loaded
    from apflint.releases import Release

    Warn = Callable[[str], object]
    """Receives warnings about manifests that are not used as they are written."""

BUILT_IN_PREFIX = "defaults:"
"""`defaults:1.33` stands for the built-in objects of that release."""
_DUPLICATE = "APF402"


class ClusterOptions(NamedTuple):
    """What the command line says about a cluster. The settings of the project apply where a value is None."""

    kubernetes: Release | None = None
    server_concurrency: int | None = None
    defaults: bool = True
    """Whether the built-in objects of the release are part of the configuration."""
    config: str | None = None
    """Settings file to use instead of the closest one."""
    isolated: bool = False
    """Whether to ignore settings files."""


def read_cluster(paths: Iterable[str], options: ClusterOptions, warn: Warn) -> Effective:
    """Read the user's manifests as a cluster would have them, and warn about objects that the API server rejects.

    Raises UserError for invalid settings, or a path that cannot be read.
    """
    command_line = {"kubernetes": options.kubernetes, "server_concurrency": options.server_concurrency}
    settings = resolve_settings(command_line, options.config, isolated=options.isolated)
    named = tuple(paths)

    def report_error(file: FoundFile, reason: str) -> None:
        if file.path in named or not is_dangling(file.path):
            raise UserError(f"{file.name}: {reason}")
        warn(f"{file.name}: {reason} It is not used")

    patches: list[Skipped] = []
    named_files: list[str] = []
    files = read_files(discover_files(named, settings.exclude), report_error, patches)
    loaded = load_inputs(file.content for file in collect_named(files, named, named_files) if file.may_hold_apf)
    if patches:
        warn("patches among the manifests are not used: build the kustomization first")
    nonempty = {
        *(file.file for file in patches),
        *(part.source.name for part in loaded if part.documents or part.problems),
    }
    for note in describe_files_without_objects([name for name in named_files if name not in nonempty]):
        warn(note)
    assumptions = Assumptions(server_concurrency=settings.server_concurrency, defaults=options.defaults)
    known = Effective(build_workspace(loaded, settings.kubernetes), assumptions)
    _warn_about_rejections(loaded, known, warn)
    return known


def read_configuration(name: str, options: ClusterOptions, warn: Warn) -> Effective:
    """Read a path as `read_cluster` does, or `defaults:1.33`: the configuration of a new cluster of that release."""
    if not name.startswith(BUILT_IN_PREFIX):
        return read_cluster((name,), options, warn)
    kubernetes = parse_release(name.removeprefix(BUILT_IN_PREFIX))
    return read_cluster((), options._replace(kubernetes=kubernetes, defaults=True), warn)


def _warn_about_rejections(loaded: list[Loaded], known: Effective, warn: Warn) -> None:
    """Warn about manifests that no cluster can have, and say whether the answer includes them."""
    if not known.workspace.manifests and not known.workspace.problems:
        return
    findings = report(loaded, known, Options(rules=(*rules_of("validation"), _DUPLICATE), suppressions=False)).findings
    if any(finding.is_template for finding in findings):
        warn("templates among the manifests are not used: render them first")
    too_large = [finding for finding in findings if finding.rule == "APF004" and not finding.apiserver]
    rejected: dict[object, Finding] = {}
    for finding in findings:
        if finding.is_rejected:
            rejected.setdefault((finding.file, finding.object or finding.span), finding)
    duplicates = [finding for finding in findings if finding.rule == _DUPLICATE]
    warnings = (_describe_too_large(too_large), _describe_rejected([*rejected.values()], known), _describe(duplicates))
    for warning in filter(None, warnings):
        warn(f"{warning}: see `apflint check`")


def _describe_too_large(findings: list[Finding]) -> str:
    if not findings:
        return ""
    more = f", and so are {len(findings) - 1:,} others" if len(findings) > 1 else ""
    return f"{_place(findings[0])} is too large for apflint{more}, and is not used here"


def _describe_rejected(findings: list[Finding], known: Effective) -> str:
    """Describe the objects or documents that the API server rejects (one finding each), and whether they are used here."""
    if not findings:
        return ""
    place = _place(findings[0])
    configuration = known.configuration
    documents = {schema.document for schema in (*configuration.order, *configuration.dangling)}
    documents |= {level.document for level in configuration.levels.values()}
    used = sum(finding.document in documents for finding in findings)
    if len(findings) == 1:
        return f"{place} would be rejected by the API server, and is {'used here anyway' if used else 'not used here'}"
    start = f"{len(findings)} objects or documents would be rejected by the API server, the first of them {place}"
    if used in (0, len(findings)):
        return f"{start}. They are {'used here anyway' if used else 'not used here'}"
    return f"{start}. {used} of them {'is' if used == 1 else 'are'} used here anyway"


def _describe(duplicates: list[Finding]) -> str:
    """Describe objects that are defined twice: the last definition is used, as if the files were applied in this order."""
    if not duplicates:
        return ""
    first = duplicates[0].related[0]
    others = len(duplicates) - 1
    more = f", and {others:,} more {'object is' if others == 1 else 'objects are'} defined twice" if others else ""
    place = f"{first.file}:{first.span.line}"
    return f"{_place(duplicates[0])} is already defined at {place}{more}; using the last definition"


def _place(finding: Finding) -> str:
    what = f'{finding.object.kind} "{finding.object.name}"' if finding.object else "a document"
    return f"{what} ({finding.file}:{finding.span.line})"
