"""`apflint fix`, `check --fix` and `check --diff` as a user or a hook meets them."""

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
"""Nobody knows what was meant."""
REFUSED = FIXED.replace("matchingPrecedence: 870", "matchingPrecedense: 99999")
"""The field is misspelt, and what is in it is wrong too."""
OTHER = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n"
OWNED_BY_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_bytes(text.encode())


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in sorted(folder.rglob("*.yaml"))}


class Stdin:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


def test_file_is_fixed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = FIXED.replace("nightly", "daily").replace("night-watch", "day-watch").replace("870", "880")
    write(folder, a=BROKEN, b=other, c=OTHER)
    assert run(["fix", "a.yaml", "b.yaml", "c.yaml"]) == 0
    assert content(folder) == {"a.yaml": FIXED, "b.yaml": other, "c.yaml": OTHER}
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        'a.yaml:8: fixed APF101: rename "matchingPrecedense" to "matchingPrecedence"',
        'a.yaml:9: fixed APF203: change "ByUsers" to "ByUser"',
        "apflint: c.yaml: no FlowSchema and no PriorityLevelConfiguration in this file",
        "apflint: fixed 2 findings in 1 file",
    ]
    assert run(["fix", "a.yaml"]) == 0
    assert capsys.readouterr().err == "apflint: nothing to fix\n"


def test_remaining_findings_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=WRONG, b=REFUSED.replace("nightly", "b").replace("night-watch", "b"))
    for arguments, more in ((["fix"], "; 1 finding without a fix: apflint check"), (["check", "--fix"], "")):
        assert run(arguments) == 1
        assert capsys.readouterr().err.endswith(f"apflint: 1 finding not fixed{more}\n")
    write(folder, b=FIXED.replace("nightly", "b").replace("night-watch", "b").replace("[/x]", "[x]"))
    assert run(["fix"]) == 0
    told = "apflint: nothing to fix; 1 finding with --unsafe-fixes; 1 finding without a fix: apflint check\n"
    assert capsys.readouterr().err == told


def test_fixes_are_printed_in_the_order_of_files_and_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not in that of their making: the server says nothing about users as long as fields are misspelt."""
    text = BROKEN.replace("name: nightly", "namespace: x\n  name: nightly")
    write(folder, b=text, a=text.replace("nightly", "a"))
    assert run(["fix", "b.yaml", "a.yaml"]) == 0
    told = [line.split(":")[:2] for line in capsys.readouterr().err.splitlines()[:-1]]
    assert told == [[name, line] for name in ("a.yaml", "b.yaml") for line in ("5", "9", "10")]


def test_lines_are_those_of_the_original_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The subject gets one line more by its fix, and what is mended or refused below it is found after that."""
    old, new = (
        "  - subjects: [{kind: Group, group: {name: night-watch}}]\n",
        "  - subjects:\n    - kind: Group\n      name: a\n",
    )
    text = FIXED.replace(old, new).replace("verbs: [get]", "verbs: [get, get]")
    bad = text + "---\n" + REFUSED.replace("nightly", "refused")
    write(folder, a=bad)
    assert run(["fix", "--diff", "a.yaml"]) == 1
    fixed = ["APF101", "APF106"]
    lines = [bad[: bad.index(sign)].count("\n") + 1 for sign in ("name: a\n", "[get, get]", "matchingPrecedense")]
    told = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:2] for line in told[:2]] == [
        [f"a.yaml:{line}", f"would fix {rule}"] for line, rule in zip(lines, fixed, strict=False)
    ]
    assert told[2].startswith(f"a.yaml:{lines[2]}: not fixed: APF101 (")
    assert f" in line {lines[2]}: " in told[2]
    assert run(["fix", "a.yaml"]) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:2] for line in told[:2]] == [
        [f"a.yaml:{line}", f"fixed {rule}"] for line, rule in zip(lines, fixed, strict=False)
    ]
    assert told[2].startswith(f"a.yaml:{lines[2] + 1}: not fixed: APF101 (")  # it is there to be looked at, now


