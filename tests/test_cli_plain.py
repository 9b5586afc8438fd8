"""The plain command lines: they mean what the option parser makes of them, and they do without it."""

from __future__ import annotations

import atexit
import io
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from conftest import UNMEASURED
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint import __version__, cli
from apflint.cli import app, ask, check, outcome, plain, terminal
from apflint.cli.options import CheckFormat
from apflint.output.findings import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = """apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: team-a
spec:
  matchingPrecedence: 1000
  priorityLevelConfiguration:
    name: workload-low
  rules:
    - subjects: [{kind: User, user: {name: alice}}]
      nonResourceRules: [{verbs: [get], nonResourceURLs: [/team-a]}]
"""
OPTIONS = [*plain.CHECK.switches, *plain.CHECK.values, *plain.EXPLAIN.switches, *plain.EXPLAIN.values]
# What is nearly an option that is taken here, or one that is not, or a value that only some options take.
OTHERS = ["--quie", "-qq", "-nx", "-n=x", "--as=y", "--format=json", "--complete", "--kubernetes", "--", "-", "", "-h"]
WORDS = ["list", "pods", "x", "y", "a.yaml", "json", "text", "xml", "1.30"]


def asked(run: Callable[[list[str]], int], arguments: list[str]) -> list[Any]:
    """What a command line asks of the commands below, in the form in which they get it; nothing where it is a mistake."""
    calls: list[Any] = []

    def checked(paths: tuple[str, ...], settings: dict[str, Any], flags: check.Flags) -> int:
        calls.append((paths, {key: value for key, value in settings.items() if value is not None}, flags))
        return 1

    def explained(*positional: Any, **named: Any) -> int:
        calls.append((positional, named))
        return 0

    with patch.object(check, "command", checked), patch.object(ask, "run", explained):
        calls.append(run(arguments))
    return calls


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    command=st.sampled_from(["check", "explain"]),
    rest=st.lists(st.sampled_from(OPTIONS) | st.sampled_from(WORDS) | st.sampled_from(OTHERS), max_size=6),
)
def test_a_plain_command_line_asks_the_same_of_the_command(command: str, rest: list[str]) -> None:
    arguments = [command, *rest]
    if plain.plain(arguments) is not None:
        assert asked(plain.run, arguments) == asked(app.run, arguments)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    switches=st.lists(st.sampled_from([[name] for name in plain.CHECK.switches])),
    formats=st.lists(st.sampled_from([["--format", name] for name in FORMATS]), max_size=1),
    names=st.lists(st.sampled_from(["a.yaml", "-", ".", "x y"]).map(lambda name: [name]), max_size=3),
    chance=st.randoms(use_true_random=False),
)
def test_plain_checks_are_taken_here(
    switches: list[list[str]], formats: list[list[str]], names: list[list[str]], chance: Any
) -> None:
    parts = [*switches, *formats, *names]
    chance.shuffle(parts)
    arguments = ["check", *(argument for part in parts for argument in part)]
    assert plain.plain(arguments) is not None
    assert asked(plain.run, arguments) == asked(app.run, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--version", "check"],
        ["check", "--help"],
        ["check", "--format", "xml"],
        ["check", "--format"],
        ["check", "--format", "-q"],
        ["check", "--format", "json", "--format", "json"],
        ["check", "--stdin-filename", ""],
        ["check", ""],
        ["check", "--select", "APF3"],
        ["check", "--", "a.yaml", ""],
        ["explain", "get", "/healthz", "--as"],
        ["explain", "get", "/healthz", "--as", "-x"],
        ["limits"],
    ],
)
def test_all_else_is_for_the_parser(arguments: list[str]) -> None:
    assert plain.plain(arguments) is None


def test_a_shell_that_asks_for_completions_gets_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain.plain(["check"]) is not None
    monkeypatch.setenv("_APFLINT_COMPLETE", "complete_bash")
    assert plain.plain(["check"]) is None


