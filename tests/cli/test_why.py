"""`apflint why`: files recognized by their content, a short answer from any evidence, and clear errors for bad input."""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
import shutil
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import serve
from support.incidents import find_files
from support.recordings import ROOT

from apflint.cli.app import run
from apflint.cli.prometheus_options import PrometheusOptions
from apflint.doctor.snapshot import group_servers
from apflint.doctor.worst_interval import ClusterLoad
from apflint.output.client_diagnosis import MAX_ROWS
from apflint.sources import live_servers
from apflint.sources.prometheus_server import ClusterReading, Period, PrometheusReading
from apflint.sources.server_state_files import read_parts

from .test_doctor_live import answers

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

LOGS = ROOT / "fixtures" / "simulate" / "incidents"
SMALL, SMALL_LEVEL = "small-level", "reporting"
DASHBOARD = "system:serviceaccount:bi:dashboard"
TAGGER, FRONTEND = "system:serviceaccount:ci:image-tagger", "system:serviceaccount:web:frontend"
FLOOD = [str(path) for path in find_files("flood-one-flow", "12", dumps=True)]
METRICS = [path for path in FLOOD if "metrics" in path]
DUMP = next(path for path in FLOOD if "dump_requests" in path)
OBJECTS = ["-f", str(LOGS / "flood-one-flow.objects.json")]
SERVER_LOG = (
    'I1123 16:23:31.000000       1 httplog.go:134] "HTTP" verb="GET" URI="/api/v1/pods" latency="2.1s" userAgent="x"'
    ' audit-ID="a" apf_pl="workload-low" apf_fs="service-accounts" apf_iseats=1 apf_fseats=0 apf_additionalLatency="0s"'
    ' fl_priorityandfairness="2.0s" resp=429\n'
)


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command in an empty directory, which has no objects."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return the JSON of an answer."""
    assert run(["why", "--isolated", "--format", "json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def fail(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command with invalid arguments, and return its error message."""
    assert run(["why", "--isolated", *words]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "Traceback" not in err
    return err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with all recorded files about an incident, and with unrelated files."""
    path = tmp_path / "incident"
    path.mkdir()
    for file in find_files(SMALL, "12", dumps=True):
        shutil.copy(file, path)
    shutil.copy(LOGS / f"{SMALL}.log.gz", path / "audit.log.gz")
    shutil.copy(LOGS / f"{SMALL}.objects.json", path / "objects.json")
    (path / "notes.md").write_text("Paged at 3 a.m.\n", "utf-8")
    (path / "label.yaml").write_text("kind: Other\n", "utf-8")
    return path


def test_pattern_of_several_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A quoted pattern names all matching files."""
    files = sorted(map(str, folder.glob("*metrics*")))
    assert len(files) == 2
    answer = ask(capsys, "--as", DASHBOARD, "--metrics", str(folder / "*metrics*"))
    assert answer == ask(capsys, "--as", DASHBOARD, *files)


def test_directory_of_an_incident(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "--as", DASHBOARD, str(folder))
    assert (answer["role"], answer["flowSchema"], answer["cause"]["cause"]) == ("victim", "reporting", "small-level")
    assert answer["certain"] is True
    assert answer["basedOn"] == ["2 snapshots", "its requests in a dump (0) and a log (983)"]
    assert "objects.json (21 objects)" in answer["configuration"]
    assert answer["actions"][0]["command"].startswith(f"apflint propose {folder}/audit.log.gz -f {folder}/objects.json")


@pytest.mark.parametrize("output_format", ["text", "markdown", "html", "json"])
def test_formats(output_format: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    words = ["--as", TAGGER, *FLOOD, *OBJECTS, "--format", output_format]
    assert run(["why", "--isolated", *words]) == 0
    out = capsys.readouterr().out.replace(f"{ROOT}/", "")
    if output_format == "html":  # remove the style sheet, which is the same in all pages
        out = out[out.index("<body") :]
    assert out == snapshot


def test_text_of_each_kind_of_evidence(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshots are answers in a terminal of 80 columns, from all files, a log, metrics, a dump, or manifests."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.chdir(folder)
    files = {
        "everything": ["1-during.metrics.txt.gz", "2-during.metrics.txt.gz", "1-during.dump_requests.txt.gz"],
        "log": ["audit.log.gz"],
        "metrics": ["2-during.metrics.txt.gz"],
        "dump": ["1-during.dump_requests.txt.gz"],
        "manifests": ["objects.json"],
    }
    files["everything"] += files["log"]
    texts = {}
    for name, words in files.items():
        assert run(["why", "--isolated", "--as", DASHBOARD, "get", "configmaps", *words, "objects.json"]) == 0
        texts[name] = capsys.readouterr().out
        rows = sum(max(1, -(-len(line) // 80)) for line in texts[name].splitlines())
        assert rows <= MAX_ROWS, texts[name]
    assert texts == snapshot


@pytest.mark.parametrize("name", ["flood-one-flow", "list-heavy", "restart", SMALL])
@pytest.mark.parametrize("moments", ["1", "12"])
def test_numbers_name_their_period(
    name: str, moments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number of rejections has a period, and each share of users says what it counts, within `MAX_ROWS` rows."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shots = [str(path) for path in find_files(name, moments, dumps=True)]
    logs = [str(path) for path in LOGS.glob(f"{name}.log.gz")]
    counts = 0
    only_logs = [logs] if moments == "1" else []  # the moments select no logs
    for files in (shots, *only_logs, [*shots, *logs]):
        for user in (TAGGER, FRONTEND, DASHBOARD):
            words = [
                "why",
                "--isolated",
                "--color",
                "never",
                "--as",
                user,
                *files,
                "-f",
                str(LOGS / f"{SMALL}.objects.json"),
            ]
            assert run(words) == 0
            out = capsys.readouterr().out
            assert sum(max(1, -(-len(line) // 80)) for line in out.splitlines()) <= MAX_ROWS
            text = " ".join(out.split())
            (line,) = [*re.findall(r" Level (.*?) (?:Cause|Also|Start|Do|Unsure|Certain|Release) ", text), ""][:1]
            counted = re.findall(r"[\d,]+ rejected(.{,12})", line)
            assert all(re.match(r" in \d+ s[,. ]| since start", after) for after in counted), line
            logged = re.findall(r"Log (.*?): [\d,]+ requests?, [\d,]+ rejected", text)
            assert all(re.fullmatch(r"(\S+ )?[\d:]+ to (\S+ )?[\d:]+ UTC", period) for period in logged), text
            shares = re.findall(r"(.{,60}): \S+ \d+%", line)
            assert all(re.search(r"Demand in the (dump \(incl\. waiting|log \(incl\. rejected)\)$", s) for s in shares)
            counts += len(counted) + len(logged) + len(shares)
    assert counts > 0


def keep_end_of_log(path: Path) -> None:
    """Keep the last 200 lines of a log, which still have requests of `DASHBOARD`. A run needs a tenth of a second less."""
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[-200:]
    assert any(DASHBOARD.encode() in line for line in lines)
    path.write_bytes(gzip.compress(b"".join(lines)))


@pytest.mark.parametrize(
    ("word", "user"),
    [
        (DASHBOARD, DASHBOARD),
        ("bi/dashboard", DASHBOARD),
        ("serviceaccount:bi/dashboard", DASHBOARD),
        ("ServiceAccount:bi/dashboard", DASHBOARD),
        (f"user:{DASHBOARD}", DASHBOARD),
        ("alice", "alice"),
        ("user:list", "list"),
        ("system:kube-scheduler", "system:kube-scheduler"),
        ("alice@example.com", "alice@example.com"),
        ("https://issuer#alice", "https://issuer#alice"),
    ],
)
def test_client_without_an_option(word: str, user: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_end_of_log(folder / "audit.log.gz")
    for words in ([word, str(folder)], [str(folder), word], [word, "list", "pods", str(folder)]):
        answer = ask(capsys, *words)
        options = words[1:] if words[0] == word else words[:1]
        assert answer == ask(capsys, "--as", user, *options)


@pytest.mark.parametrize(
    ("word", "kind", "condition"),
    [
        ("group:bi", "a group", "group=bi"),
        ("system:masters", "a group", "group=system:masters"),
        ("system:serviceaccounts:bi", "a group", "group=system:serviceaccounts:bi"),
        ("prometheus/2.53.0", "a user agent", "userAgent=prometheus/2.53.0"),
        ("kubectl/v1.36 (linux)", "a user agent", "'userAgent=kubectl/v1.36 (linux)'"),
        ("useragent:curl", "a user agent", "userAgent=curl"),
    ],
)
def test_group_or_user_agent_instead_of_a_user(
    word: str, kind: str, condition: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has a command that lists the users. The command names the audit log, so it runs as printed."""
    assert f" is {kind}, not a user. Name one user: apflint why --as USER" in fail(capsys, word, "list", "pods")
    message = " ".join(fail(capsys, word, str(folder)).split())
    command = message.rpartition("apflint ")[2]
    assert command == f"replay {folder}/audit.log.gz --where {condition} --by user"
    assert run([*shlex.split(command), "--isolated"]) == 0


def test_client_with_a_similar_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "dashboard", "get", "configmaps", str(folder))
    (action,) = answer["actions"]
    assert action["command"] == f"apflint why --as {DASHBOARD} get configmaps {folder}"
    assert ask(capsys, *shlex.split(action["command"])[2:])["role"] == "victim"


def test_name_of_a_group_in_the_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = [json.loads(line) for line in gzip.decompress((folder / "audit.log.gz").read_bytes()).splitlines()]
    for event in log:
        event["user"].setdefault("groups", []).append("analysts")
    (folder / "audit.log.gz").write_bytes(gzip.compress(b"".join(json.dumps(event).encode() + b"\n" for event in log)))
    (action,) = ask(capsys, "analysts", str(folder))["actions"]
    assert action["command"] == f"apflint replay {folder}/audit.log.gz --where group=analysts --by user"


@pytest.mark.parametrize("word", ["metrics-3.txt", "./alice", "audit.log.gz", "objects.json"])
def test_misspelled_file_is_no_client(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{word}: no such file or directory" in fail(capsys, word)


def test_log_names_the_client_that_metrics_do_not_show(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in find_files("list-heavy", "12", dumps=False)]
    objects = ["-f", str(LOGS / "list-heavy.objects.json")]
    words = [*files, str(LOGS / "list-heavy.log.gz"), *objects]
    answer = ask(capsys, "--as", FRONTEND, *words)
    culprit = "system:serviceaccount:inventory:asset-sync"
    assert (answer["role"], answer["cause"]["users"], answer["clientsSource"]) == ("victim", [culprit], "log")


def test_log_without_the_seats_of_the_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The level has 1 of the server's 30 seats.

    If the server had the default of 600 seats, the level would have 10 seats, which is enough for its clients.
    """
    words = ["--as", DASHBOARD, f"{folder}/audit.log.gz", "-f", f"{folder}/objects.json"]
    answer = ask(capsys, *words)
    assert not answer["certain"]
    assert "apflint assumes 600 seats of an API server" in answer["missing"][0]["text"]
    answer = ask(capsys, *words, "--server-concurrency", "30")
    assert (answer["role"], answer["cause"]["cause"]) == ("victim", "small-level")
    assert not any("assumed" in gap["text"] for gap in answer["missing"])


def test_shares_and_queues_for_a_level_that_rejects_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`why` names the shares as `limits --want` does, and has the words of `doctor` about queues. The text has both, too."""
    monkeypatch.setenv("COLUMNS", "80")
    metrics, objects = str(folder / "2-during.metrics.txt.gz"), ["-f", str(folder / "objects.json")]
    assert run(["doctor", "--isolated", "--format", "json", metrics]) == 0
    (cause,) = json.loads(capsys.readouterr().out)["causes"]
    more, queues, _ = (action["text"] for action in cause["actions"])
    words = ["--as", DASHBOARD, metrics, *objects]
    texts = [action["text"] for action in ask(capsys, *words)["actions"]]
    assert (
        run(["limits", *objects, "--server-concurrency", "30", "--want", f"{SMALL_LEVEL}=4", "--format", "json"]) == 0
    )
    (wanted,) = json.loads(capsys.readouterr().out)["wanted"]
    shares = wanted["shares"]
    assert texts[:2] == [f"{more}. {shares} shares give 4 seats", queues]
    assert run(["why", "--isolated", *words]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{shares} shares give 4 seats." in text
    assert "limitResponse type Queue instead of Reject." in text
    # The metrics show that the level rejects at once. Without metrics, the configuration shows that the
    # level rejects at once.
    log = [f"{folder}/audit.log.gz", *objects, "--server-concurrency", "30"]
    assert queues in [action["text"] for action in ask(capsys, "--as", DASHBOARD, *log)["actions"]]


def test_no_shares_if_the_servers_have_other_limits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shares of a configuration say nothing about servers whose level has another number of seats."""
    objects = folder / "objects.json"
    other = json.loads(objects.read_text("utf-8"))
    for item in other["items"]:
        if item["kind"] == "PriorityLevelConfiguration" and item["metadata"]["name"] == SMALL_LEVEL:
            item["spec"]["limited"]["nominalConcurrencyShares"] = 50
    objects.write_text(json.dumps(other), "utf-8")
    metrics = str(folder / "2-during.metrics.txt.gz")
    answer = ask(capsys, "--as", DASHBOARD, metrics, "-f", str(objects))
    assert answer["cause"]["cause"] == SMALL
    assert not any(" shares give " in action["text"] for action in answer["actions"])


def test_dump_does_not_show_rejections(capsys: pytest.CaptureFixture[str]) -> None:
    (dump,) = (str(path) for path in find_files(SMALL, "1", dumps=True, metrics=False) if "dump_requests" in path.name)
    answer = ask(capsys, "--as", "system:serviceaccount:bi:report-builder", dump)
    assert (answer["role"], answer["isAPF"]) == ("unknown", None)
    assert "the evidence does not show whether the level rejects requests" in answer["answer"]


def test_metrics_alone_do_not_accuse(capsys: pytest.CaptureFixture[str]) -> None:
    for user in (TAGGER, FRONTEND):
        answer = ask(capsys, "--as", user, *METRICS, *OBJECTS)
        assert (answer["role"], answer["priorityLevel"], answer["isAPF"]) == ("affected", "workload-low", True)
        assert not answer["certain"]
        assert "dump_requests" in answer["missing"][0]["command"]


@pytest.mark.parametrize(
    ("user", "similar"),
    [
        ("image-tagger", TAGGER),
        ("ci/image-tagger", TAGGER),
        ("system:serviceaccount:ci:image-taggr", TAGGER),
        ("frontend", FRONTEND),
    ],
)
def test_client_that_the_dump_does_not_show(user: str, similar: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "--as", user, DUMP)
    assert (answer["role"], answer["isAPF"], answer["similarUsers"]) == ("unknown", None, [similar])
    assert "name the request in question" in answer["missing"][0]["text"]


def test_groups_of_a_client_that_the_dump_does_not_show(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "--as", "bob", "list", "pods", DUMP, METRICS[1], *OBJECTS)
    assert (answer["role"], answer["priorityLevel"], answer["similarUsers"]) == ("bystander", "global-default", [])
    assert "its groups with --as-group" in answer["missing"][0]["text"]
    answer = ask(capsys, "--as", "bob", "--as-group", "system:masters", "list", "pods", DUMP, *OBJECTS)
    assert answer["priorityLevel"] == "exempt"
    assert "--as-group" not in answer["missing"][0]["text"]


def test_servers_with_other_objects_than_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    """If the servers have other objects than the configuration, only a dump shows the level of a client."""
    files = [str(path) for path in find_files("leases-captured", "12", dumps=True)]
    metrics = [path for path in files if "metrics" in path]
    node = "system:node:worker-1"
    answer = ask(capsys, "--as", node, *metrics, str(LOGS / "leases-captured.log.gz"))
    assert (answer["role"], answer["isAPF"]) == ("unknown", None)
    assert 'the configuration lacks ("platform" and "platform-shared")' in answer["missing"][0]["text"]
    answer = ask(capsys, "--as", node, *files)
    assert (answer["role"], answer["flowSchema"], answer["certain"]) == ("victim", "platform-shared", True)


def test_level_that_the_servers_do_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "apf.yaml"
    schema = json.loads((LOGS / "small-level.objects.json").read_text("utf-8"))
    schema["items"] = [item for item in schema["items"] if item["metadata"]["name"] == "reporting"]
    path.write_text(json.dumps(schema), "utf-8")
    answer = ask(capsys, "--as", DASHBOARD, "list", "pods", *METRICS, "-f", str(path))
    assert (answer["role"], answer["isAPF"]) == ("unknown", None)
    assert 'The servers do not have the level "reporting"' in answer["missing"][0]["text"]


def test_manifests_alone(capsys: pytest.CaptureFixture[str]) -> None:
    manifests = str(ROOT / "fixtures" / "stories" / "small-cluster" / "manifests")
    answer = ask(capsys, "--as", "alice", "list", "pods", "-n", "team-a", manifests)
    assert (answer["role"], answer["verdict"], answer["basedOn"]) == ("unknown", None, [])
    assert answer["placements"][0]["source"] == "configuration"
    assert answer["actions"][0]["command"] == "apflint why --as alice list pods -n team-a --live --watch 10s"


def test_request_that_is_not_classified(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--as", TAGGER, "create", "pods/exec", "web-0", "-n", "ci"]
    for files in ([], FLOOD):
        answer = ask(capsys, *words, *files)
        assert (answer["role"], answer["isAPF"], answer["certain"]) == ("bystander", False, True)
        assert answer["answer"].startswith("API Priority and Fairness does not classify this request")
        assert answer["placements"] == []


def test_nothing_but_a_client(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "--as", "alice")
    assert (answer["role"], answer["flowSchema"]) == ("unknown", "global-default")


def test_log_of_the_server_names_no_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kube-apiserver.log"
    path.write_text(6 * SERVER_LOG, "utf-8")
    assert run(["why", "--isolated", "--as", FRONTEND, "list", "pods", str(path), *OBJECTS]) == 0
    out = capsys.readouterr().out
    assert (
        "In the log of the server (11-23 16:23:31.000000 to 11-23 16:23:31.000000), 6 of 6 requests at this FlowSchema and level were"
        " rejected, and 6 waited, up to 2.0 s." in " ".join(out.split())
    )
    assert "names no users" in out


def test_healthy_server(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in find_files("healthy-busy", "12", dumps=True)]
    answer = ask(capsys, "--as", FRONTEND, *files)
    assert (answer["role"], answer["isAPF"], answer["certain"]) == ("bystander", False, True)
    assert answer["answer"].startswith('Healthy: "workload-low" neither delays nor rejects')
    assert "client-side throttling" in answer["actions"][0]["text"]


def test_requests_of_another_kind_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "--as", TAGGER, "create", "configmaps", DUMP)
    assert answer["placements"][0]["requests"][0]["requests"] == 310
    answer = ask(capsys, "--as", TAGGER, "list", "pods", DUMP)
    assert answer["placements"][0]["requests"] == []


def test_order_of_the_files_does_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "--as", TAGGER, *FLOOD)
    assert answer == ask(capsys, "--as", TAGGER, *(word for path in reversed(FLOOD) for word in ("--dump", path)))


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = (ROOT / "fixtures" / DUMP).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False))
    assert ask(capsys, "--as", TAGGER, "-")["role"] == "culprit"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.decompress(data)), isatty=lambda: False))
    assert ask(capsys, "--as", TAGGER, "-")["role"] == "culprit"


def test_name_of_a_directory_can_be_a_resource(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "work" / "pods").mkdir()
    assert ask(capsys, "--as", "alice", "list", "pods")["flowSchema"] == "global-default"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "no client given. Name the user, as in apflint why alice"),
        (
            ["--as", "alice", "durng.txt"],
            "durng.txt: no such file or directory, and not a verb. A request begins with a verb",
        ),
        (["--as", "alice", "list", "pdos"], 'Did you mean "pods"?'),
        (["--as", "alice", "list"], '"list" is incomplete'),
        (["--as", "alice", "-n", "a"], "-n and -A require a request"),
        (["--as", "alice", "list", "pods", "-n", "a", "-A"], "-n and -A cannot be combined"),
        (["--as", "alice", "list", "pods", "-n", "A B"], "is not a valid name of a namespace"),
        (["--as", "alice", "-", "-"], "standard input (-) can be read only once"),
        (["--as", "alice", "--watch", "10s"], "--watch requires --live"),
        (["--as", "alice", "--since", "1h"], "--since requires --prometheus"),
        (["--as", "alice", "-f", "absent.yaml"], "No such file or directory"),
        (["--as", "alice", "--log", "absent.log"], "No such file or directory"),
        (["--as", "alice", DUMP, "--live"], "and --live cannot be combined"),
        (["--as", "alice", DUMP, "--prometheus", "http://x"], "cannot be combined with --prometheus"),
        (["--as", "alice", str(ROOT / "README.md")], "this is neither metrics, nor a debug dump, nor an audit log"),
    ],
)
def test_errors(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error in fail(capsys, *words)


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(b"\x1f\x8b" + b"x" * 100)
    assert "damaged" in fail(capsys, "--as", "alice", str(damaged))
    assert "damaged" in fail(capsys, "--as", "alice", str(tmp_path))
    (tmp_path / "link").symlink_to("absent")
    assert "does not exist" in fail(capsys, "--as", "alice", str(tmp_path / "link"))
    short = tmp_path / "work" / "metrics.txt.gz"
    short.write_bytes((ROOT / "fixtures" / METRICS[0]).read_bytes()[:5000])
    assert "incomplete or damaged" in fail(capsys, "--as", "alice", str(short))


def test_damaged_log_is_an_error_after_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.log.gz"
    path.write_bytes((LOGS / "slow-webhook.log.gz").read_bytes()[:30_000])
    assert run(["why", "--isolated", "--as", "jane", str(path), "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert (
        json.loads(out)["missing"][-1]["text"]
        == "apflint could not read a part of the log, so requests may be missing."
    )
    assert f"{path}:" in err
    assert "ends too early" in err


def test_longest_names_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for user in ("u" * 253, f"system:serviceaccount:{'n' * 63}:{'s' * 253}", "a b " * 60):
        assert run(["why", "--isolated", "--color", "never", "--as", user, *FLOOD]) == 0
        text = capsys.readouterr().out
        # Commands do not count: they contain the whole user name, so that they can be copied.
        rows = [line for line in text.splitlines() if not line.lstrip().startswith("apflint ")]
        assert sum(max(1, -(-len(row) // 80)) for row in rows) <= MAX_ROWS, text


@pytest.mark.parametrize("content", [b"", b"\0\xff\xfe", b"{", b'{"kind":"Event"}\n', b"a,b\n"])
def test_unknown_content(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    reason = "this is neither metrics" if content else "the file is empty"
    assert reason in fail(capsys, "--as", "alice", str(path))


def test_log_without_a_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.log"
    path.write_text(
        '{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"a","stage":"RequestReceived"}\n', "utf-8"
    )
    assert "the audit log has no request" in fail(capsys, "--as", "alice", str(path))


def test_names_from_evidence_never_reach_a_terminal_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.txt"
    text = gzip.decompress((ROOT / "fixtures" / DUMP).read_bytes()).decode()
    path.write_text(text.replace(TAGGER, "evil\x1b[2J"), "utf-8")
    assert run(["why", "--isolated", "--as", FRONTEND, str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run(["why", "--isolated", "--as", "evil\x1b[2J", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def read_fake(*clusters: str) -> PrometheusReading:
    """Return the result of reading a Prometheus that has the metrics of a flood, once for each of `clusters`."""
    interval = Period(1_763_915_011, 1_763_915_041)
    load = ClusterLoad(interval.end, rejected=12.5, waiting=295)
    servers = group_servers(read_parts(METRICS))
    found = tuple(ClusterReading(name, "apiserver", ("192.0.2.1:6443",), interval, None, load, ()) for name in clusters)
    return PrometheusReading("http://localhost:9090", "", interval, found, servers, 15, (), 9)


def test_prometheus(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrometheusOptions, "read", lambda *_: read_fake("prod"))
    words = ["--as", FRONTEND, "--prometheus", "http://localhost:9090", *OBJECTS]
    assert run(["why", "--isolated", *words, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["role"], answer["cause"]["cause"]) == ("affected", "flood-one-flow")
    assert "Interval: 2025-11-23T16:23:31Z to 16:24:01Z (the worst interval of the period" in err
    monkeypatch.setattr(PrometheusOptions, "read", lambda *_: read_fake("prod", "test"))
    assert 'several clusters ("prod" and "test"): choose one cluster with --selector' in fail(capsys, *words)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(live_servers, "time", SimpleNamespace(sleep=waits.append))
    with serve(answers(), tmp_path) as kubeconfig:
        answer = ask(capsys, "--as", "alice", "--live", "--watch", "10s", "--kubeconfig", kubeconfig)
    assert waits == [10]
    assert (answer["priorityLevel"], answer["placements"][0]["source"]) == ("slow", "dump")
    assert answer["configuration"].startswith("running cluster")
