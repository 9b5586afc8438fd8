"""Explanations of requests as text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.configuration import matching_order
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.evaluate.match_reasons import SkippedFlowSchema, Verdict
from apflint.evaluate.request_outcomes import list_outcomes
from apflint.evaluate.requestinfo import is_long_running
from apflint.evaluate.resources import get_resource, is_served_by_kubernetes, is_stored
from apflint.evaluate.seats import MINIMUM_SEATS, ListOptions, bound_seats, is_watch_list
from apflint.load.source_text import LIVE_PREFIX
from apflint.output.blocks import Column, Facts, Group, Prose, Raw, Table, Text
from apflint.output.configuration_line import name_configuration, report_configuration
from apflint.output.console import count_cells
from apflint.output.json_text import SCHEMA
from apflint.output.limits import level_json
from apflint.output.match_reasons import (
    describe_fallback,
    describe_imagined,
    describe_match,
    describe_skipped,
    describe_verdict,
)
from apflint.output.outcome_sentences import describe_outcome, describe_starvation, describe_unclassified
from apflint.output.sanitize import sanitize
from apflint.requests.list_options import parse_list_options, reduce_list_options
from apflint.requests.request import COLLECTION_VERBS
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.evaluate.classify import MatchedBy
    from apflint.evaluate.flows import RequestFlow
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.output.blocks import Block, Tone
    from apflint.output.console import Style
    from apflint.request_explanation import Basis, Explanation
    from apflint.requests.request import Request
    from apflint.sources.effective_configurations import EffectiveConfiguration

_LABEL_CELLS = 9
_LIMITS = ("nominal", "min", "max", "attainable", "shares", "maxSeats", "maxListSeats", "maxMutatingSeats")
"""Fields of `level_json` to show in an explanation."""


def explanation_json(explanation: Explanation) -> dict[str, object]:
    """Return the object that `explain --format json` prints for one request."""
    fields: dict[str, object] = {"schema": SCHEMA, "request": request_json(explanation.request.info)}
    for _, build in REPEATED_FIELDS:
        fields |= build(explanation)
    return fields | reasons_json(explanation)


def request_json(info: RequestInfo) -> dict[str, str | bool]:
    """Return the attributes of a request, with the names that Kubernetes uses."""
    return {
        "isResourceRequest": info.is_resource_request,
        "verb": info.verb,
        "apiPrefix": info.api_prefix,
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "namespace": info.namespace,
        "resource": info.resource,
        "subresource": info.subresource,
        "name": info.name,
        "path": info.path,
        "longRunning": is_long_running(info),
    }


def _resolution_json(explanation: Explanation) -> dict[str, object]:
    resolution = explanation.resolution
    return {
        "flowSchema": resolution.flow_schema.name,
        "priorityLevel": resolution.priority_level.name,
        "matchedBy": matched_by_json(resolution.matched_by),
    }


def _seats_json(explanation: Explanation) -> dict[str, object]:
    level, figures = explanation.level, level_json(explanation.level)
    limits = {key: figures[key] for key in _LIMITS}
    return {
        "limits": {**limits, "serverConcurrency": explanation.limits.server_concurrency},
        "exempt": level.is_exempt,
        **place_json(explanation.resolution.flow_schema),
    }


def _remarks_json(explanation: Explanation) -> dict[str, object]:
    basis = explanation.basis
    return {
        "unclassifiedBecause": _describe_unclassified(explanation),
        "notes": list(explanation.request.notes),
        "basedOn": {"kubernetes": basis.kubernetes, "objects": basis.objects, "builtInObjects": basis.built_in},
    }


REPEATED_FIELDS: tuple[tuple[Callable[[Explanation], object], Callable[[Explanation], dict[str, object]]], ...] = (
    (
        lambda it: it.request.user,
        lambda it: {"user": {"name": it.request.user.name, "groups": list(it.request.user.groups)}},
    ),
    (lambda it: (it.resolution.position, it.resolution.matched_by), _resolution_json),
    (lambda it: it.flow, lambda it: {"flow": flow_json(it.flow)}),
    (lambda it: it.resolution.position, _seats_json),
    (lambda it: (it.unclassified, it.request.notes), _remarks_json),
)
"""Pairs of functions for fields that are equal in many explanations of one configuration.

