"""What differs between the Kubernetes releases that apflint knows, 1.18 to 1.37: one table, each row with its source.

"Recorded" means observed on running kube-apiservers (1.21.1, 1.25.10, 1.26.5, 1.28.3, 1.29.1, 1.31.14, 1.36.2). What
each release creates is in `apflint.builtin`. 1.37 was not recorded: as far as its sources show, its flowcontrol group
is that of 1.36.
"""

from __future__ import annotations

import re

from apflint.errors import UserError
from apflint.record import NamedTuple

# `1.36`, `v1.36`, `1.36.2`, and what servers of vendors call themselves: `v1.36.2-gke.100`, `v1.36.2+k3s1`.
_SPELLING = re.compile(r"v?1\.(0|[1-9]\d{0,2})(?:\.\d+)?(?:[-+].*)?", re.ASCII)
OLDEST_MINOR, NEWEST_MINOR = 18, 37
GROUP = "flowcontrol.apiserver.k8s.io"
"""The API group of both kinds."""


class ApiVersion(NamedTuple):
    """The life of one version of the API group, as minor releases of Kubernetes 1; None: never, so far."""

    name: str
    introduced: int
    deprecated: int | None
    removed: int | None
    by_default: bool
    """False: while it lived, a server served it only with `--runtime-config`."""


# Source: the prerelease-lifecycle marks in staging/src/k8s.io/api/flowcontrol/*/types.go, which make the deprecation
# warnings; recorded are the warnings and the lists of served versions. That v1alpha1 had to be asked for:
# DefaultAPIResourceConfigSource in pkg/controlplane/instance.go (1.18 and 1.19: pkg/master/master.go) disables alpha.
API_VERSIONS = (
    ApiVersion("v1", 29, None, None, by_default=True),
    ApiVersion("v1beta3", 26, 29, 32, by_default=True),
    ApiVersion("v1beta2", 23, 26, 29, by_default=True),
    ApiVersion("v1beta1", 20, 23, 26, by_default=True),
    ApiVersion("v1alpha1", 18, 20, 21, by_default=False),
)
"""Every version there ever was, the newest first."""

WATCHES_CLASSIFIED = 22
"""API Priority and Fairness classifies watches; before, it skips every long-running request. Source: `WithPriorityAndFairness`
in staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go, by tag."""
PARSED_TIMEOUT = 21
"""A query parameter `timeout` that is not a duration is answered with 400 before the request is classified. Source:
`WithRequestDeadline` in staging/src/k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, there since 1.21; recorded on 1.36.2."""
ESTIMATED_SEATS = 23
"""A list may take several seats, and a request waits in the queue with the least estimated work. Before, every request
takes one seat, and it waits in the queue with the fewest requests. Source: list_work_estimator.go in
staging/src/k8s.io/apiserver/pkg/util/flowcontrol/request and `shuffleShardLocked` in ../fairqueuing/queueset/queueset.go, by tag."""
MUTATING_SEATS = 24
"""A change may take several seats. Source: `enableMutatingWorkEstimator` in mutating_work_estimator.go, off in 1.23."""
LEVEL_SEAT_BOUND = 25
"""A priority level with queues bounds the seats of one request. Source: `priorityLevelMaxSeatsPercent` in apf_controller.go
(kubernetes/kubernetes pull request 118601, 1.28), in the patches 1.25.13, 1.26.8 and 1.27.5 too."""
DEADLINE_WAIT = 28
"""A request waits for at most a quarter of its own deadline. Before, for a quarter of `--request-timeout`, checked only when
another request arrives at its queue. Source: `getRequestWaitContext` in priority-and-fairness.go, from 1.28.5 on."""
WATCH_LIST_RELEASES, WATCH_LIST = (32,), 34
"""A watch that begins with a list takes the seats of a list. Source: feature gate WatchList, on by default in 1.32 and from
1.34 on, and `estimate` in staging/src/k8s.io/apiserver/pkg/util/flowcontrol/request/width.go."""
SIZE_BASED_LISTS = 34
"""A list is estimated by its size and takes up to 100 seats; before, up to 10. Source: feature gate
SizeBasedListCostEstimate and `DefaultWorkEstimatorConfig` in staging/src/k8s.io/apiserver/pkg/util/flowcontrol/request/config.go."""
AUTOUPDATE = 22
"""Servers keep their built-in objects as they made them while `apf.kubernetes.io/autoupdate-spec` is "true". Source:
kubernetes/kubernetes pull request 98028; recorded: built-in objects lack the annotation in 1.21 and have it in 1.25."""
STRICT_DECODING = 25
"""Unknown and duplicate fields are errors. Source: KEP-2885, beta and so on by default in 1.25; recorded: 1.21 drops
them without a word, 1.25 answers 400."""
BORROWING = 26
"""`limited.lendablePercent` and `limited.borrowingLimitPercent`, in every version of the API that is served.
Source: KEP-1040, borrowing; recorded: unknown fields in 1.25, known in 1.26."""
EXEMPT_FIELD = 28
"""`spec.exempt`, in every version of the API that is served, and with `nominalConcurrencyShares` even in v1beta2.
Source: KEP-1040, 1.28; recorded: an unknown field in 1.26, known in 1.28."""
PRESERVE_ZERO = 29
"""The annotation `flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares` means something. Source:
kubernetes/kubernetes pull request 121089; recorded: a plain annotation in 1.28; in 1.29 heeded in v1beta3, and refused
in every other version."""
ZERO_SHARES = 30
"""A limited level may have 0 shares. Source: feature gate ZeroLimitedNominalConcurrencyShares, off in 1.29, locked on
since 1.30 (kubernetes/kubernetes issue 121510, pull request 123001); recorded: refused in 1.29, accepted in 1.31."""

