"""Hostile settings, baselines, suites and requests: each gets a one-line message and exit code 2."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest
from limited import HEAD, NEIGHBOUR, apflint

from apflint.budgets import MAX_PATTERNS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SETTINGS = {
    "dotted keys": b"x." * 50_000 + b"y = 1",
    "dotted tables": b"[" + b"x." * 50_000 + b"y]",
    "arrays": b"select = " + b"[" * 10_000,
    "closed arrays": b"select = " + b"[" * 10_000 + b"]" * 10_000,
    "inline tables": b"select = " + b"{a = " * 10_000,
    "a number": b"server-concurrency = " + b"9" * 100_000,
    "NUL": b"select = ['\0']",
    "no text": b"\xff\xfe\0",
    "a large one": b"# comment\n" * 200_000,
    "an open text": b'select = """' + b"x" * 900_000,
    "thousands of rules": b"select = [" + b"'APF999'," * 50_000 + b"]",
    "tables": b"".join(b"[" + b"a." * 19 + b"k%d]\n" % number for number in range(20_000)),
    "many patterns to ignore": b"[per-file-ignores]\n"
    + b"".join(b"'x%d' = ['APF']\n" % number for number in range(1_001)),
    "many patterns to exclude": b"exclude = [" + b"'x'," * 1_001 + b"]",
    "a long pattern": b"exclude = ['" + b"*a" * 5_000 + b"']",
    "a long rule": b"select = ['" + b"x" * 500_000 + b"']",
}


@pytest.mark.parametrize("data", SETTINGS.values(), ids=SETTINGS)
def test_settings(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "apflint.toml").write_bytes(data)
    for arguments in (["check", "good.yaml"], ["config", "--config", "apflint.toml"]):
        run = apflint(tmp_path, *arguments)
        assert (run.status, run.out) == (2, "")
        assert run.err.startswith("apflint: apflint.toml: ")
        assert len(run.err.splitlines()) == 1
        assert len(run.err) < 11_000


@pytest.mark.parametrize("path", [".", "pipe", "/dev/zero", "missing"])
def test_settings_that_are_no_file(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "good.yaml").write_text(HEAD)
    run = apflint(tmp_path, "check", "--config", path, "good.yaml")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f"apflint: {path}: ")


def test_settings_from_another_command(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    assert apflint(tmp_path, "check", "--config", "/dev/stdin", "good.yaml", stdin=b"fail-on = 'never'\n").status == 0


def test_patterns_are_compared_once_for_each_file(tmp_path: Path) -> None:
    """A file is compared with the 1,000 patterns once, and not again for each of its findings."""
    patterns = "".join(f"'x{number}/y*' = ['APF']\n" for number in range(1_000))
    (tmp_path / "apflint.toml").write_text(f"[per-file-ignores]\n{patterns}")
    wrong = HEAD.replace("  priorityLevelConfiguration:\n    name: exempt\n", "  matchingPrecedence: 20000\n")
    (tmp_path / "many.yaml").write_text(
        "---\n".join(wrong.replace("name: x", f"name: x{number}") for number in range(1_200))
    )
    run = apflint(tmp_path, "check", "-q", "--format", "concise", "many.yaml")
    assert (run.status, run.err) == (1, "")
    assert run.out.count("\n") == 2_000


@pytest.mark.parametrize("table", ["", "\n[tool.apflint]\n"])
@pytest.mark.parametrize("size", [300_000, 1 << 30])
def test_a_huge_pyproject(size: int, table: str, tmp_path: Path) -> None:
    """A huge pyproject.toml is an error only if it may have a table of apflint. Otherwise, it belongs to other tools."""
    (tmp_path / "good.yaml").write_text(HEAD)
    with (tmp_path / "pyproject.toml").open("wb") as file:
        file.write(b"# " + b"x" * 100_000 + table.encode())
        file.truncate(size)
    run = apflint(tmp_path, "check", "--fail-on", "never", "good.yaml")
    refused = bool(table) or size > 1 << 20
    assert run.status == (2 if refused else 0)
    assert ("pyproject.toml: a settings file must not be larger than 256 KiB" in run.err) == refused


BASELINES = {
    "nested": b"[" * 100_000,
    "a number": b'{"schema": ' + b"9" * 100_000 + b"}",
    "no text": b"\xff\xfe\0",
    "empty": b"",
}


@pytest.mark.parametrize("data", BASELINES.values(), ids=BASELINES)
def test_baselines(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "known.json").write_bytes(data)
    run = apflint(tmp_path, "check", "--baseline", "known.json", "good.yaml")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("apflint: known.json: the file is not a baseline.")


@pytest.mark.parametrize("name", ["pipe", "zero", "socket", "tty", "huge"])
def test_a_baseline_is_a_regular_file_of_bounded_size(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "tty").symlink_to("/dev/stdin")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 30)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        (tmp_path / "good.yaml").write_text(HEAD)
        run = apflint(tmp_path, "check", "--baseline", name, "good.yaml")
    assert run.err.count("\n") == 1
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f"apflint: {name}: ")


SUITES = {
    "aliases": b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40)),
    "nested": b"tests: " + b"[" * 100_000,
    "a text": b"tests:\n- " + b"x" * 5_000_000,
    "tags": b"tests: !!python/object/apply:os.system [touch pwned]\n",
    "no text": b"\xff\xfe\0",
}


@pytest.mark.parametrize("data", SUITES.values(), ids=SUITES)
def test_suites(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "suite.yaml").write_bytes(data)
    run = apflint(tmp_path, "test", "-f", "good.yaml", "suite.yaml")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: ")
    assert sorted(os.listdir(tmp_path)) == ["good.yaml", "suite.yaml"]


