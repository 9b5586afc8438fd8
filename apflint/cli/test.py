"""`apflint test`: reads suites and the manifests that they are about, runs them, prints what holds and what does not."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.outcome import note
from apflint.cli.progress import working
from apflint.cli.terminal import style
from apflint.errors import UserError
from apflint.inputs.cluster import ClusterOptions, read_cluster
from apflint.inputs.discovery import discover_files
from apflint.inputs.reading import Unreadable, read_file
from apflint.load.source import STDIN
from apflint.location import Span
from apflint.policy.fields import Mistake
from apflint.policy.parser import parse_suite
from apflint.policy.results import FileResult, Run
from apflint.releases import NEWEST, SERVER_CONCURRENCY

if TYPE_CHECKING:
    from apflint.load.source import Source
    from apflint.policy.expectation import Suite

_START = Span(1, 1, 1, 1)


class Overrides(NamedTuple):
    """What the command line says in place of the suites; None or empty: what they say."""

    manifests: tuple[str, ...] = ()
    kubernetes: str | None = None
    server_concurrency: int | None = None


def run(paths: tuple[str, ...], overrides: Overrides, output: str, color: str, *, quiet: bool) -> int:
    """Runs suites and prints; the exit status. ValueError, fit to be shown, for options that cannot be."""
    if "-" in paths and "-" in overrides.manifests:
        raise ValueError("standard input can be the suite or the manifests, not both")
    if overrides.kubernetes is not None:
        from apflint.releases import parse_release

        parse_release(overrides.kubernetes)
    if overrides.server_concurrency is not None and overrides.server_concurrency < 1:
        raise ValueError(
            f'the server concurrency limit must be at least 1, and "{overrides.server_concurrency}" is not'
        )
    with working(lambda: "Testing") as start:
        start()
        result = Run(tuple(_tested(path, overrides) for path in paths))
    _print(result, output, color, quiet=quiet)
    return result.status


def _print(result: Run, output: str, color: str, *, quiet: bool) -> None:
    from apflint.output.policy import text

    for tested in result.files:
        sys.stderr.write(text.render_mistakes(tested, style(color, sys.stderr)))
    if output == "json":
        from apflint.output.policy import json

        sys.stdout.write(json.render(result))
    elif output == "junit":
        from apflint.output.policy import junit

        sys.stdout.write(junit.render(result))
    else:
        sys.stdout.write(text.render(result, style(color, quiet=quiet)))
        if not quiet:
            sys.stderr.write(text.render_summary(result))


def _tested(path: str, overrides: Overrides) -> FileResult:
    """What came of one file. Whatever is wrong with it does not keep others from being tested."""
    if path != "-" and os.path.isdir(path):
        return _untested(path, None, f"{path}: this is a directory: name the suites in it")
    found = next(iter(discover_files((path,))))
    data = read_file(found)
    if isinstance(data, Unreadable):
        return _untested(found.name, None, f"{found.name}: {data.reason}")
    reading = parse_suite(found.name, data)
    if reading.suite is None:
        return FileResult(found.name, reading.source, "", (), (), reading.mistakes)
    return _run(found.name, reading.source, reading.suite, overrides)


def _run(name: str, source: Source, suite: Suite, overrides: Overrides) -> FileResult:
    document = suite.document
    paths = overrides.manifests or _manifests(name, suite)
    if paths is None:
        message = "which manifests is this about? Name them with `manifests: [PATH]`, or with -f PATH; `manifests: []` is a fresh server"
        return _untested(name, source, message, document.span(()))
    if not overrides.manifests and (stream := next(filter(_is_stream, paths), None)):
        message = f'"{stream}" is a stream or a device: a suite names regular files and directories. Pass it with -f'
        return _untested(name, source, message, document.span(("manifests",)))
    kubernetes = overrides.kubernetes or (suite.release or NEWEST).name
    try:
        known = read_cluster(paths, ClusterOptions(kubernetes), note)
    except UserError as error:
        if overrides.manifests:
            raise  # it is the command line that is wrong
        return _untested(name, source, str(error), document.span(("manifests",)))
    from apflint.policy.running import Runner

    seats = overrides.server_concurrency or suite.server_concurrency or SERVER_CONCURRENCY
    runner = Runner(suite, known.configuration, known.release, seats)
    return FileResult(name, source, known.release.name, paths, tuple(runner.run()))


def _manifests(name: str, suite: Suite) -> tuple[str, ...] | None:
    """Paths from where we are: those of a suite are relative to its folder."""
    if suite.manifests is None:
        return None
    folder = "" if name == STDIN else os.path.dirname(name)
    return tuple(os.path.normpath(os.path.join(folder, path)) for path in suite.manifests)


def _is_stream(path: str) -> bool:
    return path == "-" or os.path.abspath(path).startswith(("/dev/", "/proc/"))


def _untested(name: str, source: Source | None, message: str, span: Span = _START) -> FileResult:
    return FileResult(name, source, "", (), (), (Mistake(message, span),))
