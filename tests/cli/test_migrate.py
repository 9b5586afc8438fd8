"""`apflint migrate`: files, standard input, settings and exit codes."""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from apflint.cli.app import run
from apflint.load.document import GROUP
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from pathlib import Path


def level(limited: str, version: str) -> str:
    """Return a priority level. `limited` contains the lines of `spec.limited`."""
    return (
        f"apiVersion: {GROUP}/{version}\nkind: PriorityLevelConfiguration\nmetadata:\n  name: nights\n"
        f"spec:\n  type: Limited\n  limited:\n{limited}    limitResponse: {{type: Reject}}\n"
    )


def test_diff_prints_the_edits_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = level("    assuredConcurrencyShares: 5", "v1beta2").replace("    limitResponse: {type: Reject}\n", "")
    (tmp_path / "a.yaml").write_text(text)
    assert run(["migrate", "--to", "v1", "--diff"]) == 1
    printed = capsys.readouterr()
    assert printed.out == (
        "--- a/a.yaml\n+++ b/a.yaml\n@@ -1,8 +1,8 @@\n"
        f"-apiVersion: {GROUP}/v1beta2\n+apiVersion: {GROUP}/v1\n"
        " kind: PriorityLevelConfiguration\n metadata:\n   name: nights\n spec:\n   type: Limited\n   limited:\n"
        "-    assuredConcurrencyShares: 5\n\\ No newline at end of file\n"
        "+    nominalConcurrencyShares: 5\n\\ No newline at end of file\n"
    )
    assert printed.err.startswith(
        'a.yaml:1: PriorityLevelConfiguration "nights": v1beta2 -> v1\n'
        f"apflint: 1 object would be moved to v1 for Kubernetes {NEWEST.name}\n"
    )
    assert "wrote" not in printed.err
    assert (tmp_path / "a.yaml").read_text() == text
    assert run(["migrate", "--to", "v1", "--diff", "--exit-zero"]) == 0


def test_files_are_replaced_unless_an_object_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_bytes(b"\xef\xbb\xbf" + level("", "v1beta2").replace("\n", "\r\n").encode())
    good.chmod(0o600)
    refused = level("", "v1beta2") + "---\n" + level("    x: 1\n", "v1beta2")
    bad.write_text(refused)
    assert run(["migrate", "."]) == 1
    assert good.read_bytes() == b"\xef\xbb\xbf" + level("", "v1").replace("\n", "\r\n").encode()
    assert stat.S_IMODE(good.stat().st_mode) == 0o600
    assert bad.read_text() == refused
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "bad.yaml:17: refused: PriorityLevelConfiguration" in printed.err
    assert "bad.yaml: the file is not changed, because apflint refused to migrate one of its objects" in printed.err
    assert [line for line in printed.err.splitlines() if "wrote" in line] == ["apflint: wrote good.yaml"]
    assert run(["migrate", "--diff", "good.yaml"]) == 0
    assert capsys.readouterr().out == ""


