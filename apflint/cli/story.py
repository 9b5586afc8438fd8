"""The text of `apflint explain`: the answer first, then the flow and the seats, then what was tried, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.cli.explain import Explanation, place
from apflint.evaluate import flows, why
from apflint.report.terminal import Paint, cells, indented, visible, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.cli.explain import Explainer
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.report import Style

_LABEL = 7  # cells of the column `Flow`, `Seats`, ...


def story(answer: Explanation, explainer: Explainer, style: Style) -> str:
    """The whole story, ending in a newline; under 25 lines for a cluster without objects of its own."""
    paint = Paint(colour=style.colour)
    lines = [
        *_question(answer, style, paint),
        "",
        *_answer(answer, style, paint),
        *_facts(answer, explainer, style, paint),
        "",
        *_tried(answer, explainer, style, paint),
    ]
    return "\n".join(lines) + "\n"


def _question(answer: Explanation, style: Style, paint: Paint) -> Iterator[str]:
    user = answer.request.user
    groups = ", ".join(user.groups)
    text = visible(f'{request_in_words(answer.request.info)} as "{user.name}"' + (f" in {groups}" if groups else ""))
    first, *rest = wrap(text, style.width, 0, 2)
    yield paint(first, "bold")
    yield from indented((paint(line, "bold") for line in rest), "  ")
    for note in answer.request.notes:
        yield from indented((paint(line, "dim") for line in wrap(visible(note), style.width, 2, 2)), "  ")


def request_in_words(info: RequestInfo) -> str:
    """`list pods in namespace "team-a"`, `get /healthz`."""
    if not info.is_resource_request:
        return f"{info.verb} {info.path}"
    what = info.resource + (f".{info.api_group}" if info.api_group else "")
    what += f"/{info.subresource}" if info.subresource else ""
    name = f' "{info.name}"' if info.name else ""
    where = f' in namespace "{info.namespace}"' if info.namespace else ", in no namespace or all of them"
    return f"{info.verb or 'a method that is no verb on'} {what}{name}{where}"


def _answer(answer: Explanation, style: Style, paint: Paint) -> Iterator[str]:
    if answer.unseen:
        yield from wrap(answer.unseen, style.width)
        yield "If it were seen:"
    schema, level = answer.resolution.flow_schema, answer.resolution.priority_level
    where = place(schema)
    origin = f"{where[0]}:{where[1]}" if where else "built in"
    name, target = visible(schema.name), visible(level.name)
    plain = f'FlowSchema "{name}" -> priority level "{target}"  ({visible(origin)})'
    if style.width is not None and cells(plain) > style.width:
        yield f'FlowSchema "{paint(name, "bold")}"'
        yield f'  -> priority level "{paint(target, "bold")}"'
        yield f"  ({visible(origin)})"
    else:
        yield (
            f'FlowSchema "{paint(name, "bold")}" -> priority level "{paint(target, "bold")}"'
            f"  {paint(f'({visible(origin)})', 'dim')}"
        )
    if fallback := why.fallback_in_words(answer.resolution):
        yield from wrap(visible(fallback), style.width)


def _facts(answer: Explanation, explainer: Explainer, style: Style, paint: Paint) -> Iterator[str]:
    level = answer.level
    yield from _labelled("Flow", flows.describe_flow(answer.flow), style, paint)
    if answer.flow.hash is not None:
        yield from _labelled("Hash", str(answer.flow.hash), style, paint)
    yield from _labelled("Seats", _seats(level, explainer), style, paint)
    info = answer.request.info
    if note := flows.note_on_seats(info.verb, long_running=info.verb == "watch"):
        yield from _labelled("", note, style, paint)
    for number, fate in enumerate(flows.fates(level)):
        label = "Fate" if number == 0 else ""
        reason = f" (429, reason {fate.reason})" if fate.status else ""
        if fate.reason != "cancelled":  # the client's own doing; it would only lengthen the story
            yield from _labelled(label, f"{fate.when}{reason}", style, paint)
    if starving := flows.starvation(level):
        yield from _labelled("", starving, style, paint)


def _labelled(label: str, text: str, style: Style, paint: Paint) -> Iterator[str]:
    first, *rest = wrap(visible(text), style.width, _LABEL, _LABEL)
    yield f"{paint(label, 'dim')}{' ' * (_LABEL - len(label))}{first}"
    yield from indented(rest, " " * _LABEL)


def _seats(level: LevelLimits, explainer: Explainer) -> str:
    limits = explainer.limits
    total = f"of the server's {limits.server_concurrency}"
    if level.type == "Exempt":
        return f"no limit: requests of this level are never held back. It has {level.nominal} nominal seats {total}."
    if not limits.borrowing:
        return f"{level.nominal} {total} ({level.shares} assured shares)."
    lends = f"lends down to {level.minimum}" if level.minimum < level.nominal else "lends none"
    borrows = f"borrows up to {level.attainable}" if level.attainable > level.nominal else "borrows none"
    single = f" One list may take {level.max_seats}." if level.max_seats else ""
    return f"{level.nominal} nominal {total} ({level.shares} shares), {lends}, {borrows}.{single}"


def _tried(answer: Explanation, explainer: Explainer, style: Style, paint: Paint) -> Iterator[str]:
    yield paint("Tried, in this order:", "dim")
    tried = answer.considered
    longest = max((cells(visible(one.flow_schema.name)) for one in tried), default=0)
    column = min(longest, 30)
    for one in tried:
        schema = one.flow_schema
        name = visible(schema.name)
        head = f"{schema.spec.matching_precedence:>6}  {name}{' ' * max(column - cells(name), 0)}  "
        because = f"{'matches: ' if one.matched else ''}{one.because}"
        if not one.matched and not builtin.is_built_in(schema.document):
            because += f" ({schema.document.source.name}:{schema.document.span(one.path).line})"
        rest_column = 8 + column + 2
        if style.width is not None and style.width - rest_column < 30:
            yield paint(head.rstrip(), "good") if one.matched else head.rstrip()
            yield from indented(wrap(visible(because), style.width, 8, 8), " " * 8)
            continue
        first, *rest = wrap(visible(because), style.width, cells(head), rest_column)
        yield (paint(head, "good") if one.matched else head) + first
        yield from indented(rest, " " * rest_column)
    for left_out in why.skipped(explainer.configuration):
        yield from indented(
            wrap(visible(f'Skipped: "{left_out.flow_schema.name}": {left_out.because}.'), style.width, 2, 4), "  "
        )
    for sentence in why.order_in_words(explainer.configuration):
        yield from indented(wrap(visible(sentence), style.width, 2, 4), "  ")
