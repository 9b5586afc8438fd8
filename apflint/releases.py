"""The Kubernetes releases that apflint knows, 1.18 to 1.37, and the differences between them, each with its source.

"Recorded" means observed on running kube-apiservers (1.21.1, 1.25.10, 1.26.5, 1.28.3, 1.29.1, 1.31.14, 1.36.2). 1.37 was not
recorded: according to its sources, its flowcontrol group is that of 1.36. The objects that each release creates are in
`apflint.builtin`. Paths of sources are relative to staging/src/k8s.io/apiserver/pkg unless they start with another directory.
"""

from __future__ import annotations

import re

from apflint.errors import UserError
from apflint.record import NamedTuple
from apflint.spelling import suggest
from apflint.wording import join_words, quote

# `1.36`, `v1.36`, `1.36.2`, and versions of vendors: `v1.36.2-gke.100`, `v1.36.2+k3s1`.
_VERSION = re.compile(r"v?1\.(0|[1-9]\d{0,2})(?:\.\d+)?(?:[-+].*)?", re.ASCII)
OLDEST_MINOR, NEWEST_MINOR = 18, 37
GROUP = "flowcontrol.apiserver.k8s.io"
"""The API group of FlowSchema and PriorityLevelConfiguration."""
BORROWING_MINOR = 26
"""Minor release that added borrowing (see `Release.has_borrowing`)."""
EXEMPT_FIELD_MINOR = 28
"""Minor release that added `spec.exempt` (see `Release.has_exempt_field`)."""
PRESERVE_ZERO_MINOR = 29
"""Minor release that added the preserve-zero annotation (see `Release.keeps_zero_shares`)."""
SERVER_CONCURRENCY = 400 + 200
"""Default seats of an API server: the sum of its flags `--max-requests-inflight` and `--max-mutating-requests-inflight`."""


class ApiVersion(NamedTuple):
    """The life of a version of the API group, in minor releases of Kubernetes 1. None: never, so far."""

    name: str
    introduced: int
    deprecated: int | None
    removed: int | None
    by_default: bool
    """False if servers served it only with `--runtime-config`."""


# Source: the prerelease-lifecycle marks in staging/src/k8s.io/api/flowcontrol/*/types.go, from which servers create deprecation
# warnings. Recorded: the warnings and the lists of served versions. v1alpha1 is disabled by DefaultAPIResourceConfigSource in
# pkg/controlplane/instance.go (1.18 and 1.19: pkg/master/master.go).
API_VERSIONS = (
    ApiVersion("v1", 29, None, None, by_default=True),
    ApiVersion("v1beta3", 26, 29, 32, by_default=True),
    ApiVersion("v1beta2", 23, 26, 29, by_default=True),
    ApiVersion("v1beta1", 20, 23, 26, by_default=True),
    ApiVersion("v1alpha1", 18, 20, 21, by_default=False),
)
"""All versions, the newest first."""


class Deprecation(NamedTuple):
    """The content of a server's warning about an API version."""

    since: str
    """A release, such as `1.29`."""
    removed_in: str
    replacement: str
    """The API version that this release recommends instead."""


