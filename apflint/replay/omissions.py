"""Finds what the audit policy omitted from a log, as far as the log shows this.

A policy omits stages (`omitStages`) or requests (level None). If a stage is absent, the policy certainly omits the
stage. If requests are absent, perhaps no client sent such requests, so reports only mention their absence. Source:
staging/src/k8s.io/apiserver/pkg/audit/policy/checker.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import NODE_PREFIX
from apflint.named_tuple import NamedTuple
from apflint.replay.events import COMPLETE, RECEIVED, STARTED
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Log

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
"""Verbs that every API server of a cluster receives."""


class Omissions(NamedTuple):
    """Stages and requests that are usual in a cluster, but absent from the log.

    All fields are empty for a log without requests.
    """

    stages: tuple[str, ...] = ()
    """Stages that the audit policy omits."""
    verbs: tuple[str, ...] = ()
    """Common verbs of which the log has no requests."""
    requests: tuple[str, ...] = ()
    """Other requests that the log does not contain, such as `requests of nodes`."""
    has_decisions: bool = True
    """Whether any event has the annotation `authorization.k8s.io/decision`.

    The annotation distinguishes rejections from other responses with status 429.
    """


def find_omissions(log: Log) -> Omissions:
    """Return the stages and requests that are usual in a cluster, but absent from the log.

    The whole log is examined, including requests that a filter excludes.
    """
    stages = log.coverage.stages
    if not stages:
        return Omissions()
    verbs = {attributes.verb for attributes in log.tuples}
    needed = {RECEIVED: True, STARTED: "watch" in verbs, COMPLETE: True}
    if not log.tuples:
        return Omissions(tuple(stage for stage, is_needed in needed.items() if is_needed and stage not in stages))
    return Omissions(
        tuple(stage for stage, is_needed in needed.items() if is_needed and not stages[stage]),
        tuple(verb for verb in _VERBS if verb not in verbs),
        tuple(_find_missing_requests(log.tuples)),
        has_decisions=bool(log.database.query("SELECT 1 FROM request WHERE decided = 1 LIMIT 1")),
    )


def _find_missing_requests(tuples: Sequence[AttributeTuple]) -> Iterator[str]:
    if not any((attributes.user or "").startswith(NODE_PREFIX) for attributes in tuples):
        yield "requests of nodes"
    if not any(attributes.resource == "leases" for attributes in tuples):
        yield "requests for leases"
    if not any(attributes.path for attributes in tuples):
        yield "requests for non-resource URLs"


def describe_omissions(omissions: Omissions) -> Iterator[str]:
    """Yield sentences of a report that name the stages and requests missing from the log."""
    if stages := omissions.stages:
        what = "this stage" if len(stages) == 1 else "these stages"
        yield f"The log has no {join_words(stages)} events: the audit policy omits {what}."
    if COMPLETE in omissions.stages:
        yield "Requests other than watches are missing, because a replay reads these requests from ResponseComplete events."
    elif STARTED in omissions.stages:
        yield "Watches that are still open are missing."
    missing = [f"no {join_words(omissions.verbs)} requests"] if omissions.verbs else []
    missing += [f"no {requests}" for requests in omissions.requests]
    if missing:
        yield f"The log has {', '.join(missing)}: the audit policy may omit them (level None)."
    if not missing and not stages:
        yield "Requests that the audit policy omits (level None, omitStages) are not counted."
    if not omissions.has_decisions:
        yield (
            "No event has the annotation authorization.k8s.io/decision, so REJECTED counts all responses with"
            " status 429, including those that do not come from API Priority and Fairness."
        )