def test_standard_input_goes_to_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stdin:
        buffer = io.BytesIO(level("", "v1beta2").encode() + b"---\nkind: ConfigMap\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert run(["migrate", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out == level("", "v1") + "---\nkind: ConfigMap\n"
    assert "wrote" not in printed.err


def test_other_files_are_migrated_if_one_cannot_be_read_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_bytes(level("", "v1beta2").encode() + b"\xff")
    (tmp_path / "b.yaml").write_text(level("", "v1beta2"))
    (tmp_path / "c.yaml").write_text(level("", "v1beta2"))
    (tmp_path / "other.yaml").write_text("kind: ConfigMap\n")
    monkeypatch.setattr(os, "access", lambda path, _: "b.yaml" not in str(path))
    assert run(["migrate", "."]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "apflint: a.yaml: not a text file" in printed.err
    assert "apflint: b.yaml: not written: it is read-only" in printed.err
    assert f"apflint: wrote c.yaml\napflint: 1 object moved to v1 for Kubernetes {NEWEST.name}\n" in printed.err
    assert "wrote b.yaml" not in printed.err
    assert [(tmp_path / name).read_text() for name in ("b.yaml", "c.yaml")] == [level("", "v1beta2"), level("", "v1")]


GUIDE = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#flowcontrol-resources-v1"


@pytest.mark.parametrize(
    ("settings", "old", "arguments", "warnings"),
    [
        # If the settings state no release, the cluster is assumed to run a release that serves the old version.
        (
            "",
            "v1beta2",
            "",
            (
                (
                    "Kubernetes 1.28 and earlier do not serve v1 (1.29 and later): apply the result only after the upgrade to"
                    " 1.29 or later"
                ),
                (
                    "No release serves both v1beta2 (1.23 to 1.28) and v1. For the releases in between, use"
                    " v1beta3 (1.26 to 1.31): apflint migrate --to v1beta3"
                ),
                f"The releases are from {GUIDE}29 and {GUIDE}32",
            ),
        ),
        (
            "",
            "v1beta3",
            "--kubernetes 1.34",
            (
                (
                    "Kubernetes 1.28 and earlier do not serve v1 (1.29 and later): apply the result only after the upgrade to"
                    " 1.29 or later"
                ),
                f"The releases are from {GUIDE}32 and {GUIDE}29",
            ),
        ),
        (
            "",
            "v1alpha1",
            "--to v1beta3",
            (
                (
                    "Kubernetes 1.25 and earlier do not serve v1beta3 (1.26 to 1.31): apply the result only after the upgrade to"
                    " 1.26 or later"
                ),
                (
                    "No release serves both v1alpha1 (1.18 to 1.20) and v1beta3. For the releases in between,"
                    " use v1beta1 (1.20 to 1.25) and then v1beta2 (1.23 to 1.28): apflint migrate --to v1beta1"
                ),
                f"The releases are from {GUIDE}26, {GUIDE}29 and {GUIDE}32",
            ),
        ),
        # No warnings are expected: a target release serves both the old and the new version, and the cluster may
        # already run this release.
        ("", "v1beta3", "--kubernetes 1.30", ()),
        ("", "v1beta2", "--range 1.26..1.31", ()),
        ("", "v1beta2", "--to v1beta3 --kubernetes 1.27", ()),
        # The settings state the releases that run today, so warnings are only about these releases.
        ('kubernetes = "1.30"', "v1beta3", "--to v1", ()),
        ('kubernetes = "1.34"', "v1beta2", "", ()),
        (
            'kubernetes = "1.28"',
            "v1beta3",
            "--kubernetes 1.30",
            (
                "Kubernetes 1.28 does not serve v1 (1.29 and later): apply the result only after the upgrade to 1.29 or later",
                f"The releases are from {GUIDE}32 and {GUIDE}29",
            ),
        ),
        (
            'kubernetes = "1.34"',
            "v1beta2",
            "--to v1beta3",
            (
                "Kubernetes 1.34 does not serve v1beta3 (1.26 to 1.31)",
                f"The releases are from {GUIDE}29 and {GUIDE}32",
            ),
        ),
        (
            (
                '[[cluster]]\nname = "a"\npaths = ["a.yaml"]\nkubernetes = "1.27"\n'
                '[[cluster]]\nname = "b"\npaths = ["a.yaml"]\nkubernetes = "1.28"'
            ),
            "v1beta3",
            "--to v1",
            (
                (
                    "Kubernetes 1.27 and Kubernetes 1.28 do not serve v1 (1.29 and later): apply the result only after the upgrade"
                    " to 1.29 or later"
                ),
                f"The releases are from {GUIDE}32 and {GUIDE}29",
            ),
        ),
        # If the settings state no release for a cluster, it is assumed to run a release that serves the old version.
        ('[[cluster]]\nname = "a"\npaths = ["a.yaml"]', "v1beta3", "--kubernetes 1.30", ()),
    ],
)
def test_warns_if_the_running_cluster_does_not_serve_the_result(
    settings: str,
    old: str,
    arguments: str,
    warnings: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apflint.toml").write_text(settings)
    (tmp_path / "a.yaml").write_text(level("", old))
    assert run(["migrate", *arguments.split(), "a.yaml"]) == 0
    lines = capsys.readouterr().err.splitlines()
    start = next(number for number, line in enumerate(lines) if "1 object moved" in line)
    assert lines[start + 1 :] == [f"apflint: {warning}" for warning in warnings]


def test_nothing_to_migrate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(level("", "v1"))
    for arguments in ([], ["--diff"]):
        assert run(["migrate", *arguments]) == 0
        assert capsys.readouterr() == ("", f"apflint: no object moved to v1 for Kubernetes {NEWEST.name}\n")


def test_no_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("kind: ConfigMap\n")
    assert run(["migrate", "."]) == 0
    assert capsys.readouterr() == ("", "apflint: no FlowSchema and no PriorityLevelConfiguration found\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--range", "1.25..1.36"], "v1beta2 for 1.25 to 1.28"),
        (["--range", "1.35..1.36", "--kubernetes", "1.36"], "--kubernetes and --range cannot be combined"),
        (["--to", "v9"], "unknown API version"),
        (["nowhere.yaml"], "No such file"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert run(["migrate", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_settings_of_the_project_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*arguments: str) -> tuple[list[str], str]:
        run(["migrate", "--diff", *arguments])
        printed = capsys.readouterr()
        files = [line.removeprefix("+++ b/") for line in printed.out.splitlines() if line.startswith("+++ ")]
        return files, next(line for line in printed.err.splitlines() if "would be moved" in line)

    monkeypatch.chdir(tmp_path)
    for name in ("a", "vendor/b"):
        (tmp_path / f"{name}.yaml").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text(level("", "v1beta2"))
    both = ["a.yaml", "vendor/b.yaml"]
    (tmp_path / "apflint.toml").write_text('kubernetes = "1.27"\nexclude = ["vendor"]\n')
    assert moved() == (["a.yaml"], "apflint: 1 object would be moved to v1beta3 for Kubernetes 1.27")
    assert moved("vendor/b.yaml")[0] == ["vendor/b.yaml"]
    assert moved("--force-exclude", *both)[0] == ["a.yaml"]
    assert moved("--exclude", "a.*") == (both[1:], "apflint: 1 object would be moved to v1beta3 for Kubernetes 1.27")
    for target in (["--to", "v1"], ["--kubernetes", NEWEST.name], ["--range", f"1.36..{NEWEST.name}"]):
        files, summary = moved(*target)
        assert files == ["a.yaml"]
        assert summary.startswith("apflint: 1 object would be moved to v1 for Kubernetes 1.3")
    assert moved("--isolated") == (both, f"apflint: 2 objects would be moved to v1 for Kubernetes {NEWEST.name}")
    (tmp_path / "other.toml").write_text('exclude = ["a.yaml"]\n')
    assert moved("--config", "other.toml")[0] == both[1:]
    (tmp_path / "apflint.toml").write_text('exclud = ["vendor"]\n')
    assert run(["migrate"]) == 2
    assert "apflint.toml: exclud: unknown key" in capsys.readouterr().err


def test_version_fits_all_clusters_that_contain_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("both", "new", "three", "none"):
        (tmp_path / f"{name}.yaml").write_text(level("", "v1beta2"))
    clusters = {"1.28": ("both", "three"), "1.31": ("both", "new", "three"), "1.34": ("three",)}
    (tmp_path / "apflint.toml").write_text(
        'kubernetes = "1.26"\n'
        + "".join(
            f'[[cluster]]\nname = "c{release}"\nkubernetes = "{release}"\n'
            f"paths = {[f'{name}.yaml' for name in names]}\n"
            for release, names in clusters.items()
        )
    )
    assert run(["migrate", "."]) == 2
    versions = {name: (tmp_path / f"{name}.yaml").read_text().split()[1] for name in ("both", "new", "three", "none")}
    assert {name: version.rpartition("/")[2] for name, version in versions.items()} == {
        "both": "v1beta3",
        "new": "v1",
        "three": "v1beta2",
        "none": "v1beta3",
    }
    notes = capsys.readouterr().err
    assert (
        "apflint: three.yaml: No version of flowcontrol.apiserver.k8s.io is served by all of Kubernetes 1.28 to 1.34."
        in notes
    )
    assert "apflint: 1 object moved to v1beta3 for Kubernetes 1.28 to 1.31\n" in notes
    assert "apflint: 1 object moved to v1 for Kubernetes 1.31\n" in notes
    assert run(["migrate", "--to", "v1", "three.yaml"]) == 0
    assert " v1" in capsys.readouterr().err
