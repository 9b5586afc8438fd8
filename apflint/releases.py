"""The Kubernetes releases that apflint knows, 1.18 to 1.37, and the differences between them with their sources.

Recordings are responses of running kube-apiservers (1.21.1, 1.25.10, 1.26.5, 1.28.3, 1.29.1, 1.31.14, 1.36.2). There
are no recordings of 1.37. The properties of 1.37 come from kubernetes/api, apimachinery, apiserver and component-base,
read at v0.37.0-beta.0 and at the master branch of 2026-07-24, and from merged pull requests. In these sources, 1.37
differs from 1.36 only in `reports_missing_types_as_required` and `checks_fields_of_invalid_types`, and in metrics
(`apflint.doctor.metric_names`).

`apflint.builtin` has the objects that each release creates. Paths of sources are relative to
staging/src/k8s.io/apiserver/pkg, unless they start with another directory.
"""

from __future__ import annotations

import re

from apflint.named_tuple import NamedTuple
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import join_words, quote

# Accepts `1.36`, `v1.36`, `1.36.2`, and versions of vendors: `v1.36.2-gke.100`, `v1.36.2+k3s1`.
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
OLDEST_SIMULATED_MINOR = 31
"""Oldest minor release that can be simulated: `apflint.simulate.borrowing` adjusts limits as this and later releases do."""
SERVER_CONCURRENCY = 400 + 200
"""Default number of seats of an API server: `--max-requests-inflight` plus `--max-mutating-requests-inflight`."""


_DEPRECATION_GUIDE = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"
_FIRST_IN_GUIDE = 26
"""The first release with a section about this API group in the guide. 1.21, which removed v1alpha1, has no section."""


class ApiVersion(NamedTuple):
    """An API version, and the minor releases (29 for 1.29) that introduced, deprecated and removed it.

    `deprecated` or `removed` is None if no release has deprecated or removed the version yet.
    """

    name: str
    introduced: int
    deprecated: int | None
    removed: int | None
    by_default: bool
    """Whether servers serve the version without `--runtime-config`."""

    @property
    def releases(self) -> str:
        """The releases that serve the version, such as `1.26 to 1.31` or `1.29 and later`."""
        return f"1.{self.introduced} {'and later' if self.removed is None else f'to 1.{self.removed - 1}'}"

    @property
    def source(self) -> str | None:
        """URL of the section of Kubernetes' deprecation guide about the removal or introduction of the version.

        None if the guide does not cover the version.
        """
        stated_in = self.removed or self.introduced
        return None if stated_in < _FIRST_IN_GUIDE else f"{_DEPRECATION_GUIDE}#flowcontrol-resources-v1{stated_in}"


# Source: the prerelease-lifecycle tags in staging/src/k8s.io/api/flowcontrol/*/types.go, from which servers create
# deprecation warnings. The warnings and the lists of served versions that were recorded on kube-apiservers agree with
# the table. DefaultAPIResourceConfigSource in pkg/controlplane/instance.go (1.18 and 1.19: pkg/master/master.go)
# disables v1alpha1.
API_VERSIONS = (
    ApiVersion("v1", 29, None, None, by_default=True),
    ApiVersion("v1beta3", 26, 29, 32, by_default=True),
    ApiVersion("v1beta2", 23, 26, 29, by_default=True),
    ApiVersion("v1beta1", 20, 23, 26, by_default=True),
    ApiVersion("v1alpha1", 18, 20, 21, by_default=False),
)
"""All versions of the API group, the newest first."""


class Deprecation(NamedTuple):
    """The facts in the deprecation warning of a server for an API version."""

    since: str
    """The release that deprecated the version, such as `1.29`."""
    removed_in: str
    replacement: str
    """The API version to use instead in the target release."""