MAX_REQUESTS_INFLIGHT = 400
"""Default of the flag `--max-requests-inflight` of kube-apiserver, in every release."""
MAX_MUTATING_REQUESTS_INFLIGHT = 200
"""Default of the flag `--max-mutating-requests-inflight`."""
SERVER_CONCURRENCY = MAX_REQUESTS_INFLIGHT + MAX_MUTATING_REQUESTS_INFLIGHT
"""Seats of an API server that is started without these flags: their sum."""


class Deprecation(NamedTuple):
    """What a server's warning says about an API version: releases as `1.29`, the replacement as `v1`."""

    since: str
    removed_in: str
    replacement: str
    """The version that this release recommends instead."""


class Release(NamedTuple):
    """A minor release of Kubernetes, in its latest patch."""

    minor: int
    """36 for Kubernetes 1.36."""
    served: tuple[str, ...]
    """API versions that a server of this release serves without further switches, the newest first."""
    on_request: tuple[str, ...]
    """API versions that it serves when it is started with `--runtime-config`."""

    @property
    def name(self) -> str:
        """`1.36`."""
        return f"1.{self.minor}"

    @property
    def newest_version(self) -> str:
        """The newest API version that can be had: served by default, or where there is none, on request."""
        return (self.served or self.on_request)[0]

    @property
    def maintains_objects(self) -> bool:
        """Whether servers put their built-in objects back into shape, and mark them with the autoupdate annotation."""
        return self.minor >= AUTOUPDATE

    @property
    def strict_decoding(self) -> bool:
        """Whether unknown and duplicate fields are errors rather than dropped without a word."""
        return self.minor >= STRICT_DECODING

    @property
    def has_borrowing(self) -> bool:
        """Whether limited levels have `lendablePercent` and `borrowingLimitPercent`."""
        return self.minor >= BORROWING

    @property
    def has_exempt_field(self) -> bool:
        """Whether levels have `spec.exempt`, whose values the mandatory level `exempt` may then differ in."""
        return self.minor >= EXEMPT_FIELD

    @property
    def classifies_watches(self) -> bool:
        """Whether API Priority and Fairness classifies watches; otherwise it skips all long-running requests."""
        return self.minor >= WATCHES_CLASSIFIED

    @property
    def refuses_invalid_timeouts(self) -> bool:
        """Whether the server answers 400 to a `timeout` in the query that is not a duration, before it classifies the request."""
        return self.minor >= PARSED_TIMEOUT

    @property
    def estimates_seats(self) -> bool:
        """Whether requests may take several seats, and queues are compared by estimated work instead of by length."""
        return self.minor >= ESTIMATED_SEATS

    @property
    def estimates_watches(self) -> bool:
        """Whether a watch that begins with a list takes the seats of a list; otherwise every watch takes 1 seat."""
        return self.minor in WATCH_LIST_RELEASES or self.minor >= WATCH_LIST

    @property
    def max_list_seats(self) -> int:
        """Maximum seats of one list, or of a watch that begins with a list, at a level that sets no bound of its own."""
        return 100 if self.minor >= SIZE_BASED_LISTS else 10 if self.estimates_seats else 1

    @property
    def max_mutating_seats(self) -> int:
        """Maximum seats of one create, update, patch or delete, at a level that sets no bound of its own."""
        return 10 if self.minor >= MUTATING_SEATS else 1

    @property
    def bounds_seats_by_level(self) -> bool:
        """Whether a priority level with queues sets a bound of its own on the seats of one request."""
        return self.minor >= LEVEL_SEAT_BOUND

    @property
    def limits_wait_by_deadline(self) -> bool:
        """Whether a request waits for at most a quarter of its own deadline, rather than of `--request-timeout`."""
        return self.minor >= DEADLINE_WAIT

    def keeps_zero_shares(self, version: str, *, annotated: bool) -> bool:
        """Whether 0 shares of a limited level stay 0 where they would otherwise become the default of 30.

        `annotated`: the object carries the preserve-zero annotation, with any value. What stays 0 may still be
        refused: see `allows_zero_shares`. In v1 shares that are absent are 30 all the same; in v1beta3 absent is 0.
        """
        return version == "v1" or (version == "v1beta3" and annotated and self.minor >= PRESERVE_ZERO)

    @property
    def allows_zero_shares(self) -> bool:
        """Whether shares that are 0 after defaulting are accepted, not refused as not positive. The same in all versions."""
        return self.minor >= ZERO_SHARES

    def forbids_preserve_zero_annotation(self, version: str) -> bool:
        """Whether the preserve-zero annotation on a level is refused (Forbidden, `metadata.annotations`)."""
        return self.minor >= PRESERVE_ZERO and version != "v1beta3"

    def deprecated(self, version: str) -> Deprecation | None:
        """What servers of this release warn about `version`; None if it is not deprecated (yet), or unknown.

        The answer for a version that was removed earlier is the one that its last servers gave, but for the
        replacement, which is served in this release.
        """
        life = api_version(version)
        if life is None or life.deprecated is None or life.removed is None or self.minor < life.deprecated:
            return None
        # Recorded: 1.25 names v1beta2 for v1beta1, 1.26 names v1beta3. Only where 1.29 was made to serve v1beta2, which it
        # had removed, did it go on naming v1beta3, itself deprecated there; we say v1.
        return Deprecation(f"1.{life.deprecated}", f"1.{life.removed}", replacement=self.served[0])


