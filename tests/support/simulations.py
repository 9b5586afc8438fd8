"""Loads and configurations for simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.releases import NEWEST, Release
from apflint.request_explanation import Explainer
from apflint.requests.request_words import parse_command_line
from apflint.simulate.arrivals import list_sources
from apflint.simulate.field_overrides import apply_changes, parse_change
from apflint.simulate.load import SECOND, Load, ServiceTime, SimulatedClient
from apflint.simulate.routes import Routes
from apflint.simulate.simulation import Simulation
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.simulate.simulation import SimulationResult


class Options(NamedTuple):
    """A configuration: manifests, the seats of a server, and changed fields."""

    manifests: str
    seats: int = 600
    changes: tuple[str, ...] = ()
    release: Release = NEWEST


def client(
    name: str, *, request: str = "list pods -A", user: str = "alice", groups: tuple[str, ...] = (), **values: Any
) -> SimulatedClient:
    """Return a client that lists pods. `values` sets further fields of `SimulatedClient`."""
    values = {"path": ("clients", 0), "service": ServiceTime(10_000_000), **values}
    return SimulatedClient(name, arguments=parse_command_line(request, user, groups), **values)


def load(*clients: SimulatedClient, duration: int = 10 * SECOND, servers: int = 1) -> Load:
    """Return a load of `clients`, by default of 10 seconds and for one server."""
    return Load(duration, clients, servers)


def simulate(
    wanted: Load,
    options: Options,
    *,
    seed: int = 1,
    show: Callable[[int], None] = lambda _: None,
    fast_forwards: bool = True,
) -> SimulationResult:
    """Simulate a load."""
    workspace = build_workspace(load_inputs([("a.yaml", options.manifests.encode())]), options.release)
    known = Effective(workspace, Assumptions(server_concurrency=options.seats))
    known = apply_changes(known, map(parse_change, options.changes))
    routes, sources = Routes(wanted, Explainer(known)), list_sources(wanted, seed)
    return Simulation(wanted, known.limits, routes, sources, seed, fast_forwards=fast_forwards).run(show)
