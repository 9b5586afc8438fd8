"""The dashboard: its JSON, and its queries in a real Prometheus with recorded series."""

from __future__ import annotations

import json
import sys
from math import isnan
from typing import TYPE_CHECKING, Any

import pytest
from support import builders
from support.prometheus import needs_prometheus, serve
from support.series import KUBE_APISERVER, read_recording

from apflint.cli.app import run
from apflint.monitoring.panels import build_rows, narrow
from apflint.monitoring.queries import Queries, match_any
from apflint.releases import RELEASES, parse_release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.prometheus import Server

sdk = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="grafana-foundation-sdk is not installed")
from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402  # the module may be missing

from apflint.output.dashboard import render_dashboard  # noqa: E402  # imports the same module

promql_parser = pytest.importorskip("promql_parser", reason="promql-parser is not installed")
RECORDINGS = ("small-level", "leader-election-starved", "exempt-abuse")


def print_dashboard(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run(["dashboard", "--isolated", *words]) == 0
    return json.loads(capsys.readouterr().out)


def decode(value: dict[str, Any]) -> dict[str, Any]:
    """Return a dashboard after decoding it with the types of Grafana's SDK, which drop unknown fields."""
    decoded: dict[str, Any] = json.loads(json.dumps(sdk.Dashboard.from_json(value), cls=JSONEncoder))
    return decoded


def test_dashboard_has_the_types_of_grafana(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    value = print_dashboard(capsys)
    assert decode(value) == value
    (variable,) = [variable for variable in value["templating"]["list"] if variable["name"] == "level"]
    assert "leader-election,node-high," in variable["query"]
    for change in ("panels", "templating"):
        wrong = {**value, change: [{**value["panels"][1], "titel": "x"}] if change == "panels" else {"lst": []}}
        assert decode(wrong) != wrong


def test_panels_do_not_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    panels = print_dashboard(capsys)["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(x < 24 for x, _ in cells)
    titles = [panel["title"] for panel in panels]
    assert len(titles) == len(set(titles)) == 13


@pytest.mark.parametrize("release", [release.name for release in RELEASES])
def test_queries_of_every_release(release: str) -> None:
    source = narrow(Queries(parse_release(release), ('job="api"',), "k8s_cluster"))
    panels = [panel for row in build_rows(source) for panel in row.panels]
    assert len(panels) >= 9
    for panel in panels:
        assert panel.targets
        for target in panel.targets:
            promql_parser.parse(target.expression.replace("$__rate_interval", "1m"))
            assert 'job="api", k8s_cluster=~"$cluster", instance=~"$instance"' in target.expression


def test_names_are_data() -> None:
    source = Queries(parse_release("1.36"))
    text = render_dashboard(build_rows(narrow(source)), ["a,b", "##vso[x]", "c\u202ed"], source, ["##[x] \x1b"])
    assert text.isascii()
    assert "##vso[" not in text
    (variable,) = [item for item in json.loads(text)["templating"]["list"] if item["name"] == "level"]
    assert variable["query"].startswith(r"a\,b,")
    assert "\u202e" not in variable["query"]


def test_missing_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [
        name for name in sys.modules if name.startswith(("grafana_foundation_sdk", "apflint.output.dashboard"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk", None)
    assert run(["dashboard", "--isolated"]) == 2
    assert "pip install 'apflint[dashboard]'" in capsys.readouterr().err


def test_manifests_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(builders.priority_level("batch", 10)), encoding="utf-8")
    value = print_dashboard(capsys, "--selector", 'job="api"', "--cluster-label", "c", "--kubernetes", "1.25", "a.json")
    text = json.dumps(value)
    assert "request_concurrency_in_use" in text
    assert "demand" not in text.replace("rejected", "")
    assert "kube-apiserver" not in text
    assert "batch,catch-all," in text
    assert "a.json (1 object)" in value["description"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    targets = [(read_recording(name), {**KUBE_APISERVER, "cluster": name}) for name in RECORDINGS]
    with serve(tmp_path_factory.mktemp("prometheus"), targets) as running:
        yield running


def list_expressions(cluster: str) -> list[tuple[str, str]]:
    """Return (title of a panel, expression) pairs. The variables of the dashboard are replaced, as Grafana does."""
    levels = match_any(["reporting", "leader-election", "workload-low"])[1:-1]
    variables = {"$__rate_interval": "1m", "$cluster": cluster, "$instance": ".*", "$level": levels}
    expressions = []
    for row in build_rows(narrow(Queries(parse_release("1.36")))):
        for panel in row.panels:
            for target in panel.targets:
                expression = target.expression
                for name, value in variables.items():
                    expression = expression.replace(name, value)
                assert "$" not in expression
                expressions.append((panel.title, expression))
    return expressions


@needs_prometheus
def test_every_query_returns_data(server: Server) -> None:
    expressions = list_expressions(".*")
    assert len(expressions) == 26
    for title, expression in expressions:
        results = server.query_range(expression, server.start, server.end)
        assert any(not isnan(value) for result in results for _, value in result.values), (title, expression)
        assert all("instance" in result.labels for result in results)


@needs_prometheus
def test_variable_selects_one_cluster(server: Server) -> None:
    for title, expression in list_expressions("leader-election-starved"):
        results = server.query_range(expression, server.start, server.end)
        assert {result.labels["cluster"] for result in results} == {"leader-election-starved"}, title


@needs_prometheus
def test_variables_have_values(server: Server) -> None:
    selector = 'apiserver_flowcontrol_nominal_limit_seats{job="kube-apiserver"}'
    assert server.list_label_values("cluster", selector) == sorted(RECORDINGS)
    assert server.list_label_values("instance", selector) == ["192.0.2.1:6443"]


@needs_prometheus
def test_values_are_those_of_the_recording(server: Server) -> None:
    limit = 'apiserver_flowcontrol_nominal_limit_seats{cluster="small-level", priority_level="reporting"}'
    (result,) = server.query_range(limit, server.start, server.start + 30)
    assert {value for _, value in result.values} == {1.0}
