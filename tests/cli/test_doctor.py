"""`apflint doctor`: formats, exit codes, options, settings, and inputs that cannot be used."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.incidents import find_files
from support.recordings import ROOT, read_text

from apflint.budgets import MAX_SHOWN_CAUSES
from apflint.cli.app import run
from apflint.output.findings import FORMATS
from apflint.releases import NEWEST

LIVE = ROOT / "fixtures" / "live"
BUSY = str(LIVE / "2-slow-a.metrics.txt.gz")
IDLE = str(LIVE / "0-idle.metrics.txt.gz")
OBJECTS = str(LIVE / "objects.json")
AUDIT_LOG = ROOT / "fixtures" / "simulate" / "incidents" / "small-level.log.gz"


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert run(["doctor", *words, "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def fail(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["doctor", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--metrics", BUSY, "--dump", str(LIVE / "2-slow-a.requests.txt"))
    assert list(found)[:3] == ["schema", "configuration", "verdict"]
    assert set(found) == {
        "schema", "configuration", "verdict", "verdictMessage", "causes", "unknown",
        "kubernetes", "servers", "findings", "summary",
    }  # fmt: skip
    assert found["configuration"] is None
    (server,) = found["servers"]
    assert server["serverConcurrency"] == 30
    assert server["missing"] == []
    level = next(level for level in server["levels"] if level["name"] == "slow")
    assert (level["nominal"], level["min"], level["max"], level["current"]) == (2, 2, 3, 3)
    assert (level["waiting"], level["executing"], level["dispatched"], level["rejected"]) == (20, 3, 35, 166)
    assert level["waits"] == {"requests": 51, "p50UpTo": 10, "p99UpTo": 30}
    assert level["dispatchedPerSecond"] is None
    assert level["flows"][0] == {
        "schema": "slow-writes",
        "distinguisher": "alice",
        "waiting": 9,
        "executing": 2,
        "queues": 2,
        "users": ["alice"],
    }
    assert {finding["object"]["kind"] for finding in found["findings"]} == {"PriorityLevelConfiguration"}


def test_rates_of_two_snapshots(capsys: pytest.CaptureFixture[str]) -> None:
    (server,) = answer(capsys, "--metrics", BUSY, "--metrics", str(LIVE / "4-mixed.metrics.txt.gz"))["servers"]
    level = next(level for level in server["levels"] if level["name"] == "slow")
    assert level["dispatched"] == 72 - 35
    assert level["dispatchedPerSecond"] == pytest.approx((72 - 35) / server["seconds"])
    assert level["rejectedPerSecond"] == pytest.approx((463 - 166) / 38.265, abs=0.01)


def test_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "saved").mkdir()
    for file in LIVE.glob("[0-9]-*"):
        shutil.copy(file, tmp_path / "saved")
    (server,) = answer(capsys, "--dump", "saved")["servers"]
    assert server["sinceStart"] is False
    assert len(server["files"]) >= 5 * 4


def test_several_servers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = read_text(LIVE / "2-slow-a.metrics.txt.gz")
    (tmp_path / "other.txt").write_text(
        text.replace("process_start_time_seconds 1", "process_start_time_seconds 2"), "utf-8"
    )
    found = answer(capsys, "--metrics", BUSY, "--metrics", "other.txt")
    assert [len(server["files"]) for server in found["servers"]] == [1, 1]
    assert len({finding["file"] for finding in found["findings"]}) == 2


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_reports_the_findings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--metrics", BUSY, "--verbose", "--format", name]) == 0
    assert "APF801" in capsys.readouterr().out


def test_idle_server(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--metrics", IDLE, "-f", OBJECTS, "--kubernetes", "1.36", "--fail-on", "warning")
    assert {finding["severity"] for finding in answer(capsys, *words)["findings"]} == {"info"}
    assert answer(capsys, *words[:2], "--fail-on", "info")["findings"] == []


def test_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "--metrics", BUSY, "--fail-on", "warning", code=1)["summary"]["warnings"] > 3
    answer(capsys, "--metrics", BUSY, "--fail-on", "error")


def test_exit_code_of_a_cause_without_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """An overload by large lists is a warning that determines the exit code, although no rule reports it."""
    files = [
        str(ROOT / "fixtures/doctor/incidents/list-heavy" / f"{moment}.metrics.txt.gz")
        for moment in ("1-during", "2-during")
    ]
    found = answer(capsys, *files, "--fail-on", "warning", code=1)
    assert (found["verdict"], found["findings"]) == ("overloaded", [])
    answer(capsys, *files, "--fail-on", "warning", "--exit-zero")
    answer(capsys, *files)


@pytest.mark.parametrize("name", ["healthy-busy", "old-incident"])
def test_healthy_server(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    directory = ROOT / "fixtures/doctor/incidents" / name
    files = [str(directory / f"{moment}.metrics.txt.gz") for moment in ("1-during", "2-during")]
    found = answer(capsys, *files, "--fail-on", "warning")
    assert found["summary"]["warnings"] == 0
    assert run(["doctor", *files, "--fail-on", "warning"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("All good.")


def test_findings_have_the_advice_of_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    """If the cause of an overload is known, findings refer to the cause instead of advising more seats."""
    directory = ROOT / "fixtures/doctor/incidents/slow-webhook"
    files = [str(directory / f"{moment}.metrics.txt.gz") for moment in ("1-during", "2-during")]
    found = answer(capsys, *files)
    (cause,) = found["causes"]
    findings = [finding for finding in found["findings"] if finding["object"]["name"] == "workload-low"]
    assert {finding["rule"] for finding in findings} == set(cause["findings"])
    assert findings
    assert all(finding["help"].startswith("see the cause slow-webhook: ") for finding in findings)
    assert found["verdict"] == "not-apf"
    assert cause["isAPF"] is False


def test_selection_and_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "apflint.toml").write_text('[severity]\nAPF802 = "error"\n', "utf-8")
    found = answer(capsys, "--metrics", BUSY, "--select", "APF801,APF802", "--ignore", "APF801", code=1)
    assert {(finding["rule"], finding["severity"]) for finding in found["findings"]} == {("APF802", "error")}


def test_rules_about_manifests(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--metrics", IDLE, "--select", "APF101", "--format", "concise"]) == 0
    assert "the selected rules are not about a running server" in capsys.readouterr().err
    assert run(["doctor", "--metrics", IDLE, "--select", "APF101,APF802", "--format", "concise"]) == 0
    assert capsys.readouterr().err == ""


def test_other_total(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--metrics", IDLE, "-f", OBJECTS, "--kubernetes", "1.36", "--select", "APF806", "--server-concurrency")
    assert answer(capsys, *words, "20+10")["findings"] == []
    (finding,) = answer(capsys, *words, "600")["findings"]
    assert finding["message"] == "the server has a concurrency limit of 30 seats instead of 600"
    assert finding["notes"] == [
        "The limits of all levels are those that the manifests give for this concurrency limit."
    ]
    (finding,) = answer(capsys, "--metrics", IDLE, "--server-concurrency", "600")["findings"]
    assert finding["message"] == "the server has a concurrency limit of 30 seats instead of 600"
    assert finding["notes"] == []


def test_cluster_of_the_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(OBJECTS, tmp_path / "objects.json")
    (tmp_path / "apflint.toml").write_text(
        '[[cluster]]\nname = "prod"\npaths = ["objects.json"]\nserver-concurrency = 40\nkubernetes = "1.36"\n', "utf-8"
    )
    (finding,) = answer(capsys, "--metrics", IDLE, "--cluster", "prod", "--select", "APF806")["findings"]
    assert finding["message"] == "the server has a concurrency limit of 30 seats instead of 40"
    found = answer(capsys, "--metrics", IDLE, "--cluster", "prod", "--select", "APF806", "--server-concurrency", "50")
    (finding,) = found["findings"]
    assert finding["message"] == "the server has a concurrency limit of 30 seats instead of 50"
    assert found["servers"][0]["kubernetes"] == "1.36"


def test_values_that_are_not_finite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = 'apiserver_flowcontrol_current_limit_seats{priority_level="slow"} '
    text = read_text(LIVE / "2-slow-a.metrics.txt.gz").replace(f"{row}3", f"{row}NaN")
    (tmp_path / "m").write_text(text, "utf-8")
    assert run(["doctor", "--metrics", "m"]) == 0
    assert (
        "m: 1 value is negative, NaN, infinite or too large. apflint ignores such values. First: apiserver_flowcontrol_"
        in capsys.readouterr().out
    )


def test_missing_metrics_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m").write_text('apiserver_flowcontrol_request_concurrency_limit{priority_level="low"} 20\n', "utf-8")
    assert run(["doctor", "--metrics", "m", "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert "m: not in the metrics: min limit (apiserver_flowcontrol_lower_limit_seats), " in shown
    assert "low                  20    -    -        -       -       -         -\n" in shown


def test_metrics_that_end_too_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Servers sort metrics by name. In a file that ends before a counter, the absent counter is unknown and not 0."""
    text = read_text(LIVE / "2-slow-a.metrics.txt.gz")
    (tmp_path / "m").write_text(text[: text.index("# HELP apiserver_flowcontrol_rejected_requests_total")], "utf-8")
    (server,) = answer(capsys, "--metrics", "m")["servers"]
    assert "rejected requests (apiserver_flowcontrol_rejected_requests_total)" in server["missing"]
    assert all(level["rejected"] is level["waits"]["requests"] is None for level in server["levels"])
    assert run(["doctor", "--metrics", "m", "-v"]) == 0
    assert re.search(r"\nslow +20 +3 +35( +-){5}\n", capsys.readouterr().out)


