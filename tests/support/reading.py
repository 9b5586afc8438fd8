"""Reads configurations as commands do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.sources.effective_configurations import read_configuration
from apflint.sources.input_types import create_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.effective_configuration import Effective
    from apflint.releases import Release


def read_effective(
    words: Iterable[str],
    kubernetes: Release | None = None,
    server_concurrency: int | None = None,
    *,
    isolated: bool = True,
    **more: Any,
) -> Effective:
    """Return the configuration for the source arguments `words`. If there are none, only the built-in objects are read."""
    request = create_request(tuple(words), kubernetes, server_concurrency, isolated=isolated)
    return read_configuration(request._replace(uses_project=False, **more)).effective
