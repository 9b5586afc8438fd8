"""Priority levels for tests of flows and outcomes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from apflint.model import build_priority_level
from apflint.releases import parse_release

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.model import PriorityLevelConfiguration

DOCUMENT = cast("Document", SimpleNamespace(version="v1"))
RELEASE = parse_release("1.36")


def queue_level(queues: int = 128, hand: int = 6, shares: int = 10, **more: Any) -> PriorityLevelConfiguration:
    response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}
    return _limited_level({"nominalConcurrencyShares": shares, "limitResponse": response, **more})


def reject_level(shares: int = 10, **more: Any) -> PriorityLevelConfiguration:
    return _limited_level({"nominalConcurrencyShares": shares, "limitResponse": {"type": "Reject"}, **more})


def _limited_level(limited: dict[str, Any]) -> PriorityLevelConfiguration:
    return build_priority_level(
        {"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": limited}}, DOCUMENT, RELEASE
    )


EXEMPT_LEVEL = build_priority_level({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt"}}, DOCUMENT, RELEASE)
