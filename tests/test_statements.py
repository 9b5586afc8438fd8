"""Statements about Kubernetes that were found to be wrong: no page, message, docstring or hover text makes them again.

Each pattern describes the mistake and not one sentence, and has an example that it must find. To correct a statement, search all
places that make it, then add a row here.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SEARCHED = (
    "README.md",
    "docs/**/*.md",
    "rules/*.md",
    "editors/*/*.md",
    "apflint/**/*.py",
    "scripts/schema_descriptions.toml",
    "schemas/apflint-*.json",
)
_LINE_START = re.compile(r"""["']?\s*\n\s*(?:f?["']|[#>] )?\s*""")
"""Pattern for a line break in a sentence, which may be in a page, in a comment, or in a string of several parts."""


class Mistake(NamedTuple):
    """A wrong statement: a pattern for all of its forms, an example, and the correct statement with its source."""

    pattern: str
    example: str
    truth: str


MISTAKES = (
    Mistake(
        r"(no|without) space in any queue|(the|its) queues (of (the|its) flow )?(were|are|is) full|than its queues hold"
        r"|finds its queue full gets",
        "queue-full: the queues of the flow were full.",
        "rejected if no seat is free and the queue with the least work is full: rejectOrEnqueueToBoundLocked in queueset.go",
    ),
    Mistake(
        r"[Ll]ists take up to 10 seats[,.]",
        "Large lists take up to 10 seats, and changes more.",
        "up to 100 from 1.34 on: MaximumListSeatsLimit in request/config.go",
    ),
    Mistake(
        r"disabled,? (with|by) the flags? `--enable-priority-and-fairness|API group .{0,40}: API Priority and Fairness is disabled",
        "API Priority and Fairness is disabled, with the flags `--enable-priority-and-fairness=false`",
        "this flag leaves the API group as it is: FeatureOptions.ApplyTo in server/options/feature.go",
    ),
    Mistake(
        r"server does not report its (inflight )?flags",
        "because an API server does not report its flags",
        "from 1.36 on, /flagz does: ComponentFlagz in zpages/features/kube_features.go of component-base",
    ),
    Mistake(
        r"does not read metrics or the current load",
        "It does not read metrics or the current load of a server",
        "doctor and explain do",
    ),
    Mistake(
        r"logs `Waited for [\d.]+s due to client-side throttling[^`]*`(?! up to)",
        "the client logs `Waited for 1.2s due to client-side throttling, not priority and fairness`",
        "only up to client-go 0.32: tryThrottleWithInfo in rest/request.go",
    ),
    Mistake(
        r"[Ee]stimates for Kubernetes [\d.]+ and older are not implemented",
        "The estimates for Kubernetes 1.33 and older are not implemented.",
        "estimate_by_count in evaluate/seats.py",
    ),
    Mistake(
        r"watch caches? of (\d+ )?(controllers|clients|informers)",
        "The watch caches of 400 controllers are empty after a restart",
        "the watch cache is that of the API server: storage/cacher/watch_cache.go",
    ),
    Mistake(
        r"handSize of 1 is as bad",
        "A handSize of 1 is as bad as one that equals `queues`",
        "1.6% of one busy flow with 64 queues, and 100% if handSize equals queues",
    ),
    Mistake(
        r"neither the metrics \(up to Kubernetes 1\.25\)",
        "because neither the metrics (up to Kubernetes 1.25) nor you name the total",
        "the metrics of exempt have limits only from 1.28 on: finishQueueSetReconfigsLocked in apf_controller.go",
    ),
    Mistake(
        r"server answers one request after the other",
        "The server answers one request after the other",
        "it answers requests concurrently",
    ),
    Mistake(
        r'(restores|updates|changed ones).{0,80}(is not|unless).{0,80}"false"',
        'The server restores objects whose annotation X is not "false" within a minute.',
        'only if it is "true"; a replaced object without it stays: shouldUpdateSpec in ensurer/strategy.go, and recorded',
    ),
    Mistake(
        r"Each rejected request can cost a lease(?! or a heartbeat\. if has_leases)",
        'description = "Each rejected request can cost a lease or a heartbeat."',
        "only at levels with leases: bootstrap/default.go",
    ),
    Mistake(
        r"No API server has the priority level",
        "No API server has the priority level batch",
        "servers keep the metrics of a deleted level, so the metrics cannot show it: recorded",
    ),
    Mistake(
        r"rejects all but the smallest load",
        "The level rejects all but the smallest load.",
        "from 1.26 on, catch-all borrows: 30 seats on an idle server with 600, recorded",
    ),
    Mistake(
        r"take (borrowed|lent) seats back at any time",
        "other levels can take borrowed seats back at any time",
        "at the adjustment every 10 s, and running requests keep them: updateBorrowing in apf_controller.go",
    ),
    Mistake(
        r"(demand|seats in use|waited for|it was)[^.|]{0,40}in the last 10 seconds|demand of the last 10 seconds",
        "DEMAND: the highest number of seats in use or waited for in the last 10 seconds.",
        "in the last completed adjustment period: help texts in metrics.go",
    ),
    Mistake(
        r"(holds?|wait(s|ed)?)( each request)? for 15 s(econds)?( in vain|,|\.| and)(?! a quarter)",
        "requests waited for 15 s, or their clients left",
        "for a quarter of the timeout of each request: getRequestWaitContext in priority-and-fairness.go",
    ),
    Mistake(
        r"other queues are not affected",
        "Flows with other queues are not affected by a busy flow.",
        "they share the seats of the level, so they wait for their turn: KEP-1040",
    ),
    Mistake(
        r"Health checks do not use them",
        "Health checks do not use them.",
        "kubelets use GET; load balancers may use HEAD, which is not exempt: recorded",
    ),
    Mistake(
        r"same result as recordings of kube-apiserver for every",
        "It gives the same result as recordings of kube-apiserver for every request.",
        "the packages of kube-apiserver 1.36.2 ran with a simulated clock",
    ),
    Mistake(
        r"Leases of controllers belong to",
        "Leases of controllers belong to `leader-election`",
        "those of the control plane and of kube-system only: SuggestedFlowSchemaSystemLeaderElection",
    ),
    Mistake(
        r"except for the last request that gets seats",
        "ATTAINABLE, except for the last request that gets seats",
        "except for one request that is wider than the limit: canAccommodateSeatsLocked in queueset.go",
    ),
    Mistake(
        r"lives on seats that it borrows",
        "such a level lives on seats that it borrows",
        "with borrowingLimitPercent it borrows none, because the percentage applies to 0 seats: recorded",
    ),
    Mistake(
        r"This is a known defect",
        "This is a known defect: after the final seats",
        "recorded with the package, and no issue of Kubernetes is cited",
    ),
    Mistake(
        r"metrics of a deleted level, unchanged",
        "A server keeps the metrics of a deleted level, unchanged, until it restarts.",
        "histograms over time count on: Write in timing_histogram.go of component-base",
    ),
    Mistake(
        r"removed the ClusterRole `system:discovery`",
        "unless somebody has removed the ClusterRole `system:discovery`",
        "`/version` is granted by system:public-info-viewer as well: page RBAC of kubernetes.io",
    ),
    Mistake(
        r"no input makes apflint (run|take)|[Ww]hatever the input is",
        "no input makes apflint run for more than about two seconds",
        "the time depends on the command: docs/security.md has bounds for each",
    ),
    Mistake(
        r"watch without `resourceVersion` takes as many seats as a list",
        "From 1.35 on, a watch without `resourceVersion` takes as many seats as a list.",
        "also resourceVersion=0, and sendInitialEvents in 1.32 and from 1.34 on: list_work_estimator.go",
    ),
    Mistake(
        r"all 450 requests",
        "in one recording, all 450 requests were executed",
        "the requests of somebody else's cluster; a Reject level without seats executes one request at a time: recorded",
    ),
    Mistake(
        r"`kubectl get pods`( of all others)? (then )?fails|slow, and then fails|then fail to discover",
        "`kubectl get pods` fails for all others",
        "client-go tries again up to 10 times after a 429: maxRetries in rest/request.go",
    ),
    Mistake(
        r"server crashes when it dispatches",
        "the server crashes when it dispatches one of them",
        "a panic of the package, recorded outside of a server; only that of a release of seats ends a server: eventclock/real.go",
    ),
    Mistake(
        r"[Ee]ach kubelet lists its pods",
        "Each kubelet lists its pods when it starts.",
        "from client-go 0.35 on, reflectors watch with sendInitialEvents: WatchListClient in features/known_features.go",
    ),
    Mistake(
        r"without a known size[^|]{0,80}The server does the same for",
        "without a known size. The report counts them. The server does the same for resources of aggregated API servers.",
        "without a size it assumes 1.5 MB for each object: seatsBasedOnObjectSize in list_work_estimator.go",
    ),
    Mistake(
        r"are not rejections by API Priority and Fairness(?! of kube-apiserver)",
        "Other answers 429 are not rejections by API Priority and Fairness.",
        "an aggregated API server may reject a request by its own: server/options/feature.go",
    ),
    Mistake(
        r"apf-queue-wait[^|]{0,250}1\.27|has it before Kubernetes 1\.27",
        "(`apiserver.latency.k8s.io/apf-queue-wait`), only from Kubernetes 1.27 on",
        "1.27 tracks the wait, but the annotation is new in 1.31: AuditAnnotationsFromLatencyTrackers in webhook_duration.go",
    ),
    Mistake(
        r"apply it:[^#]{0,30}kubectl annotate",
        "Set the annotation in the manifest, and apply it: ```sh kubectl annotate",
        "the annotation alone leaves the built-in spec, until the manifest is applied: recorded",
    ),
    Mistake(
        r"gcloud logging read '[^']*'(?! --freshness)",
        "`gcloud logging read 'resource.type=\"k8s_cluster\"' --format=json`",
        "gcloud reads the last day only, unless --freshness or a filter for the time says otherwise",
    ),
    Mistake(
        r"`system-leader-election` matches more",
        "`endpoint-controller` is new, and `system-leader-election` matches more requests",
        "from 1.24 on it matches only leases: bootstrap/default.go, and recorded defaults of 1.22 and 1.25",
    ),
    Mistake(
        r"do not call an admission webhook themselves",
        "The rules match only requests that do not call an admission webhook themselves.",
        "webhooks with rules for all resources are called for reviews: IsExemptAdmissionConfigurationResource in rules.go",
    ),
    Mistake(
        r"clusters have \d+ to \d+ FlowSchemas",
        "clusters have 13 to 60 FlowSchemas",
        "no source is known",
    ),
)


@cache
def read_texts() -> dict[str, str]:
    """Return the texts of the files that match `SEARCHED`, by path. Each sentence is on one line."""
    paths = (path for pattern in SEARCHED for path in sorted(ROOT.glob(pattern)))
    return {str(path.relative_to(ROOT)): _LINE_START.sub(" ", path.read_text(encoding="utf-8")) for path in paths}


def test_all_kinds_of_text_are_searched() -> None:
    assert len(read_texts()) > 300
    assert "A request waits" in read_texts()["apflint/doctor/capacity_findings.py"]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.example[:40] for mistake in MISTAKES])
def test_mistake_is_not_repeated(mistake: Mistake) -> None:
    assert re.search(mistake.pattern, _LINE_START.sub(" ", mistake.example.replace(" of ", " of\n"))), (
        "misses its example"
    )
    found = {
        f"{name}: {match[0]}" for name, text in read_texts().items() for match in re.finditer(mistake.pattern, text)
    }
    assert not found, mistake.truth
