"""Loads that are described by command-line options instead of a load file.

Such a load has one client, which sends one request at a rate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.requests.request_words import infer_resource, parse_command_line
from apflint.simulate.load import DEFAULT_OBJECT_BYTES, SECOND, Load, ObjectCount, ServiceTime, SimulatedClient
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.replay.object_counts import ObjectCounts

ASSUMED_SERVICE_TIME = 40_000_000
"""Default of the service time in nanoseconds, if the user does not set --service-time."""
DEFAULT_DURATION = 300 * SECOND
_USER_OPTION = re.compile(r"(?:^|\s)--as(?:=|\s)")


class SpokenLoad(NamedTuple):
    """The values of the options that describe a load."""

    request: str
    user: str | None = None
    groups: tuple[str, ...] = ()
    rate: float | None = None
    """Requests per second."""
    service_time: int | None = None
    duration: int | None = None

    def to_load(self, counts: ObjectCounts) -> Load:
        """Return the load that the options describe.

        `counts` maps resources to the number and size of their stored objects. Raises UserError if
        `--request` is invalid or names no user, or if `--rate` is missing.
        """
        if self.user is None and not _USER_OPTION.search(self.request):
            raise UserError(
                "--request has no user: add --as, as in --as alice or --as system:serviceaccount:NAMESPACE:NAME"
            )
        if self.rate is None:
            raise UserError("--request requires --rate, as in --rate 20/s")
        try:
            arguments = parse_command_line(self.request, self.user, self.groups)
            arguments.to_request()
        except UserError as error:
            raise UserError(f"--request: {error}") from error
        service = ServiceTime(ASSUMED_SERVICE_TIME if self.service_time is None else self.service_time)
        client = SimulatedClient(arguments.user, (), arguments, service, rate=self.rate)
        objects = {
            (resource.group, resource.name): ObjectCount(
                total.number, DEFAULT_OBJECT_BYTES if total.size is None else total.size
            )
            for name, total in counts.items()
            for resource in (infer_resource(name),)
        }
        duration = DEFAULT_DURATION if self.duration is None else self.duration
        return Load(duration, (client,), objects=objects)
