"""The VS Code extension in editors/vscode: its manifest, its build, its package, and a run in a real VS Code.

The tests that run npm use a copy of the extension, so that they write nothing to the checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.shell import ROOT

from apflint import __version__

RELEASE = __version__.partition(".dev")[0]
"""The version of the extension. In a development version, it is the version of the next release."""
EXTENSION = ROOT / "editors" / "vscode"
SCHEMAS = sorted(
    {path.name for path in (ROOT / "schemas").glob("apflint-*.json")} - {"apflint-output.json", "apflint-report.json"}
)
"""JSON Schemas of the files that apflint reads. All other schemas describe the output of apflint."""
CHROMIUM = shutil.which("chromium")
NPM = pytest.mark.skipif(
    not os.environ.get("APFLINT_TEST_NPM") or shutil.which("npm") is None,
    reason="installs packages with npm; set APFLINT_TEST_NPM=1 to run it, as .ci/run does",
)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def npm(directory: Path, *arguments: str) -> str:
    """Run npm, with the apflint of this environment first in the PATH, and return the output of npm."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["npm", *arguments],
        cwd=directory,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a copy of the extension, with its npm packages, inside a copy of the files that its build reads."""
    directory: Path = tmp_path_factory.mktemp("repository")
    created = shutil.ignore_patterns("node_modules", "build", "out", "*.vsix")
    shutil.copytree(EXTENSION, directory / "editors" / "vscode", ignore=created)
    shutil.copytree(ROOT / "schemas", directory / "schemas")
    shutil.copy(ROOT / "LICENSE", directory)
    (directory / "apflint").mkdir()
    shutil.copy(ROOT / "apflint" / "__init__.py", directory / "apflint")
    copy = directory / "editors" / "vscode"
    npm(copy, "ci")
    return copy


def test_a_workspace_that_is_not_trusted_names_no_program() -> None:
    manifest = read_json(EXTENSION / "package.json")
    settings = manifest["contributes"]["configuration"]["properties"]
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == set(settings) - {"apflint.trace.server"}
    assert {settings[name]["scope"] for name in restricted} == {"machine-overridable"}


def test_manifest_has_the_commands_and_settings_that_the_source_uses() -> None:
    manifest = read_json(EXTENSION / "package.json")
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((EXTENSION / "src").glob("*.ts")))
    commands = {command["command"] for command in manifest["contributes"]["commands"]}
    assert set(re.findall(r'registerCommand\("([\w.]+)"', source)) == commands
    # The extension does not read the setting for traces itself: vscode-languageclient does.
    used = {f"apflint.{name}" for name in re.findall(r'settings\.get(?:<[^>]+>)?\("(\w+)"', source)}
    assert used | {"apflint.trace.server"} == set(manifest["contributes"]["configuration"]["properties"])


def test_readme_has_all_settings_with_their_defaults() -> None:
    settings = read_json(EXTENSION / "package.json")["contributes"]["configuration"]["properties"]
    rows = re.findall(r"^\| `(apflint[\w.]+)` \| (\S+) \|", (EXTENSION / "README.md").read_text("utf-8"), re.MULTILINE)
    defaults = {name: setting["default"] for name, setting in settings.items()}
    assert {name: "" if cell == "empty" else cell.strip("`") for name, cell in rows} == {
        name: default if isinstance(default, str) else json.dumps(default) for name, default in defaults.items()
    }


def test_manifest_and_pages_name_the_schema_of_each_file_that_apflint_reads() -> None:
    contributions = read_json(EXTENSION / "package.json")["contributes"]
    associated = contributions["tomlValidation"] + contributions["yamlValidation"]
    assert sorted(item["url"].rpartition("/")[2] for item in associated) == SCHEMAS
    script = (EXTENSION / "scripts" / "build.mjs").read_text("utf-8")
    assert sorted(re.findall(r'"(apflint-\w+\.json)"', script)) == SCHEMAS
    for page in (EXTENSION / "README.md", ROOT / "docs" / "guides" / "editors" / "vscode.md"):
        text = page.read_text("utf-8")
        assert [item["fileMatch"][0] for item in associated if f"`{item['fileMatch'][0]}`" not in text] == []


@pytest.mark.parametrize("directory", [EXTENSION, EXTENSION / "test" / "vscode"])
def test_lock_files_name_no_registry(directory: Path) -> None:
    packages = read_json(directory / "package-lock.json")["packages"]
    assert len(packages) > 10
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert all(package.get("integrity") or not name for name, package in packages.items())


@NPM
@pytest.mark.slow
def test_types_and_unit_tests(extension: Path) -> None:
    npm(extension, "run", "typecheck")
    passed = re.search(r"^# pass (\d+)$", npm(extension, "test"), re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 11


@NPM
@pytest.mark.slow
def test_package_has_the_schemas_and_the_version_of_apflint(extension: Path) -> None:
    npm(extension, "run", "package")
    with zipfile.ZipFile(extension / f"apflint-{RELEASE}.vsix") as package:
        names = {name.removeprefix("extension/") for name in package.namelist() if name.startswith("extension/")}
        manifest = json.loads(package.read("extension/package.json"))
        for name in SCHEMAS:
            assert package.read(f"extension/schemas/{name}") == (ROOT / "schemas" / name).read_bytes()
        licenses = package.read("extension/THIRD_PARTY_LICENSES.txt").decode()
    assert names == {
        "LICENSE.txt",
        "THIRD_PARTY_LICENSES.txt",
        "extension.js",
        "package.json",
        "readme.md",
        *(f"schemas/{name}" for name in SCHEMAS),
    }
    assert manifest["version"] == RELEASE
    assert not {"dependencies", "devDependencies", "scripts"} & set(manifest)
    (toml,) = manifest["contributes"]["tomlValidation"]
    assert toml["url"].endswith(f"/apflint/v{RELEASE}/schemas/apflint-config.json")
    files = {item["url"].removeprefix("./"): item["fileMatch"] for item in manifest["contributes"]["yamlValidation"]}
    assert files == {
        "schemas/apflint-test.json": ["apf-test.yaml", "apf-test.yml"],
        "schemas/apflint-load.json": ["apf-load.yaml", "apf-load.yml"],
        "schemas/apflint-goals.json": ["apf-goals.yaml", "apf-goals.yml"],
    }
    assert re.search(r"^vscode-languageclient [\d.]+ \(MIT\)$", licenses, re.MULTILINE)


@NPM
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_extension_in_a_real_vscode(extension: Path) -> None:
    npm(extension / "test" / "vscode", "run", "get")
    printed = npm(extension, "run", "test:vscode", "--", "--chromium", str(CHROMIUM))
    passed = re.findall(r"^ok (\w+)$", printed, re.MULTILINE)
    assert passed == ["findings", "missing", "environment", "untrusted", "trusted"]
