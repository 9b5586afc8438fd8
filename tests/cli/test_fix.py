"""`apflint fix`, `check --fix` and `check --diff`: files, output and exit codes."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from apflint import engine
from apflint.budgets import MAX_FINDINGS_PER_RULE
from apflint.cli.app import run

if TYPE_CHECKING:
    from apflint.finding import Report

FIXED = """\
# The nightly jobs.
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: nightly
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 870   # before the rest
  distinguisherMethod: {type: "ByUser"}
  rules:
  - subjects: [{kind: Group, group: {name: night-watch}}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]
"""
BROKEN = FIXED.replace("matchingPrecedence", "matchingPrecedense").replace("ByUser", "ByUsers")
WRONG = FIXED.replace("870  ", "0x10000")
"""A value that does not resemble a valid value, so it has no fix."""
REFUSED = FIXED.replace("matchingPrecedence: 870", "matchingPrecedense: 99999")
"""A misspelled field with an invalid value, so its fix is refused."""
OTHER = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n"
OWNED_BY_ROOT = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(directory: Path, **texts: str) -> None:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_bytes(text.encode())


def content(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_bytes().decode() for path in sorted(directory.rglob("*.yaml"))}


class Stdin:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


def test_file_is_fixed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = FIXED.replace("nightly", "daily").replace("night-watch", "day-watch").replace("870", "880")
    write(directory, a=BROKEN, b=other, c=OTHER)
    assert run(["fix", "a.yaml", "b.yaml", "c.yaml"]) == 0
    assert content(directory) == {"a.yaml": FIXED, "b.yaml": other, "c.yaml": OTHER}
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        'a.yaml:8: fixed APF101: rename "matchingPrecedense" to "matchingPrecedence"',
        'a.yaml:9: fixed APF203: change "ByUsers" to "ByUser"',
        "apflint: c.yaml: this file contains no FlowSchema and no PriorityLevelConfiguration",
        "apflint: fixed 2 findings in 1 file",
    ]
    assert run(["fix", "a.yaml"]) == 0
    assert capsys.readouterr().err == "apflint: nothing to fix\n"


def test_remaining_findings_are_counted(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=WRONG, b=REFUSED.replace("nightly", "b").replace("night-watch", "b"))
    for arguments, more in ((["fix"], "; 1 finding without a fix: apflint check"), (["check", "--fix"], "")):
        assert run(arguments) == 1
        assert capsys.readouterr().err.endswith(f"apflint: 1 finding not fixed{more}\n")
    write(directory, b=FIXED.replace("nightly", "b").replace("night-watch", "b").replace("[/x]", "[x]"))
    assert run(["fix"]) == 0
    printed = "apflint: nothing to fix; 1 finding with --unsafe-fixes; 1 finding without a fix: apflint check\n"
    assert capsys.readouterr().err == printed


def test_fixes_are_printed_in_the_order_of_files_and_lines(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Misspelled fields are fixed first, but fixes are printed in the order of the file."""
    text = BROKEN.replace("name: nightly", "namespace: x\n  name: nightly")
    write(directory, b=text, a=text.replace("nightly", "a"))
    assert run(["fix", "b.yaml", "a.yaml"]) == 0
    printed = [line.split(":")[:2] for line in capsys.readouterr().err.splitlines()[:-1]]
    assert printed == [[name, line] for name in ("a.yaml", "b.yaml") for line in ("5", "9", "10")]


