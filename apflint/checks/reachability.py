"""APF501, APF502, APF503, APF507: what FlowSchemas do to each other, proved over all requests that there can be.

The proofs are `apflint.evaluate.reach`'s; here they become sentences, each with a request that shows it where there is one.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from apflint import builtin
from apflint.checks import matching
from apflint.checks.wording import listed, quote
from apflint.evaluate.groups import NODES, effective_groups
from apflint.evaluate.match import RequestDigest, UserInfo, matches_a_subject, matches_flow_schema
from apflint.evaluate.resolve import classify, matching_order
from apflint.finding import Elsewhere, Place, Problem, field_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.reach import Move, Part, Witness
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.finding import Path
    from apflint.model import FlowSchema
    from apflint.workspace import Workspace

_PRECEDENCE: Path = ("spec", "matchingPrecedence")
_PROTECTED = {
    "probes": "health probes",
    "system-leader-election": "leader election of the control plane",
    "workload-leader-election": "leader election",
    "endpoint-controller": "the endpoint controller",
    "system-node-high": "node heartbeats",
    "system-nodes": "nodes",
    "kube-controller-manager": "the controller manager",
    "kube-scheduler": "the scheduler",
}
"""Suggested FlowSchemas whose traffic keeps the cluster alive, and whose traffic it is."""


def command(witness: Witness) -> str:
    """The request as a command to try: `apflint explain list pods -n dev --as alice`."""
    import shlex

    words = witness.words
    return f"`apflint explain {shlex.join(words)}`" if words is not None else f"{witness.record}"


def shadowed_flow_schema(workspace: Workspace) -> Iterator[Problem]:
    """APF501."""
    from apflint.evaluate import reach

    for part in _dead(workspace):
        if part.rule is not None:
            continue
        blockers = reach.blockers(workspace.assumed, part.schema)
        if blockers:
            taken = listed(map(_named, blockers), "and")
            message = f"no request can ever reach this FlowSchema: {taken} {_come_and_take(len(blockers))} all of it"
        elif not part.schema.spec.rules:
            message = "no request can ever reach this FlowSchema: it has no rules"
        elif _told(workspace).get(id(part.schema.document)):
            continue  # APF504 and APF506 say why it matches nothing
        else:
            message = f"no request can ever reach this FlowSchema: {_NOTHING}"
        yield Problem(
            Place(part.schema.document, part.path),
            message + _given(workspace, *blockers),
            related=tuple(_elsewhere(blockers)),
            severity="error" if workspace.world.complete else None,
        )


_NAMED = 100
"""For so many findings of APF502 it is worked out who comes first: each takes milliseconds, and nobody reads more."""
_NOTHING = (
    "no request that API Priority and Fairness sees matches its rules. It does not see long-running requests: exec, attach,"
    " port-forward, log, proxy and /debug/pprof/"
)


def shadowed_rule(workspace: Workspace) -> Iterator[Problem]:
    """APF502."""
    from apflint.evaluate import reach

    named = 0
    for part in _dead(workspace):
        if part.rule is None:
            continue
        what, named = _what(part), named + 1
        told = _told(workspace).get(id(part.schema.document), ())
        explained = any(path[: len(part.path)] == part.path for path in told)
        if named > _NAMED:
            # Whether it matches anything at all is not asked here, so that is not claimed.
            if not explained:
                message = f"this {what} never decides anything: whatever it matches is taken by what comes first"
                message += _given(workspace, *_dangling_before(workspace, part.schema))
                yield Problem(Place(part.schema.document, part.path), message)
            continue
        shadows = reach.shadows(workspace.assumed, part)
        if not shadows and explained:
            continue  # APF504 and APF506 say why it matches nothing
        if shadows:
            takers = list(dict.fromkeys(_takers(part, shadows)))
            message = (
                f"this {what} never decides anything: {listed(takers, 'and')} {_come_and_take(len(takers))} all of it"
            )
        else:
            message = f"this {what} never decides anything: {_NOTHING}"
        others = (shadow.schema for shadow in shadows if shadow.schema.name != part.schema.name)
        message += _given(workspace, *(shadow.schema for shadow in shadows))
        yield Problem(Place(part.schema.document, part.path), message, related=tuple(_elsewhere(others)))


def _dangling_before(workspace: Workspace, schema: FlowSchema) -> Iterator[FlowSchema]:
    """FlowSchemas that come first only if their priority level is defined elsewhere."""
    last = matching_order(schema)
    return (other for other in workspace.configuration.dangling if matching_order(other) < last)


def _what(part: Part) -> str:
    return {None: "rule", "subjects": "subject"}.get(part.member, f"entry of {part.member}")


@lru_cache(maxsize=2)
def _dead(workspace: Workspace) -> tuple[Part, ...]:
    """What never decides in the user's own FlowSchemas, as far as they are effective at all."""
    effective = {id(schema) for schema in workspace.assumed.order}
    own = [schema for schema in workspace.own_flow_schemas if id(schema) in effective]
    if not own:
        return ()
    from apflint.evaluate import reach

    return tuple(reach.unreachable(workspace.assumed, own))