def test_directory(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    write(folder / "deep" / "er", a=BROKEN)
    write(folder, b=BROKEN)
    assert run(["fix", "-q"]) == 0
    assert content(folder) == {"b.yaml": FIXED, "deep/er/a.yaml": FIXED}


def test_quiet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=BROKEN)
    assert run(["fix", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_selected_rules(folder: Path) -> None:
    write(folder, a=BROKEN)
    assert run(["fix", "--select", "APF203", "-q"]) == 0
    assert content(folder) == {"a.yaml": BROKEN.replace("ByUsers", "ByUser")}
    assert run(["fix", "--ignore", "APF101", "-q"]) == 0
    assert content(folder) == {"a.yaml": BROKEN.replace("ByUsers", "ByUser")}


def test_excluded_files_stay(folder: Path) -> None:
    write(folder, a=BROKEN, b=BROKEN)
    assert run(["fix", "--exclude", "a.yaml", "-q"]) == 0
    assert content(folder) == {"a.yaml": BROKEN, "b.yaml": FIXED}
    assert run(["fix", "--exclude", "a.yaml", "--force-exclude", "-q", "a.yaml"]) == 0
    assert content(folder)["a.yaml"] == BROKEN
    assert run(["fix", "--exclude", "a.yaml", "-q", "a.yaml"]) == 0
    assert content(folder)["a.yaml"] == FIXED


def test_context_is_read_and_stays(folder: Path) -> None:
    write(folder, a=BROKEN, b=BROKEN)
    assert run(["fix", "--context", "b.yaml", "-q", "a.yaml"]) == 0
    assert content(folder) == {"a.yaml": FIXED, "b.yaml": BROKEN}


@pytest.mark.usefixtures("folder")
def test_standard_input(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for given, wanted in ((BROKEN.replace("\n", "\r\n"), FIXED.replace("\n", "\r\n")), (OTHER, OTHER), ("", "")):
        monkeypatch.setattr(sys, "stdin", Stdin(given))
        assert run(["fix", "-"]) == 0
        assert capsysbinary.readouterr().out == wanted.encode()


@pytest.mark.usefixtures("folder")
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
def test_wrong_usage(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    write(folder, a=BROKEN)
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert content(folder) == {"a.yaml": BROKEN}


def test_standard_input_named_like_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, a=BROKEN)
    monkeypatch.setattr(sys, "stdin", Stdin(BROKEN))
    assert run(["fix", "-", "a.yaml", "--stdin-filename", "a.yaml"]) == 2
    assert "names both standard input and a file" in capsys.readouterr().err
    assert content(folder) == {"a.yaml": BROKEN}


def test_diff_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=BROKEN, b=FIXED)
    assert run(["fix", "--diff"]) == 1
    assert content(folder) == {"a.yaml": BROKEN, "b.yaml": FIXED}
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
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], status: int, left: list[str]
) -> None:
    write(folder, a=text)
    assert run(["check", "--fix", "--format", "json", *arguments]) == status
    report = json.loads(capsys.readouterr().out)
    assert [found["rule"] for found in report["findings"]] == left
    assert report["summary"]["errors"] == len(left)


def test_check_fix_ends_with_a_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=BROKEN, b=REFUSED.replace("nightly", "daily"))
    assert run(["check", "--fix"]) == 1
    printed = capsys.readouterr()
    assert 'unknown field "matchingPrecedense" in spec' in printed.out
    assert "b.yaml:8: not fixed: APF101 (rename " in printed.err
    assert printed.err.endswith("apflint: fixed 2 findings in 1 file; 1 finding not fixed\n")
    assert content(folder) == {"a.yaml": FIXED, "b.yaml": REFUSED.replace("nightly", "daily")}


def test_report_file_of_check_fix(folder: Path) -> None:
    write(folder, a=BROKEN)
    assert run(["check", "--fix", "--report", "json=out.json"]) == 0
    assert json.loads((folder / "out.json").read_text())["findings"] == []