class Release(NamedTuple):
    """A minor release of Kubernetes. The properties describe the latest patch release of this minor release."""

    minor: int
    """The minor version number: 36 for Kubernetes 1.36."""
    served: tuple[str, ...]
    """API versions that a server serves by default, the newest first."""
    on_request: tuple[str, ...]
    """API versions that a server serves with `--runtime-config`."""

    @property
    def name(self) -> str:
        """The major and minor version, such as `1.36`."""
        return f"1.{self.minor}"

    @property
    def newest_version(self) -> str:
        """The newest API version that servers serve by default.

        If servers serve no version by default, the newest version that they serve with `--runtime-config`.
        """
        return (self.served or self.on_request)[0]

    @property
    def maintains_objects(self) -> bool:
        """Whether servers update built-in objects whose annotation `apf.kubernetes.io/autoupdate-spec` is "true".

        Source: kubernetes/kubernetes pull request 98028. Built-in objects that were recorded on a kube-apiserver 1.25
        have the annotation. Those recorded on 1.21 do not have it.
        """
        return self.minor >= 22

    @property
    def strict_decoding(self) -> bool:
        """Whether servers reject objects with unknown or duplicate fields. Earlier servers silently drop such fields.

        Source: KEP-2885, on by default (beta) in 1.25. In recordings, a kube-apiserver 1.21 drops unknown fields, and
        1.25 answers 400.
        """
        return self.minor >= 25

    @property
    def has_borrowing(self) -> bool:
        """Whether every served API version has `lendablePercent` and `borrowingLimitPercent` in limited levels.

        Source: KEP-1040, borrowing. Recordings show that a kube-apiserver 1.25 does not know the fields, and
        1.26 knows them.
        """
        return self.minor >= BORROWING_MINOR

    @property
    def has_exempt_field(self) -> bool:
        """Whether every served API version has the field `spec.exempt` in levels.

        The shares in `spec.exempt` are called `nominalConcurrencyShares`, even in v1beta2. Source: KEP-1040, 1.28.
        Recordings show that a kube-apiserver 1.26 does not know the field, and 1.28 knows it.
        """
        return self.minor >= EXEMPT_FIELD_MINOR

    @property
    def allocates_seats_to_exempt(self) -> bool:
        """Whether servers allocate seats to the level `exempt` in the same way as to a limited level.

        True from 1.28 to 1.30. From 1.31 on, servers allocate all seats to limited levels. Source:
        `updateBorrowingLocked` in util/flowcontrol/apf_controller.go. A recording from a kube-apiserver 1.36.2 confirms
        that limited levels get all seats.
        """
        return EXEMPT_FIELD_MINOR <= self.minor <= 30

    @property
    def classifies_watches(self) -> bool:
        """Whether API Priority and Fairness classifies watches.

        Earlier releases do not classify any long-running requests. Source: `WithPriorityAndFairness` in
        server/filters/priority-and-fairness.go at the tag of each release.
        """
        return self.minor >= 22

    @property
    def refuses_invalid_timeouts(self) -> bool:
        """Whether servers answer 400 if the query parameter `timeout` of a request is not a duration.

        Servers do not classify such a request.

        Source: `WithRequestDeadline` in endpoints/filters/request_deadline.go, since 1.21. A recording from a
        kube-apiserver 1.36.2 confirms this.
        """
        return self.minor >= 21

    @property
    def estimates_seats(self) -> bool:
        """Whether servers estimate the number of seats that a request takes.

        If true, a list request may take several seats, and a request is added to the queue of its hand with the least
        estimated work. If false, every request takes one seat, and is added to the queue of its hand with the fewest
        requests. Source: util/flowcontrol/request/list_work_estimator.go and `shuffleShardLocked` in
        util/flowcontrol/fairqueuing/queueset/queueset.go at the tag of each release.
        """
        return self.minor >= 23

    @property
    def estimates_watches(self) -> bool:
        """Whether a watch that begins with a list takes as many seats as a list request.

        If false, every watch takes 1 seat. Source: `estimate` in util/flowcontrol/request/width.go, and the feature
        gate WatchList, which is on by default in 1.32, off in 1.33, and on from 1.34 on.
        """
        return self.minor == 32 or self.minor >= 34

    @property
    def estimates_unversioned_watches(self) -> bool:
        """Whether a watch whose resource version is empty or 0 takes as many seats as a list request.

        Such a watch begins with the existing objects. Source: kubernetes/kubernetes pull request 134601.
        """
        return self.minor >= 35

    @property
    def estimates_seats_by_size(self) -> bool:
        """Whether servers compute the seats of a list request from the size of the objects.

        Earlier releases compute the seats from the number of objects. Source: feature gate SizeBasedListCostEstimate,
        which 1.34 added, and which is on by default.
        """
        return self.minor >= 34

    @property
    def max_list_seats(self) -> int:
        """Maximum number of seats of a list request, or of a watch that begins with a list.

        A priority level may lower the maximum.

        Source: feature gate SizeBasedListCostEstimate and `DefaultWorkEstimatorConfig` in util/flowcontrol/request/config.go.
        """
        return 100 if self.estimates_seats_by_size else 10 if self.estimates_seats else 1

    @property
    def max_mutating_seats(self) -> int:
        """Maximum number of seats of a create, update, patch or delete request. A priority level may lower the maximum.

        Source: `enableMutatingWorkEstimator` in util/flowcontrol/request/mutating_work_estimator.go, off in 1.23.
        """
        return 10 if self.minor >= 24 else 1

    @property
    def bounds_seats_by_level(self) -> bool:
        """Whether a priority level with queues limits the seats of one request.

        Source: `priorityLevelMaxSeatsPercent` in util/flowcontrol/apf_controller.go (kubernetes/kubernetes pull request 118601,
        1.28, and the patches 1.25.13, 1.26.8 and 1.27.5).
        """
        return self.minor >= 25

    @property
    def limits_wait_by_deadline(self) -> bool:
        """Whether a request waits in its queue for at most a quarter of its own timeout.

        If false, a request waits for at most a quarter of `--request-timeout`, and the server rejects the request only
        when another request arrives at the queue after this time. Source: `getRequestWaitContext` in
        server/filters/priority-and-fairness.go, from 1.28.5 on.
        """
        return self.minor >= 28

    def keeps_zero_shares(self, version: str, *, annotated: bool) -> bool:
        """Return whether the server keeps 0 shares of a limited level, instead of replacing 0 by the default of 30.

        `annotated` is true if the object has the preserve-zero annotation, with any value. A server that keeps 0 shares
        may still reject the object (`allows_zero_shares`). Source: kubernetes/kubernetes pull request 121089. In
        recordings, a kube-apiserver 1.28 ignores the annotation. A kube-apiserver 1.29 respects the annotation in
        v1beta3, and rejects the annotation in every other version.
        """
        return version == "v1" or (version == "v1beta3" and annotated and self.minor >= PRESERVE_ZERO_MINOR)

    @property
    def allows_zero_shares(self) -> bool:
        """Whether servers accept a limited level whose shares are 0 after defaulting, in every API version.

        Source: feature gate ZeroLimitedNominalConcurrencyShares, off in 1.29, locked on since 1.30
        (kubernetes/kubernetes issue 121510, pull request 123001). In recordings, a kube-apiserver 1.29 rejects 0
        shares, and 1.31 accepts 0 shares.
        """
        return self.minor >= 30

    @property
    def reports_missing_types_as_required(self) -> bool:
        """Whether servers reject a missing type of a level or of `limitResponse` with the reason FieldValueRequired.

        Earlier releases give the reason FieldValueNotSupported, as for an unknown type. Source: kubernetes/kubernetes
        pull request 138740. Pull request 139366 ports the change to 1.36, but 1.36.2 does not contain the change: a
        recorded response of a kube-apiserver 1.36.2 has the reason FieldValueNotSupported.
        """
        return self.minor >= 37

    @property
    def checks_fields_of_invalid_types(self) -> bool:
        """Whether servers check `limited`, `exempt` and `limitResponse` of a level even if a type is invalid.

        The types are `spec.type` and `limitResponse.type`. A type is invalid if it is missing, unknown or
        not allowed. Releases before 1.37 check the fields only if the types are valid. Sources: the rules
        `modeDiscriminator` and `ifMode` in staging/src/k8s.io/api/flowcontrol/v1/types.go, which are alpha
        in 1.36 and beta in 1.37 (kubernetes/kubernetes pull request 140166), the feature gate
        DeclarativeValidationBeta, which is on by default since 1.36, and `Discriminated` in
        staging/src/k8s.io/apimachinery/pkg/api/validate/discriminator.go.
        """
        return self.minor >= 37

    def forbids_preserve_zero_annotation(self, version: str) -> bool:
        """Return whether servers reject a level that has the preserve-zero annotation, with the reason Forbidden."""
        return self.minor >= PRESERVE_ZERO_MINOR and version != "v1beta3"

    def deprecated(self, version: str) -> Deprecation | None:
        """Return the facts in the server's deprecation warning for an API version.

        Return None if the version is unknown or not deprecated. If the version was removed before this release,
        `replacement` is still an API version that this release serves.
        """
        life = api_version(version)
        if life is None or life.deprecated is None or life.removed is None or self.minor < life.deprecated:
            return None
        # Recorded warnings about v1beta1 suggest the newest version of the release: v1beta2 on 1.25, and v1beta3 on
        # 1.26. If a 1.29 server is forced to serve v1beta2, the warning about v1beta2 suggests v1beta3, although 1.29
        # deprecates v1beta3. This function returns v1 instead.
        return Deprecation(f"1.{life.deprecated}", f"1.{life.removed}", replacement=self.served[0])


