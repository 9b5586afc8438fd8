"""The cluster in the pictures: the built-in objects of a release, and docs/examples/ci.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from apflint.evaluate.flows import find_flow
from apflint.releases import parse_release
from apflint.requests.request_words import parse_words
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.input_types import create_request

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective
    from apflint.evaluate.flows import RequestFlow
    from apflint.evaluate.limits import LevelLimits
    from apflint.requests.request import Request

RELEASE = "1.36"
"""The newest release with recordings, so that a later release does not change the pictures."""
MANIFESTS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "ci.yaml"
SERVICE_ACCOUNT = "system:serviceaccount:ci:"


def _read(*words: str) -> Effective:
    request = create_request(words, parse_release(RELEASE), isolated=True)._replace(uses_project=False)
    configuration = read_configuration(request)
    if configuration.notes:
        raise ValueError(configuration.notes)
    return configuration.effective


@cache
def read_example() -> Effective:
    """Return the configuration of the cluster."""
    return _read(str(MANIFESTS))


@cache
def read_defaults() -> Effective:
    """Return the configuration of the cluster without the example's objects."""
    return _read()


def find_level(name: str) -> LevelLimits:
    """Return the limits of a priority level of the example."""
    level = read_example().limits.level(name)
    if level is None:
        raise ValueError(f"no priority level {name}")
    return level


def find_example_flow(user: str, namespace: str, method: str | None = "ByUser") -> RequestFlow:
    """Return the flow of a request that the FlowSchema "ci" captures, for this distinguisherMethod of the FlowSchema."""
    configuration = read_example().configuration
    schema = next(schema for schema in configuration.order if schema.name == "ci")
    schema = schema._replace(spec=schema.spec._replace(distinguisher_method=method))
    return find_flow(schema, configuration.levels["ci"], user, namespace)


def make_request(words: str, user: str, *groups: str, namespace: str | None = None) -> Request:
    """Return a request in the notation of `apflint explain`. Without `namespace`, the request is across all namespaces."""
    is_path = words.split()[1].startswith("/")
    return parse_words(
        words.split(), user=user, groups=groups, namespace=namespace, all_namespaces=namespace is None and not is_path
    )
