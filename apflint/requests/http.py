"""A request from its HTTP method and URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.match import UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.requests.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse_http(method: str, url: str, *, user: str, groups: Sequence[str] = ()) -> Request:
    """Return the request `method url`; adds the groups that authentication adds.

    Raises UserError if the server answers before it determines the attributes of the request.
    """
    all_groups, notes = complete_groups(user, tuple(groups))
    return Request(UserInfo(user, all_groups), parse_request_info(method, url), notes, url)
