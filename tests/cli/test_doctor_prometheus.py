"""`apflint doctor --prometheus` with a real Prometheus, which has the series of recorded incidents."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema
import pytest
from support.fake_prometheus import Reply, serve_replies, success
from support.prometheus import needs_prometheus, serve
from support.series import NAMES, ROOT, read_recording

from apflint.budgets import Bound
from apflint.cli.app import run
from apflint.cli.prometheus_options import parse_times
from apflint.sources import prometheus_server
from apflint.sources.prometheus_server import show_time
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.prometheus import Server
    from support.series import Recording

pytest.importorskip("requests", reason="requests is not installed: it is the extra prometheus")

JOB = "kube-apiserver"
INCIDENTS = [name for name in NAMES if not read_recording(name).is_healthy and not name.endswith("-peer")]
HEALTHY = [name for name in NAMES if read_recording(name).is_healthy and not name.endswith("-peer")]


def labels(cluster: str, instance: str = "192.0.2.1:6443", job: str = JOB) -> dict[str, str]:
    return {"job": job, "instance": instance, "cluster": cluster}


def thin(recording: Recording, every: int) -> Recording:
    """Return a recording with only one of `every` scrapes. The original recording has a scrape every 5 seconds."""
    series = (
        one._replace(values=tuple("_" if index % every else value for index, value in enumerate(one.values)))
        for one in recording.series
    )
    return recording._replace(series=tuple(series))


def change(recording: Recording, edit: Callable[[str, str, tuple[str, ...]], tuple[str, ...]]) -> Recording:
    """Return a recording with other values. `edit` gets a metric, its labels and its values. A series without values is dropped."""
    changed = (one._replace(values=edit(*one)) for one in recording.series)
    return recording._replace(series=tuple(series for series in changed if series.values))


def drop(recording: Recording, pattern: str) -> Recording:
    return change(recording, lambda metric, _, values: () if re.search(pattern, metric) else values)


def write_bounds_as_openmetrics(recording: Recording) -> Recording:
    series = (one._replace(labels=re.sub(r'(?<=\ble=")(\d+)(?=")', r"\1.0", one.labels)) for one in recording.series)
    return recording._replace(series=tuple(series))


def spoil(metric: str, _: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return ("NaN", "+Inf") * 6 if metric.endswith("demand_seats_smoothed") else values


def make_older(metric: str, _: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return values as if the server had started ten minutes earlier.

    Only `demand_seats_count` changes, because its value is the uptime in nanoseconds.
    """
    is_clock = metric.endswith("demand_seats_count")
    return tuple(value if value == "_" or not is_clock else str(float(value) + 600e9) for value in values)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a Prometheus in which each recording, and each variant of a recording, is a separate cluster."""
    small = read_recording("small-level")
    flood = read_recording("flood-one-flow")
    recordings = [
        *((read_recording(name), labels(name)) for name in NAMES if not name.endswith("-peer")),
        (read_recording("imbalance-peer"), labels("imbalance", "192.0.2.2:6443")),
        *((thin(read_recording(name), 3), labels(f"slow-{name}")) for name in NAMES if not name.endswith("-peer")),
        (read_recording("healthy-busy"), labels("two-jobs")),
        (read_recording("leases-captured"), labels("two-jobs", "192.0.2.9:443", "apiserver")),
        (change(read_recording("etcd-slow"), make_older), labels("old-server")),
        (small, {**labels("replicas"), "prometheus_replica": "a"}),
        (small, {**labels("replicas"), "prometheus_replica": "b"}),
        (write_bounds_as_openmetrics(flood), labels("canonical")),
        (drop(small, "rejected_requests_total|current_inqueue_requests"), labels("dropped")),
        (drop(small, "process_start_time|demand_seats_count"), labels("no-start")),
        (change(small, spoil), labels("not-finite")),
        (small, {"job": "my-servers", "instance": "192.0.2.1:6443", "cluster": "other-job"}),
        (small, {"job": JOB, "instance": "192.0.2.7:6443"}),
    ]
    with serve(tmp_path_factory.mktemp("prometheus"), recordings) as running:
        yield running


def diagnose(
    server: Server,
    capsys: pytest.CaptureFixture[str],
    selector: str,
    *words: str,
    since: float = 0,
    until: float | None = None,
    status: int = 0,
) -> tuple[Any, str]:
    """Return (JSON that the command prints, or None; notes). Times are in seconds after the start of the recordings."""
    end = server.end if until is None else server.start + until
    command = ["doctor", "--isolated", "--prometheus", server.url, "--format", "json", "--selector", selector]
    command += ["--since", show_time(server.start + since), "--until", show_time(end), *words]
    assert run(command) == status
    out, err = capsys.readouterr()
    return json.loads(out) if out else None, err


def first_cause(found: Any) -> str | None:
    return found["causes"][0]["cause"] if found["causes"] else None


def warnings(found: Any) -> list[str]:
    return [cause["cause"] for cause in found["causes"] if cause["severity"] == "warning"]


@needs_prometheus
@pytest.mark.parametrize("prefix", ["", "slow-"])
@pytest.mark.parametrize("name", INCIDENTS)
def test_cause_of_each_incident(name: str, prefix: str, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The cause is found with a scrape every 5 or 15 seconds, even if the period begins an hour before the first scrape."""
    recording = read_recording(name)
    found, notes = diagnose(server, capsys, f'cluster="{prefix}{name}"', since=-3600)
    assert first_cause(found) == recording.cause
    assert found["verdict"] == ("overloaded" if found["causes"][0]["isAPF"] else "not-apf")
    assert notes == ""
    (cluster,) = found["prometheus"]["clusters"]
    assert cluster["cluster"] == f"{prefix}{name}"
    assert cluster["interval"]["until"] >= show_time(server.start + (recording.started or 0))
    assert found["prometheus"]["scrapeSeconds"] == (15 if prefix else 5)
    if name in ("client-timeouts", "single-flow", "slow-webhook", "flood-one-flow"):
        assert found["causes"][0]["notCertain"]  # without a dump, the clients are unknown
    assert any("no dump of requests" in text for text in found["unknown"])


