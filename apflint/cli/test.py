"""`apflint test`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from apflint.cli import options
from apflint.cli.app import LINT, app, examples
from apflint.cli.exit_codes import ExitCode, print_note
from apflint.cli.options import INPUT, OUTPUT, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.errors import UserError
from apflint.inputs.cluster import ClusterOptions, read_cluster
from apflint.inputs.discovery import discover_files
from apflint.inputs.reading import Unreadable, read_file
from apflint.load.source import STDIN
from apflint.location import Span
from apflint.output.policy import json, junit, text
from apflint.policy.fields import Mistake
from apflint.policy.parser import parse_suite
from apflint.policy.results import FileResult, Run
from apflint.policy.running import Runner
from apflint.settings import resolve_settings

if TYPE_CHECKING:
    from apflint.load.source import Source
    from apflint.policy.expectation import Suite

_START_OF_FILE = Span(1, 1, 1, 1)


@app.command(
    rich_help_panel=LINT,
    epilog=examples(
        ("one suite", "apflint test apf-test.yaml"),
        ("all suites, for a CI system", "apflint test --format junit policy/*.yaml > results.xml"),
        ("the same suite for another release", "apflint test --kubernetes 1.33 apf-test.yaml"),
    ),
)
def test(
    suites: Annotated[list[str], typer.Argument(metavar="FILE...", help="Test suites in YAML or JSON; or -.")],
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
    manifests = tuple(filename or ())
    if "-" in suites and "-" in manifests:
        raise UserError("standard input cannot be both the suite and the manifests")
    resolve_settings(config=config, isolated=isolated)  # reports a mistake in the settings once, not for each suite
    cluster = options.join_cluster_options(kubernetes, server_concurrency, config=config, isolated=isolated)
    with show_progress(lambda: "Testing") as start:
        start()
        result = Run(tuple(_test_file(path, manifests, cluster) for path in suites))
    for file in result.files:
        sys.stderr.write(text.render_mistakes(file, style(color, sys.stderr)))
    if output_format == "json":
        sys.stdout.write(json.render(result))
    elif output_format == "junit":
        sys.stdout.write(junit.render(result))
    else:
        sys.stdout.write(text.render(result, style(color, quiet=quiet)))
        if not quiet:
            sys.stderr.write(text.render_summary(result))
    return ExitCode.OK if exit_zero and result.status == ExitCode.FINDINGS else result.status


def _test_file(path: str, manifests: tuple[str, ...], cluster: ClusterOptions) -> FileResult:
    """Run a suite. A mistake in its file is part of the result, so that other suites are tested as well."""
    if path != "-" and os.path.isdir(path):
        return _untested(path, None, f"{path}: this is a directory: name the suites in it")
    file = next(iter(discover_files((path,))))
    data = read_file(file)
    if isinstance(data, Unreadable):
        return _untested(file.name, None, f"{file.name}: {data.reason}")
    reading = parse_suite(file.name, data)
    if reading.suite is None:
        return FileResult(file.name, reading.source, "", (), (), reading.mistakes)
    return _run_suite(file.name, reading.source, reading.suite, manifests, cluster)


def _run_suite(
    name: str, source: Source, suite: Suite, manifests: tuple[str, ...], cluster: ClusterOptions
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
        known = read_cluster(paths, cluster, print_note)
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
