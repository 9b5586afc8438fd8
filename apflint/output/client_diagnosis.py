"""Renders why the requests of a client are slow or rejected: at most `MAX_ROWS` rows of text, or a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import parse_service_account
from apflint.named_tuple import NamedTuple
from apflint.output.blocks import DOCUMENTS, TEXT, Command, Facts, Group, Only, Prose, Text
from apflint.output.configuration_line import report_configuration
from apflint.output.console import Style, count_cells, shorten
from apflint.output.doctor_causes import CAUSE_URL
from apflint.output.json_text import SCHEMA
from apflint.output.outcome_sentences import describe_unclassified
from apflint.output.text import render as render_text
from apflint.wording import count_noun, format_duration, join_some, pluralize, write_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.client_diagnosis.diagnosis import ClientCause, ClientDiagnosis, Placement
    from apflint.output.blocks import Block, Tone

TITLE = "Why the requests are slow or rejected"
MAX_ROWS, COLUMNS = 15, 80
"""Maximum number of rows of the text in a terminal with this number of columns."""
_LABEL_CELLS = 9
_COMMAND_INDENT = 11
_MAX_NAME_CELLS = 60
_MAX_SHARES = 3
_MIN_SHARE = 0.005
"""Minimum share of the seats for showing a user. A smaller share would be printed as 0%."""
_MAX_BASIS = 4
_LEAST = 1000
"""Rank of the part of a report that is left out first."""
_MAX_LEVELS = 3

_OVER = "Healthy now, and overloaded in the log. "
_OTHER_CAUSES = {
    "catch-all": "no FlowSchema except catch-all matches the requests",
    "etcd-slow": "etcd is slow",
    "imbalance": "the API server has no free seats",
    "inversion": "a webhook sends requests that wait behind the requests that call the webhook",
    "leader-election-starved": "the level has too few seats for all clients that renew leases",
    "restart": "the API server has just started",
    "slow-service": "the requests themselves are slow",
    "slow-webhook": "an admission webhook is slow",
    "small-level": "the level has too few seats for its requests",
}
"""Description of each cause that is not a client."""
_OWN_CAUSES = {
    "client-timeouts": "its timeouts are too short for the waits at this level",
    "exempt-abuse": "its exempt requests take the seats of other levels",
    "flood-contained": "it sends more requests than its level executes, and harms nobody else",
    "flood-one-flow": "it sends more requests than the level can execute",
    "leases-captured": "its requests fill the level that also executes requests for leases",
    "list-heavy": "its wide requests take most seats of the level",
    "noisy-but-fair": "its requests wait only behind other requests of this client, and harm nobody else",
    "single-flow": "its requests fill the one flow that all clients of the FlowSchema share",
    "watch-init-storm": "its watches start at the same time, and hold their seats until they are initialized",
}
"""Description of each cause that is the diagnosed client itself."""

_DEMAND = {
    "dump": "Demand in the dump (incl. waiting)",
    "log": "Demand in the log (incl. rejected)",
}
"""What the shares of the users count, by the source of the shares.

