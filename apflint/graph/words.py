"""What pictures say about FlowSchemas and levels, short for labels and in sentences for tooltips and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.flows import starvation
from apflint.output.sanitize import sanitize
from apflint.wording import join_words, pluralize

if TYPE_CHECKING:
    from apflint.graph.picture import LevelNode, Origin, Picture, SchemaNode

ORIGINS: dict[Origin, str] = {
    "own": "yours",
    "changed": "built-in, changed by you",
    "built-in": "built-in",
    "imagined": "built-in, made up by the server",
    "missing": "does not exist",
    "broken": "counts as absent",
}
"""Where an object comes from."""
_SUBJECTS_SHOWN = 12


def title(drawn: Picture) -> str:
    """What the whole picture shows."""
    return (
        f"API Priority and Fairness, Kubernetes {drawn.kubernetes}: {pluralize(drawn.server_concurrency, 'seat')} of one"
        " API server"
    )


def trouble(drawn: Picture, node: SchemaNode) -> str:
    """What is wrong with a FlowSchema, in a sentence that begins after its name; empty if nothing is."""
    level = drawn.levels[node.level]
    if node.state == "dangling":
        return f'The server skips it: the priority level "{level.name}" {level.why}.'
    if node.state == "unreachable":
        if not node.takers:
            return "No request ever gets it: it matches none."
        takers = join_words((f'"{drawn.schemas[taker].name}"' for taker in node.takers), "and")
        verb = "takes" if len(node.takers) == 1 else "take"
        return f"No request ever gets it: {takers} {verb} all that it matches."
    if node.idle_rules:
        fields = ", ".join(f"spec.rules[{rule}]" for rule in node.idle_rules)
        verb = "decides" if len(node.idle_rules) == 1 else "decide"
        return f"{fields} never {verb} about a request."
    return ""


def level_trouble(drawn: Picture, level: LevelNode) -> str:
    """The same for a priority level."""
    if level.limits is None:
        return f"It {level.why}."
    said = starvation(level.limits) or ""
    states = {drawn.schemas[at].state for at in level.schemas}
    if not states:
        said = f"{said} No FlowSchema names it, so no request gets there."
    elif states <= {"dangling", "unreachable"}:
        said = f"{said} Only FlowSchemas that no request gets name it, so no request gets there."
    return sanitize(said.strip())


def remark(drawn: Picture, node: SchemaNode) -> str:
    """What a label says beside the name, in a few words: what is wrong, or else whom the FlowSchema matches."""
    if node.state == "reserve":
        return "last resort: no request needs it"
    if node.state == "dangling":
        return "skipped: its level does not exist"
    if node.state == "unreachable":
        takers = ", ".join(drawn.schemas[taker].name for taker in node.takers)
        return f"never reached: taken by {takers}" if takers else "never reached: it matches no request"
    return trouble(drawn, node).rstrip(".") or node.who


def about(node: SchemaNode, drawn: Picture) -> list[str]:
    """All that is known of a FlowSchema, a sentence or list each, for tooltips and tables."""
    shown = node.subjects[:_SUBJECTS_SHOWN]
    more = len(node.subjects) - len(shown)
    place = "skipped" if node.position is None else f"tried as number {node.position}"
    lines = [
        f"FlowSchema {node.name} ({ORIGINS[node.origin]})",
        f"matchingPrecedence {node.precedence}, {place}",
        f"Priority level: {drawn.levels[node.level].name}",
        f"Flows: {node.method or 'one for all its requests'}",
        "Subjects: " + ("; ".join(shown) or "none") + (f"; {more} more" if more else ""),
    ]
    if node.state == "reserve":
        takers = join_words((f'"{drawn.schemas[taker].name}"' for taker in node.takers), "and")
        verb = "takes" if len(node.takers) == 1 else "take"
        lines.append(f"The last resort: no request needs it, as {takers} {verb} all that it matches")
    return [*lines, said] if (said := trouble(drawn, node)) else lines


def seats(level: LevelNode, drawn: Picture) -> str:
    """The seats of a level in a few words; empty for one that does not exist."""
    limits = level.limits
    if limits is None:
        return ""
    if limits.type == "Exempt":
        return "no limit" + (f", {limits.nominal} seats set aside" if limits.nominal else "")
    if not drawn.borrowing:
        return f"{pluralize(limits.nominal, 'seat')} (ACV)"
    return f"{pluralize(limits.nominal, 'seat')}, min {limits.minimum}, max {limits.maximum}"


def queues(level: LevelNode) -> str:
    """What happens to requests that find no seat, in a few words; empty where there is nothing to say."""
    limits = level.limits
    if limits is None:
        return ""
    if limits.type == "Exempt":
        return "its requests never wait"
    if limits.queues is None:
        return "rejects the rest" if limits.response == "Reject" else ""
    return f"{pluralize(limits.queues, 'queue')} of {limits.queue_length_limit}, hand {limits.hand_size}"


def about_level(level: LevelNode, drawn: Picture) -> list[str]:
    """All that is known of a level, a sentence or list each."""
    limits = level.limits
    lines = [f"Priority level {level.name} ({ORIGINS[level.origin]})"]
    if limits is not None and limits.type == "Exempt":
        lines.append("Exempt: its requests never wait and are never rejected")
    elif limits is not None and drawn.borrowing:
        lines += [
            f"Nominal: {limits.nominal} seats of its own, for {pluralize(limits.shares, 'share')}",
            f"Min: {limits.minimum} seats that it never lends",
            f"Max: {limits.maximum}; {limits.attainable} is what it really comes to while all others are idle",
        ]
    elif limits is not None:
        lines.append(
            f"ACV: {limits.nominal} seats for {pluralize(limits.shares, 'share')}; it neither lends nor borrows"
        )
    if limits is not None and limits.type != "Exempt" and (said := queues(level)):
        lines.append(f"Without a free seat: {said}")
    lines.append(f"Named by {pluralize(len(level.schemas), 'FlowSchema')}")
    return [*lines, said] if (said := level_trouble(drawn, level)) else lines