REQUEST = b'{"user": "a", "groups": [], "method": "GET", "path": "/x"}\n'
REQUESTS = {
    "nested": b'{"a":' * 100_000 + b"\n" + REQUEST,
    "a number": b'{"n": ' + b"9" * 100_000 + b"}\n" + REQUEST,
    "no text": bytes(range(256)) * 1_000 + b"\n" + REQUEST,
    "no JSON": b"x\n" * 300_000 + REQUEST,
    "no requests": b"{}\n" * 300_000 + REQUEST,
    "a control character": b'"\0"\n' + REQUEST,
}


@pytest.mark.parametrize("data", REQUESTS.values(), ids=REQUESTS)
def test_requests(data: bytes, tmp_path: Path) -> None:
    """Each request gets an answer, even after invalid requests."""
    (tmp_path / "good.yaml").write_text(HEAD)
    run = apflint(tmp_path, "explain", "-f", "good.yaml", "--requests", "-", stdin=data)
    assert run.status == 2
    assert '"flowSchema": "global-default"' in run.out.splitlines()[-1]
    assert 0 < len(run.err.splitlines()) <= 11


def test_a_line_of_requests_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    run = apflint(tmp_path, "explain", "-f", "good.yaml", "--requests", "-", stdin=b"x" * 40_000_000)
    assert (run.status, run.out) == (2, "")
    assert run.err == "apflint: a line of the requests is longer than 32 MiB\n"


@pytest.mark.parametrize(
    "name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-", "/dev/../proc/self/fd/0", "pipe", "link"]
)
@pytest.mark.parametrize(
    "arguments", [["check", "good.yaml"], ["config"], ["explain", "list", "pods", "--as", "a"], ["fix", "good.yaml"]]
)
def test_stream_is_rejected_as_context(arguments: list[str], name: str, tmp_path: Path) -> None:
    """Settings may come from an untrusted repository, so they must not make a run wait for standard input."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/stdin")
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "apflint.toml").write_text(f'context = ["{name}"]\n')
    reading, writing = os.pipe()  # the stream never ends
    try:
        run = apflint(tmp_path, *arguments, first=lambda: void(os.dup2(reading, 0)))
    finally:
        os.close(reading)
        os.close(writing)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f'apflint: apflint.toml: context: "{name}" is ')
    problem = (
        " outside the project. Name the path with the option --context instead.\n"
        if name == "link"
        else " regular files and directories.\n"
    )
    assert run.err.endswith(problem)


def void(_: object) -> None:
    """Ignore the argument."""


@pytest.mark.parametrize(
    "name", ["/", "..", "/etc", "root", "./root/etc", "/etc/passwd", "root/etc/passwd", "../other.yaml"]
)
def test_path_outside_the_project_is_rejected_as_context(name: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "other.yaml").write_text(HEAD)
    (project / "root").symlink_to("/")
    (project / "good.yaml").write_text(HEAD)
    (project / "apflint.toml").write_text(f'context = ["{name}"]\n')
    run = apflint(project, "check", "good.yaml")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f'apflint: apflint.toml: context: "{name}" is outside the project. ')


def test_many_context_paths_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    for number in (MAX_PATTERNS, MAX_PATTERNS + 1):
        paths = ",".join(["'good.yaml'"] * number)
        (tmp_path / "apflint.toml").write_text(f"context = [{paths}]\n")
        run = apflint(tmp_path, "check", "good.yaml")
        problem = f"apflint: apflint.toml: context: {number:,} paths, but at most {MAX_PATTERNS:,} are allowed.\n"
        assert (run.err == problem) == (number > MAX_PATTERNS)
        assert run.status == (2 if number > MAX_PATTERNS else 0)


def test_context_of_the_repository_is_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "levels").mkdir()
    (project / "team").mkdir()
    (project / "team" / "good.yaml").write_text(NEIGHBOUR)
    (project / "team" / "apflint.toml").write_text('context = ["../levels"]\n')
    run = apflint(project / "team", "check", "good.yaml")
    assert run.status == 1
    assert "APF201" in run.out


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_streams_in_suites_are_rejected(name: str, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(
        f'manifests: ["{name}"]\ntests: [{{unreachable: {{priorityLevel: catch-all}}}}]\n'
    )
    reading, writing = os.pipe()
    try:
        run = apflint(tmp_path, "test", "suite.yaml", first=lambda: void(os.dup2(reading, 0)))
    finally:
        os.close(reading)
        os.close(writing)
    assert run.status == 2
    assert f'"{name}" is a stream or a device' in run.err


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_list_of_50_000_events_on_one_line(output: str, tmp_path: Path) -> None:
    event = (
        '{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list","requestURI":"/api/v1/namespaces/N/pods","user":'
        '{"username":"aliceN"},"objectRef":{"resource":"pods","namespace":"N","apiVersion":"v1"}}'
    )
    events = ",".join(event.replace("N", f"n{number % 50}") for number in range(50_000))
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "log.json").write_text(f'{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{events}]}}')
    run = apflint(tmp_path, "explain", "-f", "good.yaml", "--event", "log.json", "--format", output)
    assert run.status == 0
    assert output == "text" or run.out.count("\n") == 50_000


def test_patterns_are_compared_with_few_of_thousands_of_files(tmp_path: Path) -> None:
    patterns = [f"**/generated-{number}/*" for number in range(1_000)]
    (tmp_path / "apflint.toml").write_text(f"exclude = {patterns}\n")
    folder = tmp_path / "apps" / "team" / "base"
    folder.mkdir(parents=True)
    for number in range(3_000):
        (folder / f"{number}.yaml").write_text("kind: ConfigMap\n")
    run = apflint(tmp_path, "check")
    assert run.status == 0
    assert "no FlowSchema" in run.err