Rejected requests count with the seat-seconds that they would have needed. `replay` shows shares without them.
"""


class _Fact(NamedTuple):
    """One part of the report of `apflint why`. The part can be left out or shortened if the report is too long."""

    rank: int
    """Order in which parts are left out: the part with the highest rank first. A part with rank 0 is never left out."""
    blocks: Sequence[Block]
    short: Sequence[Block] = ()
    """Shorter blocks that are printed if the part is left out."""
    short_rank: int = 0
    """The rank of the shorter blocks."""


def report_client_diagnosis(diagnosis: ClientDiagnosis, configuration: str | None) -> Iterator[Block]:
    """Yield the report of `apflint why`.

    Text omits less important parts if the report would have more than `MAX_ROWS` rows.
    """
    facts = list(_list_facts(diagnosis, configuration))
    yield Only(DOCUMENTS, [Group(_flatten(facts))])
    while count_rows([Group(_flatten(facts))]) > MAX_ROWS and any(fact.rank for fact in facts):
        least = max(facts, key=lambda fact: fact.rank)
        facts[facts.index(least)] = _Fact(least.short_rank, least.short)
    yield Only(TEXT, [Group(_flatten(facts))])


def count_rows(blocks: Sequence[Block]) -> int:
    """Return the number of rows of blocks in a terminal with `COLUMNS` columns. A long command takes several rows."""
    lines = render_text(blocks, Style(width=COLUMNS)).splitlines()
    return sum(max(1, -(-count_cells(line) // COLUMNS)) for line in lines)


def _flatten(facts: Sequence[_Fact]) -> list[Block]:
    """Return the blocks of all parts of the report. Adjacent `Facts` blocks become one block."""
    blocks: list[Block] = []
    for block in (block for fact in facts for block in fact.blocks):
        last = blocks[-1] if blocks else None
        if isinstance(block, Facts) and isinstance(last, Facts):
            blocks[-1] = last._replace(pairs=(*last.pairs, *block.pairs))
        else:
            blocks.append(block)
    return blocks


def _list_facts(diagnosis: ClientDiagnosis, configuration: str | None) -> Iterator[_Fact]:
    """Yield the parts of the report, in the order in which they are shown."""
    yield _Fact(0, [Prose([Text(describe_answer(diagnosis), _find_tone(diagnosis))])])
    if configuration is not None:
        yield _Fact(0, [report_configuration(configuration)])
    certainty = diagnosis.certainty
    is_assumption = diagnosis.cause is not None and diagnosis.cause.source == "log" and not certainty.is_certain
    if is_assumption:  # name the missing evidence first, because it could reverse the conclusion that follows
        yield from _list_certainty(diagnosis)
    yield _Fact(0, _label("Client", " ".join(_describe_client(diagnosis))))
    if level := list(_describe_level(diagnosis)):
        main = " ".join(filter(None, (_describe_shares(diagnosis, 1), *_describe_server_log(diagnosis))))
        text = main if diagnosis.level is None else level[0]
        yield _Fact(4, _label("Level", " ".join(level)), _label("Level", text) if text else (), 1)
    if (release := diagnosis.evidence.assumed_release) is not None:
        text = f"{release}, the newest known release, is assumed (see --kubernetes)."
        yield _Fact(_LEAST, _label("Release", text))
    yield from _list_cause(diagnosis)
    if diagnosis.start is not None:
        clause = write_sentence(diagnosis.start.clause)
        yield _Fact(8, _label("Start", write_sentence(str(diagnosis.start))), _label("Start", clause), 4)
    for number, action in enumerate(diagnosis.actions):
        brief = _label("", write_sentence(action.short)) if number and action.short is not None else ()
        complete = _label("" if number else "Do", write_sentence(action.text))
        yield _Fact(number and 5 + 2 * number, complete, brief, 2)
        if action.command is not None:
            yield _Fact(1 + 5 * number, [_command(action.command)])
    if not is_assumption:
        yield from _list_certainty(diagnosis)


def _list_certainty(diagnosis: ClientDiagnosis) -> Iterator[_Fact]:
    """Yield the evidence if the diagnosis is certain, or the missing evidence if it is not."""
    certainty, commands = diagnosis.certainty, {action.command for action in diagnosis.actions}
    if certainty.is_certain:
        yield _Fact(0, _label("Certain", write_sentence(join_some(certainty.basis, _MAX_BASIS))))
    for number, gap in enumerate(certainty.gaps):
        yield _Fact(number and 4 + number, _label("" if number else "Unsure", gap.text))
        if gap.command is not None and gap.command not in commands and not number:
            yield _Fact(4, [_command(gap.command)])


def _list_cause(diagnosis: ClientDiagnosis) -> Iterator[_Fact]:
    cause = diagnosis.cause
    if cause is None:
        return
    is_elsewhere = _is_elsewhere(diagnosis)
    kind = ", not a client" if is_elsewhere and not cause.is_client else ""
    incident = _find_period(diagnosis)
    when = "" if incident is None else f", {_describe_period(incident)}"
    label, name = "Also" if is_elsewhere else "Cause", f"{cause.name}{kind}{when}"
    start = "" if diagnosis.start is None else f" {write_sentence(diagnosis.start.clause)}"
    yield _Fact(3, _label(label, f"{name}: {cause.message}"), _label(label, f"{name}.{start}"))


def _find_period(diagnosis: ClientDiagnosis) -> tuple[int, int] | None:
    """Return the time of the incident that the line of the cause names, or None if it names none."""
    incident = diagnosis.incident
    return None if incident is None or diagnosis.cause is None else (incident.start, incident.end)


def _label(label: str, text: str) -> Sequence[Block]:
    return [Facts([(label, text)], _LABEL_CELLS)]


def _command(line: str) -> Command:
    program, _, arguments = line.partition(" ")
    return Command(program, arguments, _COMMAND_INDENT)


def _quote(name: str) -> str:
    return f'"{shorten(name, _MAX_NAME_CELLS)}"'


def _abbreviate(user: str) -> str:
    """Return the short form `NAMESPACE/NAME` of a service account. Other users stay unchanged."""
    account = parse_service_account(user)
    return shorten("/".join(account) if account is not None else user, _MAX_NAME_CELLS)


def _find_tone(diagnosis: ClientDiagnosis) -> Tone:
    if diagnosis.role == "unknown":
        return "bold"
    is_harmless = diagnosis.role == "bystander" or (diagnosis.cause is not None and diagnosis.cause.is_harmless)
    return "good" if is_harmless else "error"


def describe_answer(diagnosis: ClientDiagnosis) -> str:
    """Return the conclusion of the diagnosis in one to three sentences."""
    is_over = diagnosis.incident is not None and diagnosis.verdict is not None
    return f"{_OVER if is_over else ''}{_describe_role(diagnosis)}"


def _describe_role(diagnosis: ClientDiagnosis) -> str:
    user, cause, placement = _quote(diagnosis.client.user), diagnosis.cause, diagnosis.placement
    match diagnosis.role:
        case "unknown" if diagnosis.harmed and placement is not None:
            return f'Unknown: requests of {user} at "{placement.level}" wait or are rejected, and the evidence does not show why.'
        case "unknown" if diagnosis.level is not None and diagnosis.level.rejected is None:
            return f'Unknown: no request waits long at "{diagnosis.level.name}", but the evidence does not show whether the level rejects requests.'
        case "unknown":
            return f"Unknown: the evidence does not show whether API Priority and Fairness slows {user}."
        case "affected":
            return f"{_describe_harm(diagnosis, user)}. One client is the cause, and the evidence does not show which."
        case "bystander":
            return _describe_bystander(diagnosis, user)
        case "culprit":
            assert cause is not None
            level = "" if placement is None else f' at "{placement.level}"'
            return f"{user} itself {_is(cause)} the cause{level}: {_OWN_CAUSES[cause.name]}."
    assert cause is not None
    if not cause.is_client:
        if not cause.is_apf:
            return (
                f"Not caused by API Priority and Fairness: {_OTHER_CAUSES[cause.name]}. {_exclude_clients(diagnosis)}"
            )
        return f"{_describe_harm(diagnosis, user)}: {_OTHER_CAUSES[cause.name]}. {_exclude_clients(diagnosis)}"
    return f"{_describe_harm(diagnosis, user)}: the cause {_is(cause)} {_quote(cause.clients[0])}."


def _exclude_clients(diagnosis: ClientDiagnosis) -> str:
    """Return a sentence which says that no client is the cause, or that the clients of the cause are unknown.

    The caller uses this sentence for causes that are not clients. The clients are unknown if the
    evidence contains neither a dump nor an audit log.
    """
    evidence = diagnosis.evidence
    is_known = evidence.has_dump or evidence.log is not None
    return "No client is the cause." if is_known else "No dump and no log shows which clients send the requests."


def _is(cause: ClientCause) -> str:
    return "is" if cause.unsure is None else "is probably"


def _describe_bystander(diagnosis: ClientDiagnosis, user: str) -> str:
    placement = diagnosis.placement
    unclassified = diagnosis.evidence.find_unclassified(diagnosis.client)
    if unclassified is not None:
        return f"{describe_unclassified(unclassified)}."
    level = "its level" if placement is None else f'"{placement.level}"'
    if diagnosis.verdict == "past":
        return f"Healthy now: {level} neither delays nor rejects {user}. Earlier requests may have waited or been rejected."
    if diagnosis.harmed:
        return f"{level} is not overloaded, although requests of {user} wait or are rejected at times."
    if _is_elsewhere(diagnosis):
        return f"API Priority and Fairness is not the cause: {level} neither delays nor rejects {user}. Only other levels have waits or rejections."
    return f"Healthy: {level} neither delays nor rejects {user}."


def _describe_harm(diagnosis: ClientDiagnosis, user: str) -> str:
    """Return a clause about delays and rejections of the client, or of the whole level if those of the client are unknown."""
    placement, harmed = diagnosis.placement, diagnosis.harmed
    level = "" if placement is None else f' at "{placement.level}"'
    if harmed is None:
        return f"API Priority and Fairness delays or rejects requests{level}, the level of {user}"
    if not harmed:
        return f"API Priority and Fairness delays or rejects requests{level}, but hardly any requests of {user}"
    assert placement is not None
    is_rejected = any(sighting.rejected for sighting in placement.sightings)
    return f"API Priority and Fairness {'rejects' if is_rejected else 'delays'} requests of {user}{level}"


def _is_elsewhere(diagnosis: ClientDiagnosis) -> bool:
    """Return whether there is a harmful cause, but, as far as known, not at the level of the client."""
    cause = diagnosis.cause
    return cause is not None and diagnosis.role in ("bystander", "unknown") and not cause.is_harmless


def _describe_client(diagnosis: ClientDiagnosis) -> Iterator[str]:
    placement = diagnosis.placement
    if diagnosis.evidence.find_unclassified(diagnosis.client) is not None:
        yield "API Priority and Fairness does not classify the request, so the request has no FlowSchema and no priority level."
    elif placement is None:
        yield "The FlowSchema and priority level are unknown."
    else:
        example = ", for example to list pods" if _is_example(diagnosis, placement) else ""
        yield f'FlowSchema "{placement.flow_schema}" -> priority level "{placement.level}"{example}.'
        yield from _describe_sightings(diagnosis, placement)
        others = [f'"{other.level}"' for other in diagnosis.placements if other.level != placement.level]
        if others:
            yield f"Other requests: {join_some(tuple(dict.fromkeys(others)), _MAX_LEVELS)}."
    if diagnosis.similar:
        yield f"The evidence does not contain this client. Similar names: {join_some(diagnosis.similar, _MAX_LEVELS)}."


def _is_example(diagnosis: ClientDiagnosis, placement: Placement) -> bool:
    return placement.source == "configuration" and diagnosis.client.request is None


def _describe_sightings(diagnosis: ClientDiagnosis, placement: Placement) -> Iterator[str]:
    log = diagnosis.evidence.log
    for sighting in placement.sightings:
        longest = f" (up to {format_duration(sighting.longest_wait * 1e6)})" if sighting.longest_wait else ""
        if sighting.source == "dump":
            waiting = f"{sighting.waiting:,} waiting{longest if sighting.waiting else ''}"
            yield f"Dump: {waiting}, {sighting.requests - sighting.waiting:,} executing."
        else:
            assert log is not None
            count = count_noun(sighting.requests, "request")
            waited = f", {sighting.waiting:,} waited 500 ms or more{longest}" if sighting.waiting else ""
            harm = f"{sighting.rejected or 0:,} rejected{waited}"
            # If the log covers exactly the period of the incident, omit the date, because the line of the cause shows
            # it.
            period = _describe_period(log.period, has_date=log.period != _find_period(diagnosis))
            yield f"Log {period}: {count}, {harm if sighting.harmed else 'none rejected or waiting for 500 ms'}."


def _describe_level(diagnosis: ClientDiagnosis) -> Iterator[str]:
    """Yield sentences about the level of the client: its seats and requests, and the users of its seats.

    If the users are unknown, a sentence names the FlowSchemas of the level instead.
    """
    state, placement = diagnosis.level, diagnosis.placement
    if state is not None:
        parts = []
        if state.seats_in_use is not None:
            is_limited = not state.is_exempt and state.current is not None
            seats = (
                f"{state.seats_in_use} of {state.current} seats"
                if is_limited
                else pluralize(state.seats_in_use, "seat")
            )
            nominal = "" if state.is_exempt or state.nominal is None else f" (nominal {state.nominal})"
            parts.append(f"{seats} in use{nominal}")
        if state.waiting is not None:
            parts.append(f"{state.waiting} waiting")
        if state.rejected:
            assert diagnosis.level_server is not None
            span = "since start" if diagnosis.level_server.since_start else diagnosis.level_server.span
            parts.append(f"{state.rejected:,} rejected {span}")
        if parts:
            yield f"{', '.join(parts)}."
    elif diagnosis.evidence.explanation is not None and placement is not None and placement.source == "configuration":
        limits = diagnosis.evidence.explanation.level
        if not limits.is_exempt:
            yield f"Nominal {pluralize(limits.nominal, 'seat')}, attainable {limits.attainable}."
    if diagnosis.shares:
        yield _describe_shares(diagnosis, _MAX_SHARES)
    elif diagnosis.flow_schemas:
        yield f"FlowSchemas: {join_some(diagnosis.flow_schemas, _MAX_SHARES)}."
    if diagnosis.role == "bystander" and diagnosis.service_seconds is not None:
        yield f"The requests of the client run for {format_duration(diagnosis.service_seconds * 1e6)} on average."
    yield from _describe_server_log(diagnosis)


def _describe_shares(diagnosis: ClientDiagnosis, maximum: int) -> str:
    """Return a sentence with at most `maximum` users of the level, or an empty string if the users are unknown."""
    if not diagnosis.shares:
        return ""
    large = [share for share in diagnosis.shares if share.share >= _MIN_SHARE]
    shares = [f"{_abbreviate(share.user)} {share.share:.0%}" for share in large]
    text = join_some(shares[:1] if maximum == 1 else shares, maximum)
    return f"{_DEMAND[diagnosis.shares_source]}: {text}."


def _describe_server_log(diagnosis: ClientDiagnosis) -> Iterator[str]:
    report, placement = diagnosis.evidence.server_log, diagnosis.placement
    if report is None or placement is None:
        return
    key = placement.flow_schema, placement.level
    found = [row for row in report.traffic if (row.flow_schema, row.priority_level) == key]
    if not found:
        yield "The log of the server has no requests of this FlowSchema."
    for row in found:
        wait = "" if row.max_wait is None else f", up to {row.max_wait:.1f} s"
        period = f" ({report.start} to {report.end})" if report.start else ""
        yield (
            f"In the log of the server{period}, {row.rejected:,} of {count_noun(row.requests, 'request')} at this FlowSchema and level were rejected, and"
            f" {row.waited:,} waited{wait}."
        )


def _describe_period(period: tuple[int, int], *, has_date: bool = True) -> str:
    from apflint.time_zones import describe_period  # imported here, because few answers have a period

    return describe_period(*period, has_date=has_date)


def client_diagnosis_json(diagnosis: ClientDiagnosis) -> dict[str, object]:
    """Return the object of `--format json`. Unknown values are None."""
    placement, certainty, state = diagnosis.placement, diagnosis.certainty, diagnosis.level
    return {
        "schema": SCHEMA,
        "user": diagnosis.client.user,
        "role": diagnosis.role,
        "isAPF": diagnosis.is_apf,
        "verdict": diagnosis.verdict,
        "answer": describe_answer(diagnosis),
        "flowSchema": None if placement is None else placement.flow_schema,
        "priorityLevel": None if placement is None else placement.level,
        "placements": [_placement_json(found) for found in diagnosis.placements],
        "level": None
        if state is None
        else {
            "nominal": state.nominal,
            "current": state.current,
            "seatsInUse": state.seats_in_use,
            "waiting": state.waiting,
            "rejected": state.rejected,
            "seconds": None if diagnosis.level_server is None else diagnosis.level_server.seconds,
            "sinceStart": None if diagnosis.level_server is None else diagnosis.level_server.since_start,
        },
        "start": None if diagnosis.start is None else write_sentence(str(diagnosis.start)),
        "clientsSource": diagnosis.shares_source if diagnosis.shares else None,
        "clients": [{"user": share.user, "share": round(share.share, 4)} for share in diagnosis.shares],
        "cause": None if diagnosis.cause is None else _cause_json(diagnosis, diagnosis.cause),
        "furtherCauses": diagnosis.more_causes,
        "actions": [{"text": action.text, "command": action.command} for action in diagnosis.actions],
        "certain": certainty.is_certain,
        "basedOn": list(certainty.basis),
        "missing": [{"text": gap.text, "command": gap.command} for gap in certainty.gaps],
        "similarUsers": list(diagnosis.similar),
    }


def _placement_json(placement: Placement) -> dict[str, object]:
    return {
        "flowSchema": placement.flow_schema,
        "priorityLevel": placement.level,
        "source": placement.source,
        "server": placement.server or None,
        "requests": [
            {
                "source": sighting.source,
                "requests": sighting.requests,
                "waiting": sighting.waiting,
                "rejected": sighting.rejected,
                "longestWait": sighting.longest_wait,
            }
            for sighting in placement.sightings
        ],
    }


def _cause_json(diagnosis: ClientDiagnosis, cause: ClientCause) -> dict[str, object]:
    return {
        "cause": cause.name,
        "isAPF": cause.is_apf,
        "severity": "info" if cause.is_harmless else "warning",
        "priorityLevels": list(cause.levels),
        "users": list(cause.users),
        "isClient": cause.is_client,
        "message": cause.message,
        "source": cause.source,
        "incident": None
        if diagnosis.incident is None
        else _describe_period((diagnosis.incident.start, diagnosis.incident.end)),
        "url": CAUSE_URL.format(id=cause.name),
    }
