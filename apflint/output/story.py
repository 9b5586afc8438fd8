"""The text of `apflint explain`: the answer first, then the flow and the seats, then what was tried, in order."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate import explanation
from apflint.evaluate.configuration import matching_order
from apflint.evaluate.flows import describe_flow
from apflint.evaluate.outcomes import describe_starvation, list_outcomes
from apflint.evaluate.resources import get_resource
from apflint.evaluate.seats import is_mutating
from apflint.output.console import Painter, count_cells, indent_lines, wrap
from apflint.output.explain import Basis, Explanation, place
from apflint.output.sanitize import sanitize
from apflint.requests.request import COLLECTION_VERBS
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.outcomes import Outcome
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.output.console import Style
    from apflint.output.explain import Explainer

_LABEL = 7  # cells of the column `Flow`, `Seats`, ...
_NAME = 30  # the widest column of names; longer ones push their line to the right
_LEAST = 30  # cells that a reason needs beside a name; below that it gets lines of its own


def story(answer: Explanation, explainer: Explainer, style: Style) -> str:
    """The whole story, ending in a newline.

    For a cluster without FlowSchemas of its own it has at most 25 lines, from 100 columns on.
    """
    paint = Painter(color=style.color)
    lines = [
        *_answer(answer, style, paint),
        *_question(answer, style, paint),
        *_facts(answer, explainer, style, paint),
        "",
        *_tried(answer, explainer, style, paint),
    ]
    return "\n".join(lines) + "\n"


def _answer(answer: Explanation, style: Style, paint: Painter) -> Iterator[str]:
    if answer.unseen:
        yield from (paint(line, "bold") for line in wrap(answer.unseen, style.width))
        yield from wrap("Otherwise this would be the answer:", style.width)
    schema, level = answer.resolution.flow_schema, answer.resolution.priority_level
    where = place(schema)
    name, target = sanitize(schema.name), sanitize(level.name)
    origin = f"({sanitize(f'{where[0]}:{where[1]}')})" if where else "(built in)"
    parts = [
        f'FlowSchema "{paint(name, "bold")}"',
        f'-> priority level "{paint(target, "bold")}"',
        paint(origin, "dim"),
    ]
    if (
        style.width is not None
        and count_cells(f'FlowSchema "{name}" -> priority level "{target}" {origin}') > style.width
    ):
        yield parts[0]
        yield from indent_lines(parts[1:], "  ")
    else:
        yield " ".join(parts)
    if fallback := explanation.describe_fallback(answer.resolution):
        yield from wrap(sanitize(fallback), style.width)


def _question(answer: Explanation, style: Style, paint: Painter) -> Iterator[str]:
    user, notes = answer.request.user, " ".join(answer.request.notes)
    # Groups that were added are in the notes, and need not be told twice.
    groups = ", ".join(group for group in user.groups if f'"{group}"' not in notes)
    who = f'"{user.name}" in {groups}' if groups else f'"{user.name}"' if user.groups else f'"{user.name}" in no group'
    yield from _labelled("Asked", f"{request_in_words(answer.request.info)} as {who}", style, paint)
    if notes:
        yield from _labelled("", notes, style, paint)


def _basis_in_words(basis: Basis) -> str:
    """`Kubernetes 1.36, 3 objects from apf.yaml, 18 built-in objects`."""
    release, built_in = f"Kubernetes {basis.kubernetes}", pluralize(basis.built_in, "built-in object")
    if not basis.objects:
        return f"{release}, only {built_in} (name manifests with -f)."
    origin = basis.files[0] if len(basis.files) == 1 else pluralize(len(basis.files), "file")
    return f"{release}, {pluralize(basis.objects, 'object')} from {origin}, {built_in}."


def request_in_words(info: RequestInfo) -> str:
    """`list pods in namespace "team-a"`, `watch pods in all namespaces`, `get nodes "n1"`, `get /healthz`."""
    if not info.is_resource_request:
        return f"{info.verb} {info.path}"
    what = info.resource + (f".{info.api_group}" if info.api_group else "")
    what += f"/{info.subresource}" if info.subresource else ""
    name = f' "{info.name}"' if info.name else ""
    return f"{info.verb or '(a method without a verb)'} {what}{name}{_scope_in_words(info)}"


def _scope_in_words(info: RequestInfo) -> str:
    if info.namespace:
        return f' in namespace "{info.namespace}"'
    known = get_resource(info.resource, info.api_group)
    if known is not None:
        return " in all namespaces" if known.namespaced else ""
    return ", cluster-wide" if info.verb in COLLECTION_VERBS else " in no namespace"


def _facts(answer: Explanation, explainer: Explainer, style: Style, paint: Painter) -> Iterator[str]:
    if answer.unseen:
        return  # it is in no flow, takes no seat and has no fate
    level, info = answer.level, answer.request.info
    yield from _labelled("Flow", describe_flow(answer.flow), style, paint)
    seats = [_seats(level, explainer, _seats_of_one_request(level, info, explainer))]
    if info.verb == "watch":
        seats.append("A watch holds its seats only until it has sent the existing objects.")
    if starving := describe_starvation(level):
        seats.append(starving)
    yield from _labelled("Seats", " ".join(seats), style, paint)
    # A client that goes away knows what becomes of its request, and would only lengthen the text.
    outcomes = list_outcomes(level, explainer.known.release, answer.wait_seconds)
    sentences = [_describe_outcome(outcome) for outcome in outcomes if not _is_abandoned(outcome)]
    yield from _labelled("Fate", " ".join(sentences), style, paint)


def _is_abandoned(outcome: Outcome) -> bool:
    return outcome.result == "rejected" and outcome.reason in (None, "cancelled")


def _describe_outcome(outcome: Outcome) -> str:
    remarks = [str(remark) for remark in (outcome.status, outcome.reason) if remark is not None]
    return f"{outcome.when[:-1]} ({', '.join(remarks)})." if remarks else outcome.when


def _labelled(label: str, text: str, style: Style, paint: Painter) -> Iterator[str]:
    first, *rest = wrap(sanitize(text), style.width, _LABEL, _LABEL)
    yield f"{paint(label, 'dim')}{' ' * (_LABEL - len(label))}{first}"
    yield from indent_lines(rest, " " * _LABEL)


def _seats(level: LevelLimits, explainer: Explainer, single: str) -> str:
    limits = explainer.limits
    total = f"of the server's {limits.server_concurrency}"
    if level.type == "Exempt":
        own = f" {level.nominal} {total} count as its own ({level.shares} shares)." if level.nominal else ""
        return f"No limit.{own}"
    if not limits.release.has_borrowing:
        return f"{level.nominal} {total} ({level.shares} assured shares){single}."
    does = [
        *(["lends"] if level.min < level.nominal else []),
        *(["borrows"] if level.attainable > level.nominal else []),
    ]
    varies = f"{level.min} to {level.attainable} as it {' and '.join(does)}" if does else "it neither lends nor borrows"
    return f"{level.nominal} {total} ({level.shares} shares); {varies}{single}."


def _seats_of_one_request(level: LevelLimits, info: RequestInfo, explainer: Explainer) -> str:
    """The maximum seats of a request with this verb, as a clause; empty if it always takes 1 seat."""
    if not info.is_resource_request:
        return ""
    seats = 1
    if info.verb == "list" or (info.verb == "watch" and explainer.known.release.estimates_watches):
        seats = level.max_list_seats
    elif is_mutating(info.verb, info.resource, info.subresource):
        seats = level.max_mutating_seats
    return f"; one {info.verb} up to {seats}" if seats > 1 else ""


def _in_order(answer: Explanation) -> list[explanation.Verdict]:
    """The FlowSchemas that were tried, and those that the server skips at their place in the matching order."""
    skipped = (
        explanation.Verdict(one.flow_schema, False, f"skipped: {one.because}", one.path) for one in answer.skipped
    )
    return list(merge(answer.considered, skipped, key=lambda row: matching_order(row.flow_schema)))


def _tried(answer: Explanation, explainer: Explainer, style: Style, paint: Painter) -> Iterator[str]:
    tried = _in_order(answer)
    longest = max((count_cells(sanitize(one.flow_schema.name)) for one in tried), default=0)
    column = min(longest, _NAME)
    digits = max((len(str(one.flow_schema.spec.matching_precedence)) for one in tried), default=0)
    start = digits + 2
    header = f"{_basis_in_words(answer.basis)} Tried, in this order:"
    yield from (paint(line, "dim") for line in wrap(sanitize(header), style.width))
    for one in tried:
        schema = one.flow_schema
        name = sanitize(schema.name)
        row = f"{schema.spec.matching_precedence:>{digits}}  {name}"
        because = f"matches: {one.because.removeprefix('it matches ')}" if one.matched else one.because
        built_in = builtin.is_built_in(schema.document)
        if not one.matched and not built_in:
            because += f" ({schema.document.source.name}:{schema.document.span(one.path).line})"
        color = "good" if one.matched else ""
        hanging = start + column + 2
        if style.width is not None and style.width - hanging < _LEAST:
            yield paint(row, color) if color else row
            yield from indent_lines(wrap(sanitize(because), style.width, start, start), " " * start)
            continue
        row += " " * max(column - count_cells(name), 0) + "  "
        first, *rest = wrap(sanitize(because), style.width, count_cells(row), hanging)
        if rest and built_in and one.mismatches and one.mismatches[0].condition == "subject":
            # Which subjects the server's own objects have is the least of what is asked here.
            first, *rest = wrap(sanitize(because.partition(": ")[0]), style.width, count_cells(row), hanging)
        yield (paint(row, color) if color else row) + first
        yield from indent_lines(rest, " " * hanging)
    for sentence in explanation.describe_imagined(explainer.configuration):
        yield from _labelled("", sentence, style, paint)