def api_version(name: str) -> ApiVersion | None:
    """The life of an API version such as `v1beta3`; None if there never was one of this name."""
    return next((life for life in API_VERSIONS if life.name == name), None)


def _release(minor: int) -> Release:
    alive = [
        life for life in API_VERSIONS if life.introduced <= minor and (life.removed is None or minor < life.removed)
    ]
    # v1alpha1 could still be asked for in 1.20, the release that deprecated it; nothing else ever had to be.
    return Release(
        minor,
        served=tuple(life.name for life in alive if life.by_default),
        on_request=tuple(life.name for life in alive if not life.by_default),
    )


RELEASES = tuple(_release(minor) for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1))
"""The releases that apflint knows, the oldest first."""
NEWEST = RELEASES[-1]
"""The newest of them, the default target."""


def release(text: str) -> Release:
    """The release that a text such as `1.36`, `v1.36` or `v1.36.2` means. Raises UserError if it is not known."""
    known = f"apflint knows Kubernetes {RELEASES[0].name} to {NEWEST.name}"
    match = _SPELLING.fullmatch(text.strip())
    if match is None:
        raise UserError(f'"{text}" is not a Kubernetes release. Write it like "{NEWEST.name}"; {known}')
    minor = int(match[1])
    if OLDEST_MINOR <= minor <= NEWEST_MINOR:
        return RELEASES[minor - OLDEST_MINOR]
    if minor in (2, 3):
        # A YAML or TOML number 1.30 arrives here as 1.3.
        raise UserError(f'"{text}" is too old: {known}. Did you mean "1.{minor}0"?')
    age, nearest = ("old", RELEASES[0]) if minor < OLDEST_MINOR else ("new", NEWEST)
    raise UserError(f'"{text}" is too {age}: {known}. The nearest is "{nearest.name}"')
