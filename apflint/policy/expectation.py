"""Data model of a suite of policy tests, and the comparison of destinations with requirements.

A suite is a file with a list of expectations. A property is an expectation about a set of requests.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

from apflint.named_tuple import NamedTuple
from apflint.policy.request_sets import describe_requests
from apflint.wording import join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.evaluate.limits import LevelLimits
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.request_space import World
    from apflint.releases import Release
    from apflint.requests.request import Request

WhenFull = Literal["dispatched", "queued", "rejected"]
"""Possible treatments of a request if no seat of its level is free."""
WHEN_FULL: tuple[WhenFull, ...] = ("dispatched", "queued", "rejected")


class Destination(NamedTuple):
    """The FlowSchema and the priority level that a request reaches."""

    flow_schema: FlowSchema
    level: LevelLimits
    distinguisher: str | None = None
    """The flow distinguisher of one request, or None for a set of requests."""

    @property
    def when_full(self) -> WhenFull:
        """What happens to a request if no seat is free."""
        if self.level.is_exempt:
            return "dispatched"
        return "queued" if self.level.response == "Queue" else "rejected"


class Requirement(NamedTuple):
    """The value of `reaches`, `reachable` or `unreachable` in a suite. A field that is empty or None requires nothing."""

    path: Path
    """Path of the requirement in the suite. A field of the requirement has a path such as `(*path, "priorityLevel")`."""
    flow_schemas: tuple[str, ...] = ()
    priority_levels: tuple[str, ...] = ()
    when_full: tuple[WhenFull, ...] = ()
    min_seats: int | None = None
    """Minimum number of seats that the level keeps and never lends, per API server."""
    nominal_seats: int | None = None
    """Minimum number of nominal seats of the level, per API server, including the seats that the level lends."""
    distinguisher: str | None = None

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """(key, name) of each FlowSchema and priority level in the requirement, such as `("flowSchema", "ci")`."""
        schemas = (("flowSchema", name) for name in self.flow_schemas)
        return (*schemas, *(("priorityLevel", name) for name in self.priority_levels))

    def includes(self, schema: FlowSchema) -> bool:
        """Return whether `flow_schemas` allows `schema`, and `priority_levels` allows its level.

        Ignores the other fields.
        """
        level = schema.spec.priority_level_configuration
        by_schema = not self.flow_schemas or schema.name in self.flow_schemas
        return by_schema and (not self.priority_levels or level in self.priority_levels)

    def find_mismatches(self, destination: Destination) -> dict[str, str]:
        """Return {key: clause about the actual value} for each key of the requirement that `destination` does not meet.

        Example: `{"minSeats": '"ci" keeps 3 seats'}`.
        """
        level = destination.level
        mismatches = {}
        if self.flow_schemas and destination.flow_schema.name not in self.flow_schemas:
            mismatches["flowSchema"] = f'the FlowSchema is "{destination.flow_schema.name}"'
        if self.priority_levels and level.name not in self.priority_levels:
            mismatches["priorityLevel"] = f'the priority level is "{level.name}"'
        if self.when_full and destination.when_full not in self.when_full:
            mismatches["whenFull"] = f'at "{level.name}" a request that finds no free seat is {destination.when_full}'
        if self.min_seats is not None and not level.is_exempt and level.min < self.min_seats:
            lends = f" of {level.nominal}, and lends the others" if level.min < level.nominal else ""
            mismatches["minSeats"] = f'"{level.name}" keeps {pluralize(level.min, "seat")}{lends}'
        if self.nominal_seats is not None and not level.is_exempt and level.nominal < self.nominal_seats:
            mismatches["nominalSeats"] = f'"{level.name}" has {pluralize(level.nominal, "nominal seat")}'
        if self.distinguisher is not None and destination.distinguisher != self.distinguisher:
            mismatches["distinguisher"] = f'the distinguisher is "{destination.distinguisher or ""}"'
        return mismatches

    def describe(self) -> str:
        """Return the requirement as a noun: `the priority level "system" that keeps at least 20 seats`."""
        parts = []
        if self.flow_schemas:
            parts.append(f"the FlowSchema {_join_names(self.flow_schemas)}")
        if self.priority_levels:
            parts.append(f"the priority level {_join_names(self.priority_levels)}")
        text = " and ".join(parts) or "a priority level"
        if self.min_seats is not None:
            text += f" that keeps at least {pluralize(self.min_seats, 'seat')}"
        if self.nominal_seats is not None:
            also = " and" if self.min_seats is not None else " that"
            text += f"{also} has at least {pluralize(self.nominal_seats, 'nominal seat')}"
        if self.when_full:
            text += f", where a request is {' or '.join(self.when_full)} if no seat is free"
        if self.distinguisher is not None:
            text += f', with the distinguisher "{self.distinguisher}"'
        return text


class RequestExpectation(NamedTuple):
    """An expectation with the key `request`: one request and its required destination."""

    request: Request
    words: tuple[str, ...]
    """The request as arguments of `apflint explain`."""
    reaches: Requirement

    def describe(self) -> str:
        """Return a clause: the arguments of `apflint explain` for the request, and what the request must reach."""
        return f"`{shlex.join(self.words)}` reaches {self.reaches.describe()}"


class Property(NamedTuple):
    """An expectation with the key `never` or `always`, about the requests that match `requests` but no rule in `excluded`."""

    kind: Literal["never", "always"]
    requests: PolicyRulesWithSubjects
    excluded: tuple[PolicyRulesWithSubjects, ...]
    reaches: Requirement

    def describe(self) -> str:
        """Return a clause that describes the expectation."""
        excluded = "; ".join(describe_requests(rule) for rule in self.excluded)
        all_requests = f"{'no' if self.kind == 'never' else 'every'} {describe_requests(self.requests)}"
        return f"{all_requests} reaches {self.reaches.describe()}" + (f" (excluded: {excluded})" if excluded else "")


class Reachability(NamedTuple):
    """An expectation with the key `reachable` (some request reaches each named object) or `unreachable` (no request does)."""

    kind: Literal["reachable", "unreachable"]
    reaches: Requirement
    """The named objects. Only the fields `flow_schemas` and `priority_levels` are set."""

    def describe(self) -> str:
        """Describe the expectation in a clause."""
        targets = join_words((describe_target(key, name) for key, name in self.reaches.targets), "and")
        return f"{targets} {'can be reached' if self.kind == 'reachable' else 'cannot be reached by any request'}"


class Expectation(NamedTuple):
    """An entry of `tests` in a suite of policy tests: a claim that must be true for the configuration."""

    path: Path
    """Path of the entry in the suite: `("tests", 3)`."""
    name: str
    """The name in the suite, or an empty string if the entry has no name."""
    claim: RequestExpectation | Property | Reachability

    @property
    def kind(self) -> str:
        """The type of the expectation, named as its key: `request`, `never`, `always`, `reachable` or `unreachable`."""
        return "request" if isinstance(self.claim, RequestExpectation) else self.claim.kind


class Suite(NamedTuple):
    """A suite of policy tests. A field is None if the file does not have the key."""

    document: Document
    manifests: tuple[str, ...] | None
    """Paths as in the file, relative to the directory of the file."""
    clusters: Mapping[Path, str]
    """Names of clusters in the settings, by their paths in the suite. The suite runs once for each of these clusters. Empty if the key
    is absent."""
    release: Release | None
    server_concurrency: int | None
    world: World
    excluded: tuple[PolicyRulesWithSubjects, ...]
    """Sets of requests to which the properties of the suite do not apply."""
    tests: tuple[Expectation, ...]


def describe_target(key: str, name: str) -> str:
    """Return an object as a noun: `FlowSchema "ci"`. `key` is `flowSchema` or `priorityLevel`."""
    return f'{"FlowSchema" if key == "flowSchema" else "priority level"} "{name}"'


def _join_names(names: tuple[str, ...]) -> str:
    return " or ".join(f'"{name}"' for name in names)