class Release(NamedTuple):
    """A minor release of Kubernetes, in its latest patch."""

    minor: int
    """36 for Kubernetes 1.36."""
    served: tuple[str, ...]
    """API versions that a server serves by default, the newest first."""
    on_request: tuple[str, ...]
    """API versions that a server serves with `--runtime-config`."""

    @property
    def name(self) -> str:
        """`1.36`."""
        return f"1.{self.minor}"

    @property
    def newest_version(self) -> str:
        """The newest API version that is served by default, or else on request."""
        return (self.served or self.on_request)[0]

    @property
    def maintains_objects(self) -> bool:
        """Whether servers update built-in objects whose annotation `apf.kubernetes.io/autoupdate-spec` is "true".

        Source: kubernetes/kubernetes pull request 98028. Recorded: built-in objects have the annotation in 1.25, not in 1.21.
        """
        return self.minor >= 22

    @property
    def strict_decoding(self) -> bool:
        """Whether unknown and duplicate fields are errors; otherwise servers drop them silently.

        Source: KEP-2885, beta and so on by default in 1.25. Recorded: 1.21 drops them, 1.25 answers 400.
        """
        return self.minor >= 25

    @property
    def has_borrowing(self) -> bool:
        """Whether limited levels have `lendablePercent` and `borrowingLimitPercent`, in every served API version.

        Source: KEP-1040, borrowing. Recorded: unknown fields in 1.25, known in 1.26.
        """
        return self.minor >= BORROWING_MINOR

    @property
    def has_exempt_field(self) -> bool:
        """Whether levels have `spec.exempt`, in every served API version, with `nominalConcurrencyShares` even in v1beta2.

        Source: KEP-1040, 1.28. Recorded: an unknown field in 1.26, known in 1.28.
        """
        return self.minor >= EXEMPT_FIELD_MINOR

    @property
    def classifies_watches(self) -> bool:
        """Whether API Priority and Fairness classifies watches; otherwise it skips all long-running requests.

        Source: `WithPriorityAndFairness` in server/filters/priority-and-fairness.go, by tag.
        """
        return self.minor >= 22

    @property
    def refuses_invalid_timeouts(self) -> bool:
        """Whether servers answer 400 to a query parameter `timeout` that is not a duration, before they classify the request.

        Source: `WithRequestDeadline` in endpoints/filters/request_deadline.go, since 1.21. Recorded on 1.36.2.
        """
        return self.minor >= 21

    @property
    def estimates_seats(self) -> bool:
        """Whether a list may take several seats, and a request waits in the queue with the least estimated work.

        Otherwise every request takes one seat and waits in the queue with the fewest requests. Source:
        util/flowcontrol/request/list_work_estimator.go and `shuffleShardLocked` in fairqueuing/queueset/queueset.go, by tag.
        """
        return self.minor >= 23

    @property
    def estimates_watches(self) -> bool:
        """Whether a watch that begins with a list takes the seats of a list; otherwise every watch takes 1 seat.

        Source: feature gate WatchList, on by default in 1.32 and from 1.34 on, and `estimate` in
        util/flowcontrol/request/width.go.
        """
        return self.minor == 32 or self.minor >= 34

    @property
    def max_list_seats(self) -> int:
        """Maximum seats of a list, or of a watch that begins with a list, at a level without its own bound.

        Source: feature gate SizeBasedListCostEstimate and `DefaultWorkEstimatorConfig` in util/flowcontrol/request/config.go.
        """
        return 100 if self.minor >= 34 else 10 if self.estimates_seats else 1

    @property
    def max_mutating_seats(self) -> int:
        """Maximum seats of a create, update, patch or delete, at a level without its own bound.

        Source: `enableMutatingWorkEstimator` in util/flowcontrol/request/mutating_work_estimator.go, off in 1.23.
        """
        return 10 if self.minor >= 24 else 1

    @property
    def bounds_seats_by_level(self) -> bool:
        """Whether a priority level with queues bounds the seats of one request.

        Source: `priorityLevelMaxSeatsPercent` in util/flowcontrol/apf_controller.go (kubernetes/kubernetes pull request 118601,
        1.28), in the patches 1.25.13, 1.26.8 and 1.27.5 too.
        """
        return self.minor >= 25

    @property
    def limits_wait_by_deadline(self) -> bool:
        """Whether a request waits at most a quarter of its own deadline.

        Otherwise it waits a quarter of `--request-timeout`, checked only when another request arrives at its queue. Source:
        `getRequestWaitContext` in server/filters/priority-and-fairness.go, from 1.28.5 on.
        """
        return self.minor >= 28

    def keeps_zero_shares(self, version: str, *, annotated: bool) -> bool:
        """Return whether 0 shares of a limited level stay 0 instead of becoming the default of 30.

        `annotated`: the object has the preserve-zero annotation, with any value. Absent shares are 30 in v1 and 0 in v1beta3.
        Shares that stay 0 may still be rejected (`allows_zero_shares`). Source: kubernetes/kubernetes pull request 121089.
        Recorded: a plain annotation in 1.28; respected in v1beta3 and rejected in every other version in 1.29.
        """
        return version == "v1" or (version == "v1beta3" and annotated and self.minor >= PRESERVE_ZERO_MINOR)

    @property
    def allows_zero_shares(self) -> bool:
        """Whether a limited level may have 0 shares after defaulting, in all API versions.

        Source: feature gate ZeroLimitedNominalConcurrencyShares, off in 1.29, locked on since 1.30 (kubernetes/kubernetes
        issue 121510, pull request 123001). Recorded: rejected in 1.29, accepted in 1.31.
        """
        return self.minor >= 30

    def forbids_preserve_zero_annotation(self, version: str) -> bool:
        """Return whether the preserve-zero annotation on a level is rejected (Forbidden, `metadata.annotations`)."""
        return self.minor >= PRESERVE_ZERO_MINOR and version != "v1beta3"

    def deprecated(self, version: str) -> Deprecation | None:
        """Return the content of the warning about an API version, or None if it is not deprecated, or unknown.

        For a version that was removed earlier, this is the warning of its last servers with a replacement of this release.
        """
        life = api_version(version)
        if life is None or life.deprecated is None or life.removed is None or self.minor < life.deprecated:
            return None
        # Recorded: 1.25 names v1beta2 for v1beta1, 1.26 names v1beta3. A 1.29 server that is forced to serve v1beta2 names
        # v1beta3, which is deprecated there; here it is v1.
        return Deprecation(f"1.{life.deprecated}", f"1.{life.removed}", replacement=self.served[0])


def api_version(name: str) -> ApiVersion | None:
    """Return the life of an API version such as `v1beta3`, or None if it does not exist."""
    return next((life for life in API_VERSIONS if life.name == name), None)


def _make_release(minor: int) -> Release:
    served = [life for life in API_VERSIONS if life.introduced <= minor and (not life.removed or minor < life.removed)]
    # 1.20 deprecated v1alpha1 and still served it on request.
    return Release(
        minor,
        served=tuple(life.name for life in served if life.by_default),
        on_request=tuple(life.name for life in served if not life.by_default),
    )


RELEASES = tuple(_make_release(minor) for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1))
"""The known releases, the oldest first."""
NEWEST = RELEASES[-1]
"""The default target."""


def parse_api_version(text: str) -> str:
    """Return `v1` for `v1` or `flowcontrol.apiserver.k8s.io/v1`. Raises UserError for an unknown version."""
    version = text.removeprefix(f"{GROUP}/")
    if api_version(version) is None:
        names = [life.name for life in API_VERSIONS]
        raise UserError(f"unknown API version {quote(text)}: use {join_words(names)}.{suggest(text, names)}")
    return version


def parse_release(text: str) -> Release:
    """Return the release of `1.36`, `v1.36` or `v1.36.2`. Raises UserError if it is not known."""
    known = f"apflint knows Kubernetes {RELEASES[0].name} to {NEWEST.name}"
    match = _VERSION.fullmatch(text.strip())
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
