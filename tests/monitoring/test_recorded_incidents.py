"""Alerts for the recorded series of incidents.

Each alert fires within two minutes of the start of its incident. For healthy servers, no alert fires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.promtool import find_alerts, needs_promtool
from support.series import KUBE_APISERVER, NAMES, list_input_series, read_recording

from apflint.monitoring.alerts import build_alerts
from apflint.output.alerts import render_alerts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_promtool

EXPECTED = {
    "catch-all": {("APFRequestsRejected", "catch-all"), ("APFRequestsAtCatchAll", "catch-all")},
    "client-timeouts": {("APFRequestsRejected", "apps"), ("APFLongWaits", "apps")},
    "etcd-slow": {
        ("APFSlowEtcd", ""),
        ("APFLongWaits", "workload-low"),
        ("APFLongWaits", "global-default"),
        ("APFRequestsRejected", "workload-low"),
    },
    "exempt-abuse": {
        ("APFExemptSeats", ""),
        ("APFLongWaits", "workload-low"),
        ("APFRequestsRejected", "workload-low"),
    },
    "flood-one-flow": {("APFRequestsRejected", "workload-low")},
    "imbalance": {("APFLongWaits", "workload-low")},
    "inversion": {
        ("APFSlowWebhook", "authz.policy.example.com"),
        ("APFSlowRequests", "workload-low"),
        ("APFLongWaits", "workload-low"),
        ("APFRequestsRejected", "workload-low"),
    },
    "leader-election-starved": {("APFLongWaits", "leader-election"), ("APFRequestsRejected", "leader-election")},
    "leases-captured": {
        ("APFLongWaits", "platform"),
        ("APFRequestsRejected", "platform"),
        ("APFSaturated", "platform"),
    },
    "list-heavy": {("APFLongWaits", "workload-low")},
    "restart": {("APFLongWaits", "workload-low")},
    "single-flow": {("APFLongWaits", "batch")},
    "slow-webhook": {
        ("APFSlowWebhook", "policy.payments.example.com"),
        ("APFSlowRequests", "workload-low"),
        ("APFLongWaits", "workload-low"),
        ("APFRequestsRejected", "workload-low"),
    },
    "small-level": {("APFRequestsRejected", "reporting")},
    "watch-init-storm": {("APFLongWaits", "workload-low"), ("APFRequestsRejected", "workload-low")},
}
"""(alert name, priority level or webhook) of the alerts that fire within two minutes of the start of the cause.

Other recordings fire no alert.
"""


def rules_of(name: str) -> str:
    return render_alerts(build_alerts(read_recording(name).effective), is_object=False)


def test_each_incident_is_expected_to_fire() -> None:
    unhealthy = {name for name in NAMES if not read_recording(name).is_healthy}
    assert unhealthy == set(EXPECTED)
    assert len(NAMES) - len(unhealthy) == 9


@pytest.mark.parametrize("name", NAMES)
def test_incident(name: str, tmp_path: Path) -> None:
    recording = read_recording(name)
    until = 300 if recording.started is None else int(recording.started) + 120
    found = find_alerts(tmp_path, rules_of(name), list_input_series(recording, KUBE_APISERVER), until)
    assert set(found) == EXPECTED.get(name, set()), found


@pytest.mark.parametrize("name", ["small-level", "list-heavy-fixed", "exempt-abuse"])
def test_other_servers_in_the_same_prometheus(name: str, tmp_path: Path) -> None:
    """An overloaded server of another job, and a healthy server of another cluster, do not change the alerts."""
    recording = read_recording(name)
    until = int(recording.started or 0) + 120
    series = [
        *list_input_series(recording, KUBE_APISERVER),
        *list_input_series(read_recording("leases-captured"), {**KUBE_APISERVER, "job": "metrics-server"}),
        *list_input_series(read_recording("slow-webhook"), {"job": "aggregated", "instance": "192.0.2.9:443"}),
        *list_input_series(read_recording("healthy-busy"), {**KUBE_APISERVER, "cluster": "other"}),
    ]
    assert set(find_alerts(tmp_path, rules_of(name), series, until)) == EXPECTED.get(name, set())


def test_alert_names_the_server_with_the_load(tmp_path: Path) -> None:
    """Only one of two servers of a cluster is overloaded, and the alert names this server."""
    series = [
        *list_input_series(read_recording("imbalance"), KUBE_APISERVER),
        *list_input_series(read_recording("imbalance-peer"), {**KUBE_APISERVER, "instance": "192.0.2.2:6443"}),
    ]
    found = find_alerts(tmp_path, rules_of("imbalance"), series, 130, label="instance")
    assert set(found) == {("APFLongWaits", "192.0.2.1:6443")}


def test_new_label_of_a_target_fires_nothing(tmp_path: Path) -> None:
    """A change of the scrape configuration ends all series of a server and starts new series. This fires no alert."""
    recording = read_recording("healthy-busy")
    series = [
        *list_input_series(recording, KUBE_APISERVER),
        *list_input_series(recording, {**KUBE_APISERVER, "zone": "a"}, delay=recording.last),
    ]
    assert not find_alerts(tmp_path, rules_of("healthy-busy"), series, 600)
