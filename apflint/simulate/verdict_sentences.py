"""Verdicts: a sentence for each level about its waits and rejections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.simulate.load import SECOND
from apflint.wording import count_noun, format_duration, join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import ClientResult, LevelResult

_MAX_CLIENTS = 3
_PLURALS = {"watch": "watches", "deletecollection": "deletecollection requests", "patch": "patches"}


def list_verdicts(result: SimulationResult) -> Iterator[tuple[str, str]]:
    """Yield the name and the verdict of each level that got requests.

    Levels with rejections come first, then levels with waits, and then all other levels.
    """
    levels = [level for level in result.levels if level.attempts]
    for level in sorted(levels, key=lambda level: (-sum(level.rejected.values()), -level.waited)):
        yield level.name, give_verdict(level)


def give_verdict(level: LevelResult) -> str:
    """Return the verdict of a level that got requests. The verdict begins with the name of the level."""
    sentences = [_describe_rejections(level) if level.rejected else _describe_waits(level)]
    if level.rejected and level.waits is not None and level.waits.max:
        sentences.append(f"Requests waited up to {format_time(level.waits.max)}.")
    if level.expired:
        sentences.append(f"{count_noun(level.expired, 'attempt')} reached the deadline during the execution.")
    unfinished = sum(client.unfinished for client in level.clients)
    if level.failed > unfinished:
        sentences.append(f"{level.failed - unfinished:,} of {count_noun(level.requests, 'request')} never succeeded.")
    return " ".join(sentences)


def _describe_waits(level: LevelResult) -> str:
    if level.limits.is_exempt:
        return f"{level.name} is exempt: its requests never wait."
    if level.waits is None or not level.waited:
        return f"{level.name} never waited."
    share = format_share(level.waited, level.attempts)
    return f"{level.name} rejected nothing: {share} of its requests waited, up to {format_time(level.waits.max)}."


def _describe_rejections(level: LevelResult) -> str:
    clients = [client for client in level.clients if client.rejected]
    clients.sort(key=lambda client: -sum(client.rejected.values()))
    parts = [_describe_client(client) for client in clients[:_MAX_CLIENTS]]
    if len(clients) > _MAX_CLIENTS:
        parts.append(f"requests of {pluralize(len(clients) - _MAX_CLIENTS, 'other client')}")
    firsts = [client.first_rejection for client in clients if client.first_rejection is not None]
    lasts = [client.last_rejection for client in clients if client.last_rejection is not None]
    period = describe_period(min(firsts), max(lasts))
    return f"{level.name} rejected {join_words(parts, 'and')} {period} ({', '.join(level.rejected)})."


def _describe_client(client: ClientResult) -> str:
    name = client.user or client.name
    owner = f"{name}'" if name.endswith("s") else f"{name}'s"
    requests = describe_requests(client.verb, client.resource)
    return f"{format_share(sum(client.rejected.values()), client.attempts)} of {owner} {requests}"


def describe_requests(verb: str, resource: str | None = None) -> str:
    """Return the noun for several requests with a verb, such as `lists` or `lists of pods`."""
    noun = _PLURALS.get(verb, f"{verb}s")
    return noun if resource is None else f"{noun} of {resource}"


def describe_period(start: int, end: int) -> str:
    """Return the period between two times of the simulation in nanoseconds, such as `from 0:02 to 1:01`."""
    first, last = format_clock(start), format_clock(end)
    return f"at {first}" if first == last else f"from {first} to {last}"


def format_share(part: int, total: int) -> str:
    """Return `part / total` as a percentage. The result is 0% or 100% only if the exact value is 0% or 100%."""
    percent = 100 * part / total
    if 0 < percent < 1:
        return "under 1%"
    return "over 99%" if 99 < percent < 100 else f"{percent:.0f}%"


def format_time(nanoseconds: int) -> str:
    """Return a duration such as `43 ms`, `2.7 s` or `0`."""
    return format_duration(nanoseconds / 1000) if nanoseconds else "0"


def format_clock(nanoseconds: int) -> str:
    """Return a time of the simulation as minutes and seconds, such as `2:05`, or as hours, minutes and seconds."""
    minutes, seconds = divmod(nanoseconds // SECOND, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