@lru_cache(maxsize=2)
def _told(workspace: Workspace) -> dict[int, list[Path]]:
    """Where other rules say already why something matches nothing, by document."""
    places: dict[int, list[Path]] = {}
    for check in (matching.impossible_match, matching.namespaced_rule_for_cluster_resource):
        for problem in check(workspace):
            if isinstance(problem.place, Place):
                places.setdefault(id(problem.place.document), []).append(problem.place.path)
    return places


def _given(workspace: Workspace, *schemas: FlowSchema) -> str:
    """A sentence on the levels that are taken to be elsewhere; empty where all are here."""
    dangling = {id(schema) for schema in workspace.configuration.dangling}
    names = dict.fromkeys(
        quote(schema.spec.priority_level_configuration) for schema in schemas if id(schema) in dangling
    )
    if not names:
        return ""
    return f". That is so if the priority level {listed(names, 'and')} is defined elsewhere: here it is missing"


def _named(schema: FlowSchema) -> str:
    origin = "the built-in FlowSchema" if builtin.is_built_in(schema.document) else "the FlowSchema"
    return f"{origin} {quote(schema.name)} ({schema.spec.matching_precedence})"


def _come_and_take(count: int) -> str:
    return "comes first and takes" if count == 1 else "come first and together take"


def _takers(part: Part, shadows: tuple[Part, ...]) -> Iterator[str]:
    """Who takes what a part would match: other FlowSchemas by name, parts of the same one by their field."""
    for shadow in shadows:
        yield _named(shadow.schema) if shadow.schema.name != part.schema.name else field_path(shadow.path)


def _elsewhere(schemas: Iterable[FlowSchema]) -> Iterator[Elsewhere]:
    for schema in schemas:
        if not builtin.is_built_in(schema.document):
            yield Elsewhere(Place(schema.document, ("metadata", "name")), "it comes first")


_COMPARED, _PROOFS = 50, 30_000
"""With how many before it a FlowSchema of the same number is compared; and how many pairs are looked into, times how many
FlowSchemas there are: the time that each takes grows with them. Where thousands have one number, the pairs are millions."""