def test_the_formats_are_those_of_the_parser() -> None:
    assert list(FORMATS) == [one.value for one in CheckFormat]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["-V"],
        ["check"],
        ["check", "-q", "good.yaml", "bad.yaml"],
        ["check", "bad.yaml", "--format", "json"],
        ["check", "--force-exclude", "bad.yaml"],
        ["check", "--isolated", "--force-exclude", "bad.yaml"],
        ["check", "missing.yaml"],
        ["check", "--force-exclude", "--", "bad.yaml", "--quiet"],
        ["explain", "list", "pods", "-n", "x", "--as", "y"],
        ["explain", "get", "/team-a", "--as", "alice", "-f", "good.yaml"],
        ["explain", "get", "/team-a"],
        ["explain"],
    ],
)
def test_whatever_comes_of_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD.replace("1000", "20000"))
    (tmp_path / "apflint.toml").write_text('exclude = ["bad.yaml"]\n')
    monkeypatch.chdir(tmp_path)
    assert plain.plain(arguments) is not None
    by_hand = plain.run(arguments), capsys.readouterr()
    assert by_hand == (app.run(arguments), capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "status", "unwanted"),
    [
        (["--version"], 0, {"typer", "rich", "json", "yaml", "apflint.checks"}),
        (
            ["check", "good.yaml"],
            0,
            {"typer", "rich", "jsonschema", "pysat", "ruamel", "tomllib", "inspect", "pathlib"},
        ),
        (["check", "--force-exclude", "bad.yaml"], 1, {"typer", "rich", "jsonschema", "pysat", "ruamel", "inspect"}),
        (["explain", "list", "pods", "-n", "x", "--as", "y"], 0, {"typer", "rich", "jsonschema", "pysat", "ruamel"}),
    ],
)
def test_a_plain_run_imports_only_what_it_needs(
    tmp_path: Path, arguments: list[str], status: int, unwanted: set[str]
) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD.replace("1000", "20000"))
    code = (
        "import sys; before = {*sys.modules}; import apflint.cli; from apflint.cli.plain import run\n"
        f"status = run({arguments!r})\n"
        "sys.stderr.write('\\n' + ' '.join({*sys.modules} - before)); sys.exit(status)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=UNMEASURED, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    imported = set(done.stderr.splitlines()[-1].split())
    assert "apflint" in imported
    assert not unwanted & imported


@pytest.mark.parametrize(
    "before",
    [
        "import atexit; atexit.register(lambda: print('done'))",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()",
        "print('done')",
    ],
)
def test_whoever_has_something_to_do_at_the_end_does_it(before: str) -> None:
    code = f"import sys; sys.argv[1:] = ['--version']\n{before}\nfrom apflint.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"apflint {__version__}", "done"]


def test_the_end_of_a_long_output_is_there(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.yaml").write_text(GOOD.replace("1000", "20000"))
    done = subprocess.run(
        [sys.executable, "-m", "apflint", "check", "--format", "json", str(tmp_path)], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert len([found for found in json.loads(done.stdout)["findings"] if found["rule"] == "APF201"]) == 50


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_a_full_disk_is_told_and_not_twice(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(GOOD.replace("1000", "20000"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "apflint", "check", "bad.yaml"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "apflint: standard output cannot be written: No space left on device\n"


class Ended(BaseException):
    """In place of the end of the process."""


class Output(io.StringIO):
    """A stream that knows whether it was flushed, and may fail then."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error, self.flushed = error, 0

    def flush(self) -> None:
        self.flushed += 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where nobody has anything to do at the end. (coverage.py has, in a process that it measures.)"""
    statuses: list[int] = []

    def end(status: int) -> None:
        statuses.append(status)
        raise Ended

    monkeypatch.setattr(atexit, "_ncallbacks", lambda: 0)
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.delitem(sys.modules, "threading", raising=False)
    return statuses


@pytest.mark.parametrize("error", [None, OSError(28, "No space left on device"), ValueError("closed file")])
def test_the_process_ends_at_once_when_all_is_written(
    ends: list[int], monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    out, err = Output(error), Output()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(plain, "run", len)
    monkeypatch.setattr(sys, "argv", ["apflint", "check", "--quiet"])
    with pytest.raises(Ended):
        cli.main()
    assert (ends, out.flushed, err.flushed) == ([2], 1, 1)


def test_the_process_ends_without_streams(ends: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """As under pythonw and some daemons."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(Ended):
        cli._exit(1)
    assert ends == [1]


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ValueError("a\x1b sentence"), 2, "apflint: a\\x1b sentence\n"),
        (KeyboardInterrupt(), 130, ""),
        (OSError(13, "Permission denied", "x.yaml"), 2, "apflint: x.yaml: Permission denied\n"),
        (
            OSError(28, "No space left on device"),
            2,
            "apflint: standard output cannot be written: No space left on device\n",
        ),
        (OSError("odd"), 2, "apflint: odd\n"),
        (
            LookupError("x"),
            2,
            "apflint: internal error: LookupError: x. This is a bug in apflint; APFLINT_DEBUG=1 shows where. Please report it\n",
        ),
    ],
)
def test_whatever_a_command_raises_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, told: str
) -> None:
    monkeypatch.delenv("APFLINT_DEBUG", raising=False)

    def command() -> int:
        raise error

    assert outcome.said(command) == status
    assert capsys.readouterr() == ("", told)


def test_what_must_not_happen_is_shown_to_whoever_wants_to_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APFLINT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        outcome.said(lambda: 1 // 0)


def test_a_closed_pipe_is_no_error_and_python_does_not_complain_later() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream, patch.object(sys, "stdout", stream):
        assert outcome.said(lambda: stream.write("x" * 100_000) and 1) == 0
        stream.write("more")
        stream.flush()  # goes nowhere


@pytest.mark.parametrize(
    ("columns", "width"), [("120", 120), ("12", terminal._NARROWEST), ("many", 80), ("0", 80), ("", 80)]
)
def test_the_width_of_a_terminal_that_does_not_say_it(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", columns)
    assert terminal.style("never", Terminal()).width == width
    assert terminal.style("never", io.StringIO()).width is None
