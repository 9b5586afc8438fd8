"""The parser of metrics: values, labels, lines that are not in the format, and its speed."""

from __future__ import annotations

import time

import pytest
from support.recordings import LIVE, read_text

from apflint.doctor.metric_names import MEASURES, NAMES, QUANTITIES
from apflint.doctor.prometheus_text import looks_like_metrics, parse_samples
from apflint.user_error import UserError

SECONDS_PER_60000_LINES = 0.58
"""A fifth of the time that the parser of prometheus_client takes for 60,000 lines (2.9 s)."""


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("a 1", {}, 1),
        ("a{} 1", {}, 1),
        ('a{x="y"} 1e3', {"x": "y"}, 1000),
        ('a{x="y",} +.5 1700000000000', {"x": "y"}, 0.5),
        ('a{ x = "y" , z="w" } 1', {"x": "y", "z": "w"}, 1),
        (r'a{x="a\"b\\c\nd,}e"} 1', {"x": 'a"b\\c\nd,}e'}, 1),
        ('a{x="ä€"} 1\r', {"x": "ä€"}, 1),
    ],
)
def test_sample(line: str, labels: dict[str, str], value: float) -> None:
    (sample,) = parse_samples(f"# HELP a b\nb 7\n{line}\n", {"a"}).by_name["a"]
    assert sample == (labels, value, 3)


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "inf", "nan", "1e19", "-1e308", "Infinity", str(2**63)])
def test_impossible_values_are_left_out(text: str) -> None:
    assert parse_samples(f'a{{x="1"}} {text}\na{{x="2"}} 2\n', {"a"}) == ({"a": [({"x": "2"}, 2, 2)]}, ((1, "a"),))


@pytest.mark.parametrize(
    ("name", "is_possible"),
    [
        ("apiserver_flowcontrol_nominal_limit_seats", False),
        ("apiserver_request_total", False),
        ("etcd_request_duration_seconds_sum", False),
        ("apiserver_resource_size_estimate_bytes", True),  # -1 if the server does not know the size
    ],
)
def test_counters_and_seats_are_not_negative(name: str, is_possible: bool) -> None:
    assert parse_samples(f"{name} -1\n", {name}).unusable == (() if is_possible else ((1, name),))


@pytest.mark.parametrize(
    "line", ['a{x="y"}', 'a{x="y} 1', "a{x=y} 1", 'a{x="y"} one', "a 1 2 3", "a{ 1", 'a{x="y"; z=""} 1']
)
def test_line_that_is_not_in_the_format(line: str) -> None:
    with pytest.raises(UserError, match="line 2 is not in the text format of Prometheus"):
        parse_samples(f"b 1\n{line}\n", {"a"})


def test_incomplete_text() -> None:
    with pytest.raises(UserError, match="a part of the metrics is missing"):
        parse_samples("a 1\na 1", {"a"})


@pytest.mark.parametrize("series", ["a", 'a{x="y"}'])
def test_repeated_sample(series: str) -> None:
    with pytest.raises(UserError, match="line 2 repeats a: "):
        parse_samples(f"{series} 1\n{series} 2\n", {"a"})


def test_only_wanted_metrics_are_parsed() -> None:
    assert parse_samples('b{x="y\na_total 1\na{x="y"} 1\n', {"a"}).by_name.keys() == {"a"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# HELP a b\n", True),
        ("# TYPE a counter\n", True),
        ('a{x="y"} 1\n', True),
        ("process_start_time_seconds 1.79e+09\r\n", True),
        ("a NaN\n", True),
        ("replicas: 3\n", False),
        ("I1122 05:51:08.36 started\n", False),
        ('{"kind": "Status"}\n', False),
        ("", False),
    ],
)
def test_recognition(text: str, expected: bool) -> None:
    assert looks_like_metrics(text) == expected


def test_every_recorded_metric_is_read() -> None:
    found = parse_samples(read_text(LIVE / "4-mixed.metrics.txt.gz"), NAMES).by_name
    # The recording does not contain the release and the sizes of objects.
    absent = {"kubernetes_build_info", "apiserver_resource_size_estimate_bytes"}
    # The recording is not of an incident, and does not contain metrics of webhooks and etcd.
    absent |= {
        metric.name
        for quantity in MEASURES
        for metric in quantity.metrics
        if "webhook" in metric.name or "etcd" in metric.name
    }
    newest = {quantity.metrics[0].name for quantity in (*QUANTITIES, *MEASURES)} - absent
    # The recorded server exports two metrics for stored objects: `apiserver_resource_objects` and the
    # older `apiserver_storage_objects`.
    assert newest == found.keys() - {"apiserver_storage_objects"}


def test_sixty_thousand_lines() -> None:
    lines = [line for line in read_text(LIVE / "4-mixed.metrics.txt.gz").splitlines() if line[0] != "#" and "{" in line]
    copies = (
        line.replace("{", f'{{copy="{number}",', 1) for number in range(60_000 // len(lines) + 1) for line in lines
    )
    text = "".join(f"{line}\n" for line in copies)
    assert text.count("\n") >= 60_000

    def measure_time() -> float:
        start = time.process_time()
        samples = parse_samples(text, NAMES)
        assert sum(map(len, samples.by_name.values())) > 10_000
        return time.process_time() - start

    # A run takes about 0.2 s. On a busy machine, single runs may take more than three times as long.
    assert any(measure_time() < SECONDS_PER_60000_LINES for _ in range(5))


@pytest.mark.parametrize("value", ["1_000", "٣", "0x10", "1e", "e5", ".", "--1", "infinit", "1٣"])
def test_numbers_that_only_python_reads_are_not_in_the_format(value: str) -> None:
    with pytest.raises(UserError, match="line 1 is not in the text format of Prometheus"):
        parse_samples(f"a {value}\n", {"a"})


def test_bucket_without_a_number_is_not_in_the_format() -> None:
    with pytest.raises(UserError, match="line 1 is not in the text format of Prometheus"):
        parse_samples('a{le="x"} 1\n', {"a"})


@pytest.mark.parametrize("labels", ["", "{}", '{x="1"}', '{le=""}'])
def test_bucket_without_a_bound_is_not_in_the_format(labels: str) -> None:
    with pytest.raises(UserError, match="line 1 is not in the text format of Prometheus"):
        parse_samples(f"a_bucket{labels} 1\n", {"a_bucket"})
    assert parse_samples('a_bucket{le="+Inf"} 1\n', {"a_bucket"}).by_name


@pytest.mark.parametrize("text", ["a 1\na 22\n", 'a{x="1"} 1\na{x="1"} 333\n'])
def test_series_with_two_values_is_an_error(text: str) -> None:
    with pytest.raises(UserError, match="line 2 repeats a:"):
        parse_samples(text, {"a"})


def test_long_label_is_an_error() -> None:
    with pytest.raises(UserError, match="line 1 has a label with 1,025 characters"):
        parse_samples(f'a{{x="{"y" * 1025}"}} 1\n', {"a"})
    assert parse_samples(f'a{{x="{"y" * 1024}"}} 1\n', {"a"}).by_name
