"""Conversion of logged requests to the attributes that FlowSchemas match."""

from __future__ import annotations

import pytest

from apflint.replay.classification import make_request_info
from apflint.replay.events import AttributeTuple


@pytest.mark.parametrize(("uri", "path"), [("/healthz/", "/healthz/"), ("/health%7A", "/healthz"), ("*", "*")])
def test_paths_are_decoded(uri: str, path: str) -> None:
    info = make_request_info(AttributeTuple("alice", (), "get", "", "", "", "", uri))
    assert (info.is_resource_request, info.path) == (False, path)


@pytest.mark.parametrize(("group", "prefix"), [("", "api"), ("apps", "apis")])
def test_prefix_follows_from_the_group(group: str, prefix: str) -> None:
    info = make_request_info(AttributeTuple("alice", (), "get", group, "pods", "log", "dev", ""))
    assert (info.is_resource_request, info.api_prefix, info.resource, info.subresource) == (True, prefix, "pods", "log")
