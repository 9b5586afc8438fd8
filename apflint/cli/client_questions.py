"""Collects the evidence for `apflint why` from files, a running cluster and Prometheus, and prints the answer."""

from __future__ import annotations

import gc
import os
import shlex
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.client_names import find_user, is_client_name
from apflint.cli.comparison_sides import read_live
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.progress import show_progress
from apflint.cli.repeated_options import name_sources, repeat_configuration, repeat_seats, repeat_settings
from apflint.client_diagnosis.diagnosis import CommandWords, diagnose_client
from apflint.client_diagnosis.evidence import ClientEvidence, ConcernedClient, measure_servers
from apflint.doctor.causes import conclude
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import group_servers
from apflint.request_explanation import Explainer
from apflint.requests.request_words import RequestArguments
from apflint.run import Answer, read, show
from apflint.sources.evidence_files import sort_evidence
from apflint.sources.source_arguments import LIVE
from apflint.string_formats import check_dns_label
from apflint.user_error import UserError
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.cli.prometheus_options import PrometheusOptions
    from apflint.client_diagnosis.diagnosis import ClientDiagnosis
    from apflint.client_diagnosis.log_evidence import ClientLog
    from apflint.doctor.level_state import ServerState
    from apflint.doctor.snapshot import Server
    from apflint.replay.object_counts import ObjectCounts
    from apflint.replay.server_decisions import ServerLogReport
    from apflint.requests.request import Request
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.evidence_files import EvidenceFiles
    from apflint.sources.input_types import InputRequest

_MAX_CLUSTERS = 5
_EXAMPLE = ("list", "pods")
"""Example request, used if the user names no request and the evidence shows no request of the client."""


class SplitWords(NamedTuple):
    """The words of the command line, sorted into the client, the request and files."""

    client: str | None
    """The client, or None if no word names it."""
    request: tuple[str, ...]
    files: tuple[str, ...]


