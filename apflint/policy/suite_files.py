"""Runs the suites in files against the manifests that they name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.errors import UserError
from apflint.inputs.cluster import read_cluster
from apflint.inputs.discovery import discover_files
from apflint.inputs.reading import Unreadable, read_file
from apflint.load.source import STDIN
from apflint.location import Span
from apflint.policy.fields import Mistake
from apflint.policy.parser import parse_suite
from apflint.policy.results import FileResult
from apflint.policy.running import Runner

if TYPE_CHECKING:
    from apflint.inputs.cluster import ClusterOptions, Warn
    from apflint.load.source import Source
    from apflint.policy.expectation import Suite

_START_OF_FILE = Span(1, 1, 1, 1)


def run_suite_file(path: str, manifests: tuple[str, ...], cluster: ClusterOptions, warn: Warn) -> FileResult:
    """Run the suite in a file, against `manifests` or else those that the suite names.

    A mistake in the file is part of the result, so that other suites are tested as well. Raises UserError if the manifests of
    the command line are unreadable.
    """
    if path != "-" and os.path.isdir(path):
        return _untested(path, None, f"{path}: this is a directory: name the suites in it")
    file = next(iter(discover_files((path,))))
    data = read_file(file)
    if isinstance(data, Unreadable):
        return _untested(file.name, None, f"{file.name}: {data.reason}")
    reading = parse_suite(file.name, data)
    if reading.suite is None:
        return FileResult(file.name, reading.source, "", (), (), reading.mistakes)
    return _run_suite(file.name, reading.source, reading.suite, manifests, cluster, warn)


def _run_suite(
    name: str, source: Source, suite: Suite, manifests: tuple[str, ...], cluster: ClusterOptions, warn: Warn
) -> FileResult:
    document = suite.document
    paths = manifests or _manifests_of(suite, name)
    if paths is None:
        message = (
            "no manifests given: name them with `manifests: [PATH]`, or with -f PATH; `manifests: []` is a new cluster"
        )
        return _untested(name, source, message, document.span(()))
    if not manifests and (stream := next(filter(_is_stream, paths), None)):
        message = f'"{stream}" is a stream or a device, and suites can only name files and directories: use -f {stream}'
        return _untested(name, source, message, document.span(("manifests",)))
    if cluster.kubernetes is None and suite.release is not None:
        cluster = cluster._replace(kubernetes=suite.release)
    if cluster.server_concurrency is None:
        cluster = cluster._replace(server_concurrency=suite.server_concurrency)
    try:
        known = read_cluster(paths, cluster, warn)
    except UserError as error:
        if manifests:
            raise  # the mistake is in the command line
        return _untested(name, source, str(error), document.span(("manifests",)))
    runner = Runner(suite, known.configuration, known.release, known.limits.server_concurrency)
    return FileResult(name, source, known.release.name, paths, tuple(runner.run()))


def _manifests_of(suite: Suite, name: str) -> tuple[str, ...] | None:
    """Return the paths of a suite's manifests, which are relative to the suite, or None if it names none."""
    if suite.manifests is None:
        return None
    directory = "" if name == STDIN else os.path.dirname(name)
    return tuple(os.path.normpath(os.path.join(directory, path)) for path in suite.manifests)


def _is_stream(path: str) -> bool:
    return path == "-" or os.path.abspath(path).startswith(("/dev/", "/proc/"))


def _untested(name: str, source: Source | None, message: str, span: Span = _START_OF_FILE) -> FileResult:
    return FileResult(name, source, "", (), (), (Mistake(message, span),))
