"""Finds the addresses of all API servers of a cluster, in the endpoints of the service `kubernetes`.

Each API server adds its address to the endpoints of this service.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from apflint.sources.kubectl import read_json
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.sources.kubectl import KubectlOptions

_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes"
_ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
"""Path of the Endpoints object.

Used for releases before 1.21, and for users who are not allowed to read EndpointSlices.
"""
_MAX_PORT = 65_535


def read_server_addresses(kubectl: KubectlOptions) -> tuple[str, ...]:
    """Return the addresses of the API servers with their ports, such as `10.0.0.1:6443`, in the order of the response.

    Each server adds its address to the endpoints (`Reconcile` in pkg/controlplane/reconcilers). In a managed cluster,
    the endpoints may contain the address of a load balancer instead. Raises UserError if the user may read neither
    EndpointSlices nor Endpoints.
    """
    try:
        slices = read_json(kubectl, _SLICES).get("items")
        found = [address for piece in _list(slices) for address in _list_slice(piece)]
    except UserError as error:
        try:
            subsets = read_json(kubectl, _ENDPOINTS).get("subsets")
        except UserError:
            raise error from None
        found = [address for piece in _list(subsets) for address in _list_subset(piece)]
    return tuple(dict.fromkeys(found))


def _list(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects in a JSON list. Other items are omitted. If `value` is not a list, return []."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _list_slice(piece: dict[str, Any]) -> Iterator[str]:
    for endpoint in _list(piece.get("endpoints")):
        addresses = endpoint.get("addresses")
        # Host names are ignored, because DNS could resolve them to another machine, which would get the user's credentials.
        for address in addresses if isinstance(addresses, list) else ():
            yield from _join(address, piece.get("ports"))


def _list_subset(piece: dict[str, Any]) -> Iterator[str]:
    for entry in _list(piece.get("addresses")):
        yield from _join(entry.get("ip"), piece.get("ports"))


def _join(address: object, ports: object) -> Iterator[str]:
    """Yield `ADDRESS:PORT` with the first port that is named `https` or has no name.

    Yield nothing if the address or the port is invalid.
    """
    port = next((entry.get("port") for entry in _list(ports) if entry.get("name") in ("https", None, "")), None)
    if not isinstance(address, str) or not isinstance(port, int) or not 0 < port <= _MAX_PORT:
        return
    try:
        found = ip_address(address)
    except ValueError:
        return
    yield f"[{found}]:{port}" if found.version == 6 else f"{found}:{port}"
