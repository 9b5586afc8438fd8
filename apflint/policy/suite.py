"""A suite of expectations as typed, frozen values. Everything in it keeps its path, so that its line can be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import PolicyRulesWithSubjects
    from apflint.proofs.parts import World
    from apflint.releases import Release
    from apflint.requests.request import Request

WhenFull = Literal["dispatched", "queued", "rejected"]
WHEN_FULL: tuple[WhenFull, ...] = ("dispatched", "queued", "rejected")
"""What becomes of a request that finds no free seat: the words of `fates` in `apflint explain --format json`."""


class Destination(NamedTuple):
    """`reaches`: what is said of the place that a request goes to. Empty or None: nothing is said of that."""

    path: Path
    """Where it is written; its members are `(*path, "priorityLevel")` and so on."""
    flow_schemas: tuple[str, ...] = ()
    priority_levels: tuple[str, ...] = ()
    when_full: tuple[WhenFull, ...] = ()
    min_seats: int | None = None
    """Seats that the level has at least: what it never lends, per API server."""
    distinguisher: str | None = None


class Example(NamedTuple):
    """`request`: one request, and where it goes."""

    request: Request
    words: tuple[str, ...]
    """The request as `apflint explain` takes it."""
    reaches: Destination


class Property(NamedTuple):
    """`never` or `always`: something about all requests that `requests` matches and `but_for` does not."""

    kind: Literal["never", "always"]
    requests: PolicyRulesWithSubjects
    but_for: tuple[PolicyRulesWithSubjects, ...]
    reaches: Destination


class Reachability(NamedTuple):
    """`reachable` or `unreachable`: whether each of these ever decides about a request."""

    kind: Literal["reachable", "unreachable"]
    names: Destination
    """Names of FlowSchemas and levels alone."""


class Expectation(NamedTuple):
    """One expectation. `path` is its place in the list: `("tests", 3)`."""

    path: Path
    name: str
    """As it was given; "" for none."""
    claim: Example | Property | Reachability

    @property
    def kind(self) -> str:
        """The key that it is told by."""
        return "request" if isinstance(self.claim, Example) else self.claim.kind


class Suite(NamedTuple):
    """One file of expectations. None stands for what the file does not say."""

    document: Document
    manifests: tuple[str, ...] | None
    """Paths as they are written: relative to the folder of the file."""
    release: Release | None
    server_concurrency: int | None
    world: World
    but_for: tuple[PolicyRulesWithSubjects, ...]
    """What no property of the suite speaks of."""
    tests: tuple[Expectation, ...]
