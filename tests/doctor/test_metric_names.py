"""The metrics of each release equal the metrics in metrics.go at the first and the last patch of the release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apflint.doctor import metric_names
from apflint.doctor.metric_names import PREFIX, QUANTITIES, Quantity, name_in
from apflint.releases import RELEASES, parse_release


@pytest.mark.parametrize(("quantity", "names"), [
    (metric_names.DISPATCHED, {"1.18": "dispatched_requests_total", "1.37": "dispatched_requests_total"}),
    (metric_names.SEATS_IN_USE, {
        "1.21": None,
        "1.22": "request_concurrency_in_use",
        "1.27": "request_concurrency_in_use",
        "1.28": "current_executing_seats",
        "1.37": "current_executing_seats",
    }),
    (metric_names.WIDTHS, {"1.23": None, "1.24": "work_estimated_seats_bucket", "1.37": "work_estimated_seats_bucket"}),
    (metric_names.NOMINAL, {"1.18": "request_concurrency_limit", "1.25": "request_concurrency_limit", "1.26": "nominal_limit_seats"}),
    (metric_names.DEMAND_SMOOTHED, {"1.25": None, "1.26": "demand_seats_smoothed"}),
])  # fmt: skip
def test_name_of_a_metric_in_a_release(quantity: Quantity, names: dict[str, str | None]) -> None:
    for release, name in names.items():
        assert name_in(quantity, parse_release(release)) == (name and f"{PREFIX}{name}"), release


@pytest.mark.parametrize(("name", "last"), [
    (f"{PREFIX}request_concurrency_limit", 30),
    (f"{PREFIX}request_concurrency_in_use", 31),
    ("etcd_object_counts", 22),
    # 1.34 deprecates this stable metric. Servers of 1.35 and later hide a stable metric three releases after its
    # deprecation.
    ("apiserver_storage_objects", 36),
])  # fmt: skip
def test_last_release_of_a_deprecated_metric(name: str, last: int) -> None:
    (metric,) = (one for quantity in QUANTITIES for one in quantity.metrics if one.name == name)
    assert metric.until == last


def test_page_has_the_metrics_and_their_releases() -> None:
    """The page lists the metrics that the diagnosis reads, except those of the server's release, start and age."""
    text = (Path(__file__).resolve().parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")
    shown = {}
    for names, first, last in re.findall(
        r"^\|[^|]*\| (`[^|]*`) \| (?:from )?1\.(\d+)(?: to 1\.(\d+))? \|$", text, re.MULTILINE
    ):
        for name in re.findall(r"`(\w+)`", names):
            full = name if name.startswith(("apiserver_", "etcd_")) else f"{PREFIX}{name}"
            shown[full] = int(first), int(last) if last else None
    known = {
        metric.name.removesuffix("_bucket"): (metric.since, metric.until)
        for quantity in QUANTITIES
        for metric in quantity.metrics
    }
    unlisted = {
        f"{PREFIX}demand_seats_count",
        "process_start_time_seconds",
        "kubernetes_build_info",
    }
    assert shown == {name: releases for name, releases in known.items() if name not in unlisted}


def test_every_release_has_the_metrics_that_alerts_need() -> None:
    for release in RELEASES:
        for quantity in (metric_names.NOMINAL, metric_names.REJECTED, metric_names.WAITS, metric_names.DISPATCHED):
            assert name_in(quantity, release) is not None, (release.name, quantity.label)