def test_lines_are_those_of_the_original_file(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fix adds a line. Findings below it are printed with their line numbers before the fix."""
    old, new = (
        "  - subjects: [{kind: Group, group: {name: night-watch}}]\n",
        "  - subjects:\n    - kind: Group\n      name: a\n",
    )
    text = FIXED.replace(old, new).replace("verbs: [get]", "verbs: [get, get]")
    bad = text + "---\n" + REFUSED.replace("nightly", "refused")
    write(directory, a=bad)
    assert run(["fix", "--diff", "a.yaml"]) == 1
    fixed = ["APF101", "APF106"]
    lines = [bad[: bad.index(sign)].count("\n") + 1 for sign in ("name: a\n", "[get, get]", "matchingPrecedense")]
    printed = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:2] for line in printed[:2]] == [
        [f"a.yaml:{line}", f"would fix {rule}"] for line, rule in zip(lines, fixed, strict=False)
    ]
    assert printed[2].startswith(f"a.yaml:{lines[2]}: not fixed: APF101 (")
    assert f" in line {lines[2]}: " in printed[2]
    assert run(["fix", "a.yaml"]) == 1
    printed = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:2] for line in printed[:2]] == [
        [f"a.yaml:{line}", f"fixed {rule}"] for line, rule in zip(lines, fixed, strict=False)
    ]
    assert printed[2].startswith(f"a.yaml:{lines[2] + 1}: not fixed: APF101 (")  # the line number after fixing


def test_directory(directory: Path) -> None:
    (directory / "deep" / "er").mkdir(parents=True)
    write(directory / "deep" / "er", a=BROKEN)
    write(directory, b=BROKEN)
    assert run(["fix", "-q"]) == 0
    assert content(directory) == {"b.yaml": FIXED, "deep/er/a.yaml": FIXED}


def test_quiet(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=BROKEN)
    assert run(["fix", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_selected_rules(directory: Path) -> None:
    write(directory, a=BROKEN)
    assert run(["fix", "--select", "APF203", "-q"]) == 0
    assert content(directory) == {"a.yaml": BROKEN.replace("ByUsers", "ByUser")}
    assert run(["fix", "--ignore", "APF101", "-q"]) == 0
    assert content(directory) == {"a.yaml": BROKEN.replace("ByUsers", "ByUser")}


def test_excluded_files_stay(directory: Path) -> None:
    write(directory, a=BROKEN, b=BROKEN)
    assert run(["fix", "--exclude", "a.yaml", "-q"]) == 0
    assert content(directory) == {"a.yaml": BROKEN, "b.yaml": FIXED}
    assert run(["fix", "--exclude", "a.yaml", "--force-exclude", "-q", "a.yaml"]) == 0
    assert content(directory)["a.yaml"] == BROKEN
    assert run(["fix", "--exclude", "a.yaml", "-q", "a.yaml"]) == 0
    assert content(directory)["a.yaml"] == FIXED


def test_context_is_read_and_stays(directory: Path) -> None:
    write(directory, a=BROKEN, b=BROKEN)
    assert run(["fix", "--context", "b.yaml", "-q", "a.yaml"]) == 0
    assert content(directory) == {"a.yaml": FIXED, "b.yaml": BROKEN}


@pytest.mark.usefixtures("directory")
def test_standard_input(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for text, wanted in ((BROKEN.replace("\n", "\r\n"), FIXED.replace("\n", "\r\n")), (OTHER, OTHER), ("", "")):
        monkeypatch.setattr(sys, "stdin", Stdin(text))
        assert run(["fix", "-"]) == 0
        assert capsysbinary.readouterr().out == wanted.encode()


@pytest.mark.usefixtures("directory")
def test_output_of_helm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"---\n# Source: chart/templates/a.yaml\n{BROKEN}---\n# Source: chart/templates/b.yaml\n{OTHER}"
    monkeypatch.setattr(sys, "stdin", Stdin(text))
    assert run(["fix", "-"]) == 0
    printed = capsys.readouterr()
    assert (
        printed.out == f"---\n# Source: chart/templates/a.yaml\n{FIXED}---\n# Source: chart/templates/b.yaml\n{OTHER}"
    )
    assert printed.err.startswith("<stdin>:10: fixed APF101")
    monkeypatch.setattr(sys, "stdin", Stdin(text))
    assert run(["check", "--diff", "-"]) == 1
    assert "+  matchingPrecedence: 870   # before the rest\n" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", Stdin(text))
    assert run(["fix", "-", "--stdin-filename", "my.yaml"]) == 0
    assert capsys.readouterr().err.startswith("my.yaml:10: fixed APF101")


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_check_fix_rejects_standard_input(capsys: pytest.CaptureFixture[str], path: str) -> None:
    assert run(["check", "--fix", path]) == 2
    assert capsys.readouterr() == (
        "",
        "apflint: --fix edits files. For standard input use `apflint fix -`, which prints the result\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--fix", "--diff"], "--fix and --diff cannot be combined"),
        (["check", "--unsafe-fixes"], "--unsafe-fixes requires --fix or --diff"),
        (["check", "--fix", "--baseline", "b.json", "--write-baseline"], "cannot be combined"),
        (["check", "--diff", "--report", "json=x.json"], "--diff and --report cannot be combined"),
        (["fix", "--select", "APF99"], "APF99"),
        (["fix", "nowhere.yaml"], "No such file"),
    ],
)
def test_wrong_usage(directory: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    write(directory, a=BROKEN)
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert content(directory) == {"a.yaml": BROKEN}


def test_standard_input_named_like_a_file(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory, a=BROKEN)
    monkeypatch.setattr(sys, "stdin", Stdin(BROKEN))
    assert run(["fix", "-", "a.yaml", "--stdin-filename", "a.yaml"]) == 2
    assert "names both standard input and a file" in capsys.readouterr().err
    assert content(directory) == {"a.yaml": BROKEN}


def test_diff_changes_nothing(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=BROKEN, b=FIXED)
    assert run(["fix", "--diff"]) == 1
    assert content(directory) == {"a.yaml": BROKEN, "b.yaml": FIXED}
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "--- a/a.yaml",
        "+++ b/a.yaml",
        "@@ -5,8 +5,8 @@",
        "   name: nightly",
        " spec:",
        "   priorityLevelConfiguration: {name: workload-low}",
        "-  matchingPrecedense: 870   # before the rest",
        '-  distinguisherMethod: {type: "ByUsers"}',
        "+  matchingPrecedence: 870   # before the rest",
        '+  distinguisherMethod: {type: "ByUser"}',
        "   rules:",
        "   - subjects: [{kind: Group, group: {name: night-watch}}]",
        "     nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]",
    ]
    assert "a.yaml:8: would fix APF101: " in printed.err
    assert "apflint: would fix 2 findings in 1 file; 1 finding without a fix: apflint check\n" in printed.err
    assert run(["fix", "--diff", "b.yaml"]) == 0


@pytest.mark.parametrize(
    ("text", "arguments", "status", "left"),
    [
        (BROKEN, [], 0, []),
        (BROKEN + "---\n" + WRONG.replace("nightly", "daily"), [], 1, ["APF201"]),
        (WRONG, [], 1, ["APF201"]),
        (WRONG, ["--fail-on", "never"], 0, ["APF201"]),
        (REFUSED, [], 1, ["APF101"]),
    ],
)
def test_check_fix_reports_remaining_findings(
    directory: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], status: int, left: list[str]
) -> None:
    write(directory, a=text)
    assert run(["check", "--fix", "--format", "json", *arguments]) == status
    report = json.loads(capsys.readouterr().out)
    assert [found["rule"] for found in report["findings"]] == left
    assert report["summary"]["errors"] == len(left)


def test_check_fix_ends_with_a_summary(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=BROKEN, b=REFUSED.replace("nightly", "daily"))
    assert run(["check", "--fix"]) == 1
    printed = capsys.readouterr()
    assert 'unknown field "matchingPrecedense" in spec' in printed.out
    assert "b.yaml:8: not fixed: APF101 (rename " in printed.err
    assert printed.err.endswith("apflint: fixed 2 findings in 1 file; 1 finding not fixed\n")
    assert content(directory) == {"a.yaml": FIXED, "b.yaml": REFUSED.replace("nightly", "daily")}


def test_report_file_of_check_fix(directory: Path) -> None:
    write(directory, a=BROKEN)
    assert run(["check", "--fix", "--report", "json=out.json"]) == 0
    assert json.loads((directory / "out.json").read_text())["findings"] == []


@pytest.mark.parametrize(("fail_on", "status"), [("error", 1), ("never", 0)])
def test_exit_status_of_check_diff(
    directory: Path, capsys: pytest.CaptureFixture[str], fail_on: str, status: int
) -> None:
    write(directory, a=BROKEN)
    assert run(["check", "--diff", "--fail-on", fail_on]) == status
    assert capsys.readouterr().out.startswith("--- a/a.yaml\n+++ b/a.yaml\n")
    assert content(directory) == {"a.yaml": BROKEN}
    write(directory, a=FIXED)
    assert run(["check", "--diff"]) == 0
    assert capsys.readouterr().out == ""


def test_refused_fix_is_printed_with_its_reason(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, a=REFUSED)
    assert run(["fix", "-q"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        'a.yaml:8: not fixed: APF101 (rename "matchingPrecedense" to "matchingPrecedence"):'
        " it would cause APF201 in line 8: "
    )
    assert content(directory) == {"a.yaml": REFUSED}


def test_unsafe_fixes(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FIXED.replace("[/x]", "[x]")
    write(directory, a=text)
    assert run(["fix"]) == 0
    assert content(directory) == {"a.yaml": text}
    assert capsys.readouterr().err == "apflint: nothing to fix; 1 finding with --unsafe-fixes\n"
    assert run(["fix", "--unsafe-fixes"]) == 0
    assert content(directory) == {"a.yaml": FIXED}
    assert capsys.readouterr().err.endswith("apflint: fixed 1 finding in 1 file\n")


def test_suppressed_findings_are_not_fixed(directory: Path) -> None:
    suppressed = BROKEN.replace("before the rest", "apflint: ignore[APF101] so it is").replace("ByUsers", "ByUser")
    write(directory, a=suppressed)
    assert run(["fix", "-q"]) == 0
    assert content(directory) == {"a.yaml": suppressed}
    assert run(["check", "--fix", "--no-ignores", "-q"]) in (0, 1)
    assert "matchingPrecedence: 870" in content(directory)["a.yaml"]


def test_ignored_findings_are_not_fixed(directory: Path) -> None:
    write(directory, a=BROKEN, b=BROKEN.replace("nightly", "b"))
    (directory / "apflint.toml").write_text('[per-file-ignores]\n"a.yaml" = ["APF101"]\n')
    assert run(["fix", "-q"]) == 0
    assert content(directory) == {
        "a.yaml": BROKEN.replace("ByUsers", "ByUser"),
        "b.yaml": FIXED.replace("nightly", "b"),
    }


@pytest.mark.parametrize("command", [("check", "--fix"), ("fix", "--quiet"), ("fix", "--diff"), ("check", "--diff")])
def test_findings_in_the_baseline_are_not_fixed(
    directory: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    write(directory, a=BROKEN.replace("ByUsers", "ByUser"))
    assert run(["check", "--baseline", "known.json", "--write-baseline"]) == 0
    write(directory, a=BROKEN)
    diff = "--diff" in command
    assert run([*command, "--baseline", "known.json"]) == int(diff)
    printed = capsys.readouterr().out
    assert content(directory) == {"a.yaml": BROKEN if diff else BROKEN.replace("ByUsers", "ByUser")}
    assert printed == "" if not diff else ('"ByUser"}' in printed and "+  matchingPrecedence" not in printed)


def test_permissions_and_links_stay(directory: Path) -> None:
    write(directory, goal=BROKEN)
    (directory / "goal.yaml").chmod(0o640)
    (directory / "link").symlink_to("goal.yaml")
    assert run(["fix", "-q", "link", "goal.yaml"]) == 0
    assert (directory / "link").readlink() == Path("goal.yaml")
    assert content(directory) == {"goal.yaml": FIXED}
    assert stat.S_IMODE((directory / "goal.yaml").stat().st_mode) == 0o640
    assert sorted(os.listdir(directory)) == ["goal.yaml", "link"]


def changed_meanwhile(directory: Path, monkeypatch: pytest.MonkeyPatch, then: str | None) -> None:
    """Replace or remove `a.yaml` while it is checked."""
    check = engine.check_loaded

    def slow(*arguments: object, **named: object) -> object:
        path = directory / "a.yaml"
        if then is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(then)
        return check(*arguments, **named)  # type: ignore[arg-type]  # the unchanged function

    monkeypatch.setattr(engine, "check_loaded", slow)


@pytest.mark.parametrize(
    ("then", "reason"),
    [("# mine\n", "another process has changed it"), (None, "No such file or directory")],
)
def test_changed_file_is_not_written(
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    then: str | None,
    reason: str,
) -> None:
    write(directory, a=BROKEN, b=BROKEN.replace("nightly", "b"))
    changed_meanwhile(directory, monkeypatch, then)
    assert run(["fix"]) == 2
    expected = {"b.yaml": FIXED.replace("nightly", "b")} | ({} if then is None else {"a.yaml": then})
    assert content(directory) == expected
    assert len(os.listdir(directory)) == len(expected)
    printed = capsys.readouterr().err.splitlines()
    assert f"apflint: a.yaml: not written: {reason}" in printed
    assert not any(line.startswith("a.yaml") for line in printed)
    assert "apflint: fixed 2 findings in 1 file" in printed


def test_check_fix_reports_findings_of_a_file_that_was_not_written(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory, a=BROKEN)
    changed_meanwhile(directory, monkeypatch, "# mine\n")
    assert run(["check", "--fix", "--format", "json"]) == 2
    printed = capsys.readouterr()
    assert [load["rule"] for load in json.loads(printed.out)["findings"]] == ["APF101", "APF203"]
    assert "a.yaml: not written: another process has changed it" in printed.err


def test_read_only_file(directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(directory, a=BROKEN)
    monkeypatch.setattr(os, "access", lambda *_: False)  # as for a read-only file, even if root runs the test
    assert run(["fix", "-q"]) == 2
    assert capsys.readouterr().err == "apflint: a.yaml: not written: it is read-only\n"
    assert content(directory) == {"a.yaml": BROKEN}


@OWNED_BY_ROOT
def test_read_only_directory(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "x").mkdir()
    write(directory / "x", a=BROKEN)
    (directory / "x").chmod(0o500)
    assert run(["fix", "-q"]) == 2
    assert (
        "x/a.yaml: not written: cannot create a file in the same directory: Permission denied"
        in capsys.readouterr().err
    )
    (directory / "x").chmod(0o700)
    assert content(directory) == {"x/a.yaml": BROKEN}


def test_failing_write_leaves_no_other_file(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory, a=BROKEN)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert run(["fix", "-q"]) == 2
    assert capsys.readouterr().err == "apflint: a.yaml: not written: No space left on device\n"
    assert os.listdir(directory) == ["a.yaml"]
    assert content(directory) == {"a.yaml": BROKEN}


def test_number_of_checks_does_not_grow_with_files(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check, calls = engine.check_loaded, 0

    def counted(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        return check(*arguments, **named)  # type: ignore[arg-type]  # the unchanged function

    monkeypatch.setattr(engine, "check_loaded", counted)
    for count in (1, 60):
        calls = 0
        write(directory, **{f"a{n}": (REFUSED if n % 3 else BROKEN).replace("nightly", f"n{n}") for n in range(count)})
        assert run(["fix", "-q"]) == int(count > 1)
        assert calls <= 8
    assert "matchingPrecedence: 870" in content(directory)["a3.yaml"]


@pytest.mark.parametrize("tool", [["patch", "-p1", "--quiet"], ["git", "apply"]])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "\n# end"])
def test_patch_applies_the_diff(
    directory: Path, capfdbinary: pytest.CaptureFixture[bytes], tool: list[str], line_end: str, tail: str
) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"there is no {tool[0]} here")
    (directory / "a").mkdir()
    (directory / "b ü").mkdir()
    text = (BROKEN.rstrip() + tail).replace("nightly jobs", "nightly jöbs 🎈").replace("\n", line_end)
    write(directory / "a", **{"one": text, "näme two": text.replace("name: nightly", "name: n2") + line_end})
    line_feed = "\n" if tool[0] == "git" else ""  # POSIX 2024 requires that `patch` rejects file names with a line feed
    write(directory, **{f'h"o\\s{line_feed}\tt ü': text.replace("name: nightly", "name: n4")})
    write(
        directory,
        marked="\ufeff" + BROKEN[BROKEN.index("apiV") :].replace("metadata:\n  name: nightly", "metadata: {name: n5}"),
    )
    write(directory / "b ü", three=text.replace("name: nightly", "name: n3"))
    before = content(directory)
    assert run(["fix", "--diff"]) == 1
    diff = capfdbinary.readouterr().out
    subprocess.run(tool, input=diff, check=True, cwd=directory)
    patched = content(directory)
    for name, old in before.items():
        (directory / name).write_bytes(old.encode())
    assert run(["fix", "-q"]) == 0
    assert content(directory) == patched
    assert patched != before


def test_diff_of_files_outside_of_the_current_directory(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    if shutil.which("patch") is None:
        pytest.skip("there is no patch here")
    for name in ("here/below", "there", "far"):
        (directory / name).mkdir(parents=True)
    os.symlink(directory / "far", directory / "here" / "link")
    write(
        directory,
        **{"here/below/a": BROKEN, "there/b": BROKEN.replace("nightly", "n2"), "c": BROKEN.replace("nightly", "n3")},
    )
    monkeypatch.chdir(directory / "here")
    assert run(["fix", "--diff", "../here/below"]) == 1
    diff = capfdbinary.readouterr().out
    assert b"--- a/below/a.yaml\n" in diff
    subprocess.run(["patch", "-p1"], input=diff, check=True)
    assert run(["fix", "--diff", "../there", "link/../c.yaml"]) == 1
    diff = capfdbinary.readouterr().out
    assert b".." not in diff
    subprocess.run(["patch", "-p1", "-d", "/"], input=diff, check=True)
    assert "matchingPrecedense" not in "".join(content(directory).values())


def test_encodings_are_kept(directory: Path) -> None:
    for codec, mark in (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        (directory / "a.yaml").write_bytes(mark + BROKEN.replace("nightly jobs", "jöbs 🎈").encode(codec))
        assert run(["fix", "-q"]) == 0
        assert (directory / "a.yaml").read_bytes() == mark + FIXED.replace("nightly jobs", "jöbs 🎈").encode(codec)


def test_control_characters_in_names_are_escaped(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, **{"a\x1b[31m": BROKEN})
    assert run(["fix"]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.err
    assert "\\x1b[31m.yaml:8: fixed APF101" in printed.err


@pytest.mark.parametrize("command", [["fix"], ["fix", "--diff"], ["migrate", "--to", "v1"]])
def test_no_line_is_a_command_of_github_actions(
    directory: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    write(
        directory, **{"::error file=x::y": BROKEN.replace("870", "870  # ##[add-mask]x").replace("io/v1", "io/v1beta2")}
    )
    run([*command, "."])
    printed = capsys.readouterr().err.splitlines()
    assert [line for line in printed if line.startswith("./::error file=x::y.yaml:")]
    assert not [line for line in printed if line.lstrip().startswith("::")]


@pytest.mark.slow
def test_more_findings_than_check_reports_are_fixed_at_once(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All findings are fixed in one round. Checking the file again after every thousand fixes would take quadratic time."""
    number = MAX_FINDINGS_PER_RULE + 100
    bad = "---\n".join(FIXED.replace(": nightly", f": n{at}\n  namespace: x") for at in range(number))
    write(directory, a=bad)
    reports = []
    check = engine.check_loaded

    def counted(*arguments: Any, **options: Any) -> Report:
        reports.append(check(*arguments, **options))
        return reports[-1]

    monkeypatch.setattr(engine, "check_loaded", counted)
    assert run(["fix", "--select", "APF104"]) == 0
    assert f"apflint: fixed {number} findings in 1 file\n" in capsys.readouterr().err
    assert content(directory) == {"a.yaml": bad.replace("  namespace: x\n", "")}
    assert len(reports) == 2


def test_check_fix_reports_as_many_findings_as_check(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        directory, a="---\n".join(WRONG.replace(": nightly", f": n{at}") for at in range(MAX_FINDINGS_PER_RULE + 100))
    )
    reports = []
    for arguments in (["check"], ["check", "--fix"]):
        assert run([*arguments, "--format", "json", "--select", "APF201"]) == 1
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0]["findings"][-1]["notes"][1:] == [
        "At least 100 more findings of APF201 in this file are not reported."
    ]
    assert len(reports[0]["findings"]) == MAX_FINDINGS_PER_RULE
    assert reports[0] == reports[1]