def api_version(name: str) -> ApiVersion | None:
    """Return the entry of `API_VERSIONS` for a name such as `v1beta3`, or None if there is no such version."""
    return next((life for life in API_VERSIONS if life.name == name), None)


def _make_release(minor: int) -> Release:
    served = [life for life in API_VERSIONS if life.introduced <= minor and (not life.removed or minor < life.removed)]
    # `deprecated` is not considered, because deprecated versions are still served: 1.20, for example, serves v1alpha1.
    return Release(
        minor,
        served=tuple(life.name for life in served if life.by_default),
        on_request=tuple(life.name for life in served if not life.by_default),
    )


RELEASES = tuple(_make_release(minor) for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1))
"""All releases that apflint knows, the oldest first."""
NEWEST = RELEASES[-1]
"""The newest release, which is the default target."""


def parse_api_version(text: str) -> str:
    """Return the API version, such as `v1`, from `v1` or `flowcontrol.apiserver.k8s.io/v1`. Raises UserError for an unknown version."""
    version = text.removeprefix(f"{GROUP}/")
    if api_version(version) is None:
        names = [life.name for life in API_VERSIONS]
        raise UserError(f"unknown API version {quote(text)}: use {join_words(names)}.{suggest(text, names)}")
    return version


def parse_release(text: str) -> Release:
    """Parse a release written like `1.36`, `v1.36` or `v1.36.2`. Raises UserError for an unknown release."""
    known = f"apflint knows Kubernetes {RELEASES[0].name} to {NEWEST.name}"
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise UserError(f'"{text}" is not a Kubernetes release. Write it like "{NEWEST.name}"; {known}')
    minor = int(match[1])
    if OLDEST_MINOR <= minor <= NEWEST_MINOR:
        return RELEASES[minor - OLDEST_MINOR]
    if minor in (2, 3):
        # YAML and TOML parse an unquoted 1.30 as the number 1.3.
        raise UserError(f'"{text}" is too old: {known}. Did you mean "1.{minor}0"?')
    age, nearest = ("old", RELEASES[0]) if minor < OLDEST_MINOR else ("new", NEWEST)
    raise UserError(f'"{text}" is too {age}: {known}. The nearest release is "{nearest.name}"')