class ClientQuestion(NamedTuple):
    """The arguments of `apflint why` that name the client, the requests in question and the files."""

    user: str | None
    groups: Sequence[str]
    namespace: str | None
    all_namespaces: bool
    words: tuple[str, ...]
    """Files, directories, the client and the words of the request, in any order."""
    files: tuple[str, ...]
    """Files in options."""

    def split_words(self) -> SplitWords:
        """Sort the words by kind. If --as is not given, the first word that is neither a file nor a verb is the client.

        Raises UserError for a word that is neither a file, nor the client, nor a part of the request.
        """
        client: str | None = None
        request: list[str] = []
        files: list[str] = []
        for word in self.words:
            is_target = len(request) == 1
            if not is_target and (word == "-" or os.path.lexists(word)):
                files.append(word)
            elif self.user is None and client is None and not is_target and is_client_name(word):
                client = word
            elif not request and not word.isalpha():
                raise UserError(
                    f"{word}: no such file or directory, and not a verb. A request begins with a verb, as in list pods"
                )
            else:
                request.append(word)
        return SplitWords(client, tuple(request), tuple(files))

    def parse(self, words: tuple[str, ...]) -> Request:
        """Return the request that the words and options describe. Raises UserError if the words are not a request."""
        return RequestArguments(
            self.user or "", words, tuple(self.groups), self.namespace, self.all_namespaces
        ).to_request()

    def write(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return shell-quoted arguments for the user, the groups, the request in `words`, and the namespace.

        For example, the result for the words `list` and `pods` may be
        `("--as", "ann", "--as-group", "dev", "list", "pods", "-n", "ci")`.
        """
        scope = ["-A"] if self.all_namespaces else []
        scope += ["-n", self.namespace] if self.namespace is not None else []
        groups = (word for group in self.groups for word in ("--as-group", group))
        return tuple(map(shlex.quote, ("--as", self.user or "", *groups, *words, *scope)))


class _ServerEvidence(NamedTuple):
    """The evidence that was read from API servers."""

    servers: tuple[Server, ...] = ()
    notes: tuple[str, ...] = ()


def answer_question(
    question: ClientQuestion,
    selected: InputRequest,
    watch: float | None,
    prometheus: PrometheusOptions,
    render: Callable[[ClientDiagnosis, str], str],
) -> int:
    """Print why the requests of a client are slow or rejected, and return the exit status.

    Raises UserError for invalid arguments, and for files that cannot be read.
    """
    split = question.split_words()
    if split.client is None:
        _require_client(question)
    files = sort_evidence((*split.files, *question.files))
    if split.client is not None:
        question = question._replace(user=find_user(split.client, [file.path for file in files.audit_logs]))
        _require_client(question)
    request = _parse_request(question, split.request)
    if files.parts and prometheus.prometheus is not None:
        raise UserError("metrics and dumps in files cannot be combined with --prometheus")
    if files.parts and selected.kubectl is not None:
        raise UserError(
            f"{files.server_files[0]} and --live cannot be combined: to use the objects of the server, save them in a file, and name the file with -f"
        )
    if LIVE in selected.words:
        selected = read_live(selected)
    observed = _observe(files, selected, watch, prometheus)
    release = selected.kubernetes
    states = [compute_state(server, release) for server in observed.servers]
    completed = _complete(selected, files, states)
    configuration = read(completed)
    client = ConcernedClient(question.user or "", request, has_groups=bool(question.groups))
    evidence = _collect(question, client, files, states, configuration)
    if configuration.are_seats_assumed:
        evidence = evidence._replace(assumed_seats=configuration.effective.limits.server_concurrency)
    if configuration.is_release_assumed:
        evidence = evidence._replace(assumed_release=configuration.effective.release.name)
    named = CommandWords(
        question.write(split.request),
        tuple(shlex.quote(file.path) for file in files.audit_logs),
        (*repeat_configuration(completed, name_sources(completed, configuration)), *repeat_settings(selected)),
        repeat_seats(completed),
        tuple(map(shlex.quote, files.server_files)),
        tuple(map(shlex.quote, (*split.files, *question.files))),
        (*repeat_configuration(selected, selected.words), *repeat_seats(selected), *repeat_settings(selected)),
        is_live=selected.kubectl is not None,
    )
    diagnosis = diagnose_client(client, evidence, named)
    is_interrupted = evidence.log is not None and evidence.log.is_interrupted
    status = ExitCode.INTERRUPTED if is_interrupted else ExitCode.OK
    errors = (
        *_list_damaged(evidence),
        *["interrupted, so the answer is based on only a part of the log"] * is_interrupted,
    )
    return show(Answer(render(diagnosis, configuration.description), observed.notes, errors, status=status))


def _list_damaged(evidence: ClientEvidence) -> Iterator[str]:
    """Yield `FILE:LINE: REASON` for each damaged log. The log was read only up to this line."""
    if evidence.log is not None:
        yield from evidence.log.damaged
    if evidence.server_log is not None:
        yield from (f"{place.file}:{place.line}: {place.reason}" for place in evidence.server_log.damaged)


def _require_client(question: ClientQuestion) -> None:
    """Raise UserError if no client is given."""
    if not question.user or question.user.isspace():
        raise UserError(
            "no client given. Name the user, as in apflint why alice or apflint why system:serviceaccount:NAMESPACE:NAME. For"
            " all clients of a server, use apflint doctor"
        )


def _parse_request(question: ClientQuestion, words: tuple[str, ...]) -> Request | None:
    """Return the request in question, or None if the user asks about all requests of the client.

    Raises UserError if the request is invalid.
    """
    if question.namespace is not None and question.all_namespaces:
        raise UserError("-n and -A cannot be combined")
    if question.namespace is not None and (problem := check_dns_label(question.namespace)):
        raise UserError(f'-n: "{question.namespace}" is not a valid name of a namespace: {problem}')
    if not words and (question.namespace is not None or question.all_namespaces):
        raise UserError("-n and -A require a request, as in list pods")
    return question.parse(words) if words else None


def _observe(
    files: EvidenceFiles, selected: InputRequest, watch: float | None, prometheus: PrometheusOptions
) -> _ServerEvidence:
    """Read the state of API servers from files, from Prometheus, or with kubectl."""
    if prometheus.prometheus is not None:
        from apflint.output.doctor_period import describe_periods

        reading = prometheus.read(selected.kubernetes)
        if len(reading.clusters) > 1:
            names = join_some([quote(cluster.cluster) for cluster in reading.clusters], _MAX_CLUSTERS)
            raise UserError(f"the metrics are from several clusters ({names}): choose one cluster with --selector")
        return _ServerEvidence(reading.servers, tuple(describe_periods(reading)))
    if selected.kubectl is None:
        return _ServerEvidence(group_servers(files.parts))
    from apflint.sources.live_servers import read_live_servers

    try:
        with show_progress("Reading the cluster"):
            found = read_live_servers(selected.kubectl, selected, watch)
    except UserError as error:  # not fatal: the objects alone determine the level of a request
        return _ServerEvidence(notes=(str(error),))
    return _ServerEvidence(found.servers, notes=(*found.coverage, *found.notes))


def _complete(selected: InputRequest, files: EvidenceFiles, states: Sequence[ServerState]) -> InputRequest:
    """Return the request `selected`, completed from the evidence of the user's question.

    The result also reads the manifests in `files`, but not the metrics, dumps and logs in `files`. If
    the user chose neither a release nor a running cluster, the release is the first known release of
    the servers in `states`. If the user chose no server concurrency limit, the limit is that of the
    servers, provided that it is known and equal for all servers.
    """
    totals = {state.total for state in states}
    release = next((state.release for state in states if state.release is not None), None)
    selected = files.add_manifests(selected)
    return selected.assume(
        release if selected.kubernetes is None and selected.recorded is None else None,
        totals.pop() if len(totals) == 1 and selected.server_concurrency is None else None,
    )


def _collect(
    question: ClientQuestion,
    client: ConcernedClient,
    files: EvidenceFiles,
    states: Sequence[ServerState],
    configuration: EffectiveConfiguration,
) -> ClientEvidence:
    known = configuration.effective
    example = client.request or question.parse(_EXAMPLE)
    return ClientEvidence(
        measure_servers(states),
        conclude(states) if states else None,
        _read_log(client, files, configuration) if files.audit_logs else None,
        _read_server_log(files, configuration) if files.server_logs else None,
        Explainer(known).explain(example, reasons=False),
        known,
    )


def _read_log(client: ConcernedClient, files: EvidenceFiles, configuration: EffectiveConfiguration) -> ClientLog:
    from apflint.client_diagnosis.log_evidence import read_log_evidence
    from apflint.replay.running import ReplayOptions, replay_sides

    options = ReplayOptions(by=("namespace",), counts=_count_objects(files), calls=True)
    gc.disable()  # requests have no reference cycles, and searching for cycles would take a quarter of the time
    try:
        with (
            show_progress("Reading"),
            closing(replay_sides(files.audit_logs, [configuration.effective], options)) as replays,
        ):
            replay = next(replays)
            if not replay.extent.requests:
                raise UserError(
                    "the audit log has no request: no event has the stage ResponseComplete or ResponseStarted"
                )
            if (first := replay.log.coverage.first_unreadable) is not None:
                print_note(
                    f"{first.file}:{first.line}: {first.reason} (unreadable lines: {replay.log.coverage.unreadable})"
                )
            return read_log_evidence(replay, client, are_seats_assumed=configuration.are_seats_assumed)
    finally:
        gc.enable()


def _count_objects(files: EvidenceFiles) -> ObjectCounts | None:
    """Return the object counts from the last metrics that contain object counts, or None if there are none.

    Object counts determine the seats of lists.
    """
    from apflint.replay.object_counts import parse_metrics

    for part in reversed(files.parts):
        if part.kind == "metrics":
            try:
                return parse_metrics(part.source.text)
            except UserError:
                continue  # these metrics have no object counts: try earlier metrics
    return None


def _read_server_log(files: EvidenceFiles, configuration: EffectiveConfiguration) -> ServerLogReport:
    from apflint.replay.server_decisions import read_server_logs

    with show_progress("Reading"):
        return read_server_logs(files.server_logs, configuration.effective, configuration.description)