@needs_prometheus
@pytest.mark.parametrize("prefix", ["", "slow-"])
@pytest.mark.parametrize("name", [name for name in HEALTHY if name != "old-incident"])
def test_no_warning_about_healthy_servers(
    name: str, prefix: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = diagnose(server, capsys, f'cluster="{prefix}{name}"', since=-600)
    assert found["verdict"] in (("healthy", "past") if prefix else ("healthy",))
    assert warnings(found) == []


@needs_prometheus
def test_old_incident(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The flood is the worst interval of the whole recording. Later periods have no warning, and show the flood only as their baseline."""
    found, _ = diagnose(server, capsys, 'cluster="old-incident"')
    assert first_cause(found) == "flood-one-flow"
    for start in (60, 90, 120, 180):
        found, _ = diagnose(server, capsys, 'cluster="old-incident"', since=start)
        assert (found["verdict"], warnings(found)) == ("past", [])
    found, _ = diagnose(server, capsys, 'cluster="old-incident"', "--baseline", "1h", since=90)
    (compared,) = found["prometheus"]["comparison"]
    (level,) = [level for level in compared["levels"] if level["name"] == "workload-low"]
    assert level["baseline"]["rejectedPerSecond"] > 15
    assert level["interval"]["rejectedPerSecond"] == 0
    assert level["baseline"]["meanWaitSeconds"] > 1 > level["interval"]["meanWaitSeconds"]


@needs_prometheus
def test_baseline_explains_slow_requests(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    baseline = f"{show_time(server.start)}/{show_time(server.start + 10)}"
    found, _ = diagnose(server, capsys, 'cluster="old-server"', "--baseline", baseline, since=10)
    assert first_cause(found) == "etcd-slow"
    assert found["prometheus"]["clusters"][0]["baseline"] == {
        "since": show_time(server.start), "until": show_time(server.start + 10)
    }  # fmt: skip
    assert any("in the baseline" in text for text in found["causes"][0]["evidence"])


@needs_prometheus
@pytest.mark.parametrize("start", [0, 10])
def test_json_follows_the_schema(start: float, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The schema allows comparisons with and without metrics in the baseline."""
    found, _ = diagnose(server, capsys, 'cluster="old-server"', "--baseline", "1h", since=start)
    schema = {**json.loads((ROOT / "schemas" / "apflint-output.json").read_text()), "$ref": "#/$defs/doctor-output"}
    jsonschema.Draft202012Validator(schema).validate(found)
    assert bool(found["prometheus"]["comparison"][0]["levels"]) == (start > 0)


@needs_prometheus
def test_baseline_without_metrics(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = diagnose(server, capsys, 'cluster="small-level"')
    (cluster,) = found["prometheus"]["clusters"]
    assert cluster["baseline"] is None
    assert any(
        "the metrics in the baseline are too few" in gap for gap in cluster["gaps"]
    )  # the baseline has only one scrape
    found, _ = diagnose(server, capsys, 'cluster="small-level"', since=-10)
    assert any("no metrics in the baseline" in gap for gap in found["prometheus"]["clusters"][0]["gaps"])
    assert found["prometheus"]["comparison"][0]["levels"] == []


@needs_prometheus
def test_restart_in_the_baseline(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    restart = next(
        index
        for series in read_recording("restart").series
        if series.metric == "process_start_time_seconds"
        for index, value in enumerate(series.values)
        if value not in ("_", series.values[0])
    )
    end = 5 * restart + 20
    found, _ = diagnose(server, capsys, 'cluster="restart"', "--baseline", f"{end}s", since=end)
    assert any("restarted in the baseline" in gap for gap in found["prometheus"]["clusters"][0]["gaps"])


@needs_prometheus
def test_clusters_are_not_compared(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Servers of different clusters are not reported as unbalanced, and each cluster has its own worst interval."""
    found, _ = diagnose(server, capsys, 'cluster=~"small-level|healthy-busy|restart|flood-one-flow"')
    servers = {
        cause["server"].partition("/")[0]: cause["cause"] for cause in found["causes"] if cause["severity"] == "warning"
    }
    assert servers == {
        "prometheus:small-level": "small-level",
        "prometheus:flood-one-flow": "flood-one-flow",
        "prometheus:restart": "restart",
    }
    intervals = {cluster["cluster"]: cluster["interval"]["until"] for cluster in found["prometheus"]["clusters"]}
    assert len(intervals) == 4
    assert len(set(intervals.values())) > 1


@needs_prometheus
def test_servers_of_a_cluster_are_compared(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = diagnose(server, capsys, 'cluster="imbalance"')
    assert found["prometheus"]["clusters"][0]["instances"] == ["192.0.2.1:6443", "192.0.2.2:6443"]
    assert "192.0.2.2:6443" in " ".join(found["causes"][0]["evidence"])
    found, _ = diagnose(server, capsys, 'cluster="imbalance",instance="192.0.2.1:6443"')
    assert len(found["servers"]) == 1
    assert "192.0.2.2" not in json.dumps(found)


@needs_prometheus
@pytest.mark.parametrize("cluster", ["replicas", "no-start", "not-finite"])
def test_variants_of_an_incident(cluster: str, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = diagnose(server, capsys, f'cluster="{cluster}"')
    assert first_cause(found) == "small-level"
    assert len(found["servers"]) == 1
    assert (found["servers"][0]["levels"][0]["demandSmoothed"] is None) == (cluster == "not-finite")


@needs_prometheus
def test_bounds_of_buckets_in_the_form_of_openmetrics(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    plain, _ = diagnose(server, capsys, 'cluster="flood-one-flow"')
    canonical, _ = diagnose(server, capsys, 'cluster="canonical"')
    assert [cause["evidence"] for cause in canonical["causes"]] == [cause["evidence"] for cause in plain["causes"]]
    assert [cause["since"] for cause in canonical["causes"]] == [cause["since"] for cause in plain["causes"]]


@needs_prometheus
def test_metrics_that_prometheus_drops(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = diagnose(server, capsys, 'cluster="dropped"')
    gaps = " ".join(found["prometheus"]["clusters"][0]["gaps"])
    assert (
        "no series of apiserver_flowcontrol_rejected_requests_total and apiserver_flowcontrol_current_inqueue_requests"
        in gaps
    )
    found, _ = diagnose(server, capsys, 'cluster="small-level"')
    assert "rejected" not in " ".join(found["prometheus"]["clusters"][0]["gaps"])


@needs_prometheus
def test_server_without_a_cluster_label(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = diagnose(server, capsys, 'cluster=""')
    assert [cluster["instances"] for cluster in found["prometheus"]["clusters"]] == [["192.0.2.7:6443"]]
    assert found["servers"][0]["files"][0].startswith("prometheus:192.0.2.7:6443@2023-11-14T")
    found, _ = diagnose(server, capsys, 'instance="192.0.2.7:6443"', "--cluster-label", "job")
    assert found["prometheus"]["clusters"][0]["cluster"] == JOB


@needs_prometheus
def test_selector_that_mixes_components(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    _, notes = diagnose(server, capsys, 'cluster="two-jobs"', status=2)
    assert 'several jobs in cluster "two-jobs": apiserver and kube-apiserver' in notes
    found, _ = diagnose(server, capsys, 'cluster="two-jobs",job="kube-apiserver"')
    assert warnings(found) == []


@needs_prometheus
def test_selector_without_servers(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    _, notes = diagnose(server, capsys, 'cluster="other-job"', status=2)
    assert "These jobs have metrics of API Priority and Fairness: apiserver, kube-apiserver and my-servers" in notes
    found, _ = diagnose(server, capsys, 'cluster="other-job",job="my-servers"')
    assert first_cause(found) == "small-level"


@needs_prometheus
def test_times_without_metrics(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    _, notes = diagnose(server, capsys, 'cluster="small-level"', since=-7200, until=-3600, status=2)
    assert (
        "there are no metrics of API Priority and Fairness between 2023-11-14T20:13:20Z and 2023-11-14T21:13:20Z"
        in notes
    )
    _, notes = diagnose(server, capsys, 'cluster="small-level"', since=20, until=40, status=2)
    assert (
        "the period of 20 s is too short: Prometheus scrapes every 5 s, so the diagnosis needs at least 30 s" in notes
    )


@needs_prometheus
def test_long_period_is_searched_in_two_steps(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = diagnose(server, capsys, 'cluster="inversion"')
    monkeypatch.setattr(prometheus_server, "MAX_PROMETHEUS_POINTS", Bound(50, ""))
    found, _ = diagnose(server, capsys, 'cluster="inversion"', since=-86400)
    assert first_cause(found) == first_cause(expected) == "inversion"
    assert found["prometheus"]["clusters"][0]["interval"]["since"] >= show_time(server.start - 30)


@needs_prometheus
def test_too_many_servers(server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_server, "MAX_PROMETHEUS_SERVERS", Bound(1, ""))
    _, notes = diagnose(server, capsys, 'cluster="imbalance"', status=2)
    assert "2 API servers match" in notes
    assert "more than the maximum of 1" in notes


@needs_prometheus
def test_manifests_are_compared(server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "level.yaml").write_text(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: absent}\nspec:\n"
        "  type: Limited\n  limited: {nominalConcurrencyShares: 10, limitResponse: {type: Reject}}\n"
    )
    found, _ = diagnose(server, capsys, 'cluster="small-level"', "-f", str(tmp_path))
    assert "APF807" in {finding["rule"] for finding in found["findings"]}
    assert f"{tmp_path} (1 object)" in found["configuration"]


@needs_prometheus
@pytest.mark.parametrize(("output_format", "arrow"), [("text", " -> "), ("markdown", " → "), ("html", " &#8594; ")])
def test_reports(output_format: str, arrow: str, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["doctor", "--isolated", "--prometheus", server.url, "--format", output_format, "--baseline", "1h"]
    command += ["--selector", 'cluster="etcd-slow"', "--since", show_time(server.start + 10)]
    assert run([*command, "--until", show_time(server.end)]) == 0
    out = capsys.readouterr().out
    plain = out.replace("`", "")
    for text in (
        "192.0.2.1:6443",
        "the worst interval of the period",
        "2023-11-14T22:13:20Z to 22:13:30Z",
        "etcd-slow",
    ):
        assert text in plain, text
    assert arrow in out


@needs_prometheus
def test_formats_with_findings_only(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["doctor", "--isolated", "--prometheus", server.url, "--format", "concise", "--fail-on", "warning"]
    command += ["--selector", 'cluster="small-level"', "--since", show_time(server.start)]
    assert run([*command, "--until", show_time(server.end)]) == 1
    out, err = capsys.readouterr()
    assert re.search(r"^prometheus:small-level/192\.0\.2\.1:6443@[^ ]+Z:\d+:1: warning\[APF801\]", out, re.MULTILINE)
    assert 'API server in cluster "small-level" (job "kube-apiserver"): 192.0.2.1:6443. Interval: 2023-11-14T' in err


def test_errors_of_the_server_have_no_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    for reply in (Reply(b"", 401), Reply(b'{"status": "error", "error": "no s3cr3t hidden"}'), Reply(b"<html>")):
        with serve_replies(reply) as fake:
            url = fake.url.replace("//", "//alice:s3cr3t@")
            assert run(["doctor", "--isolated", "--prometheus", url, "--header", "X-Scope-OrgID: hidden"]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert fake.url in err
        assert not re.search("s3cr3t|hidden|alice", err)


def test_no_series_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    """The fake server answers each query with an empty matrix. The first query expects a vector, so it fails."""
    with serve_replies(success([], "matrix")) as fake:
        assert run(["doctor", "--isolated", "--prometheus", fake.url]) == 2
    assert "the answer is not in the format of Prometheus" in capsys.readouterr().err


class Times(NamedTuple):
    """Values of options, and the expected start and end of the period and of the baseline, in seconds before now."""

    since: str | None
    until: str | None
    baseline: str | None
    expected: tuple[float, float, float, float]


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    "times",
    [
        Times(None, None, None, (3600, 0, 7200, 3600)),
        Times("2h", None, None, (7200, 0, 14400, 7200)),
        Times(None, "2h", None, (10800, 7200, 14400, 10800)),
        Times("90m", "30m", "1d", (5400, 1800, 91800, 5400)),
        Times("2023-11-14T22:13:10Z", "2023-11-14T22:13:20Z", None, (10, 0, 20, 10)),
    ],
)
def test_times(times: Times) -> None:
    period, baseline = parse_times(times.since, times.until, times.baseline, NOW)
    assert tuple(NOW - moment for moment in (*period, *baseline)) == times.expected


def test_baseline_as_an_interval() -> None:
    _, baseline = parse_times(None, None, "2023-11-14T20:13:20Z/2h", NOW + 7200)
    assert tuple(baseline) == (NOW - 7200, NOW)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("1h", "2h", None), "--since must be before --until"),
        (("soon", None, None), '--since: "soon" is not a time'),
        ((None, None, "2023-11-14T22:13:10Z"), "is neither a duration such as 1d nor an interval"),
        ((None, None, "1h/2h"), "--baseline: the start must be before the end"),
        ((None, None, "/"), "--baseline"),
    ],
)
def test_invalid_times(options: tuple[str | None, str | None, str | None], reason: str) -> None:
    with pytest.raises(UserError, match=re.escape(reason)):
        parse_times(*options, NOW)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--since", "1h", "metrics.txt"], "--since requires --prometheus"),
        (["--insecure-skip-tls-verify"], "--insecure-skip-tls-verify requires --prometheus"),
        (["--prometheus", "http://localhost", "--metrics", "m.txt"], "--prometheus and --metrics cannot be combined"),
        (
            ["--prometheus", "http://localhost", str(ROOT / "fixtures" / "live" / "2-slow-a.metrics.txt.gz")],
            "cannot be combined with --live or --prometheus",
        ),
        (["--prometheus", "http://localhost", "--live"], "--live and --prometheus cannot be combined"),
        (["--prometheus", "http://localhost", "--selector", "cluster"], "is not a selector of Prometheus"),
        (["--prometheus", "http://localhost", "--cluster-label", "a b"], "is not a label name"),
        (["--prometheus", "http://localhost", "--watch", "60s"], "--watch requires --live"),
    ],
)
def test_invalid_combinations(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--isolated", *words]) == 2
    assert reason in capsys.readouterr().err
