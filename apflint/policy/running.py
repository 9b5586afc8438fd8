"""Runs policy tests: compares the expectations of suites with configurations, and describes the results.

A property is an expectation about a set of requests. The runner proves properties in batches, with
one formula per batch. Each formula contains the objects of the configuration, so large batches save
time. However, a formula is large and slow to solve if the properties of the batch contain many
values, such as subjects, verbs, resources and namespaces. So the properties of a batch together
contain about as many values as the configuration.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from apflint.evaluate.classify import Classifier
from apflint.evaluate.flows import find_flow
from apflint.evaluate.request_outcomes import find_deadline, find_unclassified
from apflint.load.apflint_files import Mistake
from apflint.load.source_text import STDIN
from apflint.location import Span
from apflint.named_tuple import NamedTuple
from apflint.output.outcome_sentences import describe_unclassified
from apflint.policy.expectation import Destination, Property, RequestExpectation, Requirement, describe_target
from apflint.policy.failure_reasons import explain_destination, explain_unreachable
from apflint.policy.parser import parse_suite
from apflint.proofs.one_configuration import Analysis, rules_of
from apflint.proofs.witness import Witness
from apflint.releases import NEWEST
from apflint.settings.clusters import MAX_NAMED_CLUSTERS
from apflint.sources.discovery import discover_files
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.file_reading import UnreadableInput, read_file
from apflint.sources.source_arguments import CLUSTER_PREFIX, KUSTOMIZE_PREFIX, LIVE, PREFIXES
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import Limits
    from apflint.evaluate.match import RequestDigest
    from apflint.load.source_text import Source
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.policy.expectation import Expectation, Reachability, Suite
    from apflint.settings.patterns import Patterns
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import KubectlOptions

_MIN_BATCH_VALUES = 128
"""Minimum number of values (see `_count_values`) in a batch. The built-in objects have about as many values."""
_TESTS_KEY = re.compile(rb'^tests[ \t]*:|"tests"\s*:', re.MULTILINE)
"""Pattern for the key that identifies suites in a directory: `tests` at the top level of YAML, or anywhere in JSON."""
_START_OF_FILE = Span(1, 1, 1, 1)


class ExpectationResult(NamedTuple):
    """The result of one expectation."""

    test: Expectation
    passed: bool
    expected: str
    """A clause, without a period, that describes the expectation."""
    happened: str = ""
    """A clause that describes what happens instead of the expected behavior. Empty if the expectation is met."""
    reasons: tuple[str, ...] = ()
    """Sentences that explain why the expectation is not met."""
    path: Path = ()
    """Path of the violated value in the suite. Empty if the expectation is met."""
    span: Span = _START_OF_FILE
    """Position of `path`. If `path` is empty, position of the key that determines the type of the expectation."""
    request: Witness | None = None
    """The request of an expectation about one request, or a request that disproves a property. None if there is no such request."""
    destination: Destination | None = None
    """The destination of `request`, or None if `request` is None or has no destination."""

    @property
    def name(self) -> str:
        """The name of the expectation, or a description if the expectation has no name."""
        return self.test.name or self.expected


class FileResult(NamedTuple):
    """The results of a suite in one configuration. If the suite cannot run, `mistakes` has the reasons."""

    name: str
    """Name of the file, as on the command line."""
    source: Source | None
    """Text of the file, or None if the file cannot be read."""
    kubernetes: str = ""
    manifests: tuple[str, ...] = ()
    """Source arguments that name the tested manifests. Paths in them are relative to the current directory."""
    configuration: str | None = None
    """Description of the tested configuration, or None if it cannot be read."""
    results: tuple[ExpectationResult, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    cluster: str | None = None
    """Name of the tested cluster in the settings, or None if the suite does not test a cluster of the settings."""
    live: KubectlOptions | None = None
    """The running cluster to which the manifests are applied, or None for a new cluster."""

    @property
    def passed(self) -> int:
        """Number of expectations that are met."""
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> int:
        """Number of expectations that are not met."""
        return len(self.results) - self.passed

    def explain_command(self, result: ExpectationResult) -> str | None:
        """Return an `apflint explain` command for the request of `result`.

        Return None if `result` has no request, or if no such command can describe the request.
        """
        if result.request is None or result.request.words is None:
            return None
        words = ["apflint", "explain", *result.request.words]
        if self.live is not None:
            words += self.live.apflint_arguments
        if self.cluster is not None:
            words += ["--cluster", self.cluster]
        is_empty = not (self.manifests or self.live or self.cluster)
        for word in (
            (f"defaults:{self.kubernetes}",) if is_empty else self.manifests
        ):  # name the built-in objects, because without -f and -k, `explain` reads the current project
            words += ["-k", word.removeprefix(KUSTOMIZE_PREFIX)] if word.startswith(KUSTOMIZE_PREFIX) else ["-f", word]
        if self.kubernetes != NEWEST.name and not is_empty:
            words += ["--kubernetes", self.kubernetes]
        return shlex.join(words)


class Run(NamedTuple):
    """The results of all suites, in the order of their files."""

    files: tuple[FileResult, ...]

    @property
    def status(self) -> int:
        """Exit status: 2 if a file could not be tested. If all files were tested, 1 if an expectation is not met, else 0."""
        if any(file.mistakes for file in self.files):
            return 2
        return int(any(file.failed for file in self.files))


def find_suites(path: str, exclude: Patterns) -> tuple[str, ...]:
    """Return the suites in a directory and its subdirectories: files with the key `tests`.

    Return the path itself if it is not a directory, or if the directory contains no suites.
    """
    if path == "-" or not os.path.isdir(path):
        return (path,)
    files = ((file.path, read_file(file)) for file in discover_files((path,), exclude) if not file.problem)
    return tuple(name for name, data in files if isinstance(data, bytes) and _TESTS_KEY.search(data)) or (path,)


def run_suite_file(path: str, request: InputRequest, warn: Callable[[str], object]) -> tuple[FileResult, ...]:
    """Run the suite in a file.

    Return a result for each cluster that the suite names, or one result if the suite names no cluster.

    The suite tests the configuration that the source arguments in `request` name. If there are no source arguments, the
    suite tests the clusters or the manifests that the suite names. If the arguments name a running cluster, the
    manifests and the release in the suite are ignored.

    Errors in the file are returned as mistakes, so that the caller can run other suites. Raises UserError if the
    configuration of `request` cannot be read.
    """
    if path != "-" and os.path.isdir(path):
        return (_untested(path, None, f"{path}: no YAML or JSON file in this directory has the key `tests`"),)
    file = next(iter(discover_files((path,))))
    data = read_file(file)
    if isinstance(data, UnreadableInput):
        return (_untested(file.name, None, f"{file.name}: {data.reason}"),)
    reading = parse_suite(file.name, data)
    suite = reading.suite
    if suite is None:
        return (FileResult(file.name, reading.source, mistakes=reading.mistakes),)
    if request.kubernetes is None and LIVE not in request.words:
        request = request.assume(suite.release)
    if request.server_concurrency is None:
        request = request.assume(server_concurrency=suite.server_concurrency)
    if suite.clusters and all(word.startswith(CLUSTER_PREFIX) for word in request.words):
        return tuple(_run_in_clusters(suite, request, warn))
    return (_run_suite(suite, request, warn),)


def _run_in_clusters(suite: Suite, request: InputRequest, warn: Callable[[str], object]) -> Iterator[FileResult]:
    """Run a suite in each cluster that the suite names. The source arguments in `request` may select one of these clusters."""
    source = suite.document.source
    known_names = request.cluster_names
    unknown = {path: name for path, name in suite.clusters.items() if name not in known_names}
    if unknown:
        hint = join_some(known_names, MAX_NAMED_CLUSTERS)
        mistakes = tuple(
            Mistake(
                f"unknown cluster {quote(name)}.{suggest(name, known_names)}"
                f" {f'The settings define {hint}' if hint else 'The settings define no clusters'}",
                suite.document.span(path),
            )
            for path, name in unknown.items()
        )
        yield FileResult(source.name, source, mistakes=mistakes)
        return
    names = tuple(dict.fromkeys(suite.clusters.values()))
    selected = tuple(word.removeprefix(CLUSTER_PREFIX) for word in request.words)
    if selected and not set(selected) & set(names):
        warn(f'{source.name}: not run, because the suite does not name the cluster "{selected[0]}"')
        return
    words = (CLUSTER_PREFIX + name for name in names if not selected or name in selected)
    try:
        for word in words:
            configuration = read_configuration(request._replace(words=(word,)))
            yield _run(suite, configuration, FileResult(source.name, source, cluster=configuration.cluster), warn)
    except UserError as error:
        yield _untested(source.name, source, str(error), suite.document.span(("clusters",)))


def _run_suite(suite: Suite, request: InputRequest, warn: Callable[[str], object]) -> FileResult:
    """Run a suite of policy tests on one configuration, and return the result.

    If `request` contains source arguments, they name the configuration. Otherwise, the configuration
    consists of the manifests that the suite names. If the suite names no manifests, the configuration
    is the only cluster in the settings. If this configuration is missing or cannot be read, the result
    contains the error. Raises UserError if the source arguments in `request` cannot be read.
    """
    document, source, name = suite.document, suite.document.source, suite.document.source.name
    is_given = bool(request.words)
    if not is_given and suite.manifests is None:
        names = request.cluster_names
        if len(names) != 1:
            message = (
                f"the settings define the clusters {join_some(names, MAX_NAMED_CLUSTERS)}: name them with"
                " `clusters: [NAME]`, or select one with --cluster NAME"
                if names
                else "no manifests given: name them with `manifests: [PATH]`, or with -f PATH; to test a new"
                " cluster, write `manifests: []`"
            )
            return _untested(name, source, message, document.span(()))
        request = request._replace(words=(CLUSTER_PREFIX + names[0],))
    elif not is_given:
        directory = "" if name == STDIN else os.path.dirname(name)
        words = tuple(_resolve_word(word, directory) for word in suite.manifests or ())
        if stream := next(filter(_is_stream, words), None):
            message = (
                f'"{stream}" is a stream or a device, and suites can only name files and directories: use -f {stream}'
            )
            return _untested(name, source, message, document.span(("manifests",)))
        if word := next((word for word in words if word == LIVE or word.startswith(CLUSTER_PREFIX)), None):
            message = f'"{word}" does not name manifests: use --live, or `clusters: [NAME]`'
            return _untested(name, source, message, document.span(("manifests",)))
        request = request._replace(words=words, uses_project=False, is_trusted=False)
    try:
        configuration = read_configuration(request)
    except UserError as error:
        if is_given:
            raise  # the command line names the configuration, so the error would be the same for all suites
        return _untested(name, source, str(error), document.span(("manifests",)))
    others = tuple(
        word for word in request.words if word != LIVE and not word.startswith((CLUSTER_PREFIX, "defaults:"))
    )
    live = request.kubectl if LIVE in request.words else None
    tested = FileResult(name, source, manifests=others, cluster=configuration.cluster or None, live=live)
    return _run(suite, configuration, tested, warn)


def _resolve_word(word: str, directory: str) -> str:
    """Return an item of `manifests` in a suite, with a path that is relative to the current directory.

    The path in `word` is relative to `directory`, the directory of the suite. Items without a path stay unchanged.
    """
    prefix = KUSTOMIZE_PREFIX if word.startswith(KUSTOMIZE_PREFIX) else ""
    if word == LIVE or (not prefix and word.startswith(PREFIXES)):
        return word
    return prefix + os.path.normpath(os.path.join(directory, word.removeprefix(prefix)))


def _run(
    suite: Suite, configuration: EffectiveConfiguration, file: FileResult, warn: Callable[[str], object]
) -> FileResult:
    """Return `file` with the results of a suite in a configuration."""
    for note in configuration.notes:
        warn(note)
    known = configuration.effective
    runner = Runner(suite, known.configuration, known.limits)
    return file._replace(
        configuration=configuration.description, kubernetes=known.release.name, results=tuple(runner.run())
    )


def _is_stream(path: str) -> bool:
    return path == "-" or os.path.abspath(path).startswith(("/dev/", "/proc/"))


def _untested(name: str, source: Source | None, message: str, span: Span = _START_OF_FILE) -> FileResult:
    return FileResult(name, source, mistakes=(Mistake(message, span),))


class Runner:
    """Runs a suite against one configuration."""

    def __init__(self, suite: Suite, configuration: Configuration, limits: Limits) -> None:
        self.suite = suite
        self.configuration = configuration
        self.analysis = Analysis(configuration, suite.world)
        self._release = limits.release
        self._levels = {level.name: level for level in limits.levels}
        self._classify = Classifier(configuration)
        schemas = (*configuration.order, *configuration.dangling)
        self._known_names = {
            "flowSchema": tuple(schema.name for schema in schemas),
            "priorityLevel": tuple(configuration.levels),
        }

    def run(self) -> Iterator[ExpectationResult]:
        """Yield the result of each expectation, in order."""
        for batch in split_into_batches(self.suite, self.configuration):
            rules = (*self.suite.excluded, *rules_of_properties(batch))
            conditions = Analysis(self.configuration, self.suite.world, rules)
            for test in batch:
                result = self._check(test, conditions)
                path = (*test.path, test.kind) if result.passed else result.path
                yield result._replace(path=() if result.passed else path, span=self.suite.document.span(path))

    def _check(self, test: Expectation, conditions: Analysis) -> ExpectationResult:
        claim, required = test.claim, test.claim.reaches
        result = ExpectationResult(test, False, claim.describe(), path=required.path)
        if isinstance(claim, RequestExpectation):
            digest, user = claim.request.digest, claim.request.user
            witness = Witness(digest, claim.words, {"user": user.name, "groups": list(user.groups)})
            result = result._replace(request=witness, destination=self._find_destination(digest))
        for key, name in required.targets:
            # Without this check, an `unreachable` expectation with a misspelled name would pass.
            if name not in self._known_names[key]:
                unusable = self.configuration.unusable.get(name) if key == "priorityLevel" else None
                hint = (
                    f" The level {unusable}, so it counts as absent"
                    if unusable
                    else suggest(name, self._known_names[key])
                )
                message = f"this configuration has no {describe_target(key, name)}{'.' if hint else ''}{hint}"
                return result._replace(happened=message, path=self._path_of_name(required, key, name))
        if isinstance(claim, RequestExpectation):
            return self._check_example(result, claim)
        if isinstance(claim, Property):
            return self._check_property(result, claim, conditions)
        return self._check_reachability(result, claim)

    def _check_example(self, result: ExpectationResult, claim: RequestExpectation) -> ExpectationResult:
        request, destination = claim.request, self._find_destination(claim.request.digest)
        deadline = find_deadline(request.url, request.info)
        if unclassified := find_unclassified(request.info, deadline, self._release):
            happened, path = "it reaches no priority level", (*result.test.path, "request")
            why = (f"{describe_unclassified(unclassified)}.",)
            return result._replace(happened=happened, reasons=why, path=path, destination=None)
        mismatches = claim.reaches.find_mismatches(destination)
        if not mismatches:
            return result._replace(passed=True)
        reasons = explain_destination(self.configuration, request.digest, destination, claim.reaches)
        return result._replace(
            happened="; ".join(mismatches.values()),
            reasons=(*reasons, *request.notes),
            path=self._path_of_key(claim.reaches, next(iter(mismatches))),
        )

    def _check_property(self, result: ExpectationResult, claim: Property, conditions: Analysis) -> ExpectationResult:
        required, is_never = claim.reaches, claim.kind == "never"
        all_excluded = (*self.suite.excluded, *claim.excluded)
        forbidden = self._find_forbidden(required, is_never=is_never)
        witness = conditions.find_request_in(claim.requests, forbidden, all_excluded) if forbidden else None
        if witness is None:
            if conditions.has_request_in(claim.requests, all_excluded):
                return result._replace(passed=True)
            return result._replace(
                happened="the expectation describes no possible request, so it proves nothing",
                reasons=("Check the names for misspellings, and check which requests `except` excludes.",),
                path=(*result.test.path, claim.kind),
            )
        if is_never:
            return self._refute(result, witness, "this request does", required.path)
        mismatches = required.find_mismatches(self._find_destination(witness.digest))
        happened = f"this request does not: {'; '.join(mismatches.values())}"
        path = self._path_of_key(required, next(iter(mismatches)))
        return self._refute(result, witness, happened, path, required)

    def _check_reachability(self, result: ExpectationResult, claim: Reachability) -> ExpectationResult:
        for key, name in claim.reaches.targets:
            level = name if key == "priorityLevel" else None
            schemas = [
                schema
                for schema in self.configuration.order
                if name == (schema.name if level is None else schema.spec.priority_level_configuration)
            ]
            witness = next(filter(None, map(self.analysis.find_request, schemas)), None)
            path, target = self._path_of_name(claim.reaches, key, name), describe_target(key, name)
            if claim.kind == "reachable" and witness is None:
                reasons = tuple(explain_unreachable(self.analysis, level, name, schemas))
                return result._replace(happened=f"no request can reach {target}", reasons=reasons, path=path)
            if claim.kind == "unreachable" and witness is not None:
                return self._refute(result, witness, f"this request reaches {target}", path)
        return result._replace(passed=True)

    def _refute(
        self,
        result: ExpectationResult,
        witness: Witness,
        happened: str,
        path: Path,
        required: Requirement | None = None,
    ) -> ExpectationResult:
        """Return a copy of `result` with the request of `witness`, which disproves the expectation.

        `happened` and `path` are the values of these fields in the copy. If `required` is not None, the reasons also
        explain why the request does not reach the required objects.
        """
        destination = self._find_destination(witness.digest)
        reasons = explain_destination(self.configuration, witness.digest, destination, required)
        return result._replace(
            happened=happened, reasons=tuple(reasons), path=path, request=witness, destination=destination
        )

    def _find_destination(self, digest: RequestDigest) -> Destination:
        schema, level, *_ = self._classify(digest)
        flow = find_flow(schema, level, digest.user.name, digest.request_info.namespace)
        return Destination(schema, self._levels[level.name], flow.distinguisher)

    def _find_forbidden(self, required: Requirement, *, is_never: bool) -> tuple[FlowSchema, ...]:
        """Return the FlowSchemas that no request may reach, because an expectation forbids them.

        A `never` expectation (`is_never`) forbids the FlowSchemas that meet `required`. An `always`
        expectation forbids the FlowSchemas that do not meet `required`.
        """
        destinations = (
            Destination(schema, self._levels[schema.spec.priority_level_configuration])
            for schema in self.configuration.order
        )
        return tuple(
            destination.flow_schema
            for destination in destinations
            if is_never != bool(required.find_mismatches(destination))
        )

    def _path_of_key(self, required: Requirement, key: str) -> Path:
        """Return the path of `key` in a requirement.

        If the requirement is a name or a list of names instead of a mapping, return the path of the requirement.
        """
        is_mapping = isinstance(self.suite.document.at(*required.path), dict)
        return (*required.path, key) if is_mapping else required.path

    def _path_of_name(self, required: Requirement, key: str, name: str) -> Path:
        path = self._path_of_key(required, key)
        value = self.suite.document.at(*path)
        return (*path, value.index(name)) if isinstance(value, list) else path


def split_into_batches(suite: Suite, configuration: Configuration) -> Iterator[tuple[Expectation, ...]]:
    """Split the expectations of a suite into batches, in order. One formula proves all properties of a batch."""
    min_values = max(_MIN_BATCH_VALUES, _count_values((*rules_of(configuration.order), *suite.excluded)))
    batch: list[Expectation] = []
    values = 0
    for test in suite.tests:
        batch.append(test)
        values += _count_values(rules_of_properties((test,)))
        if values >= min_values:
            yield tuple(batch)
            batch, values = [], 0
    if batch:
        yield tuple(batch)


def rules_of_properties(tests: Iterable[Expectation]) -> list[PolicyRulesWithSubjects]:
    """Return the rules that match the requests that the properties in `tests` are about.

    The result also contains the rules for the requests that the properties exclude.
    """
    claims = (test.claim for test in tests)
    return [rule for claim in claims if isinstance(claim, Property) for rule in (claim.requests, *claim.excluded)]


def _count_values(rules: Iterable[PolicyRulesWithSubjects]) -> int:
    """Return the number of values in all fields of the rules. `*` counts as one value."""
    count = 0
    for rule in rules:
        count += len(rule.subjects)
        for entry in rule.resource_rules:
            count += len(entry.verbs) + len(entry.api_groups) + len(entry.resources) + len(entry.namespaces)
        count += sum(len(entry.verbs) + len(entry.non_resource_urls) for entry in rule.non_resource_rules)
    return count