@pytest.mark.parametrize(("fail_on", "status"), [("error", 1), ("never", 0)])
def test_exit_status_of_check_diff(folder: Path, capsys: pytest.CaptureFixture[str], fail_on: str, status: int) -> None:
    write(folder, a=BROKEN)
    assert run(["check", "--diff", "--fail-on", fail_on]) == status
    assert capsys.readouterr().out.startswith("--- a/a.yaml\n+++ b/a.yaml\n")
    assert content(folder) == {"a.yaml": BROKEN}
    write(folder, a=FIXED)
    assert run(["check", "--diff"]) == 0
    assert capsys.readouterr().out == ""


def test_refused_fix_is_printed_with_its_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=REFUSED)
    assert run(["fix", "-q"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        'a.yaml:8: not fixed: APF101 (rename "matchingPrecedense" to "matchingPrecedence"):'
        " it would cause APF201 in line 8: "
    )
    assert content(folder) == {"a.yaml": REFUSED}


def test_unsafe_fixes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FIXED.replace("[/x]", "[x]")
    write(folder, a=text)
    assert run(["fix"]) == 0
    assert content(folder) == {"a.yaml": text}
    assert capsys.readouterr().err == "apflint: nothing to fix; 1 finding with --unsafe-fixes\n"
    assert run(["fix", "--unsafe-fixes"]) == 0
    assert content(folder) == {"a.yaml": FIXED}
    assert capsys.readouterr().err.endswith("apflint: fixed 1 finding in 1 file\n")


def test_suppressed_findings_are_not_fixed(folder: Path) -> None:
    suppressed = BROKEN.replace("before the rest", "apflint: ignore[APF101] so it is").replace("ByUsers", "ByUser")
    write(folder, a=suppressed)
    assert run(["fix", "-q"]) == 0
    assert content(folder) == {"a.yaml": suppressed}
    assert run(["check", "--fix", "--no-ignores", "-q"]) in (0, 1)
    assert "matchingPrecedence: 870" in content(folder)["a.yaml"]


def test_ignored_findings_are_not_fixed(folder: Path) -> None:
    write(folder, a=BROKEN, b=BROKEN.replace("nightly", "b"))
    (folder / "apflint.toml").write_text('[per-file-ignores]\n"a.yaml" = ["APF101"]\n')
    assert run(["fix", "-q"]) == 0
    assert content(folder) == {
        "a.yaml": BROKEN.replace("ByUsers", "ByUser"),
        "b.yaml": FIXED.replace("nightly", "b"),
    }


@pytest.mark.parametrize("command", [("check", "--fix"), ("fix", "--quiet"), ("fix", "--diff"), ("check", "--diff")])
def test_findings_in_the_baseline_are_not_fixed(
    folder: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    write(folder, a=BROKEN.replace("ByUsers", "ByUser"))
    assert run(["check", "--baseline", "known.json", "--write-baseline"]) == 0
    write(folder, a=BROKEN)
    diff = "--diff" in command
    assert run([*command, "--baseline", "known.json"]) == int(diff)
    told = capsys.readouterr().out
    assert content(folder) == {"a.yaml": BROKEN if diff else BROKEN.replace("ByUsers", "ByUser")}
    assert told == "" if not diff else ('"ByUser"}' in told and "+  matchingPrecedence" not in told)


def test_permissions_and_links_stay(folder: Path) -> None:
    write(folder, goal=BROKEN)
    (folder / "goal.yaml").chmod(0o640)
    (folder / "link").symlink_to("goal.yaml")
    assert run(["fix", "-q", "link", "goal.yaml"]) == 0
    assert (folder / "link").readlink() == Path("goal.yaml")
    assert content(folder) == {"goal.yaml": FIXED}
    assert stat.S_IMODE((folder / "goal.yaml").stat().st_mode) == 0o640
    assert sorted(os.listdir(folder)) == ["goal.yaml", "link"]


def changed_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch, then: str | None) -> None:
    """Has `a.yaml` written anew, or removed, while it is checked."""
    check = engine.check

    def slow(*arguments: object, **named: object) -> object:
        path = folder / "a.yaml"
        if then is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(then)
        return check(*arguments, **named)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(engine, "check", slow)


@pytest.mark.parametrize(
    ("then", "reason"),
    [("# mine\n", "another process has changed it"), (None, "No such file or directory")],
)
def test_changed_file_is_not_written(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    then: str | None,
    reason: str,
) -> None:
    write(folder, a=BROKEN, b=BROKEN.replace("nightly", "b"))
    changed_meanwhile(folder, monkeypatch, then)
    assert run(["fix"]) == 2
    expected = {"b.yaml": FIXED.replace("nightly", "b")} | ({} if then is None else {"a.yaml": then})
    assert content(folder) == expected
    assert len(os.listdir(folder)) == len(expected)
    told = capsys.readouterr().err.splitlines()
    assert f"apflint: a.yaml: not written: {reason}" in told
    assert not any(line.startswith("a.yaml") for line in told)
    assert "apflint: fixed 2 findings in 1 file" in told


def test_check_fix_reports_findings_of_a_file_that_was_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, a=BROKEN)
    changed_meanwhile(folder, monkeypatch, "# mine\n")
    assert run(["check", "--fix", "--format", "json"]) == 2
    printed = capsys.readouterr()
    assert [found["rule"] for found in json.loads(printed.out)["findings"]] == ["APF101", "APF203"]
    assert "a.yaml: not written: another process has changed it" in printed.err


