"""Verdicts: a sentence for each client with noticeable rejections or waits, and a sentence for all other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.load import SECOND
from apflint.simulate.verdict_sentences import describe_period, describe_requests, format_share, format_time
from apflint.wording import count_noun, join_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.simulate.histogram import TimePercentiles
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import ClientResult

NOTICEABLE_WAIT = SECOND // 10
"""Longest wait in nanoseconds that a client does not notice. Clients with longer waits get their own verdict."""
MAX_VERDICTS = 8
"""Maximum number of clients with their own verdict in reports. JSON has the verdicts of all clients."""


class ClientTotals(NamedTuple):
    """The requests of a client at all its levels."""

    name: str
    levels: tuple[str, ...]
    verb: str
    """Verb of the requests, or the word `request` if the requests have several verbs."""
    user: str | None
    """The user, or None if the clients with this name may have several users."""
    resource: str | None
    """The resource or path, or None if the requests may have several resources or paths."""
    requests: int
    attempts: int
    rejected: dict[str, int]
    expired: int
    failed: int
    unfinished: int
    waited: int
    waits: TimePercentiles | None
    """Percentiles of the waits at the level with the longest waits. Percentiles of several levels cannot be combined."""
    first_rejection: int | None
    last_rejection: int | None

    @property
    def subject(self) -> str:
        """The name of the client for the start of a sentence: its user, or its name in the load."""
        return self.user or self.name

    @property
    def requests_noun(self) -> str:
        """The plural noun for the requests, such as `lists of pods`, or `lists` if the requests have several resources."""
        return describe_requests(self.verb, self.resource)

    @property
    def never_succeeded(self) -> int:
        """Number of failed requests, except requests whose next attempt would be after the end of the simulation."""
        return self.failed - self.unfinished

    @property
    def notices(self) -> bool:
        """Whether the client has rejections, failures, or a wait above `NOTICEABLE_WAIT`."""
        has_failures = bool(self.rejected) or self.expired > 0 or self.never_succeeded > 0
        return has_failures or (self.waits is not None and self.waits.max > NOTICEABLE_WAIT)


class ClientVerdicts(NamedTuple):
    """The verdicts on clients with rejections or noticeable waits, and a sentence about all others."""

    clients: tuple[tuple[str, str], ...]
    """Name and verdict of each client with rejections, failures or noticeable waits, the worst first.

    The verdict is one or more sentences that begin with the name."""
    others: str
    """Sentence about all other clients. Empty if there are none, or if no client sends requests."""

    @property
    def sentences(self) -> list[str]:
        """At most `MAX_VERDICTS` verdicts on single clients, and then the sentences about all other clients."""
        more = len(self.clients) - MAX_VERDICTS
        kept = [verdict for _, verdict in self.clients[:MAX_VERDICTS]]
        if more > 0:
            verb = "is" if more == 1 else "are"
            kept.append(
                f"{count_noun(more, 'more client')} {verb} rejected, or wait{'s' * (more == 1)}: see --format json."
            )
        return [*kept, *([self.others] if self.others else [])]


def join_clients(result: SimulationResult, *, by_user: bool = False) -> list[ClientTotals]:
    """Return the figures of each client that sent requests, added up over all priority levels.

    If `by_user` is true, return one item for each user of an audit log, added up over all verbs and resources.
    """
    rows: dict[str, list[ClientResult]] = {}
    for level in result.levels:
        for client in level.clients:
            name = client.user if by_user else client.name
            if name:
                rows.setdefault(name, []).append(client)
    return [_join(name, own) for name, own in rows.items()]


def _join(name: str, rows: Sequence[ClientResult]) -> ClientTotals:
    rejected: dict[str, int] = {}
    for row in rows:
        for reason, number in row.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + number
    verbs, resources = {row.verb for row in rows}, {row.resource for row in rows}
    return ClientTotals(
        name,
        tuple(dict.fromkeys(row.level for row in rows)),
        verbs.pop() if len(verbs) == 1 else "request",
        rows[0].user,
        resources.pop() if len(resources) == 1 else None,
        sum(row.requests for row in rows),
        sum(row.attempts for row in rows),
        dict(sorted(rejected.items())),
        sum(row.expired for row in rows),
        sum(row.failed for row in rows),
        sum(row.unfinished for row in rows),
        sum(row.waited for row in rows),
        _find_longest(row.waits for row in rows),
        min((row.first_rejection for row in rows if row.first_rejection is not None), default=None),
        max((row.last_rejection for row in rows if row.last_rejection is not None), default=None),
    )


def _find_longest(percentiles: Iterable[TimePercentiles | None]) -> TimePercentiles | None:
    return max((waits for waits in percentiles if waits is not None), key=lambda waits: waits.max, default=None)


def give_client_verdicts(result: SimulationResult) -> ClientVerdicts:
    """Return a verdict on each client with rejections, failures or noticeable waits, and one on all others.

    A verdict is one or more sentences. The worst client comes first.
    """
    clients = join_clients(result)
    noticing = [client for client in clients if client.notices]
    noticing.sort(key=lambda client: (-sum(client.rejected.values()), -(client.waits.max if client.waits else 0)))
    others = [client for client in clients if not client.notices]
    verdicts = tuple((client.name, _give_verdict(client)) for client in noticing)
    return ClientVerdicts(verdicts, _describe_others(others, is_all=not noticing) if others else "")


def _give_verdict(client: ClientTotals) -> str:
    sentences = []
    if client.rejected:
        sentences.append(_describe_rejections(client))
    elif client.waits is not None and client.waits.max > NOTICEABLE_WAIT:
        share, requests = format_share(client.waited, client.attempts), client.requests_noun
        sentences.append(f"{client.subject} waits {_describe_waits(client.waits)}: {share} of its {requests}.")
    if client.expired:
        owner = "" if sentences else f"{client.subject}: "
        sentences.append(f"{owner}{count_noun(client.expired, 'attempt')} reached the deadline during the execution.")
    if client.never_succeeded:
        owner = "" if sentences else f"{client.subject}: "
        requests = count_noun(client.requests, "request")
        sentences.append(f"{owner}{client.never_succeeded:,} of {requests} never succeeded.")
    return " ".join(sentences)


def _describe_rejections(client: ClientTotals) -> str:
    assert client.first_rejection is not None
    assert client.last_rejection is not None
    share = format_share(sum(client.rejected.values()), client.attempts)
    period = describe_period(client.first_rejection, client.last_rejection)
    levels = f"{join_words(client.levels, 'and')}: {', '.join(client.rejected)}"
    text = f"{client.subject} is rejected: {share} of its {client.requests_noun} {period} ({levels})."
    if client.waits is not None and client.waits.max > NOTICEABLE_WAIT:
        text += f" It waits {_describe_waits(client.waits)}."
    return text


def _describe_waits(waits: TimePercentiles) -> str:
    return f"up to {format_time(waits.max)} (P99 {format_time(waits.p99)})"


def _describe_others(others: Sequence[ClientTotals], *, is_all: bool) -> str:
    """Return a sentence about the clients `others`, which are not rejected and wait only briefly or not at all.

    `is_all` is true if there are no further clients.
    """
    longest = max((client.waits.max for client in others if client.waits is not None), default=0)
    if is_all:
        wait = f"the longest wait is {format_time(longest)}" if longest else "none waits"
        return f"No client is rejected, and {wait}."
    if not longest:
        return "Nobody else is rejected or waits."
    return f"Nobody else is rejected or waits longer than {format_time(longest)}."
