"""The certainty of the diagnosis of a client: the evidence for the diagnosis, and the missing evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.client_diagnosis.evidence import find_in_dumps
from apflint.evaluate.authentication import has_fixed_groups
from apflint.named_tuple import NamedTuple
from apflint.wording import count_noun, join_some, join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.client_diagnosis.evidence import ClientEvidence, ConcernedClient

SAVE_METRICS = "kubectl get --raw /metrics > metrics.txt"
SAVE_DUMP = (
    "kubectl get --raw '/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1' > dump_requests.txt"
)
_MAX_NAMES = 3


class Gap(NamedTuple):
    """Missing evidence that could change the diagnosis."""

    text: str
    """A sentence about what is unknown, and about the evidence that would show it."""
    command: str | None = None
    """A command that collects the missing evidence, or None if there is no such command."""


class Certainty(NamedTuple):
    """The evidence for a diagnosis, and the missing evidence that could change the diagnosis."""

    basis: tuple[str, ...]
    """The available evidence as noun phrases, such as `2 snapshots of 3 servers`."""
    gaps: tuple[Gap, ...]
    """The missing evidence, the most important first. Empty if the diagnosis is certain."""

    @property
    def is_certain(self) -> bool:
        """Whether no evidence is missing."""
        return not self.gaps


class Question(NamedTuple):
    """A question about a client. The fields determine which evidence is missing for the diagnosis of the client."""

    client: ConcernedClient
    is_example: bool
    """Whether the user named no request, so that the diagnosis is about an example request of the client."""
    is_client_needed: bool
    """Whether the diagnosis depends on the clients of the level."""
    unsure: str | None
    """A sentence about another cause that would explain the same figures, or None if there is no such cause."""
    level: str
    """The level of the requests according to the configuration, or an empty string if a dump shows their level."""


def judge(evidence: ClientEvidence, question: Question) -> Certainty:
    """Return the evidence for the diagnosis of a client, and the missing evidence that could change the diagnosis.

    If the request alone decides, because API Priority and Fairness does not classify it, no evidence is
    missing.
    """
    if evidence.find_unclassified(question.client) is not None:
        return Certainty(("the request alone decides",), ())
    return Certainty(tuple(_list_basis(evidence, question.client)), tuple(_list_gaps(evidence, question)))


def _list_basis(evidence: ClientEvidence, client: ConcernedClient) -> Iterator[str]:
    snapshots = [shot for load in evidence.servers for shot in load.state.server.snapshots if shot.metrics is not None]
    if snapshots:
        where = f" of {len(evidence.servers)} servers" if len(evidence.servers) > 1 else ""
        yield f"{count_noun(len(snapshots), 'snapshot')}{where}"
    places = []
    if evidence.has_dump:
        count = sum(sighting.requests for sighting in find_in_dumps(evidence.servers, client))
        places.append(f"a dump ({count:,})")
    if evidence.log is not None:
        places.append(f"a log ({sum(sighting.requests for sighting in evidence.log.sightings):,})")
    if places:
        yield f"its requests in {join_words(places, 'and')}"
    if evidence.server_log is not None:
        yield f"{count_noun(evidence.server_log.requests, 'request')} of all clients in a log of the server"


def _list_gaps(evidence: ClientEvidence, question: Question) -> Iterator[Gap]:
    if evidence.servers or evidence.log is not None:
        yield from _compare_objects(evidence, question)
        yield from _list_gaps_of_clients(evidence, question)
    elif evidence.server_log is not None:
        yield Gap("The log of the server names no users: a dump of requests shows who fills the level.", SAVE_DUMP)
    else:
        yield Gap(
            "Metrics and a dump of requests show whether the level delays or rejects requests, and who fills it.",
            SAVE_METRICS,
        )
    if question.unsure is not None:
        yield Gap(question.unsure)
    if evidence.servers and not evidence.has_metrics:
        yield Gap("Metrics show limits, rejections and execution times.", SAVE_METRICS)
    elif evidence.servers and not evidence.has_rates:
        yield Gap(
            "The counts in one snapshot are totals since the server started: a second snapshot shows current rates.",
            SAVE_METRICS,
        )
    if evidence.log is not None and not evidence.servers:
        yield Gap(
            "A log shows neither limits nor waits below 500 ms: add metrics from the time of the log, or use --prometheus."
        )
    if evidence.log is not None and not evidence.log.is_complete:
        yield Gap("apflint could not read a part of the log, so requests may be missing.")


def _compare_objects(evidence: ClientEvidence, question: Question) -> Iterator[Gap]:
    """Yield a sentence if the servers lack the level of the requests, or have objects that the configuration lacks.

    The level of the requests is computed from the configuration, so the level may then be wrong. The
    sentence advises the user to add the objects of the servers.
    """
    if not question.level or not evidence.servers:
        return
    if evidence.level(question.level) is None and evidence.has_metrics:
        yield Gap(
            f"The servers do not have the level {quote(question.level)}: add the objects of the servers, with -f or"
            " --live."
        )
    elif unknown := evidence.list_unknown_objects():
        names = join_some(tuple(map(quote, unknown)), _MAX_NAMES)
        yield Gap(
            f"The servers have objects that the configuration lacks ({names}): add the objects of the servers, with -f"
            " or --live."
        )


def _list_gaps_of_clients(evidence: ClientEvidence, question: Question) -> Iterator[Gap]:
    """Yield a gap (missing evidence) if the diagnosis needs the clients of a level, but nothing shows the client."""
    shows_clients = evidence.has_dump or evidence.log is not None
    if not question.is_client_needed or question.client.user in evidence.users:
        return
    if not shows_clients:
        yield Gap("Metrics name no clients: a dump of requests shows who fills the level.", SAVE_DUMP)
        return
    needed = ["the request in question"] if question.is_example else []
    if not question.client.has_groups and not has_fixed_groups(question.client.user):
        needed.append("its groups with --as-group")
    advice = f": name {' and '.join(needed)}" if needed else ""
    yield Gap(
        f"No dump and no log shows the diagnosed client, so apflint computes the FlowSchema of the client from the configuration{advice}."
    )
