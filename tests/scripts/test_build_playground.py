"""The parts of the playground's build that need no package index. The tests in tests/playground test the built playground."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from build_playground import LINUX, ROOT, SOURCES, is_needed, read_examples, read_target, write_packages

from apflint.cli.app import run

PINS = Path(__file__).resolve().parents[2] / "scripts" / "playground"


def write_wheel(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return path


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("apflint/cli/main.py", True),
        ("pysolvers.cpython-314-wasm32-emscripten.so", True),
        ("yaml/_yaml.cpython-314-x86_64-linux-gnu.so", False),
        ("yaml/", False),
        ("pysat/examples/rc2.py", False),
        ("rich-15.0.0.dist-info/licenses/LICENSE", True),
    ],
)
def test_only_files_that_the_browser_can_import_are_needed(name: str, *, needed: bool) -> None:
    assert is_needed(name) == needed


def test_archive_has_the_files_of_all_wheels_and_does_not_depend_on_their_order(tmp_path: Path) -> None:
    wheels = [write_wheel(tmp_path / "a.whl", "a.py", "a.so"), write_wheel(tmp_path / "b.whl", "b/c.py")]
    write_packages(wheels, tmp_path / "one.zip")
    write_packages(reversed(wheels), tmp_path / "two.zip")
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["a.py", "b/c.py", "rpds.py"]
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_packages_with_the_same_file_are_rejected(tmp_path: Path) -> None:
    wheels = [write_wheel(tmp_path / "a.whl", "x.py"), write_wheel(tmp_path / "b.whl", "x.py")]
    with pytest.raises(SystemExit, match=r"b\.whl: another package has the same files: x\.py"):
        write_packages(wheels, tmp_path / "out.zip")


def test_target_of_downloads_is_that_of_pyodide(tmp_path: Path) -> None:
    lock = tmp_path / "pyodide-lock.json"
    lock.write_text(json.dumps({"info": {"python": "3.15.1", "abi_version": "2027_0", "arch": "wasm32"}}), "utf-8")
    target = read_target(lock)
    assert "--python-version=3.15" in target
    assert "--abi=cp315" in target
    assert "--platform=pyemscripten_2027_0_wasm32" in target
    assert f"--platform={LINUX}" in target


def test_examples_are_manifests_with_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = list(read_examples())
    assert len({example["title"] for example in examples}) == len(examples) > 1
    for number, example in enumerate(examples):
        assert "{{" not in example["manifests"]
        Path(f"{number}.yaml").write_text(example["manifests"], "utf-8")
        assert run(["check", "--isolated", "--fail-on", "info", f"{number}.yaml"]) == 1
        assert run(["explain", "--isolated", "-f", f"{number}.yaml", *example["request"].split()]) == 0
        Path("load.yaml").write_text(example["load"], "utf-8")
        is_rejected = example["title"].startswith("Rejected")
        assert run(["simulate", "--isolated", "load.yaml", "-f", f"{number}.yaml"]) == (2 if is_rejected else 0)
        if example["old"]:
            Path("old.yaml").write_text(example["old"], "utf-8")
            assert run(["diff", "--isolated", "old.yaml", f"{number}.yaml"]) == 1
    assert any(example["old"] for example in examples)


def test_pins_name_no_host() -> None:
    for file in PINS.iterdir():
        assert "://" not in file.read_text("utf-8"), file.name


@pytest.mark.parametrize(
    ("file", "constant", "words"),
    [
        ("main.js", "MAX_SIMULATION_SECONDS", "| simulation | {} seconds |"),
        ("share.js", "MAX_LINK_CHARACTERS", "| link | {} characters |"),
        ("share.js", "MAX_TEXT_CHARACTERS", "| {} characters |"),
    ],
)
def test_bounds_in_the_documentation_are_those_of_the_page(file: str, constant: str, words: str) -> None:
    found = re.search(rf"const {constant} = (\d+);", (SOURCES / file).read_text("utf-8").replace("_000", "000"))
    assert found is not None
    assert words.format(f"{int(found[1]):,}") in (ROOT / "docs" / "contributing" / "playground.md").read_text("utf-8")