def precedence_tie(workspace: Workspace) -> Iterator[Problem]:
    """APF503. Neighbours first: they matter most where not all are looked into."""
    order = workspace.assumed.order
    own = {id(schema) for schema in workspace.own_flow_schemas}
    pairs = (
        (first, second)
        for distance in range(1, _COMPARED + 1)
        for first, second in zip(order, order[distance:], strict=False)
        if first.spec.matching_precedence == second.spec.matching_precedence
        and (id(first) in own or id(second) in own)
        and _may_meet(first, second)
    )
    for first, second in islice((pair for pair in pairs if _may_overlap(*pair)), max(5, _PROOFS // len(order))):
        yield from _tie(workspace, first, second, own)


def _may_overlap(first: FlowSchema, second: FlowSchema) -> bool:
    from apflint.evaluate.reach.meeting import may_overlap

    return may_overlap(first, second, "authenticated")


def _tie(workspace: Workspace, first: FlowSchema, second: FlowSchema, own: set[int]) -> Iterator[Problem]:
    from apflint.evaluate import reach

    witness = reach.overlap(workspace.assumed, first, second)
    if witness is None or (shown := _usual(workspace, witness, first, second)) is None:
        return
    mine, other = (second, first) if id(second) in own else (first, second)
    precedence = mine.spec.matching_precedence
    origin = "the built-in FlowSchema" if builtin.is_built_in(other.document) else "the FlowSchema"
    yield Problem(
        Place(mine.document, _PRECEDENCE),
        f"matchingPrecedence {precedence} is that of {origin} {quote(other.name)} as well, and some requests match both, as"
        f" {shown}. Then the name decides: {quote(first.name)} sorts before {quote(second.name)} and takes them."
        f" Give one of them another number{_given(workspace, first, second)}",
        related=()
        if builtin.is_built_in(other.document)
        else (Elsewhere(Place(other.document, _PRECEDENCE), "the other one"),),
    )


def _may_meet(first: FlowSchema, second: FlowSchema) -> bool:
    """A cheap test before the exact one: the system's own traffic meets only FlowSchemas that name the system's users."""
    for system, other in ((first, second), (second, first)):
        if system.name in _PROTECTED and builtin.is_built_in(system.document) and not _may_capture(other):
            return False
    return True


def _usual(workspace: Workspace, witness: Witness, first: FlowSchema, second: FlowSchema) -> str | None:
    """The request of a tie, if a user as there are makes it: not a node or the scheduler that is in somebody's own group."""
    user, groups = witness.digest.user
    own = user.startswith("system:") or NODES in groups
    if not own or set(groups) <= set(effective_groups(user, ())[0]):
        return command(witness)
    for name, digest in _digests(witness.digest.request_info):
        if matches_flow_schema(digest, second.spec) and classify(workspace.assumed, digest).flow_schema is first:
            return _as(witness, name)
    return None


def _as(witness: Witness, user: str) -> str | None:
    """The same request by another user, as a command to try."""
    import shlex

    words = witness.words
    return None if words is None else f"`apflint explain {shlex.join((*words[: words.index('--as')], '--as', user))}`"


class _Capture(NamedTuple):
    """Requests that a FlowSchema of the user's takes from one that keeps the cluster alive."""

    protected: FlowSchema
    move: Move
    command: str


def system_traffic_captured(workspace: Workspace) -> Iterator[Problem]:
    """APF507. Only requests that the system itself makes count: its own users, in the groups they have."""
    for captures in _captures(workspace).values():
        first = captures[0].move
        taken = listed((f"{_PROTECTED[one.protected.name]} ({quote(one.protected.name)})" for one in captures), "and")
        shown = listed((one.command for one in captures), "and")
        last = max(one.protected.spec.matching_precedence for one in captures)
        yield Problem(
            Place(first.to_schema.document, ("metadata", "name")),
            f"this takes requests of {taken} to the level {quote(first.to_level)}, as {shown}. Name the clients that are meant, or"
            f" take a matchingPrecedence above {last}{_given(workspace, first.to_schema)}",
        )


def _captures(workspace: Workspace) -> dict[int, list[_Capture]]:
    """By the id of the FlowSchema, in the order of the protected ones."""
    order = workspace.assumed.order
    own = {id(schema) for schema in workspace.own_flow_schemas}
    early = [schema for schema in order if id(schema) in own and _may_capture(schema)]
    if not early:
        return {}
    from apflint.evaluate import reach

    without = workspace.assumed_without_own
    protected = [schema for schema in without.order if schema.name in _PROTECTED]
    found: dict[int, list[_Capture]] = {}
    for move in reach.moved(without, workspace.assumed, leaving=protected):
        if id(move.to_schema) not in own or move.to_schema.name == move.from_schema.name:
            continue
        if move.from_level != move.to_level and (words := _natural(workspace, move)) is not None:
            found.setdefault(id(move.to_schema), []).append(_Capture(move.from_schema, move, words))
    for captures in found.values():
        captures.sort(key=lambda one: one.protected.spec.matching_precedence)
    return found


# Users of the system as they are: their groups are those that authentication adds, and no others.
_SYSTEM_USERS = (
    "system:node:node-1",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:serviceaccount:kube-system:default",
    "system:anonymous",
)


@cache
def _system_users() -> tuple[UserInfo, ...]:
    return tuple(UserInfo(user, effective_groups(user, ())[0]) for user in _SYSTEM_USERS)


def _digests(info: RequestInfo) -> Iterator[tuple[str, RequestDigest]]:
    for user in _system_users():
        yield user.name, RequestDigest(info, user)


def _may_capture(schema: FlowSchema) -> bool:
    """Whether any of the system's users is among the subjects."""
    return any(matches_a_subject(user, rule.subjects) for user in _system_users() for rule in schema.spec.rules)


def _natural(workspace: Workspace, move: Move) -> str | None:
    """The request of a move as one of the system's own users would make it, in words; None if none of them does."""
    for user, digest in _digests(move.witness.digest.request_info):
        before = classify(workspace.assumed_without_own, digest).flow_schema
        after = classify(workspace.assumed, digest).flow_schema
        if before.name == move.from_schema.name and after is move.to_schema:
            return _as(move.witness, user)
    return None