def test_read_only_file(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, a=BROKEN)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert run(["fix", "-q"]) == 2
    assert capsys.readouterr().err == "apflint: a.yaml: not written: it is read-only\n"
    assert content(folder) == {"a.yaml": BROKEN}


@OWNED_BY_ROOT
def test_read_only_directory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x").mkdir()
    write(folder / "x", a=BROKEN)
    (folder / "x").chmod(0o500)
    assert run(["fix", "-q"]) == 2
    assert "x/a.yaml: not written: cannot create a file in its directory: Permission denied" in capsys.readouterr().err
    (folder / "x").chmod(0o700)
    assert content(folder) == {"x/a.yaml": BROKEN}


def test_failing_write_leaves_no_other_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, a=BROKEN)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert run(["fix", "-q"]) == 2
    assert capsys.readouterr().err == "apflint: a.yaml: not written: No space left on device\n"
    assert os.listdir(folder) == ["a.yaml"]
    assert content(folder) == {"a.yaml": BROKEN}


def test_number_of_checks_does_not_grow_with_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check, calls = engine.check, 0

    def counted(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        return check(*arguments, **named)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(engine, "check", counted)
    for count in (1, 60):
        calls = 0
        write(folder, **{f"a{n}": (REFUSED if n % 3 else BROKEN).replace("nightly", f"n{n}") for n in range(count)})
        assert run(["fix", "-q"]) == int(count > 1)
        assert calls <= 8
    assert "matchingPrecedence: 870" in content(folder)["a3.yaml"]


@pytest.mark.parametrize("tool", [["patch", "-p1", "--quiet"], ["git", "apply"]])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "\n# end"])
def test_patch_applies_the_diff(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], tool: list[str], line_end: str, tail: str
) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"there is no {tool[0]} here")
    (folder / "a").mkdir()
    (folder / "b ü").mkdir()
    text = (BROKEN.rstrip() + tail).replace("nightly jobs", "nightly jöbs 🎈").replace("\n", line_end)
    write(folder / "a", **{"one": text, "näme two": text.replace("name: nightly", "name: n2") + line_end})
    write(folder, **{'h"o\\s\n\tt ü': text.replace("name: nightly", "name: n4")})
    write(
        folder,
        marked="\ufeff" + BROKEN[BROKEN.index("apiV") :].replace("metadata:\n  name: nightly", "metadata: {name: n5}"),
    )
    write(folder / "b ü", three=text.replace("name: nightly", "name: n3"))
    before = content(folder)
    assert run(["fix", "--diff"]) == 1
    diff = capfdbinary.readouterr().out
    subprocess.run(tool, input=diff, check=True, cwd=folder)
    patched = content(folder)
    for name, old in before.items():
        (folder / name).write_bytes(old.encode())
    assert run(["fix", "-q"]) == 0
    assert content(folder) == patched
    assert patched != before


