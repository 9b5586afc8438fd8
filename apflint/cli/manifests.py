"""Reads manifests for the commands that evaluate them: `explain`, `limits` and their kin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import rules_of
from apflint.engine import STDIN, load_inputs, report
from apflint.evaluate.limits import server_concurrency
from apflint.inputs import files
from apflint.inputs.patches import Patches
from apflint.output.sanitize import sanitize
from apflint.releases import NEWEST, release
from apflint.settings import effective
from apflint.workspace import Workspace, World, workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.finding import Finding
    from apflint.load import Loaded

_BUILT_IN = "defaults:"
_DUPLICATE = "APF402"


class Cluster(NamedTuple):
    """What manifests are read for, as a command line says it: a release, and how much one API server executes at once.

    What it does not say (None) is that of the project's settings, or of nobody's with `isolated`.
    """

    kubernetes: str | None = None
    seats: int | None = None
    max_requests_inflight: int | None = None
    max_mutating_requests_inflight: int | None = None
    defaults: bool = True
    """Whether the built-in objects of the release are part of the configuration."""
    isolated: bool = False

    def server_concurrency(self) -> int | None:
        """The seats of the server; ValueError where what is said contradicts itself or makes no server."""
        inflight = (self.max_requests_inflight, self.max_mutating_requests_inflight)
        if inflight == (None, None):
            return self.seats
        if self.seats is not None:
            raise ValueError("--server-concurrency is the sum of the two inflight flags: give it or them, not both")
        return server_concurrency(*inflight)


def read(paths: Iterable[str], cluster: Cluster) -> Workspace:
    """The user's manifests in a cluster. What the API server would reject is told, and used as far as it can be read.

    ValueError, fit to be shown, for a cluster that there cannot be, wrong settings, or a path that cannot be read.
    """
    asked = {"kubernetes": cluster.kubernetes, "server-concurrency": cluster.server_concurrency()}
    settings = effective(asked, isolated=cluster.isolated).values
    target = release(settings["kubernetes"] or NEWEST.name)
    patches: list[str] = []
    loaded = load_inputs(_inputs(paths, settings["exclude"], patches))
    if patches:
        sys.stderr.write("apflint: patches among the manifests are not used: build the kustomization first\n")
    world = World(server_concurrency=settings["server-concurrency"], defaults=cluster.defaults)
    known = workspace(loaded, target, world=world)
    _warn(loaded, known)
    return known


def read_one(path: str, cluster: Cluster) -> Workspace:
    """As `read` for one path, or for `defaults:1.33`: what a fresh server of that release has."""
    if path.startswith(_BUILT_IN):
        fresh = release(path.removeprefix(_BUILT_IN)).name
        return read((), cluster._replace(kubernetes=fresh, defaults=True))
    return read((path,), cluster)


def _inputs(paths: Iterable[str], exclude: Iterable[str], patches: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of the files that may hold objects; the names of patches are appended to `patches`."""
    known, named = Patches(), tuple(paths)
    for found in files.discover(named, exclude):
        data = files.read(found)
        if isinstance(data, files.Unreadable):
            if found.path not in named and files.is_dangling(found.path):
                sys.stderr.write(f"apflint: {sanitize(found.name)}: {data.reason} It is not used\n")
                continue
            raise ValueError(f"{sanitize(found.name)}: {data.reason}")  # it is the path that is wrong
        if not files.may_hold_apf(data):
            continue
        if found.name != STDIN and found.path in known:
            patches.append(found.name)
        else:
            yield STDIN if found.name == STDIN else found.name, data


def _warn(loaded: list[Loaded], known: Workspace) -> None:
    """Says what of the input no cluster can have, and what of that the answers count in all the same."""
    if not known.manifests and not known.troubles:
        return
    findings = report(loaded, known, [*rules_of("validation"), _DUPLICATE]).findings
    if any(finding.rule == "APF003" for finding in findings):
        sys.stderr.write("apflint: templates among the manifests are not used: render them first\n")
    unread = [finding for finding in findings if finding.rule == "APF004" and not finding.apiserver]
    rejected: dict[object, Finding] = {}
    for finding in findings:
        if finding.apiserver and finding.rule != "APF003":
            rejected.setdefault((finding.file, finding.object or finding.span), finding)
    for told in (_unread(unread), _rejected(list(rejected.values()), known), _duplicates(findings)):
        if told:
            sys.stderr.write(f"apflint: {sanitize(told)}: see `apflint check`\n")


def _unread(findings: list[Finding]) -> str:
    """What is beyond the bounds of apflint, and so is missing here."""
    if not findings:
        return ""
    more = f", as are {len(findings) - 1:,} others" if len(findings) > 1 else ""
    return f"{_place(findings[0])} is beyond what apflint reads{more}, and is not used here"


def _rejected(findings: list[Finding], known: Workspace) -> str:
    """What the API server would reject, by the first finding of each object or document, and whether it is used here."""
    if not findings:
        return ""
    place = _place(findings[0])
    documents = _used(known)
    used = sum(id(finding.document) in documents for finding in findings)
    if len(findings) == 1:
        return f"{place} would be rejected by the API server, and is {'used here all the same' if used else 'not used here'}"
    told = f"{len(findings)} objects or documents would be rejected by the API server, the first of them {place}"
    if used in (0, len(findings)):
        return f"{told}. They are {'used here all the same' if used else 'not used here'}"
    return f"{told}. {used} of them {'is' if used == 1 else 'are'} used here all the same"


def _used(known: Workspace) -> set[int]:
    """The ids of the documents that take part: they can be decoded, and a server that had them would not leave them out."""
    configuration = known.configuration
    schemas = {id(schema.document) for schema in (*configuration.order, *configuration.dangling)}
    return schemas | {id(level.document) for level in configuration.levels.values()}


def _duplicates(findings: Iterable[Finding]) -> str:
    """The first name that is there twice: what is read last counts, as if the files had been applied in this order."""
    found = [finding for finding in findings if finding.rule == _DUPLICATE]
    if not found:
        return ""
    first = found[0].related[0]
    others = len(found) - 1
    more = f", as {'is' if others == 1 else 'are'} {others:,} more" if others else ""
    return (
        f"{_place(found[0])} is there before ({first.file}:{first.span.line}){more}. Of each the last one counts here"
    )


def _place(finding: Finding) -> str:
    what = f'{finding.object.kind} "{finding.object.name}"' if finding.object else "a document"
    return f"{what} ({finding.file}:{finding.span.line})"
