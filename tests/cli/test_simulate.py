"""`apflint simulate`: the complete output in each format, and loads and configurations that cannot be simulated."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import re
import shutil
import signal
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT
from support.api_server import recorded_answers, serve
from support.audit_logs import event, write_log

from apflint.cli.app import run
from apflint.output.svg_chart import list_ticks
from apflint.simulate.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

LOAD = "../load.yaml"
BEFORE, AFTER = "../before", "../after"
COMMAND = ["simulate", LOAD, "-f", AFTER, "--server-concurrency", "30", "--kubernetes", "1.36", "--isolated"]
COMPARISON = [*COMMAND, "--compare", BEFORE]
CLIENT = "name: a, as: alice, request: list pods, service: 1s"
REJECTED = """
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: batch}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: -1
    limitResponse: {type: Reject}
"""


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory, next to copies of the files of the examples."""
    for side in ("before", "after"):
        shutil.copytree(ROOT / "fixtures/stories/move-ci" / side, tmp_path / side)
    shutil.copy(ROOT / "fixtures/simulate/load.yaml", tmp_path)
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def read(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> str:
    assert run(arguments) == code, capsys.readouterr().err
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def fail(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """Run a command with invalid input, and return its error message."""
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def write_load(body: str, **others: str) -> str:
    text = "\n".join(
        (*(f"{key}: {value}" for key, value in {"duration": "1m", **others}.items()), f"clients: [{{{body}}}]")
    )
    with open("load.yaml", "w", encoding="utf-8") as file:
        file.write(text)
    return "load.yaml"


@pytest.mark.parametrize("arguments", [COMMAND, COMPARISON], ids=["one", "comparison"])
@pytest.mark.parametrize("output_format", ["text", "markdown", "html"])
def test_whole_output(
    output_format: str, arguments: list[str], capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert read(capsys, [*arguments, "--format", output_format]) == snapshot


def test_html_says_what_charts_show(capsys: pytest.CaptureFixture[str]) -> None:
    """The charts are sums over the API servers, unlike the table. Without busy flows, no flow is an "other" one."""
    page = read(capsys, [*COMMAND, "--format", "html"])
    assert "2 API servers with" in page
    assert page.count("Seats over time, sum of 2 API servers</h3>") == page.count("<h3>Seats over time")
    for section in page.split("<h2>")[1:]:
        assert ("other flow" in section) == ("mostly busy flows" in section)
        assert "Priority level" not in section  # the heading of the section names the level
    load = write_load(f"{CLIENT}, rate: 1/s")
    single = read(capsys, ["simulate", load, *TWO, "--kubernetes", "1.37", "--format", "html"])
    assert "Seats over time</h3>" in single
    assert "in 1m<" in single


def test_all_tables(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert read(capsys, [*COMMAND, "--verbose"]) == snapshot


@pytest.mark.parametrize(("width", "verbose"), [(80, False), (80, True), (120, True)])
def test_terminal_hides_no_column(
    width: int, verbose: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A narrow terminal gets several tables. Together, they contain every figure of the wide table that a pipe gets."""
    command = [*COMMAND, *(["--verbose"] if verbose else [])]
    figures = {word for word in read(capsys, command).split() if re.fullmatch(r"[\d,.]+%?|[▁-█]+", word)}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    printed = read(capsys, command)
    assert figures <= {*printed.split()}
    assert max(map(len, printed.splitlines())) <= width
    assert ("--verbose" in printed) != verbose


def test_whole_json(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    found = json.loads(read(capsys, [*COMMAND, "--format", "json"]))
    assert "\n".join(json.dumps(item) for item in (*found.pop("levels"), found)) == snapshot


def test_comparison_in_json_contains_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(read(capsys, [*COMPARISON, "--format", "json"]))
    assert found["new"] == json.loads(read(capsys, [*COMMAND, "--format", "json"]))
    (runners,) = (item for item in found["differences"] if item["name"] == "runners")
    assert " -> " in runners["priorityLevel"]
    assert runners["old"]["requests"] > 100


def test_seed_determines_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = [read(capsys, [*COMMAND, "--seed", seed]) for seed in ("5", "5", "6")]
    assert outputs[0] == outputs[1] != outputs[2].replace("seed 6", "seed 5")
    assert "seed 5: " in outputs[0]


def test_page_loads_nothing_and_escapes_names(capsys: pytest.CaptureFixture[str]) -> None:
    load = write_load(
        'name: "</svg><script>x", as: "<b>", request: list pods -A, service: 100ms, think: 10ms, count: 90',
        duration="5s",
    )
    page = read(capsys, ["simulate", load, "--server-concurrency", "20", "--format", "html"])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(?i)src=|href=|url\(|@import|<link", page)
    assert "default-src 'none'" in page
    for format_ in ("text", "markdown", "json"):
        assert "\x1b" not in read(capsys, ["simulate", load, "--format", format_])


def test_page_separates_the_queues_of_servers(capsys: pytest.CaptureFixture[str]) -> None:
    body = "name: a, as: alice, request: list pods -A, service: 900ms, bursts: {at: 0s, requests: 60}, count: 3"
    for servers, labels in (("1", set()), ("3", {"server 1", "server 2", "server 3"})):
        load = write_load(body, duration="5s", servers=servers)
        page = read(capsys, ["simulate", load, "--server-concurrency", "20", "--format", "html"])
        assert "Waiting requests of each queue" in page
        assert set(re.findall(r">(server \d)</text>", page)) == labels


def test_idle_clients_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    load = write_load(f"{CLIENT}, rate: 1/h", duration="1s")
    for format_ in ("text", "markdown", "html", "json"):
        printed = read(capsys, ["simulate", load, "--format", format_])
        assert "0 requests" in printed or '"requests": 0' in printed


def test_load_from_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with open(LOAD, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read()), "utf-8"))
    printed = read(capsys, ["simulate", "-", *COMMAND[2:]])
    assert printed.replace("standard input", LOAD) == read(capsys, COMMAND)


def test_mistake_in_the_load_has_its_line_and_a_caret(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        fail(capsys, ["simulate", write_load(f"{CLIENT}, rates: 1/s, think: 1s")])
        == """\
error: unknown key "rates". Did you mean "rate"?
 --> load.yaml:2:65
  |
2 | clients: [{name: a, as: alice, request: list pods, service: 1s, rates: 1/s, think: 1s}]
  |                                                                 ^^^^^
"""
    )


INVALID: list[tuple[dict[str, Any], list[str], str]] = [
    ({"body": CLIENT}, [], "this client sends no request"),
    ({"body": f"{CLIENT}, rate: 1/s", "servers": "2000000000"}, [], "the API servers have 1,072,000,000,000 queues"),
    ({"body": f"{CLIENT}, rate: 1/h", "duration": "100000h"}, [], "adjust their limits 36,000,003 times"),
    (
        {
            "body": 'name: a, as: "a-{n}", request: list pods, service: 1s, count: 2000000000, bursts: {at: 0s, requests: 1}'
        },
        [],
        "the load has 2,000,000,000 clients with their own user or request",
    ),
    ({"body": f"{CLIENT}, rate: 1/s, timeout: 500ms"}, [], "`timeout` is not longer than the median service time"),
    (
        {"body": f"{CLIENT}, rate: 9000000/s"},
        [],
        "the load has 810,000,000 requests, more than the maximum of 100,000,000",
    ),
    ({"body": f"{CLIENT}, rate: 900000/s"}, [], "up to 14,400,000 requests can be in flight at once, more than"),
    (
        {"body": "name: a, as: alice, request: get pods/log web, service: 1s, rate: 1/s"},
        [],
        "API Priority and Fairness does not classify this request in Kubernetes 1.37: it is long-running",
    ),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--scale", "0"], "--scale: 0 is not a number from 0.001 to 1,000,000"),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--scale", "nan"], "--scale: nan is not a number"),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--scale", "1000000"], "up to 16,000,000 requests can be in flight"),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--kubernetes", "1.30"], "simulations follow Kubernetes 1.31 and later"),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--compare", "defaults:1.20"], "simulations follow Kubernetes 1.31 and later"),
    (
        {"body": f"{CLIENT}, rate: 1/s"},
        ["-f", "batch.yaml"],
        'the API server rejects PriorityLevelConfiguration "batch" (batch.yaml:8)',
    ),
    (
        {"body": f"{CLIENT}, rate: 1/s"},
        ["--compare", "batch.yaml"],
        'the API server rejects PriorityLevelConfiguration "batch"',
    ),
    (
        {"body": f"{CLIENT}, rate: 1/s"},
        ["--set", "workload-low.queueLengthLimit=-1"],
        'rejects PriorityLevelConfiguration "workload-low"',
    ),
    (
        {"body": f"{CLIENT}, rate: 1/s"},
        ["--set", "workload-low.handSize=99"],
        'rejects PriorityLevelConfiguration "workload-low"',
    ),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--set", "exempt.queues=5"], 'rejects PriorityLevelConfiguration "exempt"'),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--set", "none.queues=5"], 'there is no priority level "none"'),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--set", "workload-low.queue=5"], 'Did you mean "queues"?'),
    ({"body": f"{CLIENT}, rate: 1/s"}, ["--live", "--cluster", "x"], "cannot be combined"),
]


@pytest.mark.parametrize(("load", "options", "words"), INVALID)
def test_load_or_configuration_that_cannot_be_simulated(
    load: dict[str, Any], options: list[str], words: str, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty / "batch.yaml").write_text(REJECTED, "utf-8")
    named = options if "-f" in options or "--live" in options else ["-f", "defaults:1.37", *options]
    if "--kubernetes" in options:
        named = ["-f", AFTER, *options]
    error = fail(capsys, ["simulate", write_load(**load), *named])
    assert words in error
    assert error.count("error:") + error.count("apflint:") <= 2


@pytest.mark.parametrize(
    "content", ["", "# only a comment\n", "[]", "clients: []", "\0", "duration: {{ x }}", "&a [*a]"]
)
def test_load_without_a_client(content: str, empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (empty / "load.yaml").write_text(content, "utf-8")
    assert "error: " in fail(capsys, ["simulate", "load.yaml"])


def test_load_that_cannot_be_read(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (empty / "load.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    assert "not a text file" in fail(capsys, ["simulate", "load.yaml"])
    assert "No such file" in fail(capsys, ["simulate", "missing.yaml"])
    assert ". is a directory: name a file that describes a load" in fail(capsys, ["simulate", "."])
    assert "standard input (-) can be used for only one input" in fail(capsys, ["simulate", "-", "-f", "-"])


def test_unknown_numbers_of_objects_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    load = write_load(f"{CLIENT}, rate: 1/s")
    assumption = "The simulation assumes that each list of pods takes 1 seat, because the load does not state how many objects are stored"
    for format_ in ("text", "markdown", "html"):
        printed = read(capsys, ["simulate", load, "--format", format_])
        assert 0 < printed.index(assumption) + 1 < printed.index("API server with")  # assumptions precede the results
    assert json.loads(read(capsys, ["simulate", load, "--format", "json"]))["assumptions"][0].startswith(assumption)
    counted = f"{CLIENT}, rate: 1/s"
    assert "Assumes" not in read(capsys, ["simulate", write_load(counted, objects="{pods: 9}")])


def write_two_clients() -> str:
    """Write a load in which one client fills the seats that both clients use. Return the name of the file."""
    with open("two.yaml", "w", encoding="utf-8") as file:
        file.write(
            "duration: 20s\nobjects: {pods: 10}\nclients:\n"
            "- {name: large, as: alice, request: list pods -A, service: 1s, rate: 10/s}\n"
            "- {name: small, as: bob, request: list pods -A, service: 100ms, rate: 2/s}\n"
        )
    return "two.yaml"


TWO = ["-f", "defaults:1.37", "--server-concurrency", "30", "--isolated"]


def test_warmup_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    load = write_two_clients()
    found = {
        warmup: json.loads(read(capsys, ["simulate", load, *TWO, "--format", "json", "--warmup", warmup]))
        for warmup in ("0", "30s", "1m")
    }
    default = json.loads(read(capsys, ["simulate", load, *TWO, "--format", "json"]))
    assert default == found["30s"] != found["1m"]
    assert {warmup: result["warmup"] for warmup, result in found.items()} == {"0": 0, "30s": 30, "1m": 60}
    assert all(result["duration"] == 20 for result in found.values())
    assert all(result["requests"] == pytest.approx(240, abs=40) for result in found.values())
    with open(load, "a", encoding="utf-8") as file:
        file.write("warmup: 0s\n")
    assert json.loads(read(capsys, ["simulate", load, *TWO, "--format", "json"])) == found["0"]
    assert json.loads(read(capsys, ["simulate", load, *TWO, "--format", "json", "--warmup", "1m"])) == found["1m"]
    sentence = "after a warm-up of 1m that does not count"
    for format_ in ("text", "markdown", "html"):
        assert sentence in read(capsys, ["simulate", load, *TWO, "--warmup", "1m", "--format", format_])
        assert "warm-up" not in read(capsys, ["simulate", load, *TWO, "--format", format_]).replace("--warmup", "")


def test_first_part_of_a_log_as_warmup(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    events = [logged(number, number, 0.1) for number in range(100)]
    found = simulate_log(capsys, empty, events, "--warmup", "30s")
    assert (found["requests"], found["warmup"]) == (70, 30)
    assert found["duration"] == pytest.approx(69)
    error = fail(capsys, ["simulate", "--from-audit", "audit.log", "--warmup", "2m"])
    assert "--warmup is not shorter than the audit log, which covers 1m 39s" in error


def test_cold_start_of_a_log_is_stated(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    events = [logged(number, 40 + number / 100, 5) for number in range(500)]
    for early, is_stated in ((logged(900, 0, 1), False), (logged(900, 39, 1), True)):
        log = str(write_log(empty / "audit.log", [early, *events]))
        options = ["-f", "defaults:1.37", "--server-concurrency", "9", "--format", "json"]
        found = json.loads(read(capsys, ["simulate", "--from-audit", log, *options], code=2))  # the back-test fails
        assert any(level["rejected"]["queue-full"] for level in found["levels"])
        assert any("begins with idle priority levels" in note for note in found["notes"]) == is_stated


def test_scale_and_without_of_one_client(capsys: pytest.CaptureFixture[str]) -> None:
    load = write_two_clients()

    def count(*options: str) -> dict[str, int]:
        found = json.loads(read(capsys, ["simulate", load, *TWO, "--format", "json", *options]))
        return {row["name"]: row["requests"] for level in found["levels"] for row in level["clients"]}

    base, large = count(), count("--scale", "large=50%")
    assert large["small"] == base["small"]
    assert large["large"] == pytest.approx(base["large"] / 2, rel=0.3)
    assert count("--without", "large") == {"small": base["small"]}
    both = count("--scale", "3", "--scale", "large=1")
    assert both["large"] == base["large"]
    assert both["small"] > 2 * base["small"]
    printed = read(capsys, ["simulate", load, *TWO, "--without", "large", "--scale", "2"])
    assert "Load: two.yaml with --scale 2 and --without large, after a warm-up" in printed


def test_scale_and_without_of_one_client_of_a_log(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    bob = {"username": "bob", "groups": ["system:authenticated"]}
    events = [logged(number, number, 0.1) for number in range(20)]
    events += [logged(100 + number, number, 0.1, user=bob) for number in range(10)]
    events += [logged(200 + number, number, 0.1, user=bob, verb="get") for number in range(5)]

    def count(*options: str) -> dict[str, int]:
        found = simulate_log(capsys, empty, events, *options)
        return {f"{row['user']} {row['verb']}": row["requests"] for row in found["level"]["clients"]}

    assert count() == {"alice list": 20, "bob list": 10, "bob get": 5}
    assert count("--without", "bob") == {"alice list": 20}
    assert count("--scale", "bob=2") == {"alice list": 20, "bob list": 20, "bob get": 10}
    assert count("--scale", "bob list=3") == {"alice list": 20, "bob list": 30, "bob get": 5}
    assert count("--without", "bob list pods") == {"alice list": 20, "bob get": 5}
    error = fail(capsys, ["simulate", "--from-audit", "audit.log", "--without", "bobb"])
    assert 'the load has no client "bobb". Did you mean "bob"?' in error


def test_request_without_a_file(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    words = ["--request", "list pods -A", "--as", "alice", "--rate", "5/s", "--duration", "20s", *TWO[:2], "--isolated"]
    found = json.loads(read(capsys, ["simulate", *words, "--format", "json", "--service-time", "100ms"]))
    (empty / "load.yaml").write_text(
        "duration: 20s\nclients: [{name: alice, as: alice, request: list pods -A, service: 100ms, rate: 5/s}]", "utf-8"
    )
    written = json.loads(read(capsys, ["simulate", "load.yaml", *TWO[:2], "--isolated", "--format", "json"]))
    assert found == written | {"load": "list pods -A of alice, 5/s"}
    assumed = json.loads(read(capsys, ["simulate", *words, "--format", "json", "--objects", "pods=1000:2000"]))
    assert assumed["assumptions"] == [
        "The simulation assumes that the server executes each request in 40 ms: state the real time with --service-time."
    ]
    assert next(level["seats"]["peak"] for level in assumed["levels"] if level["requests"]) > 1


def test_condition_that_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", write_two_clients(), *TWO]
    assert "--fail-if" not in read(capsys, [*command, "--fail-if", "small rejected", "--fail-if", "large waits > 5m"])
    conditions = ["--fail-if", "large waits > 10ms", "--fail-if", "level global-default waits > 10ms"]
    sentences = {}
    for format_ in ("text", "markdown", "html", "json"):
        assert run([*command, *conditions, "--format", format_]) == 1
        sentences[format_] = capsys.readouterr().out
    found = json.loads(sentences.pop("json"))
    assert [failure["condition"] for failure in found["failures"]] == conditions[1::2]
    for printed in sentences.values():
        assert "large waits too long: it waits up to" in printed
        assert "and the limit is 10 ms." in printed
    other = json.loads(read(capsys, [*command, "--compare", "defaults:1.36", "--format", "json"]))
    assert (other["new"]["failures"], other["old"]["failures"]) == ([], [])


@pytest.mark.parametrize("output_format", ["text", "json", "markdown", "html"])
def test_search(output_format: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    command = ["simulate", write_two_clients(), *TWO, "--search", "large", "--max-wait", "2s"]
    assert read(capsys, [*command, "--format", output_format]) == snapshot


def test_answer_of_a_search_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", write_two_clients(), *TWO]
    answer = json.loads(read(capsys, [*command, "--search", "large", "--format", "json"]))
    conditions = [f"{name} {what}" for name in ("large", "small") for what in ("rejected", "waits > 1s")]
    gate = [option for condition in conditions for option in ("--fail-if", condition)]
    assert run([*command, *gate, "--scale", f"large={answer['best']['factor']}"]) == 0
    assert run([*command, *gate, "--scale", f"large={answer['above']['factor']}"]) == 1
    capsys.readouterr()
    doubled = json.loads(read(capsys, [*command, "--search", "large", "--format", "json", "--scale", "large=2"]))
    assert doubled["best"]["rate"] == pytest.approx(answer["best"]["rate"], rel=0.05)


def test_search_in_a_log(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    write_log(empty / "audit.log", [logged(number, number / 2, 0.4) for number in range(60)])
    command = ["simulate", "--from-audit", "audit.log", "-f", "defaults:1.37", "--search", "alice", "--format", "json"]
    answer = json.loads(read(capsys, command))
    assert answer["best"]["works"] is True
    assert answer["best"]["rate"] == pytest.approx(answer["best"]["factor"] * 2, rel=0.05)
    assert answer["above"]["failures"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["LOAD", "--warmup", "soon"], '--warmup: "soon" is not a duration such as 500ms, 30s or 10m'),
        (["LOAD", "--warmup", "-1s"], '--warmup: "-1s" is not a duration of at least 0'),
        (["LOAD", "--warmup", "100000h"], "more than the maximum of"),
        (["LOAD", "--scale", "large=x"], '--scale: "large=x" is not FACTOR or CLIENT=FACTOR'),
        (["LOAD", "--scale", "larg=2"], '--scale: the load has no client "larg". Did you mean "large"?'),
        (["LOAD", "--without", "smal"], '--without: the load has no client "smal". Did you mean "small"?'),
        (["LOAD", "--without", "small", "--without", "large"], "--without: no client is left"),
        (["LOAD", "--fail-if", "smal rejected"], 'no client or priority level "smal". Did you mean "small"?'),
        (["LOAD", "--fail-if", "small fails"], '--fail-if: "small fails" is not a condition'),
        (["LOAD", "--search", "smal"], '--search: the load has no client "smal". Did you mean "small"?'),
        (["LOAD", "--search", "small", "--compare", "defaults:1.36"], "--search and --compare cannot be combined"),
        (["LOAD", "--search", "small", "--fail-if", "small rejected"], "--search and --fail-if cannot be combined"),
        (["LOAD", "--search", "small", "--max-wait", "x"], '--max-wait: "x" is not a duration'),
        (["LOAD", "--max-wait", "1s"], "--max-wait requires --search"),
        (["LOAD", "--as", "alice"], "--as requires --request"),
        (["LOAD", "--rate", "1/s"], "--rate requires --request"),
        (["LOAD", "--service-time", "1s"], "--service-time requires --request"),
        (["LOAD", "--duration", "1s"], "--duration requires --request"),
        (["LOAD", "--objects", "pods=3"], "--objects requires --from-audit or --request"),
        (["LOAD", "--request", "list pods"], "name a load file, or an audit log with --from-audit, or a request"),
        (["--request", "list pods"], "--request has no user: add --as"),
        (["--request", "list pods", "--as", "a"], "--request requires --rate, as in --rate 20/s"),
        (["--request", "list podz", "--as", "a", "--rate", "1/s"], 'Did you mean "pod"?'),
        (["--request", "list pods", "--as", "a", "--rate", "9"], '--rate: "9" is not a rate such as 20/s, 30/m or 5/h'),
        (["--request", "list pods", "--as", "a", "--rate", "1/s", "--duration", "0s"], "--duration: "),
        (["--request", "list pods", "--as", "a", "--rate", "1/s", "--service-time", "2m"], "most requests would never"),
        (["--request", "get pods/log web", "--as", "a", "--rate", "1/s"], "does not classify this request"),
        (["--request", "list pods", "--as", "a", "--rate", "9000000/s"], "more than the maximum"),
        (["--request", "list pods", "--as", "a", "--rate", "1/s", "--metrics", "m"], "--metrics requires --from-audit"),
    ],
)
def test_invalid_what_if(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    load = write_two_clients()
    error = fail(capsys, ["simulate", *(load if option == "LOAD" else option for option in options), *TWO])
    assert words in error
    assert error.count("error:") + error.count("apflint:") == 1


def logged(number: int, start: float, seconds: float, **changes: Any) -> dict[str, Any]:
    """Return an audit event of a list by alice, whose response takes `seconds`."""
    times = (
        datetime.fromtimestamp(1795326560 + at, UTC).isoformat(timespec="microseconds")
        for at in (start, start + seconds)
    )
    received, ended = (time.replace("+00:00", "Z") for time in times)
    audit_id = f"{number:08}-0000-0000-0000-000000000000"
    return event(auditID=audit_id, requestReceivedTimestamp=received, stageTimestamp=ended, **changes)


def simulate_log(
    capsys: pytest.CaptureFixture[str], directory: Path, events: list[dict[str, Any]], *options: str
) -> dict[str, Any]:
    """Simulate a log. Return the JSON result, with the level "global-default" under the additional key "level"."""
    log = str(write_log(directory / "audit.log", events))
    command = ["simulate", "--from-audit", log, "-f", "defaults:1.37", "--format", "json", *options]
    found = json.loads(read(capsys, command))
    (level,) = (level for level in found["levels"] if level["name"] == "global-default")
    return {**found, "level": level}


def test_requests_of_a_log(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    wait = {"authorization.k8s.io/decision": "allow", "apiserver.latency.k8s.io/apf-queue-wait": "1.5s"}
    events = [
        logged(1, 0, 2),
        logged(2, 1, 3.5, annotations=wait),  # 1.5 s of waiting, then 2 s of execution
        logged(3, 4, 0.5, responseStatus={"code": 429}, annotations=None),
        logged(4, 5, 1, verb="watch", requestURI="/api/v1/namespaces/team-a/pods?watch=1"),
        logged(5, 10, 1),
    ]
    found = simulate_log(capsys, empty, events)
    assert found["requests"] == found["level"]["requests"] == 4
    assert found["duration"] == pytest.approx(10)
    times = found["level"]["latencies"]
    assert (times["count"], times["max"]) == (4, 2)
    assert found["level"]["seats"]["peak"] == 2
    clients = [(client["name"], client["user"], client["resource"]) for client in found["level"]["clients"]]
    assert clients == [("alice list pods", "alice", "pods")]
    assert [note.split(" are ")[0].split(" whose ")[0] for note in found["notes"][:2]] == [
        "The service times of 1 rejected request",
        "Left out: 1 request",
    ]
    assert "does not show for every client how it would react" in found["notes"][2]
    (level,) = found["backtest"]["levels"]
    assert level == {
        "name": "global-default",
        "requests": 5,
        "logged": {"rejected": 1, "waitP99": 1.5},
        "simulated": {"rejected": 0, "waitP99": 0},
        "usable": True,  # the waits differ, but apflint compares only the waits of levels with 20 or more requests
    }


def test_scale_repeats_requests_of_a_log(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    events = [logged(number, number, 0.1) for number in range(200)]
    numbers = [simulate_log(capsys, empty, events, "--scale", scale)["requests"] for scale in ("1", "2", "0.5")]
    assert numbers[:2] == [200, 400]
    assert numbers[2] == pytest.approx(100, abs=25)


def test_lists_of_a_log_take_seats(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    events = [logged(1, 0, 1), logged(2, 10, 1)]
    assert simulate_log(capsys, empty, events, "--objects", "pods=400:1000")["level"]["seats"]["peak"] == 4


def test_file_without_requests_is_no_server(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    (empty / "logs").mkdir()
    write_log(empty / "logs/a.log", [logged(1, 0, 1, stage="RequestReceived")])
    write_log(empty / "logs/b.log", [logged(2, 0, 1), logged(3, 2, 1)])
    found = json.loads(read(capsys, ["simulate", "--from-audit", "logs", "-f", "defaults:1.37", "--format", "json"]))
    assert (found["servers"], found["requests"]) == (1, 2)


def test_compare_a_log(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    live = ROOT / "fixtures/replay/live"
    for name in ("objects-begin.json", "audit.log.gz"):
        shutil.copy(live / name, ".")
    command = ["simulate", "--from-audit", "audit.log.gz", "-f", "objects-begin.json"]
    options = ["--compare", "defaults:1.36", "--kubernetes", "1.36", "--server-concurrency", "20+10", "--isolated"]
    assert read(capsys, [*command, *options], code=2) == snapshot


def test_log_from_standard_input_is_read_once_for_both_sides(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ROOT / "fixtures/replay/live/audit.log.gz"
    objects = str(ROOT / "fixtures/replay/live/objects-begin.json")
    options = ["-f", objects, "--compare", BEFORE, "--kubernetes", "1.36", "--server-concurrency", "9", "--isolated"]
    expected = read(capsys, ["simulate", "--from-audit", str(log), *options, "--format", "json"], code=2)
    assert json.loads(expected)["differences"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.decompress(log.read_bytes())), "utf-8"))
    assert read(capsys, ["simulate", "--from-audit", "-", *options, "--format", "json"], code=2) == expected.replace(
        str(log), "standard input"
    )


def test_old_side_of_a_comparison_of_a_log_is_that_of_a_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "--from-audit", str(ROOT / "fixtures/replay/live/audit.log.gz"), "--kubernetes", "1.36"]
    options = ["--server-concurrency", "9", "--isolated", "--format", "json"]
    before, after = BEFORE, str(ROOT / "fixtures/replay/live/objects-begin.json")
    alone = json.loads(read(capsys, [*command, "-f", before, *options], code=2))
    found = json.loads(read(capsys, [*command, "-f", after, "--compare", before, *options], code=2))
    assert found["backtest"] == alone["backtest"]
    assert found["old"] == {name: value for name, value in alone.items() if name in found["old"]}
    assert found["old"] != found["new"]


INCIDENTS = ROOT / "fixtures/simulate/incidents"


def simulate_incident(name: str, *options: str, objects: str = "") -> list[str]:
    """Return a command that simulates the log of a recorded incident, with the objects and seats of the recorded server."""
    seats = json.loads((INCIDENTS / "recordings.json").read_text("utf-8"))[name]["seats"]
    inputs = [
        "-f",
        str(INCIDENTS / f"{objects or name}.objects.json"),
        "--metrics",
        str(INCIDENTS / f"{name}.metrics.txt"),
    ]
    server = ["--server-concurrency", str(seats), "--kubernetes", "1.36", "--isolated"]
    return ["simulate", "--from-audit", str(INCIDENTS / f"{name}.log.gz"), *inputs, *server, *options]


@pytest.mark.parametrize("format_", ["text", "markdown", "html", "json"])
def test_back_test_stands_first(
    capsys: pytest.CaptureFixture[str], format_: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(INCIDENTS)
    command = [word.replace(f"{INCIDENTS}/", "") for word in simulate_incident("small-level", "--format", format_)]
    printed = read(capsys, command)
    if format_ == "json":
        found = json.loads(printed)
        assert {name: found[name] for name in ("backtest", "warnings", "ranges")} == snapshot
    elif format_ == "html":
        assert "The log has 1,834 rejections" in printed.split("<h1", 1)[1].split("</p>", 1)[0]
    else:
        assert printed.startswith(("The log has 1,834 rejections", "**The log has 1,834 rejections"))
        assert printed == snapshot


def test_unusable_back_test_stands_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = read(capsys, simulate_incident("watch-init-storm"), code=2).splitlines()
    assert lines[0].startswith("Unreliable: this simulation does not reproduce the log.")
    assert "workload-low has watches" in "\n".join(lines[2:4])


def test_back_test_is_that_of_the_configuration_without_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    alone = json.loads(read(capsys, simulate_incident("small-level", "--format", "json")))
    change = ["--set", "reporting.nominalConcurrencyShares=150"]
    changed = json.loads(read(capsys, simulate_incident("small-level", *change, "--format", "json")))
    old = ["--compare", str(INCIDENTS / "small-level.objects.json")]
    compared = json.loads(
        read(capsys, simulate_incident("small-level", *old, "--format", "json", objects="small-level-fixed"))
    )
    assert alone["backtest"] == changed["backtest"] == compared["backtest"]
    for result in (changed, compared["new"]):
        (level,) = (level for level in result["levels"] if level["name"] == "reporting")
        assert sum(level["rejected"].values()) == 0
    (level,) = (level for level in compared["old"]["levels"] if level["name"] == "reporting")
    assert sum(level["rejected"].values()) == 1842


def test_report_names_what_it_cannot_predict(capsys: pytest.CaptureFixture[str]) -> None:
    old = ["--compare", str(INCIDENTS / "list-heavy.objects.json")]
    printed = read(capsys, simulate_incident("list-heavy", *old, objects="list-heavy-fixed"))
    (line,) = (line for line in printed.splitlines() if "Not predicted" in line)
    assert "asset-sync: list configmaps. In the log, a request takes 186 ms if at most 3 execute at once" in line
    old = ["--compare", str(INCIDENTS / "slow-webhook.objects.json")]
    printed = read(capsys, simulate_incident("slow-webhook", *old, objects="slow-webhook-fixed"))
    (line,) = (line for line in printed.splitlines() if "Not predicted" in line)
    assert "does not show the effect of a faster webhook" in line


def test_interrupt_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("apflint.simulate.logged_simulation.survey_log", interrupt)
    assert run(simulate_incident("small-level")) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "apflint: interrupted before there was a result (comparing requests)\napflint: interrupted\n"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Enable SIGINT in this process. A shell disables SIGINT for tests that it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupt_at(slot: int) -> Iterator[None]:
    """Send SIGINT to this process at the end of the time slot `slot` of the statistics.

    Slots are numbered from 1, across all simulations of the run.
    """
    before, slots = Statistics.sample, itertools.count(1)

    def sample(statistics: Statistics) -> None:
        before(statistics)
        if next(slots) == slot:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Statistics, "sample", sample)
        yield


@pytest.mark.usefixtures("interruptible")
def test_interrupt_of_a_simulation_gives_the_result_until_then(capsys: pytest.CaptureFixture[str]) -> None:
    command = simulate_incident("small-level", "--format", "json")
    whole = json.loads(read(capsys, command))
    for slot in (1, 60, 119):
        with interrupt_at(slot):
            assert run(command) == 130
        printed = capsys.readouterr()
        assert printed.err == "apflint: interrupted: the result covers only a part of the log\n"
        part = json.loads(printed.out)
        assert part["notes"][0].startswith("Interrupted: only a part of the log was simulated")
        assert part["duration"] == pytest.approx(whole["duration"] * slot / 120, rel=1e-3)
        logged = {level["name"]: level["requests"] for level in part["backtest"]["levels"]}
        for level, other in zip(part["levels"], whole["levels"], strict=True):
            # Until the interrupt, each slot has the same seats, limits and rejections as in the complete simulation.
            assert level["overTime"] == {name: values[:slot] for name, values in other["overTime"].items()}
            assert level["executed"] + sum(level["rejected"].values()) == level["attempts"]
            assert level["attempts"] == logged.get(level["name"], 0), "the back-test is of the same part"


@pytest.mark.usefixtures("interruptible")
def test_interrupt_of_the_change_keeps_the_back_test(capsys: pytest.CaptureFixture[str]) -> None:
    command = simulate_incident("small-level", "--set", "reporting.nominalConcurrencyShares=150", "--format", "json")
    whole = json.loads(read(capsys, command))
    with interrupt_at(2 * 120 + 30):  # after the back-test, which simulates this log twice
        assert run(command) == 130
    part = json.loads(capsys.readouterr().out)
    assert part["duration"] == pytest.approx(whole["duration"] / 4, rel=1e-3)
    assert part["backtest"] == whole["backtest"]


@pytest.mark.usefixtures("interruptible")
def test_interrupt_of_a_further_assumption_keeps_the_first_one(capsys: pytest.CaptureFixture[str]) -> None:
    command = simulate_incident("small-level", "--format", "json")
    with interrupt_at(120 + 30):
        assert run(command) == 130
    printed = capsys.readouterr()
    assert printed.err == "apflint: interrupted before all assumptions about the log were tried\n"
    assert not json.loads(printed.out)["notes"][0].startswith("Interrupted")


@pytest.mark.usefixtures("interruptible")
def test_second_interrupt_ends_a_simulation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Statistics.sample

    def sample(statistics: Statistics) -> None:
        before(statistics)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Statistics, "sample", sample)
    assert run(simulate_incident("small-level")) == 130
    assert "interrupted before there was a result" in capsys.readouterr().err


def test_first_rejected_object_is_named(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    (empty / "a.yaml").write_text(REJECTED.replace("batch", "a"), "utf-8")
    for name in ("z", "y", "x"):
        (empty / f"{name}.yaml").write_text(REJECTED.replace("batch", name).replace("Reject}", "None}"), "utf-8")
    load = write_load(f"{CLIENT}, rate: 1/s")
    error = fail(capsys, ["simulate", load, "-f", "z.yaml", "-f", "a.yaml", "-f", "y.yaml", "-f", "x.yaml"])
    assert 'the API server rejects PriorityLevelConfiguration "a" (a.yaml:8)' in error


def test_clusters_of_the_settings(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    settings = (
        f'[[cluster]]\nname = "{name}"\npaths = ["{path}"]\nkubernetes = "1.36"\nserver-concurrency = {seats}\n'
        for name, path, seats in (("old", "before", 20), ("new", "after", 30))
    )
    shutil.copytree(BEFORE, empty / "before")
    shutil.copytree(AFTER, empty / "after")
    (empty / "apflint.toml").write_text("".join(settings), "utf-8")
    found = json.loads(read(capsys, ["simulate", LOAD, "--cluster", "new", "--format", "json"]))
    built_in = "built-in objects of 1.36"
    assert found["configuration"] == f"cluster:new (5 objects) and {built_in}"
    same = json.loads(read(capsys, [*COMMAND, "--format", "json"]))
    assert same == found | {"configuration": f"{AFTER} (5 objects) and {built_in}"}
    compared = json.loads(
        read(capsys, ["simulate", LOAD, "--cluster", "new", "--compare", "cluster:old", "--format", "json"])
    )
    assert [compared[side]["serverConcurrency"] for side in ("old", "new")] == [20, 30]
    for format_ in ("text", "markdown", "html"):
        options = ["--cluster", "new", "--compare", "cluster:old", "--format", format_]
        assert "The old side has 20 seats on each API server, and Kubernetes 1.36." in read(
            capsys, ["simulate", LOAD, *options]
        )
    assert compared["new"] == found
    # With --cluster, `--compare .` stands for the same cluster.
    same = json.loads(read(capsys, ["simulate", LOAD, "--cluster", "new", "--compare", ".", "--format", "json"]))
    assert same["old"] == same["new"] == found


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    user = "name: a, as: alice, request: list pods -A, service: 1s, bursts: {at: 0s, requests: 9}, groups: [dev]"
    load = write_load(user, duration="10s")
    with serve(recorded_answers(), empty) as kubeconfig:
        live = ["--live", "--kubeconfig", kubeconfig, "--server-concurrency", "30"]
        found = json.loads(read(capsys, ["simulate", load, *live, "--format", "json"]))
        compared = [
            json.loads(read(capsys, ["simulate", load, *options, "--compare", "live", "--format", "json"]))
            for options in (["-f", "defaults:1.36", *live[1:]], [*live, "--set", "tenant.nominalConcurrencyShares=9"])
        ]
    assert found["kubernetes"] == "1.36"
    (level,) = (level for level in found["levels"] if level["requests"])
    assert (level["name"], level["requests"]) == ("tenant", 9)
    for sides, name in zip(compared, ("global-default", "tenant"), strict=True):
        assert sides["old"] == found != sides["new"]
        assert [level["name"] for level in sides["new"]["levels"] if level["requests"]] == [name]


def test_log_that_cannot_be_simulated(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    log = str(write_log(empty / "audit.log", [logged(1, 0, 1, responseStatus={"code": 429}, annotations=None)]))
    assert "none has a known service time" in fail(capsys, ["simulate", "--from-audit", log])
    (empty / "empty.log").write_text("", "utf-8")
    assert "the audit log has no request" in fail(capsys, ["simulate", "--from-audit", "empty.log"])
    assert "name a load file, or an audit log with --from-audit, or a request with --request" in fail(
        capsys, ["simulate"]
    )
    assert "name a load file, or an audit log with --from-audit, or a request with --request" in fail(
        capsys, ["simulate", LOAD, "--from-audit", log]
    )
    assert "requires --from-audit" in fail(capsys, ["simulate", LOAD, "--objects", "pods=3"])
    assert "No such file" in fail(capsys, ["simulate", "--from-audit", "missing.log"])
    (empty / "damaged.log.gz").write_bytes(b"\x1f\x8b\x08\x00garbage")
    assert "damaged.log.gz" in fail(capsys, ["simulate", "--from-audit", "damaged.log.gz"])
    write_log(empty / "many.log", [logged(number, number, 1) for number in range(200)])
    error = fail(capsys, ["simulate", "--from-audit", "many.log", "--scale", "1000000"])
    assert "the load has 200,000,000 requests, more than the maximum" in error


@pytest.mark.parametrize(
    ("top", "ticks"),
    [(1.05, [0, 1]), (5.2, [0, 2, 4]), (31, [0, 10, 20, 30]), (99_999, list(range(0, 80_001, 20_000)))],
)
def test_seats_have_round_ticks(top: float, ticks: list[int]) -> None:
    assert list(list_ticks(top)) == ticks
