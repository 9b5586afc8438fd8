"""Comparison of kube-apiserver's log with a configuration: FlowSchema, priority level and seats of logged requests.

The log does not name users. So a logged request contradicts the configuration for certain only if the logged FlowSchema
cannot match the request, whichever user sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.possible_flow_schemas import list_possible_flow_schemas
from apflint.evaluate.requestinfo import is_seen_by_apf
from apflint.evaluate.seats import bound_seats, request_bound
from apflint.named_tuple import NamedTuple
from apflint.requests.list_options import LIST_VERBS, parse_list_options, reduce_list_options
from apflint.user_error import UserError
from apflint.wording import join_some, pluralize, quote

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.requests.server_log import LoggedRequest

_MAX_NAMED = 4
_MAX_REMEMBERED = 20_000


class LoggedComparison(NamedTuple):
    """The result of comparing a logged request with a configuration."""

    info: RequestInfo | None
    """The attributes of the request, or None if the server could not parse its URI."""
    possible: tuple[str, ...]
    """Names of the FlowSchemas that may capture the request, depending on its user, in matching order. Empty if the server does not
    classify the request."""
    disagreements: tuple[str, ...]
    """Clauses about logged facts that contradict the configuration for every user. Empty if there are no such facts."""

    @property
    def flow_schema(self) -> str | None:
        """The name of the only FlowSchema that may capture the request.

        The name is None if several FlowSchemas may capture the request, depending on its user, or if the
        server does not classify the request.
        """
        return self.possible[0] if len(self.possible) == 1 else None


class LoggedComparer:
    """Compares logged requests with one configuration."""

    def __init__(self, known: Effective) -> None:
        self._known = known
        self._schemas = {schema.name: schema for schema in known.configuration.order}
        self._dangling = {schema.name for schema in known.configuration.dangling}
        self._remembered: dict[object, LoggedComparison] = {}

    def compare(self, request: LoggedRequest) -> LoggedComparison:
        """Return the comparison of a logged request with the configuration."""
        try:
            info = request.read_info()
        except UserError as error:
            return LoggedComparison(None, (), (str(error),) if request.flow_schema else ())
        options = reduce_list_options(request.uri, info.name or None) if info.verb in LIST_VERBS else ""
        logged = request.flow_schema, request.priority_level, request.seats, request.final_seats
        name = "" if info.is_resource_request else info.path
        key = (info.verb, info.api_group, info.resource, info.subresource, info.namespace, name, options, logged)
        known = self._remembered.get(key)
        if known is None:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = self._compare(request, info, options)
        return known._replace(info=info)

    def _compare(self, request: LoggedRequest, info: RequestInfo, options: str) -> LoggedComparison:
        configuration = self._known.configuration
        if not is_seen_by_apf(info, watches=self._known.release.classifies_watches):
            wrong = (
                f"Kubernetes {self._known.release.name} does not classify requests of this kind: they are long-running"
            )
            return LoggedComparison(info, (), (wrong,) if request.flow_schema else ())
        possible = tuple(schema.name for schema in list_possible_flow_schemas(configuration, info))
        if request.flow_schema is None:  # authentication failed, or the server does not use API Priority and Fairness
            return LoggedComparison(info, possible, ())
        found = [*self._compare_flow_schema(request, possible)]
        level = self._known.limits.level(request.priority_level or "")
        if level is not None:
            found += self._compare_seats(request, info, level, options)
        return LoggedComparison(info, possible, tuple(found))

    def _compare_flow_schema(self, request: LoggedRequest, possible: tuple[str, ...]) -> list[str]:
        name, level = request.flow_schema or "", request.priority_level or ""
        if name in self._dangling:
            return [f"the server would skip the FlowSchema {quote(name)}, whose priority level does not exist"]
        schema = self._schemas.get(name)
        if schema is None:
            return [f"the configuration has no FlowSchema {quote(name)}"]
        found = []
        if name not in possible:
            names = join_some([quote(other) for other in possible], _MAX_NAMED)
            user = "depending on the user, " if len(possible) > 1 else ""
            found.append(
                f"the FlowSchema {quote(name)} cannot match this request; {user}the request gets {names}{_note(name)}"
            )
        reference = schema.spec.priority_level_configuration
        if reference != level:
            found.append(
                f"the FlowSchema {quote(name)} references the priority level {quote(reference)}, not {quote(level)}"
            )
        return found

    def _compare_seats(self, request: LoggedRequest, info: RequestInfo, level: LevelLimits, options: str) -> list[str]:
        release, total = self._known.release, self._known.limits.server_concurrency
        where = f"at the priority level {quote(level.name)} of a server with {total} seats"
        list_options = parse_list_options(options)
        found = []
        maximum = bound_seats(release, info, list_options, level) if info.verb in LIST_VERBS else 1
        if request.seats is not None and request.seats > maximum:
            found.append(f"a {info.verb} takes at most {pluralize(maximum, 'seat')} {where}, not {request.seats}")
        final = request_bound(level.max_seats or 0, release.max_mutating_seats)
        if request.final_seats is not None and request.final_seats > final:
            found.append(
                f"notifying watchers takes at most {pluralize(final, 'seat')} {where}, not {request.final_seats}"
            )
        return found


def _note(schema: str) -> str:
    """Return a clause that explains an unexpected FlowSchema `catch-all` in the log, or "" for all other FlowSchemas.

    Recordings of kube-apiserver show that it uses `catch-all` until it has read its configuration.
    """
    return ", unless the server had just started and not read its configuration" if schema == CATCH_ALL else ""
