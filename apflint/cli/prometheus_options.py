"""Options for a Prometheus server, and for the times whose metrics are read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from apflint.cli.options import option
from apflint.cli.progress import show_progress
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.releases import Release
    from apflint.sources.prometheus_server import Period, PrometheusReading

PROMETHEUS = "Prometheus"
"""Title of these options in the help."""
_DEFAULT_SECONDS = 3600
_URL_HELP = "Read the metrics of the API servers from this Prometheus, Thanos or Mimir."
_SELECTOR_HELP = 'Matchers that select the metrics of kube-apiserver, such as cluster="prod". [default: the usual jobs]'
_SINCE_HELP = "Diagnose the worst interval after this time, such as 2h before now, or a time of RFC 3339."
_UNTIL_HELP = "Diagnose the worst interval before this time: 1h is 1 hour before now; or a time of RFC 3339."
_BASELINE_HELP = "Compare with an earlier period: START/END, or a duration such as 1d for the day before --since."


class PrometheusOptions(NamedTuple):
    """Options of a command that reads metrics from Prometheus."""

    prometheus: Annotated[str | None, option(PROMETHEUS, _URL_HELP, "--prometheus", metavar="URL")] = None
    selector: Annotated[
        str | None, option(PROMETHEUS, _SELECTOR_HELP, "--selector", metavar="MATCHERS", show_default=False)
    ] = None
    cluster_label: Annotated[
        str | None,
        option(
            PROMETHEUS, "Label with the cluster of a server.", "--cluster-label", metavar="NAME", show_default="cluster"
        ),
    ] = None
    since: Annotated[
        str | None, option(PROMETHEUS, _SINCE_HELP, "--since", metavar="TIME", show_default="1h before --until")
    ] = None
    until: Annotated[str | None, option(PROMETHEUS, _UNTIL_HELP, "--until", metavar="TIME", show_default="now")] = None
    baseline: Annotated[
        str | None,
        option(
            PROMETHEUS,
            _BASELINE_HELP,
            "--baseline",
            metavar="TIME",
            show_default="the preceding period of the same length",
        ),
    ] = None
    header: Annotated[
        list[str] | None,
        option(PROMETHEUS, "Header of each query, such as 'X-Scope-OrgID: prod'; repeatable.", metavar="NAME: VALUE"),
    ] = None
    token_file: Annotated[
        str | None, option(PROMETHEUS, "File with a bearer token.", "--token-file", metavar="FILE")
    ] = None
    certificate_authority: Annotated[
        str | None,
        option(PROMETHEUS, "Trust the certificates of these authorities.", "--certificate-authority", metavar="FILE"),
    ] = None
    client_certificate: Annotated[
        str | None, option(PROMETHEUS, "Certificate of the client for TLS.", "--client-certificate", metavar="FILE")
    ] = None
    client_key: Annotated[
        str | None,
        option(
            PROMETHEUS, "Private key of --client-certificate, if it is in another file.", "--client-key", metavar="FILE"
        ),
    ] = None
    insecure_skip_tls_verify: Annotated[
        bool,
        option(
            PROMETHEUS,
            "Do not verify the certificate. Any server can then answer, and read the credentials.",
            "--insecure-skip-tls-verify",
        ),
    ] = False

    def reject_without_prometheus(self) -> None:
        """Raise UserError if an option of this group is set without --prometheus."""
        for field, value in zip(self._fields, self, strict=True):
            if value and self.prometheus is None:
                raise UserError(f"--{field.replace('_', '-')} requires --prometheus")

    def read(self, release: Release | None) -> PrometheusReading:
        """Read the metrics of the API servers, and print notes about the connection.

        If `release` is None, the release is detected from the metrics.
        """
        from apflint.cli.error_reporting import print_note
        from apflint.monitoring.queries import parse_label_name, parse_selector
        from apflint.sources.prometheus_client import PrometheusClient, parse_connection
        from apflint.sources.prometheus_server import PrometheusRequest, read_prometheus

        assert self.prometheus is not None
        period, baseline = parse_times(self.since, self.until, self.baseline, time.time())
        matchers = parse_selector(self.selector) if self.selector is not None else ()
        label = parse_label_name(self.cluster_label) if self.cluster_label is not None else "cluster"
        connection = parse_connection(
            self.prometheus,
            self.header or (),
            token_file=self.token_file,
            authority=self.certificate_authority,
            certificate=self.client_certificate,
            key=self.client_key,
            is_verified=not self.insecure_skip_tls_verify,
        )
        with PrometheusClient(connection) as client, show_progress("Reading Prometheus"):
            for note in client.notes:
                print_note(note)
            return read_prometheus(client, PrometheusRequest(period, baseline, matchers, label, release))


def parse_times(since: str | None, until: str | None, baseline: str | None, now: float) -> tuple[Period, Period]:
    """Return (period from --since to --until, period of the baseline).

    `now` is in seconds since 1970. Raises UserError if a time is invalid, or if a period starts after its end.
    """
    from apflint.replay.filters import parse_moment
    from apflint.sources.prometheus_server import Period

    def resolve(name: str, text: str | None, default: float) -> float:
        moment = parse_moment(name, text)
        return default if moment is None else moment.resolve(round(now * 1e6)).microseconds / 1e6

    end = resolve("--until", until, now)
    period = Period(resolve("--since", since, end - _DEFAULT_SECONDS), end)
    if period.seconds <= 0:
        raise UserError("--since must be before --until")
    if baseline is None:
        return period, Period(period.start - period.seconds, period.start)
    first, slash, last = baseline.partition("/")
    if slash:
        compared = Period(resolve("--baseline", first, 0), resolve("--baseline", last, 0))
    else:
        moment = parse_moment("--baseline", baseline)
        if moment is None or not moment.is_before_end:
            raise UserError(
                f'--baseline: "{baseline}" is neither a duration such as 1d nor an interval such as'
                " 2026-11-22T05:00:00Z/2026-11-22T06:00:00Z"
            )
        compared = Period(period.start - moment.microseconds / 1e6, period.start)
    if compared.seconds <= 0:
        raise UserError("--baseline: the start must be before the end")
    return period, compared
