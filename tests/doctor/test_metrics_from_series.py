"""Series of Prometheus are converted to the same text as the server exports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.doctor.metric_names import NAMES
from apflint.doctor.metrics_from_series import ETCD_LABEL, write_metrics
from apflint.doctor.prometheus_text import parse_samples

TARGET = {"job": "kube-apiserver", "instance": "192.0.2.1:6443"}
WAITS = "apiserver_flowcontrol_request_wait_duration_seconds_bucket"


def test_labels_of_the_target_are_left_out() -> None:
    labels = {"__name__": "apiserver_flowcontrol_nominal_limit_seats", "priority_level": "batch", **TARGET}
    text = write_metrics([(labels, "12")], TARGET)
    assert text == 'apiserver_flowcontrol_nominal_limit_seats{priority_level="batch"} 12\n'
    assert write_metrics([({"__name__": "process_start_time_seconds", **TARGET}, "1.5e+09")], TARGET) == (
        "process_start_time_seconds 1.5e+09\n"
    )


@pytest.mark.parametrize(
    ("bound", "shown"),
    [("1.0", "1"), ("1", "1"), ("0.5", "0.5"), ("+Inf", "+Inf"), ("1e-05", "1e-05"), ("x", "x")],
)
def test_bounds_of_buckets_are_those_of_the_server(bound: str, shown: str) -> None:
    labels = {"__name__": WAITS, "le": bound}
    assert write_metrics([(labels, "3")], ()) == f'{WAITS}{{le="{shown}"}} 3\n'


def test_sums_have_their_metric_in_a_label() -> None:
    labels = {ETCD_LABEL: "etcd_request_duration_seconds_sum", "operation": "get", **TARGET}
    assert write_metrics([(labels, "3")], TARGET) == 'etcd_request_duration_seconds_sum{operation="get"} 3\n'


def test_other_metrics_are_left_out() -> None:
    assert write_metrics([({"__name__": "up"}, "1"), ({}, "1")], ()) == ""


@given(st.dictionaries(st.sampled_from(["flow_schema", "reason", "priority_level"]), st.text(), min_size=1))
def test_any_label_is_read_as_it_was(labels: dict[str, str]) -> None:
    name = "apiserver_flowcontrol_rejected_requests_total"
    assert name in NAMES
    text = write_metrics([({"__name__": name, **labels}, "7")], TARGET)
    (sample,) = parse_samples(text, NAMES).by_name[name]
    assert (sample.labels, sample.value) == (labels, 7)