The first function returns a key, and the second function returns the fields. Explanations with equal keys have equal
fields, so that the JSON of the fields can be cached.
"""


def reasons_json(explanation: Explanation) -> dict[str, object]:
    """Return three fields: the possible outcomes, the FlowSchemas that the server tried, and the FlowSchemas that it skipped.

    FlowSchemas are in matching order.
    """
    return {
        "outcomes": outcomes_json(explanation.level, explanation.limits, explanation.wait_seconds),
        "considered": [
            {
                **_precedence_json(verdict.flow_schema),
                "matched": verdict.matched,
                "because": describe_verdict(verdict),
                **place_json(verdict.flow_schema, verdict.path),
            }
            for verdict in explanation.considered
        ],
        "skipped": [
            {**_precedence_json(skipped.flow_schema), "because": describe_skipped(skipped)}
            for skipped in explanation.skipped
        ],
    }


def matched_by_json(part: MatchedBy | None) -> dict[str, object] | None:
    """Return the indices of the matching rule, and of the matching items in its lists.

    Return None if no FlowSchema matches, and the server falls back to `catch-all`.
    """
    if part is None:
        return None
    return {
        "rule": part.rule,
        "subject": part.subject,
        "resourceRule": part.resource_rule,
        "nonResourceRule": part.non_resource_rule,
    }


def flow_json(flow: RequestFlow) -> dict[str, object]:
    """Return the flow as JSON. `hash` and `hand` are None if the level has fewer than 2 queues."""
    return {
        "distinguisherMethod": flow.method,
        "distinguisher": flow.distinguisher,
        "hash": None if flow.hash is None else str(flow.hash),
        "hand": None if flow.hand is None else list(flow.hand),
    }


def place_json(schema: FlowSchema, path: Path | None = None) -> dict[str, object]:
    """Return file and line of the field `path` of a FlowSchema (default: its name). Both are None for a built-in FlowSchema."""
    document = schema.document
    if builtin.is_built_in(document):
        return {"file": None, "line": None}
    return {"file": document.source.name, "line": _find_line(document, path)}


def _find_line(document: Document, path: Path | None) -> int:
    """Return the line of the field `path` of a document, or of the name of its object if `path` is None."""
    return (document.span(("metadata", "name"), True) if path is None else document.span(path)).line


def outcomes_json(
    level: LevelLimits, limits: Limits, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> list[dict[str, object]]:
    """Return the outcomes that are possible for a request at a level: execution, waiting, or rejection."""
    return [
        {
            "outcome": outcome.result,
            "status": outcome.status,
            "reason": outcome.reason,
            "when": f"{describe_outcome(outcome, level, limits.release, wait_seconds)}.",
        }
        for outcome in list_outcomes(level, limits.release)
    ]


def _precedence_json(schema: FlowSchema) -> dict[str, object]:
    return {"flowSchema": schema.name, "matchingPrecedence": schema.spec.matching_precedence}


def report_explanation(
    explanation: Explanation, style: Style, now: str = "", configuration: str = ""
) -> Iterator[Block]:
    """Yield the explanation of one request.

    `now` describes the current state of the level and the flow on a running server.

    `configuration` is the description of the configuration, or empty to omit the line with the configuration. If
    `style.verbose` is true, include the queues of the flow, and built-in FlowSchemas that do not match.
    """
    facts = [fact for fact in _list_facts(explanation, style) if fact[1]]
    facts += [("Now", now)] if now else []
    fallback = describe_fallback(explanation.resolution)
    answer: list[Block] = [
        Raw(f"{_answer(explanation, style)}\n"),
        Prose([fallback] if fallback else []),
        *([report_configuration(configuration)] if configuration else []),
        Facts(facts, _LABEL_CELLS),
    ]
    if unclassified := _describe_unclassified(explanation):
        answer.insert(0, Prose([Text(unclassified, "bold"), "Otherwise this would be the answer:"]))
    yield Group(answer)
    yield Group(_report_tried(explanation, style))


def clusters_json(explanations: Sequence[tuple[EffectiveConfiguration, Explanation]]) -> dict[str, object]:
    """Return the object that `explain --format json` prints for several clusters."""
    clusters = [
        {"cluster": configuration.cluster}
        | name_configuration(explanation_json(explanation), configuration.description)
        for configuration, explanation in explanations
    ]
    description = ", ".join(configuration.cluster for configuration, _ in explanations)
    return {"schema": SCHEMA, "configuration": f"clusters {description}", "clusters": clusters}


def report_clusters(explanations: Sequence[tuple[EffectiveConfiguration, Explanation]]) -> Iterator[Block]:
    """Yield a table with the answers of several clusters for one request. At least one cluster is required."""
    rows: list[tuple[str | Text, ...]] = []
    remarks: list[str] = []
    for configuration, explanation in explanations:
        name = configuration.cluster
        if unclassified := _describe_unclassified(explanation):
            rows.append((Text(name, "bold"), "-", "-", "-", "-"))
            remarks.append(f"{name}: {unclassified}")
            continue
        level, schema = explanation.level, explanation.resolution.flow_schema
        seats = ("no limit", "-") if level.is_exempt else (str(level.nominal), str(level.attainable))
        rows.append((Text(name, "bold"), schema.name, level.name, *seats))
    yield Facts([("Request", _describe_with_user(explanations[0][1].request))], _LABEL_CELLS)
    columns = (
        *(Column(title, "name") for title in ("Cluster", "FlowSchema", "Priority level")),
        *(Column("Nominal"), Column("Attainable")),
    )
    meaning = "NOMINAL and ATTAINABLE are seats of one API server. For match reasons, add --cluster NAME."
    yield Table(columns, rows, notes=[*remarks, meaning])


def _answer(explanation: Explanation, style: Style) -> str:
    """Render the FlowSchema and its priority level, on two lines if they do not fit on one line."""
    schema = explanation.resolution.flow_schema
    place = place_json(schema)
    origin = f"({place['file']}:{place['line']})" if place["file"] else "(built in)"
    schema_name, level, origin = map(sanitize, (schema.name, explanation.resolution.priority_level.name, origin))
    cells = count_cells(f'FlowSchema "{schema_name}" -> priority level "{level}" {origin}')
    separator = " " if style.width is None or cells <= style.width else "\n  "
    parts = (
        f'FlowSchema "{style.paint(schema_name, "bold")}"',
        f'-> priority level "{style.paint(level, "bold")}"',
        style.paint(origin, "dim"),
    )
    return separator.join(parts)


def _list_facts(explanation: Explanation, style: Style) -> Iterator[tuple[str, str]]:
    """Yield (label, sentences) pairs. For an unclassified request, omit the flow and the seats, which do not exist."""
    request, level = explanation.request, explanation.level
    yield "Request", _describe_with_user(request)
    yield "", " ".join(request.notes)
    if explanation.unclassified:
        return
    seats = [_describe_seats(explanation), *_describe_own_seats(explanation), describe_starvation(level)]
    queues = describe_queues(explanation.flow) if style.verbose else ""
    yield "Flow", f"{describe_flow(explanation.flow)} {queues}".rstrip()
    yield "Seats", " ".join(filter(None, seats))
    yield "Result", " ".join(_describe_outcomes(explanation))


def _describe_outcomes(explanation: Explanation) -> Iterator[str]:
    """Yield sentences about the possible outcomes, except the outcome that the client cancels the request."""
    level, release = explanation.level, explanation.limits.release
    for outcome in list_outcomes(level, release):
        if outcome.result == "rejected" and outcome.reason in (None, "cancelled"):
            continue
        answer = f" ({outcome.status}, {outcome.reason})" if outcome.status else ""
        yield f"{describe_outcome(outcome, level, release, explanation.wait_seconds)}{answer}."


def _describe_unclassified(explanation: Explanation) -> str | None:
    return None if explanation.unclassified is None else f"{describe_unclassified(explanation.unclassified)}."


def describe_flow(flow: RequestFlow) -> str:
    """Describe a flow in a few words, without the numbers of its queues (see `describe_queues`).

    The result is not sanitized: names may contain control characters.
    """
    if flow.queues == 0:
        return "The priority level has no queues, so flows make no difference."
    if flow.queues == 1:
        return "The priority level has 1 queue, in which the requests of all flows wait together."
    if flow.method == BY_USER:
        whose = f'User "{flow.distinguisher}" is one flow'
    elif flow.method == BY_NAMESPACE and flow.distinguisher:
        whose = f'Namespace "{flow.distinguisher}" is one flow'
    elif flow.method == BY_NAMESPACE:
        whose = "All requests without a namespace are one flow"
    else:
        whose = "All requests are one flow"
    return f"{whose}, in {len(flow.hand or ())} of {flow.queues} queues."


def describe_queues(flow: RequestFlow) -> str:
    """Describe how shuffle sharding chooses the queues of a flow. Empty if the level has fewer than 2 queues."""
    if not flow.hand:
        return ""
    noun = "queue" if len(flow.hand) == 1 else "queues"
    numbers = ", ".join(map(str, flow.hand))
    return f"Shuffle sharding gives this flow, whose hash is {flow.hash}, the {noun} {numbers} (of {flow.queues}, numbered from 0)."


def _describe_with_user(request: Request) -> str:
    """Describe a request and its user. Groups that apflint added are omitted, because a note of the request names them."""
    groups = ", ".join(group for group in request.user.groups if group not in request.added_groups)
    user = f'"{request.user.name}"' + (f" in {groups}" if groups else "" if request.user.groups else " in no group")
    return f"{describe_request(request.info)} as {user}"


def describe_request(info: RequestInfo) -> str:
    """Describe a request, such as `list pods in namespace "team-a"`, `get nodes "n1"` or `get /healthz`."""
    if not info.is_resource_request:
        return f"{info.verb} {info.path}"
    resource = info.resource + (f".{info.api_group}" if info.api_group else "")
    resource += f"/{info.subresource}" if info.subresource else ""
    name = f' "{info.name}"' if info.name else ""
    return f"{info.verb or '(a method without a verb)'} {resource}{name}{_describe_scope(info)}"


def _describe_scope(info: RequestInfo) -> str:
    if info.namespace:
        return f' in namespace "{info.namespace}"'
    known = get_resource(info.resource, info.api_group)
    if known is not None:
        return " in all namespaces" if known.namespaced else ""
    return ", cluster-wide" if info.verb in COLLECTION_VERBS else " in no namespace"


def _describe_seats(explanation: Explanation) -> str:
    level, limits = explanation.level, explanation.limits
    total = f"of {limits.server_concurrency} seats ({level.shares} shares)"
    if level.is_exempt:
        return "No limit." + (f" Nominal {level.nominal} {total}." if level.nominal else "")
    text = f"Nominal {level.nominal} {total}"
    if limits.release.has_borrowing:
        text += f", min {level.min}, attainable {level.attainable}"
    return f"{text}."


def _describe_own_seats(explanation: Explanation) -> Iterator[str]:
    """Yield sentences about the number of seats that a resource request takes at a limited level.

    Yield nothing for non-resource requests, and at an exempt level.
    """
    request, release = explanation.request, explanation.limits.release
    info = request.info
    if explanation.level.is_exempt or not info.is_resource_request:
        return
    # If the URL is unknown, the query parameters are unknown, too. Then assume the parameters with which a watch takes the most
    # seats.
    options = ListOptions(send_initial_events=info.verb == "watch")
    if request.url:
        options = parse_list_options(reduce_list_options(request.url, info.name or None))
    seats = bound_seats(release, info, options, explanation.level)
    if seats == MINIMUM_SEATS:
        if info.verb == "watch":
            yield "This watch takes 1 seat, which it holds only until it is initialized."
        elif info.verb == "list" and not is_stored(info.resource, info.api_group):
            yield "This list takes 1 seat: kube-apiserver does not store the objects."
        return
    condition = ""
    if info.verb == "watch" and not request.url:
        has_initial_events = is_watch_list(release, ListOptions())
        condition = f" {'with the existing objects' if has_initial_events else 'with sendInitialEvents=true'}"
    if info.verb in ("list", "watch") and not is_served_by_kubernetes(info.api_group):
        condition += ", or 1 if an aggregated API server serves it"
    yield f"One {info.verb} takes up to {seats}{condition}."
    if info.verb == "watch":
        yield "A watch holds its seats only until the server has sent the existing objects."


def _report_tried(explanation: Explanation, style: Style) -> Iterator[Block]:
    """Yield the FlowSchemas that the server tries or skips, in matching order.

    Built-in FlowSchemas that do not match are only counted, unless `style.verbose` is true.
    """
    has_one_file = len(explanation.basis.files) == 1  # the header names the only file, so the rows omit it
    considered: list[Verdict | SkippedFlowSchema] = [
        verdict for verdict in explanation.considered if style.verbose or not _is_ordinary(explanation, verdict)
    ]
    rows = []
    for verdict in sorted([*considered, *explanation.skipped], key=lambda verdict: matching_order(verdict.flow_schema)):
        schema, reason = verdict.flow_schema, _describe_result(verdict, style)
        is_match = isinstance(verdict, Verdict) and verdict.matched
        if not is_match and not builtin.is_built_in(schema.document):
            place = place_json(schema, verdict.path)
            reason += f" (line {place['line']})" if has_one_file else f" ({place['file']}:{place['line']})"
        tone: Tone = "good" if is_match else ""
        rows.append((Text(str(schema.spec.matching_precedence), tone), Text(schema.name, tone), reason))
    yield Prose([f"{_describe_basis(explanation.basis)} Tried, in this order:"], "dim")
    yield Table((Column("Precedence"), Column("", "name"), Column("Result", "text")), rows, has_header=False)
    if folded := len(explanation.considered) - len(considered):
        hidden = f"Not shown: {pluralize(folded, 'built-in FlowSchema')} that did not match (--verbose shows all)."
        yield Prose([hidden], "dim")
    yield Prose(list(describe_imagined(explanation.basis.imagined)))


def _describe_result(verdict: Verdict | SkippedFlowSchema, style: Style) -> str:
    """Return the table cell that says whether a FlowSchema matches the request or is skipped, and why.

    If the FlowSchema is built in and does not match, a description for a terminal omits its subjects.
    """
    if isinstance(verdict, SkippedFlowSchema):
        return f"skipped: {describe_skipped(verdict)}"
    if verdict.matching_part is not None:
        return f"matches: {describe_match(verdict.flow_schema, verdict.matching_part)}"
    is_brief = style.width is not None and builtin.is_built_in(verdict.flow_schema.document)
    return describe_verdict(verdict, has_subjects=not is_brief)


def _is_ordinary(explanation: Explanation, verdict: Verdict) -> bool:
    """Return whether the FlowSchema of a verdict does not match, and is built in or an unchanged copy of a built-in FlowSchema."""
    schema = verdict.flow_schema
    return not verdict.matched and (
        builtin.is_built_in(schema.document) or builtin.is_copy(schema, explanation.limits.release)
    )


def _describe_basis(basis: Basis) -> str:
    """Describe the release and the objects on which an explanation is based.

    For example: Kubernetes 1.36, 3 objects from apf.yaml, 18 built-in objects.
    """
    release, built_in = f"Kubernetes {basis.kubernetes}", pluralize(basis.built_in, "built-in object")
    if not basis.objects:
        return f"{release}, only {built_in} (name manifests with -f)."
    origin = basis.files[0] if len(basis.files) == 1 else pluralize(len(basis.files), "file")
    live = sum(file.startswith(LIVE_PREFIX) for file in basis.files)  # each live object counts as a file
    if live == len(basis.files):
        return f"{release}, {pluralize(live, 'object')} of the running cluster."
    if live:
        files, manifests = pluralize(len(basis.files) - live, "file"), pluralize(basis.objects - live, "object")
        return f"{release}, {manifests} from {files}, and {live} from the running cluster."
    return f"{release}, {pluralize(basis.objects, 'object')} from {origin}, {built_in}."