def test_diff_of_files_outside_of_the_current_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    if shutil.which("patch") is None:
        pytest.skip("there is no patch here")
    for name in ("here/below", "there", "far"):
        (folder / name).mkdir(parents=True)
    os.symlink(folder / "far", folder / "here" / "link")
    write(
        folder,
        **{"here/below/a": BROKEN, "there/b": BROKEN.replace("nightly", "n2"), "c": BROKEN.replace("nightly", "n3")},
    )
    monkeypatch.chdir(folder / "here")
    assert run(["fix", "--diff", "../here/below"]) == 1
    diff = capfdbinary.readouterr().out
    assert b"--- a/below/a.yaml\n" in diff
    subprocess.run(["patch", "-p1"], input=diff, check=True)
    assert run(["fix", "--diff", "../there", "link/../c.yaml"]) == 1
    diff = capfdbinary.readouterr().out
    assert b".." not in diff
    subprocess.run(["patch", "-p1", "-d", "/"], input=diff, check=True)
    assert "matchingPrecedense" not in "".join(content(folder).values())


def test_encodings_are_kept(folder: Path) -> None:
    for codec, mark in (("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        (folder / "a.yaml").write_bytes(mark + BROKEN.replace("nightly jobs", "jöbs 🎈").encode(codec))
        assert run(["fix", "-q"]) == 0
        assert (folder / "a.yaml").read_bytes() == mark + FIXED.replace("nightly jobs", "jöbs 🎈").encode(codec)


def test_control_characters_in_names_are_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, **{"a\x1b[31m": BROKEN})
    assert run(["fix"]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.err
    assert "\\x1b[31m.yaml:8: fixed APF101" in printed.err


@pytest.mark.parametrize("command", [["fix"], ["fix", "--diff"], ["migrate", "--to", "v1"]])
def test_no_line_is_a_command_of_github_actions(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    write(folder, **{"::error file=x::y": BROKEN.replace("870", "870  # ##[add-mask]x").replace("io/v1", "io/v1beta2")})
    run([*command, "."])
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if line.startswith("./::error file=x::y.yaml:")]
    assert not [line for line in told if line.lstrip().startswith("::")]


@pytest.mark.slow
def test_more_findings_than_check_reports_are_fixed_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds of a thousand would read the file again for each of them, so that twice as much would take four times as long."""
    number = MAX_FINDINGS_PER_RULE + 100
    bad = "---\n".join(FIXED.replace(": nightly", f": n{at}\n  namespace: x") for at in range(number))
    write(folder, a=bad)
    reports = []
    check = engine.check

    def counted(*arguments: Any, **options: Any) -> Report:
        reports.append(check(*arguments, **options))
        return reports[-1]

    monkeypatch.setattr(engine, "check", counted)
    assert run(["fix", "--select", "APF104"]) == 0
    assert f"apflint: fixed {number} findings in 1 file\n" in capsys.readouterr().err
    assert content(folder) == {"a.yaml": bad.replace("  namespace: x\n", "")}
    assert len(reports) == 2


def test_check_fix_reports_as_many_findings_as_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a="---\n".join(WRONG.replace(": nightly", f": n{at}") for at in range(MAX_FINDINGS_PER_RULE + 100)))
    said = []
    for arguments in (["check"], ["check", "--fix"]):
        assert run([*arguments, "--format", "json", "--select", "APF201"]) == 1
        said.append(json.loads(capsys.readouterr().out))
    assert said[0]["findings"][-1]["notes"][1:] == [
        "At least 100 more findings of APF201 in this file are not reported."
    ]
    assert len(said[0]["findings"]) == MAX_FINDINGS_PER_RULE
    assert said[0] == said[1]