def test_metrics_without_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Levels that occur in only some metrics, or whose limit is NaN, are in the table and have findings."""
    text = read_text(LIVE / "2-slow-a.metrics.txt.gz")
    lines = [line for line in text.splitlines() if line.startswith("apiserver_flowcontrol_rejected_")]
    lines.append('apiserver_flowcontrol_nominal_limit_seats{priority_level="slow"} NaN\n')
    (tmp_path / "m").write_text("\n".join(lines), "utf-8")
    found = answer(capsys, "--metrics", "m")
    (server,) = found["servers"]
    assert [(level["name"], level["nominal"], level["rejected"]) for level in server["levels"]] == [
        ("batch", None, 224),
        ("empty", None, 5),
        ("slow", None, 166),
        ("strict", None, 80),
    ]
    assert [finding["rule"] for finding in found["findings"]] == ["APF801"] * 4


def test_dumps_without_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """A dump shows how many requests were rejected, but not why, and it shows no seats."""
    dump = str(LIVE / "2-slow-a.priority_levels.txt")
    (server,) = answer(capsys, "--dump", dump)["servers"]
    assert {level["name"]: level["rejected"] for level in server["levels"]}["slow"] == 168
    assert run(["doctor", "--dump", dump, "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert "NOMINAL" not in shown
    assert re.search(r"\nslow +20 +3 +35( +-){5}\n", shown)


@pytest.mark.parametrize("name", ["concise", "github", "sarif"])
def test_formats_without_tables_report_missing_metrics(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = "apiserver_flowcontrol_nominal_limit_seats{priority_level="
    (tmp_path / "m").write_text(f'{row}"low"}} NaN\n{row}"high"}} 3\n', "utf-8")
    assert run(["doctor", "--metrics", "m", "--format", name]) == 0
    notes = " ".join(capsys.readouterr().err.split())
    assert "m: not in the metrics: min limit (apiserver_flowcontrol_lower_limit_seats), " in notes
    assert (
        "m: 1 value is negative, NaN, infinite or too large. apflint ignores such values. First: apiserver_flowcontrol_"
        in notes
    )


def test_metrics_that_the_release_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m").write_text('apiserver_flowcontrol_request_concurrency_limit{priority_level="low"} 20\n', "utf-8")
    assert run(["doctor", "--metrics", "m", "--kubernetes", "1.25"]) == 0
    assert (
        "m: Kubernetes 1.25 has no metrics of: min limit, max limit, current limit, demand (high"
        in capsys.readouterr().out
    )


def test_release_of_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    (server,) = answer(capsys, "--metrics", BUSY, "--kubernetes", "1.33")["servers"]
    assert server["kubernetes"] == "1.33"


def test_hostile_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names in metrics and dumps are data: no escape sequence reaches the terminal."""
    name = "a\x1b[31m::error::"
    (tmp_path / "m").write_text(
        f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="{name}"}} 1\n'
        f'apiserver_flowcontrol_rejected_requests_total{{flow_schema="{name}",priority_level="{name}",reason="{name}"}} 1\n',
        "utf-8",
    )
    assert run(["doctor", "--metrics", "m"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_inputs_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = read_text(LIVE / "2-slow-a.metrics.txt.gz")
    (tmp_path / "half").write_text(text[: len(text) // 2 + 9], "utf-8")
    (tmp_path / "kubelet").write_text("kubelet_running_pods 3\n", "utf-8")
    (tmp_path / "forbidden").write_text('{"kind":"Status","code":403}\n', "utf-8")
    assert "name the metrics or the dumps of an API server" in fail(capsys)
    assert "half: the last line does not end with a line break" in fail(capsys, "--metrics", "half")
    assert "kubelet: there is no metric apiserver_flowcontrol_*" in fail(capsys, "--metrics", "kubelet")
    assert "forbidden: the API server has answered with an error" in fail(capsys, "--dump", "forbidden")
    assert "absent: No such file or directory." in fail(capsys, "--metrics", "absent")
    shutil.copy(LIVE / "2-slow-a.priority_levels.txt", "copy.txt")
    dumps = [str(LIVE / f"{moment}.priority_levels.txt") for moment in ("2-slow-a", "4-mixed")]
    assert "are dumps of the same kind, so they are from several servers or moments" in fail(
        capsys, "--metrics", BUSY, "--dump", dumps[0], "--dump", "copy.txt"
    )
    assert "unknown cluster" in fail(capsys, "--metrics", BUSY, "--cluster", "prod")


def test_files_are_arguments_and_recognized_by_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = gzip.decompress((LIVE / "2-slow-a.metrics.txt.gz").read_bytes())
    (tmp_path / "first").write_bytes((LIVE / "2-slow-a.requests.txt").read_bytes())
    (tmp_path / "second").write_bytes(metrics)
    monkeypatch.chdir(tmp_path)
    outputs = []
    for arguments in (["first", "second"], ["second", "--dump", "first"], ["--metrics", "second", "--dump", "first"]):
        assert run(["doctor", "--isolated", *arguments]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert "slow-writes" in outputs[0]


def test_only_manifests_or_logs_are_an_error_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(OBJECTS, tmp_path / "level.json")
    shutil.copy(AUDIT_LOG, tmp_path / "audit.log.gz")
    monkeypatch.chdir(tmp_path)
    assert "level.json: the manifests are not enough. Add metrics or dumps" in fail(capsys, "level.json")
    assert "audit.log.gz: doctor reads no logs" in fail(capsys, "audit.log.gz")
    (tmp_path / "audit.log.gz").unlink()
    assert ".: the manifests are not enough" in fail(capsys, ".")
    assert "cannot be combined with --live or --prometheus" in fail(capsys, "--live", BUSY)
    assert "--live and --metrics cannot be combined" in fail(capsys, "--live", "--metrics", BUSY)
    (tmp_path / "notes.md").write_text("Paged at 3 a.m.\n", "utf-8")
    assert "notes.md: this is neither metrics" in fail(capsys, BUSY, "notes.md")
    (tmp_path / "answer.txt").write_text('{"kind":"Status","status":"Failure"}', "utf-8")
    assert "answer.txt: the API server has answered with an error" in fail(capsys, BUSY, "answer.txt")


@pytest.fixture
def incident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Change to a directory with everything that was saved about an incident, and return the names of its files."""
    path = tmp_path / "incident"
    path.mkdir()
    for file in find_files("small-level", "12", dumps=True):
        shutil.copy(file, path)
    shutil.copy(AUDIT_LOG, path / "audit.log.gz")
    shutil.copy(AUDIT_LOG.with_name("small-level.objects.json"), path / "objects.json")
    monkeypatch.chdir(path)
    return sorted(file.name for file in path.iterdir())


def test_mixture_of_files(incident: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All files of an incident, in any order or as a directory: manifests are used as with -f, and logs are not read."""
    servers = [name for name in incident if "metrics" in name or "dump" in name]
    expected = answer(capsys, *servers, "-f", "objects.json", "--isolated")
    assert expected["configuration"].startswith("objects.json (21 objects)")
    mixtures = ([*servers, "objects.json"], incident, incident[::-1], ["--metrics", incident[0], *incident[1:]])
    for words in mixtures:
        assert answer(capsys, *words, "--isolated") == expected
    assert run(["doctor", *incident, "--isolated"]) == 0
    assert "audit.log.gz: doctor reads no logs. Use apflint why" in capsys.readouterr().err
    found = answer(capsys, ".", "--isolated")
    assert found["configuration"] == expected["configuration"].replace("objects.json", "./objects.json")
    assert found["causes"][0]["cause"] == expected["causes"][0]["cause"] == "small-level"


def test_accepts_what_why_accepts(incident: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`doctor` and `why` take the same files as a configuration, and reject the same files."""
    (incident_file,) = (name for name in incident if name.startswith("2-") and "metrics" in name)
    Path("manifests").mkdir()
    shutil.copy("objects.json", "manifests")
    Path("notes.md").write_text("Paged at 3 a.m.\n", "utf-8")
    Path("empty.txt").write_text("", "utf-8")
    words = ["objects.json", "manifests", "audit.log.gz", "notes.md", "empty.txt", "absent", "*metrics*", "-"]
    for word in words:
        statuses, configurations, errors = [], [], []
        for command in (["doctor"], ["why", "--as", "alice"]):
            statuses.append(
                run([*command, "--metrics", incident_file, "--dump", word, "--isolated", "--format", "json"])
            )
            out, err = capsys.readouterr()
            configurations.append(json.loads(out)["configuration"] if out else None)
            errors.append(err if statuses[-1] == 2 else "")
        assert (statuses[0] == 2) == (statuses[1] == 2), (word, errors)
        assert errors[0] == errors[1]
        if word in ("objects.json", "manifests"):
            assert configurations[0] == configurations[1] is not None


def test_negative_counters_are_unknown_and_not_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "apiserver_flowcontrol_dispatched_requests_total"
    text = re.sub(rf"(?m)^({name}\{{.*\}}) \d+$", r"\1 -5", read_text(LIVE / "2-slow-a.metrics.txt.gz"))
    (tmp_path / "m").write_text(text, "utf-8")
    number = text.count("} -5\n")
    assert run(["doctor", "--isolated", str(tmp_path / "m"), "--verbose"]) == 0
    out = capsys.readouterr().out
    assert (
        f"m: {number} values are negative, NaN, infinite or too large. apflint ignores such values. First: {name} (line "
        in out
    )
    assert "not in the metrics: dispatched requests" not in out
    assert run(["doctor", "--isolated", str(tmp_path / "m"), "--format", "json"]) == 0
    (server,) = json.loads(capsys.readouterr().out)["servers"]
    assert {level["dispatched"] for level in server["levels"]} == {None}
    assert f"dispatched requests ({name})" in server["missing"]
    (tmp_path / "m").write_text(f'{name}{{priority_level="a"}} -5\n', "utf-8")
    assert run(["doctor", "--isolated", str(tmp_path / "m")]) == 0
    assert "1 value is negative" in capsys.readouterr().out


def test_unknown_release_is_not_a_fact(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(LIVE / "2-slow-a.metrics.txt.gz")
    assert run(["doctor", "--isolated", file, "--format", "markdown"]) == 0
    assert "Kubernetes `" not in capsys.readouterr().out
    assert run(["doctor", "--isolated", file, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kubernetes"] is None
    assert run(["doctor", "--isolated", file, "--format", "markdown", "--kubernetes", "1.36"]) == 0
    assert "Kubernetes `1.36`" in capsys.readouterr().out


def test_number_of_causes_is_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = re.compile(r'(?m)^.*priority_level="empty".*\n')
    text = read_text(LIVE / "4-mixed.metrics.txt.gz")
    found = row.findall(text)
    lines = (line.replace('"empty"', f'"empty-{number}"') for number in range(MAX_SHOWN_CAUSES) for line in found)
    (tmp_path / "m").write_text(row.sub("", text) + "".join(lines), "utf-8")
    assert run(["doctor", "--isolated", str(tmp_path / "m"), "--format", "json"]) == 0
    left = len(json.loads(capsys.readouterr().out)["causes"]) - MAX_SHOWN_CAUSES
    assert left > 0
    for name in ("text", "markdown", "html"):
        assert run(["doctor", "--isolated", str(tmp_path / "m"), "--format", name]) == 0
        out = capsys.readouterr().out
        assert f"Not shown: {left} further cause" in out
        assert f"{MAX_SHOWN_CAUSES + 1} " not in {line[:3] for line in out.splitlines()}


INCIDENT = sorted(
    str(path) for path in (ROOT / "fixtures" / "doctor" / "incidents" / "small-level").glob("[12]-during.metrics*")
)


def test_level_with_too_few_seats(capsys: pytest.CaptureFixture[str]) -> None:
    """The cause compares needed and available seats. The actions suggest a higher borrowing limit, and queues."""
    (cause,) = answer(capsys, *INCIDENT, "--exit-zero")["causes"]
    assert re.search(r"cannot borrow: 3\.0 seats needed on average, at most 1 available", cause["message"])
    more, queues, simulation = (action["text"] for action in cause["actions"])
    found = re.search(r"increase its borrowingLimitPercent, such as to (\d+), to borrow up to (\d+) seats", more)
    assert found is not None
    assert (
        int(found[1]) // 100 <= int(found[2]) <= -(-int(found[1]) // 100)
    )  # borrowingLimitPercent is relative to the nominal limit of 1 seat, so 100 percent are 1 seat
    assert "limitResponse type Queue instead of Reject" in queues
    assert "an audit log" in simulation


@pytest.mark.parametrize(
    "name", ["small-level", "leases-captured", "leader-election-starved", "slow-webhook", "catch-all"]
)
def test_next_steps_need_only_given_inputs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A user who has only files may not be able to read the cluster, and may have no log."""
    directory = ROOT / "fixtures" / "doctor" / "incidents" / name
    files = [str(path) for path in sorted(directory.glob("[12]-during*"))]
    for options in ([], ["-f", OBJECTS]):
        causes = answer(capsys, *files, *options, "--exit-zero")["causes"]
        commands = [action["command"] or "" for cause in causes for action in cause["actions"]]
        assert not re.search(r"--live| live |audit\.log", " ".join(commands))


def test_assumed_release_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["doctor", *INCIDENT, "-f", OBJECTS, "--exit-zero"]
    assert run(words) == 0
    assert (
        f"apflint assumes the newest release that it knows, Kubernetes {NEWEST.name}, for the manifests"
        in capsys.readouterr().err
    )
    assert run([*words, "--kubernetes", "1.36"]) == 0
    assert "newest known" not in capsys.readouterr().err
