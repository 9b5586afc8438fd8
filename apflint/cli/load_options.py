"""Options of `apflint simulate` that select a load and change its requests, and parsers of their values."""

from __future__ import annotations

from shlex import quote as quote_word
from typing import TYPE_CHECKING, Annotated

from apflint.cli.options import option, parse_integer
from apflint.evaluate.request_outcomes import parse_duration
from apflint.named_tuple import NamedTuple
from apflint.simulate.load import SECOND
from apflint.simulate.load_parser import parse_rate
from apflint.simulate.scaling import parse_scaling
from apflint.simulate.spoken_load import SpokenLoad
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from apflint.simulate.scaling import Scaling

LOAD = "Load"
_FROM_AUDIT_HELP = (
    "Simulate the requests of this audit log. Do not name a load file. The formats are those of `apflint replay`."
)
_REQUEST_HELP = "Send this request instead of a load file, in the words of `apflint explain`, as in 'list pods -A'."
_OBJECTS_HELP = "With --from-audit or --request: number of objects of a resource and their average size; repeatable."
_SCALE_HELP = "Multiply the number of requests by this factor, such as 2 or 150%. CLIENT=FACTOR multiplies only the requests of one client, as in ci=2. Repeatable."
_WARMUP_HELP = "Length of the warm-up, whose requests do not count in the results. With --from-audit: the warm-up is the start of the log."


class LoadOptions(NamedTuple):
    """Options of `apflint simulate` that select the simulated load and scale the number of its requests.

    A load consists of clients and the requests that they send, such as the requests of an audit log.
    """

    from_audit: Annotated[list[str] | None, option(LOAD, _FROM_AUDIT_HELP, "--from-audit", metavar="LOG")] = None
    request: Annotated[str | None, option(LOAD, _REQUEST_HELP, "--request", metavar="REQUEST")] = None
    user: Annotated[str | None, option(LOAD, "With --request: user.", "--as", metavar="USER")] = None
    groups: Annotated[
        list[str] | None, option(LOAD, "With --request: group of the user; repeatable.", "--as-group", metavar="GROUP")
    ] = None
    rate: Annotated[
        str | None, option(LOAD, "With --request: rate, such as 20/s, 30/m or 5/h.", "--rate", metavar="RATE")
    ] = None
    service_time: Annotated[
        str | None,
        option(
            LOAD,
            "With --request: time for which the server executes the request.",
            "--service-time",
            metavar="TIME",
            show_default="40ms",
        ),
    ] = None
    duration: Annotated[
        str | None,
        option(LOAD, "With --request: duration of the load.", "--duration", metavar="TIME", show_default="5m"),
    ] = None
    metrics: Annotated[
        str | None,
        option(
            LOAD,
            "With --from-audit: metrics of the API server, whose object counts determine the seats of lists.",
            "--metrics",
            metavar="FILE",
        ),
    ] = None
    objects: Annotated[list[str] | None, option(LOAD, _OBJECTS_HELP, "--objects", metavar="RESOURCE=COUNT[:BYTES]")] = (
        None
    )
    scale: Annotated[list[str] | None, option(LOAD, _SCALE_HELP, "--scale", metavar="[CLIENT=]FACTOR")] = None
    without: Annotated[
        list[str] | None, option(LOAD, "Leave out the requests of a client; repeatable.", "--without", metavar="CLIENT")
    ] = None
    warmup: Annotated[
        str | None,
        option(
            LOAD,
            _WARMUP_HELP,
            "--warmup",
            metavar="TIME",
            show_default="the warm-up in the load file, else 30s; 0 with --from-audit",
        ),
    ] = None
    seed: Annotated[int, option(LOAD, "Seed of the random numbers.", "--seed", metavar="N", parser=parse_integer)] = 1

    def check(self, load: str | None) -> None:
        """Raise UserError if the options do not select exactly one load, or if an option does not apply to the selected load.

        `load` is the path of a load file, or None.
        """
        if [load is not None, bool(self.from_audit), self.request is not None].count(True) != 1:
            raise UserError("name a load file, or an audit log with --from-audit, or a request with --request")
        spoken = {
            "--as": self.user,
            "--as-group": self.groups,
            "--rate": self.rate,
            "--service-time": self.service_time,
            "--duration": self.duration,
        }
        for name, value in spoken.items():
            if value and self.request is None:
                raise UserError(f"{name} requires --request")
        if self.metrics is not None and not self.from_audit:
            raise UserError("--metrics requires --from-audit: in a load file, set `objects` instead")
        if self.objects and load is not None:
            raise UserError("--objects requires --from-audit or --request: in a load file, set `objects` instead")

    def parse_scaling(self) -> Scaling:
        """Return the factors by which the rates of clients are multiplied (--scale). Raises UserError for invalid values."""
        return parse_scaling(self.scale or (), self.without or ())

    def parse_warmup(self) -> int | None:
        """Return the warm-up in nanoseconds, or None if --warmup is not set. Raises UserError for invalid values."""
        return None if self.warmup is None else parse_time("--warmup", self.warmup)

    def parse_request(self) -> SpokenLoad | None:
        """Return the load that --request describes, or None if --request is not set. Raises UserError for invalid values."""
        if self.request is None:
            return None
        rate = None if self.rate is None else parse_rate(self.rate.strip())
        if self.rate is not None and rate is None:
            raise UserError(f"--rate: {quote(self.rate)} is not a rate such as 20/s, 30/m or 5/h")
        service, duration = (
            None if text is None else parse_time(name, text, minimum)
            for name, text, minimum in (
                ("--service-time", self.service_time, 0),
                ("--duration", self.duration, SECOND // 1000),
            )
        )
        return SpokenLoad(self.request, self.user, tuple(self.groups or ()), rate, service, duration)

    def describe_changes(self) -> list[str]:
        """Return the options that change the load, such as `--scale ci=2`, as on the command line."""
        return [
            *(f"--scale {quote_word(text)}" for text in self.scale or ()),
            *(f"--without {quote_word(name)}" for name in self.without or ()),
        ]


def parse_time(option_name: str, text: str, minimum: int = 0) -> int:
    """Return the nanoseconds of a duration such as `500ms`, `30s` or `0`.

    Raises UserError for text that is not a duration, and for a duration below `minimum` nanoseconds.
    """
    seconds = 0.0 if text.strip() == "0" else parse_duration(text.strip())
    if seconds is None:
        raise UserError(f"{option_name}: {quote(text)} is not a duration such as 500ms, 30s or 10m")
    nanoseconds = round(seconds * SECOND)
    if nanoseconds < minimum or nanoseconds < 0:
        least = "1ms" if minimum else "0"
        raise UserError(f"{option_name}: {quote(text)} is not a duration of at least {least}")
    return nanoseconds
