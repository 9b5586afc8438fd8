"""The state of API servers, read with --metrics, --dump or --live. `apflint explain` shows this state for a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.doctor.level_state import ServerState
    from apflint.request_explanation import Explanation
    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import KubectlOptions


class ObservedServers(NamedTuple):
    """The states of API servers, or the reason why they cannot be read."""

    states: tuple[ServerState, ...] = ()
    problem: str = ""

    @property
    def server_concurrency(self) -> int | None:
        """Server concurrency limit in seats, or None if the metrics of the servers do not agree."""
        totals = {state.total for state in self.states}
        return totals.pop() if len(totals) == 1 else None

    def describe(self, explanation: Explanation) -> tuple[list[dict[str, object]], str]:
        """Return (JSON objects, text) about the current state of the level and the flow of a request on the servers."""
        from apflint.output.observed_server_state import describe_observations, observation_json, observe

        if self.problem:
            return [], f"Unknown. {self.problem}"
        observations = [observe(explanation, state) for state in self.states]
        return [observation_json(observation) for observation in observations], describe_observations(observations)


def read_observed_servers(files: tuple[str, ...], kubectl: KubectlOptions | None) -> ObservedServers | None:
    """Return the states of the servers in files, or of the running servers. If `files` is empty and `kubectl` is None, return None.

    Raises UserError for files that cannot be read.
    """
    if not files and kubectl is None:
        return None
    from apflint.doctor.level_state import compute_state
    from apflint.doctor.snapshot import group_servers

    if kubectl is None:
        from apflint.sources.server_state_files import read_parts

        parts = read_parts(files)
    else:
        from apflint.sources.live_server_state import read_live_parts

        try:
            parts = read_live_parts(kubectl, [])
        except UserError as error:  # do not fail: the explanation needs only the objects, not the state of the servers
            return ObservedServers(problem=str(error))
    return ObservedServers(tuple(compute_state(server) for server in group_servers(parts)))


def use_seats_of_metrics(request: InputRequest, paths: Iterable[str]) -> InputRequest:
    """Return the input request with the server concurrency limit that metrics in files show, if they show one.

    If the user set --server-concurrency, the input request does not change. Files that are not metrics of API Priority and
    Fairness, such as files with only numbers of objects, are ignored. Standard input is not read.
    """
    if request.server_concurrency is not None:
        return request
    from apflint.doctor.level_state import compute_state
    from apflint.doctor.snapshot import group_servers
    from apflint.sources.server_state_files import read_parts

    try:
        parts = read_parts(path for path in paths if path != "-")
        observed = ObservedServers(tuple(map(compute_state, group_servers(parts))))
    except UserError:
        return request
    return use_seats_of_server(request, observed)


def use_seats_of_server(request: InputRequest, observed: ObservedServers | None) -> InputRequest:
    """Return the input request with the server concurrency limit of the observed servers.

    If the user set --server-concurrency, the input request does not change.
    """
    if observed is None or request.server_concurrency is not None:
        return request
    return request.assume(server_concurrency=observed.server_concurrency)
