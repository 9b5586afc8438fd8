"""Reads manifests for the commands that evaluate them: `explain`, `limits` and their kin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.checks import CHECKS
from apflint.cli import files
from apflint.engine import STDIN, load_inputs, report
from apflint.releases import NEWEST, SERVER_CONCURRENCY, release
from apflint.report.terminal import visible
from apflint.settings import effective
from apflint.workspace import Workspace, World, workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load import Loaded

_BUILT_IN = "defaults:"


def read(
    paths: Iterable[str],
    kubernetes: str | None,
    *,
    defaults: bool = True,
    server_concurrency: int = SERVER_CONCURRENCY,
) -> Workspace:
    """The user's manifests for a release and a server of so many seats, with the built-in objects unless `defaults` is off.

    Release and excluded files are those of the project's settings, where nothing else is said. ValueError, fit to be
    shown, for an unknown release or a path that cannot be read. What the API server would reject is told on standard error,
    and used as far as it can be read.
    """
    settings = effective({"kubernetes": kubernetes}).values
    target = release(settings["kubernetes"] or NEWEST.name)
    loaded = load_inputs(_inputs(paths, settings["exclude"]))
    known = workspace(loaded, target, world=World(server_concurrency=server_concurrency, defaults=defaults))
    _warn(loaded, known)
    return known


def read_one(
    path: str, kubernetes: str | None, *, defaults: bool = True, server_concurrency: int = SERVER_CONCURRENCY
) -> Workspace:
    """As `read` for one path, or for `defaults:1.33`: what a fresh server of that release has."""
    if path.startswith(_BUILT_IN):
        return read((), release(path.removeprefix(_BUILT_IN)).name, server_concurrency=server_concurrency)
    return read((path,), kubernetes, defaults=defaults, server_concurrency=server_concurrency)


def _inputs(paths: Iterable[str], exclude: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for found in files.discover(paths, exclude):
        data = files.read(found)
        if isinstance(data, files.Unreadable):
            raise ValueError(f"{visible(found.name)}: {data.reason}")  # noqa: TRY004  # it is the path that is wrong
        if files.may_hold_apf(data):
            yield STDIN if found.name == STDIN else found.name, data


def _warn(loaded: list[Loaded], known: Workspace) -> None:
    """Says what of the input no cluster can have, and whether the answers count it in all the same."""
    if not known.manifests and not known.troubles:
        return
    findings = report(loaded, known, [rule for rule in CHECKS if rule < "APF4"]).findings
    if any(finding.rule == "APF003" for finding in findings):
        sys.stderr.write("apflint: templates among the manifests are not used: render them first\n")
    rejected = {
        (finding.file, finding.object or finding.span): finding
        for finding in reversed(findings)  # of each object the first is told
        if finding.apiserver and finding.rule != "APF003"
    }
    if not rejected:
        return
    first = next(reversed(rejected.values()))
    what = f'{first.object.kind} "{first.object.name}"' if first.object else "a document"
    place = f"{what} ({first.file}:{first.span.line})"
    if len(rejected) == 1:
        told = f"{place} would be rejected by the API server. It is used here as far as it can be decoded"
    else:
        told = (
            f"{len(rejected)} objects or documents would be rejected by the API server, the first of them {place}."
            " They are used here as far as they can be decoded"
        )
    sys.stderr.write(f"apflint: {visible(told)}: see `apflint check`\n")
